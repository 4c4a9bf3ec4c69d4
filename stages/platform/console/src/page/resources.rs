//! Resources of the whole fleet, of today and of the past: which application owned this?

use jiff::Timestamp;
use maud::{Markup, html};

use super::link::{application_key, application_path};
use super::pieces::{empty, health, sync};
use super::shell::{Page, Section, search_bar};
use crate::time::{absolute, relative};
use crate::view::resource::ResourceRow;

pub(crate) fn page(text: &str, found: &[ResourceRow], now: Timestamp) -> Page {
    let bar = search_bar("/resources", "Search resources", "name of a resource, now or in the past", text);
    Page { title: "Resources".to_owned(), section: Section::Resources, bar, body: body(text, found, now) }
}

/// Where a resource stands beside the others of its application.
pub(crate) fn link(one: &ResourceRow) -> String {
    let key = one.resource.key.to_string();
    let key = percent_encoding::utf8_percent_encode(&key, super::link::SEGMENT);
    format!("{}?tab=resources&r={key}", application_path(&one.application))
}

fn body(text: &str, found: &[ResourceRow], now: Timestamp) -> Markup {
    if found.is_empty() {
        return if text.is_empty() {
            empty(
                "No resource was reported yet that you may see",
                &html! {
                    p { "They come with the reports of their applications. " a href="/runtimes" { "When runtimes were last heard of" } }
                },
            )
        } else {
            empty(
                "Nothing matches",
                &html! { p { "No resource of that name was ever reported. " a.button href="/resources" { "Show all" } } },
            )
        };
    }
    html! {
        h1.hidden { "Resources" }
        section.panel.list aria-label="Resources" {
            table.crowded data-rows {
                thead { tr { th scope="col" { span.hidden { "state" } } th scope="col" { "resource" } th.narrow-away scope="col" { "namespace" } th scope="col" { "application" } th.narrow-away scope="col" { "runtime" } th.number scope="col" { "since" } } }
                tbody {
                    @for one in found {
                        @let key = &one.resource.key;
                        tr data-key={(application_key(&one.application)) "/" (key)} data-row {
                            td.states { @if let Some(state) = one.resource.health { (health(state)) } " " (sync(one.resource.sync)) }
                            td.what { a href=(link(one)) { span.mute { (key.kind) "/" } (key.name) } }
                            td.mute.narrow-away { (key.namespace) }
                            td { a href=(application_path(&one.application)) { (one.application.name) } }
                            td.mute.narrow-away { (one.application.runtime) }
                            td.number.mute { @if let Some(at) = one.gone { span.warn { "gone " (absolute(at)) } } @else { (relative(one.resource.since, now)) } }
                        }
                    }
                }
            }
        }
        @if found.len() >= 200 { p.foot { "The first 200; type more of the name to narrow it." } }
    }
}
