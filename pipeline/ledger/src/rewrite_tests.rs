//! A file that is lost while a process has it: written anew as a whole, or not there under its old id.

use std::fs;
use std::io::ErrorKind;

use super::file::{LedgerFile, opener};
use super::hostile_tests::{Fault, Faults, fast_folder, opener_with};
use super::tables::Row;
use super::tests::{counted, key};
use super::*;

const ALL: usize = 20;

fn rows(counter: u64) -> Vec<Row> {
    let packed = || Some(stored::encode(&counted(counter)).into());
    (0..ALL).map(|n| ((Table::Records, key(n)), packed())).collect()
}

/// A store whose file is gone, after a commit that failed; its id.
fn lost(path: &Path, faults: &Arc<Faults>) -> (LedgerFile, String) {
    faults.lift();
    let (mut store, loaded) = LedgerFile::open(path, "platform", opener_with(path, faults)).unwrap();
    store.commit(&rows(1), 1, Vec::new).unwrap();
    faults.set(Fault { kind: ErrorKind::StorageFull, call: 0, lasting: true, reads: false });
    store.commit(&rows(2)[..1], 2, Vec::new).unwrap_err();
    fs::remove_file(path).unwrap();
    faults.lift();
    (store, loaded.id)
}

/// What the next process finds after a kill at this moment: the id, and how many records.
fn after_a_kill(path: &Path, sink: &str) -> (String, usize) {
    let folder = fast_folder();
    let copy = folder.path().join("ledger.redb");
    fs::copy(path, &copy).unwrap();
    let (_store, loaded) = LedgerFile::open(&copy, sink, opener(copy.clone(), 1 << 20)).unwrap();
    (loaded.id, loaded.tables.records.len())
}

#[test]
fn a_file_that_is_written_anew_holds_everything_or_has_another_id() {
    let folder = fast_folder();
    let path = folder.path().join("ledger.redb");
    let never = Fault { kind: ErrorKind::StorageFull, call: u64::MAX, lasting: false, reads: false };
    let faults = Faults::new(never);
    let (mut failed, mut again) = (0, 0);
    for (lasting, reads) in [(false, false), (true, false), (false, true)] {
        for call in 0.. {
            let _ = fs::remove_file(&path);
            let (mut store, id) = lost(&path, &faults);
            faults.set(Fault { call, lasting, reads, ..never });
            let what = format!("call {call}, lasting {lasting}, reads {reads}");
            let judge = |when: &str| {
                let (found, records) = after_a_kill(&path, "platform");
                assert_eq!(found == id, records == ALL, "{when}, {what}: {records} records");
                assert!(records == 0 || records == ALL, "{when}, {what}: {records} records");
                records == ALL
            };
            let mut tries = 0;
            loop {
                let mut asked = false;
                let all = || {
                    judge("before all is written");
                    asked = true;
                    rows(2)
                };
                let done = store.commit(&rows(2)[..1], 2, all).is_ok();
                assert!(asked || !done, "{what}: a part was taken for all");
                if judge("after a try") && done {
                    break;
                }
                assert!(!done, "{what}: it was told that all is written");
                failed += 1;
                again += usize::from(tries > 0);
                tries += 1;
                if tries > 1 {
                    faults.lift();
                }
            }
            let met = faults.met();
            faults.lift();
            store.commit(&rows(3)[..1], 3, || panic!("{what}: all is there")).unwrap();
            assert!(judge("after the next commit"));
            if !met {
                break;
            }
        }
    }
    assert!(failed > 10 && again > 3, "{failed} failed, {again} of them again");
}

#[test]
fn what_another_sink_had_in_a_lost_file_is_gone_with_its_id() {
    let folder = fast_folder();
    let path = folder.path().join("ledger.redb");
    let faults = Faults::new(Fault { kind: ErrorKind::Other, call: u64::MAX, lasting: false, reads: false });
    let (mut store, id) = lost(&path, &faults);
    store.commit(&[], 2, || rows(2)).unwrap();
    assert_eq!(after_a_kill(&path, "platform"), (id.clone(), ALL));
    let (other, records) = after_a_kill(&path, "file");
    assert!(other != id && other.len() == 32, "its counters begin anew: {other}");
    assert_eq!((records, after_a_kill(&path, "third").0), (0, other));
}

#[test]
fn a_file_that_went_back_while_a_process_has_it_is_written_anew() {
    let folder = fast_folder();
    let path = folder.path().join("ledger.redb");
    let never = Fault { kind: ErrorKind::Other, call: u64::MAX, lasting: false, reads: false };
    for back in [true, false] {
        let _ = fs::remove_file(&path);
        let faults = Faults::new(never);
        let (mut store, loaded) = LedgerFile::open(&path, "platform", opener_with(&path, &faults)).unwrap();
        store.commit(&rows(1), 1, Vec::new).unwrap();
        let before = fs::read(&path).unwrap();
        store.commit(&rows(2), 2, Vec::new).unwrap();
        let last = fs::read(&path).unwrap();
        faults.set(Fault { call: 0, lasting: true, ..never });
        store.commit(&rows(3)[..1], 3, Vec::new).unwrap_err();
        faults.lift();
        fs::write(&path, if back { before } else { last }).unwrap();
        let mut asked = false;
        let all = || {
            asked = true;
            assert_eq!(after_a_kill(&path, "platform").1, 0, "it was set aside");
            rows(3)
        };
        store.commit(&rows(3)[..1], 4, all).unwrap();
        assert_eq!(asked, back);
        assert_eq!(after_a_kill(&path, "platform"), (loaded.id, ALL));
    }
}
