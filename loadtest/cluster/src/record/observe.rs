//! Takes what is watched of Applications, and asks Argo CD about each that changed.
//!
//! Of an application that changes faster than Argo CD answers, only the newest state is asked about; at most four are
//! asked about at once.

use std::collections::BTreeSet;

use bytes::Bytes;
use futures::stream::{FuturesUnordered, StreamExt as _};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::{Asker, Line, now};
use crate::oracle::Change;

/// Applications that are asked about at once.
const AT_ONCE: usize = 4;

/// Notes changes, and asks about their applications.
pub(super) struct Changes {
    asker: Asker,
    seen: watch::Sender<u64>,
    due: BTreeSet<String>,
    /// Of those, the ones that have just come.
    new: BTreeSet<String>,
    busy: BTreeSet<String>,
    asking: FuturesUnordered<futures::future::BoxFuture<'static, String>>,
}

impl Changes {
    pub(super) fn new(asker: Asker, seen: watch::Sender<u64>) -> Self {
        let asking = FuturesUnordered::new();
        Self { asker, seen, due: BTreeSet::new(), new: BTreeSet::new(), busy: BTreeSet::new(), asking }
    }

    pub(super) async fn take(&mut self, change: Change) {
        let Change { application, kind, object } = change;
        let event = Bytes::from(format!(r#"{{"type":"{kind}","object":{object}}}"#));
        if kind == "DELETED" {
            self.due.remove(&application);
        } else {
            self.due.insert(application.clone());
            if kind == "ADDED" {
                self.new.insert(application.clone());
            }
        }
        // A writer that has failed is told at the end.
        let _ = self.asker.lines.send(Line::Watch { application, t: now(), event }).await;
        self.seen.send_modify(|seen| *seen += 1);
        self.ask();
    }

    /// Starts to ask as far as the bound allows.
    fn ask(&mut self) {
        while self.asking.len() < AT_ONCE {
            let Some(next) = self.due.difference(&self.busy).next().cloned() else { return };
            self.due.remove(&next);
            self.busy.insert(next.clone());
            let asker = self.asker.clone();
            let is_new = self.new.remove(&next);
            self.asking.push(Box::pin(async move {
                if is_new {
                    asker.settings(&next).await;
                }
                asker.look(&next).await;
                next
            }));
        }
    }

    /// Waits until one has been asked about; for ever when none is being.
    async fn asked(&mut self) {
        match self.asking.next().await {
            Some(done) => {
                self.busy.remove(&done);
                self.ask();
            }
            None => std::future::pending().await,
        }
    }
}

/// Observes until it is told to stop; what is being asked then is finished.
pub(super) async fn observe(
    mut watched: mpsc::UnboundedReceiver<Change>,
    mut changes: Changes,
    stop: CancellationToken,
) {
    loop {
        tokio::select! {
            biased;
            change = watched.recv() => match change {
                Some(change) => changes.take(change).await,
                None => break,
            },
            () = stop.cancelled() => break,
            () = changes.asked() => {}
        }
    }
    while !changes.asking.is_empty() {
        changes.asked().await;
    }
}
