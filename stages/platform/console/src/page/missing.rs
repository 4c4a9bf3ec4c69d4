//! Pages of addresses that have none, or none for whoever asks.

use maud::{Markup, html};

use super::pieces::empty;
use super::shell::{Page, Section, find_bar};

/// For whoever is no admin, of what is an admin's.
pub(crate) fn of_admins() -> Page {
    nowhere("Not yours", "Only an admin may see this", "Ask one to do it for you, or to make you an admin.")
}

pub(crate) fn page() -> Page {
    nowhere(
        "Not known",
        "There is no such page",
        "Its address may be mistyped, or what it showed is not there any more.",
    )
}

/// A page of no section: why there is nothing, what to do, and the way home.
fn nowhere(title: &str, why: &str, what_next: &str) -> Page {
    nothing(
        title,
        Section::Nowhere,
        why,
        &html! {
            p { (what_next) }
            p { a.button href="/" { "Home" } }
        },
    )
}

/// A page that says why there is nothing to show.
pub(super) fn nothing(title: &str, section: Section, why: &str, body: &Markup) -> Page {
    let body = html! { h1.hidden { (title) } (empty(why, body)) };
    Page { title: title.to_owned(), section, bar: find_bar(), body }
}
