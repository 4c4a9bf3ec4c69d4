//! Why a repository elsewhere could not be had, and what to do about it.

use std::time::Duration;

use git2::Oid;

use super::no_token::NoToken;
use crate::GitError;

/// A repository elsewhere, or a revision of it, could not be had. No address's password, token or key ever stands in one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The address is none.
    #[error("the address of the repository is refused: {why}")]
    Address {
        /// What is wrong with it.
        why: &'static str,
    },
    /// Repositories of this machine are not read unless that is allowed.
    #[error("{url} is on this machine, where repositories are read only if `files` allows it")]
    FilesRefused {
        /// Which.
        url: String,
    },
    /// No connection.
    #[error("cannot connect to {host}: {why}")]
    Connect {
        /// Whom to.
        host: String,
        /// Why not.
        why: String,
    },
    /// The server's certificate is not trusted.
    #[error(
        "the certificate of {host} is not trusted ({why}): add its authority to the ConfigMap argocd-tls-certs-cm under the key {}, or to the file of authorities",
        without_port(host)
    )]
    Certificate {
        /// Whose.
        host: String,
        /// What is wrong with it.
        why: String,
    },
    /// The host's SSH key is not among the known ones.
    #[error(
        "the SSH host {host} is not known ({fingerprint}): compare that with what its operator publishes, and add the key to the ConfigMap argocd-ssh-known-hosts-cm or the file of known hosts"
    )]
    UnknownHost {
        /// Whose.
        host: String,
        /// Of its key.
        fingerprint: String,
    },
    /// The host's SSH key is not among the known ones, and of the host an authority is known.
    #[error(
        "the SSH host {host} is known by a @cert-authority alone, which is not supported: add its own key ({fingerprint}) to the ConfigMap argocd-ssh-known-hosts-cm or the file of known hosts"
    )]
    HostAuthority {
        /// Whose.
        host: String,
        /// Of its key.
        fingerprint: String,
    },
    /// The host's SSH key is another than the known one.
    #[error(
        "the SSH key of {host} is not the one that is known, but {fingerprint}: somebody may be between; if its operator says that it was changed, replace it in the ConfigMap argocd-ssh-known-hosts-cm or the file of known hosts"
    )]
    ChangedHostKey {
        /// Whose.
        host: String,
        /// Of the key that it has now.
        fingerprint: String,
    },
    /// The server wants credentials, and there are none.
    #[error(
        "{url} wants credentials and none are configured for it: a Secret labelled argocd.argoproj.io/secret-type, a file or the environment gives them"
    )]
    NoCredentials {
        /// Which repository.
        url: String,
    },
    /// There are credentials, of other projects alone.
    #[error(
        "{url} has credentials of other projects than {project} alone: give Argo CD a Secret for it with that project, or without any"
    )]
    OtherProjects {
        /// Which repository.
        url: String,
        /// The project that would need them.
        project: String,
    },
    /// There are credentials, of projects alone, and who asks is no application.
    #[error(
        "{url} has credentials of projects alone, for their applications: give Argo CD a Secret for it without a project"
    )]
    OfProjects {
        /// Which repository.
        url: String,
    },
    /// The application names a project that is not there.
    #[error("there is no AppProject {project} in namespace {namespace}")]
    NoProject {
        /// Which.
        project: String,
        /// Where Argo CD has them.
        namespace: String,
    },
    /// The application names a project that takes none of its namespace.
    #[error(
        "an application of namespace {namespace} is none of AppProject {project}: add the namespace to spec.sourceNamespaces there"
    )]
    NotOfProject {
        /// Which project.
        project: String,
        /// Where the application stands.
        namespace: String,
    },
    /// The project has no such repository.
    #[error("{url} is no repository of AppProject {project}: add it to spec.sourceRepos there")]
    NotPermitted {
        /// Which repository.
        url: String,
        /// Which project.
        project: String,
    },
    /// The server refused the credentials.
    #[error("{url} refused the credentials of {from}: they are wrong, expired, or may not read it{}", why(.said))]
    Refused {
        /// Which repository.
        url: String,
        /// Where they are from.
        from: String,
        /// The server's words, one line.
        said: Option<String>,
    },
    /// The server takes nothing with the credentials.
    #[error(
        "{url} takes no commits with the credentials of {from}: they are wrong, expired, or may only read it{}",
        why(.said)
    )]
    NotWritten {
        /// Which repository.
        url: String,
        /// Where they are from.
        from: String,
        /// The server's words, one line.
        said: Option<String>,
    },
    /// The credentials cannot be used.
    #[error("the credentials of {from} cannot be used: {why}")]
    BadCredentials {
        /// Where they are from.
        from: String,
        /// Why not.
        why: String,
    },
    /// GitHub gives no token for the app that the credentials are of.
    #[error("{host} gives no token for the GitHub App of {from}: {why}")]
    NoToken {
        /// Who gives none.
        host: String,
        /// Where the credentials are from.
        from: String,
        /// Why not, and what to do.
        why: NoToken,
    },
    /// There is no repository.
    #[error("no repository is at {url}: it was moved or deleted, or the credentials may not see it")]
    NoRepository {
        /// Which.
        url: String,
    },
    /// The server sends its callers elsewhere.
    #[error("{url} is answered with a redirect to {to}, which is not followed: give that address instead")]
    Redirected {
        /// Which repository.
        url: String,
        /// The host it points at.
        to: String,
    },
    /// The server answers, but with an error.
    #[error("{host} answered with {status}: try again later, or ask its operator")]
    Status {
        /// Who.
        host: String,
        /// The status.
        status: u16,
        /// For how long it wants to be asked nothing.
        after: Option<Duration>,
    },
    /// What answers is no Git server.
    #[error("{host} does not answer as a Git server does: {why}")]
    Protocol {
        /// Who.
        host: String,
        /// What is wrong.
        why: String,
    },
    /// The server said what is wrong.
    #[error("{host} refused: {message}")]
    Remote {
        /// Who.
        host: String,
        /// Its words, one line.
        message: String,
    },
    /// The server sends nothing.
    #[error("{host} sent nothing for {} s: it hangs, or the network between does", limit.as_secs_f32())]
    Idle {
        /// Who.
        host: String,
        /// How long was waited.
        limit: Duration,
    },
    /// The fetch takes too long.
    #[error("fetching {url} took longer than {} s: raise the time limit if the repository is that large", limit.as_secs_f32())]
    TooSlow {
        /// Which repository.
        url: String,
        /// The limit.
        limit: Duration,
    },
    /// More arrives than may.
    #[error("{url} sends more than {limit} bytes: raise the size limit if the repository is that large")]
    TooLarge {
        /// Which repository.
        url: String,
        /// The limit.
        limit: u64,
    },
    /// An object is larger than one may be.
    #[error(
        "{url} holds an object of {size} bytes, and no more than {limit} are taken: raise the setting repositories.objectSize if there is memory for it"
    )]
    LargeObject {
        /// Which repository.
        url: String,
        /// Its size.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// What arrived is no pack.
    #[error("what {url} sent is damaged: {why}")]
    Damaged {
        /// Which repository.
        url: String,
        /// What is wrong.
        why: String,
    },
    /// The cache cannot be written.
    #[error("cannot write to the cache directory {directory}: {why}")]
    Cache {
        /// Which directory.
        directory: String,
        /// Why not.
        why: String,
    },
    /// Another process uses the cache directory.
    #[error("the cache directory {directory} is used by another process: give each its own")]
    CacheInUse {
        /// Which directory.
        directory: String,
    },
    /// The revision is not there.
    #[error("{url} has no branch, tag or commit {revision}{}", only(*.branches))]
    NoRevision {
        /// Which repository.
        url: String,
        /// The revision.
        revision: String,
        /// How many branches were looked through for it, where there are more.
        branches: Option<usize>,
    },
    /// The server does not send what was asked for.
    #[error("{url} did not send the commit {commit}")]
    NotSent {
        /// Which repository.
        url: String,
        /// Which commit.
        commit: Oid,
    },
    /// What was fetched cannot be read.
    #[error("read the repository fetched from {url}")]
    Read {
        /// Which repository.
        url: String,
        /// Why not.
        source: GitError,
    },
    /// The process is stopping.
    #[error("the process is stopping")]
    Stopping,
}

/// What is said where not all branches were looked through.
fn only(branches: Option<usize>) -> String {
    let of = |branches| {
        format!(
            " that its server sends by its id or that its first {branches} branches follow: name the branch or tag that follows it"
        )
    };
    branches.map(of).unwrap_or_default()
}

/// The words of a server that said something.
fn why(said: &Option<String>) -> String {
    said.as_ref().map_or_else(String::new, |said| format!("; it says: {said}"))
}

/// A host as Argo CD looks for its authorities; no key of a ConfigMap may hold a colon.
pub(super) fn without_port(host: &str) -> &str {
    host.rsplit_once(':').map_or(host, |(name, _)| name)
}

/// Why fetches fail, as they are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum FetchFailure {
    /// The address is refused.
    Address,
    /// No connection.
    Unreachable,
    /// The server's certificate is not trusted.
    Certificate,
    /// The host's SSH key is not known, or another one.
    HostKey,
    /// There are no credentials, or they are refused.
    Credentials,
    /// There is no repository.
    NoRepository,
    /// It is elsewhere.
    Redirected,
    /// The server says that something is wrong.
    Server,
    /// What the server sends is not what it should be.
    Protocol,
    /// The server sends nothing.
    Silent,
    /// It takes longer than it may.
    TooSlow,
    /// More arrives than may.
    TooLarge,
    /// The directory of clones cannot be used.
    Cache,
    /// The repository has no such revision.
    NoRevision,
    /// The process is stopping.
    Stopping,
}

impl FetchFailure {
    /// All, so that each is shown from the start.
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

    /// The label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl FetchError {
    /// As what it is counted.
    #[must_use]
    pub const fn failure(&self) -> FetchFailure {
        match self {
            Self::Address { .. } | Self::FilesRefused { .. } => FetchFailure::Address,
            Self::Connect { .. } => FetchFailure::Unreachable,
            Self::Certificate { .. } => FetchFailure::Certificate,
            Self::UnknownHost { .. } | Self::HostAuthority { .. } | Self::ChangedHostKey { .. } => {
                FetchFailure::HostKey
            }
            Self::NoCredentials { .. } | Self::Refused { .. } => FetchFailure::Credentials,
            Self::NotWritten { .. } | Self::BadCredentials { .. } => FetchFailure::Credentials,
            Self::OtherProjects { .. } | Self::OfProjects { .. } | Self::NoProject { .. } => {
                FetchFailure::Credentials
            }
            Self::NotOfProject { .. } | Self::NotPermitted { .. } => FetchFailure::Credentials,
            Self::NoToken { why, .. } => match why {
                NoToken::Refused | NoToken::NoInstallation => FetchFailure::Credentials,
                NoToken::NotInstalled { .. } | NoToken::Forbidden => FetchFailure::Credentials,
                NoToken::TooOften { .. } | NoToken::Status { .. } => FetchFailure::Server,
                NoToken::Unreachable { .. } => FetchFailure::Unreachable,
                NoToken::Redirected { .. } => FetchFailure::Redirected,
                NoToken::NoApi => FetchFailure::Protocol,
            },
            Self::NoRepository { .. } => FetchFailure::NoRepository,
            Self::Redirected { .. } => FetchFailure::Redirected,
            Self::Status { .. } | Self::Remote { .. } => FetchFailure::Server,
            Self::Protocol { .. } | Self::Damaged { .. } | Self::NotSent { .. } => FetchFailure::Protocol,
            Self::Idle { .. } => FetchFailure::Silent,
            Self::TooSlow { .. } => FetchFailure::TooSlow,
            Self::TooLarge { .. } | Self::LargeObject { .. } => FetchFailure::TooLarge,
            Self::Cache { .. } | Self::CacheInUse { .. } | Self::Read { .. } => FetchFailure::Cache,
            Self::NoRevision { .. } => FetchFailure::NoRevision,
            Self::Stopping => FetchFailure::Stopping,
        }
    }

    /// Whether another try may go well without anybody changing anything.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Connect { .. } | Self::Idle { .. } | Self::TooSlow { .. } | Self::Stopping => true,
            Self::Cache { .. } | Self::Damaged { .. } | Self::NotSent { .. } | Self::Protocol { .. } => true,
            Self::Status { status, after, .. } => *status == 429 || *status >= 500 || after.is_some(),
            Self::NoToken { why, .. } => why.is_transient(),
            _ => false,
        }
    }

    /// For how long the repository is left alone, which is `usual` unless its server wants more.
    pub(super) fn pause(&self, usual: Duration) -> Duration {
        match self {
            Self::Status { after: Some(after), .. } => usual.max(*after),
            _ => usual,
        }
    }

    /// Whether it is about the revision that was asked for, and another one of the repository may be had all the same.
    #[must_use]
    pub const fn is_of_revision(&self) -> bool {
        matches!(
            self,
            Self::NoRevision { .. }
                | Self::NotSent { .. }
                | Self::Damaged { .. }
                | Self::Read { .. }
                | Self::TooLarge { .. }
                | Self::LargeObject { .. }
        )
    }

    pub(super) fn cache(directory: &std::path::Path, why: impl std::fmt::Display) -> Self {
        Self::Cache { directory: directory.display().to_string(), why: why.to_string() }
    }
}
