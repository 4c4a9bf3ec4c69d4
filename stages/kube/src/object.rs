//! Reads as little of an object as a watch needs, and fails on as little.
//!
//! Only the identity has to be there: name, namespace, uid and resourceVersion, as strings. Everything else
//! may have any type, or be missing: the object is passed on as the text that the API server sent. So one
//! object that another program wrote badly stops neither a page nor a watch.

use std::borrow::Cow;

use bytes::Bytes;
use pipeline_core::{Cause, Change, Event, Key, Lenient, Timestamp, Uid, Version};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::value::RawValue;

/// What an object says of itself, read in one pass: whatever else it holds is passed over.
#[derive(Deserialize)]
#[serde(bound(deserialize = "S: Deserialize<'de>"))]
struct Top<'a, S> {
    #[serde(borrow, default)]
    metadata: Lenient<Metadata<'a>>,
    #[serde(default)]
    status: Lenient<S>,
}

impl<'a, S: DeserializeOwned> Top<'a, S> {
    /// Reads an object. One whose status nobody could read, a member that stands there twice for one, still is what its
    /// metadata say.
    fn read(text: &'a str) -> serde_json::Result<Self> {
        serde_json::from_str(text).or_else(|error| match serde_json::from_str(text) {
            Ok(Bare { metadata }) => Ok(Self { metadata, status: Lenient(None) }),
            Err(_) => Err(error),
        })
    }
}

/// The same without its status.
#[derive(Deserialize)]
struct Bare<'a> {
    #[serde(borrow, default)]
    metadata: Lenient<Metadata<'a>>,
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

/// The identity of one state of an object, and what else is read of it.
#[derive(Debug)]
pub(crate) struct Head<'a, S = IgnoredAny> {
    pub(crate) key: Key,
    pub(crate) uid: Uid,
    /// As written: what a watch is resumed from.
    pub(crate) resource_version: String,
    pub(crate) version: Version,
    /// What the object's `status` is read as, if it is an object.
    pub(crate) status: Option<S>,
    text: &'a str,
}

impl<S> Head<'_, S> {
    /// The same in an era.
    pub(crate) fn in_era(self, era: u8) -> Self {
        Self { version: self.version.in_era(era), ..self }
    }

    /// This state as an event. The text is copied, so that an event that waits in a queue holds its own bytes and not the
    /// page or the connection's buffer it came in.
    pub(crate) fn event(&self, deleted: bool, cause: Cause, (observed, trace): (Timestamp, u128)) -> Event {
        let body = Bytes::copy_from_slice(self.text.as_bytes());
        let change = if deleted { Change::Deleted { body: Some(body) } } else { Change::Applied { body } };
        event((self.key.clone(), self.uid.clone(), self.version), change, cause, (observed, trace))
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

/// Reads the identity out of an object's JSON text; its key calls the kind as `named`, which then may have no namespace.
pub(crate) fn head<'a, S: DeserializeOwned>(named: &str, text: &'a str) -> Result<Head<'a, S>, Unreadable> {
    let unreadable = |part| Unreadable { part, key: None, resource_version: None };
    let top = Top::<S>::read(text).map_err(|_| unreadable("object"))?;
    let metadata = top.metadata.0.ok_or(unreadable("metadata"))?;
    let resource_version = non_empty(metadata.resource_version).map(Cow::into_owned);
    let (key, part) = match (non_empty(metadata.namespace), non_empty(metadata.name)) {
        (Some(namespace), Some(name)) => (Key::of_kind(named, &namespace, &name).ok(), "name"),
        (None, Some(name)) if !named.is_empty() => (Key::of_kind(named, "", &name).ok(), "name"),
        (None, _) => (None, "namespace"),
        (_, None) => (None, "name"),
    };
    let Some(key) = key else {
        return Err(Unreadable { part, key: None, resource_version });
    };
    match (non_empty(metadata.uid), resource_version) {
        (Some(uid), Some(resource_version)) => {
            let (uid, version) = ((&*uid).into(), version(&resource_version));
            Ok(Head { key, uid, version, resource_version, status: top.status.0, text })
        }
        (None, resource_version) => Err(Unreadable { part: "uid", key: Some(key), resource_version }),
        (_, None) => Err(Unreadable { part: "resourceVersion", key: Some(key), resource_version: None }),
    }
}

/// `metadata.resourceVersion` alone: all that a bookmark has.
pub(crate) fn resource_version(text: &str) -> Option<String> {
    let bare: Bare<'_> = serde_json::from_str(text).ok()?;
    non_empty(bare.metadata.0?.resource_version).map(Cow::into_owned)
}

/// A resourceVersion as a number; unknown when it is none.
pub(crate) fn version(resource_version: &str) -> Version {
    resource_version.parse().map_or(Version(0), Version::of_number)
}

/// The deletion of an object that was not there any more at `version` of the whole list.
pub(crate) fn vanished(key: Key, uid: Uid, version: Version, (observed, trace): (Timestamp, u128)) -> Event {
    event((key, uid, version), Change::Deleted { body: None }, Cause::Watch, (observed, trace))
}

fn event(
    (key, uid, version): (Key, Uid, Version),
    change: Change,
    cause: Cause,
    (observed, trace): (Timestamp, u128),
) -> Event {
    Event { cause, trace, ..Event::watched(key, uid, version, change, observed) }
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

#[cfg(test)]
mod tests;
