//! Engines that share their work through a ledger in a bucket: shards are claimed, refused, and claimed later. A real server
//! keeps leases and ledger, so time is real as well.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pipeline_bus::jetstream::{Expect, JetStream, LEASES, LEDGER};
use pipeline_core::{
    Checkpoint, CircuitState, Digest, EntityId, Key, Reason, Report, ReportKind, Shutdown, StageError, Uid,
    Version,
};
use pipeline_engine::run::{Config, Engine, EngineError, Handle, Leases};
use pipeline_engine::verify::VerifyOptions;
use pipeline_ledger::{Ledger, LedgerOptions};
use pipeline_observe::health::{Health, HealthLimits, State};
use pipeline_observe::metrics::{Metrics, MetricsConfig};
use pipeline_ownership::sharding::{Owned, Sharding};
use pipeline_ownership::{self, Lease, Replica, drive, weight};
use tokio::task::JoinHandle;

use crate::fakes::{Cluster, Compares, Enricher, Receiver};
use crate::on;
use crate::running::{PATIENCE, pipeline, until};

const OBJECT: ReportKind = ReportKind::of_object("object");

const SHARDS: NonZeroU32 = NonZeroU32::MIN.saturating_add(3);
const POST: Duration = Duration::from_secs(3);
/// What stands in the ledger where a newer version has claimed a shard.
const NEWER: &str = r#"{"format":9,"epoch":1,"ledger":"x","sharding":"jump:4"}"#;

fn config() -> Config {
    // What never ends is given up soon.
    let grace = Duration::from_secs(1);
    Config {
        sharding: Sharding::Jump { shards: SHARDS },
        owned: Owned::All,
        grace,
        ..crate::running::config()
    }
}

/// What was refused is soon tried again.
fn leases() -> pipeline_ownership::Config {
    let again = Duration::from_millis(500);
    let (ttl, renew) = (Duration::from_secs(10), Duration::from_secs(3));
    let usual = pipeline_ownership::Config::new(SHARDS, ttl, renew, 0);
    let config = pipeline_ownership::Config { again, ..usual };
    config.check(POST).unwrap();
    config
}

/// An object of a shard.
fn name(shard: u32) -> String {
    let names = (0..).map(|n| format!("app-{n}"));
    names.into_iter().find(|name| config().sharding.place(&crate::fakes::key(name)) == shard).unwrap()
}

/// Writes that nobody has the shards any more, so that they are claimed at once.
async fn given_up(bus: &JetStream) {
    let bucket = bus.bucket(LEASES);
    bucket.ensure().await.unwrap();
    for shard in 0..SHARDS.get() {
        let lease = Lease { shard, epoch: 7, owner: None, until: pipeline_core::Timestamp::UNIX_EPOCH };
        bucket.put(&format!("lease.{shard}"), lease.encode().into(), Expect::Last(0)).await.unwrap();
    }
}

fn ledger(bus: &JetStream, sink: &str) -> Ledger {
    Ledger::in_bucket(bus.bucket(LEDGER), config().sharding, LedgerOptions::new(sink)).unwrap()
}

/// All of an object is reported and acknowledged.
async fn reported(ledger: &Ledger, key: &Key) {
    let (uid, version): (Uid, _) = ("gone".into(), Version(1));
    let report = Report::new(key.clone(), uid.clone(), version, EntityId::OBJECT, OBJECT, Digest(1));
    assert!(ledger.sending(key, &report, None).await, "it may go");
    ledger.acknowledge(key, &report);
    ledger.checkpoint(key, &Checkpoint::new(uid, version, "state".into()), &[]);
}

struct Member {
    receiver: Receiver,
    handle: Handle,
    health: Health,
    task: JoinHandle<Result<(), EngineError>>,
    stop: Shutdown,
}

impl Member {
    /// An engine with a ledger of its own where `sink` is another; of its shards it has those whose leases it gets, if it
    /// is a `replica`, or else all.
    fn start(kept: &on::BusServer, cluster: &Cluster, sink: &str, replica: Option<Replica>) -> Self {
        Self::enriched(kept, cluster, sink, replica, Enricher::default())
    }

    fn enriched(
        kept: &on::BusServer,
        cluster: &Cluster,
        sink: &str,
        replica: Option<Replica>,
        enricher: Enricher,
    ) -> Self {
        let (bus, stop) = (kept.connect(), Shutdown::new());
        let owned = if replica.is_some() { 0..0 } else { 0..SHARDS.get() };
        let health = Health::new(HealthLimits::default(), owned.clone(), Instant::now());
        let receiver = Receiver::new();
        let leases = replica.map(|me| {
            let config = leases();
            let store = bus.leases(SHARDS, config.ttl);
            Leases { driven: drive(config, me, store, POST, stop.clone()), post_timeout: POST }
        });
        let metrics =
            Metrics::new(&MetricsConfig { shards: SHARDS.get(), ..MetricsConfig::new(owned, "test") });
        let parts = (cluster.clone(), enricher, receiver.clone());
        let pipeline = pipeline(parts, ledger(&bus, sink), metrics, health.clone());
        let engine = Engine::new(config(), Arc::new(bus), leases).pipeline(pipeline);
        let handle = engine.handle("objects", "reporter").unwrap();
        let task = tokio::spawn(engine.run(stop.clone()));
        Self { receiver, handle, health, task, stop }
    }

    /// Objects of which a report was taken, and whether their lives are over.
    fn told(&self) -> BTreeSet<(Key, bool)> {
        self.receiver.came().into_iter().map(|came| (came.key, came.ends)).collect()
    }

    async fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !is_so(self) {
            if self.task.is_finished() {
                panic!("{what}: it ended: {:?}", (&mut self.task).await);
            }
            let health = self.health.report(Instant::now());
            assert!(begun.elapsed() < PATIENCE, "{what} never was: {health:?} {:?}", self.receiver.came());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Its health after nothing has changed for so long.
    fn health(&self, later: Duration) -> (State, String) {
        let report = self.health.report(Instant::now() + later);
        (report.state, report.line())
    }

    async fn end(self) {
        self.stop.cancel();
        self.task.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_replica_that_may_not_claim_the_first_shard_watches_nothing_and_another_one_gets_it() {
    let kept = on::server();
    let bus = kept.connect();
    given_up(&bus).await;
    let bucket = bus.bucket(LEDGER);
    bucket.ensure().await.unwrap();
    bucket.put("claim.older.0", NEWER.into(), Expect::Last(0)).await.unwrap();
    let cluster = Cluster::new();
    for shard in 0..SHARDS.get() {
        cluster.put(&name(shard), 1);
    }
    // The shard wants to be with the one that may not have it.
    let mut names = ["one.1", "two.2"].map(|name| Replica::new(name).unwrap());
    names.sort_by_key(|name| weight(0, name));
    let [able, refused] = names;

    let mut one = Member::start(&kept, &cluster, "older", Some(refused));
    let cannot = "shard 0 cannot be claimed: a newer version wrote its part of the ledger";
    one.until("a refusal in health", |one| one.health(Duration::ZERO).1.contains(cannot)).await;
    assert_eq!(cluster.runs.load(Ordering::SeqCst), 0, "a watch began before the claim");
    one.until("the word that nobody watches", |one| {
        // It has the lease for a moment more, and for one whenever it tries again.
        let (state, line) = one.health(Duration::from_secs(3_600));
        state == State::Failing && line.contains("source: nobody has watched for 36")
    })
    .await;

    let mut other = Member::start(&kept, &cluster, "newer", Some(able));
    let first = crate::fakes::key(&name(0));
    other.until("a report of the first shard", |other| other.told().contains(&(first.clone(), false))).await;
    one.until("the word that another watches", |one| {
        let (state, line) = one.health(Duration::from_secs(3_600));
        state == State::Degraded && !line.contains("source")
    })
    .await;
    assert!(one.health(Duration::ZERO).1.contains(cannot), "it is remembered");
    let all: BTreeSet<Key> = (0..SHARDS.get()).map(|shard| crate::fakes::key(&name(shard))).collect();
    let told = |member: &Member| member.told().into_iter().map(|(key, _)| key).collect::<BTreeSet<Key>>();
    other.until("reports of all", |other| &told(other) | &told(&one) == all).await;
    one.end().await;
    other.end().await;
}

#[tokio::test]
async fn a_shard_that_ends_while_it_probes_keeps_no_other_from_its_reports() {
    let kept = on::server();
    given_up(&kept.connect()).await;
    let (first, second) = (Replica::new("one.1").unwrap(), Replica::new("two.2").unwrap());
    // Of all shards the first one gives this away when there are two.
    let leaving = (0..SHARDS.get()).min_by_key(|shard| weight(*shard, &first)).unwrap();
    let is_leaving = |name: &String| config().sharding.place(&crate::fakes::key(name)) == leaving;
    let (cluster, enricher) = (Cluster::new(), Enricher::default());
    for name in (0..).map(|n| format!("app-{n}")).filter(is_leaving).take(10) {
        cluster.put(&name, 1);
    }
    let mut one = Member::enriched(&kept, &cluster, "sink", Some(first), enricher.clone());
    one.receiver.answers(|_, _| Err(StageError::retry(Reason::Unreachable, "connection refused")));
    let is_open = |one: &Member| matches!(one.handle.status().circuit, CircuitState::Open { .. });
    one.until("an open circuit", |one| is_open(one) && one.handle.status().total().in_flight == 0).await;
    enricher.hangs.store(true, Ordering::SeqCst);
    one.until("a probe that hangs", |_| !enricher.hanging.lock().unwrap().is_empty()).await;

    let mut two = Member::start(&kept, &cluster, "sink", Some(second));
    two.until("a report of the shard that probed", |two| {
        two.told().iter().any(|(key, _)| config().sharding.place(key) == leaving)
    })
    .await;
    enricher.hangs.store(false, Ordering::SeqCst);
    one.receiver.answers(|_, _| Ok(()));
    // Whichever shards it has by now: a lease may be lost on a busy machine, and another reports meanwhile.
    let version = AtomicU64::new(1);
    one.until("a report of one of its shards", |one| {
        let next = version.fetch_add(1, Ordering::SeqCst) + 1;
        (0..SHARDS.get()).for_each(|shard| cluster.put(&name(shard), next));
        one.receiver.came().iter().any(|came| came.accepted)
    })
    .await;
    one.end().await;
    two.end().await;
}

#[tokio::test]
async fn a_deletion_that_nobody_watched_is_found_by_a_shard_that_is_claimed_long_after() {
    let kept = on::server();
    let bus = kept.connect();
    given_up(&bus).await;
    let gone = crate::fakes::key(&name(2));
    let former = ledger(&bus, "sink");
    former.claim(2, 7).await.unwrap();
    reported(&former, &gone).await;
    former.flush().await.unwrap();
    drop(former);
    let (bucket, row) = (bus.bucket(LEDGER), "claim.sink.2");
    let (claim, _) = bucket.get(row).await.unwrap().unwrap();
    bucket.put(row, NEWER.into(), Expect::Anything).await.unwrap();

    let cluster = Cluster::new();
    cluster.put(&name(0), 1);
    let mut one = Member::start(&kept, &cluster, "sink", Some(Replica::new("one.1").unwrap()));
    let there = crate::fakes::key(&name(0));
    one.until("a report of what is there", |one| one.told().contains(&(there.clone(), false))).await;
    assert!(!one.told().contains(&(gone.clone(), true)), "its shard cannot be claimed yet");
    bucket.put(row, claim, Expect::Anything).await.unwrap();
    one.until("a report of the deletion", |one| one.told().contains(&(gone.clone(), true))).await;
    one.end().await;
}

/// What was published while there was no durable for it is nowhere: here the end of an object that its watch did not show.
#[tokio::test]
async fn shards_whose_durables_were_lost_are_compared_with_the_cluster_by_whoever_has_them() {
    let kept = on::server();
    given_up(&kept.connect()).await;
    let cluster = Cluster::new();
    let names: Vec<String> = (0..SHARDS.get()).map(name).collect();
    names.iter().for_each(|name| cluster.put(name, 1));
    let start = |me: &str| Member::start(&kept, &cluster, "sink", Some(Replica::new(me).unwrap()));
    let (mut one, mut two) = (start("one.1"), start("two.2"));
    let keys = |member: &Member| member.told().into_iter().map(|(key, _)| key).collect::<BTreeSet<Key>>();
    one.until("reports of all", |one| keys(one).len() + keys(&two).len() >= names.len()).await;
    // Each compares twice when it has claimed its shards, and finds by itself what is gone by then.
    two.until("comparisons", |_| cluster.surveys.load(Ordering::SeqCst) >= 4).await;

    names.iter().for_each(|name| cluster.delete_unwatched(name));
    let stream = "gitops-runtime_objects";
    for shard in 0..SHARDS.get() {
        kept.remove_durable(stream, &format!("reporter_objects_{shard}")).await;
    }
    let ends = |member: &Member| member.told().into_iter().filter(|(_, ends)| *ends).count();
    one.until("the end of each", |one| ends(one) + ends(&two) >= names.len()).await;
    one.end().await;
    two.end().await;
}

/// Else a cluster whose versions went back is not noticed where nothing else of it is remembered.
#[tokio::test]
async fn a_watch_and_a_survey_are_told_what_shards_remember_that_nobody_has_claimed() {
    let kept = on::server();
    let bus = kept.connect();
    given_up(&bus).await;
    // It may still be there.
    let owner = Some(Replica::new("gone.3").unwrap());
    let lease = Lease { shard: 2, epoch: 8, owner, until: pipeline_core::Timestamp::UNIX_EPOCH };
    bus.bucket(LEASES).put("lease.2", lease.encode().into(), Expect::Anything).await.unwrap();
    let elsewhere = crate::fakes::key(&name(2));
    let former = ledger(&bus, "sink");
    former.claim(2, 7).await.unwrap();
    reported(&former, &elsewhere).await;
    former.flush().await.unwrap();
    drop(former);

    let cluster = Cluster::new();
    cluster.put(&name(0), 1);
    let mut one = Member::start(&kept, &cluster, "sink", Some(Replica::new("one.1").unwrap()));
    for (known, who) in cluster.known.iter().zip(["a watch", "a survey"]) {
        let remembered = (elsewhere.clone(), "gone".into(), Version(1));
        one.until(who, |_| known.lock().unwrap().contains(&remembered)).await;
    }
    one.end().await;
}

#[tokio::test]
async fn a_clock_that_is_behind_keeps_no_process_from_its_shards() {
    let kept = on::server();
    let bus = kept.connect();
    let tomorrow = u64::try_from(pipeline_core::Timestamp::now().as_second()).unwrap() + 86_400;
    let former = ledger(&bus, "sink");
    for shard in 0..SHARDS.get() {
        former.claim(shard, tomorrow).await.unwrap();
    }
    drop(former);

    let cluster = Cluster::new();
    let names: Vec<String> = (0..SHARDS.get()).map(name).collect();
    names.iter().for_each(|name| cluster.put(name, 1));
    let all: BTreeSet<(Key, bool)> = names.iter().map(|name| (crate::fakes::key(name), false)).collect();
    let mut one = Member::start(&kept, &cluster, "sink", None);
    one.until("reports of all", |one| one.told() == all).await;
    one.end().await;
    let mut again = Member::start(&kept, &cluster, "sink", None);
    cluster.put(&name(1), 2);
    let changed = BTreeSet::from([(crate::fakes::key(&name(1)), false)]);
    again.until("a report of what changed", |again| again.told() == changed).await;
    again.end().await;
}

#[tokio::test]
async fn what_a_restored_receiver_holds_again_is_told_to_be_over_by_whoever_claims_its_shard() {
    let kept = on::server();
    given_up(&kept.connect()).await;
    let cluster = Cluster::new();
    cluster.put(&name(0), 1);
    let mut one = Member::start(&kept, &cluster, "sink", Some(Replica::new("one.1").unwrap()));
    let gone = crate::fakes::key(&name(1));
    one.receiver.held.restore(&gone, "gone");
    one.receiver.held.compares(Compares::Yes);
    one.until("the end", |one| one.told().contains(&(gone.clone(), true))).await;
    assert!(one.told().contains(&(crate::fakes::key(&name(0)), false)));
    one.end().await;
}

#[tokio::test]
async fn a_verification_while_the_bus_is_away_says_that_it_knew_its_own_shards_alone() {
    let kept = on::server();
    let bus = kept.connect();
    bus.bucket(LEDGER).ensure().await.unwrap();
    let cluster = Cluster::new();
    cluster.put(&name(0), 1);
    let owned = 0..SHARDS.get();
    let health = Health::new(HealthLimits::default(), owned.clone(), Instant::now());
    let metrics = Metrics::new(&MetricsConfig::new(owned, "test"));
    let receiver = Receiver::new();
    receiver.held.compares(Compares::Yes);
    let held = receiver.held.clone();
    let parts = (cluster, Enricher::default(), receiver);
    let pipeline = pipeline(parts, ledger(&bus, "sink"), metrics, health);
    let engine = Engine::new(config(), Arc::new(bus.clone()), None).pipeline(pipeline);
    let handle = engine.handle("objects", "reporter").unwrap();
    let task = tokio::spawn(engine.run(Shutdown::new()));
    until(&handle, "reported", || handle.status().total().acked == 1).await;
    let options = VerifyOptions { dry: true, ..VerifyOptions::default() };
    assert!(!handle.verify(options).await.unwrap().others_unknown);
    assert_eq!(held.questions().len(), 1);
    kept.end();
    until(&handle, "away", || !bus.is_connected()).await;
    let verified = handle.verify(options).await.unwrap();
    assert!(verified.others_unknown && verified.objects == 1, "{verified:?}");
    assert_eq!(
        (verified.receiver_others, held.questions().len()),
        (None, 1),
        "it is not asked what else it holds"
    );
    task.abort();
}
