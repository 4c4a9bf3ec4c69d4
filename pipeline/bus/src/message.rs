//! One message of the bus, independent of what carries it.
//!
//! On the wire it is a MessagePack map with names: `format` (2), `kind`, `namespace`, `name`, `uid`, `version`,
//! `observed` (Unix milliseconds), `trace`, and where there is one `fact`, `coalesced` (each an `id` and a `body`), `entity`, `report`, `content`
//! and `body` (bytes). A reader of format 2 ignores fields it does not know, so that fields may be added; whatever
//! changes the meaning of a field takes the next number, and is refused as [`DecodeError::Newer`] by older readers.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use pipeline_core::{
    Cause, Change, Digest, EntityId, Event, Fact, Key, ObjectLabels, Report, Timestamp, Uid, Version,
};

pub use super::wire::decode;

/// The format that is written, and the newest that is read.
pub(super) const FORMAT: u64 = 2;

/// Facts in one message: a lane keeps as many of a key, so more are no honest message.
pub(super) const MAX_FACTS: usize = 64;

/// Bytes of one name (namespace, object, uid) in a message. Kubernetes allows 253.
pub(super) const MAX_NAME: usize = 512;

/// What a message is; a metric label and a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A state of an object.
    Change,
    /// An object is gone.
    Deleted,
    /// A report that was made of an object.
    Result,
    /// Any of them, without its body, which was larger than the server takes: to be read again.
    Overlarge,
}

impl Kind {
    /// All kinds, for metrics that start at zero.
    pub const ALL: [Self; 4] = [Self::Change, Self::Deleted, Self::Result, Self::Overlarge];

    /// The label, header and wire value.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Change => "change",
            Self::Deleted => "deleted",
            Self::Result => "result",
            Self::Overlarge => "overlarge",
        }
    }
}

/// What a report is about, as far as a reader of the bus must know without its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// Which entity.
    pub entity: EntityId,
    /// The report's kind.
    pub report: Arc<str>,
    /// The report's content digest.
    pub content: Digest,
}

/// What a message carries.
#[derive(Clone, PartialEq, Eq)]
pub enum Payload {
    /// The object is there, as in `body`: the JSON text as the API server sent it.
    Change {
        /// The object's JSON.
        body: Bytes,
    },
    /// The object is gone.
    Deleted {
        /// Its last state, if it is known and the server takes as much.
        body: Option<Bytes>,
    },
    /// A report.
    Result {
        /// What it is about.
        about: About,
        /// Its JSON.
        body: Bytes,
    },
    /// A change, or a report, whose body is more than the server takes. Whoever consumes it reads the object
    /// again, not older than [`Message::version`].
    Overlarge {
        /// What the report was about; `None` for a change.
        about: Option<About>,
    },
}

/// Without the bodies: what is printed may end in a log.
impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Change { body } => write!(f, "Change({} bytes)", body.len()),
            Self::Deleted { body } => write!(f, "Deleted({:?} bytes)", body.as_ref().map(Bytes::len)),
            Self::Result { about, body } => write!(f, "Result({about:?}, {} bytes)", body.len()),
            Self::Overlarge { about } => write!(f, "Overlarge({about:?})"),
        }
    }
}

/// One change of an object, or one report of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Whose.
    pub key: Key,
    /// Which life of it.
    pub uid: Uid,
    /// Which state of it.
    pub version: Version,
    /// When the runtime saw it; milliseconds travel.
    pub observed: Timestamp,
    /// W3C trace id of the event's life; 0 is none.
    pub trace: u128,
    /// The fact that this state shows, if it shows one.
    pub fact: Option<Fact>,
    /// Facts of states that were coalesced into this one, oldest first; 64 at most.
    pub coalesced: Vec<Fact>,
    /// What its text says of labels; it does not travel.
    pub labels: ObjectLabels,
    /// See [`Event::again`]; it does not travel: only where one process works alone its watch goes on.
    pub again: bool,
    /// What it carries.
    pub payload: Payload,
}

/// A message that cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// A name, or the number of facts, is beyond any real one.
    #[error("a message of the bus has a {0} beyond its bound")]
    Unbounded(&'static str),
    /// Key and version alone are more than the server takes.
    #[error("a message of the bus is {size} bytes without its body, and the server takes {max}")]
    TooLarge {
        /// Bytes without the body.
        size: usize,
        /// What the server takes.
        max: usize,
    },
    /// The encoder failed; it writes to memory and has no reason to.
    #[error("encoding a message of the bus failed")]
    Failed,
}

/// Bytes that are no message, or none that this version can read. It says nothing of what the bytes hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// A newer version wrote it.
    #[error("the message is of format {format}, and the newest that is known is 2")]
    Newer {
        /// Its format.
        format: u64,
    },
    /// It is no message.
    #[error("the message is garbage: {0}")]
    Garbage(&'static str),
}

/// A message as bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Encoded {
    /// The MessagePack map.
    pub bytes: Bytes,
    /// Whether its body is in it: `false` where the body was more than the server takes.
    pub whole: bool,
    /// Facts that are not in it, where all were more than the server takes.
    pub given_up: usize,
}

impl fmt::Debug for Encoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Encoded({} bytes, whole: {})", self.bytes.len(), self.whole)
    }
}

impl Message {
    /// The message of one event; its cause stays behind: readers of a bus know of none but the watch.
    #[must_use]
    pub fn of(event: Event) -> Self {
        let Event { key, uid, version, change, labels, again, observed, fact, coalesced, trace, cause: _ } =
            event;
        let payload = match change {
            Change::Applied { body } => Payload::Change { body },
            Change::Deleted { body } => Payload::Deleted { body },
        };
        Self { key, uid, version, observed, trace, fact, coalesced, labels, again, payload }
    }

    /// The message of one report that was made at `observed`.
    #[must_use]
    pub fn of_report(report: &Report, observed: Timestamp) -> Self {
        let about =
            About { entity: report.entity, report: report.kind.as_str().into(), content: report.content };
        Self {
            key: report.key.clone(),
            uid: Arc::clone(&report.uid),
            version: report.version,
            observed,
            trace: report.trace,
            fact: None,
            coalesced: Vec::new(),
            labels: ObjectLabels::default(),
            again: false,
            payload: Payload::Result { about, body: report.body.clone() },
        }
    }

    /// What tells it from a message of the same state that brings other facts of earlier states along; `None` where it brings
    /// none.
    #[must_use]
    pub fn brought(&self) -> Option<Digest> {
        self.coalesced.iter().map(|fact| fact.id.0).reduce(|all, id| all ^ id).map(Digest)
    }

    /// The event that a lane takes in, or the message back where it is a report, or must be read again.
    ///
    /// # Errors
    /// The message itself, when it holds no state.
    pub fn into_event(self) -> Result<Event, Box<Self>> {
        let change = match self.payload {
            Payload::Change { body } => Change::Applied { body },
            Payload::Deleted { body } => Change::Deleted { body },
            Payload::Result { .. } | Payload::Overlarge { .. } => return Err(Box::new(self)),
        };
        Ok(Event {
            key: self.key,
            uid: self.uid,
            version: self.version,
            change,
            labels: self.labels,
            again: self.again,
            cause: Cause::Watch,
            observed: self.observed,
            fact: self.fact,
            coalesced: self.coalesced,
            trace: self.trace,
        })
    }

    /// What it is.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self.payload {
            Payload::Change { .. } => Kind::Change,
            Payload::Deleted { .. } => Kind::Deleted,
            Payload::Result { .. } => Kind::Result,
            Payload::Overlarge { .. } => Kind::Overlarge,
        }
    }

    /// What it is about, if it is a report.
    #[must_use]
    pub const fn about(&self) -> Option<&About> {
        match &self.payload {
            Payload::Result { about, .. } | Payload::Overlarge { about: Some(about) } => Some(about),
            _ => None,
        }
    }

    /// Its body, if it has one.
    #[must_use]
    pub const fn body(&self) -> Option<&Bytes> {
        match &self.payload {
            Payload::Change { body } | Payload::Result { body, .. } => Some(body),
            Payload::Deleted { body } => body.as_ref(),
            Payload::Overlarge { .. } => None,
        }
    }

    /// The same without its body: a deletion stays one, all else is to be read again.
    #[must_use]
    pub fn without_body(&self) -> Self {
        let payload = match &self.payload {
            Payload::Deleted { .. } => Payload::Deleted { body: None },
            Payload::Change { .. } => Payload::Overlarge { about: None },
            Payload::Result { about, .. } => Payload::Overlarge { about: Some(about.clone()) },
            Payload::Overlarge { about } => Payload::Overlarge { about: about.clone() },
        };
        Self { labels: ObjectLabels::default(), again: false, payload, ..self.clone() }
    }

    /// Its bytes, `max` at most: a body that does not fit stays behind ([`Message::without_body`]), and of facts that do not the
    /// oldest are given up.
    ///
    /// # Errors
    /// [`EncodeError`], for names beyond their bounds, and where not even key and version fit.
    pub fn encode(&self, max: usize) -> Result<Encoded, EncodeError> {
        self.bounded()?;
        if self.body().map_or(0, Bytes::len) <= max {
            let bytes = super::wire::encode(self)?;
            if bytes.len() <= max {
                return Ok(Encoded { bytes, whole: true, given_up: 0 });
            }
        }
        let (mut bare, mut given_up) = (self.without_body(), 0);
        loop {
            let bytes = super::wire::encode(&bare)?;
            let size = bytes.len();
            if size <= max {
                return Ok(Encoded { bytes, whole: self.body().is_none(), given_up });
            }
            match bare.give_up(size - max) {
                0 => return Err(EncodeError::TooLarge { size, max }),
                facts => given_up += facts,
            }
        }
    }

    /// Gives up its oldest facts until they took so many bytes, one at least; how many these are.
    fn give_up(&mut self, bytes: usize) -> usize {
        let (mut facts, mut freed) = (0, 0);
        while facts == 0 || freed < bytes {
            let oldest =
                if self.coalesced.is_empty() { self.fact.take() } else { Some(self.coalesced.remove(0)) };
            let Some(oldest) = oldest else { break };
            freed += oldest.body.len();
            facts += 1;
        }
        facts
    }

    fn bounded(&self) -> Result<(), EncodeError> {
        let Self { key, uid, .. } = self;
        let names = [
            ("kind", key.kind()),
            ("namespace", key.namespace()),
            ("name", key.name()),
            ("uid", uid.as_ref()),
        ];
        for (what, name) in names {
            if name.len() > MAX_NAME {
                return Err(EncodeError::Unbounded(what));
            }
        }
        if self.coalesced.len() > MAX_FACTS {
            return Err(EncodeError::Unbounded("number of facts"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
