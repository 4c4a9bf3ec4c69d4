//! Where texts that anybody may have written stand in another one.
//!
//! takes: the texts, and the one they are looked for in - gives: the places - fails: where there are more than are counted

use std::cmp::Reverse;

use aho_corasick::{AhoCorasick, AhoCorasickKind, Match};

/// Places that are counted, of those that lie within another, too.
const MOST: usize = 100_000;

/// Texts that are looked for. Work is bounded by their length and that of the text, whatever they are: no DFA is built, which takes
/// time that grows with the square of a text that repeats itself, and nothing is read twice for a longer one that is not there.
pub(crate) struct Occurrences(AhoCorasick);

impl Occurrences {
    /// Of these; nothing when they are too many.
    pub(crate) fn of<T: AsRef<[u8]>>(texts: impl IntoIterator<Item = T>) -> Option<Self> {
        AhoCorasick::builder().kind(Some(AhoCorasickKind::ContiguousNFA)).build(texts).ok().map(Self)
    }

    /// Where they stand: of those that overlap the first, and of those that begin with it the longest. Nothing when they stand in more
    /// places than are counted.
    pub(crate) fn within(&self, text: &str) -> Option<Vec<Match>> {
        let mut all: Vec<Match> = self.0.find_overlapping_iter(text).take(MOST + 1).collect();
        if all.len() > MOST {
            return None;
        }
        all.sort_unstable_by_key(|hit| (hit.start(), Reverse(hit.end())));
        let mut end = 0;
        all.retain(|hit| {
            let is_free = hit.start() >= end;
            if is_free {
                end = hit.end();
            }
            is_free
        });
        Some(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(texts: &[&str], text: &str) -> Option<Vec<(usize, usize)>> {
        let found = Occurrences::of(texts).unwrap().within(text)?;
        Some(found.iter().map(|hit| (hit.pattern().as_usize(), hit.start())).collect())
    }

    #[test]
    fn of_those_that_overlap_the_first_and_the_longest_is_found() {
        assert_eq!(
            within(&["abc", "ab", "bcd", "d"], "abcd ab bcd"),
            Some(vec![(0, 0), (3, 3), (1, 5), (2, 8)])
        );
        assert_eq!(within(&["x"], "abc"), Some(Vec::new()));
    }

    #[test]
    fn what_stands_in_too_many_places_is_not_told() {
        assert_eq!(within(&["a"], &"a".repeat(MOST)).map(|all| all.len()), Some(MOST));
        assert_eq!(within(&["a"], &"a".repeat(MOST + 1)), None);
    }

    #[test]
    fn texts_that_repeat_themselves_are_looked_for_without_a_dfa() {
        let found = Occurrences::of(["password: ]".repeat(30_000)]).unwrap();
        assert_eq!(found.0.kind(), AhoCorasickKind::ContiguousNFA);
    }
}
