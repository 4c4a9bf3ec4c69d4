//! Runtimes, and how to add one.

use jiff::Timestamp;
use maud::{Markup, html};
use stages_platform_store::{HeardRole, RefusedReports, runtime_id};

use super::link::with;
use super::pieces::{empty, number, share};
use super::shell::{Page, Section, find_bar};
use super::{refused, runtime_problems};
use crate::time::{ago, in_sentence, lasting, moment, relative};
use crate::view::cluster::ClusterRow;
use crate::view::runtime::RuntimeRow;

/// The role that does what people ask for.
const APP_PROXY: &str = "app-proxy";

/// `refused_of_nobody` is what was not taken of which nobody knows whose it was: admins alone are told.
pub(crate) fn page(
    runtimes: &[RuntimeRow],
    clusters: &[ClusterRow],
    refused_of_nobody: Option<&[RefusedReports]>,
    now: Timestamp,
) -> Page {
    let body = if runtimes.is_empty() {
        none(refused_of_nobody.is_some())
    } else {
        all(runtimes, clusters, refused_of_nobody, now)
    };
    Page { title: "Runtimes".to_owned(), section: Section::Runtimes, bar: find_bar(), body }
}

/// What to do where nothing reports yet, or nothing that whoever looks may see.
pub(crate) fn none(is_admin: bool) -> Markup {
    if !is_admin {
        return not_seen("You see no runtime yet");
    }
    empty(
        "No runtime reports here yet",
        &html! {
            p { "A runtime stands beside Argo CD and reports what happens to its applications. Adding one gives the command that installs it." }
            p { a.button.primary href="/runtimes/add" { "Add a runtime" } }
        },
    )
}

/// What to say to somebody who is no admin and sees nothing.
pub(super) fn not_seen(title: &str) -> Markup {
    empty(title, &html! { p { "No rule of your teams shows you one that reports: an admin can add one." } })
}

/// What to say to somebody who is no admin, sees runtimes, and no application of theirs: there may be none.
pub(super) fn no_application() -> Markup {
    empty(
        "You see no application yet",
        &html! { p { "None is deployed, or no rule of your teams shows it: an admin can add one." } },
    )
}

fn of(runtime: &RuntimeRow) -> String {
    with(
        "/applications",
        &format!(
            "q=runtime%3A{}",
            percent_encoding::utf8_percent_encode(&runtime.name, super::link::SEGMENT)
        ),
    )
}

/// As they stand on the first page: name, version, health, how many, how fresh.
pub(crate) fn lines(runtimes: &[RuntimeRow], now: Timestamp) -> Markup {
    html! {
        table.runtimes {
            thead.hidden { tr { th scope="col" { "name" } th scope="col" { "version" } th scope="col" { "health" } th scope="col" { "applications" } th scope="col" { "heard of" } } }
            tbody {
                @for one in runtimes {
                    tr data-key={"runtime/" (one.name)} {
                        td { a href=(of(one)) { (one.name) } }
                        td { code.mute { (one.version.as_deref().unwrap_or("")) } }
                        td.share { (share(one.healthy, one.applications, one.silent)) }
                        td.number { (number(one.applications)) }
                        td.number { (freshness(one, now)) }
                    }
                }
            }
        }
    }
}

/// Each role of a runtime that says that it lives, with its version.
fn roles(runtime: &RuntimeRow, now: Timestamp) -> String {
    let one = |HeardRole { role, version, at }: &HeardRole| {
        let told = [&**role, version].join(" ");
        format!("{}, heard of {}", told.trim_end(), in_sentence(&ago(moment(*at), now)))
    };
    runtime.roles.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// Whether it was not heard of yet, or nobody can act on its cluster from here.
fn is_more_left(runtime: &RuntimeRow) -> bool {
    let is_ours = !runtime.roles.is_empty();
    runtime.heard.is_none() || (is_ours && runtime.roles.iter().all(|role| role.role != APP_PROXY))
}

/// How long the last report was on its way, of so many milliseconds.
fn on_the_way(lag: u64) -> String {
    let ended = i64::try_from(lag).ok().and_then(|lag| Timestamp::from_millisecond(lag).ok());
    match ended {
        Some(ended) if lag >= 1_000 => lasting(Timestamp::UNIX_EPOCH, ended),
        _ => format!("{lag} ms"),
    }
}

fn freshness(runtime: &RuntimeRow, now: Timestamp) -> Markup {
    html! {
        @match (runtime.heard, runtime.silent) {
            (None, _) => { span.mute { "waiting to hear of it" } },
            (Some(at), true) => { span.warn { "silent " (relative(at, now)) } },
            (Some(at), false) => { span.mute { (relative(at, now)) } },
        }
    }
}

fn all(
    runtimes: &[RuntimeRow],
    clusters: &[ClusterRow],
    refused_of_nobody: Option<&[RefusedReports]>,
    now: Timestamp,
) -> Markup {
    html! {
        div.title { h1 { "Runtimes" } span.grow {} @if refused_of_nobody.is_some() { a.button href="/runtimes/add" { "Add a runtime" } } }
        section.panel.list aria-label="Runtimes" {
            table data-rows {
                thead { tr {
                    th scope="col" { "runtime" } th.narrow-away scope="col" { "version" } th.narrow-away scope="col" { "health" }
                    th.number scope="col" { "applications" } th.number scope="col" { "heard of" }
                    th.number.narrow-away scope="col" { "last report" }
                    th.number.narrow-away scope="col" { "on the way" } th.number.narrow-away scope="col" { "refused" }
                } }
                tbody {
                    @for one in runtimes {
                        tr data-key={"runtime/" (one.name)} data-row {
                            td.what { a href=(of(one)) { (one.name) } @if runtime_id(&one.name) != one.name { " " small.mute { "id " code { (runtime_id(&one.name)) } } } }
                            td.narrow-away title=(roles(one, now)) { code { (one.version.as_deref().unwrap_or("not said yet")) }
                                small.mute { " " (one.roles.iter().map(|one| &*one.role).collect::<Vec<_>>().join(", ")) } }
                            td.share.narrow-away { (share(one.healthy, one.applications, one.silent)) }
                            td.number { (number(one.healthy)) " of " (number(one.applications)) span.narrow-away { " healthy" } }
                            td.number { (freshness(one, now))
                                @if is_more_left(one) && refused_of_nobody.is_some() { " " a href={"/runtimes/add/" (runtime_id(&one.name))} { "what is left" } } }
                            td.number.mute.narrow-away { @if let Some(at) = one.last_report { (relative(at, now)) } @else { "none yet" } }
                            td.number.mute.narrow-away { @if let Some(lag) = one.lag { (on_the_way(lag)) } }
                            td.number.narrow-away { (refused::count(&one.refused, now)) }
                        }
                        (runtime_problems::row(one, now))
                    }
                }
            }
        }
        @let of_nobody = refused::lines(refused_of_nobody.unwrap_or_default(), now);
        @if !of_nobody.0.is_empty() {
            section.below {
                h2 { "Of nobody who is known " span.mute { "· requests whose token says of no runtime that they are its" } }
                div.panel { ul.problems { (of_nobody) } }
            }
        }
        @if runtimes.iter().any(|one| one.silent) {
            p.foot { span { "A silent runtime says why on its own side: " code { "gitops-runtime status" } ", and " code { "/healthz?full=true" } "." } }
        }
        @if !clusters.is_empty() {
            section.below {
                h2 { "Clusters " span.mute { "· that applications are deployed to, as each runtime names them" } }
                div.panel.list { (super::clusters::table(clusters)) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::on_the_way;

    #[test]
    fn how_long_a_report_was_on_its_way_is_told_in_what_a_person_counts_in() {
        for (lag, told) in [(420, "420 ms"), (2_900, "2 s"), (51_564_474, "14 h 19 min")] {
            assert_eq!(on_the_way(lag), told);
        }
    }
}
