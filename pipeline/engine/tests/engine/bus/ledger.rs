//! The ledger in a bucket: shards are claimed, taken over, fenced and released.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use pipeline_bus::jetstream::Expect;
use pipeline_core::{Digest, Fact, Parked, Pending, Reason, Timestamp, Version};
use pipeline_ledger::{Claimed, Ledger, LedgerError, LedgerOptions, refusing_claims};

use crate::bus::ledger_world::{
    SHARDS, UID, bucket, claim, counted, flushed, key, keys, replica, report, reported, settle, sharding,
    slow, until, with,
};
use crate::bus::world::soon;
use crate::server::Server;

const NEW: Claimed = Claimed { new: true, records: 0, unfinished: Vec::new() };

fn pending() -> Pending {
    let end = Fact { id: Digest(5), body: "done".into() };
    Pending { facts: vec![(UID.into(), Version(3), end)], gone: Vec::new() }
}

fn parked() -> Parked {
    Parked {
        reason: Reason::ALL[0],
        at: Timestamp::from_second(1_700_000_000).unwrap(),
        version: Version(7),
        uid: Some(UID.into()),
        refused: [].into(),
    }
}

#[tokio::test]
async fn a_claimed_shard_outlives_its_owner() {
    let server = Server::start();
    let first = replica(&server).await;
    assert_eq!((first.status().storage, first.id(), first.owned().len()), ("bucket", "", 0));
    assert_eq!(claim(&first, 1, 10).await, NEW);
    assert_eq!(first.owned(), BTreeSet::from([1]));
    let (a, b, c) = (key(1, 0), key(1, 1), key(1, 2));
    let id = first.id_of(&a);
    assert!(id.len() == 32 && id.chars().all(|digit| digit.is_ascii_hexdigit()), "{id}");
    reported(&first, &a, 5).await;
    reported(&first, &a, 6).await;
    first.acknowledge(&b, &report(&b, 5));
    first.update(&c, |_| Some(counted(3)));
    assert!(first.journal(&a, Some(pending())));
    first.park(&b, Some(parked()));
    let digests = first.digests(|_| Some(0));
    soon("the end", first.close()).await.unwrap();
    assert_eq!(first.status().waiting, 0);

    let second = replica(&server).await;
    let claimed = claim(&second, 1, 11).await;
    assert_eq!(claimed, Claimed { new: false, records: 3, unfinished: vec![b.clone(), c.clone()] });
    assert_eq!(second.id_of(&a), id, "so that keys go on");
    for key in [&a, &b, &c] {
        assert_eq!(second.get(key), first.get(key));
    }
    assert_eq!(second.get(&a).unwrap().object().counter, 2);
    assert_eq!(second.journaled(), [(a.clone(), pending())]);
    assert_eq!(second.parked(), [(b.clone(), parked())]);
    assert_eq!(second.digests(|_| Some(0)), digests);
    assert_eq!(second.digest(&a), first.digest(&a));
    let (old, new) = (first.status(), second.status());
    assert_eq!((old.records, old.bytes, old.in_doubt), (new.records, new.bytes, new.in_doubt));
    assert_eq!((old.journal, old.journal_bytes, old.parked), (new.journal, new.journal_bytes, new.parked));
}

#[tokio::test]
async fn two_shards_stand_side_by_side() {
    let server = Server::start();
    let (one, other) = (replica(&server).await, replica(&server).await);
    claim(&one, 0, 1).await;
    claim(&one, 1, 1).await;
    claim(&other, 2, 1).await;
    for shard in [0, 1, 2] {
        let ledger = if shard < 2 { &one } else { &other };
        reported(ledger, &key(shard, 0), u64::from(shard) + 1).await;
    }
    assert_ne!(one.id_of(&key(0, 0)), one.id_of(&key(1, 0)));
    assert_ne!(one.digest(&key(0, 0)), None);
    flushed(&one).await;
    flushed(&other).await;

    // Of a shard that is not held nothing is remembered, and nothing may go.
    let foreign = key(2, 0);
    assert_eq!(one.get(&foreign), None);
    assert!(!one.sending(&foreign, &report(&foreign, 9), None).await);
    one.update(&foreign, |_| Some(counted(7)));
    one.acknowledge(&foreign, &report(&foreign, 9));
    one.checkpoint(&foreign, &settle(), &[]);
    one.park(&foreign, Some(parked()));
    assert!(one.journal(&foreign, Some(pending())), "it is somebody else's to keep");
    assert_eq!((one.status().records, one.status().journal, one.status().parked), (2, 0, 0));
    assert_eq!((one.status().waiting, &*one.id_of(&foreign)), (0, ""));

    // One shard moves, the other stays.
    let before = one.get(&key(1, 0));
    soon("a release", one.release(1)).await.unwrap();
    assert_eq!((one.get(&key(1, 0)), one.owned()), (None, BTreeSet::from([0])));
    assert_eq!(claim(&other, 1, 2).await, Claimed { new: false, records: 1, unfinished: Vec::new() });
    assert_eq!(other.get(&key(1, 0)), before);
    assert_eq!(other.digests(|key| Some(sharding().place(key))).len(), 2);
    reported(&one, &key(0, 0), 77).await;
    flushed(&one).await;
    assert!(one.fenced().borrow().is_empty() && other.fenced().borrow().is_empty());
}

#[tokio::test]
async fn a_stale_owner_writes_nothing_and_learns_it() {
    let server = Server::start();
    let (stale, owner) = (replica(&server).await, replica(&server).await);
    let (a, b, elsewhere) = (key(3, 0), key(3, 1), key(0, 0));
    claim(&stale, 3, 1).await;
    claim(&stale, 0, 1).await;
    reported(&stale, &a, 1).await;
    flushed(&stale).await;
    let mut fenced = stale.fenced();
    assert!(fenced.borrow_and_update().is_empty());

    assert_eq!(claim(&owner, 3, 2).await.records, 1);
    let theirs = owner.get(&a);
    stale.acknowledge(&a, &report(&a, 2));
    stale.acknowledge(&b, &report(&b, 2));
    stale.update(&elsewhere, |_| Some(counted(4)));
    flushed(&stale).await;
    soon("the word that it is fenced", fenced.changed()).await.unwrap();
    assert_eq!(*fenced.borrow_and_update(), BTreeSet::from([3]));
    assert_eq!((stale.owned(), stale.get(&a), stale.get(&b)), (BTreeSet::from([0]), None, None));
    assert_eq!(stale.get(&elsewhere), Some(counted(4)), "another shard is as it was");
    let status = stale.status();
    assert_eq!((status.waiting, status.failing, status.errors), (0, false, 1));
    assert_eq!(owner.get(&a), theirs);

    let third = replica(&server).await;
    assert_eq!(claim(&third, 3, 3).await.records, 1, "nothing of the stale owner's was written");
    assert_eq!(third.get(&a), theirs);
    assert_eq!(claim(&third, 0, 3).await.records, 1);
    let refused = stale.claim(3, 1).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "shard 3 of the ledger belongs to a newer owner: its epoch is 3, and this one's is 1"
    );
    assert!(matches!(refused, LedgerError::Fenced { shard: 3, found: 3, own: 1 }));

    assert_eq!(claim(&stale, 3, 4).await.records, 1, "it may own it again");
    assert!(stale.fenced().borrow().is_empty());
    assert_eq!(stale.get(&a), theirs);
}

#[tokio::test]
async fn a_report_of_a_stale_owner_does_not_go() {
    let server = Server::start();
    let (stale, owner) = (replica(&server).await, replica(&server).await);
    let a = key(3, 0);
    claim(&stale, 3, 1).await;
    claim(&owner, 3, 2).await;
    assert!(!soon("the answer", stale.sending(&a, &report(&a, 1), None)).await);
    assert_eq!(*stale.fenced().borrow(), BTreeSet::from([3]));
    assert_eq!(stale.status().records, 0);
    assert!(keys(&bucket(&server).await, "intents.>").await.is_empty());
}

#[tokio::test]
async fn the_same_epoch_fences_as_well() {
    let server = Server::start();
    let (one, other) = (replica(&server).await, replica(&server).await);
    claim(&one, 0, 5).await;
    claim(&other, 0, 5).await;
    one.update(&key(0, 0), |_| Some(counted(1)));
    flushed(&one).await;
    assert_eq!(*one.fenced().borrow(), BTreeSet::from([0]));
}

#[tokio::test]
async fn whoever_claims_a_shard_for_good_has_it_whatever_its_clock_says() {
    let server = Server::start();
    let (one, other) = (replica(&server).await, replica(&server).await);
    claim(&one, 0, u64::MAX - 1).await;
    reported(&one, &key(0, 0), 1).await;
    flushed(&one).await;
    for (next, before) in [(&other, &one), (&one, &other)] {
        let claimed = soon("a claim", next.claim_for_good(0)).await.unwrap();
        assert_eq!((claimed.new, claimed.records), (false, 1));
        before.update(&key(0, 0), |_| Some(counted(9)));
        flushed(before).await;
        assert_eq!(*before.fenced().borrow(), BTreeSet::from([0]), "the newest has it");
    }
    assert_eq!(soon("a claim", one.claim_for_good(1)).await.unwrap(), NEW);
}

#[tokio::test]
async fn claims_that_refuse_a_process_are_found_without_claiming() {
    let server = Server::start();
    let bucket = bucket(&server).await;
    let found = async |sink: Option<&'static str>| {
        let found = refusing_claims(&bucket, sink, sharding()).await.unwrap();
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(found(None).await, [""; 0], "there is no bucket");
    claim(&replica(&server).await, 0, 1).await;
    assert_eq!(found(Some("platform")).await, [""; 0]);
    for (key, value) in [
        ("claim.platform.1", r#"{"format":8,"epoch":1,"ledger":"x","sharding":"jump:4"}"#),
        ("claim.platform.2", r#"{"format":2,"epoch":1,"ledger":"x","sharding":"jump:\u001b5"}"#),
        ("claim.platform.3", "garbage: everything is reported again"),
        ("claim.other.3", r#"{"format":9,"epoch":1,"ledger":"x","sharding":"jump:4"}"#),
    ] {
        bucket.put(key, value.into(), Expect::Anything).await.unwrap();
    }
    let ours = [
        "claim of shard 1 of the ledger: format is 8, and should be 2 or less",
        "claim of shard 2 of the ledger: sharding is jump:\\u{1b}5, and should be jump:4",
    ];
    assert_eq!(found(Some("platform")).await, ours);
    let other = "claim of shard 3 of the ledger: format is 9, and should be 2 or less";
    assert_eq!(found(None).await, [ours[0], ours[1], other]);
}

#[tokio::test]
async fn a_shard_that_is_forgotten_is_not_written() {
    let server = Server::start();
    let ledger = replica(&server).await;
    claim(&ledger, 0, 1).await;
    claim(&ledger, 1, 1).await;
    ledger.update(&key(0, 0), |_| Some(counted(1)));
    ledger.update(&key(1, 0), |_| Some(counted(1)));
    ledger.forget(0);
    assert_eq!((ledger.get(&key(0, 0)), ledger.status().waiting), (None, 1));
    flushed(&ledger).await;
    ledger.update(&key(1, 1), |_| Some(counted(1)));
    ledger.forget(1);
    flushed(&ledger).await;
    let status = ledger.status();
    assert_eq!((status.records, status.bytes, status.in_doubt, status.waiting), (0, 0, 0, 0));
    assert!(ledger.fenced().borrow().is_empty(), "it was told to");
    assert_eq!(
        keys(&bucket(&server).await, "records.>").await,
        [format!("records.platform.1.ns.{}", key(1, 0).name())]
    );
    ledger.forget(1);
    soon("the release of nothing", ledger.release(1)).await.unwrap();
}

#[tokio::test]
async fn rows_of_what_is_not_remembered_any_more_are_removed() {
    let server = Server::start();
    let ledger = replica(&server).await;
    claim(&ledger, 2, 1).await;
    let a = key(2, 0);
    reported(&ledger, &a, 1).await;
    ledger.journal(&a, Some(pending()));
    ledger.park(&a, Some(parked()));
    flushed(&ledger).await;
    let bucket = bucket(&server).await;
    let row = |kind: &str| format!("{kind}.platform.2.ns.{}", a.name());
    for kind in ["records", "journal", "parked"] {
        assert_eq!(keys(&bucket, &format!("{kind}.>")).await, [row(kind)]);
    }
    let end = pipeline_core::Report { ends: true, ..report(&a, 0) };
    assert!(ledger.sending(&a, &end, None).await);
    ledger.acknowledge(&a, &end);
    ledger.journal(&a, None);
    ledger.park(&a, None);
    flushed(&ledger).await;
    for kind in ["records", "journal", "parked"] {
        assert!(keys(&bucket, &format!("{kind}.>")).await.is_empty(), "{kind}");
    }
    assert_eq!(claim(&replica(&server).await, 2, 2).await.records, 0);
}

#[tokio::test]
async fn an_object_that_is_made_again_replaces_its_row() {
    let server = Server::start();
    let ledger = replica(&server).await;
    claim(&ledger, 2, 1).await;
    let a = key(2, 0);
    reported(&ledger, &a, 1).await;
    let again = pipeline_core::Report { uid: "another".into(), version: Version(99), ..report(&a, 0) };
    ledger.acknowledge(&a, &again);
    flushed(&ledger).await;
    assert_eq!(keys(&bucket(&server).await, "records.>").await.len(), 1);
    let next = replica(&server).await;
    claim(&next, 2, 2).await;
    assert_eq!(&*next.get(&a).unwrap().uid, "another");
}

#[tokio::test]
async fn many_rows_are_written_and_loaded() {
    let server = Server::start();
    let ledger = of_one_shard(&server).await;
    claim(&ledger, 0, 1).await;
    let key = |n: usize| pipeline_core::Key::new("ns", &format!("app-{n}")).unwrap();
    let begun = Instant::now();
    for n in 0..3_000 {
        ledger.update(&key(n), |_| Some(counted(n as u64)));
    }
    flushed(&ledger).await;
    let written = begun.elapsed();
    drop(ledger);
    let begun = Instant::now();
    let ledger = of_one_shard(&server).await;
    assert_eq!(claim(&ledger, 0, 2).await.records, 3_000);
    println!("3,000 rows were written in {written:?} and claimed in {:?}", begun.elapsed());
    for n in 0..3_000 {
        assert_eq!(ledger.get(&key(n)), Some(counted(n as u64)));
    }
}

async fn of_one_shard(server: &Server) -> Ledger {
    let one = pipeline_ownership::sharding::Sharding::Jump { shards: std::num::NonZeroU32::MIN };
    Ledger::in_bucket(bucket(server).await, one, slow()).unwrap()
}

#[tokio::test]
async fn groups_are_written_by_themselves() {
    let server = Server::start();
    let quick = LedgerOptions { group_time: Duration::from_millis(5), ..slow() };
    let ledger = with(&server, quick).await;
    claim(&ledger, 0, 1).await;
    ledger.update(&key(0, 0), |_| Some(counted(1)));
    until("a group of one", async || ledger.status().commits == 1).await;
    let full = LedgerOptions { group_size: 2, sink: "other".into(), ..slow() };
    let ledger = with(&server, full).await;
    claim(&ledger, 0, 1).await;
    ledger.update(&key(0, 0), |_| Some(counted(1)));
    ledger.update(&key(0, 1), |_| Some(counted(1)));
    until("a full group", async || ledger.status().commits == 1).await;
    assert_eq!(keys(&bucket(&server).await, "records.*.0.>").await.len(), 3, "sinks stand side by side");
}

#[tokio::test]
async fn what_another_version_or_configuration_wrote_is_refused() {
    let server = Server::start();
    let ledger = replica(&server).await;
    claim(&ledger, 0, 1).await;
    let more = of_one_shard(&server).await;
    assert_eq!(
        more.claim(0, 2).await.unwrap_err().to_string(),
        "the ledger in the bucket was written with the sharding jump:4, and this process has jump:1: give all replicas \
         the same number of shards, or another prefix of the bus, and everything is reported again"
    );
    let bucket = bucket(&server).await;
    let newer = r#"{"format":3,"epoch":1,"ledger":"x","sharding":"jump:4"}"#;
    bucket.put("claim.platform.1", newer.into(), Expect::Anything).await.unwrap();
    assert_eq!(
        ledger.claim(1, 2).await.unwrap_err().to_string(),
        "the ledger in the bucket has format 3, and this version knows formats up to 2: run the version that wrote it"
    );
    let long = LedgerOptions::new("x".repeat(513));
    assert_eq!(
        Ledger::in_bucket(bucket, sharding(), long).unwrap_err().to_string(),
        "cannot name the ledger in the bucket"
    );
}

#[tokio::test]
async fn replicas_that_claim_at_once_agree_on_one() {
    let server = Server::start();
    let (one, other) = (replica(&server).await, replica(&server).await);
    for shard in 0..SHARDS {
        let (first, second) = tokio::join!(one.claim(shard, 1), other.claim(shard, 2));
        second.unwrap();
        if first.is_ok() {
            one.update(&key(shard, 0), |_| Some(counted(1)));
        }
        other.update(&key(shard, 0), |_| Some(counted(2)));
    }
    flushed(&one).await;
    flushed(&other).await;
    assert_eq!((one.owned().len(), other.owned().len()), (0, SHARDS as usize));
    let next = replica(&server).await;
    for shard in 0..SHARDS {
        assert_eq!(claim(&next, shard, 3).await.records, 1);
        assert_eq!(next.get(&key(shard, 0)), Some(counted(2)));
        assert_eq!(next.id_of(&key(shard, 0)), other.id_of(&key(shard, 0)));
    }
}

#[tokio::test]
async fn a_ledger_elsewhere_holds_everything() {
    let ledger = Ledger::memory();
    assert_eq!(ledger.claim(0, 1).await.unwrap(), Claimed { new: false, records: 0, unfinished: Vec::new() });
    assert_eq!((&*ledger.id_of(&key(0, 0)), ledger.owned().len()), (ledger.id(), 0));
    ledger.acknowledge(&key(0, 0), &report(&key(0, 0), 1));
    ledger.forget(0);
    ledger.release(0).await.unwrap();
    assert!(ledger.sending(&key(0, 0), &report(&key(0, 0), 2), None).await);
    assert!(ledger.get(&key(0, 0)).is_some() && ledger.fenced().borrow().is_empty());
    let mut fenced = ledger.fenced();
    assert!(futures::poll!(std::pin::pin!(fenced.changed())).is_pending(), "nothing ever stands there");
    assert_ne!(ledger.digest(&key(0, 0)).unwrap().digest, Digest::NONE.0.into());
}
