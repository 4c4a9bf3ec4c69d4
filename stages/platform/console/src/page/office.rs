//! Settings and what was done: keys for programs, and the audit log.

use jiff::Timestamp;
use maud::{Markup, html};
use stages_platform_store::{Act, Key};

use super::pieces::command;
use super::shell::{Page, Section, find_bar};

/// What stands above the lists of somebody's keys.
pub(crate) enum Said<'a> {
    /// Nothing.
    Nothing,
    /// A key that was just made: it is shown this once.
    Made(&'a str),
    /// Why nothing was done.
    Refused(&'a str),
}

fn tabs(here: &str, is_admin: bool) -> Markup {
    html! {
        nav.tabs aria-label="Settings" {
            @for (name, path, admin) in [("API keys", "/settings", false), ("Audit", "/audit", true)] {
                @if is_admin || !admin { a href=(path) aria-current=[(path == here).then_some("page")] { (name) } }
            }
        }
    }
}

fn day(at: i64) -> String {
    Timestamp::from_millisecond(at).unwrap_or(Timestamp::UNIX_EPOCH).strftime("%F %H:%MZ").to_string()
}

fn page(title: &str, body: Markup) -> Page {
    Page { title: title.to_owned(), section: Section::Settings, bar: find_bar(), body }
}

/// The keys of somebody, with the form that makes one.
pub(crate) fn keys(keys: &[Key], is_admin: bool, said: &Said<'_>) -> Page {
    page(
        "API keys",
        html! {
            h1 { "Settings" }
            (tabs("/settings", is_admin))
            @match said {
                Said::Nothing => {},
                Said::Made(token) => {
                    p role="status" { "This key is shown this once. A program sends it in the header " code { "Authorization" } "." }
                    (command(token))
                },
                Said::Refused(why) => { p.bad role="alert" { (why) } },
            }
            section.panel.list aria-label="Your API keys" {
                table {
                    thead { tr { th scope="col" { "name" } th scope="col" { "begins with" } th scope="col" { "may" } th scope="col" { "ends" } th scope="col" { span.hidden { "act" } } } }
                    tbody {
                        @for key in keys {
                            tr {
                                td.what { (key.name) }
                                td { code { (key.prefix) "…" } }
                                td { (key.scope.name()) }
                                td.mute { (day(key.until)) }
                                td.act {
                                    form method="post" action="/settings/keys/remove" {
                                        input type="hidden" name="id" value=(key.id);
                                        button aria-label={"Take back " (key.name)} { "Take back" }
                                    }
                                }
                            }
                        }
                        @if keys.is_empty() { tr { td.mute colspan="5" { "You have no key yet: make one below for a program that asks the API." } } }
                    }
                }
            }
            form.panel.form method="post" action="/settings/keys" {
                h2 { "Make a key" }
                label for="name" { "What it is for" }
                input #name type="text" name="name" required maxlength="100" autocomplete="off";
                label for="scope" { "What it may" }
                select #scope name="scope" { option value="read" { "read" } option value="full" { "read and change, as you may" } }
                label for="days" { "Days until it ends" }
                input #days type="number" name="days" min="1" max="365" value="90" required;
                button.primary { "Make the key" }
            }
        },
    )
}

/// What was done, the newest first; `more` leads on.
pub(crate) fn audit(acts: &[Act], more: Option<i64>) -> Page {
    page(
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
