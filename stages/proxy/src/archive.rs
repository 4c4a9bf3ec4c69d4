//! The logs of the runtime's own pods as one archive, which is made while it is sent: of one container after another, so that no more
//! than one log is in memory.
//!
//! takes: nothing - gives: a tar.gz with a file for each container, one for its run before where it was restarted, and `about.txt`,
//! which says what is missing - calls: the API server, for pods of one namespace that a selector chooses, and their logs
//! fails: before it begins, where pods cannot be listed; later what cannot be read is named in `about.txt`
//!
//! Secrets are in none of the runtime's own lines; those of other programs are redacted, each as the platform's reports are.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::Stream;
use jiff::Timestamp;
use pipeline_core::Shutdown;
use pipeline_redact::Redactor;
use stages_kube::QuestionError;
use tar::{Builder, Header};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::error::ActError;
use crate::own_pods::{OwnLog, OwnLogs, OwnPods};

/// The most lines of one log, which are its last ones; fewer where those have more than [`BYTES`].
const LINES: u32 = 10_000;
/// The most bytes of one log.
const BYTES: usize = 4 << 20;
/// The most bytes of all logs.
const TOTAL: usize = 256 << 20;
/// How long logs are read; those that are left are named as missing.
const WITHIN: Duration = Duration::from_secs(600);
/// The most lines of a private key.
pub(crate) const KEY_LINES: usize = 200;

/// Makes archives of the logs of the runtime's own pods.
pub(crate) struct LogArchive {
    pods: OwnPods,
    redactor: Arc<Redactor>,
    /// A single permit: one archive is made at a time.
    place: Arc<Semaphore>,
}

type Archive = Builder<GzEncoder<Vec<u8>>>;

/// An archive that is being made.
struct ArchiveStream {
    of: Arc<LogArchive>,
    left: VecDeque<OwnLog>,
    /// `None` once the archive is whole.
    archive: Option<Archive>,
    /// What is missing, and why, a line each.
    missing: String,
    /// Bytes of logs that may still be read.
    room: usize,
    until: Instant,
    stop: Shutdown,
    _place: OwnedSemaphorePermit,
}

impl LogArchive {
    pub(crate) fn new(pods: OwnPods, redactor: Arc<Redactor>) -> Self {
        Self { pods, redactor, place: Arc::new(Semaphore::new(1)) }
    }

    /// Begins an archive. It is cut short, and not ended, when the process stops.
    pub(crate) async fn begin(
        self: Arc<Self>,
        stop: Shutdown,
    ) -> Result<impl Stream<Item = io::Result<Bytes>> + Send + 'static, ActError> {
        let place = self.place.clone().try_acquire_owned();
        let place = place.map_err(|_| {
            ActError::Busy("somebody downloads the logs already: try again when that is done")
        })?;
        let OwnLogs { logs: left, missing } = self.pods.logs().await?;
        let archive = Some(Builder::new(GzEncoder::new(Vec::new(), Compression::fast())));
        let until = Instant::now() + WITHIN;
        let making =
            ArchiveStream { of: self, left, archive, missing, room: TOTAL, until, stop, _place: place };
        Ok(futures::stream::try_unfold(making, ArchiveStream::next))
    }

    /// The last lines of a log, at most [`LINES`] and [`BYTES`]; `None`: the log is gone.
    async fn read(&self, wanted: &OwnLog) -> Result<Option<Vec<u8>>, QuestionError> {
        let mut lines = LINES;
        loop {
            let path = self.pods.path(wanted, &format!("tailLines={lines}&limitBytes={BYTES}"));
            let read = self.pods.cluster.text(&path).await?;
            // The API server cuts a log that is too long at its end, where the newest lines stand: fewer lines are asked for instead.
            match read {
                Some(text) if text.len() >= BYTES && lines > 1 => lines = (lines / 4).max(1),
                read => return Ok(read),
            }
        }
    }
}

impl ArchiveStream {
    async fn next(mut self) -> io::Result<Option<(Bytes, Self)>> {
        loop {
            let Some(archive) = self.archive.take() else { return Ok(None) };
            if self.stop.is_cancelled() {
                return Err(io::Error::other("the process stops"));
            }
            let Some(wanted) = self.left.pop_front() else { return self.end(archive).await.map(Some) };
            let path = wanted.path();
            if self.room == 0 || Instant::now() >= self.until {
                let why = if self.room == 0 { "the others are 256 MiB" } else { "it took too long" };
                let _ = writeln!(self.missing, "{path}: {why}");
                self.archive = Some(archive);
                continue;
            }
            let read = match self.of.read(&wanted).await {
                Ok(Some(read)) => read,
                other => {
                    let why = other.err().map_or_else(|| "it is gone".to_owned(), |error| error.to_string());
                    let _ = writeln!(self.missing, "{path}: {why}");
                    self.archive = Some(archive);
                    continue;
                }
            };
            self.room = self.room.saturating_sub(read.len());
            let redactor = self.of.redactor.clone();
            let bytes = self
                .add(archive, move || (path, redacted(&redactor, &String::from_utf8_lossy(&read))))
                .await?;
            if !bytes.is_empty() {
                return Ok(Some((bytes, self)));
            }
        }
    }

    /// Adds a file; gives the bytes of the archive that are ready.
    async fn add(
        &mut self,
        mut archive: Archive,
        file: impl FnOnce() -> (String, String) + Send + 'static,
    ) -> io::Result<Bytes> {
        let added = tokio::task::spawn_blocking(move || {
            let (path, text) = file();
            let mut header = Header::new_gnu();
            header.set_size(u64::try_from(text.len()).map_err(io::Error::other)?);
            header.set_mode(0o600);
            header.set_mtime(u64::try_from(Timestamp::now().as_second()).unwrap_or_default());
            archive.append_data(&mut header, path, text.as_bytes())?;
            let bytes = std::mem::take(archive.get_mut().get_mut());
            Ok::<_, io::Error>((archive, bytes))
        });
        let (archive, bytes) = added.await.map_err(io::Error::other)??;
        self.archive = Some(archive);
        Ok(bytes.into())
    }

    async fn end(mut self, archive: Archive) -> io::Result<(Bytes, Self)> {
        let missing = if self.missing.is_empty() { "nothing\n".to_owned() } else { self.missing.clone() };
        let about = format!(
            "The logs of the pods of {} with the labels {}, of at most {LINES} lines and 4 MiB each.\n\nMissing:\n{missing}",
            self.of.pods.namespace, self.of.pods.selector
        );
        let begun = self.add(archive, move || ("about.txt".to_owned(), about)).await?;
        let Some(archive) = self.archive.take() else { return Ok((begun, self)) };
        let rest = archive.into_inner()?.finish()?;
        Ok(([begun, rest.into()].concat().into(), self))
    }
}

/// A log without secrets: line by line, so that one that has to be withheld takes no other along, but a private key as a whole.
fn redacted(redactor: &Redactor, log: &str) -> String {
    let mut clean = String::with_capacity(log.len());
    let mut lines = log.lines();
    while let Some(line) = lines.next() {
        let mut all = line.to_owned();
        if line.contains("-----BEGIN") {
            for line in lines.by_ref().take(KEY_LINES) {
                all.push('\n');
                all.push_str(line);
                if line.contains("-----END") {
                    break;
                }
            }
        }
        clean.push_str(&redactor.text(&all));
        clean.push('\n');
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_over_several_lines_is_redacted_and_the_lines_around_it_are_not() {
        let redactor = Redactor::new(b"a key of tests");
        let body = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo0MjQyNDI0MjQyNDI0MjQyNDI0MjQyNDI0".repeat(2);
        let log = format!(
            "before\n-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\nafter https://ada:geheim@git.example.com/x\n"
        );
        let clean = redacted(&redactor, &log);
        assert!(!clean.contains(&body) && !clean.contains("geheim"), "{clean}");
        assert!(clean.starts_with("before\n") && clean.contains("\nafter https://"), "{clean}");
        assert_eq!(redacted(&redactor, "one\n\ntwo"), "one\n\ntwo\n");
    }
}
