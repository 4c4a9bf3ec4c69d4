//! How many fetches there are at the same time: so many that receive much, and of one host no more than that.
//!
//! A server that says nothing for a moment, or little for a while, gives its slot to others, and needs none until it says more: what
//! little it says takes no memory before all of it came. So servers that hang, or say a little all the time, hold up nobody but those
//! who wait for the same host. Nothing fails by it: how slow a fetch may be its own limit says alone. And whoever needs a slot again
//! waits for it for half a minute at most, because its time runs, and a server that nobody reads from ends the conversation. Once all
//! came there is a slot before objects are made of it, however little it was: a few bytes may become the largest object that is taken.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use super::{FetchError, lock};

/// For so long a server may say nothing before its slot is given to others.
const QUIET: Duration = Duration::from_secs(1);
/// In so long a server is to say more than [`LITTLE`] to keep its slot.
const WHILE: Duration = Duration::from_secs(5);
/// So many bytes of a while need no slot: within the ten minutes that a fetch may take, those of a pack of 8 MB.
const LITTLE: usize = 64 * 1024;
/// So long one conversation waits altogether for slots that it gave up; then it goes on without. Servers that can send nothing for a
/// minute end the conversation.
const PATIENCE: Duration = Duration::from_secs(30);
/// As many times as many conversations may be open as may receive much.
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

/// A conversation with a host. Its slot is there only while the host says much.
pub(super) struct Slot {
    receiving: Arc<Semaphore>,
    now: Mutex<Now>,
    _open: OwnedSemaphorePermit,
    _of_host: OwnedSemaphorePermit,
}

/// How a conversation goes.
struct Now {
    held: Option<OwnedSemaphorePermit>,
    /// When this while began.
    since: Instant,
    /// Bytes that were heard in it.
    heard: usize,
    /// How long it still waits for a slot.
    patience: Duration,
}

impl Slots {
    /// So many receive much at the same time.
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
        let held = Some(acquired(&self.receiving).await?);
        let now = Mutex::new(Now { held, since: Instant::now(), heard: 0, patience: PATIENCE });
        Ok(Arc::new(Slot { receiving: self.receiving.clone(), now, _open: open, _of_host: of_host }))
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
    /// Waits for what a server does, and holds no slot once that takes longer than a moment.
    pub(super) async fn wait<T>(
        &self,
        server: impl Future<Output = Result<T, FetchError>>,
    ) -> Result<T, FetchError> {
        let mut server = std::pin::pin!(server);
        if let Ok(done) = timeout(QUIET, &mut server).await {
            return done;
        }
        self.give_up();
        server.await
    }

    /// So many bytes came. Where they are not few, and others have the slot, nothing more is received before there is one again, or
    /// there is no more patience.
    pub(super) async fn heard(&self, bytes: usize) -> Result<(), FetchError> {
        let Some(patience) = self.patience_for_one(bytes) else { return Ok(()) };
        let began = Instant::now();
        let held = timeout(patience, acquired(&self.receiving)).await.ok().transpose()?;
        let mut now = lock(&self.now);
        now.held = held;
        now.patience = patience.saturating_sub(began.elapsed());
        Ok(())
    }

    /// All came, and objects are made of it next: no server waits for that, so that there is a slot first.
    pub(super) async fn ended(&self) -> Result<(), FetchError> {
        if lock(&self.now).held.is_none() {
            let held = acquired(&self.receiving).await?;
            lock(&self.now).held = Some(held);
        }
        Ok(())
    }

    /// Counts what came, and gives the slot up after a while in which it was little; how long a slot may be waited for where one is
    /// needed.
    fn patience_for_one(&self, bytes: usize) -> Option<Duration> {
        let mut now = lock(&self.now);
        if now.since.elapsed() >= WHILE {
            if now.heard < LITTLE {
                now.held = None;
            }
            (now.since, now.heard) = (Instant::now(), 0);
        }
        now.heard = now.heard.saturating_add(bytes);
        (now.held.is_none() && now.heard >= LITTLE).then_some(now.patience)
    }

    fn give_up(&self) {
        lock(&self.now).held = None;
    }
}

async fn acquired(of: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, FetchError> {
    of.clone().acquire_owned().await.map_err(|_| FetchError::Stopping)
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::poll;
    use tokio::time::{Instant, sleep, timeout};

    use super::{FetchError, LITTLE, PATIENCE, QUIET, Slot, Slots, WHILE};

    /// Hears so many bytes after a moment in which a server does not count as silent.
    async fn hear(slot: &Slot, bytes: usize) {
        let said = async {
            sleep(QUIET / 10 * 9).await;
            Ok::<_, FetchError>(())
        };
        slot.wait(said).await.unwrap();
        slot.heard(bytes).await.unwrap();
    }

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

    #[tokio::test(start_paused = true)]
    async fn one_that_says_a_little_all_the_time_lets_another_host_in_and_goes_on_all_the_same() {
        let slots = Slots::new(1);
        let drips = slots.take("a").await.unwrap();
        let dripping = async {
            loop {
                hear(&drips, 1).await;
            }
        };
        let other = async { timeout(WHILE * 2, slots.take("b")).await.expect("it is let in").unwrap() };
        let other = tokio::select! {
            () = dripping => unreachable!("it never ends"),
            other = other => other,
        };
        let before = Instant::now();
        for _ in 0..100 {
            hear(&drips, 1).await;
        }
        assert!(before.elapsed() < QUIET * 95, "it waits for no slot");
        drop(other);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_says_much_keeps_its_slot() {
        let slots = Slots::new(1);
        let says_much = slots.take("a").await.unwrap();
        let mut other = pin!(slots.take("b"));
        for _ in 0..100 {
            hear(&says_much, LITTLE / 4).await;
            assert!(poll!(&mut other).is_pending());
        }
        drop(says_much);
        other.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_says_much_again_waits_for_a_slot_and_not_for_ever() {
        let slots = Slots::new(1);
        let first = slots.take("a").await.unwrap();
        first.give_up();
        let other = slots.take("b").await.unwrap();
        let mut goes_on = pin!(first.heard(LITTLE));
        assert!(poll!(&mut goes_on).is_pending());
        drop(other);
        goes_on.await.unwrap();
        let mut other = pin!(slots.take("b"));
        assert!(poll!(&mut other).is_pending(), "it has the slot again");
        first.give_up();
        let other = other.await.unwrap();
        let before = Instant::now();
        for _ in 0..10 {
            first.heard(LITTLE).await.unwrap();
        }
        assert!((PATIENCE..PATIENCE * 2).contains(&before.elapsed()));
        // A slot that is free costs no patience.
        drop(other);
        first.heard(LITTLE).await.unwrap();
        let mut next = pin!(slots.take("c"));
        assert!(poll!(&mut next).is_pending());
    }

    #[tokio::test(start_paused = true)]
    async fn what_came_without_a_slot_becomes_objects_with_one_alone_however_little_it_is() {
        let slots = Slots::new(1);
        let drips = slots.take("a").await.unwrap();
        drips.give_up();
        let other = slots.take("b").await.unwrap();
        drips.heard(1).await.unwrap();
        timeout(PATIENCE * 2, drips.ended()).await.unwrap_err();
        drop(other);
        drips.ended().await.unwrap();
        // The one that it has is enough.
        drips.ended().await.unwrap();
        assert!(poll!(pin!(slots.take("c"))).is_pending());
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
