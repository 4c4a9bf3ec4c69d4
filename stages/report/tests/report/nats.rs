//! Subjects of NATS, on a real `nats-server`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_nats::ConnectOptions;
use async_nats::jetstream::stream::{self, DiscardPolicy, Stream};
use loadtest_sim::nats::NatsServer;
use pipeline_bus::jetstream::{Access, Credentials, Secret, Tls};
use pipeline_core::{Key, NoMeter, Reason, SecretString, Shipment, Sink as _, StageError};
use serde_json::{Value, json};
use stages_report::nats::{Config, Format, Nats, SubjectPattern};

use crate::support::shipment;

/// For whatever must happen at all; only a failing test waits so long.
const DEADLINE: Duration = Duration::from_secs(60);
const SUBJECT: &str = "gitops.{kind}.{namespace}.{name}";

fn config(server: &NatsServer) -> Config {
    Config {
        access: Access {
            urls: vec![server.url()],
            timeout: DEADLINE / 2,
            credentials: Credentials::None,
            tls: None,
            inbox_prefix: None,
        },
        route: "delivery".to_owned(),
        subject: SubjectPattern::new(SUBJECT).unwrap(),
        format: Format::Json,
    }
}

async fn build(config: Config) -> Nats {
    config.build(Arc::new(NoMeter)).await.unwrap()
}

/// A report of an object, on its way out.
fn of(key: &str, body: &str) -> Shipment {
    let mut report = shipment(body, 1).report;
    report.key = Key::parse(key).unwrap();
    report.uid = key.into();
    Shipment::new(report, "ledger", "nats", 0)
}

async fn ship(sink: &Nats, one: &Shipment) -> Result<(), StageError> {
    let mut answers = sink.ship(std::slice::from_ref(one)).await;
    assert_eq!(answers.len(), 1);
    answers.remove(0)
}

/// Ships until it is taken, and gives what was said before.
async fn taken(sink: &Nats, one: &Shipment) -> Vec<StageError> {
    let mut refused = Vec::new();
    let work = async {
        while let Err(error) = ship(sink, one).await {
            refused.push(error);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(DEADLINE, work).await.is_ok(), "it is not taken: {refused:?}");
    refused
}

/// Ships until it is refused for this reason: there may be no connection yet, or no word of the server.
async fn refused(sink: &Nats, one: &Shipment, reason: Reason) -> StageError {
    let work = async {
        loop {
            match ship(sink, one).await {
                Ok(()) => panic!("it is taken"),
                Err(error) if error.reason() == reason => return error,
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    };
    tokio::time::timeout(DEADLINE, work).await.unwrap()
}

/// Ships until it is refused for this reason, in these words.
async fn refuses(sink: &Nats, one: &Shipment, reason: Reason, text: &str) {
    says(&refused(sink, one, reason).await, reason, text);
}

fn says(error: &StageError, reason: Reason, text: &str) {
    assert_eq!((error.reason(), error.to_string().as_str()), (reason, text));
    assert_eq!(error.is_retry(), reason != Reason::TooLarge);
}

/// A stream of what is published.
async fn stream(server: &NatsServer, config: stream::Config) -> Stream {
    stream_by(server, ConnectOptions::new(), config).await
}

/// The same, by somebody else who may do everything.
async fn stream_by(server: &NatsServer, who: ConnectOptions, config: stream::Config) -> Stream {
    let config = stream::Config { name: "OTHERS".to_owned(), ..config };
    let client = who.retry_on_initial_connect().connect(server.url()).await.unwrap();
    let context = async_nats::jetstream::new(client);
    let make = async {
        loop {
            match context.get_or_create_stream(config.clone()).await {
                Ok(stream) => return stream,
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    };
    tokio::time::timeout(DEADLINE, make).await.unwrap()
}

fn all() -> stream::Config {
    stream::Config { subjects: vec!["gitops.>".to_owned()], ..stream::Config::default() }
}

async fn count(stream: &Stream) -> u64 {
    let ask = async {
        loop {
            match stream.get_info().await {
                Ok(info) => return info.state.messages,
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    };
    tokio::time::timeout(DEADLINE, ask).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_is_a_message_on_its_objects_subject_under_its_key() {
    let server = NatsServer::start().await.unwrap();
    let stream = stream(&server, all()).await;
    let mut one = of("rollout/shop/web.v2", r#"{"object": {"weight": 1.50}}"#);
    one.epoch = Some(7);
    taken(&build(config(&server)).await, &one).await;
    let message = stream.get_raw_message(1).await.unwrap();
    assert_eq!(message.subject.as_str(), "gitops.rollout.shop.web=2Ev2");
    assert_eq!(message.payload, r#"{"data":{"object": {"weight": 1.50}}}"#);
    let trace = stages_report::traceparent(&one).unwrap();
    for (name, expected) in [
        ("Nats-Msg-Id", &*one.idempotency_key),
        ("Content-Type", "application/json"),
        ("traceparent", &trace),
        ("Fencing-Epoch", "7"),
    ] {
        assert_eq!(message.headers.get(name).unwrap().as_str(), expected, "{name}");
    }

    let mut ended = of("widgets.example.com//one", r#"{"object": {}}"#);
    ended.report.ends = true;
    let format = Format::CloudEvents { source: "/clusters/one".to_owned() };
    taken(&build(Config { format, ..config(&server) }).await, &ended).await;
    let message = stream.get_raw_message(2).await.unwrap();
    assert_eq!(message.subject.as_str(), "gitops.widgets=2Eexample=2Ecom.=.one");
    assert_eq!(message.headers.get("Content-Type").unwrap().as_str(), "application/cloudevents+json");
    assert!(message.headers.get("Fencing-Epoch").is_none());
    let event: Value = serde_json::from_slice(&message.payload).unwrap();
    let expected = json!({
        "specversion": "1.0", "id": &*ended.idempotency_key, "source": "/clusters/one",
        "type": "gitops-runtime.app.ended", "subject": "widgets.example.com//one",
        "traceparent": stages_report::traceparent(&ended), "datacontenttype": "application/json", "data": {"object": {}},
    });
    assert_eq!(event, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_stream_has_is_not_stored_twice_and_counts_as_taken() {
    let server = NatsServer::start().await.unwrap();
    let stream = stream(&server, all()).await;
    let one = of("rollout/shop/web", r#"{"object":1}"#);
    taken(&build(config(&server)).await, &one).await;
    // As after a restart of this process, which had not written down that it was taken.
    let again = build(config(&server)).await;
    taken(&again, &one).await;
    assert_eq!(count(&stream).await, 1);
    // The window is the stream's, and outlives the server.
    server.kill().await.unwrap();
    server.restart().await.unwrap();
    taken(&again, &one).await;
    assert_eq!(count(&stream).await, 1);
    taken(&again, &of("rollout/shop/web", r#"{"object":2}"#)).await;
    assert_eq!(count(&stream).await, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_under_load_loses_and_doubles_nothing() {
    let server = NatsServer::start().await.unwrap();
    let stream = stream(&server, all()).await;
    server.kill().await.unwrap();
    // It is built while nobody is there.
    let access = Access { timeout: Duration::from_secs(2), ..config(&server).access };
    let sink = Arc::new(build(Config { access, ..config(&server) }).await);
    let one = of("rollout/shop/first", "{}");
    let away = ship(&sink, &one).await.unwrap_err();
    says(
        &away,
        Reason::Unreachable,
        "publish to gitops.rollout.shop.first: the NATS server is not connected",
    );
    server.restart().await.unwrap();
    taken(&sink, &one).await;
    let load: Vec<_> = (0..200)
        .map(|number| {
            let sink = Arc::clone(&sink);
            tokio::spawn(async move {
                taken(&sink, &of(&format!("rollout/shop/web-{number}"), &format!("{{\"object\":{number}}}")))
                    .await
            })
        })
        .collect();
    server.kill().await.unwrap();
    server.restart().await.unwrap();
    for one in load {
        for error in one.await.unwrap() {
            assert!(error.is_retry(), "{error}");
        }
    }
    assert_eq!(count(&stream).await, 201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subject_that_no_stream_takes_is_said_with_the_cure_and_waited_for() {
    let server = NatsServer::start().await.unwrap();
    let sink = build(config(&server)).await;
    let one = of("rollout/shop/web", "{}");
    let text = "publish to gitops.rollout.shop.web: no stream takes the subject; make one (nats stream add NAME --subjects \
                'gitops.*.*.*'), or give the route a subject that one takes";
    refuses(&sink, &one, Reason::NotFound, text).await;

    // Whoever merely subscribes acknowledges nothing.
    let listener = async_nats::connect(server.url()).await.unwrap();
    let _subscribed = listener.subscribe("gitops.>").await.unwrap();
    listener.flush().await.unwrap();
    let access = Access { timeout: Duration::from_millis(300), ..config(&server).access };
    let impatient = build(Config { access, ..config(&server) }).await;
    let text = "publish to gitops.rollout.shop.web: no stream answered within 300ms; it is slow, or others subscribe to the \
                subject and no stream takes it (nats stream add NAME --subjects 'gitops.*.*.*')";
    refuses(&impatient, &one, Reason::Timeout, text).await;

    let stream = stream(&server, all()).await;
    taken(&sink, &one).await;
    assert_eq!(count(&stream).await, 1);
}

/// Who may do everything, and a user of whom `permissions` say what it may not.
fn users(permissions: &str) -> String {
    format!(
        "authorization {{ users: [ {{ user: all, password: all }}, {{ user: runtime, password: right, permissions: {{ \
         {permissions} }} }} ] }}"
    )
}

fn user(server: &NatsServer) -> Config {
    let password = Secret::Value(SecretString::from("right"));
    let credentials = Credentials::Password { user: "runtime".to_owned(), password };
    Config { access: Access { credentials, ..config(server).access }, ..config(server) }
}

fn of_all() -> ConnectOptions {
    ConnectOptions::with_user_and_password("all".to_owned(), "all".to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subject_that_is_forbidden_is_said_at_once_and_others_go_on() {
    let server = NatsServer::with(&users("publish: { deny: \"gitops.rollout.secret.>\" }")).await.unwrap();
    let stream = stream_by(&server, of_all(), all()).await;
    let sink = build(user(&server)).await;
    let text = "publish to gitops.rollout.secret.web: the NATS server forbids to publish to the subject; let its user publish \
                to gitops.*.*.*";
    refuses(&sink, &of("rollout/secret/web", "{}"), Reason::Forbidden, text).await;
    let both = [of("rollout/secret/web", "{}"), of("rollout/shop/web", "{}")];
    let answers = sink.ship(&both).await;
    says(answers[0].as_ref().unwrap_err(), Reason::Forbidden, text);
    assert!(answers[1].is_ok(), "{:?}", answers[1]);
    assert_eq!(count(&stream).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_who_may_not_be_answered_is_told_which_right_it_lacks_and_goes_on_when_it_has_it() {
    let server = NatsServer::with(&users("subscribe: { deny: \">\" }")).await.unwrap();
    let stream = stream_by(&server, of_all(), all()).await;
    let access = Access { timeout: Duration::from_secs(2), ..user(&server).access };
    let sink = build(Config { access, ..user(&server) }).await;
    let text = "publish to gitops.rollout.shop.web: the NATS server forbids to subscribe to answers; let its user subscribe \
                to _INBOX.>, or say in inboxPrefix below what it may";
    let one = of("rollout/shop/web", "{}");
    refuses(&sink, &one, Reason::Forbidden, text).await;
    // The server changes its mind, and leaves the connection as it is.
    server.change("subscribe: { deny: \">\" }", "subscribe: { allow: \">\" }").unwrap();
    server.reload().await.unwrap();
    taken(&sink, &one).await;
    assert_eq!(count(&stream).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_who_may_be_answered_below_a_prefix_of_its_own_alone_publishes_with_that() {
    let server = NatsServer::with(&users("subscribe: { allow: \"_INBOX_runtime.>\" }")).await.unwrap();
    let stream = stream_by(&server, of_all(), all()).await;
    let inbox_prefix = Some("_INBOX_runtime".to_owned());
    let access = Access { inbox_prefix, ..user(&server).access };
    let sink = build(Config { access, ..user(&server) }).await;
    taken(&sink, &of("rollout/shop/web", "{}")).await;
    assert_eq!(count(&stream).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_is_refused_is_followed_in_its_file_until_it_is_taken() {
    let server = NatsServer::with("authorization { token: right }").await.unwrap();
    let stream = stream_by(&server, ConnectOptions::with_token("right".to_owned()), all()).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "not-to-be-shown").unwrap();
    let credentials = Credentials::Token(Secret::File(file.path().to_owned()));
    let access = Access { credentials, ..config(&server).access };
    let sink = build(Config { access, ..config(&server) }).await;
    let one = of("rollout/shop/web", "{}");
    let text = "publish to gitops.rollout.shop.web: the NATS server refuses the credentials (token)";
    refuses(&sink, &one, Reason::Unauthorized, text).await;
    std::fs::write(file.path(), "right\n").unwrap();
    tokio::time::timeout(DEADLINE, sink.credentials_changed()).await.unwrap();
    taken(&sink, &one).await;
    assert_eq!(count(&stream).await, 1);

    // One that goes wrong leaves the connection as it is.
    std::fs::write(file.path(), "").unwrap();
    taken(&sink, &of("rollout/shop/other", "{}")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_too_large_is_refused_for_good_and_a_full_stream_is_waited_for() {
    let server = NatsServer::with("max_payload: 4096").await.unwrap();
    let limits =
        stream::Config { max_messages: 1, max_message_size: 1_024, discard: DiscardPolicy::New, ..all() };
    let stream = stream(&server, limits).await;
    let sink = build(config(&server)).await;
    let sized = |bytes: usize| of("rollout/shop/web", &format!("\"{}\"", "x".repeat(bytes)));
    for bytes in [2_000, 5_000] {
        let text = format!(
            "publish to gitops.rollout.shop.web: a message of {} bytes is larger than the NATS server or the stream takes; \
             raise max_payload of the server and the largest message of the stream, or lower resources.largest",
            bytes + "\"\"".len() + "{\"data\":}".len(),
        );
        refuses(&sink, &sized(bytes), Reason::TooLarge, &text).await;
    }
    taken(&sink, &sized(10)).await;
    let full = "publish to gitops.rollout.shop.web: the stream takes no more (full); raise its limits, or let it discard its \
                oldest messages";
    refuses(&sink, &sized(11), Reason::ServerError, full).await;
    stream.purge().await.unwrap();
    taken(&sink, &sized(11)).await;
}

/// An authority, and a certificate of a server on loopback that it has signed.
fn certificates(folder: &Path, authority: &str, server: &str) {
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
    let write = |name: &str, text: String| std::fs::write(folder.join(name), text).unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    write(authority, issuer.pem());
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["127.0.0.1".into()]).unwrap();
    write(&format!("{server}.pem"), certificate.signed_by(&key, &issuer).unwrap().pem());
    write(&format!("{server}.key"), key.serialize_pem());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_authority_is_trusted_as_soon_as_its_file_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    certificates(folder.path(), "right.pem", "server");
    certificates(folder.path(), "wrong.pem", "other");
    let (certificate, key) = (file("server.pem"), file("server.key"));
    let server =
        NatsServer::with(&format!("tls {{ cert_file: {certificate:?}, key_file: {key:?} }}")).await.unwrap();
    let ca = file("ca.pem");
    std::fs::copy(file("wrong.pem"), &ca).unwrap();
    let access = Access { tls: Some(Tls { ca: Some(ca.clone()), identity: None }), ..config(&server).access };
    let sink = build(Config { access, ..config(&server) }).await;
    let one = of("rollout/shop/web", "{}");
    assert_eq!(ship(&sink, &one).await.unwrap_err().reason(), Reason::Unreachable);
    std::fs::copy(file("right.pem"), &ca).unwrap();
    // There is a connection, and no stream.
    refused(&sink, &one, Reason::NotFound).await;
}

#[tokio::test]
async fn a_sink_without_its_files_or_servers_is_refused() {
    let server = NatsServer::start().await.unwrap();
    let refused = async |access: Access| {
        let error = Config { access, ..config(&server) }.build(Arc::new(NoMeter)).await.unwrap_err();
        error.to_string()
    };
    let credentials = Credentials::Token(Secret::File("/nowhere/at/all".into()));
    assert_eq!(
        refused(Access { credentials, ..config(&server).access }).await,
        "reading the credentials of a NATS server failed"
    );
    assert_eq!(
        refused(Access { urls: Vec::new(), ..config(&server).access }).await,
        "the addresses of a NATS server cannot be used"
    );
}
