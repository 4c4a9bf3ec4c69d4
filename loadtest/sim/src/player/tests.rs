use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::*;
use crate::kube::{self, Collection};
use crate::recordings::{CallLine, ReportLine};

fn application(name: &str, version: u64) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "namespace": "argocd", "uid": name, "resourceVersion": version.to_string()},
    })
}

fn saw(t: f64, kind: &str, name: &str, version: u64) -> WatchLine {
    let object = serde_json::value::to_raw_value(&application(name, version)).unwrap();
    WatchLine { t, kind: kind.to_owned(), object }
}

/// The child's second state waited for its turn until its parent, which is asked for by name, was gone.
fn case() -> Case {
    let call = json!({
        "n": 0, "t": 5.0, "by": "reporter", "path": "/api/v1/applications/parent?appNamespace=", "status": 403,
        "body": "denied",
    });
    let report = |t: f64, version: u64| {
        let object = STANDARD.encode(application("child", version).to_string());
        ReportLine { n: version, t, data: json!({"object": object, "source": {}}) }
    };
    let call: CallLine = serde_json::from_value(call).unwrap();
    let denied = serde_json::value::to_raw_value(&json!({"message": "permission denied"})).unwrap();
    Case {
        name: "late".to_owned(),
        meta: serde_json::from_value(json!({"applications": ["child", "parent"]})).unwrap(),
        watch: vec![
            saw(1.0, "ADDED", "parent", 11),
            saw(2.0, "ADDED", "child", 12),
            saw(3.0, "MODIFIED", "child", 13),
            saw(4.0, "DELETED", "parent", 14),
        ],
        calls: vec![call],
        bodies: HashMap::from([("denied".to_owned(), denied)]),
        reports: vec![report(2.5, 12), report(5.5, 13)],
        rounds: Vec::new(),
    }
}

async fn played(mut player: Player) -> (Vec<String>, KubeSim) {
    let kube = KubeSim::start(kube::Config::default()).await.unwrap();
    let mut names = Vec::new();
    while let Some(name) = player.whose().unwrap() {
        let key = player.step(&kube).unwrap().unwrap();
        assert_eq!(key.name(), name);
        names.push(name);
    }
    (names, kube)
}

#[tokio::test]
async fn events_come_in_the_order_of_the_cluster() {
    let (names, kube) = played(Player::new(&[case()]).unwrap()).await;
    assert_eq!(names, ["parent", "child", "child", "parent"]);
    assert_eq!(kube.version(), 14);
}

#[tokio::test]
async fn of_a_recorded_reporter_they_come_in_the_order_in_which_it_took_them_up() {
    let (names, kube) = played(Player::of_reporter(&[case()]).unwrap()).await;
    assert_eq!(names, ["parent", "child", "parent", "child"]);
    // What is late has its own version still, and comes after what overtook it.
    let key = Key::new("argocd", "child").unwrap();
    let text = kube.text(Collection::Applications, &key).unwrap();
    let object: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(object["metadata"]["resourceVersion"], "13");
    assert_eq!(kube.version_of(Collection::Applications, &key), Some(15));
}
