//! Every operation, and whom it is answered.

use serde_json::{Value, json};
use stages_proxy::Operation;

use crate::support::Running;

/// No rule grants it.
const ADMINS: &str = "";

/// Each operation as it is asked, the action that a rule must grant of it, and in which namespace it is.
pub(crate) const OPERATIONS: &[(&str, &str, &str)] = &[
    ("{ versionInfo { version platformHost } }", "VIEW", ""),
    ("{ runtimeStatus { argoCdState appProxyStarted { status } } }", "VIEW", ""),
    ("{ resourceTree(application: APP) { nodes { name health { status } } } }", "VIEW", "argocd"),
    ("{ managedResources(application: APP) { name liveState } }", "VIEW", "argocd"),
    ("{ applicationDiff(application: APP) { name live target } }", "VIEW", "argocd"),
    ("{ applicationHistory(application: APP) { id revision } }", "VIEW", "argocd"),
    ("{ applicationEvents(application: APP) { reason message } }", "VIEW", "argocd"),
    ("{ resourceActions(application: APP, resource: DEPLOYMENT) { name disabled } }", "VIEW", "argocd"),
    ("{ applicationLinks(application: APP) { title url } }", "VIEW", "argocd"),
    (
        r#"{ repositoryAppDetails(application: APP, source: {repoURL: "https://git.example/shop", path: "shop", targetRevision: "main"}) { type } }"#,
        ADMINS,
        "",
    ),
    (
        r#"{ validateApplication(application: APP, args: {source: {repoURL: "https://git.example/shop", path: "shop", targetRevision: "main"}, destination: {name: "in-cluster"}}) { error } }"#,
        ADMINS,
        "",
    ),
    ("{ rollout(application: APP, rollout: WEB) { phase currentStepIndex } }", "VIEW", "argocd"),
    ("{ analysisRuns(application: APP, rollout: WEB) { phase } }", "VIEW", "argocd"),
    (r#"{ workflows(namespace: "default") { phase } }"#, "VIEW", "default"),
    (r#"{ workflow(namespace: "default", workflowName: "build") { phase } }"#, "VIEW", "default"),
    ("mutation { syncApplication(application: APP) { metadata { name } } }", "SYNC", "argocd"),
    ("mutation { terminateOperation(application: APP) { terminated } }", "TERMINATE_SYNC", "argocd"),
    (
        "mutation { refreshApplication(application: APP, type: hard) { metadata { name } } }",
        "REFRESH",
        "argocd",
    ),
    (
        "mutation { rollbackApplication(application: APP, options: {id: 1}) { metadata { name } } }",
        "APP_ROLLBACK",
        "argocd",
    ),
    ("mutation { deleteResource(application: APP, resource: DEPLOYMENT) }", "DELETE_RESOURCE", "argocd"),
    ("mutation { restartResource(application: APP, resource: DEPLOYMENT) }", "RESTART", "argocd"),
    (
        r#"mutation { runResourceAction(application: APP, resource: DEPLOYMENT, action: "restart") }"#,
        "RESTART",
        "argocd",
    ),
    (
        "mutation { promoteRollout(application: APP, rollout: WEB) { metadata { name } } }",
        "ROLLOUT_RESUME",
        "argocd",
    ),
    (
        "mutation { promoteRollout(application: APP, rollout: WEB, full: true) { metadata { name } } }",
        "ROLLOUT_PROMOTE_FULL",
        "argocd",
    ),
    (
        "mutation { pauseRollout(application: APP, rollout: WEB) { metadata { name } } }",
        "ROLLOUT_PAUSE",
        "argocd",
    ),
    (
        "mutation { resumeRollout(application: APP, rollout: WEB) { metadata { name } } }",
        "ROLLOUT_RESUME",
        "argocd",
    ),
    (
        "mutation { abortRollout(application: APP, rollout: WEB) { metadata { name } } }",
        "ROLLOUT_ABORT",
        "argocd",
    ),
    (
        "mutation { retryRollout(application: APP, rollout: WEB) { metadata { name } } }",
        "ROLLOUT_RETRY",
        "argocd",
    ),
    (
        "mutation { restartRollout(application: APP, rollout: WEB) { metadata { name } } }",
        "ROLLOUT_RESTART",
        "argocd",
    ),
    (
        "mutation { skipCurrentStep(application: APP, rollout: WEB) { metadata { name } } }",
        "ROLLOUT_SKIP_CURRENT_STEP",
        "argocd",
    ),
    (
        "mutation { rollbackRollout(application: APP, rollout: WEB) { newRevision } }",
        "APP_ROLLBACK",
        "argocd",
    ),
    (
        r#"mutation { createWorkflowFromTemplate(args: {namespace: "default", workflowTemplateName: "build"}) { newWorkflowName } }"#,
        "CREATE",
        "default",
    ),
    (
        r#"mutation { retryWorkflow(namespace: "default", workflowName: "done") { metadata { name } } }"#,
        "RESUBMIT",
        "default",
    ),
    (
        r#"mutation { resubmitWorkflow(namespace: "default", workflowName: "done") { newWorkflowName } }"#,
        "RESUBMIT",
        "default",
    ),
    (
        r#"mutation { terminateWorkflow(namespace: "default", workflowName: "build") { metadata { name } } }"#,
        "TERMINATE",
        "default",
    ),
    (
        r#"mutation { stopWorkflow(namespace: "default", workflowName: "build") { metadata { name } } }"#,
        "STOP",
        "default",
    ),
    (
        r#"mutation { suspendWorkflow(namespace: "default", workflowName: "build") { metadata { name } } }"#,
        "STOP",
        "default",
    ),
    (
        r#"mutation { resumeWorkflow(namespace: "default", workflowName: "build") { metadata { name } } }"#,
        "STOP",
        "default",
    ),
    ("{ gitIntegrations { name registeredUsers users { userId isValid } } }", "VIEW", ""),
    ("{ gitIntegration { name provider } }", "VIEW", ""),
    (
        r#"mutation { addGitIntegration(args: {name: "new", provider: GITHUB, sharingPolicy: ACCOUNT_ADMINS}) { name } }"#,
        ADMINS,
        "",
    ),
    ("mutation { editGitIntegration(args: {sharingPolicy: ALL_USERS_IN_ACCOUNT}) { name } }", ADMINS, ""),
    (r#"mutation { removeGitIntegration(name: "spare") }"#, ADMINS, ""),
    (
        r#"mutation { registerToGitIntegration(args: {token: "canary-of-git"}) { registeredUsers } }"#,
        "CREATE",
        "",
    ),
    ("mutation { beginGitAuth { url } }", "CREATE", ""),
    (r#"mutation { finishGitAuth(args: {line: "1.00000000.AAAA"}) { registeredUsers } }"#, "CREATE", ""),
    ("mutation { deregisterFromGitIntegration { registeredUsers } }", "CREATE", ""),
    ("{ gitToken { userId username expiresAt } }", "VIEW", ""),
    (
        r#"{ validateGitProvider(args: {provider: GITHUB, apiUrl: "PROVIDER", token: "canary-of-git"}) { username } }"#,
        "CREATE",
        "",
    ),
    ("{ gitRepositories { count hasNext data { fullName } } }", "VIEW", ""),
    ("{ gitOrganizations { name } }", "VIEW", ""),
    (r#"{ repositoryBranchesAndTags(args: {repo: "team/mono"}) { branches tags } }"#, "VIEW", ""),
    (r#"{ repositoryFiles(args: {repo: "team/mono", ref: "main"}) { files { path } } }"#, "VIEW", ""),
    (r#"{ readFile(args: {repo: "team/mono", ref: "main", path: "a.yaml"}) { data } }"#, "VIEW", ""),
    (
        r#"mutation { updateRuntimeGitToken(args: {token: "canary-of-git-of-the-runtime"}) { username } }"#,
        ADMINS,
        "",
    ),
    (
        r#"mutation { commitFiles(args: {repo: "team/mono", files: [{path: "b.yaml", data: "b: 1"}]}) { sha } }"#,
        "CREATE",
        "",
    ),
    (r#"mutation { deleteFiles(args: {repo: "team/mono", paths: ["a.yaml"]}) { sha } }"#, "CREATE", ""),
    ("{ sealingCertificate { pem } }", "VIEW", ""),
    (
        r#"mutation { sealSecret(args: {namespace: "default", secret: "{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {a: canary-of-a-secret}}"}) { output } }"#,
        "CREATE",
        "default",
    ),
    (
        r#"mutation { createPullRequest(args: {repo: "team/mono", head: "feature", title: "Feature"}) { number url } }"#,
        "CREATE",
        "",
    ),
    (
        "subscription { applicationLogs(application: APP, resource: DEPLOYMENT) { data { content } } }",
        "VIEW_POD_LOGS",
        "argocd",
    ),
    (
        r#"subscription { workflowLogs(namespace: "default", workflowName: "build") { data { content } } }"#,
        "ACCESS_LOGS",
        "default",
    ),
    ("subscription { componentLogs { data { content } error done } }", ADMINS, ""),
];

/// What reads, although a rule of more than reading must grant it, or none can.
const LOOKS: [&str; 4] =
    ["repositoryAppDetails", "validateApplication", "validateGitProvider", "componentLogs"];

/// What only the server of Argo Workflows can do, and what is said where there is none: it is there in the tests of workflows.
const SERVED: [&str; 2] = ["retryWorkflow", "workflowLogs"];
const NO_SERVER: &str =
    "this takes the server of Argo Workflows: set appProxy.workflows.url, and appProxy.workflows.tokenFile";
/// What needs a token that opens: what is done with one stands in the tests of files.
const SEALED: [&str; 9] = [
    "gitToken",
    "gitRepositories",
    "gitOrganizations",
    "repositoryBranchesAndTags",
    "repositoryFiles",
    "readFile",
    "commitFiles",
    "deleteFiles",
    "createPullRequest",
];
const UNKNOWN: &str = "this key, token or session is not known, or has ended";
const READS: &str = "this key may only read: make one of the scope 'full'";
const PERSON: &str = "only a person may do this: send an API key instead of the token of a runtime";

pub(crate) fn asked(query: &str) -> String {
    query
        .replace("APP", r#"{namespace: "argocd", name: "shop"}"#)
        .replace(
            "DEPLOYMENT",
            r#"{group: "apps", version: "v1", kind: "Deployment", namespace: "default", name: "web"}"#,
        )
        .replace("WEB", r#"{namespace: "default", name: "web"}"#)
}

/// What takes an OAuth application, which there is none of here.
const BY_BROWSER: [&str; 2] = ["beginGitAuth", "finishGitAuth"];
const NO_APPLICATION: &str =
    "this runtime has no OAuth application: set appProxy.oauth.secret, or register a token";

/// The first field that a document asks for.
fn field(query: &str) -> &str {
    let from = query.find('{').unwrap() + 1;
    let rest = query.get(from..).unwrap().trim_start();
    rest.split(['(', ' ']).next().unwrap()
}

#[tokio::test]
async fn every_operation_of_the_schema_stands_in_the_table_and_has_an_action() {
    let running = Running::start().await;
    let query = "{ __schema { queryType { fields { name } } mutationType { fields { name } } subscriptionType { fields { name } } } }";
    let schema = running.data(&running.admin, query).await;
    let mut names = Vec::new();
    for kind in ["queryType", "mutationType", "subscriptionType"] {
        for field in schema["__schema"][kind]["fields"].as_array().unwrap() {
            names.push(field["name"].as_str().unwrap().to_owned());
        }
    }
    for name in &names {
        assert!(OPERATIONS.iter().any(|(query, ..)| field(query) == name), "{name} is not in the table");
        assert!(Operation::ALL.iter().any(|one| one.name == name), "{name} needs no action");
    }
    assert_eq!(Operation::ALL.len(), names.len(), "there is no action of what is not asked");
}

/// Whether nothing was changed anywhere.
fn untouched(running: &Running) -> bool {
    running.argocd.take().is_empty() && running.cluster.take().is_empty()
}

#[tokio::test]
async fn every_operation_is_done_for_whoever_may_and_refused_to_all_others() {
    let running = Running::start().await;
    running.register().await;
    let unknown = format!("goak_{}", "0".repeat(64));
    for (query, action, namespace) in OPERATIONS {
        let (asked, name) = (asked(query).replace("PROVIDER", &running.provider.url), field(query));
        let operation = Operation::ALL.into_iter().find(|one| one.name == name).unwrap();
        let entity = operation.entity;
        let of = async |token: &str| running.refused(token, &asked).await;
        let told = |message: &str, code: &str| (message.to_owned(), code.to_owned());
        running.cluster.fill();
        running.argocd.take();
        assert_eq!(of(&unknown).await, told(UNKNOWN, "UNAUTHENTICATED"), "{name}");
        assert_eq!(of(&running.runtime).await, told(PERSON, "UNAUTHENTICATED"), "{name}");
        let for_admins = *action == ADMINS;
        let none = match for_admins {
            true => "'lin' may not: no rule allows this, it is for admins".to_owned(),
            false => format!("'lin' may not: no rule of a team of theirs allows {action} of {entity}"),
        };
        assert_eq!(of(&running.member).await, told(&none, "FORBIDDEN"), "{name}");
        let reads = matches!(*action, "VIEW" | "VIEW_POD_LOGS" | "ACCESS_LOGS");
        if !reads {
            assert_eq!(of(&running.reads).await, told(READS, "FORBIDDEN"), "{name}");
        }
        if !namespace.is_empty() {
            let other = running.allow(action, entity, "elsewhere").await;
            let near =
                format!("'lin' may not: rule {other} allows {action} of {entity}, and not of this one");
            assert_eq!(of(&running.member).await, told(&near, "FORBIDDEN"), "{name}");
            running.take_away(other).await;
        }
        assert!(untouched(&running), "{name} was refused and did something");
        let granted = if for_admins { "CREATE" } else { action };
        let rule = running.allow(granted, entity, namespace).await;
        if for_admins {
            assert_eq!(of(&running.member).await, told(&none, "FORBIDDEN"), "{name}");
            assert!(untouched(&running), "{name} was refused and did something");
        }
        let may = [&running.member, &running.admin];
        for token in may.into_iter().skip(usize::from(for_admins)) {
            running.cluster.fill();
            match name {
                _ if SERVED.contains(&name) => {
                    assert_eq!(of(token).await, told(NO_SERVER, "BAD_REQUEST"), "{name}");
                }
                _ if BY_BROWSER.contains(&name) => {
                    assert_eq!(of(token).await, told(NO_APPLICATION, "BAD_REQUEST"), "{name}");
                }
                _ if SEALED.contains(&name) => {
                    let (said, code) = of(token).await;
                    assert!(said.ends_with("' does not open any more, because the runtime's key is another by now: register it again"), "{said}");
                    assert_eq!(code, "BAD_REQUEST");
                }
                _ => drop(running.data(token, &asked).await),
            }
            let done = !untouched(&running);
            let does = !reads
                && ![&SERVED[..], &SEALED, &BY_BROWSER, &LOOKS, &["sealSecret"]].concat().contains(&name);
            assert_eq!(done, does || name == "applicationLogs", "{name}");
        }
        running.take_away(rule).await;
    }
}

#[tokio::test]
async fn what_no_rule_grants_is_for_admins() {
    let running = Running::start().await;
    let scale =
        asked(r#"mutation { runResourceAction(application: APP, resource: DEPLOYMENT, action: "scale") }"#);
    let local = asked(
        r#"mutation { syncApplication(application: APP, options: {manifests: ["a: b"]}) { metadata { name } } }"#,
    );
    running.allow("SYNC", "gitopsApplications", "argocd").await;
    running.allow("RESTART", "gitopsApplications", "argocd").await;
    let admins = "'lin' may not: no rule allows this, it is for admins";
    for query in [&scale, &local] {
        running.refuses(&running.member, query, admins, "FORBIDDEN").await;
        assert!(untouched(&running));
        running.data(&running.admin, query).await;
        assert!(!untouched(&running));
    }
}

#[tokio::test]
async fn an_application_of_another_runtime_is_refused_even_to_admins() {
    let running = Running::start().await;
    let query = r#"mutation { syncApplication(application: {runtime: "eu1", namespace: "argocd", name: "shop"}) { metadata { name } } }"#;
    let said = "this is the app proxy of the runtime 'prod': ask that of 'eu1'";
    running.refuses(&running.admin, query, said, "FORBIDDEN").await;
    assert!(untouched(&running));
    let own = query.replace("eu1", "prod");
    assert_eq!(
        running.data(&running.admin, &own).await,
        json!({"syncApplication": {"metadata": {"name": "shop"}}})
    );
}

#[tokio::test]
async fn acts_and_refusals_stand_in_the_audit_log_with_who_what_where_and_how_it_ended() {
    let running = Running::start().await;
    let sync = asked("mutation { syncApplication(application: APP) { metadata { name } } }");
    running.data(&running.admin, &sync).await;
    let restart = asked("mutation { restartResource(application: APP, resource: DEPLOYMENT) }");
    running.refused(&running.member, &restart).await;
    *running.argocd.broken.lock().unwrap() =
        Some((400, "another operation is already in progress".to_owned()));
    let said = "Argo CD refused to sync the application (400): another operation is already in progress";
    running.refuses(&running.admin, &sync, said, "PEER_REFUSED").await;
    let row = |who: &str, act: &str, what: &str| (who.to_owned(), act.to_owned(), what.to_owned());
    let refusal = "prod/argocd/shop Deployment default/web: refused: 'lin' may not: no rule of a team of theirs allows RESTART of \
                   gitopsApplications";
    let expected = [
        row("ada", "syncApplication", "prod/argocd/shop: failed: PEER_REFUSED"),
        row("lin", "restartResource", refusal),
        row("ada", "syncApplication", "prod/argocd/shop: done"),
    ];
    assert_eq!(running.audit(3).await, expected);
    // What only reads is not recorded unless it is refused, and nobody whom nobody knows is.
    *running.argocd.broken.lock().unwrap() = None;
    running.data(&running.admin, &asked("{ resourceTree(application: APP) { nodes { name } } }")).await;
    let answer: Value = running.ask("nobody-knows-this", &sync).await;
    assert_eq!(answer["errors"][0]["extensions"]["code"], "UNAUTHENTICATED");
    running.data(&running.admin, &sync).await;
    assert_eq!(running.audit(4).await.len(), 4);
}
