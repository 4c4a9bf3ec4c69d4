//! Deployments of all applications, the newest first.

use jiff::Timestamp;
use maud::{Markup, html};

use super::applications::bar;
use super::pieces::{change, empty, outcome, person};
use super::shell::{Page, Section};
use crate::filter::Filter;
use crate::time::{absolute, lasting};
use crate::view::deployment::Deployment;

pub(crate) fn page(filter: &Filter, deployments: &[Deployment], now: Timestamp) -> Page {
    let body = if deployments.is_empty() { nothing(filter) } else { table(deployments, now) };
    Page {
        title: "Deployments".to_owned(),
        section: Section::Deployments,
        bar: bar("/deployments", filter, false),
        body,
    }
}

fn nothing(filter: &Filter) -> Markup {
    if filter.terms.is_empty() {
        return empty(
            "No deployment was reported yet",
            &html! {
                p { "One appears with the first sync of an application. " a href="/runtimes" { "When runtimes were last heard of" } }
            },
        );
    }
    empty("Nothing matches", &html! { p { a.button href="/deployments" { "Show all deployments" } } })
}

fn table(deployments: &[Deployment], now: Timestamp) -> Markup {
    html! {
        h1.hidden { "Deployments" }
        section.panel.list aria-label="Deployments" {
            table data-rows {
                thead { tr { th scope="col" { span.hidden { "outcome" } } th scope="col" { "when" } th scope="col" { "application" } th.narrow-away scope="col" { "runtime" } th.narrow-away scope="col" { "change" } th.narrow-away scope="col" { "by" } th.number scope="col" { "took" } } }
                tbody {
                    @for one in deployments {
                        @let at = one.at.as_millisecond();
                        @let end = one.finished.unwrap_or(now);
                        tr data-key={"deployment/" (one.application.tail()) "/" (at)} data-row {
                            td.states { (outcome(one.outcome)) }
                            td.mute { (absolute(one.at)) }
                            td.what { a href={(one.application.path()) "?tab=compare&from=" (at - 1_000) "&to=" (end.as_millisecond())} { (one.application.name) } }
                            td.mute.narrow-away { (one.application.runtime) }
                            td.change.narrow-away { (change(&one.change)) }
                            td.narrow-away { (person(&one.change.author)) }
                            td.number.mute { (lasting(one.at, end)) }
                        }
                    }
                }
            }
        }
    }
}
