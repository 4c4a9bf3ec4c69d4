//! The bytes of a [`Message`]: a MessagePack map with names.
//!
//! Reading never trusts what it reads: lengths are bounded by the bytes at hand, nesting by a limit, lists by a number,
//! and an error names a field at most, never a value.

use std::fmt;

use bytes::Bytes;
use pipeline_core::{Digest, EntityId, Fact, Key, Timestamp, Version};
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::message::{About, DecodeError, EncodeError, FORMAT, Kind, MAX_FACTS, MAX_NAME, Message, Payload};

/// Nesting of a field that is not known: MessagePack from anybody may nest without end.
const MAX_DEPTH: usize = 32;

#[derive(Serialize, Deserialize)]
struct Wire<'a> {
    format: u64,
    kind: &'a str,
    /// The kind of the object; nothing where its source names none.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    of: &'a str,
    namespace: &'a str,
    name: &'a str,
    uid: &'a str,
    version: u64,
    observed: i64,
    trace: u128,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    fact: Option<WireFact<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Facts::is_empty")]
    coalesced: Facts<'a>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    entity: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    report: Option<&'a str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<Body<'a>>,
}

/// Looks at the format alone: in a newer one all else may be of another shape.
#[derive(Deserialize)]
struct Probe {
    format: u64,
}

#[derive(Serialize, Deserialize)]
struct WireFact<'a> {
    id: u64,
    #[serde(borrow)]
    body: Body<'a>,
}

impl<'a> WireFact<'a> {
    fn of(fact: &'a Fact) -> Self {
        Self { id: fact.id.0, body: Body(&fact.body) }
    }

    /// Copied: a fact may be kept for long after the message is gone.
    fn owned(&self) -> Fact {
        Fact { id: Digest(self.id), body: Bytes::copy_from_slice(self.body.0) }
    }
}

/// Bytes, written as MessagePack's `bin`: a slice alone would be written as a list of numbers.
struct Body<'a>(&'a [u8]);

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(self.0)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Body<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        <&[u8]>::deserialize(from).map(Self)
    }
}

/// A list that ends at a bound: an empty one takes a few bytes on the wire and many times as many in memory.
#[derive(Default)]
struct Facts<'a>(Vec<WireFact<'a>>);

impl Facts<'_> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Facts<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(&self.0)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Facts<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Some<'a>(std::marker::PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for Some<'a> {
            type Value = Facts<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "at most {MAX_FACTS} facts")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Facts<'a>, A::Error> {
                let mut facts = Vec::new();
                while facts.len() < MAX_FACTS {
                    match all.next_element()? {
                        Option::Some(fact) => facts.push(fact),
                        None => return Ok(Facts(facts)),
                    }
                }
                match all.next_element::<IgnoredAny>()? {
                    Option::Some(_) => Err(serde::de::Error::invalid_length(MAX_FACTS + 1, &self)),
                    None => Ok(Facts(facts)),
                }
            }
        }
        from.deserialize_seq(Some(std::marker::PhantomData))
    }
}

/// The bytes of a message.
pub(super) fn encode(message: &Message) -> Result<Bytes, EncodeError> {
    let about = message.about();
    let wire = Wire {
        format: FORMAT,
        kind: message.kind().as_str(),
        of: message.key.kind(),
        namespace: message.key.namespace(),
        name: message.key.name(),
        uid: &message.uid,
        version: message.version.0,
        observed: message.observed.as_millisecond(),
        trace: message.trace,
        fact: message.fact.as_ref().map(WireFact::of),
        coalesced: Facts(message.coalesced.iter().map(WireFact::of).collect()),
        entity: about.map(|about| about.entity.0).filter(|id| *id > 0),
        report: about.map(|about| &*about.report),
        content: about.map(|about| about.content.0),
        body: message.body().map(|body| Body(body)),
    };
    rmp_serde::to_vec_named(&wire).map(Bytes::from).map_err(|_| EncodeError::Failed)
}

/// The message that `bytes` hold; its body is a part of them, not a copy.
///
/// # Errors
/// [`DecodeError`], for any bytes that are no message of format 2.
pub fn decode(bytes: &Bytes) -> Result<Message, DecodeError> {
    // A struct may also be a list in MessagePack; a message is a map.
    if !matches!(bytes.first(), Some(0x80..=0x8f | 0xde | 0xdf)) {
        return Err(DecodeError::Garbage("it is no map"));
    }
    let (probe, alone) =
        read::<Probe>(bytes).ok_or(DecodeError::Garbage("it is malformed or has no format"))?;
    match probe.format {
        FORMAT => {}
        format if format < FORMAT => {
            return Err(DecodeError::Garbage("its format is older than any that is read"));
        }
        format => return Err(DecodeError::Newer { format }),
    }
    if !alone {
        return Err(DecodeError::Garbage("something stands behind it"));
    }
    let (wire, _) = read::<Wire<'_>>(bytes).ok_or(DecodeError::Garbage("a field is missing or malformed"))?;
    message(&wire, bytes)
}

/// A value, and whether nothing stands behind it: then not even the first byte of another one can be read.
fn read<'a, T: Deserialize<'a>>(bytes: &'a Bytes) -> Option<(T, bool)> {
    let mut reader = rmp_serde::Deserializer::from_read_ref(bytes.as_ref());
    reader.set_max_depth(MAX_DEPTH);
    let value = T::deserialize(&mut reader).ok()?;
    let behind = IgnoredAny::deserialize(&mut reader);
    Some((value, matches!(behind, Err(rmp_serde::decode::Error::InvalidMarkerRead(_)))))
}

fn message(wire: &Wire<'_>, bytes: &Bytes) -> Result<Message, DecodeError> {
    let garbage = DecodeError::Garbage;
    if [wire.of, wire.namespace, wire.name, wire.uid].iter().any(|name| name.len() > MAX_NAME) {
        return Err(garbage("a name is too long"));
    }
    let kind = Kind::ALL
        .into_iter()
        .find(|kind| kind.as_str() == wire.kind)
        .ok_or_else(|| garbage("its kind is not known"))?;
    let about = about(wire)?;
    let body = wire.body.as_ref().map(|body| bytes.slice_ref(body.0));
    let payload = match (kind, about, body) {
        (Kind::Change, None, Some(body)) => Payload::Change { body },
        (Kind::Deleted, None, body) => Payload::Deleted { body },
        (Kind::Result, Some(about), Some(body)) => Payload::Result { about, body },
        (Kind::Overlarge, about, None) => Payload::Overlarge { about },
        _ => return Err(garbage("its fields do not fit its kind")),
    };
    Ok(Message {
        key: Key::of_kind(wire.of, wire.namespace, wire.name).map_err(|_| garbage("its key is no key"))?,
        uid: wire.uid.into(),
        version: Version(wire.version),
        observed: Timestamp::from_millisecond(wire.observed).map_err(|_| garbage("its time is no time"))?,
        trace: wire.trace,
        fact: wire.fact.as_ref().map(WireFact::owned),
        coalesced: wire.coalesced.0.iter().map(WireFact::owned).collect(),
        labels: pipeline_core::ObjectLabels::default(),
        again: false,
        payload,
    })
}

fn about(wire: &Wire<'_>) -> Result<Option<About>, DecodeError> {
    let (report, content) = match (wire.report, wire.content, wire.entity) {
        (None, None, None) => return Ok(None),
        (Some(report), Some(content), _) => (report, content),
        _ => return Err(DecodeError::Garbage("its fields do not fit its kind")),
    };
    if report.len() > MAX_NAME {
        return Err(DecodeError::Garbage("a name is too long"));
    }
    let entity = EntityId(wire.entity.unwrap_or_default());
    Ok(Some(About { entity, report: report.into(), content: Digest(content) }))
}
