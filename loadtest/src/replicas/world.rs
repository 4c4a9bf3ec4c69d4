//! The simulated peers, a NATS server and the replicas between them, and what the platform came to know.

use std::time::Duration;

use anyhow::bail;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::Setting;
use super::event::{Event, Stage};
use super::group::Group;
use super::outcome::Outcome;
use crate::faults::load::Load;
use crate::faults::truth::{self, Missing};
use crate::faults::witness::Witness;
use crate::nats::NatsServer;
use crate::sim::generate::Shape;
use crate::sim::platform::Keep;
use crate::sim::{Load as Served, Setup, Simulation};

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
const AGAIN_WITHIN: Duration = Duration::from_secs(90);
/// So long nothing more may come once everything is known.
const QUIET: Duration = Duration::from_millis(600);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(300);
/// No shard may be without an owner for longer: its lease lapses after 10 s, and another replica claims it.
const OWNED_WITHIN: Duration = Duration::from_secs(15);
/// None that is handed over in order: sooner than its lease would have lapsed (10 s), less the time since it was renewed
/// (3 s).
const HANDED_OVER_WITHIN: Duration = Duration::from_secs(7);
/// How long an answer may take into the bucket of the ledger, on a machine that is busy with all of this.
const COMMITTED_WITHIN: Duration = Duration::from_secs(2);

/// Everything that runs.
#[derive(Debug)]
pub(super) struct World {
    simulation: Simulation,
    witness: Witness,
    load: Load,
    nats: NatsServer,
    pub(super) group: Group,
    chance: fastrand::Rng,
    /// What had been counted when the event began.
    before: Counts,
}

/// What is counted from the start on.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    changes: u64,
    reports: u64,
    duplicates: u64,
    beyond: u64,
    out_of_order: u64,
    stale_refused: u64,
    stale_accepted: u64,
    unfenced: u64,
    unreadable: u64,
}

impl Counts {
    fn since(self, before: Self) -> Self {
        Self {
            changes: self.changes - before.changes,
            reports: self.reports - before.reports,
            duplicates: self.duplicates - before.duplicates,
            beyond: self.beyond - before.beyond,
            out_of_order: self.out_of_order - before.out_of_order,
            stale_refused: self.stale_refused - before.stale_refused,
            stale_accepted: self.stale_accepted - before.stale_accepted,
            unfenced: self.unfenced - before.unfenced,
            unreadable: self.unreadable - before.unreadable,
        }
    }
}

impl World {
    /// Starts everything but the replicas.
    ///
    /// # Errors
    /// When something does not start.
    pub(super) async fn new(setting: &Setting) -> anyhow::Result<Self> {
        Self::sharing(setting, true).await
    }

    /// The same; those that do not share a bus are alone.
    async fn sharing(setting: &Setting, share: bool) -> anyhow::Result<Self> {
        let simulation = Simulation::start(Setup {
            load: Served::Generated(Shape {
                applications: setting.applications,
                resources: RESOURCES,
                application_bytes: 2_000,
                resource_bytes: 1_000,
                seed: setting.seed,
                ..Shape::default()
            }),
            argocd_latency: Duration::from_millis(2),
            platform_latency: Duration::from_millis(5),
            history: 200_000,
            keep: Keep { last: true, reports: 0 },
            ..Setup::default()
        })
        .await?;
        simulation.populate()?;
        let witness = Witness::at(&simulation.platform);
        witness.lock().commit = Some(COMMITTED_WITHIN);
        let load = Load::new(&simulation, &witness, setting.seed)?;
        let nats = NatsServer::start().await?;
        let (bus, more) =
            if share { (Some(&nats), json!({"bus": {"ackWait": "3s"}})) } else { (None, json!({})) };
        let group = Group::new(&setting.program, &simulation, bus, &more)?;
        let chance = fastrand::Rng::with_seed(setting.seed ^ 0x7265_706c);
        let before = Counts::default();
        Ok(Self { simulation, witness, load, nats, group, chance, before })
    }

    /// Starts the replicas; how long it took until every shard was owned and every application reported.
    ///
    /// # Errors
    /// When the first reports do not come.
    pub(super) async fn begin(&mut self) -> anyhow::Result<Duration> {
        self.begin_with(REPLICAS).await
    }

    async fn begin_with(&mut self, replicas: u32) -> anyhow::Result<Duration> {
        let began = Instant::now();
        self.group.add(replicas).await?;
        self.group.settled(FIRST).await?;
        let missing = self.known(FIRST).await?;
        if let Some(first) = missing.told.first() {
            bail!("the first reports did not come, {} of them: {first}", missing.count);
        }
        Ok(began.elapsed())
    }

    /// Lets an event happen while applications change, waits until the platform knows everything, and judges.
    ///
    /// # Errors
    /// When something cannot be done, or a replica does not answer.
    pub(super) async fn carry_out(&mut self, event: Event) -> anyhow::Result<Outcome> {
        let began = Instant::now();
        self.before = self.counts();
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
        let mut outcome = Outcome::new(event, told);
        if event == Event::Disk {
            self.came_again(era, &mut outcome).await;
        }
        sleep(QUIET).await;
        outcome.took = began.elapsed();
        outcome.unowned = unowned;
        self.judge(&mut outcome, missing).await;
        Ok(outcome)
    }

    /// Waits until every application was reported again, and no longer than [`AGAIN_WITHIN`]: after that, what is repeated
    /// has no excuse.
    async fn came_again(&self, era: u32, outcome: &mut Outcome) {
        let deadline = Instant::now() + AGAIN_WITHIN;
        let mut left = self.witness.not_again(era);
        while left.0 > 0 && Instant::now() < deadline {
            sleep(LOOK).await;
            left = self.witness.not_again(era);
        }
        let (count, name) = left;
        outcome.demand(count == 0, || {
            let name = name.unwrap_or_default();
            format!("{count} applications were not reported again, {name} for one")
        });
    }

    async fn judge(&mut self, outcome: &mut Outcome, missing: Missing) {
        let counts = self.counts().since(self.before);
        outcome.changes = counts.changes;
        outcome.reports = counts.reports;
        outcome.duplicates = counts.duplicates;
        outcome.beyond = counts.beyond;
        outcome.out_of_order = counts.out_of_order;
        outcome.stale_refused = counts.stale_refused;
        outcome.stale_accepted = counts.stale_accepted;
        outcome.lost = missing.count;
        outcome.wrong.extend(missing.told);
        let within = if outcome.event.hands_over() { HANDED_OVER_WITHIN } else { OWNED_WITHIN };
        outcome.late = outcome.unowned > within;
        outcome.demand(!outcome.late, || {
            format!("a shard was owned by nobody for longer than {} s", within.as_secs())
        });
        let refuses = outcome.event == Event::Pause;
        outcome.demand(!refuses || counts.stale_refused > 0, || {
            "no report of the replica that stood still was refused".to_owned()
        });
        outcome.demand(counts.unfenced == 0, || format!("{} reports named no epoch", counts.unfenced));
        outcome.demand(counts.unreadable == 0, || {
            format!("{} reports came without a key or were none", counts.unreadable)
        });
        let suspect = {
            let mut seen = self.witness.lock();
            outcome.wrong.append(&mut seen.told);
            seen.suspect.take()
        };
        let falsely = truth::false_ends(&self.witness, &self.load);
        outcome.wrong.extend(falsely.told);
        let suspect = suspect.or_else(|| falsely.names.first().cloned());
        if let Some(name) = &suspect {
            outcome.wrong.push(format!("{name}: {}", self.witness.story(name)));
        }
        if let Some(name) = missing.names.first().or(suspect.as_ref()) {
            outcome.wrong.push(self.group.explain(name).await);
        }
        self.group.look();
        outcome.wrong.extend(std::mem::take(&mut self.group.panics));
    }

    fn counts(&self) -> Counts {
        let totals = self.simulation.platform.totals();
        let seen = self.witness.lock();
        Counts {
            changes: self.load.changes,
            reports: totals.taken + totals.duplicates,
            duplicates: seen.duplicates,
            beyond: seen.beyond,
            out_of_order: seen.out_of_order,
            stale_refused: totals.stale_refused,
            stale_accepted: seen.epochs.outdated.max(totals.stale_accepted),
            unfenced: seen.epochs.without,
            unreadable: totals.without_key + totals.malformed,
        }
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
                let missing = truth::missing(&self.simulation, &self.witness, &self.load, None)?;
                if missing.count == 0 || over {
                    return Ok(missing);
                }
            }
            sleep(LOOK).await;
        }
    }

    /// Ends everything in order.
    ///
    /// # Errors
    /// When a replica does not end with success.
    pub(super) async fn end(mut self) -> anyhow::Result<()> {
        self.group.end().await?;
        self.simulation.stop().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process;
    use crate::sim::fault::{Fault, Rule};

    async fn alone() -> World {
        let setting = Setting { applications: 50, seed: 5, program: process::binary().await.unwrap() };
        let mut world = World::sharing(&setting, false).await.unwrap();
        world.begin_with(1).await.unwrap();
        world
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_process_alone_loses_nothing_by_a_kill_and_names_no_epoch() {
        let mut world = alone().await;
        let outcome = world.carry_out(Event::Kill).await.unwrap();
        assert_eq!((outcome.lost, outcome.out_of_order, outcome.beyond), (0, 0, 0), "{outcome:#?}");
        assert!(outcome.changes > 0 && outcome.reports > 0, "{outcome:#?}");
        let unfenced = |wrong: &&String| wrong.ends_with(" reports named no epoch");
        assert_eq!(outcome.wrong.iter().filter(unfenced).count(), 1, "{outcome:#?}");
        assert!(!outcome.is_good());
        world.end().await.unwrap();
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_report_that_is_answered_and_not_taken_is_lost() {
        let mut world = alone().await;
        // It says yes and keeps nothing: two reports of one change.
        world.simulation.platform.faults().add(Rule::always(Fault::Delay { ms: 0 }).times(2));
        world.load.drift(&world.simulation, 4).unwrap();
        let missing = world.known(Duration::from_secs(4)).await.unwrap();
        assert_eq!(missing.count, 2, "{missing:?}");
        let mut outcome = Outcome::new(Event::Kill, String::new());
        world.judge(&mut outcome, missing).await;
        assert_eq!(outcome.lost, 2);
        assert!(outcome.wrong.iter().any(|wrong| wrong.starts_with("replica-0: ")), "{outcome:#?}");
        world.end().await.unwrap();
    }
}
