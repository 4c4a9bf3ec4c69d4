//! Git over SSH: one channel on which the host runs `git-upload-pack` for us.
//!
//! A host whose key is not known is refused before anything is said to it.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use russh::client::{self, AuthResult, Handle};
use russh::keys::ssh_key::PublicKey;
use russh::keys::{Algorithm, HashAlg, PrivateKeyWithHashAlg, PublicKeyOrCertificate};
use russh::{ChannelMsg, ChannelReadHalf, ChannelWriteHalf, Preferred, kex, mac};
use secrecy::ExposeSecret as _;

use super::credentials::Credential;
use super::hosts::{Judgement, KnownHosts};
use super::{FetchError, RepositoryUrl, lock, ssh_key};

/// Exchanges of keys that Argo CD knows beside those that the library prefers: some hosts know the elliptic curves of NIST
/// alone, Azure DevOps Server the group of 2,048 bits with SHA-1.
const KEX: [kex::Name; 4] =
    [kex::ECDH_SHA2_NISTP256, kex::ECDH_SHA2_NISTP384, kex::ECDH_SHA2_NISTP521, kex::DH_G14_SHA1];
/// The least, the preferred and the largest group that a host may choose, in bits: those of OpenSSH.
const GROUP: [usize; 3] = [2_048, 8_192, 8_192];
/// The number of the stream beside that of the protocol: what a program writes of its errors.
const ERRORS: u32 = 1;
/// Bytes that are kept of it.
const MOST_SAID: usize = 4_096;
/// What hosts write before what they say.
const BEFORE: [&str; 6] = ["remote:", "ERROR:", "error:", "FATAL:", "fatal:", "GitLab:"];
/// What hosts say where there is no such repository, or none that whoever asks may see.
const NONE: [&str; 5] = [
    "not found",
    "could not be found",
    "cannot find",
    "does not exist",
    "does not appear to be a git repository",
];

/// What the SSH way is given.
pub(super) struct SshCall<'a> {
    pub(super) url: &'a RepositoryUrl,
    pub(super) credential: Option<&'a Credential>,
    pub(super) hosts: &'a KnownHosts,
    pub(super) connect_timeout: Duration,
}

/// A channel on which a host speaks Git's protocol.
pub(super) struct SshChannel {
    read: ChannelReadHalf,
    write: ChannelWriteHalf<client::Msg>,
    host: String,
    /// What the host wrote beside the stream.
    said: Vec<u8>,
    // The connection ends with it.
    _handle: Handle<HostKey>,
}

/// Judges the key of the host.
struct HostKey {
    host: String,
    port: u16,
    known: KnownHosts,
    any: bool,
    found: Arc<Mutex<Option<(Judgement, String)>>>,
}

impl client::Handler for HostKey {
    type Error = russh::Error;

    async fn check_server_key(&mut self, key: &PublicKeyOrCertificate) -> Result<bool, Self::Error> {
        let PublicKeyOrCertificate::PublicKey { key, .. } = key else { return Ok(false) };
        let judgement = self.known.judge(&self.host, self.port, key);
        let fingerprint = PublicKey::fingerprint(key, HashAlg::Sha256).to_string();
        *lock(&self.found) = Some((judgement, fingerprint));
        Ok(self.any || judgement == Judgement::Known)
    }
}

impl SshChannel {
    /// Connects, shows who it is, and has the host begin with its greeting.
    pub(super) async fn open(call: SshCall<'_>) -> Result<Self, FetchError> {
        let limit = call.connect_timeout;
        let host = call.url.host();
        let proxied = call.credential.filter(|of| of.proxy.is_some()).map(|of| of.from.clone());
        let opened = tokio::time::timeout(limit, Self::connect(call))
            .await
            .unwrap_or_else(|_| Err(FetchError::Idle { host: host.clone(), limit }));
        let Some(from) = proxied else { return opened };
        // Where a proxy is wanted, the host is hardly to be had without.
        let without = |why: &str| FetchError::Connect {
            host,
            why: format!("{why}; SSH goes without the proxy of {from}"),
        };
        opened.map_err(|error| match &error {
            FetchError::Idle { limit, .. } => {
                without(&format!("it sent nothing for {} s", limit.as_secs_f32()))
            }
            FetchError::Connect { why, .. } => without(why),
            _ => error,
        })
    }

    async fn connect(call: SshCall<'_>) -> Result<Self, FetchError> {
        let url = call.url.url().ok_or(FetchError::Address { why: "it is no URL" })?;
        let host = call.url.host();
        let (name, port) = (url.host_str().unwrap_or_default().to_owned(), url.port().unwrap_or(22));
        let Some(credential) = call.credential else {
            return Err(FetchError::NoCredentials { url: call.url.to_string() });
        };
        let key = credential.ssh_key.as_ref().ok_or_else(|| credential.shows_nothing(call.url))?;
        let key = ssh_key::decode(key.expose_secret()).map_err(|why| credential.unusable(why))?;
        let found = Arc::new(Mutex::new(None));
        let handler = HostKey {
            host: name.clone(),
            port,
            known: call.hosts.clone(),
            any: credential.insecure,
            found: found.clone(),
        };
        let failed =
            |error: &russh::Error| FetchError::Connect { host: host.clone(), why: error.to_string() };
        let config = config(call.hosts, &name, port).map_err(|error| failed(&error))?;
        let place = (name.trim_matches(['[', ']']).to_owned(), port);
        let connected = client::connect(Arc::new(config), place, handler).await;
        let judged = lock(&found).take();
        let mut handle = match (connected, judged) {
            (Ok(handle), _) => handle,
            (Err(russh::Error::UnknownKey), Some((Judgement::Unknown, fingerprint))) => {
                return Err(FetchError::UnknownHost { host, fingerprint });
            }
            (Err(russh::Error::UnknownKey), Some((Judgement::OfAuthority, fingerprint))) => {
                return Err(FetchError::HostAuthority { host, fingerprint });
            }
            (Err(russh::Error::UnknownKey), Some((_, fingerprint))) => {
                return Err(FetchError::ChangedHostKey { host, fingerprint });
            }
            (Err(error), _) => return Err(failed(&error)),
        };
        let user = if url.username().is_empty() { "git" } else { url.username() }.to_owned();
        let hash = handle.best_supported_rsa_hash().await.map_err(|error| failed(&error))?.flatten();
        let key = PrivateKeyWithHashAlg::new(Arc::new(key), hash);
        let answer = handle.authenticate_publickey(user, key).await.map_err(|error| failed(&error))?;
        if !matches!(answer, AuthResult::Success) {
            let (url, from) = (call.url.to_string(), credential.from.clone());
            return Err(FetchError::Refused { url, from, said: None });
        }
        let channel = handle.channel_open_session().await.map_err(|error| failed(&error))?;
        // The second version is spoken where the host lets this variable through; otherwise the first is.
        let _ = channel.set_env(false, "GIT_PROTOCOL", "version=2").await;
        let path = call.url.ssh_path().replace('\'', r"'\''");
        let command = format!("git-upload-pack '{path}'");
        channel.exec(true, command).await.map_err(|error| failed(&error))?;
        let (read, write) = channel.split();
        Ok(Self { read, write, host, said: Vec::new(), _handle: handle })
    }

    pub(super) async fn write(&mut self, bytes: &[u8]) -> Result<(), FetchError> {
        self.write.data(bytes).await.map_err(|_| self.ended())
    }

    /// The next bytes; `None` at the end.
    pub(super) async fn read(&mut self) -> Result<Option<Bytes>, FetchError> {
        loop {
            match self.read.wait().await {
                Some(ChannelMsg::Data { data }) if !data.is_empty() => return Ok(Some(data)),
                Some(ChannelMsg::ExtendedData { data, ext: ERRORS }) => {
                    let room = MOST_SAID.saturating_sub(self.said.len());
                    self.said.extend(data.iter().take(room));
                }
                Some(ChannelMsg::Failure) => {
                    let message = "it does not run git-upload-pack".to_owned();
                    return Err(FetchError::Remote { host: self.host.clone(), message });
                }
                Some(ChannelMsg::Eof | ChannelMsg::Close) => return Ok(None),
                Some(_) => {}
                // One that wrote why has refused, however it ends.
                None if !self.said.is_empty() => return Ok(None),
                // A host that means to end says so.
                None => return Err(self.ended()),
            }
        }
    }

    /// Why the host refused, as it wrote beside the stream; `None` where it wrote nothing, or that there is no such repository.
    pub(super) fn refusal(&self) -> Option<String> {
        let words = words(&self.said);
        let lower = words.to_lowercase();
        // A shell that does not find the program tells nothing of the repository.
        let is_of_none = !lower.contains("git-upload-pack") && NONE.iter().any(|told| lower.contains(told));
        (!words.is_empty() && !is_of_none).then_some(words)
    }

    fn ended(&self) -> FetchError {
        FetchError::Connect { host: self.host.clone(), why: "the connection broke".to_owned() }
    }
}

/// What a host wrote, in one line, without what it is framed by.
fn words(said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    let lines = said.lines().map(|line| {
        let mut line = line.trim();
        while let Some(rest) = BEFORE.iter().find_map(|word| line.strip_prefix(*word)) {
            line = rest.trim_start();
        }
        line
    });
    let lines: Vec<&str> = lines.filter(|line| line.contains(char::is_alphanumeric)).collect();
    lines.join(" ")
}

/// What is offered to a host.
fn config(hosts: &KnownHosts, host: &str, port: u16) -> Result<client::Config, russh::Error> {
    let preferred = Preferred::default();
    let [least, usual, largest] = GROUP;
    Ok(client::Config {
        preferred: Preferred {
            key: Cow::Owned(algorithms(hosts, host, port)),
            kex: preferred.kex.iter().copied().chain(KEX).collect(),
            mac: preferred.mac.iter().copied().chain([mac::HMAC_SHA1]).collect(),
            ..preferred
        },
        gex: client::GexParams::new(least, usual, largest)?,
        nodelay: true,
        ..client::Config::default()
    })
}

/// What the host may prove itself with: keys of the kinds that are known of it. Of an unknown host any, to name its key.
fn algorithms(hosts: &KnownHosts, host: &str, port: u16) -> Vec<Algorithm> {
    let mut all: Vec<Algorithm> = Vec::new();
    for key in hosts.keys(host, port) {
        match key.algorithm() {
            Algorithm::Rsa { .. } => {
                all.extend(
                    [HashAlg::Sha512, HashAlg::Sha256].map(|hash| Algorithm::Rsa { hash: Some(hash) }),
                );
            }
            other => all.push(other),
        }
    }
    // What is not known comes last, so that a host whose key changed is named as such.
    let default = Preferred::default().key;
    all.extend(default.iter().cloned());
    let mut seen = Vec::new();
    all.retain(|of| {
        let new = !seen.contains(of);
        seen.push(of.clone());
        new
    });
    all
}
