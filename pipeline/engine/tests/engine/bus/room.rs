//! States coalesce, all else stays, and a full stream refuses.

use std::collections::BTreeSet;

use pipeline_bus::jetstream::{Config, PendingAck};
use pipeline_bus::{Durable, Keep, Message, Published, Refusal, Subject};
use pipeline_core::EntityId;

use crate::bus::world::{
    SOURCE, config, connected, deleted, delivered, durable, ended, published, ready, resource, result, state,
    taken,
};
use crate::server::Server;

fn stored(sequence: u64) -> Published {
    Published::Stored { sequence, whole: true }
}

const FULL: Published = Published::Refused(Refusal::Full);

#[tokio::test]
async fn a_newer_state_takes_the_place_of_one_that_waits() {
    let server = Server::start();
    let (bus, mut deliveries) = ready(config(&server)).await;
    for version in 1..=5 {
        assert_eq!(published(&bus, &state("u", version, 10)).await, stored(version));
    }
    assert_eq!(published(&bus, &ended("u", 6, 10)).await, stored(6));
    assert_eq!(published(&bus, &state("u", 7, 10)).await, stored(7));
    assert_eq!(published(&bus, &deleted("u", 7, None)).await, stored(8));
    assert_eq!(published(&bus, &result("u", 7, EntityId::OBJECT, 1)).await, stored(9));
    assert_eq!(published(&bus, &result("u", 7, resource(1), 1)).await, stored(10));
    assert_eq!(published(&bus, &result("u", 8, resource(1), 1)).await, stored(11));
    assert_eq!(published(&bus, &state("v", 1, 10)).await, stored(12));

    // Each of 1 to 5 was replaced by the next and at last by 7, and 10 by 11.
    let mut seen = Vec::new();
    for _ in 0..6 {
        let delivery = delivered(&mut deliveries).await;
        delivery.acker.ack().await.unwrap();
        let message = delivery.message.unwrap();
        seen.push((delivery.sequence, message.kind().as_str()));
    }
    assert_eq!(
        seen,
        [(6, "change"), (7, "change"), (8, "deleted"), (9, "result"), (11, "result"), (12, "change")]
    );
}

#[tokio::test]
async fn what_brings_facts_along_is_not_replaced_by_the_same_state_of_a_watcher_that_does_not_know_them() {
    let server = Server::start();
    let (bus, mut deliveries) = ready(config(&server)).await;
    let brings = ended("u", 7, 10);
    let knows_less = Message { coalesced: Vec::new(), ..brings.clone() };
    assert_eq!(published(&bus, &brings).await, stored(1));
    assert_eq!(published(&bus, &knows_less).await, stored(2));
    assert_eq!(taken(&mut deliveries).await, brings);
    assert_eq!(taken(&mut deliveries).await, knows_less);
}

#[tokio::test]
async fn a_state_that_was_replaced_while_it_was_worked_on_does_not_come_again() {
    let server = Server::start();
    let short = Config { ack_wait: std::time::Duration::from_secs(15), ..config(&server) };
    let (bus, mut deliveries) = ready(short).await;
    published(&bus, &state("u", 1, 10)).await;
    let first = delivered(&mut deliveries).await;
    published(&bus, &state("u", 2, 10)).await;
    assert_eq!(taken(&mut deliveries).await, state("u", 2, 10));
    // Never acknowledged, the next two come again, later than the replaced one would: it was delivered before them.
    for uid in ["v", "w"] {
        published(&bus, &state(uid, 1, 10)).await;
    }
    let mut again = BTreeSet::new();
    while again.len() < 2 {
        let delivery = delivered(&mut deliveries).await;
        let message = delivery.message.unwrap();
        assert_ne!(message.uid.as_ref(), "u", "it was replaced, and its newer state acknowledged");
        if delivery.redelivered {
            again.insert(message.uid);
        }
    }
    first.acker.ack().await.unwrap();
}

#[tokio::test]
async fn a_full_stream_refuses_and_drops_nothing() {
    let server = Server::start();
    let (bus, mut deliveries) = ready(Config { max_bytes: 100_000, ..config(&server) }).await;
    let mut held = 0;
    let refused = loop {
        let message = ended(&format!("u{held}"), 1, 10_000);
        match published(&bus, &message).await {
            Published::Stored { .. } => held += 1,
            answer => break (message, answer),
        }
        assert!(held < 20, "a stream of 100 kB holds no 20 messages of 10 kB");
    };
    assert_eq!((held, refused.1), (9, FULL));
    assert_eq!(published(&bus, &refused.0).await, FULL, "what was refused is no duplicate");
    let show = bus.show(SOURCE).await.unwrap().stream.unwrap();
    assert_eq!((show.messages, show.last), (9, 9), "nothing was dropped for it");

    assert_eq!(taken(&mut deliveries).await, ended("u0", 1, 10_000));
    let room = async {
        while bus.show(SOURCE).await.unwrap().stream.unwrap().messages == 9 {
            tokio::task::yield_now().await;
        }
    };
    crate::bus::world::soon("the acknowledgement", room).await;
    assert_eq!(published(&bus, &refused.0).await, stored(10), "there is room for it now");
    for uid in 1..9 {
        assert_eq!(taken(&mut deliveries).await.uid.as_ref(), format!("u{uid}"));
    }
    assert_eq!(taken(&mut deliveries).await, refused.0);
}

/// Reports that nobody acknowledges, up to the limit and beyond it.
#[tokio::test]
async fn reports_that_are_not_read_take_no_room_of_events() {
    let server = Server::start();
    let (bus, _deliveries) = ready(Config { max_bytes: 100_000, ..config(&server) }).await;
    let slow = Durable { group: "slow".into(), source: "reports".into(), shard: None };
    bus.ensure(&[durable(0), slow]).await.unwrap();
    for n in 0..20 {
        let report = result("u", n + 1, resource(n), 10_000);
        bus.publish(&Subject::of("reports", 0, &report, Keep::Newest), &report).await.unwrap();
    }
    assert!(matches!(published(&bus, &state("u", 1, 10_000)).await, Published::Stored { .. }));
}

#[tokio::test]
async fn a_full_stream_takes_a_state_that_is_no_larger_than_the_one_it_replaces() {
    let server = Server::start();
    let (bus, _deliveries) = ready(Config { max_bytes: 25_000, ..config(&server) }).await;
    assert_eq!(published(&bus, &state("u", 1, 10_000)).await, stored(1));
    assert_eq!(published(&bus, &state("v", 1, 10_000)).await, stored(2));
    assert_eq!(published(&bus, &state("w", 1, 10_000)).await, FULL);
    assert_eq!(published(&bus, &state("u", 2, 10_000)).await, stored(3));
    assert_eq!(published(&bus, &state("u", 3, 18_000)).await, FULL);
    assert_eq!(published(&bus, &state("u", 3, 9_000)).await, stored(4));
}

#[tokio::test]
async fn a_repetition_is_told_and_not_stored() {
    let server = Server::start();
    let (bus, mut deliveries) = ready(config(&server)).await;
    assert_eq!(published(&bus, &state("u", 1, 10)).await, stored(1));
    assert_eq!(published(&bus, &state("u", 1, 10)).await, Published::Duplicate);
    assert_eq!(
        published(&bus, &deleted("u", 1, None)).await,
        stored(2),
        "a deletion at the same version is news"
    );
    assert_eq!(published(&bus, &state("u", 0, 10)).await, stored(3), "without a version nothing is known");
    assert_eq!(published(&bus, &state("u", 0, 10)).await, stored(4));
    assert_eq!(taken(&mut deliveries).await.kind().as_str(), "deleted");
    assert_eq!(taken(&mut deliveries).await.version.0, 0);
}

#[tokio::test]
async fn messages_arrive_in_the_order_they_were_sent_in_while_answers_wait() {
    let server = Server::start();
    let (bus, mut deliveries) = ready(config(&server)).await;
    let mut sent = Vec::new();
    for version in 1..=300 {
        let message = ended("u", version, 100);
        // More than may be unanswered at a time: the first answers are taken before the last are sent.
        if sent.len() == 200 {
            for answer in sent.drain(..) {
                let answer: PendingAck = answer;
                assert!(matches!(answer.answer().await.unwrap(), Published::Stored { .. }));
            }
        }
        sent.push(bus.send(&Subject::of("objects", 0, &message, Keep::Each), &message).await.unwrap());
    }
    for answer in sent {
        assert!(matches!(answer.answer().await.unwrap(), Published::Stored { .. }));
    }
    for version in 1..=300 {
        assert_eq!(taken(&mut deliveries).await.version.0, version);
    }
}

#[tokio::test]
async fn what_nobody_is_interested_in_is_taken_and_not_kept() {
    let server = Server::start();
    let bus = connected(config(&server)).await;
    bus.ensure(&[durable(1)]).await.unwrap();
    assert_eq!(published(&bus, &state("u", 1, 10)).await, stored(1));
    assert_eq!(
        published(&bus, &state("u", 2, 10)).await,
        stored(2),
        "it has a number of its own all the same"
    );
    assert_eq!(bus.show(SOURCE).await.unwrap().stream.unwrap().messages, 0);
    bus.ensure(&[durable(0)]).await.unwrap();
    assert_eq!(
        published(&bus, &state("u", 1, 10)).await,
        Published::Duplicate,
        "the server remembers its id all the same"
    );
}
