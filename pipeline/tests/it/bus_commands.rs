//! The commands of the bus, as child processes of their own, on a real `nats-server`.

mod tap;

use std::process::{Output, Stdio};
use std::time::Duration;

use loadtest::nats::NatsServer;
use pipeline_bus::jetstream::{Access, Config, Credentials, Expect, JetStream, LEASES, LEDGER, connect};
use pipeline_bus::{About, Durable, Keep, Message, Payload, Published, Refusal, Subject};
use pipeline_core::{Digest, EntityId, Key, Shutdown, Timestamp, Version};
use pipeline_ownership::{Presence, Replica};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::runtime::{PROGRAM, SOON};

/// What no message may show.
const CANARY: &str = "canary-5b1f";

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).env_clear().env("HOSTNAME", "host").kill_on_drop(true).stdin(Stdio::null());
    command
}

/// Exit code, standard output and standard error.
async fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    finished(command(arguments)).await
}

async fn finished(mut command: Command) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } =
        tokio::time::timeout(SOON, command.output()).await.unwrap().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

pub(crate) async fn connected(server: &NatsServer) -> JetStream {
    connected_for(server, 1 << 30).await
}

/// Connected to make a stream of events of at most so many bytes.
async fn connected_for(server: &NatsServer, max_bytes: u64) -> JetStream {
    let (urls, credentials) = (vec![server.url()], Credentials::None);
    let config = Config {
        access: Access { urls, timeout: SOON, credentials, tls: None, inbox_prefix: None },
        prefix: "gitops-runtime".to_owned(),
        replicas: 1,
        max_bytes,
        reports_max_bytes: 256 << 20,
        duplicate_window: Duration::from_secs(120),
        ack_wait: Duration::from_secs(10),
        max_ack_pending: 1_000,
        heartbeat: Duration::from_secs(4),
    };
    tokio::time::timeout(SOON, connect(config, &Shutdown::new())).await.unwrap().unwrap()
}

/// Everything that a reporter with the default settings makes.
async fn made(server: &NatsServer) -> JetStream {
    made_on(connected(server).await).await
}

async fn made_on(bus: JetStream) -> JetStream {
    let of = |shard| Durable {
        group: "reporter".to_owned(),
        source: "applications".to_owned(),
        shard: Some(shard),
    };
    let durables: Vec<Durable> = (0..32).map(of).collect();
    assert_eq!(bus.ensure(&durables).await.unwrap().differences, []);
    for bucket in [LEASES, LEDGER] {
        assert_eq!(bus.bucket(bucket).ensure().await.unwrap().differences, []);
    }
    bus
}

fn message(name: &str, version: u64, payload: Payload) -> Message {
    Message {
        key: Key::new("argocd", name).unwrap(),
        uid: format!("uid-of-{name}").into(),
        version: Version(version),
        observed: Timestamp::now(),
        trace: 0xab,
        fact: None,
        coalesced: Vec::new(),
        labels: pipeline_core::ObjectLabels::default(),
        again: false,
        payload,
    }
}

fn state(name: &str, version: u64) -> Message {
    message(name, version, Payload::Change { body: CANARY.into() })
}

fn report(name: &str, version: u64) -> Message {
    let about = About { entity: EntityId::OBJECT, report: "app".into(), content: Digest(version) };
    message(name, version, Payload::Result { about, body: CANARY.into() })
}

async fn publish(bus: &JetStream, source: &str, shard: u32, message: &Message) {
    bus.publish(&Subject::of(source, shard, message, Keep::Newest), message).await.unwrap();
}

#[tokio::test]
async fn check_tells_what_is_absent_and_what_differs() {
    let server = NatsServer::start().await.unwrap();
    let url = server.url();
    let check = |more: &'static [&'static str]| {
        let url = url.clone();
        async move { run(&[&["bus", "check", "--bus", &url], more].concat()).await }
    };
    let (code, said, error) = check(&[]).await;
    assert_eq!((code, error.as_str()), (Some(1), ""), "{said}");
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 2 + 32 + 2, "{said}");
    for line in [
        "bus: stream gitops-runtime_applications is absent, and should be present",
        "bus: stream gitops-runtime_reports is absent, and should be present",
        "bus: durable reporter_applications_31 is absent, and should be present",
        "bus: bucket KV_gitops-runtime_leases is absent, and should be present",
        "bus: bucket KV_gitops-runtime_ledger is absent, and should be present",
    ] {
        assert!(lines.contains(&line), "{line} is not in\n{said}");
    }

    let bus = made(&server).await;
    assert_eq!(check(&[]).await, (Some(0), "bus: ok\n".to_owned(), String::new()));
    assert_eq!(check(&["--json"]).await, (Some(0), "{\"differences\":[]}\n".to_owned(), String::new()));

    let (code, said, _) = check(&["--set", "bus.maxBytes=2Gi"]).await;
    let differs =
        "bus: stream gitops-runtime_applications: max_bytes is 1073741824, and should be 2147483648\n";
    assert_eq!((code, said.as_str()), (Some(1), differs));
    let (code, said, _) = check(&["--set", "bus.maxBytes=2Gi", "--json"]).await;
    let said: Value = serde_json::from_str(&said).unwrap();
    let difference = json!({
        "what": "stream gitops-runtime_applications: max_bytes", "is": "1073741824", "should": "2147483648",
    });
    assert_eq!((code, said), (Some(1), json!({"differences": [difference]})));

    // What refuses shards to replicas is told, and who says that it was refused.
    let (ledger, leases) = (bus.bucket(LEDGER), bus.bucket(LEASES));
    let newer = r#"{"format":9,"epoch":1,"ledger":"x","sharding":"jump:32"}"#;
    ledger.put("claim.platform.0", newer.into(), Expect::Anything).await.unwrap();
    let presence =
        Presence { replica: Replica::new("host.1").unwrap(), until: Timestamp::now(), refused: vec![0, 7] };
    leases.put("member.host.1", presence.encode().into(), Expect::Anything).await.unwrap();
    let (code, said, _) = check(&[]).await;
    let refusals = "bus: claim of shard 0 of the ledger: format is 9, and should be 2 or less\n\
                    bus: replica host.1 is refused shard 0 and 7, and should be refused none\n";
    assert_eq!((code, said.as_str()), (Some(1), refusals));
    ledger.remove("claim.platform.0", Expect::Anything).await.unwrap();
    leases.remove("member.host.1", Expect::Anything).await.unwrap();

    // Who has fewer shards is told of durables that hold back what nobody consumes.
    let (code, said, _) = check(&["--set", "reporter.sharding.shards=31"]).await;
    let stranger = "bus: durable reporter_applications_31 is present, and should be absent\n";
    assert_eq!((code, said.as_str()), (Some(1), stranger));
    let (code, said, _) = check(&["--set", "bus.prefix=other"]).await;
    assert_eq!(code, Some(1));
    assert!(
        said.contains("stream other_applications is absent") && said.contains("KV_other_leases"),
        "{said}"
    );
}

#[tokio::test]
async fn check_names_the_durable_for_which_a_stream_of_events_is_full() {
    let server = NatsServer::start().await.unwrap();
    let url = server.url();
    let bus = made_on(connected_for(&server, 1 << 20).await).await;
    let check = async || run(&["bus", "check", "--bus", &url, "--set", "bus.maxBytes=1Mi"]).await;
    publish(&bus, "applications", 2, &state("shop", 1)).await;
    assert_eq!(check().await, (Some(0), "bus: ok\n".to_owned(), String::new()));

    let large = || Payload::Change { body: vec![b' '; 100_000].into() };
    let mut stored = 0;
    loop {
        let message = message(&format!("web-{stored}"), 1, large());
        let subject = Subject::of("applications", 3, &message, Keep::Newest);
        match bus.publish(&subject, &message).await.unwrap() {
            Published::Stored { .. } => stored += 1,
            refused => {
                assert_eq!(refused, Published::Refused(Refusal::Full));
                break;
            }
        }
    }
    let (code, said, _) = check().await;
    let begins = "bus: stream gitops-runtime_applications is full (";
    let ends = format!(
        " of 1048 kB), so that it refuses what is watched: durable reporter_applications_3 is furthest behind, by \
         {stored} messages, and nobody consumes it, and should be read in time: see why that durable is not, remove it if \
         nobody is to read it, or raise bus.maxBytes and the stream's max_bytes\n"
    );
    assert!(code == Some(1) && said.starts_with(begins) && said.ends_with(&ends), "{code:?} {said}\n{ends}");
    let (code, said, _) = run(&["bus", "show", "--bus", &url]).await;
    let line = format!(
        "\nit is full and refuses what is watched: durable reporter_applications_3 is furthest behind, by {stored} messages, \
         and nobody consumes it\n"
    );
    assert!(code == Some(0) && said.contains(&line), "{said}");
}

#[tokio::test]
async fn check_tells_that_a_server_takes_too_small_messages() {
    let server = NatsServer::with("max_payload: 256KB").await.unwrap();
    made(&server).await;
    let (code, said, _) = run(&["bus", "check", "--bus", &server.url()]).await;
    let small = "bus: server: max_payload is 262144, and should be 524288 or more\n";
    assert_eq!((code, said.as_str()), (Some(1), small));
}

#[tokio::test]
async fn show_tells_what_waits_and_for_whom() {
    let server = NatsServer::start().await.unwrap();
    let url = server.url();
    let (code, said, _) = run(&["bus", "show", "--bus", &url]).await;
    assert_eq!(code, Some(0));
    assert!(said.ends_with("there is no stream: a reporter makes it when it starts\n"), "{said}");

    let bus = made(&server).await;
    publish(&bus, "applications", 3, &state("shop", 7)).await;
    publish(&bus, "applications", 3, &state("web", 8)).await;
    // Nobody consumes it, so nobody keeps it.
    publish(&bus, "reports", 3, &report("web", 8)).await;
    let (code, said, error) = run(&["bus", "show", "--bus", &url]).await;
    assert_eq!((code, error.as_str()), (Some(0), ""), "{said}");
    assert!(
        said.starts_with("nats-server 2.")
            && said.contains("\nstream gitops-runtime_applications: 2 messages, "),
        "{said}"
    );
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let row =
        said.lines().map(words).find(|words| words.first().is_some_and(|it| it.ends_with("applications_3")));
    assert_eq!(row.unwrap()[1..], ["2", "0", "0", "no"], "{said}");
    assert!(
        said.lines().any(|line| words(line)[..].starts_with(&["KV_gitops-runtime_ledger".to_owned()])),
        "{said}"
    );
    assert!(!said.contains(CANARY));

    let mut named = command(&["bus", "show", "--json"]);
    named.env("GITOPS_RUNTIME_BUS__URL", &url);
    let (_, said, _) = finished(named).await;
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&said["stream"]["messages"], &said["reports"]["messages"]), (&json!(2), &json!(0)));
    assert_eq!(said["durables"].as_array().unwrap().len(), 32);
    let durable = &said["durables"].as_array().unwrap()[0];
    assert_eq!(durable["name"], "reporter_applications_0");
    assert_eq!(durable["filter"], "gitops-runtime.applications.0.>");
    assert_eq!([&durable["pending"], &durable["unacknowledged"], &durable["waiting"]], [0, 0, 0]);
    assert_eq!(said["buckets"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn each_refusal_says_what_to_do() {
    let server = NatsServer::with("authorization { user: reporter, password: right }").await.unwrap();
    let url = server.url();
    for arguments in [&["bus", "check"][..], &["bus", "show"], &["tap"]] {
        let refused = |more: Vec<String>| {
            let all: Vec<String> = arguments.iter().map(|&text| text.to_owned()).chain(more).collect();
            async move {
                let all: Vec<&str> = all.iter().map(String::as_str).collect();
                let (code, out, error) = run(&all).await;
                assert_eq!((code, out.as_str()), (Some(1), ""), "{error}");
                error
            }
        };
        let none = "gitops-runtime: there is no bus: set bus.url, or give --bus nats://nats:4222\n";
        assert_eq!(refused(Vec::new()).await, none);
        let away = refused(vec!["--bus".into(), "nats://127.0.0.1:1".into()]).await;
        let expected = "gitops-runtime: connect to nats://127.0.0.1:1: is it running? give --bus as the reporter has it: no server \
                        of the bus can be reached: ";
        assert!(away.starts_with(expected), "{away}");
        let refused_by = refused(vec!["--bus".into(), url.clone()]).await;
        let expected = format!(
            "gitops-runtime: connect to {url}: set those that the server takes, see `bus`: the bus refuses the credentials of this \
             runtime (none)\n"
        );
        assert_eq!(refused_by, expected);
        let secret = refused(vec!["--bus".into(), format!("nats://reporter:{CANARY}@127.0.0.1:1")]).await;
        let expected = "config: bus.url: must hold no user and no password; give user and passwordFile, or tokenFile, \
                        beside it (from --bus)";
        assert!(secret.contains(expected) && !secret.contains(CANARY), "{secret}");
    }
    let (code, _, error) = run(&["tap", "--source", "report"]).await;
    assert_eq!(code, Some(2));
    assert!(error.contains("[possible values: applications, changes, reports]"), "{error}");
    let (code, _, error) = run(&["tap", "--count", "0"]).await;
    assert_eq!(code, Some(2), "{error}");

    let mut right = command(&["tap", "--bus", &url, "--set", "bus.user=reporter"]);
    right.env("GITOPS_RUNTIME_BUS__PASSWORD", "right");
    let (code, _, error) = finished(right).await;
    let none = "gitops-runtime: listen to the bus: a reporter makes the stream when it starts: the bus has no stream \
                gitops-runtime_reports\n";
    assert_eq!((code, error.as_str()), (Some(1), none));
}

#[tokio::test]
async fn files_of_credentials_are_read_and_named_where_they_cannot_be() {
    let server = NatsServer::with("authorization { token: right }").await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let show = |setting: String| {
        let url = server.url();
        async move { run(&["bus", "show", "--bus", &url, "--set", &setting]).await }
    };
    let (right, wrong) = (file("right", "right\n"), file("wrong", CANARY));
    let (code, said, error) = show(format!("bus.tokenFile={right}")).await;
    assert_eq!((code, error.as_str()), (Some(0), ""), "{said}");
    let (code, _, error) = show(format!("bus.tokenFile={wrong}")).await;
    assert!(
        code == Some(1) && error.contains("the bus refuses the credentials of this runtime (token)"),
        "{error}"
    );
    assert!(!error.contains(CANARY));
    for name in ["tokenFile", "credentialsFile", "nkeyFile", "caFile"] {
        let (code, _, error) = show(format!("bus.{name}=/nowhere")).await;
        let expected =
            format!("gitops-runtime: bus.{name}: read /nowhere: No such file or directory (os error 2)\n");
        assert_eq!((code, error), (Some(1), expected));
    }
    let (code, _, error) = show(format!("bus.nkeyFile={wrong}")).await;
    let expected =
        format!("gitops-runtime: bus.nkeyFile: {wrong} holds no seed of a user, which begins with SU\n");
    assert_eq!((code, error), (Some(1), expected));
    let empty = file("empty", "\n");
    let (_, _, error) = show(format!("bus.tokenFile={empty}")).await;
    assert_eq!(error, format!("gitops-runtime: bus.tokenFile: {empty} is empty\n"));
}
