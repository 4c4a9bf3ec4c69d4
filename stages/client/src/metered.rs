//! Whom every call of a client is told.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use pipeline_core::{Call, Meter, Outcome, Reason, Sample};

/// Tells a meter of calls.
#[derive(Clone)]
pub(crate) struct Metered {
    pub(crate) call: Call,
    pub(crate) meter: Arc<dyn Meter>,
}

impl fmt::Debug for Metered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metered").field("call", &self.call).finish_non_exhaustive()
    }
}

impl Metered {
    /// One call has ended; `failed` says why it did not succeed.
    pub(crate) fn record(&self, begun: Instant, failed: Option<Reason>) {
        let outcome = failed.map_or(Outcome::Ok, Outcome::Failed);
        self.meter.record(Sample { call: self.call, outcome, took: begun.elapsed() });
    }
}
