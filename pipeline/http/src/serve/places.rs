//! Places of connections: when all are taken, the connection that has been idle the longest is closed, and the next one
//! has its place once it is gone.
//!
//! A client that has nothing to ask costs nobody else an answer, however many there are of it: a probe comes over a
//! connection of its own, and could not be told from them before it is read. Who is being answered keeps its place.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use hyper::body::{Frame, SizeHint};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The places of one listener.
pub(super) struct Places {
    most: usize,
    held: Mutex<Seats>,
    freed: Notify,
}

#[derive(Default)]
struct Seats {
    by_number: HashMap<u64, Seat>,
    /// Grows with each connection, request and answer: whose idleness began with a lower one is idle for longer.
    moment: u64,
}

struct Seat {
    /// Since when it has been idle; `None` while it is being answered.
    idle: Option<u64>,
    leave: CancellationToken,
}

/// One connection's place; free again when it is dropped.
pub(super) struct Place {
    number: u64,
    places: Arc<Places>,
    leave: CancellationToken,
}

/// As long as it lives the connection is no idle one.
pub(super) struct Busy(Arc<Place>);

/// A body that keeps its connection busy until it is sent, or given up.
pub(super) struct CountedBody {
    body: Body,
    _busy: Busy,
}

impl Places {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most: most.max(1), held: Mutex::default(), freed: Notify::new() })
    }

    /// Waits until a connection is gone, where there are as many as there may be.
    pub(super) async fn take(self: &Arc<Self>) -> Place {
        loop {
            let freed = self.freed.notified();
            if let Some(place) = self.seat() {
                return place;
            }
            freed.await;
        }
    }

    fn seat(self: &Arc<Self>) -> Option<Place> {
        let mut held = self.lock();
        if held.by_number.len() >= self.most {
            let idle = held.by_number.values().filter(|seat| seat.idle.is_some());
            idle.min_by_key(|seat| seat.idle)?.leave.cancel();
            return None;
        }
        let (number, leave) = (held.next(), CancellationToken::new());
        held.by_number.insert(number, Seat { idle: Some(number), leave: leave.clone() });
        Some(Place { number, places: self.clone(), leave })
    }

    fn lock(&self) -> MutexGuard<'_, Seats> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seats {
    fn next(&mut self) -> u64 {
        self.moment += 1;
        self.moment
    }
}

impl Place {
    /// A request has come.
    pub(super) fn busy(self: &Arc<Self>) -> Busy {
        if let Some(seat) = self.places.lock().by_number.get_mut(&self.number) {
            seat.idle = None;
        }
        Busy(self.clone())
    }

    /// Waits until another connection wants this place.
    pub(super) async fn lost(&self) {
        self.leave.cancelled().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.lock().by_number.remove(&self.number);
        self.places.freed.notify_one();
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let Place { number, places, .. } = &*self.0;
        let mut held = places.lock();
        let moment = held.next();
        if let Some(seat) = held.by_number.get_mut(number) {
            seat.idle = Some(moment);
        }
        drop(held);
        places.freed.notify_one();
    }
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
