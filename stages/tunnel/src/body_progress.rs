//! Notes when something of a request's body was last passed on: the time for an answer counts from then, however long the body
//! takes.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::time::{Instant, sleep_until};

use crate::lock::lock;

/// When something of a body was last passed on.
#[derive(Debug)]
pub(crate) struct BodyProgress(Mutex<Instant>);

impl Default for BodyProgress {
    fn default() -> Self {
        Self(Mutex::new(Instant::now()))
    }
}

impl BodyProgress {
    fn touch(&self) {
        *lock(&self.0) = Instant::now();
    }

    /// Waits for `coming` until nothing of the body has been passed on for `limit`, counted from now at the earliest; `None` when
    /// that time is up.
    pub(crate) async fn within<T>(&self, limit: Duration, coming: impl Future<Output = T>) -> Option<T> {
        self.touch();
        tokio::pin!(coming);
        loop {
            let until = *lock(&self.0) + limit;
            if until <= Instant::now() {
                return None;
            }
            tokio::select! {
                come = &mut coming => return Some(come),
                () = sleep_until(until) => {}
            }
        }
    }
}

/// The body of a visitor's request, which notes in `progress` that it is passed on.
pub(crate) struct TrackedBody {
    pub(crate) body: Incoming,
    pub(crate) progress: Arc<BodyProgress>,
}

impl Body for TrackedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let poll = Pin::new(&mut self.body).poll_frame(cx);
        if poll.is_ready() {
            self.progress.touch();
        }
        poll
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
