//! What the real platform shows, against what it acknowledged and what the cluster holds.

use super::super::shown::differences;
use super::*;
use crate::platform::Shown;

/// All of it, as it is to be shown.
fn shown() -> Shown {
    let [_, web, login] = told().try_into().unwrap_or_else(|_| panic!("three reports"));
    let resource = |draft: &Draft| {
        let key = draft.entity.resource.clone().unwrap();
        json!({"apiVersion": key.api_version, "kind": key.kind, "namespace": key.namespace, "name": key.name})
    };
    let state = |resource: Value| json!({"resource": resource, "reports": 1, "current": true, "uid": "", "version": null});
    let manifests = |draft: &Draft| {
        let of = |field: &str| draft.source[field].clone();
        let all =
            json!({"live": of("actualManifest"), "desired": of("desiredManifest"), "git": of("gitManifest")});
        (draft.entity.resource.clone().unwrap(), all)
    };
    Shown {
        timeline: vec![state(resource(&login)), state(resource(&web)), state(Value::Null)],
        application: json!({
            "uid": UID, "deleted": false, "healthStatus": "PROGRESSING", "syncStatus": "SYNCED", "revision": "new",
            "operationPhase": "Succeeded", "project": "default", "resources": [
                {"resource": resource(&web), "healthStatus": "PROGRESSING", "syncStatus": "SYNCED"},
                {"resource": resource(&login), "healthStatus": "HEALTHY", "syncStatus": "SYNCED"},
            ],
        }),
        manifests: vec![manifests(&web), manifests(&login)],
    }
}

/// What is found when what is shown is spoilt.
fn spoilt(spoil: impl FnOnce(&mut Shown)) -> Vec<String> {
    let mut shown = shown();
    spoil(&mut shown);
    differences(&shown, &is(), &held(&told()))
}

#[test]
fn what_is_shown_in_full_has_no_difference() {
    assert_eq!(spoilt(|_| {}), [""; 0]);
}

#[test]
fn a_report_that_is_lost_or_kept_twice_is_found() {
    let kept = |reports: u64, states: u64| {
        format!(
            "argocd/web at the platform: Deployment web/web is kept as Entity {{ reports: {reports}, states: {states}, \
             now: Some((\"\", None)) }}, acknowledged as Entity {{ reports: 1, states: 1, now: Some((\"\", None)) }}"
        )
    };
    assert_eq!(spoilt(|shown| shown.timeline[1]["reports"] = json!(2)), [kept(2, 1)]);
    let twice = |shown: &mut Shown| {
        let mut again = shown.timeline[1].clone();
        again["current"] = json!(false);
        shown.timeline.push(again);
    };
    assert_eq!(spoilt(twice), [kept(2, 2)]);
    let lost = spoilt(|shown| drop(shown.timeline.remove(1)));
    assert!(
        lost[0].contains("Deployment web/web is kept as Entity { reports: 0, states: 0, now: None }"),
        "{lost:?}"
    );
    let other = spoilt(|shown| shown.timeline[1]["version"] = json!(59));
    assert!(other[0].contains("now: Some((\"\", Some(59)))"), "{other:?}");
    let ghost = |shown: &mut Shown| {
        let mut ghost = shown.timeline[0].clone();
        ghost["resource"]["name"] = json!("ghost");
        shown.timeline.push(ghost);
    };
    assert_eq!(spoilt(ghost), ["argocd/web at the platform: Secret web/ghost was never acknowledged"]);
}

#[test]
fn reports_that_differ_in_their_time_alone_are_one_state() {
    let (mut told, mut shown) = (held(&told()), shown());
    for (minute, spec) in [(1, "a"), (2, "a"), (3, "b")] {
        let mut payload: Value = serde_json::from_slice(&told.kept[0].payload).unwrap();
        payload["timestamp"] = json!(format!("2026-11-21T10:0{minute}:00.000Z"));
        payload["source"]["labels"] = json!(spec);
        let payload = bytes::Bytes::from(payload.to_string());
        told.kept.push(KeptReport { key: None, entity: entity(None), payload });
        told.last[0].1.reports += 1;
    }
    let found = differences(&shown, &is(), &told);
    assert!(
        found[0].ends_with("acknowledged as Entity { reports: 4, states: 3, now: Some((\"\", None)) }"),
        "{found:?}"
    );
    // Twice so, once so, and as it was before.
    let states = [(2, false), (1, true), (1, false)].map(|(reports, current)| {
        json!({"resource": null, "reports": reports, "current": current, "uid": "", "version": null})
    });
    shown.timeline.truncate(2);
    shown.timeline.extend(states);
    assert_eq!(differences(&shown, &is(), &told), [""; 0]);
}

#[test]
fn an_application_that_is_shown_otherwise_than_it_is_is_found() {
    for (field, value, line) in [
        ("uid", json!("u0"), format!("uid is shown as \"u0\", expected {UID:?}")),
        ("healthStatus", json!("HEALTHY"), "health is shown as \"HEALTHY\", expected \"PROGRESSING\"".into()),
        (
            "syncStatus",
            json!("OUT_OF_SYNC"),
            "sync status is shown as \"OUTOFSYNC\", expected \"SYNCED\"".into(),
        ),
        ("revision", json!("old"), "revision is shown as \"old\", expected \"new\"".into()),
        ("operationPhase", Value::Null, "operation phase is shown as \"\", expected \"Succeeded\"".into()),
        ("project", json!("other"), "project is shown as \"other\", expected \"default\"".into()),
        ("deleted", json!(true), "deleted is shown as \"true\", expected \"false\"".into()),
    ] {
        let found = spoilt(|shown| shown.application[field] = value);
        assert_eq!(found, [format!("argocd/web at the platform: {line}")]);
    }
    let gone = Application { object: None, ..is() };
    let found = differences(&shown(), &gone, &held(&told()));
    assert_eq!(found, ["argocd/web at the platform: is gone, and is not shown so"]);
    let mut so = shown();
    so.application["deleted"] = json!(true);
    assert_eq!(differences(&so, &gone, &held(&told())), [""; 0]);
}

#[test]
fn a_resource_that_is_shown_otherwise_than_it_was_acknowledged_is_found() {
    let found = spoilt(|shown| shown.application["resources"][0]["healthStatus"] = Value::Null);
    let line =
        r#"Deployment web/web is shown as ("UNKNOWN", "SYNCED"), acknowledged as ("PROGRESSING", "SYNCED")"#;
    assert_eq!(found, [format!("argocd/web at the platform: {line}")]);
    let found = spoilt(|shown| drop(shown.application["resources"].as_array_mut().unwrap().remove(1)));
    assert_eq!(found, ["argocd/web at the platform: Secret web/login is listed, and not shown"]);
    let more = |shown: &mut Shown| {
        let mut ghost = shown.application["resources"][0].clone();
        ghost["resource"]["name"] = json!("ghost");
        shown.application["resources"].as_array_mut().unwrap().push(ghost);
    };
    assert_eq!(spoilt(more), ["argocd/web at the platform: Deployment web/ghost is shown, and not listed"]);
    // A manifest is not told: it may hold what is secret.
    let found = spoilt(|shown| shown.manifests[1].1["desired"] = json!("{\"data\":\"hunter2\"}"));
    let line = "the desired manifest of Secret web/login is not as acknowledged";
    assert_eq!(found, [format!("argocd/web at the platform: {line}")]);
}
