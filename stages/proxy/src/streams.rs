//! Places for streams of logs: so many may be open at a time.

use std::sync::Arc;

use stages_client::GaugeGuard;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::ActError;
use crate::series::ProxySeries;

/// The places for streams.
#[derive(Debug)]
pub(crate) struct Streams {
    places: Arc<Semaphore>,
    series: ProxySeries,
}

/// The place of one stream, which is free again once this is dropped.
#[derive(Debug)]
pub(crate) struct StreamPlace {
    _permit: OwnedSemaphorePermit,
    _counted: GaugeGuard,
}

impl Streams {
    pub(crate) fn new(limit: usize, series: ProxySeries) -> Self {
        let limit = limit.min(Semaphore::MAX_PERMITS);
        series.streams_limit(limit);
        Self { places: Arc::new(Semaphore::new(limit)), series }
    }

    /// Takes a place for one more stream.
    ///
    /// # Errors
    /// If all places are taken.
    pub(crate) fn place(&self) -> Result<StreamPlace, ActError> {
        let permit = self.places.clone().try_acquire_owned().map_err(|_| {
            self.series.stream_refused();
            ActError::Busy("too many logs are followed: end one, or try again later")
        })?;
        Ok(StreamPlace { _permit: permit, _counted: self.series.stream() })
    }
}
