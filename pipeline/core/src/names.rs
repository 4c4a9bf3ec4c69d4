//! Names in little room: 128 bits of them, under a key of this process.

use std::hash::{BuildHasher as _, Hash, RandomState};

/// Makes names short. Each value has a key of its own: what two of them say of a name is not to be compared.
#[derive(Debug, Default)]
pub struct Names([RandomState; 2]);

/// A name, in short.
pub type Short = [u64; 2];

impl Names {
    /// The short form of a name.
    #[must_use]
    pub fn of(&self, name: &impl Hash) -> Short {
        self.0.each_ref().map(|key| key.hash_one(name))
    }
}
