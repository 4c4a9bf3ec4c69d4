//! Files of earlier formats, and files with room to give back.

use std::fs;

use pipeline_core::{Digest, EntityId, Key, Record, ResourceRow, Unanswered, Version};

use super::*;
use crate::hostile_tests::{Fault, Faults, fast_folder, in_two_phases, opener_with};
use crate::packed::tests::earlier_format;
use crate::tests::{key, open, slow};
use crate::{Ledger, LedgerOptions, Origin};

fn record(n: u64) -> Record {
    let mut record = Record::new(format!("01234567-89ab-cdef-0123-{n:012x}").into());
    record.version = Version(n + 100);
    record.counter = 3;
    record.stub.repo_url = "https://git/store".to_owned();
    record.resources = (0..n % 5)
        .map(|id| ResourceRow {
            id: EntityId(id),
            decision: Digest(id + 1),
            content: Digest(n),
            counter: 2,
            owed: id == 1,
            unsure: false,
            unanswered: Unanswered::default(),
        })
        .collect();
    record
}

/// A file as an earlier format had it: two tables of records, and no word of what is covered.
fn earlier_file(path: &Path, format: u8, records: u64) {
    let database = Database::create(path).unwrap();
    let transaction = database.begin_write().unwrap();
    {
        let mut head = transaction.open_table(LEDGER).unwrap();
        head.insert("format", format.to_string().as_str()).unwrap();
        head.insert("id", "00112233445566778899aabbccddeeff").unwrap();
        for sink in ["platform", "file"] {
            let name = format!("records/{sink}");
            let mut rows = transaction.open_table(definition(&name)).unwrap();
            for n in 0..records {
                let key = key(usize::try_from(n).unwrap());
                let sealed = binary::seal(key.as_str(), &earlier_format(&record(n), format));
                rows.insert(key.as_str(), sealed.as_slice()).unwrap();
            }
        }
    }
    transaction.commit().unwrap();
}

fn format_of(path: &Path) -> String {
    let database = Database::create(path).unwrap();
    let transaction = database.begin_write().unwrap();
    let format = transaction.open_table(LEDGER).unwrap().get("format").unwrap().unwrap().value().to_owned();
    transaction.abort().unwrap();
    format
}

fn check(ledger: &Ledger, records: u64) {
    assert_eq!((ledger.origin(), ledger.id()), (&Origin::Existing, "00112233445566778899aabbccddeeff"));
    let held: Vec<(Key, Option<Record>)> =
        ledger.known().into_iter().map(|(key, _)| (key.clone(), ledger.get(&key))).collect();
    let mut expected: Vec<_> =
        (0..records).map(|n| (key(usize::try_from(n).unwrap()), Some(record(n)))).collect();
    expected.sort_by(|(a, _), (b, _)| a.cmp(b));
    assert_eq!(held, expected);
}

#[test]
fn a_file_of_an_earlier_format_is_migrated_for_every_sink() {
    for format in [1, 2] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.redb");
        earlier_file(&path, format, 50);
        let ledger = open(&path);
        assert!(in_two_phases(&fs::read(&path).unwrap()));
        check(&ledger, 50);
        drop(ledger);
        assert_eq!(format_of(&path), "4");
        let other = LedgerOptions { sink: "file".to_owned(), ..slow() };
        check(&Ledger::open(&path, other).unwrap(), 50);
        check(&open(&path), 50);
    }
}

#[test]
fn a_damaged_file_of_the_first_format_is_set_aside() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.redb");
    earlier_file(&path, 1, 5);
    let database = Database::create(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    let of_another = binary::seal("argocd/app-2", &earlier_format(&record(1), 1));
    transaction
        .open_table(definition("records/file"))
        .unwrap()
        .insert("argocd/app-1", of_another.as_slice())
        .unwrap();
    transaction.commit().unwrap();
    drop(database);
    let ledger = open(&path);
    assert!(matches!(ledger.origin(), Origin::SetAside(_)) && ledger.known().is_empty());
}

#[test]
fn a_migration_that_is_cut_short_anywhere_leaves_the_first_format_or_the_last() {
    let folder = fast_folder();
    let made = folder.path().join("made.redb");
    earlier_file(&made, 1, 30);
    let whole = fs::read(&made).unwrap();
    let (mut first, mut last) = (0, 0);
    for call in 0.. {
        let path = folder.path().join("ledger.redb");
        fs::write(&path, &whole).unwrap();
        // From this call on nothing reaches the disk any more, as when the process is killed.
        let faults =
            Faults::new(Fault { kind: std::io::ErrorKind::Other, call, lasting: true, reads: false });
        let opened = Ledger::open_with(&path, slow(), opener_with(&path, &faults));
        let met = faults.met();
        if let Err(error) = &opened {
            let message = error.to_string();
            let acts = ["open", "read", "migrate"];
            let known = acts.map(|act| format!("cannot {act} the ledger file {}", path.display()));
            assert!(known.contains(&message), "{message}");
        }
        drop(opened);
        faults.lift();
        match format_of(&path).as_str() {
            "1" => first += 1,
            "4" => last += 1,
            other => panic!("format {other}"),
        }
        check(&open(&path), 30);
        if !met {
            break;
        }
    }
    assert!(first > 3 && last > 0, "{first} of the first format, {last} of the last");
}

#[test]
fn a_file_that_is_mostly_free_is_compacted() {
    let folder = fast_folder();
    let path = folder.path().join("ledger.redb");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let ledger = open(&path);
    let id = ledger.id().to_owned();
    let mut large = record(0);
    large.stub.repo_url = "x".repeat(2000);
    for n in 0..5000 {
        ledger.update(&key(n), |_| Some(large.clone()));
    }
    runtime.block_on(ledger.flush()).unwrap();
    for n in 0..4900 {
        ledger.update(&key(n), |_| None);
    }
    runtime.block_on(ledger.flush()).unwrap();
    let before = ledger.status().file_bytes;
    drop(ledger);
    assert!(before > COMPACT, "{before}");
    let ledger = open(&path);
    let after = ledger.status().file_bytes;
    assert!(after < before / 2, "{before} bytes became {after}");
    assert_eq!(after, fs::metadata(&path).unwrap().len());
    assert_eq!((ledger.id(), ledger.origin()), (id.as_str(), &Origin::Existing));
    assert_eq!(
        Ledger::open(&path, slow()).unwrap_err().to_string(),
        format!(
            "another process holds the ledger file {}: one process writes a ledger, so stop the other one or give \
             this one a file of its own",
            path.display()
        )
    );
    assert_eq!((ledger.known().len(), ledger.get(&key(4999))), (100, Some(large)));
}
