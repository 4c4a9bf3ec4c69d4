//! How many fetches there are at the same time: so many that receive something, and of one host no more than that.
//!
//! A server that says nothing for a moment gives its slot to others until it says something. So servers that hang hold up
//! nobody but those who wait for the same host, and what is received at a time, which is what takes memory, stays bounded.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::FetchError;

/// For so long a server may say nothing before its slot is given to others.
const QUIET: Duration = Duration::from_secs(1);
/// As many times as many conversations may be open as may receive something.
const OPEN: usize = 16;
/// Hosts that are remembered before those that nobody waits for are forgotten.
const MOST_HOSTS: usize = 256;

/// All slots.
pub(super) struct Slots {
    receiving: Arc<Semaphore>,
    open: Arc<Semaphore>,
    each: usize,
    hosts: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// A conversation with a host. Its slot is there only while the host says something.
pub(super) struct Slot {
    receiving: Arc<Semaphore>,
    held: Mutex<Option<OwnedSemaphorePermit>>,
    _open: OwnedSemaphorePermit,
    _of_host: OwnedSemaphorePermit,
}

impl Slots {
    /// So many receive something at the same time.
    pub(super) fn new(receiving: usize) -> Self {
        let each = receiving.max(1);
        Self {
            receiving: Arc::new(Semaphore::new(each)),
            open: Arc::new(Semaphore::new(each.saturating_mul(OPEN))),
            each,
            hosts: Mutex::default(),
        }
    }

    /// Waits for one. Whoever waits for a host that hangs holds none meanwhile.
    pub(super) async fn take(&self, host: &str) -> Result<Arc<Slot>, FetchError> {
        let of_host = acquired(&self.of(host)).await?;
        let open = acquired(&self.open).await?;
        let held = Mutex::new(Some(acquired(&self.receiving).await?));
        Ok(Arc::new(Slot { receiving: self.receiving.clone(), held, _open: open, _of_host: of_host }))
    }

    fn of(&self, host: &str) -> Arc<Semaphore> {
        let mut hosts = lock(&self.hosts);
        if hosts.len() >= MOST_HOSTS {
            hosts.retain(|_, of| Arc::strong_count(of) > 1);
        }
        hosts.entry(host.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(self.each))).clone()
    }
}

impl Slot {
    /// Waits for what a server does, and holds no slot while that takes longer than a moment.
    pub(super) async fn wait<T>(
        &self,
        server: impl Future<Output = Result<T, FetchError>>,
    ) -> Result<T, FetchError> {
        let mut server = std::pin::pin!(server);
        if let Ok(done) = tokio::time::timeout(QUIET, &mut server).await {
            return done;
        }
        self.give_up();
        let done = server.await?;
        // Nothing more is received before there is a slot again.
        let held = acquired(&self.receiving).await?;
        *lock(&self.held) = Some(held);
        Ok(done)
    }

    fn give_up(&self) {
        *lock(&self.held) = None;
    }
}

async fn acquired(of: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, FetchError> {
    of.clone().acquire_owned().await.map_err(|_| FetchError::Stopping)
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::poll;

    use super::Slots;

    #[tokio::test]
    async fn one_that_gave_its_slot_up_lets_another_host_in_and_not_another_of_its_own() {
        let slots = Slots::new(1);
        let hangs = slots.take("a").await.unwrap();
        let mut other = pin!(slots.take("b"));
        assert!(poll!(&mut other).is_pending());
        hangs.give_up();
        let other = other.await.unwrap();
        let mut of_its_own = pin!(slots.take("a"));
        drop(other);
        assert!(poll!(&mut of_its_own).is_pending());
        drop(hangs);
        of_its_own.await.unwrap();
    }

    #[tokio::test]
    async fn however_many_hosts_hang_what_is_open_is_bounded() {
        let slots = Slots::new(1);
        let mut hanging = Vec::new();
        for host in 0..super::OPEN {
            let slot = slots.take(&host.to_string()).await.unwrap();
            slot.give_up();
            hanging.push(slot);
        }
        let mut next = pin!(slots.take("next"));
        assert!(poll!(&mut next).is_pending());
        hanging.pop();
        next.await.unwrap();
    }

    #[tokio::test]
    async fn hosts_that_nobody_waits_for_are_forgotten() {
        let slots = Slots::new(1);
        for host in 0..super::MOST_HOSTS * 2 {
            slots.take(&host.to_string()).await.unwrap();
        }
        assert!(slots.hosts.lock().unwrap().len() <= super::MOST_HOSTS);
    }
}
