//! Where the sequence of all that is kept ends, for whoever waits for more: it is looked at once for all of them.
//!
//! takes: a store - gives: the newest place, each time that it moves - calls: the database, four times a second: the ends of two
//! indexes - fails: a store that does not answer is asked again; whoever writes has told why

use std::time::Duration;

use pipeline_core::Shutdown;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};

use crate::store::Store;

/// So often it is asked whether anything is new.
const POLL: Duration = Duration::from_millis(250);
/// What is kept within this time is told at once.
const TOGETHER: Duration = Duration::from_millis(250);

/// Where the sequence of all that is kept ends; cloning shares.
#[derive(Debug, Clone)]
pub struct Sequence {
    store: Store,
    newest: watch::Sender<u64>,
}

/// What came of waiting for more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// There is more.
    More,
    /// Nothing was kept until then.
    Nothing,
    /// Nobody looks any more: the process ends.
    Ended,
}

impl Sequence {
    /// Of a store. It stands still until it is [followed](Self::follow).
    #[must_use]
    pub fn new(store: Store) -> Self {
        Self { store, newest: watch::Sender::new(0) }
    }

    /// The newest place, as it was last looked at.
    #[must_use]
    pub fn newest(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    /// Looks where it ends, until `stop`.
    pub async fn follow(&self, stop: Shutdown) {
        loop {
            if let Ok(place) = self.store.sequence().await {
                let place = u64::try_from(place).unwrap_or_default();
                self.newest.send_if_modified(|known| std::mem::replace(known, place) != place);
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = sleep(POLL) => {}
            }
        }
    }
}

impl Waited {
    /// Waits until there is something behind a place, or for so long; what comes together is waited for.
    pub async fn behind(newest: &mut watch::Receiver<u64>, after: u64, until: Instant) -> Self {
        if *newest.borrow_and_update() > after {
            return Self::More;
        }
        let more = async { newest.wait_for(|newest| *newest > after).await.map(drop) };
        match timeout_at(until, more).await {
            Ok(Ok(())) => {
                sleep(TOGETHER).await;
                Self::More
            }
            Ok(Err(_)) => Self::Ended,
            Err(_) => Self::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn whoever_is_ahead_of_what_was_last_looked_at_waits_too() {
        let sender = watch::Sender::new(5);
        let mut newest = sender.subscribe();
        let soon = || Instant::now() + Duration::from_secs(5);
        assert_eq!(Waited::behind(&mut newest, 4, soon()).await, Waited::More);
        for after in [5, 7] {
            let began = Instant::now();
            assert_eq!(Waited::behind(&mut newest, after, soon()).await, Waited::Nothing);
            assert!(began.elapsed() >= Duration::from_secs(5), "{after}");
        }
        let until = soon();
        let (waited, ()) = tokio::join!(Waited::behind(&mut newest, 5, until), async {
            sender.send_replace(6);
        });
        assert_eq!(waited, Waited::More);
        drop(sender);
        assert_eq!(Waited::behind(&mut newest, 6, soon()).await, Waited::Ended);
    }
}
