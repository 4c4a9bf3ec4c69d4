//! Why a command did not do what it was asked for.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use stages_client::{BuildError, Fault, HttpError, TargetError};

use crate::show::screen::beside;

/// Why a command did not do what it was asked for; each says what to do next.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// What was typed cannot be meant.
    #[error("{0}")]
    Usage(String),
    /// What is asked for is not there, or cannot be had.
    #[error("{0}")]
    Missing(String),
    /// Something that was waited for, or asked about, is not so.
    #[error("{0}")]
    NotMet(String),
    /// The platform said no.
    #[error("cannot {act} at {host}: {said}")]
    Refused {
        /// What was asked for.
        act: &'static str,
        /// Whom.
        host: String,
        /// What it said.
        said: String,
    },
    /// The platform, or who stands before it, is not well.
    #[error("cannot {act} at {host}: it answered {status}: {said}")]
    Unwell {
        /// What was asked for.
        act: &'static str,
        /// Whom.
        host: String,
        /// The status of its answer.
        status: u16,
        /// What it said.
        said: String,
    },
    /// The platform gave no answer that can be used.
    #[error("{0}{next}", next = next(.0))]
    Http(#[source] HttpError),
    /// The address of a platform is none.
    #[error("{0}")]
    Address(#[source] TargetError),
    /// There is nothing to call with.
    #[error("{0}")]
    Client(#[source] BuildError),
    /// A file cannot be read or written.
    #[error("cannot {act} {}", path.display())]
    File {
        /// What was to be done.
        act: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file of contexts says nothing that can be read. Where, and not what: keys stand in it.
    #[error("{} is no file of contexts (line {line}): mend it, or remove it and log in again", path.display())]
    Contexts {
        /// Which file.
        path: PathBuf,
        /// Where, from 1; 0 where that is not known.
        line: u64,
    },
    /// What was found cannot be written down.
    #[error("cannot write the answer")]
    Format(#[source] Box<dyn Error + Send + Sync>),
    /// Standard input or output fails.
    #[error("cannot {0}")]
    Terminal(&'static str, #[source] io::Error),
}

/// What helps where nobody answers.
fn next(error: &HttpError) -> &'static str {
    match error.fault() {
        Fault::Status(_) | Fault::Redirect { .. } => "",
        Fault::Certificate(_) => {
            ": name the file of the authority that signs it, with `gitops-runtime login --ca-file`, or of an app proxy with \
             --app-proxy-ca-file"
        }
        Fault::Handshake(_) => {
            ": does it speak TLS there? an address that begins with http:// is asked without"
        }
        _ => ": is it running there? `gitops-runtime context list` shows the addresses of platforms",
    }
}

impl RemoteError {
    /// The exit code that says so to scripts.
    #[must_use]
    pub fn code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::Address(_) => 2,
            Self::NotMet(_) => 3,
            _ => 1,
        }
    }

    /// Whether it may be otherwise in a while, though nobody does anything about it here: somebody is restarted, say.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self, Self::Http(_) | Self::Unwell { .. })
    }

    /// Whether whoever reads has read enough.
    #[must_use]
    pub fn is_enough(&self) -> bool {
        matches!(self, Self::Terminal(_, error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// The whole of it as people are told it on standard error, where lines fit a terminal.
    #[must_use]
    pub fn told(&self) -> String {
        beside(&self.line())
    }

    /// The whole of it on one line, causes included.
    #[must_use]
    pub fn line(&self) -> String {
        let mut text = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            let said = error.to_string();
            if !text.contains(&said) {
                text = format!("{text}: {said}");
            }
            cause = error.source();
        }
        text
    }
}

impl From<HttpError> for RemoteError {
    fn from(error: HttpError) -> Self {
        Self::Http(error)
    }
}
