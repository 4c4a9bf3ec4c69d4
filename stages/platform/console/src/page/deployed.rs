//! What is known of the deployments of an application, for whoever chooses one to go back to: the runtime lists them by their
//! revisions alone.

use maud::{Markup, html};

use super::pieces::{first_line, person, plain};
use crate::view::deployment::{Deployment, ImageChange};

/// Images of one that are told.
const IMAGES: usize = 6;
/// Letters of the first line of its commit that are.
const LETTERS: usize = 200;

/// The newest first, each told by what it deployed and when it began.
pub(crate) fn fragment(deployments: &[Deployment]) -> Markup {
    html! {
        ul {
            @for one in deployments.iter().rev() {
                li data-revision=(one.change.revision) data-at=(one.at.as_millisecond()) {
                    span { bdi { (plain(&begin(&one.change.message))) } " " (person(&one.change.author)) }
                    span.mute {
                        @for image in one.images.iter().take(IMAGES) { code title=(image.name) { (version(image)) } " " }
                        @if one.images.len() > IMAGES { "and " (one.images.len() - IMAGES) " more images" }
                    }
                }
            }
        }
    }
}

/// The first line of a message, as far as it is told.
fn begin(message: &str) -> String {
    let line = first_line(message);
    let end = line.char_indices().nth(LETTERS).map(|(end, _)| end);
    match end.and_then(|end| line.get(..end)) {
        Some(begin) => format!("{begin}…"),
        None => line.to_owned(),
    }
}

/// Which one it ran, without where that comes from.
fn version(ImageChange { name, after, .. }: &ImageChange) -> String {
    let name = name.rsplit('/').next().unwrap_or_default();
    if after.is_empty() { name.to_owned() } else { format!("{name}:{after}") }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use stages_platform_store::ApplicationName;

    use super::*;
    use crate::view::application::Change;
    use crate::view::deployment::Outcome;

    #[test]
    fn no_more_of_a_line_is_told_than_somebody_chooses_by_cut_between_letters() {
        let line = |letters: usize| "é".repeat(letters);
        assert_eq!(begin(&line(LETTERS)), line(LETTERS));
        assert_eq!(begin(&format!("{}\nmore", line(LETTERS))), line(LETTERS));
        assert_eq!(begin(&line(LETTERS + 1)), format!("{}…", line(LETTERS)));
        assert_eq!(begin(""), "");
    }

    #[test]
    fn a_deployment_is_told_by_its_message_its_author_and_a_few_of_its_images() {
        let image = |number: usize| ImageChange {
            name: format!("registry.example.com/shop/part-{number}"),
            before: None,
            after: if number == 0 { String::new() } else { format!("1.{number}") },
        };
        let id = ApplicationName { runtime: "prod".into(), namespace: "argocd".into(), name: "shop".into() };
        let one = |at: i64, message: &str, images: usize| Deployment {
            application: id.clone(),
            at: Timestamp::from_millisecond(at).unwrap(),
            finished: None,
            change: Change {
                revision: "3f9c1e2a".to_owned(),
                message: message.to_owned(),
                author: "Ada Byron <ada@example.com>".to_owned(),
            },
            by: None,
            images: (0..images).map(image).collect(),
            outcome: Outcome::Succeeded,
            message: String::new(),
            brought: Vec::new(),
        };
        let told = fragment(&[one(1, "first", 1), one(2, "<b> second\n\nand more", IMAGES + 2)]).0;
        let (newest, oldest) = told.split_once("data-at=\"1\"").unwrap();
        for part in [
            "data-revision=\"3f9c1e2a\" data-at=\"2\"",
            "&lt;b&gt; second<",
            ">Ada Byron<",
            ">part-1:1.1<",
            "and 2 more images",
        ] {
            assert!(newest.contains(part), "{part}: {told}");
        }
        assert!(!told.contains("and more<") && !told.contains("ada@example.com"), "{told}");
        assert!(
            oldest.contains(">first<") && oldest.contains(">part-0<") && !oldest.contains("more images"),
            "{told}"
        );
    }
}
