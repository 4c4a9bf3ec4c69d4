//! A subject of NATS as the sink of a route, on a real server.

use async_nats::jetstream::stream::{self, Stream};
use loadtest::nats::NatsServer;
use loadtest::process::Start;
use loadtest::sim::kube::Collection;
use loadtest::sim::{Simulation, wait_for};
use pipeline_core::Key;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{launch, named, put, rests, rollout, sent, world};
use crate::runtime::{PROGRAM, SOON, eventually, start};

/// A stream that takes what the route publishes; whoever reads it connects anew when the server was away.
async fn stream(server: &NatsServer) -> Stream {
    let options = async_nats::ConnectOptions::new().retry_on_initial_connect();
    let context = async_nats::jetstream::new(options.connect(server.url()).await.unwrap());
    let subjects = vec!["delivery.>".to_owned()];
    let wanted = stream::Config { name: "DELIVERY".to_owned(), subjects, ..stream::Config::default() };
    let make = async || context.get_or_create_stream(wanted.clone()).await;
    wait_for("a stream", make, Result::is_ok).await.unwrap()
}

/// Subject and object of each message, in order.
async fn stored(stream: &Stream) -> Vec<(String, Value)> {
    let Ok(info) = stream.get_info().await else { return Vec::new() };
    let mut all = Vec::new();
    for sequence in 1..=info.state.last_sequence {
        let Ok(message) = stream.get_raw_message(sequence).await else { return Vec::new() };
        let body: Value = serde_json::from_slice(&message.payload).unwrap();
        all.push((message.subject.to_string(), body["data"].clone()));
    }
    all
}

/// Waits until so many messages are stored.
async fn holds(stream: &Stream, messages: usize) -> Vec<(String, Value)> {
    let what = format!("{messages} messages");
    let all = wait_for(&what, async || stored(stream).await, |all| all.len() >= messages).await;
    assert_eq!(all.len(), messages, "{all:#?}");
    all
}

fn resources(sink: &Value) -> Value {
    json!({
        "kinds": ["rollouts.argoproj.io", "replicasets.apps"], "applications": false,
        "routes": [{"name": "delivery", "match": {"kinds": ["rollouts.argoproj.io"]}, "sink": sink}],
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_gets_each_report_once_and_a_server_that_is_away_holds_up_its_own_route_alone() {
    let simulation = world().await;
    let server = NatsServer::start().await.unwrap();
    let stream = stream(&server).await;
    server.kill().await.unwrap();
    let subject = "delivery.{kind}.{namespace}.{name}";
    let sink = json!({"kind": "nats", "url": server.url(), "subject": subject});
    let mut names: Vec<String> = (0..20).map(|number| format!("web-{number:02}")).collect();
    names.iter().for_each(|name| put(&simulation, rollout("shop", name, 3)));

    // Nobody is there.
    let runtime = launch(&simulation, &resources(&sink)).await;
    eventually("the first route's", || sent(&simulation.platform).len() == 20).await;
    let degraded = "degraded: route delivery: sink: the circuit has been open for ";
    runtime.answers("/healthz", |status, text| status == 200 && text.starts_with(degraded)).await;
    let line = runtime.says("the NATS server of a route cannot be reached; trying on").await;
    assert_eq!((&*line.level, line.field("route")), ("WARN", "delivery"));

    // It comes, is killed, and comes back.
    server.restart().await.unwrap();
    let mut all = holds(&stream, 20).await;
    all.sort_by(|one, other| one.0.cmp(&other.0));
    for ((subject, data), name) in all.iter().zip(&names) {
        assert_eq!(*subject, format!("delivery.rollout.shop.{name}"));
        assert_eq!(named(data), format!("Rollout/shop/{name}"));
    }
    rests(&runtime).await;
    server.kill().await.unwrap();
    put(&simulation, rollout("shop", "web-00", 4));
    put(&simulation, rollout("shop", "last.one", 1));
    assert!(simulation.kube.delete(Collection::Rollouts, &Key::new("shop", "web-01").unwrap()));
    eventually("the first route's changes", || sent(&simulation.platform).len() == 23).await;
    runtime.kill().await;
    let runtime = launch(&simulation, &resources(&sink)).await;
    server.restart().await.unwrap();
    let all = holds(&stream, 23).await;
    let mut newest: Vec<&(String, Value)> = all.iter().skip(20).collect();
    newest.sort_by(|one, other| one.0.cmp(&other.0));
    let told: Vec<(&str, String)> =
        newest.iter().map(|(subject, data)| (subject.as_str(), named(data))).collect();
    let expected = [
        ("delivery.rollout.shop.last=2Eone", "Rollout/shop/last.one"),
        ("delivery.rollout.shop.web-00", "Rollout/shop/web-00"),
        ("delivery.rollout.shop.web-01", "Rollout/shop/web-01 gone"),
    ];
    assert_eq!(told, expected.map(|(subject, name)| (subject, name.to_owned())));
    assert_eq!(newest[1].1["object"]["spec"]["replicas"], 4);
    rests(&runtime).await;
    runtime.stop().await;

    // Nothing is said again.
    names.push("very-last".to_owned());
    put(&simulation, rollout("shop", "very-last", 1));
    let runtime = launch(&simulation, &resources(&sink)).await;
    holds(&stream, 24).await;
    rests(&runtime).await;
    runtime.stop().await;
    holds(&stream, 24).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subject_that_no_stream_takes_is_said_in_the_log_with_its_cure() {
    let simulation = world().await;
    let server = NatsServer::start().await.unwrap();
    put(&simulation, rollout("shop", "web", 3));
    let sink =
        json!({"kind": "nats", "url": server.url(), "subject": "delivery.{kind}", "format": "cloudevents"});
    let runtime = launch(&simulation, &resources(&sink)).await;
    let line = runtime.says("reports are not taken").await;
    assert_eq!((&*line.level, line.field("route")), ("WARN", "delivery"));
    assert_eq!(
        line.field("error"),
        "publish to delivery.rollout: no stream takes the subject; make one (nats stream add NAME --subjects \
         'delivery.*'), or give the route a subject that one takes"
    );
    let stream = stream(&server).await;
    let all = holds(&stream, 1).await;
    assert_eq!((all[0].0.as_str(), named(&all[0].1)), ("delivery.rollout", "Rollout/shop/web".to_owned()));
    runtime.stop().await;
}

#[tokio::test]
async fn a_route_whose_credentials_are_not_there_is_refused_at_the_start() {
    let simulation: Simulation = world().await;
    let file = simulation.directory().join("empty");
    std::fs::write(&file, "\n").unwrap();
    let nowhere = "/nowhere/at/all";
    for (setting, path, why) in [
        ("tokenFile", nowhere, "read /nowhere/at/all: No such file or directory (os error 2)".to_owned()),
        ("caFile", nowhere, "read /nowhere/at/all: No such file or directory (os error 2)".to_owned()),
        ("nkeyFile", file.to_str().unwrap(), format!("{} is empty", file.display())),
    ] {
        let sink = json!({"kind": "nats", "url": "nats://127.0.0.1:1", "subject": "delivery", setting: path});
        let settings = json!({"resources": resources(&sink)});
        let Start { env, directory, .. } = start(&simulation, &settings);
        let output = tokio::process::Command::new(PROGRAM)
            .arg("resource-reporter")
            .env_clear()
            .envs(env)
            .current_dir(directory)
            .output();
        let output = timeout(SOON, output).await.unwrap().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        let expected = format!(
            "gitops-runtime: route delivery (settings under `resources.routes`): sink.{setting}: {why}"
        );
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert_eq!(said.lines().last(), Some(expected.as_str()), "{said}");
    }
}
