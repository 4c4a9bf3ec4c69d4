//! The way from shards to whoever exports: bounded, and never waited for.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::mpsc;

use super::SpanBatch;

/// Where shards hand their spans over; clones share the room.
#[derive(Clone)]
pub struct Tap {
    out: mpsc::UnboundedSender<SpanBatch>,
    held: Arc<AtomicUsize>,
    most: usize,
    /// The lowest 56 bits of a trace id that is exported are below this.
    below: u64,
    lost: Arc<dyn Fn(usize) + Send + Sync>,
}

/// Where the exporter takes the spans that were handed over.
#[derive(Debug)]
pub struct Taps {
    told: mpsc::UnboundedReceiver<SpanBatch>,
    held: Arc<AtomicUsize>,
}

/// How many of a trace id's lowest bits decide whether it is exported: what the W3C calls its random part.
const RANDOM_BITS: u32 = 56;

/// Makes room for `most` spans, of a share of `ratio` (0 to 1) of all events; the trace ids decide of which. `lost` is
/// called with the number of spans that found no room.
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

    /// Counts spans that could not be kept until their event ended.
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
    /// Waits for the next batch; `None` when every [`Tap`] is gone.
    pub async fn next(&mut self) -> Option<SpanBatch> {
        let told = self.told.recv().await?;
        Some(self.taken(told))
    }

    /// The next batch, if one waits.
    pub fn try_next(&mut self) -> Option<SpanBatch> {
        let told = self.told.try_recv().ok()?;
        Some(self.taken(told))
    }

    /// How many spans wait to be taken.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    fn taken(&self, told: SpanBatch) -> SpanBatch {
        self.held.fetch_sub(told.len(), Ordering::Relaxed);
        told
    }
}
