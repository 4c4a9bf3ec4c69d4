//! Whom every call of a client is told.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use pipeline_core::{Call, Meter, Outcome, Sample};

use crate::{HttpError, reason_of_status};

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
    /// One call has ended, with an answer of this status or with none.
    pub(crate) fn record(&self, begun: Instant, ended: Result<u16, &HttpError>) {
        let failed = ended.map_or_else(|error| Some(error.reason()), reason_of_status);
        let outcome = failed.map_or(Outcome::Ok, Outcome::Failed);
        self.meter.record(Sample { call: self.call, outcome, took: begun.elapsed() });
    }
}
