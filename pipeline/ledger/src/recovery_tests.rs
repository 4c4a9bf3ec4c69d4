//! A process that is killed while reports are on their way, and what else must outlive it.

use std::fs;

use bytes::Bytes;
use pipeline_core::{Digest, EntityId, Fact, Parked, Pending, Reason, Timestamp, Version};

use super::digests::tests::report;
use super::hostile_tests::fast_folder;
use super::tests::{counted, key, open, slow};
use super::*;

const UID: &str = "01234567-89ab-cdef-0123-456789abcdef";

fn state() -> Bytes {
    Bytes::from_static(b"https://git/store")
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

/// What a kill at this moment leaves, opened.
fn killed(path: &Path) -> (tempfile::TempDir, Ledger) {
    let folder = fast_folder();
    let copy = folder.path().join("ledger.redb");
    fs::copy(path, &copy).unwrap();
    fs::copy(intent_file::path_of(path, "platform"), intent_file::path_of(&copy, "platform")).unwrap();
    let ledger = open(&copy);
    (folder, ledger)
}

#[test]
fn what_was_on_its_way_is_known_after_a_kill() {
    let folder = fast_folder();
    let path = folder.path().join("ledger.redb");
    let (ledger, runtime) = (open(&path), runtime());
    let first = report(1, UID, EntityId::OBJECT, 1);
    let resource = report(1, UID, EntityId(4), 2);
    runtime.block_on(ledger.sending(&key(1), &first, Some(&state())));
    let (_held, after) = killed(&path);
    let record = after.get(&key(1)).unwrap();
    assert_eq!(
        (record.object().counter, record.object().in_doubt, &record.state, after.status().in_doubt),
        (0, true, &state(), 1)
    );
    assert_eq!(after.known(), [(key(1), UID.into())], "so that its deletion is noticed");

    ledger.acknowledge(&key(1), &first);
    assert_eq!(ledger.status().in_doubt, 0);
    runtime.block_on(ledger.sending(&key(1), &resource, None));
    let record = killed(&path).1.get(&key(1)).unwrap();
    assert!(record.object().in_doubt && record.entity(EntityId(4)).unwrap().in_doubt);

    let again = report(1, UID, EntityId::OBJECT, 3);
    runtime.block_on(ledger.sending(&key(1), &again, None));
    let record = killed(&path).1.get(&key(1)).unwrap();
    assert_eq!(
        (record.object().counter, record.object().content, record.object().in_doubt),
        (1, Digest(1), true)
    );

    ledger.acknowledge(&key(1), &again);
    ledger.acknowledge(&key(1), &resource);
    runtime.block_on(ledger.flush()).unwrap();
    let (_held, after) = killed(&path);
    assert_eq!((after.get(&key(1)), after.status().in_doubt), (ledger.get(&key(1)), 0));

    let end = Report { ends: true, ..report(1, UID, EntityId::OBJECT, 0) };
    runtime.block_on(ledger.sending(&key(1), &end, None));
    assert!(killed(&path).1.get(&key(1)).unwrap().object().in_doubt);
    ledger.acknowledge(&key(1), &end);
    runtime.block_on(ledger.flush()).unwrap();
    assert_eq!(killed(&path).1.known(), []);
}

#[test]
fn what_a_kill_left_is_committed_and_the_file_of_intents_emptied() {
    let folder = fast_folder();
    let path = folder.path().join("ledger.redb");
    let (ledger, runtime) = (open(&path), runtime());
    runtime.block_on(ledger.sending(&key(1), &report(1, UID, EntityId::OBJECT, 1), None));
    let (held, after) = killed(&path);
    let copy = held.path().join("ledger.redb");
    assert_eq!(after.status().waiting, 1);
    runtime.block_on(after.flush()).unwrap();
    after.acknowledge(&key(1), &report(1, UID, EntityId::OBJECT, 1));
    let expected = after.get(&key(1));
    runtime.block_on(after.close()).unwrap();
    // One intent, and two commits.
    let head = Owner { id: ledger.id().to_owned(), sink: "platform".to_owned() }.head(3);
    assert_eq!(fs::read(intent_file::path_of(&copy, "platform")).unwrap(), head);
    assert_eq!(open(&copy).get(&key(1)), expected);
}

#[test]
fn a_retry_of_what_the_file_knows_to_be_in_doubt_writes_nothing() {
    let folder = fast_folder();
    let path = folder.path().join("ledger.redb");
    let (ledger, runtime) = (open(&path), runtime());
    let first = report(1, UID, EntityId::OBJECT, 1);
    runtime.block_on(ledger.sending(&key(1), &first, None));
    runtime.block_on(ledger.flush()).unwrap();
    let numbered = || ledger.inner.shared.lock().numbered;
    let before = numbered();
    runtime.block_on(ledger.sending(&key(1), &first, None));
    assert_eq!(numbered(), before);
    assert_eq!(ledger.status().waiting, 0);
    assert!(killed(&path).1.get(&key(1)).unwrap().object().in_doubt);
}

/// Whether the file of one commit and the send intents of another, or none, are a ledger.
#[test]
fn a_ledger_that_is_older_than_its_intents_is_set_aside() {
    let folder = fast_folder();
    let path = folder.path().join("ledger.redb");
    let (ledger, runtime) = (open(&path), runtime());
    let mut files = Vec::new();
    for counter in 1..=3 {
        ledger.update(&key(1), |_| Some(counted(counter)));
        runtime.block_on(ledger.flush()).unwrap();
        files.push(fs::read(&path).unwrap());
    }
    let head = |covered| Owner { id: ledger.id().to_owned(), sink: "platform".to_owned() }.head(covered);
    let copy = folder.path().join("copy.redb");
    let intents = intent_file::path_of(&copy, "platform");
    for (n, file) in (1..).zip(&files) {
        for known in [None, Some(1), Some(2), Some(3)] {
            fs::write(&copy, file).unwrap();
            match known {
                Some(known) => fs::write(&intents, head(known)).unwrap(),
                None => fs::remove_file(&intents).unwrap_or_default(),
            }
            let opened = open(&copy);
            let what = format!("the file of commit {n}, and {known:?} is known");
            if known.is_some_and(|known| known > n) {
                assert!(matches!(opened.origin(), Origin::SetAside(_)), "{what}: {:?}", opened.origin());
                assert!(opened.id() != ledger.id() && opened.known().is_empty(), "{what}");
            } else {
                assert_eq!((opened.origin(), opened.id()), (&Origin::Existing, ledger.id()), "{what}");
                assert_eq!(opened.get(&key(1)), Some(counted(n)), "{what}");
            }
            drop(opened);
            assert_eq!(open(&copy).origin(), &Origin::Existing, "{what}, opened again");
        }
    }
}

#[test]
fn a_file_of_intents_of_another_ledger_is_replaced_and_a_damaged_one_used_as_far_as_it_goes() {
    let folder = fast_folder();
    let path = folder.path().join("ledger.redb");
    let (ledger, runtime) = (open(&path), runtime());
    for n in 0..9 {
        runtime.block_on(ledger.sending(&key(n), &report(n, UID, EntityId::OBJECT, 1), None));
    }
    let other = folder.path().join("other.redb");
    fs::copy(intent_file::path_of(&path, "platform"), intent_file::path_of(&other, "platform")).unwrap();
    let ledger = open(&other);
    assert_eq!(ledger.known(), []);
    drop(ledger);
    assert!(fs::read(intent_file::path_of(&other, "platform")).unwrap().len() < 100);

    let whole = fs::read(intent_file::path_of(&path, "platform")).unwrap();
    let empty = fs::read(&path).unwrap();
    let copy = folder.path().join("copy.redb");
    for at in (0..whole.len()).step_by(3) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        for (bytes, least) in [(bytes.as_slice(), 8), (&whole[..at], 0)] {
            fs::write(&copy, &empty).unwrap();
            fs::write(intent_file::path_of(&copy, "platform"), bytes).unwrap();
            let ledger = open(&copy);
            let known = ledger.known();
            assert!(known.len() >= least && known.len() <= 9, "byte {at}: {} are known", known.len());
            assert!(
                known.iter().all(|(key, _)| ledger.get(key).is_some_and(|record| record.object().in_doubt))
            );
        }
    }
}

#[test]
fn a_file_of_intents_that_cannot_be_written_stops_nothing() {
    let folder = fast_folder();
    let path = folder.path().join("ledger.redb");
    fs::create_dir_all(intent_file::path_of(&path, "platform").join("in the way")).unwrap();
    let (ledger, runtime) = (open(&path), runtime());
    let first = report(1, UID, EntityId::OBJECT, 1);
    runtime.block_on(ledger.sending(&key(1), &first, None));
    ledger.acknowledge(&key(1), &first);
    runtime.block_on(ledger.flush()).unwrap();
    assert!(ledger.status().intent_errors > 0);
    drop(ledger);
    assert_eq!(open(&path).get(&key(1)).unwrap().object().counter, 1);
}

#[test]
fn when_something_was_reported_is_remembered() {
    let folder = fast_folder();
    let path = folder.path().join("ledger.redb");
    let ledger = open(&path);
    let before = state::seconds();
    ledger.acknowledge(&key(1), &report(1, UID, EntityId::OBJECT, 1));
    ledger.update(&key(2), |_| Some(counted(1)));
    ledger.update(&key(3), |_| Some(Record { reported: 50, ..counted(1) }));
    let reported = ledger.get(&key(1)).unwrap().reported;
    assert!((before..=state::seconds()).contains(&reported) && before > 1_700_000_000);
    drop(ledger);
    let ledger = open(&path);
    assert_eq!(ledger.reported_since(0), [key(1), key(2), key(3)]);
    assert_eq!(ledger.reported_since(51), [key(1), key(2)]);
    assert_eq!(ledger.reported_since(u32::MAX), [key(2)], "of this one it is not known");
}

fn pending(message: usize) -> Pending {
    let end = Fact { id: Digest(6), body: "m".repeat(message).into() };
    Pending { facts: vec![(UID.into(), Version(5), end)], gone: vec![("old".into(), Version(3))] }
}

fn parked() -> Parked {
    Parked {
        reason: Reason::Refused,
        at: Timestamp::from_second(1_700_000_000).unwrap(),
        version: Version(9),
        uid: Some(UID.into()),
        refused: [(EntityId::OBJECT, Digest(4), Reason::TooLarge)].into(),
    }
}

#[test]
fn what_is_journaled_and_parked_outlives_the_process() {
    let folder = fast_folder();
    let path = folder.path().join("ledger.redb");
    let ledger = open(&path);
    for n in 0..3 {
        ledger.journal(&key(n), Some(pending(n)));
        ledger.park(&key(n), Some(parked()));
    }
    ledger.journal(&key(1), None);
    ledger.park(&key(2), None);
    drop(ledger);
    let ledger = open(&path);
    assert_eq!(ledger.journaled(), [(key(0), pending(0)), (key(2), pending(2))]);
    assert_eq!(ledger.parked(), [(key(0), parked()), (key(1), parked())]);
    let status = ledger.status();
    assert_eq!((status.journal, status.parked, status.records, status.waiting), (2, 2, 0, 0));
    ledger.journal(&key(0), Some(pending(0)));
    ledger.park(&key(0), Some(parked()));
    assert_eq!(ledger.status().waiting, 0, "what stays the same is not written again");
}

#[test]
fn a_full_journal_refuses_and_counts() {
    let ledger = Ledger::memory();
    let large = |n: usize| pending(1_000_000 + n);
    for n in 0..16 {
        assert!(ledger.journal(&key(n), Some(large(0))));
    }
    assert_eq!((ledger.status().journal, ledger.status().journal_refused), (16, 0));
    assert!(!ledger.journal(&key(16), Some(large(0))), "told, so that it is offered again");
    assert!(!ledger.journal(&key(3), Some(large(900_000))));
    assert!(ledger.journal(&key(3), Some(large(0))), "what is there is kept");
    let status = ledger.status();
    assert_eq!((status.journal, status.journal_refused), (16, 2));
    assert!(status.journal_bytes > 16_000_000 && status.journal_bytes < 16 << 20);
    assert_eq!(ledger.journaled().iter().find(|(held, _)| *held == key(3)).unwrap().1, large(0));
    assert!(ledger.journal(&key(3), None));
    assert!(ledger.journal(&key(16), Some(large(0))), "there is room again");
    assert_eq!((ledger.status().journal, ledger.status().journal_refused), (16, 2));
    assert!((0..17).all(|n| ledger.journal(&key(n), None)));
    assert_eq!((ledger.status().journal, ledger.status().journal_bytes), (0, 0));
}

#[test]
fn a_damaged_entry_of_the_journal_is_dropped_and_the_rest_kept() {
    let folder = fast_folder();
    let path = folder.path().join("ledger.redb");
    let ledger = open(&path);
    let id = ledger.id().to_owned();
    for n in 0..3 {
        ledger.update(&key(n), |_| Some(counted(1)));
        ledger.journal(&key(n), Some(pending(n)));
        ledger.park(&key(n), Some(parked()));
    }
    drop(ledger);
    let database = redb::Database::create(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    for (table, key) in [("journal/platform", "ns/app-1"), ("parked/platform", "no key")] {
        let sealed = stored::seal("another", b"\x01");
        transaction.open_table(file::definition(table)).unwrap().insert(key, sealed.as_slice()).unwrap();
    }
    transaction.commit().unwrap();
    drop(database);
    for _ in 0..2 {
        let ledger = open(&path);
        assert_eq!((ledger.id(), ledger.origin(), ledger.known().len()), (id.as_str(), &Origin::Existing, 3));
        assert_eq!(ledger.journaled(), [(key(0), pending(0)), (key(2), pending(2))]);
        assert_eq!(ledger.parked().len(), 3);
    }
}

#[tokio::test]
async fn a_closed_ledger_makes_nobody_wait() {
    let folder = fast_folder();
    let ledger = Ledger::open(folder.path().join("ledger.redb"), slow()).unwrap();
    ledger.close().await.unwrap();
    ledger.sending(&key(1), &report(1, UID, EntityId::OBJECT, 1), None).await;
    assert!(ledger.get(&key(1)).unwrap().object().in_doubt);
    Ledger::memory().sending(&key(1), &report(1, UID, EntityId::OBJECT, 1), None).await;
}
