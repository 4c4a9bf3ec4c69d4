//! Settings: what stands around each of its pages.

pub(crate) mod audit;
pub(crate) mod git;
pub(crate) mod identity;
pub(crate) mod keys;
pub(crate) mod people;
pub(crate) mod retention;
pub(crate) mod rules;
pub(crate) mod tokens;

use maud::{Markup, html};

use super::pieces::command;
use super::shell::{Page, Section, find_bar};
use crate::time::moment;

/// What stands above a list.
pub(crate) enum Said<'a> {
    /// Nothing.
    Nothing,
    /// What was just made: it is shown this once.
    Made(&'a str),
    /// Why nothing was done.
    Refused(&'a str),
}

const TABS: [(&str, &str, bool); 7] = [
    ("API keys", "/settings", false),
    ("Git accounts", "/settings/git", false),
    ("Users", "/settings/users", true),
    ("Rules", "/settings/rules", true),
    ("Runtime tokens", "/settings/tokens", true),
    ("Retention", "/settings/retention", true),
    ("Audit", "/audit", true),
];

fn tabs(here: &str, is_admin: bool) -> Markup {
    html! {
        nav.tabs aria-label="Settings" {
            @for (name, path, admin) in TABS {
                @if is_admin || !admin { a href=(path) aria-current=[(path == here).then_some("page")] { (name) } }
            }
        }
    }
}

/// `made` says what to do with what was made.
fn above(said: &Said<'_>, made: &Markup) -> Markup {
    html! {
        @match said {
            Said::Nothing => {},
            // Where a form was sent to there may be no page, or another one: this one is not read again.
            Said::Made(secret) => { p data-once role="status" { (made) } (command(secret)) },
            Said::Refused(why) => { p.bad data-once role="alert" { (why) } },
        }
    }
}

fn day(at: i64) -> Markup {
    let at = moment(at);
    html! { time datetime=(at) data-at { (at.strftime("%F %H:%M UTC")) } }
}

fn settings(title: &str, body: Markup) -> Page {
    Page { title: title.to_owned(), section: Section::Settings, bar: find_bar(), body }
}
