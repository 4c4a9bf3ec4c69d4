//! Compresses bodies with gzip, and keeps what that takes for the next one: a compressor is larger than most bodies.

use std::io;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use flate2::{Compress, Compression, FlushCompress, Status};

/// Compressors that are kept while nothing is compressed, at most: one for each core. More are in use at once only for a
/// moment.
const KEPT: usize = 4;
/// 32 KiB of what came before are looked through, as every receiver expects.
const WINDOW: u8 = 15;

/// Compresses at one level.
pub(crate) struct Zip {
    level: Compression,
    idle: Mutex<Vec<Compress>>,
    /// How many are kept.
    kept: usize,
}

impl Zip {
    /// `level`: 0 (none) to 9 (smallest).
    pub(crate) fn new(level: u32) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self { level: Compression::new(level), idle: Mutex::default(), kept: cores.min(KEPT) }
    }

    /// What the parts make together, gzipped.
    pub(crate) fn gzipped(&self, parts: &[Bytes]) -> io::Result<Vec<u8>> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut compress = idle.unwrap_or_else(|| Compress::new_gzip(self.level, WINDOW));
        let size: usize = parts.iter().map(Bytes::len).sum();
        let mut out = Vec::with_capacity(size / 3 + 128);
        for part in parts {
            let mut rest: &[u8] = part;
            while !rest.is_empty() {
                let before = compress.total_in();
                compress.compress_vec(rest, &mut out, FlushCompress::None)?;
                let taken = usize::try_from(compress.total_in() - before).unwrap_or(usize::MAX);
                rest = rest.get(taken..).unwrap_or_default();
                grow(&mut out);
            }
        }
        while compress.compress_vec(&[], &mut out, FlushCompress::Finish)? != Status::StreamEnd {
            grow(&mut out);
        }
        compress.reset();
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < self.kept {
            idle.push(compress);
        }
        Ok(out)
    }
}

/// Makes room where there is little left: compressing stops where there is none.
fn grow(out: &mut Vec<u8>) {
    if out.capacity() - out.len() < 64 {
        out.reserve(out.len().max(1024));
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;
    use proptest::prelude::*;

    use super::*;

    fn unzipped(zipped: &[u8]) -> Vec<u8> {
        let mut text = Vec::new();
        GzDecoder::new(zipped).read_to_end(&mut text).unwrap();
        text
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn whatever_is_compressed_one_after_the_other_comes_back(
            level in 0..10_u32,
            bodies in prop::collection::vec(
                prop::collection::vec(prop::collection::vec(any::<u8>(), 0..5_000), 0..4), 1..4),
        ) {
            let zip = Zip::new(level);
            for body in bodies {
                let whole = body.concat();
                let parts: Vec<Bytes> = body.into_iter().map(Bytes::from).collect();
                prop_assert_eq!(unzipped(&zip.gzipped(&parts).unwrap()), whole);
            }
            prop_assert_eq!(zip.idle.lock().unwrap().len(), 1);
        }
    }

    #[test]
    fn a_long_text_is_shorter_and_comes_back() {
        let text = Bytes::from("a text that says the same again and again. ".repeat(50_000));
        let zip = Zip::new(1);
        let zipped = zip.gzipped(std::slice::from_ref(&text)).unwrap();
        assert!(zipped.len() < text.len() / 20, "{}", zipped.len());
        assert_eq!(unzipped(&zipped), text);
    }
}
