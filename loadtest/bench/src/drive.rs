//! Makes changes and hears of their reports.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anyhow::Context as _;
use tokio::sync::Semaphore;

use super::scenario::Scenario;
use super::times::Times;
use super::track::{Counts, Emitted, Tracker, content};
use loadtest_sim::Simulation;
use loadtest_sim::generate::{Change, Fleet, Mix};

/// How often another application is drawn when the drawn one is still under way.
const DRAWS: u32 = 64;
/// The application that is hot where one is.
const HOT: usize = 0;

/// What became of the changes; shared with whoever looks on.
#[derive(Debug, Clone)]
pub(super) struct Heard(Arc<Mutex<Tracker>>);

impl Heard {
    fn tracker(&self) -> MutexGuard<'_, Tracker> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many changes were made and what became of them.
    pub(super) fn counts(&self) -> Counts {
        self.tracker().counts
    }

    /// How many changes are under way.
    pub(super) fn pending(&self) -> u64 {
        self.tracker().pending()
    }
}

/// The one who makes changes.
pub(super) struct Driver<'a> {
    simulation: &'a Simulation,
    fleet: Arc<Fleet>,
    heard: Heard,
    /// Places for changes under way; one comes back with each change that is done with.
    pub(super) places: Arc<Semaphore>,
    chance: fastrand::Rng,
    mix: Mix,
    count: usize,
    /// The first of them that is not hot.
    first: usize,
    commits: u64,
}

impl<'a> Driver<'a> {
    /// Looks on from now on; no application is there yet.
    pub(super) fn new(simulation: &'a Simulation, scenario: &Scenario) -> anyhow::Result<Self> {
        let fleet = simulation.fleet.clone().context("the simulation generates no applications")?;
        let heard = Heard(Arc::new(Mutex::new(Tracker::new()?)));
        let places = Arc::new(Semaphore::new(0));
        let (own, back) = (heard.clone(), places.clone());
        simulation.platform.look_on(move |arrived| {
            if !arrived.duplicate {
                let content = content(arrived.payload);
                let done = own.tracker().arrived(arrived.report, content, Instant::now());
                back.add_permits(done);
            }
        });
        Ok(Self {
            simulation,
            fleet,
            heard,
            places,
            chance: fastrand::Rng::with_seed(scenario.seed),
            mix: scenario.mix,
            count: 0,
            first: if scenario.has_hot() { HOT + 1 } else { 0 },
            commits: 0,
        })
    }

    /// Lets every application arrive.
    pub(super) fn populate(&mut self) -> anyhow::Result<()> {
        for state in self.fleet.snapshot() {
            let resources = state.resources.clone();
            let key = self.fleet.key(state.index)?;
            // Held until it is written down: its reports may come before this function returns.
            let mut tracker = self.heard.tracker();
            let version = self.simulation.kube.apply_generated(&key, state);
            tracker.add(version, &resources);
            self.count += 1;
        }
        Ok(())
    }

    /// Makes one change that was due at `due`, to an application that has none under way if one can be found.
    pub(super) fn change(&mut self, due: Instant, timed: bool) -> anyhow::Result<()> {
        let mut index = self.chance.usize(self.first..self.count);
        {
            let tracker = self.heard.tracker();
            for _ in 0..DRAWS {
                if !tracker.is_busy(index) {
                    break;
                }
                index = self.chance.usize(self.first..self.count);
            }
        }
        self.make(index, self.mix, due, timed)
    }

    /// Makes one change to the hot application.
    pub(super) fn change_hot(&mut self, due: Instant) -> anyhow::Result<()> {
        self.make(HOT, Mix::default(), due, false)
    }

    /// Deploys the newest commit of the hot application, so that each of its resources is looked at once more: over states
    /// that were merged, a resource may have come back to the sync status and health that were reported, with another body.
    pub(super) fn end_hot(&mut self) -> anyhow::Result<()> {
        self.make(HOT, Mix { deploy: 1, ..Mix::NONE }, Instant::now(), false)
    }

    fn make(&mut self, index: usize, mix: Mix, due: Instant, timed: bool) -> anyhow::Result<()> {
        let change = mix.choose(&mut self.chance);
        self.commits += u64::from(matches!(change, Change::Commit | Change::Deploy));
        let number = u32::try_from(index).context("number an application")?;
        let changed =
            self.fleet.change_one(number, change, &mut self.chance).context("change an application")?;
        let (resources, reports) = (changed.state.resources.clone(), changed.reports);
        let key = self.fleet.key(number)?;
        // Held until the change is written down: its reports may come before this function returns.
        let mut tracker = self.heard.tracker();
        let version = self.simulation.kube.apply_generated(&key, changed.state);
        tracker.emitted(&Emitted { index, version, resources: &resources, reports, due, timed });
        if reports == 0 {
            self.places.add_permits(1);
        }
        Ok(())
    }

    /// What becomes of the changes.
    pub(super) fn heard(&self) -> &Heard {
        &self.heard
    }

    /// How many new commits were made.
    pub(super) fn commits(&self) -> u64 {
        self.commits
    }

    /// Latencies of the timed changes since the last call.
    pub(super) fn take_latencies(&self) -> anyhow::Result<Times> {
        self.heard.tracker().take_latencies()
    }

    /// Gives up what is under way; how many changes that were.
    pub(super) fn give_up(&self) -> u64 {
        self.heard.tracker().give_up()
    }

    /// Entities whose newest report is not their newest state.
    pub(super) fn wrong(&self) -> u64 {
        self.heard.tracker().wrong()
    }
}
