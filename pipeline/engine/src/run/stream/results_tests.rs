use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use bytes::Bytes;
use pipeline_core::{Digest, EntityId, Key, Report, ReportKind, Timestamp, Version};

use super::*;
use pipeline_bus::jetstream::{Config, Credentials, Durable, JetStream, connect};
use pipeline_bus::{Payload, durable};
use pipeline_observe::metrics::{Metrics, MetricsConfig};

#[expect(dead_code, reason = "other tests kill it, and take its storage away")]
#[path = "../../../tests/bus/server.rs"]
mod server;

/// For whatever must happen at all; only a failing test waits so long.
const DEADLINE: Duration = Duration::from_secs(60);

/// Nine of them fill a stream of 100 kB.
fn report(resource: u64, version: u64) -> Acknowledged {
    let report = Report {
        key: Key::new("argocd", "shop").unwrap(),
        uid: "u".into(),
        version: Version(version),
        entity: EntityId(resource),
        kind: ReportKind::Resource,
        decision: Digest(version),
        content: Digest(version),
        owed: false,
        ends: false,
        fact: None,
        body: Bytes::from(vec![b'x'; 10_000]),
        trace: 0,
    };
    Acknowledged { report, at: Timestamp::UNIX_EPOCH }
}

fn counted(metrics: &Metrics, name: &str) -> u64 {
    let text = metrics.render();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("gitops_runtime_{name} ")));
    line.unwrap().parse().unwrap()
}

async fn published(jetstream: &JetStream, uid: &str) -> Published {
    let Acknowledged { report, at } = report(0, 1);
    let body = Payload::Change { body: report.body.slice(..10) };
    let change = Message { uid: uid.into(), payload: body, ..Message::of_report(&report, at) };
    jetstream.publish(&Subject::of("applications", 0, &change, Keep::Newest), &change).await.unwrap()
}

#[tokio::test]
async fn a_reader_that_never_acknowledges_costs_old_reports_and_nothing_else() {
    const SENT: u64 = 200;
    let server = server::Server::start();
    let config = Config {
        urls: vec![server.url()],
        prefix: "gitops-runtime".to_owned(),
        replicas: 1,
        max_bytes: 100_000,
        reports_max_bytes: 100_000,
        duplicate_window: Duration::from_secs(120),
        ack_wait: Duration::from_secs(30),
        max_ack_pending: 1_000,
        heartbeat: Duration::from_secs(4),
        timeout: DEADLINE / 2,
        credentials: Credentials::None,
        tls: None,
    };
    let jetstream = connect(config, &Shutdown::new()).await.unwrap();
    let slow = Durable { group: "slow".to_owned(), source: REPORTS.to_owned(), shard: None };
    jetstream.ensure(&[durable(0), slow.clone()]).await.unwrap();
    let metrics = Metrics::new(&MetricsConfig::new(0..1, "1.2.3"));
    let stream = Stream::new(jetstream.clone(), NonZeroU32::MIN, metrics.bus().clone());
    let (acknowledged, all) = mpsc::channel(WAITING);
    let sharding = Sharding::Jump { shards: NonZeroU32::MIN };
    let publishing = tokio::spawn(publish(stream, sharding, all, Shutdown::new()));

    // Of one resource in two there are two reports, one right after the other.
    for number in 0..SENT {
        acknowledged.send(report(number - number % 4 / 3, number)).await.unwrap();
    }
    drop(acknowledged);
    tokio::time::timeout(DEADLINE, publishing).await.unwrap().unwrap();
    assert_eq!(counted(&metrics, "bus_results_dropped_total"), 0);
    assert!(counted(&metrics, "bus_results_discarded_total") > 0);
    let held = jetstream.show().await.unwrap().reports.unwrap();
    assert!(held.messages >= 7 && held.bytes <= 100_000, "{held:?}");

    // Events go on.
    for uid in ["v", "w", "x"] {
        assert!(matches!(published(&jetstream, uid).await, Published::Stored { .. }), "{uid}");
    }

    // What is left are the newest, and of each resource its own newest.
    let mut left = BTreeMap::new();
    let mut deliveries = jetstream.consume(&slow, Shutdown::new()).unwrap();
    while (left.len() as u64) < held.messages {
        let next = tokio::time::timeout(DEADLINE, deliveries.next()).await.unwrap().unwrap().unwrap();
        let message = next.message.unwrap();
        let Payload::Result { about, .. } = message.payload else { panic!("no report") };
        let EntityId(id) = about.entity;
        assert_eq!(left.insert(id, message.version.0), None, "one of each resource");
    }
    assert_eq!(left.values().max(), Some(&(SENT - 1)));
    for (id, version) in left {
        assert_eq!(version, if id % 4 == 2 { id + 1 } else { id }, "resource {id}");
    }
}
