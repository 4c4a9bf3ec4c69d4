//! What is read again with every change, and need be no newer than a minute: kept for whoever has the same view.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use stages_platform_store::View;

/// Milliseconds that a value is remembered for.
const REMEMBERED_FOR: i64 = 60_000;
/// Views of which one is remembered.
const VIEWS: usize = 64;

/// Values by view, with when each was read; cloning shares.
#[derive(Debug)]
pub(super) struct Remembered<T>(Arc<Mutex<Vec<(View, Timestamp, T)>>>);

impl<T> Clone for Remembered<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Default for Remembered<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

fn is_fresh(at: Timestamp, now: Timestamp) -> bool {
    (0..REMEMBERED_FOR).contains(&(now.as_millisecond() - at.as_millisecond()))
}

impl<T: Clone> Remembered<T> {
    pub(super) fn get(&self, view: &View, now: Timestamp) -> Option<T> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.iter().find(|(of, at, _)| of == view && is_fresh(*at, now));
        found.map(|(.., value)| value.clone())
    }

    pub(super) fn keep(&self, view: &View, now: Timestamp, value: T) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(of, at, _)| of != view && is_fresh(*at, now));
        if known.len() < VIEWS {
            known.push((view.clone(), now, value));
        }
    }
}
