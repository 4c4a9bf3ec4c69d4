//! Why something was not done, as whoever asked is told. No token, manifest or address with a secret stands in it.

use async_graphql::ErrorExtensions as _;
use stages_client::HttpError;
use stages_kube::QuestionError;

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    /// Nobody said who asks.
    #[error("send an API key of the platform in the header Authorization")]
    NoCredentials,
    /// The platform does not know the token.
    #[error("{0}")]
    Unknown(String),
    /// They may not.
    #[error("{0}")]
    Refused(String),
    /// Nobody can be asked whether they may.
    #[error(
        "nobody is let in while the platform does not answer: see that this app proxy reaches it, and try again"
    )]
    PlatformAway(#[source] HttpError),
    /// The platform does not let this app proxy ask.
    #[error(
        "the platform refuses this app proxy: see that its token (platform.token) is that of a runtime, and try again"
    )]
    PlatformRefuses(#[source] HttpError),
    /// What was asked for cannot be.
    #[error("{0}")]
    Wrong(String),
    /// It is not there.
    #[error("{0}")]
    NotFound(String),
    /// Too much at once.
    #[error("{0}")]
    Busy(&'static str),
    /// A peer said no.
    #[error("{peer} refused to {act} ({status}): {said}")]
    Peer {
        /// Who.
        peer: &'static str,
        /// What it was to do.
        act: &'static str,
        /// The status of its answer.
        status: u16,
        /// What it said, without secrets.
        said: String,
    },
    /// A peer did not answer.
    #[error("{peer} did not {act}: {source}")]
    Away {
        /// Who.
        peer: &'static str,
        /// What it was to do.
        act: &'static str,
        /// Why.
        source: HttpError,
    },
    /// The API server did not do it.
    #[error("the API server did not {act}: {}", said(source))]
    Cluster {
        /// What it was to do.
        act: &'static str,
        /// Why.
        source: QuestionError,
    },
    /// An answer could not be read.
    #[error("{0} answered what cannot be read")]
    Unreadable(&'static str),
    /// The process ends.
    #[error("this app proxy is stopping: try again")]
    Stopping,
}

/// What to do about an answer of the API server.
fn said(error: &QuestionError) -> String {
    match error {
        QuestionError::Status(401 | 403) => {
            "its ServiceAccount may not: grant what `gitops-runtime rbac print --role app-proxy` prints"
                .to_owned()
        }
        QuestionError::Status(409) => "it has changed meanwhile: look at it and try again".to_owned(),
        QuestionError::Status(422) => "it takes no such change".to_owned(),
        error => error.to_string(),
    }
}

impl ActError {
    /// In the audit log and for programs, from a closed set.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NoCredentials | Self::Unknown(_) => "UNAUTHENTICATED",
            Self::Refused(_) => "FORBIDDEN",
            Self::PlatformAway(_) | Self::PlatformRefuses(_) => "PLATFORM_AWAY",
            Self::Wrong(_) => "BAD_REQUEST",
            Self::NotFound(_) | Self::Cluster { source: QuestionError::Status(404), .. } => "NOT_FOUND",
            Self::Busy(_) => "BUSY",
            Self::Peer { .. } => "PEER_REFUSED",
            Self::Away { .. } | Self::Unreadable(_) => "PEER_AWAY",
            Self::Cluster { source: QuestionError::Status(409), .. } => "CONFLICT",
            Self::Cluster { .. } => "CLUSTER_REFUSED",
            Self::Stopping => "STOPPING",
        }
    }

    pub(crate) fn graphql(&self) -> async_graphql::Error {
        let code = self.code();
        async_graphql::Error::new(self.to_string()).extend_with(|_, extensions| extensions.set("code", code))
    }
}
