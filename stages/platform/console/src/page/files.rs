//! Files that an application's manifests are made of: where a script lists them, shows one, and commits what somebody changes in
//! it, as them.

use maud::{Markup, html};
use percent_encoding::utf8_percent_encode;

use super::acts::Acts;
use super::application::Asked;
use super::link::{SEGMENT, application_key};
use super::pieces::empty;
use super::provider::{host, project};
use crate::view::application::Application;

pub(super) fn tab(asked: &Asked, application: &Application, acts: &Acts) -> Markup {
    let known = application.sources.iter().filter_map(|source| {
        let (host, project) = (host(&source.repository)?, project(&source.repository)?);
        Some((source, host, project))
    });
    let known: Vec<_> = known.collect();
    if known.is_empty() && !application.sources.is_empty() {
        return empty(
            "Files of its repository cannot be read here",
            &html! { p { "The address of the repository names no owner and no project, as those of Git providers do." } },
        );
    }
    if known.is_empty() {
        return empty(
            "No folder of a Git repository is known of it",
            &html! { p { "Its manifests come of a chart of a registry, or its last report did not say where they come from." } },
        );
    }
    let runtime = &asked.id.runtime;
    let why = acts.why_no_commit();
    html! {
        @for (number, (source, host, project)) in known.iter().enumerate() {
            @let title = if number > 0 { format!("{project} ({})", number + 1) } else { project.clone() };
            section.asked aria-label={"Files of " (title)} data-title=(title) data-kept={"files/" (application_key(&application.row.id)) "/" (source.repository) "/" (source.path) "@" (source.revision) "/" (number)}
                data-files data-host=(host) data-repository=(project) data-path=(source.path.trim_matches('/')) data-revision=(source.revision)
                data-settings={"/settings/git?runtime=" (utf8_percent_encode(runtime, SEGMENT))} data-why=[why.as_ref()] {
                noscript { p.mute.pad { "Files are asked of the runtime by a script." } }
            }
        }
    }
}
