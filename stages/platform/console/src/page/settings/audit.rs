//! What was done, and by whom.

use maud::html;
use stages_platform_store::Act;
use url::form_urlencoded;

use super::{day, settings, tabs};
use crate::page::link::with;
use crate::page::pieces::empty;
use crate::page::shell::{Page, search_bar};

/// What was done that holds a text, the newest first; `more` leads on.
pub(crate) fn page(text: &str, acts: &[Act], more: Option<i64>) -> Page {
    let bar =
        search_bar("/audit", "Search the audit log", "who, what or to what, such as ada or token.add", text);
    let older = |before: i64| {
        let mut query = form_urlencoded::Serializer::new(String::new());
        if !text.is_empty() {
            query.append_pair("q", text);
        }
        with("/audit", &query.append_pair("before", &before.to_string()).finish())
    };
    let page = settings(
        "Audit",
        html! {
            h1 { "Audit" }
            (tabs("/audit", true))
            @if acts.is_empty() && !text.is_empty() {
                (empty("Nothing matches", &html! { p { "Nothing was done that holds this, for as long as the log is kept. " a.button href="/audit" { "Show all" } } }))
            } @else {
            section.panel.list aria-label="What was done" tabindex="0" {
                table {
                    thead { tr { th scope="col" { "when" } th scope="col" { "who" } th scope="col" { "by" } th scope="col" { "did" } th scope="col" { "to" } } }
                    tbody {
                        @for act in acts {
                            tr { td.mute { (day(act.at)) } td { (act.who) } td.mute { (act.how) } td { code { (act.act) } } td title=(act.subject) { (act.subject) } }
                        }
                    }
                }
            }
            }
            @if let Some(before) = more { p.pager { a href=(older(before)) { "Older" } } }
        },
    );
    Page { bar, ..page }
}
