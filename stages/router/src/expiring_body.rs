//! The body of an answer to a client of HTTP/2. Such a client may give a stream no room: then nobody polls the body, the
//! connection is not blocked either, and no other time-out ends it. This one drops the body all the same, and with it the
//! place that the request holds and the connection to the service.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::task::AbortHandle;

use crate::moment::Moment;
use crate::proxy::ProxyBody;
use crate::streamed::Cut;

/// A body that is dropped when it has not been polled for too long.
pub(crate) struct ExpiringBody {
    body: Arc<Mutex<Option<ProxyBody>>>,
    /// Since when nobody has polled it.
    unasked: Arc<Moment>,
    watching: AbortHandle,
}

fn lock(body: &Mutex<Option<ProxyBody>>) -> MutexGuard<'_, Option<ProxyBody>> {
    body.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ExpiringBody {
    /// Drops `body` when nobody has polled it for `limit`.
    pub(crate) fn new(body: ProxyBody, limit: Duration) -> Self {
        let (body, unasked) = (Arc::new(Mutex::new(Some(body))), Arc::new(Moment::now()));
        let (letting_go, moment) = (body.clone(), unasked.clone());
        let watching = tokio::spawn(async move {
            moment.stale(limit).await;
            drop(lock(&letting_go).take());
        });
        Self { body, unasked, watching: watching.abort_handle() }
    }
}

impl Drop for ExpiringBody {
    fn drop(&mut self) {
        self.watching.abort();
    }
}

impl Body for ExpiringBody {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let mut body = lock(&self.body);
        let Some(answer) = &mut *body else { return Poll::Ready(Some(Err(Cut::Idle))) };
        let poll = Pin::new(answer).poll_frame(context);
        match poll {
            // The next poll comes when the client has room for it.
            Poll::Ready(_) => self.unasked.touch(),
            Poll::Pending => self.unasked.clear(),
        }
        poll
    }

    fn is_end_stream(&self) -> bool {
        lock(&self.body).as_ref().is_some_and(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        lock(&self.body).as_ref().map_or_else(SizeHint::default, Body::size_hint)
    }
}
