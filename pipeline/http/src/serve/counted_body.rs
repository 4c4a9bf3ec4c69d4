//! A body that keeps its connection busy until it is sent, or given up.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use hyper::body::{Frame, SizeHint};
use pipeline_core::Busy;

/// The body of an answer, with which its connection counts as busy.
pub(super) struct CountedBody {
    body: Body,
    _busy: Busy,
}

impl CountedBody {
    pub(super) fn new(body: Body, busy: Busy) -> Self {
        Self { body, _busy: busy }
    }
}

impl hyper::body::Body for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
