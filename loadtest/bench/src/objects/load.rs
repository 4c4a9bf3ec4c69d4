//! The objects in the simulated cluster, who changes them, and windows of changes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio::time::sleep_until;

use loadtest_sim::Simulation;
use loadtest_sim::generate::{WorkloadShape, Workloads};
use loadtest_sim::reporter::{Reporter, Usage};

use super::PATIENCE;
use super::heard::{Change, Counts, Heard};
use crate::times::Times;
use crate::watch::{Seen, while_it_moves};
use crate::windows::{Schedule, WARM_UP};

/// How often another object is drawn when a change of the drawn one is not known yet.
const DRAWS: u32 = 64;
/// Between two looks while something is waited for.
const LOOK: Duration = Duration::from_millis(20);
/// Decides which objects change.
const SEED: u64 = 1;

/// The objects of one cluster.
pub(super) struct Objects<'a> {
    simulation: &'a Simulation,
    workloads: Arc<Workloads>,
    heard: Arc<Mutex<Heard>>,
    chance: fastrand::Rng,
    /// Objects that are worth no report.
    pub(super) idle: u64,
}

/// What is changed in a window: so many objects a second, and one so often beside them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Changes {
    pub(super) rate: f64,
    pub(super) hot: Option<f64>,
    pub(super) length: Duration,
}

/// What came of it.
pub(super) struct Window {
    /// Changes that were made, and those that are known by then.
    pub(super) made: u64,
    pub(super) known: u64,
    /// Of those, known only through a newer state.
    pub(super) coalesced: u64,
    /// Changes that never came to be known, those of the warm-up too.
    pub(super) lost: u64,
    pub(super) length: Duration,
    /// Processor seconds of the reporter, and of the simulators with whoever changes objects.
    pub(super) cpu: f64,
    pub(super) own_cpu: f64,
    /// Reads of single objects at the API server.
    pub(super) reads: u64,
    pub(super) latencies: Times,
}

/// All counters at one moment.
struct Mark {
    at: Instant,
    counts: Counts,
    usage: Usage,
    own: Usage,
    reads: u64,
}

impl<'a> Objects<'a> {
    /// Puts all of them into the cluster, and hears of their reports from now on.
    pub(super) fn new(simulation: &'a Simulation, shape: WorkloadShape) -> anyhow::Result<Self> {
        let workloads = Arc::new(Workloads::new(shape)?);
        let mut heard = Heard::new()?;
        let mut idle = 0;
        for workload in workloads.all() {
            let version = simulation.kube.apply_workload(&workloads, workload)?;
            if workloads.is_idle(workload) {
                idle += 1;
            } else {
                heard.add(workload, version);
            }
        }
        let heard = Arc::new(Mutex::new(heard));
        let own = heard.clone();
        simulation.platform.look_on(move |arrived| {
            if !arrived.duplicate {
                // A time that cannot be counted is longer than any run.
                let _ = lock(&own).arrived(arrived.report, Instant::now());
            }
        });
        Ok(Self { simulation, workloads, heard, chance: fastrand::Rng::with_seed(SEED), idle })
    }

    pub(super) fn heard(&self) -> MutexGuard<'_, Heard> {
        lock(&self.heard)
    }

    /// Waits until each was reported that is worth it, or no report comes any more.
    pub(super) async fn first_reports(&self, reporter: &Reporter) -> anyhow::Result<()> {
        let look = || {
            // One that has ended will report nothing.
            reporter.usage()?;
            let Counts { followed, first, .. } = self.heard().counts;
            Ok(Seen { at: first, is_over: first == followed })
        };
        while_it_moves(PATIENCE, LOOK, look).await.map(drop)
    }

    /// Changes objects for a while, and waits until all that was made is known and the reporter is at rest.
    pub(super) async fn change(&mut self, reporter: &Reporter, changes: Changes) -> anyhow::Result<Window> {
        self.heard().take_latencies()?;
        let mut others = Schedule::new(changes.rate);
        let mut hot = changes.hot.map(Schedule::new);
        let counted_from = Instant::now() + WARM_UP.min(changes.length);
        let mut from = None;
        let to = loop {
            let now = Instant::now();
            if from.is_none() && now >= counted_from {
                from = Some(self.mark(reporter)?);
            }
            if now >= counted_from + changes.length {
                break self.mark(reporter)?;
            }
            let hot_due = hot.as_ref().map(Schedule::due).filter(|due| *due < others.due());
            let due = hot_due.unwrap_or_else(|| others.due());
            let look = now + LOOK;
            sleep_until(due.min(look).into()).await;
            if due > look {
                continue;
            }
            let change = Change { due, is_timed: from.is_some(), is_hot: hot_due.is_some() };
            if change.is_hot {
                self.make(self.hot(), change)?;
                hot.iter_mut().for_each(Schedule::next);
            } else {
                let place = self.drawn()?;
                self.make(place, change)?;
                others.next();
            }
        };
        let from = from.context("a window that has begun")?;
        let lost = self.settle(reporter).await?;
        let latencies = self.heard().take_latencies()?;
        Ok(Window {
            made: to.counts.made - from.counts.made,
            known: to.counts.known() - from.counts.known(),
            coalesced: to.counts.coalesced - from.counts.coalesced,
            lost,
            length: to.at - from.at,
            cpu: to.usage.cpu - from.usage.cpu,
            own_cpu: to.own.cpu - from.own.cpu,
            reads: to.reads - from.reads,
            latencies,
        })
    }

    /// Events and reports of so many objects, as they would be after one change more.
    pub(super) fn texts(&self, most: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
        let heard = self.heard();
        let every = (heard.counts.followed as usize / most.max(1)).max(1);
        let states = (0..).step_by(every).map_while(|place| heard.next(place));
        let texts = |workload| {
            let mut object = Vec::new();
            self.workloads.render(&workload, 1_000_000, &mut object);
            let [event, report] = [&b"{\"type\":\"MODIFIED\",\"object\":"[..], b"{\"data\":{\"object\":"];
            ([event, &object, b"}"].concat(), [report, &object, b"}}"].concat())
        };
        states.take(most).map(texts).collect()
    }

    /// Waits until all is known and nothing is worked on, or nothing moves any more; how many changes are lost then.
    async fn settle(&self, reporter: &Reporter) -> anyhow::Result<u64> {
        let look = || {
            let pending = self.heard().pending();
            Ok(Seen { at: pending, is_over: pending == 0 })
        };
        while_it_moves(PATIENCE, LOOK, look).await?;
        reporter.wait(PATIENCE, "the reporter to be at rest", |status| status.total.idle()).await?;
        Ok(self.heard().give_up())
    }

    /// The one that is hot where one is: the last, which is a Workflow where there are any.
    fn hot(&self) -> usize {
        (self.heard().counts.followed as usize).saturating_sub(1)
    }

    /// An object that is not hot, and of which no change is under way if one can be found.
    fn drawn(&mut self) -> anyhow::Result<usize> {
        let heard = lock(&self.heard);
        let count = heard.counts.followed as usize;
        anyhow::ensure!(count > 1, "there are too few objects to change");
        let mut place = self.chance.usize(..count - 1);
        for _ in 0..DRAWS {
            if !heard.is_busy(place) {
                break;
            }
            place = self.chance.usize(..count - 1);
        }
        Ok(place)
    }

    fn make(&self, place: usize, change: Change) -> anyhow::Result<()> {
        // Held until the change is written down: its report may come before this function returns.
        let mut heard = self.heard();
        let workload = heard.next(place).context("change an object")?;
        let version = self.simulation.kube.apply_workload(&self.workloads, workload)?;
        heard.made(place, workload, version, change);
        Ok(())
    }

    fn mark(&self, reporter: &Reporter) -> anyhow::Result<Mark> {
        Ok(Mark {
            at: Instant::now(),
            counts: self.heard().counts,
            usage: reporter.usage()?,
            own: Usage::own(),
            reads: self.simulation.kube.counts().gets,
        })
    }
}

fn lock(heard: &Mutex<Heard>) -> MutexGuard<'_, Heard> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}
