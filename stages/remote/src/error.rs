//! Why a command did not do what it was asked for.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::iter::successors;
use std::path::PathBuf;

use stages_client::{BuildError, Fault, HttpError, TargetError};

use crate::show::screen::beside;

/// Why a command did not do what it was asked for; each says what to do next.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The command line is wrong.
    #[error("{0}")]
    Usage(String),
    /// What the command needs is not there.
    #[error("{0}")]
    Missing(String),
    /// Something that was waited for, or asked about, is not the case.
    #[error("{0}")]
    NotMet(String),
    /// The platform or the app proxy refused.
    #[error("cannot {act} at {host}: {said}")]
    Refused {
        /// What was asked for; completes "cannot ...".
        act: &'static str,
        /// The host, and its port where it is given.
        host: String,
        /// What the answer says, in one line.
        said: String,
    },
    /// The platform, or a proxy before it, answered with a status of 500 or more.
    #[error("cannot {act} at {host}: it answered {status}: {said}")]
    Unwell {
        /// What was asked for; completes "cannot ...".
        act: &'static str,
        /// The host, and its port where it is given.
        host: String,
        /// The status of its answer.
        status: u16,
        /// What the answer says, in one line.
        said: String,
    },
    /// The call failed before there was an answer.
    #[error("{0}{next}", next = next(.0, .1))]
    Http(
        /// What went wrong.
        #[source]
        HttpError,
        /// What to do where nothing listens at the address.
        &'static str,
    ),
    /// An address is malformed.
    #[error("{0}")]
    Address(#[source] TargetError),
    /// The HTTP client cannot be built.
    #[error("{0}")]
    Client(#[source] BuildError),
    /// A file cannot be read or written.
    #[error("cannot {act} {}", path.display())]
    File {
        /// What was to be done; completes "cannot ...".
        act: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file of contexts is malformed. The error tells the line and not its text: keys stand in it.
    #[error("{} is no file of contexts (line {line}): mend it, or remove it and log in again", path.display())]
    Contexts {
        /// The file.
        path: PathBuf,
        /// The line, from 1; 0 where it is not known.
        line: u64,
    },
    /// The answer cannot be written as JSON or YAML.
    #[error("cannot write the answer")]
    Format(#[source] Box<dyn Error + Send + Sync>),
    /// Standard input or output fails.
    #[error("cannot {0}")]
    Terminal(&'static str, #[source] io::Error),
}

/// What to do where nothing listens at the address of a context.
const OF_CONTEXT: &str =
    ": is it running there? `gitops-runtime context list` shows the addresses of platforms";
/// What to do where nothing listens at an address that was typed.
pub(crate) const GIVEN: &str = ": look whether it runs there, and whether that is its address";

/// What to do about a call that failed, from what went wrong; `away` where nothing listens.
fn next(error: &HttpError, away: &'static str) -> &'static str {
    match error.fault() {
        Fault::Certificate(_) => {
            ": name the file of the authority that signs it, with `gitops-runtime login --ca-file`, or of an app proxy with \
             --app-proxy-ca-file"
        }
        Fault::Handshake(_) => {
            ": does it speak TLS there? an address that begins with http:// is asked without"
        }
        Fault::Connect(_) | Fault::Timeout(_) => away,
        Fault::CutShort(_) => ": try again",
        _ => "",
    }
}

impl RemoteError {
    /// The exit code of the process: 2 for a wrong command line, 3 for [`Self::NotMet`], else 1.
    #[must_use]
    pub fn code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::Address(_) => 2,
            Self::NotMet(_) => 3,
            _ => 1,
        }
    }

    /// Whether the same command may succeed in a while, as where the platform is restarted.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self, Self::Http(..) | Self::Unwell { .. })
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
        for said in self.causes().into_iter().map(said) {
            if !text.contains(&said) {
                text = format!("{text}: {said}");
            }
        }
        text
    }

    /// What of its causes says more than it does. Of a call that did not come through that is the last one: those before it are
    /// layers of the library that calls.
    fn causes(&self) -> Vec<&(dyn Error + 'static)> {
        let mut all: Vec<_> = successors(self.source(), |error| (*error).source()).collect();
        if let Self::Http(error, _) = self {
            match error.fault() {
                Fault::Timeout(_) | Fault::CutShort(_) => all.clear(),
                Fault::Connect(_) | Fault::Certificate(_) | Fault::Handshake(_) => {
                    all.drain(..all.len().saturating_sub(1));
                }
                _ => {}
            }
        }
        all
    }
}

/// A cause in words, where the operating system's are known.
fn said(cause: &(dyn Error + 'static)) -> String {
    match cause.downcast_ref::<io::Error>().map(io::Error::kind) {
        Some(
            kind @ (ErrorKind::ConnectionRefused
            | ErrorKind::ConnectionReset
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable),
        ) => kind.to_string(),
        _ => cause.to_string(),
    }
}

impl From<HttpError> for RemoteError {
    fn from(error: HttpError) -> Self {
        Self::Http(error, OF_CONTEXT)
    }
}

#[cfg(test)]
mod tests {
    use crate::contexts::tests::kept;
    use crate::platform::{ANSWER, Platform};

    #[tokio::test]
    async fn nobody_there_is_told_with_the_address_what_helps_and_why() {
        stages_client::install_crypto();
        // It is held, and nobody listens there.
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = socket.local_addr().unwrap();
        let url = format!("http://{address}");
        let said = async |platform: Platform| {
            let asked = platform.ask("list applications", "{ me { name } }", serde_json::Value::Null).await;
            asked.unwrap_err().line()
        };
        let begin = format!("cannot list applications at {address}: the connection failed");
        let context = crate::contexts::Context { platform: url.clone(), ..kept("prod") };
        assert_eq!(
            said(Platform::of(&context, ANSWER).await.unwrap()).await,
            format!(
                "{begin}: is it running there? `gitops-runtime context list` shows the addresses of platforms: connection refused"
            )
        );
        // Who typed an address is not told of others: of an app proxy, or of a platform to sign in at.
        let given = Platform::at(&url, "key".into(), None, false, ANSWER).await.unwrap();
        let helps = "look whether it runs there, and whether that is its address";
        assert_eq!(said(given).await, format!("{begin}: {helps}: connection refused"));
        let error = crate::seal::fetched(&format!("{url}/cert.pem")).await.unwrap_err();
        let begin = format!("cannot fetch the certificate at {address}: the connection failed");
        assert_eq!(error.line(), format!("{begin}: {helps}: connection refused"));
    }
}
