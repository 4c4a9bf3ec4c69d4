//! Disks that fail and bytes that change: never a panic, never a record that was not committed, and usable after.

use std::fs;
use std::io::{Error, ErrorKind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::file::Opener;
use super::tests::{counted, key, open, slow};
use super::*;

/// A folder in memory, where there is one: thousands of files are made here.
pub(super) fn fast_folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Which call of the storage fails, and how.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fault {
    pub(super) kind: ErrorKind,
    /// Counted from 0.
    pub(super) call: u64,
    /// Every later call fails too.
    pub(super) lasting: bool,
    /// Reading fails as well.
    pub(super) reads: bool,
}

#[derive(Debug)]
pub(super) struct Faults {
    fault: Mutex<Option<Fault>>,
    calls: AtomicU64,
    met: AtomicBool,
}

impl Faults {
    pub(super) fn new(fault: Fault) -> Arc<Self> {
        let (calls, met) = (AtomicU64::new(0), AtomicBool::new(false));
        Arc::new(Self { fault: Mutex::new(Some(fault)), calls, met })
    }

    pub(super) fn met(&self) -> bool {
        self.met.load(Ordering::SeqCst)
    }

    pub(super) fn lift(&self) {
        *self.fault.lock().unwrap() = None;
    }

    /// Another one, from now on.
    pub(super) fn set(&self, fault: Fault) {
        let mut held = self.fault.lock().unwrap();
        self.calls.store(0, Ordering::SeqCst);
        self.met.store(false, Ordering::SeqCst);
        *held = Some(fault);
    }

    fn check(&self, reading: bool) -> std::io::Result<()> {
        let Some(fault) = *self.fault.lock().unwrap() else { return Ok(()) };
        if reading && !fault.reads {
            return Ok(());
        }
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        if call == fault.call || (fault.lasting && call > fault.call) {
            self.met.store(true, Ordering::SeqCst);
            return Err(Error::new(fault.kind, "injected"));
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Faulty {
    file: redb::backends::FileBackend,
    faults: Arc<Faults>,
}

impl redb::StorageBackend for Faulty {
    fn len(&self) -> std::io::Result<u64> {
        self.faults.check(true)?;
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        self.faults.check(true)?;
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> std::io::Result<()> {
        self.faults.check(false)?;
        self.file.set_len(len)
    }

    fn sync_data(&self) -> std::io::Result<()> {
        self.faults.check(false)?;
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> std::io::Result<()> {
        self.faults.check(false)?;
        self.file.write(offset, data)
    }
}

pub(super) fn opener_with(path: &Path, faults: &Arc<Faults>) -> Opener {
    let (at, faults) = (path.to_owned(), faults.clone());
    Box::new(move || {
        let file = fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&at)?;
        let file = redb::backends::FileBackend::new(file)?;
        let mut builder = redb::Builder::new();
        builder.set_check_integrity_on_open(true).create_with_backend(Faulty { file, faults: faults.clone() })
    })
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

/// A closed file with these many records counted 1; its bytes.
fn made(path: &Path, records: usize) -> Vec<u8> {
    let ledger = open(path);
    (0..records).for_each(|n| ledger.update(&key(n), |_| Some(counted(1))));
    drop(ledger);
    fs::read(path).unwrap()
}

/// What every record says; they must all say the same.
fn counter_of_all(ledger: &Ledger, records: usize) -> u32 {
    assert_eq!(ledger.known().len(), records);
    let first = ledger.get(&key(0)).unwrap();
    assert!([counted(1), counted(2)].contains(&first), "{first:?}");
    assert!((0..records).all(|n| ledger.get(&key(n)).as_ref() == Some(&first)), "a group was torn");
    first.counter
}

#[test]
fn a_storage_that_fails_at_any_call_loses_nothing() {
    let folder = fast_folder();
    let path = folder.path().join("ledger.redb");
    let whole = made(&path, 20);
    let runtime = runtime();
    let (mut refused, mut failed, mut unharmed) = (0, 0, 0);
    for kind in [ErrorKind::StorageFull, ErrorKind::Other, ErrorKind::ReadOnlyFilesystem] {
        for (lasting, reads) in [(false, false), (true, false), (false, true), (true, true)] {
            for call in 0.. {
                fs::write(&path, &whole).unwrap();
                let what = format!("{kind:?} at call {call}, lasting {lasting}, reads {reads}");
                let faults = Faults::new(Fault { kind, call, lasting, reads });
                let options = LedgerOptions { retry: std::time::Duration::ZERO, ..slow() };
                match Ledger::open_with(&path, options, opener_with(&path, &faults)) {
                    Err(error) => {
                        refused += 1;
                        let message = error.to_string();
                        let says =
                            ["cannot ", "no right to read and write "].map(|says| message.starts_with(says));
                        assert!(says.contains(&true), "{what}: {message}");
                    }
                    Ok(ledger) => {
                        assert_eq!(ledger.origin(), &Origin::Existing, "{what}");
                        assert_eq!(counter_of_all(&ledger, 20), 1, "{what}");
                        (0..20).for_each(|n| ledger.update(&key(n), |_| Some(counted(2))));
                        match runtime.block_on(ledger.flush()) {
                            Ok(()) => unharmed += 1,
                            Err(error) => {
                                failed += 1;
                                let says =
                                    "cannot write the ledger: 20 records wait in memory and are tried again";
                                assert_eq!(error.to_string(), says, "{what}");
                            }
                        }
                        assert_eq!(counter_of_all(&ledger, 20), 2, "{what}: memory is right in any case");
                        if call % 2 == 0 {
                            faults.lift();
                            // A try that began before is told first.
                            let flush = || runtime.block_on(ledger.flush()).is_ok();
                            assert!((0..3).any(|_| flush()), "{what}");
                        }
                        drop(ledger);
                    }
                }
                faults.lift();
                let ledger = open(&path);
                assert_eq!(ledger.origin(), &Origin::Existing, "{what}");
                counter_of_all(&ledger, 20);
                ledger.update(&key(0), |_| Some(counted(3)));
                runtime.block_on(ledger.flush()).unwrap();
                if !faults.met() {
                    break;
                }
            }
        }
    }
    assert!(
        refused > 20 && failed > 20 && unharmed >= 12,
        "{refused} refused, {failed} failed, {unharmed} unharmed"
    );
}

/// Opens changed bytes: the records as they were, or none under a new id; usable in any case.
fn judge(path: &Path, bytes: &[u8], id: &str, records: usize, what: &str) -> bool {
    fs::write(path, bytes).unwrap();
    let ledger = open(path);
    let kept = match ledger.origin() {
        Origin::SetAside(aside) => {
            assert!(ledger.known().is_empty() && ledger.id() != id, "{what}");
            assert_eq!(fs::read(aside).unwrap().len(), bytes.len(), "{what}");
            false
        }
        Origin::Existing => {
            assert_eq!((counter_of_all(&ledger, records), ledger.id()), (1, id), "{what}");
            true
        }
        // A file of no length is made anew.
        Origin::New => {
            assert!(bytes.is_empty() && ledger.known().is_empty() && ledger.id() != id, "{what}");
            false
        }
        Origin::Memory => panic!("{what}"),
    };
    ledger.update(&key(0), |_| Some(counted(7)));
    drop(ledger);
    kept
}

fn id_of(path: &Path) -> String {
    open(path).id().to_owned()
}

#[test]
fn a_file_cut_at_any_byte_of_its_last_page_is_whole_or_set_aside() {
    let folder = fast_folder();
    let path = folder.path().join("ledger.redb");
    let whole = made(&path, 12);
    let id = id_of(&path);
    let last = whole.len() - 4096;
    let lengths = (0..last).step_by(512).chain(last..=whole.len());
    let (mut kept, mut aside) = (0, 0);
    for length in lengths {
        let is_kept = judge(&path, &whole[..length], &id, 12, &format!("cut at {length} of {}", whole.len()));
        *(if is_kept { &mut kept } else { &mut aside }) += 1;
    }
    println!("{} bytes: {kept} kept, {aside} set aside", whole.len());
    assert!(kept > 0 && aside > 0);
}

#[test]
fn a_bit_flipped_anywhere_leaves_the_file_whole_or_sets_it_aside() {
    let folder = fast_folder();
    let path = folder.path().join("ledger.redb");
    let whole = made(&path, 12);
    let id = id_of(&path);
    let seed =
        std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| fastrand::u64(..));
    let step = if std::env::var_os("EVERY_BYTE").is_some() { 1 } else { 8 };
    println!("SEED={seed}, every {step} bytes (1 with EVERY_BYTE)");
    let mut random = fastrand::Rng::with_seed(seed);
    let holds = |page: &&[u8]| {
        let says = |text: &[u8]| page.windows(text.len()).any(|window| window == text);
        says(b"argocd/app-") || says(b"covered/") || says(b"records/")
    };
    // The storage's own head, and every page that holds a record, our head, or the names of tables.
    let mut places: Vec<usize> = (0..512).collect();
    for (n, page) in whole.chunks(4096).enumerate() {
        if n > 0 && holds(&page) {
            places.extend((n * 4096..n * 4096 + page.len()).skip(random.usize(..step)).step_by(step));
        }
    }
    assert!(places.len() > 512 + 2 * 4096 / step, "the pages were not found");
    places.extend((0..300).map(|_| random.usize(..whole.len())));
    let (mut kept, mut aside) = (0, 0);
    for at in places {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << random.u8(..8);
        let is_kept = judge(&path, &bytes, &id, 12, &format!("byte {at}, seed {seed}"));
        *(if is_kept { &mut kept } else { &mut aside }) += 1;
    }
    println!("{} bytes: {kept} kept, {aside} set aside", whole.len());
    assert!(kept > 100 && aside > 100);
}
