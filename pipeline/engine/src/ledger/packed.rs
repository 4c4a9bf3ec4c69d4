//! The packed form of a record: what the ledger keeps in memory and writes to its file.
//!
//! A record of ten resources of 29 bytes each takes about 450 bytes, a fifth of its unpacked form. Integers and
//! texts are written as in [`super::binary`].
//!
//! ```text
//! format u8 | flags u8 | uid 16, or length + text | version u64
//! | spec, status, operation, metadata u64 each (when settled) | operation u64 | content u64 | counter u32
//! | reported u32 | unanswered (when something is)
//! | repoURL, server, parent's namespace and name (when a child): length + text each
//! | number of rows | rows: id u64, decision u64, content u64, counter u32, flags u8, unanswered (when something is)
//! unanswered: content u64, skipped u32
//! ```
//! Format 1 had no `reported` and knew nothing that is unsure or unanswered; it is still read.
//!
//! Decoding takes any bytes: it answers [`PackedError`] and allocates no more than the bytes could fill.

use pipeline_core::{
    Digest, EntityId, ParentRef, Record, ResourceRow, Sections, Stub, Uid, Unanswered, Version,
};

use super::binary::{PackedError, Reader, put_length, put_text};

/// The format that is written.
pub(super) const FORMAT: u8 = 2;
/// Before `reported` and what is unsure.
const FIRST: u8 = 1;

const ROW: usize = 29;

const SETTLED: u8 = 1;
const HEALTHY: u8 = 1 << 1;
const OWED: u8 = 1 << 2;
const UUID: u8 = 1 << 3;
const CHILD: u8 = 1 << 4;
const UNSURE: u8 = 1 << 5;
const SENT: u8 = 1 << 6;

const ROW_OWED: u8 = 1;
const ROW_GONE: u8 = 1 << 1;
const ROW_UNSURE: u8 = 1 << 2;
const ROW_SENT: u8 = 1 << 3;

/// Packs a record. Rows are written in the order of their ids, each id once.
pub(super) fn encode(record: &Record) -> Box<[u8]> {
    let mut out = Vec::with_capacity(128 + record.resources.len() * ROW);
    let uuid = uuid_bytes(&record.uid);
    let mut flags = 0;
    for (flag, set) in [
        (SETTLED, record.sections.is_some()),
        (HEALTHY, record.healthy),
        (OWED, record.owed),
        (UUID, uuid.is_some()),
        (CHILD, record.stub.parent.is_some()),
        (UNSURE, record.unsure),
        (SENT, record.unanswered != Unanswered::default()),
    ] {
        flags |= if set { flag } else { 0 };
    }
    out.extend([FORMAT, flags]);
    match uuid {
        Some(bytes) => out.extend(bytes),
        None => put_text(&mut out, &record.uid),
    }
    out.extend(record.version.0.to_le_bytes());
    if let Some(sections) = &record.sections {
        for digest in [sections.spec, sections.status, sections.operation, sections.metadata] {
            out.extend(digest.0.to_le_bytes());
        }
    }
    out.extend(record.operation.0.to_le_bytes());
    out.extend(record.content.0.to_le_bytes());
    out.extend(record.counter.to_le_bytes());
    out.extend(record.reported.to_le_bytes());
    if record.unanswered != Unanswered::default() {
        put_unanswered(&mut out, record.unanswered);
    }
    put_text(&mut out, &record.stub.repo_url);
    put_text(&mut out, &record.stub.server);
    if let Some(parent) = &record.stub.parent {
        put_text(&mut out, &parent.namespace);
        put_text(&mut out, &parent.name);
    }
    if record.resources.is_sorted_by(|a, b| a.id < b.id) {
        put_rows(&mut out, &record.resources);
    } else {
        let mut rows = record.resources.clone();
        rows.sort_by_key(|row| row.id);
        rows.dedup_by_key(|row| row.id);
        put_rows(&mut out, &rows);
    }
    out.into_boxed_slice()
}

/// Unpacks a record.
pub(super) fn decode(bytes: &[u8]) -> Result<Record, PackedError> {
    let mut from = Reader(bytes);
    let (format, flags, uid) = from.head()?;
    let version = Version(from.u64()?);
    let sections = if flags & SETTLED == 0 {
        None
    } else {
        Some(Sections {
            spec: from.digest()?,
            status: from.digest()?,
            operation: from.digest()?,
            metadata: from.digest()?,
        })
    };
    let operation = from.digest()?;
    let content = from.digest()?;
    let counter = from.u32()?;
    let reported = if format == FIRST { 0 } else { from.u32()? };
    let unanswered = from.unanswered(flags & SENT != 0)?;
    let repo_url = from.text()?.to_owned();
    let server = from.text()?.to_owned();
    let parent = if flags & CHILD == 0 {
        None
    } else {
        Some(ParentRef { namespace: from.text()?.to_owned(), name: from.text()?.to_owned() })
    };
    let resources = from.rows(format)?;
    Ok(Record {
        uid,
        version,
        sections,
        healthy: flags & HEALTHY != 0,
        operation,
        content,
        counter,
        owed: flags & OWED != 0,
        unsure: flags & UNSURE != 0,
        unanswered,
        reported,
        resources,
        stub: Stub { repo_url, server, parent },
    })
}

/// The uid of a packed record, without unpacking the rest.
pub(super) fn uid(bytes: &[u8]) -> Result<Uid, PackedError> {
    Ok(Reader(bytes).head()?.2)
}

fn put_rows(out: &mut Vec<u8>, rows: &[ResourceRow]) {
    put_length(out, rows.len());
    for row in rows {
        out.extend(row.id.0.to_le_bytes());
        out.extend(row.decision.0.to_le_bytes());
        out.extend(row.content.0.to_le_bytes());
        out.extend(row.counter.to_le_bytes());
        let sent = row.unanswered != Unanswered::default();
        let flags = [(ROW_OWED, row.owed), (ROW_GONE, row.gone), (ROW_UNSURE, row.unsure), (ROW_SENT, sent)];
        out.push(flags.iter().filter(|(_, set)| *set).fold(0, |sum, (flag, _)| sum | flag));
        if sent {
            put_unanswered(out, row.unanswered);
        }
    }
}

/// Content u64, and by how much the counter moved u32.
fn put_unanswered(out: &mut Vec<u8>, unanswered: Unanswered) {
    out.extend(unanswered.content.0.to_le_bytes());
    out.extend(unanswered.skipped.to_le_bytes());
}

impl Reader<'_> {
    fn unanswered(&mut self, sent: bool) -> Result<Unanswered, PackedError> {
        if !sent {
            return Ok(Unanswered::default());
        }
        let unanswered = Unanswered { content: self.digest()?, skipped: self.u32()? };
        // Nothing else has these bytes: two spellings of one record would look like a change.
        if unanswered == Unanswered::default() { Err(PackedError::Damaged) } else { Ok(unanswered) }
    }

    fn digest(&mut self) -> Result<Digest, PackedError> {
        Ok(Digest(self.u64()?))
    }

    /// Format, flags and uid.
    fn head(&mut self) -> Result<(u8, u8, Uid), PackedError> {
        let format = self.u8()?;
        let newer = match format {
            FIRST => 0,
            FORMAT => UNSURE | SENT,
            _ => return Err(PackedError::Format(format)),
        };
        let flags = self.u8()?;
        if flags & !(SETTLED | HEALTHY | OWED | UUID | CHILD | newer) != 0 {
            return Err(PackedError::Damaged);
        }
        let uid = if flags & UUID == 0 {
            self.text()?.into()
        } else {
            uuid_text(u128::from_be_bytes(self.array()?))
        };
        Ok((format, flags, uid))
    }

    /// The rows, which are the last part.
    fn rows(&mut self, format: u8) -> Result<Vec<ResourceRow>, PackedError> {
        let newer = if format == FIRST { 0 } else { ROW_UNSURE | ROW_SENT };
        let count = self.length()?;
        // A count that the bytes cannot hold allocates nothing.
        if count.checked_mul(ROW).is_none_or(|least| least > self.0.len()) {
            return Err(PackedError::Damaged);
        }
        let mut rows = Vec::with_capacity(count);
        for _ in 0..count {
            let (id, decision, content) = (EntityId(self.u64()?), self.digest()?, self.digest()?);
            let (counter, flags) = (self.u32()?, self.u8()?);
            if flags & !(ROW_OWED | ROW_GONE | newer) != 0 {
                return Err(PackedError::Damaged);
            }
            let has = |flag| flags & flag != 0;
            let (owed, gone, unsure) = (has(ROW_OWED), has(ROW_GONE), has(ROW_UNSURE));
            let unanswered = self.unanswered(has(ROW_SENT))?;
            rows.push(ResourceRow { id, decision, content, counter, owed, gone, unsure, unanswered });
        }
        self.end()?;
        // Rows are found by bisection: an order that is not theirs would hide some of them.
        if rows.is_sorted_by(|a, b| a.id < b.id) { Ok(rows) } else { Err(PackedError::Damaged) }
    }
}

/// The 16 bytes of a uid that is a UUID in the one spelling that [`uuid_text`] gives back.
fn uuid_bytes(uid: &str) -> Option<[u8; 16]> {
    if uid.len() != 36 {
        return None;
    }
    let digits: String = uid.chars().filter(|char| *char != '-').collect();
    if digits.len() != 32 || digits.starts_with('+') {
        return None;
    }
    let value = u128::from_str_radix(&digits, 16).ok()?;
    (*uuid_text(value) == *uid).then(|| value.to_be_bytes())
}

fn uuid_text(value: u128) -> Uid {
    let part = |shift: u32, bits: u32| (value >> shift) & ((1 << bits) - 1);
    let (a, b, c, d, e) = (part(96, 32), part(80, 16), part(64, 16), part(48, 16), part(0, 48));
    format!("{a:08x}-{b:04x}-{c:04x}-{d:04x}-{e:012x}").into()
}

#[cfg(test)]
#[path = "packed_tests.rs"]
pub(super) mod tests;
