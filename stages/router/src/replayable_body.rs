//! A request's body that comes back when nothing of it was taken, so that the request may be sent again.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use crate::streamed::{Cut, Streamed};

/// Holds a body between tries.
pub(crate) struct ReplayableBody {
    body: Arc<Mutex<Option<Streamed>>>,
    hint: SizeHint,
    empty: bool,
}

impl ReplayableBody {
    pub(crate) fn new(body: Streamed) -> Self {
        let (hint, empty) = (body.size_hint(), body.is_end_stream());
        Self { body: Arc::new(Mutex::new(Some(body))), hint, empty }
    }

    /// Lends the body for one try.
    pub(crate) fn lend(&self) -> AttemptBody {
        AttemptBody { source: self.body.clone(), body: None, hint: self.hint, empty: self.empty }
    }

    /// Whether the request has no body.
    pub(crate) fn is_empty(&self) -> bool {
        self.empty
    }

    /// Whether nothing of the body was taken, so that the request may be sent again.
    pub(crate) fn is_whole(&self) -> bool {
        self.empty || self.body.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

/// The body of one try, which takes it from its [`ReplayableBody`] when it is polled first.
pub(crate) struct AttemptBody {
    source: Arc<Mutex<Option<Streamed>>>,
    body: Option<Streamed>,
    hint: SizeHint,
    empty: bool,
}

impl Body for AttemptBody {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        if self.body.is_none() {
            let taken = self.source.lock().unwrap_or_else(PoisonError::into_inner).take();
            self.body = taken;
        }
        match &mut self.body {
            Some(body) => Pin::new(body).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().map_or(self.empty, Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| self.hint, Body::size_hint)
    }
}
