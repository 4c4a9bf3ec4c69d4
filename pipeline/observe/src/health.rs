//! Health as progress: not that the process is alive, but that what it is for goes on.
//!
//! takes: what the source, the shards, the ledger and the sink tell, each with the time - gives: one finding a
//! check, each ok, degraded or failing, and since when - fails: never
//!
//! *Failing* (`/healthz` answers 503) is what a restart may cure: a watch that neither moves nor tries, a shard
//! that ended, a lane in which no attempt ends. *Degraded* (200, with a text) is what a restart would only make
//! worse: the API server or the receiver is away, a right is missing, a token is refused, the ledger's disk is full, a change waits long while others get through. Reads no clock.

mod refusal;
mod report;
mod shares;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pipeline_core::{CircuitState, LaneCounts, Reason, SourceNote};
use serde::Serialize;

use pipeline_ledger::LedgerStatus;

pub use refusal::Refusal;
pub use report::{Finding, HealthReport};
use shares::{Bus, Shares};
pub use shares::{ClaimRefusal, Link};

/// Without an event, a bookmark, a page or a try that failed for so long, the watch fails. Bookmarks come about once a minute,
/// tries after at most three.
const WATCH_SILENT: Duration = Duration::from_secs(300);
/// Beyond this age of the oldest unreported change, a lane is degraded.
const OLDEST_UNREPORTED: Duration = Duration::from_secs(600);
/// Where shards come and go, a shard is claimed and somebody watches within this time; when nobody has watched for a third of
/// it, that shows.
const HANDOVER: Duration = Duration::from_secs(60);

/// How long may pass before something shows, where that is not the same for all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthLimits {
    /// While something may run and no attempt ends, a lane fails. Longer than the longest attempt.
    pub lane_stuck: Duration,
    /// Argo CD's settings must be known by then; `None` when nothing reads them.
    pub settings: Option<Duration>,
}

impl Default for HealthLimits {
    fn default() -> Self {
        Self { lane_stuck: Duration::from_secs(300), settings: None }
    }
}

/// What is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Check {
    /// The watch has listed, and moves.
    Source,
    /// Every owned shard runs, and its attempts end.
    Lanes,
    /// The sink takes reports.
    Sink,
    /// The ledger is written.
    Ledger,
    /// Argo CD's settings are known.
    Settings,
    /// Argo CD takes the token.
    Argocd,
    /// The bus answers, where there is one.
    Bus,
}

impl Check {
    /// All, in the order in which they are shown.
    pub const ALL: [Self; 7] =
        [Self::Source, Self::Lanes, Self::Sink, Self::Ledger, Self::Settings, Self::Argocd, Self::Bus];

    /// The name in `/healthz` and the metric label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// How a check stands; the worse is the greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum State {
    /// As it should be.
    Ok = 0,
    /// Someone should look; a restart does not help.
    Degraded = 1,
    /// A restart may help.
    Failing = 2,
}

impl State {
    /// The name in `/healthz`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The text of checks that cannot be made before the bus is reached.
const WAITS: &str = "waits for the bus";

/// Takes what the parts of the process tell; cloning shares.
#[derive(Clone)]
pub struct Health {
    limits: Arc<HealthLimits>,
    inputs: Arc<Mutex<HealthInputs>>,
}

/// What the parts of the process have told so far.
struct HealthInputs {
    started: Instant,
    listed: bool,
    /// What is known of other replicas; `None` where the shards are not shared out.
    shares: Option<Shares>,
    /// The shards whose part of the ledger is being claimed, and since when.
    claims: BTreeMap<u32, Instant>,
    /// The shards whose part of the ledger may not be claimed, and why.
    refused: BTreeMap<u32, ClaimRefusal>,
    bus: Option<Bus>,
    moved: Instant,
    /// Why the watch is broken, if it is.
    broken: Option<BrokenWatch>,
    lanes: Vec<Lane>,
    /// Why the circuit of the sink is not closed, if it is not, and since when that is so.
    circuit: (Option<&'static str>, Instant),
    ledger: Option<LedgerStatus>,
    settings: bool,
    /// What Argo CD refuses, and since when it refuses anything.
    argocd_refuses: Option<(Refusal, Instant)>,
    /// How each check stood in the last report, and since when.
    seen: [(State, Instant); Check::ALL.len()],
}

/// A watch that broke and is tried again.
struct BrokenWatch {
    since: Instant,
    reason: &'static str,
    /// When a try last failed.
    tried: Instant,
}

/// What is known of a shard's lane.
struct Lane {
    shard: u32,
    running: bool,
    counts: LaneCounts,
    taken: Instant,
    /// When an attempt or a read last ended, or there was nothing to do.
    progressed: Instant,
}

impl Health {
    /// The health of a process that owns the shards `owned` from the start.
    #[must_use]
    pub fn new(limits: HealthLimits, owned: impl IntoIterator<Item = u32>, now: Instant) -> Self {
        let counts = LaneCounts::default();
        let lane = |shard| Lane { shard, running: false, counts, taken: now, progressed: now };
        let inputs = HealthInputs {
            started: now,
            listed: false,
            shares: None,
            claims: BTreeMap::new(),
            refused: BTreeMap::new(),
            bus: None,
            moved: now,
            broken: None,
            lanes: owned.into_iter().map(lane).collect(),
            circuit: (None, now),
            ledger: None,
            settings: false,
            argocd_refuses: None,
            // How each check stood in the last report, and since when.
            seen: [(State::Ok, now); Check::ALL.len()],
        };
        Self { limits: Arc::new(limits), inputs: Arc::new(Mutex::new(inputs)) }
    }

    /// The source told how its watch stands.
    pub fn note(&self, note: &SourceNote, now: Instant) {
        let mut inputs = self.inputs();
        match note {
            SourceNote::Listing
            | SourceNote::Malformed
            | SourceNote::Ended
            | SourceNote::Kind { .. }
            | SourceNote::Gap { .. } => {}
            SourceNote::Broken(reason) => {
                let since = inputs.broken.as_ref().map_or(now, |broken| broken.since);
                inputs.broken = Some(BrokenWatch { since, reason: reason.as_str(), tried: now });
            }
            SourceNote::Page { .. } | SourceNote::Alive | SourceNote::Listed { .. } => {
                inputs.moved = now;
                inputs.broken = None;
                inputs.listed |= matches!(note, SourceNote::Listed { .. });
            }
        }
    }

    /// A shard began or ended.
    pub fn shard(&self, shard: u32, running: bool, now: Instant) {
        let mut inputs = self.inputs();
        if inputs.shares.is_some() {
            inputs.lanes.retain(|lane| lane.shard != shard);
            if running {
                let counts = LaneCounts::default();
                inputs.lanes.push(Lane { shard, running, counts, taken: now, progressed: now });
            }
        } else if let Some(lane) = inputs.lane(shard) {
            lane.running = running;
            lane.progressed = now;
        }
    }

    /// A shard's newest snapshot.
    pub fn lane(&self, shard: u32, counts: &LaneCounts, now: Instant) {
        if let Some(lane) = self.inputs().lane(shard) {
            // A lane that had nothing to do has its full time from when work came.
            if ended(counts) != ended(&lane.counts) || !may_run(&lane.counts) {
                lane.progressed = now;
            }
            lane.counts = *counts;
            lane.taken = now;
        }
    }

    /// The sink's circuit.
    pub fn circuit(&self, circuit: CircuitState, now: Instant) {
        let mut inputs = self.inputs();
        let why = circuit.reason().map(Reason::as_str);
        // A probe that fails opens the circuit again: it has been open all the while.
        let since = if why.is_some() == inputs.circuit.0.is_some() { inputs.circuit.1 } else { now };
        inputs.circuit = (why, since);
    }

    /// The ledger is open, and this is its newest status.
    pub fn ledger(&self, status: &LedgerStatus) {
        self.inputs().ledger = Some(status.clone());
    }

    /// Argo CD's settings are known.
    pub fn settings_known(&self) {
        self.inputs().settings = true;
    }

    /// What Argo CD refuses with 401, if anything.
    pub fn argocd_refuses(&self, refused: Option<Refusal>, now: Instant) {
        let mut inputs = self.inputs();
        let since = inputs.argocd_refuses.map_or(now, |(_, since)| since);
        inputs.argocd_refuses = refused.map(|refused| (refused, since));
    }

    /// Whether the first list is complete.
    #[must_use]
    pub fn listed(&self) -> bool {
        self.inputs().listed
    }

    /// All checks.
    #[must_use]
    pub fn report(&self, now: Instant) -> HealthReport {
        let mut inputs = self.inputs();
        let checks = Check::ALL.map(|check| {
            let (state, text) = match check {
                Check::Source => inputs.source(now),
                Check::Lanes => inputs.lanes(&self.limits, now),
                Check::Sink => inputs.sink(now),
                Check::Ledger => inputs.ledger(),
                Check::Settings => inputs.settings(&self.limits, now),
                Check::Argocd => inputs.argocd(now),
                Check::Bus => inputs.bus(now),
            };
            let seen = &mut inputs.seen[check as usize];
            if seen.0 != state {
                *seen = (state, now);
            }
            Finding { route: None, check, state, lasting: now.saturating_duration_since(seen.1), text }
        });
        let missing: Vec<&'static str> = [
            (!inputs.is_joining(), "the bus is not ready yet"),
            (inputs.is_joining() || !inputs.is_away(), "the bus does not answer"),
            (inputs.listed || !inputs.watches(), "the first list is not complete"),
            (
                inputs.shares.as_ref().is_none_or(|shares| shares.knows),
                "it is not known yet who owns which shard",
            ),
            (inputs.lanes.iter().all(|lane| lane.running), "not every shard runs"),
            (inputs.ledger.is_some(), "the ledger is not open"),
        ]
        .into_iter()
        .filter_map(|(there, missing)| (!there).then_some(missing))
        .collect();
        let state = checks.iter().map(|finding| finding.state).max().unwrap_or(State::Ok);
        HealthReport { state, ready: missing.is_empty(), missing, checks: checks.into() }
    }

    fn inputs(&self) -> MutexGuard<'_, HealthInputs> {
        self.inputs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Health").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl HealthInputs {
    fn lane(&mut self, shard: u32) -> Option<&mut Lane> {
        self.lanes.iter_mut().find(|lane| lane.shard == shard)
    }

    fn watches(&self) -> bool {
        self.shares.as_ref().is_none_or(|shares| shares.watches)
    }

    fn source(&self, now: Instant) -> (State, String) {
        if self.is_joining() {
            return (State::Ok, WAITS.to_owned());
        }
        if let Some(shares) = self.shares.as_ref().filter(|shares| !shares.watches) {
            return shares.watched(self.is_away(), now);
        }
        let doing = if self.listed { "watching" } else { "listing" };
        // A server that is away or a right that is missing is no fault of a watch that goes on trying.
        let sign = self.broken.as_ref().map_or(self.moved, |broken| broken.tried.max(self.moved));
        if now.saturating_duration_since(sign) > WATCH_SILENT {
            let silent = now.saturating_duration_since(self.moved).as_secs();
            return (State::Failing, format!("{doing}: nothing has moved for {silent} s"));
        }
        match &self.broken {
            Some(BrokenWatch { since, reason, .. }) => {
                let lasting = now.saturating_duration_since(*since).as_secs();
                (State::Degraded, format!("{doing}: broken for {lasting} s ({reason}), begun again"))
            }
            None => (State::Ok, doing.to_owned()),
        }
    }

    fn lanes(&self, limits: &HealthLimits, now: Instant) -> (State, String) {
        if self.is_joining() {
            return (State::Ok, WAITS.to_owned());
        }
        let mut worst = (State::Ok, format!("{} shards", self.lanes.len()));
        let starting = now.saturating_duration_since(self.started) <= limits.lane_stuck && !self.listed;
        for lane in &self.lanes {
            let Lane { shard, counts, .. } = lane;
            let still = now.saturating_duration_since(lane.progressed);
            let oldest = counts.oldest + now.saturating_duration_since(lane.taken);
            let found = if !lane.running && !starting {
                (State::Failing, format!("shard {shard} does not run"))
            } else if may_run(counts) && still > limits.lane_stuck && !self.is_away() {
                (State::Failing, format!("shard {shard}: no attempt has ended for {} s", still.as_secs()))
            } else if counts.held() > 0 && oldest > OLDEST_UNREPORTED {
                let age = oldest.as_secs();
                (State::Degraded, format!("shard {shard}: the oldest change has waited for {age} s"))
            } else {
                continue;
            };
            if found.0 > worst.0 {
                worst = found;
            }
        }
        if worst.0 == State::Ok {
            worst = self.unclaimed(now).map_or(worst, |text| (State::Degraded, text));
        }
        worst
    }

    fn sink(&self, now: Instant) -> (State, String) {
        let (why, since) = self.circuit;
        let lasting = now.saturating_duration_since(since).as_secs();
        match why {
            None => (State::Ok, "the circuit is closed".to_owned()),
            Some(why) => (State::Degraded, format!("the circuit has been open for {lasting} s ({why})")),
        }
    }

    fn ledger(&self) -> (State, String) {
        match &self.ledger {
            None => (State::Ok, "not open yet".to_owned()),
            Some(status) if status.failing => {
                let (waiting, errors) = (status.waiting, status.errors);
                let text = format!("cannot be written: {waiting} records wait, {errors} commits failed");
                (State::Degraded, text)
            }
            Some(status) if status.cut > 0 => {
                let LedgerStatus { records, storage, cut, .. } = status;
                let text = "too large for the bus and written without their resources";
                (State::Ok, format!("{records} records, {storage}; {cut} are {text}"))
            }
            Some(status) => (State::Ok, format!("{} records, {}", status.records, status.storage)),
        }
    }

    fn settings(&self, limits: &HealthLimits, now: Instant) -> (State, String) {
        let waited = now.saturating_duration_since(self.started);
        match limits.settings {
            None => (State::Ok, "not needed".to_owned()),
            Some(_) if self.is_joining() => (State::Ok, WAITS.to_owned()),
            Some(_) if self.settings => (State::Ok, "known".to_owned()),
            Some(limit) if waited <= limit => (State::Ok, "not known yet".to_owned()),
            Some(_) => (State::Degraded, format!("not known after {} s", waited.as_secs())),
        }
    }

    fn argocd(&self, now: Instant) -> (State, String) {
        let Some((refused, since)) = self.argocd_refuses else {
            return (State::Ok, "the token is not refused".to_owned());
        };
        let lasting = now.saturating_duration_since(since).as_secs();
        let text = match refused {
            Refusal::Token => format!("the token has been refused for {lasting} s"),
            Refusal::Login => format!(
                "the login has been refused for {lasting} s: name or password are wrong, or the account may not log in"
            ),
            Refusal::Settings => format!(
                "even its settings have been refused for {lasting} s: no token can be read of its file, or it is not argo cd that answers"
            ),
        };
        (State::Degraded, text)
    }
}

/// Grows with every attempt and read that ends, however it ends.
fn ended(counts: &LaneCounts) -> u64 {
    counts.over() + counts.retried + counts.reads
}

/// Whether something is there that needs no more waiting: a lane that waits for a retry is not stuck, and one
/// whose sink is away cannot start anything.
fn may_run(counts: &LaneCounts) -> bool {
    !counts.paused && counts.ready + counts.in_flight + counts.reading > 0
}

#[cfg(test)]
mod tests;
