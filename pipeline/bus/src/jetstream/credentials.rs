//! Who asks a server: read anew for every connection, so that what is rotated in a file is in force from the next one on,
//! which is made as soon as a file holds something else, and all files together can be used.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_nats::rustls::pki_types::pem::PemObject as _;
use async_nats::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use async_nats::rustls::{ClientConfig, RootCertStore};
use async_nats::{Auth, Client};
use nkeys::KeyPair;
use pipeline_core::{Digest, ExposeSecret as _, SecretString};

use super::events::ConnectionLog;
use super::{Access, Tls};

/// How often files are looked at; a mounted secret is a link to a folder that is replaced as a whole, which no watch of
/// the file itself sees.
const LOOK: Duration = Duration::from_secs(1);

/// Who asks; secrets are masked in what is printed.
#[derive(Debug, Clone, Default)]
pub enum Credentials {
    /// Nobody in particular.
    #[default]
    None,
    /// A user and a password.
    Password {
        /// The user.
        user: String,
        /// The password.
        password: Secret,
    },
    /// A token.
    Token(Secret),
    /// A credentials file: JWT and seed of a user.
    File(PathBuf),
    /// The seed of a user's NKEY.
    Nkey(Secret),
}

/// A secret, or the file that holds it.
#[derive(Debug, Clone)]
pub enum Secret {
    /// As configured.
    Value(SecretString),
    /// The content of a file, without what is around it.
    File(PathBuf),
}

impl Credentials {
    /// What kind, for a log.
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Password { .. } => "user and password",
            Self::Token(_) => "token",
            Self::File(_) => "credentials file",
            Self::Nkey(_) => "nkey",
        }
    }

    /// The file that they stand in.
    pub(super) fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Password { password: secret, .. } | Self::Token(secret) | Self::Nkey(secret) => {
                match secret {
                    Secret::File(path) => Some(path),
                    Secret::Value(_) => None,
                }
            }
            Self::None => None,
        }
    }

    /// What a server is told that wants `nonce` signed.
    pub(super) async fn answer(&self, nonce: &[u8]) -> io::Result<Auth> {
        let mut auth = Auth::new();
        match self {
            Self::None => {}
            Self::Password { user, password } => {
                auth.username = Some(user.clone());
                auth.password = Some(password.read().await?.expose_secret().to_owned());
            }
            Self::Token(token) => auth.token = Some(token.read().await?.expose_secret().to_owned()),
            Self::File(path) => {
                let text = SecretString::from(tokio::fs::read_to_string(path).await?);
                let mut blocks = blocks(text.expose_secret());
                let (Some(jwt), Some(seed)) = (blocks.next(), blocks.next()) else {
                    return Err(none("the credentials file holds no jwt and seed of a user"));
                };
                auth.jwt = Some(jwt.to_owned());
                auth.signature = Some(pair(seed)?.sign(nonce).map_err(|_| none("the seed cannot sign"))?);
            }
            Self::Nkey(seed) => {
                let text = seed.read().await?;
                // Tools write the public key beside it, or lines of dashes around it.
                let mut lines = text.expose_secret().lines().map(str::trim);
                let seed = lines.find(|line| line.starts_with("SU"));
                let pair = pair(seed.unwrap_or(text.expose_secret()))?;
                auth.nkey = Some(pair.public_key());
                auth.signature = Some(pair.sign(nonce).map_err(|_| none("the seed cannot sign"))?);
            }
        }
        Ok(auth)
    }
}

impl Secret {
    async fn read(&self) -> io::Result<SecretString> {
        match self {
            Self::Value(value) => Ok(value.clone()),
            Self::File(path) => {
                let text = SecretString::from(tokio::fs::read_to_string(path).await?);
                match text.expose_secret().trim() {
                    "" => Err(none("the file is empty")),
                    text => Ok(text.into()),
                }
            }
        }
    }
}

impl From<SecretString> for Secret {
    fn from(value: SecretString) -> Self {
        Self::Value(value)
    }
}

/// What stands between lines of dashes: `-----BEGIN NATS USER JWT-----`, a line, `------END NATS USER JWT------`.
fn blocks(text: &str) -> impl Iterator<Item = &str> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    std::iter::from_fn(move || {
        lines.find(|line| line.starts_with("---") && line.contains("BEGIN"))?;
        lines.next().filter(|line| !line.starts_with("---"))
    })
}

fn pair(seed: &str) -> io::Result<KeyPair> {
    // What the library says of it is left out: it may quote it.
    KeyPair::from_seed(seed).map_err(|_| none("there is no seed of a user"))
}

fn none(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

impl Tls {
    /// Reads the files as each connection does: an authority, and a certificate that belongs to its key.
    async fn load(&self) -> io::Result<()> {
        let mut authorities = RootCertStore::empty();
        if let Some(file) = &self.ca {
            for authority in certificates(file).await? {
                authorities.add(authority).map_err(|_| none("an authority cannot be used"))?;
            }
        }
        if let Some((certificate, key)) = &self.identity {
            // What the libraries say of a key is left out: it may quote it.
            let key = PrivateKeyDer::from_pem_slice(&tokio::fs::read(key).await?)
                .map_err(|_| none("there is no private key"))?;
            let builder = ClientConfig::builder().with_root_certificates(authorities);
            let paired = builder.with_client_auth_cert(certificates(certificate).await?, key);
            paired.map_err(|_| none("the certificate and the private key do not belong together"))?;
        }
        Ok(())
    }
}

async fn certificates(file: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let pem = tokio::fs::read(file).await?;
    let found = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
    found.ok().filter(|found| !found.is_empty()).ok_or_else(|| none("there is no certificate"))
}

/// Connects anew whenever the `files` of `access` hold something else than `held`, what they held when the connection was
/// made, and calls `changed` before. While they cannot be used, as between the write of a certificate and that of its key, the
/// connection stays.
pub(super) async fn follow(
    client: &Client,
    access: &Access,
    files: &[PathBuf],
    mut held: Vec<Option<Digest>>,
    said: &ConnectionLog,
    changed: impl Fn(),
) {
    let mut unusable = held.clone();
    loop {
        tokio::time::sleep(LOOK).await;
        let now = digests(files).await;
        if now == held {
            continue;
        }
        match access.load().await {
            Ok(()) => {
                held = now;
                said.followed();
                changed();
                // It fails when the client is closed.
                let _ = client.force_reconnect().await;
            }
            Err(error) => {
                if unusable != now {
                    unusable = now;
                    said.unusable(&error);
                }
            }
        }
    }
}

impl Access {
    async fn load(&self) -> io::Result<()> {
        self.credentials.answer(b"").await?;
        match &self.tls {
            Some(tls) => tls.load().await,
            None => Ok(()),
        }
    }
}

/// What each of `files` holds.
pub(super) async fn digests(files: &[PathBuf]) -> Vec<Option<Digest>> {
    let mut digests = Vec::with_capacity(files.len());
    for file in files {
        digests.push(tokio::fs::read(file).await.ok().map(|bytes| Digest::of(&bytes)));
    }
    digests
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_credentials_file_is_read_as_nsc_writes_it_and_refused_without_its_text() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let pair = KeyPair::new_user();
        let seed = pair.seed().unwrap();
        let text = format!(
            "-----BEGIN NATS USER JWT-----\r\na.b-c.d_\r\n------END NATS USER JWT------\r\n\r\n\
             ************************* IMPORTANT *************************\r\nNKEYs are sensitive.\r\n\r\n\
             -----BEGIN USER NKEY SEED-----\r\n{seed}\r\n------END USER NKEY SEED------\r\n\r\n*****\r\n"
        );
        std::fs::write(file.path(), &text).unwrap();
        let credentials = Credentials::File(file.path().to_owned());
        let auth = credentials.answer(b"nonce").await.unwrap();
        assert_eq!(auth.jwt.as_deref(), Some("a.b-c.d_"));
        pair.verify(b"nonce", &auth.signature.unwrap()).unwrap();
        for (from, to, refusal) in [
            (seed.as_str(), "canary", "there is no seed of a user"),
            ("BEGIN", "canary", "the credentials file holds no jwt and seed of a user"),
        ] {
            std::fs::write(file.path(), text.replace(from, to)).unwrap();
            let Err(error) = credentials.answer(b"nonce").await else { panic!("it is taken: {from}") };
            assert_eq!(error.to_string(), refusal);
        }
        for seed in [
            format!("{seed}\n{}\n", pair.public_key()),
            format!("-----BEGIN USER NKEY SEED-----\r\n{seed}\r\n------END USER NKEY SEED------\r\n"),
        ] {
            std::fs::write(file.path(), seed).unwrap();
            let auth =
                Credentials::Nkey(Secret::File(file.path().to_owned())).answer(b"nonce").await.unwrap();
            assert_eq!(auth.nkey, Some(pair.public_key()));
            pair.verify(b"nonce", &auth.signature.unwrap()).unwrap();
        }
        let empty = Credentials::Token(Secret::File("/dev/null".into()));
        let Err(error) = empty.answer(b"").await else { panic!("it is taken") };
        assert_eq!(error.to_string(), "the file is empty");
    }
}
