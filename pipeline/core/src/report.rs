//! What is sent of one entity.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{Digest, Event, Key, Uid, Version};

/// What a report is about: the object itself, or one of the entities that it lists.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EntityId(pub u64);

impl EntityId {
    /// The object itself: its report goes before those of the entities that it lists.
    pub const OBJECT: Self = Self(0);

    /// Whether it is the object itself.
    #[must_use]
    pub const fn is_object(self) -> bool {
        self.0 == Self::OBJECT.0
    }
}

/// The kind of a report, as the stage that builds it declares it; a metric label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReportKind {
    name: &'static str,
    of_object: bool,
}

impl ReportKind {
    /// Of reports about the object itself.
    #[must_use]
    pub const fn of_object(name: &'static str) -> Self {
        Self { name, of_object: true }
    }

    /// Of reports about an entity that the object lists.
    #[must_use]
    pub const fn of_listed(name: &'static str) -> Self {
        Self { name, of_object: false }
    }

    /// Whether it is one of many that an event may bring.
    #[must_use]
    pub const fn is_of_listed(self) -> bool {
        !self.of_object
    }

    /// The label and log value.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.name
    }
}

/// One report, redacted and encoded: nothing changes it on its way out.
#[derive(Clone, PartialEq, Eq)]
pub struct Report {
    /// The object whose event made it.
    pub key: Key,
    /// The incarnation of that object.
    pub uid: Uid,
    /// The state of that object.
    pub version: Version,
    /// What it is about.
    pub entity: EntityId,
    /// Its kind, for metrics.
    pub kind: ReportKind,
    /// Of the normalised inputs: is it worth a report.
    pub decision: Digest,
    /// Of what is sent, without `timestamp` and with values filled with "now" marked out.
    pub content: Digest,
    /// Something could not be fetched for it: it is to be built and, if that changes it, sent again.
    pub incomplete: bool,
    /// Its acknowledgement ends the object's record: it reports a deletion.
    pub ends: bool,
    /// The fact that it tells and that the reported state does not show any more. It is told once: an acknowledgement
    /// moves [`Record::fact`](crate::Record::fact) to it at once, so that a delivery that is cut off goes on with later
    /// ones. Of an end ([`Report::ends`]), which end it is, where a life may end more than once under its uid:
    /// [`Record::stay`](crate::Record::stay).
    pub fact: Option<Digest>,
    /// The payload: the JSON text that stands under `data` in the platform's wire format.
    pub body: Bytes,
    /// W3C trace id of the event's life.
    pub trace: u128,
}

impl Report {
    /// A report of `content`, which alone decides about it; without a body, a fact or an end.
    #[must_use]
    pub fn new(
        key: Key,
        uid: Uid,
        version: Version,
        entity: EntityId,
        kind: ReportKind,
        content: Digest,
    ) -> Self {
        Self {
            key,
            uid,
            version,
            entity,
            kind,
            decision: content,
            content,
            incomplete: false,
            ends: false,
            fact: None,
            body: Bytes::new(),
            trace: 0,
        }
    }

    /// The same of the state of an object that `event` shows.
    #[must_use]
    pub fn of_object(event: &Event, kind: ReportKind, content: Digest) -> Self {
        let Event { key, uid, version, trace, .. } = event;
        let report = Self::new(key.clone(), uid.clone(), *version, EntityId::OBJECT, kind, content);
        Self { trace: *trace, ..report }
    }
}

/// Without the payload: what is printed may end in a log.
impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Report")
            .field("key", &self.key)
            .field("uid", &self.uid)
            .field("version", &self.version)
            .field("entity", &self.entity)
            .field("content", &self.content)
            .field("incomplete", &self.incomplete)
            .field("ends", &self.ends)
            .field("bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}
