//! What is done in a runtime: said before, meant, refused with the rule, and waited for.

use std::process::Stdio;

use loadtest::sim::wait_for;
use serde_json::{Value, json};

use crate::app_proxy::{AppProxy, Asked};
use crate::desk::{Desk, Said, told};
use crate::platform::{PROGRAM, SOON};

/// Somebody signed in, and the app proxy of the runtime.
struct Acting {
    desk: Desk,
    proxy: AppProxy,
}

impl Acting {
    async fn start() -> Self {
        let (desk, proxy) = (Desk::signed_in().await, AppProxy::start().await);
        let node = |group: &str, kind: &str, name: &str, uid: &str, parent: &str| {
            json!({
                "group": group, "version": "v1", "kind": kind, "namespace": "store", "name": name, "uid": uid,
                "parentRefs": if parent.is_empty() { json!([]) } else { json!([{"uid": parent}]) },
                "health": {"status": "Healthy", "message": null}, "resourceVersion": "1", "createdAt": "2026-11-20T10:00:00Z",
            })
        };
        let nodes = [
            node("apps", "Deployment", "web", "d", ""),
            node("apps", "ReplicaSet", "web-1", "r", "d"),
            node("", "Pod", "web-1-x", "p", "r"),
            node("argoproj.io", "Rollout", "api", "o", ""),
        ];
        proxy.answers("resourceTree", &[json!({"nodes": nodes})]);
        Self { desk, proxy }
    }

    async fn run(&self, arguments: &[&str]) -> Said {
        self.desk.run(&[arguments, &["--app-proxy", &self.proxy.url]].concat()).await
    }
}

#[tokio::test]
async fn a_dry_run_says_what_would_be_done_and_does_nothing() {
    let acting = Acting::start().await;
    let old = json!({"group": "", "kind": "ConfigMap", "namespace": "store", "name": "old", "live": "kind: ConfigMap\n", "target": null});
    let difference = json!([{
        "group": "apps", "kind": "Deployment", "namespace": "store", "name": "web",
        "live": "kind: Deployment\nspec:\n  replicas: 1\n", "target": "kind: Deployment\nspec:\n  replicas: 2\n",
    }, old]);
    acting.proxy.answers("applicationDiff", &[difference]);
    let entry = |id: u32| {
        json!({
            "id": id, "revision": "0123456789abcdef0123456789abcdef01234567", "revisions": [], "deployStartedAt": null,
            "deployedAt": "2026-11-20T10:00:00Z", "initiatedBy": "ada", "automated": false,
        })
    };
    acting.proxy.answers("applicationHistory", &[json!([entry(7), entry(6)])]);
    acting
        .proxy
        .answers("resourceActions", &[json!([{"name": "restart", "displayName": null, "disabled": false}])]);
    let diff = "--- live Deployment/web in store\n+++ desired Deployment/web in store\n@@ -1,3 +1,3 @@\n kind: Deployment\n spec:\n-  replicas: 1\n+  replicas: 2\n";
    let sync = acting.run(&["app", "sync", "store", "--dry-run", "--revision", "v2"]).await;
    let stays = "1 resource that Git does not have would stay: --prune deletes it";
    assert_eq!(
        (sync.code, sync.out, sync.err),
        (
            0,
            format!("would sync prod/argocd/store to v2\n{diff}"),
            told("1 resource would be changed") + &told(stays)
        )
    );
    let asked = acting.proxy.asked();
    assert!(
        asked.iter().any(|(field, given, _)| field == "applicationDiff" && given["revision"] == "v2"),
        "{asked:?}"
    );
    let sync = acting.run(&["app", "sync", "store", "--dry-run", "--prune"]).await;
    let would = "would sync prod/argocd/store, and delete what Git does not have\n";
    let gone = "--- live ConfigMap/old in store\n+++ desired ConfigMap/old in store, which is not there\n@@ -1 +0,0 @@\n-kind: ConfigMap\n";
    assert_eq!(
        (sync.code, sync.out, sync.err),
        (0, format!("{would}{diff}{gone}"), told("2 resources would be changed"))
    );
    assert!(acting.proxy.asked().iter().all(|(_, given, _)| given.get("revision").is_none()));
    let revision = |number: u32, image: &str| json!({"revision": number, "replicaSet": "r", "images": [image], "createdAt": null, "replicas": 0});
    let rollout = json!({
        "metadata": {"name": "api", "namespace": "store"}, "uid": "o", "phase": "Healthy", "message": null, "paused": false,
        "aborted": false, "strategy": "canary", "currentStepIndex": 0, "steps": 1, "revision": 4, "stableRevision": null,
        "replicas": 1, "readyReplicas": 1, "updatedReplicas": 1, "availableReplicas": 1,
        "revisions": [revision(4, "api:2"), revision(3, "api:1")],
    });
    acting.proxy.answers("rollout", &[rollout]);
    let app = "prod/argocd/store";
    let cases: [(&[&str], String); 16] = [
        (
            &["app", "rollback", "store"],
            format!(
                "roll {app} back to deployment 6, of 01234567\ninstead of deployment 7, of 01234567\n{}",
                diff.trim_end()
            ),
        ),
        (
            &["app", "delete-resource", "store", "Deployment/web"],
            format!(
                "delete Deployment/web of {app}, and what it owns\n  store/ReplicaSet.apps/web-1\n  store/Pod/web-1-x"
            ),
        ),
        (&["app", "terminate", "store"], format!("end the operation of {app} that is under way")),
        (&["app", "refresh", "store", "--hard"], format!("compare {app} with Git anew, manifests made anew")),
        (&["app", "restart", "store", "Deployment/web"], format!("restart Deployment/web of {app}")),
        (
            &["app", "delete-resource", "store", "Pod/web-1-x"],
            format!("delete Pod/web-1-x of {app}, and what it owns"),
        ),
        (
            &["app", "action", "store", "Deployment/web", "restart"],
            format!("do restart to Deployment/web of {app}"),
        ),
        (
            &["rollout", "promote", "store"],
            format!("end the pause of Rollout/api of {app}\nit is not paused: nothing could be done"),
        ),
        (
            &["rollout", "promote", "store", "--full"],
            format!("end all that is left of Rollout/api of {app}\n- step 0 of 1\n+ step 1 of 1"),
        ),
        (&["rollout", "abort", "store", "api"], format!("give up Rollout/api of {app}\n- revision 4\n+ the revision that is stable")),
        (&["rollout", "restart", "store"], format!("restart Rollout/api of {app}\n1 pod would be replaced")),
        (
            &["rollout", "rollback", "store", "--to", "3"],
            format!("go back to revision 3 of Rollout/api of {app}\n- image api:2\n+ image api:1"),
        ),
        (&["rollout", "skip", "store"], format!("skip the step of Rollout/api of {app}\n- step 0 of 1\n+ step 1 of 1")),
        (
            &["workflow", "submit", "build", "-n", "ci", "--runtime", "prod", "-p", "a=b"],
            "begin a workflow of the template build in ci with a=b".to_owned(),
        ),
        (
            &["workflow", "terminate", "build-x", "-n", "ci", "--runtime", "prod"],
            "end at once, without exit handlers, the workflow ci/build-x\nit is Running, 1/2 done".to_owned(),
        ),
        (
            &["workflow", "retry", "build-x", "-n", "ci", "--runtime", "prod"],
            "do once more what failed of the workflow ci/build-x\nit is Running, 1/2 done: nothing could be done"
                .to_owned(),
        ),
    ];
    acting.proxy.answers("workflow", &[workflow("Running")]);
    for (arguments, does) in cases {
        let said = acting.run(&[arguments, &["--dry-run"]].concat()).await;
        assert_eq!(said.done(), format!("would {does}\n"));
    }
    assert_eq!(acting.proxy.changed(), [], "nothing was done");
    acting.desk.stop().await;
}

#[tokio::test]
async fn what_destroys_must_be_meant_where_nobody_can_be_asked() {
    let acting = Acting::start().await;
    let none = "give --yes, since nobody can be asked";
    let cases: [(&[&str], &str); 5] = [
        (&["app", "sync", "store", "--prune"], "sync prod/argocd/store, and delete what Git does not have"),
        (
            &["app", "delete-resource", "store", "Pod/web-1-x"],
            "delete Pod/web-1-x of prod/argocd/store, and what it owns",
        ),
        (&["rollout", "abort", "store"], "give up Rollout/api of prod/argocd/store"),
        (&["workflow", "stop", "b", "-n", "ci", "--runtime", "prod"], "stop the workflow ci/b"),
        (
            &["workflow", "terminate", "b", "-n", "ci", "--runtime", "prod"],
            "end at once, without exit handlers, the workflow ci/b",
        ),
    ];
    for (arguments, does) in cases {
        let refused = acting.run(arguments).await.refused();
        assert_eq!(refused, (2, told(&format!("this would {does}: {none}"))));
    }
    assert_eq!(acting.proxy.changed(), [], "nothing was done");
    acting.proxy.answers("deleteResource", &[json!(true)]);
    let said = acting.run(&["app", "delete-resource", "store", "Pod/web-1-x", "--yes"]).await;
    assert_eq!(said.done(), "Pod/web-1-x of prod/argocd/store is being deleted\n");
    let resource =
        json!({"group": "", "version": "v1", "kind": "Pod", "namespace": "store", "name": "web-1-x"});
    let variables = json!({
        "application": {"runtime": "prod", "namespace": "argocd", "name": "store"},
        "resource": resource, "options": {"force": false, "orphan": false},
    });
    let expected = ("deleteResource".to_owned(), variables, acting.desk.key.clone());
    assert_eq!(acting.proxy.changed(), [expected], "it is done as whoever signed in");
    acting.desk.stop().await;
}

#[tokio::test]
async fn a_refusal_is_told_with_the_rule_that_refused() {
    let acting = Acting::start().await;
    let host = acting.proxy.url.strip_prefix("http://").unwrap().to_owned();
    let rule = "you may not SYNC this application: no rule of your teams grants it";
    acting.proxy.refuses("syncApplication", rule);
    let refused = acting.run(&["app", "sync", "store"]).await.refused();
    assert_eq!(refused, (1, told(&format!("cannot sync an application at {host}: {rule}"))));
    let away = acting.run(&["app", "refresh", "store"]).await.refused();
    let said = format!(
        "cannot refresh an application at {host}: it answered 502: nobody answers refreshApplication"
    );
    assert_eq!(away, (1, told(&said)));
    let none = acting.run(&["app", "restart", "store", "Deployment/none"]).await.refused();
    let said = "prod/argocd/store has no resource 'Deployment/none': `gitops-runtime app tree prod/argocd/store --live` shows \
                those that there are";
    assert_eq!(none, (1, told(said)));
    let several = json!([{"name": "pause", "displayName": null, "disabled": true}]);
    acting.proxy.answers("resourceActions", &[several]);
    let disabled = acting.run(&["app", "action", "store", "Rollout/api", "pause"]).await.refused();
    let said = "Rollout/api of prod/argocd/store is in no state for the action 'pause' now";
    assert_eq!(disabled, (1, told(said)));
    let unknown = acting.run(&["app", "action", "store", "Rollout/api", "jump"]).await.refused();
    assert_eq!(unknown, (1, told("Rollout/api of prod/argocd/store has no action 'jump': it has pause")));
    let wrong = acting.run(&["workflow", "list", "--runtime", "none"]).await.refused();
    let said =
        "there is no runtime 'none' that you see: `gitops-runtime runtime list` shows those that there are";
    assert_eq!(wrong, (1, told(said)));
    let where_to = acting.run(&["workflow", "list"]).await.refused();
    let said = "the runtime prod never said which namespace it is in: name one with --namespace";
    assert_eq!(where_to, (2, told(said)));
    acting.desk.stop().await;
}

fn rollout(phase: &str, paused: bool, step: u32) -> Value {
    json!({
        "metadata": {"name": "api", "namespace": "store"}, "uid": "o", "phase": phase, "message": null, "paused": paused,
        "aborted": false, "strategy": "canary", "currentStepIndex": step, "steps": 2, "revision": 4, "stableRevision": "x",
        "replicas": 3, "readyReplicas": 3, "updatedReplicas": 1, "availableReplicas": 3, "revisions": [],
    })
}

fn workflow(phase: &str) -> Value {
    json!({
        "metadata": {"name": "build-2", "namespace": "ci"}, "uid": "w", "phase": phase, "message": "no space left",
        "progress": "1/2", "workflowTemplate": "build", "suspended": false, "createdAt": null, "startedAt": null,
        "finishedAt": null,
    })
}

#[tokio::test]
async fn whoever_waits_is_told_how_far_it_is_and_by_the_exit_code_how_it_ended() {
    let acting = Acting::start().await;
    acting.proxy.answers("promoteRollout", &[json!({"metadata": {"name": "api"}})]);
    acting.proxy.answers(
        "rollout",
        &[rollout("Paused", true, 0), rollout("Paused", true, 0), rollout("Progressing", false, 1)],
    );
    let said = acting.run(&["rollout", "promote", "store", "--wait"]).await;
    let out = "Rollout/api of prod/argocd/store is promoted\n\
               Rollout/api of prod/argocd/store: it is Progressing, step 1 of 2, 1 of 3 replicas updated\n";
    let waiting = "waiting: it is Paused, step 0 of 2, 1 of 3 replicas updated";
    assert_eq!((said.code, said.out.as_str(), said.err), (0, out, told(waiting)));

    // It is as healthy as before until its controller has seen that it is to be restarted.
    let restarting = |is_so: bool| {
        let mut rollout = rollout("Healthy", false, 2);
        rollout["restarting"] = is_so.into();
        rollout
    };
    acting.proxy.answers("restartRollout", &[json!({"metadata": {"name": "api"}})]);
    acting
        .proxy
        .answers("rollout", &[restarting(false), restarting(true), restarting(true), restarting(false)]);
    let said = acting.run(&["rollout", "restart", "store", "--wait"]).await;
    let standing = "it is Healthy, step 2 of 2, 1 of 3 replicas updated";
    assert_eq!((said.code, said.err), (0, told(&format!("waiting: {standing}"))));
    acting.proxy.answers("rollout", &[restarting(false), restarting(true)]);
    let late = acting.run(&["rollout", "restart", "store", "--wait", "--timeout", "1s"]).await;
    let end = format!("it has not taken effect within 1 s: {standing}\n");
    assert!(late.code == 3 && late.err.ends_with(&end), "{late:?}");

    acting.proxy.answers("createWorkflowFromTemplate", &[json!({"newWorkflowName": "build-2"})]);
    acting.proxy.answers("workflow", &[workflow("Running"), workflow("Failed")]);
    let submit =
        ["workflow", "submit", "build", "-n", "ci", "--runtime", "prod", "-p", "revision=main", "--wait"];
    let said = acting.run(&submit).await;
    assert_eq!((said.code, said.out.as_str()), (3, "the workflow ci/build-2 was begun\n"));
    assert_eq!(said.err, told("waiting: Running, 1/2 done") + &told("ci/build-2 is Failed: no space left"));
    acting.proxy.answers("workflow", &[workflow("Succeeded")]);
    assert_eq!(acting.run(&submit).await.code, 0);

    acting.proxy.answers("pauseRollout", &[json!({"metadata": {"name": "api"}})]);
    acting.proxy.answers("rollout", &[rollout("Progressing", false, 0)]);
    let late = acting.run(&["rollout", "pause", "store", "--wait", "--timeout", "1s"]).await;
    let end = "it has not taken effect within 1 s: it is Progressing, step 0 of 2, 1 of 3 replicas updated\n";
    assert!(late.code == 3 && late.err.ends_with(end), "{late:?}");
    acting.desk.stop().await;
}

#[tokio::test]
async fn a_sync_is_waited_for_by_what_is_reported_of_it() {
    let acting = Acting::start().await;
    acting.proxy.answers("syncApplication", &[json!({"metadata": {"name": "store"}})]);
    let arguments = ["app", "sync", "store", "--wait"];
    let (said, ()) = tokio::join!(acting.run(&arguments), async {
        // It is reported once it was asked for.
        let is_asked = |asked: &Vec<Asked>| asked.iter().any(|(field, ..)| field == "syncApplication");
        wait_for("the sync to be asked for", async || acting.proxy.changed(), is_asked).await;
        let operation = json!({
            "phase": "Succeeded", "message": "successfully synced", "startedAt": "2099-01-01T00:00:00Z",
            "finishedAt": "2099-01-01T00:00:05Z", "operation": {"initiatedBy": {"username": "ada"}},
            "syncResult": {"revision": "abc"},
        });
        let object = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": "store", "namespace": "argocd", "uid": "new", "resourceVersion": "999999999"},
            "status": {"operationState": operation, "sync": {"status": "Synced"}, "health": {"status": "Healthy"}},
        });
        let source = json!({
            "syncStatus": "Synced", "healthStatus": "Healthy", "operationSyncRevision": "abc", "syncFinishedAt": "2099-01-01T00:00:05Z",
            "syncStartedAt": "2099-01-01T00:00:00Z", "historyId": 9,
        });
        acting
            .desk
            .platform
            .report(&json!({"timestamp": "2099-01-01T00:00:06.000Z", "object": object, "source": source}))
            .await;
    });
    assert_eq!(said.code, 0, "{said:?}");
    let out = "prod/argocd/store is being synced\nprod/argocd/store is Synced and Healthy\n";
    assert_eq!(said.out, out, "{}", said.err);
    acting.desk.stop().await;
}

#[tokio::test]
async fn logs_come_line_by_line_without_what_a_terminal_would_obey() {
    let acting = Acting::start().await;
    let line = |pod: &str, content: &str| json!({"data": {"content": content, "podName": pod, "timestamp": "2026-11-20T10:00:00Z"}, "error": null, "done": false});
    let end = json!({"data": null, "error": null, "done": true});
    acting.proxy.answers(
        "applicationLogs",
        &[json!([line("web-1-x", "one\n"), line("web-1-y", "\u{1b}[2Jtwo"), end])],
    );
    let of_all =
        acting.run(&["app", "logs", "store", "Deployment/web", "--tail", "5", "--since", "10m"]).await;
    assert_eq!(of_all.done(), "[web-1-x] one\n[web-1-y]  [2Jtwo\n");
    let asked = acting.proxy.changed();
    assert_eq!(asked, [], "it only reads");
    let of_one = acting.run(&["app", "logs", "store", "Pod/web-1-x", "--timestamps"]).await.done();
    assert!(of_one.starts_with("2026-11-20T10:00:00Z one\n"), "{of_one}");
    let asked: Vec<Value> = acting.proxy.asked().into_iter().map(|(_, given, _)| given).collect();
    let pod = json!({"group": "", "version": "v1", "kind": "Pod", "namespace": "store", "name": "web-1-x"});
    let last = asked.last().unwrap();
    assert_eq!((&last["podName"], &last["resource"]), (&json!("web-1-x"), &pod), "where it is, too");
    acting.run(&["app", "logs", "store"]).await.done();
    let asked = acting.proxy.asked();
    assert_eq!((&asked[0].1["podName"], &asked[0].1["resource"]), (&Value::Null, &Value::Null));
    let none = acting.run(&["app", "logs", "store", "Pod/web-2"]).await.refused();
    let said = "prod/argocd/store has no resource 'Pod/web-2': `gitops-runtime app tree prod/argocd/store --live` shows those that \
                there are";
    assert_eq!(none, (1, told(said)));
    // Whoever is on the way ends a stream as a log that has ended does, but for what it says last.
    acting.proxy.answers("applicationLogs", &[json!([line("web-1-x", "one\n")])]);
    let cut = acting.run(&["app", "logs", "store", "Pod/web-1-x", "--follow"]).await;
    let said = "the logs of prod/argocd/store broke off before their end: ask for them again";
    assert_eq!((cut.code, cut.out.as_str(), cut.err), (1, "one\n", told(said)));
    let broken = json!({"data": null, "error": "container not found", "done": true});
    acting.proxy.answers("applicationLogs", &[json!([broken])]);
    let refused = acting.run(&["app", "logs", "store", "Pod/web-1-x"]).await.refused();
    assert_eq!(refused, (1, told("the logs of prod/argocd/store cannot be read: container not found")));
    acting.proxy.refuses("applicationLogs", "you may not VIEW_POD_LOGS");
    let host = acting.proxy.url.strip_prefix("http://").unwrap().to_owned();
    let refused = acting.run(&["app", "logs", "store", "Pod/web-1-x"]).await.refused();
    assert_eq!(refused, (1, told(&format!("cannot read logs at {host}: you may not VIEW_POD_LOGS"))));
    acting.desk.stop().await;
}

#[tokio::test]
async fn logs_of_a_workflow_come_line_by_line_with_the_pods_that_wrote_them() {
    let acting = Acting::start().await;
    let line = |pod: &str, content: &str| json!({"data": {"content": content, "podName": pod, "timestamp": "2026-11-20T10:00:00Z"}, "error": null, "done": null});
    let end = json!({"data": null, "error": null, "done": true});
    let both = json!([line("build-1", "one"), line("build-2", "\u{1b}[2Jtwo"), end]);
    acting.proxy.answers("workflowLogs", &[both]);
    let base = ["workflow", "logs", "build", "--runtime", "prod", "--namespace", "ci"];
    let run = async |more: &[&str]| acting.run(&[&base, more].concat()).await;
    let more = ["--follow", "--tail", "5", "--since", "10m", "--grep", "one|two", "--container", "wait"];
    assert_eq!(run(&more).await.done(), "[build-1] one\n[build-2]  [2Jtwo\n");
    let of_one = run(&["build-1", "--timestamps"]).await.done();
    assert!(of_one.starts_with("2026-11-20T10:00:00Z one\n"), "{of_one}");
    let asked = acting.proxy.asked();
    let variables = json!({
        "namespace": "ci", "workflowName": "build", "podName": null, "container": "wait",
        "options": {"follow": true, "grep": "one|two", "sinceSeconds": 600, "tailLines": 5},
    });
    assert_eq!(asked[0].1, variables);
    assert_eq!((&asked[1].1["podName"], &asked[1].1["container"]), (&json!("build-1"), &json!("main")));
    let broken =
        json!({"data": null, "error": "Argo Workflows cannot read the log any further", "done": true});
    acting.proxy.answers("workflowLogs", &[json!([broken])]);
    let said = "the logs of ci/build cannot be read: Argo Workflows cannot read the log any further";
    assert_eq!(run(&[]).await.refused(), (1, told(said)));
    acting.desk.stop().await;
}

#[tokio::test]
async fn the_logs_of_a_runtime_are_downloaded_whole_or_not_at_all() {
    let acting = Acting::start().await;
    let url = &acting.proxy.url;
    let run = async |more: &[&str]| acting.desk.run(&[&["runtime", "logs", "prod"], more].concat()).await;
    let said =
        "the platform passes no archives on: give the address of the runtime's app proxy with --app-proxy";
    assert_eq!(run(&[]).await.refused(), (2, told(said)));
    let done = run(&["--app-proxy", url]).await.done();
    assert_eq!(done, "the logs of prod are in prod-logs.tar.gz\n");
    assert_eq!(std::fs::read(acting.desk.file("prod-logs.tar.gz")).unwrap(), b"an archive");
    assert_eq!(run(&["--app-proxy", url, "-o", "-"]).await.done(), "an archive");
    let host = url.strip_prefix("http://").unwrap();
    let cut = run(&["--app-proxy", &format!("{url}/cut"), "-o", "cut.tar.gz"]).await;
    assert!(cut.code == 1 && cut.err.contains("download the logs"), "{cut:?}");
    assert!(!acting.desk.file("cut.tar.gz").exists(), "half an archive is none");
    let refused = run(&["--app-proxy", &format!("{url}/refused"), "-o", "refused.tar.gz"]).await.refused();
    let admins = format!("cannot download the logs at {host}: it is for admins");
    assert_eq!(refused, (1, told(&admins)));
    assert!(!acting.desk.file("refused.tar.gz").exists());
    acting.desk.stop().await;
}

#[tokio::test]
async fn a_download_of_logs_that_ctrl_c_ends_leaves_what_was_there_before() {
    let acting = Acting::start().await;
    let folder = acting.desk.file("logs");
    std::fs::create_dir(&folder).unwrap();
    let path = folder.join("logs.tar.gz");
    std::fs::write(&path, "before").unwrap();
    let mut command = acting.desk.command(PROGRAM);
    let url = format!("{}/endless", acting.proxy.url);
    command.args(["runtime", "logs", "prod", "--app-proxy", &url, "-o"]).arg(&path);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (id, beside) = (child.id().unwrap(), folder.join(format!("logs.tar.gz.{}.new", child.id().unwrap())));
    let interrupted = async {
        // Once it writes it listens to the signal.
        while !std::fs::read(&beside).is_ok_and(|bytes| bytes == b"half an") {
            tokio::task::yield_now().await;
        }
        assert!(
            acting.desk.command("kill").args(["-INT", &id.to_string()]).status().await.unwrap().success()
        );
        child.wait_with_output().await.unwrap()
    };
    let output = tokio::time::timeout(SOON, interrupted).await.unwrap();
    let said = format!("the download was interrupted: {} is as it was", path.display());
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap()), (Some(1), told(&said)));
    assert_eq!(std::fs::read(&path).unwrap(), b"before");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "nothing is left beside it");
    acting.desk.stop().await;
}

#[tokio::test]
async fn an_act_goes_through_the_platform_which_vouches_for_whoever_asks() {
    let acting = Acting::start().await;
    let desk = &acting.desk;
    acting.proxy.answers("refreshApplication", &[json!({"metadata": {"name": "store"}})]);
    let host = desk.platform.url().strip_prefix("http://").unwrap().to_owned();
    let nowhere = desk.run(&["app", "refresh", "store"]).await;
    let begin = format!("gitops-runtime: cannot refresh an application at {host}: it answered 409: ");
    assert!(nowhere.code == 1 && nowhere.err.starts_with(&begin), "{nowhere:?}");
    desk.platform.register(&acting.proxy.url).await;
    let said = desk.run(&["app", "refresh", "store"]).await;
    assert_eq!(said.done(), "prod/argocd/store was compared with Git anew\n");
    let asked = acting.proxy.changed();
    assert!(
        asked.len() == 1 && asked[0].0 == "refreshApplication" && !asked[0].2.starts_with("goak_"),
        "{asked:?}"
    );
    let line = json!({"data": {"content": "one", "podName": "web-1-x", "timestamp": null}, "error": null, "done": false});
    acting.proxy.answers("applicationLogs", &[json!([line, {"data": null, "error": null, "done": true}])]);
    assert_eq!(desk.run(&["app", "logs", "store", "Pod/web-1-x", "-f"]).await.done(), "one\n");
    acting.proxy.refuses("refreshApplication", "you may not REFRESH");
    let refused = desk.run(&["app", "refresh", "store"]).await.refused();
    assert_eq!(refused, (1, told(&format!("cannot refresh an application at {host}: you may not REFRESH"))));
    acting.desk.stop().await;
}

#[tokio::test]
async fn what_runs_now_is_shown_as_a_tree() {
    let acting = Acting::start().await;
    let tree = acting.run(&["app", "tree", "store", "--live"]).await.done();
    let lines: Vec<&str> = tree.lines().map(|line| line.split("  ").next().unwrap()).collect();
    let names: Vec<&str> = tree
        .lines()
        .map(|line| line.split_once("Healthy").map_or(line, |(name, _)| name).trim_end())
        .collect();
    assert_eq!(
        names[2..6],
        ["├─ Deployment/web", "│  └─ ReplicaSet/web-1", "│     └─ Pod/web-1-x", "└─ Rollout/api"],
        "{lines:?}"
    );
    let entry = json!([{
        "id": 7, "revision": "v2", "revisions": [], "deployStartedAt": null, "deployedAt": "2026-11-20T10:00:00Z",
        "initiatedBy": null, "automated": true,
    }]);
    acting.proxy.answers("applicationHistory", &[entry]);
    let history = acting.run(&["app", "history", "store", "--live"]).await.done();
    assert!(history.contains("v2") && history.contains("Argo CD"), "{history}");
    // Of several sources each has a revision of its own.
    let of = |id: u32, revisions: [&str; 2]| {
        json!({
            "id": id, "revision": null, "revisions": revisions, "deployStartedAt": null, "deployedAt": "2026-11-20T10:00:00Z",
            "initiatedBy": null, "automated": true,
        })
    };
    let once = acting.run(&["app", "rollback", "store", "--dry-run"]).await.refused();
    let said = "prod/argocd/store was deployed once at most: there is nothing to go back to";
    assert_eq!(once, (1, told(said)));
    let none = acting.run(&["app", "rollback", "store", "5", "--dry-run"]).await.refused();
    let said = "prod/argocd/store has no deployment 5: `gitops-runtime app history prod/argocd/store --live` shows those that it has";
    assert_eq!(none, (1, told(said)));
    acting.proxy.answers("applicationHistory", &[json!([of(9, ["v2", "1.3.0"]), of(8, ["v1", "1.2.3"])])]);
    acting.proxy.answers("applicationDiff", &[json!([])]);
    acting.proxy.asked();
    let several = acting.run(&["app", "rollback", "store", "--dry-run"]).await;
    let would = "would roll prod/argocd/store back to deployment 8, of v1 1.2.3\ninstead of deployment 9, of v2 1.3.0\n";
    assert_eq!((several.out.as_str(), several.err), (would, told("nothing would be changed")));
    let asked = acting.proxy.asked();
    let (_, given, _) = asked.iter().find(|(field, ..)| field == "applicationDiff").unwrap();
    assert_eq!((&given["revisions"], given.get("revision")), (&json!(["v1", "1.2.3"]), None));
    acting.desk.stop().await;
}

#[tokio::test]
async fn what_differs_now_is_told_of_resources_that_there_are() {
    let acting = Acting::start().await;
    let one = |namespace: &str| json!({"group": "apps", "kind": "Deployment", "namespace": namespace, "name": "web", "live": "kind: Deployment\n", "target": null});
    acting.proxy.answers("applicationDiff", &[json!([one("a"), one("b")])]);
    let service = json!({"group": "", "kind": "Service", "namespace": "a", "name": "web"});
    acting.proxy.answers("managedResources", &[json!([service])]);
    let diff = async |resource: &str| {
        acting.run(&["app", "diff", "store", "--live", "--exit-code", "--resource", resource]).await
    };
    for (resource, count) in [("deployment/web", 2), ("b/Deployment.apps/web", 1)] {
        let said = diff(resource).await;
        assert_eq!((said.code, said.out.matches("--- live").count()), (3, count), "{said:?}");
    }
    let same = diff("Service/web").await;
    let nothing = told("nothing of prod/argocd/store differs, as its runtime compares it now");
    assert_eq!((same.code, same.err), (0, nothing));
    let said = "prod/argocd/store has no resource 'Service/wbe': `gitops-runtime app tree prod/argocd/store` shows those that there are";
    assert_eq!(diff("Service/wbe").await.refused(), (1, told(said)));
    acting.desk.stop().await;
}

#[tokio::test]
async fn what_a_runtime_tells_now_is_shown_in_every_form() {
    let acting = Acting::start().await;
    let event = json!({
        "type": "Normal", "reason": "Pulled", "message": "an image", "count": 1, "firstTimestamp": null,
        "lastTimestamp": "2026-11-20T10:00:00Z", "involvedObject": {"kind": "Pod", "namespace": "store", "name": "web-1-x"}, "source": null,
    });
    acting.proxy.answers("applicationEvents", &[json!([event])]);
    let events = async |form| acting.run(&["app", "events", "store", "--live", "-o", form]).await.done();
    assert_eq!(events("name").await, "Pod/web-1-x\n");
    assert!(events("table").await.contains("Pulled"));
    let offered = json!([{"name": "restart", "displayName": null, "disabled": false}]);
    acting.proxy.answers("resourceActions", std::slice::from_ref(&offered));
    let actions =
        async |form| acting.run(&["app", "action", "store", "Deployment/web", "-o", form]).await.done();
    assert_eq!(actions("name").await, "restart\n");
    assert_eq!(serde_json::from_str::<Value>(&actions("json").await).unwrap(), offered);
    assert_eq!(actions("table").await, "ACTION   AVAILABLE  CALLED\nrestart  yes\n");
    acting.desk.stop().await;
}
