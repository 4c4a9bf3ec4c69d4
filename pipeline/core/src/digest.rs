//! Digests: what is remembered of an object instead of the object.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The first 64 bits of a SHA-256; zero means "nothing was ever acknowledged".
///
/// 64 bits keep the ledger at about 32 bytes a resource; two contents of one entity meet by chance once in
/// 2^64 changes, and nobody gains by making them meet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Digest(pub u64);

impl Digest {
    /// Nothing was acknowledged yet.
    pub const NONE: Self = Self(0);

    /// Digest of one piece of bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let mut hasher = Hasher::default();
        hasher.write(bytes);
        hasher.finish()
    }

    /// Whether nothing was ever acknowledged.
    #[must_use]
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }
}

/// Builds a [`Digest`] from several parts; each part is preceded by its length, so that parts cannot run
/// into each other.
#[derive(Debug, Clone, Default)]
pub struct Hasher {
    inner: Sha256,
}

impl Hasher {
    /// Adds one part.
    pub fn write(&mut self, part: &[u8]) {
        self.inner.update((part.len() as u64).to_be_bytes());
        self.inner.update(part);
    }

    /// The digest of all parts, never [`Digest::NONE`].
    #[must_use]
    pub fn finish(self) -> Digest {
        let full: [u8; 32] = self.inner.finalize().into();
        let first = full.first_chunk::<8>().map_or(0, |first| u64::from_be_bytes(*first));
        Digest(first.max(1))
    }

    /// The SHA-256 of all parts as 64 hexadecimal digits.
    #[must_use]
    pub fn hex(self) -> String {
        let full: [u8; 32] = self.inner.finalize().into();
        let mut text = String::with_capacity(2 * full.len());
        for word in full.as_chunks().0 {
            // Writing to a `String` cannot fail.
            let _ = write!(text, "{:016x}", u64::from_be_bytes(*word));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_run_into_each_other() {
        let of = |parts: &[&str]| {
            let mut hasher = Hasher::default();
            parts.iter().for_each(|part| hasher.write(part.as_bytes()));
            hasher.finish()
        };
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_eq!(of(&["ab", "c"]), of(&["ab", "c"]));
        assert_eq!(Digest::of(b"x"), of(&["x"]));
        assert!(!Digest::of(b"").is_none());
    }
}
