//! What stands on the bus, as data.

use futures::TryStreamExt as _;

use super::{BusError, JetStream, ensure};
use crate::REPORTS;

/// What [`JetStream::show`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Show {
    /// The server's version.
    pub server: String,
    /// Bytes of one message that it takes, headers included.
    pub max_payload: usize,
    /// The stream of events; `None` when it is absent.
    pub stream: Option<StreamShow>,
    /// The stream of reports, likewise.
    pub reports: Option<StreamShow>,
    /// All durables of both, of other groups too, by name.
    pub durables: Vec<DurableShow>,
}

/// The stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamShow {
    /// Its name.
    pub name: String,
    /// Messages in it.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The bytes it may hold.
    pub max_bytes: u64,
    /// Sequence of the oldest message.
    pub first: u64,
    /// Sequence of the newest message that ever was.
    pub last: u64,
}

/// One durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DurableShow {
    /// Its name.
    pub name: String,
    /// What it matches.
    pub filter: String,
    /// Messages that it has not been given yet.
    pub pending: u64,
    /// Messages that it was given and has not acknowledged.
    pub in_flight: u64,
    /// Those of them that it was given more than once.
    pub redelivered: u64,
    /// Requests of consumers that wait for messages: 0 is nobody consumes.
    pub waiting: u64,
}

impl JetStream {
    /// What stands there of what `source` publishes, and of reports.
    ///
    /// # Errors
    /// [`BusError`], when the server is away or refuses.
    pub async fn show(&self, source: &str) -> Result<Show, BusError> {
        self.connected()?;
        let server = self.inner.client.server_info();
        let mut show = Show {
            server: server.version,
            max_payload: server.max_payload,
            stream: None,
            reports: None,
            durables: Vec::new(),
        };
        let prefix = &self.inner.prefix;
        show.stream = self.show_stream(prefix.stream_of(source), &mut show.durables).await?;
        show.reports = self.show_stream(prefix.stream_of(REPORTS), &mut show.durables).await?;
        show.durables.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(show)
    }

    /// What stands there of one stream, and to `durables` those of it.
    pub(super) async fn show_stream(
        &self,
        name: String,
        durables: &mut Vec<DurableShow>,
    ) -> Result<Option<StreamShow>, BusError> {
        let Some(stream) = ensure::get(&self.inner.context, &name).await? else { return Ok(None) };
        let all: Vec<_> = stream
            .consumers()
            .try_collect()
            .await
            .map_err(|error| BusError::server("asking for the durables of the bus")(error.into()))?;
        durables.extend(all.into_iter().map(|info| DurableShow {
            filter: match info.config.filter_subjects.as_slice() {
                [] => info.config.filter_subject,
                many => many.join(", "),
            },
            name: info.name,
            pending: info.num_pending,
            in_flight: info.num_ack_pending as u64,
            redelivered: info.num_redelivered as u64,
            waiting: info.num_waiting as u64,
        }));
        let info = stream.cached_info();
        Ok(Some(StreamShow {
            name,
            messages: info.state.messages,
            bytes: info.state.bytes,
            max_bytes: u64::try_from(info.config.max_bytes).unwrap_or(u64::MAX),
            first: info.state.first_sequence,
            last: info.state.last_sequence,
        }))
    }
}
