//! Windows of changes: as many as are reported (closed loop), or at a rate (open loop).

use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use tokio::time::{sleep_until, timeout};

use super::drive::Driver;
use super::scenario::{Changes, Rate};
use super::subject::Running;
use super::times::Times;
use super::track::Counts;
use super::watch::{Seen, while_it_moves};
use loadtest_judge::screen::bar;
use loadtest_sim::Simulation;
use loadtest_sim::argocd::Kind;
use loadtest_sim::reporter::Usage;

/// Before a window, so that connections and caches are there; no longer than the window itself.
pub(super) const WARM_UP: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(50);

/// What one window came to.
#[derive(Debug, Clone)]
pub(super) struct Window {
    /// Changes a second that were asked for; `None` in closed loop.
    pub(super) rate: Option<f64>,
    /// One application was hot.
    pub(super) hot: bool,
    /// Changes that were acknowledged in their own state.
    pub(super) done: u64,
    /// Changes known only through a newer state.
    pub(super) coalesced: u64,
    /// Changes that were worth no report.
    pub(super) empty: u64,
    /// Changes, those of the warm-up too, that were never reported.
    pub(super) lost: u64,
    /// How long it was.
    pub(super) length: Duration,
    /// Processor seconds of the reporter.
    pub(super) cpu: f64,
    /// Processor seconds of simulators and driver.
    pub(super) own_cpu: f64,
    /// What it took altogether.
    pub(super) work: Work,
    /// From the moment a change was due to the acknowledgement of its last report; not those of the hot
    /// application.
    pub(super) latencies: Times,
}

/// What the changes of a window took, from before its warm-up until the last one was reported: no change is under way at
/// either end, so that nothing belongs to a change that is not counted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work {
    /// Changes that the platform knows.
    pub(super) known: u64,
    /// Changes that were worth no report.
    pub(super) empty: u64,
    /// Calls to Argo CD, those for the metadata of commits apart.
    pub(super) calls: u64,
    /// Calls for the metadata of commits.
    pub(super) commit_calls: u64,
    /// New commits.
    pub(super) commits: u64,
    /// Reads of single objects at the API server.
    pub(super) reads: u64,
    /// Reports that were taken.
    pub(super) reports: u64,
}

impl Window {
    /// Changes that are known to the platform.
    pub(super) fn known(&self) -> u64 {
        self.done + self.coalesced
    }

    /// Changes a second.
    pub(super) fn per_second(&self) -> f64 {
        self.done as f64 / self.length.as_secs_f64()
    }

    /// A quantile of the latencies in milliseconds; `None` where nothing was timed.
    pub(super) fn milliseconds(&self, quantile: f64) -> Option<f64> {
        (self.latencies.count() > 0).then(|| self.latencies.quantile(quantile).as_secs_f64() * 1_000.0)
    }
}

/// Who makes changes, and who is to report them.
pub(super) struct Field<'a> {
    pub(super) simulation: &'a Simulation,
    pub(super) running: &'a Running,
    /// What does not move for so long is given up.
    pub(super) patience: Duration,
}

/// Makes the changes of one window, or of pairs of them.
pub(super) async fn play(
    field: &Field<'_>,
    driver: &mut Driver<'_>,
    changes: &Changes,
    before: &[Window],
) -> anyhow::Result<Vec<Window>> {
    let maximum = before.iter().rev().find(|window| window.rate.is_none()).map(Window::per_second);
    let rate = match changes.rate {
        Rate::Max => None,
        // Nothing can be timed where nothing was reported at all.
        Rate::Half => Some((maximum.unwrap_or_default() / 2.0).max(1.0)),
        Rate::PerSecond(rate) => Some(rate),
    };
    let hot: Vec<Option<f64>> = match (changes.hot, changes.pairs) {
        (hot @ Some(_), Some(pairs)) => (0..pairs).flat_map(|_| [None, hot]).collect(),
        (hot, _) => vec![hot],
    };
    let mut windows = Vec::new();
    for hot in hot {
        windows.push(match rate {
            None => closed(field, driver, changes).await?,
            Some(rate) => open(field, driver, changes, rate, hot).await?,
        });
    }
    Ok(windows)
}

/// Keeps so many changes under way, each of another application: the next is made when one is done with.
async fn closed(field: &Field<'_>, driver: &mut Driver<'_>, changes: &Changes) -> anyhow::Result<Window> {
    let places = driver.places.clone();
    places.forget_permits(usize::MAX);
    places.add_permits(changes.outstanding as usize);
    let mut phase = Phase::new(field, driver, changes, None, false)?;
    while phase.goes_on(driver)? {
        // Woken once a look, so that a reporter that stands still is noticed.
        if let Ok(place) = timeout(LOOK, places.acquire()).await {
            place?.forget();
            driver.change(Instant::now(), phase.timed())?;
        }
    }
    phase.finish(driver).await
}

/// Makes `rate` changes a second, and `hot` of the hot application, reported or not. Latency counts from the moment a
/// change was due, so that one that was made late is not flattered.
async fn open(
    field: &Field<'_>,
    driver: &mut Driver<'_>,
    changes: &Changes,
    rate: f64,
    hot: Option<f64>,
) -> anyhow::Result<Window> {
    let mut phase = Phase::new(field, driver, changes, Some(rate), hot.is_some())?;
    let mut others = Schedule::new(rate);
    let mut hot = hot.map(Schedule::new);
    while phase.goes_on(driver)? {
        let hot_due = hot.as_ref().map(Schedule::due);
        let is_hot = hot_due.is_some_and(|due| due < others.due());
        let due = hot_due.filter(|_| is_hot).unwrap_or_else(|| others.due());
        let look = Instant::now() + LOOK;
        sleep_until(due.min(look).into()).await;
        if due > look {
            continue;
        }
        if is_hot {
            driver.change_hot(due)?;
            hot.iter_mut().for_each(Schedule::next);
        } else {
            driver.change(due, phase.timed())?;
            others.next();
        }
    }
    if hot.is_some() {
        driver.end_hot()?;
    }
    phase.finish(driver).await
}

/// When changes are due, whatever becomes of them.
pub(super) struct Schedule {
    began: Instant,
    rate: f64,
    number: u32,
}

impl Schedule {
    pub(super) fn new(rate: f64) -> Self {
        Self { began: Instant::now(), rate, number: 1 }
    }

    pub(super) fn due(&self) -> Instant {
        self.began + Duration::from_secs_f64(f64::from(self.number) / self.rate)
    }

    pub(super) fn next(&mut self) {
        self.number += 1;
    }
}

/// One window: a warm-up, what is measured, and the wait for the last reports.
struct Phase<'a> {
    field: &'a Field<'a>,
    began: Instant,
    looked: Instant,
    length: Duration,
    rate: Option<f64>,
    hot: bool,
    progress: ProgressBar,
    first: Mark,
    from: Option<Mark>,
    to: Option<Mark>,
}

/// All counters at one moment.
#[derive(Clone, Copy)]
struct Mark {
    at: Instant,
    counts: Counts,
    calls: u64,
    commit_calls: u64,
    commits: u64,
    reads: u64,
    reports: u64,
    usage: Usage,
    own: Usage,
}

impl Mark {
    fn of(field: &Field<'_>, driver: &Driver<'_>) -> anyhow::Result<Self> {
        let commit_calls = field.simulation.argocd.count(Kind::RevisionMetadata);
        Ok(Self {
            at: Instant::now(),
            counts: driver.heard().counts(),
            calls: field.simulation.argocd.calls() - commit_calls,
            commit_calls,
            commits: driver.commits(),
            reads: field.simulation.kube.counts().gets,
            reports: field.simulation.platform.totals().taken,
            usage: field.running.usage()?,
            own: Usage::own(),
        })
    }
}

impl<'a> Phase<'a> {
    fn new(
        field: &'a Field<'a>,
        driver: &Driver<'_>,
        changes: &Changes,
        rate: Option<f64>,
        hot: bool,
    ) -> anyhow::Result<Self> {
        driver.take_latencies()?;
        let now = Instant::now();
        let length = Duration::from_secs_f64(changes.seconds);
        let about = match (rate, hot) {
            (None, _) => "closed loop",
            (_, false) => "open loop",
            (_, true) => "beside a hot application",
        };
        let progress = bar((WARM_UP.min(length) + length).as_secs(), about);
        let first = Mark::of(field, driver)?;
        Ok(Self { field, began: now, looked: now, length, rate, hot, progress, first, from: None, to: None })
    }

    /// Whether latencies count.
    fn timed(&self) -> bool {
        self.from.is_some()
    }

    /// Marks the window's ends as they come; `false` after the second.
    fn goes_on(&mut self, driver: &Driver<'_>) -> anyhow::Result<bool> {
        let now = Instant::now();
        if now.duration_since(self.looked) > LOOK {
            self.looked = now;
            self.progress.set_position(now.duration_since(self.began).as_secs());
        }
        match self.from {
            None if now >= self.began + WARM_UP.min(self.length) => {
                self.from = Some(Mark::of(self.field, driver)?);
            }
            Some(from) if now >= from.at + self.length => {
                let to = Mark::of(self.field, driver)?;
                // A machine that stood still for all of a short window would have nothing to be measured by.
                let is_measured = to.counts.done > from.counts.done || driver.heard().pending() == 0;
                if is_measured || now >= from.at + self.length + self.field.patience {
                    self.to = Some(to);
                    return Ok(false);
                }
            }
            _ => {}
        }
        Ok(true)
    }

    /// Waits for the reports of what is still under way.
    async fn finish(self, driver: &Driver<'_>) -> anyhow::Result<Window> {
        let look = || {
            let pending = driver.heard().pending();
            Ok(Seen { at: pending, is_over: pending == 0 })
        };
        while_it_moves(self.field.patience, LOOK, look).await?;
        self.progress.finish_and_clear();
        let lost = driver.give_up();
        let now = Mark::of(self.field, driver)?;
        let (from, mut to) = (self.from.unwrap_or(now), self.to.unwrap_or(now));
        let length = to.at - from.at;
        let mut last = now;
        if last.counts.known() == self.first.counts.known() {
            // What is done about a refresh is seen nowhere: it is done when nothing is left to do.
            self.field.running.settle(self.field.patience).await?;
            last = Mark::of(self.field, driver)?;
            to = last;
        }
        Ok(Window {
            rate: self.rate,
            hot: self.hot,
            done: to.counts.done - from.counts.done,
            coalesced: to.counts.coalesced - from.counts.coalesced,
            empty: to.counts.empty - from.counts.empty,
            lost,
            length,
            cpu: to.usage.cpu - from.usage.cpu,
            own_cpu: to.own.cpu - from.own.cpu,
            work: Work {
                known: last.counts.known() - self.first.counts.known(),
                empty: last.counts.empty - self.first.counts.empty,
                calls: last.calls - self.first.calls,
                commit_calls: last.commit_calls - self.first.commit_calls,
                commits: last.commits - self.first.commits,
                reads: last.reads - self.first.reads,
                reports: last.reports - self.first.reports,
            },
            latencies: driver.take_latencies()?,
        })
    }
}
