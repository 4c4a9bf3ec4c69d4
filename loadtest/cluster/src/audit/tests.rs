use serde_json::{Value, json};

use super::*;

const USER: &str = "system:serviceaccount:argocd:event-reporter";
const LIST: &str = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications?limit=100";

/// What `gitops-runtime rbac print` prints: the one that is committed.
fn printed(case: &str) -> String {
    let path = format!("{}/../../pipeline/tests/rbac/{case}/out.yaml", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

fn rule(verb: &str) -> Rule {
    Rule {
        group: "argoproj.io".to_owned(),
        resource: "applications".to_owned(),
        verb: verb.to_owned(),
        name: None,
        namespace: Some("argocd".to_owned()),
    }
}

/// A line as the API server writes it at the level Metadata.
fn line(id: &str, stage: &str, verb: &str, uri: &str, object: Option<Value>, code: u16) -> Value {
    let mut line = json!({
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "auditID": id, "stage": stage,
        "requestURI": uri, "verb": verb,
        "user": {
            "username": USER, "uid": "0c1f2b44-6d0f-4b34-8f6b-6c8f5a9d2f10",
            "groups": ["system:serviceaccounts", "system:serviceaccounts:argocd", "system:authenticated"],
            "extra": {"authentication.kubernetes.io/credential-id": ["JTI=7a4e0b3c-0d0e-4a57-9a53-1f5b6f3f9b11"]},
        },
        "sourceIPs": ["127.0.0.1"], "userAgent": "gitops-runtime/0.1.0",
        "responseStatus": {"metadata": {}, "code": code},
        "requestReceivedTimestamp": "2026-11-21T10:00:00.000000Z", "stageTimestamp": "2026-11-21T10:00:00.001000Z",
        "annotations": {"authorization.k8s.io/decision": if code == 403 { "forbid" } else { "allow" },
                        "authorization.k8s.io/reason": ""},
    });
    if let Some(object) = object {
        line["objectRef"] = object;
    }
    line
}

fn applications(name: Option<&str>) -> Option<Value> {
    let mut object = json!({"resource": "applications", "namespace": "argocd", "apiGroup": "argoproj.io",
                            "apiVersion": "v1alpha1"});
    if let Some(name) = name {
        object["name"] = json!(name);
    }
    Some(object)
}

/// A reporter that lists, watches, and reads one application again.
fn usual() -> Vec<Value> {
    vec![
        line("1", "RequestReceived", "list", LIST, applications(None), 200),
        line("1", "ResponseComplete", "list", LIST, applications(None), 200),
        line("2", "ResponseStarted", "watch", LIST, applications(None), 200),
        line("3", "ResponseComplete", "get", LIST, applications(Some("web")), 200),
        line("4", "ResponseComplete", "get", LIST, applications(Some("gone")), 404),
        line("5", "ResponseComplete", "get", "/version?timeout=32s", None, 200),
    ]
}

fn judged(lines: &[Value], granted: &[Rule]) -> Verdict {
    let log: Vec<String> = lines.iter().map(Value::to_string).collect();
    verdict(&(log.join("\n") + "\n"), USER, granted).unwrap()
}

fn all() -> Vec<Rule> {
    granted(&printed("reporter")).unwrap()
}

#[test]
fn the_printed_manifest_is_read_verb_by_verb() {
    assert_eq!(user(&printed("reporter")).unwrap(), USER);
    assert_eq!(all(), [rule("get"), rule("list"), rule("watch")]);
    let everywhere = granted(&printed("reporter-of-many-namespaces")).unwrap();
    let anywhere = |verb| Rule { namespace: None, ..rule(verb) };
    assert_eq!(everywhere, [anywhere("get"), anywhere("list"), anywhere("watch")]);
    let secret = granted(&printed("reporter-with-token-secret")).unwrap();
    let shown: Vec<String> = secret.iter().map(Rule::to_string).collect();
    assert_eq!(
        shown,
        [
            "get secrets called argocd-token in argocd",
            "get applications.argoproj.io",
            "list applications.argoproj.io",
            "watch applications.argoproj.io",
        ]
    );
}

#[test]
fn only_what_is_bound_to_the_account_is_granted() {
    let refusal = |text: &str| granted(text).unwrap_err().to_string();
    let whole = printed("reporter");
    let other =
        whole.replace("- kind: ServiceAccount\n  name: event-reporter", "- kind: ServiceAccount\n  name: x");
    assert_ne!(other, whole);
    assert_eq!(refusal(&other), "the manifest grants nothing");
    let unbound =
        whole.replace("  kind: Role\n  name: gitops-runtime", "  kind: ClusterRole\n  name: gitops-runtime");
    assert_eq!(
        refusal(&unbound),
        "the ClusterRole gitops-runtime:argocd:event-reporter that is bound does not exist"
    );
    assert_eq!(refusal(&whole.replace("  - watch", "  - '*'")), "the manifest grants by wildcard");
    assert_eq!(
        refusal(&whole.replace("kind: ServiceAccount", "kind: Secret")),
        "the manifest of rights does not hold exactly one ServiceAccount"
    );
    assert_eq!(refusal("kind: [\n"), "read the manifest of rights");
}

#[test]
fn rights_that_were_all_used_and_sufficed_are_the_right_ones() {
    let verdict = judged(&usual(), &all());
    assert_eq!(verdict.failures, Vec::<String>::new());
    assert_eq!(verdict.requests, 5);
    assert_eq!(verdict.beside, ["get /version"]);
    assert_eq!(verdict.used, BTreeMap::from([(rule("get"), 1), (rule("list"), 1), (rule("watch"), 1)]));
    assert_eq!(
        verdict.to_string(),
        "5 requests, 1 x get applications.argoproj.io in argocd, 1 x list applications.argoproj.io in argocd, \
         1 x watch applications.argoproj.io in argocd, beside the rights: get /version"
    );
}

#[test]
fn each_refused_request_is_told() {
    let mut lines = usual();
    let secrets =
        json!({"resource": "secrets", "namespace": "argocd", "name": "argocd-secret", "apiVersion": "v1"});
    for id in ["6", "7"] {
        lines.push(line(id, "ResponseComplete", "get", "/api/v1/x", Some(secrets.clone()), 403));
    }
    let everywhere = json!({"resource": "applications", "apiGroup": "argoproj.io", "apiVersion": "v1alpha1"});
    lines.push(line("8", "ResponseComplete", "list", "/apis/x", Some(everywhere), 403));
    lines.push(line("9", "ResponseComplete", "get", "/metrics", None, 403));
    lines.push(line("10", "ResponseStarted", "watch", LIST, applications(None), 401));
    assert_eq!(
        judged(&lines, &all()).failures,
        [
            "answered 401: watch applications.argoproj.io in argocd",
            "answered 403: get /metrics",
            "answered 403: get secrets called argocd-secret in argocd (2 times)",
            "answered 403: list applications.argoproj.io",
        ]
    );
}

#[test]
fn a_right_that_was_never_used_with_success_is_told() {
    let lines: Vec<Value> = usual().into_iter().filter(|line| line["auditID"] != "3").collect();
    assert_eq!(
        judged(&lines, &all()).failures,
        ["granted and never used: get applications.argoproj.io in argocd"]
    );
    assert_eq!(judged(&[], &all()).failures.len(), 3);
    // Nor does another's request count, nor one that was not answered yet, nor the rights elsewhere.
    let mut other = usual();
    other[1]["user"]["username"] = json!("admin");
    assert_eq!(
        judged(&other, &all()).failures,
        ["granted and never used: list applications.argoproj.io in argocd"]
    );
    let mut elsewhere = usual();
    elsewhere[3]["objectRef"]["namespace"] = json!("team-a");
    assert_eq!(
        judged(&elsewhere, &all()).failures,
        [
            "answered 200 without a right that was granted: get applications.argoproj.io called web in team-a",
            "granted and never used: get applications.argoproj.io in argocd",
        ]
    );
    let named = Rule { name: Some("other".to_owned()), ..rule("get") };
    assert!(
        judged(&usual(), &[named]).failures.contains(
            &"granted and never used: get applications.argoproj.io called other in argocd".to_owned()
        )
    );
}

#[test]
fn what_is_allowed_without_a_granted_right_is_a_failure_unless_everybody_may() {
    let mut lines = usual();
    let review = json!({"resource": "selfsubjectaccessreviews", "apiGroup": "authorization.k8s.io"});
    lines.push(line("6", "ResponseComplete", "create", "/apis/x", Some(review), 201));
    let status = json!({"resource": "applications", "namespace": "argocd", "name": "web",
                        "apiGroup": "argoproj.io", "subresource": "status"});
    lines.push(line("7", "ResponseComplete", "get", "/apis/x", Some(status), 200));
    let verdict = judged(&lines, &all());
    assert_eq!(
        verdict.failures,
        [
            "answered 200 without a right that was granted: get applications/status.argoproj.io called web in argocd"
        ]
    );
    assert_eq!(verdict.beside, ["create selfsubjectaccessreviews.authorization.k8s.io", "get /version"]);
}

#[test]
fn everybody_who_asked_is_named_once() {
    let mut lines = usual();
    lines[0]["user"]["username"] = json!("system:serviceaccount:argocd:default");
    let log: Vec<String> = lines.iter().map(Value::to_string).collect();
    let found: Vec<String> = users(&log.join("\n")).unwrap().into_iter().collect();
    assert_eq!(found, ["system:serviceaccount:argocd:default", USER]);
}

#[test]
fn a_line_that_is_no_event_is_not_passed_over() {
    let log = format!("{}\n{{\"kind\":\"Ev", usual()[1]);
    assert_eq!(verdict(&log, USER, &all()).unwrap_err().to_string(), "read line 2 of the audit log");
}

#[test]
fn what_an_api_server_refuses_before_it_has_allowed_it_once_is_excused_after_a_start_alone() {
    let at = |second: u32| format!("2026-11-21T10:00:{second:02}.000000Z");
    let asked = |id: &str, second: u32, code: u16| {
        let mut line = line(id, "ResponseComplete", "list", LIST, applications(None), code);
        line["requestReceivedTimestamp"] = json!(at(second));
        line.to_string()
    };
    let lists = |codes: &[u16]| {
        let lines = codes.iter().zip(1..).map(|(code, second)| asked(&second.to_string(), second, *code));
        lines.collect::<Vec<_>>().join("\n")
    };
    let refused = |codes: &[u16], starts: &[u32]| {
        let starts: Vec<Timestamp> = starts.iter().map(|second| at(*second).parse().unwrap()).collect();
        let failures = verdict_over_starts(&lists(codes), USER, &all(), &starts).unwrap().failures;
        failures.iter().filter(|failure| failure.starts_with("answered 403")).count()
    };
    assert_eq!(refused(&[200, 403, 403, 200], &[2]), 0);
    assert_eq!(refused(&[200, 403, 200, 403, 200], &[2, 4]), 0);
    assert_eq!(refused(&[200, 403, 200], &[]), 1, "nothing was started");
    assert_eq!(refused(&[200, 403, 200], &[3]), 1, "before the start");
    assert_eq!(refused(&[200, 200, 403], &[2]), 1, "it was allowed since");
    assert_eq!(refused(&[200, 403, 403], &[2]), 1, "it was never allowed again");
    assert_eq!(refused(&[200, 403, 200, 403], &[2, 4]), 1, "nor was it after the second start");
    assert_eq!(refused(&[200, 403, 403, 200], &[2, 3]), 0, "it was allowed after the second start");
}
