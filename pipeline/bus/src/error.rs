//! What may go wrong on a bus.

use crate::{EncodeError, SubjectError};

/// Why something on the bus failed.
#[derive(Debug, thiserror::Error)]
pub enum BusError {
    /// There is no connection at the moment; nothing was sent.
    #[error("the bus is not connected")]
    Away,
    /// The server did not answer in time, or the connection broke: whether it was done is not known.
    #[error("the bus did not answer")]
    NoAnswer,
    /// A stream or durable is not there, or no longer: the server lost its storage, or somebody removed it.
    #[error("the bus has no {what}")]
    Gone {
        /// `stream x` or `durable x`.
        what: String,
    },
    /// A stream has not the end that it had: what was published there may be missing.
    #[error("the bus lost the end of stream {stream}")]
    LostEnd {
        /// Its name.
        stream: String,
    },
    /// The message cannot be written.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The subject cannot be written.
    #[error(transparent)]
    Subject(#[from] SubjectError),
    /// The server refused, or its answer could not be understood.
    #[error("{act} failed")]
    Server {
        /// What was tried.
        act: &'static str,
        /// The client's error; it names subjects at most.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
