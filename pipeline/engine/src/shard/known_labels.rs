//! Labels of a closed set, a byte each.

use std::sync::{PoisonError, RwLock};

/// Labels that were met, each once, for what holds thousands of them. Stages declare a few dozens, so that a byte is
/// enough; should there be more, all others are the last.
pub(super) struct KnownLabels<T> {
    labels: RwLock<Vec<T>>,
}

impl<T: Copy + PartialEq> KnownLabels<T> {
    pub(super) const fn new() -> Self {
        Self { labels: RwLock::new(Vec::new()) }
    }

    /// The place of a label, which keeps it.
    pub(super) fn place(&self, label: T) -> u8 {
        let find = |labels: &[T]| labels.iter().position(|known| *known == label);
        let known = find(&self.labels.read().unwrap_or_else(PoisonError::into_inner));
        let place = known.unwrap_or_else(|| {
            let mut labels = self.labels.write().unwrap_or_else(PoisonError::into_inner);
            find(&labels).unwrap_or_else(|| {
                if labels.len() <= usize::from(u8::MAX) {
                    labels.push(label);
                }
                labels.len() - 1
            })
        });
        u8::try_from(place).unwrap_or(u8::MAX)
    }

    /// The label of a place that [`KnownLabels::place`] gave.
    pub(super) fn label(&self, place: u8) -> Option<T> {
        self.labels.read().unwrap_or_else(PoisonError::into_inner).get(usize::from(place)).copied()
    }
}
