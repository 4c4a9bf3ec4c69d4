//! Follows every change of an object from when it was due to the report that makes it known. Pure but for the time that is handed
//! in.
//!
//! A change is done when its own state is reported, and coalesced when only a newer one is: its latency counts all the same. What
//! is hot is not followed change by change: its newest state alone has to be known in the end.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use loadtest_sim::generate::{Workload, WorkloadKind, Workloads};
use loadtest_sim::platform::Parsed;

use crate::times::Times;

/// Of whose change nothing is known yet.
struct Pending {
    version: u64,
    due: Instant,
    is_timed: bool,
}

/// An object that is worth a report.
struct Followed {
    /// As it is now.
    workload: Workload,
    /// Its newest resourceVersion.
    newest: u64,
    /// The newest that was reported; 0 before the first.
    told: u64,
    pending: VecDeque<Pending>,
}

/// What became of objects and changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Objects that are worth a report,
    pub(super) followed: u64,
    /// and those that had their first.
    pub(super) first: u64,
    /// Changes that were made, but for those of what is hot.
    pub(super) made: u64,
    /// Of those, reported in their own state.
    pub(super) done: u64,
    /// Of those, known only through a newer state.
    pub(super) coalesced: u64,
    /// Reports of a state that was reported before.
    pub(super) repeated: u64,
    /// Reports of objects that are worth none.
    pub(super) needless: u64,
}

impl Counts {
    /// Changes that are known.
    pub(super) const fn known(&self) -> u64 {
        self.done + self.coalesced
    }
}

/// A change as it is made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change {
    /// When it was to be made.
    pub(super) due: Instant,
    /// Its latency is kept.
    pub(super) is_timed: bool,
    /// It is one of very many of the same object.
    pub(super) is_hot: bool,
}

/// What is known of all objects.
pub(super) struct Heard {
    all: Vec<Followed>,
    places: HashMap<(WorkloadKind, u32), usize>,
    pub(super) counts: Counts,
    /// When the last of the first reports came.
    pub(super) last_first: Option<Instant>,
    latencies: Times,
}

impl Heard {
    pub(super) fn new() -> anyhow::Result<Self> {
        Ok(Self {
            all: Vec::new(),
            places: HashMap::new(),
            counts: Counts::default(),
            last_first: None,
            latencies: Times::new()?,
        })
    }

    /// An object that is worth a report is there.
    pub(super) fn add(&mut self, workload: Workload, version: u64) {
        self.places.insert((workload.kind, workload.index), self.all.len());
        self.all.push(Followed { workload, newest: version, told: 0, pending: VecDeque::new() });
        self.counts.followed += 1;
    }

    /// The state of an object after one change more.
    pub(super) fn next(&self, place: usize) -> Option<Workload> {
        let workload = self.all.get(place)?.workload;
        Some(Workload { changes: workload.changes + 1, ..workload })
    }

    /// Whether a change of it is not known yet.
    pub(super) fn is_busy(&self, place: usize) -> bool {
        self.all.get(place).is_some_and(|one| !one.pending.is_empty())
    }

    /// A change was made.
    pub(super) fn made(&mut self, place: usize, workload: Workload, version: u64, change: Change) {
        let Some(one) = self.all.get_mut(place) else { return };
        (one.workload, one.newest) = (workload, version);
        if !change.is_hot {
            one.pending.push_back(Pending { version, due: change.due, is_timed: change.is_timed });
            self.counts.made += 1;
        }
    }

    /// A report came.
    pub(super) fn arrived(&mut self, report: &Parsed, now: Instant) -> anyhow::Result<()> {
        let Some(resource) = &report.entity.resource else { return Ok(()) };
        let place = Workloads::find(&resource.kind, &resource.name).and_then(|which| self.places.get(&which));
        let one = place.and_then(|place| self.all.get_mut(*place));
        let (Some(one), Some(version)) = (one, report.version) else {
            self.counts.needless += 1;
            return Ok(());
        };
        if one.told == 0 {
            self.counts.first += 1;
            self.last_first = Some(now);
        }
        self.counts.repeated += u64::from(one.told == version);
        one.told = one.told.max(version);
        while let Some(known) = one.pending.pop_front_if(|pending| pending.version <= version) {
            let is_own = known.version == version;
            self.counts.done += u64::from(is_own);
            self.counts.coalesced += u64::from(!is_own);
            if known.is_timed {
                self.latencies.add(now.saturating_duration_since(known.due))?;
            }
        }
        Ok(())
    }

    /// Changes of which nothing is known yet.
    pub(super) fn pending(&self) -> u64 {
        self.counts.made - self.counts.known()
    }

    /// Gives up what is not known yet; how many changes that were.
    pub(super) fn give_up(&mut self) -> u64 {
        let lost = self.pending();
        self.all.iter_mut().for_each(|one| one.pending.clear());
        self.counts.made -= lost;
        lost
    }

    /// Objects whose newest report is not their newest state.
    pub(super) fn wrong(&self) -> u64 {
        self.all.iter().filter(|one| one.told != one.newest).count() as u64
    }

    /// The latencies since the last call.
    pub(super) fn take_latencies(&mut self) -> anyhow::Result<Times> {
        Ok(std::mem::replace(&mut self.latencies, Times::new()?))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use loadtest_sim::platform::parse;
    use serde_json::json;

    use super::*;

    const WORKFLOW: Workload = Workload { kind: WorkloadKind::Workflow, index: 7, changes: 0 };

    fn report(kind: &str, name: &str, version: u64) -> Parsed {
        let metadata =
            json!({"name": name, "namespace": "ci", "uid": "u", "resourceVersion": version.to_string()});
        let object = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": kind, "metadata": metadata});
        parse(&json!({"object": object}).to_string()).unwrap()
    }

    fn change(heard: &mut Heard, version: u64, due: Instant, is_hot: bool) {
        let next = heard.next(0).unwrap();
        heard.made(0, next, version, Change { due, is_timed: true, is_hot });
    }

    #[test]
    fn a_change_is_known_by_its_own_state_or_by_a_newer_one_and_timed_from_when_it_was_due() {
        let (mut heard, now) = (Heard::new().unwrap(), Instant::now());
        heard.add(WORKFLOW, 10);
        heard.arrived(&report("Workflow", "build-00007", 10), now).unwrap();
        for version in [11, 12, 13] {
            change(&mut heard, version, now, false);
        }
        assert_eq!((heard.pending(), heard.is_busy(0), heard.wrong()), (3, true, 1));
        heard.arrived(&report("Workflow", "build-00007", 12), now + Duration::from_millis(8)).unwrap();
        assert_eq!((heard.counts.done, heard.counts.coalesced, heard.pending()), (1, 1, 1));
        heard.arrived(&report("Workflow", "build-00007", 13), now + Duration::from_millis(9)).unwrap();
        assert_eq!((heard.counts.known(), heard.is_busy(0), heard.wrong()), (3, false, 0));
        let times = heard.take_latencies().unwrap();
        assert_eq!(times.count(), 3);
        assert!((8_000..8_100).contains(&times.quantile(0.3).as_micros()), "{:?}", times.quantile(0.3));
        assert_eq!(heard.next(0).unwrap().changes, 4);
    }

    #[test]
    fn what_is_told_twice_or_needlessly_or_never_is_counted() {
        let (mut heard, now) = (Heard::new().unwrap(), Instant::now());
        heard.add(WORKFLOW, 10);
        for _ in 0..2 {
            heard.arrived(&report("Workflow", "build-00007", 10), now).unwrap();
        }
        heard.arrived(&report("ReplicaSet", "web-00000-0000000001", 5), now).unwrap();
        heard.arrived(&report("Rollout", "web-00000", 5), now).unwrap();
        change(&mut heard, 11, now, false);
        assert_eq!(heard.give_up(), 1);
        let Counts { followed, first, made, repeated, needless, .. } = heard.counts;
        assert_eq!((followed, first, made, repeated, needless), (1, 1, 0, 1, 2));
    }

    #[test]
    fn of_a_hot_object_the_newest_state_alone_is_waited_for() {
        let (mut heard, now) = (Heard::new().unwrap(), Instant::now());
        heard.add(WORKFLOW, 10);
        change(&mut heard, 11, now, true);
        change(&mut heard, 12, now, true);
        assert_eq!((heard.pending(), heard.wrong()), (0, 1));
        heard.arrived(&report("Workflow", "build-00007", 12), now).unwrap();
        assert_eq!((heard.wrong(), heard.take_latencies().unwrap().count()), (0, 0));
    }
}
