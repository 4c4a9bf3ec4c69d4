//! The bus goes away, loses what it stored, or holds what nobody wrote.

use std::collections::BTreeSet;

use pipeline_bus::jetstream::{Bucket, Expect};
use pipeline_core::{Digest, EntityId, EntityRow, Record, Settled};
use pipeline_ledger::{Ledger, LedgerError};

use crate::bus::ledger_world::{
    SHARDS, bucket, claim, counted, flushed, key, keys, replica, report, reported, sharding, slow, until,
};
use crate::bus::world::soon;
use crate::server::Server;

async fn away(bucket: &Bucket) {
    until("the end of the connection", async || !bucket.is_connected()).await;
}

async fn back(bucket: &Bucket) {
    until("the next connection", async || bucket.is_connected()).await;
}

async fn held(server: &Server) -> (Bucket, Ledger) {
    let bucket = bucket(server).await;
    let ledger = Ledger::in_bucket(bucket.clone(), sharding(), slow()).unwrap();
    claim(&ledger, 1, 1).await;
    (bucket, ledger)
}

#[tokio::test]
async fn while_the_bus_is_away_nothing_is_lost_and_nothing_goes() {
    let mut server = Server::start();
    let (bucket, ledger) = held(&server).await;
    reported(&ledger, &key(1, 0), 1).await;
    flushed(&ledger).await;
    server.kill();
    away(&bucket).await;
    for n in 0..300 {
        ledger.update(&key(1, n), |_| Some(counted(2)));
    }
    let error = soon("an error", ledger.flush()).await.unwrap_err();
    assert_eq!(error.to_string(), "cannot write the ledger: 300 records wait in memory and are tried again");
    let LedgerError::Write { source, .. } = error else { panic!("not a write error") };
    assert_eq!(source.to_string(), "the bucket of the ledger failed");
    let status = ledger.status();
    assert!(status.failing && status.errors >= 1 && status.waiting == 300, "{status:?}");
    let sent = report(&key(1, 0), 9);
    let going = ledger.sending(&sent.key, &sent, None);
    let mut going = Box::pin(going);
    until("a note that failed", async || {
        assert!(futures::poll!(going.as_mut()).is_pending(), "it waits");
        ledger.status().intent_errors > 0
    })
    .await;
    assert_eq!(ledger.claim(2, 1).await.unwrap_err().to_string(), "cannot read the ledger in the bucket");

    server.restart();
    assert!(soon("the note", &mut going).await, "it may go now");
    until("all rows", async || !ledger.status().failing && ledger.status().waiting == 0).await;
    drop(going);
    drop(ledger);
    let next = replica(&server).await;
    assert_eq!(claim(&next, 1, 2).await.records, 300);
    assert_eq!(next.get(&key(1, 299)), Some(counted(2)));
}

#[tokio::test]
async fn a_server_that_starts_again_between_two_groups_is_no_loss() {
    let mut server = Server::start();
    let (bucket, ledger) = held(&server).await;
    let id = ledger.id_of(&key(1, 0));
    reported(&ledger, &key(1, 0), 1).await;
    flushed(&ledger).await;
    server.kill();
    away(&bucket).await;
    server.restart();
    back(&bucket).await;
    reported(&ledger, &key(1, 0), 2).await;
    until("a group", async || ledger.flush().await.is_ok()).await;
    assert_eq!((ledger.owned(), ledger.get(&key(1, 0)).unwrap().object().counter), (BTreeSet::from([1]), 2));
    assert!(ledger.fenced().borrow().is_empty());
    let next = replica(&server).await;
    assert!(!claim(&next, 1, 2).await.new);
    assert_eq!((next.get(&key(1, 0)), next.id_of(&key(1, 0))), (ledger.get(&key(1, 0)), id));
}

#[tokio::test]
async fn a_bucket_that_was_lost_is_another_ledger() {
    let mut server = Server::start();
    let (bucket, ledger) = held(&server).await;
    claim(&ledger, 2, 1).await;
    let id = ledger.id_of(&key(1, 0));
    reported(&ledger, &key(1, 0), 1).await;
    flushed(&ledger).await;
    server.forget_everything(away(&bucket)).await;
    back(&bucket).await;
    for shard in [1, 2] {
        ledger.update(&key(shard, 0), |_| Some(counted(9)));
    }
    let both = BTreeSet::from([1, 2]);
    until("the word that both are lost", async || {
        let _ = ledger.flush().await;
        *ledger.fenced().borrow() == both
    })
    .await;
    assert_eq!((ledger.status().records, ledger.status().waiting, ledger.owned().len()), (0, 0, 0));

    assert!(claim(&ledger, 1, 2).await.new);
    assert_eq!(*ledger.fenced().borrow(), BTreeSet::from([2]));
    assert_ne!(ledger.id_of(&key(1, 0)), id);
    assert_eq!(ledger.get(&key(1, 0)), None, "nothing is known, and everything is reported again");
    reported(&ledger, &key(1, 0), 1).await;
    flushed(&ledger).await;
    ledger.forget(2);
    assert!(ledger.fenced().borrow().is_empty());
}

#[tokio::test]
async fn a_bucket_that_somebody_else_made_anew_is_told_from_the_old_one() {
    let mut server = Server::start();
    let (bucket, ledger) = held(&server).await;
    reported(&ledger, &key(1, 0), 1).await;
    flushed(&ledger).await;
    server.forget_everything(away(&bucket)).await;
    back(&bucket).await;
    let other = replica(&server).await;
    assert!(claim(&other, 2, 5).await.new, "it made the bucket");
    ledger.update(&key(1, 0), |_| Some(counted(9)));
    flushed(&ledger).await;
    assert_eq!(*ledger.fenced().borrow(), BTreeSet::from([1]));
    assert!(keys(&bucket, "records.>").await.is_empty(), "nothing of the old one was written");
}

#[tokio::test]
async fn a_damaged_record_is_a_lost_shard_and_another_id() {
    let server = Server::start();
    let (bucket, ledger) = held(&server).await;
    for n in 0..3 {
        reported(&ledger, &key(1, n), 1).await;
    }
    claim(&ledger, 2, 1).await;
    reported(&ledger, &key(2, 0), 1).await;
    let (id, other) = (ledger.id_of(&key(1, 0)), ledger.id_of(&key(2, 0)));
    soon("the end", ledger.close()).await.unwrap();
    let row = format!("records.platform.1.ns.{}", key(1, 1).name());
    let (sealed, _) = bucket.get(&row).await.unwrap().unwrap();
    let mut spoilt = sealed.to_vec();
    spoilt[5] ^= 1;
    bucket.put(&row, spoilt.into(), Expect::Anything).await.unwrap();

    let next = replica(&server).await;
    let claimed = claim(&next, 1, 2).await;
    assert_eq!((claimed.new, claimed.records, next.status().records), (true, 0, 0));
    assert!(keys(&bucket, "records.platform.1.>").await.is_empty(), "what is left of it is gone");
    assert_ne!(next.id_of(&key(1, 0)), id);
    assert!(!claim(&next, 2, 2).await.new, "another shard is as it was");
    assert_eq!((next.id_of(&key(2, 0)), next.status().records), (other, 1));
    let id = next.id_of(&key(1, 0));
    let third = replica(&server).await;
    assert!(!claim(&third, 1, 3).await.new);
    assert_eq!(third.id_of(&key(1, 0)), id);
}

#[tokio::test]
async fn a_claim_that_was_cut_off_begins_anew() {
    let server = Server::start();
    let (bucket, ledger) = held(&server).await;
    reported(&ledger, &key(1, 0), 1).await;
    soon("the end", ledger.close()).await.unwrap();
    let id = ledger.id_of(&key(1, 0));
    for claimed in [r#"{"format":2,"epoch":2,"ledger":null,"sharding":"jump:4"}"#, "garbage"] {
        bucket.put("claim.platform.1", claimed.into(), Expect::Anything).await.unwrap();
        let next = replica(&server).await;
        let claimed = claim(&next, 1, 3).await;
        assert_eq!((claimed.new, claimed.records), (true, 0));
        assert_ne!(next.id_of(&key(1, 0)), id);
        assert!(keys(&bucket, "records.platform.1.>").await.is_empty());
    }
    bucket.remove("claim.platform.1", Expect::Anything).await.unwrap();
    assert!(claim(&replica(&server).await, 1, 4).await.new, "so does one that somebody removed");
}

#[tokio::test]
async fn what_else_nobody_can_read_is_dropped() {
    let server = Server::start();
    let (bucket, ledger) = held(&server).await;
    reported(&ledger, &key(1, 0), 1).await;
    soon("the end", ledger.close()).await.unwrap();
    let astray = format!("records.platform.1.ns.{}", key(2, 0).name());
    let name = key(1, 0).name().to_owned();
    let garbage = [
        "records.platform.1.ns".to_owned(),
        "parked.platform.1.a.b.c".to_owned(),
        format!("journal.platform.1.ns.{name}"),
        format!("parked.platform.1.ns.{name}"),
        "intents.platform.1".to_owned(),
        astray,
    ];
    for key in &garbage {
        bucket.put(key, "garbage".into(), Expect::Anything).await.unwrap();
    }
    let next = replica(&server).await;
    let claimed = claim(&next, 1, 2).await;
    assert_eq!((claimed.new, claimed.records), (false, 1));
    assert_eq!((next.status().journal, next.status().parked), (0, 0));
    let mut left = keys(&bucket, "*.platform.1.>").await;
    left.retain(|key| !key.starts_with("intents"));
    assert_eq!(left, [format!("records.platform.1.ns.{name}")]);
    assert_eq!(next.owned().len() as u32, SHARDS - 3);
}

#[tokio::test]
async fn a_row_that_is_too_large_holds_up_no_other() {
    let server = Server::start();
    let (bucket, ledger) = held(&server).await;
    let row = |id| EntityRow {
        id: EntityId(id),
        decision: Digest(u64::MAX - id),
        content: Digest(u64::MAX),
        counter: id + 1,
        ..EntityRow::default()
    };
    let large = Record { entities: (0..=45_000).map(row).collect(), settled: Settled::Now, ..counted(1) };
    ledger.update(&key(1, 0), |_| Some(large));
    for n in 1..50 {
        ledger.update(&key(1, n), |_| Some(counted(1)));
    }
    // What was acknowledged of the others stands there, and so may be acknowledged to the bus.
    flushed(&ledger).await;
    assert_eq!(keys(&bucket, "records.>").await.len(), 50);
    let status = ledger.status();
    assert_eq!((status.failing, status.cut, status.waiting), (false, 1, 0));
    assert_eq!(ledger.get(&key(1, 0)).unwrap().listed().count(), 45_000, "memory has room for it");
    ledger.update(&key(1, 1), |_| Some(counted(2)));
    flushed(&ledger).await;
    drop(ledger);

    // Whoever takes it over knows no resource of it, and gives none of its former keys to another report.
    let next = replica(&server).await;
    let claimed = claim(&next, 1, 2).await;
    assert_eq!((claimed.new, claimed.records), (false, 50));
    assert!(claimed.unfinished.contains(&key(1, 0)), "it is to be read, and reported");
    let cut = next.get(&key(1, 0)).unwrap();
    assert_eq!((cut.listed().count(), cut.settled), (0, Settled::Before));
    assert!(cut.counter(EntityId(44_999)) > 45_000);
    next.update(&key(1, 0), |_| Some(counted(2)));
    flushed(&next).await;
    assert_eq!(next.status().cut, 0);
}
