//! Compares what is in the cluster, what the ledger says was acknowledged and, where the receiver answers, what it
//! holds; and reports again exactly what differs.
//!
//! takes: [`VerifyOptions`], through [`Handle::verify`](crate::run::Handle::verify) - gives: [`Verified`]
//! calls: [`Survey::survey`](pipeline_core::Survey::survey) once, [`Source::read`](pipeline_core::Source::read) for what
//! it does not list, [`Sink::differing`](pipeline_core::Sink::differing) and [`Sink::others`](pipeline_core::Sink::others) - fails:
//! when nothing in the cluster can be listed; a kind that cannot, and a receiver that does not answer, is said, and the rest is done

mod check;
mod compare;
mod others;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pipeline_core::{Key, Shutdown, StageError};
use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};

use crate::run::Handle;
use crate::shard::Shared;
use check::Check;

/// Keys that are named of each finding; all are counted.
const NAMED: usize = 100;

/// What to verify, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct VerifyOptions {
    /// Only compare; report nothing again.
    pub dry: bool,
    /// The time for listing, comparing and repairing, in seconds. What is not looked at by then is said to be unread,
    /// and what is not repaired by then goes on, unwatched.
    pub seconds: u64,
    /// Read what may have drifted again, which asks for its states. Left out where a comparison
    /// comes by itself, with each shard that moves.
    pub drift: bool,
}

impl Default for VerifyOptions {
    fn default() -> Self {
        Self { dry: false, seconds: 300, drift: true }
    }
}

/// Objects that something was found of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// How many.
    pub total: usize,
    /// The first hundred of them, as `namespace/name`, sorted.
    pub keys: Vec<String>,
}

impl Found {
    fn of<'a>(keys: impl IntoIterator<Item = &'a Key>) -> Self {
        let mut keys: Vec<&Key> = keys.into_iter().collect();
        keys.sort_unstable();
        keys.dedup();
        Self { total: keys.len(), keys: keys.into_iter().take(NAMED).map(ToString::to_string).collect() }
    }
}

/// What a verification found, of the objects whose shards this process owns.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Verified {
    /// Nothing was to be repaired.
    pub dry: bool,
    /// Objects in the cluster.
    pub objects: usize,
    /// Objects of which something was acknowledged, and that are watched.
    pub acknowledged: usize,
    /// In the cluster, and nothing of them was acknowledged.
    pub missing: Found,
    /// In the cluster in another life than the acknowledged one.
    pub recreated: Found,
    /// Acknowledged, and not in the cluster any more.
    pub gone: Found,
    /// In the cluster in a newer state than the acknowledged one, or not acknowledged as a whole, or of which it is not
    /// known what the receiver holds. They are read again; most turn out to be unchanged.
    pub newer: Found,
    /// In the acknowledged state, and changed all the same: what may have drifted was read again, and was reported. Without a
    /// repair nobody looks.
    pub drifted: Found,
    /// Of which the receiver holds something else than what was acknowledged; `null` when it does not compare.
    pub receiver_differs: Option<Found>,
    /// Which the receiver holds and nothing is remembered of, and which are certainly not in the cluster any more: it was restored from a
    /// backup, and they were deleted after that was made. `null` when it does not say, or was not asked as a list was not complete.
    #[serde(default)]
    pub receiver_others: Option<Found>,
    /// What other processes' shards remember could not be read, because the bus was away: the list was measured by this
    /// process's own, by which it may go unnoticed that the cluster's versions went back.
    #[serde(default)]
    pub others_unknown: bool,
    /// The kinds that could not be listed: their objects were compared with nothing.
    #[serde(default)]
    pub unlisted: BTreeSet<String>,
    /// Why the receiver could not be asked, if it could not.
    pub receiver_failed: Option<String>,
    /// Different, and refused for good by the receiver: they are left to a person.
    pub parked: Found,
    /// To be looked at one by one, and not to be read, or not in time: how they are is not known.
    pub unread: Found,
    /// Objects that were read and reported again.
    pub repaired: usize,
    /// Reports of them that were acknowledged while they were.
    pub reports: u64,
    /// Missing, recreated, gone or different at the receiver in the end; without a repair, all of these.
    pub still_different: Found,
    /// Being reported still when the time was over.
    pub unfinished: Found,
    /// How long it took, in seconds.
    pub seconds: f64,
}

impl Verified {
    /// Notes why the receiver could not be asked, if it could not; the first reason is said.
    fn failed_to_ask(&mut self, why: Option<&'static str>) {
        self.receiver_failed = self.receiver_failed.take().or(why.map(str::to_owned));
    }

    /// Whether everything is as it should be: nothing is different, parked or unfinished, and all could be listed and asked.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        let open = [&self.still_different, &self.parked, &self.unread, &self.unfinished];
        open.iter().all(|found| found.total == 0)
            && self.unlisted.is_empty()
            && self.receiver_failed.is_none()
    }
}

/// How far a verification is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// What it does: `listing`, `comparing`, `asking the receiver`, `repairing` or `comparing again`.
    pub step: &'static str,
    /// Objects that are done with in this step.
    pub done: usize,
    /// Of how many; 0 while that is not known.
    pub total: usize,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// One at a time.
    #[error("a verification is running already")]
    Busy,
    /// The engine is stopping, or has not begun.
    #[error("the engine is stopping")]
    Stopped,
    /// What the source shows can only be watched.
    #[error("what is watched cannot be listed, and so not be compared")]
    Unlisted,
    /// Without a complete list nothing can be said.
    #[error("cannot list what is in the cluster")]
    Survey(#[source] StageError),
}

type VerifyResult = Result<Verified, VerifyError>;

/// What a handle asks through.
pub(crate) struct Caller {
    requests: mpsc::Sender<Request>,
    one: Arc<Semaphore>,
    progress: watch::Receiver<Option<Progress>>,
}

/// What the engine answers through.
pub(crate) struct Desk {
    requests: mpsc::Receiver<Request>,
    progress: watch::Sender<Option<Progress>>,
}

struct Request {
    options: VerifyOptions,
    answer: oneshot::Sender<VerifyResult>,
    /// Given back when the verification ends, which is also when whoever asked went away.
    _one: OwnedSemaphorePermit,
}

/// Connects handles with the engine.
pub(crate) fn connection() -> (Caller, Desk) {
    let (ask, requests) = mpsc::channel(1);
    let (tell, progress) = watch::channel(None);
    let caller = Caller { requests: ask, one: Arc::new(Semaphore::new(1)), progress };
    (caller, Desk { requests, progress: tell })
}

impl Caller {
    pub(crate) async fn verify(&self, options: VerifyOptions) -> VerifyResult {
        let one = self.one.clone().try_acquire_owned().map_err(|_| VerifyError::Busy)?;
        let (answer, answered) = oneshot::channel();
        let request = Request { options, answer, _one: one };
        self.requests.send(request).await.map_err(|_| VerifyError::Stopped)?;
        answered.await.unwrap_or(Err(VerifyError::Stopped))
    }

    pub(crate) fn progress(&self) -> Option<Progress> {
        *self.progress.borrow()
    }
}

/// Verifies, one at a time, until `stop`. A verification ends early when nobody waits for its result any more.
pub(crate) async fn serve(shared: Arc<Shared>, handle: Handle, mut desk: Desk, stop: Shutdown) {
    loop {
        let request = tokio::select! {
            () = stop.cancelled() => return,
            Some(request) = desk.requests.recv() => request,
        };
        let Request { options, mut answer, _one } = request;
        tracing::info!(dry = options.dry, "verifying what was reported");
        let verified = tokio::select! {
            () = stop.cancelled() => return,
            () = answer.closed() => None,
            verified = Check::new(&shared, &handle, options, &desk.progress).run() => Some(verified),
        };
        desk.progress.send_replace(None);
        match verified {
            None => tracing::info!("the verification was given up: nobody waits for it"),
            Some(verified) => {
                say(&verified);
                // Whoever asked may just have gone.
                let _ = answer.send(verified);
            }
        }
    }
}

fn say(verified: &VerifyResult) {
    match verified {
        Ok(found) => tracing::info!(
            objects = found.objects,
            missing = found.missing.total,
            recreated = found.recreated.total,
            gone = found.gone.total,
            newer = found.newer.total,
            drifted = found.drifted.total,
            receiver_differs = found.receiver_differs.as_ref().map(|found| found.total),
            receiver_others = found.receiver_others.as_ref().map(|found| found.total),
            reports = found.reports,
            still_different = found.still_different.total,
            "verified what was reported"
        ),
        Err(error) => {
            let error: &dyn std::error::Error = error;
            tracing::warn!(error, "cannot verify what was reported");
        }
    }
}

/// The deadline of a verification, and pauses that end with it.
#[derive(Debug, Clone, Copy)]
struct Time {
    begun: tokio::time::Instant,
    deadline: tokio::time::Instant,
}

impl Time {
    fn new(seconds: u64) -> Self {
        let begun = tokio::time::Instant::now();
        // Far enough for everybody, and near enough to be added.
        let seconds = Duration::from_secs(seconds.min(30 * 24 * 3600));
        Self { begun, deadline: begun + seconds }
    }
}
