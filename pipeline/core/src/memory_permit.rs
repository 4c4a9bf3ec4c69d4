//! What an attempt takes up of something bounded, and gives back when it ends.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Holds what the enrichment took for an event until its reports are told or given up. Cloning shares; what is held
/// goes with the last clone.
#[derive(Clone, Default)]
pub struct MemoryPermit(Arc<Mutex<Option<Box<dyn Send>>>>);

impl MemoryPermit {
    /// Holds `what`, instead of what was held before.
    pub fn hold(&self, what: impl Send + 'static) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(what));
    }
}

impl fmt::Debug for MemoryPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryPermit").finish_non_exhaustive()
    }
}
