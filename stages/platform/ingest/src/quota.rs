//! How much one runtime, and all together, may have under way: a flood of one is told to slow down, and starves nobody.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::refusal::Refusal;

/// The most that is under way at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quota {
    /// Requests of one runtime.
    pub(crate) requests: usize,
    /// Bytes of the bodies of one runtime, packed and unpacked.
    pub(crate) bytes: usize,
    /// Bytes of all bodies.
    pub(crate) all_bytes: usize,
}

#[derive(Debug, Default)]
struct Share {
    requests: AtomicUsize,
    bytes: AtomicUsize,
}

/// What is under way.
#[derive(Debug)]
pub(crate) struct Quotas {
    quota: Quota,
    shares: Mutex<HashMap<i64, Arc<Share>>>,
    bytes: AtomicUsize,
}

/// A request that is under way, with what it holds; it gives that back when it is dropped.
#[derive(Debug)]
pub(crate) struct Passage {
    quotas: Arc<Quotas>,
    share: Arc<Share>,
    bytes: usize,
}

impl Quotas {
    pub(crate) fn new(quota: Quota) -> Arc<Self> {
        Arc::new(Self { quota, shares: Mutex::default(), bytes: AtomicUsize::new(0) })
    }

    pub(crate) fn enter(self: &Arc<Self>, runtime: i64) -> Result<Passage, Refusal> {
        let share = {
            let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
            shares.entry(runtime).or_default().clone()
        };
        let most = self.quota.requests;
        if !take(&share.requests, 1, most) {
            return Err(Refusal::ManyRequests(most));
        }
        Ok(Passage { quotas: self.clone(), share, bytes: 0 })
    }
}

impl Passage {
    /// Holds more bytes. One request alone may hold whatever a body may have.
    pub(crate) fn hold(&mut self, bytes: usize) -> Result<(), Refusal> {
        let Quota { bytes: most, all_bytes, .. } = self.quotas.quota;
        if !take(&self.share.bytes, bytes, most.max(self.bytes + bytes)) {
            return Err(Refusal::ManyBytes(most));
        }
        if !take(&self.quotas.bytes, bytes, all_bytes) {
            self.share.bytes.fetch_sub(bytes, Ordering::Relaxed);
            return Err(Refusal::Busy);
        }
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        self.share.requests.fetch_sub(1, Ordering::Relaxed);
        self.share.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        self.quotas.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

fn take(count: &AtomicUsize, more: usize, most: usize) -> bool {
    let taken = count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| {
        held.checked_add(more).filter(|held| *held <= most)
    });
    taken.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_one_runtime_starves_no_other_and_all_is_given_back() {
        let quotas = Quotas::new(Quota { requests: 2, bytes: 100, all_bytes: 150 });
        let mut first = quotas.enter(1).unwrap();
        let mut second = quotas.enter(1).unwrap();
        assert_eq!(quotas.enter(1).unwrap_err(), Refusal::ManyRequests(2));
        let mut other = quotas.enter(2).unwrap();
        first.hold(60).unwrap();
        assert_eq!(second.hold(60), Err(Refusal::ManyBytes(100)));
        other.hold(80).unwrap();
        assert_eq!(second.hold(20), Err(Refusal::Busy));
        drop(first);
        second.hold(60).unwrap();
        drop((second, other));
        assert_eq!(quotas.bytes.load(Ordering::Relaxed), 0);
        let (mut one, mut more) = (quotas.enter(1).unwrap(), quotas.enter(1).unwrap());
        one.hold(120).unwrap();
        assert_eq!(more.hold(1), Err(Refusal::ManyBytes(100)), "what is larger than a share goes alone");
    }
}
