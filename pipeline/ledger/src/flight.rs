//! The form of the flight file: notes of reports that are on their way, one frame after the other.
//!
//! ```text
//! frame:  mark 4 | length u32 | checksum u64 | that many bytes
//! first:  format u8 | the ledger's id | the sink
//! second: the number of the last commit that is known to be durable u64 (of a file of an earlier version: none)
//! others: number u64 | flags u8 | key | uid | version u64 | entity | counter's lower u32 | content u64 | decision u64
//!         | operation u64 | unanswered content u64, skipped u32
//!         | repoURL, server, parent's namespace and name (when a child) (of a first report with a stub)
//!         | ends that were told: number | each: digest u64 (when there are any)
//!         | counter's upper u32 (when it is not 0)
//! ```
//! The checksum is taken over the ledger's id and the sink too, so that a note of another ledger does not pass. What
//! is no frame is skipped up to the next one: a torn end is what a killed process leaves, anything else is damage.

use std::collections::BTreeMap;

use pipeline_core::{Digest, Entity, Key, ParentRef, Sent, Stub, Unanswered, Version};

use super::binary::{PackedError, Reader, checksum, put_length, put_text};
use super::journal::put_entity;

const FORMAT: u8 = 1;
const MARK: [u8; 4] = [0xf1, 0x19, 0x47, 0x0a];
/// No note is longer: a key, a uid and a stub.
const LONGEST: usize = 1 << 20;

const ENDS: u8 = 1;
const FIRST: u8 = 1 << 1;
const OWED: u8 = 1 << 2;
const STUB: u8 = 1 << 3;
const CHILD: u8 = 1 << 4;
// 1 << 5 is of an earlier version, and says nothing any more.
const TOLD: u8 = 1 << 6;
const UPPER: u8 = 1 << 7;

/// A report that is on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Note {
    /// Counts the ledger's notes and commits: a commit covers the notes that have lower numbers.
    pub(super) number: u64,
    /// Whose report.
    pub(super) key: Key,
    /// What was acknowledged before it.
    pub(super) sent: Sent,
}

/// The notes that are needed, at most one of an entity: bounded by what is reported.
#[derive(Debug, Default)]
pub(super) struct Notes {
    by_entity: BTreeMap<(Key, Entity), Note>,
}

/// Whose notes they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) id: String,
    pub(super) sink: String,
}

/// What was found in a flight file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// In order of their numbers.
    pub(super) notes: Vec<Note>,
    /// The last commit that it knows of; 0 when it does not say.
    pub(super) covered: u64,
    /// It is another ledger's, or another sink's.
    pub(super) foreign: bool,
    /// Something in it was written and cannot be read any more.
    pub(super) damaged: bool,
    /// Nothing needs to be taken away before more is written.
    pub(super) whole: bool,
}

impl Notes {
    /// Takes a note in. An earlier one of the same entity is not needed beside it.
    pub(super) fn add(&mut self, mut note: Note) {
        let place = (note.key.clone(), note.sent.entity);
        if let Some(earlier) = self.by_entity.remove(&place) {
            note.sent.follows(earlier.sent);
        }
        self.by_entity.insert(place, note);
    }

    /// Forgets the notes up to `number`: the ledger's file holds what they say. Returns whether there were any.
    pub(super) fn cover(&mut self, number: u64) -> bool {
        let before = self.by_entity.len();
        self.by_entity.retain(|_, note| note.number > number);
        self.by_entity.len() < before
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_entity.is_empty()
    }

    /// In order of their numbers.
    pub(super) fn in_order(&self) -> Vec<&Note> {
        let mut notes: Vec<&Note> = self.by_entity.values().collect();
        notes.sort_unstable_by_key(|note| note.number);
        notes
    }
}

impl Owner {
    /// The first two frames of a file; as long for any number.
    pub(super) fn head(&self, covered: u64) -> Vec<u8> {
        let mut out = vec![FORMAT];
        put_text(&mut out, &self.id);
        put_text(&mut out, &self.sink);
        let mut framed = Vec::new();
        // Read by whoever finds the file, and so under no owner's name.
        frame(&mut framed, "", &out);
        frame(&mut framed, &self.name(), &covered.to_le_bytes());
        framed
    }

    /// A file, or what stands in its place, that holds `notes` and knows of no commit.
    pub(super) fn file(&self, notes: &Notes) -> Vec<u8> {
        let mut bytes = self.head(0);
        notes.in_order().into_iter().for_each(|note| self.write(note, &mut bytes));
        bytes
    }

    /// Appends one note to `out`.
    pub(super) fn write(&self, note: &Note, out: &mut Vec<u8>) {
        let sent = &note.sent;
        let parent = sent.stub.as_ref().and_then(|stub| stub.parent.as_ref());
        let (upper, lower) = ((sent.counter >> 32) as u32, sent.counter as u32);
        let mut bytes = note.number.to_le_bytes().to_vec();
        bytes.push(
            [
                (ENDS, sent.ends),
                (FIRST, sent.first),
                (OWED, sent.owed),
                (STUB, sent.stub.is_some()),
                (CHILD, parent.is_some()),
                (TOLD, !sent.told.is_empty()),
                (UPPER, upper > 0),
            ]
            .iter()
            .filter(|(_, set)| *set)
            .fold(0, |sum, (flag, _)| sum | flag),
        );
        put_text(&mut bytes, note.key.as_str());
        put_text(&mut bytes, &sent.uid);
        bytes.extend(sent.version.0.to_le_bytes());
        put_entity(&mut bytes, sent.entity);
        bytes.extend(lower.to_le_bytes());
        for digest in [sent.content, sent.decision, sent.fact, sent.unanswered.content] {
            bytes.extend(digest.0.to_le_bytes());
        }
        bytes.extend(sent.unanswered.skipped.to_le_bytes());
        if let Some(stub) = &sent.stub {
            put_text(&mut bytes, &stub.repo_url);
            put_text(&mut bytes, &stub.server);
        }
        if let Some(parent) = parent {
            put_text(&mut bytes, &parent.namespace);
            put_text(&mut bytes, &parent.name);
        }
        if !sent.told.is_empty() {
            put_length(&mut bytes, sent.told.len());
            bytes.extend(sent.told.iter().flat_map(|end| end.0.to_le_bytes()));
        }
        if upper > 0 {
            bytes.extend(upper.to_le_bytes());
        }
        frame(out, &self.name(), &bytes);
    }

    /// Reads a whole file; takes any bytes.
    pub(super) fn read(&self, file: &[u8]) -> Found {
        let name = self.name();
        let mut found = Found::default();
        let (mut rest, mut skipped) = (file, false);
        let head = framed(file, "");
        if let Some((head, after)) = head {
            if Self::named(head).as_ref() != Ok(self) {
                return Found { foreign: true, ..Found::default() };
            }
            rest = after;
        }
        let number = |bytes: &[u8]| bytes.try_into().ok().map(u64::from_le_bytes);
        if let Some((covered, after)) =
            framed(rest, &name).and_then(|(bytes, after)| Some((number(bytes)?, after)))
        {
            found.covered = covered;
            found.whole = head.is_some();
            rest = after;
        }
        while !rest.is_empty() {
            match framed(rest, &name).and_then(|(bytes, after)| Some((note(bytes).ok()?, after))) {
                Some((note, after)) => {
                    // Something that cannot be read stands before something that can: no torn end.
                    found.damaged |= skipped || head.is_none();
                    found.whole &= !skipped;
                    skipped = false;
                    found.notes.push(note);
                    rest = after;
                }
                None => {
                    skipped = true;
                    let ahead = rest.get(1..).unwrap_or_default();
                    let next = ahead.windows(MARK.len()).position(|window| window == MARK);
                    rest = next.and_then(|next| ahead.get(next..)).unwrap_or_default();
                }
            }
        }
        found.whole &= !skipped;
        found.notes.sort_by_key(|note| note.number);
        found
    }

    /// Whose a file is; `None` when its first frame does not say it.
    pub(super) fn of(file: &[u8]) -> Option<Self> {
        framed(file, "").and_then(|(head, _)| Self::named(head).ok())
    }

    fn named(head: &[u8]) -> Result<Self, PackedError> {
        let mut from = Reader(head);
        if from.u8()? != FORMAT {
            return Err(PackedError::Damaged);
        }
        let owner = Self { id: from.text()?.to_owned(), sink: from.text()?.to_owned() };
        from.end()?;
        Ok(owner)
    }

    fn name(&self) -> String {
        format!("{} {}", self.id, self.sink)
    }
}

fn frame(out: &mut Vec<u8>, name: &str, bytes: &[u8]) {
    out.extend(MARK);
    // No note comes near four gigabytes; one that did would be cut off by its checksum.
    out.extend(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend(checksum(name, bytes).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// The bytes of the frame in front, and what follows it.
fn framed<'a>(file: &'a [u8], name: &str) -> Option<(&'a [u8], &'a [u8])> {
    let mut from = Reader(file);
    if from.array::<4>().ok()? != MARK {
        return None;
    }
    let length = usize::try_from(from.u32().ok()?).ok().filter(|length| *length <= LONGEST)?;
    let sum = from.u64().ok()?;
    let bytes = from.take(length).ok()?;
    (checksum(name, bytes) == sum).then_some((bytes, from.0))
}

fn note(bytes: &[u8]) -> Result<Note, PackedError> {
    let mut from = Reader(bytes);
    let (number, flags) = (from.u64()?, from.u8()?);
    let key = Key::parse(from.text()?).map_err(|_| PackedError::Damaged)?;
    let (uid, version, entity) = (from.text()?.into(), Version(from.u64()?), from.entity()?);
    let (lower, content, decision) = (from.u32()?, Digest(from.u64()?), Digest(from.u64()?));
    let operation = Digest(from.u64()?);
    let unanswered = Unanswered { content: Digest(from.u64()?), skipped: from.u32()? };
    let mut stub = None;
    if flags & STUB != 0 {
        let (repo_url, server) = (from.text()?.to_owned(), from.text()?.to_owned());
        stub = Some(Stub { repo_url, server, parent: None });
    }
    if let Some(stub) = stub.as_mut().filter(|_| flags & CHILD != 0) {
        let (namespace, name) = (from.text()?.to_owned(), from.text()?.to_owned());
        stub.parent = Some(ParentRef { namespace, name });
    }
    let mut told = Vec::new();
    if flags & TOLD != 0 {
        for _ in 0..from.length()? {
            told.push(Digest(from.u64()?));
        }
    }
    let upper = if flags & UPPER == 0 { 0 } else { from.u32()? };
    let counter = u64::from(upper) << 32 | u64::from(lower);
    from.end()?;
    let (ends, first, owed) = (flags & ENDS != 0, flags & FIRST != 0, flags & OWED != 0);
    let sent = Sent {
        uid,
        version,
        entity,
        ends,
        first,
        counter,
        unanswered,
        content,
        decision,
        owed,
        fact: operation,
        told,
        stub,
    };
    Ok(Note { number, key, sent })
}

#[cfg(test)]
#[path = "flight_tests.rs"]
pub(super) mod tests;
