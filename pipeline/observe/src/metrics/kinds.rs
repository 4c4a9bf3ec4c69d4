//! How the watch stands with each kind: only those that are configured come here, so their number is bounded.

use pipeline_core::{Families, KindState};
use prometheus::{IntCounterVec, IntGaugeVec};

/// The series of the watch, by kind.
pub(super) struct KindSeries {
    state: IntGaugeVec,
    objects: IntGaugeVec,
    gaps: IntCounterVec,
}

impl KindSeries {
    pub(super) fn new(make: &Families) -> Self {
        Self {
            state: make.gauges(
                "kind_state",
                "0 the kind is watched, 1 it is not installed and waited for, 2 it cannot be read.",
                ["kind"],
            ),
            objects: make.gauges("kind_objects", "Objects in the last complete list of the kind.", ["kind"]),
            gaps: make.counters(
                "watch_gaps_total",
                "Times that what came and went of the kind was not known any more.",
                ["kind"],
            ),
        }
    }

    /// One kind stands otherwise than before. How many objects there are is known no better while it cannot be read.
    pub(super) fn stands(&self, kind: &str, state: KindState) {
        let shown = self.objects.with_label_values(&[kind]);
        let state = match state {
            KindState::Watched { objects } => {
                shown.set(i64::try_from(objects).unwrap_or(i64::MAX));
                0
            }
            KindState::Absent => {
                shown.set(0);
                1
            }
            KindState::Unreadable => 2,
        };
        self.state.with_label_values(&[kind]).set(state);
        self.gaps.with_label_values(&[kind]);
    }

    /// Nothing is watched any more by this process: how kinds stand is another's to say.
    pub(super) fn ended(&self) {
        self.state.reset();
        self.objects.reset();
    }

    /// The watch of a kind has a gap: what came and went meanwhile is not known.
    pub(super) fn gap(&self, kind: &str) {
        self.gaps.with_label_values(&[kind]).inc();
    }
}
