//! Follows every change from its emission to the acknowledgement of its last report. Pure but for the time that
//! is handed in.
//!
//! A change is two reports: of the application at the change's resourceVersion, and of the one resource that
//! changed. An application that is reported in a newer state without having been reported in this one was
//! coalesced: that is counted apart, and is no reported change.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::sim::generate::ResourceState;
use crate::sim::platform::Parsed;

/// The longest latency that is told apart, in microseconds.
const LONGEST: u64 = 600_000_000;

/// The live state of a generated resource starts at this resourceVersion and counts its changes.
const FIRST: u64 = 1_000;

/// A change that is not acknowledged in full yet.
#[derive(Debug, Clone, Copy)]
struct Pending {
    version: u64,
    /// Which resource, and its resourceVersion.
    resource: (usize, u64),
    due: Instant,
    timed: bool,
    application_told: bool,
    resource_told: bool,
}

#[derive(Debug)]
struct App {
    /// The newest emitted resourceVersion.
    version: u64,
    resources: Arc<[ResourceState]>,
    /// The newest reported resourceVersion.
    told: u64,
    /// The same of each resource.
    resources_told: Vec<u64>,
    pending: Vec<Pending>,
}

impl App {
    /// How much of it was last reported in another state than its newest.
    fn wrong(&self) -> u64 {
        let states = self.resources.iter().map(|state| FIRST + u64::from(state.changes));
        let resources = states.zip(&self.resources_told).filter(|(is, told)| is != *told).count() as u64;
        resources + u64::from(self.version != self.told)
    }
}

/// Counts of the tracked changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Changes that were emitted.
    pub(super) emitted: u64,
    /// Of those, acknowledged in their own state.
    pub(super) done: u64,
    /// Of those, known only through a newer state.
    pub(super) coalesced: u64,
    /// Reports of a state that had been reported before.
    pub(super) repeated: u64,
}

#[derive(Debug)]
pub(super) struct Tracker {
    apps: Vec<App>,
    pub(super) counts: Counts,
    latencies: Histogram<u64>,
}

impl Tracker {
    /// Applications in their newest state: their resourceVersions and resources. Nothing was reported yet.
    pub(super) fn new(apps: impl Iterator<Item = (u64, Arc<[ResourceState]>)>) -> anyhow::Result<Self> {
        let apps = apps.map(|(version, resources)| App {
            version,
            told: 0,
            resources_told: vec![0; resources.len()],
            resources,
            pending: Vec::new(),
        });
        Ok(Self { apps: apps.collect(), counts: Counts::default(), latencies: histogram()? })
    }

    /// How many applications there are.
    pub(super) fn len(&self) -> usize {
        self.apps.len()
    }

    /// Whether a change of this application is under way.
    pub(super) fn is_busy(&self, index: usize) -> bool {
        self.apps.get(index).is_some_and(|app| !app.pending.is_empty())
    }

    /// How many changes are under way.
    pub(super) fn pending(&self) -> u64 {
        self.counts.emitted - self.counts.done - self.counts.coalesced
    }

    /// A change was emitted that was due at `due`; its latency is kept if `timed`.
    pub(super) fn emitted(
        &mut self,
        index: usize,
        version: u64,
        resources: Arc<[ResourceState]>,
        due: Instant,
        timed: bool,
    ) {
        let Some(app) = self.apps.get_mut(index) else { return };
        let changed = app.resources.iter().zip(resources.iter()).position(|(was, is)| was != is);
        let resource = changed.and_then(|at| Some((at, FIRST + u64::from(resources.get(at)?.changes))));
        app.version = version;
        app.resources = resources;
        app.pending.push(Pending {
            version,
            resource: resource.unwrap_or_default(),
            due,
            timed,
            application_told: false,
            resource_told: resource.is_none(),
        });
        self.counts.emitted += 1;
    }

    /// A report arrived; how many changes are done with by it.
    pub(super) fn arrived(&mut self, report: &Parsed, now: Instant) -> usize {
        let Some(version) = report.version else { return 0 };
        let name = &report.entity.app_name;
        let app = name.strip_prefix("app-").and_then(|index| index.parse().ok());
        let Some(app) = app.and_then(|index: usize| self.apps.get_mut(index)) else { return 0 };
        let newest = match &report.entity.resource {
            None => &mut app.told,
            Some(resource) => {
                let part = resource.name.rsplit_once("-r").and_then(|(_, part)| part.parse().ok());
                let Some(told) = part.and_then(|part: usize| app.resources_told.get_mut(part)) else {
                    return 0;
                };
                for pending in app.pending.iter_mut().filter(|pending| Some(pending.resource.0) == part) {
                    pending.resource_told |= version >= pending.resource.1;
                }
                told
            }
        };
        self.counts.repeated += u64::from(*newest == version);
        *newest = version.max(*newest);
        let is_application = report.entity.resource.is_none();
        let (counts, latencies) = (&mut self.counts, &mut self.latencies);
        let before = app.pending.len();
        app.pending.retain_mut(|pending| {
            if is_application && !pending.application_told && pending.version < version {
                // Its own state was never told: only a newer one is known.
                counts.coalesced += 1;
                return false;
            }
            pending.application_told |= is_application && pending.version == version;
            if !(pending.application_told && pending.resource_told) {
                return true;
            }
            counts.done += 1;
            if pending.timed {
                let took = u64::try_from(now.saturating_duration_since(pending.due).as_micros());
                latencies.saturating_record(took.unwrap_or(LONGEST).max(1));
            }
            false
        });
        before - app.pending.len()
    }

    /// The latencies kept since the last call.
    pub(super) fn take_latencies(&mut self) -> anyhow::Result<Histogram<u64>> {
        Ok(std::mem::replace(&mut self.latencies, histogram()?))
    }

    /// Gives up what is under way; how many changes that were.
    pub(super) fn give_up(&mut self) -> u64 {
        let lost = self.pending();
        self.apps.iter_mut().for_each(|app| app.pending.clear());
        self.counts.emitted -= lost;
        lost
    }

    /// Applications and resources whose newest report is not their newest state.
    pub(super) fn wrong(&self) -> u64 {
        self.apps.iter().map(App::wrong).sum()
    }

    /// Applications of which anything is wrong.
    pub(super) fn applications_wrong(&self) -> usize {
        self.apps.iter().filter(|app| app.wrong() > 0).count()
    }
}

fn histogram() -> anyhow::Result<Histogram<u64>> {
    Ok(Histogram::new_with_bounds(1, LONGEST, 3)?)
}

/// A quantile in milliseconds.
pub(super) fn milliseconds(latencies: &Histogram<u64>, quantile: f64) -> f64 {
    Duration::from_micros(latencies.value_at_quantile(quantile)).as_secs_f64() * 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::platform::{EntityName, ResourceKey};

    fn states(changes: [u32; 2]) -> Arc<[ResourceState]> {
        changes.map(|changes| ResourceState { changes, degraded: false }).to_vec().into()
    }

    fn tracker() -> Tracker {
        let first = [(10, states([0, 0])), (11, states([0, 0]))];
        let mut tracker = Tracker::new(first.into_iter()).unwrap();
        assert_eq!((tracker.wrong(), tracker.applications_wrong()), (6, 2));
        for (app, version) in [(0, 10), (1, 11)] {
            tracker.arrived(&report(app, None, version), Instant::now());
            for part in [0, 1] {
                tracker.arrived(&report(app, Some(part), 1_000), Instant::now());
            }
        }
        assert_eq!((tracker.wrong(), tracker.counts), (0, Counts::default()));
        tracker
    }

    fn report(app: u32, resource: Option<u32>, version: u64) -> Parsed {
        let name = format!("app-{app:05}");
        let resource = resource.map(|part| ResourceKey {
            api_version: "v1".into(),
            kind: "Service".into(),
            namespace: name.clone(),
            name: format!("{name}-r{part}"),
        });
        let entity = EntityName { app_namespace: "argocd".into(), app_name: name.clone(), resource };
        Parsed { entity, parent: name, uid: "u".into(), version: Some(version) }
    }

    #[test]
    fn a_change_is_done_with_its_last_report_and_timed_from_when_it_was_due() {
        let (mut tracker, due) = (tracker(), Instant::now());
        tracker.emitted(1, 20, states([0, 1]), due, true);
        assert!(tracker.is_busy(1) && !tracker.is_busy(0));
        assert_eq!(tracker.arrived(&report(1, None, 20), due + Duration::from_millis(30)), 0);
        // Another resource, another application, an older state: not what is waited for.
        for other in [report(1, Some(0), 1_001), report(0, Some(1), 1_001), report(1, Some(1), 999)] {
            assert_eq!(tracker.arrived(&other, due), 0, "{other:?}");
        }
        assert_eq!(tracker.arrived(&report(1, Some(1), 1_001), due + Duration::from_millis(50)), 1);
        assert!(!tracker.is_busy(1));
        assert_eq!((tracker.counts.done, tracker.pending()), (1, 0));
        let latencies = tracker.take_latencies().unwrap();
        assert_eq!(latencies.len(), 1);
        assert!((milliseconds(&latencies, 0.99) - 50.0).abs() < 0.1, "{}", milliseconds(&latencies, 0.99));
        assert!(tracker.take_latencies().unwrap().is_empty());
    }

    #[test]
    fn a_state_that_was_skipped_is_coalesced_and_not_done() {
        let (mut tracker, now) = (tracker(), Instant::now());
        tracker.emitted(0, 20, states([1, 0]), now, true);
        tracker.emitted(0, 21, states([1, 1]), now, true);
        assert_eq!(tracker.arrived(&report(0, None, 21), now), 1);
        assert_eq!(tracker.arrived(&report(0, Some(1), 1_001), now), 1);
        assert_eq!(tracker.counts, Counts { emitted: 2, done: 1, coalesced: 1, repeated: 0 });
        assert_eq!(tracker.take_latencies().unwrap().len(), 1);
        // The first resource's change was never told.
        assert_eq!(tracker.wrong(), 1);
    }

    #[test]
    fn repetitions_and_losses_are_counted() {
        let (mut tracker, now) = (tracker(), Instant::now());
        assert_eq!(tracker.wrong(), 0);
        tracker.arrived(&report(0, None, 10), now);
        tracker.arrived(&report(0, Some(0), 1_000), now);
        assert_eq!(tracker.counts.repeated, 2);
        tracker.emitted(0, 30, states([1, 0]), now, true);
        tracker.arrived(&report(0, None, 30), now);
        assert_eq!((tracker.pending(), tracker.wrong()), (1, 1));
        assert_eq!((tracker.give_up(), tracker.pending()), (1, 0));
        assert!(!tracker.is_busy(0));
    }
}
