//! Why something was not done, as whoever asked is told. No token, manifest or address with a secret stands in it.

use async_graphql::ErrorExtensions as _;
use stages_client::HttpError;
use stages_git::remote::{CommitError, FetchError};
use stages_git::{DraftError, GitError};
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
    /// The platform does not know the runtime yet.
    #[error("the runtime is not registered with the platform yet: {0}")]
    Unregistered(String),
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
    /// A repository could not be had.
    #[error(transparent)]
    Git(Box<FetchError>),
    /// What a repository holds could not be read.
    #[error(transparent)]
    GitRead(Box<GitError>),
    /// Nothing was committed, or it is not known.
    #[error(transparent)]
    Commit(Box<CommitError>),
    /// An answer could not be read.
    #[error("{0} answered what cannot be read")]
    Unreadable(&'static str),
    /// The process ended before it.
    #[error(
        "this app proxy stopped before the end of this was known: it may be done; look before you ask again"
    )]
    InDoubt,
    /// The process ends.
    #[error("this app proxy is stopping: try again")]
    Stopping,
}

/// What to do about an answer of the API server.
pub(crate) fn said(error: &QuestionError) -> String {
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

const fn of_fetch(error: &FetchError) -> &'static str {
    match error {
        FetchError::NoRepository { .. } | FetchError::NoRevision { .. } => "NOT_FOUND",
        FetchError::Address { .. } | FetchError::FilesRefused { .. } => "BAD_REQUEST",
        FetchError::Refused { .. }
        | FetchError::NotWritten { .. }
        | FetchError::NoCredentials { .. }
        | FetchError::BadCredentials { .. } => "PEER_REFUSED",
        FetchError::Stopping => "STOPPING",
        _ => "PEER_AWAY",
    }
}

const fn of_commit(error: &CommitError) -> &'static str {
    match error {
        CommitError::Fetch(error) => of_fetch(error),
        CommitError::Draft(DraftError::Git(error)) => of_git(error),
        CommitError::Draft(DraftError::Conflict { .. }) | CommitError::Exists { .. } => "CONFLICT",
        CommitError::Draft(DraftError::Missing { .. }) => "NOT_FOUND",
        CommitError::Draft(_) | CommitError::Revisions => "BAD_REQUEST",
        CommitError::Refused { .. } => "PEER_REFUSED",
        CommitError::Busy { .. } => "BUSY",
        _ => "PEER_AWAY",
    }
}

const fn of_git(error: &GitError) -> &'static str {
    match error {
        GitError::Open { .. }
        | GitError::NoRepository { .. }
        | GitError::Read { .. }
        | GitError::MissingParent { .. } => "PEER_AWAY",
        _ => "BAD_REQUEST",
    }
}

impl ActError {
    /// In the audit log and for programs, from a closed set.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoCredentials | Self::Unknown(_) => "UNAUTHENTICATED",
            Self::Refused(_) => "FORBIDDEN",
            Self::PlatformAway(_) | Self::PlatformRefuses(_) | Self::Unregistered(_) => "PLATFORM_AWAY",
            Self::Wrong(_) => "BAD_REQUEST",
            Self::NotFound(_) | Self::Cluster { source: QuestionError::Status(404), .. } => "NOT_FOUND",
            Self::Busy(_) => "BUSY",
            Self::Peer { .. } => "PEER_REFUSED",
            Self::Away { .. } | Self::Unreadable(_) => "PEER_AWAY",
            error if error.is_conflict() => "CONFLICT",
            Self::Cluster { .. } => "CLUSTER_REFUSED",
            Self::Git(error) => of_fetch(error),
            Self::GitRead(error) => of_git(error),
            Self::Commit(error) => of_commit(error),
            Self::InDoubt => "IN_DOUBT",
            Self::Stopping => "STOPPING",
        }
    }

    /// Whether the API server knows a newer version of what was to be changed.
    pub(crate) fn is_conflict(&self) -> bool {
        matches!(self, Self::Cluster { source: QuestionError::Status(409), .. })
    }

    pub(crate) fn graphql(&self) -> async_graphql::Error {
        let code = self.code();
        async_graphql::Error::new(self.to_string()).extend_with(|_, extensions| extensions.set("code", code))
    }
}

impl From<FetchError> for ActError {
    fn from(error: FetchError) -> Self {
        Self::Git(Box::new(error))
    }
}

impl From<GitError> for ActError {
    fn from(error: GitError) -> Self {
        Self::GitRead(Box::new(error))
    }
}

impl From<CommitError> for ActError {
    fn from(error: CommitError) -> Self {
        Self::Commit(Box::new(error))
    }
}
