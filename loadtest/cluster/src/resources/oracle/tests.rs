use bytes::Bytes;
use loadtest_sim::platform::EntityName;
use serde_json::json;

use super::*;

fn rollout(uid: &str, version: u64, phase: &str) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout",
        "metadata": {"uid": uid, "namespace": "shop", "name": "web", "resourceVersion": version.to_string()},
        "status": {"phase": phase, "replicas": version},
    })
}

fn kept(key: &str, payload: &Value) -> KeptReport {
    let entity = EntityName { app_namespace: String::new(), app_name: String::new(), resource: None };
    KeptReport { key: Some(key.to_owned()), entity, payload: Bytes::from(payload.to_string()) }
}

fn seen(states: &[(&str, u64, &str)], gone: bool) -> Seen {
    let mut seen = Seen::default();
    for (uid, version, phase) in states {
        seen.take("Rollout", serde_json::from_value(rollout(uid, *version, phase)).unwrap(), false);
    }
    if let Some((uid, version, phase)) = states.last().filter(|_| gone) {
        seen.take("Rollout", serde_json::from_value(rollout(uid, version + 1, phase)).unwrap(), true);
    }
    seen
}

fn reported(states: &[(&str, u64, &str)]) -> Reported {
    let all: Vec<KeptReport> = states
        .iter()
        .enumerate()
        .map(|(n, (uid, version, phase))| {
            kept(&n.to_string(), &json!({"object": rollout(uid, *version, phase)}))
        })
        .collect();
    reports(&all).unwrap()
}

const ALL: [(&str, u64, &str); 4] =
    [("u", 1, "Progressing"), ("u", 2, "Progressing"), ("u", 3, "Paused"), ("u", 4, "Progressing")];

#[test]
fn heartbeats_are_no_phases_and_each_phase_is_to_be_reported_in_its_place() {
    let shown = seen(&ALL, false);
    assert_eq!(shown.lives["u"].shown.len(), 3);
    let wrong = |told: &[(&str, u64, &str)]| differences(&shown.lives, &reported(told).lives);
    assert_eq!(wrong(&ALL), [] as [String; 0]);
    assert_eq!(
        wrong(&[ALL[1], ALL[2], ALL[3]]),
        [] as [String; 0],
        "states that do not count may be left out"
    );
    assert_eq!(
        wrong(&[ALL[0], ALL[3]]),
        [
            "Rollout shop/web was not reported as it was shown",
            "  the first 1 are the same",
            "  shown: {\"phase\":\"Paused\"}",
            "  shown: {\"phase\":\"Progressing\"}",
        ],
        "a phase that came and went"
    );
    assert!(!wrong(&[ALL[0], ALL[2], ALL[0], ALL[2], ALL[3]]).is_empty(), "twice");
    assert!(!wrong(&[ALL[2], ALL[0], ALL[3]]).is_empty(), "in another order");
    assert_eq!(
        wrong(&[&ALL[..], &[("other", 9, "Healthy")]].concat()),
        ["Rollout shop/web was reported and never shown"]
    );
}

#[test]
fn the_end_of_an_object_is_to_be_reported_once() {
    let shown = seen(&ALL, true);
    let end = json!({"object": rollout("u", 5, "Progressing"), "deleted": true});
    let told: Vec<KeptReport> = ALL
        .iter()
        .enumerate()
        .map(|(n, (uid, version, phase))| {
            kept(&n.to_string(), &json!({"object": rollout(uid, *version, phase)}))
        })
        .chain([kept("end", &end)])
        .collect();
    assert_eq!(differences(&shown.lives, &reports(&told).unwrap().lives), [] as [String; 0]);
    let without = reports(&told[..4]).unwrap();
    assert_eq!(
        differences(&shown.lives, &without.lives),
        ["Rollout shop/web was not reported as it was shown", "  the first 3 are the same", "  shown: gone"]
    );
}

#[test]
fn one_report_under_two_keys_is_wrong() {
    let payload = json!({"object": rollout("u", 1, "Healthy")});
    let told = reports(&[kept("a", &payload), kept("a", &payload)]).unwrap();
    assert_eq!(told.repeated, [] as [String; 0]);
    let told = reports(&[kept("a", &payload), kept("b", &payload)]).unwrap();
    assert_eq!(told.repeated, ["Rollout shop/web: one report came under two keys"]);
    let between = json!({"object": rollout("u", 1, "Paused")});
    let told = reports(&[kept("a", &payload), kept("b", &between), kept("c", &payload)]).unwrap();
    assert_eq!(told.repeated, [] as [String; 0], "it was paused, and is healthy again");
}

#[test]
fn packed_nodes_are_unpacked_by_a_way_of_their_own() {
    use std::io::Write as _;
    let nodes = json!({"n": {"phase": "Running"}});
    let mut zipped = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    zipped.write_all(nodes.to_string().as_bytes()).unwrap();
    assert_eq!(unpacked(&STANDARD.encode(zipped.finish().unwrap())).unwrap(), nodes);
    assert!(unpacked("no base64!").is_err());
}
