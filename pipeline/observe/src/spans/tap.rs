//! The way from shards to whoever exports: bounded, and never waited for.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::mpsc;

use super::SpanBatch;

/// Takes what shards tell; cloning shares.
#[derive(Clone)]
pub struct Tap {
    out: mpsc::UnboundedSender<SpanBatch>,
    held: Arc<AtomicUsize>,
    most: usize,
    /// The lowest 56 bits of a trace id that is exported are below this.
    below: u64,
    lost: Arc<dyn Fn(usize) + Send + Sync>,
}

/// Gives what was told.
#[derive(Debug)]
pub struct Taps {
    told: mpsc::UnboundedReceiver<SpanBatch>,
    held: Arc<AtomicUsize>,
}

/// Bits of a trace id that decide; what the W3C calls its random part.
const RANDOM_BITS: u32 = 56;

/// Room for `most` spans, of a share of `ratio` (0 to 1) of all events; which, their trace ids decide. `lost` is told
/// how many spans found no room.
#[must_use]
pub fn taps(most: usize, ratio: f64, lost: impl Fn(usize) + Send + Sync + 'static) -> (Tap, Taps) {
    let (out, told) = mpsc::unbounded_channel();
    let held = Arc::new(AtomicUsize::new(0));
    let all = 1_u64 << RANDOM_BITS;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "between 0 and 2^56, both of which a double holds"
    )]
    let below = (ratio.clamp(0.0, 1.0) * all as f64) as u64;
    let tap = Tap { out, held: held.clone(), most, below, lost: Arc::new(lost) };
    (tap, Taps { told, held })
}

impl Tap {
    /// Whether events of this trace are exported: the same in every process.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "the lowest bits are asked for")]
    pub fn samples(&self, trace: u128) -> bool {
        trace != 0 && (trace as u64) & ((1 << RANDOM_BITS) - 1) < self.below
    }

    /// Hands spans over, if there is room for them.
    pub fn tell(&self, told: SpanBatch) {
        let more = told.len();
        if more == 0 {
            return;
        }
        let room = |held: usize| held.checked_add(more).filter(|sum| *sum <= self.most);
        // The bound is on spans and not on messages, of which one may hold hundreds: hence not the channel's own.
        if self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).is_err() {
            (self.lost)(more);
        } else if self.out.send(told).is_err() {
            self.held.fetch_sub(more, Ordering::Relaxed);
            (self.lost)(more);
        }
    }

    /// Spans that could not be kept until their event's end.
    pub fn lose(&self, spans: usize) {
        (self.lost)(spans);
    }
}

impl std::fmt::Debug for Tap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tap").field("held", &self.held).field("most", &self.most).finish_non_exhaustive()
    }
}

impl Taps {
    /// What was told next; `None` when nobody can tell anything any more.
    pub async fn next(&mut self) -> Option<SpanBatch> {
        let told = self.told.recv().await?;
        Some(self.taken(told))
    }

    /// What was told next, if it was.
    pub fn try_next(&mut self) -> Option<SpanBatch> {
        let told = self.told.try_recv().ok()?;
        Some(self.taken(told))
    }

    /// Spans that wait.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    fn taken(&self, told: SpanBatch) -> SpanBatch {
        self.held.fetch_sub(told.len(), Ordering::Relaxed);
        told
    }
}
