//! One failure of a request that several reports shared.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use pipeline_core::StageError;

/// The same failure for every report of a batch: each is to be sent again.
pub(crate) fn all(reports: usize, error: StageError) -> Vec<Result<(), StageError>> {
    let (reason, source, after) = match error {
        StageError::Retry { reason, source, after } => (reason, source, after),
        StageError::Reject { reason, source } => (reason, source, None),
    };
    let source: Arc<dyn Error + Send + Sync> = source.into();
    let one = || Err(StageError::Retry { reason, source: Box::new(InBatch(source.clone())), after });
    (0..reports).map(|_| one()).collect()
}

/// A report that shared its request.
#[derive(Debug)]
struct InBatch(Arc<dyn Error + Send + Sync>);

impl fmt::Display for InBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Error for InBatch {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}
