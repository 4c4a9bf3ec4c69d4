//! What kind of run it is, drawn from its seed.

use std::num::NonZeroU32;
use std::time::Duration;

use fastrand::Rng;

use crate::circuit;
use crate::lane;
use crate::limit::RateLimit;
use pipeline_core::Backoff;

/// A way to be broken on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mutant {
    /// In the lane.
    Lane(lane::Mutant),
    /// The ledger moves when a report is sent, not when it is acknowledged.
    MarksBeforeAck,
    /// A process takes everything for sure that the ledger holds.
    ForgetsDoubt,
}

/// What of a run is not drawn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting {
    /// Bytes that a record may have in the ledger.
    pub(super) room: usize,
    /// The watch of each process goes on where the one before it ended.
    pub(super) goes_on: bool,
    /// Each object may have two events in twenty seconds.
    pub(super) is_limited: bool,
}

/// What kind of run it is.
#[derive(Debug, Clone)]
pub(super) struct Knobs {
    pub(super) mutant: Option<Mutant>,
    pub(super) apps: usize,
    pub(super) shards: usize,
    pub(super) steps: usize,
    pub(super) lane: lane::Config,
    pub(super) circuit: circuit::Config,
    pub(super) journal_every: Duration,
    /// Reports of one object that may be on their way at a time.
    pub(super) reports: usize,
    pub(super) fetches_fail: u8,
    pub(super) sends_fail: u8,
    pub(super) poison: Option<u64>,
    /// How often the process ends, in ten thousand steps.
    pub(super) ends: u32,
    /// Bytes that a record may have in the ledger.
    pub(super) room: usize,
    /// The watch of each process goes on where the one before it ended.
    pub(super) goes_on: bool,
    /// How likely each kind of step is, in the order of [`Simulation::step`].
    pub(super) weights: [u32; 8],
}

impl Knobs {
    pub(super) fn draw(rng: &mut Rng, mutant: Option<Mutant>, setting: Setting) -> Self {
        let Setting { room, goes_on, is_limited } = setting;
        let seconds = Duration::from_secs;
        let limit =
            RateLimit { events: NonZeroU32::MIN.saturating_add(1), window: seconds(20), learning: false };
        let backoff = Backoff { min: seconds(1), max: seconds(rng.u64(2..300)) };
        let often = |rng: &mut Rng| if rng.bool() { 0 } else { rng.u8(1..40) };
        Self {
            mutant,
            apps: rng.usize(1..5),
            shards: rng.usize(1..3),
            steps: rng.usize(60..400),
            lane: lane::Config {
                queue_events: rng.usize(1..20),
                queue_events_per_key: rng.usize(1..12),
                queue_bytes: if rng.bool() { rng.u64(200..2_000) } else { 1 << 20 },
                summary_bytes: if rng.u8(..8) == 0 { rng.u64(200..1_000) } else { 1 << 20 },
                concurrency: rng.u64(1..5),
                reads: rng.u64(1..4),
                backoff,
                parked: 100,
                rate_limit: is_limited.then_some(limit),
                kind_limits: &[],
                refetch: Backoff { min: seconds(60), max: seconds(rng.u64(60..4_000)) },
                refetch_every: Duration::from_millis(rng.u64(1..5_000)),
            },
            circuit: circuit::Config { failures: rng.usize(1..6), backoff, ..circuit::Config::default() },
            journal_every: Duration::from_millis(rng.u64(..2_000)),
            reports: rng.usize(1..4),
            fetches_fail: often(rng),
            sends_fail: often(rng),
            poison: (rng.u8(..4) == 0).then(|| rng.u64(4..30)),
            ends: if rng.u8(..3) == 0 { 0 } else { rng.u32(1..200) },
            room,
            goes_on,
            weights: std::array::from_fn(|at| rng.u32(1..[30, 40, 60, 20, 10, 10, 10, 8][at])),
        }
    }
}
