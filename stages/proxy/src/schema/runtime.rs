//! What the app proxy found of its runtime.

use async_graphql::{Enum, SimpleObject};

/// What this is, and which platform it belongs to.
#[derive(SimpleObject)]
pub(crate) struct VersionInfo {
    pub(crate) version: String,
    pub(crate) platform_host: String,
    pub(crate) platform_version: Option<String>,
}

/// What a check found.
#[derive(Debug, Enum, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatusOfCheck {
    Failed,
    Successful,
    Unknown,
}

/// Where what is installed comes from.
#[derive(Debug, Enum, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SyncMode {
    #[graphql(name = "GITOPS")]
    GitOps,
    Helm,
    Unknown,
}

/// How Argo CD is reached.
#[derive(Debug, Enum, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArgoCdState {
    Connected,
    NotAuthorized,
    NotFound,
    Unknown,
}

/// What a check found, and what to do about it.
#[derive(Debug, SimpleObject, Clone, PartialEq, Eq)]
pub(crate) struct AppProxyInfo {
    pub(crate) description: Option<String>,
    pub(crate) status: StatusOfCheck,
}

/// What was found of a runtime when it was looked at last.
#[derive(Debug, SimpleObject, Clone, PartialEq, Eq)]
pub(crate) struct RuntimeStatus {
    pub(crate) app_proxy_started: AppProxyInfo,
    pub(crate) git_source_configured: AppProxyInfo,
    pub(crate) default_git_integration: AppProxyInfo,
    pub(crate) encryption_key: AppProxyInfo,
    pub(crate) encryption_iv: AppProxyInfo,
    #[graphql(name = "eventReporterArgoCDToken")]
    pub(crate) event_reporter_argo_cd_token: AppProxyInfo,
    pub(crate) isc: AppProxyInfo,
    pub(crate) runtime_git_token: AppProxyInfo,
    pub(crate) sync_mode: SyncMode,
    pub(crate) argo_cd_state: ArgoCdState,
}

impl AppProxyInfo {
    pub(crate) fn successful() -> Self {
        Self { description: None, status: StatusOfCheck::Successful }
    }

    pub(crate) fn failed(description: impl Into<String>) -> Self {
        Self { description: Some(description.into()), status: StatusOfCheck::Failed }
    }

    pub(crate) fn unknown(description: impl Into<String>) -> Self {
        Self { description: Some(description.into()), status: StatusOfCheck::Unknown }
    }
}

impl RuntimeStatus {
    /// Before anything was looked at.
    pub(crate) fn unlooked() -> Self {
        let info = || AppProxyInfo::unknown("it has not been looked at yet: ask again in a minute");
        Self {
            app_proxy_started: AppProxyInfo::successful(),
            git_source_configured: info(),
            default_git_integration: info(),
            encryption_key: info(),
            encryption_iv: info(),
            event_reporter_argo_cd_token: info(),
            isc: info(),
            runtime_git_token: info(),
            sync_mode: SyncMode::Unknown,
            argo_cd_state: ArgoCdState::Unknown,
        }
    }
}
