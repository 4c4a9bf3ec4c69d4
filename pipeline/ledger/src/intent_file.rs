//! The file of send intents, `<ledger file>.<sink>.sending`: written before a report goes out, so that it outlives a
//! killed process.
//!
//! takes: send intents, and which of them the ledger's file covers - gives: the word that an intent is written
//! calls: write(2) of one file, on a thread of its own that writes together what came meanwhile: of a disk that hangs
//! only those wait who are about to send - fails: said once, counted, and tried again at most once a second with all that
//! is needed; the reports go out nevertheless
//!
//! Nothing here is synchronised with the disk while commits work: a commit makes what it covers durable by itself.
//! A power loss therefore loses the intents since the last commit, as it loses the acknowledgements since then: of a
//! report of the last group (50 ms or 256 changes) it is then not known that it may have been received. While commits
//! fail, the file is synchronised at each try, and so is one that is written anew before it replaces the other.
//!
//! The number of each commit is written here once it is durable, and before the intents that it covers go. After a kill
//! or a power loss it is that of the ledger's last commit or of an earlier one, never of a later one: a ledger file
//! that knows fewer commits than this file has gone back to an earlier one, and what it forgot stands nowhere.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use pipeline_core::Digest;
use tokio::sync::oneshot;

use super::intent_log::{Found, Owner};
use super::intents::{Intent, Intents};

/// A file that is longer is written anew.
const COMPACT: u64 = 1 << 20;
const PAUSE: Duration = Duration::from_secs(1);
/// A longer name of a sink might be too long for that of a file.
const LONGEST_NAME: usize = 100;

/// An intent that is to be written, and whoever waits for that.
type Waiting = (Intent, oneshot::Sender<()>);

/// The file.
pub(super) struct IntentFile {
    state: Arc<Mutex<State>>,
    queue: mpsc::Sender<Waiting>,
    errors: Arc<AtomicU64>,
}

struct State {
    path: PathBuf,
    owner: Owner,
    /// All that is needed, whether it stands in the file or could not be written.
    needed: Intents,
    /// The last commit that is durable.
    covered: u64,
    /// The file and its length; `None` when it is to be written anew.
    open: Option<(File, u64)>,
    compact: u64,
    failed: Option<Instant>,
    /// Read by whoever must not wait for the disk.
    errors: Arc<AtomicU64>,
    closed: bool,
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

/// What a former process left in the file. One that is not there is an empty one; one that cannot be read is said once.
pub(super) fn left(path: &Path, owner: &Owner) -> Found {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Found::default(),
        Err(error) => {
            tracing::warn!(
                file = %path.display(), %error,
                "cannot read the file of send intents: a report that was on its way may not be reported again"
            );
            return Found::default();
        }
    };
    let found = owner.read(&bytes);
    if found.foreign {
        tracing::info!(file = %path.display(), "the file of send intents is another ledger's: it is replaced");
    }
    if found.damaged {
        tracing::warn!(
            file = %path.display(), intents = found.intents.len(),
            "the file of send intents is damaged: a report that was on its way may not be reported again"
        );
    }
    found
}

impl IntentFile {
    /// Goes on with what is left, after the last commit that is durable: in the file that is there, if it is whole.
    ///
    /// # Errors
    /// When there can be no thread more.
    pub(super) fn open(path: PathBuf, owner: Owner, covered: u64, left: Found) -> std::io::Result<Self> {
        let needed = left.intents.into_iter().collect();
        let (compact, open, errors) = (COMPACT, None, Arc::<AtomicU64>::default());
        let mut state = State {
            path,
            owner,
            needed,
            covered,
            open,
            compact,
            failed: None,
            errors: errors.clone(),
            closed: false,
        };
        let result = if left.whole { state.go_on() } else { state.anew() };
        state.judge(result);
        let state = Arc::new(Mutex::new(state));
        let (queue, waiting) = mpsc::channel();
        let shared = state.clone();
        std::thread::Builder::new().name("intents".to_owned()).spawn(move || write(&shared, &waiting))?;
        Ok(Self { state, queue, errors })
    }

    /// Writes an intent; what is returned is told when it stands in the file, could not be written, or the file was closed.
    pub(super) fn write(&self, intent: Intent) -> oneshot::Receiver<()> {
        let (tell, written) = oneshot::channel();
        // Without the thread, which a panic would have to end, the sender is dropped, and so nobody waits.
        let _ = self.queue.send((intent, tell));
        written
    }

    /// The ledger's file durably holds commit `number`, and so what the intents up to it say.
    pub(super) fn covered(&self, number: u64) {
        let mut state = self.lock();
        state.covered = number;
        state.needed.cover(number);
        let result = match &state.open {
            Some(_) => state.shorten(),
            None if state.pauses() => return,
            None => state.anew(),
        };
        state.judge(result);
    }

    /// The ledger's file cannot be written: this one is to outlive a power loss too.
    pub(super) fn sync(&self) {
        let file = self.lock().open.as_ref().map(|(file, _)| file.try_clone());
        // Nobody waits for the disk.
        if let Some(result) = file.map(|file| file.and_then(|file| file.sync_data())) {
            self.lock().judge(result);
        }
    }

    /// Intents that could not be written, and failed synchronisations.
    pub(super) fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }

    /// Lets go of the file.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        (state.open, state.closed) = (None, true);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes what comes, until nobody can send anything more.
fn write(state: &Mutex<State>, queue: &mpsc::Receiver<Waiting>) {
    while let Ok(first) = queue.recv() {
        let (intents, waiting): (Vec<Intent>, Vec<_>) =
            std::iter::once(first).chain(queue.try_iter()).unzip();
        lock(state).write(intents);
        for tell in waiting {
            // Whoever gave up does not wait.
            let _ = oneshot::Sender::send(tell, ());
        }
    }
}

impl State {
    /// Writes intents together.
    fn write(&mut self, intents: Vec<Intent>) {
        let mut bytes = Vec::new();
        let mut number = 0;
        // The ledger's file may say some by now.
        for intent in intents.into_iter().filter(|intent| !self.closed && intent.number > self.covered) {
            self.owner.write(&intent, &mut bytes);
            self.needed.add(intent);
            number += 1;
        }
        if number == 0 {
            return;
        }
        let result = match &self.open {
            Some((_, length)) if length + bytes.len() as u64 <= self.compact => self.append(&bytes),
            None if self.pauses() => {
                self.errors.fetch_add(number, Ordering::Relaxed);
                return;
            }
            _ => self.anew(),
        };
        self.judge(result);
    }

    /// Writes the number of the last commit, and takes away what it covers when that is everything: in this order, so
    /// that the number stands there whenever an intent that it covers does not.
    fn shorten(&mut self) -> std::io::Result<()> {
        let Some((file, length)) = &mut self.open else { return Ok(()) };
        let head = self.owner.head(self.covered);
        file.write_all_at(&head, 0)?;
        if self.needed.is_empty() {
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
        let Some((file, length)) = &mut self.open else { return Ok(()) };
        file.write_all_at(bytes, *length)?;
        *length += bytes.len() as u64;
        Ok(())
    }

    /// Takes up the file that is there.
    fn go_on(&mut self) -> std::io::Result<()> {
        let file = OpenOptions::new().write(true).open(&self.path)?;
        let length = file.metadata()?.len();
        self.compact = COMPACT.max(2 * length);
        self.open = Some((file, length));
        self.shorten()
    }

    /// Writes all that is needed beside the file, and puts that into its place.
    fn anew(&mut self) -> std::io::Result<()> {
        self.open = None;
        let bytes = self.owner.log(self.covered, &self.needed);
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
        file.sync_data()?;
        std::fs::rename(&beside, &self.path)?;
        if let Some(folder) = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            File::open(folder)?.sync_all()?;
        }
        let length = bytes.len() as u64;
        self.compact = COMPACT.max(2 * length);
        self.open = Some((file, length));
        Ok(())
    }

    /// After an error the file is written anew when its time comes.
    fn judge(&mut self, result: std::io::Result<()>) {
        match result {
            Ok(()) => {
                if self.failed.take().is_some() {
                    tracing::info!(file = %self.path.display(), "the file of send intents is written again");
                }
            }
            Err(error) => {
                self.open = None;
                self.errors.fetch_add(1, Ordering::Relaxed);
                if self.failed.replace(Instant::now()).is_none() {
                    tracing::warn!(
                        file = %self.path.display(), %error,
                        "cannot write the file of send intents: after a kill, a report that was on its way may not \
                         be reported again"
                    );
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
