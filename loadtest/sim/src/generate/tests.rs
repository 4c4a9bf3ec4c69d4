use serde_json::Value;

use super::*;

fn fleet(line: Line) -> Fleet {
    Fleet::new(Shape { applications: 20, line, ..Shape::default() }).unwrap()
}

fn application(fleet: &Fleet, state: &AppState) -> Value {
    let mut out = Vec::new();
    fleet.application(state, 77, &mut out);
    serde_json::from_slice(&out).unwrap()
}

#[test]
fn the_same_seed_gives_the_same_world() {
    let run = |seed| {
        let fleet = Fleet::new(Shape { seed, ..Shape::default() }).unwrap();
        let mut chance = fastrand::Rng::with_seed(seed);
        let mut bytes = Vec::new();
        for _ in 0..200 {
            let changed = fleet.change(Mix::default(), &mut chance).unwrap();
            fleet.application(&changed.state, 5, &mut bytes);
            bytes.extend(fleet.managed_resources(&changed.state));
        }
        bytes
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn bodies_are_json_of_a_real_size() {
    for line in [Line::V2, Line::V3] {
        let fleet = fleet(line);
        let state = fleet.find("app-00003").unwrap();
        let mut out = Vec::new();
        fleet.application(&state, 1_234, &mut out);
        assert!((5_000..5_300).contains(&out.len()), "{}", out.len());
        let app: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(app["metadata"]["name"], "app-00003");
        assert_eq!(app["metadata"]["resourceVersion"], "1234");
        assert_eq!(app["status"]["resources"].as_array().unwrap().len(), 10);
        let appeared = app["status"].get("resourceHealthSource").is_some();
        assert_eq!(appeared, line == Line::V3);
        assert_eq!(app["status"]["resources"][0].get("health").is_some(), line == Line::V2);

        let managed: Value = serde_json::from_slice(&fleet.managed_resources(&state)).unwrap();
        let items = managed["items"].as_array().unwrap();
        assert_eq!(items.len(), 10);
        for (item, entry) in items.iter().zip(app["status"]["resources"].as_array().unwrap()) {
            let size = item.to_string().len();
            assert!((4_000..4_300).contains(&size), "{size}");
            for field in ["kind", "name", "namespace", "group"] {
                assert_eq!(item.get(field), entry.get(field));
            }
            let live: Value = serde_json::from_str(item["liveState"].as_str().unwrap()).unwrap();
            assert_eq!(live["metadata"]["resourceVersion"], item["resourceVersion"]);
        }
        let tree: Value = serde_json::from_slice(&fleet.resource_tree(&state)).unwrap();
        assert_eq!(tree["nodes"].as_array().unwrap().len(), 14);
        assert_eq!(tree["nodes"][2]["parentRefs"][0]["uid"], tree["nodes"][1]["uid"]);
        let manifests: Value = serde_json::from_slice(&fleet.manifests(&state)).unwrap();
        assert_eq!(manifests["manifests"][0].is_string(), line == Line::V3);
        assert_eq!(manifests["revision"], app["status"]["sync"]["revision"]);
        let one = fleet.resource(&state, "Service", "app-00003-r1").unwrap();
        let one: Value = serde_json::from_slice(&one).unwrap();
        assert_eq!(one["manifest"], items[1]["liveState"]);
        assert_eq!(fleet.resource(&state, "Deployment", "app-00003-r1"), None);
    }
}

#[test]
fn a_drift_changes_the_application_and_one_entry() {
    let fleet = fleet(Line::V3);
    let mut chance = fastrand::Rng::with_seed(3);
    let before = application(&fleet, &fleet.find("app-00000").unwrap());
    let changed = fleet.change_one(0, Change::Drift, &mut chance).unwrap();
    assert_eq!(changed.reports, 2);
    let after = application(&fleet, &changed.state);
    let entries = |app: &Value| app["status"]["resources"].as_array().unwrap().clone();
    let differ = entries(&before).iter().zip(&entries(&after)).filter(|(left, right)| left != right).count();
    assert_eq!(differ, 1);
    assert_eq!(after["status"]["sync"]["status"], "OutOfSync");
    assert_eq!(after["status"]["history"], before["status"]["history"]);
    assert_eq!(after["status"]["sync"]["revision"], before["status"]["sync"]["revision"]);
}

#[test]
fn a_commit_moves_the_revision_and_not_the_history() {
    let fleet = fleet(Line::V3);
    let mut chance = fastrand::Rng::with_seed(3);
    let before = application(&fleet, &fleet.find("app-00001").unwrap());
    let state = fleet.change_one(1, Change::Commit, &mut chance).unwrap().state;
    let after = application(&fleet, &state);
    assert_ne!(after["status"]["sync"]["revision"], before["status"]["sync"]["revision"]);
    assert_eq!(after["status"]["history"], before["status"]["history"]);
    assert_eq!(after["status"]["operationState"]["phase"], "Running");
    assert!(after["status"]["operationState"].get("finishedAt").is_none());

    let deployed = fleet.change_one(1, Change::Deploy, &mut chance).unwrap();
    assert_eq!(deployed.reports, 11);
    let after = application(&fleet, &deployed.state);
    assert_eq!(after["status"]["history"][0]["revision"], after["status"]["sync"]["revision"]);
    assert_eq!(after["status"]["sync"]["status"], "Synced");
    assert_eq!(after["status"]["operationState"]["finishedAt"], "2026-01-01T00:03:30Z");
}

#[test]
fn what_is_removed_is_not_found() {
    let fleet = fleet(Line::V3);
    fleet.remove(4);
    assert_eq!(fleet.find("app-00004"), None);
    assert_eq!(fleet.find("other"), None);
    assert_eq!(fleet.change_one(4, Change::Drift, &mut fastrand::Rng::with_seed(1)), None);
    assert_eq!(
        Fleet::new(Shape { resources: 0, ..Shape::default() }).unwrap_err().to_string(),
        "generate 1 to 1,000 resources an application"
    );
}
