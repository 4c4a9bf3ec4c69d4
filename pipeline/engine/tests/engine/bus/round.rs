//! What is published is what is delivered.

use futures::StreamExt as _;
use pipeline_bus::jetstream::Config;
use pipeline_bus::{Kind, Message, Payload, Published};
use pipeline_core::{Digest, EntityId, Fact, Version};

use crate::bus::world::{
    SOURCE, config, deleted, delivered, ended, published, ready, resource, result, state, taken,
};
use crate::server::Server;

const SIZES: [usize; 4] = [0, 900_000, 1_100_000, 10_000_000];

/// One of each kind and size.
fn messages() -> Vec<Message> {
    let of_size = |(at, bytes): (usize, usize)| {
        let uid = format!("uid {at}.*>\u{e9}");
        [
            state(&uid, 1, bytes),
            ended(&uid, 2, bytes),
            result(&uid, 3, EntityId::OBJECT, bytes),
            result(&uid, 3, resource(7), bytes),
            deleted(&uid, 4, Some(bytes)),
        ]
    };
    let mut all: Vec<Message> = SIZES.into_iter().enumerate().flat_map(of_size).collect();
    all.extend([deleted("unseen", 5, None), state("large", 6, 0).without_body()]);
    all
}

/// Publishes all, then takes all; those whose body is larger than `most` arrive without it.
async fn round(server: &Server, most: usize) {
    let (bus, mut deliveries) = ready(Config { max_bytes: 1 << 28, ..config(server) }).await;
    let all = messages();
    for (at, message) in (1..).zip(&all) {
        let whole = message.body().is_none_or(|body| body.len() <= most);
        assert_eq!(published(&bus, message).await, Published::Stored { sequence: at, whole });
    }
    for (at, message) in (1..).zip(all) {
        let delivery = delivered(&mut deliveries).await;
        assert_eq!((delivery.sequence, delivery.redelivered), (at, false));
        let subject = delivery.subject.unwrap();
        assert_eq!((subject.uid, subject.shard), (message.uid.clone(), 0));
        let fits = message.body().is_none_or(|body| body.len() <= most);
        let expected = if fits { message } else { message.without_body() };
        assert!(delivery.message == Ok(expected), "message {at} arrived as another one");
        delivery.acker.ack().await.unwrap();
    }
}

#[tokio::test]
async fn every_kind_and_size_arrives_and_what_is_too_large_as_key_and_version() {
    Box::pin(round(&Server::start(), 1_000_000)).await;
}

#[tokio::test]
async fn a_server_that_takes_more_is_given_more() {
    Box::pin(round(&Server::with("max_payload: 16MB"), usize::MAX)).await;
}

#[tokio::test]
async fn a_body_at_the_very_limit_is_sent_whole_or_not_at_all() {
    let server = Server::start();
    let (bus, mut deliveries) = ready(config(&server)).await;
    let limit = bus.show(SOURCE).await.unwrap().max_payload;
    assert_eq!(limit, 1 << 20);
    for (version, bytes) in
        (1..).zip([limit - 10_000, limit - 8_400, limit - 8_192, limit - 1, limit, limit + 1])
    {
        let message = state("u", version, bytes);
        let Published::Stored { whole, .. } = published(&bus, &message).await else {
            panic!("it was not stored")
        };
        let arrived = taken(&mut deliveries).await;
        assert_eq!(arrived.kind() == Kind::Change, whole, "{bytes}");
        assert!(whole == (bytes < limit - 8_300), "{bytes}");
    }
}

#[tokio::test]
async fn a_message_whose_facts_do_not_fit_goes_without_the_oldest() {
    let server = Server::with("max_payload: 64KB");
    let (bus, mut deliveries) = ready(config(&server)).await;
    let fact = |n: u64| Fact { id: Digest(n), body: vec![b'x'; 2_000].into() };
    let shown = Message { fact: Some(fact(64)), coalesced: (0..64).map(fact).collect(), ..state("u", 1, 10) };
    let gone = Message { payload: Payload::Deleted { body: None }, version: Version(2), ..shown.clone() };
    for message in [shown, gone] {
        assert!(matches!(published(&bus, &message).await, Published::Stored { .. }));
        let arrived = taken(&mut deliveries).await;
        let facts: Vec<u64> = arrived.coalesced.iter().chain(&arrived.fact).map(|fact| fact.id.0).collect();
        assert!(facts.len() >= 25, "as many as fit: {facts:?}");
        assert!(facts.iter().copied().eq(facts[0]..=64), "the newest of all: {facts:?}");
        assert_eq!(arrived.version, message.version);
    }
}

#[tokio::test]
async fn headers_say_what_a_message_is() {
    let server = Server::start();
    let (bus, _deliveries) = ready(config(&server)).await;
    let raw = async_nats::connect(server.url()).await.unwrap();
    let mut all = raw.subscribe("gitops-runtime.>").await.unwrap();
    raw.flush().await.unwrap();
    let messages = [
        state("u 1", 7, 10),
        deleted("u 1", 7, None),
        result("u 1", 7, resource(255), 3),
        state("u 1", 8, 2_000_000),
        state("u 1", 0, 0),
    ];
    let mut seen = Vec::new();
    for message in &messages {
        published(&bus, message).await;
        let arrived = crate::bus::world::soon("a message", all.next()).await.unwrap();
        let headers = arrived.headers.unwrap();
        let header = |name: &str| headers.get(name).map_or("none".to_owned(), |value| value.to_string());
        assert_eq!(header("key"), "ns/shop");
        assert_eq!(header("uid"), "u=201");
        assert_eq!(header("traceparent"), "00-000000000000abcd0000000000001234-0000000000001234-01");
        let tail = arrived.subject.strip_prefix("gitops-runtime.objects.0.u=201.").unwrap().to_owned();
        seen.push([tail, header("kind"), header("resourceversion"), header("Nats-Msg-Id")].join(" "));
    }
    assert_eq!(
        seen,
        [
            "state change 7 u=201:7",
            "once.7.deleted deleted 7 u=201:7:deleted",
            "state.00000000000000ff result 7 u=201:7:00000000000000ff:0000000000000007",
            "state overlarge 8 u=201:8",
            "state change 0 none",
        ]
    );
}
