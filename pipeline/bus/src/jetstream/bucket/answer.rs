//! Waits for what the server says, and says what it means.

use std::error::Error as _;
use std::time::Duration;

use async_nats::jetstream::context::{
    PublishAckFuture, PublishError, PublishErrorKind, RequestError, RequestErrorKind,
};
use async_nats::jetstream::{self, ErrorCode};

use super::{Bucket, PutError, READING, WRITING};
use crate::BusError;

/// How often somebody who waits for an answer looks whether there still is a connection.
const LOOK: Duration = Duration::from_millis(100);

/// A write on its way; dropped, it is still made, and nobody learns what became of it.
#[must_use = "only the answer says whether it was written"]
pub struct Writing {
    pub(super) answer: PublishAckFuture,
    pub(super) bucket: Bucket,
    pub(super) connection: Option<u64>,
}

impl Writing {
    /// The sequence that the write got.
    ///
    /// # Errors
    /// [`PutError`]; [`BusError::Gone`] also of a server that just started and has not read the bucket yet.
    pub async fn answer(self) -> Result<u64, PutError> {
        let Self { answer, bucket, connection } = self;
        let answer = bucket.while_connected(connection, answer.into_future()).await?;
        answer.map(|ack| ack.sequence).map_err(|error| match error.kind() {
            PublishErrorKind::TimedOut | PublishErrorKind::BrokenPipe => BusError::NoAnswer.into(),
            PublishErrorKind::StreamNotFound => bucket.gone().into(),
            PublishErrorKind::WrongLastSequence => PutError::Conflict,
            _ if is_conflict(&error) => PutError::Conflict,
            _ => BusError::server(WRITING)(error.into()).into(),
        })
    }
}

impl Bucket {
    /// Waits for an answer, as long as there is a connection; to be boxed, as the client's questions are large.
    pub(super) async fn asked<T>(&self, answer: impl Future<Output = T> + Unpin) -> Result<T, BusError> {
        let connection = self.connection().ok_or(BusError::Away)?;
        self.while_connected(Some(connection), answer).await
    }

    /// Waits for an answer to what was sent over a connection: over the next it does not come.
    async fn while_connected<T>(
        &self,
        connection: Option<u64>,
        mut answer: impl Future<Output = T> + Unpin,
    ) -> Result<T, BusError> {
        loop {
            match tokio::time::timeout(LOOK, &mut answer).await {
                Ok(answer) => return Ok(answer),
                Err(_) if self.connection() != connection => return Err(BusError::NoAnswer),
                Err(_) => {}
            }
        }
    }

    pub(super) fn gone(&self) -> BusError {
        BusError::Gone { what: format!("stream {}", self.inner.stream) }
    }

    /// What an error that the server told means.
    pub(super) fn refused(&self, told: &jetstream::Error, error: async_nats::Error) -> BusError {
        match told.error_code() {
            ErrorCode::STREAM_NOT_FOUND => self.gone(),
            _ => BusError::server(READING)(error),
        }
    }

    /// What it means that the server told nothing.
    pub(super) fn unanswered(&self, error: async_nats::Error) -> BusError {
        let kind = error.source().and_then(|source| source.downcast_ref::<RequestError>());
        match kind.map(RequestError::kind) {
            Some(RequestErrorKind::TimedOut) => BusError::NoAnswer,
            _ => BusError::server(READING)(error),
        }
    }
}

/// In a cluster two writes that are on their way at once meet under a number of its own.
fn is_conflict(error: &PublishError) -> bool {
    let told = error.source().and_then(|source| source.downcast_ref::<jetstream::Error>());
    told.is_some_and(|told| told.error_code() == ErrorCode::STREAM_WRONG_LAST_SEQUENCE_CONSTANT)
}
