//! A simulated platform before another that stands for a real one: all goes there as it came, and what it acknowledged counts.

use std::sync::Arc;

use loadtest_sim::PATIENCE;
use loadtest_sim::fault::{Fault, Rule};
use loadtest_sim::platform::{Config, Keep, Moment, PlatformSim, Totals};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::client;
use super::platform::{application, config_map, key, post, start, zip};

/// The one that reports are sent to, and the one behind it, which wants the token.
async fn both() -> (PlatformSim, PlatformSim) {
    let behind = start(Keep { last: true, reports: 10 }).await;
    let keep = Keep { last: true, reports: 10 };
    let front = PlatformSim::start(Config { keep, ..Config::default() }).await.unwrap();
    front.lead_to(&behind.url()).unwrap();
    (front, behind)
}

#[tokio::test]
async fn a_report_goes_on_as_it_came_and_counts_when_it_was_acknowledged() {
    let (front, behind) = both().await;
    assert_eq!(post(&front, &key(1), &application("a", 5)).await, 200);
    assert_eq!(post(&front, &key(1), &application("a", 5)).await, 200);
    let refuse = Rule::always(Fault::Status { status: 503, retry_after: Some(7) }).times(1);
    behind.faults().add(refuse);
    let refused = client().post(format!("{}/2.0/api/events", front.url())).header("authorization", "raw");
    let refused = refused.header("content-type", "application/json").header("content-encoding", "gzip");
    let refused = refused.header("idempotency-key", key(2)).body(zip(&config_map("a", 3)));
    let refused = refused.send().await.unwrap();
    assert_eq!((refused.status().as_u16(), refused.headers()["retry-after"].to_str().unwrap()), (503, "7"));
    assert_eq!(front.totals().taken, 1);
    assert_eq!(post(&front, &key(2), &config_map("a", 3)).await, 200);
    let expected =
        Totals { posts: 4, taken: 2, applications: 1, resources: 1, duplicates: 1, ..Totals::default() };
    let totals = front.totals();
    assert_eq!(totals, Totals { bytes: totals.bytes, ..expected });
    assert_eq!(behind.totals(), Totals { spoilt: 1, ..totals }, "byte for byte");
    let (mut ours, mut theirs) = (front.last(), behind.last());
    ours.sort_by(|(one, _), (other, _)| one.cmp(other));
    theirs.sort_by(|(one, _), (other, _)| one.cmp(other));
    assert_eq!((ours, front.kept()), (theirs, behind.kept()));
}

#[tokio::test]
async fn of_a_batch_what_was_acknowledged_counts_and_every_other_path_is_led_too() {
    let (front, behind) = both().await;
    behind.faults().add(Rule::always(Fault::Status { status: 422, retry_after: None }).of("b"));
    let payload = |text: &str| serde_json::from_str::<Value>(text).unwrap()["data"].take();
    let batch = json!({"reports": [
        {"idempotencyKey": key(1), "data": payload(&application("a", 2))},
        {"idempotencyKey": key(2), "data": payload(&application("b", 2))},
        {"idempotencyKey": key(3), "data": payload(&config_map("a", 2))},
    ]});
    let sent = async |path: &str, token: &str, body: Vec<u8>| {
        let request = client().post(format!("{}{path}", front.url())).header("authorization", token);
        let request = request.header("content-type", "application/json").header("content-encoding", "gzip");
        let answer = request.body(body).send().await.unwrap();
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap_or_default())
    };
    let zipped = zip(&batch.to_string());
    let refused = sent("/2.0/api/events/batch", "another", zipped.clone()).await;
    assert_eq!(refused, (401, json!({"message": "unauthorized"})));
    let results = json!({"results": [{"status": 200}, {"status": 422}, {"status": 200}]});
    assert_eq!(sent("/2.0/api/events/batch", "raw", zipped).await, (200, results));
    let totals = front.totals();
    let counts = (totals.posts, totals.batches, totals.taken, totals.unauthorized);
    assert_eq!(counts, (2, 2, 2, 1));
    assert_eq!(front.kept(), behind.kept());

    let asked = json!({"shard": 0, "shards": 1, "applications": 0, "entities": 0, "digest": "0"});
    let answer = sent("/2.0/api/events/digest", "raw", asked.to_string().into_bytes()).await;
    assert_eq!(answer, (200, json!({"equal": false})));
    assert_eq!((front.comparisons().shards, behind.comparisons().shards), (0, 1));
    assert_eq!(sent("/other", "raw", Vec::new()).await.0, 404);
    behind.down().await;
    assert_eq!(post(&front, &key(4), &application("a", 3)).await, 503);
    assert_eq!(front.totals().taken, 2);
}

#[tokio::test]
async fn what_is_acknowledged_counts_also_where_its_sender_has_gone() {
    let (front, behind) = both().await;
    let received = Arc::new(Notify::new());
    let told = received.clone();
    behind.watch_door(move |moment, _| {
        if moment == Moment::Received {
            told.notify_one();
        }
    });
    behind.faults().add(Rule::always(Fault::Delay { ms: 300 }).after_effect());
    let (key, text) = (key(1), application("a", 1));
    tokio::select! {
        biased;
        () = received.notified() => {}
        _ = post(&front, &key, &text) => panic!("it is answered after it was received"),
    }
    front.down().await;
    tokio::time::timeout(PATIENCE, front.settled()).await.unwrap();
    assert_eq!((front.totals().taken, behind.totals().taken), (1, 1));
}
