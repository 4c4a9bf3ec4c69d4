//! How stages tell the engine what they did toward a peer, without counting themselves.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::Reason;

/// Who is called; a metric label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Peer(&'static str);

impl Peer {
    /// Where events come from, and objects are read: the Kubernetes API server.
    pub const KUBERNETES: Self = Self("kubernetes");
    /// Where reports go.
    pub const PLATFORM: Self = Self("platform");

    /// A peer that a stage declares.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self(name)
    }

    /// The label and log value.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

/// Which call of which peer, as the stage that makes it declares it; a metric label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Call {
    peer: Peer,
    name: &'static str,
}

impl Call {
    /// A call of `peer`.
    #[must_use]
    pub const fn new(peer: Peer, name: &'static str) -> Self {
        Self { peer, name }
    }

    /// Who is called.
    #[must_use]
    pub const fn peer(self) -> Peer {
        self.peer
    }

    /// The label and log value.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.name
    }
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// An answer that could be used, "not found" included where that is an answer.
    Ok,
    /// Answered from a cache; nothing was sent.
    Cached,
    /// It failed.
    Failed(Reason),
}

impl Outcome {
    /// How a call ended that came to this; `reason` says why it failed.
    pub fn of<T, E>(result: &Result<T, E>, reason: impl FnOnce(&E) -> Reason) -> Self {
        result.as_ref().map_or_else(|error| Self::Failed(reason(error)), |_| Self::Ok)
    }
}

/// One call that was made.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// Which call.
    pub call: Call,
    /// How it ended.
    pub outcome: Outcome,
    /// How long it took.
    pub took: Duration,
}

/// How much is asked of a peer at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pressure {
    /// Who is called.
    pub peer: Peer,
    /// Calls that may be under way at once.
    pub limit: usize,
    /// Calls that are.
    pub in_flight: usize,
    /// Calls that wait until fewer are.
    pub waiting: usize,
}

/// What a call had to wait for before it was made; a metric label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Wait {
    /// For another call to end: as many as may be were under way.
    Slot,
    /// For the budget of calls in a second.
    Budget,
}

impl Wait {
    /// All, for metrics that start at zero.
    pub const ALL: [Self; 2] = [Self::Slot, Self::Budget];

    /// The label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Takes samples; the engine's metrics implement it.
pub trait Meter: Send + Sync {
    /// Takes one sample. Never blocks.
    fn record(&self, sample: Sample);

    /// Takes how much is asked of a peer from now on. Never blocks.
    fn pressure(&self, _pressure: Pressure) {}

    /// Takes that a call had to wait. Never blocks.
    fn waited(&self, _peer: Peer, _wait: Wait, _took: Duration) {}
}

/// The calls that were made for one event; cloning shares. The first 64 are kept.
#[derive(Debug, Clone, Default)]
pub struct Samples {
    samples: Arc<Mutex<Vec<(Instant, Sample)>>>,
}

/// An attempt that made more calls than this is told by the first of them.
const SAMPLES: usize = 64;

impl Samples {
    /// The samples taken so far, which are forgotten.
    #[must_use]
    pub fn take(&self) -> Vec<Sample> {
        self.take_ended().into_iter().map(|(_, sample)| sample).collect()
    }

    /// As [`Samples::take`], each with when it was taken: when its call ended.
    #[must_use]
    pub fn take_ended(&self) -> Vec<(Instant, Sample)> {
        std::mem::take(&mut *self.samples.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Meter for Samples {
    fn record(&self, sample: Sample) {
        let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        if samples.len() < SAMPLES {
            samples.push((Instant::now(), sample));
        }
    }
}

/// Forgets every sample; for tools and tests that look at results alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoMeter;

impl Meter for NoMeter {
    fn record(&self, _: Sample) {}
}
