//! The packed form of a record: what the ledger keeps in memory and writes to its file.
//!
//! A record of ten resources takes about 370 bytes, and 300 where all of them are in one state.
//! Integers, numbers and texts are written as in [`super::binary`].
//!
//! ```text
//! format u8 | flags u8 | uid 16, or length + text | version number
//! | spec, status, operation, metadata u64 each (when settled) | operation u64 | content u64 | counter number
//! | reported u32 | floor number | unanswered (when something is)
//! | repoURL, server (when it is not the cluster's own), parent's namespace and name (when a child): length + text each
//! | number of rows | rows: counter and flags number, id u64, decision u64 (when it is not that of the row before),
//! content u64, unanswered (when something is)
//! counter and flags: 32 * counter + flags; a counter has 56 bits, those of its era included
//! unanswered: content u64, skipped u32
//! ```
//! Format 3 had no floor, and rows of resources that had left, which had a flag: they are forgotten as they are read.
//! Format 2 had a version of 8 bytes, counters of 4, a row's counter after its content and its flags in a byte of their own,
//! each row's decision, and every server's text.
//! Format 1 had no `reported` either, and knew nothing that is unsure or unanswered. All are still read.
//!
//! Decoding takes any bytes: it answers [`PackedError`] and allocates no more than the bytes could fill.

use pipeline_core::{
    Digest, EntityId, ParentRef, Record, ResourceRow, Sections, Stub, Uid, Unanswered, Version, uid,
};

use super::binary::{PackedError, Reader, put_length, put_number, put_text};

/// The format that is written.
pub(super) const FORMAT: u8 = 4;
/// Before the floor.
const THIRD: u8 = 3;
/// Before counters took as many bytes as they need.
const SECOND: u8 = 2;
/// Before `reported` and what is unsure.
const FIRST: u8 = 1;

/// Bytes of a row, at least; an earlier format took more.
const ROW: usize = 17;
/// The cluster that Argo CD runs in, as nearly all applications name their destination.
const HERE: &str = "https://kubernetes.default.svc";

const SETTLED: u8 = 1;
const HEALTHY: u8 = 1 << 1;
const OWED: u8 = 1 << 2;
const UUID: u8 = 1 << 3;
const CHILD: u8 = 1 << 4;
const UNSURE: u8 = 1 << 5;
const SENT: u8 = 1 << 6;
const AT_HOME: u8 = 1 << 7;

const ROW_OWED: u8 = 1;
/// Of earlier formats.
const ROW_GONE: u8 = 1 << 1;
const ROW_UNSURE: u8 = 1 << 2;
const ROW_SENT: u8 = 1 << 3;
const ROW_AS_BEFORE: u8 = 1 << 4;
const ROW_BITS: u32 = 5;

/// Packs a record. Rows are written in the order of their ids, each id once.
pub(super) fn encode(record: &Record) -> Box<[u8]> {
    let mut out = Vec::with_capacity(128 + record.resources.len() * (ROW + size_of::<Digest>()));
    let uuid = uid::to_uuid(&record.uid);
    let mut flags = 0;
    for (flag, set) in [
        (SETTLED, record.sections.is_some()),
        (HEALTHY, record.healthy),
        (OWED, record.owed),
        (UUID, uuid.is_some()),
        (CHILD, record.stub.parent.is_some()),
        (UNSURE, record.unsure),
        (SENT, record.unanswered != Unanswered::default()),
        (AT_HOME, record.stub.server == HERE),
    ] {
        flags |= if set { flag } else { 0 };
    }
    out.extend([FORMAT, flags]);
    match uuid {
        Some(bytes) => out.extend(bytes),
        None => put_text(&mut out, &record.uid),
    }
    put_number(&mut out, record.version.0);
    if let Some(sections) = &record.sections {
        for digest in [sections.spec, sections.status, sections.operation, sections.metadata] {
            out.extend(digest.0.to_le_bytes());
        }
    }
    out.extend(record.fact.0.to_le_bytes());
    out.extend(record.content.0.to_le_bytes());
    put_number(&mut out, record.counter);
    out.extend(record.reported.to_le_bytes());
    put_number(&mut out, record.floor);
    if record.unanswered != Unanswered::default() {
        put_unanswered(&mut out, record.unanswered);
    }
    put_text(&mut out, &record.stub.repo_url);
    if record.stub.server != HERE {
        put_text(&mut out, &record.stub.server);
    }
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
    let (format, flags, uid, version) = from.head()?;
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
    let counter = from.counter(format)?;
    let reported = if format == FIRST { 0 } else { from.u32()? };
    let floor = if format < FORMAT { 0 } else { from.counter(format)? };
    let unanswered = from.unanswered(flags & SENT != 0)?;
    let repo_url = from.text()?.to_owned();
    let server = if flags & AT_HOME == 0 { from.text()? } else { HERE }.to_owned();
    if format >= THIRD && flags & AT_HOME == 0 && server == HERE {
        return Err(PackedError::Damaged);
    }
    let parent = if flags & CHILD == 0 {
        None
    } else {
        Some(ParentRef { namespace: from.text()?.to_owned(), name: from.text()?.to_owned() })
    };
    let rows = from.rows(format)?;
    let left: Vec<EntityId> = rows.iter().filter(|(_, left)| *left).map(|(row, _)| row.id).collect();
    let mut record = Record {
        uid,
        version,
        sections,
        healthy: flags & HEALTHY != 0,
        fact: operation,
        content,
        counter,
        owed: flags & OWED != 0,
        unsure: flags & UNSURE != 0,
        unanswered,
        reported,
        floor,
        resources: rows.into_iter().map(|(row, _)| row).collect(),
        stub: Stub { repo_url, server, parent },
    };
    record.forget(|row| left.binary_search(&row.id).is_ok());
    Ok(record)
}

/// The packed form of a record without its resources, as [`Record::without_resources`] says.
pub(super) fn without_resources(bytes: &[u8]) -> Result<Box<[u8]>, PackedError> {
    Ok(encode(&decode(bytes)?.without_resources()))
}

/// Uid and version of a packed record, without unpacking the rest.
pub(super) fn life(bytes: &[u8]) -> Result<(Uid, Version), PackedError> {
    let (_, _, uid, version) = Reader(bytes).head()?;
    Ok((uid, version))
}

fn put_rows(out: &mut Vec<u8>, rows: &[ResourceRow]) {
    put_length(out, rows.len());
    let mut before = None;
    for row in rows {
        let sent = row.unanswered != Unanswered::default();
        let as_before = before.replace(row.decision) == Some(row.decision);
        let flags =
            [(ROW_OWED, row.owed), (ROW_UNSURE, row.unsure), (ROW_SENT, sent), (ROW_AS_BEFORE, as_before)];
        let flags = flags.iter().filter(|(_, set)| *set).fold(0, |sum, (flag, _)| sum | flag);
        put_number(out, row.counter << ROW_BITS | u64::from(flags));
        out.extend(row.id.0.to_le_bytes());
        if !as_before {
            out.extend(row.decision.0.to_le_bytes());
        }
        out.extend(row.content.0.to_le_bytes());
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

    fn counter(&mut self, format: u8) -> Result<u64, PackedError> {
        if format < THIRD { Ok(self.u32()?.into()) } else { self.number() }
    }

    /// A row of an earlier format, without what is unanswered; and its flags.
    fn earlier_row(&mut self, format: u8) -> Result<(ResourceRow, u8), PackedError> {
        let known =
            if format == FIRST { ROW_OWED | ROW_GONE } else { ROW_OWED | ROW_GONE | ROW_UNSURE | ROW_SENT };
        let (id, decision, content) = (EntityId(self.u64()?), self.digest()?, self.digest()?);
        let (counter, flags) = (self.counter(format)?, self.u8()?);
        if flags & !known != 0 {
            return Err(PackedError::Damaged);
        }
        Ok((ResourceRow { id, decision, content, counter, ..ResourceRow::default() }, flags))
    }

    /// A row that follows one with the decision `before`, without what is unanswered; and its flags.
    fn row(&mut self, before: Option<Digest>) -> Result<(ResourceRow, u8), PackedError> {
        let both = self.number()?;
        let counter = both >> ROW_BITS;
        let flags = (both & ((1 << ROW_BITS) - 1)) as u8;
        let id = EntityId(self.u64()?);
        let decision = if flags & ROW_AS_BEFORE != 0 {
            before.ok_or(PackedError::Damaged)?
        } else {
            // Written out it would be another spelling of the same.
            Some(self.digest()?).filter(|decision| Some(*decision) != before).ok_or(PackedError::Damaged)?
        };
        let content = self.digest()?;
        Ok((ResourceRow { id, decision, content, counter, ..ResourceRow::default() }, flags))
    }

    /// Format, flags, uid and version.
    fn head(&mut self) -> Result<(u8, u8, Uid, Version), PackedError> {
        let format = self.u8()?;
        let newer = match format {
            FIRST => 0,
            SECOND => UNSURE | SENT,
            THIRD | FORMAT => UNSURE | SENT | AT_HOME,
            _ => return Err(PackedError::Format(format)),
        };
        let flags = self.u8()?;
        if flags & !(SETTLED | HEALTHY | OWED | UUID | CHILD | newer) != 0 {
            return Err(PackedError::Damaged);
        }
        let uid = if flags & UUID == 0 { self.text()?.into() } else { uid::of_uuid(self.array()?) };
        let version = Version(if format < THIRD { self.u64()? } else { self.number()? });
        Ok((format, flags, uid, version))
    }

    /// The rows, which are the last part; and of each whether its resource had left, of which earlier formats told.
    fn rows(&mut self, format: u8) -> Result<Vec<(ResourceRow, bool)>, PackedError> {
        let count = self.length()?;
        // A count that the bytes cannot hold allocates nothing.
        if count.checked_mul(ROW).is_none_or(|least| least > self.0.len()) {
            return Err(PackedError::Damaged);
        }
        let mut rows: Vec<(ResourceRow, bool)> = Vec::with_capacity(count);
        for _ in 0..count {
            let before = rows.last().map(|(row, _)| row.decision);
            let (row, flags) = if format < THIRD { self.earlier_row(format)? } else { self.row(before)? };
            let has = |flag| flags & flag != 0;
            let (owed, left, unsure) = (has(ROW_OWED), has(ROW_GONE), has(ROW_UNSURE));
            if left && format == FORMAT {
                return Err(PackedError::Damaged);
            }
            let unanswered = self.unanswered(has(ROW_SENT))?;
            rows.push((ResourceRow { owed, unsure, unanswered, ..row }, left));
        }
        self.end()?;
        // Rows are found by bisection: an order that is not theirs would hide some of them.
        if rows.is_sorted_by(|(a, _), (b, _)| a.id < b.id) { Ok(rows) } else { Err(PackedError::Damaged) }
    }
}

#[cfg(test)]
#[path = "packed_tests.rs"]
pub(super) mod tests;
