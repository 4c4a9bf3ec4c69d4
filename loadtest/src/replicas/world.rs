//! The simulated peers, a NATS server and the replicas between them, and what the platform came to know.

use std::time::Duration;

use anyhow::bail;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::event::{Event, Stage};
use super::group::Group;
use super::{STALE, Setting};
use crate::faults::load::{Load, generated, small};
use loadtest_judge::outcome::{Counts, Outcome, seconds};
use loadtest_judge::truth::{self, Missing};
use loadtest_judge::witness::Witness;
use loadtest_sim::nats::NatsServer;
use loadtest_sim::platform::Keep;
use loadtest_sim::{Simulation, until};

/// Replicas before and after every event.
const REPLICAS: u32 = 3;
/// Resources of each application.
const RESOURCES: u32 = 3;
/// Changes a second, while something happens.
const RATE: f64 = 40.0;
/// So long changes go on after it.
const AFTER: f64 = 2.0;
/// How long the platform may take until it knows everything, after the first start and after an event: what waited
/// meanwhile is worked off on a machine that may be busy with other things.
const FIRST: Duration = Duration::from_secs(600);
const KNOWN_WITHIN: Duration = Duration::from_secs(300);
/// So long after a ledger was lost everything is reported again: an owner that knows nothing compares after 5 s, and, if
/// that fails, after 45 s more.
const AGAIN_WITHIN: Duration = Duration::from_secs(300);
/// So long nothing more may come once everything is known.
const QUIET: Duration = Duration::from_millis(600);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(300);
/// No shard may be without an owner for longer: its lease lapses after 10 s, and another replica claims it.
const OWNED_WITHIN: Duration = Duration::from_secs(15);
/// The same in the short form, which runs beside anything.
const OWNED_ON_A_BUSY_MACHINE: Duration = Duration::from_secs(120);
/// None that is handed over in order: sooner than its lease would have lapsed (10 s), less the time since it was renewed
/// (3 s).
const HANDED_OVER_WITHIN: Duration = Duration::from_secs(7);
/// How long an answer may take into the bucket of the ledger, on a machine that is busy with all of this.
const COMMITTED_WITHIN: Duration = Duration::from_secs(10);

/// Everything that runs.
#[derive(Debug)]
pub(super) struct World {
    simulation: Simulation,
    witness: Witness,
    load: Load,
    nats: NatsServer,
    pub(super) group: Group,
    chance: fastrand::Rng,
    is_long: bool,
}

impl World {
    /// Starts everything but the replicas.
    pub(super) async fn new(setting: &Setting) -> anyhow::Result<Self> {
        let shape = small(setting.applications, RESOURCES, setting.seed);
        let latencies = [2, 5].map(Duration::from_millis);
        let (simulation, witness, load) =
            generated(shape, latencies, Keep { last: true, reports: 0 }).await?;
        witness.lock().commit = Some(COMMITTED_WITHIN);
        let nats = NatsServer::start().await?;
        let group = Group::new(&setting.program, &simulation, &nats, &json!({"bus": {"ackWait": "3s"}}))?;
        let chance = fastrand::Rng::with_seed(setting.seed ^ 0x7265_706c);
        Ok(Self { simulation, witness, load, nats, group, chance, is_long: setting.is_long })
    }

    /// Starts the replicas; how long it took until every shard was owned and every application reported.
    pub(super) async fn begin(&mut self) -> anyhow::Result<Duration> {
        let began = Instant::now();
        self.group.add(REPLICAS).await?;
        self.group.settled(FIRST).await?;
        let missing = self.known(FIRST).await?;
        if let Some(first) = missing.told.first() {
            bail!("the first reports did not come, {} of them: {first}", missing.count);
        }
        Ok(began.elapsed())
    }

    /// Lets an event happen while applications change, waits until the platform knows everything, and judges.
    pub(super) async fn carry_out(&mut self, event: Event) -> anyhow::Result<Outcome> {
        let began = Instant::now();
        let (before, changes) = (Counts::of(&self.witness, &self.simulation.platform), self.load.changes);
        self.group.owners.begin();
        // Of an application that goes while nothing is remembered of it nobody could tell.
        self.load.keep_all(event == Event::Disk);
        let era = self.witness.era();
        let told = {
            let Self { simulation, witness, load, nats, group, chance, .. } = self;
            let platform = &simulation.platform;
            let mut stage = Stage { group, nats, witness, platform, chance };
            tokio::select! {
                told = event.strike(&mut stage) => told?,
                loaded = load.run(simulation, RATE) => {
                    loaded?;
                    bail!("the changes came to an end");
                }
            }
        };
        self.load.make(&self.simulation, (RATE * AFTER) as u64, RATE).await?;
        let unowned = self.group.owners.longest();
        let missing = self.known(KNOWN_WITHIN).await?;
        let mut outcome = Outcome::new(event.name(), told);
        if event == Event::Disk {
            self.came_again(era, &mut outcome).await?;
        }
        sleep(QUIET).await;
        outcome.drain = Some(began.elapsed());
        outcome.changes = self.load.changes - changes;
        self.judge(event, &mut outcome, before, unowned, missing).await;
        Ok(outcome)
    }

    /// Waits until every application was reported again, and no longer than [`AGAIN_WITHIN`]: after that, what is repeated
    /// has no excuse.
    async fn came_again(&self, era: u32, outcome: &mut Outcome) -> anyhow::Result<()> {
        let look = async || Ok(self.witness.not_again(era));
        let (count, name) = until(AGAIN_WITHIN, LOOK, look, |(count, _)| *count == 0).await?;
        outcome.demand(count == 0, || {
            let name = name.unwrap_or_default();
            format!("{count} applications were not reported again, {name} for one")
        });
        Ok(())
    }

    async fn judge(
        &mut self,
        event: Event,
        outcome: &mut Outcome,
        before: Counts,
        unowned: Duration,
        missing: Missing,
    ) {
        let counts = Counts::of(&self.witness, &self.simulation.platform).since(before);
        outcome.more = vec![
            ("owned again", seconds(unowned)),
            ("reports", counts.reports.to_string()),
            ("refused stale", counts.stale_refused.to_string()),
            (STALE, counts.stale_accepted.to_string()),
        ];
        let within = match event.hands_over() {
            _ if !self.is_long => OWNED_ON_A_BUSY_MACHINE,
            true => HANDED_OVER_WITHIN,
            false => OWNED_WITHIN,
        };
        outcome.demand(unowned <= within, || {
            format!("a shard was owned by nobody for longer than {} s", within.as_secs())
        });
        outcome.demand(event != Event::Pause || counts.stale_refused > 0, || {
            "no report of the replica that stood still was refused".to_owned()
        });
        outcome.demand(counts.stale_accepted == 0, || {
            format!("{} reports of owners that another had followed were taken", counts.stale_accepted)
        });
        outcome.demand(counts.unfenced == 0, || format!("{} reports named no epoch", counts.unfenced));
        let falsely = truth::false_ends(&self.witness, &self.load.ended);
        outcome.wrong.extend(falsely.told);
        let suspect = outcome.judge(counts, missing, &self.witness);
        if let Some(name) = suspect.or_else(|| falsely.names.first().cloned()) {
            outcome.wrong.push(self.group.explain(&name).await);
        }
        self.group.look();
        outcome.peak = self.group.usage().map_or(0, |usage| usage.peak);
        outcome.wrong.extend(std::mem::take(&mut self.group.panics));
    }

    /// Waits until no replica holds anything and the platform knows everything; gives what it does not know when `within`
    /// is over.
    async fn known(&mut self, within: Duration) -> anyhow::Result<Missing> {
        let deadline = Instant::now() + within;
        let mut taken = None;
        loop {
            let over = Instant::now() >= deadline;
            let now = self.simulation.platform.totals().taken;
            // Comparing is dear: not while reports still come.
            let quiet = taken.replace(now) == Some(now);
            if over || (quiet && self.group.is_idle().await?) {
                let missing = truth::missing(&self.simulation, &self.witness, &self.load.ended, None)?;
                if missing.count == 0 || over {
                    return Ok(missing);
                }
            }
            sleep(LOOK).await;
        }
    }

    /// Ends everything in order.
    pub(super) async fn end(mut self) -> anyhow::Result<()> {
        self.group.end().await?;
        self.simulation.stop().await
    }
}
