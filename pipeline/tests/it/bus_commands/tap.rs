//! `tap`: what is published, as it is published.

use std::process::Stdio;
use std::time::Duration;

use loadtest::nats::NatsServer;
use pipeline_core::Timestamp;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStderr, ChildStdout, Command};

use super::{CANARY, command, made, publish, report, state};
use crate::runtime::SOON;

/// Publishes bytes that no library of ours would.
async fn publish_raw(server: &NatsServer, subject: &str, bytes: &[u8]) {
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    let mut said = b"CONNECT {\"verbose\":false}\r\n".to_vec();
    said.extend_from_slice(format!("PUB {subject} {}\r\n", bytes.len()).as_bytes());
    said.extend_from_slice(bytes);
    said.extend_from_slice(b"\r\nPING\r\n");
    stream.write_all(&said).await.unwrap();
    let mut heard = Vec::new();
    let mut part = [0_u8; 4096];
    while !heard.windows(6).any(|window| window == b"PONG\r\n") {
        let read = tokio::time::timeout(SOON, stream.read(&mut part)).await.unwrap().unwrap();
        assert!(read > 0, "the server broke off: {}", String::from_utf8_lossy(&heard));
        heard.extend_from_slice(&part[..read]);
    }
}

/// A command that listens, from when it does.
struct Tap {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    errors: Lines<BufReader<ChildStderr>>,
}

impl Tap {
    async fn start(server: &NatsServer, more: &[&str]) -> Self {
        let url = server.url();
        let mut command = command(&[&["tap", "--bus", &url], more].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let errors = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut tap = Self { child, lines, errors };
        let said = tokio::time::timeout(SOON, tap.errors.next_line()).await.unwrap().unwrap();
        assert_eq!(said.as_deref(), Some("gitops-runtime: listening"));
        tap
    }

    async fn line(&mut self) -> String {
        tokio::time::timeout(SOON, self.lines.next_line()).await.unwrap().unwrap().unwrap()
    }

    async fn json(&mut self) -> Value {
        let mut line: Value = serde_json::from_str(&self.line().await).unwrap();
        let at = line.as_object_mut().unwrap().remove("at").unwrap();
        let at: Timestamp = at.as_str().unwrap().parse().unwrap();
        assert!(Timestamp::now().duration_since(at).as_secs_f64() < SOON.as_secs_f64() * 2.0);
        assert!(line["bytes"].as_u64().unwrap() > 0, "{line}");
        line
    }

    /// Its exit code, once it has ended by itself.
    async fn ended(mut self) -> Option<i32> {
        tokio::time::timeout(SOON, self.child.wait()).await.unwrap().unwrap().code()
    }
}

#[tokio::test]
async fn tap_follows_what_is_published_and_shows_no_body() {
    let server = NatsServer::start().await.unwrap();
    let bus = made(&server).await;
    let mut all = Tap::start(&server, &["--json", "--count", "5"]).await;
    let mut reports = Tap::start(&server, &["--source", "reports", "--count", "1"]).await;
    let mut shop = Tap::start(&server, &["--app", "argocd/shop", "--count", "2", "--json"]).await;
    let mut shard = Tap::start(&server, &["--shard", "4", "--count", "1", "--json"]).await;

    publish(&bus, "applications", 3, &state("shop", 7)).await;
    publish(&bus, "applications", 4, &state("web", 8)).await;
    publish_raw(&server, "gitops-runtime.applications.3.x.state", CANARY.as_bytes()).await;
    let newer = [b"\x81\xa6format\x09".as_slice(), CANARY.as_bytes()].concat();
    publish_raw(&server, "gitops-runtime.nowhere", &newer).await;
    publish(&bus, "reports", 3, &report("shop", 7)).await;

    let trace = "000000000000000000000000000000ab";
    let change = |name: &str, shard: u32, version: u64| {
        let mut line = all_of("applications", shard, name, version, trace);
        line["kind"] = "change".into();
        line
    };
    let mut reported = all_of("reports", 3, "shop", 7, trace);
    (reported["kind"], reported["report"]) = ("result".into(), "app".into());
    let lines = [
        change("shop", 3, 7),
        change("web", 4, 8),
        json!({"source": "applications", "shard": 3, "problem": "the message is garbage: it is no map"}),
        json!({"problem": "the message is of format 9, and the newest that is known is 2"}),
        reported.clone(),
    ];
    for expected in &lines {
        let mut line = all.json().await;
        line.as_object_mut().unwrap().remove("bytes");
        assert_eq!(&line, expected);
    }
    assert_eq!(all.ended().await, Some(0), "five are enough");

    let line = reports.line().await;
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words[1..6], ["reports", "3", "result", "app", "argocd/shop"], "{line}");
    assert_eq!((words[6], words[8], words[9]), ("7", "B", trace), "{line}");
    assert!(!line.contains(CANARY), "{line}");
    assert_eq!(reports.ended().await, Some(0));
    assert_eq!(
        [shop.json().await["source"].take(), shop.json().await["source"].take()],
        ["applications", "reports"]
    );
    assert_eq!(shop.ended().await, Some(0));
    assert_eq!(shard.json().await["app"], "argocd/web");
    assert_eq!(shard.ended().await, Some(0));

    // Listening changes nothing: both states wait for whoever consumes them.
    let stream = bus.show("applications").await.unwrap();
    assert_eq!(stream.durables.iter().map(|durable| durable.pending).sum::<u64>(), 3);
}

fn all_of(source: &str, shard: u32, name: &str, version: u64, trace: &str) -> Value {
    json!({
        "source": source, "shard": shard, "app": format!("argocd/{name}"), "resourceVersion": version, "trace": trace,
    })
}

#[tokio::test]
async fn tap_goes_on_where_the_server_comes_back_and_ends_when_it_is_told_to() {
    let server = NatsServer::start().await.unwrap();
    let bus = made(&server).await;
    let mut tap = Tap::start(&server, &[]).await;
    publish(&bus, "applications", 3, &state("shop", 7)).await;
    assert!(tap.line().await.contains("  argocd/shop  7  "));
    server.kill().await.unwrap();
    let lost = tokio::time::timeout(SOON, tap.errors.next_line()).await.unwrap().unwrap().unwrap();
    assert!(lost.contains("the connection to the bus is lost; trying on"), "{lost}");
    server.restart().await.unwrap();
    // When it listens again, nobody is told: something is published until it is heard.
    let deadline = tokio::time::Instant::now() + SOON;
    let line = loop {
        assert!(tokio::time::Instant::now() < deadline, "nothing is heard again");
        publish_raw(&server, "gitops-runtime.nowhere", b"x").await;
        if let Ok(line) = tokio::time::timeout(Duration::from_millis(50), tap.lines.next_line()).await {
            break line.unwrap().unwrap();
        }
    };
    assert!(line.contains("the message is garbage"), "{line}");
    let id = i32::try_from(tap.child.id().unwrap()).unwrap();
    let told = Command::new("kill").args(["-INT", &id.to_string()]).status().await.unwrap();
    assert!(told.success());
    assert_eq!(tap.ended().await, Some(0));

    let Tap { mut child, lines, errors: _errors } = Tap::start(&server, &[]).await;
    drop(lines);
    publish_raw(&server, "gitops-runtime.nowhere", b"x").await;
    let ended = tokio::time::timeout(SOON, child.wait()).await.unwrap().unwrap();
    assert_eq!(ended.code(), Some(0), "whoever read has read enough");
}
