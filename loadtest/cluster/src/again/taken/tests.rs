use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::*;
use loadtest_sim::recordings::ReportLine;

/// A state of `a`: kind of event, uid, resourceVersion, phase, and time of reconciliation.
type State<'a> = (&'a str, &'a str, u64, &'a str, u64);

fn object((_, uid, version, phase, reconciled): State<'_>) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "a", "namespace": "argocd", "uid": uid, "resourceVersion": version.to_string()},
        "spec": {"project": reconciled.to_string()},
        "status": {
            "phase": phase, "reconciledAt": reconciled,
            "conditions": [{"type": "x", "lastTransitionTime": reconciled}],
        },
    })
}

/// The resourceVersions that are taken up of `states`, of which those in `reported` were reported.
fn taken(states: &[State<'_>], reported: &[u64]) -> Vec<u64> {
    let line = |state: &State<'_>| WatchLine {
        t: state.2 as f64,
        kind: state.0.to_owned(),
        object: serde_json::value::to_raw_value(&object(*state)).unwrap(),
    };
    let report = |state: &&State<'_>| reported.contains(&state.2);
    let reports = states.iter().filter(report).map(|state| {
        let object = STANDARD.encode(object(*state).to_string());
        ReportLine { n: 0, t: 0.0, data: json!({"object": object, "source": {}}) }
    });
    let case = Case {
        name: "told".to_owned(),
        meta: serde_json::from_value(json!({})).unwrap(),
        watch: states.iter().map(line).collect(),
        calls: Vec::new(),
        bodies: HashMap::new(),
        reports: reports.collect(),
        rounds: Vec::new(),
    };
    let taken = taken_up(&case).unwrap();
    for line in &taken.watch {
        let object: Value = serde_json::from_str(line.object.get()).unwrap();
        let version: u64 = object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
        assert_eq!(version, line.t as u64);
        let of_no_report = line.kind != "DELETED" && states.last().is_some_and(|last| last.2 != version);
        assert!(object.get("status").is_some() || (of_no_report && !reported.contains(&version)));
    }
    taken.watch.iter().map(|line| line.t as u64).collect()
}

#[test]
fn what_brought_no_report_though_it_changed_was_folded() {
    let states = [
        ("ADDED", "u", 1, "Running", 1),
        ("MODIFIED", "u", 2, "Failed", 1),
        ("MODIFIED", "u", 3, "Running", 1),
        ("MODIFIED", "u", 4, "Succeeded", 1),
    ];
    assert_eq!(taken(&states, &[1, 2, 3, 4]), [1, 2, 3, 4]);
    assert_eq!(taken(&states, &[1, 4]), [1, 3, 4], "the third shows what the first did");
    assert_eq!(taken(&states, &[3, 4]), [3, 4]);
}

#[test]
fn what_is_not_worth_a_report_is_taken_up_without_one() {
    let states = [
        ("ADDED", "u", 1, "Running", 1),
        ("MODIFIED", "u", 2, "Running", 2),
        ("MODIFIED", "u", 3, "Running", 3),
        ("MODIFIED", "u", 4, "Failed", 3),
    ];
    assert_eq!(taken(&states, &[1, 4]), [1, 2, 3, 4]);
}

#[test]
fn the_last_state_is_always_taken_up_so_that_a_report_that_is_missing_shows() {
    let states = [("ADDED", "u", 1, "Running", 1), ("MODIFIED", "u", 2, "Failed", 1)];
    assert_eq!(taken(&states, &[1]), [1, 2]);
    assert_eq!(taken(&states, &[]), [2]);
}

#[test]
fn a_deletion_is_taken_up_if_anything_of_that_life_was_reported() {
    let states = [
        ("ADDED", "first", 1, "Running", 1),
        ("DELETED", "first", 2, "Running", 1),
        ("ADDED", "second", 3, "Running", 1),
    ];
    assert_eq!(taken(&states, &[1, 3]), [1, 2, 3]);
    assert_eq!(taken(&states, &[3]), [3]);
}

#[test]
fn of_what_was_reported_as_deleted_alone_the_beginning_is_taken_up_too() {
    let states = [
        ("ADDED", "u", 1, "Running", 1),
        ("MODIFIED", "u", 2, "Failed", 1),
        ("DELETED", "u", 3, "Failed", 1),
    ];
    assert_eq!(taken(&states, &[3]), [1, 3]);
    assert_eq!(taken(&states, &[2, 3]), [2, 3]);
}
