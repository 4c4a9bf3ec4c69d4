//! The ledger as its users see it: at once in memory, soon in the file, and there after a crash.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use pipeline_core::{Digest, Version};
use proptest::prelude::*;

use super::hostile_tests::{Fault, Faults, opener_with};
use super::stored::tests::a_record;
use super::tables::weight;
use super::*;

pub(super) fn key(n: usize) -> Key {
    Key::new("ns", &format!("app-{n}")).unwrap()
}

pub(super) fn counted(n: u64) -> Record {
    let mut record = Record::new("01234567-89ab-cdef-0123-456789abcdef".into());
    record.object_mut().counter = n;
    record
}

/// Groups of a length that only a flush, a full group or a close ends.
pub(super) fn slow() -> LedgerOptions {
    LedgerOptions { group_time: Duration::from_secs(600), ..LedgerOptions::new("platform") }
}

pub(super) fn open(path: &Path) -> Ledger {
    Ledger::open(path, slow()).unwrap()
}

#[test]
fn a_ledger_in_memory_remembers_and_forgets() {
    let ledger = Ledger::memory();
    assert_eq!(ledger.get(&key(1)), None);
    ledger.update(&key(1), |before| {
        assert_eq!(before, None);
        Some(counted(1))
    });
    let same = ledger.clone();
    assert_eq!(same.get(&key(1)), Some(counted(1)));
    assert_eq!(ledger.known(), [(key(1), "01234567-89ab-cdef-0123-456789abcdef".into())]);
    let one = ledger.status();
    assert_eq!((one.storage, one.records, one.waiting), ("memory", 1, 0));
    assert!(one.bytes > 50 && one.bytes < 200, "{}", one.bytes);
    ledger.update(&key(1), |before| before.filter(|_| false));
    assert_eq!((ledger.get(&key(1)), ledger.status().bytes), (None, 0));
    ledger.update(&key(1), |_| None);
    assert_eq!(ledger.status().records, 0);
}

#[test]
fn ids_are_32_digits_and_differ() {
    let ids: HashSet<String> = (0..1000).map(|_| Ledger::memory().id().to_owned()).collect();
    assert_eq!(ids.len(), 1000);
    assert!(ids.iter().all(|id| id.len() == 32 && id.chars().all(|c| c.is_ascii_hexdigit())));
}

#[test]
fn dropping_the_last_clone_writes_what_waits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.redb");
    let ledger = open(&path);
    assert_eq!(ledger.origin(), &Origin::New);
    let id = ledger.id().to_owned();
    for n in 0..10 {
        ledger.update(&key(n), |_| Some(counted(1)));
    }
    ledger.update(&key(3), |_| None);
    let other = ledger.clone();
    drop(ledger);
    assert_eq!(other.status().waiting, 10);
    drop(other);

    let ledger = open(&path);
    assert_eq!((ledger.origin(), ledger.id()), (&Origin::Existing, id.as_str()));
    assert_eq!((ledger.known().len(), ledger.get(&key(3)), ledger.get(&key(4))), (9, None, Some(counted(1))));
}

#[test]
fn what_is_done_of_a_kind_outlives_the_process_and_is_no_object() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.redb");
    let ledger = open(&path);
    assert_eq!(ledger.done_before("rollout"), None);
    ledger.done("rollout", Version(7));
    ledger.done("rollout", Version(9).in_era(1));
    ledger.done("", Version(8));
    drop(ledger);

    let ledger = open(&path);
    assert_eq!(ledger.done_before("rollout"), Some(Version(9).in_era(1)));
    assert_eq!((ledger.done_before("workflow"), ledger.done_before("")), (None, None));
    assert_eq!((ledger.known().len(), ledger.journaled().len(), ledger.status().records), (0, 0, 0));
}

#[tokio::test]
async fn a_flush_waits_for_the_commit_and_no_longer() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = open(&folder.path().join("ledger.redb"));
    ledger.flush().await.unwrap();
    assert_eq!(ledger.status().commits, 0);
    ledger.update(&key(1), |_| Some(counted(1)));
    assert_eq!((ledger.status().waiting, ledger.status().last_commit_age), (1, None));
    ledger.flush().await.unwrap();
    let status = ledger.status();
    assert_eq!((status.waiting, status.commits, status.errors), (0, 1, 0));
    assert!(status.last_commit_age.is_some());
    ledger.update(&key(1), |_| Some(counted(1)));
    ledger.flush().await.unwrap();
    assert_eq!(ledger.status().commits, 1, "a record that stays the same is not written again");
}

#[tokio::test]
async fn a_full_group_and_a_short_time_commit_by_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let committed = async |ledger: &Ledger| {
        let waited = Instant::now();
        while ledger.status().waiting > 0 {
            assert!(waited.elapsed() < Duration::from_secs(60), "no commit came by itself");
            tokio::task::yield_now().await;
        }
    };
    let full = LedgerOptions { group_size: 5, ..slow() };
    let ledger = Ledger::open(folder.path().join("full.redb"), full).unwrap();
    for n in 0..5 {
        ledger.update(&key(n), |_| Some(counted(1)));
    }
    committed(&ledger).await;

    let timed = LedgerOptions { group_time: Duration::from_millis(5), ..slow() };
    let ledger = Ledger::open(folder.path().join("timed.redb"), timed).unwrap();
    ledger.update(&key(1), |_| Some(counted(1)));
    committed(&ledger).await;
    assert_eq!(ledger.status().commits, 1);
}

#[tokio::test]
async fn a_closed_ledger_lets_go_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.redb");
    let ledger = open(&path);
    ledger.update(&key(1), |_| Some(counted(1)));
    ledger.close().await.unwrap();
    ledger.close().await.unwrap();
    assert_eq!(open(&path).get(&key(1)), Some(counted(1)));
    ledger.update(&key(2), |_| Some(counted(1)));
    assert_eq!(
        ledger.flush().await.unwrap_err().to_string(),
        "the ledger was closed with 1 records that are not written"
    );
}

/// A ledger on a disk that is full whenever `FULL` is set.
fn on_a_disk(path: &Path, options: LedgerOptions) -> (Ledger, Arc<Faults>) {
    let faults = Faults::new(FULL);
    faults.lift();
    (Ledger::open_with(path, options, opener_with(path, &faults)).unwrap(), faults)
}

const FULL: Fault = Fault { kind: std::io::ErrorKind::StorageFull, call: 0, lasting: true, reads: false };

#[tokio::test]
async fn a_full_disk_loses_nothing_and_is_written_when_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.redb");
    let options = LedgerOptions { retry: Duration::from_millis(5), ..slow() };
    let (ledger, faults) = on_a_disk(&path, options);
    ledger.update(&key(0), |_| Some(counted(1)));
    ledger.flush().await.unwrap();

    faults.set(FULL);
    for n in 0..300 {
        ledger.update(&key(n), |_| Some(counted(2)));
    }
    let error = ledger.flush().await.unwrap_err();
    assert_eq!(error.to_string(), "cannot write the ledger: 300 records wait in memory and are tried again");
    assert!(ledger.flush().await.is_err(), "opening the file again does not help while the disk is full");
    let status = ledger.status();
    assert!(status.failing && status.errors >= 2, "{status:?}");
    assert_eq!((status.commits, ledger.get(&key(299))), (1, Some(counted(2))));

    faults.lift();
    let waited = Instant::now();
    while ledger.status().failing {
        assert!(waited.elapsed() < Duration::from_secs(60), "the ledger did not try again by itself");
        tokio::task::yield_now().await;
    }
    assert_eq!(ledger.status().waiting, 0);
    drop(ledger);
    let ledger = open(&path);
    assert!((0..300).all(|n| ledger.get(&key(n)) == Some(counted(2))));
}

#[tokio::test]
async fn a_file_that_is_lost_or_spoiled_under_a_failure_is_written_anew() {
    for spoil in [None, Some(b"garbage".as_slice())] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.redb");
        let (ledger, faults) = on_a_disk(&path, slow());
        let id = ledger.id().to_owned();
        (0..20).for_each(|n| ledger.update(&key(n), |_| Some(counted(1))));
        ledger.flush().await.unwrap();
        faults.set(FULL);
        ledger.update(&key(0), |_| Some(counted(2)));
        ledger.flush().await.unwrap_err();
        match spoil {
            None => std::fs::remove_file(&path).unwrap(),
            Some(bytes) => std::fs::write(&path, bytes).unwrap(),
        }
        faults.lift();
        ledger.flush().await.unwrap();
        drop(ledger);

        let ledger = open(&path);
        assert_eq!((ledger.id(), ledger.known().len()), (id.as_str(), 20));
        assert_eq!(ledger.get(&key(0)), Some(counted(2)));
    }
}

#[tokio::test]
async fn another_ledger_in_the_files_place_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.redb");
    let other = folder.path().join("other.redb");
    drop(open(&other));
    let (ledger, faults) = on_a_disk(&path, slow());
    ledger.update(&key(0), |_| Some(counted(2)));
    faults.set(FULL);
    ledger.flush().await.unwrap_err();
    std::fs::rename(&other, &path).unwrap();
    faults.lift();
    let LedgerError::Write { source, .. } = ledger.flush().await.unwrap_err() else {
        panic!("not a write error")
    };
    assert_eq!(source.to_string(), "the ledger file was replaced by another ledger");
    assert_eq!(
        ledger.close().await.unwrap_err().to_string(),
        "the ledger was closed with 1 records that are not written"
    );
}

#[derive(Debug, Clone)]
enum Act {
    Put(usize, Box<Record>),
    Remove(usize),
    Bump(usize),
    Flush,
    Reopen,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0..6_usize, a_record()).prop_map(|(n, record)| Act::Put(n, Box::new(record))),
        2 => (0..6_usize).prop_map(Act::Remove),
        4 => (0..6_usize).prop_map(Act::Bump),
        1 => Just(Act::Flush),
        1 => Just(Act::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_ledger_is_a_map(acts in prop::collection::vec(act(), 1..40)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.redb");
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut ledger = open(&path);
        let mut model: BTreeMap<Key, Record> = BTreeMap::new();
        let bump = |record: Option<Record>| {
            let mut record = record?;
            record.version = Version(record.version.0.wrapping_add(1));
            record.object_mut().content = Digest(record.version.0);
            Some(record)
        };
        for act in acts {
            match act {
                Act::Put(n, record) => {
                    ledger.update(&key(n), |_| Some((*record).clone()));
                    model.insert(key(n), *record);
                }
                Act::Remove(n) => {
                    ledger.update(&key(n), |_| None);
                    model.remove(&key(n));
                }
                Act::Bump(n) => {
                    ledger.update(&key(n), bump);
                    if let Some(record) = bump(model.remove(&key(n))) {
                        model.insert(key(n), record);
                    }
                }
                Act::Flush => runtime.block_on(ledger.flush()).unwrap(),
                Act::Reopen => {
                    drop(ledger);
                    ledger = open(&path);
                }
            }
            for n in 0..6 {
                prop_assert_eq!(ledger.get(&key(n)), model.get(&key(n)).cloned());
            }
            let mut known = ledger.known();
            known.sort();
            let expected: Vec<_> = model.iter().map(|(key, record)| (key.clone(), record.uid.clone())).collect();
            prop_assert_eq!(known, expected);
            let weights: usize = model.iter().map(|(key, record)| weight(key, &stored::encode(record))).sum();
            prop_assert_eq!(ledger.status().bytes, weights);
        }
    }
}
