//! Manifests that differ, and texts that may.

use super::super::manifest::{differences, of_application};
use super::*;

const DIGEST: &str = "redacted:hmac-sha256:0123456789abcdef0123456789abcdef";

/// What is found when the live object of the Deployment was told as something else.
fn live(spoil: impl Fn(&mut Value)) -> Vec<String> {
    spoilt(1, |draft| {
        spoil(&mut draft.object);
        draft.source["actualManifest"] = json!(draft.object.to_string());
    })
}

#[test]
fn a_live_object_that_differs_is_found() {
    let found = |what: &[&str]| {
        what.iter().map(|what| format!("argocd/web Deployment web/web: live {what}")).collect::<Vec<_>>()
    };
    for (spoilt, what) in [
        (
            live(|object| object["spec"]["replicas"] = json!(3)),
            &["spec.replicas is 3, expected 2", "as it was: spec.replicas is 3, expected 2"][..],
        ),
        (
            live(|object| object["metadata"]["uid"] = json!("d0")),
            &[r#"metadata.uid is "d0", expected "d1""#, r#"as it was: metadata.uid is "d0", expected "d1""#],
        ),
        // What may have changed since must have been so then.
        (
            live(|object| object["metadata"]["labels"] = json!({"a": "b"})),
            &[r#"as it was: metadata.labels is {"a":"b"}, expected null"#],
        ),
        (
            live(|object| object["status"] = json!({"readyReplicas": 9})),
            &["as it was: status.readyReplicas is 9, expected 0"],
        ),
    ] {
        assert_eq!(spoilt, found(what));
    }
    // Of the newest state everything counts.
    let mut is = is();
    is.past.clear();
    is.live.insert(key("apps/v1", "Deployment", "web"), was());
    let mut drafts = told();
    assert_eq!(super::found(&is, &drafts), Vec::<String>::new());
    drafts[1].object["status"]["readyReplicas"] = json!(9);
    drafts[1].source["actualManifest"] = json!(drafts[1].object.to_string());
    assert_eq!(super::found(&is, &drafts), found(&["status.readyReplicas is 9, expected 0"]));
    assert_eq!(
        spoilt(1, |draft| draft.source["actualManifest"] = json!("{}")),
        ["argocd/web Deployment web/web: live manifest is not the object beside it"]
    );
    assert_eq!(
        spoilt(1, |draft| draft.source["actualManifest"] = json!("")),
        ["argocd/web Deployment web/web: live manifest is empty"]
    );
}

#[test]
fn a_live_object_that_is_not_there_is_found() {
    let mut is = is();
    is.live.clear();
    is.past.clear();
    for item in is.managed.as_mut().unwrap()["items"].as_array_mut().unwrap() {
        item["liveState"] = json!("null");
    }
    let mut drafts = told();
    drafts.truncate(2);
    let entries = |object: &mut Value| {
        object["status"]["resources"].as_array_mut().unwrap().truncate(1);
    };
    is.object.iter_mut().for_each(entries);
    entries(&mut drafts[0].object);
    assert_eq!(
        found(&is, &drafts),
        [
            "argocd/web Deployment web/web: live manifest is true, expected false",
            "argocd/web Deployment web/web: live object was reported, and there is none",
            "argocd/web Deployment web/web: live manifest was reported, and there is none",
        ]
    );
    drafts[1].object = redacted(deployment(false));
    drafts[1].source["actualManifest"] = json!("");
    assert_eq!(found(&is, &drafts), Vec::<String>::new());
}

#[test]
fn a_desired_manifest_that_differs_is_found() {
    let desired = |spoil: &dyn Fn(&mut Value)| {
        spoilt(1, |draft| {
            let mut desired = redacted(deployment(false));
            spoil(&mut desired);
            draft.source["desiredManifest"] = json!(desired.to_string());
            draft.source["gitManifest"] = json!(serde_saphyr::to_string(&desired).unwrap());
        })
    };
    assert_eq!(
        desired(&|object| object["spec"]["replicas"] = json!(1)),
        ["argocd/web Deployment web/web: desired spec.replicas is 1, expected 2"]
    );
    assert_eq!(
        desired(&|object| object["spec"]["template"]["spec"]["containers"] = json!([])),
        ["argocd/web Deployment web/web: desired spec.template.spec.containers is [], expected \
             [{\"env\":[{\"name\":\"DB_PASSWORD\",\"value\":\"hunter22\"}],\"image\":\"nginx:1\",\"name\":\"main\"}]"]
    );
    assert_eq!(
        spoilt(1, |draft| draft.source["desiredManifest"] = json!("")),
        ["argocd/web Deployment web/web: desired manifest is empty"]
    );
    assert_eq!(
        spoilt(1, |draft| draft.source["gitManifest"] = json!("spec:\n  replicas: 9\n")).len(),
        5,
        "four, and how many more"
    );
}

#[test]
fn a_manifest_is_withheld_only_where_it_may_be() {
    let mut is = is();
    let mut drafts = told();
    for object in [is.object.as_mut().unwrap(), &mut drafts[0].object] {
        object["status"]["resources"][0]["requiresPruning"] = json!(true);
    }
    for field in ["actualManifest", "desiredManifest", "gitManifest"] {
        drafts[1].source[field] = json!("");
    }
    assert_eq!(found(&is, &drafts), Vec::<String>::new());
    drafts[2].source["actualManifest"] = json!("");
    assert_eq!(found(&is, &drafts), ["argocd/web Secret web/login: live manifest is empty"]);
}

#[test]
fn an_application_is_compared_as_a_whole() {
    let wrong = spoilt(0, |draft| draft.object["spec"]["source"]["path"] = json!("other"));
    assert_eq!(wrong, [r#"argocd/web: spec.source.path is "other", expected "app""#]);
    let wrong = spoilt(0, |draft| draft.object["metadata"]["finalizers"] = json!(["x"]));
    assert_eq!(wrong, [r#"argocd/web: metadata.finalizers is ["x"], expected null"#]);
    let condition = |time: &str| json!({"status": {"conditions": [{"type": "SyncError", "message": "m", "lastTransitionTime": time}]}});
    assert_eq!(of_application(&condition("1"), &condition("2")), Vec::<String>::new());
    assert_eq!(
        of_application(&condition("1"), &json!({"status": {}})),
        [r#"status is {"conditions":[{"message":"m","type":"SyncError"}]}, expected null"#]
    );
}

#[test]
fn a_digest_stands_only_for_what_speaks_of_a_secret() {
    let differ = |reported: Value, is: Value| differences(&reported, &is);
    for (reported, is) in [
        (json!({"password": DIGEST}), json!({"password": "x"})),
        (
            json!({"env": [{"name": "API_TOKEN", "value": DIGEST}]}),
            json!({"env": [{"name": "API_TOKEN", "value": "x"}]}),
        ),
        (json!({"url": format!("https://u:{DIGEST}@host/x")}), json!({"url": "https://u:p@host/x"})),
        (json!({"basicAuth": DIGEST}), json!({"basicAuth": "u p"})),
        (json!({"tlsCert": DIGEST}), json!({"tlsCert": "a\nb"})),
        (json!({"OAUTH_CLIENT": DIGEST}), json!({"OAUTH_CLIENT": "x"})),
        (json!({"args": [format!("--token={DIGEST}")]}), json!({"args": ["--token=abc"]})),
        (
            json!({"values": format!("a: 1\npassword: {DIGEST}\n")}),
            json!({"values": "# a comment\npassword: abc\na: 1\n"}),
        ),
        (
            json!({"values": format!("# withheld: unparsable manifest ({DIGEST})\n")}),
            json!({"values": "token: ["}),
        ),
    ] {
        assert_eq!(differ(reported.clone(), is), Vec::<String>::new(), "{reported}");
    }
    for (reported, is) in [
        (json!({"image": DIGEST}), json!({"image": "nginx:1"})),
        (
            json!({"env": [{"name": "LEVEL", "value": DIGEST}]}),
            json!({"env": [{"name": "LEVEL", "value": "info"}]}),
        ),
        (json!({"author": DIGEST}), json!({"author": "Ada"})),
        (json!({"certainty": DIGEST}), json!({"certainty": "high"})),
        (json!({"args": [format!("--token={DIGEST}")]}), json!({"args": ["--token=abc --verbose"]})),
        (json!({"script": format!("token={DIGEST}")}), json!({"script": "token=abc\nrun\n"})),
        (json!({"password": DIGEST}), json!({"password": 3})),
        (json!({"password": "redacted:hmac-sha256:xyz"}), json!({"password": "x"})),
        (json!({"args": [format!("--tokens={DIGEST}")]}), json!({"args": ["--token=abc"]})),
        (json!({"args": [format!("{DIGEST} end")]}), json!({"args": ["token=abc"]})),
        (
            json!({"values": format!("a: 2\npassword: {DIGEST}\n")}),
            json!({"values": "password: abc\na: 1\n"}),
        ),
        (json!({"password": "other"}), json!({"password": "x"})),
        (json!({"list": [1, 2]}), json!({"list": [1]})),
        (json!({"list": [1]}), json!({"list": [2]})),
        (json!({}), json!({"replicas": 0})),
    ] {
        assert_eq!(differ(reported.clone(), is).len(), 1, "{reported}");
    }
}

#[test]
fn no_more_than_a_few_differences_are_told_of_one_manifest() {
    let many = json!({"a": 1, "b": 1, "c": 1, "d": 1, "e": "x".repeat(500), "f": 1});
    let told = differences(&many, &json!({}));
    assert_eq!(told.len(), 5);
    assert_eq!(told[4], "and 2 more");
    assert!(differences(&json!({"e": "x".repeat(500)}), &json!({}))[0].len() < 200);
}
