//! Reads as little of an object as a watch needs, and fails on as little.
//!
//! Only the identity has to be there: name, namespace, uid and resourceVersion, as strings. Everything else
//! may have any type, or be missing: the object is passed on as the text that the API server sent. So one
//! object that another program wrote badly stops neither a page nor a watch.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use bytes::Bytes;
use pipeline_core::{Cause, Change, Event, Key, OperationEnd, Timestamp, Uid, Version};
use pipeline_redact::Redactor;
use serde::de::value::MapAccessDeserializer;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// Bytes that are kept of each text of an operation's end.
const TEXT_LIMIT: usize = 1024;
/// A longer text is left out: to redact it would hold up the watch, and little of it would be kept.
const LONGEST_TEXT: usize = 64 * 1024;
/// What stands for it.
const LEFT_OUT: &str = "(a text of more than 64 kB, left out)";

/// What an object says of itself, read in one pass: whatever else it holds is passed over.
#[derive(Deserialize)]
struct Top<'a> {
    #[serde(borrow, default)]
    metadata: Lenient<Metadata<'a>>,
    #[serde(borrow, default)]
    status: Lenient<Status<'a>>,
}

/// The same without what it says of an operation.
#[derive(Deserialize)]
struct Bare<'a> {
    #[serde(borrow, default)]
    metadata: Lenient<Metadata<'a>>,
}

impl<'a> Top<'a> {
    /// Reads an object. One whose status nobody could read, a member that stands there twice for one, still is what its
    /// metadata say.
    fn read(text: &'a str) -> serde_json::Result<Self> {
        serde_json::from_str(text).or_else(|error| match serde_json::from_str(text) {
            Ok(Bare { metadata }) => Ok(Self { metadata, status: Lenient(None) }),
            Err(_) => Err(error),
        })
    }
}

#[derive(Deserialize)]
struct Metadata<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    namespace: Option<&'a RawValue>,
    #[serde(borrow)]
    uid: Option<&'a RawValue>,
    #[serde(borrow, rename = "resourceVersion")]
    resource_version: Option<&'a RawValue>,
}

#[derive(Debug, Clone, Deserialize)]
struct Status<'a> {
    #[serde(borrow, default, rename = "operationState")]
    operation_state: Lenient<OperationState<'a>>,
    #[serde(borrow, default)]
    sync: Lenient<Sync<'a>>,
}

#[derive(Debug, Clone, Deserialize)]
struct Sync<'a> {
    #[serde(borrow)]
    status: Option<&'a RawValue>,
}

#[derive(Debug, Clone, Deserialize)]
struct OperationState<'a> {
    #[serde(borrow)]
    phase: Option<&'a RawValue>,
    #[serde(borrow, rename = "startedAt")]
    started_at: Option<&'a RawValue>,
    #[serde(borrow, rename = "finishedAt")]
    finished_at: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "syncResult")]
    sync_result: Lenient<SyncResult<'a>>,
}

#[derive(Debug, Clone, Deserialize)]
struct SyncResult<'a> {
    #[serde(borrow)]
    revision: Option<&'a RawValue>,
}

/// An object where one is expected; nothing where anything else stands.
#[derive(Debug, Clone)]
struct Lenient<T>(Option<T>);

impl<T> Default for Lenient<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Kind(PhantomData))
    }
}

struct Kind<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Kind<T> {
    type Value = Lenient<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(|found| Lenient(Some(found)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Self::Value, A::Error> {
        while all.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Lenient(None))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Lenient(None))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Lenient(None))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Lenient(None))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Lenient(None))
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(Lenient(None))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Lenient(None))
    }
}

/// The identity of one state of an object, and what else it tells.
#[derive(Debug, Clone)]
pub(crate) struct Head<'a> {
    pub(crate) key: Key,
    pub(crate) uid: Uid,
    /// As written: what a watch is resumed from.
    pub(crate) resource_version: String,
    pub(crate) version: Version,
    text: &'a str,
    operation: Option<OperationState<'a>>,
    sync: Option<Sync<'a>>,
}

impl Head<'_> {
    /// What lives is not what is wanted, and may change without the application's version.
    pub(crate) fn is_out_of_sync(&self) -> bool {
        let status = self.sync.as_ref().and_then(|sync| text(sync.status));
        status.is_some_and(|status| status == "OutOfSync")
    }
}

impl Head<'_> {
    /// The same in an era.
    pub(crate) fn in_era(self, era: u8) -> Self {
        Self { version: self.version.in_era(era), ..self }
    }
}

/// An object without a usable identity, and what of it could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unreadable {
    /// The first part that is missing, from a closed set: it is logged.
    pub(crate) part: &'static str,
    /// Whose object it is, if that much could be read: it is there, and must not be taken for deleted.
    pub(crate) key: Option<Key>,
    /// What a watch is resumed from.
    pub(crate) resource_version: Option<String>,
}

/// Reads the identity out of an object's JSON text.
pub(crate) fn head(text: &str) -> Result<Head<'_>, Unreadable> {
    let unreadable = |part| Unreadable { part, key: None, resource_version: None };
    let top = Top::read(text).map_err(|_| unreadable("object"))?;
    let metadata = top.metadata.0.ok_or(unreadable("metadata"))?;
    let resource_version = non_empty(metadata.resource_version).map(Cow::into_owned);
    let (key, part) = match (non_empty(metadata.namespace), non_empty(metadata.name)) {
        (Some(namespace), Some(name)) => (Key::new(&namespace, &name).ok(), "name"),
        (None, _) => (None, "namespace"),
        (_, None) => (None, "name"),
    };
    let Some(key) = key else {
        return Err(Unreadable { part, key: None, resource_version });
    };
    match (non_empty(metadata.uid), resource_version) {
        (Some(uid), Some(resource_version)) => {
            let (operation, sync) =
                top.status.0.map_or((None, None), |status| (status.operation_state.0, status.sync.0));
            let (uid, version) = ((&*uid).into(), version(&resource_version));
            Ok(Head { key, uid, version, resource_version, text, operation, sync })
        }
        (None, resource_version) => Err(Unreadable { part: "uid", key: Some(key), resource_version }),
        (_, None) => Err(Unreadable { part: "resourceVersion", key: Some(key), resource_version: None }),
    }
}

/// `metadata.resourceVersion` alone: all that a bookmark has.
pub(crate) fn resource_version(text: &str) -> Option<String> {
    let top = Top::read(text).ok()?;
    non_empty(top.metadata.0?.resource_version).map(Cow::into_owned)
}

/// A resourceVersion as a number; unknown when it is none.
pub(crate) fn version(resource_version: &str) -> Version {
    resource_version.parse().map_or(Version(0), Version::of_number)
}

/// One state of an object as an event. The text is copied, so that an event that waits in a queue holds its
/// own bytes and not the page or the connection's buffer it came in. The summary of an operation's end is
/// redacted: it outlives the body, and is put into an object that is redacted already.
pub(crate) fn event(
    head: &Head<'_>,
    deleted: bool,
    cause: Cause,
    (observed, trace): (Timestamp, u128),
    redactor: &Redactor,
) -> Event {
    let body = Bytes::copy_from_slice(head.text.as_bytes());
    let change = if deleted { Change::Deleted { body: Some(body) } } else { Change::Applied { body } };
    Event {
        key: head.key.clone(),
        uid: head.uid.clone(),
        version: head.version,
        change,
        cause,
        observed,
        fact: head.operation.as_ref().and_then(|state| operation_end(state, redactor)).map(|end| end.fact()),
        coalesced: Vec::new(),
        trace,
    }
}

/// The deletion of an object that was not there any more at `version` of the whole list.
pub(crate) fn vanished(key: Key, uid: Uid, version: Version, observed: Timestamp, trace: u128) -> Event {
    Event {
        key,
        uid,
        version,
        change: Change::Deleted { body: None },
        cause: Cause::Watch,
        observed,
        fact: None,
        coalesced: Vec::new(),
        trace,
    }
}

fn operation_end(state: &OperationState<'_>, redactor: &Redactor) -> Option<OperationEnd> {
    let finished_at = non_empty(state.finished_at)?;
    let revision = state.sync_result.0.as_ref().and_then(|result| text(result.revision));
    Some(OperationEnd {
        phase: bounded(text(state.phase), redactor),
        started_at: bounded(text(state.started_at), redactor),
        finished_at: bounded(Some(finished_at), redactor),
        revision: bounded(revision, redactor),
        message: bounded(text(state.message), redactor),
    })
}

/// A text, borrowed where it holds no escape.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

fn text(raw: Option<&RawValue>) -> Option<Cow<'_, str>> {
    serde_json::from_str(raw?.get()).ok().map(|Text(text)| text)
}

fn non_empty(raw: Option<&RawValue>) -> Option<Cow<'_, str>> {
    text(raw).filter(|text| !text.is_empty())
}

/// Redacted, then cut. The whole text is looked at: what shows that it quotes a Secret may stand behind the
/// Secret's data.
fn bounded(text: Option<Cow<'_, str>>, redactor: &Redactor) -> String {
    let text = text.unwrap_or_default();
    if text.len() > LONGEST_TEXT {
        return LEFT_OUT.to_owned();
    }
    let mut text = redactor.text(&text).into_owned();
    text.truncate(text.floor_char_boundary(TEXT_LIMIT));
    text.shrink_to_fit();
    text
}

#[cfg(test)]
#[path = "object_tests.rs"]
mod tests;
