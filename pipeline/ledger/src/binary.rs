//! Bytes of packed forms: written and read back, taking nothing on trust.
//!
//! All integers of a fixed size are little-endian; numbers and lengths are variable (seven bits a byte, lowest first),
//! and a text is its length and its bytes.

/// Bytes that are not what they should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum PackedError {
    /// Another version's format.
    #[error("a ledger record has format {0}, not {known}", known = super::packed::FORMAT)]
    Format(u8),
    /// The bytes end early, go on too long, or say what no record says.
    #[error("a ledger record is damaged")]
    Damaged,
    /// The checksum says that the bytes, or their key, are others than were written.
    #[error("a ledger record does not match its checksum")]
    Checksum,
}

const CHECKSUM: usize = 8;

/// What stands in the file: the packed form, then a checksum of its key and itself.
pub(super) fn seal(key: &str, packed: &[u8]) -> Vec<u8> {
    let mut sealed = Vec::with_capacity(packed.len() + CHECKSUM);
    sealed.extend_from_slice(packed);
    sealed.extend(checksum(key, packed).to_le_bytes());
    sealed
}

/// The packed form of what stands in the file; whether it can be unpacked is not said by this.
pub(super) fn unseal<'a>(key: &str, sealed: &'a [u8]) -> Result<&'a [u8], PackedError> {
    let (packed, sum) = sealed.split_last_chunk::<CHECKSUM>().ok_or(PackedError::Damaged)?;
    if u64::from_le_bytes(*sum) == checksum(key, packed) { Ok(packed) } else { Err(PackedError::Checksum) }
}

/// Over the key too, so that what is found under another key does not pass.
pub(super) fn checksum(key: &str, packed: &[u8]) -> u64 {
    use std::hash::Hasher as _;
    let mut hasher = seahash::SeaHasher::new();
    hasher.write(key.as_bytes());
    hasher.write(packed);
    hasher.write_u64(key.len() as u64);
    hasher.finish()
}

pub(super) fn put_length(out: &mut Vec<u8>, length: usize) {
    put_number(out, length as u64);
}

pub(super) fn put_number(out: &mut Vec<u8>, number: u64) {
    let mut rest = number;
    while rest >= 0x80 {
        out.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    out.push((rest & 0x7f) as u8);
}

pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    put_length(out, text.len());
    out.extend_from_slice(text.as_bytes());
}

/// Reads from the front; what is left is in it.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8], PackedError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(PackedError::Damaged)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], PackedError> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or(PackedError::Damaged)?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(super) fn u8(&mut self) -> Result<u8, PackedError> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    pub(super) fn u32(&mut self) -> Result<u32, PackedError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(super) fn u64(&mut self) -> Result<u64, PackedError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(super) fn length(&mut self) -> Result<usize, PackedError> {
        usize::try_from(self.number()?).map_err(|_| PackedError::Damaged)
    }

    /// A number that takes more bytes than it needs, or more bits than there are, was not written here.
    pub(super) fn number(&mut self) -> Result<u64, PackedError> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if (bits << shift) >> shift != bits || (byte == 0 && shift > 0) {
                return Err(PackedError::Damaged);
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(PackedError::Damaged)
    }

    pub(super) fn text(&mut self) -> Result<&'a str, PackedError> {
        let length = self.length()?;
        std::str::from_utf8(self.take(length)?).map_err(|_| PackedError::Damaged)
    }

    /// Nothing may be left.
    pub(super) fn end(&self) -> Result<(), PackedError> {
        if self.0.is_empty() { Ok(()) } else { Err(PackedError::Damaged) }
    }
}
