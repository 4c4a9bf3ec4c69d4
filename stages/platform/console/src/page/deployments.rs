//! Deployments of all applications, the newest first.

use jiff::Timestamp;
use maud::{Markup, html};

use super::applications::{bar, mistyped};
use super::link::{application_key, application_path, with};
use super::pieces::{change, empty, outcome, people, who};
use super::shell::{Page, Section};
use crate::filter::Filter;
use crate::time::{absolute, lasting};
use crate::view::deployment::Deployment;

/// A page of them; `is_more`: there are older ones.
pub(crate) fn page(filter: &Filter, deployments: &[Deployment], is_more: bool, now: Timestamp) -> Page {
    let body = html! {
        (mistyped(filter))
        @if deployments.is_empty() { (nothing(filter)) } @else { (table(deployments, now)) }
        @if filter.page > 0 || is_more { footer.foot { (pager(filter, is_more)) } }
    };
    Page {
        title: "Deployments".to_owned(),
        section: Section::Deployments,
        bar: bar("/deployments", filter, false),
        body,
    }
}

fn pager(filter: &Filter, is_more: bool) -> Markup {
    let page = |page| with("/deployments", &Filter { page, ..filter.clone() }.query());
    html! {
        nav.pager aria-label="Pages" {
            @if filter.page > 0 { a href=(page(filter.page - 1)) rel="prev" { "‹ Newer" } }
            span { "page " (filter.page + 1) }
            @if is_more { a href=(page(filter.page + 1)) rel="next" { "Older ›" } }
        }
    }
}

fn nothing(filter: &Filter) -> Markup {
    if filter.terms.is_empty() && filter.page == 0 {
        return empty(
            "No deployment was reported yet that you may see",
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
            table.crowded data-rows {
                thead { tr { th scope="col" { span.hidden { "outcome" } } th scope="col" { "when" } th scope="col" { "application" } th.narrow-away scope="col" { "runtime" } th.narrow-away scope="col" { "change" } th.narrow-away scope="col" { "by" } th.number scope="col" { "took" } } }
                tbody {
                    @for one in deployments {
                        @let at = one.at.as_millisecond();
                        @let end = one.finished.unwrap_or(now);
                        tr data-key={"deployment/" (application_key(&one.application)) "/" (at)} data-row {
                            td.states { (outcome(one.outcome)) }
                            td.mute { (absolute(one.at)) }
                            td.what { a href={(application_path(&one.application)) "?tab=compare&from=" (at - 1_000) "&to=" (end.as_millisecond())} { (one.application.name) } (who(&one.change)) }
                            td.mute.narrow-away { (one.application.runtime) }
                            td.change.narrow-away { div.one-line { (change(&one.change)) } }
                            td.narrow-away { (people(one)) }
                            td.number.mute { (lasting(one.at, end)) }
                        }
                    }
                }
            }
        }
    }
}
