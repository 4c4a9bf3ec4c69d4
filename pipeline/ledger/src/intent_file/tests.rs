//! The file of send intents on a real disk: written before anybody goes on, kept short, and never in the way.

use std::fs;

use super::*;
use crate::intent_log::tests::{an_intent, log, owner};

/// Beside a ledger that is new.
fn open(path: &Path) -> IntentFile {
    IntentFile::open(path.to_owned(), owner(), 0, Found::default()).unwrap()
}

fn write(file: &IntentFile, intent: Intent) {
    file.write(intent).blocking_recv().unwrap();
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what} did not come");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn an_intent_stands_in_the_file_when_its_writer_is_told() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = path_of(&folder.path().join("ledger.redb"), "platform");
    assert_eq!(path.file_name().unwrap(), "ledger.redb.platform.sending");
    assert_eq!(left(&path, &owner()), Found::default());
    let file = open(&path);
    for n in 0..20 {
        write(&file, an_intent(n as u64 + 1, n));
        assert_eq!(left(&path, &owner()).intents.len(), n + 1);
    }
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    file.covered(19);
    file.sync();
    write(&file, an_intent(21, 20));
    write(&file, an_intent(19, 18));
    let found = left(&path, &owner());
    assert_eq!(
        found.intents.len(),
        21,
        "two are needed, and one is covered: nothing is written anew for so little"
    );
    assert_eq!(found.covered, 19);
    file.covered(21);
    file.close();
    assert_eq!((fs::read(&path).unwrap(), file.errors()), (owner().head(21), 0));
    write(&file, an_intent(22, 21));
    assert_eq!(fs::read(&path).unwrap(), owner().head(21), "it is closed");
}

#[test]
fn a_disk_that_hangs_holds_up_no_thread_but_the_writers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sending");
    let (tell, told) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        let file = open(&path);
        let hung = file.lock();
        let mut written = [1, 2, 3].map(|number| file.write(an_intent(number, 0)));
        assert_eq!(file.errors(), 0);
        tell.send(written.each_mut().map(|written| written.try_recv().is_err())).unwrap();
        drop(hung);
        written.into_iter().for_each(|written| written.blocking_recv().unwrap());
        left(&path, &owner()).intents.len()
    });
    let waited = told.recv_timeout(Duration::from_secs(60)).expect("whoever is about to send is held up");
    assert_eq!((waited, thread.join().unwrap()), ([true; 3], 3));
}

#[test]
fn a_torn_end_is_cut_off_and_what_was_left_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sending");
    let whole = log(&[an_intent(0, 0), an_intent(1, 1)]);
    fs::write(&path, &whole[..whole.len() - 3]).unwrap();
    let found = left(&path, &owner());
    assert_eq!(found.intents.len(), 1);
    let file = IntentFile::open(path.clone(), owner(), found.covered, found).unwrap();
    write(&file, an_intent(2, 2));
    assert_eq!(fs::read(&path).unwrap(), log(&[an_intent(0, 0), an_intent(2, 2)]));
}

#[test]
fn a_file_that_is_whole_is_gone_on_with_as_it_is() {
    use std::os::unix::fs::MetadataExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sending");
    fs::write(&path, log(&[an_intent(0, 0), an_intent(1, 1)])).unwrap();
    let before = fs::metadata(&path).unwrap().ino();
    let found = left(&path, &owner());
    let file = IntentFile::open(path.clone(), owner(), found.covered, found).unwrap();
    write(&file, an_intent(2, 2));
    assert_eq!(fs::read(&path).unwrap(), log(&[an_intent(0, 0), an_intent(1, 1), an_intent(2, 2)]));
    assert_eq!((fs::metadata(&path).unwrap().ino(), file.errors()), (before, 0));
}

#[test]
fn a_long_file_is_written_anew_with_what_is_needed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sending");
    let file = open(&path);
    let one = (log(&[an_intent(0, 0)]).len() - log(&[]).len()) as u64;
    let mut longest = 0;
    for number in 1..2 * COMPACT / one {
        write(&file, an_intent(number, 7));
        if number % 500 == 0 {
            write(&file, an_intent(number, 8));
            longest = longest.max(fs::metadata(&path).unwrap().len());
        }
    }
    write(&file, an_intent(u64::MAX, 9));
    assert!(longest <= COMPACT, "{longest}");
    assert!(longest > COMPACT / 2, "the file was never long: {longest}");
    let found = left(&path, &owner());
    assert!(found.intents.iter().any(|intent| intent.key.name() == "app-8"));
    assert_eq!(found.intents.last().unwrap().number, u64::MAX);
}

#[test]
fn a_full_disk_is_counted_and_stops_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sending");
    let file = open(&path);
    file.lock().open = Some((OpenOptions::new().write(true).open("/dev/full").unwrap(), 0));
    write(&file, an_intent(1, 0));
    write(&file, an_intent(2, 1));
    assert_eq!(file.errors(), 2);
    until("another try", || {
        write(&file, an_intent(3, 2));
        left(&path, &owner()).intents.len() == 3
    });
    let counted = file.errors();
    write(&file, an_intent(4, 3));
    assert_eq!(file.errors(), counted);
}

#[test]
fn a_place_that_cannot_be_written_is_counted_and_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sending");
    fs::create_dir_all(path.join("in the way")).unwrap();
    assert_eq!(left(&path, &owner()), Found::default());
    let file = open(&path);
    write(&file, an_intent(1, 0));
    assert!(file.errors() > 0);
    fs::remove_dir_all(&path).unwrap();
    until("another try", || {
        write(&file, an_intent(2, 1));
        path.is_file()
    });
    assert_eq!(fs::read(&path).unwrap(), log(&[an_intent(1, 0), an_intent(2, 1)]));
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
