//! Servers and repositories for tests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::serve::Listener;
use git2::{Commit, Repository, Signature};
use loadtest_sim::git_server::GitRequest;
use stages_git::remote::{Access, Checkouts, Config, Credential, Credentials};
use stages_git::{Checkout, FetchError, RepositoryUrl};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::server::TlsStream;

/// Runs the real git.
pub(crate) fn git(directory: &Path, arguments: &[&str]) -> String {
    let done = Command::new("git")
        .args(arguments)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .envs([("GIT_AUTHOR_NAME", "Ada"), ("GIT_AUTHOR_EMAIL", "ada@example.com")])
        .envs([("GIT_COMMITTER_NAME", "Ada"), ("GIT_COMMITTER_EMAIL", "ada@example.com")])
        .output()
        .unwrap();
    assert!(done.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

/// Bare repositories in a folder.
pub(crate) struct Forge {
    pub(crate) folder: TempDir,
}

impl Forge {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// A bare repository `<name>.git` with a branch `main` of one commit.
    pub(crate) fn repository(&self, name: &str) -> PathBuf {
        let path = self.folder.path().join(format!("{name}.git"));
        git(self.folder.path(), &["init", "-q", "--bare", "-b", "main", path.to_str().unwrap()]);
        commit(&path, "main", "a.yaml", "a: 1\n");
        path
    }
}

/// Commits a file to a branch of a bare repository; a new branch begins where `main` is. In this process: the real git needs twenty for
/// a clone, a commit and a push.
pub(crate) fn commit(repository: &Path, branch: &str, file: &str, content: &str) -> String {
    let repository = Repository::open_bare(repository).unwrap();
    let name = format!("refs/heads/{branch}");
    let from = repository.find_reference(&name).or_else(|_| repository.find_reference("refs/heads/main"));
    let parent = from.ok().map(|from| from.peel_to_commit().unwrap());
    let before = parent.as_ref().map(|parent| parent.tree().unwrap());
    let mut files = repository.treebuilder(before.as_ref()).unwrap();
    let blob = repository.blob(content.as_bytes()).unwrap();
    files.insert(file, blob, 0o100_644).unwrap();
    let tree = repository.find_tree(files.write().unwrap()).unwrap();
    let ada = Signature::now("Ada", "ada@example.com").unwrap();
    let parents: Vec<&Commit<'_>> = parent.iter().collect();
    let message = format!("Change {file}\n");
    repository.commit(Some(&name), &ada, &ada, &message, &tree, &parents).unwrap().to_string()
}

/// Somebody whom a server knows.
#[derive(Clone)]
pub(crate) struct Person {
    pub(crate) name: String,
    /// They may push, and not just fetch.
    pub(crate) may_write: bool,
}

/// What a server wants and speaks.
#[derive(Clone)]
pub(crate) struct Serving {
    pub(crate) folder: PathBuf,
    /// `Authorization` that it wants.
    pub(crate) authorization: Option<String>,
    /// Whom it knows, by their `Authorization`; none, and it knows everybody, who may fetch.
    pub(crate) people: Arc<BTreeMap<String, Person>>,
    /// It does not know the second version of the protocol.
    pub(crate) first_version: bool,
    pub(crate) requests: Arc<AtomicUsize>,
}

impl Serving {
    pub(crate) fn new(forge: &Forge) -> Self {
        let folder = forge.folder.path().to_owned();
        let (people, requests) = (Arc::default(), Arc::default());
        Self { folder, authorization: None, people, first_version: false, requests }
    }

    /// How many requests there were.
    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    pub(crate) fn router(&self) -> Router {
        Router::new().fallback(backend).with_state(self.clone())
    }

    /// Serves over HTTP, and gives the address.
    pub(crate) async fn http(&self) -> String {
        serve(self.router()).await
    }
}

/// Serves anything over HTTP.
pub(crate) async fn serve(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

pub(crate) async fn backend(State(serving): State<Serving>, request: Request) -> Response {
    serving.requests.fetch_add(1, Ordering::SeqCst);
    let (mut parts, body) = request.into_parts();
    let given = parts.headers.get("authorization").and_then(|value| value.to_str().ok());
    let given = given.unwrap_or_default().to_owned();
    if serving.authorization.as_ref().is_some_and(|wanted| *wanted != given) {
        return status(StatusCode::UNAUTHORIZED);
    }
    let person = serving.people.get(&given);
    if person.is_none() && !serving.people.is_empty() {
        return status(StatusCode::UNAUTHORIZED);
    }
    // Whoever is named may push.
    let writer = person.filter(|person| person.may_write).map(|person| person.name.as_str());
    if serving.first_version {
        parts.headers.remove("git-protocol");
    }
    let body = axum::body::to_bytes(body, 64 << 20).await.unwrap();
    GitRequest { writer, ..GitRequest::new(&serving.folder, &parts, &body) }.answer().await.unwrap()
}

pub(crate) fn status(code: StatusCode) -> Response {
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = code;
    answer
}

/// An authority of this machine's certificate.
pub(crate) struct Authority {
    pub(crate) pem: String,
    acceptor: TlsAcceptor,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut of = rcgen::CertificateParams::new(Vec::<String>::new()).unwrap();
        of.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let issuer = rcgen::CertifiedIssuer::self_signed(of, key).unwrap();
        let key = rcgen::KeyPair::generate().unwrap();
        let of = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let leaf = of.signed_by(&key, &issuer).unwrap();
        Self::showing(issuer.pem(), &leaf, &key)
    }

    /// One whose own certificate is this machine's, as OpenSSL makes one unless it is told otherwise.
    pub(crate) fn itself() -> Self {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut of = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        of.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let own = of.self_signed(&key).unwrap();
        Self::showing(own.pem(), &own, &key)
    }

    fn showing(pem: String, own: &rcgen::Certificate, key: &rcgen::KeyPair) -> Self {
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![own.der().clone()], key)
            .unwrap();
        Self { pem, acceptor: TlsAcceptor::from(Arc::new(config)) }
    }

    /// Serves over HTTPS.
    pub(crate) async fn serve(&self, router: Router) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let tls = Tls { listener, acceptor: self.acceptor.clone() };
        tokio::spawn(async move { axum::serve(tls, router).await });
        format!("https://localhost:{port}")
    }
}

struct Tls {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for Tls {
    type Io = TlsStream<TcpStream>;
    type Addr = std::net::SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            if let Ok((stream, address)) = self.listener.accept().await
                && let Ok(stream) = self.acceptor.accept(stream).await
            {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

/// A cache in a folder of its own.
pub(crate) struct Cache {
    pub(crate) folder: TempDir,
    pub(crate) checkouts: Checkouts,
}

/// Limits that no slow machine comes near, and no pause after a failure.
pub(crate) fn config(folder: &Path) -> Config {
    Config {
        connect_timeout: Duration::from_secs(120),
        idle: Duration::from_secs(120),
        fresh: Duration::ZERO,
        pause: Duration::ZERO,
        ..Config::new(folder.join("cache"))
    }
}

impl Cache {
    pub(crate) async fn new(change: impl FnOnce(&mut Config)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = config(folder.path());
        change(&mut config);
        let checkouts = Checkouts::new(config).await.unwrap();
        Self { folder, checkouts }
    }

    pub(crate) async fn checkout(&self, url: &str, revision: &str) -> Result<Checkout, Arc<FetchError>> {
        self.checkouts.checkout(&address(url), revision).await
    }

    /// What it says that went wrong.
    pub(crate) async fn refusal(&self, url: &str, revision: &str) -> String {
        match self.checkout(url, revision).await {
            Ok(found) => panic!("{url} was fetched: {}", found.commit),
            Err(error) => error.to_string(),
        }
    }

    pub(crate) fn give(&self, credential: Credential) {
        let credentials = Credentials::new(vec![credential]);
        self.checkouts.set_access(Access { credentials, ..Access::default() });
    }
}

pub(crate) fn address(url: &str) -> RepositoryUrl {
    RepositoryUrl::read(url).unwrap()
}

/// The text of a file of a checkout.
pub(crate) async fn text(of: &Checkout, path: &'static str) -> Option<String> {
    of.read(move |repository, commit| repository.snapshot(commit).unwrap().text(path, 1 << 20).unwrap())
        .await
        .unwrap()
}

/// A text that hardly shrinks when it is compressed.
pub(crate) fn noise(length: usize) -> String {
    let mut random = fastrand::Rng::with_seed(7);
    (0..length).map(|_| random.alphanumeric()).collect()
}
