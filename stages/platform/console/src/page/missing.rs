//! The page of an address that has none.

use maud::html;

use super::pieces::empty;
use super::shell::{Page, Section, find_bar};

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
