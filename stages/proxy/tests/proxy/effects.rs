//! What each operation tells Argo CD and the API server, and what it says of them.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::cluster::{BUILD, DONE, WEB};
use crate::operations::asked;
use crate::support::Running;

#[tokio::test]
async fn a_sync_says_all_that_was_asked_for_as_argo_cd_takes_it() {
    let running = Running::start().await;
    let query = r#"mutation { syncApplication(application: APP, options: {
        dryRun: true, prune: true, revision: "abc", infos: [{name: "why", value: "test"}],
        resources: [{name: "web", group: "apps", kind: "Deployment", namespace: "default"}],
        retryStrategy: {limit: 3, backoff: {duration: "5s", factor: 2, maxDuration: "1m"}},
        strategy: {hook: {force: true}}, syncOptions: {items: ["CreateNamespace=true"]}
    }) { metadata { name namespace } } }"#;
    let done = running.data(&running.admin, &asked(query)).await;
    assert_eq!(done, json!({"syncApplication": {"metadata": {"name": "shop", "namespace": "argocd"}}}));
    let changes = running.argocd.take();
    let (method, path, body) = &changes[0];
    assert_eq!(
        (method.as_str(), path.as_str()),
        ("POST", "/api/v1/applications/shop/sync?appNamespace=argocd")
    );
    let expected = json!({
        "name": "shop", "appNamespace": "argocd", "dryRun": true, "prune": true, "revision": "abc",
        "infos": [{"name": "why", "value": "test"}],
        "resources": [{"name": "web", "group": "apps", "kind": "Deployment", "namespace": "default"}],
        "retryStrategy": {"limit": 3, "backoff": {"duration": "5s", "factor": 2, "maxDuration": "1m"}},
        "strategy": {"hook": {"force": true}}, "syncOptions": {"items": ["CreateNamespace=true"]},
    });
    assert_eq!(*body, expected);
    let other =
        r#"mutation { syncApplication(application: APP, options: {name: "cart"}) { metadata { name } } }"#;
    let said = "options.name is to be the application's own name, or left out";
    running.wrong(&asked(other), said).await;
}

/// Argo CD takes the revision for one of a single source, passes over it, and syncs to what the sources follow.
#[tokio::test]
async fn an_application_of_several_sources_is_synced_to_no_single_revision() {
    let running = Running::start().await;
    let sync = |name: &str, revision: &str| {
        let of = format!(r#"application: {{namespace: "argocd", name: "{name}"}}"#);
        format!(
            r#"mutation {{ syncApplication({of}, options: {{revision: "{revision}"}}) {{ metadata {{ name }} }} }}"#
        )
    };
    let said = "the sources of the application are a list of 2, for which Argo CD passes over a revision: leave it out";
    running.wrong(&sync("pair", "v1"), said).await;
    assert!(running.argocd.take().is_empty());
    running.data(&running.admin, &sync("pair", "")).await;
    // What Argo CD writes to a branch is one source, whatever stands beside it.
    running.data(&running.admin, &sync("wet", "v1")).await;
    assert_eq!(running.argocd.take().len(), 2);
}

#[tokio::test]
async fn an_operation_that_is_begun_is_known_by_when_the_one_before_it_started() {
    let running = Running::start().await;
    let ask = async |act: &str| {
        let query = format!("mutation {{ {act} {{ metadata {{ name }} previousStartedAt }} }}");
        running.data(&running.admin, &asked(&query)).await
    };
    let started = "2026-11-28T10:00:00Z";
    let acts = [
        ("syncApplication", "syncApplication(application: APP)"),
        ("rollbackApplication", "rollbackApplication(application: APP, options: {id: 1})"),
    ];
    for (field, act) in acts {
        // Argo CD forgets the one before in the moment in which it takes another.
        running.argocd.operations.lock().unwrap().push_back(("Failed", started));
        let begun = json!({"metadata": {"name": "shop"}, "previousStartedAt": started});
        assert_eq!(ask(act).await, json!({field: begun}));
        let first = json!({"metadata": {"name": "shop"}, "previousStartedAt": null});
        assert_eq!(ask(act).await, json!({field: first}));
    }
    // Whoever does not ask costs no look.
    running.argocd.operations.lock().unwrap().push_back(("Failed", started));
    running
        .data(&running.admin, &asked("mutation { syncApplication(application: APP) { metadata { name } } }"))
        .await;
    assert_eq!(running.argocd.operations.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn acts_on_applications_reach_argo_cd_at_their_own_places() {
    let running = Running::start().await;
    let of = "group=apps&version=v1&kind=Deployment&namespace=default&resourceName=web";
    let app = "/api/v1/applications/shop";
    let cases: [(&str, &str, String, Value); 7] = [
        (
            "terminateOperation(application: APP) { terminated }",
            "DELETE",
            format!("{app}/operation?appNamespace=argocd"),
            Value::Null,
        ),
        (
            "refreshApplication(application: APP) { metadata { name } }",
            "GET",
            format!("{app}?appNamespace=argocd&refresh=normal"),
            Value::Null,
        ),
        (
            "refreshApplication(application: APP, type: hard) { metadata { name } }",
            "GET",
            format!("{app}?appNamespace=argocd&refresh=hard"),
            Value::Null,
        ),
        (
            "rollbackApplication(application: APP, options: {id: 1, prune: true}) { metadata { name } }",
            "POST",
            format!("{app}/rollback?appNamespace=argocd"),
            json!({"id": 1, "prune": true, "name": "shop", "appNamespace": "argocd"}),
        ),
        (
            "deleteResource(application: APP, resource: DEPLOYMENT, options: {orphan: true})",
            "DELETE",
            format!("{app}/resource?appNamespace=argocd&{of}&force=false&orphan=true"),
            Value::Null,
        ),
        (
            "restartResource(application: APP, resource: DEPLOYMENT)",
            "POST",
            format!("{app}/resource/actions?appNamespace=argocd&{of}"),
            json!("restart"),
        ),
        (
            r#"runResourceAction(application: APP, resource: DEPLOYMENT, action: "scale")"#,
            "POST",
            format!("{app}/resource/actions?appNamespace=argocd&{of}"),
            json!("scale"),
        ),
    ];
    for (field, method, path, body) in cases {
        running.data(&running.admin, &asked(&format!("mutation {{ {field} }}"))).await;
        assert_eq!(running.argocd.take(), [(method.to_owned(), path, body)], "{field}");
    }
    let pod = r#"mutation { restartResource(application: APP, resource: {kind: "Pod", namespace: "default", name: "web"}) }"#;
    let said =
        "a Deployment, StatefulSet or DaemonSet of the group apps is restarted: run the action of any other";
    assert_eq!(running.refused(&running.admin, &asked(pod)).await.0, said);
}

#[tokio::test]
async fn an_operation_is_ended_though_others_write_the_application_meanwhile() {
    let running = Running::start().await;
    let end = asked("mutation { terminateOperation(application: APP) { terminated } }");
    running.argocd.conflicts.store(4, Ordering::SeqCst);
    running.data(&running.admin, &end).await;
    assert_eq!(running.argocd.take().len(), 1);
    running.argocd.conflicts.store(5, Ordering::SeqCst);
    let said = "Argo CD refused to end the application's operation (500): Failed to terminate app. Too many conflicts";
    running.refuses(&running.admin, &end, said, "PEER_REFUSED").await;
    assert!(running.argocd.take().is_empty());
}

#[tokio::test]
async fn an_operation_that_runs_on_though_argo_cd_was_to_end_it_is_ended_again_and_no_other() {
    let running = Running::start().await;
    let end = asked("mutation { terminateOperation(application: APP) { startedAt } }");
    let goes_on =
        [("Running", "1"), ("Terminating", "1"), ("Running", "1"), ("Terminating", "1"), ("Error", "1")];
    for (looks, told, ended) in [
        (goes_on.to_vec(), 2, "1"),
        (vec![("Running", "1"), ("Running", "1"), ("Failed", "1")], 1, "1"),
        (vec![("Running", "1"), ("Terminating", "1"), ("Running", "2")], 1, "1"),
        // Another began as soon as it had ended.
        (vec![("Running", "1"), ("Running", "2"), ("Running", "2")], 1, "1"),
        // It began after the first look.
        (vec![("Succeeded", "1"), ("Terminating", "2"), ("Running", "2"), ("Error", "2")], 2, "2"),
        (vec![("Running", "1"), ("Succeeded", "1")], 1, "1"),
    ] {
        *running.argocd.operations.lock().unwrap() = looks.clone().into();
        let answer = running.data(&running.admin, &end).await;
        assert_eq!(answer["terminateOperation"]["startedAt"], ended, "{looks:?}");
        assert_eq!(running.argocd.take().len(), told, "{looks:?}");
        running.argocd.operations.lock().unwrap().clear();
    }
}

#[tokio::test]
async fn what_argo_cd_says_is_told_without_secrets() {
    let running = Running::start().await;
    let read = async |query: &str| running.data(&running.admin, &asked(query)).await;
    let tree = read("{ resourceTree(application: APP) { nodes { kind name health { status } parentRefs { kind } } orphanedNodes { name } } }").await;
    assert_eq!(
        tree["resourceTree"]["nodes"][0],
        json!({"kind": "Rollout", "name": "web", "health": {"status": "Suspended"}, "parentRefs": []})
    );
    assert_eq!(tree["resourceTree"]["nodes"][2]["parentRefs"], json!([{"kind": "ReplicaSet"}]));
    let managed =
        read("{ managedResources(application: APP) { kind liveState targetState predictedLiveState } }")
            .await;
    let text = managed.to_string();
    assert!(!text.contains("c2VjcmV0") && text.contains("redacted:hmac-sha256:"), "{text}");
    assert_eq!(managed["managedResources"][2]["targetState"], Value::Null);
    let diff = read("{ applicationDiff(application: APP) { kind name live target } }").await;
    let yaml =
        |replicas: u8| format!("apiVersion: apps/v1\nkind: Deployment\nspec:\n  replicas: {replicas}\n");
    let expected = json!([
        {"kind": "Deployment", "name": "web", "live": yaml(1), "target": yaml(2)},
        {"kind": "ConfigMap", "name": "old", "live": yaml(0), "target": null},
    ]);
    assert_eq!(diff["applicationDiff"], expected);
    let at =
        read(r#"{ applicationDiff(application: APP, revision: "v1") { kind namespace name live target } }"#)
            .await;
    let [web, old, more] = at["applicationDiff"].as_array().unwrap().as_slice() else { panic!("{at}") };
    let web = (&web["name"], web["live"].as_str().unwrap(), web["target"].as_str().unwrap());
    let three = yaml(3).replace("spec:", "metadata:\n  name: web\nspec:");
    assert_eq!(web, (&json!("web"), &*yaml(1), &*three));
    assert_eq!(
        (&old["name"], &old["target"]),
        (&json!("old"), &Value::Null),
        "that revision has none either"
    );
    assert_eq!((&more["name"], &more["live"]), (&json!("more"), &Value::Null));
    let text = at.to_string();
    assert!(!text.contains("c2VjcmV0") && text.contains("redacted:hmac-sha256:"), "{text}");
    let none = r#"{ applicationDiff(application: APP, revision: "v9") { name } }"#;
    let said = "Argo CD refused to make the manifests (404): not found";
    assert_eq!(running.refused(&running.admin, &asked(none)).await.0, said);
    // Of several sources each has its own, and as many are given as there are.
    let pair = |given: &str| {
        format!(
            r#"{{ applicationDiff(application: {{namespace: "argocd", name: "pair"}}, {given}) {{ name live }} }}"#
        )
    };
    let two = running.data(&running.admin, &pair(r#"revisions: ["v1", "1.2.3"]"#)).await;
    assert_eq!(two["applicationDiff"], json!([{"name": "pair", "live": null}]));
    for (given, number) in [(r#"revision: "v1""#, 1), (r#"revisions: ["a", "b", "c"]"#, 3)] {
        let said = format!("the application has 2 sources: give as many revisions, not {number}");
        running.wrong(&pair(given), &said).await;
    }
    let many = asked(r#"{ applicationDiff(application: APP, revisions: ["a", "b"]) { name } }"#);
    let said = "the application has one source: give one revision, not 2";
    running.wrong(&many, said).await;
    // What is synced of one whose manifests Argo CD writes is that branch alone.
    let wet = |given: &str| {
        format!(
            r#"{{ applicationDiff(application: {{namespace: "argocd", name: "wet"}}, {given}) {{ name live }} }}"#
        )
    };
    let one = running.data(&running.admin, &wet(r#"revision: "v1""#)).await;
    assert_eq!(one["applicationDiff"], json!([{"name": "wet", "live": null}]));
    running.wrong(&wet(r#"revisions: ["a", "b"]"#), said).await;
    let both = pair(r#"revision: "a", revisions: ["b"]"#);
    assert_eq!(running.refused(&running.admin, &both).await.0, "give revision or revisions");
    let history =
        read("{ applicationHistory(application: APP) { id revision initiatedBy automated } }").await;
    let expected = json!([
        {"id": 2, "revision": "bbb", "initiatedBy": null, "automated": true},
        {"id": 1, "revision": "aaa", "initiatedBy": "ada", "automated": false},
    ]);
    assert_eq!(history["applicationHistory"], expected);
    let events = read("{ applicationEvents(application: APP) { type reason message count } }").await;
    assert_eq!(
        events["applicationEvents"][0],
        json!({"type": "Warning", "reason": "OperationFailed", "message": "it failed", "count": null})
    );
    let web = r#"{group: "argoproj.io", kind: "Rollout", namespace: "default", name: "web"}"#;
    let of = |resource: &str| {
        format!("{{ applicationEvents(application: APP, resource: {resource}) {{ reason }} }}")
    };
    assert_eq!(read(&of(web)).await["applicationEvents"], json!([{"reason": "RolloutPaused"}]));
    let said = "the application argocd/shop has no Deployment default/web";
    running.refuses(&running.admin, &asked(&of("DEPLOYMENT")), said, "NOT_FOUND").await;
    let actions = read("{ resourceActions(application: APP, resource: DEPLOYMENT) { name disabled } }").await;
    assert_eq!(
        actions["resourceActions"],
        json!([{"name": "restart", "disabled": false}, {"name": "scale", "disabled": true}])
    );
}

#[tokio::test]
async fn each_act_on_a_rollout_changes_what_the_tools_of_rollouts_change() {
    let running = Running::start().await;
    let act = async |field: &str| {
        running.cluster.fill();
        running.data(&running.admin, &asked(&format!("mutation {{ {field} }}"))).await
    };
    let web = || running.cluster.object(WEB);
    for field in ["promoteRollout", "resumeRollout"] {
        act(&format!("{field}(application: APP, rollout: WEB) {{ metadata {{ name }} }}")).await;
        assert_eq!(
            (&web()["status"]["pauseConditions"], &web()["status"]["currentStepIndex"]),
            (&Value::Null, &json!(1))
        );
    }
    act("promoteRollout(application: APP, rollout: WEB, full: true) { metadata { name } }").await;
    assert_eq!(web()["status"]["promoteFull"], true);
    act("pauseRollout(application: APP, rollout: WEB) { metadata { name } }").await;
    assert_eq!(web()["spec"]["paused"], true);
    act("abortRollout(application: APP, rollout: WEB) { metadata { name } }").await;
    assert_eq!(web()["status"]["abort"], true);
    act("retryRollout(application: APP, rollout: WEB) { metadata { name } }").await;
    assert_eq!(web()["status"]["abort"], false);
    act("restartRollout(application: APP, rollout: WEB) { metadata { name } }").await;
    assert!(web()["spec"]["restartAt"].as_str().unwrap().ends_with('Z'));
    act("skipCurrentStep(application: APP, rollout: WEB) { metadata { name } }").await;
    assert_eq!(
        (&web()["status"]["pauseConditions"], &web()["status"]["currentStepIndex"]),
        (&Value::Null, &json!(2))
    );
    let back = act("rollbackRollout(application: APP, rollout: WEB) { rollout newRevision }").await;
    assert_eq!(back["rollbackRollout"], json!({"rollout": "web", "newRevision": 3}));
    // The whole template of the older one, without what Rollouts adds to it, and without what the newer one has beside it.
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}});
    assert_eq!(web()["spec"]["template"], template);
    running.cluster.fill();
    let read = "{ rollout(application: APP, rollout: WEB) { phase paused aborted strategy currentStepIndex steps revision revisions { revision images } } analysisRuns(application: APP, rollout: WEB) { metadata { name } phase } }";
    let told = running.data(&running.admin, &asked(read)).await;
    let expected = json!({
        "phase": "Paused", "paused": true, "aborted": true, "strategy": "canary", "currentStepIndex": 1, "steps": 3, "revision": 2,
        "revisions": [{"revision": 2, "images": ["web:2"]}, {"revision": 1, "images": ["web:1"]}],
    });
    assert_eq!(told["rollout"], expected);
    assert_eq!(told["analysisRuns"], json!([{"metadata": {"name": "web-1"}, "phase": "Running"}]));
}

/// A step is skipped, and the one after it is not: where `controllerPause` stayed, Rollouts would take a pause that follows for one
/// that was ended.
#[tokio::test]
async fn a_rollout_whose_analysis_is_inconclusive_goes_on_to_the_next_step_and_to_no_other() {
    let running = Running::start().await;
    for (field, expected) in [
        ("promoteRollout", (Value::Null, json!(false), json!(2))),
        ("skipCurrentStep", (Value::Null, json!(false), json!(2))),
        // As Argo CD resumes it: the analysis is run once more.
        ("resumeRollout", (Value::Null, json!(true), json!(1))),
    ] {
        running.cluster.fill();
        {
            let mut objects = running.cluster.objects.lock().unwrap();
            let status = objects.get_mut(WEB).unwrap()["status"].as_object_mut().unwrap();
            let paused = json!([{"reason": "InconclusiveAnalysisRun", "startTime": "2026-01-01T00:00:00Z"}]);
            status.insert("pauseConditions".to_owned(), paused);
            status.insert("controllerPause".to_owned(), json!(true));
            let canary = json!({"currentStepAnalysisRunStatus": {"name": "web-1", "status": "Inconclusive"}});
            status.insert("canary".to_owned(), canary);
        }
        let act = format!("mutation {{ {field}(application: APP, rollout: WEB) {{ metadata {{ name }} }} }}");
        running.data(&running.admin, &asked(&act)).await;
        let web = running.cluster.object(WEB);
        let of = |name: &str| web["status"][name].clone();
        assert_eq!(
            (of("pauseConditions"), of("controllerPause"), of("currentStepIndex")),
            expected,
            "{field}"
        );
    }
}

#[tokio::test]
async fn a_rollout_is_changed_while_its_controller_writes_of_it_and_not_once_it_stands_elsewhere() {
    let running = Running::start().await;
    let act = async |field: &str, moves: Vec<Option<Value>>| {
        running.cluster.fill();
        *running.cluster.moves.lock().unwrap() = moves.into();
        let answer = running.ask(&running.admin, &asked(&format!("mutation {{ {field} }}"))).await;
        running.cluster.moves.lock().unwrap().clear();
        (answer["errors"][0]["message"].as_str().map(str::to_owned), running.cluster.object(WEB))
    };
    let image =
        |web: &Value| web["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap().to_owned();
    let pause = "pauseRollout(application: APP, rollout: WEB) { metadata { name } }";
    let back = "rollbackRollout(application: APP, rollout: WEB) { newRevision }";
    let skip = "skipCurrentStep(application: APP, rollout: WEB) { metadata { name } }";
    let ready = |times: usize| vec![Some(json!({"status": {"readyReplicas": 1}})); times];
    let (said, web) = act(pause, ready(4)).await;
    assert_eq!((said, &web["spec"]["paused"]), (None, &json!(true)));
    let (said, web) = act(back, ready(4)).await;
    assert_eq!((said, &*image(&web)), (None, "web:1"));
    let moved = |act: &str| {
        let why = "it has changed meanwhile: look at it and try again";
        Some(format!("the API server did not {act}: {why}"))
    };
    let (said, web) = act(pause, ready(5)).await;
    assert_eq!((said, &web["spec"]["paused"]), (moved("change the rollout"), &Value::Null));
    // Another step, another revision: whoever asked has seen neither.
    let step = vec![Some(json!({"status": {"currentStepIndex": 2}}))];
    let (said, web) = act(skip, step).await;
    assert_eq!((said, &web["status"]["currentStepIndex"]), (moved("change the rollout"), &json!(2)));
    let revision = vec![Some(json!({"metadata": {"generation": 2}}))];
    let (said, web) = act(back, revision).await;
    assert_eq!((said, &*image(&web)), (moved("roll the rollout back"), "web:2"));
    // Of one that is held at a pause there are two halves to change: the controller writes before the first and between them.
    running.cluster.fill();
    let held = json!({"paused": true, "strategy": {"canary": {"steps": [{"pause": {}}]}}});
    running.cluster.objects.lock().unwrap().get_mut(WEB).unwrap()["spec"] = held;
    *running.cluster.moves.lock().unwrap() = [ready(1), vec![None], ready(1)].concat().into();
    let resume = asked("mutation { resumeRollout(application: APP, rollout: WEB) { metadata { name } } }");
    running.data(&running.admin, &resume).await;
    let web = running.cluster.object(WEB);
    assert_eq!(
        (&web["spec"]["paused"], &web["status"]["pauseConditions"], &web["status"]["readyReplicas"]),
        (&json!(false), &Value::Null, &json!(1))
    );
    assert!(running.cluster.moves.lock().unwrap().is_empty(), "the controller wrote at other moments");
}

#[tokio::test]
async fn what_cannot_be_done_to_a_rollout_is_refused_and_nothing_is_changed() {
    let running = Running::start().await;
    let set = |pointer: &str, value: Value| {
        running.cluster.fill();
        let mut objects = running.cluster.objects.lock().unwrap();
        *objects.get_mut(WEB).unwrap().pointer_mut(pointer).unwrap() = value;
    };
    let refused = async |field: &str, rollout: &str| {
        let query =
            format!("mutation {{ {field}(application: APP, rollout: {rollout}) {{ metadata {{ name }} }} }}");
        running.refused(&running.admin, &asked(&query)).await.0
    };
    let missing = "the application argocd/shop has no Rollout default/none";
    assert_eq!(refused("pauseRollout", r#"{namespace: "default", name: "none"}"#).await, missing);
    // Of the same name in the cluster of this runtime, and another object.
    let far = "the Rollout default/far of this application is not in the cluster of this runtime: run its action with \
               runResourceAction";
    assert_eq!(refused("pauseRollout", r#"{namespace: "default", name: "far"}"#).await, far);
    let path = "that is no name of a Rollout in Kubernetes";
    assert_eq!(refused("pauseRollout", r#"{namespace: "default", name: "../../secrets/x"}"#).await, path);
    set("/status/pauseConditions", json!([]));
    let going = "the Rollout is not paused: skip its step, or promote it fully";
    assert_eq!(refused("promoteRollout", "WEB").await, going);
    set("/status/abort", json!(false));
    assert_eq!(
        refused("retryRollout", "WEB").await,
        "the Rollout was not aborted: there is nothing to retry"
    );
    set("/status/currentStepIndex", json!(3));
    assert_eq!(refused("skipCurrentStep", "WEB").await, "the Rollout has no step left to skip");
    running.cluster.fill();
    let back =
        asked("mutation { rollbackRollout(application: APP, rollout: WEB, revision: 9) { newRevision } }");
    assert_eq!(running.refused(&running.admin, &back).await.0, "the Rollout has no revision 9 any more");
    assert!(running.cluster.take().is_empty());
}

#[tokio::test]
async fn each_act_on_a_workflow_changes_what_its_controller_acts_on() {
    let running = Running::start().await;
    let act = async |field: &str| running.data(&running.admin, &format!("mutation {{ {field} }}")).await;
    let at = r#"(namespace: "default", workflowName: "build") { metadata { name } }"#;
    act(&format!("terminateWorkflow{at}")).await;
    assert_eq!(running.cluster.object(BUILD)["spec"]["shutdown"], "Terminate");
    act(&format!("stopWorkflow{at}")).await;
    assert_eq!(running.cluster.object(BUILD)["spec"]["shutdown"], "Stop");
    act(&format!("resumeWorkflow{at}")).await;
    let build = running.cluster.object(BUILD);
    assert_eq!(build["spec"].get("suspend"), None);
    assert_eq!(
        (&build["status"]["nodes"]["n1"]["phase"], &build["status"]["nodes"]["n2"]["phase"]),
        (&json!("Succeeded"), &json!("Running"))
    );
    act(&format!("suspendWorkflow{at}")).await;
    assert_eq!(running.cluster.object(BUILD)["spec"]["suspend"], true);
    let again =
        act(r#"resubmitWorkflow(namespace: "default", workflowName: "done") { newWorkflowName }"#).await;
    assert_eq!(again["resubmitWorkflow"]["newWorkflowName"], "build-x7k2p");
    let made = running.cluster.object(&DONE.replace("/done", "/build-x7k2p"));
    assert_eq!(
        made["metadata"]["labels"],
        json!({"team": "shop", "workflows.argoproj.io/resubmitted-from-workflow": "done"})
    );
    assert_eq!(made["spec"], json!({"workflowTemplateRef": {"name": "build"}}));
    let new = r#"createWorkflowFromTemplate(args: {namespace: "default", workflowTemplateName: "ship", entrypoint: "main",
        parameters: [{name: "tag", value: "v1"}]}) { newWorkflowName }"#;
    assert_eq!(act(new).await["createWorkflowFromTemplate"]["newWorkflowName"], "ship-x7k2p");
    let made = running.cluster.object(&DONE.replace("/done", "/ship-x7k2p"));
    let expected = json!({
        "workflowTemplateRef": {"name": "ship", "clusterScope": false}, "entrypoint": "main",
        "arguments": {"parameters": [{"name": "tag", "value": "v1"}]},
    });
    assert_eq!(made["spec"], expected);
    assert_eq!(made["metadata"]["labels"], json!({"workflows.argoproj.io/workflow-template": "ship"}));
    let over =
        r#"mutation { stopWorkflow(namespace: "default", workflowName: "done") { metadata { name } } }"#;
    assert_eq!(running.refused(&running.admin, over).await.0, "the workflow is over");
    let none = r#"{ workflow(namespace: "default", workflowName: "none") { phase } }"#;
    running.refuses(&running.admin, none, "there is no workflow default/none", "NOT_FOUND").await;
}

/// What follows an approval asks what was said of it: a node that goes on without what it was to give lets the workflow fail there.
#[tokio::test]
async fn a_workflow_that_waits_for_a_value_goes_on_with_its_default_and_not_without_one() {
    let running = Running::start().await;
    let resume = async |parameter: Value| {
        running.cluster.fill();
        let outputs = json!({"exitCode": "0", "parameters": [{"name": "other", "value": "1"}, parameter]});
        running.cluster.objects.lock().unwrap().get_mut(BUILD).unwrap()["status"]["nodes"]["n1"]["outputs"] =
            outputs;
        let act = r#"mutation { resumeWorkflow(namespace: "default", workflowName: "build") { metadata { name } } }"#;
        let answer = running.ask(&running.admin, act).await;
        let node = running.cluster.object(BUILD)["status"]["nodes"]["n1"].clone();
        (answer["errors"][0]["message"].as_str().map(str::to_owned), node)
    };
    let (said, node) = resume(
        json!({"name": "approve", "enum": ["YES", "NO"], "valueFrom": {"supplied": {}, "default": "NO"}}),
    )
    .await;
    assert_eq!((said, &node["phase"]), (None, &json!("Succeeded")));
    let approve = json!({"name": "approve", "enum": ["YES", "NO"], "value": "NO"});
    let expected = json!({"exitCode": "0", "parameters": [{"name": "other", "value": "1"}, approve]});
    assert_eq!(node["outputs"], expected);
    let (said, node) = resume(json!({"name": "approve", "valueFrom": {"supplied": {}}})).await;
    let why =
        "the workflow waits for the value of approve, which has no default: say it with `argo node set`";
    assert_eq!((said.as_deref(), &node["phase"]), (Some(why), &json!("Running")));
    // Somebody has said it.
    let (said, node) = resume(json!({"name": "approve", "value": "YES"})).await;
    assert_eq!((said, &node["outputs"]["parameters"][1]["value"]), (None, &json!("YES")));
}

#[tokio::test]
async fn a_workflow_is_begun_once_more_with_its_annotations_and_without_who_began_it() {
    let running = Running::start().await;
    running.cluster.fill();
    {
        let mut objects = running.cluster.objects.lock().unwrap();
        let metadata = &mut objects.get_mut(DONE).unwrap()["metadata"];
        metadata["annotations"] = json!({"ticket": "OPS-1"});
        metadata["labels"]["workflows.argoproj.io/creator"] = "somebody-else".into();
    }
    let again =
        r#"mutation { resubmitWorkflow(namespace: "default", workflowName: "done") { newWorkflowName } }"#;
    running.data(&running.admin, again).await;
    let made = running.cluster.object(&DONE.replace("/done", "/build-x7k2p"));
    assert_eq!(made["metadata"]["annotations"], json!({"ticket": "OPS-1"}));
    let labels = json!({"team": "shop", "workflows.argoproj.io/resubmitted-from-workflow": "done"});
    assert_eq!(made["metadata"]["labels"], labels);
}
