//! The bytes of the file of send intents: one frame after the other.
//!
//! ```text
//! frame:  mark 4 | length u32 | checksum u64 | that many bytes
//! first:  the owner: the ledger's id and the sink
//! second: the number of the last commit that is known to be durable, u64
//! others: intents
//! ```
//! The checksum is taken over the ledger's id and the sink too, so that an intent of another ledger does not pass. What
//! is no frame is skipped up to the next one: a torn end is what a killed process leaves, anything else is damage.

use serde::{Deserialize, Serialize};

use super::intents::{Intent, Intents};
use super::stored::{checksum, decode, encode};

const MARK: [u8; 4] = [0xf1, 0x19, 0x47, 0x0a];
/// No intent is longer: a key, a uid and a stub.
const LONGEST: usize = 1 << 20;

/// Whose intents they are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Owner {
    pub(super) id: String,
    pub(super) sink: String,
}

/// What was found in a log.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// In order of their numbers.
    pub(super) intents: Vec<Intent>,
    /// The last commit that it knows of; 0 when it does not say.
    pub(super) covered: u64,
    /// It is another ledger's, or another sink's.
    pub(super) foreign: bool,
    /// Something in it was written and cannot be read any more.
    pub(super) damaged: bool,
    /// Nothing needs to be taken away before more is written.
    pub(super) whole: bool,
}

impl Owner {
    /// The first two frames; as long for any number.
    pub(super) fn head(&self, covered: u64) -> Vec<u8> {
        let mut framed = Vec::new();
        // Read by whoever finds the log, and so under no owner's name.
        frame(&mut framed, "", &encode(self));
        frame(&mut framed, &self.name(), &covered.to_le_bytes());
        framed
    }

    /// A log that holds `intents`.
    pub(super) fn log(&self, covered: u64, intents: &Intents) -> Vec<u8> {
        let mut bytes = self.head(covered);
        intents.in_order().into_iter().for_each(|intent| self.write(intent, &mut bytes));
        bytes
    }

    /// Appends one intent to `out`.
    pub(super) fn write(&self, intent: &Intent, out: &mut Vec<u8>) {
        frame(out, &self.name(), &encode(intent));
    }

    /// Reads a whole log; takes any bytes.
    pub(super) fn read(&self, log: &[u8]) -> Found {
        let name = self.name();
        let mut found = Found::default();
        let (mut rest, mut skipped) = (log, false);
        let head = framed(log, "");
        if let Some((head, after)) = head {
            if decode::<Self>(head).as_ref() != Ok(self) {
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
            match framed(rest, &name).and_then(|(bytes, after)| Some((decode(bytes).ok()?, after))) {
                Some((intent, after)) => {
                    // Something that cannot be read stands before something that can: no torn end.
                    found.damaged |= skipped || head.is_none();
                    found.whole &= !skipped;
                    skipped = false;
                    found.intents.push(intent);
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
        found.intents.sort_by_key(|intent| intent.number);
        found
    }

    fn name(&self) -> String {
        format!("{} {}", self.id, self.sink)
    }
}

fn frame(out: &mut Vec<u8>, name: &str, bytes: &[u8]) {
    out.extend(MARK);
    // No intent comes near four gigabytes; one that did would be cut off by its checksum.
    out.extend(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend(checksum(name, bytes).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// The bytes of the frame in front, and what follows it.
fn framed<'a>(log: &'a [u8], name: &str) -> Option<(&'a [u8], &'a [u8])> {
    let rest = log.strip_prefix(&MARK)?;
    let (length, rest) = rest.split_first_chunk()?;
    let (sum, rest) = rest.split_first_chunk()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok().filter(|length| *length <= LONGEST)?;
    let (bytes, after) = rest.split_at_checked(length)?;
    (checksum(name, bytes) == u64::from_le_bytes(*sum)).then_some((bytes, after))
}

#[cfg(test)]
pub(super) mod tests;
