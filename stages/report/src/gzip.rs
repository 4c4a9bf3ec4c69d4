//! Compresses what is sent.

use std::io::{self, Write as _};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use flate2::write::ZlibEncoder;
use flate2::{Compress, Compression};

/// As many compressors stay idle at most.
const IDLE: usize = 4;
/// The window of gzip, as a power of two bytes.
const WINDOW: u8 = 15;

/// Writes gzip, with compressors that are used again: each takes a quarter of a megabyte, and taking that anew for each
/// report was 3 % of all that a process computes.
#[derive(Debug)]
pub(crate) struct Gzip {
    level: Compression,
    idle: Mutex<Vec<ZlibEncoder<Vec<u8>>>>,
}

impl Gzip {
    /// `level`: 0 (none) to 9 (smallest).
    pub(crate) fn new(level: u32) -> Self {
        Self { level: Compression::new(level), idle: Mutex::default() }
    }

    /// What the parts make together, gzipped.
    ///
    /// # Errors
    ///
    /// What the library fails with; its writer is memory.
    pub(crate) fn pack(&self, parts: &[Bytes]) -> io::Result<Vec<u8>> {
        let idle = self.idle().pop();
        // The library names its writer after what most have it write; what this one is given writes the head of gzip.
        let mut encoder = idle.unwrap_or_else(|| {
            ZlibEncoder::new_with_compress(Vec::new(), Compress::new_gzip(self.level, WINDOW))
        });
        parts.iter().try_for_each(|part| encoder.write_all(part))?;
        let packed = encoder.reset(Vec::new())?;
        let mut idle = self.idle();
        if idle.len() < IDLE {
            idle.push(encoder);
        }
        Ok(packed)
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<ZlibEncoder<Vec<u8>>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;

    use super::*;

    fn unpacked(packed: &[u8]) -> Vec<u8> {
        let mut text = Vec::new();
        GzDecoder::new(packed).read_to_end(&mut text).unwrap();
        text
    }

    #[test]
    fn a_compressor_that_is_used_again_writes_what_a_new_one_does() {
        let long: String = (0..40_000).map(|number| format!("{number:x}")).collect();
        let bodies: [&[Bytes]; 4] =
            [&[Bytes::from_static(b"{\"data\":"), Bytes::from(long)], &[], &[Bytes::from_static(b"a")], &[]];
        for level in [0, 1, 6, 9] {
            let gzip = Gzip::new(level);
            for body in bodies {
                let packed = gzip.pack(body).unwrap();
                assert_eq!(unpacked(&packed), body.concat());
                assert_eq!(packed, Gzip::new(level).pack(body).unwrap());
            }
            assert_eq!(gzip.idle().len(), 1);
        }
    }
}
