//! Steady changes: as many as are reported (closed loop), or at a given rate (open loop).

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tokio::time::{sleep, sleep_until, timeout};

use super::drive::Driver;
use super::track::Counts;
use crate::reporter::{Reporter, Usage};
use crate::screen::bar;

/// Before a window, so that connections and caches are there.
const WARM_UP: Duration = Duration::from_secs(3);
/// The longest wait for the last reports after a window.
const DRAIN: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(50);

/// What a window of steady changes came to.
#[derive(Debug, Clone)]
pub struct Steady {
    /// Changes a second that were asked for; `None` in closed loop.
    pub rate: Option<f64>,
    /// Changes that were acknowledged in their own state within the window.
    pub done: u64,
    /// Changes known only through a newer state.
    pub coalesced: u64,
    /// Changes made in this phase that were never reported.
    pub lost: u64,
    /// How long the window was.
    pub window: Duration,
    /// Calls to Argo CD within the window.
    pub calls: u64,
    /// Reports that were taken within the window.
    pub reports: u64,
    /// Processor seconds of the reporter within the window.
    pub cpu: f64,
    /// Processor seconds of simulators and driver within the window.
    pub own_cpu: f64,
    /// Microseconds from the moment a change was due to the acknowledgement of its last report.
    pub latencies: Histogram<u64>,
}

impl Steady {
    /// Changes a second.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        self.done as f64 / self.window.as_secs_f64()
    }

    /// Calls to Argo CD for each change.
    #[must_use]
    pub fn calls_per_change(&self) -> f64 {
        self.calls as f64 / (self.done + self.coalesced).max(1) as f64
    }

    /// A quantile of the latencies in milliseconds.
    #[must_use]
    pub fn milliseconds(&self, quantile: f64) -> f64 {
        super::track::milliseconds(&self.latencies, quantile)
    }
}

/// Keeps so many changes under way, each of another application: the next is made when one is done with.
///
/// # Errors
/// When the reporter ends.
pub(super) async fn closed(
    driver: &mut Driver<'_>,
    reporter: &Reporter,
    outstanding: u32,
    window: Duration,
) -> anyhow::Result<Steady> {
    let places = driver.places.clone();
    places.forget_permits(usize::MAX);
    places.add_permits(outstanding as usize);
    let mut phase = Phase::new(driver, reporter, window, "closed loop", None)?;
    while phase.goes_on(driver)? {
        // Woken once a look, so that a reporter that stands still is noticed.
        if let Ok(place) = timeout(LOOK, places.acquire()).await {
            place?.forget();
            driver.change(Instant::now(), phase.timed())?;
        }
    }
    phase.finish(driver).await
}

/// Makes `rate` changes a second, reported or not. Latency counts from the moment a change was due, so that one
/// that was made late is not flattered.
///
/// # Errors
/// When the reporter ends.
pub(super) async fn open(
    driver: &mut Driver<'_>,
    reporter: &Reporter,
    rate: f64,
    window: Duration,
) -> anyhow::Result<Steady> {
    let mut phase = Phase::new(driver, reporter, window, "open loop", Some(rate))?;
    let began = Instant::now();
    let mut number = 0_u32;
    while phase.goes_on(driver)? {
        number += 1;
        let due = began + Duration::from_secs_f64(f64::from(number) / rate);
        sleep_until(due.into()).await;
        driver.change(due, phase.timed())?;
    }
    phase.finish(driver).await
}

/// One phase: a warm-up, a measured window, and the wait for the last reports.
struct Phase<'a> {
    reporter: &'a Reporter,
    began: Instant,
    looked: Instant,
    window: Duration,
    rate: Option<f64>,
    progress: indicatif::ProgressBar,
    from: Option<Mark>,
    to: Option<Mark>,
}

/// All counters at one moment.
#[derive(Clone, Copy)]
struct Mark {
    at: Instant,
    counts: Counts,
    calls: u64,
    reports: u64,
    usage: Usage,
    own: Usage,
}

impl Mark {
    fn of(driver: &Driver<'_>, reporter: &Reporter) -> anyhow::Result<Self> {
        Ok(Self {
            at: Instant::now(),
            counts: driver.counts(),
            calls: driver.simulation.argocd.calls(),
            reports: driver.simulation.platform.totals().taken,
            usage: reporter.usage()?,
            own: Usage::own(),
        })
    }
}

impl<'a> Phase<'a> {
    fn new(
        driver: &Driver<'_>,
        reporter: &'a Reporter,
        window: Duration,
        about: &str,
        rate: Option<f64>,
    ) -> anyhow::Result<Self> {
        driver.take_latencies()?;
        let now = Instant::now();
        let progress = bar((WARM_UP + window).as_secs(), about);
        Ok(Self { reporter, began: now, looked: now, window, rate, progress, from: None, to: None })
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
            self.reporter.usage()?;
            self.progress.set_position(now.duration_since(self.began).as_secs());
        }
        match self.from {
            None if now >= self.began + WARM_UP => self.from = Some(Mark::of(driver, self.reporter)?),
            Some(from) if now >= from.at + self.window => {
                self.to = Some(Mark::of(driver, self.reporter)?);
                return Ok(false);
            }
            _ => {}
        }
        Ok(true)
    }

    /// Waits for the reports of what is still under way.
    async fn finish(self, driver: &Driver<'_>) -> anyhow::Result<Steady> {
        let deadline = Instant::now() + DRAIN;
        while driver.pending() > 0 && Instant::now() < deadline {
            self.reporter.usage()?;
            sleep(LOOK).await;
        }
        self.progress.finish_and_clear();
        let lost = driver.give_up();
        let now = Mark::of(driver, self.reporter)?;
        let (from, to) = (self.from.unwrap_or(now), self.to.unwrap_or(now));
        Ok(Steady {
            rate: self.rate,
            done: to.counts.done - from.counts.done,
            coalesced: to.counts.coalesced - from.counts.coalesced,
            lost,
            window: to.at - from.at,
            calls: to.calls - from.calls,
            reports: to.reports - from.reports,
            cpu: to.usage.cpu - from.usage.cpu,
            own_cpu: to.own.cpu - from.own.cpu,
            latencies: driver.take_latencies()?,
        })
    }
}
