//! Somebody's own tokens at Git providers, which runtimes keep: where a script lists what the chosen one has.

use maud::html;

use super::{settings, tabs};
use crate::page::pieces::empty;
use crate::page::shell::Page;

/// Of one runtime of those that are seen; `why` nobody registers a token there, if whoever looks may not.
pub(crate) fn page(runtimes: &[String], chosen: Option<&str>, why: Option<&str>, is_admin: bool) -> Page {
    settings(
        "Git accounts",
        html! {
            h1 { "Settings" }
            (tabs("/settings/git", is_admin))
            @match chosen {
                None => { (empty("There is no runtime that you see", &html! { p { "Tokens for Git are kept by runtimes: each has its own." } })) },
                Some(runtime) => {
                    @if runtimes.len() > 1 {
                        form.question action="/settings/git" {
                            label for="runtime" { "Kept by the runtime" }
                            select #runtime name="runtime" { @for one in runtimes { option value=(one) selected[one == runtime] { (one) } } }
                            button { "Show" }
                        }
                    }
                    section.panel.list.asked aria-label={"Git integrations of " (runtime)} data-kept={"git/" (runtime)} data-git data-runtime=(runtime) data-why=[why] {
                        noscript { p.mute.pad { "The runtime is asked by a script." } }
                    }
                    p.foot { "What you read and commit in Git from here is done as you, with your own token. It is kept in the runtime alone, sealed; the platform passes it on once and keeps nothing of it." }
                },
            }
        },
    )
}
