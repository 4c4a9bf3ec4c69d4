//! Which token opens which tunnel.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use pipeline_core::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use tokio::sync::Semaphore;

use crate::lock::lock;
use crate::{Name, NameError};

/// What is known of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It opens the tunnel.
    Opens,
    /// It does not, or does not any more.
    Refused,
    /// Nobody could be asked: it opens nothing that was not open already.
    Unknown,
}

/// Says which token opens which tunnel.
#[async_trait]
pub trait Credentials: Send + Sync + 'static {
    /// Whether `token` opens the tunnel `name` now.
    async fn check(&self, name: &Name, token: &SecretString) -> Verdict;

    /// Whether `token`, which has opened the tunnel `name`, opens it still. Waits behind no stranger.
    async fn recheck(&self, name: &Name, token: &SecretString) -> Verdict {
        self.check(name, token).await
    }
}

/// The digests of the tokens in a file, by tunnel. The tokens themselves are not kept.
type Digests = HashMap<Name, Vec<[u8; 32]>>;

/// A file of tokens. It is read again when a token is checked, so that a token that was taken out of it opens nothing any more; but
/// no more often than once in a second, however many tokens are tried.
#[derive(Debug)]
pub struct CredentialsFile {
    path: PathBuf,
    fresh: Duration,
    reading: Semaphore,
    held: Mutex<Option<CachedFile>>,
}

/// What was read of the file last; `digests` is `None` when it could not be read.
#[derive(Debug, Clone)]
struct CachedFile {
    digests: Option<Arc<Digests>>,
    since: Instant,
}

/// How long what was read of the file is used.
const CACHE_TIME: Duration = Duration::from_secs(1);

/// How many bytes the file may have, which is enough for some ten thousand tunnels.
const MAX_FILE: u64 = 4 << 20;

/// Why a file of tokens cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// It cannot be read.
    #[error("read the tokens of tunnels from {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A line of it is of no use.
    #[error("use the tokens of tunnels in {path}")]
    Line {
        /// The file.
        path: PathBuf,
        /// Which line, and why.
        #[source]
        source: LineError,
    },
    /// It is too large.
    #[error("{path} is larger than {MAX_FILE} bytes")]
    Large {
        /// The file.
        path: PathBuf,
    },
}

/// Why a line of a file of tokens cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// It is not a name and a token.
    #[error("line {0} is not the name of a tunnel and its token, such as `account-runtime sha256:...`")]
    Shape(usize),
    /// It begins with no name.
    #[error("line {line}")]
    Name {
        /// Which line.
        line: usize,
        /// Why.
        #[source]
        source: NameError,
    },
}

impl CredentialsFile {
    /// Reads it once, to say at the start what is wrong with it.
    ///
    /// # Errors
    /// [`CredentialsError`].
    pub async fn open(path: &Path) -> Result<Self, CredentialsError> {
        let (reading, held) = (Semaphore::new(1), Mutex::default());
        let file = Self { path: path.to_owned(), fresh: CACHE_TIME, reading, held };
        if file.read().await?.is_empty() {
            tracing::warn!(path = %path.display(), "the file of tokens names no tunnel: until it does nobody opens one");
        }
        Ok(file)
    }

    async fn read(&self) -> Result<Digests, CredentialsError> {
        let failed = |source| CredentialsError::Read { path: self.path.clone(), source };
        if tokio::fs::metadata(&self.path).await.map_err(failed)?.len() > MAX_FILE {
            return Err(CredentialsError::Large { path: self.path.clone() });
        }
        let text = tokio::fs::read_to_string(&self.path).await.map_err(failed)?;
        digests(&text).map_err(|source| CredentialsError::Line { path: self.path.clone(), source })
    }

    fn held(&self) -> MutexGuard<'_, Option<CachedFile>> {
        lock(&self.held)
    }

    fn known(&self) -> Option<CachedFile> {
        self.held().clone().filter(|held| held.since.elapsed() < self.fresh)
    }

    /// What the file says, as of a moment ago at most; `None`: it cannot be read.
    async fn digests(&self) -> Option<Arc<Digests>> {
        if let Some(known) = self.known() {
            return known.digests;
        }
        let _reading = self.reading.acquire().await.ok()?;
        // Whoever waited finds what was read meanwhile.
        if let Some(known) = self.known() {
            return known.digests;
        }
        let since = Instant::now();
        let read = self.read().await.inspect_err(|error| {
            let error: &dyn std::error::Error = error;
            tracing::warn!(error, "the tokens of tunnels cannot be read: none is opened");
        });
        let digests = read.ok().map(Arc::new);
        *self.held() = Some(CachedFile { digests: digests.clone(), since });
        digests
    }
}

/// Reads lines of a name and a token, or of a name and `sha256:` with the digest of one.
fn digests(text: &str) -> Result<Digests, LineError> {
    let mut all = Digests::new();
    for (line, text) in text.lines().enumerate() {
        let (line, text) = (line + 1, text.trim());
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let (name, token) = text.split_once(char::is_whitespace).ok_or(LineError::Shape(line))?;
        let name = Name::read(name).map_err(|source| LineError::Name { line, source })?;
        let token = token.trim();
        let digest = match token.strip_prefix("sha256:") {
            Some(digits) => {
                let mut digest = [0; 32];
                hex::decode_to_slice(digits, &mut digest).map_err(|_| LineError::Shape(line))?;
                digest
            }
            None if token.contains(char::is_whitespace) => return Err(LineError::Shape(line)),
            None => Sha256::digest(token.as_bytes()).into(),
        };
        all.entry(name).or_default().push(digest);
    }
    Ok(all)
}

#[async_trait]
impl Credentials for CredentialsFile {
    async fn check(&self, name: &Name, token: &SecretString) -> Verdict {
        let Some(all) = self.digests().await else { return Verdict::Unknown };
        let given: [u8; 32] = Sha256::digest(token.expose_secret().as_bytes()).into();
        let known = all.get(name).map(Vec::as_slice).unwrap_or_default();
        // Every one is compared, whichever fits.
        let fits = known.iter().fold(0, |fits, digest| fits | digest.ct_eq(&given).unwrap_u8());
        if fits == 1 { Verdict::Opens } else { Verdict::Refused }
    }
}

/// Lets anybody open any tunnel: for one machine that talks to itself.
#[derive(Debug)]
pub struct Anybody;

#[async_trait]
impl Credentials for Anybody {
    async fn check(&self, _: &Name, _: &SecretString) -> Verdict {
        Verdict::Opens
    }
}

#[async_trait]
impl<C: Credentials + ?Sized> Credentials for Arc<C> {
    async fn check(&self, name: &Name, token: &SecretString) -> Verdict {
        (**self).check(name, token).await
    }

    async fn recheck(&self, name: &Name, token: &SecretString) -> Verdict {
        (**self).recheck(name, token).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_token_opens_its_own_tunnel_until_its_line_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        let second = SecretString::from("second");
        let digest = hex::encode(Sha256::digest(second.expose_secret()));
        std::fs::write(&path, format!("# tunnels\na-one first\na-one sha256:{digest}\nb-two third\n"))
            .unwrap();
        let file = CredentialsFile { fresh: Duration::ZERO, ..CredentialsFile::open(&path).await.unwrap() };
        let (one, two) = (Name::read("a-one").unwrap(), Name::read("b-two").unwrap());
        assert_eq!(file.check(&one, &"first".into()).await, Verdict::Opens);
        assert_eq!(file.check(&one, &second).await, Verdict::Opens, "while tokens are changed there are two");
        assert_eq!(file.check(&two, &"first".into()).await, Verdict::Refused, "another account's token");
        assert_eq!(file.check(&one, &"".into()).await, Verdict::Refused);
        std::fs::write(&path, "b-two third\n").unwrap();
        assert_eq!(file.check(&one, &"first".into()).await, Verdict::Refused, "a revoked token");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(file.check(&two, &"third".into()).await, Verdict::Unknown);
    }

    #[tokio::test]
    async fn a_guess_costs_no_read_of_the_file_and_keeps_no_open_tunnel_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        std::fs::write(&path, "a-one first\n").unwrap();
        let opened = CredentialsFile::open(&path).await.unwrap();
        let file = CredentialsFile { fresh: Duration::MAX, ..opened };
        let one = Name::read("a-one").unwrap();
        assert_eq!(file.check(&one, &"guess".into()).await, Verdict::Refused);
        // Whoever read it now would find nothing.
        std::fs::remove_file(&path).unwrap();
        for number in 0..100 {
            let guess = format!("guess-{number}").into();
            assert_eq!(file.check(&one, &guess).await, Verdict::Refused);
        }
        // Nor does one wait for it that is being read.
        let _reading = file.reading.acquire().await.unwrap();
        assert_eq!(file.recheck(&one, &"first".into()).await, Verdict::Opens);
    }

    #[test]
    fn a_line_that_says_nothing_is_named_and_not_repeated() {
        for text in ["\na-one", "\na-one sha256:canary", "\na-one canary canary"] {
            assert_eq!(
                digests(text).unwrap_err().to_string(),
                "line 2 is not the name of a tunnel and its token, such as `account-runtime sha256:...`"
            );
        }
        assert_eq!(digests("canary token").unwrap_err().to_string(), "line 1");
    }
}
