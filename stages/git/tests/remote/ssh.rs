//! Over SSH.

use std::fmt::Display;
use std::process::Stdio;
use std::sync::Arc;

use russh::keys::{PrivateKey, PublicKey};
use russh::server::{self, Auth, Msg, Session, VerifiedPublicKey};
use russh::{Channel, ChannelId};
use stages_git::remote::{Access, Credential, Credentials, KnownHosts};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;

use crate::support::{Cache, Forge, commit, git, text};

/// A key that never changes, made of a seed.
fn key(seed: u8) -> PrivateKey {
    let pair = russh::keys::ssh_key::private::Ed25519Keypair::from_seed(&[seed; 32]);
    PrivateKey::from(pair)
}

/// What a host does in place of running `git upload-pack`.
#[derive(Clone, Copy)]
enum Refusal {
    /// It says this beside the stream, and ends.
    Says(&'static str),
    /// It ends the connection, and says nothing.
    Breaks,
    /// It runs no commands.
    RunsNothing,
}

/// An SSH host that runs `git upload-pack` for one key.
struct Host {
    allowed: PublicKey,
    /// It lets `GIT_PROTOCOL` through.
    second_version: bool,
    refusal: Option<Refusal>,
    protocol: String,
    stdin: Option<tokio::process::ChildStdin>,
}

impl server::Handler for Host {
    type Error = russh::Error;

    async fn auth_publickey(&mut self, user: &str, key: VerifiedPublicKey<'_>) -> Result<Auth, Self::Error> {
        let same = key.public_key.key_data() == self.allowed.key_data();
        Ok(if same && user == "git" { Auth::Accept } else { Auth::reject() })
    }

    async fn channel_open_session(
        &mut self,
        _: Channel<Msg>,
        reply: server::ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), Self::Error> {
        reply.accept().await;
        Ok(())
    }

    async fn env_request(
        &mut self,
        _: ChannelId,
        name: &str,
        value: &str,
        _: &mut Session,
    ) -> Result<(), Self::Error> {
        if self.second_version && name == "GIT_PROTOCOL" {
            value.clone_into(&mut self.protocol);
        }
        Ok(())
    }

    async fn exec_request(
        &mut self,
        channel: ChannelId,
        command: &[u8],
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        match self.refusal {
            Some(Refusal::Says(text)) => {
                session.channel_success(channel)?;
                session.extended_data(channel, 1, text)?;
                session.exit_status_request(channel, 1)?;
                session.eof(channel)?;
                return session.close(channel);
            }
            Some(Refusal::Breaks) => return Err(russh::Error::Disconnect),
            Some(Refusal::RunsNothing) => return session.channel_failure(channel),
            None => {}
        }
        let mut child = tokio::process::Command::new("sh")
            .arg("-c")
            .arg(String::from_utf8_lossy(command).into_owned())
            .env("GIT_PROTOCOL", &self.protocol)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        self.stdin = child.stdin.take();
        let mut stdout = child.stdout.take().unwrap();
        session.channel_success(channel)?;
        let handle = session.handle();
        tokio::spawn(async move {
            use tokio::io::AsyncReadExt as _;
            let mut buffer = vec![0; 32 * 1024];
            while let Ok(read @ 1..) = stdout.read(&mut buffer).await {
                if handle.data(channel, buffer.get(..read).unwrap().to_vec()).await.is_err() {
                    return;
                }
            }
            let code = child.wait().await.ok().and_then(|of| of.code()).unwrap_or(1);
            let _ = handle.exit_status_request(channel, u32::try_from(code).unwrap_or(1)).await;
            let _ = handle.eof(channel).await;
            let _ = handle.close(channel).await;
        });
        Ok(())
    }

    async fn data(&mut self, _: ChannelId, data: &[u8], _: &mut Session) -> Result<(), Self::Error> {
        // Azure DevOps speaks the first version, and serves nobody who does not know `multi_ack`.
        let wants = data.get(4..).is_some_and(|line| line.starts_with(b"want "));
        if wants && !self.second_version && !data.windows(10).any(|of| of == b" multi_ack") {
            self.stdin = None;
        }
        if let Some(stdin) = &mut self.stdin {
            let _ = stdin.write_all(data).await;
            let _ = stdin.flush().await;
        }
        Ok(())
    }

    async fn channel_eof(&mut self, _: ChannelId, _: &mut Session) -> Result<(), Self::Error> {
        self.stdin = None;
        Ok(())
    }
}

/// What is said of a key that cannot be used.
pub(crate) fn unusable(why: &str) -> String {
    format!("the credentials of the Secret argocd/ssh cannot be used: {why}")
}

pub(crate) const LOCKED: &str =
    "its SSH key has a passphrase, which nobody is here to type: give one without";

pub(crate) fn unknown_host(port: u16, fingerprint: &impl Display) -> String {
    format!(
        "the SSH host 127.0.0.1:{port} is not known ({fingerprint}): compare that with what its operator publishes, and add the key to the ConfigMap argocd-ssh-known-hosts-cm or the file of known hosts"
    )
}

pub(crate) fn changed_key(port: u16, fingerprint: &impl Display) -> String {
    format!(
        "the SSH key of 127.0.0.1:{port} is not the one that is known, but {fingerprint}: somebody may be between; if its operator says that it was changed, replace it in the ConfigMap argocd-ssh-known-hosts-cm or the file of known hosts"
    )
}

pub(crate) fn refused_key(url: &str) -> String {
    format!(
        "{url} refused the credentials of the Secret argocd/ssh: they are wrong, expired, or may not read it"
    )
}

pub(crate) fn no_repository(url: &str) -> String {
    format!("no repository is at {url}: it was moved or deleted, or the credentials may not see it")
}

/// Serves on a free port, which it gives.
async fn serve(host_key: u8, second_version: bool) -> u16 {
    serve_or(host_key, second_version, None).await
}

async fn serve_or(host_key: u8, second_version: bool, refusal: Option<Refusal>) -> u16 {
    let config = server::Config {
        keys: vec![key(host_key)],
        auth_rejection_time: std::time::Duration::ZERO,
        ..server::Config::default()
    };
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let allowed = key(1).public_key().clone();
            let host = Host { allowed, second_version, refusal, protocol: String::new(), stdin: None };
            let config = config.clone();
            tokio::spawn(async move {
                if let Ok(session) = server::run_stream(config, stream, host).await {
                    let _ = session.await;
                }
            });
        }
    });
    port
}

fn credential(seed: u8) -> Credential {
    let text = key(seed).to_openssh(russh::keys::ssh_key::LineEnding::LF).unwrap();
    Credential {
        from: "the Secret argocd/ssh".to_owned(),
        url: "ssh://git@127.0.0.1".to_owned(),
        is_prefix: true,
        ssh_key: Some(text.to_string().into()),
        ..Credential::default()
    }
}

fn known(port: u16, seed: u8) -> KnownHosts {
    KnownHosts::read(&format!("[127.0.0.1]:{port} {}", key(seed).public_key().to_openssh().unwrap()))
}

fn access(port: u16, credential: Credential, hosts: KnownHosts) -> Access {
    let url = format!("{}:{port}", credential.url);
    let credentials = Credentials::new(vec![Credential { url, ..credential }]);
    Access { credentials, hosts, ..Access::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn branches_and_commits_are_fetched_whether_the_host_lets_the_version_through_or_not() {
    for second_version in [true, false] {
        let forge = Forge::new();
        let path = forge.repository("it's a");
        let old = git(&path, &["rev-parse", "main"]);
        let port = serve(2, second_version).await;
        let url = format!("ssh://git@127.0.0.1:{port}{}", path.display());
        let cache = Cache::new(|_| {}).await;
        cache.checkouts.set_access(access(port, credential(1), known(port, 2)));
        let at = cache.checkout(&url, "main").await.unwrap();
        assert_eq!(text(&at, "a.yaml").await.as_deref(), Some("a: 1\n"));
        let new = commit(&path, "main", "a.yaml", "a: 2\n");
        assert_eq!(cache.checkout(&url, "HEAD").await.unwrap().commit.to_string(), new);
        let other = Cache::new(|_| {}).await;
        other.checkouts.set_access(access(port, credential(1), known(port, 2)));
        assert_eq!(other.checkout(&url, &old).await.unwrap().commit.to_string(), old);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_is_believed_only_by_its_key() {
    let forge = Forge::new();
    let path = forge.repository("a");
    let port = serve(2, true).await;
    let url = format!("ssh://git@127.0.0.1:{port}{}", path.display());
    let fingerprint = key(2).public_key().fingerprint(russh::keys::HashAlg::Sha256);
    let cache = Cache::new(|_| {}).await;
    cache.checkouts.set_access(access(port, credential(1), KnownHosts::default()));
    assert_eq!(cache.refusal(&url, "main").await, unknown_host(port, &fingerprint));
    cache.checkouts.set_access(access(port, credential(1), known(port, 3)));
    assert_eq!(cache.refusal(&url, "main").await, changed_key(port, &fingerprint));
    let authority = format!("@cert-authority * {}", key(2).public_key().to_openssh().unwrap());
    cache.checkouts.set_access(access(port, credential(1), KnownHosts::read(&authority)));
    assert_eq!(
        cache.refusal(&url, "main").await,
        format!(
            "the SSH host 127.0.0.1:{port} is known by a @cert-authority alone, which is not supported: add its own key ({fingerprint}) to the ConfigMap argocd-ssh-known-hosts-cm or the file of known hosts"
        )
    );
    let insecure = Credential { insecure: true, ..credential(1) };
    cache.checkouts.set_access(access(port, insecure, KnownHosts::default()));
    cache.checkout(&url, "main").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_key_no_key_and_a_repository_that_is_not_there_are_told_apart() {
    let forge = Forge::new();
    let path = forge.repository("a");
    let port = serve(2, true).await;
    let url = format!("ssh://git@127.0.0.1:{port}{}", path.display());
    let cache = Cache::new(|_| {}).await;
    cache.checkouts.set_access(access(port, credential(9), known(port, 2)));
    assert_eq!(cache.refusal(&url, "main").await, refused_key(&url));
    cache.checkouts.set_access(access(port, Credential { ssh_key: None, ..credential(1) }, known(port, 2)));
    assert_eq!(
        cache.refusal(&url, "main").await,
        format!(
            "{url} wants credentials and none are configured for it: a Secret labelled argocd.argoproj.io/secret-type, a file or the environment gives them"
        )
    );
    let broken = Credential { ssh_key: Some("nonsense".to_owned().into()), ..credential(1) };
    cache.checkouts.set_access(access(port, broken, known(port, 2)));
    let why = "its SSH key is none: give a private key, which begins with a line such as -----BEGIN OPENSSH PRIVATE KEY-----";
    assert_eq!(cache.refusal(&url, "main").await, unusable(why));
    let of_http = Credential { ssh_key: None, password: Some("hidden".to_owned().into()), ..credential(1) };
    cache.checkouts.set_access(access(port, of_http, known(port, 2)));
    let why = "they are of HTTP, and the address is one of SSH: give an SSH key, or the address of HTTP";
    assert_eq!(cache.refusal(&url, "main").await, unusable(why));
    cache.checkouts.set_access(access(port, credential(1), known(port, 2)));
    let none = format!("ssh://git@127.0.0.1:{port}/none.git");
    assert_eq!(cache.refusal(&none, "main").await, no_repository(&none));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_host_says_of_a_refusal_is_told() {
    const OF_GITHUB: &str = "ERROR: The `acme' organization has enabled or enforced SAML SSO. To access\n\
        this repository, you must use the HTTPS remote with a personal access token.\n\n";
    const OF_GITLAB: &str = "remote: \r\nremote: ========================================\r\nremote: \r\n\
        remote: ERROR: This endpoint has been requested too many times. Try again later.\r\nremote: \r\n";
    for (refusal, told) in [
        (
            Refusal::Says(OF_GITHUB),
            "The `acme' organization has enabled or enforced SAML SSO. To access this repository, you must use the HTTPS remote with a personal access token.",
        ),
        (Refusal::Says(OF_GITLAB), "This endpoint has been requested too many times. Try again later."),
        (
            Refusal::Says("bash: line 1: git-upload-pack: command not found\n"),
            "bash: line 1: git-upload-pack: command not found",
        ),
        (Refusal::RunsNothing, "it does not run git-upload-pack"),
    ] {
        let port = serve_or(2, true, Some(refusal)).await;
        let cache = Cache::new(|_| {}).await;
        cache.checkouts.set_access(access(port, credential(1), known(port, 2)));
        let url = format!("ssh://git@127.0.0.1:{port}/team/a.git");
        assert_eq!(cache.refusal(&url, "main").await, format!("127.0.0.1:{port} refused: {told}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_has_no_such_repository_or_broke_off_is_told_as_such() {
    for (refusal, is_none) in [
        (Refusal::Says("ERROR: Repository not found.\n"), true),
        (
            Refusal::Says(
                "remote: \nremote: ERROR: The project you were looking for could not be found or you don't have permission to view it.\n",
            ),
            true,
        ),
        (Refusal::Says("\n"), true),
        (Refusal::Breaks, false),
    ] {
        let port = serve_or(2, true, Some(refusal)).await;
        let cache = Cache::new(|_| {}).await;
        cache.checkouts.set_access(access(port, credential(1), known(port, 2)));
        let url = format!("ssh://git@127.0.0.1:{port}/team/a.git");
        let wanted = match is_none {
            true => no_repository(&url),
            false => format!("cannot connect to 127.0.0.1:{port}: the connection broke"),
        };
        assert_eq!(cache.refusal(&url, "main").await, wanted);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_not_to_be_had_without_a_proxy_is_named_as_such() {
    // One that is held and that nobody listens at, and one that says nothing.
    let held = tokio::net::TcpSocket::new_v4().unwrap();
    held.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let closed = held.local_addr().unwrap().port();
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    for (port, limit, why) in [
        (closed, 120_000, "Connection refused (os error 111)"),
        (silent.local_addr().unwrap().port(), 100, "it sent nothing for 0.1 s"),
    ] {
        let cache =
            Cache::new(|config| config.connect_timeout = std::time::Duration::from_millis(limit)).await;
        let proxied = Credential { proxy: Some("socks5://127.0.0.1:1".to_owned().into()), ..credential(1) };
        cache.checkouts.set_access(access(port, proxied, known(port, 2)));
        assert_eq!(
            cache.refusal(&format!("ssh://git@127.0.0.1:{port}/a.git"), "main").await,
            format!(
                "cannot connect to 127.0.0.1:{port}: {why}; SSH goes without the proxy of the Secret argocd/ssh"
            )
        );
    }
}
