//! The course of a demo: events at their pace, an outage in the middle, then waiting for the last report.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::Args;
use super::board::Board;
use super::outcome::Outcome;
use super::show::Show;
use crate::oracle::{self, Expected};
use crate::reporter::Reporter;
use crate::sim::fault::{Fault, Rule};
use crate::sim::{Player, Simulation};

/// The longest pause between two events.
const PAUSE: Duration = Duration::from_secs(1);
/// How often the reporter is looked at.
const LOOK: Duration = Duration::from_millis(250);
/// How long the platform and Argo CD are in trouble.
const OUTAGE: Duration = Duration::from_secs(2);
/// How long the reporter may take to be ready.
const READY: Duration = Duration::from_secs(90);
/// How late Argo CD answers then.
const SLOW: Duration = Duration::from_millis(300);

/// Everything a demo is about.
pub(super) struct Story<'a> {
    pub(super) simulation: &'a Simulation,
    pub(super) reporter: &'a Reporter,
    pub(super) expected: &'a [Expected],
    pub(super) board: &'a Board,
    pub(super) args: &'a Args,
}

impl Story<'_> {
    /// Plays everything and waits for what must come of it.
    ///
    /// # Errors
    /// When an event cannot be played, or the reporter ends.
    pub(super) async fn tell(&self, player: Player) -> anyhow::Result<Outcome> {
        self.reporter.ready(READY).await?;
        let events = player.remaining() as u64;
        let show = Show::new(events, &self.board.rows());
        let began = Instant::now();
        let looking = async {
            loop {
                self.look(&show).await?;
                sleep(LOOK).await;
            }
        };
        tokio::select! {
            ended = looking => return ended,
            played = self.play(player, &show) => played?,
        }
        let differences = self.settle(events, &show).await?;
        show.done();
        let took = began.elapsed();
        let metrics = self.reporter.metrics().await?;
        let status = self.reporter.status().await?;
        Ok(Outcome::of(self, &differences, &metrics, &status, took))
    }

    async fn play(&self, mut player: Player, show: &Show) -> anyhow::Result<()> {
        let half = player.remaining() / 2;
        let mut outage = None;
        while let Some(gap) = player.gap() {
            if self.args.speed > 0.0 {
                sleep(gap.div_f64(self.args.speed).min(PAUSE)).await;
            }
            if let Some(key) = player.step(&self.simulation.kube)? {
                self.board.sent(key.name());
                show.played();
            }
            if player.remaining() == half && !self.args.no_fault {
                outage = Some(self.begin_outage(show));
            }
            if outage.is_some_and(|end| Instant::now() >= end) {
                outage = None;
                self.end_outage(show);
            }
        }
        if let Some(end) = outage {
            tokio::time::sleep_until(end).await;
            self.end_outage(show);
        }
        Ok(())
    }

    fn begin_outage(&self, show: &Show) -> Instant {
        show.notice("the platform answers 503 for two seconds, and Argo CD is slow");
        self.simulation.platform.faults().add(Rule::always(Fault::Status { status: 503, retry_after: None }));
        self.simulation.argocd.faults().set_latency(SLOW);
        Instant::now() + OUTAGE
    }

    fn end_outage(&self, show: &Show) {
        self.simulation.platform.faults().clear();
        self.simulation.argocd.faults().set_latency(Duration::from_millis(20));
        show.notice("the outage is over");
    }

    /// Waits until the reporter has taken in every event, holds none, and the platform knows all that must be
    /// known; then, or when patience ends, gives what it does not know.
    async fn settle(&self, events: u64, show: &Show) -> anyhow::Result<Vec<oracle::Difference>> {
        let deadline = Instant::now() + Duration::from_secs(self.args.patience);
        loop {
            let idle = self.look(show).await?;
            let seen = self.reporter.status().await?.total.observed >= events;
            if (idle && seen) || Instant::now() > deadline {
                let differences = oracle::check(self.expected, &self.simulation.platform.last());
                if differences.is_empty() || Instant::now() > deadline {
                    return Ok(differences);
                }
            }
            sleep(LOOK).await;
        }
    }

    /// Takes the newest figures; whether the reporter was idle.
    async fn look(&self, show: &Show) -> anyhow::Result<bool> {
        let before = self.reporter.status().await?;
        let metrics = self.reporter.metrics().await?;
        let after = self.reporter.status().await?;
        self.board.take(&before, &metrics, &after);
        show.draw(&self.board.rows(), &after);
        Ok(before.total.idle() && before.total == after.total)
    }
}
