//! The work connections of one client.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::messages::{Message, NewWork, StartWork, kind};
use crate::mux::MuxStream;

/// Work connections that are kept for visitors; those beyond are closed.
const WAITING: usize = 15;

/// Work connections that wait for visitors.
pub(super) struct Works {
    waiting: Mutex<VecDeque<MuxStream>>,
    count: Semaphore,
}

impl Works {
    pub(super) fn new() -> Self {
        Self { waiting: Mutex::default(), count: Semaphore::new(0) }
    }

    fn add(&self, stream: MuxStream) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < WAITING {
            waiting.push_back(stream);
            self.count.add_permits(1);
        }
    }

    pub(super) fn has_one(&self) -> bool {
        self.count.available_permits() > 0
    }

    pub(super) async fn take(&self) -> Option<MuxStream> {
        self.count.acquire().await.ok()?.forget();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// Takes a stream that the client opened, if it is a work connection of its own.
    pub(super) async fn offered(self: Arc<Self>, mut stream: MuxStream, run_id: String, within: Duration) {
        let read = timeout(within, Message::read(&mut stream)).await;
        let Ok(Ok(message)) = read else { return };
        let given: Option<NewWork> =
            (message.kind == kind::NEW_WORK).then(|| message.content().ok()).flatten();
        if given.is_some_and(|given| given.run_id == run_id) {
            // The client may wait for a sign that the stream was taken.
            if stream.write(&[]).await.is_ok() && stream.flush().await.is_ok() {
                self.add(stream);
            }
            return;
        }
        let start = StartWork {
            error: "this work connection is of no client here".to_owned(),
            ..StartWork::default()
        };
        drop(Message::write(&mut stream, kind::START_WORK, &start).await);
        drop(stream.shutdown().await);
    }
}
