//! The packed form of a record: what the ledger keeps in memory and writes to its file.
//!
//! A record of ten resources of 29 bytes each takes about 450 bytes, a fifth of its unpacked form. All
//! integers are little-endian; lengths are variable (seven bits a byte, lowest first).
//!
//! ```text
//! format u8 | flags u8 | uid 16, or length + text | version u64
//! | spec, status, operation, metadata u64 each (when settled) | operation u64 | content u64 | counter u32
//! | repoURL, server, parent's namespace and name (when a child): length + text each
//! | number of rows | rows: id u64, decision u64, content u64, counter u32, flags u8
//! ```
//!
//! Decoding takes any bytes: it answers [`PackedError`] and allocates no more than the bytes could fill.

use pipeline_core::{Digest, EntityId, ParentRef, Record, ResourceRow, Sections, Stub, Uid, Version};

/// The format that is written.
pub(super) const FORMAT: u8 = 1;

const ROW: usize = 29;
const CHECKSUM: usize = 8;

const SETTLED: u8 = 1;
const HEALTHY: u8 = 1 << 1;
const OWED: u8 = 1 << 2;
const UUID: u8 = 1 << 3;
const CHILD: u8 = 1 << 4;
const UNSURE: u8 = 1 << 5;

const ROW_OWED: u8 = 1;
const ROW_GONE: u8 = 1 << 1;
const ROW_UNSURE: u8 = 1 << 2;

/// Bytes that are no packed record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum PackedError {
    /// Another version's format.
    #[error("a ledger record has format {0}, not {FORMAT}")]
    Format(u8),
    /// The bytes end early, go on too long, or say what no record says.
    #[error("a ledger record is damaged")]
    Damaged,
    /// The checksum says that the bytes, or their key, are others than were written.
    #[error("a ledger record does not match its checksum")]
    Checksum,
}

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
    let (flags, uid) = from.head()?;
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
    let repo_url = from.text()?.to_owned();
    let server = from.text()?.to_owned();
    let parent = if flags & CHILD == 0 {
        None
    } else {
        Some(ParentRef { namespace: from.text()?.to_owned(), name: from.text()?.to_owned() })
    };
    let resources = from.rows()?;
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
        reported: 0,
        resources,
        stub: Stub { repo_url, server, parent },
    })
}

/// The uid of a packed record, without unpacking the rest.
pub(super) fn uid(bytes: &[u8]) -> Result<Uid, PackedError> {
    Ok(Reader(bytes).head()?.1)
}

/// What stands in the file: the packed record, then a checksum of its key and itself.
pub(super) fn seal(key: &str, packed: &[u8]) -> Vec<u8> {
    let mut sealed = Vec::with_capacity(packed.len() + CHECKSUM);
    sealed.extend_from_slice(packed);
    sealed.extend(checksum(key, packed).to_le_bytes());
    sealed
}

/// The packed record of what stands in the file; whether it decodes is [`decode`]'s to say.
pub(super) fn unseal<'a>(key: &str, sealed: &'a [u8]) -> Result<&'a [u8], PackedError> {
    let (packed, sum) = sealed.split_last_chunk::<CHECKSUM>().ok_or(PackedError::Damaged)?;
    if u64::from_le_bytes(*sum) == checksum(key, packed) { Ok(packed) } else { Err(PackedError::Checksum) }
}

/// Over the key too, so that a record found under another key is no record.
fn checksum(key: &str, packed: &[u8]) -> u64 {
    use std::hash::Hasher as _;
    let mut hasher = seahash::SeaHasher::new();
    hasher.write(key.as_bytes());
    hasher.write(packed);
    hasher.write_u64(key.len() as u64);
    hasher.finish()
}

fn put_length(out: &mut Vec<u8>, length: usize) {
    let mut rest = length as u64;
    while rest >= 0x80 {
        out.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    out.push((rest & 0x7f) as u8);
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put_length(out, text.len());
    out.extend_from_slice(text.as_bytes());
}

fn put_rows(out: &mut Vec<u8>, rows: &[ResourceRow]) {
    put_length(out, rows.len());
    for row in rows {
        out.extend(row.id.0.to_le_bytes());
        out.extend(row.decision.0.to_le_bytes());
        out.extend(row.content.0.to_le_bytes());
        out.extend(row.counter.to_le_bytes());
        let flags = [(ROW_OWED, row.owed), (ROW_GONE, row.gone), (ROW_UNSURE, row.unsure)];
        out.push(flags.iter().filter(|(_, set)| *set).fold(0, |sum, (flag, _)| sum | flag));
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], PackedError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(PackedError::Damaged)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], PackedError> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or(PackedError::Damaged)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn u8(&mut self) -> Result<u8, PackedError> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    fn u32(&mut self) -> Result<u32, PackedError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, PackedError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn digest(&mut self) -> Result<Digest, PackedError> {
        Ok(Digest(self.u64()?))
    }

    fn length(&mut self) -> Result<usize, PackedError> {
        let mut length = 0_u64;
        for shift in (0..63).step_by(7) {
            let byte = self.u8()?;
            length |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return usize::try_from(length).map_err(|_| PackedError::Damaged);
            }
        }
        Err(PackedError::Damaged)
    }

    fn text(&mut self) -> Result<&'a str, PackedError> {
        let length = self.length()?;
        std::str::from_utf8(self.take(length)?).map_err(|_| PackedError::Damaged)
    }

    fn head(&mut self) -> Result<(u8, Uid), PackedError> {
        let format = self.u8()?;
        if format != FORMAT {
            return Err(PackedError::Format(format));
        }
        let flags = self.u8()?;
        if flags & !(SETTLED | HEALTHY | OWED | UUID | CHILD | UNSURE) != 0 {
            return Err(PackedError::Damaged);
        }
        let uid = if flags & UUID == 0 {
            self.text()?.into()
        } else {
            uuid_text(u128::from_be_bytes(self.array()?))
        };
        Ok((flags, uid))
    }

    /// The rows, which are the last part.
    fn rows(&mut self) -> Result<Vec<ResourceRow>, PackedError> {
        let count = self.length()?;
        if count.checked_mul(ROW) != Some(self.0.len()) {
            return Err(PackedError::Damaged);
        }
        let mut rows = Vec::with_capacity(count);
        for _ in 0..count {
            let (id, decision, content) = (EntityId(self.u64()?), self.digest()?, self.digest()?);
            let (counter, flags) = (self.u32()?, self.u8()?);
            if flags & !(ROW_OWED | ROW_GONE | ROW_UNSURE) != 0 {
                return Err(PackedError::Damaged);
            }
            let has = |flag| flags & flag != 0;
            let (owed, gone, unsure) = (has(ROW_OWED), has(ROW_GONE), has(ROW_UNSURE));
            rows.push(ResourceRow { id, decision, content, counter, owed, gone, unsure });
        }
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
