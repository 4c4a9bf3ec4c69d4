//! How the server is reached: tokens, certificates, kubeconfigs, and settings that are refused.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pipeline_core::{Key, NoMeter, ObjectIndex, Reason, SecretString, Source as _, Version};
use stages_kube::{Cluster, Config, Deps, Right, Scope};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use crate::fake::{Answer, Asked, Fake, app};
use crate::harness::{WIDGETS, Widgets, build, config};

fn key() -> Key {
    Key::new("home", "a").unwrap()
}

/// Lets in who brings the token.
fn guarded(asked: &Asked) -> Answer {
    match asked.headers.get("authorization").map(|value| value.to_str().unwrap()) {
        Some("Bearer s3same") => Answer::Json(app("home", "a", "u1", 1)),
        _ => Answer::Status(401),
    }
}

fn server(url: String, token: Option<&str>, ca_file: Option<PathBuf>) -> Cluster {
    Cluster::Server { url, token: token.map(SecretString::from), token_file: None, ca_file }
}

async fn read(cluster: Cluster) -> Result<(), (Reason, String)> {
    let (watch, _, _) = build(Config { cluster, ..crate::harness::usual() }).await;
    match watch.read(&key(), Version(1)).await {
        Ok(_) => Ok(()),
        Err(error) => Err((error.reason(), error.to_string())),
    }
}

fn certificate() -> (TlsAcceptor, tempfile::NamedTempFile) {
    certificate_of(&["127.0.0.1"])
}

/// A server certificate for `names` that signs itself, and its PEM file.
pub(crate) fn certificate_of(names: &[&str]) -> (TlsAcceptor, tempfile::NamedTempFile) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let made =
        rcgen::generate_simple_self_signed(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
            .unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), made.cert.pem()).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    (TlsAcceptor::from(Arc::new(config)), file)
}

#[tokio::test]
async fn the_token_is_sent() {
    let fake = Fake::start(guarded).await;
    let url = format!("http://{}", fake.address);
    assert_eq!(read(server(url.clone(), Some("s3same"), None)).await, Ok(()));
    let refused = (Reason::Unauthorized, "get widget: the api server answered 401".to_owned());
    assert_eq!(read(server(url.clone(), Some("wrong"), None)).await, Err(refused.clone()));
    assert_eq!(read(server(url.clone(), None, None)).await, Err(refused));

    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "s3same\n").unwrap();
    let token_file = Some(file.path().to_owned());
    let cluster = Cluster::Server { url, token: None, token_file, ca_file: None };
    let (watch, _, _) = build(Config { cluster, ..crate::harness::usual() }).await;
    assert!(watch.read(&key(), Version(1)).await.is_ok());
    std::fs::write(file.path(), "expired").unwrap();
    let refusal = watch.read(&key(), Version(1)).await.unwrap_err();
    assert_eq!(refusal.to_string(), "get widget: the api server answered 401");
    std::fs::write(file.path(), "s3same").unwrap();
    assert!(watch.read(&key(), Version(1)).await.is_ok(), "a new token is in force at once");
    std::fs::write(file.path(), "\n").unwrap();
    let refusal = watch.read(&key(), Version(1)).await.unwrap_err();
    assert_eq!(
        (refusal.to_string().as_str(), refusal.reason()),
        ("get widget: the token file cannot be used", Reason::Unauthorized)
    );
}

#[tokio::test]
async fn a_path_before_the_api_is_kept() {
    let fake = Fake::start(|asked| match asked.path.strip_prefix("/clusters/one/apis/") {
        Some(_) => Answer::Json(app("home", "a", "u1", 1)),
        None => Answer::Status(500),
    })
    .await;
    assert_eq!(read(server(format!("http://{}/clusters/one", fake.address), None, None)).await, Ok(()));
}

#[tokio::test]
async fn the_servers_certificate_is_verified() {
    let (acceptor, authority) = certificate();
    let (_, stranger) = certificate();
    let fake = Fake::start_tls(acceptor, guarded).await;
    let url = format!("https://{}", fake.address);
    let trusted = server(url.clone(), Some("s3same"), Some(authority.path().to_owned()));
    assert_eq!(read(trusted).await, Ok(()));
    let distrusted = server(url, Some("s3same"), Some(stranger.path().to_owned()));
    let refused = (Reason::Tls, "get widget: the connection failed".to_owned());
    assert_eq!(read(distrusted).await, Err(refused));
    assert_eq!(fake.asked("get").len(), 1, "nothing is sent to a server that is not trusted");
}

#[tokio::test]
async fn a_kubeconfig_and_its_contexts_are_understood() {
    let fake = Fake::start(guarded).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    let text = format!(
        r#"{{"apiVersion": "v1", "kind": "Config", "current-context": "good",
            "clusters": [{{"name": "c", "cluster": {{"server": "http://{}"}}}}],
            "users": [{{"name": "me", "user": {{"token": "s3same"}}}}, {{"name": "you", "user": {{"token": "x"}}}}],
            "contexts": [{{"name": "good", "context": {{"cluster": "c", "user": "me"}}}},
                         {{"name": "bad", "context": {{"cluster": "c", "user": "you"}}}}]}}"#,
        fake.address
    );
    std::fs::write(file.path(), text).unwrap();
    let with = |context: Option<&str>| Cluster::Kubeconfig {
        path: Some(file.path().to_owned()),
        context: context.map(str::to_owned),
    };
    assert_eq!(read(with(None)).await, Ok(()));
    assert_eq!(read(with(Some("bad"))).await.unwrap_err().0, Reason::Unauthorized);
    let refusal = refused(Config { cluster: with(Some("none")), ..crate::harness::usual() }).await;
    let path = file.path().display();
    assert_eq!(refusal, format!("kubeconfig {path} cannot be used: failed to load current context: none"));
}

pub(crate) async fn refused(config: Config) -> String {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let deps = Deps { seen: ObjectIndex::default(), meter: Arc::new(NoMeter), unwatched: None };
    let error = config.build(Widgets, deps).await.expect_err("it is refused");
    match std::error::Error::source(&error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

#[tokio::test]
async fn settings_out_of_range_are_named() {
    type Spoil = fn(&mut Config);
    let cases: [(Spoil, &str); 9] = [
        (|c| c.namespace.clear(), "namespace must be the name of a namespace"),
        (|c| c.namespace = "a/b".into(), "namespace must be the name of a namespace"),
        (|c| c.page_size = 0, "page_size must be at least 1"),
        (|c| c.watch_timeout = Duration::from_millis(999), "watch_timeout must be 1s to 294s"),
        (|c| c.watch_timeout = Duration::from_secs(295), "watch_timeout must be 1s to 294s"),
        (|c| c.idle_limit = Duration::ZERO, "idle_limit must be more than 0s"),
        (|c| c.call_timeout = Duration::ZERO, "call_timeout must be more than 0s"),
        (|c| c.max_body = 0, "max_body must be more than 0 bytes"),
        (
            |c| c.backoff_min = Duration::from_secs(31),
            "backoff_min must be more than 0s and at most backoff_max",
        ),
    ];
    for (spoil, message) in cases {
        let mut config = config(([127, 0, 0, 1], 1).into());
        spoil(&mut config);
        assert_eq!(refused(config).await, message);
    }
}

#[tokio::test]
async fn what_cannot_be_reached_this_way_is_refused_before_anything_runs() {
    let of = |cluster| refused(Config { cluster, ..crate::harness::usual() });
    for url in ["", "127.0.0.1:6443", "ftp://host", "/path"] {
        assert_eq!(
            of(server(url.to_owned(), None, None)).await,
            "api server url is not `http(s)://host:port`"
        );
    }
    let empty = tempfile::NamedTempFile::new().unwrap();
    let path = empty.path().to_owned();
    assert_eq!(
        of(server("https://127.0.0.1:1".to_owned(), None, Some(path.clone()))).await,
        format!("certificate authority file {path:?} holds no certificate that can be read")
    );
    let token = |text: &str| {
        std::fs::write(empty.path(), text).unwrap();
        let (url, token_file) = ("http://127.0.0.1:1".to_owned(), Some(path.clone()));
        of(Cluster::Server { url, token: None, token_file, ca_file: None })
    };
    let refusal = format!("token file {path:?} cannot be used: the token file ");
    assert_eq!(token(" \n").await, format!("{refusal}is empty"));
    assert_eq!(token("a\nb").await, format!("{refusal}holds more than a token"));

    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(secret.path(), "users: [{name: a, user: {token: hunter2}\n  : :").unwrap();
    let kubeconfig = |path: PathBuf| Cluster::Kubeconfig { path: Some(path), context: None };
    let refusal = format!("kubeconfig {} is not a valid document", secret.path().display());
    assert_eq!(of(kubeconfig(secret.path().to_owned())).await, refusal);
    let refusal = of(kubeconfig("/nowhere/kubeconfig".into())).await;
    let starts = "kubeconfig /nowhere/kubeconfig cannot be used: failed to read kubeconfig";
    assert!(refusal.starts_with(starts), "{refusal}");
    let pattern = Config { namespaces: vec!["[".into()], ..config(([127, 0, 0, 1], 1).into()) };
    assert!(refused(pattern).await.starts_with("namespace pattern `[` is not a glob"));
}

#[test]
fn the_rights_are_as_wide_as_the_watch() {
    let right = |scope| Right {
        group: "example.org",
        resource: "widgets",
        verbs: &["get", "list", "watch"],
        names: Vec::new(),
        scope,
    };
    let mut config = crate::harness::usual();
    assert_eq!(config.watch_right(WIDGETS), right(Scope::Namespace("home".to_owned())));
    config.namespaces.push("team-*".to_owned());
    assert_eq!(config.watch_right(WIDGETS), right(Scope::Cluster));
}

#[test]
fn a_secret_is_read_by_its_name_and_no_other() {
    let config = Config { namespace: "own".to_owned(), ..crate::harness::usual() };
    let right = Right {
        group: "",
        resource: "secrets",
        verbs: &["get"],
        names: vec!["home-token".to_owned()],
        scope: Scope::Namespace("own".to_owned()),
    };
    assert_eq!(config.secret_right("home-token"), right);
}

#[test]
fn a_token_is_not_in_what_is_printed() {
    let cluster = server("https://host".to_owned(), Some("hunter2"), None);
    assert!(!format!("{:?}", Config { cluster, ..crate::harness::usual() }).contains("hunter2"));
}
