//! The file: refused, set aside, or right; never half right.

use std::fs;
use std::io::ErrorKind;

use pipeline_core::Record;

use redb::StorageError;

use super::*;
use crate::aside::KEPT_ASIDE;
use crate::stored;

fn key(n: usize) -> Key {
    Key::new("ns", &format!("app-{n}")).unwrap()
}

fn packed_record(n: usize) -> Bytes {
    let mut record = Record::new(format!("uid-{n}").into());
    record.object_mut().counter = n as u64;
    stored::encode(&record).into()
}

fn open(path: &Path) -> Result<(LedgerFile, Loaded), LedgerError> {
    LedgerFile::open(path, "platform", opener(path.to_owned(), 1 << 20))
}

/// A closed ledger file with records 0..first, committed, then first..all, committed.
fn made(path: &Path, first: usize, all: usize) -> String {
    let (mut store, loaded) = open(path).unwrap();
    for (number, range) in (1..).zip([0..first, first..all]) {
        let rows: Vec<Row> = range.map(|n| ((Table::Records, key(n)), Some(packed_record(n)))).collect();
        store.commit(&rows, number, || panic!("the file is there")).unwrap();
    }
    loaded.id
}

#[test]
fn a_new_file_is_private_and_keeps_its_id() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.redb");
    let id = made(&path, 1, 2);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let (_, loaded) = open(&path).unwrap();
    assert_eq!((loaded.id, loaded.origin, loaded.tables.records.len()), (id, Origin::Existing, 2));
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("missing/ledger.redb");
    assert_eq!(
        open(&path).err().unwrap().to_string(),
        format!(
            "the folder of the ledger file {} does not exist: make it, or mount a volume there",
            path.display()
        )
    );
    let error = open(folder.path()).err().unwrap();
    assert_eq!(error.to_string(), format!("cannot open the ledger file {}", folder.path().display()));
}

#[test]
fn missing_rights_are_named() {
    for kind in [ErrorKind::PermissionDenied, ErrorKind::ReadOnlyFilesystem] {
        let denied = DatabaseError::Storage(StorageError::Io(kind.into()));
        let Unusable::Error(error) = unusable(Path::new("/data/ledger.redb"), denied) else {
            panic!("missing rights are no corruption");
        };
        assert_eq!(
            error.to_string(),
            "no right to read and write the ledger file /data/ledger.redb: give this process's user both rights \
             to the file and to its folder"
        );
    }
}

#[test]
fn a_newer_format_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.redb");
    made(&path, 1, 1);
    let database = Database::create(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(LEDGER).unwrap().insert("format", "7").unwrap();
    transaction.commit().unwrap();
    drop(database);
    let error = open(&path).err().unwrap();
    assert_eq!(
        error.to_string(),
        format!(
            "the ledger file {} has format 7, and this version knows formats up to 2: run the version that wrote \
             it, or move the file away, and everything is reported again",
            path.display()
        )
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_file_of_an_earlier_format_is_set_aside_and_an_empty_one_made() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.redb");
    let id = made(&path, 1, 1);
    let database = Database::create(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(LEDGER).unwrap().insert("format", "1").unwrap();
    transaction.commit().unwrap();
    drop(database);
    let (_, loaded) = open(&path).unwrap();
    assert!(matches!(loaded.origin, Origin::SetAside(_)), "{:?}", loaded.origin);
    assert!(loaded.id != id && loaded.tables.records.is_empty());
}

#[test]
fn another_sink_has_another_table() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.redb");
    let id = made(&path, 2, 3);
    let (store, loaded) = LedgerFile::open(&path, "file", opener(path.clone(), 1 << 20)).unwrap();
    assert_eq!((loaded.tables.records.len(), loaded.id), (0, id));
    drop(store);
    assert_eq!(open(&path).unwrap().1.tables.records.len(), 3);
}

#[test]
fn a_corrupt_file_is_set_aside_and_an_empty_one_made() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.redb");
    let id = made(&path, 2, 3);
    fs::write(&path, b"this is no ledger, whatever its name says").unwrap();
    let (store, loaded) = open(&path).unwrap();
    let Origin::SetAside(aside) = loaded.origin else { panic!("a text is no ledger: {:?}", loaded.origin) };
    assert_ne!(loaded.id, id);
    assert!(loaded.tables.records.is_empty());
    assert!(aside.file_name().unwrap().to_str().unwrap().starts_with("ledger.redb.corrupt-2"));
    assert_eq!(fs::read(&aside).unwrap(), b"this is no ledger, whatever its name says");
    drop(store);
    assert_eq!(open(&path).unwrap().1.origin, Origin::Existing);
}

#[test]
fn a_record_whose_checksum_is_wrong_makes_the_file_corrupt() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.redb");
    made(&path, 2, 3);
    let database = Database::create(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    let definition: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("records/platform");
    let moved = stored::seal("ns/app-0", &packed_record(0));
    transaction.open_table(definition).unwrap().insert("ns/app-1", moved.as_slice()).unwrap();
    transaction.commit().unwrap();
    drop(database);
    assert!(matches!(open(&path).unwrap().1.origin, Origin::SetAside(_)));
}

#[test]
fn only_the_newest_corrupt_files_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.redb");
    let mut asides = Vec::new();
    for n in 0..KEPT_ASIDE + 2 {
        fs::write(&path, format!("garbage {n}")).unwrap();
        let Origin::SetAside(aside) = open(&path).unwrap().1.origin else { panic!("garbage is no ledger") };
        asides.push(aside);
    }
    let there: Vec<bool> = asides.iter().map(|aside| aside.exists()).collect();
    assert_eq!(there, [false, false, true, true, true]);
}
