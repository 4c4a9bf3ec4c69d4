//! The flight file on a real disk: written before anybody goes on, kept short, and never in the way.

use std::fs;

use super::*;
use crate::flight::tests::{a_note, file, owner, without_a_number};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

/// Beside a ledger that is new.
fn spawn(path: &Path) -> Flight {
    Flight::spawn(path.to_owned(), owner(), Left::default()).unwrap()
}

fn write(flight: &Flight, note: Note) {
    runtime().block_on(flight.write(note)).unwrap();
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what} did not come");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_note_stands_in_the_file_when_its_writer_is_told() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = path_of(&folder.path().join("ledger.redb"), "platform");
    assert_eq!(path.file_name().unwrap(), "ledger.redb.platform.sending");
    assert_eq!(left(&path, &owner()), Left::default());
    let flight = spawn(&path);
    for n in 0..20 {
        write(&flight, a_note(n as u64, n));
        assert_eq!(left(&path, &owner()).notes.len(), n + 1);
    }
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    flight.covered(18);
    flight.sync();
    write(&flight, a_note(20, 20));
    until("the number of the commit", || left(&path, &owner()).covered == 18);
    let found = left(&path, &owner());
    assert_eq!(found.notes.len(), 21, "one is needed: nothing is written anew for so little");
    assert_eq!((found.covered, found.whole), (18, true));
    flight.covered(20);
    flight.close();
    assert_eq!((fs::read(&path).unwrap(), flight.errors()), (owner().head(20), 0));
    assert!(runtime().block_on(flight.write(a_note(21, 21))).is_err(), "nobody waits for a closed file");
}

#[test]
fn a_torn_end_is_cut_off_and_what_was_left_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sending");
    let whole = file(&[a_note(0, 0), a_note(1, 1)]);
    fs::write(&path, &whole[..whole.len() - 3]).unwrap();
    let found = left(&path, &owner());
    assert_eq!((found.notes.len(), found.whole), (1, false));
    let flight = Flight::spawn(path.clone(), owner(), found).unwrap();
    write(&flight, a_note(2, 2));
    assert_eq!(fs::read(&path).unwrap(), file(&[a_note(0, 0), a_note(2, 2)]));
}

#[test]
fn a_long_file_is_written_anew_with_what_is_needed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sending");
    let flight = spawn(&path);
    let one = (file(&[a_note(0, 0)]).len() - file(&[]).len()) as u64;
    let mut longest = 0;
    for number in 0..2 * COMPACT / one {
        drop(flight.write(a_note(number, 7)));
        if number % 500 == 0 {
            write(&flight, a_note(number, 8));
            longest = longest.max(fs::metadata(&path).unwrap().len());
        }
    }
    write(&flight, a_note(u64::MAX, 9));
    assert!(longest <= COMPACT, "{longest}");
    assert!(longest > COMPACT / 2, "the file was never long: {longest}");
    let found = left(&path, &owner());
    assert!(found.whole && found.notes.iter().any(|note| note.key.name() == "app-8"));
    assert_eq!(found.notes.last().unwrap().number, u64::MAX);
}

#[test]
fn a_file_of_an_earlier_version_knows_no_commit_and_is_written_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sending");
    let notes = [a_note(7, 1), a_note(8, 2)];
    fs::write(&path, without_a_number(&notes)).unwrap();
    let found = left(&path, &owner());
    assert_eq!(found, Left { notes: notes.to_vec(), covered: 0, whole: false });
    let flight = Flight::spawn(path.clone(), owner(), Left { covered: 6, ..found }).unwrap();
    flight.close();
    assert_eq!(left(&path, &owner()), Left { notes: notes.to_vec(), covered: 6, whole: true });
}

#[test]
fn a_full_disk_is_counted_and_stops_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sending");
    std::os::unix::fs::symlink("/dev/full", &path).unwrap();
    let flight = Flight::spawn(path.clone(), owner(), Left { whole: true, ..Left::default() }).unwrap();
    write(&flight, a_note(0, 0));
    write(&flight, a_note(1, 1));
    assert_eq!(flight.errors(), 2);
    until("another try", || {
        write(&flight, a_note(2, 2));
        // What was in the way never ends when it is read.
        !path.is_symlink() && left(&path, &owner()).notes.len() == 3
    });
    let counted = flight.errors();
    write(&flight, a_note(3, 3));
    assert_eq!(flight.errors(), counted);
}

#[test]
fn a_place_that_cannot_be_written_is_counted_and_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sending");
    fs::create_dir_all(path.join("in the way")).unwrap();
    assert_eq!(left(&path, &owner()), Left::default());
    let flight = spawn(&path);
    write(&flight, a_note(0, 0));
    assert!(flight.errors() > 0);
    fs::remove_dir_all(&path).unwrap();
    until("another try", || {
        write(&flight, a_note(1, 1));
        path.is_file()
    });
    assert_eq!(fs::read(&path).unwrap(), file(&[a_note(0, 0), a_note(1, 1)]));
}

#[test]
fn a_note_takes_microseconds() {
    let folder = tempfile::tempdir().unwrap();
    let flight = spawn(&folder.path().join("x.sending"));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let mut took: Vec<Duration> = (0..2000)
        .map(|n| {
            let begun = Instant::now();
            runtime.block_on(flight.write(a_note(n, 1))).unwrap();
            begun.elapsed()
        })
        .collect();
    took.sort_unstable();
    println!("a note: median {:?}, p99 {:?}, longest {:?}", took[1000], took[1980], took[1999]);
    assert!(took[1000] < Duration::from_millis(5), "{:?}", took[1000]);
}

#[test]
fn each_sink_has_a_file_of_its_own_whatever_its_name() {
    let name = |sink: &str| {
        let path = path_of(Path::new("/data/ledger.redb"), sink);
        assert_eq!(path.parent(), Some(Path::new("/data")));
        path.file_name().unwrap().to_str().unwrap().to_owned()
    };
    assert_eq!(name("platform-00ff_x.y"), "ledger.redb.platform-00ff_x.y.sending");
    let (long, longer) = ("s".repeat(LONGEST_NAME), "s".repeat(LONGEST_NAME + 1));
    assert_eq!(name(&long), format!("ledger.redb.{long}.sending"));
    let odd = ["", "/", "../../etc", "a b", "ä", longer.as_str(), "a\0b"];
    let names: std::collections::HashSet<String> = odd.map(name).into();
    assert_eq!(names.len(), odd.len());
    assert!(names.iter().all(|name| name.len() < 50 && name.starts_with("ledger.redb.sink-")), "{names:?}");
}

#[test]
fn a_file_of_the_shared_name_is_taken_over_kept_or_removed() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger.redb");
    let (shared, own) = (folder.path().join("ledger.redb.sending"), path_of(&ledger, &owner().sink));
    let bytes = file(&[a_note(1, 1)]);
    take_over(&ledger, &own, &owner());
    assert!(!own.exists());

    let other_sink = Owner { sink: "another".to_owned(), ..owner() };
    fs::write(&shared, &bytes).unwrap();
    take_over(&ledger, &path_of(&ledger, "another"), &other_sink);
    assert_eq!(fs::read(&shared).unwrap(), bytes, "it waits for its sink");
    take_over(&ledger, &own, &owner());
    assert_eq!((fs::read(&own).unwrap(), shared.exists()), (bytes.clone(), false));

    let other_ledger = Owner { id: "another".to_owned(), ..owner() };
    for (left, owner) in [(bytes.as_slice(), other_ledger), (b"what nobody wrote", owner())] {
        fs::write(&shared, left).unwrap();
        take_over(&ledger, &own, &owner);
        assert_eq!((fs::read(&own).unwrap(), shared.exists()), (bytes.clone(), false));
    }
}

#[test]
fn a_writer_that_stops_unexpectedly_counts_what_it_did_not_write() {
    let queue = Arc::new(Queue { state: Mutex::default(), wake: Condvar::new() });
    let work = queue.clone();
    let thread = std::thread::spawn(move || {
        let _closed = Closed(work.clone());
        let mut state = work.lock();
        while state.notes.len() < 2 {
            state = work.wake.wait(state).unwrap();
        }
        let taken = state.take();
        state.notes.push(a_note(9, 9));
        drop(state);
        assert!(taken.0.is_empty(), "as a bug would");
    });
    let flight = Flight { queue, thread: Mutex::new(Some(thread)) };
    let told: Vec<_> = (0..2).map(|n| flight.write(a_note(n, 1))).collect();
    for told in told {
        runtime().block_on(told).unwrap_err();
    }
    flight.close();
    assert_eq!(flight.errors(), 3);
    runtime().block_on(flight.write(a_note(2, 1))).unwrap_err();
    assert_eq!(flight.errors(), 4, "what comes later is not written either");
}

#[test]
fn the_ledger_is_locked_until_the_flight_file_is_let_go_of() {
    use crate::tests::{open, slow};
    use crate::{Ledger, LedgerError};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.redb");
    let ledger = open(&path);
    let flight = ledger.inner.flight.as_ref().unwrap();
    let held = flight.queue.lock();
    ledger.inner.shared.stop();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(300) {
        let second = Ledger::open(&path, slow());
        assert!(matches!(second, Err(LedgerError::Held { .. })), "two processes write one flight file");
    }
    drop(held);
    runtime().block_on(ledger.close()).unwrap();
    assert!(Ledger::open(&path, slow()).is_ok());
}
