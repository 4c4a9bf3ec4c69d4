//! What on a stream is no message, or too large for one.

use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::HeaderMap;
use pipeline_engine::run::Config;

use crate::fakes::{Cluster, Enricher, Receiver, key};
use crate::running::{Running, one_shard, start};

fn unreadable(engine: &Running, reason: &str) -> u64 {
    let text = engine.metrics.render();
    let series = format!("gitops_runtime_bus_unreadable_total{{reason=\"{reason}\"}} ");
    let line = text.lines().find_map(|line| line.strip_prefix(series.as_str()));
    line.unwrap_or_else(|| panic!("there is no {series}")).parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn garbage_on_every_subject_is_counted_and_kept_aside_and_stops_nothing() {
    let cluster = Cluster::new();
    cluster.put("app", 1);
    let engine = start(one_shard(), cluster, Enricher::default(), Receiver::new());
    engine.until("reported", |counts| counts.acked == 1).await;
    let subjects = ["u.state", "u.once.7", "u.once.7.deleted", "u.state.object", "", "a.b.c.d.e.f.g"];
    let mut sent = 0;
    for (number, subject) in subjects.iter().enumerate() {
        let subject = format!("gitops-runtime.objects.0.{subject}");
        for bytes in [Vec::new(), vec![0xc1; 900 << 10], b"\x80".to_vec()] {
            let subject = format!("{}.{number}", subject.trim_end_matches('.'));
            engine.bus.publish(subject, HeaderMap::new(), bytes).await;
            sent += 1;
            // Each takes the place of the one before it, if that is not taken yet.
            engine.until("counted", |_| unreadable(&engine, "garbage") == sent).await;
        }
    }
    assert_eq!(engine.bus.aside().await, sent, "kept aside");
    engine.cluster.put("app", 2);
    engine.until("reported", |counts| counts.acked == 2).await;
    assert_eq!(engine.receiver.came().len(), 2);
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_message_of_a_newer_format_is_kept_aside_and_its_object_read_again() {
    let cluster = Cluster::new();
    let engine = start(one_shard(), cluster, Enricher::default(), Receiver::new());
    engine.until("listed", |_| engine.health.listed()).await;
    engine.cluster.put_unwatched("app", 1, 5);
    let mut headers = HeaderMap::new();
    headers.insert("key", key("app").as_str());
    headers.insert("uid", "app-1");
    headers.insert("resourceversion", "5");
    // A map of one field: `format` is 3.
    let newer = b"\x81\xa6format\x03".to_vec();
    engine.bus.publish("gitops-runtime.objects.0.app-1.state".to_owned(), headers, newer).await;
    engine.until("reported", |counts| counts.acked == 1).await;
    assert_eq!((unreadable(&engine, "newer"), unreadable(&engine, "garbage")), (1, 0));
    assert_eq!(engine.bus.aside().await, 1);
    assert_eq!(engine.receiver.newest(), [(key("app"), 5)].into());
    engine.end().await;
}

/// The server takes 1 MiB: what is larger travels as its key and version.
#[tokio::test(start_paused = true)]
async fn objects_of_any_size_are_reported() {
    let cluster = Cluster::new();
    let engine =
        start(Config { queue_bytes: 64 << 20, ..one_shard() }, cluster, Enricher::default(), Receiver::new());
    engine.until("listed", |_| engine.health.listed()).await;
    for (version, (bytes, reads)) in
        [(0, 0), (900 << 10, 0), (1_100_000, 1), (10_000_000, 1)].into_iter().enumerate()
    {
        let before = engine.cluster.reads.load(Ordering::SeqCst);
        engine.cluster.padded.store(bytes, Ordering::SeqCst);
        let version = version as u64 + 1;
        engine.cluster.put("app", version);
        engine.until("reported", |counts| counts.acked == version).await;
        assert_eq!(engine.cluster.reads.load(Ordering::SeqCst) - before, reads, "{bytes} bytes");
        assert_eq!(engine.receiver.newest(), [(key("app"), version)].into());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    engine.end().await;
}
