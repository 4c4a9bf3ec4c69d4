//! What is done to the bytes of visitors between client and server.

use super::carrier::Carrier;
use super::cipher::Encrypted;
use super::snappy::Compressed;
use crate::session::Io;

/// What a client of the frp family asks for. Neither protects anything: everybody knows the key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Packing {
    /// The family's `use_encryption`.
    pub encryption: bool,
    /// The family's `use_compression`.
    pub compression: bool,
}

impl Packing {
    /// Wraps a work connection so that the bytes read from it and written to it are those of a visitor.
    pub(super) fn unpacked(self, work: Carrier) -> Box<dyn Io> {
        match (self.encryption, self.compression) {
            (false, false) => Box::new(work),
            (true, false) => Box::new(Encrypted::new(work)),
            (false, true) => Box::new(Compressed::new(work)),
            (true, true) => Box::new(Compressed::new(Encrypted::new(work))),
        }
    }
}
