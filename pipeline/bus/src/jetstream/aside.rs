//! Keeps aside what cannot be read, so that it can be looked at, and is in nobody's way.

use std::time::Duration;

use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{self, DiscardPolicy, RetentionPolicy, StorageType};
use bytes::Bytes;

use super::{BusError, JetStream};

/// Bytes of what is kept aside; beyond them the oldest goes.
const MAX_BYTES: i64 = 64 << 20;
/// It goes after this long.
const MAX_AGE: Duration = Duration::from_secs(7 * 24 * 3600);

impl JetStream {
    /// The name of the stream that keeps aside what cannot be read.
    #[must_use]
    pub fn aside(&self) -> String {
        format!("{}_parked", self.inner.prefix.stream())
    }

    /// Keeps the bytes of the message with that sequence aside, once, however often it is asked to: 64 MiB at most and for a
    /// week. Makes the stream for it, `<stream>_parked`, when it is needed for the first time.
    ///
    /// # Errors
    /// [`BusError`], when the server is away or refuses: the message is to stay where it is.
    pub async fn set_aside(&self, sequence: u64, bytes: Bytes) -> Result<(), BusError> {
        self.connected()?;
        let (context, name) = (&self.inner.context, self.aside());
        let config = stream::Config {
            name: name.clone(),
            subjects: vec![format!("{name}.>")],
            retention: RetentionPolicy::Limits,
            discard: DiscardPolicy::Old,
            max_bytes: MAX_BYTES,
            max_age: MAX_AGE,
            num_replicas: self.inner.config.replicas,
            storage: StorageType::File,
            duplicate_window: self.inner.config.duplicate_window,
            ..stream::Config::default()
        };
        let failed = |error: async_nats::Error| BusError::server("keeping a message aside")(error);
        context.get_or_create_stream(config).await.map_err(|error| failed(error.into()))?;
        let message = PublishMessage::build().payload(bytes).message_id(sequence.to_string());
        let sent = context.send_publish(format!("{name}.{sequence}"), message).await;
        let sent = sent.map_err(|error| failed(error.into()))?;
        sent.await.map(drop).map_err(|error| failed(error.into()))
    }
}
