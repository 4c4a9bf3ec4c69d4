//! Checks the runtime of the app proxy at intervals, and reports what is wrong to the platform.
//!
//! takes: nothing - gives: [`RuntimeStatus`] - calls: the platform (`me`, `runtime`, the store key, `reportRuntimeErrors`,
//! `updateRuntimeClusters`, and `reportRuntimeVersion` where it knows another than that which runs), Argo CD, the API server
//! fails: never; what cannot be looked at is unknown, and says why

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use pipeline_core::Shutdown;
use serde_json::{Value, json};
use stages_client::HttpError;
use stages_kube::{QuestionError, Reader};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use crate::VERSION;
use crate::argocd::ArgoCd;
use crate::clusters;
use crate::error::ActError;
use crate::git::{DEFAULT_INTEGRATION, Integrations, ListedIntegration, is_iv};
use crate::platform::{Platform, unregistered};
use crate::schema::{AppProxyInfo, ArgoCdState, RuntimeStatus, StatusOfCheck, SyncMode};
use crate::secret_names::{REPOSITORIES_SECRET, TOKEN_SECRET};

/// The most Git sources that are checked.
const MAX_SOURCES: usize = 10;

/// Checks the runtime, and reports to the platform.
pub(crate) struct Heartbeat {
    pub(crate) platform: Platform,
    pub(crate) argocd: Arc<ArgoCd>,
    pub(crate) cluster: Arc<Reader>,
    pub(crate) namespace: String,
    pub(crate) argocd_namespace: String,
    pub(crate) git: Integrations,
    pub(crate) every: Duration,
    pub(crate) status: watch::Sender<RuntimeStatus>,
    /// Whether it was logged that the version could not be reported.
    pub(crate) version_untold: AtomicBool,
    /// Whether it was logged that the clusters could not be reported.
    pub(crate) clusters_untold: AtomicBool,
}

impl Heartbeat {
    /// Runs until `stop`.
    pub(crate) async fn run(self, stop: Shutdown) {
        let mut ticks = interval(self.every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let beating = async {
            loop {
                ticks.tick().await;
                self.beat().await;
            }
        };
        tokio::select! {
            () = beating => {}
            () = stop.cancelled() => {}
        }
    }

    /// Checks everything once, and reports it.
    async fn beat(&self) {
        let me = json!({"query": "{ me { runtimeName } }"});
        let me = self.platform.graphql("ask which runtime this is", &me).await;
        let runtime = me.as_ref().ok().and_then(|me| me.pointer("/me/runtimeName")?.as_str());
        let status = self.look(runtime).await;
        let problems = problems(&status);
        let before = self.status.send_replace(status.clone());
        if before != status {
            for problem in &problems {
                let said =
                    |key: &str| problem.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
                tracing::warn!(
                    what = said("title"),
                    why = said("message"),
                    "something is wrong with the runtime"
                );
            }
        }
        let Some(runtime) = runtime else { return };
        if let Err(error) = self.tell_version(runtime).await
            && !self.version_untold.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the platform was not told the version that runs: it may be older than this runtime"
            );
        }
        let query =
            "mutation($args: ReportRuntimeErrorsArgs!) { reportRuntimeErrors(reportErrorsArgs: $args) }";
        let args = json!({"runtime": runtime, "errors": problems});
        let told = json!({"query": query, "variables": {"args": args}});
        if let Err(error) = self.platform.graphql("report what is wrong", &told).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the platform was not told how the runtime is"
            );
        }
        match clusters::report(&self.argocd, &self.platform, runtime).await {
            Ok(()) => self.clusters_untold.store(false, Ordering::Relaxed),
            Err(error) if !self.clusters_untold.swap(true, Ordering::Relaxed) => tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the platform was not told of the clusters of Argo CD"
            ),
            Err(_) => {}
        }
    }

    /// Reports the version that runs, unless the platform knows it.
    async fn tell_version(&self, runtime: &str) -> Result<(), HttpError> {
        let asked = json!({
            "query": "query($name: String!) { runtime(name: $name) { runtimeVersion } }", "variables": {"name": runtime},
        });
        let known = self.platform.graphql("ask which version it knows", &asked).await?;
        if known.pointer("/runtime/runtimeVersion").and_then(Value::as_str) == Some(VERSION) {
            return Ok(());
        }
        let query =
            "mutation($args: ReportRuntimeVersionArgs!) { reportRuntimeVersion(reportVersionArgs: $args) }";
        let args = json!({"runtime": runtime, "runtimeVersion": VERSION});
        let told = json!({"query": query, "variables": {"args": args}});
        self.platform.graphql("report the version that runs", &told).await.map(drop)
    }

    async fn look(&self, runtime: Option<&str>) -> RuntimeStatus {
        let (argocd, state) = self.look_at_argocd().await;
        let (key, iv, (isc, sync_mode), sources, git, repositories) = tokio::join!(
            self.look_at_key(runtime),
            self.look_at_iv(),
            self.look_at_configuration(runtime),
            self.look_at_sources(),
            self.look_at_integration(),
            self.look_at_repositories(),
        );
        RuntimeStatus {
            app_proxy_started: AppProxyInfo::successful(),
            git_source_configured: sources,
            default_git_integration: git,
            encryption_key: key,
            encryption_iv: iv,
            event_reporter_argo_cd_token: argocd,
            isc,
            runtime_git_token: repositories,
            sync_mode,
            argo_cd_state: state,
        }
    }

    async fn look_at_argocd(&self) -> (AppProxyInfo, ArgoCdState) {
        let refused =
            "Argo CD does not know the token or login under the setting argocd: give it one that it knows";
        match self.argocd.knows_us().await {
            Ok(true) => (AppProxyInfo::successful(), ArgoCdState::Connected),
            Ok(false) | Err(ActError::Peer { status: 401 | 403, .. }) => {
                (AppProxyInfo::failed(refused), ArgoCdState::NotAuthorized)
            }
            Err(ActError::Away { source, .. }) => {
                let why = format!("Argo CD does not answer: see the setting argocd.url ({source})");
                (AppProxyInfo::failed(why), ArgoCdState::NotFound)
            }
            Err(error) => (AppProxyInfo::unknown(error.to_string()), ArgoCdState::Unknown),
        }
    }

    async fn look_at_key(&self, runtime: Option<&str>) -> AppProxyInfo {
        let Some(runtime) = runtime else {
            return AppProxyInfo::failed(
                "the platform does not say which runtime this is: see platform.url, and that platform.token is a runtime's",
            );
        };
        match self.platform.has_store_key(runtime).await {
            Ok(()) => AppProxyInfo::successful(),
            Err(error) if error.status() == Some(404) => AppProxyInfo::unknown(unregistered(runtime)),
            Err(error) => AppProxyInfo::unknown(error.to_string()),
        }
    }

    async fn look_at_iv(&self) -> AppProxyInfo {
        let path = format!("/api/v1/namespaces/{}/secrets/{TOKEN_SECRET}", self.namespace);
        match self.cluster.get(&path).await {
            // The Secret also holds the runtime's token, which cannot be made anew: nobody is to delete it.
            Ok(Some(secret)) => match secret.pointer("/data/encryptionIV") {
                Some(iv) if is_iv(iv) => AppProxyInfo::successful(),
                Some(_) => AppProxyInfo::failed(format!(
                    "the encryptionIV of the Secret {TOKEN_SECRET} cannot be read: remove the key encryptionIV from the Secret, and no other, so \
                     that it is made anew"
                )),
                None => AppProxyInfo::unknown(format!(
                    "there is no encryptionIV in the Secret {TOKEN_SECRET}: it is made when somebody registers a Git token"
                )),
            },
            Ok(None) => AppProxyInfo::unknown(format!(
                "there is no Secret {TOKEN_SECRET}: it is made when somebody registers a Git token"
            )),
            Err(error) => unlooked(&error),
        }
    }

    /// Whether there is a Git integration called `default`, and a token registered with it can be opened.
    async fn look_at_integration(&self) -> AppProxyInfo {
        let none =
            "there is no Git integration called default: `gitops-runtime git integration add` adds one";
        match self.git.list().await {
            Ok(all) => match all.into_iter().find(|one| one.name == DEFAULT_INTEGRATION) {
                None => AppProxyInfo::unknown(none),
                Some(ListedIntegration { users, .. })
                    if !users.is_empty() && users.iter().all(|user| !user.is_valid) =>
                {
                    AppProxyInfo::failed(
                        "no token that is registered with the Git integration default opens any more: register each again with \
                         `gitops-runtime git integration register`",
                    )
                }
                Some(_) => AppProxyInfo::successful(),
            },
            Err(ActError::Cluster { source, .. }) => unlooked(&source),
            Err(error) => AppProxyInfo::unknown(error.to_string()),
        }
    }

    /// Whether the Secret is whole that Argo CD reads the runtime's own repositories with.
    async fn look_at_repositories(&self) -> AppProxyInfo {
        let path = format!("/api/v1/namespaces/{}/secrets/{REPOSITORIES_SECRET}", self.argocd_namespace);
        match self.cluster.get(&path).await {
            Ok(None) => AppProxyInfo::unknown(format!(
                "there is no Secret {REPOSITORIES_SECRET}: make it with url, username and password where Argo CD is to read repositories with \
                 a token of the runtime's own"
            )),
            Ok(Some(secret)) => {
                let has = |key: &str| {
                    let value = secret.get("data").and_then(|data| data.get(key)?.as_str());
                    value.is_some_and(|value| !value.is_empty())
                };
                match has("url") && has("password") {
                    true => AppProxyInfo::successful(),
                    false => AppProxyInfo::failed(format!(
                        "the Secret {REPOSITORIES_SECRET} lacks a url or a password: write both, or delete it"
                    )),
                }
            }
            Err(error) => unlooked(&error),
        }
    }

    /// Whether the Application of the runtime's own configuration is synced, and so whether that comes from Git or from Helm.
    async fn look_at_configuration(&self, runtime: Option<&str>) -> (AppProxyInfo, SyncMode) {
        let Some(runtime) = runtime else {
            return (
                AppProxyInfo::unknown("the platform does not say which runtime this is"),
                SyncMode::Unknown,
            );
        };
        let name = format!("{runtime}-isc");
        let path =
            format!("/apis/argoproj.io/v1alpha1/namespaces/{}/applications/{name}", self.argocd_namespace);
        match self.cluster.get(&path).await {
            Ok(Some(application)) => (synced("the shared configuration", &application), SyncMode::GitOps),
            Ok(None) => {
                let none = format!(
                    "there is no Application {name}: the runtime is what Helm installed; make it where a repository is to say what \
                     the runtime is"
                );
                (AppProxyInfo::unknown(none), SyncMode::Helm)
            }
            Err(error) => (unlooked(&error), SyncMode::Unknown),
        }
    }

    /// Whether the Git sources are synced: the Applications that create Applications from Git.
    async fn look_at_sources(&self) -> AppProxyInfo {
        let path = format!(
            "/apis/argoproj.io/v1alpha1/namespaces/{}/applications?labelSelector=codefresh.io%2Fentity%3Dgit-source&limit={MAX_SOURCES}",
            self.argocd_namespace
        );
        let list = match self.cluster.get(&path).await {
            Ok(list) => list.unwrap_or_default(),
            Err(error) => return unlooked(&error),
        };
        let all = list.get("items").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        if all.is_empty() {
            return AppProxyInfo::unknown(format!(
                "there is no Git source: label an Application of the namespace {} codefresh.io/entity=git-source where Git is to say what \
                 Applications there are",
                self.argocd_namespace
            ));
        }
        let looked = all.iter().map(|source| synced("a Git source", source));
        looked
            .into_iter()
            .find(|info| info.status == StatusOfCheck::Failed)
            .unwrap_or_else(AppProxyInfo::successful)
    }
}

/// Whether an Application has no condition that is an error.
fn synced(what: &str, application: &Value) -> AppProxyInfo {
    let conditions = application.pointer("/status/conditions").and_then(Value::as_array);
    let is_error = |condition: &Value| {
        condition.get("type").and_then(Value::as_str).is_some_and(|of| of.ends_with("Error"))
    };
    if !conditions.is_some_and(|all| all.iter().any(is_error)) {
        return AppProxyInfo::successful();
    }
    let name = application.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    AppProxyInfo::failed(format!(
        "{what} cannot be synced: see the conditions of the Application {name} in Argo CD"
    ))
}

/// What is told of an object that could not be read.
fn unlooked(error: &QuestionError) -> AppProxyInfo {
    AppProxyInfo::unknown(match error {
        QuestionError::Status(401 | 403) => {
            "it may not be looked at: grant what `gitops-runtime rbac print --role app-proxy` prints"
                .to_owned()
        }
        error => error.to_string(),
    })
}

/// The checks that failed, as the platform's `reportRuntimeErrors` takes them.
fn problems(status: &RuntimeStatus) -> Vec<Value> {
    let flags = [
        ("Argo CD", &status.event_reporter_argo_cd_token),
        ("The store key", &status.encryption_key),
        ("The encryption vector", &status.encryption_iv),
        ("Git sources", &status.git_source_configured),
        ("The default Git integration", &status.default_git_integration),
        ("The shared configuration", &status.isc),
        ("The runtime's Git token", &status.runtime_git_token),
    ];
    let failed = flags.into_iter().filter(|(_, info)| info.status == StatusOfCheck::Failed);
    let now = Timestamp::now().to_string();
    let problem = |(title, info): (&str, &AppProxyInfo)| {
        let said = info.description.clone().unwrap_or_default();
        let (message, suggestion) = match said.split_once(": ") {
            Some((message, suggestion)) => (message.to_owned(), Some(suggestion.to_owned())),
            None => (said, None),
        };
        json!({
            "level": "ERROR", "title": title, "message": message, "suggestion": suggestion,
            "code": "BROKEN_REFERENCE", "lastSeen": now,
        })
    };
    failed.map(problem).collect()
}
