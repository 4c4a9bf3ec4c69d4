use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::*;

/// A report of an application, as of 12:00 and so many seconds.
fn application(second: u32, change: impl FnOnce(&mut Value, &mut Value)) -> Value {
    let mut object = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "a", "namespace": "argocd", "uid": "u", "resourceVersion": "7"},
        "status": {"health": {"status": "Healthy"}},
    });
    let mut data = json!({
        "timestamp": format!("2026-11-21T12:00:{second:02}.250Z"),
        "source": {"appName": "", "healthStatus": "Healthy", "syncStartedAt": "2026-11-21T11:00:00Z",
            "actualManifest": "{\"a\":[1,2]}"},
    });
    change(&mut data, &mut object);
    data["object"] = STANDARD.encode(object.to_string()).into();
    data
}

fn resource(name: &str, uid: &str, health: &str) -> Value {
    let object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "n"}});
    json!({
        "timestamp": "2026-11-21T12:00:00.250Z", "object": STANDARD.encode(object.to_string()),
        "source": {"appName": "a", "appNamespace": "argocd", "appUID": uid, "healthStatus": health},
    })
}

/// Entities, how many differ, and the lines that say where.
fn compared(recorded: &[Value], replayed: &[Value]) -> (usize, usize, Vec<String>) {
    let [recorded, replayed] = [recorded, replayed].map(|reports| last(reports.iter().cloned()));
    let Compared { entities, different, differences } = compare(&recorded, &replayed, &HashSet::new());
    (entities, different, differences.iter().map(ToString::to_string).collect())
}

#[test]
fn only_the_last_report_of_each_life_counts() {
    let recorded =
        [resource("c", "u", "Degraded"), resource("c", "u", "Healthy"), resource("c", "v", "Degraded")];
    let replayed = [resource("c", "v", "Degraded"), resource("c", "u", "Healthy")];
    assert_eq!(compared(&recorded, &replayed), (2, 0, vec![]));
}

#[test]
fn a_changed_health_a_missing_report_and_one_too_many_are_told() {
    let recorded = [resource("c", "u", "Healthy"), resource("d", "u", "Healthy"), application(0, |_, _| {})];
    let replayed = [
        resource("c", "u", "Degraded"),
        resource("e", "u", "Healthy"),
        application(0, |_, object| object["status"]["health"]["status"] = "Missing".into()),
    ];
    let told = [
        r#"argocd/a: object.status.health.status: recorded "Healthy", replayed "Missing""#,
        r#"argocd/a ConfigMap n/c: source.healthStatus: recorded "Healthy", replayed "Degraded""#,
        r#"argocd/a ConfigMap n/d: report: recorded "one", replayed (absent)"#,
        r#"argocd/a ConfigMap n/e: report: recorded (absent), replayed "one""#,
    ];
    assert_eq!(compared(&recorded, &replayed), (4, 4, told.map(str::to_owned).to_vec()));
}

#[test]
fn manifests_are_compared_field_by_field() {
    let replayed = application(0, |data, _| data["source"]["actualManifest"] = r#"{"a":[1,3]}"#.into());
    let told = "argocd/a: source.actualManifest.a[1]: recorded 2, replayed 3";
    assert_eq!(compared(&[application(0, |_, _| {})], &[replayed]), (1, 1, vec![told.to_owned()]));
}

/// Fills in a moment at each place that may hold the hour of the report.
fn fill(data: &mut Value, object: &mut Value, moment: &str) {
    data["source"]["syncStartedAt"] = moment.into();
    data["source"]["syncFinishedAt"] = moment.into();
    data["errors"] = json!([{"message": "m", "lastSeen": moment}]);
    object["metadata"]["deletionTimestamp"] = moment.into();
}

#[test]
fn the_hour_of_a_report_is_none_of_its_content() {
    let at = |second: u32| {
        let moment = format!("2026-11-21T12:00:{second:02}Z");
        application(second, |data, object| fill(data, object, &moment))
    };
    assert_eq!(compared(&[at(1)], &[at(2)]), (1, 0, vec![]));
}

#[test]
fn a_moment_that_is_not_the_hour_of_its_report_is_content() {
    let hour = application(1, |data, object| fill(data, object, "2026-11-21T12:00:01Z"));
    let fact = application(2, |data, object| fill(data, object, "2026-11-21T12:00:01Z"));
    let other = application(2, |data, object| fill(data, object, "2026-11-21T12:00:02Z"));
    // Equal moments are equal whatever filled them in; different ones must be "now" on both sides.
    assert_eq!(compared(std::slice::from_ref(&hour), std::slice::from_ref(&fact)), (1, 0, vec![]));
    let (_, different, lines) = compared(&[fact], &[other]);
    assert_eq!((different, lines.len()), (1, 4), "{lines:?}");
    // Elsewhere no moment is taken out.
    let elsewhere = |second: u32| {
        application(second, |data, _| data["source"]["path"] = format!("2026-11-21T12:00:0{second}Z").into())
    };
    assert_eq!(compared(&[elsewhere(1)], &[elsewhere(2)]).1, 1);
}

#[test]
fn a_deletion_that_was_recorded_as_a_stub_is_compared_as_one() {
    let stub = |uid: &str| {
        application(1, |data, object| {
            data["source"]["actualManifest"] = "".into();
            *object = json!({
                "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
                "metadata": {"name": "a", "namespace": "argocd", "uid": uid,
                    "deletionTimestamp": "2026-11-21T12:00:01Z"},
            });
        })
    };
    let deleted = application(2, |data, object| {
        data["source"]["actualManifest"] = "".into();
        object["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:02Z".into();
    });
    assert_eq!(compared(&[stub("u")], std::slice::from_ref(&deleted)), (1, 0, vec![]));
    // The other way round it is a report that lost its object.
    assert_eq!(compared(&[deleted], &[stub("u")]).1, 1);
    let living = application(2, |_, _| {});
    let told = [
        r#"argocd/a: source.actualManifest: recorded "", replayed {"a":[1,2]}"#,
        r#"argocd/a: object.metadata.deletionTimestamp: recorded "2026-11-21T12:00:01Z", replayed (absent)"#,
    ];
    assert_eq!(compared(&[stub("u")], &[living]), (1, 1, told.map(str::to_owned).to_vec()));
}

#[test]
fn a_commit_that_a_vanished_application_could_not_be_asked_for_may_be_told() {
    let told = |author: &str, message: &str| {
        let mut data = resource("c", "u", "Healthy");
        data["source"]["commitAuthor"] = author.into();
        data["source"]["commitMessage"] = message.into();
        last([data].into_iter())
    };
    let call = |status: u16, what: &str| -> CallLine {
        let path = format!("/api/v1/applications/a/{what}?appNamespace=argocd&project=default&sourceIndex=0");
        serde_json::from_value(json!({"n": 1, "t": 1.0, "by": "reporter", "status": status, "path": path}))
            .unwrap()
    };
    let metadata = "revisions/abc/metadata";
    let different = |recorded: &BTreeMap<Entity, Value>, calls: &[CallLine]| {
        compare(recorded, &told("Ann", "Begin"), &not_found(calls)).different
    };
    assert_eq!(different(&told("", ""), &[call(404, metadata)]), 0);
    assert_eq!(different(&told("", ""), &[call(403, metadata)]), 0);
    assert_eq!(different(&told("", ""), &[call(200, metadata)]), 1, "it was told, and left out");
    assert_eq!(different(&told("", ""), &[call(404, "manifests")]), 1, "it was not asked for");
    assert_eq!(different(&told("", ""), &[]), 1);
    assert_eq!(different(&told("Eve", ""), &[call(404, metadata)]), 1, "another was recorded");
}
