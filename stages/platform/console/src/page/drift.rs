//! The drifts of an application: when, of which resources, what differed, and who had changed it.

use jiff::{SignedDuration, Timestamp};
use maud::{Markup, html};

use super::application::{Asked, LONGEST, Tab};
use super::pieces::empty;
use super::timeline::cut;
use crate::time::{absolute, lasting};
use crate::view::application::{Application, Drift, DriftedResource};
use crate::view::home::Said;

/// Resources of one drift that are not folded.
const SHOWN: usize = 5;

pub(super) fn tab(asked: &Asked, application: &Application) -> Markup {
    if application.drifts.is_empty() {
        let all = Asked { hours: LONGEST, from: None, to: None, ..asked.clone() };
        return empty(
            "It did not drift in this time",
            &html! {
                p { "As far as it was reported, what ran was what Git says."
                    @if asked.hours < LONGEST { " " a href=(all.link()) { "Show 90 days" } } }
            },
        );
    }
    html! {
        section.panel.list aria-label="Drift" {
            table.timeline.drifts data-rows {
                thead { tr { th scope="col" { "began" } th.narrow-away scope="col" { "ended" } th.number scope="col" { "lasted" } th scope="col" { "what differed, and by whom" } } }
                tbody { @for one in &application.drifts { (line(asked, one, application.life.to)) } }
            }
        }
        @if application.is_cut { (cut(asked, "drifted")) }
    }
}

fn line(asked: &Asked, one: &Drift, now: Timestamp) -> Markup {
    let key = one.from.as_millisecond();
    let (shown, folded) = one.resources.split_at(one.resources.len().min(SHOWN));
    let compare = Asked { resource: None, ..between(asked, one.from, one.to) }.link();
    html! {
        tr data-key={"drift/" (key) @if let Some(first) = one.resources.first() { "/" (first.key) }} data-row {
            td { span.glyph.warn aria-hidden="true" { "≠" } " " (absolute(one.from)) }
            td.narrow-away { @if let Some(to) = one.to { (absolute(to)) } @else { "it lasts" } }
            td.number.mute { (lasting(one.from, one.to.unwrap_or(now))) }
            td.change {
                @if one.resources.is_empty() { "No resource was told to differ. " a href=(compare) { "Compare" } }
                @else { (resources(asked, shown)) }
                @if !folded.is_empty() {
                    details data-fold={"drift/" (key)} { summary { "and " (folded.len()) " more" } (resources(asked, folded)) }
                }
            }
        }
    }
}

fn resources(asked: &Asked, resources: &[DriftedResource]) -> Markup {
    html! {
        ul {
            @for one in resources {
                @let compare = Asked { resource: Some(one.key.clone()), ..between(asked, one.from, one.to) }.link();
                li {
                    a href=(compare) title="Compare before and after it began to differ" { (one.key.kind) "/" (one.key.name) } " "
                    @for said in &one.what { @match said { Said::Text(text) => (text), Said::Code(code) => code { (code) } } }
                }
            }
        }
    }
}

/// What it was before a drift beside what it was until that ended; what lasts is compared with now.
fn between(asked: &Asked, from: Timestamp, to: Option<Timestamp>) -> Asked {
    let before = |at: Timestamp| at.checked_sub(SignedDuration::from_millis(1)).unwrap_or(at);
    let to = to.map(|to| before(to).max(from).as_millisecond());
    Asked { tab: Tab::Compare, from: Some(before(from).as_millisecond()), to, ..asked.clone() }
}
