//! The work connections of clients.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::AsyncWriteExt as _;
use tokio::sync::Semaphore;

use super::carrier::Carrier;
use super::messages::{Message, StartWork, kind};
use super::server::POOL;
use crate::lock::lock;

/// How many work connections are kept for visitors of a client which has a tunnel, beside those that visitors wait for already;
/// further ones are closed.
const MAX_WAITING: usize = 15;

/// Work connections of one client, which wait for visitors.
pub(super) struct WorkConnections {
    waiting: Mutex<VecDeque<Carrier>>,
    count: Semaphore,
    /// How many visitors wait for a work connection.
    takers: AtomicUsize,
    /// Whether the client has a tunnel, so that visitors come.
    is_open: AtomicBool,
}

impl WorkConnections {
    pub(super) fn new() -> Self {
        Self {
            waiting: Mutex::default(),
            count: Semaphore::new(0),
            takers: AtomicUsize::new(0),
            is_open: AtomicBool::new(false),
        }
    }

    /// Notes that the client has a tunnel, so that visitors come from now on.
    pub(super) fn open(&self) {
        self.is_open.store(true, Ordering::Release);
    }

    fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// Keeps a work connection for a visitor, if there is room.
    pub(super) async fn add(&self, mut carrier: Carrier) {
        // The client may wait for a sign that its stream was taken.
        if carrier.write(&[]).await.is_err() || carrier.flush().await.is_err() {
            return;
        }
        let most = if self.is_open() { MAX_WAITING } else { POOL };
        let mut waiting = lock(&self.waiting);
        if waiting.len() < most + self.takers.load(Ordering::Acquire) {
            waiting.push_back(carrier);
            self.count.add_permits(1);
        }
    }

    /// Ends the wait of all visitors, as no more work connections come.
    pub(super) fn end(&self) {
        self.count.close();
    }

    pub(super) fn has_one(&self) -> bool {
        self.count.available_permits() > 0
    }

    pub(super) async fn take(&self) -> Option<Carrier> {
        self.takers.fetch_add(1, Ordering::AcqRel);
        let _taking = WaitingVisitor(&self.takers);
        self.count.acquire().await.ok()?.forget();
        lock(&self.waiting).pop_front()
    }
}

/// A visitor who waits until this is dropped.
struct WaitingVisitor<'a>(&'a AtomicUsize);

impl Drop for WaitingVisitor<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Tells the other side that its work connection is of no client here, and ends it.
pub(super) async fn send_refusal(mut carrier: Carrier) {
    let error = "this work connection is of no client here".to_owned();
    let start = StartWork { error, ..StartWork::default() };
    drop(Message::write(&mut carrier, kind::START_WORK, &start).await);
    drop(carrier.shutdown().await);
}

/// Clients that have no multiplexer, by their run ids: their work connections come by themselves, and name nothing else.
#[derive(Default)]
pub(crate) struct ClientsWithoutMux(Mutex<HashMap<String, Arc<WorkConnections>>>);

impl ClientsWithoutMux {
    /// Notes that work connections of a run id are for `connections`: the last client that has a tunnel gets them, or else the first one
    /// that logged in.
    pub(super) fn register(&self, run_id: &str, connections: &Arc<WorkConnections>) {
        let mut all = lock(&self.0);
        if connections.is_open() || !all.contains_key(run_id) {
            all.insert(run_id.to_owned(), connections.clone());
        }
    }

    pub(super) fn remove(&self, run_id: &str, connections: &Arc<WorkConnections>) {
        let mut all = lock(&self.0);
        if all.get(run_id).is_some_and(|known| Arc::ptr_eq(known, connections)) {
            all.remove(run_id);
        }
    }

    pub(super) fn get(&self, run_id: &str) -> Option<Arc<WorkConnections>> {
        lock(&self.0).get(run_id).cloned()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::duplex;

    use super::*;

    #[tokio::test]
    async fn so_many_are_kept_beside_those_that_somebody_waits_for() {
        let connections = Arc::new(WorkConnections::new());
        connections.open();
        let many = MAX_WAITING * 3;
        let takers: Vec<_> = (0..many)
            .map(|_| {
                let connections = connections.clone();
                tokio::spawn(async move { connections.take().await.is_some() })
            })
            .collect();
        while connections.takers.load(Ordering::Acquire) < many {
            tokio::task::yield_now().await;
        }
        // All come before any who waits has a turn.
        let mut far = Vec::new();
        for _ in 0..many {
            let (near, other) = duplex(9);
            far.push(other);
            connections.add(Carrier::new(near)).await;
        }
        for taker in takers {
            assert!(taker.await.unwrap());
        }
        for _ in 0..many {
            let (near, other) = duplex(9);
            far.push(other);
            connections.add(Carrier::new(near)).await;
        }
        assert_eq!(connections.waiting.lock().unwrap().len(), MAX_WAITING);
    }
}
