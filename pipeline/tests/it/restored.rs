//! A cluster whose store is restored from a snapshot: versions go back, and what the receiver holds must follow.

use loadtest::sim::Simulation;
use loadtest::sim::kube::{Collection, Snapshot};
use pipeline_core::Key;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::ask::{json, reported};
use crate::runtime::{LOOK, Runtime, SOON, object};
use crate::told::{application, put, thing};

const SAID: &str = "the versions of the cluster went back, as after a restore of its store: all applications are compared again";

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

fn change(simulation: &Simulation, name: &str, message: &str) {
    let mut object = application(name, &thing());
    object["status"]["health"]["message"] = json!(message);
    simulation.kube.apply(Collection::Applications, object).unwrap();
}

async fn holds(simulation: &Simulation, expected: [(&str, &str); 4]) {
    let deadline = Instant::now() + SOON;
    loop {
        let now = expected.map(|(name, _)| (name, held(simulation, name)));
        if now.iter().zip(&expected).all(|((_, held), (_, message))| held == message) {
            return;
        }
        assert!(Instant::now() < deadline, "the platform holds {now:?}, and not {expected:?}");
        sleep(LOOK).await;
    }
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

fn said(runtime: &Runtime) -> usize {
    runtime.log().iter().filter(|line| line.message == SAID).count()
}

#[tokio::test]
async fn a_store_restored_under_a_running_process_is_followed() {
    let (simulation, runtime, snapshot) = gone_on().await;
    simulation.kube.restore(&snapshot);
    holds(&simulation, RESTORED).await;
    goes_on(&simulation, &runtime).await;
    assert_eq!(said(&runtime), 1);
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
    assert_eq!(said(&runtime), 1);
    let stays = simulation.platform.last_of_application("argocd", "stays").unwrap();
    assert_eq!(stays.reports, 1, "only what differs is reported again");
    // The era outlives the process, and is said once.
    runtime.stop().await;
    let runtime = Runtime::start(&simulation, &json!({})).await;
    runtime.answers("/readyz", |status, _| status == 200).await;
    assert_eq!(said(&runtime), 0);
    runtime.stop().await;
}
