//! A commit that a deployment brought: what it changed in the files of its application.

use jiff::Timestamp;
use maud::{Markup, html};
use percent_encoding::utf8_percent_encode;
use stages_platform_store::{FileDiff, MadeFrom};

use super::application::{Asked, Tab};
use super::diff;
use super::link::{SEGMENT, application_key, application_path, with};
use super::missing::nothing;
use super::pieces::{empty, first_line, person, plain, revision, short};
use super::provider::commit_link;
use super::shell::{Page, Section};
use crate::time::absolute;
use crate::view::commit::{BroughtCommit, CommitFiles};

/// Where that is shown; the timeline that it was opened from stays in the address.
pub(crate) fn link(asked: &Asked, began: i64, revision: &str) -> String {
    let path =
        format!("{}/commits/{began}/{}", application_path(&asked.id), utf8_percent_encode(revision, SEGMENT));
    with(&path, &asked.query())
}

/// The timeline that the page was opened from.
fn timeline(asked: &Asked) -> String {
    Asked { tab: Tab::Timeline, ..asked.clone() }.link()
}

pub(crate) fn page(asked: &Asked, began: Timestamp, commit: &BroughtCommit) -> Page {
    let revision = &commit.change.revision;
    Page {
        title: format!("{} {}", asked.id.name, short(revision)),
        section: Section::Applications,
        bar: bar(asked, began, commit),
        body: body(asked, began, commit),
    }
}

fn bar(asked: &Asked, began: Timestamp, commit: &BroughtCommit) -> Markup {
    let neighbour = |revision: &String| link(asked, began.as_millisecond(), revision);
    html! {
        nav.crumbs aria-label="Where this is" {
            a href=(with("/applications", &asked.filter.query())) { "Applications" }
            span.faint aria-hidden="true" { "›" }
            a.terms href=(timeline(asked)) data-back { (asked.id.name) }
            @if let Some(newer) = &commit.newer {
                a.button rel="prev" href=(neighbour(newer)) aria-label="The commit after it" { "‹ " kbd aria-hidden="true" { "[" } }
            }
            @if let Some(older) = &commit.older {
                a.button rel="next" href=(neighbour(older)) aria-label="The commit before it" { "› " kbd aria-hidden="true" { "]" } }
            }
        }
    }
}

fn body(asked: &Asked, began: Timestamp, commit: &BroughtCommit) -> Markup {
    let change = &commit.change;
    let mut lines = change.message.lines();
    let title = lines.next().map(str::trim).filter(|line| !line.is_empty()).unwrap_or("Without a message");
    let rest = lines.collect::<Vec<_>>().join("\n");
    let mut room = diff::LINES;
    let provided = commit.sources.iter().find_map(|source| commit_link(&source.repository, &change.revision));
    html! {
        div.title data-key={"title/" (application_key(&asked.id))} data-application=(application_key(&asked.id)) {
            h1 { bdi { (plain(title)) } }
            span.tag { (revision(provided.as_deref(), &change.revision)) }
            (person(&change.author))
            @if let Some(of) = &commit.made_from { p { (made_from(of)) } }
            p.mute { "came with the deployment of " a href=(timeline(asked)) { (asked.id.name) } ", " (absolute(began)) }
        }
        @if !rest.trim().is_empty() { p.said dir="auto" { (plain(rest.trim())) } }
        @if commit.sources.iter().all(|source| source.diffs.is_empty()) {
            (empty("What it changed in files is not told", &html! {
                p { "The role " code { "change-revision" } " tells it where its setting " code { "changeRevision.diffs" }
                    " leaves room for it: of the newest commits, and of none that was reported before it did." }
                p { a.button href=(timeline(asked)) { "Back to the timeline" } }
            }))
        }
        @for (number, source) in commit.sources.iter().enumerate() {
            @if commit.sources.len() > 1 { h2 { code { (source.repository) } } }
            (files(source, number, &mut room))
        }
    }
}

/// The commit of people that Argo CD made one from.
pub(super) fn made_from(of: &MadeFrom) -> Markup {
    html! {
        span.mute {
            "made from "
            (revision(commit_link(&of.repository, &of.revision).as_deref(), &of.revision))
            " " (person(&of.author)) " "
            bdi.message { (plain(first_line(&of.message))) }
        }
    }
}

fn files(source: &CommitFiles, number: usize, room: &mut usize) -> Markup {
    html! {
        @for (index, file) in source.diffs.iter().enumerate() {
            section.panel.source.file aria-label=(file.path) tabindex="0" data-key={"file/" (number) "/" (index)} {
                header { code { (file.path) } }
                (difference(file, room))
            }
        }
        @if !source.paths.is_empty() || source.more_paths > 0 {
            section.panel.pad aria-label="Further files" data-key={"files/" (number)} {
                h2 { @if source.diffs.is_empty() { "It changed" } @else { "It changed as well" } }
                ul { @for path in &source.paths { li.path { code { (path) } } }
                    @if source.more_paths > 0 { li.mute { "and " (source.more_paths) " more" } } }
            }
        }
    }
}

fn difference(file: &FileDiff, room: &mut usize) -> Markup {
    html! {
        @if file.untold.is_empty() {
            @if !file.text.is_empty() { (diff::unified(&file.text, room)) }
            @if file.cut { p.mute.pad { "There is more of it than is told." } }
        } @else {
            p.mute.pad { (why(&file.untold)) }
        }
    }
}

fn why(untold: &str) -> &'static str {
    match untold {
        "binary" => "It is no text.",
        "large" => "It is too large to be compared.",
        "unreadable" => {
            "It is no YAML or JSON that can be read: what is secret in it is not known, so nothing of it left its cluster."
        }
        "same" => "No line of it differs: its mode does, a comment, or what stands for a secret.",
        "lost" => "It could not be read from the repository.",
        _ => "It is not told what differs.",
    }
}

/// What to say of a commit that is not known.
pub(crate) fn unknown(asked: &Asked, revision: &str) -> Page {
    nothing(
        "Not known",
        Section::Applications,
        "This commit is not known",
        &html! {
            p { "No deployment of " b { (asked.id.name) } " in " (asked.id.namespace) " of runtime " (asked.id.runtime) " is known to have brought "
                code { (short(revision)) } " then." }
            p { a.button href=(timeline(asked)) { "To the timeline" } }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_commit_was_made_from_is_named_with_whoever_wrote_it() {
        let of = |repository: &str, author: &str, message: &str| {
            let [repository, author, message] = [repository, author, message].map(str::to_owned);
            let revision = "4f2a91c0".repeat(5);
            made_from(&MadeFrom { repository, revision, author, message, ..MadeFrom::default() })
                .into_string()
        };
        let shown = of("https://github.com/team/mono.git", "Ada <ada@example.com>", "Raise <it>\n\nBecause.");
        let link = format!("https://github.com/team/mono/commit/{}", "4f2a91c0".repeat(5));
        assert!(shown.contains(&format!("made from <a href=\"{link}\"")), "{shown}");
        assert!(shown.contains("<bdi class=\"name\">Ada</bdi>"), "{shown}");
        assert!(shown.contains("<bdi class=\"message\">Raise &lt;it&gt;</bdi>"), "{shown}");
        let bare = of("/srv/mono", "", "");
        assert!(!bare.contains("href") && bare.contains("<code title"), "{bare}");
    }
}
