//! What was done, and by whom.

use maud::html;
use stages_platform_store::Act;

use super::{day, settings, tabs};
use crate::page::shell::Page;

/// What was done, the newest first; `more` leads on.
pub(crate) fn page(acts: &[Act], more: Option<i64>) -> Page {
    settings(
        "Audit",
        html! {
            h1 { "Audit" }
            (tabs("/audit", true))
            section.panel.list aria-label="What was done" {
                table {
                    thead { tr { th scope="col" { "when" } th scope="col" { "who" } th scope="col" { "by" } th scope="col" { "did" } th scope="col" { "to" } } }
                    tbody {
                        @for act in acts {
                            tr { td.mute { (day(act.at)) } td { (act.who) } td.mute { (act.how) } td { code { (act.act) } } td title=(act.subject) { (act.subject) } }
                        }
                    }
                }
            }
            @if let Some(before) = more { p.pager { a href={"/audit?before=" (before)} { "Older" } } }
        },
    )
}
