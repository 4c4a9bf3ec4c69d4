//! Makes changes and hears of their reports.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anyhow::Context as _;
use hdrhistogram::Histogram;
use tokio::sync::Semaphore;

use super::track::{Counts, Tracker};
use crate::sim::Simulation;
use crate::sim::generate::{Change, Fleet};
use crate::sim::kube::Collection;
use crate::sim::platform::Parsed;

/// One change in so many brings a new revision.
const REVISION_EVERY: u32 = 10;
/// How often another application is drawn when the drawn one is still under way.
const DRAWS: u32 = 64;

/// The one who makes changes.
pub(super) struct Driver<'a> {
    pub(super) simulation: &'a Simulation,
    fleet: Arc<Fleet>,
    tracker: Arc<Mutex<Tracker>>,
    /// Places for changes under way; one comes back with each change that is done with.
    pub(super) places: Arc<Semaphore>,
    chance: fastrand::Rng,
}

impl<'a> Driver<'a> {
    /// Takes every application in the state that it is in, and what was reported of it so far.
    pub(super) fn new(simulation: &'a Simulation, seed: u64) -> anyhow::Result<Self> {
        let fleet = simulation.fleet.clone().context("the simulation generates no applications")?;
        let mut states = Vec::new();
        for state in fleet.snapshot() {
            let key = fleet.key(state.index)?;
            let version = simulation.kube.version_of(Collection::Applications, &key);
            states.push((version.context("find a generated application")?, state.resources));
        }
        let mut tracker = Tracker::new(states.into_iter())?;
        for (entity, last) in simulation.platform.last() {
            let parent = String::new();
            tracker.arrived(&Parsed { entity, parent, uid: last.uid, version: last.version }, Instant::now());
        }
        let tracker = Arc::new(Mutex::new(tracker));
        let places = Arc::new(Semaphore::new(0));
        let (own, back) = (tracker.clone(), places.clone());
        simulation.platform.look_on(move |arrived| {
            if !arrived.duplicate {
                let done = lock(&own).arrived(arrived.report, Instant::now());
                back.add_permits(done);
            }
        });
        Ok(Self { simulation, fleet, tracker, places, chance: fastrand::Rng::with_seed(seed) })
    }

    /// Makes one change that was due at `due`, to an application that has none under way if one can be found.
    ///
    /// # Errors
    /// When the application cannot be named.
    pub(super) fn change(&mut self, due: Instant, timed: bool) -> anyhow::Result<()> {
        // Held until the change is written down: its reports may come before this function returns.
        let mut tracker = lock(&self.tracker);
        let count = tracker.len();
        let mut index = self.chance.usize(0..count);
        for _ in 0..DRAWS {
            if !tracker.is_busy(index) {
                break;
            }
            index = self.chance.usize(0..count);
        }
        let change = if self.chance.u32(0..REVISION_EVERY) == 0 { Change::Commit } else { Change::Drift };
        let number = u32::try_from(index).context("number an application")?;
        let changed = self.fleet.change_one(number, change, &mut self.chance);
        let state = changed.context("change an application")?.state;
        let version = self.simulation.kube.apply_generated(&self.fleet.key(number)?, state.clone());
        tracker.emitted(index, version, state.resources, due, timed);
        Ok(())
    }

    /// How many changes were made and what became of them.
    pub(super) fn counts(&self) -> Counts {
        lock(&self.tracker).counts
    }

    /// How many changes are under way.
    pub(super) fn pending(&self) -> u64 {
        lock(&self.tracker).pending()
    }

    /// Latencies of the timed changes since the last call.
    pub(super) fn take_latencies(&self) -> anyhow::Result<Histogram<u64>> {
        lock(&self.tracker).take_latencies()
    }

    /// Gives up what is under way; how many changes that were.
    pub(super) fn give_up(&self) -> u64 {
        lock(&self.tracker).give_up()
    }

    /// Reports of a state that had been reported before.
    pub(super) fn repeated(&self) -> u64 {
        self.counts().repeated
    }

    /// Applications and resources whose newest report is not their newest state.
    pub(super) fn wrong(&self) -> u64 {
        lock(&self.tracker).wrong()
    }

    /// Applications that are, with all their resources, not known in their newest state.
    pub(super) fn applications_wrong(&self) -> usize {
        lock(&self.tracker).applications_wrong()
    }
}

fn lock(tracker: &Mutex<Tracker>) -> MutexGuard<'_, Tracker> {
    tracker.lock().unwrap_or_else(PoisonError::into_inner)
}
