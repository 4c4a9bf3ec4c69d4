//! Places for sockets at which nobody has said yet who they are: few, and whoever comes gets one. Where all are taken it is that of
//! the stranger who has waited longest, so that those who say nothing keep nobody out who says at once who they are.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pipeline_core::Shutdown;

/// The most sockets that nobody has introduced themselves at.
pub(crate) const STRANGERS: usize = 32;

/// All who have not said yet who they are. Cloning shares.
#[derive(Debug, Clone, Default)]
pub(crate) struct Strangers {
    waiting: Arc<Mutex<WaitingStrangers>>,
}

#[derive(Debug, Default)]
struct WaitingStrangers {
    /// How many have come so far.
    came: u64,
    /// Those who wait, by their numbers, the longest first; each with what tells them to leave.
    strangers: VecDeque<(u64, Shutdown)>,
}

/// Somebody who has not said yet who they are. Their place is free once this is dropped.
#[derive(Debug)]
pub(crate) struct Stranger {
    number: u64,
    leaves: Shutdown,
    all: Strangers,
}

impl Strangers {
    /// Takes somebody in.
    pub(crate) fn enter(&self) -> Stranger {
        let mut waiting = self.waiting();
        while waiting.strangers.len() >= STRANGERS {
            let Some((_, leaves)) = waiting.strangers.pop_front() else { break };
            leaves.cancel();
        }
        waiting.came += 1;
        let (number, leaves) = (waiting.came, Shutdown::new());
        waiting.strangers.push_back((number, leaves.clone()));
        Stranger { number, leaves, all: self.clone() }
    }

    fn waiting(&self) -> MutexGuard<'_, WaitingStrangers> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stranger {
    /// Waits until somebody else has got their place.
    pub(crate) async fn displaced(&self) {
        self.leaves.cancelled().await;
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.all.waiting().strangers.retain(|(number, _)| *number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_comes_gets_the_place_of_the_one_who_has_waited_longest_where_none_is_free() {
        let all = Strangers::default();
        let mut there: Vec<Stranger> = (0..STRANGERS).map(|_| all.enter()).collect();
        assert!(there.iter().all(|stranger| !stranger.leaves.is_cancelled()));
        // One who leaves gives their place to whoever comes next.
        drop(there.remove(3));
        there.push(all.enter());
        assert!(there.iter().all(|stranger| !stranger.leaves.is_cancelled()));
        there.push(all.enter());
        there.push(all.enter());
        let displaced: Vec<bool> = there.iter().map(|stranger| stranger.leaves.is_cancelled()).collect();
        assert!(displaced.iter().take(2).all(|left| *left) && !displaced.iter().skip(2).any(|left| *left));
        drop(there);
        assert!(all.waiting().strangers.is_empty());
    }
}
