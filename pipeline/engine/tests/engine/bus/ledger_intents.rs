//! Notes of reports on their way: what the next owner knows of a replica that was killed.

use std::time::{Duration, Instant};

use pipeline_core::Report;
use pipeline_ledger::LedgerOptions;

use crate::bus::ledger_world::{
    bucket, claim, flushed, key, keys, replica, report, reported, settle, slow, until, with,
};
use crate::bus::world::soon;
use crate::server::Server;

const INTENTS: &str = "intents.>";

#[tokio::test]
async fn what_was_on_its_way_when_a_replica_was_killed_is_in_doubt() {
    let server = Server::start();
    let first = replica(&server).await;
    claim(&first, 1, 1).await;
    let (a, b, c) = (key(1, 0), key(1, 1), key(1, 2));
    reported(&first, &a, 1).await;
    reported(&first, &b, 1).await;
    flushed(&first).await;
    assert!(first.sending(&a, &report(&a, 2), None).await, "it is sent, and never answered");
    assert!(first.sending(&c, &report(&c, 2), None).await, "so is a first one");
    let sent = first.get(&a).unwrap();
    assert!(sent.object().in_doubt);
    drop(first);

    let second = replica(&server).await;
    let claimed = claim(&second, 1, 2).await;
    assert_eq!((claimed.new, claimed.records), (false, 3));
    assert_eq!(claimed.unfinished, [a.clone(), c.clone()]);
    assert_eq!((second.get(&a), second.status().in_doubt), (Some(sent), 2));
    assert!(!second.get(&b).unwrap().is_in_doubt());
    // Killed again, before what it took over was written.
    drop(second);
    let third = replica(&server).await;
    assert_eq!(claim(&third, 1, 3).await.unfinished, [a.clone(), c.clone()]);
    flushed(&third).await;
    let bucket = bucket(&server).await;
    until("the end of notes that are not needed", async || keys(&bucket, INTENTS).await.is_empty()).await;
    drop(third);
    assert_eq!(claim(&replica(&server).await, 1, 4).await.unfinished, [a, c], "the rows say it now");
}

#[tokio::test]
async fn acknowledgements_that_were_not_written_are_known_by_the_next_report() {
    let server = Server::start();
    let first = replica(&server).await;
    claim(&first, 1, 1).await;
    let a = key(1, 0);
    for content in 1..=3 {
        reported(&first, &a, content).await;
    }
    assert!(first.sending(&a, &report(&a, 4), None).await);
    let id = first.id_of(&a);
    assert_eq!(first.status().commits, 0);
    drop(first);
    let second = replica(&server).await;
    claim(&second, 1, 2).await;
    let record = second.get(&a).unwrap();
    assert_eq!(
        (record.object().counter, record.object().in_doubt),
        (3, true),
        "no key of the first three is used again"
    );
    assert_eq!(second.id_of(&a), id);
}

#[tokio::test]
async fn notes_of_many_at_a_time_share_a_write() {
    let server = Server::start();
    let ledger = replica(&server).await;
    claim(&ledger, 1, 1).await;
    let bucket = bucket(&server).await;
    let before = bucket.show().await.unwrap().unwrap().last;
    let keys: Vec<_> = (0..200).map(|n| key(1, n)).collect();
    let sent = keys.iter().map(async |key| ledger.sending(key, &report(key, 1), None).await);
    let begun = Instant::now();
    let went = soon("all notes", futures::future::join_all(sent)).await;
    let took = begun.elapsed();
    assert!(went.iter().all(|went| *went));
    let writes = bucket.show().await.unwrap().unwrap().last - before;
    println!("200 notes at a time took {took:?} and {writes} writes");
    assert!(writes < 100, "{writes} writes of 200 notes");
    drop(ledger);
    let next = replica(&server).await;
    assert_eq!(claim(&next, 1, 2).await.unfinished.len(), 200);
}

#[tokio::test]
async fn a_release_leaves_nothing_in_doubt() {
    let server = Server::start();
    let ledger = replica(&server).await;
    claim(&ledger, 1, 1).await;
    let a = key(1, 0);
    reported(&ledger, &a, 1).await;
    soon("a release", ledger.release(1)).await.unwrap();
    let bucket = bucket(&server).await;
    assert!(keys(&bucket, INTENTS).await.is_empty());
    let next = replica(&server).await;
    assert!(claim(&next, 1, 2).await.unfinished.is_empty());
    reported(&next, &a, 2).await;
    soon("the end", next.close()).await.unwrap();
    assert!(keys(&bucket, INTENTS).await.is_empty());
    assert!(!next.sending(&a, &report(&a, 3), None).await, "a closed ledger notes nothing");
}

#[tokio::test]
async fn a_life_that_is_over_is_not_brought_back_by_its_note() {
    let server = Server::start();
    let ledger = replica(&server).await;
    claim(&ledger, 1, 1).await;
    let a = key(1, 0);
    reported(&ledger, &a, 1).await;
    let bucket = bucket(&server).await;
    assert_eq!(keys(&bucket, INTENTS).await, ["intents.platform.1"]);
    ledger.acknowledge(&a, &Report { ends: true, ..report(&a, 0) });
    flushed(&ledger).await;
    until("the end of its note", async || keys(&bucket, INTENTS).await.is_empty()).await;
    drop(ledger);
    assert_eq!(claim(&replica(&server).await, 1, 2).await.records, 0);
}

#[tokio::test]
async fn a_state_that_the_bucket_knows_is_noted_once() {
    let server = Server::start();
    let ledger = replica(&server).await;
    claim(&ledger, 1, 1).await;
    let a = key(1, 0);
    assert!(ledger.sending(&a, &report(&a, 1), None).await);
    flushed(&ledger).await;
    let bucket = bucket(&server).await;
    until("the end of its note", async || keys(&bucket, INTENTS).await.is_empty()).await;
    let before = bucket.show().await.unwrap().unwrap().last;
    assert!(ledger.sending(&a, &report(&a, 1), None).await, "it is sent again");
    assert_eq!(bucket.show().await.unwrap().unwrap().last, before, "its row says so already");
}

#[tokio::test]
async fn notes_go_by_themselves_where_groups_are_written() {
    let server = Server::start();
    let ledger = with(&server, LedgerOptions { group_time: Duration::from_millis(5), ..slow() }).await;
    claim(&ledger, 1, 1).await;
    let begun = Instant::now();
    for n in 0..50 {
        reported(&ledger, &key(1, n), 1).await;
    }
    println!("a note by itself took {:?}", begun.elapsed() / 50);
    let bucket = bucket(&server).await;
    until("a quiet moment", async || keys(&bucket, INTENTS).await.is_empty()).await;
    let record = ledger.get(&key(1, 49)).unwrap();
    assert_eq!((record.version, record.object().counter), (settle().version, 1));
    assert_eq!(ledger.status().intent_errors, 0);
}
