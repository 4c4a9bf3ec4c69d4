//! Locks that a panic of whoever held one does not close.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a lock holds.
pub(crate) fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
