//! What the platform saw, request by request: keys, answers, lives and operations of applications, and which kills
//! fell where.
//!
//! A repeated key is *in flight* when its first report was never answered in full, or when the process was killed
//! within half a second after the answer, or cut off from the ledger at that time: until then the answer need not be in the
//! ledger. Every other repetition is
//! *beyond* that, and so is a content that came twice in a row under two keys, unless a kill or a failure stands between
//! and the resource it is about changed meanwhile: then another content was on its way that was never heard of, and what
//! came is a report of the return to the first.

mod again;
mod content;
mod epochs;
mod gap;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use content::print;
use epochs::Epochs;
pub use gap::RECENT;
use gap::{COMMIT, DYING, Kill};
use hdrhistogram::Histogram;
use serde_json::Value;

use crate::oracle;
use loadtest_sim::platform::{Arrived, EntityName, Moment, PlatformSim};

/// How many lines of what is wrong are kept of one kind.
pub const KEPT: usize = 8;
/// So long before a report arrives its content may have been read.
const READ_BEFORE: Duration = Duration::from_secs(1);
/// The last so many things that happened to one application are remembered.
const STORY: usize = 14;
/// Latencies up to ten minutes, in microseconds.
const LONGEST: u64 = 600_000_000;

#[derive(Debug, Clone, Copy)]
struct Taken {
    /// When the answer was sent in full.
    answered: Option<Instant>,
    era: u32,
}

#[derive(Debug)]
struct LastSeen {
    uid: String,
    version: Option<u64>,
    print: u64,
    at: Instant,
    era: u32,
}

/// One life of an application: its name and uid.
pub type Life = (String, String);

/// Everything that was seen.
#[derive(Debug, Default)]
pub struct ObjectIndex {
    keys: HashMap<String, Taken>,
    last: HashMap<EntityName, LastSeen>,
    /// Answers that were sent lately.
    answers: Vec<Instant>,
    /// Kills, and times without the ledger.
    pub kills: Vec<Kill>,
    /// How long an answer may take into the ledger, where that is not a file.
    pub commit: Option<Duration>,
    /// By which rights reports came.
    pub epochs: Epochs,
    /// The last time a request was not answered, or not with success.
    failed: Option<Instant>,
    /// Requests that were received, whatever became of them.
    pub received: u64,
    /// Those that were answered in full.
    pub answered: u64,
    /// Those that are here, and are not answered yet.
    pub open: u64,
    /// When each life was first reported.
    pub lives: HashMap<Life, Instant>,
    /// Lives that were reported as deleted.
    pub deleted: HashSet<Life>,
    /// Operation ends that were reported: uid and `finishedAt`.
    pub ends: HashSet<(String, String)>,
    /// Reports that came again: under their key, or under another one without a reason.
    pub duplicates: u64,
    /// Of those, the ones under the same key.
    pub same_key: u64,
    /// Returns to a content while another one had been on its way; these have keys of their own.
    pub returns: u64,
    /// Repetitions that nothing excuses.
    pub beyond: u64,
    /// Reports of an older state after a newer one.
    pub out_of_order: u64,
    /// The longest from an answer to the kill that the ledger did not outlive.
    pub longest: Duration,
    /// The first application that something was repeated of beyond what was in flight, or out of order.
    pub suspect: Option<String>,
    /// The first few of what must not be.
    pub told: Vec<String>,
    /// Repetitions of an earlier era are expected: the ledger was taken away.
    era: u32,
    began: Option<Instant>,
    /// When each resource was last changed, by the names of its application and of itself.
    touched: HashMap<(String, String), Instant>,
    /// What happened to each application lately.
    stories: HashMap<String, VecDeque<String>>,
    timed: HashMap<String, Vec<(u64, Instant)>>,
    latencies: Option<Histogram<u64>>,
}

/// Stands at the platform's door.
#[derive(Debug, Clone, Default)]
pub struct Witness {
    seen: Arc<Mutex<ObjectIndex>>,
}

impl Witness {
    /// Looks on from now on.
    pub fn at(platform: &PlatformSim) -> Self {
        let own = Self::default();
        let door = own.clone();
        platform.watch_door(move |moment, key| door.lock().passed(moment, key, Instant::now()));
        let counter = own.clone();
        platform.look_on(move |arrived| counter.arrived(arrived));
        own
    }

    /// What was seen so far.
    pub fn lock(&self) -> MutexGuard<'_, ObjectIndex> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The process is killed in this instant.
    pub fn killed(&self) {
        self.lock().killed(Instant::now());
    }

    /// From now on what is answered may not get into the ledger, until [`Self::mended`].
    pub fn cut(&self) {
        self.lock().killed_until(Instant::now(), None);
    }

    /// What is answered from now on gets into the ledger again.
    pub fn mended(&self) {
        let mut seen = self.lock();
        seen.kills.iter_mut().for_each(|kill| kill.end(Instant::now()));
    }

    /// Something happened to an application.
    pub fn happened(&self, name: &str, what: &str) {
        self.lock().happened(name, what);
    }

    /// A resource of an application is changed in this instant.
    pub fn touched(&self, application: &str, resource: &str) {
        self.lock().touched.insert((application.to_owned(), resource.to_owned()), Instant::now());
    }

    /// The last things that happened to an application, with the kills between, oldest first.
    pub fn story(&self, name: &str) -> String {
        let seen = self.lock();
        let story = seen.stories.get(name).into_iter().flatten();
        story.map(String::as_str).collect::<Vec<_>>().join("; ")
    }

    /// From now on what was sent before may come again: the ledger was damaged or put back.
    pub fn new_era(&self) {
        self.lock().era += 1;
    }

    /// An application got this resourceVersion at `at`; the time until its report is kept.
    pub fn time(&self, name: &str, version: u64, at: Instant) {
        self.lock().timed.entry(name.to_owned()).or_default().push((version, at));
    }

    /// How many changes that are timed were not reported yet.
    pub fn timed(&self) -> usize {
        self.lock().timed.values().map(Vec::len).sum()
    }

    /// The latencies kept since the last call, in microseconds.
    pub fn take_latencies(&self) -> Option<Histogram<u64>> {
        self.lock().latencies.take()
    }

    fn arrived(&self, arrived: &Arrived<'_>) {
        let print = print(arrived.payload);
        // An Application's own words are read outside the lock.
        let shown = (arrived.report.entity.resource.is_none() && !arrived.duplicate)
            .then(|| oracle::shown(arrived.payload.as_bytes()))
            .flatten();
        let now = Instant::now();
        let mut seen = self.lock();
        let told = shown.as_ref().and_then(|facts| facts.get("health")).map(ToString::to_string);
        let (version, key) = (arrived.report.version.unwrap_or_default(), arrived.key.unwrap_or("-------"));
        let again = if arrived.duplicate { " again" } else { "" };
        if arrived.report.entity.resource.is_none() {
            let key = key.get(..7).unwrap_or(key);
            let epoch = epochs::named(arrived.headers).map(|epoch| format!(" of epoch {epoch}"));
            let (told, epoch) = (told.unwrap_or_default(), epoch.unwrap_or_default());
            let what = format!("took {version} {told}{again} as {key}{epoch}");
            seen.happened(&arrived.report.entity.app_name, &what);
        }
        if let Some(facts) = shown {
            let text = |name: &str| facts.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            let (name, uid) = (arrived.report.entity.app_name.clone(), arrived.report.uid.clone());
            seen.lives.entry((name.clone(), uid.clone())).or_insert(now);
            if facts.get("deleted") == Some(&Value::Bool(true)) {
                seen.deleted.insert((name, uid.clone()));
            }
            let end = text("operation end");
            if !end.is_empty() {
                seen.ends.insert((uid, end));
            }
        }
        seen.epochs.came(&arrived.report.entity, arrived.headers);
        seen.took(arrived, print, now);
    }
}

impl ObjectIndex {
    fn happened(&mut self, name: &str, what: &str) {
        let now = Instant::now();
        let at = now.duration_since(*self.began.get_or_insert(now)).as_millis();
        let kills = self.kills.len();
        let story = self.stories.entry(name.to_owned()).or_default();
        story.push_back(format!("{at} ms after {kills} kills {what}"));
        while story.len() > STORY {
            story.pop_front();
        }
    }

    fn passed(&mut self, moment: Moment, key: Option<&str>, now: Instant) {
        match moment {
            Moment::Received => {
                self.received += 1;
                self.open += 1;
            }
            Moment::Answered(status) => {
                self.open = self.open.saturating_sub(1);
                self.answered += 1;
                if (200..300).contains(&status) {
                    self.answers.retain(|at| now.duration_since(*at) <= RECENT);
                    self.answers.push(now);
                    if let Some(taken) = key.and_then(|key| self.keys.get_mut(key)) {
                        taken.answered = Some(now);
                    }
                } else {
                    self.failed = Some(now);
                }
            }
            Moment::Unanswered => {
                self.open = self.open.saturating_sub(1);
                self.failed = Some(now);
            }
        }
    }

    fn killed(&mut self, now: Instant) {
        // Where the machine may be busy, what was sent to the dying process may be answered as late as it commits.
        let dying = self.commit.unwrap_or_default().max(DYING);
        self.killed_until(now, Some(now + dying));
    }

    fn killed_until(&mut self, now: Instant, until: Option<Instant>) {
        let recent = self.answers.iter().filter(|at| now.duration_since(**at) <= RECENT).count() as u64;
        self.kills.push(Kill { at: now, until, open: self.open, recent, again: 0 });
    }

    fn took(&mut self, arrived: &Arrived<'_>, print: u64, now: Instant) {
        let report = arrived.report;
        let era = self.era;
        if arrived.duplicate {
            self.repeated(arrived, now);
            return;
        }
        if let Some(key) = arrived.key {
            self.keys.insert(key.to_owned(), Taken { answered: None, era });
        }
        let life = (report.entity.app_name.clone(), report.uid.clone());
        let is_over = report.entity.resource.is_none() && !report.ends && self.deleted.contains(&life);
        if is_over {
            self.out_of_order(&report.entity, "a state came after the end of that life");
        }
        if let Some(last) = self.last.get(&report.entity) {
            // Versions of the cluster grow over the lives of an application; a resource may get one of its own cluster.
            let comparable = last.uid == report.uid || report.entity.resource.is_none();
            let older = comparable && is_older(report.version, last.version);
            let same = last.uid == report.uid && last.print == print;
            // A report that was sent and never heard of may stand between the two; then the resource has changed.
            let broken = self.kills.iter().any(|kill| kill.reaches(last.at))
                || self.failed.is_some_and(|failed| failed >= last.at);
            let forgotten = last.era != era;
            let returned = broken && self.was_touched(&report.entity, last.at);
            if older && !is_over {
                self.out_of_order(&report.entity, "an older state came after a newer one");
            }
            if same && !forgotten && returned {
                self.returns += 1;
            } else if same {
                self.duplicates += 1;
                if !forgotten {
                    self.suspect(&report.entity);
                    self.tell(format!("{}: the same content came under two keys", named(&report.entity)));
                }
            }
        }
        let (uid, version) = (report.uid.clone(), report.version);
        self.last.insert(report.entity.clone(), LastSeen { uid, version, print, at: now, era });
        self.timed(arrived, now);
    }

    /// Whether a resource had another state after the content was read that arrived at `arrived`. An application never
    /// returns to a content: its version is part of it.
    fn was_touched(&self, entity: &EntityName, arrived: Instant) -> bool {
        let Some(resource) = &entity.resource else { return false };
        let touched = self.touched.get(&(entity.app_name.clone(), resource.name.clone()));
        touched.is_some_and(|at| *at + READ_BEFORE >= arrived)
    }

    fn repeated(&mut self, arrived: &Arrived<'_>, now: Instant) {
        self.duplicates += 1;
        self.same_key += 1;
        let report = arrived.report;
        let older = self.last.get(&report.entity).is_some_and(|last| {
            last.uid == report.uid && is_older(report.version, last.version) && last.era == self.era
        });
        if older {
            self.out_of_order(&report.entity, "an older state was repeated after a newer one");
        }
        let Some(taken) = arrived.key.and_then(|key| self.keys.get(key)).copied() else { return };
        if taken.era != self.era {
            return;
        }
        // A report that was never answered in full is in flight until it is.
        let Some(answered) = taken.answered else { return };
        let commit = self.commit.unwrap_or(COMMIT);
        match self.kills.iter_mut().rev().find(|kill| kill.at < now && kill.meets(answered, commit)) {
            // The answer went to a process that was dead. Of two kills the later one: a process may be back soon, and killed.
            Some(kill) if kill.at < answered => {}
            Some(kill) => {
                kill.again += 1;
                self.longest = self.longest.max(kill.at.duration_since(answered));
            }
            None => {
                self.suspect(&report.entity);
                let ago = now.duration_since(answered).as_millis();
                self.tell(format!("{}: repeated {ago} ms after its answer", named(&report.entity)));
            }
        }
    }

    fn timed(&mut self, arrived: &Arrived<'_>, now: Instant) {
        let entity = &arrived.report.entity;
        let (None, Some(version)) = (&entity.resource, arrived.report.version) else { return };
        let Some(waiting) = self.timed.get_mut(&entity.app_name) else { return };
        let latencies = &mut self.latencies;
        waiting.retain(|(own, at)| {
            if *own > version {
                return true;
            }
            if latencies.is_none() {
                *latencies = Histogram::new_with_bounds(1, LONGEST, 3).ok();
            }
            let took = u64::try_from(now.saturating_duration_since(*at).as_micros()).unwrap_or(LONGEST);
            if let Some(latencies) = latencies {
                latencies.saturating_record(took.max(1));
            }
            false
        });
    }

    fn out_of_order(&mut self, entity: &EntityName, what: &str) {
        self.out_of_order += 1;
        self.suspect.get_or_insert_with(|| entity.app_name.clone());
        self.tell(format!("{}: {what}", named(entity)));
    }

    fn suspect(&mut self, entity: &EntityName) {
        self.beyond += 1;
        self.suspect.get_or_insert_with(|| entity.app_name.clone());
    }

    fn tell(&mut self, what: String) {
        if self.told.len() < KEPT {
            self.told.push(what);
        }
    }
}

/// What is known of an application that is gone has no version.
fn is_older(now: Option<u64>, before: Option<u64>) -> bool {
    matches!((now, before), (Some(now), Some(before)) if now < before)
}

/// An entity for people.
pub fn named(entity: &EntityName) -> String {
    match &entity.resource {
        None => entity.app_name.clone(),
        Some(resource) => format!("{} {} {}", entity.app_name, resource.kind, resource.name),
    }
}

#[cfg(test)]
mod tests;
