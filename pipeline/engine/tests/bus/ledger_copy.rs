//! A ledger moves from a file into a bucket.

use std::path::Path;

use pipeline_bus::jetstream::Expect;
use pipeline_core::{Key, Pending, Record, Version};
use pipeline_ledger::{Copied, Ledger, LedgerError, LedgerOptions};

use crate::ledger_world::{SHARDS, UID, bucket, claim, counted, key, keys, replica, report, settle, slow};
use crate::server::Server;
use crate::world::soon;

fn open(folder: &Path) -> Ledger {
    Ledger::open(folder.join("ledger.redb"), LedgerOptions::new("platform")).unwrap()
}

fn pending() -> Pending {
    Pending { facts: Vec::new(), gone: vec![(UID.into(), Version(3))] }
}

fn filled(folder: &Path) -> Ledger {
    let ledger = open(folder);
    for shard in 0..SHARDS - 1 {
        for n in 0..50 {
            let key = key(shard, n);
            ledger.acknowledge(&key, &report(&key, n as u64));
            ledger.checkpoint(&key, &settle(), &[]);
        }
    }
    ledger.update(&key(0, 60), |_| Some(Record { in_doubt: true, ..counted(5) }));
    assert!(ledger.journal(&key(0, 0), Some(pending())));
    ledger
}

#[tokio::test]
async fn a_copied_ledger_goes_on_under_the_same_keys() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let file = filled(folder.path());
    let bucket = bucket(&server).await;
    let copied = soon("a copy", file.copy_to(&bucket, &slow())).await.unwrap();
    assert_eq!(copied, Copied { shards: SHARDS, records: 151, journal: 1, parked: 0 });

    let next = replica(&server).await;
    let mut records = 0;
    for shard in 0..SHARDS {
        let claimed = claim(&next, shard, 1).await;
        assert!(!claimed.new, "an empty shard has the file's id as well");
        assert_eq!(&*next.id_of(&key(shard, 0)), file.id());
        records += claimed.records;
        assert_eq!(claimed.unfinished, if shard == 0 { vec![key(0, 60)] } else { Vec::new() });
    }
    assert_eq!((records, next.known()), (151, file.known()));
    for (key, _) in file.known() {
        assert_eq!(next.get(&key), file.get(&key));
    }
    assert_eq!((next.journaled(), next.digests(|_| Some(0))), (file.journaled(), file.digests(|_| Some(0))));
    assert_eq!(next.status().in_doubt, 1);
}

#[tokio::test]
async fn nothing_is_copied_over_a_ledger_that_is_used() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let file = filled(folder.path());
    let owner = replica(&server).await;
    claim(&owner, 3, 1).await;
    let bucket = bucket(&server).await;
    let taken = file.copy_to(&bucket, &slow()).await.unwrap_err();
    assert_eq!(
        taken.to_string(),
        "the bucket holds a ledger already: shard 3 was claimed by a running replica; remove the bucket, or leave the \
         file's ledger behind"
    );
    assert!(matches!(taken, LedgerError::Taken { shard: 3 }));
    assert!(keys(&bucket, "records.>").await.is_empty());

    let folder = tempfile::tempdir().unwrap();
    let other = Ledger::open(folder.path().join("x"), LedgerOptions::new("elsewhere")).unwrap();
    let elsewhere = pipeline_ledger::BucketOptions { sink: "elsewhere".into(), ..slow() };
    soon("a copy of another sink", other.copy_to(&bucket, &elsewhere)).await.unwrap();
    let again = filled(folder.path()).copy_to(&bucket, &elsewhere).await.unwrap_err();
    assert!(
        matches!(again, LedgerError::Taken { .. }),
        "another file's ledger is no interrupted copy of this one"
    );
}

#[tokio::test]
async fn a_copy_that_was_interrupted_is_made_again() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let file = filled(folder.path());
    let bucket = bucket(&server).await;
    soon("a copy", file.copy_to(&bucket, &slow())).await.unwrap();
    // As it was before some of the claims were written.
    for shard in [1, 3] {
        bucket.remove(&format!("claim.platform.{shard}"), Expect::Anything).await.unwrap();
    }
    // Meanwhile the file went on.
    file.update(&key(0, 0), |_| None);
    file.journal(&key(0, 0), None);
    file.update(&key(1, 0), |_| Some(counted(77)));
    let copied = soon("a second copy", file.copy_to(&bucket, &slow())).await;
    let copied = copied.unwrap();
    assert_eq!(copied, Copied { shards: SHARDS, records: 150, journal: 0, parked: 0 });
    let next = replica(&server).await;
    for shard in 0..SHARDS {
        assert!(!claim(&next, shard, 1).await.new);
    }
    assert_eq!(next.known(), file.known());
    assert_eq!((next.get(&key(1, 0)), next.journaled().len()), (Some(counted(77)), 0));
}

#[tokio::test]
async fn a_shard_that_is_claimed_while_it_is_copied_stays_its_owners() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let file = filled(folder.path());
    let bucket = bucket(&server).await;
    soon("a copy", file.copy_to(&bucket, &slow())).await.unwrap();
    let owner = replica(&server).await;
    claim(&owner, 0, 1).await;
    assert!(matches!(file.copy_to(&bucket, &slow()).await.unwrap_err(), LedgerError::Taken { shard: 0 }));
    owner.update(&key(0, 0), |_| Some(counted(9)));
    soon("a flush", owner.flush()).await.unwrap();
    assert!(owner.fenced().borrow().is_empty());
}

#[tokio::test]
async fn shards_whose_copy_was_cut_off_are_cleared_at_once() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let file = open(folder.path());
    for n in 0..1_500 {
        file.update(&Key::new("argocd", &format!("app-{n}")).unwrap(), |_| Some(counted(1)));
    }
    let bucket = bucket(&server).await;
    soon("a copy", file.copy_to(&bucket, &slow())).await.unwrap();
    for shard in 0..SHARDS {
        bucket.remove(&format!("claim.platform.{shard}"), Expect::Anything).await.unwrap();
    }
    let next = replica(&server).await;
    let claims = (0..SHARDS).map(|shard| next.claim(shard, 1));
    let claimed = soon("claims of all at once", futures::future::join_all(claims)).await;
    assert!(claimed.into_iter().all(|claimed| claimed.unwrap().new));
    assert!(keys(&bucket, "records.>").await.is_empty());
    assert_eq!(next.status().records, 0);
}
