//! The course of a demo: events at their pace, an outage in the middle, then waiting for the last report.

use std::collections::BTreeMap;
use std::time::Duration;

use indicatif::ProgressBar;
use loadtest_judge::oracle::{self, Expected};
use loadtest_judge::screen::{bar, is_live, say};
use loadtest_sim::PATIENCE;
use loadtest_sim::fault::{Fault, Rule};
use loadtest_sim::platform_process::PlatformProcess;
use loadtest_sim::reporter::Reporter;
use loadtest_sim::{Player, Simulation};
use tokio::time::{Instant, sleep};

use super::platform::applications;
use super::{Args, Outcome};

/// How late Argo CD answers, and how late while it is in trouble.
pub(super) const LATENCY: Duration = Duration::from_millis(20);
const SLOW: Duration = Duration::from_millis(300);
/// The longest pause between two events.
const PAUSE: Duration = Duration::from_secs(1);
/// How often the reporter is looked at.
const LOOK: Duration = Duration::from_millis(250);
/// How often a line is printed where nothing can be drawn.
const EVERY: Duration = Duration::from_secs(1);
/// How long the platform and Argo CD are in trouble.
const OUTAGE: Duration = Duration::from_secs(2);

/// Everything a demo is about.
pub(super) struct Story<'a> {
    pub(super) simulation: &'a Simulation,
    pub(super) reporter: &'a Reporter,
    pub(super) expected: &'a [Expected],
    pub(super) args: &'a Args,
    /// The platform that keeps it, and the token that it is reported with.
    pub(super) platform: (&'a PlatformProcess, &'a str),
}

/// What is shown while it runs: on a terminal a line that is drawn again, elsewhere a line each second.
struct Show {
    began: Instant,
    bar: ProgressBar,
}

impl Show {
    fn say(&self, text: &str) {
        let text = format!("{:6.1}s  {text}", self.began.elapsed().as_secs_f64());
        if is_live() { self.bar.println(text) } else { say(&text) }
    }
}

impl Story<'_> {
    /// Plays everything and waits for what must come of it.
    pub(super) async fn tell(&self, player: Player) -> anyhow::Result<Outcome> {
        self.reporter.ready(PATIENCE).await?;
        let show = Show { began: Instant::now(), bar: bar(player.remaining() as u64, "events") };
        let looking = async {
            let mut told = Instant::now();
            loop {
                self.look(&show, &mut told).await?;
                sleep(LOOK).await;
            }
        };
        let settled = async {
            let events = self.play(player, &show).await?;
            anyhow::Ok((self.settle(events.values().sum()).await?, events))
        };
        let (differences, events) = tokio::select! {
            ended = looking => return ended,
            settled = settled => settled?,
        };
        show.bar.finish_and_clear();
        let metrics = self.reporter.metrics().await?;
        let parked = self.reporter.status().await?.total.parked;
        let (kept, token) = self.platform;
        let shown = applications(kept, token).await?;
        let platform = &self.simulation.platform;
        let retried = metrics.sum("gitops_runtime_reports_total", &[("result", "retried")]);
        Ok(Outcome::of(
            platform,
            self.expected,
            &events,
            &differences,
            (parked, retried),
            show.began.elapsed(),
            shown,
        ))
    }

    /// Gives how many events of each application were played.
    async fn play(&self, mut player: Player, show: &Show) -> anyhow::Result<BTreeMap<String, u64>> {
        let mut events = BTreeMap::new();
        let half = player.remaining() / 2;
        let mut outage = None;
        while let Some(gap) = player.gap() {
            if self.args.speed > 0.0 {
                sleep(gap.div_f64(self.args.speed).min(PAUSE)).await;
            }
            if let Some(key) = player.step(&self.simulation.kube)? {
                *events.entry(key.name().to_owned()).or_default() += 1;
                show.bar.inc(1);
            }
            if player.remaining() == half && !self.args.no_fault {
                outage = Some(self.begin_outage(show));
            }
            // Something is to have met it.
            if outage.is_some_and(|end| Instant::now() >= end) && self.simulation.platform.faults().hits() > 0
            {
                outage = None;
                self.end_outage(show);
            }
        }
        if let Some(end) = outage {
            tokio::time::sleep_until(end).await;
            while self.simulation.platform.faults().hits() == 0 && end.elapsed() < PATIENCE {
                sleep(LOOK).await;
            }
            self.end_outage(show);
        }
        Ok(events)
    }

    fn begin_outage(&self, show: &Show) -> Instant {
        show.say("the platform answers 503 for two seconds, and Argo CD is slow");
        self.simulation.platform.faults().add(Rule::always(Fault::Status { status: 503, retry_after: None }));
        self.simulation.argocd.faults().set_latency(SLOW);
        Instant::now() + OUTAGE
    }

    fn end_outage(&self, show: &Show) {
        self.simulation.platform.faults().clear();
        self.simulation.argocd.faults().set_latency(LATENCY);
        show.say("the outage is over");
    }

    /// Waits until the reporter has taken in every event, holds none, and the platform knows all that must be
    /// known; then, or when patience ends, gives what it does not know.
    async fn settle(&self, events: u64) -> anyhow::Result<Vec<oracle::Difference>> {
        let deadline = Instant::now() + Duration::from_secs(self.args.patience);
        loop {
            let total = self.reporter.status().await?.total;
            let over = Instant::now() > deadline;
            if over || (total.idle() && total.observed >= events) {
                let differences = oracle::check(self.expected, &self.simulation.platform.last());
                if differences.is_empty() || over {
                    return Ok(differences);
                }
            }
            sleep(LOOK).await;
        }
    }

    /// Shows the newest figures.
    async fn look(&self, show: &Show, told: &mut Instant) -> anyhow::Result<()> {
        let status = self.reporter.status().await?;
        let (total, totals) = (status.total, self.simulation.platform.totals());
        let text = format!(
            "observed {} reported {} + {} resources coalesced {} filtered {} waiting {} retried {} circuit {}",
            total.observed,
            totals.applications,
            totals.resources,
            total.coalesced,
            total.filtered,
            total.waiting + total.dirty,
            total.retried,
            status.circuit.state
        );
        if is_live() {
            show.bar.set_message(text);
        } else if told.elapsed() >= EVERY {
            *told = Instant::now();
            show.say(&text);
        }
        Ok(())
    }
}
