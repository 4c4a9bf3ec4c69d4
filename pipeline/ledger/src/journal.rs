//! The packed forms of what is journaled and what is parked.
//!
//! ```text
//! pending: format u8 | ends: number | each: uid, version u64, phase, started, finished, revision, message
//!          | lives that are over: number | each: uid, version u64
//! parked:  format u8 | reason | at, nanoseconds since 1970, i128 | version u64 | uid, empty when unknown
//!          | refused: number | each: 0 u8, or 1 u8 and id u64 | content u64 | reason
//! ```
//! Numbers and texts are written as in [`super::binary`]; a reason by its label.

use bytes::Bytes;
use pipeline_core::{Digest, Entity, EntityId, Fact, Parked, Pending, Reason, Timestamp, Uid, Version};

use super::binary::{PackedError, Reader, put_length, put_text};

const FORMAT: u8 = 1;

/// Packs what is journaled of one key.
pub(super) fn encode_pending(pending: &Pending) -> Box<[u8]> {
    let mut out = vec![FORMAT];
    put_length(&mut out, pending.facts.len());
    for (uid, version, fact) in &pending.facts {
        put_text(&mut out, uid);
        out.extend(version.0.to_le_bytes());
        out.extend(fact.id.0.to_le_bytes());
        put_length(&mut out, fact.body.len());
        out.extend(&fact.body);
    }
    put_length(&mut out, pending.gone.len());
    for (uid, version) in &pending.gone {
        put_text(&mut out, uid);
        out.extend(version.0.to_le_bytes());
    }
    out.into_boxed_slice()
}

/// Unpacks what is journaled of one key.
pub(super) fn decode_pending(bytes: &[u8]) -> Result<Pending, PackedError> {
    let mut from = Reader(bytes);
    from.format()?;
    let mut pending = Pending::default();
    for _ in 0..from.length()? {
        let (uid, version) = from.state()?;
        let (id, length) = (Digest(from.u64()?), from.length()?);
        let body = Bytes::copy_from_slice(from.take(length)?);
        pending.facts.push((uid, version, Fact { id, body }));
    }
    for _ in 0..from.length()? {
        pending.gone.push(from.state()?);
    }
    from.end()?;
    Ok(pending)
}

/// Packs how one key was parked.
pub(super) fn encode_parked(parked: &Parked) -> Box<[u8]> {
    let mut out = vec![FORMAT];
    put_text(&mut out, parked.reason.as_str());
    out.extend(parked.at.as_nanosecond().to_le_bytes());
    out.extend(parked.version.0.to_le_bytes());
    put_text(&mut out, parked.uid.as_deref().unwrap_or_default());
    put_length(&mut out, parked.refused.len());
    for (entity, content, reason) in parked.refused.iter() {
        put_entity(&mut out, *entity);
        out.extend(content.0.to_le_bytes());
        put_text(&mut out, reason.as_str());
    }
    out.into_boxed_slice()
}

/// Unpacks how one key was parked.
pub(super) fn decode_parked(bytes: &[u8]) -> Result<Parked, PackedError> {
    let mut from = Reader(bytes);
    from.format()?;
    let reason = from.reason()?;
    let at = i128::from_le_bytes(from.array()?);
    let at = Timestamp::from_nanosecond(at).map_err(|_| PackedError::Damaged)?;
    let (version, uid) = (Version(from.u64()?), from.text()?);
    let mut refused = Vec::new();
    for _ in 0..from.length()? {
        refused.push((from.entity()?, Digest(from.u64()?), from.reason()?));
    }
    from.end()?;
    let uid = (!uid.is_empty()).then(|| uid.into());
    Ok(Parked { reason, at, version, uid, refused: refused.into() })
}

/// Writes an entity for [`Reader::entity`].
pub(super) fn put_entity(out: &mut Vec<u8>, entity: Entity) {
    match entity {
        Entity::Application => out.push(0),
        Entity::Resource(id) => {
            out.push(1);
            out.extend(id.0.to_le_bytes());
        }
    }
}

impl Reader<'_> {
    pub(super) fn entity(&mut self) -> Result<Entity, PackedError> {
        match self.u8()? {
            0 => Ok(Entity::Application),
            1 => Ok(Entity::Resource(EntityId(self.u64()?))),
            _ => Err(PackedError::Damaged),
        }
    }

    fn format(&mut self) -> Result<(), PackedError> {
        if self.u8()? == FORMAT { Ok(()) } else { Err(PackedError::Damaged) }
    }

    fn state(&mut self) -> Result<(Uid, Version), PackedError> {
        Ok((self.text()?.into(), Version(self.u64()?)))
    }

    fn reason(&mut self) -> Result<Reason, PackedError> {
        let label = self.text()?;
        Reason::ALL.into_iter().find(|reason| reason.as_str() == label).ok_or(PackedError::Damaged)
    }
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
