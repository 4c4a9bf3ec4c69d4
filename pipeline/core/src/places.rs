//! Places of connections: when all are taken, the connection that has been idle the longest is closed, and the next one
//! has its place once it is gone.
//!
//! A client that has nothing to ask costs nobody else an answer, however many there are of it: a probe comes over a
//! connection of its own, and could not be told from them before it is read. Who is being answered keeps its place.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The places of one listener.
#[derive(Debug)]
pub struct Places {
    most: usize,
    held: Mutex<Seats>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Seats {
    by_number: HashMap<u64, Seat>,
    /// Grows with each connection, request and answer: whose idleness began with a lower one is idle for longer.
    moment: u64,
}

#[derive(Debug)]
struct Seat {
    /// Since when it has been idle, as long as it is.
    idle: u64,
    /// What is being answered: several requests at a time where it is HTTP/2.
    requests: usize,
    leave: CancellationToken,
}

/// One connection's place; free again when it is dropped.
#[derive(Debug)]
pub struct Place {
    number: u64,
    places: Arc<Places>,
    leave: CancellationToken,
}

/// As long as it lives the connection is no idle one.
#[derive(Debug)]
pub struct Busy(Arc<Place>);

impl Places {
    /// At most so many connections at a time.
    #[must_use]
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most: most.max(1), held: Mutex::default(), freed: Notify::new() })
    }

    /// Waits until a connection is gone, where there are as many as there may be.
    pub async fn take(self: &Arc<Self>) -> Place {
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
            let idle = held.by_number.values().filter(|seat| seat.requests == 0);
            idle.min_by_key(|seat| seat.idle)?.leave.cancel();
            return None;
        }
        let (number, leave) = (held.next(), CancellationToken::new());
        held.by_number.insert(number, Seat { idle: number, requests: 0, leave: leave.clone() });
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
    /// A request has come; the connection is not idle until this is dropped.
    #[must_use]
    pub fn busy(self: &Arc<Self>) -> Busy {
        if let Some(seat) = self.places.lock().by_number.get_mut(&self.number) {
            seat.requests += 1;
        }
        Busy(self.clone())
    }

    /// How many requests are being answered.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.places.lock().by_number.get(&self.number).map_or(0, |seat| seat.requests)
    }

    /// Waits until another connection wants this place.
    pub async fn lost(&self) {
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
            seat.requests = seat.requests.saturating_sub(1);
            seat.idle = moment;
        }
        drop(held);
        places.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_connection_with_several_requests_is_idle_when_all_of_them_are_answered() {
        let places = Places::new(1);
        let place = Arc::new(places.take().await);
        let (one, other) = (place.busy(), place.busy());
        drop(one);
        assert_eq!(place.requests(), 1);
        assert!(places.take().now_or_never().is_none(), "there is one place");
        assert!(place.lost().now_or_never().is_none(), "it is being answered");
        drop(other);
        assert!(places.take().now_or_never().is_none(), "it is still there");
        assert!(place.lost().now_or_never().is_some(), "it is to leave");
    }
}
