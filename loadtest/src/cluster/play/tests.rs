use serde_json::json;

use super::*;

fn step(yaml: &str) -> Step {
    let text = format!("about: A\napplications: [shop]\nsteps:\n  - {yaml}\n");
    Scenario::read("shop", &text).unwrap().steps.remove(0)
}

fn made(yaml: &str) -> Value {
    let Step::Create(create) = step(yaml) else { panic!("{yaml}") };
    application("shop", "http://git/shop.git", "shop-1", &create)
}

#[test]
fn an_application_gets_what_its_step_leaves_out() {
    let object = made("create: {finalizer: true, spec: {source: {path: plain}}}");
    assert_eq!(object["metadata"]["finalizers"], json!([FINALIZER]));
    assert_eq!(
        object["spec"],
        json!({
            "project": "default",
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"},
            "source": {"path": "plain", "repoURL": "http://git/shop.git", "targetRevision": "main"},
            "syncPolicy": {"syncOptions": ["CreateNamespace=true"]},
        })
    );
}

#[test]
fn what_a_step_says_stands() {
    let object = made(
        "create: {spec: {project: own, sources: [{ref: a, targetRevision: v1}, {path: b}], \
         destination: {namespace: \"$APPLICATION-x\"}, syncPolicy: {automated: {}, syncOptions: []}}}",
    );
    assert!(object["metadata"].get("finalizers").is_none());
    let spec = &object["spec"];
    assert_eq!(spec["project"], "own");
    assert_eq!(spec["destination"]["namespace"], "shop-1-x");
    assert_eq!(spec["sources"][0]["targetRevision"], "v1");
    assert_eq!(spec["sources"][1]["repoURL"], "http://git/shop.git");
    assert_eq!(spec["syncPolicy"], json!({"automated": {}, "syncOptions": []}));
}

fn state() -> State {
    State::new(json!({
        "metadata": {"annotations": {"a": "b"}},
        "status": {
            "health": {"status": "Healthy"}, "sync": {"status": "Synced", "revision": "abc"},
            "resources": [{}, {}], "history": [{"id": 3}, {"id": 4}],
            "operationState": {"phase": "Succeeded", "message": "all went well"},
            "conditions": [{"type": "SharedResourceWarning", "message": "shared"}],
        },
    }))
}

#[test]
fn everything_that_is_waited_for_must_hold_at_once() {
    let holds = |yaml: &str, head: Option<&str>| {
        let Step::Wait(wait) = step(&format!("wait: {{{yaml}}}")) else { panic!("{yaml}") };
        state().is(&wait, head)
    };
    for good in [
        "health: Healthy, sync: Synced, resources: 2",
        "condition: SharedResourceWarning",
        "message: went well",
        "message: shared, phase: Succeeded",
    ] {
        assert!(holds(good, None), "{good}");
    }
    for bad in [
        "health: Healthy, sync: OutOfSync",
        "resources: 3",
        "condition: ComparisonError",
        "message: failed",
        "phase: Running",
    ] {
        assert!(!holds(bad, None), "{bad}");
    }
    assert!(holds("head: true", Some("abc")));
    assert!(!holds("head: true", Some("abd")));
}

#[test]
fn an_operation_is_over_when_it_is_asked_for_no_more() {
    let mut state = state();
    assert!(state.has_ended() && !state.is_asked_for() && !state.is_running());
    assert_eq!((state.history(0), state.history(1), state.history(2)), (Some(4), Some(3), None));
    state =
        State::new(json!({"operation": {"sync": {}}, "status": {"operationState": {"phase": "Running"}}}));
    assert!(state.is_running() && !state.has_ended());
}

#[test]
fn a_state_is_told_in_one_line() {
    assert_eq!(
        state().to_string(),
        "health Healthy, sync Synced of abc, operation Succeeded, 2 resources, SharedResourceWarning; shared; \
         all went well"
    );
    assert_eq!(
        State::new(json!({})).to_string(),
        "health unset, sync unset of unset, operation unset, 0 resources"
    );
}
