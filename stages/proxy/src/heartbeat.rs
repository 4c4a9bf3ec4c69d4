//! What the app proxy finds of its runtime, looked at again and again, and told to the platform.
//!
//! takes: nothing - gives: [`RuntimeStatus`] - calls: the platform (`me`, the store key, `reportRuntimeErrors`), Argo CD, the API
//! server - fails: never; what cannot be looked at is unknown, and says why

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use pipeline_core::Shutdown;
use serde_json::{Value, json};
use stages_kube::{QuestionError, Reader};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use crate::argocd::ArgoCd;
use crate::error::ActError;
use crate::platform::{Platform, unregistered};
use crate::schema::{AppProxyInfo, ArgoCdState, RuntimeStatus, StatusOfCheck, SyncMode};

/// The Secret of the runtime's own token, and what its secrets are kept under beside the store key.
pub(crate) const TOKEN: &str = "codefresh-token";
/// The Secret of the repositories' credentials.
pub(crate) const REPOSITORIES: &str = "runtime-repo-creds-secret";
/// The Secret of people's Git tokens: there is one account.
pub(crate) const GIT: &str = "git-default-default";
const NO_GIT: &str = "there is none: nothing of this runtime uses it yet";

/// Looks, and tells.
pub(crate) struct Heartbeat {
    pub(crate) platform: Platform,
    pub(crate) argocd: Arc<ArgoCd>,
    pub(crate) cluster: Arc<Reader>,
    pub(crate) namespace: String,
    pub(crate) every: Duration,
    pub(crate) status: watch::Sender<RuntimeStatus>,
}

impl Heartbeat {
    /// Until `stop`.
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
    }

    async fn look(&self, runtime: Option<&str>) -> RuntimeStatus {
        let (argocd, state) = self.look_at_argocd().await;
        let (key, iv, isc, sources, git, repositories) = tokio::join!(
            self.look_at_key(runtime),
            self.look_at_iv(),
            self.application(runtime),
            self.sources(),
            self.secret(GIT),
            self.secret(REPOSITORIES),
        );
        let sync_mode = match isc.status {
            StatusOfCheck::Successful => SyncMode::GitOps,
            StatusOfCheck::Failed => SyncMode::Unknown,
            StatusOfCheck::Unknown if isc.description.as_deref() == Some(NO_GIT) => SyncMode::Helm,
            StatusOfCheck::Unknown => SyncMode::Unknown,
        };
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
        let path = format!("/api/v1/namespaces/{}/secrets/{TOKEN}", self.namespace);
        match self.cluster.get(&path).await {
            Ok(Some(secret)) if secret.pointer("/data/encryptionIV").is_some() => AppProxyInfo::successful(),
            Ok(Some(_)) => AppProxyInfo::failed(format!(
                "the Secret {TOKEN} has no encryptionIV: delete the Secret, so that it is made anew"
            )),
            Ok(None) => AppProxyInfo::unknown(NO_GIT),
            Err(error) => unlooked(&error),
        }
    }

    async fn secret(&self, name: &str) -> AppProxyInfo {
        let path = format!("/api/v1/namespaces/{}/secrets/{name}", self.namespace);
        there(self.cluster.get(&path).await)
    }

    async fn application(&self, runtime: Option<&str>) -> AppProxyInfo {
        let Some(runtime) = runtime else {
            return AppProxyInfo::unknown("the platform does not say which runtime this is");
        };
        let path =
            format!("/apis/argoproj.io/v1alpha1/namespaces/{}/applications/{runtime}-isc", self.namespace);
        there(self.cluster.get(&path).await)
    }

    async fn sources(&self) -> AppProxyInfo {
        let path = format!(
            "/apis/argoproj.io/v1alpha1/namespaces/{}/applications?labelSelector=codefresh.io%2Fentity%3Dgit-source&limit=1",
            self.namespace
        );
        match self.cluster.metadata(&path).await {
            Ok(list) => {
                let items = list.as_ref().and_then(|list| list.get("items")?.as_array());
                there(Ok(items.and_then(|items| items.first().cloned())))
            }
            Err(error) => there(Err(error)),
        }
    }
}

fn there(found: Result<Option<Value>, QuestionError>) -> AppProxyInfo {
    match found {
        Ok(Some(_)) => AppProxyInfo::successful(),
        Ok(None) => AppProxyInfo::unknown(NO_GIT),
        Err(error) => unlooked(&error),
    }
}

fn unlooked(error: &QuestionError) -> AppProxyInfo {
    AppProxyInfo::unknown(match error {
        QuestionError::Status(401 | 403) => {
            "it may not be looked at: grant what `gitops-runtime rbac print --role app-proxy` prints"
                .to_owned()
        }
        error => error.to_string(),
    })
}

/// What is wrong, as the platform keeps it.
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
