//! Finds secrets in text that has no structure, or none that can be read: messages, URLs, scripts, command
//! lines, properties, connection strings.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use super::names::{self, Class};
use super::occurrences::Occurrences;
use super::scan::{Found, Marks, around};
use super::table::Cut;
use super::{marks, shape};

mod apart;
mod commands;
mod csv;
mod logons;
mod named;
mod pairs;
mod rotations;
mod sql;
#[cfg(test)]
mod tests;
mod value;

/// Of how many names it is kept what they say.
const KEPT_CLASSES: usize = 1_024;
/// How far a name reaches back from its end, in bytes.
const NAME: usize = 128;
/// How far the end of a value that may hold spaces is looked for, in bytes.
const LINE: usize = 512;
/// Secrets of one text that are looked for where they stand again.
const AGAIN: usize = 64;
/// How far a pair's name may stand before the word `value`, in bytes.
const PAIR: usize = 256;

/// Parts of `text` that are secret, in order, apart. With `named`, also values beside names that say
/// secret; else only what is secret by its own shape.
pub(super) fn secrets(text: &str, named: bool) -> Vec<Found> {
    let mut marks = Marks::of(text);
    if marks.is_empty() {
        return Vec::new();
    }
    let mut found = Vec::new();
    marks.rows(text, &mut found);
    let mut urls = 0;
    for at in &marks.urls {
        if *at >= urls {
            let mut run = around(text, *at, urls, Cut::Link, &marks.urls);
            // An apostrophe ends no URL that none opened.
            if let Some(rest) = text.get(run.end..).and_then(|rest| rest.strip_prefix('\''))
                && !text.get(..run.start).is_some_and(|head| head.ends_with('\''))
                && let Some(tail) =
                    rest.split(|letter: char| letter.is_whitespace() || "'\"`<>\\".contains(letter)).next()
                && tail.contains('@')
                && !tail.contains("://")
            {
                run.end += 1 + tail.len();
            }
            found.extend(
                marks::url(text, *at, run.end).map(|range| Found::new(range, "credentials in a URL")),
            );
            urls = run.end.max(at + 3);
        }
    }
    let mut pems = 0;
    for at in &marks.pems {
        if *at >= pems {
            let pem = marks::pem(text, *at);
            pems = pem.as_ref().map_or(at + 11, |pem| pem.end);
            found.extend(pem.map(|range| Found::new(range, "private key")));
        }
    }
    let scan = Scan::new(text);
    for at in &marks.schemes {
        if scan.word_starts(*at) {
            found.extend(marks::scheme(text, *at).map(|range| Found::new(range, "authorization")));
        }
    }
    if named {
        scan.names(&marks.names, &mut found);
        scan.values(&marks.values, &mut found);
        scan.commands(&marks.commands, &marks.filled, &marks.digests, &mut found);
        scan.inserts(&marks.inserts, &mut found);
        scan.logons(&marks.logons, &mut found);
        scan.rotations(&marks.names, &mut found);
        scan.here_documents(&marks.heres, &mut found);
        scan.tables(&marks.names, &mut found);
    }
    let mut found = apart(text, found, &marks.digests);
    if named {
        let more = again(text, &found);
        if !more.is_empty() {
            found.extend(more);
            return apart(text, found, &marks.digests);
        }
    }
    found
}

/// Where what was found, and was made up, stands once more: `use th1stle! for the metrics (password th1stle!)`.
fn again(text: &str, found: &[Found]) -> Vec<Found> {
    let told = found.iter().filter_map(|found| text.get(found.range.clone()));
    let told = told.map(|value| value.trim_end_matches([')', ']', '}', ',', '.', ';'])).filter(|value| {
        (8..=128).contains(&value.len()) && (shape::is_password(value) || shape::is_key(value))
    });
    let mut values: Vec<&str> = told.take(AGAIN).collect();
    values.sort_unstable();
    values.dedup();
    let Some(places) = (!values.is_empty()).then(|| Occurrences::of(&values)).flatten() else {
        return Vec::new();
    };
    let part = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    let bytes = text.as_bytes();
    let apart = |range: &std::ops::Range<usize>| {
        !part(range.start.checked_sub(1).and_then(|before| bytes.get(before))) && !part(bytes.get(range.end))
    };
    let hits = places.within(text).unwrap_or_default();
    hits.iter().map(|hit| hit.range()).filter(apart).map(|range| Found::new(range, "told again")).collect()
}

/// In order, what overlaps made one; what was redacted before left out.
fn apart(text: &str, mut found: Vec<Found>, digests: &[usize]) -> Vec<Found> {
    let mut skip = Vec::new();
    for at in digests {
        let end = at + super::PREFIX.len() + super::DIGITS;
        if text.get(*at..end).is_some_and(shape::is_redacted) {
            skip.push(*at..end);
        }
    }
    found.retain(|found| {
        let next = skip.partition_point(|digest| digest.end <= found.range.start);
        found.range.start < found.range.end
            && !skip.get(next).is_some_and(|digest| {
                digest.start < found.range.end && digest.start <= found.range.start + 64
            })
    });
    found.sort_by_key(|found| found.range.start);
    let mut all: Vec<Found> = Vec::with_capacity(found.len());
    for next in found {
        match all.last_mut() {
            Some(last) if next.range.start < last.range.end => {
                last.range.end = last.range.end.max(next.range.end);
            }
            _ => all.push(next),
        }
    }
    all
}

struct Scan<'t> {
    text: &'t str,
    bytes: &'t [u8],
    /// For each quote, where it was looked for last, and found: what asks again from between needs no search.
    closes: [Cell<(usize, usize)>; 3],
    /// The same of what ends a word.
    ends: Cell<(usize, usize)>,
    /// The same of brackets: the end of the text is searched for once.
    unclosed: Cell<usize>,
    /// The end of the reference that was read last, of which the names are no more looked at.
    refers: Cell<usize>,
    /// Bytes of values that were looked at.
    looked: Cell<usize>,
    /// What names say that were read already, as texts repeat theirs.
    classes: RefCell<HashMap<&'t str, Class>>,
    /// Bytes that were searched for the end of something.
    #[cfg(test)]
    searched: Cell<usize>,
}

/// A name before a delimiter.
struct Name<'t> {
    text: &'t str,
    start: usize,
    quoted: bool,
    /// White space stands between it and the delimiter.
    apart: bool,
}

impl<'t> Scan<'t> {
    fn new(text: &'t str) -> Self {
        let nothing = || Cell::new((usize::MAX, 0));
        Self {
            text,
            bytes: text.as_bytes(),
            closes: [nothing(), nothing(), nothing()],
            ends: nothing(),
            unclosed: Cell::new(usize::MAX),
            refers: Cell::new(0),
            looked: Cell::new(0),
            classes: RefCell::default(),
            #[cfg(test)]
            searched: Cell::new(0),
        }
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    fn before(&self, at: usize) -> Option<u8> {
        at.checked_sub(1).and_then(|before| self.byte(before))
    }

    /// Where what closes a name that ends at `end` ends too: quotes, a bracket, the stars of Markdown.
    fn shut(&self, end: usize) -> usize {
        let shut = self.within(end, 4, |byte| !(is_quote(byte) || matches!(byte, b'\\' | b']' | b'*')));
        // Of TypeScript, `apiKey?: string`.
        shut + usize::from(self.byte(shut) == Some(b'?') && self.byte(shut + 1) == Some(b':'))
    }

    fn word_starts(&self, at: usize) -> bool {
        !self.before(at).is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    }

    /// Whether the byte at `at` belongs to a name: letters, digits, signs, and the Latin letters of Unicode, which take
    /// two bytes. What other scripts write before a name is no part of it, nor are their quotes and dashes.
    fn is_of_name(&self, at: usize) -> bool {
        let latin = |lead: Option<u8>, next: Option<u8>| {
            matches!((lead, next), (Some(0xc3..=0xc9), Some(0x80..=0xbf)))
                // The signs of multiplication and division stand among the letters.
                && !matches!((lead, next), (Some(0xc3), Some(0x97 | 0xb7)))
        };
        match self.byte(at) {
            Some(byte) if byte.is_ascii() => byte.is_ascii_alphanumeric() || b"_-.".contains(&byte),
            Some(byte @ 0xc3..) => latin(Some(byte), self.byte(at + 1)),
            byte @ Some(_) => latin(self.before(at), byte),
            None => false,
        }
    }

    /// First position from `from` whose byte satisfies `stop`, else the end.
    fn until(&self, from: usize, stop: impl Fn(u8) -> bool) -> usize {
        let rest = self.bytes.get(from..).unwrap_or_default();
        let end = rest.iter().position(|byte| stop(*byte)).map_or(self.bytes.len(), |found| from + found);
        #[cfg(test)]
        self.searched.set(self.searched.get() + end.saturating_sub(from));
        end
    }

    /// The same, at most so many bytes on.
    fn within(&self, from: usize, most: usize, stop: impl Fn(u8) -> bool) -> usize {
        let rest = self.bytes.get(from..).unwrap_or_default();
        let rest = rest.get(..most).unwrap_or(rest);
        rest.iter().position(|byte| stop(*byte)).map_or(from + rest.len(), |found| from + found)
    }

    /// Where the word ends that begins at `from`. Many may end at one place, which is searched for once.
    fn word_end(&self, from: usize) -> usize {
        let (asked, found) = self.ends.get();
        if asked <= from && from <= found {
            return found;
        }
        let end = self.until(from, is_end);
        self.ends.set((from, end));
        end
    }

    fn line_end(&self, from: usize) -> usize {
        self.until(from, |byte| byte == b'\n' || byte == b'\r')
    }

    /// What a name says of its value. Of so many names it is kept.
    fn class_of(&self, name: &'t str) -> Class {
        let known = self.classes.borrow().get(name).copied();
        known.unwrap_or_else(|| {
            // A property of Java: `-Dbasicauth=x`.
            let class = names::classify(name.strip_prefix("-D").unwrap_or(name));
            let mut classes = self.classes.borrow_mut();
            if classes.len() < KEPT_CLASSES {
                classes.insert(name, class);
            }
            class
        })
    }

    /// The rest of the line from `from` on, as far as a value is looked for.
    fn line_from(&self, from: usize) -> &'t str {
        let mut end = self.within(from, LINE, |byte| matches!(byte, b'\n' | b'\r'));
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        self.text.get(from..end).unwrap_or_default()
    }

    /// The same, to the quote that opened before the name: `-H "X-API-Key: x" -H "Accept: y"`.
    fn rest_of(&self, name: &Name<'t>, from: usize) -> &'t str {
        let line = self.line_from(from);
        let quote = self.before(name.start).filter(|byte| is_quote(*byte));
        let end = quote.and_then(|quote| line.bytes().position(|byte| byte == quote));
        end.and_then(|end| line.get(..end)).unwrap_or(line)
    }

    /// The first place from `at` on at which a letter begins.
    fn boundary(&self, at: usize) -> usize {
        (at..at + 4).find(|at| self.text.is_char_boundary(*at)).unwrap_or(at)
    }

    /// The text before `at`, as far back as `most` bytes.
    fn head(&self, at: usize, most: usize) -> &'t str {
        self.text.get(self.boundary(at.saturating_sub(most))..at).unwrap_or_default()
    }

    /// The line before `at`, as far back as `most` bytes.
    fn line_before(&self, at: usize, most: usize) -> &'t str {
        self.head(at, most).rsplit('\n').next().unwrap_or_default()
    }

    /// The line of `at`, where it is short.
    fn line_around(&self, at: usize) -> &'t str {
        let from = at - self.line_before(at, LINE).len();
        self.text.get(from..at + self.line_from(at).len()).unwrap_or_default()
    }

    /// The line above that of `at`, where both are short.
    fn line_above(&self, at: usize) -> &'t str {
        self.head(at, PAIR).trim_end().rsplit('\n').next().unwrap_or_default()
    }
}

fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'`')
}

fn is_quote_letter(letter: char) -> bool {
    matches!(letter, '"' | '\'' | '`')
}

fn is_end(byte: u8) -> bool {
    byte.is_ascii_whitespace() || is_quote(byte) || byte == b'<'
}
