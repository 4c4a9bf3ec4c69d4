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

/// Whether the last commit of a file was: the storage notes it in a bit of its head.
pub(super) fn in_two_phases(file: &[u8]) -> bool {
    file[9] & 4 != 0
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

/// A ledger whose last commit counted every record `LAST`.
struct Made {
    id: String,
    records: usize,
    /// The file as a killed process leaves it, and as one that was closed does.
    killed: Vec<u8>,
    closed: Vec<u8>,
    /// The file of send intents beside either.
    intents: Vec<u8>,
}

const LAST: u64 = 3;

impl Made {
    fn new(path: &Path, records: usize) -> Self {
        let (ledger, runtime) = (open(path), runtime());
        for counter in 1..=LAST {
            (0..records).for_each(|n| ledger.update(&key(n), |_| Some(counted(counter))));
            runtime.block_on(ledger.flush()).unwrap();
        }
        let (id, killed) = (ledger.id().to_owned(), fs::read(path).unwrap());
        assert!(in_two_phases(&killed));
        drop(ledger);
        let (closed, intents) = (fs::read(path).unwrap(), fs::read(intents_of(path)).unwrap());
        Self { id, records, killed, closed, intents }
    }

    /// Puts a ledger file and the file of send intents there.
    fn put(&self, path: &Path, bytes: &[u8]) {
        fs::write(path, bytes).unwrap();
        fs::write(intents_of(path), &self.intents).unwrap();
    }
}

fn intents_of(path: &Path) -> std::path::PathBuf {
    intent_file::path_of(path, "platform")
}

/// What every record says; they must all say the same.
fn counter_of_all(ledger: &Ledger, records: usize) -> u64 {
    assert_eq!(ledger.known().len(), records);
    let first = ledger.get(&key(0)).unwrap();
    assert_eq!(first, counted(first.object().counter));
    assert!((0..records).all(|n| ledger.get(&key(n)).as_ref() == Some(&first)), "a group was torn");
    first.object().counter
}

#[test]
fn a_storage_that_fails_at_any_call_loses_nothing() {
    let folder = fast_folder();
    let path = folder.path().join("ledger.redb");
    let made = Made::new(&path, 20);
    let runtime = runtime();
    let (mut refused, mut failed, mut unharmed) = (0, 0, 0);
    for kind in [ErrorKind::StorageFull, ErrorKind::Other, ErrorKind::ReadOnlyFilesystem] {
        for (lasting, reads) in [(false, false), (true, false), (false, true), (true, true)] {
            for call in 0.. {
                made.put(&path, &made.closed);
                let what = format!("{kind:?} at call {call}, lasting {lasting}, reads {reads}");
                let faults = Faults::new(Fault { kind, call, lasting, reads });
                let mut least = LAST;
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
                        assert_eq!(counter_of_all(&ledger, 20), LAST, "{what}");
                        (0..20).for_each(|n| ledger.update(&key(n), |_| Some(counted(LAST + 1))));
                        match runtime.block_on(ledger.flush()) {
                            Ok(()) => {
                                unharmed += 1;
                                least = LAST + 1;
                            }
                            Err(error) => {
                                failed += 1;
                                let says =
                                    "cannot write the ledger: 20 records wait in memory and are tried again";
                                assert_eq!(error.to_string(), says, "{what}");
                            }
                        }
                        assert_eq!(
                            counter_of_all(&ledger, 20),
                            LAST + 1,
                            "{what}: memory is right in any case"
                        );
                        if call % 2 == 0 {
                            faults.lift();
                            // A try that began before is told first.
                            let flush = || runtime.block_on(ledger.flush()).is_ok();
                            assert!((0..3).any(|_| flush()), "{what}");
                            least = LAST + 1;
                        }
                        drop(ledger);
                    }
                }
                faults.lift();
                let ledger = open(&path);
                assert_eq!(ledger.origin(), &Origin::Existing, "{what}");
                let found = counter_of_all(&ledger, 20);
                assert!((least..=LAST + 1).contains(&found), "{what}: {found} of at least {least}");
                ledger.update(&key(0), |_| Some(counted(7)));
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

/// Opens changed bytes: the records as they were committed last, or none under a new id; usable in any case.
fn judge(path: &Path, made: &Made, bytes: &[u8], what: &str) -> bool {
    made.put(path, bytes);
    let id = made.id.as_str();
    let ledger = open(path);
    let kept = match ledger.origin() {
        Origin::SetAside(aside) => {
            assert!(ledger.known().is_empty() && ledger.id() != id, "{what}");
            assert_eq!(fs::read(aside).unwrap().len(), bytes.len(), "{what}");
            false
        }
        Origin::Existing => {
            assert_eq!((counter_of_all(&ledger, made.records), ledger.id()), (LAST, id), "{what}");
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

#[test]
fn a_file_cut_at_any_byte_of_its_last_page_is_whole_or_set_aside() {
    let folder = fast_folder();
    let path = folder.path().join("ledger.redb");
    let made = Made::new(&path, 12);
    let whole = &made.closed;
    let last = whole.len() - 4096;
    let closed = (0..last).step_by(512).chain(last..=whole.len()).map(|length| &whole[..length]);
    let killed = (0..=made.killed.len()).step_by(4096).map(|length| &made.killed[..length]);
    let (mut kept, mut aside) = (0, 0);
    for bytes in closed.chain(killed) {
        let is_kept = judge(&path, &made, bytes, &format!("cut at {}", bytes.len()));
        *(if is_kept { &mut kept } else { &mut aside }) += 1;
    }
    println!("{} and {} bytes: {kept} kept, {aside} set aside", whole.len(), made.killed.len());
    assert!(kept > 1 && aside > 1);
}

/// Bytes of the storage's own head: the file's form, and its last two commits.
const HEAD: usize = 64 + 2 * 128;

#[test]
fn a_bit_flipped_anywhere_leaves_the_last_commit_or_sets_the_file_aside() {
    let folder = fast_folder();
    let path = folder.path().join("ledger.redb");
    let made = Made::new(&path, 12);
    // The same each time, so that a change alone decides what comes of it; SEED looks elsewhere.
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let every = std::env::var_os("EVERY_BYTE").is_some();
    println!("SEED={seed}, every bit of every page in use: {every} (EVERY_BYTE)");
    let mut random = fastrand::Rng::with_seed(seed);
    let holds = |page: &&[u8]| {
        let says = |text: &[u8]| page.windows(text.len()).any(|window| window == text);
        says(b"ns/app-") || says(b"covered/") || says(b"records/")
    };
    let (mut kept, mut aside) = (0, 0);
    for (what, whole) in [("killed", &made.killed), ("closed", &made.closed)] {
        // The storage's own head, and every page that holds a record, our head, or the names of tables.
        let mut bits: Vec<(usize, u8)> = (0..HEAD).flat_map(|at| (0..8).map(move |bit| (at, bit))).collect();
        let mut pages = 0;
        for (n, page) in whole.chunks(4096).enumerate().skip(1).filter(|(_, page)| holds(page)) {
            pages += 1;
            let places = n * 4096..n * 4096 + page.len();
            if every {
                bits.extend(places.flat_map(|at| (0..8).map(move |bit| (at, bit))));
            } else {
                bits.extend((0..128).map(|_| (random.usize(places.clone()), random.u8(..8))));
            }
        }
        assert!(pages >= 2, "the pages were not found");
        bits.extend((0..200).map(|_| (random.usize(..whole.len()), random.u8(..8))));
        for (at, bit) in bits {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << bit;
            let is_kept =
                judge(&path, &made, &bytes, &format!("{what}: bit {bit} of byte {at}, seed {seed}"));
            *(if is_kept { &mut kept } else { &mut aside }) += 1;
        }
    }
    println!("{} and {} bytes: {kept} kept, {aside} set aside", made.killed.len(), made.closed.len());
    assert!(kept > 100 && aside > 100);
}
