//! Pages of addresses that have none, or none for whoever asks.

use maud::html;

use super::pieces::empty;
use super::shell::{Page, Section, find_bar};

/// For whoever is no admin, of what is an admin's.
pub(crate) fn of_admins() -> Page {
    Page {
        title: "Not yours".to_owned(),
        section: Section::Nowhere,
        bar: find_bar(),
        body: html! { h1.hidden { "Not yours" } (empty(
            "Only an admin may see this",
            &html! {
                p { "Ask one to do it for you, or to make you an admin." }
                p { a.button href="/" { "Home" } }
            },
        )) },
    }
}

pub(crate) fn page() -> Page {
    Page {
        title: "Not known".to_owned(),
        section: Section::Nowhere,
        bar: find_bar(),
        body: html! { h1.hidden { "Not known" } (empty(
            "There is no such page",
            &html! {
                p { "Its address may be mistyped, or what it showed is not there any more." }
                p { a.button href="/" { "Home" } }
            },
        )) },
    }
}
