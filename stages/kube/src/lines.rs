//! Cuts a stream of chunks into lines, within a bound.

use bytes::{Buf as _, Bytes, BytesMut};

/// What came out of the stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// One line, without its end.
    Whole(Bytes),
    /// A line was longer than the bound and was thrown away up to its end.
    TooLong,
}

/// Collects chunks and hands out lines. Holds at most `limit` bytes and one chunk.
#[derive(Debug)]
pub(crate) struct Lines {
    buffer: BytesMut,
    searched: usize,
    skipping: bool,
    limit: usize,
}

impl Lines {
    pub(crate) fn new(limit: usize) -> Self {
        Self { buffer: BytesMut::new(), searched: 0, skipping: false, limit }
    }

    /// Adds what was received.
    pub(crate) fn push(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// The next line, or `None` when more has to be received first.
    pub(crate) fn next(&mut self) -> Option<Line> {
        let rest = self.buffer.get(self.searched..).unwrap_or_default();
        let Some(found) = memchr::memchr(b'\n', rest) else {
            self.searched = self.buffer.len();
            if self.skipping || self.buffer.len() > self.limit {
                self.skipping = true;
                self.buffer.clear();
                self.searched = 0;
            }
            return None;
        };
        let length = self.searched + found;
        let line = self.buffer.split_to(length).freeze();
        self.buffer.advance(1);
        self.searched = 0;
        if std::mem::take(&mut self.skipping) || line.len() > self.limit {
            return Some(Line::TooLong);
        }
        Some(Line::Whole(line))
    }

    /// Whether a line has begun that has not ended.
    pub(crate) fn unfinished(&self) -> bool {
        self.skipping || !self.buffer.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &'static str) -> Option<Line> {
        Some(Line::Whole(Bytes::from_static(text.as_bytes())))
    }

    #[test]
    fn lines_are_cut_wherever_chunks_end() {
        let mut lines = Lines::new(10);
        lines.push(b"on");
        assert_eq!(lines.next(), None);
        lines.push(b"e\ntwo\nth");
        assert_eq!((lines.next(), lines.next(), lines.next()), (whole("one"), whole("two"), None));
        assert!(lines.unfinished());
        lines.push(b"ree\n");
        assert_eq!((lines.next(), lines.next()), (whole("three"), None));
        assert!(!lines.unfinished());
    }

    #[test]
    fn a_line_over_the_bound_is_thrown_away_and_the_next_one_is_whole() {
        let mut lines = Lines::new(4);
        lines.push(b"12345");
        assert_eq!(lines.next(), None);
        assert_eq!(lines.buffer.len(), 0);
        lines.push(b"6789");
        assert_eq!(lines.next(), None);
        assert!(lines.unfinished());
        lines.push(b"0\nfour\n12345\nx\n");
        assert_eq!(lines.next(), Some(Line::TooLong));
        assert_eq!(lines.next(), whole("four"));
        assert_eq!(lines.next(), Some(Line::TooLong));
        assert_eq!((lines.next(), lines.next()), (whole("x"), None));
    }

    proptest::proptest! {
        #[test]
        fn where_chunks_end_does_not_matter(text in "[ab\n]{0,60}", cuts in proptest::collection::vec(1_usize..7, 0..30)) {
            let mut lines = Lines::new(5);
            let mut found = Vec::new();
            let mut rest = text.as_bytes();
            for cut in cuts.into_iter().chain([usize::MAX]) {
                let (chunk, after) = rest.split_at(cut.min(rest.len()));
                lines.push(chunk);
                found.extend(std::iter::from_fn(|| lines.next()));
                rest = after;
            }
            let mut expected: Vec<&str> = text.split('\n').collect();
            let unfinished = expected.pop().is_some_and(|last| !last.is_empty());
            let expected: Vec<_> = expected
                .into_iter()
                .map(|line| if line.len() > 5 { Line::TooLong } else { Line::Whole(Bytes::copy_from_slice(line.as_bytes())) })
                .collect();
            assert_eq!(found, expected);
            assert_eq!(lines.unfinished(), unfinished);
        }
    }
}
