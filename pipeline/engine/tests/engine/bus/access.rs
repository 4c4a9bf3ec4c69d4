//! Who may use the bus, and how that is said.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use nkeys::KeyPair;
use pipeline_bus::jetstream::{Access, Config, ConnectError, Credentials, JetStream, Secret, Tls, connect};
use pipeline_core::{SecretString, Shutdown};
use tempfile::TempDir;
use tracing::Dispatch;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::MakeWriter;

use pipeline_bus::{Bus as _, Keep, Subject};

use crate::bus::ledger_world;
use crate::bus::world::{SOURCE, access, config, connected, durable, published, ready, soon, state, taken};
use crate::server::Server;

/// What this thread logs, one event a line.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// While one thread alone has a subscriber, what another thread says first is switched off for all: with this one there
/// are always two.
static SECOND: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(tracing_subscriber::registry()));

impl Log {
    fn begin() -> (Self, DefaultGuard) {
        LazyLock::force(&SECOND);
        let log = Self::default();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(log.clone())
            .with_ansi(false)
            .without_time()
            .with_target(false)
            .with_env_filter("debug,async_nats=off")
            .finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    /// Lines of what must be looked at.
    fn said(&self) -> Vec<String> {
        let text = self.text();
        let grave = |line: &&str| line.starts_with("ERROR") || line.trim_start().starts_with("WARN");
        text.lines().filter(grave).map(|line| line.trim().to_owned()).collect()
    }
}

async fn until(what: &str, done: impl Fn() -> bool) {
    ledger_world::until(what, async || done()).await;
}

fn asked_by(server: &Server, credentials: Credentials) -> Config {
    Config { access: Access { credentials, ..access(server) }, ..config(server) }
}

fn over_tls(server: &Server, tls: Tls) -> Config {
    Config { access: Access { tls: Some(tls), ..access(server) }, ..config(server) }
}

fn secret(text: &str) -> Secret {
    SecretString::from(text).into()
}

const REFUSED: &str =
    "ERROR the bus refuses the credentials of this runtime; trying on credentials=\"user and password\"";

#[tokio::test]
async fn a_wrong_password_is_said_once_and_tried_on() {
    let server = Server::with("authorization { user: runtime, password: right, timeout: 60 }");
    let (log, _guard) = Log::begin();
    let credentials = Credentials::Password { user: "runtime".into(), password: secret("canary") };
    let stop = Shutdown::new();
    let connecting = connect(asked_by(&server, credentials), &stop);
    let three = || server.log().matches("authentication error").count() >= 3;
    let (refused, ()) = tokio::join!(soon("the stop", connecting), async {
        until("the third attempt", three).await;
        stop.cancel();
    });
    let refused = refused.unwrap_err();
    assert!(matches!(refused, ConnectError::Stopped));
    assert_eq!(refused.to_string(), "stopped while connecting to the bus");
    assert_eq!(log.said(), [REFUSED]);
    assert!(!log.text().contains("canary"), "{}", log.text());
}

#[tokio::test]
async fn a_password_that_is_wrong_from_now_on_is_said_once_too() {
    let mut server = Server::with("authorization { user: runtime, password: right, timeout: 60 }");
    let (log, _guard) = Log::begin();
    let credentials = Credentials::Password { user: "runtime".into(), password: secret("right") };
    let bus = connected(asked_by(&server, credentials)).await;
    usable(&bus).await;
    assert_eq!(log.said(), Vec::<String>::new());
    server.kill();
    server.change("password: right", "password: other");
    server.restart();
    until("the third attempt", || server.log().matches("authentication error").count() >= 3).await;
    assert!(!bus.is_connected());
    server.kill();
    server.change("password: other", "password: right");
    server.restart();
    until("the next connection", || bus.is_connected()).await;
    // The events are told by a task of their own.
    let twice = || log.text().matches("the bus is connected").count() >= 2;
    until("the connection in the log", twice).await;
    let said = log.said();
    assert_eq!(said, ["WARN the connection to the bus is lost; trying on", REFUSED]);
}

#[tokio::test]
async fn a_password_that_is_rotated_under_load_costs_no_message() {
    let mut server = Server::with("authorization { user: runtime, password: first }");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "first\n").unwrap();
    let (log, _guard) = Log::begin();
    let credentials =
        Credentials::Password { user: "runtime".into(), password: Secret::File(file.path().to_owned()) };
    let bus = connected(asked_by(&server, credentials)).await;
    usable(&bus).await;
    let connections = || log.text().matches("the bus is connected").count();
    let stop = Shutdown::new();
    let (sender, stopped) = (bus.clone(), stop.clone());
    // One after the other, each until it is taken.
    let load = tokio::spawn(async move {
        let mut sent = 0;
        while !stopped.is_cancelled() {
            sent += 1;
            let message = state("u", 1 + sent, 10);
            let subject = Subject::of(SOURCE, 0, &message, Keep::of(&message, None));
            while sender.publish(&subject, &message).await.is_err() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        sent
    });
    // What the file holds is in force at once, also for a connection that stands.
    std::fs::write(file.path(), "first").unwrap();
    until("a connection with the file as it is", || connections() >= 2).await;
    // The server takes the new one alone, and it stands in the file before the server goes, or after.
    for (old, new, before) in [("first", "second", true), ("second", "third", false)] {
        let known = connections();
        if before {
            std::fs::write(file.path(), new).unwrap();
        }
        server.kill();
        server.change(&format!("password: {old}"), &format!("password: {new}"));
        server.restart();
        if !before {
            let refusals = server.log().matches("authentication error").count();
            until("a refusal", || server.log().matches("authentication error").count() > refusals).await;
            std::fs::write(file.path(), new).unwrap();
        }
        until("the next connection", || connections() > known && bus.is_connected()).await;
    }
    stop.cancel();
    let sent = soon("the load", load).await.unwrap();
    assert!(sent > 0, "nothing was under way");
    // The connection may still be made anew for the file, and take an answer with it.
    let message = state("u", 2 + sent, 10);
    let subject = Subject::of(SOURCE, 0, &message, Keep::of(&message, None));
    let publishing = async {
        while bus.publish(&subject, &message).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    soon("a message", publishing).await;
    assert!(!log.text().contains("third"), "{}", log.text());
}

#[tokio::test]
async fn a_server_that_is_away_is_said_once_and_waited_for() {
    let mut server = Server::start();
    server.kill();
    let (log, _guard) = Log::begin();
    let stop = Shutdown::new();
    let bus = {
        let (config, stop) = (config(&server), stop.clone());
        tokio::spawn(async move { connect(config, &stop).await })
    };
    until("the first complaint", || !log.said().is_empty()).await;
    server.restart();
    let bus = soon("connecting", bus).await.unwrap().unwrap();
    usable(&bus).await;
    let said = log.said();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with("WARN the bus cannot be reached; trying on error=IO error"), "{said:?}");
}

async fn usable(bus: &JetStream) {
    bus.ensure(&[durable(0)]).await.unwrap();
    published(bus, &state("u", 1, 10)).await;
}

#[tokio::test]
async fn passwords_tokens_and_nkeys_open_the_bus() {
    let user = Credentials::Password { user: "runtime".into(), password: secret("right") };
    let pair = KeyPair::new_user();
    let (seed, public) = (pair.seed().unwrap(), pair.public_key());
    for (settings, credentials) in [
        ("authorization { user: runtime, password: right }".to_owned(), user),
        ("authorization { token: right }".to_owned(), Credentials::Token(secret("right"))),
        (format!("authorization {{ users: [ {{ nkey: {public} }} ] }}"), Credentials::Nkey(secret(&seed))),
    ] {
        let server = Server::with(&settings);
        usable(&connected(asked_by(&server, credentials)).await).await;
    }
}

/// A JWT of NATS: what `issuer` says of `subject`.
fn jwt(issuer: &KeyPair, subject: &KeyPair, nats: &serde_json::Value) -> String {
    let encode = |value: &serde_json::Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let header = encode(&serde_json::json!({ "typ": "JWT", "alg": "ed25519-nkey" }));
    let claims = encode(&serde_json::json!({
        "jti": "test", "iat": 1_700_000_000, "name": "test", "iss": issuer.public_key(), "sub": subject.public_key(), "nats": nats,
    }));
    let text = format!("{header}.{claims}");
    let signature = BASE64_URL_SAFE_NO_PAD.encode(issuer.sign(text.as_bytes()).unwrap());
    format!("{text}.{signature}")
}

#[tokio::test]
async fn a_credentials_file_opens_the_bus() {
    let (operator, user) = (KeyPair::new_operator(), KeyPair::new_user());
    let (account, system) = (KeyPair::new_account(), KeyPair::new_account());
    let limits = serde_json::json!({
        "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true, "conn": -1, "leaf": -1,
        "mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1,
    });
    let of_operator = serde_json::json!({ "type": "operator", "version": 2 });
    let of_account = serde_json::json!({ "type": "account", "version": 2, "limits": limits });
    let of_system = serde_json::json!({ "type": "account", "version": 2 });
    let of_user = serde_json::json!({ "type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1 });
    let server = Server::with(&format!(
        "operator: {}\nsystem_account: {}\nresolver: MEMORY\nresolver_preload: {{ {}: {}, {}: {} }}",
        jwt(&operator, &operator, &of_operator),
        system.public_key(),
        account.public_key(),
        jwt(&operator, &account, &of_account),
        system.public_key(),
        jwt(&operator, &system, &of_system),
    ));
    let file = tempfile::NamedTempFile::new().unwrap();
    let credentials = format!(
        "-----BEGIN NATS USER JWT-----\n{}\n------END NATS USER JWT------\n\n\
         -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
        jwt(&account, &user, &of_user),
        user.seed().unwrap()
    );
    std::fs::write(file.path(), credentials).unwrap();
    let credentials = Credentials::File(file.path().to_owned());
    usable(&connected(asked_by(&server, credentials)).await).await;
}

#[tokio::test]
async fn a_credentials_file_that_is_none_is_refused() {
    let server = Server::start();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "canary").unwrap();
    for path in [file.path().to_owned(), PathBuf::from("/nowhere/at/all")] {
        let credentials = Credentials::File(path);
        let refused = connect(asked_by(&server, credentials), &Shutdown::new()).await.unwrap_err();
        assert_eq!(refused.to_string(), "reading the bus's credentials file failed");
        let all = format!("{:#}", std::error::Error::source(&refused).unwrap());
        assert!(!all.contains("canary"), "{all}");
    }
}

#[tokio::test]
async fn what_a_user_may_not_do_is_said_once() {
    let server = Server::with(
        "authorization { timeout: 60, users: [ { user: runtime, password: right, permissions: { publish: { deny: \"$JS.>\" } } } ] }",
    );
    let credentials = Credentials::Password { user: "runtime".into(), password: secret("right") };
    let access = Access { credentials, timeout: Duration::from_secs(3), ..access(&server) };
    let bus = connected(Config { access, ..config(&server) }).await;
    let (log, _guard) = Log::begin();
    for _ in 0..2 {
        let refused = bus.ensure(&[durable(0)]).await.unwrap_err();
        assert_eq!(refused.to_string(), "asking for the stream of the bus failed");
    }
    until("the refusal in the log", || !log.said().is_empty()).await;
    let said = log.said();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with("ERROR the bus refuses what this runtime does error="), "{said:?}");
}

#[tokio::test]
async fn what_the_server_refuses_to_make_is_said_once_with_its_reason_and_tried_on() {
    let server = Server::start();
    let (log, _guard) = Log::begin();
    // Of one server nobody has copies.
    let bus = connected(Config { replicas: 3, ..config(&server) }).await;
    tokio::select! {
        () = bus.ready(vec![durable(0)]) => panic!("it was made"),
        () = until("two more tries", || log.text().matches("cannot look at the bus yet").count() >= 2) => {}
    }
    let said = log.said();
    assert_eq!(said.len(), 1, "{said:?}");
    let refused = "WARN the streams of the bus cannot be made as the settings say; trying on";
    assert!(said[0].starts_with(refused) && said[0].contains("replicas > 1 not supported"), "{said:?}");
}

/// Certificates of one authority for server and client, in a folder.
fn certificates() -> TempDir {
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: String| std::fs::write(folder.path().join(name), text).unwrap();
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    write("ca.pem", authority.pem());
    for name in ["server", "client", "next"] {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec!["127.0.0.1".into()]).unwrap();
        write(&format!("{name}.pem"), certificate.signed_by(&key, &authority).unwrap().pem());
        write(&format!("{name}.key"), key.serialize_pem());
    }
    folder
}

/// A server that wants certificates of the folder's authority.
fn verifying(folder: &Path) -> Server {
    let file = |name: &str| folder.join(name);
    Server::with(&format!(
        "tls {{ cert_file: {:?}, key_file: {:?}, ca_file: {:?}, verify: true }}",
        file("server.pem"),
        file("server.key"),
        file("ca.pem")
    ))
}

#[tokio::test]
async fn a_new_certificate_is_used_as_soon_as_its_key_is_there_and_not_before() {
    let folder = certificates();
    let file = |name: &str| folder.path().join(name);
    let (server, (log, _guard)) = (verifying(folder.path()), Log::begin());
    let identity = Some((file("client.pem"), file("client.key")));
    let tls = Tls { ca: Some(file("ca.pem")), identity };
    let bus = connected(over_tls(&server, tls)).await;
    usable(&bus).await;
    std::fs::copy(file("next.pem"), file("client.pem")).unwrap();
    let (anew, stays) = ("it is connected anew", "do not belong together");
    until("a look at it", || [anew, stays].iter().any(|said| log.text().contains(said))).await;
    assert!(!log.text().contains(anew), "{}", log.text());
    published(&bus, &state("u", 2, 10)).await;
    std::fs::copy(file("next.key"), file("client.key")).unwrap();
    until("the next connection", || log.text().matches("the bus is connected").count() == 2).await;
    published(&bus, &state("u", 3, 10)).await;
}

#[tokio::test]
async fn tls_wants_the_right_authority_and_the_client_a_certificate() {
    let folder = certificates();
    let file = |name: &str| folder.path().join(name);
    let server = verifying(folder.path());
    let tls = |ca: PathBuf| Tls { ca: Some(ca), identity: Some((file("client.pem"), file("client.key"))) };
    let with = |tls: Tls| over_tls(&server, tls);
    usable(&connected(with(tls(file("ca.pem")))).await).await;

    let stranger = certificates();
    for wrong in [tls(stranger.path().join("ca.pem")), Tls { ca: Some(file("ca.pem")), identity: None }] {
        let (log, _guard) = Log::begin();
        let stop = Shutdown::new();
        let (refused, ()) = tokio::join!(soon("the stop", connect(with(wrong), &stop)), async {
            until("the refusal in the log", || !log.said().is_empty()).await;
            stop.cancel();
        });
        assert!(matches!(refused.unwrap_err(), ConnectError::Stopped));
        assert!(
            log.said()[0].starts_with("WARN the bus cannot be reached; trying on error="),
            "{:?}",
            log.said()
        );
    }
}

#[test]
fn authorities_of_the_system_that_cannot_be_loaded_keep_nobody_from_a_server_whose_authority_is_given() {
    // What a process finds in its environment it cannot be given while it runs.
    let of_this_crate = module_path!().split_once("::").unwrap().1;
    let test = format!("{of_this_crate}::tls_wants_the_right_authority_and_the_client_a_certificate");
    let mut run = std::process::Command::new(std::env::current_exe().unwrap());
    let run = run.args([test.as_str(), "--exact"]).env("SSL_CERT_FILE", "/nowhere/at/all").output().unwrap();
    let said = String::from_utf8(run.stdout).unwrap();
    assert!(run.status.success() && said.contains("1 passed"), "{said}");
}

/// A certificate of loopback that is that of an authority as well and has signed itself, as `openssl req -x509` makes one, and
/// its key.
fn own_authority(folder: &Path, name: &str) -> (PathBuf, PathBuf) {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
    let mut of = CertificateParams::new(vec!["127.0.0.1".into()]).unwrap();
    of.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let (certificate, file) = (folder.join(format!("{name}.pem")), folder.join(format!("{name}.key")));
    std::fs::write(&certificate, of.self_signed(&key).unwrap().pem()).unwrap();
    std::fs::write(&file, key.serialize_pem()).unwrap();
    (certificate, file)
}

#[tokio::test]
async fn a_server_is_trusted_whose_own_certificate_was_given_as_its_authority_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = own_authority(folder.path(), "server");
    let (other, _) = own_authority(folder.path(), "other");
    let server = Server::with(&format!("tls {{ cert_file: {certificate:?}, key_file: {key:?} }}"));
    let trusting = |ca: &Path| over_tls(&server, Tls { ca: Some(ca.to_owned()), identity: None });
    usable(&connected(trusting(&certificate)).await).await;

    let (log, _guard) = Log::begin();
    let stop = Shutdown::new();
    let (refused, ()) = tokio::join!(soon("the stop", connect(trusting(&other), &stop)), async {
        until("the refusal in the log", || !log.said().is_empty()).await;
        stop.cancel();
    });
    assert!(matches!(refused.unwrap_err(), ConnectError::Stopped));
}

#[tokio::test]
async fn a_server_whose_own_certificate_was_given_is_trusted_though_another_given_one_cannot_be_used() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = own_authority(folder.path(), "server");
    let (given, all) = (std::fs::read_to_string(&certificate).unwrap(), folder.path().join("all.pem"));
    let unusable = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    std::fs::write(&all, format!("{unusable}{given}")).unwrap();
    let server = Server::with(&format!("tls {{ cert_file: {certificate:?}, key_file: {key:?} }}"));
    let tls = Tls { ca: Some(all), identity: None };
    usable(&connected(over_tls(&server, tls)).await).await;
}

#[tokio::test]
async fn a_server_that_says_its_first_word_in_tls_is_spoken_to_so_and_reconnected_to_so() {
    let folder = certificates();
    let file = |name: &str| folder.path().join(name);
    let mut server = Server::with(&format!(
        "tls {{ cert_file: {:?}, key_file: {:?}, handshake_first: true }}",
        file("server.pem"),
        file("server.key"),
    ));
    let tls = Tls { ca: Some(file("ca.pem")), identity: None };
    let bus = connected(over_tls(&server, tls)).await;
    usable(&bus).await;
    server.kill();
    until("the loss", || !bus.is_connected()).await;
    server.restart();
    until("the next connection", || bus.is_connected()).await;
    usable(&bus).await;
}

#[tokio::test]
async fn of_a_server_that_says_its_first_word_in_tls_it_is_said_that_its_certificate_is_not_trusted() {
    let (folder, stranger) = (certificates(), certificates());
    let file = |name: &str| folder.path().join(name);
    let server = Server::with(&format!(
        "tls {{ cert_file: {:?}, key_file: {:?}, handshake_first: true }}",
        file("server.pem"),
        file("server.key"),
    ));
    let tls = Tls { ca: Some(stranger.path().join("ca.pem")), identity: None };
    let (log, _guard) = Log::begin();
    let stop = Shutdown::new();
    let refused = connect(over_tls(&server, tls), &stop);
    let (refused, ()) = tokio::join!(soon("the stop", refused), async {
        until("the refusal in the log", || !log.said().is_empty()).await;
        stop.cancel();
    });
    assert!(matches!(refused.unwrap_err(), ConnectError::Stopped));
    assert!(log.said()[0].contains("invalid peer certificate"), "{:?}", log.said());
}

#[tokio::test]
async fn a_user_who_may_be_answered_below_a_prefix_of_its_own_alone_has_the_bus_with_that() {
    let server = Server::with(
        "authorization { users: [ { user: runtime, password: right, permissions: { subscribe: { allow: \"_INBOX.runtime.>\" } } } ] }",
    );
    let credentials = Credentials::Password { user: "runtime".into(), password: secret("right") };
    let inbox_prefix = Some("_INBOX.runtime".to_owned());
    let access = Access { credentials, inbox_prefix, ..access(&server) };
    let (bus, mut deliveries) = ready(Config { access, ..config(&server) }).await;
    published(&bus, &state("u", 1, 10)).await;
    taken(&mut deliveries).await;
}
