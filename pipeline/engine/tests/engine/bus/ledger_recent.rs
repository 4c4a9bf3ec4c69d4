//! What was told and no row says any more: known to the next owner of its shard, to whom the bus may deliver it again.

use pipeline_bus::jetstream::Expect;
use pipeline_core::{Cause, Change, Checkpoint, Digest, Event, Fact, Key, Report, Timestamp, Version};
use pipeline_ledger::Ledger;

use crate::bus::ledger_world::{
    UID, bucket, claim, flushed, key, keys, replica, report, reported, settle, until,
};
use crate::bus::world::soon;
use crate::server::Server;

const RECENT: &str = "recent.>";

/// The n-th operation's end.
fn end(n: usize) -> Fact {
    Fact { id: Digest(n as u64), body: "done".into() }
}

/// Reports a state that shows the n-th operation.
async fn operated(ledger: &Ledger, key: &Key, n: usize) {
    let shown = Checkpoint { fact: end(n).id, ..settle() };
    let report = report(key, n as u64);
    assert!(soon("a note", ledger.sending(key, &report, None)).await, "it may go");
    ledger.acknowledge(key, &report);
    ledger.checkpoint(key, &shown, &[]);
}

/// Which of the first few operations' ends are still to be told, were they delivered again.
fn untold(ledger: &Ledger, key: &Key) -> Vec<Fact> {
    let (change, observed) = (Change::Deleted { body: None }, Timestamp::UNIX_EPOCH);
    let event = Event::watched(key.clone(), UID.into(), Version(9), change, observed);
    let event = Event { cause: Cause::Read, coalesced: (1..=4).map(end).collect(), ..event };
    ledger.without_reported(&event, None).unwrap_or(event).coalesced
}

#[tokio::test]
async fn the_end_of_a_life_is_known_to_the_next_owner_until_the_life_goes_on() {
    let server = Server::start();
    let first = replica(&server).await;
    claim(&first, 1, 1).await;
    let (a, b) = (key(1, 0), key(1, 1));
    for key in [&a, &b] {
        reported(&first, key, 1).await;
        first.acknowledge(key, &Report { ends: true, ..report(key, 0) });
    }
    flushed(&first).await;
    drop(first);

    let second = replica(&server).await;
    assert_eq!(claim(&second, 1, 2).await.records, 0);
    assert!(second.has_ended(&a, &UID.into()) && second.has_ended(&b, &UID.into()));
    assert!(!second.has_ended(&a, &"another life".into()) && !second.has_ended(&key(1, 2), &UID.into()));
    reported(&second, &b, 2).await;
    assert!(!second.has_ended(&b, &UID.into()), "it is there");
    flushed(&second).await;
    soon("a release", second.release(1)).await.unwrap();

    let third = replica(&server).await;
    claim(&third, 1, 3).await;
    assert!(third.has_ended(&a, &UID.into()) && !third.has_ended(&b, &UID.into()));
    third.forget(1);
    assert!(!third.has_ended(&a, &UID.into()), "nothing is known of a shard that is not held");
}

#[tokio::test]
async fn the_ends_of_operations_that_later_ones_followed_are_known_to_the_next_owner() {
    let server = Server::start();
    let first = replica(&server).await;
    claim(&first, 1, 1).await;
    let a = key(1, 0);
    operated(&first, &a, 1).await;
    flushed(&first).await;
    let bucket = bucket(&server).await;
    assert!(keys(&bucket, RECENT).await.is_empty(), "the record says it");
    operated(&first, &a, 2).await;
    operated(&first, &a, 3).await;
    flushed(&first).await;
    assert_eq!(keys(&bucket, RECENT).await, ["recent.platform.1"]);
    assert_eq!(untold(&first, &a), [end(4)]);
    drop(first);

    let second = replica(&server).await;
    claim(&second, 1, 2).await;
    assert_eq!(second.get(&a).unwrap().fact, end(3).id);
    assert_eq!(untold(&second, &a), [end(4)], "the record says the third");
    assert_eq!(untold(&second, &key(1, 1)).len(), 4, "they are another's");
}

#[tokio::test]
async fn what_was_told_is_written_by_nobody_whom_another_has_followed_and_garbage_says_nothing() {
    let server = Server::start();
    let first = replica(&server).await;
    claim(&first, 1, 1).await;
    let a = key(1, 0);
    reported(&first, &a, 1).await;
    flushed(&first).await;
    let second = replica(&server).await;
    claim(&second, 1, 2).await;
    first.acknowledge(&a, &Report { ends: true, ..report(&a, 0) });
    until("the word that the shard is lost", async || {
        let _ = first.flush().await;
        first.fenced().borrow().contains(&1)
    })
    .await;
    let bucket = bucket(&server).await;
    assert!(keys(&bucket, RECENT).await.is_empty());
    assert_eq!(second.get(&a).unwrap().fact, Digest::NONE);

    bucket.put("recent.platform.1", "garbage".into(), Expect::Anything).await.unwrap();
    let third = replica(&server).await;
    let claimed = claim(&third, 1, 3).await;
    assert_eq!((claimed.new, claimed.records), (false, 1));
    assert!(!third.has_ended(&a, &UID.into()));
    third.acknowledge(&a, &Report { ends: true, ..report(&a, 0) });
    flushed(&third).await;
    let fourth = replica(&server).await;
    claim(&fourth, 1, 4).await;
    assert!(fourth.has_ended(&a, &UID.into()), "it was written over");
}
