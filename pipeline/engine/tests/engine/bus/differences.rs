//! What stands there and differs is said, and never changed.

use std::time::Duration;

use async_nats::jetstream::consumer::pull;
use async_nats::jetstream::stream;
use pipeline_bus::Durable;
use pipeline_bus::jetstream::{Config, Difference, DurableShow, Ensured, StreamShow};

use crate::bus::world::{SOURCE, config, connected, durable, published, state};
use crate::server::{Server, client, version};

fn said(differences: &[Difference]) -> Vec<String> {
    differences.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn what_is_absent_is_made_once_and_is_then_as_it_should_be() {
    let server = Server::start();
    let bus = connected(config(&server)).await;
    let all = Durable { group: "a.b".into(), source: "reports".into(), shard: None };
    let durables = [durable(0), durable(1), all];
    assert_eq!(
        said(&bus.check(&durables).await.unwrap()),
        [
            "stream gitops-runtime_objects is absent, and should be present",
            "durable reporter_objects_0 is absent, and should be present",
            "durable reporter_objects_1 is absent, and should be present",
            "stream gitops-runtime_reports is absent, and should be present",
            "durable a=2Eb_reports is absent, and should be present",
        ]
    );
    assert_eq!(bus.show(SOURCE).await.unwrap().stream, None, "asking made nothing");
    let created = [
        "stream gitops-runtime_objects",
        "durable reporter_objects_0",
        "durable reporter_objects_1",
        "stream gitops-runtime_reports",
        "durable a=2Eb_reports",
    ];
    let made = bus.ensure(&durables).await.unwrap();
    assert_eq!(made, Ensured { created: created.map(str::to_owned).to_vec(), differences: Vec::new() });
    assert_eq!(bus.ensure(&durables).await.unwrap(), Ensured::default());
    assert_eq!(bus.check(&durables).await.unwrap(), []);
}

#[tokio::test]
async fn two_that_make_it_at_once_agree() {
    let server = Server::start();
    let (one, other) = (connected(config(&server)).await, connected(config(&server)).await);
    let durables: Vec<Durable> = (0..8).map(durable).collect();
    let (one, other) = tokio::join!(one.ensure(&durables), other.ensure(&durables));
    assert_eq!((one.unwrap().differences, other.unwrap().differences), (Vec::new(), Vec::new()));
}

#[tokio::test]
async fn each_setting_that_differs_is_listed() {
    let server = Server::start();
    let raw = client(&server.url()).await;
    let other = raw
        .create_stream(stream::Config {
            name: "gitops-runtime_objects".into(),
            subjects: vec!["gitops-runtime.>".into(), "more".into()],
            max_bytes: 1_000,
            max_messages_per_subject: 2,
            max_age: Duration::from_secs(60),
            duplicate_window: Duration::from_secs(30),
            discard: stream::DiscardPolicy::New,
            discard_new_per_subject: true,
            ..stream::Config::default()
        })
        .await
        .unwrap();
    let named = |name: &str| pull::Config { durable_name: Some(name.into()), ..pull::Config::default() };
    other
        .create_consumer(pull::Config {
            filter_subject: "gitops-runtime.objects.>".into(),
            ack_wait: Duration::from_secs(1),
            max_ack_pending: 5,
            max_deliver: 3,
            max_batch: 10,
            ..named("reporter_objects_0")
        })
        .await
        .unwrap();
    for name in ["reporter_objects_7", "reporter_objects_x", "operator_objects_7"] {
        other.create_consumer(named(name)).await.unwrap();
    }
    let bus = connected(config(&server)).await;
    let expected = [
        "stream gitops-runtime_objects: subjects is gitops-runtime.>, more, and should be gitops-runtime.objects.>",
        "stream gitops-runtime_objects: retention is limits, and should be interest",
        "stream gitops-runtime_objects: discard_new_per_subject is true, and should be false",
        "stream gitops-runtime_objects: max_msgs_per_subject is 2, and should be 1",
        "stream gitops-runtime_objects: max_bytes is 1000, and should be 1073741824",
        "stream gitops-runtime_objects: max_age is 60s, and should be none",
        "stream gitops-runtime_objects: duplicate_window is 30s, and should be 120s",
        "durable reporter_objects_0: filter_subject is gitops-runtime.objects.>, and should be gitops-runtime.objects.0.>",
        "durable reporter_objects_0: ack_wait is 1s, and should be 30s",
        "durable reporter_objects_0: max_deliver is 3, and should be none",
        "durable reporter_objects_0: max_ack_pending is 5, and should be 1000",
        "durable reporter_objects_0: max_batch is 10, and should be none",
        "durable reporter_objects_7 is present, and should be absent",
        "stream gitops-runtime_reports is absent, and should be present",
    ];
    assert_eq!(said(&bus.check(&[durable(0)]).await.unwrap()), expected);
    let ensured = bus.ensure(&[durable(0)]).await.unwrap();
    assert_eq!(
        (said(&ensured.differences).as_slice(), ensured.created.len()),
        (expected.map(str::to_owned).as_slice(), 0)
    );
    assert_eq!(said(&bus.check(&[durable(0)]).await.unwrap()), expected, "nothing was changed");
}

#[tokio::test]
async fn what_stands_there_is_shown() {
    let server = Server::start();
    let bus = connected(Config { max_bytes: 5_000, ..config(&server) }).await;
    bus.ensure(&[durable(1), durable(0)]).await.unwrap();
    published(&bus, &state("u", 1, 10)).await;
    published(&bus, &state("u", 2, 10)).await;
    let show = bus.show(SOURCE).await.unwrap();
    assert_eq!((show.server, show.max_payload), (version(), 1 << 20));
    let stream = show.stream.unwrap();
    let bytes = stream.bytes;
    assert!((200..500).contains(&bytes), "{bytes}");
    assert_eq!(
        stream,
        StreamShow {
            name: "gitops-runtime_objects".into(),
            messages: 1,
            bytes,
            max_bytes: 5_000,
            first: 2,
            last: 2
        }
    );
    let shown = |shard: u32, pending| DurableShow {
        name: format!("reporter_objects_{shard}"),
        filter: format!("gitops-runtime.objects.{shard}.>"),
        pending,
        in_flight: 0,
        redelivered: 0,
        waiting: 0,
    };
    assert_eq!(show.durables, [shown(0, 1), shown(1, 0)]);
}
