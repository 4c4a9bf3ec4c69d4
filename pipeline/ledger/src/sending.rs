//! The flight file, `<ledger file>.<sink>.sending`: written before a report goes out, so that it outlives a killed
//! process.
//!
//! takes: notes of reports, and which of them the ledger's file covers - gives: the word that a note is written
//! calls: write(2) of one file, by a thread of its own, all that waits at once - fails: said once, counted, and
//! tried again at most once a second with all that is needed; the reports go out nevertheless
//!
//! Nothing here is synchronised with the disk while commits work: a commit makes what it covers durable by itself.
//! A power loss therefore loses the notes since the last commit, as it loses the acknowledgements since then: of a
//! report of the last group (50 ms or 256 changes) it is then not known that it may have been received. While commits
//! fail, the file is synchronised at each try.
//!
//! The number of each commit is written here once it is durable, and before the notes that it covers go. After a kill
//! or a power loss it is that of the ledger's last commit or of an earlier one, never of a later one: a ledger file
//! that knows fewer commits than this file has gone back to an earlier one, and what it forgot stands nowhere.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pipeline_core::Digest;
use tokio::sync::oneshot;

use super::flight::{Note, Notes, Owner};

/// A file that is longer is written anew.
const COMPACT: u64 = 1 << 20;
const PAUSE: Duration = Duration::from_secs(1);
/// So long it is waited for more notes while there are several at a time: for one write of them all, where each alone
/// would wake the thread, and be waited for by a task that it wakes.
const GATHER: Duration = Duration::from_millis(1);
/// A longer name of a sink might be too long for that of a file.
const LONGEST_NAME: usize = 100;

/// What a former process left in the file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Left {
    /// In order of their numbers.
    pub(super) notes: Vec<Note>,
    /// The last commit that is known to be durable; 0 when that is not said.
    pub(super) covered: u64,
    /// The file can be written on as it is.
    pub(super) whole: bool,
}

/// The thread, seen from outside.
pub(super) struct Flight {
    queue: Arc<Queue>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Queue {
    state: Mutex<Waiting>,
    wake: Condvar,
}

#[derive(Default)]
struct Waiting {
    notes: Vec<Note>,
    tell: Vec<oneshot::Sender<()>>,
    covered: Option<u64>,
    sync: bool,
    /// Notes that were taken and are not told of yet.
    taken: u64,
    closing: bool,
    /// The thread has panicked: no note is written any more.
    broken: bool,
    errors: u64,
}

/// The file that stands beside a ledger's for one sink. What a name of a file cannot hold stands there as a digest.
pub(super) fn path_of(ledger: &Path, sink: &str) -> PathBuf {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let is_plain = (1..=LONGEST_NAME).contains(&sink.len()) && sink.bytes().all(plain);
    let sink = if is_plain { sink } else { &format!("sink-{:016x}", Digest::of(sink.as_bytes()).0) };
    let mut name = ledger.as_os_str().to_owned();
    name.push(format!(".{sink}.sending"));
    name.into()
}

/// What a former process left beside the ledger file `ledger` for `owner`.
pub(super) fn beside(ledger: &Path, owner: &Owner) -> Left {
    let path = path_of(ledger, &owner.sink);
    take_over(ledger, &path, owner);
    left(&path, owner)
}

/// Takes over a file of the name that all sinks once shared, when it is `owner`'s; it goes when it is another
/// ledger's, and stays when it is another sink's.
fn take_over(ledger: &Path, path: &Path, owner: &Owner) {
    let mut shared = ledger.as_os_str().to_owned();
    shared.push(".sending");
    let shared = PathBuf::from(shared);
    let Ok(bytes) = std::fs::read(&shared) else { return };
    let result = match Owner::of(&bytes) {
        Some(found) if found == *owner && !path.exists() => std::fs::rename(&shared, path),
        Some(found) if found.id == owner.id && found != *owner => Ok(()),
        _ => std::fs::remove_file(&shared),
    };
    if let Err(error) = result {
        tracing::warn!(file = %shared.display(), %error, "cannot take over a flight file of an earlier version");
    }
}

/// What a former process left in the file. One that is not there is an empty one; one that cannot be read is said once.
fn left(path: &Path, owner: &Owner) -> Left {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Left::default(),
        Err(error) => {
            tracing::warn!(
                file = %path.display(), %error,
                "cannot read the flight file: a report that was on its way may not be reported again"
            );
            return Left::default();
        }
    };
    let found = owner.read(&bytes);
    if found.foreign {
        tracing::info!(file = %path.display(), "the flight file is another ledger's: it is replaced");
    }
    if found.damaged {
        tracing::warn!(
            file = %path.display(), notes = found.notes.len(),
            "the flight file is damaged: a report that was on its way may not be reported again"
        );
    }
    Left { notes: found.notes, covered: found.covered, whole: found.whole }
}

impl Flight {
    /// Starts the thread. A file that is not whole is written anew with what is left.
    pub(super) fn spawn(path: PathBuf, owner: Owner, left: Left) -> std::io::Result<Self> {
        let queue = Arc::new(Queue { state: Mutex::default(), wake: Condvar::new() });
        let Left { notes: left, covered, whole } = left;
        let mut notes = Notes::default();
        left.into_iter().for_each(|note| notes.add(note));
        let mut writing = Writing { path, owner, notes, covered, open: None, compact: COMPACT, failed: None };
        let work = queue.clone();
        let run = move || {
            // Whatever happens, nobody waits for a thread that is gone.
            let _closed = Closed(work.clone());
            writing.begin(&work, whole);
            writing.run(&work);
        };
        let thread = std::thread::Builder::new().name("flight".to_owned()).spawn(run)?;
        Ok(Self { queue, thread: Mutex::new(Some(thread)) })
    }

    /// Writes a note; told when it stands in the file, or could not be written. At once after [`Flight::close`].
    pub(super) fn write(&self, note: Note) -> oneshot::Receiver<()> {
        let (tell, told) = oneshot::channel();
        let mut state = self.queue.lock();
        if !state.closing {
            state.notes.push(note);
            state.tell.push(tell);
            drop(state);
            self.queue.wake.notify_one();
        } else if state.broken {
            state.errors += 1;
        }
        told
    }

    /// The ledger's file durably holds commit `number`, and so what the notes up to it say.
    pub(super) fn covered(&self, number: u64) {
        self.queue.lock().covered = Some(number);
        self.queue.wake.notify_one();
    }

    /// The ledger's file cannot be written: this one is to outlive a power loss too.
    pub(super) fn sync(&self) {
        self.queue.lock().sync = true;
        self.queue.wake.notify_one();
    }

    /// Notes that could not be written, and failed synchronisations.
    pub(super) fn errors(&self) -> u64 {
        self.queue.lock().errors
    }

    /// Writes what waits and lets go of the file. Blocks.
    pub(super) fn close(&self) {
        self.queue.lock().closing = true;
        self.queue.wake.notify_one();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the flight file's writer stopped unexpectedly");
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.close();
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn take(&mut self) -> (Vec<Note>, Vec<oneshot::Sender<()>>) {
        self.taken = self.notes.len() as u64;
        (std::mem::take(&mut self.notes), std::mem::take(&mut self.tell))
    }
}

struct Closed(Arc<Queue>);

impl Drop for Closed {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.closing = true;
        if std::thread::panicking() {
            state.broken = true;
            state.errors += (state.taken + state.notes.len() as u64).max(1);
        }
        state.notes.clear();
        state.tell.clear();
    }
}

struct Writing {
    path: PathBuf,
    owner: Owner,
    /// All that is needed, whether it stands in the file or could not be written.
    notes: Notes,
    /// The last commit that is durable.
    covered: u64,
    /// The file and its length; `None` when it is to be written anew.
    open: Option<(File, u64)>,
    compact: u64,
    failed: Option<Instant>,
}

impl Writing {
    fn begin(&mut self, queue: &Queue, whole: bool) {
        let result = if whole { self.append(&[]) } else { self.anew() };
        self.judge(queue, result, 0);
    }

    fn run(&mut self, queue: &Queue) {
        let mut several = false;
        loop {
            let mut state = queue.lock();
            while !state.closing && state.notes.is_empty() && state.covered.is_none() && !state.sync {
                state = queue.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if several && !state.closing {
                drop(state);
                std::thread::sleep(GATHER);
                state = queue.lock();
            }
            let (notes, tell) = state.take();
            let (covered, sync) = (state.covered.take(), std::mem::take(&mut state.sync));
            let closing = state.closing;
            drop(state);
            several = notes.len() > 1;
            if !notes.is_empty() {
                self.write(queue, notes);
                queue.lock().taken = 0;
                for tell in tell {
                    // An error means that nobody waits any more.
                    let _ = tell.send(());
                }
            }
            if let Some(covered) = covered {
                self.cover(queue, covered);
            }
            if sync && let Some((file, _)) = &self.open {
                let result = file.sync_data();
                self.judge(queue, result, 1);
            }
            if closing {
                return;
            }
        }
    }

    fn write(&mut self, queue: &Queue, notes: Vec<Note>) {
        let (mut bytes, count) = (Vec::new(), notes.len() as u64);
        for note in notes {
            self.owner.write(&note, &mut bytes);
            self.notes.add(note);
        }
        let result = match &self.open {
            Some((_, length)) if length + bytes.len() as u64 <= self.compact => self.append(&bytes),
            None if self.pauses() => {
                queue.lock().errors += count;
                return;
            }
            _ => self.anew(),
        };
        self.judge(queue, result, count);
    }

    fn cover(&mut self, queue: &Queue, covered: u64) {
        self.covered = covered;
        self.notes.cover(covered);
        let result = match &self.open {
            Some(_) => self.shorten(),
            None if self.pauses() => return,
            None => self.anew(),
        };
        self.judge(queue, result, 1);
    }

    /// Writes the number of the last commit, and takes away what it covers when that is everything: in this order, so
    /// that the number stands there whenever a note that it covers does not.
    fn shorten(&mut self) -> std::io::Result<()> {
        let Some((file, length)) = &mut self.open else { return Ok(()) };
        let head = self.owner.head(self.covered);
        file.write_all_at(&head, 0)?;
        if self.notes.is_empty() {
            self.compact = COMPACT;
            let head = head.len() as u64;
            if *length > head {
                file.set_len(head)?;
                *length = head;
            }
        }
        Ok(())
    }

    /// Whether a failure is so recent that no other try is made.
    fn pauses(&self) -> bool {
        self.failed.is_some_and(|failed| failed.elapsed() < PAUSE)
    }

    /// Appends to the file that is there.
    fn append(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let (file, length) = match &mut self.open {
            Some(open) => open,
            None => {
                let file = OpenOptions::new().write(true).open(&self.path)?;
                let length = file.metadata()?.len();
                self.open.insert((file, length))
            }
        };
        file.write_all_at(bytes, *length)?;
        *length += bytes.len() as u64;
        Ok(())
    }

    /// Writes all that is needed beside the file, and puts that into its place.
    fn anew(&mut self) -> std::io::Result<()> {
        self.open = None;
        let mut bytes = self.owner.head(self.covered);
        self.notes.in_order().into_iter().for_each(|note| self.owner.write(note, &mut bytes));
        let mut beside = self.path.as_os_str().to_owned();
        beside.push(".new");
        let beside = PathBuf::from(beside);
        // Left by a process that was killed here; a file of other rights is not written on.
        match std::fs::remove_file(&beside) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
        file.write_all_at(&bytes, 0)?;
        std::fs::rename(&beside, &self.path)?;
        let length = bytes.len() as u64;
        self.compact = COMPACT.max(2 * length);
        self.open = Some((file, length));
        Ok(())
    }

    /// `count` notes were not written if `result` is an error: the file is then written anew when its time comes.
    fn judge(&mut self, queue: &Queue, result: std::io::Result<()>, count: u64) {
        match result {
            Ok(()) => {
                if self.failed.take().is_some() {
                    tracing::info!(file = %self.path.display(), "the flight file is written again");
                }
            }
            Err(error) => {
                self.open = None;
                queue.lock().errors += count.max(1);
                if self.failed.replace(Instant::now()).is_none() {
                    tracing::warn!(
                        file = %self.path.display(), %error,
                        "cannot write the flight file: after a kill, a report that was on its way may not be \
                         reported again"
                    );
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "sending_tests.rs"]
mod tests;
