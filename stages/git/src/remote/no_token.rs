//! Why a GitHub App is given no token.

use std::time::Duration;

use jiff::Timestamp;
use reqwest::Response;
use reqwest::header::RETRY_AFTER;

/// So long a host is left alone that says that it was asked too often and not for how long, and at most.
pub(super) const ALONE: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(3_600));

/// Why GitHub gives an app no token, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoToken {
    /// It does not believe that this is the app.
    #[error(
        "it refuses the app (401): githubAppPrivateKey must be a key of the app githubAppID that was not deleted since, and the clock of this machine right"
    )]
    Refused,
    /// There is no such installation.
    #[error(
        "the app has no such installation (404): compare githubAppInstallationID with the address of the installation's page, or leave it out; where GitHub is a server of your own, githubAppEnterpriseBaseUrl ends in /api/v3"
    )]
    NoInstallation,
    /// The app is not installed where it would be needed.
    #[error(
        "the app is not installed for {repository} (404): install it there; where GitHub is a server of your own, githubAppEnterpriseBaseUrl ends in /api/v3"
    )]
    NotInstalled {
        /// `owner/name`.
        repository: String,
    },
    /// The installation may have none.
    #[error(
        "the installation may have none (403): it is suspended, or its owner's list of allowed addresses lacks this network's"
    )]
    Forbidden,
    /// It was asked too often.
    #[error("it was asked too often ({status}), and is left alone until {until}")]
    TooOften {
        /// The status: 403 or 429.
        status: u16,
        /// When it is asked again.
        until: Timestamp,
    },
    /// No connection.
    #[error(
        "it cannot be reached ({why}): let this process out to it, or give the Secret the proxy that leads there"
    )]
    Unreachable {
        /// Why not.
        why: String,
    },
    /// It sends its callers elsewhere.
    #[error(
        "it answers with a redirect ({status}), which is not followed: give the new address of a repository that was moved, and as githubAppEnterpriseBaseUrl that of the API itself"
    )]
    Redirected {
        /// The status.
        status: u16,
    },
    /// It answers with an error.
    #[error("it answered with {status}: try again later, or ask its operator")]
    Status {
        /// The status.
        status: u16,
    },
    /// What answers is something else.
    #[error(
        "it does not answer as the API of GitHub does: give the address of that as githubAppEnterpriseBaseUrl, such as https://github.example.com/api/v3"
    )]
    NoApi,
}

impl NoToken {
    /// Whether it may go well without anybody changing anything.
    pub(super) const fn is_transient(&self) -> bool {
        match self {
            Self::TooOften { .. } | Self::Unreachable { .. } => true,
            Self::Status { status } => *status >= 500,
            _ => false,
        }
    }

    /// Why another status than one of success was answered, to the question for the installation of a repository or for a token.
    pub(super) fn of(answer: &Response, repository: Option<&str>, now: Timestamp) -> Self {
        let header = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok());
        let after = header(RETRY_AFTER.as_str()).and_then(|value| stages_client::retry_after(value, now));
        let reset = || {
            header("x-ratelimit-remaining").filter(|left| *left == "0")?;
            let reset = Timestamp::from_second(header("x-ratelimit-reset")?.parse().ok()?).ok()?;
            Some(Duration::try_from(reset.duration_since(now)).unwrap_or_default())
        };
        let status = answer.status().as_u16();
        match (status, after.or_else(reset)) {
            (401, _) => Self::Refused,
            (403, None) => Self::Forbidden,
            (403 | 429, wait) => {
                let until = now.checked_add(wait.unwrap_or(ALONE.0).min(ALONE.1));
                Self::TooOften { status, until: until.unwrap_or(Timestamp::MAX) }
            }
            (404, _) => match repository {
                Some(repository) => Self::NotInstalled { repository: repository.to_owned() },
                None => Self::NoInstallation,
            },
            (300..=399, _) => Self::Redirected { status },
            _ => Self::Status { status },
        }
    }
}
