//! Command lines in text, by the programs that take secrets as arguments.

use std::ops::Range;

use super::super::programs::{Arguments, Words};
use super::super::prose;
use super::super::scan::Found;
use super::super::{DIGITS, PREFIX};
use super::{LINE, Scan, is_quote};

impl Scan<'_> {
    /// Arguments of programs that take secrets under names that do not say so. None is looked for in a run that goes whole.
    pub(super) fn commands(
        &self,
        marks: &[usize],
        whole: &[Range<usize>],
        digests: &[usize],
        found: &mut Vec<Found>,
    ) {
        // A run in which something was redacted before may stay, and a command may go on behind one that ends within a line.
        let certain = |run: &&Range<usize>| {
            let next = digests.partition_point(|at| *at + PREFIX.len() + DIGITS <= run.start);
            digests.get(next).is_none_or(|at| *at >= run.end)
                && self.line_end(run.end) == run.end
                && self.before(run.end) != Some(b'\\')
        };
        let mut whole = whole.iter().filter(certain).peekable();
        let mut done = 0;
        for at in marks {
            while let Some(run) = whole.next_if(|run| run.start <= *at) {
                done = done.max(run.end);
            }
            if *at < done {
                continue;
            }
            let head = self.bytes.get(done..*at).unwrap_or_default();
            let start = at
                - head
                    .iter()
                    .rev()
                    .take_while(|byte| !byte.is_ascii_whitespace() && !is_quote(**byte) && **byte != b'(')
                    .count();
            // To the end of the line; one that ends in a backslash goes on.
            let mut end = self.line_end(*at);
            while self.before(end) == Some(b'\\') && end < self.bytes.len() {
                end = self.line_end(end + 1);
            }
            // What stands in backquotes is a command, and ends with them.
            let quoted = self.before(start) == Some(b'`');
            if quoted {
                end = end.min(self.within(start, LINE, |byte| byte == b'`'));
            }
            done = end;
            let mut words = Words::new(self.text, start..end);
            let mut arguments = Arguments::default();
            let sentence = !quoted && prose::is_sentence(self.line_around(*at));
            let mut flag = false;
            while let Some((place, word)) = words.next(arguments.waits()) {
                if matches!(word, "|" | "||" | "&&" | ";" | "&") {
                    arguments = Arguments::default();
                    continue;
                }
                let trimmed = word.trim_end_matches(';');
                let argument = arguments.argument(trimmed);
                let told = sentence && !flag && trimmed.bytes().all(|byte| byte.is_ascii_lowercase());
                flag = trimmed.starts_with('-');
                if let Some(range) = argument.filter(|_| !told) {
                    found.push(Found::new(place.start + range.start..place.start + range.end, "argument"));
                }
                if trimmed.len() < word.len() {
                    arguments = Arguments::default();
                }
            }
        }
    }
}
