//! What every bus does: each test runs on both.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use pipeline_bus::{Bus, Delivered, Durable, Keep, Message, durables};
use pipeline_core::{Change, Event, Key, REQUEST_BYTES, RequestError, Shutdown, Timestamp, Version};
use tokio::sync::mpsc;

use crate::on;
use crate::running::PATIENCE;

fn message(uid: &str, version: u64) -> Message {
    let (key, change) = (Key::new("default", "map").unwrap(), Change::Applied { body: "{}".into() });
    Message::of(Event::watched(key, uid.into(), Version(version), change, Timestamp::UNIX_EPOCH))
}

async fn publish(bus: &dyn Bus, shard: u32, message: Message) {
    bus.publish("maps", shard, message, Keep::Each).await.unwrap().await.unwrap();
}

/// A consumer of one shard, for as long as the test.
fn subscribe(bus: &Arc<dyn Bus>, group: &str, shard: u32) -> mpsc::Receiver<Delivered> {
    let (out, delivered) = mpsc::channel(16);
    let of = Durable { group: group.to_owned(), source: "maps".to_owned(), shard: Some(shard) };
    tokio::spawn(bus.subscribe(of, out, Shutdown::new()));
    delivered
}

async fn next(delivered: &mut mpsc::Receiver<Delivered>) -> Message {
    match tokio::time::timeout(PATIENCE, delivered.recv()).await.unwrap().unwrap() {
        Delivered::Message { message, again: false, acker } => {
            if let Some(acker) = acker {
                acker.progress().await.unwrap();
                acker.ack().await.unwrap();
            }
            *message
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn each_group_gets_every_message_of_its_shard_in_order() {
    let (bus, kept) = on::bus();
    let all = [durables("one", "maps", 2), durables("other", "maps", 2)].concat();
    bus.ready(all).await;
    let mut one = subscribe(&bus, "one", 0);
    let mut other = subscribe(&bus, "other", 0);
    let mut second = subscribe(&bus, "one", 1);
    for version in 1..=3 {
        publish(&*bus, 0, message("a", version)).await;
    }
    publish(&*bus, 1, message("b", 4)).await;
    for consumer in [&mut one, &mut other] {
        for version in 1..=3 {
            assert_eq!(next(consumer).await, message("a", version));
        }
    }
    assert_eq!(next(&mut second).await, message("b", 4));
    assert!(bus.is_connected());
    kept.end();
}

#[tokio::test]
async fn a_group_that_takes_nothing_holds_up_no_other() {
    let (bus, kept) = on::bus();
    bus.ready([durables("quick", "maps", 1), durables("slow", "maps", 1)].concat()).await;
    let mut quick = subscribe(&bus, "quick", 0);
    let _slow = subscribe(&bus, "slow", 0);
    for version in 1..=16 {
        publish(&*bus, 0, message("a", version)).await;
        assert_eq!(next(&mut quick).await, message("a", version));
    }
    kept.end();
}

#[tokio::test]
async fn a_question_is_answered_once_by_one_of_those_who_serve_it() {
    let (bus, kept) = on::bus();
    for _ in 0..2 {
        let mut questions = bus.serve("double").await.unwrap();
        tokio::spawn(async move {
            while let Some(question) = questions.next().await {
                let twice = [question.payload().as_ref(), question.payload()].concat();
                let _ = question.answer(twice.into()).await;
            }
        });
    }
    for text in ["a", "bc", ""] {
        let answer = bus.request("double", Bytes::from(text), PATIENCE).await.unwrap();
        assert_eq!(answer, text.repeat(2));
    }
    kept.end();
}

#[tokio::test]
async fn a_question_that_nobody_serves_or_answers_is_an_error_of_its_own() {
    let (bus, kept) = on::bus();
    let ask = async |subject: &str, bytes: usize, within: Duration| {
        bus.request(subject, Bytes::from(vec![b'x'; bytes]), within).await.unwrap_err()
    };
    let nobody = ask("nobody", 1, PATIENCE).await;
    assert!(matches!(&nobody, RequestError::NobodyServes(subject) if subject == "nobody"), "{nobody}");
    let questions = bus.serve("silent").await.unwrap();
    let silent = ask("silent", 1, Duration::from_millis(50)).await;
    assert!(matches!(silent, RequestError::NoAnswer(_)), "{silent}");
    let large = ask("silent", REQUEST_BYTES + 1, PATIENCE).await;
    assert!(matches!(large, RequestError::TooLarge(_)), "{large}");
    drop(questions);
    kept.end();
}
