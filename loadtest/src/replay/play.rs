//! Plays the recorded rounds of a case through the product's own code.

use std::collections::HashMap;

use anyhow::Context as _;
use bytes::Bytes;
use jiff::Timestamp;
use pipeline_core::{Attempt, Change, Enriched, Event, Key, Record, Report, Version};
use pipeline_redact::Redactor;
use serde_json::Value;
use stages_argocd::plan::{Begun, Fetch, FetchPlan, RawManifests, Response, Settings, TrackingMethod};
use stages_argocd::sources::AsksGit;

use super::git::Git;
use super::pairing::States;
use super::recorded::Answers;
use loadtest_sim::recordings::{Case, RoundLine, WatchLine};

/// A watch event, read far enough to be found.
#[derive(Debug, Clone)]
pub(super) struct Watched {
    pub(super) t: f64,
    pub(super) event: Event,
    /// The object as it was watched.
    pub(super) object: Value,
}

impl Watched {
    pub(super) fn of(line: &WatchLine) -> anyhow::Result<Self> {
        let object: Value = serde_json::from_str(line.object.get()).context("read watched object")?;
        let metadata = |name: &str| object.pointer(&format!("/metadata/{name}")).and_then(Value::as_str);
        let key = Key::new(metadata("namespace").unwrap_or(""), metadata("name").unwrap_or(""))
            .context("read watched object's name")?;
        let body = Bytes::copy_from_slice(line.object.get().as_bytes());
        let change = if line.kind == "DELETED" {
            Change::Deleted { body: Some(body) }
        } else {
            Change::Applied { body }
        };
        let uid = metadata("uid").unwrap_or("").into();
        let version = Version(metadata("resourceVersion").unwrap_or("").parse().unwrap_or(0));
        let event = Event::watched(key, uid, version, change, timestamp(line.t));
        Ok(Self { t: line.t, event, object })
    }

    /// This state of the application with an earlier state's resources.
    fn with_resources_of(&self, earlier: &Self) -> Self {
        let mut object = self.object.clone();
        let resources = earlier.object.pointer("/status/resources");
        if let (Some(Value::Object(status)), Some(resources)) = (object.get_mut("status"), resources) {
            status.insert("resources".to_owned(), resources.clone());
        }
        let change = Change::Applied { body: object.to_string().into() };
        Self { t: self.t, event: Event { change, ..self.event.clone() }, object }
    }
}

/// Unix seconds, in whole milliseconds.
pub(super) fn timestamp(t: f64) -> Timestamp {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "milliseconds of this century fit, and `as` saturates"
    )]
    Timestamp::from_millisecond((t * 1000.0).floor() as i64).unwrap_or_default()
}

/// One round, played.
#[derive(Debug, Clone)]
pub(super) struct Played<'a> {
    pub(super) line: &'a RoundLine,
    pub(super) watched: &'a Watched,
    /// What the product reported.
    pub(super) reports: Vec<Report>,
    /// How the parent's look-up ended, if the round made one.
    pub(super) parent_status: Option<u16>,
    /// What states of the same application, newer than the event, give for its reports: a reporter may have
    /// taken any of them for a Rollout.
    pub(super) newer: Vec<Report>,
}

/// A case, played.
#[derive(Debug, Default)]
pub(super) struct Playback<'a> {
    pub(super) rounds: Vec<Played<'a>>,
    /// Rounds of events that the recording does not hold.
    pub(super) lost: Vec<&'a RoundLine>,
    /// Events that the recorded reporter filtered, and the product would report.
    pub(super) unfiltered: usize,
    /// Live states that were taken from `managed-resources`, and `resource` answers in all.
    pub(super) pairs: (usize, usize),
}

#[cfg(test)]
impl<'a> Playback<'a> {
    /// One round alone.
    pub(super) fn only(&self, round: usize) -> Playback<'a> {
        Playback { rounds: vec![self.rounds[round].clone()], ..Playback::default() }
    }
}

/// The settings that a case was recorded under.
pub(super) fn settings(case: &Case, raw_manifests: RawManifests) -> Settings {
    let meta = &case.meta;
    let default = Settings::default();
    Settings {
        tracking_method: match meta.tracking_method.as_str() {
            // Unset: by label before Argo CD 3.
            "" if !meta.server.starts_with("argocd-3") => TrackingMethod::Label,
            method => TrackingMethod::parse(method),
        },
        instance_label_key: match meta.instance_label_key.as_str() {
            "" => default.instance_label_key,
            key => key.to_owned(),
        },
        raw_manifests,
        sources: AsksGit::Never,
        ..Settings::default()
    }
}

/// The key of every replay; what is redacted is the same in each.
pub(super) fn redactor() -> Redactor {
    Redactor::new(b"replay")
}

/// Plays every round of `case` in order. `paired`: live states come from `managed-resources` where an
/// observer saw the same resourceVersion; what is remembered is what it is without.
#[cfg(test)]
pub(super) fn play<'a>(case: &'a Case, watched: &'a [Watched], paired: bool) -> Playback<'a> {
    play_from(case, watched, paired, None)
}

/// The same; `git` says what the fork of Argo CD that was recorded said, as though upstream's had been there.
pub(super) fn play_from<'a>(
    case: &'a Case,
    watched: &'a [Watched],
    paired: bool,
    git: Option<&'a Git>,
) -> Playback<'a> {
    let redactor = redactor();
    let sources = if git.is_some() { AsksGit::Always } else { AsksGit::Never };
    // The fork of Argo CD that was recorded gives raw manifests.
    let settings = Settings { sources, ..settings(case, RawManifests::Served) };
    let observed = paired.then(|| States::of(case));
    let mut memory: HashMap<Key, Option<Record>> = HashMap::new();
    let mut next: HashMap<&str, usize> = HashMap::new();
    let mut playback = Playback::default();
    for line in &case.rounds {
        let from = next.get(line.app.as_str()).copied().unwrap_or(0);
        let Some(at) = find(watched, line, from) else {
            playback.lost.push(line);
            continue;
        };
        for filtered in watched[from..at.max(from)].iter().filter(|other| other.event.key.name() == line.app)
        {
            let known = memory.get(&filtered.event.key).and_then(Option::as_ref);
            playback.unfiltered += usize::from(would_report(filtered, known, &settings, &redactor));
        }
        next.insert(&line.app, from.max(at + 1));
        let event = &watched[at];
        let states = observed.as_ref().and_then(|states| states.answer(case, line, &mut playback.pairs));
        let known = memory.remove(&event.event.key).flatten();
        let mut answers = Answers::new(case, &line.calls, None, git);
        let enriched =
            enrich(event, known.as_ref(), line.t, &settings, &redactor, |fetch| answers.answer(fetch));
        // The same round with the same memory: live states that stand here and there alone would look like drift.
        let paired = states.as_ref().map(|states| {
            let mut answers = Answers::new(case, &line.calls, Some(states.clone()), git);
            enrich(event, known.as_ref(), line.t, &settings, &redactor, |fetch| answers.answer(fetch))
        });
        // Two watches saw the same event; which was told first is chance.
        let until = last_post(case, line) + 1.0;
        let mut newer = Vec::new();
        for later in watched[at + 1..].iter().filter(|later| has_rollout(event) && later.t <= until) {
            let same = later.event.key == event.event.key && event.event.uid == later.event.uid;
            if same && !later.event.is_deleted() {
                let mut answers = Answers::new(case, &line.calls, states.clone(), git);
                let later = later.with_resources_of(event);
                let all = enrich(&later, None, line.t, &settings, &redactor, |fetch| answers.answer(fetch));
                newer.extend(all.map(|all| all.reports).unwrap_or_default());
            }
        }
        let parent = answers.calls().iter().find(|(target, _)| target.is_application());
        let parent_status = parent.map(|(_, call)| call.status);
        // An event that must wait or is refused brings no report, and moves nothing.
        let (known, reports) = match enriched {
            Ok(enriched) => (remember(known, &enriched), enriched.reports),
            Err(_) => (known, Vec::new()),
        };
        let reports = match paired {
            Some(paired) => paired.map(|paired| paired.reports).unwrap_or_default(),
            None => reports,
        };
        memory.insert(event.event.key.clone(), known);
        playback.rounds.push(Played { line, watched: event, reports, parent_status, newer });
    }
    for (app, from) in next {
        for filtered in watched[from..].iter().filter(|other| other.event.key.name() == app) {
            let known = memory.get(&filtered.event.key).and_then(Option::as_ref);
            playback.unfiltered += usize::from(would_report(filtered, known, &settings, &redactor));
        }
    }
    playback
}

fn has_rollout(watched: &Watched) -> bool {
    let resources = watched.object.pointer("/status/resources").and_then(Value::as_array);
    resources.into_iter().flatten().any(|entry| entry.get("kind").and_then(Value::as_str) == Some("Rollout"))
}

/// When the last report of a round was posted.
fn last_post(case: &Case, line: &RoundLine) -> f64 {
    let posts = case.reports.iter().filter(|report| line.reports.contains(&report.n));
    posts.map(|report| report.t).fold(line.t, f64::max)
}

/// The event that a round names: the next such one, else (it was taken up again) an earlier one.
fn find(watched: &[Watched], line: &RoundLine, from: usize) -> Option<usize> {
    let version: u64 = line.resource_version.parse().ok()?;
    let here = |watched: &Watched| watched.event.key.name() == line.app && watched.event.version.0 == version;
    let next = watched.iter().skip(from).position(here).map(|at| from + at);
    next.or_else(|| watched.iter().take(from).rposition(here))
}

fn would_report(watched: &Watched, known: Option<&Record>, settings: &Settings, redactor: &Redactor) -> bool {
    let attempt = Attempt::at(watched.event.observed);
    match FetchPlan::begin(&watched.event, known, &attempt, settings, redactor) {
        Ok(Begun::Done(enriched)) => !enriched.reports.is_empty(),
        // A look at what the object does not tell is no report: what it finds, the recorded reporter did not look for.
        Ok(Begun::Go(plan)) => !plan.fetches().iter().all(is_look),
        Err(_) => true,
    }
}

fn is_look(fetch: &Fetch) -> bool {
    matches!(fetch, Fetch::ManagedResources { paced: true, .. } | Fetch::ResourceTree { paced: true, .. })
}

/// Runs one event through the product.
pub(super) fn enrich(
    watched: &Watched,
    known: Option<&Record>,
    t: f64,
    settings: &Settings,
    redactor: &Redactor,
    mut answer: impl FnMut(&Fetch) -> Response,
) -> anyhow::Result<Enriched> {
    let attempt = Attempt::at(timestamp(t));
    match FetchPlan::begin(&watched.event, known, &attempt, settings, redactor)? {
        Begun::Done(enriched) => Ok(enriched),
        Begun::Go(mut plan) => loop {
            let fetches = plan.fetches();
            if fetches.is_empty() {
                return Ok(plan.finish()?);
            }
            for fetch in fetches {
                let response = answer(&fetch);
                plan.respond(&fetch, response);
            }
        },
    }
}

/// What the ledger remembers when every report was acknowledged.
pub(super) fn remember(known: Option<Record>, enriched: &Enriched) -> Option<Record> {
    let record = enriched.reports.iter().fold(known, Record::acknowledge);
    match &enriched.settle {
        Some(settle) => Some(Record::checkpoint(record, settle)),
        None => record,
    }
}
