//! Looks through a pack while it arrives, before anything of it is kept in memory: how many objects it announces, and how
//! large each is.
//!
//! The library that indexes packs takes an announced size at its word; a pack of a megabyte may announce two gigabytes.

use flate2::{Decompress, FlushDecompress, Status};

/// Objects of one pack; each costs the index about a hundred bytes of memory.
const MOST_OBJECTS: u32 = 10_000_000;
/// Bytes of a size or an offset.
const LONGEST_NUMBER: usize = 10;

/// Why a pack is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It is none.
    Damaged(&'static str),
    /// It holds an object of this size.
    Large(u64),
}

/// Looks through one pack.
pub(super) struct Scan {
    limit: u64,
    state: State,
    left: u32,
    /// The size of the entry that is looked at.
    size: u64,
    /// Bytes of what is not whole yet: the head, or a number.
    held: Vec<u8>,
    inflate: Decompress,
    room: Box<[u8]>,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Head,
    Entry,
    /// Bytes of what the entry is a difference to.
    Base(usize),
    Offset,
    /// Bytes of content that must still come; the first of a difference say how large its result is.
    Content {
        is_delta: bool,
    },
    Trailer(usize),
    Done,
}

impl Scan {
    pub(super) fn new(limit: u64) -> Self {
        Self {
            limit,
            state: State::Head,
            left: 0,
            size: 0,
            held: Vec::new(),
            inflate: Decompress::new(true),
            room: vec![0; 32 * 1024].into_boxed_slice(),
        }
    }

    /// The whole pack was seen.
    pub(super) fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Looks at the next bytes.
    pub(super) fn feed(&mut self, mut bytes: &[u8]) -> Result<(), Refusal> {
        while !bytes.is_empty() {
            bytes = match self.state {
                State::Head => self.head(bytes)?,
                State::Entry => self.entry(bytes)?,
                State::Base(left) => {
                    let taken = left.min(bytes.len());
                    if left == taken {
                        self.begin(true);
                    } else {
                        self.state = State::Base(left - taken);
                    }
                    bytes.get(taken..).unwrap_or_default()
                }
                State::Offset => {
                    let (is_whole, rest) = self.number(bytes, "an offset is too long")?;
                    if is_whole {
                        self.begin(true);
                    }
                    rest
                }
                State::Content { is_delta } => self.content(bytes, is_delta)?,
                State::Trailer(left) => {
                    let taken = left.min(bytes.len());
                    self.state = if left == taken { State::Done } else { State::Trailer(left - taken) };
                    bytes.get(taken..).unwrap_or_default()
                }
                State::Done => return Err(Refusal::Damaged("there is more behind its end")),
            };
        }
        Ok(())
    }

    fn head<'b>(&mut self, bytes: &'b [u8]) -> Result<&'b [u8], Refusal> {
        let taken = (12 - self.held.len()).min(bytes.len());
        self.held.extend(bytes.iter().take(taken));
        if self.held.len() == 12 {
            if !self.held.starts_with(b"PACK\0\0\0\x02") {
                return Err(Refusal::Damaged("it is no pack of version 2"));
            }
            let count = self.held.iter().skip(8).fold(0, |sum: u32, byte| sum << 8 | u32::from(*byte));
            if count > MOST_OBJECTS {
                return Err(Refusal::Damaged("it announces more than 10,000,000 objects"));
            }
            self.left = count;
            self.next();
        }
        Ok(bytes.get(taken..).unwrap_or_default())
    }

    fn next(&mut self) {
        self.held.clear();
        self.state = if self.left == 0 { State::Trailer(20) } else { State::Entry };
    }

    /// A kind and a size: three bits of the one, and of the other four, then seven a byte.
    fn entry<'b>(&mut self, bytes: &'b [u8]) -> Result<&'b [u8], Refusal> {
        let (is_whole, rest) = self.number(bytes, "a size is too long")?;
        if is_whole {
            let first = self.held.first().copied().unwrap_or_default();
            self.size = self.read_size()?;
            self.left -= 1;
            self.held.clear();
            match first >> 4 & 7 {
                1..=4 => self.begin(false),
                6 => self.state = State::Offset,
                7 => self.state = State::Base(20),
                _ => return Err(Refusal::Damaged("an object is of no kind there is")),
            }
        }
        Ok(rest)
    }

    /// Keeps the bytes of a number, the last of which has no eighth bit; gives whether it is whole, and the bytes behind it.
    fn number<'b>(&mut self, bytes: &'b [u8], too_long: &'static str) -> Result<(bool, &'b [u8]), Refusal> {
        let end = bytes.iter().position(|byte| byte & 0x80 == 0);
        let (number, rest) = bytes.split_at(end.map_or(bytes.len(), |end| end + 1));
        if self.held.len() + number.len() > LONGEST_NUMBER {
            return Err(Refusal::Damaged(too_long));
        }
        self.held.extend(number);
        Ok((end.is_some(), rest))
    }

    fn read_size(&self) -> Result<u64, Refusal> {
        let mut size = u64::from(self.held.first().copied().unwrap_or_default() & 0x0f);
        let mut shift = 4;
        for byte in self.held.iter().skip(1) {
            size |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(u64::MAX);
            shift += 7;
        }
        if size > self.limit { Err(Refusal::Large(size)) } else { Ok(size) }
    }

    /// The content of an entry comes next.
    fn begin(&mut self, is_delta: bool) {
        self.held.clear();
        self.inflate.reset(true);
        self.state = State::Content { is_delta };
    }

    fn content<'b>(&mut self, bytes: &'b [u8], is_delta: bool) -> Result<&'b [u8], Refusal> {
        let (read, made) = (self.inflate.total_in(), self.inflate.total_out());
        let status = self
            .inflate
            .decompress(bytes, &mut self.room, FlushDecompress::None)
            .map_err(|_| Refusal::Damaged("an object is not compressed as it should be"))?;
        let taken = usize::try_from(self.inflate.total_in() - read).unwrap_or(usize::MAX);
        let new = usize::try_from(self.inflate.total_out() - made).unwrap_or(usize::MAX);
        if self.inflate.total_out() > self.size {
            return Err(Refusal::Damaged("an object is larger than it says"));
        }
        if is_delta && self.held.len() < 2 * LONGEST_NUMBER {
            let room = 2 * LONGEST_NUMBER - self.held.len();
            self.held.extend(self.room.iter().take(new.min(room)));
        }
        if status == Status::StreamEnd {
            if self.inflate.total_out() != self.size {
                return Err(Refusal::Damaged("an object is smaller than it says"));
            }
            if is_delta {
                self.result()?;
            }
            self.next();
        } else if taken == 0 && new == 0 {
            return Err(Refusal::Damaged("an object has no end"));
        }
        Ok(bytes.get(taken..).unwrap_or_default())
    }

    /// How large the base and the result of a difference are.
    fn result(&self) -> Result<(), Refusal> {
        let mut numbers = [0u64; 2];
        let mut bytes = self.held.iter();
        for number in &mut numbers {
            let mut shift = 0;
            loop {
                let byte = bytes.next().ok_or(Refusal::Damaged("a difference does not say of what"))?;
                *number |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(u64::MAX);
                shift += 7;
                if byte & 0x80 == 0 {
                    break;
                }
            }
        }
        match numbers.iter().max() {
            Some(size) if *size > self.limit => Err(Refusal::Large(*size)),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
