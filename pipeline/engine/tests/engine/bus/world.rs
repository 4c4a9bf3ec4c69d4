//! What the tests share: messages, connections, deadlines.

use std::time::Duration;

use bytes::Bytes;
use pipeline_bus::jetstream::{Access, Config, Credentials, Deliveries, Delivery, JetStream, connect};
use pipeline_bus::{About, BusError, Durable, Keep, Message, Payload, Published, Subject};
use pipeline_core::{Change, Digest, EntityId, Event, Fact, Key, Shutdown, Timestamp, Version};

use crate::server::Server;

/// For whatever must happen at all; only a failing test waits so long.
pub(crate) const DEADLINE: Duration = Duration::from_secs(180);

pub(crate) const SOURCE: &str = "objects";

pub(crate) fn access(server: &Server) -> Access {
    Access {
        urls: vec![server.url()],
        timeout: Duration::from_secs(30),
        credentials: Credentials::None,
        tls: None,
        inbox_prefix: None,
    }
}

pub(crate) fn config(server: &Server) -> Config {
    Config {
        access: access(server),
        prefix: "gitops-runtime".to_owned(),
        replicas: 1,
        max_bytes: 1 << 30,
        reports_max_bytes: 256 << 20,
        duplicate_window: Duration::from_secs(120),
        ack_wait: Duration::from_secs(30),
        max_ack_pending: 1_000,
        heartbeat: Duration::from_secs(4),
    }
}

pub(crate) fn durable(shard: u32) -> Durable {
    Durable { group: "reporter".into(), source: SOURCE.into(), shard: Some(shard) }
}

/// Waits for what must happen.
pub(crate) async fn soon<T>(what: &str, work: impl Future<Output = T>) -> T {
    match tokio::time::timeout(DEADLINE, work).await {
        Ok(done) => done,
        Err(_) => panic!("{what} did not happen within {DEADLINE:?}"),
    }
}

pub(crate) async fn connected(config: Config) -> JetStream {
    soon("connecting", connect(config, &Shutdown::new())).await.unwrap()
}

/// Connected, with the stream and the durable of shard 0.
pub(crate) async fn ready(config: Config) -> (JetStream, Deliveries) {
    let bus = connected(config).await;
    bus.ensure(&[durable(0)]).await.unwrap();
    let deliveries = bus.consume(&durable(0), Shutdown::new()).unwrap();
    (bus, deliveries)
}

pub(crate) async fn delivered(deliveries: &mut Deliveries) -> Delivery {
    soon("a delivery", deliveries.next()).await.unwrap().unwrap()
}

pub(crate) async fn error(deliveries: &mut Deliveries) -> BusError {
    soon("an error", deliveries.next()).await.unwrap().unwrap_err()
}

/// The next message, acknowledged.
pub(crate) async fn taken(deliveries: &mut Deliveries) -> Message {
    let delivery = delivered(deliveries).await;
    delivery.acker.ack().await.unwrap();
    delivery.message.unwrap()
}

pub(crate) async fn published(bus: &JetStream, message: &Message) -> Published {
    bus.publish(&Subject::of(SOURCE, 0, message, Keep::of(message, None)), message).await.unwrap()
}

pub(crate) fn state(uid: &str, version: u64, bytes: usize) -> Message {
    let (key, change) = (Key::new("ns", "shop").unwrap(), Change::Applied { body: body(bytes) });
    let observed = Timestamp::from_millisecond(1_700_000_000_123).unwrap();
    let event = Event::watched(key, uid.into(), Version(version), change, observed);
    Message { trace: 0xabcd << 64 | 0x1234, ..Message::of(event) }
}

pub(crate) fn deleted(uid: &str, version: u64, bytes: Option<usize>) -> Message {
    Message { payload: Payload::Deleted { body: bytes.map(body) }, ..state(uid, version, 0) }
}

pub(crate) fn ended(uid: &str, version: u64, bytes: usize) -> Message {
    let end = |phase: &str| Fact { id: Digest::of(phase.as_bytes()), body: "done".into() };
    Message { fact: Some(end("Succeeded")), coalesced: vec![end("Failed")], ..state(uid, version, bytes) }
}

pub(crate) fn result(uid: &str, version: u64, entity: EntityId, bytes: usize) -> Message {
    let about = About { entity, report: "listed".into(), content: Digest(version) };
    Message { payload: Payload::Result { about, body: body(bytes) }, ..state(uid, version, 0) }
}

pub(crate) fn resource(id: u64) -> EntityId {
    EntityId(id)
}

fn body(bytes: usize) -> Bytes {
    Bytes::from((0..bytes).map(|at| b"{\"abc\":0}\xff"[at % 10]).collect::<Vec<u8>>())
}
