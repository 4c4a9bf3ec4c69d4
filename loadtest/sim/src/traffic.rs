//! What a simulator saw of its traffic: the last requests, and how many stood open at once.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use axum::http::Uri;

/// Requests as they come and go; cheap unless they are kept.
#[derive(Debug, Default)]
pub struct Traffic {
    size: AtomicUsize,
    kept: Mutex<VecDeque<String>>,
    open: AtomicUsize,
    peak: AtomicUsize,
}

impl Traffic {
    /// Keeps path and query of the last so many requests; 0 keeps none.
    pub fn keep(&self, size: usize) {
        self.size.store(size, Ordering::Relaxed);
    }

    /// Path and query of the kept requests, oldest first.
    #[must_use]
    pub fn kept(&self) -> Vec<String> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// The most requests that stood open at once, watches apart.
    #[must_use]
    pub fn peak(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }

    /// Notes a request; it stands open until what this gives is dropped.
    pub(crate) fn enter(&self, uri: &Uri) -> Open<'_> {
        let size = self.size.load(Ordering::Relaxed);
        if size > 0 {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.push_back(uri.to_string());
            while kept.len() > size {
                kept.pop_front();
            }
        }
        let open = self.open.fetch_add(1, Ordering::Relaxed) + 1;
        self.peak.fetch_max(open, Ordering::Relaxed);
        Open { traffic: self }
    }
}

/// A request that stands open.
pub(crate) struct Open<'a> {
    traffic: &'a Traffic,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.traffic.open.fetch_sub(1, Ordering::Relaxed);
    }
}
