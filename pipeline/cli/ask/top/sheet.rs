//! The lists of `top` as rows of text.

use std::cmp::Reverse;

use pipeline_core::Timestamp;
use pipeline_http::admin::wire::{Called, Counted, Event, Top};

use super::super::show::{between, span, word};

/// Which list is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum View {
    Hottest,
    Slowest,
    Calls,
    Errors,
    Latency,
}

impl View {
    /// In the order of the screen.
    pub(super) const ALL: [Self; 5] =
        [Self::Hottest, Self::Slowest, Self::Calls, Self::Errors, Self::Latency];

    /// Its name; the first letter is its key.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Hottest => "hottest",
            Self::Slowest => "slowest",
            Self::Calls => "calls",
            Self::Errors => "errors",
            Self::Latency => "latency",
        }
    }
}

/// By which figure a list is ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Calls by their number; the only order of other lists.
    First,
    /// Calls by their time.
    Second,
}

/// How much of a trace id is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TraceLength {
    /// Its first digits, enough to find it in the output of `explain`.
    Short,
    /// All 32 digits.
    Whole,
}

/// A list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sheet {
    pub(super) header: Vec<&'static str>,
    /// How many columns from the first one hold text, which is aligned to the left.
    pub(super) texts: usize,
    pub(super) rows: Vec<Row>,
}

/// A line of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) cells: Vec<String>,
    /// The application that it is about.
    pub(super) app: String,
}

impl Sheet {
    fn new(header: &[&'static str], texts: usize) -> Self {
        Self { header: header.to_vec(), texts, rows: Vec::new() }
    }

    fn row(&mut self, app: &str, cells: impl IntoIterator<Item = String>) {
        self.rows.push(Row { cells: cells.into_iter().collect(), app: app.to_owned() });
    }
}

/// The list of a view.
pub(super) fn of(view: View, order: Order, top: &Top, trace: TraceLength) -> Sheet {
    match view {
        View::Hottest => hottest(top),
        View::Slowest => slowest(top, trace),
        View::Calls if order == Order::First => calls(&top.most_calls, whose(top)),
        View::Calls => calls(&top.longest_fetch, whose(top)),
        View::Errors => failing(top, trace),
        View::Latency => latency(top, trace),
    }
}

/// Whether the lists are of applications or of other objects.
pub(super) fn counted(top: &Top) -> Counted {
    let seen = top.hottest.iter().map(|hot| hot.app.as_str());
    Counted::of(seen.chain(top.failing.iter().map(|failing| failing.app.as_str())))
}

/// The header of a column of names.
fn whose(top: &Top) -> &'static str {
    match counted(top) {
        Counted::Application => "APPLICATION",
        Counted::Object => "OBJECT",
    }
}

fn hottest(top: &Top) -> Sheet {
    let mut sheet =
        Sheet::new(&[whose(top), "SHARD", "EVENTS", "A MINUTE", "REPORTS", "FOLDED", "FILTERED"], 1);
    for hot in &top.hottest {
        let minutes = (top.window_seconds / 60.0).max(1.0 / 60.0);
        sheet.row(
            &hot.app,
            [
                hot.app.clone(),
                hot.shard.to_string(),
                bounded(hot.events, hot.events_up_to),
                format!("{:.1}", hot.events as f64 / minutes),
                hot.reports.to_string(),
                hot.coalesced.to_string(),
                hot.filtered.to_string(),
            ],
        );
    }
    sheet
}

fn slowest(top: &Top, trace: TraceLength) -> Sheet {
    let header = [whose(top), "TRACE OF THE SLOWEST", "SHARD", "SLOWEST", "MEAN", "EVENTS", "AGO"];
    let mut sheet = Sheet::new(&header, 2);
    if trace == TraceLength::Short {
        sheet.header[1] = "TRACE";
    }
    for slow in &top.slowest {
        let event = &slow.event;
        sheet.row(
            &event.app,
            [
                event.app.clone(),
                shown(&event.trace, trace),
                event.shard.to_string(),
                short(event.seconds),
                short(slow.mean_seconds),
                slow.acked.to_string(),
                ago(event.at, top),
            ],
        );
    }
    sheet
}

fn calls(list: &[Called], whose: &'static str) -> Sheet {
    let mut sheet = Sheet::new(&[whose, "SHARD", "CALLS", "TIME", "MEAN"], 1);
    for called in list {
        let more = called.seconds_up_to.is_some_and(|up_to| up_to > called.seconds);
        sheet.row(
            &called.app,
            [
                called.app.clone(),
                called.shard.to_string(),
                bounded(called.calls, called.calls_up_to.unwrap_or(called.calls)),
                format!("{}{}", short(called.seconds), if more { "+" } else { "" }),
                short(called.seconds / called.calls.max(1) as f64),
            ],
        );
    }
    sheet
}

fn failing(top: &Top, trace: TraceLength) -> Sheet {
    let header = [whose(top), "LAST REASON", "ITS TRACE", "SHARD", "FAILED", "PARKED", "AGO"];
    let mut sheet = Sheet::new(&header, 3);
    for failing in &top.failing {
        sheet.row(
            &failing.app,
            [
                failing.app.clone(),
                word(&failing.reason),
                shown(&failing.trace, trace),
                failing.shard.to_string(),
                bounded(failing.failures, failing.failures_up_to),
                failing.parked.to_string(),
                ago(failing.at, top),
            ],
        );
    }
    sheet
}

/// The failures by peer and reason.
pub(super) fn errors(top: &Top, trace: TraceLength) -> Sheet {
    let last = match counted(top) {
        Counted::Application => "LAST APPLICATION",
        Counted::Object => "LAST OBJECT",
    };
    let mut sheet = Sheet::new(&["PEER", "REASON", last, "ITS TRACE", "COUNT", "AGO"], 4);
    for errors in &top.errors {
        sheet.row(
            &errors.app,
            [
                errors.peer.clone(),
                word(&errors.reason),
                errors.app.clone(),
                errors.trace.as_ref().map_or_else(|| "-".to_owned(), |id| shown(id, trace)),
                errors.count.to_string(),
                ago(errors.at, top),
            ],
        );
    }
    sheet
}

fn latency(top: &Top, trace: TraceLength) -> Sheet {
    let mut sheet = Sheet::new(&["WITHIN", whose(top), "TRACE", "EVENTS", "TOOK", "AGO"], 3);
    let of = |within: String, count: String, event: &Event| {
        let took = short(event.seconds);
        [within, event.app.clone(), shown(&event.trace, trace), count, took, ago(event.at, top)]
    };
    let mut before = 0.0;
    for bucket in &top.latency {
        let within = match bucket.up_to_seconds {
            Some(up_to) => short(up_to),
            None => format!("over {}", short(before)),
        };
        before = bucket.up_to_seconds.unwrap_or(before);
        let mut first = [within, bucket.count.to_string()];
        if bucket.examples.is_empty() && bucket.count > 0 {
            let [within, count] = first.clone();
            let none = String::new;
            sheet.row("", [within, none(), none(), count, none(), none()]);
        }
        for event in &bucket.examples {
            // The bucket is named once.
            let [within, count] = std::mem::take(&mut first);
            sheet.row(&event.app, of(within, count, event));
        }
    }
    sheet
}

/// The shards, at most `most` of them: those with the oldest unreported change.
pub(super) fn shards(top: &Top, most: usize) -> Sheet {
    let header =
        ["SHARD", "QUEUED", "WAITING", "IN FLIGHT", "DIRTY", "PARKED", "OLDEST", "OBSERVED", "ACKED"];
    let mut sheet = Sheet::new(&header, 1);
    let mut shards: Vec<_> = top.shards.iter().collect();
    if shards.len() > most {
        shards.sort_by(|left, right| {
            let order = right.oldest_unreported_seconds.total_cmp(&left.oldest_unreported_seconds);
            order.then_with(|| Reverse(left.queued).cmp(&Reverse(right.queued)))
        });
        shards.truncate(most);
    }
    for shard in shards {
        let oldest = match shard.oldest_unreported_seconds {
            seconds if seconds > 0.0 => short(seconds),
            _ => "-".to_owned(),
        };
        let numbers =
            [shard.shard.into(), shard.queued, shard.waiting, shard.in_flight, shard.dirty, shard.parked];
        let cells = numbers.map(|number| number.to_string()).into_iter();
        sheet.row("", cells.chain([oldest, shard.observed.to_string(), shard.acked.to_string()]));
    }
    sheet
}

/// The quantile `part` of the seconds until events were acknowledged, as the upper bound of its bucket: infinite beyond the last bucket,
/// `None` without events.
pub(super) fn quantile(top: &Top, part: f64) -> Option<f64> {
    let all: u64 = top.latency.iter().map(|bucket| bucket.count).sum();
    let wanted = all as f64 * part;
    let mut so_far = 0;
    let bucket = top.latency.iter().find(|bucket| {
        so_far += bucket.count;
        so_far > 0 && so_far as f64 >= wanted
    })?;
    Some(bucket.up_to_seconds.unwrap_or(f64::INFINITY))
}

/// A lower bound, with a `+` where the number may be higher.
fn bounded(at_least: u64, at_most: u64) -> String {
    if at_most > at_least { format!("{at_least}+") } else { at_least.to_string() }
}

fn shown(trace: &str, how: TraceLength) -> String {
    match how {
        TraceLength::Whole => trace.to_owned(),
        // Tracing tools show the first digits too.
        TraceLength::Short => trace.chars().take(8).collect(),
    }
}

fn ago(at: Timestamp, top: &Top) -> String {
    short(between(at, top.at))
}

/// A span of time in at most six characters.
pub(super) fn short(seconds: f64) -> String {
    if seconds < 0.001 { "<1 ms".to_owned() } else { span(seconds) }
}
