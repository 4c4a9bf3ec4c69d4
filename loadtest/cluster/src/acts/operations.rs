//! The operations, as they are asked for.

/// What tells that an operation did what it is for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shows {
    /// A text in its answer.
    Text(&'static str),
    /// What was made for it in the cluster or in Git, such as a revision, stands in its answer.
    Place,
    /// What has become of the cluster.
    Effect,
}

/// An operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operation {
    /// The field of the schema.
    pub(super) name: &'static str,
    /// Which of several ways to ask for it.
    pub(super) way: &'static str,
    /// `APP`, `ROLLOUT`, `DEPLOYMENT`, `REPOSITORY` and `PLACE` are filled in.
    pub(super) query: &'static str,
    /// What a rule must grant, of applications or else of workflows; empty: it is for admins.
    pub(super) action: &'static str,
    pub(super) is_act: bool,
    pub(super) shows: Shows,
}

pub(super) const APPLICATIONS: &str = "gitopsApplications";
pub(super) const WORKFLOWS: &str = "workflows";

impl Operation {
    /// Its name and way.
    pub(super) fn title(&self) -> String {
        if self.way.is_empty() { self.name.to_owned() } else { format!("{} ({})", self.name, self.way) }
    }

    /// What rules about it are about.
    pub(super) fn entity(&self) -> &'static str {
        if self.name.to_lowercase().contains("workflow") { WORKFLOWS } else { APPLICATIONS }
    }
}

const fn read(
    name: &'static str,
    query: &'static str,
    action: &'static str,
    text: &'static str,
) -> Operation {
    Operation { name, way: "", query, action, is_act: false, shows: Shows::Text(text) }
}

const fn act(name: &'static str, way: &'static str, query: &'static str, action: &'static str) -> Operation {
    Operation { name, way, query, action, is_act: true, shows: Shows::Effect }
}

/// A log, which is begun as an act and read as it comes.
const fn log(name: &'static str, query: &'static str, action: &'static str, text: &'static str) -> Operation {
    Operation { name, way: "", query, action, is_act: true, shows: Shows::Text(text) }
}

/// All of them but those about Git and sealed Secrets, which nothing in a cluster carries out, and those about the runtime's own pods,
/// which `loadtest install` has.
pub(super) const OPERATIONS: &[Operation] = &[
    read("resourceTree", "{ resourceTree(application: APP) { nodes { kind name } } }", "VIEW", r#""canary""#),
    read(
        "managedResources",
        "{ managedResources(application: APP) { kind name liveState } }",
        "VIEW",
        r#""canary""#,
    ),
    read(
        "applicationDiff",
        "{ applicationDiff(application: APP) { kind name live target } }",
        "VIEW",
        r#""shop""#,
    ),
    Operation {
        way: "a revision",
        ..read(
            "applicationDiff",
            r#"{ applicationDiff(application: APP, revision: "PLACE") { kind name live target } }"#,
            "VIEW",
            r#""shop""#,
        )
    },
    Operation {
        shows: Shows::Place,
        ..read("applicationHistory", "{ applicationHistory(application: APP) { id revision } }", "VIEW", "")
    },
    read(
        "applicationEvents",
        "{ applicationEvents(application: APP, resource: DEPLOYMENT) { reason message } }",
        "VIEW",
        "ScalingReplicaSet",
    ),
    read(
        "resourceActions",
        "{ resourceActions(application: APP, resource: DEPLOYMENT) { name } }",
        "VIEW",
        r#""restart""#,
    ),
    read(
        "applicationLinks",
        "{ applicationLinks(application: APP) { title url } }",
        "VIEW",
        r#""https://wiki.example.com/shop""#,
    ),
    read(
        "repositoryAppDetails",
        r#"{ repositoryAppDetails(application: APP, source: {repoURL: "REPOSITORY", path: "slow", targetRevision: "HEAD"}) { type } }"#,
        "",
        r#""Directory""#,
    ),
    read(
        "validateApplication",
        r#"{ validateApplication(application: APP, args: {source: {repoURL: "REPOSITORY", path: "slow", targetRevision: "HEAD"}, destination: {name: "in-cluster", namespace: "acts"}}) { entity error } }"#,
        "",
        r#"{"validateApplication":[]}"#,
    ),
    Operation {
        way: "what is wrong",
        ..read(
            "validateApplication",
            r#"{ validateApplication(application: APP, args: {source: {repoURL: "REPOSITORY", path: "none", targetRevision: "HEAD"}, destination: {name: "elsewhere", namespace: "acts"}}) { entity error } }"#,
            "",
            "none: app path does not exist",
        )
    },
    read("rollout", "{ rollout(application: APP, rollout: ROLLOUT) { phase } }", "VIEW", r#""Healthy""#),
    read(
        "analysisRuns",
        "{ analysisRuns(application: APP, rollout: ROLLOUT) { phase } }",
        "VIEW",
        r#""Successful""#,
    ),
    log(
        "applicationLogs",
        "subscription { applicationLogs(application: APP, resource: DEPLOYMENT) { data { content podName } error done } }",
        "VIEW_POD_LOGS",
        "serving",
    ),
    act(
        "syncApplication",
        "",
        "mutation { syncApplication(application: APP) { metadata { name } } }",
        "SYNC",
    ),
    act(
        "syncApplication",
        "options",
        r#"mutation { syncApplication(application: APP, options: {prune: true, infos: [{name: "why", value: "a proof"}], resources: [{name: "shop", kind: "ConfigMap", namespace: "acts"}], retryStrategy: {limit: 2, backoff: {duration: "5s", factor: 2, maxDuration: "1m"}}, syncOptions: {items: ["CreateNamespace=true"]}, strategy: {apply: {force: true}}, revision: "PLACE"}) { metadata { name } } }"#,
        "SYNC",
    ),
    act(
        "syncApplication",
        "dry run",
        "mutation { syncApplication(application: APP, options: {dryRun: true}) { metadata { name } } }",
        "SYNC",
    ),
    act(
        "syncApplication",
        "manifests",
        r#"mutation { syncApplication(application: APP, options: {manifests: ["{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"shop\", \"namespace\": \"acts\"}, \"data\": {\"number\": \"PLACE\"}}"]}) { metadata { name } } }"#,
        "",
    ),
    act(
        "refreshApplication",
        "",
        "mutation { refreshApplication(application: APP, type: hard) { metadata { name } } }",
        "REFRESH",
    ),
    act(
        "rollbackApplication",
        "",
        "mutation { rollbackApplication(application: APP, options: {id: PLACE}) { metadata { name } } }",
        "APP_ROLLBACK",
    ),
    act(
        "terminateOperation",
        "",
        r#"mutation { terminateOperation(application: {namespace: "argocd", name: "slow"}) { terminated } }"#,
        "TERMINATE_SYNC",
    ),
    act(
        "deleteResource",
        "",
        r#"mutation { deleteResource(application: APP, resource: {version: "v1", kind: "ConfigMap", namespace: "acts", name: "extra"}) }"#,
        "DELETE_RESOURCE",
    ),
    act(
        "restartResource",
        "",
        "mutation { restartResource(application: APP, resource: DEPLOYMENT) }",
        "RESTART",
    ),
    act(
        "runResourceAction",
        "restart",
        r#"mutation { runResourceAction(application: APP, resource: DEPLOYMENT, action: "restart") }"#,
        "RESTART",
    ),
    act(
        "runResourceAction",
        "resume",
        r#"mutation { runResourceAction(application: APP, resource: DEPLOYMENT, action: "resume") }"#,
        "",
    ),
    act(
        "promoteRollout",
        "",
        "mutation { promoteRollout(application: APP, rollout: ROLLOUT) { metadata { name } } }",
        "ROLLOUT_RESUME",
    ),
    act(
        "promoteRollout",
        "full",
        "mutation { promoteRollout(application: APP, rollout: ROLLOUT, full: true) { metadata { name } } }",
        "ROLLOUT_PROMOTE_FULL",
    ),
    act(
        "pauseRollout",
        "",
        "mutation { pauseRollout(application: APP, rollout: ROLLOUT) { metadata { name } } }",
        "ROLLOUT_PAUSE",
    ),
    act(
        "resumeRollout",
        "",
        "mutation { resumeRollout(application: APP, rollout: ROLLOUT) { metadata { name } } }",
        "ROLLOUT_RESUME",
    ),
    act(
        "abortRollout",
        "",
        "mutation { abortRollout(application: APP, rollout: ROLLOUT) { metadata { name } } }",
        "ROLLOUT_ABORT",
    ),
    act(
        "retryRollout",
        "",
        "mutation { retryRollout(application: APP, rollout: ROLLOUT) { metadata { name } } }",
        "ROLLOUT_RETRY",
    ),
    act(
        "restartRollout",
        "",
        "mutation { restartRollout(application: APP, rollout: ROLLOUT) { metadata { name } } }",
        "ROLLOUT_RESTART",
    ),
    act(
        "skipCurrentStep",
        "",
        "mutation { skipCurrentStep(application: APP, rollout: ROLLOUT) { metadata { name } } }",
        "ROLLOUT_SKIP_CURRENT_STEP",
    ),
    act(
        "rollbackRollout",
        "",
        "mutation { rollbackRollout(application: APP, rollout: ROLLOUT) { newRevision } }",
        "APP_ROLLBACK",
    ),
    read(
        "workflows",
        r#"{ workflows(namespace: "acts") { metadata { name } phase } }"#,
        "VIEW",
        r#""first""#,
    ),
    read(
        "workflow",
        r#"{ workflow(namespace: "acts", workflowName: "first") { phase } }"#,
        "VIEW",
        r#""Succeeded""#,
    ),
    log(
        "workflowLogs",
        r#"subscription { workflowLogs(namespace: "acts", workflowName: "first") { data { content podName } error done } }"#,
        "ACCESS_LOGS",
        "hello from first",
    ),
    act(
        "createWorkflowFromTemplate",
        "",
        r#"mutation { createWorkflowFromTemplate(args: {namespace: "acts", workflowTemplateName: "greet", parameters: [{name: "who", value: "PLACE"}]}) { newWorkflowName } }"#,
        "CREATE",
    ),
    act(
        "retryWorkflow",
        "",
        r#"mutation { retryWorkflow(namespace: "acts", workflowName: "PLACE") { metadata { name } } }"#,
        "RESUBMIT",
    ),
    act(
        "resubmitWorkflow",
        "",
        r#"mutation { resubmitWorkflow(namespace: "acts", workflowName: "PLACE") { newWorkflowName } }"#,
        "RESUBMIT",
    ),
    act(
        "suspendWorkflow",
        "",
        r#"mutation { suspendWorkflow(namespace: "acts", workflowName: "PLACE") { metadata { name } } }"#,
        "STOP",
    ),
    act(
        "resumeWorkflow",
        "",
        r#"mutation { resumeWorkflow(namespace: "acts", workflowName: "PLACE") { metadata { name } } }"#,
        "STOP",
    ),
    act(
        "stopWorkflow",
        "",
        r#"mutation { stopWorkflow(namespace: "acts", workflowName: "PLACE") { metadata { name } } }"#,
        "STOP",
    ),
    act(
        "terminateWorkflow",
        "",
        r#"mutation { terminateWorkflow(namespace: "acts", workflowName: "PLACE") { metadata { name } } }"#,
        "TERMINATE",
    ),
];
