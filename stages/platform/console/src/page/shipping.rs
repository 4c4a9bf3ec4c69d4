//! How we ship: four figures, what each of them means, and the deployments behind it.

use jiff::Timestamp;
use maud::{Markup, html};
use stages_platform_store::{BLAMED_FOR, Figures, MOST_SHIPPED, Shipped};

use super::applications::bar;
use super::link::{application_key, application_path, with};
use super::pieces::{counted, empty, number, outcome, rounded, short};
use super::shell::{Page, Section};
use crate::filter::Filter;
use crate::time::{absolute, lasting, moment};
use crate::view::deployment::Outcome;
use crate::view::shipping::{Shipping, Trend};

/// Of so many days figures are, unless an address says otherwise.
pub(crate) const DAYS: u32 = 28;
/// Rows of deployments behind a figure.
const ROWS: usize = 200;

/// One of the four.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Figure {
    Deployments,
    LeadTime,
    Failures,
    TimeToRestore,
}

impl Figure {
    pub(crate) const ALL: [Self; 4] =
        [Self::Deployments, Self::LeadTime, Self::Failures, Self::TimeToRestore];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Deployments => "deployments",
            Self::LeadTime => "lead-time",
            Self::Failures => "failures",
            Self::TimeToRestore => "time-to-restore",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Deployments => "Deployments a day",
            Self::LeadTime => "Lead time, median",
            Self::Failures => "Change failures",
            Self::TimeToRestore => "Time to restore, median",
        }
    }

    /// Whether a deployment stands behind it.
    fn has(self, one: &Shipped) -> bool {
        match self {
            Self::Deployments => one.succeeded,
            Self::LeadTime => one.lead_time().is_some(),
            Self::Failures | Self::TimeToRestore => one.failed_at.is_some(),
        }
    }

    fn meaning(self) -> String {
        let text = match self {
            Self::Deployments => "Operations that succeeded, divided by the days.",
            Self::LeadTime => {
                "From the date of the commit to the end of the first operation that brought this revision to this application and succeeded. One that brings the same revision again has none, nor has one whose commit’s date was not reported."
            }
            Self::Failures => {
                return format!(
                    "The share of deployments that failed: the operation ended in Failed or Error, or the application became degraded within {} of its end and before the next one began. What was degraded already did not become so by it.",
                    span(BLAMED_FOR)
                );
            }
            Self::TimeToRestore => {
                "From the failure until a later operation succeeded, where the operation had failed, or until the application was healthy again. What is not over yet is counted as such and not in the median."
            }
        };
        text.to_owned()
    }

    fn column(self) -> &'static str {
        match self {
            Self::Deployments => "took",
            Self::LeadTime => "lead time",
            Self::Failures => "how it failed",
            Self::TimeToRestore => "time to restore",
        }
    }
}

/// Where a figure is shown with what stands behind it.
pub(crate) fn path(days: u32, figure: Figure) -> String {
    format!("/shipping/{days}/{}", figure.word())
}

fn span(lasts: i64) -> String {
    lasting(Timestamp::UNIX_EPOCH, moment(lasts))
}

/// With one digit behind the point.
fn tenths(value: u64) -> String {
    format!("{}.{}", number(value / 10), value % 10)
}

/// Failed deployments in tenths of a percent.
fn rate(figures: &Figures) -> Option<u64> {
    rounded(figures.failed * 1_000, figures.ended)
}

fn value(figure: Figure, trend: &Trend) -> Option<String> {
    let now = &trend.now;
    match figure {
        Figure::Deployments => rounded(now.succeeded * 10, trend.days.max(1).into()).map(tenths),
        Figure::LeadTime => now.lead_time.map(span),
        Figure::Failures => rate(now).map(|rate| format!("{} %", tenths(rate))),
        Figure::TimeToRestore => now.time_to_restore.map(span),
    }
}

/// How it moved: whether it grew, by how much (empty: by nothing), and whether that is well. `None`: there is nothing to compare
/// with.
fn moved(figure: Figure, trend: &Trend) -> Option<(bool, String, bool)> {
    let (now, before) = (&trend.now, trend.before.as_ref()?);
    let lasts = |now: Option<i64>, before: Option<i64>| {
        let (now, before) = (now?, before?);
        let by = if now == before { String::new() } else { span((now - before).abs()) };
        Some((now > before, by, now <= before))
    };
    match figure {
        Figure::Deployments => {
            let change = rounded(now.succeeded.abs_diff(before.succeeded) * 100, before.succeeded)?;
            let grew = now.succeeded >= before.succeeded;
            let by = if now.succeeded == before.succeeded { String::new() } else { format!("{change} %") };
            Some((grew, by, grew))
        }
        Figure::LeadTime => lasts(now.lead_time, before.lead_time),
        Figure::Failures => {
            let (now, before) = (rate(now)?, rate(before)?);
            let by =
                if now == before { String::new() } else { format!("{} %", tenths(now.abs_diff(before))) };
            Some((now > before, by, now <= before))
        }
        Figure::TimeToRestore => lasts(now.time_to_restore, before.time_to_restore),
    }
}

/// The four, each leading to the deployments behind it.
pub(crate) fn figures(trend: &Trend, chosen: Option<Figure>, query: &str) -> Markup {
    html! {
        div.panel.figures {
            @for figure in Figure::ALL {
                a href=(with(&path(trend.days, figure), query)) aria-current=[(chosen == Some(figure)).then_some("true")] {
                    span.mute { (figure.title()) }
                    @match value(figure, trend) {
                        Some(value) => { b { (value) } },
                        None => { b.mute title="Nothing was reported that it could be made of" { "not known" } },
                    }
                    @match moved(figure, trend) {
                        Some((_, by, _)) if by.is_empty() => { span.mute { "as in the " (trend.days) " days before" } },
                        Some((grew, by, is_well)) => {
                            span class=(if is_well { "ok" } else { "bad" }) { (if grew { "▲ " } else { "▼ " }) (by) }
                            span.mute { " against the " (trend.days) " days before" }
                        },
                        None if trend.before.is_none() => { span.mute { "the " (trend.days) " days before are not kept" } },
                        None => { span.mute { "nothing in the " (trend.days) " days before" } },
                    }
                }
            }
        }
    }
}

pub(crate) fn page(filter: &Filter, shipping: &Shipping, chosen: Figure) -> Page {
    let trend = &shipping.trend;
    Page {
        title: "How we ship".to_owned(),
        section: Section::Home,
        bar: bar(&path(trend.days, chosen), filter, false),
        body: body(filter, shipping, chosen),
    }
}

fn body(filter: &Filter, shipping: &Shipping, chosen: Figure) -> Markup {
    let (trend, query) = (&shipping.trend, filter.query());
    let mut behind: Vec<&Shipped> = shipping.deployments.iter().filter(|one| chosen.has(one)).collect();
    match chosen {
        Figure::LeadTime => behind.sort_by_key(|one| std::cmp::Reverse(one.lead_time())),
        // What is not over stands first.
        Figure::TimeToRestore => {
            behind.sort_by_key(|one| (one.restored_at.is_some(), std::cmp::Reverse(one.time_to_restore())));
        }
        Figure::Deployments | Figure::Failures => {}
    }
    html! {
        h1.question { "How we ship"
            small.mute { (counted(trend.now.ended, "deployment")) " that ended in the last " (trend.days) " days"
                @if trend.now.open > 0 { ", " (counted(trend.now.open, "failure")) " not over" } } }
        (figures(trend, Some(chosen), &query))
        p { (chosen.meaning()) }
        nav.tabs aria-label="Time shown" {
            @for days in [7, 28, 90] {
                a href=(with(&path(days, chosen), &query)) aria-current=[(days == trend.days).then_some("page")] { (days) " days" }
            }
        }
        @if behind.is_empty() {
            (empty("No deployment stands behind this", &html! {
                p { "In these days nothing was reported that this figure is made of." }
                @if !filter.terms.is_empty() { p { a.button href=(path(trend.days, chosen)) { "Show all applications" } } }
            }))
        } @else {
            section.panel.list aria-label="Deployments behind it" {
                table data-rows {
                    thead { tr { th scope="col" { span.hidden { "outcome" } } th scope="col" { "ended" } th scope="col" { "application" } th.narrow-away scope="col" { "runtime" } th.narrow-away scope="col" { "revision" } th.number scope="col" { (chosen.column()) } } }
                    tbody { @for one in behind.iter().take(ROWS) { (row(one, chosen)) } }
                }
            }
            p.foot { "Behind it: " (number(behind.len() as u64)) " of " (counted(trend.now.ended, "deployment")) @if behind.len() > ROWS { "; the first " (ROWS) " are shown" } "." }
        }
        h2 { "What the figures mean" }
        (definitions())
    }
}

fn row(one: &Shipped, figure: Figure) -> Markup {
    let id = &one.application;
    let state = if one.succeeded { Outcome::Succeeded } else { Outcome::Failed };
    let end = one.restored_at.or(one.failed_at).unwrap_or(one.finished_at).max(one.finished_at);
    let said = match figure {
        Figure::Deployments => Some(span(one.finished_at - one.started_at)),
        Figure::LeadTime => one.lead_time().map(span),
        Figure::Failures if one.succeeded => {
            one.failed_at.map(|at| format!("degraded {} after", span(at - one.started_at)))
        }
        Figure::Failures => Some("its operation failed".to_owned()),
        Figure::TimeToRestore => one.time_to_restore().map(span),
    };
    html! {
        tr data-key={"shipped/" (application_key(id)) "/" (one.started_at)} data-row {
            td.states { (outcome(state)) }
            td.mute { (absolute(moment(one.finished_at))) }
            td.what { a href={(application_path(id)) "?tab=compare&from=" (one.started_at - 1_000) "&to=" (end)} { (id.name) } }
            td.mute.narrow-away { (id.runtime) }
            td.narrow-away { code.faint title=(one.revision) { (short(&one.revision)) } }
            td.number { @match said { Some(said) => { (said) }, None => { span.warn { "not over" } }, } }
        }
    }
}

fn definitions() -> Markup {
    html! {
        dl.panel.definitions {
            dt { "Deployment" }
            dd { "An operation of Argo CD on an application that ended, whoever or whatever began it. It counts on the day of its end." }
            @for figure in Figure::ALL { dt { (figure.title()) } dd { (figure.meaning()) } }
            dt { "Of what" }
            dd { "Of the applications that you see and that are there today, of at most " (number(MOST_SHIPPED.into())) " deployments, the newest. Medians, so that one bad day does not hide the others." }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_said_as_people_say_them_and_compared_with_the_time_before() {
        let figures = |succeeded, failed, lasts: Option<i64>| Figures {
            ended: 1_000,
            succeeded,
            failed,
            lead_time: lasts,
            time_to_restore: lasts,
            open: 0,
        };
        let minute = 60_000;
        let trend = Trend {
            days: 28,
            now: figures(1_720, 41, Some(47 * minute)),
            before: Some(figures(1_536, 35, Some(56 * minute))),
        };
        let said: Vec<_> = Figure::ALL.iter().map(|figure| value(*figure, &trend).unwrap()).collect();
        assert_eq!(said, ["61.4", "47 min", "4.1 %", "47 min"]);
        // 11 of 28 days are 0.393 a day.
        let few = Trend { now: Figures { ended: 12, ..figures(11, 2, None) }, ..trend };
        assert_eq!(value(Figure::Deployments, &few).as_deref(), Some("0.4"));
        assert_eq!(value(Figure::Failures, &few).as_deref(), Some("16.7 %"));
        let moved = |figure| moved(figure, &trend).unwrap();
        assert_eq!(moved(Figure::Deployments), (true, "12 %".to_owned(), true));
        assert_eq!(moved(Figure::LeadTime), (false, "9 min".to_owned(), true));
        assert_eq!(moved(Figure::Failures), (true, "0.6 %".to_owned(), false));
        assert_eq!(
            super::moved(Figure::TimeToRestore, &Trend { before: Some(trend.now), ..trend }).unwrap().1,
            ""
        );
        let nothing = Trend { days: 28, now: Figures::default(), before: Some(Figures::default()) };
        assert_eq!(value(Figure::Deployments, &nothing).as_deref(), Some("0.0"));
        for figure in [Figure::LeadTime, Figure::Failures, Figure::TimeToRestore] {
            assert_eq!(value(figure, &nothing), None);
            assert_eq!(super::moved(figure, &nothing), None);
        }
    }
}
