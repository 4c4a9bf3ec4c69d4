//! What the app proxy finds of its runtime: what is there, what is wrong with it, and what to do about each.

use std::time::Duration;

use serde_json::{Value, json};
use stages_platform_store::ToldCluster;
use stages_proxy::ProxyConfig;

use crate::argocd::CLUSTERS;
use crate::cluster::{GIT, RUNTIME_TOKEN};
use crate::support::{Running, soon};

const APPLICATIONS: &str = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications";
const REPOSITORIES: &str = "/api/v1/namespaces/argocd/secrets/runtime-repo-creds-secret";

/// Waits until the flags are these, each as status and what its description begins with.
async fn found(running: &Running, expected: &[(&str, &str, &str)], mode: &str) {
    let query = "{ runtimeStatus { syncMode gitSourceConfigured { status description } defaultGitIntegration { status description }
        encryptionIv { status description } isc { status description } runtimeGitToken { status description } } }";
    let status = async || running.data(&running.admin, query).await["runtimeStatus"].clone();
    let is_well = |status: &Value| {
        let is = |(flag, state, said): &(&str, &str, &str)| {
            let description = status[flag]["description"].as_str().unwrap_or_default();
            status[flag]["status"] == *state && description == *said
        };
        expected.iter().all(is) && status["syncMode"] == mode
    };
    soon(status, is_well).await;
}

#[tokio::test]
async fn each_flag_is_filled_from_what_is_there_and_says_what_to_do() {
    let running = Running::start().await;
    let set = |path: &str, object: Value| {
        drop(running.cluster.objects.lock().unwrap().insert(path.to_owned(), object));
    };
    running.cluster.remove(GIT);
    let none = [
        (
            "gitSourceConfigured",
            "UNKNOWN",
            "there is no Git source: label an Application of the namespace argocd codefresh.io/entity=git-source where Git is to say what \
             Applications there are",
        ),
        (
            "defaultGitIntegration",
            "UNKNOWN",
            "there is no Git integration called default: `gitops-runtime git integration add` adds one",
        ),
        (
            "encryptionIv",
            "UNKNOWN",
            "there is no Secret codefresh-token: it is made when somebody registers a Git token",
        ),
        (
            "isc",
            "UNKNOWN",
            "there is no Application prod-isc: the runtime is what Helm installed; make it where a repository is to say what the runtime is",
        ),
        (
            "runtimeGitToken",
            "UNKNOWN",
            "there is no Secret runtime-repo-creds-secret: make it with url, username and password where Argo CD is to read repositories \
             with a token of the runtime's own",
        ),
    ];
    found(&running, &none, "HELM").await;

    // A runtime that has its token, and with which nobody has registered a Git token yet: nothing is wrong with it.
    set(RUNTIME_TOKEN, json!({"metadata": {"resourceVersion": "1"}, "data": {"token": "YWJj"}}));
    let young = [(
        "encryptionIv",
        "UNKNOWN",
        "there is no encryptionIV in the Secret codefresh-token: it is made when somebody registers a Git token",
    )];
    found(&running, &young, "HELM").await;

    // Broken, each in its own way: the tokens that are kept open with no key that there is.
    running.register().await;
    running.cluster.fill();
    let broken = |name: &str| json!({"metadata": {"name": name}, "status": {"conditions": [{"type": "OrphanedResourceWarning"}, {"type": "ComparisonError"}]}});
    set(&format!("{APPLICATIONS}/prod-isc"), broken("prod-isc"));
    set(REPOSITORIES, json!({"data": {"url": "aHR0cHM6Ly9naXQ=", "password": ""}}));
    set(RUNTIME_TOKEN, json!({"metadata": {"resourceVersion": "1"}, "data": {"encryptionIV": "***"}}));
    let wrong = [
        (
            "gitSourceConfigured",
            "FAILED",
            "a Git source cannot be synced: see the conditions of the Application prod-isc in Argo CD",
        ),
        (
            "encryptionIv",
            "FAILED",
            "the encryptionIV of the Secret codefresh-token cannot be read: remove the key encryptionIV from the Secret, and no other, so that \
             it is made anew",
        ),
        (
            "isc",
            "FAILED",
            "the shared configuration cannot be synced: see the conditions of the Application prod-isc in Argo CD",
        ),
        (
            "runtimeGitToken",
            "FAILED",
            "the Secret runtime-repo-creds-secret lacks a url or a password: write both, or delete it",
        ),
        ("defaultGitIntegration", "UNKNOWN", "the encryptionIV of the Secret codefresh-token cannot be read"),
    ];
    found(&running, &wrong, "GITOPS").await;

    // A key that can be read, and is not that which the tokens were sealed with; all else is mended.
    set(RUNTIME_TOKEN, json!({"metadata": {"resourceVersion": "1"}, "data": {"encryptionIV": "YWJj"}}));
    set(REPOSITORIES, json!({"data": {"url": "aHR0cHM6Ly9naXQ=", "password": "YQ=="}}));
    set(&format!("{APPLICATIONS}/prod-isc"), json!({"metadata": {"name": "prod-isc"}, "status": {}}));
    let mended = [
        ("gitSourceConfigured", "SUCCESSFUL", ""),
        ("encryptionIv", "SUCCESSFUL", ""),
        ("isc", "SUCCESSFUL", ""),
        ("runtimeGitToken", "SUCCESSFUL", ""),
        (
            "defaultGitIntegration",
            "FAILED",
            "no token that is registered with the Git integration default opens any more: register each again with `gitops-runtime git \
             integration register`",
        ),
    ];
    found(&running, &mended, "GITOPS").await;
}

#[tokio::test]
async fn what_is_argo_cds_is_looked_at_where_argo_cd_is_and_what_is_the_runtimes_in_its_own_namespace() {
    let running =
        Running::made(Duration::ZERO, |config| ProxyConfig { namespace: "runtime".to_owned(), ..config })
            .await;
    let set = |path: &str, object: Value| {
        drop(running.cluster.objects.lock().unwrap().insert(path.to_owned(), object));
    };
    set(&format!("{APPLICATIONS}/prod-isc"), json!({"metadata": {"name": "prod-isc"}, "status": {}}));
    set(REPOSITORIES, json!({"data": {"url": "aHR0cHM6Ly9naXQ=", "password": "YQ=="}}));
    let own = RUNTIME_TOKEN.replace("argocd", "runtime");
    set(&own, json!({"metadata": {"resourceVersion": "1"}, "data": {"encryptionIV": "YWJj"}}));
    let there = [
        ("gitSourceConfigured", "SUCCESSFUL", ""),
        ("encryptionIv", "SUCCESSFUL", ""),
        ("isc", "SUCCESSFUL", ""),
        ("runtimeGitToken", "SUCCESSFUL", ""),
    ];
    found(&running, &there, "GITOPS").await;
}

#[tokio::test]
async fn the_platform_is_told_of_every_cluster_of_argo_cd_without_secrets() {
    let running = Running::start().await;
    let told = async || running.store.told_clusters(Some("prod"), 1_000).await.unwrap();
    let told = soon(told, |told| told.len() == CLUSTERS).await;
    let of = |name: &str| told.iter().find(|one| one.name == name).unwrap().clone();
    let text = |text: &str| Some(text.to_owned());
    let own = ToldCluster {
        runtime: "prod".to_owned(),
        name: "in-cluster".to_owned(),
        server: "https://kubernetes.default.svc".to_owned(),
        status: "Successful".to_owned(),
        message: text(""),
        attempted_at: text("2026-01-01T00:00:00Z"),
        server_version: text("1.31"),
        resources: Some(12),
        apis: Some(3),
        cached_at: text("2026-01-01T00:00:01Z"),
        api_versions: Vec::new(),
    };
    assert_eq!(of("in-cluster"), own);
    let versions = running.store.api_versions("prod", "in-cluster").await.unwrap();
    assert_eq!(versions, ["v1", "apps/v1/Deployment"]);
    let east = of("east");
    assert_eq!((&*east.server, &*east.status), ("https://10.0.0.1:6443", "Failed"), "the first of its name");
    assert!(!east.message.unwrap().contains("canary"), "no secret of its goes to the platform");
    assert_eq!(of("https://10.0.0.2:6443").status, "Unknown", "without a name it is called by its address");
}
