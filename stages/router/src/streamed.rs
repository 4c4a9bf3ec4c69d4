//! A body on its way through: counted, bounded in bytes, and given up when nothing moves.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::time::{Sleep, sleep};

use crate::exchange::Exchange;
use crate::moment::Moment;
use crate::refusal::Refusal;

/// What a request and its answer share.
#[derive(Debug)]
pub(crate) struct Flow {
    /// When something last moved, in either direction.
    pub(crate) moved: Moment,
    /// How long nothing may move.
    pub(crate) idle: Duration,
    /// How many bytes of the request's body arrived.
    pub(crate) received: AtomicU64,
    /// How many bytes of the answer's body were sent.
    pub(crate) sent: AtomicU64,
    /// Whether the client is waited for to send more, rather than the service.
    pub(crate) asked: AtomicBool,
    /// Why the request's body ended early.
    pub(crate) refusal: OnceLock<Refusal>,
}

impl Flow {
    pub(crate) fn new(idle: Duration) -> Arc<Self> {
        Arc::new(Self {
            moved: Moment::now(),
            idle,
            received: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            asked: AtomicBool::new(false),
            refusal: OnceLock::new(),
        })
    }
}

/// Why a body was given up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Cut {
    #[error("the body is too large")]
    TooLarge,
    #[error("nothing moved for too long")]
    Idle,
    #[error("the body broke off")]
    Broken(#[source] hyper::Error),
}

/// The direction of a body.
enum Direction {
    /// The body of a request: `left` of its `most` bytes may still come.
    In { left: u64, most: u64 },
    /// The body of an answer, with which the exchange ends.
    Out(Exchange),
}

/// A body that is passed on.
pub(crate) struct Streamed {
    body: Incoming,
    flow: Arc<Flow>,
    direction: Direction,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Streamed {
    /// The body of a request, which may have `most` bytes.
    pub(crate) fn request(body: Incoming, flow: Arc<Flow>, most: u64) -> Self {
        Self { body, flow, direction: Direction::In { left: most, most }, timer: None }
    }

    /// The body of an answer, with which `exchange` ends.
    pub(crate) fn answer(body: Incoming, flow: Arc<Flow>, mut exchange: Exchange) -> Self {
        if body.is_end_stream() {
            exchange.complete();
        }
        Self { body, flow, direction: Direction::Out(exchange), timer: None }
    }

    fn took(&mut self, frame: Frame<Bytes>) -> Result<Frame<Bytes>, Cut> {
        self.flow.moved.touch();
        let bytes = frame.data_ref().map_or(0, |data| u64::try_from(data.len()).unwrap_or(u64::MAX));
        match &mut self.direction {
            Direction::In { left, most } => {
                let Some(rest) = left.checked_sub(bytes) else {
                    let _ = self.flow.refusal.set(Refusal::Body(*most));
                    return Err(Cut::TooLarge);
                };
                *left = rest;
                self.flow.received.fetch_add(bytes, Ordering::Relaxed);
            }
            Direction::Out(_) => {
                self.flow.sent.fetch_add(bytes, Ordering::Relaxed);
            }
        }
        Ok(frame)
    }

    /// Whether nothing has moved for too long.
    fn poll_idle(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            let Some(left) = self.flow.moved.left(self.flow.idle) else { return Poll::Ready(()) };
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(left)));
            match timer.as_mut().poll(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(()) => self.timer = None,
            }
        }
    }
}

impl Body for Streamed {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let poll = Pin::new(&mut self.body).poll_frame(context);
        if let Direction::In { .. } = self.direction {
            self.flow.asked.store(poll.is_pending(), Ordering::Relaxed);
        }
        match poll {
            Poll::Ready(Some(Ok(frame))) => {
                let took = self.took(frame);
                if self.body.is_end_stream()
                    && let Direction::Out(exchange) = &mut self.direction
                {
                    exchange.complete();
                }
                Poll::Ready(Some(took))
            }
            Poll::Ready(Some(Err(error))) => {
                match &mut self.direction {
                    Direction::In { .. } => drop(self.flow.refusal.set(Refusal::BodyBroken)),
                    Direction::Out(exchange) => exchange.broke(&error),
                }
                Poll::Ready(Some(Err(Cut::Broken(error))))
            }
            Poll::Ready(None) => {
                if let Direction::Out(exchange) = &mut self.direction {
                    exchange.complete();
                }
                Poll::Ready(None)
            }
            Poll::Pending => self.poll_idle(context).map(|()| {
                if let Direction::In { .. } = self.direction {
                    let _ = self.flow.refusal.set(Refusal::BodyIdle);
                }
                Some(Err(Cut::Idle))
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
