//! Makes room for newer reports, where those who read them do not keep up.

use super::{BusError, JetStream, ensure};
use crate::REPORTS;

/// Of what the stream holds, the part that goes at once: one in so many.
const PART: u64 = 16;

impl JetStream {
    /// Takes the oldest sixteenth of the reports away, whoever has not read them yet; returns how many these were.
    /// `None`, where there are none.
    ///
    /// # Errors
    /// [`BusError`], when the server is away or refuses.
    pub async fn discard_reports(&self) -> Result<Option<u64>, BusError> {
        self.connected()?;
        let name = self.inner.prefix.stream_of(REPORTS);
        let stream = ensure::get(&self.inner.context, &name).await?;
        let stream = stream.ok_or_else(|| BusError::Gone { what: format!("stream {name}") })?;
        let state = &stream.cached_info().state;
        if state.messages == 0 {
            return Ok(None);
        }
        let (first, last) = (state.first_sequence, state.last_sequence);
        let keep = first + last.saturating_sub(first) / PART + 1;
        let purged = stream.purge().sequence(keep).await;
        let purged =
            purged.map_err(|error| BusError::server("discarding reports of the bus")(error.into()))?;
        Ok(Some(purged.purged))
    }
}
