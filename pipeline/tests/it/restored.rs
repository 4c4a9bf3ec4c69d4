//! A cluster whose store is restored from a snapshot: versions go back, and what the receiver holds must follow.

use std::num::NonZeroU32;

use loadtest::nats::NatsServer;
use loadtest::sim::kube::{Collection, Snapshot};
use loadtest::sim::{Simulation, wait_for};
use pipeline_bus::jetstream::{Expect, LEASES};
use pipeline_core::Key;
use pipeline_ownership::sharding::Sharding;
use pipeline_ownership::{Lease, Replica};
use serde_json::json;

use crate::ask::{json, reported};
use crate::bus_commands::connected;
use crate::runtime::{Runtime, object};
use crate::told::{change, put, world};

const SAID: &str =
    "the versions of the cluster went back, as after a restore of its store: everything is compared again";

/// The health message that the receiver holds of an application; `gone` of one that was deleted, empty of none.
fn held(simulation: &Simulation, name: &str) -> String {
    let last = simulation.platform.last_of_application("argocd", name);
    let Some(payload) = last.and_then(|last| last.payload) else { return String::new() };
    let object = object(&payload);
    if object["metadata"]["deletionTimestamp"].is_string() {
        return "gone".to_owned();
    }
    object["status"]["health"]["message"].as_str().unwrap_or("none").to_owned()
}

async fn holds<const N: usize>(simulation: &Simulation, expected: [(&str, &str); N]) {
    let now = async || expected.map(|(name, _)| held(simulation, name));
    let are_so = |now: &[String; N]| now.iter().zip(&expected).all(|(held, (_, message))| held == message);
    wait_for(&format!("the platform to hold {expected:?}"), now, are_so).await;
}

/// Three applications, and what was stored then; since then one has changed twice, one is gone, one is new, and all of it
/// was reported.
async fn gone_on() -> (Simulation, Runtime, Snapshot) {
    let (simulation, runtime) = reported(&["changes", "goes", "stays"]).await;
    let snapshot = simulation.kube.snapshot();
    holds(&simulation, [("changes", "none"), ("goes", "none"), ("stays", "none"), ("comes", "")]).await;
    change(&simulation, "changes", "first");
    change(&simulation, "changes", "second");
    assert!(simulation.kube.delete(Collection::Applications, &Key::new("argocd", "goes").unwrap()));
    put(&simulation, "comes");
    holds(&simulation, [("changes", "second"), ("goes", "gone"), ("stays", "none"), ("comes", "none")]).await;
    runtime.until("rest", |status| status.total.idle()).await;
    (simulation, runtime, snapshot)
}

const RESTORED: [(&str, &str); 4] =
    [("changes", "none"), ("goes", "none"), ("stays", "none"), ("comes", "gone")];

async fn goes_on(simulation: &Simulation, runtime: &Runtime) {
    runtime.until("rest", |status| status.total.idle()).await;
    let verified = json(simulation, &["verify"]).await;
    assert_eq!(
        (&verified["repaired"], &verified["stillDifferent"]["total"]),
        (&json!(0), &json!(0)),
        "{verified:#}"
    );
    // Versions that were used before are used once more, and are news.
    change(simulation, "changes", "third");
    change(simulation, "goes", "fourth");
    holds(simulation, [("changes", "third"), ("goes", "fourth"), ("stays", "none"), ("comes", "gone")]).await;
}

#[tokio::test]
async fn a_store_restored_under_a_running_process_is_followed() {
    let (simulation, runtime, snapshot) = gone_on().await;
    simulation.kube.restore(&snapshot);
    holds(&simulation, RESTORED).await;
    goes_on(&simulation, &runtime).await;
    assert_eq!(runtime.said(SAID), 1);
    let stays = simulation.platform.last_of_application("argocd", "stays").unwrap();
    assert_eq!(stays.reports, 1, "only what differs is reported again");
    runtime.stop().await;
}

#[tokio::test]
async fn a_store_restored_while_the_process_was_down_is_followed() {
    let (simulation, runtime, snapshot) = gone_on().await;
    runtime.stop().await;
    simulation.kube.restore(&snapshot);
    let runtime = Runtime::start(&simulation, &json!({})).await;
    holds(&simulation, RESTORED).await;
    goes_on(&simulation, &runtime).await;
    assert_eq!(runtime.said(SAID), 1);
    let stays = simulation.platform.last_of_application("argocd", "stays").unwrap();
    assert_eq!(stays.reports, 1, "only what differs is reported again");
    // The era outlives the process, and is said once.
    runtime.stop().await;
    let runtime = Runtime::start(&simulation, &json!({})).await;
    runtime.answers("/readyz", |status, _| status == 200).await;
    assert_eq!(runtime.said(SAID), 0);
    runtime.stop().await;
}

/// A replica that is there no more has the shard, as far as anybody can tell: others wait for as long as a lease lives.
async fn is_gone_with(server: &NatsServer, shard: u32) {
    let (bucket, key) = (connected(server).await.bucket(LEASES), format!("lease.{shard}"));
    let (value, sequence) = bucket.get(&key).await.unwrap().unwrap();
    let lease = Lease { owner: Some(Replica::new("gone.1").unwrap()), ..Lease::decode(&value).unwrap() };
    bucket.put(&key, lease.encode().into(), Expect::Last(sequence)).await.unwrap();
}

/// Of the shard whose owner watches nothing is remembered; the other one is claimed when everything was listed.
#[tokio::test]
async fn a_restored_store_is_noticed_by_what_another_shard_of_the_ledger_remembers() {
    let server = NatsServer::start().await.unwrap();
    let settings = json!({"bus": {"url": server.url()}, "reporter": {"sharding": {"shards": 2}}});
    let sharding = Sharding::Jump { shards: NonZeroU32::new(2).unwrap() };
    let in_the_other = |name: &String| sharding.place(&Key::new("argocd", name).unwrap()) == 1;
    let name = &(0..).map(|n| format!("app-{n}")).find(in_the_other).unwrap();
    let simulation = world(|_| {}).await;
    put(&simulation, name);
    let runtime = Runtime::start(&simulation, &settings).await;
    holds(&simulation, [(name, "none")]).await;
    let snapshot = simulation.kube.snapshot();
    change(&simulation, name, "first");
    change(&simulation, name, "second");
    holds(&simulation, [(name, "second")]).await;
    runtime.until("rest", |status| status.total.idle()).await;
    runtime.stop().await;
    simulation.kube.restore(&snapshot);
    is_gone_with(&server, 1).await;

    let runtime = Runtime::start(&simulation, &settings).await;
    holds(&simulation, [(name, "none")]).await;
    runtime.until("rest", |status| status.total.idle()).await;
    let verified = json(&simulation, &["verify"]).await;
    assert_eq!(
        (&verified["objects"], &verified["repaired"], &verified["stillDifferent"]["total"]),
        (&json!(1), &json!(0), &json!(0)),
        "{verified:#}"
    );
    change(&simulation, name, "third");
    holds(&simulation, [(name, "third")]).await;
    assert_eq!(runtime.said(SAID), 1);
    runtime.stop().await;
}
