//! The server goes and comes back, with and without what it stored.

use std::collections::BTreeSet;
use std::time::Duration;

use pipeline_bus::jetstream::JetStream;
use pipeline_bus::{Bus as _, BusError, Delivered, Keep, Message, Published, Subject};
use pipeline_core::Shutdown;
use tokio::sync::mpsc;

use crate::bus::world::{
    SOURCE, config, connected, delivered, durable, error, published, ready, soon, state, taken,
};
use crate::server::{Server, client};

async fn away(bus: &JetStream) {
    let lost = async {
        while bus.is_connected() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    soon("the end of the connection", lost).await;
}

async fn back(bus: &JetStream) {
    let found = async {
        while !bus.is_connected() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    soon("the next connection", found).await;
}

async fn tried(bus: &JetStream, message: &Message) -> Result<Published, BusError> {
    bus.publish(&Subject::of(SOURCE, 0, message, Keep::Newest), message).await
}

/// What a publish for a shard found: the sequence of the message.
async fn stored(bus: &JetStream, shard: u32, message: &Message) -> u64 {
    match bus.publish(&Subject::of(SOURCE, shard, message, Keep::Newest), message).await.unwrap() {
        Published::Stored { sequence, .. } => sequence,
        other => panic!("it was {other:?}"),
    }
}

/// Waits until a process heard so often that the bus was made anew.
async fn hears(bus: &JetStream, times: u64) {
    let mut made = bus.made();
    soon("a process hears that the bus was made anew", made.wait_for(|made| *made >= times)).await.unwrap();
}

#[tokio::test]
async fn a_server_that_comes_back_with_its_storage_goes_on_where_it_was() {
    let mut server = Server::start();
    let (bus, mut deliveries) = ready(config(&server)).await;
    for uid in ["a", "b"] {
        published(&bus, &state(uid, 1, 10)).await;
    }
    let held = delivered(&mut deliveries).await;
    server.kill();
    away(&bus).await;
    let refused = tried(&bus, &state("c", 1, 10)).await.unwrap_err();
    assert!(matches!(refused, BusError::Away));
    assert_eq!(refused.to_string(), "the bus is not connected");
    assert_eq!(bus.ensure(&[durable(0)]).await.unwrap_err().to_string(), "the bus is not connected");

    server.restart();
    back(&bus).await;
    assert_eq!(bus.check(&[durable(0)]).await.unwrap(), []);
    held.acker.ack().await.unwrap();
    assert_eq!(
        tried(&bus, &state("c", 1, 10)).await.unwrap(),
        Published::Stored { sequence: 3, whole: true }
    );
    // What was delivered just before the end may come again: the server writes down later than it delivers.
    let mut came = BTreeSet::new();
    while !came.contains("c") {
        came.insert(taken(&mut deliveries).await.uid.to_string());
    }
    assert!(came.contains("b"), "{came:?}");
}

#[tokio::test]
async fn a_server_that_comes_back_without_its_storage_is_told_from_one_that_is_away() {
    let mut server = Server::start();
    let (bus, mut deliveries) = ready(config(&server)).await;
    published(&bus, &state("a", 1, 10)).await;
    taken(&mut deliveries).await;
    server.forget_everything(away(&bus)).await;
    back(&bus).await;

    assert_eq!(error(&mut deliveries).await.to_string(), "the bus has no stream gitops-runtime_objects");
    assert!(soon("the end", deliveries.next()).await.is_none(), "it is said once");
    let gone = tried(&bus, &state("a", 2, 10)).await.unwrap_err();
    assert_eq!(gone.to_string(), "the bus has no stream gitops-runtime_objects");
    let said: Vec<String> = bus.check(&[durable(0)]).await.unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "stream gitops-runtime_objects is absent, and should be present",
            "durable reporter_objects_0 is absent, and should be present",
            "stream gitops-runtime_reports is absent, and should be present",
        ]
    );

    assert_eq!(bus.ensure(&[durable(0)]).await.unwrap().created.len(), 3);
    let mut deliveries = bus.consume(&durable(0), Shutdown::new()).unwrap();
    assert_eq!(
        tried(&bus, &state("a", 2, 10)).await.unwrap(),
        Published::Stored { sequence: 1, whole: true }
    );
    assert_eq!(taken(&mut deliveries).await, state("a", 2, 10));
}

#[tokio::test]
async fn a_durable_that_somebody_removed_is_said() {
    let server = Server::start();
    let (bus, mut deliveries) = ready(config(&server)).await;
    published(&bus, &state("a", 1, 10)).await;
    taken(&mut deliveries).await;
    let raw = client(&server.url()).await;
    raw.delete_consumer_from_stream("reporter_objects_0", "gitops-runtime_objects").await.unwrap();
    assert_eq!(error(&mut deliveries).await.to_string(), "the bus has no durable reporter_objects_0");
}

/// How often each of two heard that the bus was made anew.
fn heard(one: &JetStream, other: &JetStream) -> (u64, u64) {
    (*one.made().borrow(), *other.made().borrow())
}

#[tokio::test]
async fn what_one_process_made_anew_is_heard_by_another_and_what_it_publishes_again_is_no_repetition() {
    let server = Server::start();
    let (one, other) = (connected(config(&server)).await, connected(config(&server)).await);
    for bus in [&one, &other] {
        bus.ready(vec![durable(0), durable(1)]).await;
    }
    assert!(matches!(published(&one, &state("a", 1, 10)).await, Published::Stored { .. }));
    assert_eq!(published(&other, &state("a", 1, 10)).await, Published::Duplicate, "it is the same message");

    let raw = client(&server.url()).await;
    raw.delete_consumer_from_stream("reporter_objects_0", "gitops-runtime_objects").await.unwrap();
    one.make_anew(0).await;
    other.look().await;
    assert_eq!(heard(&one, &other), (1, 1), "a durable was lost");
    let mut deliveries = other.consume(&durable(0), Shutdown::new()).unwrap();
    assert!(matches!(published(&other, &state("a", 1, 10)).await, Published::Stored { .. }));
    assert_eq!(published(&one, &state("a", 1, 10)).await, Published::Duplicate);
    assert_eq!(taken(&mut deliveries).await, state("a", 1, 10));

    raw.delete_stream("gitops-runtime_objects").await.unwrap();
    other.make_anew(1).await;
    one.look().await;
    assert_eq!(heard(&one, &other), (2, 2), "the stream was lost");
    // Nobody consumes this one, and nothing is published.
    raw.delete_consumer_from_stream("reporter_objects_1", "gitops-runtime_objects").await.unwrap();
    one.look().await;
    other.look().await;
    assert_eq!(heard(&one, &other), (3, 3), "a durable was lost that nobody consumes");
    one.look().await;
    other.look().await;
    assert_eq!(heard(&one, &other), (3, 3), "each loss is heard once");
}

#[tokio::test]
async fn a_stream_that_comes_back_without_its_end_counts_as_made_anew() {
    let mut server = Server::start();
    let (one, other) = (connected(config(&server)).await, connected(config(&server)).await);
    for bus in [&one, &other] {
        bus.ready(vec![durable(0)]).await;
    }
    for version in 1..=3 {
        published(&one, &state("a", version, 10)).await;
    }
    server.kill();
    tokio::join!(away(&one), away(&other));
    let saved = server.saved();
    server.restart();
    tokio::join!(back(&one), back(&other));
    for version in 4..=9 {
        published(&one, &state("a", version, 10)).await;
    }
    other.look().await;
    assert_eq!(heard(&one, &other), (0, 0));

    server.kill();
    tokio::join!(away(&one), away(&other));
    server.restore(&saved);
    server.restart();
    tokio::join!(back(&one), back(&other));
    // It still has the stream and the durable, and has no more than three messages.
    for version in 10..=12 {
        assert!(matches!(published(&one, &state("a", version, 10)).await, Published::Stored { .. }));
    }
    hears(&one, 1).await;
    other.look().await;
    assert_eq!(
        heard(&one, &other),
        (1, 1),
        "one published what was lost, and the other knew how far the stream was"
    );
    one.look().await;
    other.look().await;
    assert_eq!(heard(&one, &other), (1, 1), "it is heard once");
}

#[tokio::test]
async fn a_stream_that_another_process_made_anew_is_one_loss_whether_a_look_or_a_publish_finds_it() {
    let server = Server::start();
    let (one, other) = (connected(config(&server)).await, connected(config(&server)).await);
    for bus in [&one, &other] {
        bus.ready(vec![durable(0)]).await;
    }
    let raw = client(&server.url()).await;
    for (losses, by_a_publish) in [(1, false), (2, true)] {
        for version in 1..=3 {
            stored(&one, 0, &state("a", losses * 100 + version, 10)).await;
        }
        raw.delete_stream("gitops-runtime_objects").await.unwrap();
        other.make_anew(losses - 1).await;
        assert_eq!(stored(&other, 0, &state("b", losses * 100, 10)).await, 1);
        if by_a_publish {
            assert_eq!(stored(&one, 0, &state("c", losses * 100, 10)).await, 2);
            hears(&one, losses).await;
        }
        one.look().await;
        one.look().await;
        assert_eq!(heard(&one, &other), (losses, losses), "found by a publish: {by_a_publish}");
    }
}

#[tokio::test]
async fn a_late_answer_says_nothing_of_the_stream_that_was_made_anew_meanwhile() {
    let server = Server::start();
    let bus = connected(config(&server)).await;
    bus.ready(vec![durable(0)]).await;
    for version in 1..=5 {
        stored(&bus, 0, &state("a", version, 10)).await;
    }
    let message = state("a", 6, 10);
    let late = bus.send(&Subject::of(SOURCE, 0, &message, Keep::Newest), &message).await.unwrap();
    let raw = client(&server.url()).await;
    let is_stored = async {
        while raw.get_stream("gitops-runtime_objects").await.unwrap().cached_info().state.last_sequence < 6 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    soon("the message is stored", is_stored).await;
    raw.delete_stream("gitops-runtime_objects").await.unwrap();
    bus.make_anew(0).await;
    assert_eq!(late.answer().await.unwrap(), Published::Stored { sequence: 6, whole: true });
    assert_eq!(stored(&bus, 0, &state("a", 7, 10)).await, 1);
    bus.look().await;
    assert_eq!(*bus.made().borrow(), 1, "the stream that was made anew lost nothing");
}

#[tokio::test]
async fn who_only_reads_hears_that_a_stream_lost_its_end_of_who_publishes() {
    let mut server = Server::start();
    let (one, other) = (connected(config(&server)).await, connected(config(&server)).await);
    let follower = connected(config(&server)).await;
    for bus in [&one, &other] {
        bus.ready(vec![durable(0), durable(1)]).await;
    }
    let mut following = follower.follow("changes", SOURCE, Shutdown::new()).await.unwrap();
    one.publishes_in(7);
    stored(&one, 0, &state("a", 1, 10)).await;
    server.kill();
    tokio::join!(away(&one), away(&other), away(&follower));
    let saved = server.saved();
    server.restart();
    tokio::join!(back(&one), back(&other), back(&follower));
    for version in 2..=4 {
        stored(&one, 0, &state("a", version, 10)).await;
    }
    other.look().await;

    server.kill();
    tokio::join!(away(&one), away(&other), away(&follower));
    server.restore(&saved);
    server.restart();
    tokio::join!(back(&one), back(&other), back(&follower));
    assert_eq!(stored(&one, 0, &state("a", 5, 10)).await, 2);
    hears(&one, 1).await;
    // As much is published anew as was lost.
    for version in 6..=9 {
        stored(&one, 0, &state("a", version, 10)).await;
    }
    other.look().await;
    assert_eq!(heard(&one, &other), (1, 0));

    let takes = |bus: &JetStream, shard| {
        let (out, delivered) = mpsc::channel(16);
        tokio::spawn(bus.subscribe(durable(shard), out, Shutdown::new()));
        delivered
    };
    let (mut to_one, mut to_other) = (takes(&one, 0), takes(&other, 1));
    for (uid, version) in [("b", 10), ("c", 11)] {
        stored(&one, 1, &state(uid, version, 10)).await;
        let delivered = soon("a delivery", to_other.recv()).await;
        assert!(matches!(delivered, Some(Delivered::Message { .. })));
        assert_eq!(heard(&one, &other), (1, 1), "it is heard once");
    }
    let delivered = soon("a delivery", to_one.recv()).await;
    assert!(matches!(delivered, Some(Delivered::Message { .. })));
    other.look().await;
    assert_eq!(heard(&one, &other), (1, 1), "who publishes knows it");

    let missed = async {
        loop {
            match following.next().await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("nothing stops it"),
                Err(error) => return error.to_string(),
            }
        }
    };
    let missed = soon("who follows hears that something may be missing", missed).await;
    assert_eq!(missed, "the bus lost the end of stream gitops-runtime_objects");
}

#[tokio::test]
async fn a_server_that_comes_back_with_its_storage_has_lost_nothing() {
    let mut server = Server::start();
    let bus = connected(config(&server)).await;
    bus.ready(vec![durable(0)]).await;
    server.kill();
    away(&bus).await;
    server.restart();
    back(&bus).await;
    // A server that just started may not have read its streams when something is published.
    bus.make_anew(0).await;
    bus.look().await;
    assert_eq!(*bus.made().borrow(), 0);
}
