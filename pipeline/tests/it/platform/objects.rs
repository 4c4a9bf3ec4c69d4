//! Objects of other kinds at the platform: what a restore lost is found, and reported again.

use loadtest::process::Start;
use loadtest::sim::kube::Collection;
use loadtest::sim::{Setup, Simulation};
use pipeline_core::Key;
use serde_json::json;

use super::{Platform, differs};
use crate::ask::answer;
use crate::runtime::{Runtime, start};

fn put(simulation: &Simulation, name: &str, phase: &str) {
    let object = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": name, "namespace": "shop"},
        "spec": {"replicas": 3}, "status": {"phase": phase},
    });
    simulation.kube.apply(Collection::Rollouts, object).unwrap();
}

#[tokio::test]
async fn verify_finds_what_a_restore_of_the_platform_lost_of_objects_of_other_kinds() {
    let mut platform = Platform::start().await;
    let simulation = Simulation::start(Setup { tls: [None; 3], ..Setup::default() }).await.unwrap();
    for name in ["stays", "moves"] {
        put(&simulation, name, "Healthy");
    }
    let settings = json!({
        "platform": {"url": platform.url(), "tokenFile": platform.token_file()},
        "resources": {"kinds": ["rollouts.argoproj.io"], "applications": false},
    });
    let how = Start { args: vec!["resource-reporter".into()], ..start(&simulation, &settings) };
    let reporter = Runtime::launch(how).await;
    reporter.idle(2).await;
    let none: [&str; 0] = [];
    assert_eq!(differs(&simulation, &[]).await, none);
    // Of objects of other kinds it is not asked what else it holds.
    let text = answer(&simulation, &["verify"]).await;
    assert!(text.contains("\nwhat the receiver holds beside these is not known\n"), "{text}");
    let copy = platform.folder.path().join("copy.db").display().to_string();
    platform.command(&["backup", &copy]).await.unwrap();

    let observed = reporter.status().await.total.observed;
    put(&simulation, "moves", "Paused");
    put(&simulation, "comes", "Healthy");
    reporter.idle(observed + 2).await;
    assert_eq!(differs(&simulation, &[]).await, none);
    platform.runtime.take().unwrap().stop().await;
    platform.command(&["restore", &copy]).await.unwrap();
    platform.up().await;
    let lost = ["rollout/shop/comes", "rollout/shop/moves"];
    assert_eq!(differs(&simulation, &["--dry-run"]).await, lost);
    assert_eq!(differs(&simulation, &[]).await, lost, "and is repaired");
    assert_eq!(differs(&simulation, &[]).await, none);

    let observed = reporter.status().await.total.observed;
    assert!(simulation.kube.delete(Collection::Rollouts, &Key::new("shop", "comes").unwrap()));
    reporter.idle(observed + 1).await;
    assert_eq!(differs(&simulation, &[]).await, none);
    reporter.stop().await;
    platform.silent_of_tokens();
    platform.runtime.take().unwrap().stop().await;
}
