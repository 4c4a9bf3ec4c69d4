//! Home: what needs me now?

use std::cmp::Ordering;

use jiff::Timestamp;
use maud::{Markup, html};

use super::clusters;
use super::link::{application_key, application_path};
use super::pieces::{counted, empty, glyph, health, number, plain, rounded};
use super::runtimes::{lines, no_application};
use super::shell::{Page, Section, find_bar};
use super::shipping::figures;
use crate::time::relative;
use crate::view::home::{Activity, Day, Home, Need, Said, Subject};
use crate::view::shipping::Trend;

pub(crate) fn page(home: &Home, trend: &Trend, is_admin: bool, now: Timestamp) -> Page {
    let body = match (home.runtimes.is_empty(), home.applications) {
        (true, _) => super::runtimes::none(is_admin),
        // None is deployed, or the rules of whoever looks leave none.
        (false, 0) if !is_admin => without_applications(home, now),
        (false, _) => body(home, trend, now),
    };
    Page { title: "Home".to_owned(), section: Section::Home, bar: find_bar(), body }
}

/// What somebody sees who sees no application: a runtime that is silent or in trouble needs them all the same.
fn without_applications(home: &Home, now: Timestamp) -> Markup {
    html! {
        h1.hidden { "Home" }
        (no_application())
        @if !home.needs.is_empty() { (needs(home, now)) }
        section { h2 { "Runtimes" } div.panel.list { (lines(&home.runtimes, now)) } }
    }
}

fn needs(home: &Home, now: Timestamp) -> Markup {
    html! {
        section.panel.list aria-label="What needs you now" {
            table.crowded data-rows {
                thead.hidden { tr { th scope="col" { "state" } th scope="col" { "what" } th scope="col" { "where" } th scope="col" { "why" } th scope="col" { "for" } th scope="col" { "next" } } }
                tbody { @for need in &home.needs { (line(need, now)) } }
            }
        }
    }
}

fn body(home: &Home, trend: &Trend, now: Timestamp) -> Markup {
    let unheard = home.runtimes.iter().filter(|one| one.heard.is_none()).count() as u64;
    html! {
        h1.question data-part="needs" { "What needs you now"
            small.mute { (number(home.needs_total)) " of " (counted(home.applications, "application")) " and "
                (counted(home.runtimes.len() as u64, "runtime")) } }
        @if home.needs.is_empty() {
            (empty("Nothing needs you", &html! {
                @if unheard == 0 { p { "No application is degraded, missing, out of sync or unknown, and every runtime reports." } }
                @else { p { "No application that is reported is degraded, missing, out of sync or unknown; nothing was heard yet of "
                    a href="/runtimes" { (counted(unheard, "runtime")) } "." } }
            }))
        } @else {
            (needs(home, now))
            @if home.needs_total > home.needs.len() as u64 {
                p.foot {
                    a href="/applications?q=health%3Adegraded%2Cmissing" { "All that are degraded or missing" }
                    a href="/applications?q=sync%3Aoutofsync" { "All that are out of sync" }
                }
            }
        }
        div.columns {
            section { h2 { "Runtimes" } div.panel.list { (lines(&home.runtimes, now)) } }
            section { h2 { "Deployments, last 28 days " span.mute { "· failed in red" } } div.panel.chart data-key="days" { (chart(&home.days, &home.activity)) } }
        }
        div.columns {
            @if !home.clusters.is_empty() {
                section {
                    h2 { "Clusters " @if home.clusters_total > home.clusters.len() as u64 { a.mute href="/runtimes" { "· all " (number(home.clusters_total)) } } }
                    div.panel.list { (clusters::table(&home.clusters)) }
                }
            }
            @if !home.activity.movers.is_empty() {
                section { h2 { "Top movers " span.mute { "· deployments of 28 days, against the 28 before" } } div.panel.list { (movers(&home.activity)) } }
            }
        }
        section.ship data-part="ship" { h2 { "How we ship " span.mute { "· each number opens the deployments behind it" } } (figures(trend, None, "")) }
    }
}

fn line(need: &Need, now: Timestamp) -> Markup {
    let key = match &need.subject {
        Subject::Unhealthy(id, ..)
        | Subject::SyncFailed(id, _)
        | Subject::OutOfSync(id, _)
        | Subject::Unknown(id, _) => application_key(id),
        Subject::Silent(name) | Subject::Troubled(name) => format!("runtime/{name}"),
    };
    let (glyph, name, place, open, act) = match &need.subject {
        Subject::Unhealthy(id, place, state) => (
            health(*state),
            &id.name,
            place.clone(),
            format!("{}?tab=compare", application_path(id)),
            "Compare",
        ),
        Subject::SyncFailed(id, place) => (
            glyph("bad", "Sync failed", "✕"),
            &id.name,
            place.clone(),
            format!("{}?tab=errors", application_path(id)),
            "Errors",
        ),
        Subject::Unknown(id, place) => (
            glyph("still", "Unknown", "?"),
            &id.name,
            place.clone(),
            format!("{}?tab=errors", application_path(id)),
            "Errors",
        ),
        Subject::OutOfSync(id, place) => (
            glyph("warn", "Out of sync", "≠"),
            &id.name,
            place.clone(),
            format!("{}?tab=drift", application_path(id)),
            "Show drift",
        ),
        Subject::Silent(name) => {
            (glyph("still", "Silent", "◌"), name, "runtime".to_owned(), "/runtimes".to_owned(), "Check")
        }
        Subject::Troubled(name) => {
            (glyph("bad", "Error", "✕"), name, "runtime".to_owned(), "/runtimes".to_owned(), "What to do")
        }
    };
    html! {
        tr data-key={"need/" (key)} data-row {
            td.states { (glyph) }
            td.what { a href=(open) { (name) } }
            td.mute.narrow-away { (place) }
            td.why title=(need.reason.iter().map(Said::as_str).collect::<String>()) { @for said in &need.reason { @match said { Said::Text(text) => (plain(text)), Said::Code(code) => code { (code) } } } }
            td.number.mute { (relative(need.since, now)) }
            td.act.narrow-away { a.button href=(open) tabindex="-1" aria-hidden="true" { (act) } }
        }
    }
}

/// How often applications were deployed, and how that moved.
fn movers(activity: &Activity) -> Markup {
    html! {
        table data-rows {
            thead { tr {
                th scope="col" { "application" } th.narrow-away scope="col" { "runtime" }
                th.number scope="col" { "deployments" } th.number scope="col" { "failed" } th.number scope="col" { "against" }
            } }
            tbody {
                @for one in &activity.movers {
                    tr data-key={"mover/" (application_key(&one.application))} data-row data-application=(application_key(&one.application)) {
                        td.what { a href={(application_path(&one.application)) "?tab=timeline"} { (one.application.name) } }
                        td.mute.narrow-away { (one.application.runtime) }
                        td.number { (number(one.deployments)) }
                        td.number { @if one.failed > 0 { span.bad { (number(one.failed)) } } @else { span.mute { "0" } } }
                        td.number.mute { (by(one.deployments, activity.before.map(|_| one.before))) }
                    }
                }
            }
        }
    }
}

/// By how many there are more or fewer than before.
fn by(now: u64, before: Option<u64>) -> String {
    let Some(before) = before else { return "not kept".to_owned() };
    let difference = number(now.abs_diff(before));
    match now.cmp(&before) {
        Ordering::Greater => format!("▲ {difference}"),
        Ordering::Less => format!("▼ {difference}"),
        Ordering::Equal => "as before".to_owned(),
    }
}

/// How the deployments of 28 days stand to those of the 28 before.
fn against(now: u64, before: Option<u64>) -> String {
    let Some(before) = before else { return "the 28 days before are not kept".to_owned() };
    let percent = rounded(now.abs_diff(before) * 100, before);
    match (percent, now.cmp(&before)) {
        (None, _) => "none in the 28 days before".to_owned(),
        (_, Ordering::Equal) => "as many as in the 28 days before".to_owned(),
        (Some(percent), Ordering::Greater) => format!("▲ {percent} % against the 28 days before"),
        (Some(percent), Ordering::Less) => format!("▼ {percent} % against the 28 days before"),
    }
}

fn chart(days: &[Day], activity: &Activity) -> Markup {
    let most = days.iter().map(|day| day.succeeded + day.failed).max().unwrap_or(0).max(1);
    let succeeded: u64 = days.iter().map(|day| day.succeeded).sum();
    let failed: u64 = days.iter().map(|day| day.failed).sum();
    let tall = |count: u64| count * 84 / most;
    html! {
        svg.days viewBox="0 0 532 96" preserveAspectRatio="none" role="img"
            aria-label={(counted(succeeded + failed, "deployment")) " in 28 days, " (failed) " failed"} {
            @for (index, day) in days.iter().enumerate() {
                @let (all, bad) = (tall(day.succeeded + day.failed), tall(day.failed));
                g {
                    title { (day.from.strftime("%-d %b")) ": " (counted(day.succeeded + day.failed, "deployment")) ", " (day.failed) " failed" }
                    rect.all x=(index * 19 + 3) y=(90 - all) width="12" height=(all) rx="1.5" {}
                    rect.bad x=(index * 19 + 3) y=(90 - bad) width="12" height=(bad) rx="1.5" {}
                }
            }
        }
        p.mute { (counted(succeeded + failed, "deployment")) ", " (number(failed)) " failed · " (against(activity.deployments, activity.before)) }
    }
}
