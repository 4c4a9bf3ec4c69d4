//! What kept the reporter busy in the last minutes, as `top` shows it.

use std::cmp::Reverse;

use pipeline_core::Timestamp;
use serde::{Deserialize, Serialize};

use super::rounded;
use pipeline_engine::run::Status;
use pipeline_observe::top::{self, AckedEvent, CallCounts, Ranked, Ranking};

/// The answer to `GET /v1/top?limit=20`. Each list begins with the first.
///
/// Sums of applications are found in little room: a sum is told as what is certain, and `*_up_to` is what it may be. While
/// no more than some hundred applications of a shard are busy, both are the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Top {
    /// When it was answered.
    pub at: Timestamp,
    /// How far back the figures go, in seconds.
    pub window_seconds: f64,
    /// How long ago the reporter began, in seconds.
    pub uptime_seconds: f64,
    /// The sink's circuit: `closed`, `open` or `probing`.
    pub circuit: String,
    /// Applications by events that were seen.
    pub hottest: Vec<Hot>,
    /// Applications by their slowest event that was acknowledged.
    pub slowest: Vec<Slow>,
    /// Applications by calls of Argo CD.
    pub most_calls: Vec<Called>,
    /// Applications by the time that these took.
    pub longest_fetch: Vec<Called>,
    /// Applications by tries that failed.
    pub failing: Vec<Failing>,
    /// What failed, by peer and reason: the most frequent first.
    pub errors: Vec<Errors>,
    /// The latency histogram, from the watch to the acknowledgement of all reports, with examples of each bucket.
    pub latency: Vec<Bucket>,
    /// The shards of this process.
    pub shards: Vec<ShardFigures>,
}

/// An application that changes often.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hot {
    /// The key of the application.
    pub app: String,
    /// Its shard.
    pub shard: u32,
    /// How many events were seen at least.
    pub events: u64,
    /// How many events were seen at most.
    pub events_up_to: u64,
    /// Reports that were acknowledged.
    pub reports: u64,
    /// Events that were folded into a newer one.
    pub coalesced: u64,
    /// Events that brought no report.
    pub filtered: u64,
}

/// An application that is slow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Slow {
    /// Its slowest event; its time is from the watch to the acknowledgement of all reports.
    #[serde(flatten)]
    pub event: Event,
    /// Events of it that were acknowledged since it is among the slowest.
    pub acked: u64,
    /// How long these took on average.
    pub mean_seconds: f64,
}

/// One event of which every report was acknowledged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The key of the application.
    pub app: String,
    /// The shard that it is in.
    pub shard: u32,
    /// The version of the application that it tells of.
    pub version: u64,
    /// W3C trace id of its life, as `explain` has it: 32 hexadecimal digits.
    pub trace: String,
    /// When it was acknowledged.
    pub at: Timestamp,
    /// How many seconds after it was seen.
    pub seconds: f64,
}

/// An application that needs Argo CD.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Called {
    /// The key of the application.
    pub app: String,
    /// Its shard.
    pub shard: u32,
    /// Calls that were sent.
    pub calls: u64,
    /// How many calls there were at most; absent where the list is not ordered by them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls_up_to: Option<u64>,
    /// How long they took together, in seconds.
    pub seconds: f64,
    /// How long they took at most; absent where the list is not ordered by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_up_to: Option<f64>,
}

/// An application of which tries fail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failing {
    /// The key of the application.
    pub app: String,
    /// Its shard.
    pub shard: u32,
    /// How many attempts and reads failed at least.
    pub failures: u64,
    /// How many failed at most.
    pub failures_up_to: u64,
    /// How many of these were refused for good.
    pub parked: u64,
    /// Why the last one failed.
    pub reason: String,
    /// When that was.
    pub at: Timestamp,
    /// The version that it was of; 0 when none was known.
    pub version: u64,
    /// Its trace id.
    pub trace: String,
}

/// What failed of one peer for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errors {
    /// `kubernetes`, `argocd` or `platform`.
    pub peer: String,
    /// Why they failed.
    pub reason: String,
    /// How many calls and reports failed.
    pub count: u64,
    /// The application that met it last.
    pub app: String,
    /// The trace id of the event that met it last; `None` when an application was read again.
    pub trace: Option<String>,
    /// When it was met last.
    pub at: Timestamp,
}

/// One bucket of the latency histogram.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bucket {
    /// Its events took at most so long, and longer than those of the bucket before; `None` has no bound.
    pub up_to_seconds: Option<f64>,
    /// Events of the last minutes.
    pub count: u64,
    /// Its last events since the reporter began, the newest first.
    pub examples: Vec<Event>,
}

/// One shard as it is now. The figures are up to a tenth of a second old.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShardFigures {
    /// Its number.
    pub shard: u32,
    /// Events that may start as soon as there is a place.
    pub queued: u64,
    /// Events that wait for their time.
    pub waiting: u64,
    /// Events whose attempt is running.
    pub in_flight: u64,
    /// Applications that are to be read again.
    pub dirty: u64,
    /// Applications that were refused for good.
    pub parked: u64,
    /// How long the oldest change has been unreported.
    pub oldest_unreported_seconds: f64,
    /// Events that were seen since the reporter began.
    pub observed: u64,
    /// Events of which all reports were acknowledged since then.
    pub acked: u64,
}

impl Top {
    /// What the shards tell at `at`, as one: the first `limit` of each list.
    #[must_use]
    pub fn new(status: &Status, rankings: &[(u32, Ranking)], limit: usize, at: Timestamp) -> Self {
        let window = rankings.iter().map(|(_, ranking)| ranking.window).max().unwrap_or_default();
        let hottest = merged(rankings, limit, |ranking| &ranking.hottest, hot);
        let most_calls = merged(
            rankings,
            limit,
            |ranking| &ranking.most_calls,
            |shard, app| Called { calls: app.at_least, calls_up_to: Some(app.at_most), ..called(shard, app) },
        );
        let longest_fetch = merged(
            rankings,
            limit,
            |ranking| &ranking.longest_fetch,
            |shard, app| Called {
                seconds: seconds(app.at_least),
                seconds_up_to: Some(seconds(app.at_most)),
                ..called(shard, app)
            },
        );
        Self {
            at: rounded(at),
            window_seconds: window.as_secs_f64(),
            uptime_seconds: status.uptime.as_secs_f64(),
            circuit: status.circuit.as_str().to_owned(),
            hottest,
            slowest: slowest(rankings, limit),
            most_calls,
            longest_fetch,
            failing: merged(rankings, limit, |ranking| &ranking.failing, failing),
            errors: errors(rankings),
            latency: latency(rankings),
            shards: status.shards.iter().map(figures).collect(),
        }
    }
}

impl Event {
    fn new(shard: u32, event: &AckedEvent) -> Self {
        Self {
            app: event.key.to_string(),
            shard,
            version: event.version.number(),
            trace: format!("{:032x}", event.trace),
            at: rounded(event.at),
            seconds: event.took.as_secs_f64(),
        }
    }
}

/// One list of all shards, which have no application in common.
fn merged<D, T>(
    rankings: &[(u32, Ranking)],
    limit: usize,
    list: impl Fn(&Ranking) -> &Vec<Ranked<D>>,
    entry: impl Fn(u32, &Ranked<D>) -> T,
) -> Vec<T> {
    let mut all = Vec::new();
    for (shard, ranking) in rankings {
        all.extend(list(ranking).iter().map(|app| (*shard, app)));
    }
    all.sort_by_key(|(_, app)| Reverse((app.at_least, app.at_most)));
    all.into_iter().take(limit).map(|(shard, app)| entry(shard, app)).collect()
}

fn hot(shard: u32, app: &Ranked<top::EventCounts>) -> Hot {
    let top::EventCounts { reports, coalesced, filtered } = app.detail;
    Hot {
        app: app.key.to_string(),
        shard,
        events: app.at_least,
        events_up_to: app.at_most,
        reports,
        coalesced,
        filtered,
    }
}

fn called(shard: u32, app: &Ranked<CallCounts>) -> Called {
    let CallCounts { calls, took } = app.detail;
    let seconds = took.as_secs_f64();
    Called { app: app.key.to_string(), shard, calls, calls_up_to: None, seconds, seconds_up_to: None }
}

fn failing(shard: u32, app: &Ranked<top::FailureCounts>) -> Failing {
    let last = app.detail.last;
    Failing {
        app: app.key.to_string(),
        shard,
        failures: app.at_least,
        failures_up_to: app.at_most,
        parked: app.detail.parked,
        reason: last.map_or("", |last| last.reason.as_str()).to_owned(),
        at: last.map_or(Timestamp::UNIX_EPOCH, |last| rounded(last.at)),
        version: last.map_or(0, |last| last.version.number()),
        trace: format!("{:032x}", last.map_or(0, |last| last.trace)),
    }
}

fn slowest(rankings: &[(u32, Ranking)], limit: usize) -> Vec<Slow> {
    let mut all: Vec<(u32, &top::SlowApplication)> = rankings
        .iter()
        .flat_map(|(shard, ranking)| ranking.slowest.iter().map(|slow| (*shard, slow)))
        .collect();
    all.sort_by_key(|(_, slow)| Reverse(slow.worst.took));
    let slow = |(shard, slow): (u32, &top::SlowApplication)| Slow {
        event: Event::new(shard, &slow.worst),
        acked: slow.acked,
        mean_seconds: slow.total.as_secs_f64() / slow.acked.max(1) as f64,
    };
    all.into_iter().take(limit).map(slow).collect()
}

fn errors(rankings: &[(u32, Ranking)]) -> Vec<Errors> {
    let mut all: Vec<top::PeerErrors> = Vec::new();
    for errors in rankings.iter().flat_map(|(_, ranking)| &ranking.errors) {
        match all.iter_mut().find(|known| (known.peer, known.reason) == (errors.peer, errors.reason)) {
            Some(known) => {
                let count = known.count + errors.count;
                if errors.at > known.at {
                    known.clone_from(errors);
                }
                known.count = count;
            }
            None => all.push(errors.clone()),
        }
    }
    all.sort_by_key(|errors| (Reverse(errors.count), errors.peer, errors.reason));
    all.iter()
        .map(|errors| Errors {
            peer: errors.peer.as_str().to_owned(),
            reason: errors.reason.as_str().to_owned(),
            count: errors.count,
            app: errors.key.to_string(),
            trace: (errors.trace != 0).then(|| format!("{:032x}", errors.trace)),
            at: rounded(errors.at),
        })
        .collect()
}

/// How many examples of one bucket are told.
const EXAMPLES: usize = 4;

fn latency(rankings: &[(u32, Ranking)]) -> Vec<Bucket> {
    let Some((_, first)) = rankings.first() else { return Vec::new() };
    let buckets = first.latency.iter().enumerate();
    buckets
        .map(|(at, bucket)| {
            let same =
                || rankings.iter().filter_map(|(shard, ranking)| Some((*shard, ranking.latency.get(at)?)));
            let mut examples: Vec<(u32, &AckedEvent)> = same()
                .flat_map(|(shard, bucket)| bucket.examples.iter().map(move |event| (shard, event)))
                .collect();
            examples.sort_by_key(|(_, event)| Reverse(event.at));
            Bucket {
                up_to_seconds: bucket.up_to,
                count: same().map(|(_, bucket)| bucket.count).sum(),
                examples: examples
                    .into_iter()
                    .take(EXAMPLES)
                    .map(|(shard, event)| Event::new(shard, event))
                    .collect(),
            }
        })
        .collect()
}

fn figures((shard, counts): &(u32, pipeline_core::LaneCounts)) -> ShardFigures {
    ShardFigures {
        shard: *shard,
        queued: counts.queued,
        waiting: counts.waiting,
        in_flight: counts.in_flight,
        dirty: counts.dirty,
        parked: counts.parked_keys,
        oldest_unreported_seconds: counts.oldest.as_secs_f64(),
        observed: counts.observed,
        acked: counts.acked,
    }
}

/// Microseconds as seconds.
fn seconds(microseconds: u64) -> f64 {
    microseconds as f64 / 1e6
}
