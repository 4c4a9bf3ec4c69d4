//! The body of an answer that holds what must last until all of it was sent: the place of the visitor's connection, which is not
//! idle before, and the place among the requests that are under way.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

/// A body that holds a place until it is dropped.
pub(crate) struct HoldingBody<B, P> {
    body: B,
    _place: P,
}

impl<B, P> HoldingBody<B, P> {
    pub(crate) fn new(body: B, place: P) -> Self {
        Self { body, _place: place }
    }
}

impl<B: Body<Data = Bytes, Error = hyper::Error> + Unpin, P: Unpin> Body for HoldingBody<B, P> {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
