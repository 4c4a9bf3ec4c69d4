//! Finds secrets in text that has no structure, or none that can be read: messages, URLs, scripts, command
//! lines, properties, connection strings.

use std::ops::Range;

use super::arguments::{is_flag, takes_secret};
use super::names::{self, Class};
use super::{marks, shape};

/// How far a name reaches back from its delimiter, in bytes.
const NAME: usize = 128;
/// How far the end of a value that may hold spaces is looked for, in bytes.
const LINE: usize = 512;
/// How far a pair's name may stand before the word `value`, in bytes.
const PAIR: usize = 256;

/// Parts of `text` that are secret, in order, apart. With `named`, also values beside names that say
/// secret; else only what is secret by its own shape.
pub(super) fn secrets(text: &str, named: bool) -> Vec<Range<usize>> {
    let scan = Scan { text, bytes: text.as_bytes() };
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(byte) = scan.bytes.get(at) {
        if *byte == b'r' && scan.starts(at, super::PREFIX.as_bytes()) {
            let end = at + super::PREFIX.len() + super::DIGITS;
            if text.get(at..end).is_some_and(shape::is_redacted) {
                at = end;
                continue;
            }
        }
        let hit = match byte {
            b':' if scan.starts(at, b"://") => marks::url(text, at),
            b':' | b'=' if named => scan.named(at).or_else(|| marks::go_dsn(text, at)),
            b'>' if named => scan.element(at),
            b'-' if scan.starts(at, b"-----BEGIN ") => marks::pem(text, at),
            b'-' if named => scan.flag(at),
            _ if byte.is_ascii_alphabetic() && scan.word_starts(at) => marks::jwt(text, at)
                .or_else(|| marks::scheme(text, at))
                .or_else(|| marks::known_token(text, at))
                .or_else(|| if named { scan.netrc(at) } else { None }),
            _ => None,
        };
        match hit.filter(|hit| hit.start < hit.end && hit.start >= at) {
            Some(hit) => {
                at = hit.end;
                found.push(hit);
            }
            None => at += 1,
        }
    }
    found
}

struct Scan<'t> {
    text: &'t str,
    bytes: &'t [u8],
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
    fn starts(&self, at: usize, with: &[u8]) -> bool {
        self.bytes.get(at..).is_some_and(|rest| rest.starts_with(with))
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    fn before(&self, at: usize) -> Option<u8> {
        at.checked_sub(1).and_then(|before| self.byte(before))
    }

    fn word_starts(&self, at: usize) -> bool {
        !self.before(at).is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    }

    /// First position from `from` whose byte satisfies `stop`, else the end.
    fn until(&self, from: usize, stop: impl Fn(u8) -> bool) -> usize {
        let rest = self.bytes.get(from..).unwrap_or_default();
        rest.iter().position(|byte| stop(*byte)).map_or(self.bytes.len(), |found| from + found)
    }

    fn line_end(&self, from: usize) -> usize {
        self.until(from, |byte| byte == b'\n' || byte == b'\r')
    }

    /// The rest of the line from `from` on, as far as a value is looked for.
    fn line_from(&self, from: usize) -> &'t str {
        let most = self.bytes.get(from..).unwrap_or_default().iter().take(LINE);
        let mut end = from + most.take_while(|byte| !matches!(byte, b'\n' | b'\r')).count();
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        self.text.get(from..end).unwrap_or_default()
    }

    /// A value beside a name, on either side of `:` or `=` at `at`.
    fn named(&self, at: usize) -> Option<Range<usize>> {
        let delimiter = self.byte(at)?;
        if delimiter == b'=' && matches!(self.before(at), Some(b'!' | b'<' | b'~')) {
            return None;
        }
        let name = self.name_before(at)?;
        let class = match names::classify(name.text) {
            Class::Plain if name.text.eq_ignore_ascii_case("value") => self.class_of_pair(name.start),
            class => class,
        };
        if class == Class::Plain {
            return None;
        }
        let mut from = self.until(at + 1, |byte| !matches!(byte, b'=' | b'>'));
        let spaced = self.byte(from).is_none_or(|byte| byte.is_ascii_whitespace());
        let quotes = self.byte(from).is_some_and(is_quote);
        if delimiter == b':'
            && from == at + 1
            && !spaced
            && !quotes
            && !name.quoted
            && !names::is_password(name.text)
        {
            // `registry/token-service:1.2`, `app:/Secret:namespace/name`
            return None;
        }
        from = self.until(from, |byte| byte != b' ' && byte != b'\t');
        let value = match class {
            Class::Header => self.after_scheme(self.value(from, &name, delimiter)?),
            _ => self.value(from, &name, delimiter)?,
        };
        let text = self.text.get(value.clone())?;
        let secret = match class {
            Class::Header => shape::is_credential(text),
            _ => !shape::is_harmless(text) && !shape::is_switch(text),
        };
        secret.then_some(value)
    }

    fn name_before(&self, at: usize) -> Option<Name<'t>> {
        let back = |from: usize, most: usize, take: &dyn Fn(u8) -> bool| {
            let mut start = from;
            while from - start < most && self.before(start).is_some_and(take) {
                start -= 1;
            }
            start
        };
        let unspaced = back(at, 8, &|byte| byte == b' ' || byte == b'\t');
        let end = back(unspaced, 4, &|byte| is_quote(byte) || matches!(byte, b'\\' | b']'));
        let start =
            back(end, NAME, &|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
        let text = self.text.get(start..end).filter(|name| !name.is_empty())?;
        let quoted = self.text.get(end..unspaced).is_some_and(|gap| gap.bytes().any(is_quote));
        Some(Name { text, start, quoted, apart: unspaced < at })
    }

    /// What the name of the pair says whose `value` begins at `at`: `- name: DB_PASSWORD` in the line
    /// before, `key="Password"` before it in an element.
    fn class_of_pair(&self, at: usize) -> Class {
        let mut from = at.saturating_sub(PAIR);
        while !self.text.is_char_boundary(from) {
            from += 1;
        }
        let Some(head) = self.text.get(from..at) else { return Class::Plain };
        if let Some(field) = head.strip_suffix("Invalid ").map(|head| head.trim_end().trim_end_matches(':')) {
            // `env[0].value: Invalid value: "x"`, `data[password]: Invalid value: "x"`: the API server quotes.
            let field = field.rsplit(char::is_whitespace).next().unwrap_or_default();
            let value =
                field.ends_with(".value") || field.starts_with("data[") || field.starts_with("stringData[");
            return if value { Class::Secret } else { names::classify(field) };
        }
        let named =
            ["name", "key"].iter().filter_map(|word| head.rfind(word).map(|found| found + word.len())).max();
        let Some(rest) = named.and_then(|found| head.get(found..)) else { return Class::Plain };
        let noise = |letter: char| letter.is_whitespace() || matches!(letter, ':' | '=' | '"' | '\'' | '\\');
        let rest = rest.trim_start_matches(noise);
        names::classify(rest.split(|letter: char| noise(letter) || letter == ',').next().unwrap_or_default())
    }

    /// Where the value that begins at `from` ends.
    fn value(&self, from: usize, name: &Name<'_>, delimiter: u8) -> Option<Range<usize>> {
        let leads = self.leads_line(name.start);
        let first = self.byte(from)?;
        if matches!(first, b'\n' | b'\r') || (matches!(first, b'|' | b'>') && leads && delimiter == b':') {
            return (leads && delimiter == b':').then(|| self.block(from, name.start)).flatten();
        }
        if first == b'\\' && self.byte(from + 1).is_some_and(is_quote) {
            let rest = self.text.get(from + 2..)?;
            let close =
                rest.find(self.text.get(from..from + 2)?).map_or(self.line_end(from), |end| from + 2 + end);
            return Some(from + 2..close);
        }
        if is_quote(first) {
            return Some(from + 1..self.close(from + 1, first));
        }
        if matches!(first, b'{' | b'[') && self.byte(from + 1) != Some(b'{') && (leads || name.quoted) {
            return Some(from..self.bracket(from));
        }
        if name.quoted {
            if name.apart && delimiter == b':' && first.is_ascii_alphabetic() {
                // Prose: `volume "creds" : not found`; JSON would quote the value.
                return None;
            }
            return Some(
                from..self
                    .until(from, |byte| byte.is_ascii_whitespace() || matches!(byte, b',' | b'}' | b']')),
            );
        }
        if let Some(quote) = self.before(name.start).filter(|byte| is_quote(*byte)) {
            return Some(from..self.until(from, |byte| byte == quote || byte == b'\n'));
        }
        if leads {
            let end = self.line_end(from);
            let line = self.text.get(from..end)?;
            return Some(from..from + line.trim_end().len());
        }
        if matches!(self.before(name.start), Some(b'?' | b'&')) {
            return Some(from..self.until(from, |byte| is_end(byte) || matches!(byte, b'&' | b'#')));
        }
        let mut end = self.until(from, is_end);
        let line = self.line_from(from);
        // `Password=two words;Server=x`: a semicolon before the next name ends a value that may hold spaces.
        if let Some(more) =
            line.match_indices(';').map(|(more, _)| more).find(|more| begins_pair(line, *more))
        {
            let gap = self.text.get(end..from + more);
            if gap.is_none_or(|gap| !gap.contains(['=', ':'])) {
                end = from + more;
            }
        }
        Some(from..from + self.text.get(from..end)?.trim_end_matches(',').len())
    }

    /// Leaves the scheme of an `Authorization` outside, and takes in the credentials that follow it.
    fn after_scheme(&self, value: Range<usize>) -> Range<usize> {
        let end = self.until(value.start, is_end);
        let scheme = self.text.get(value.start..end).is_some_and(|word| {
            ["bearer", "basic", "token", "digest", "apikey", "negotiate"]
                .iter()
                .any(|known| word.eq_ignore_ascii_case(known))
        });
        if !scheme || !matches!(self.byte(end), Some(b' ' | b'\t')) {
            return value;
        }
        let from = self.until(end, |byte| byte != b' ' && byte != b'\t');
        from..value.end.max(self.until(from, is_end))
    }

    /// The closing `quote` from `from` on, escapes passed over, else the end of the line.
    fn close(&self, from: usize, quote: u8) -> usize {
        let mut at = from;
        while let Some(byte) = self.byte(at) {
            match byte {
                b'\\' => at += 1,
                _ if byte == quote => return at,
                _ => {}
            }
            at += 1;
        }
        self.line_end(from)
    }

    /// The end of the bracket that opens at `from`, else the end of the text.
    fn bracket(&self, from: usize) -> usize {
        let mut depth = 0_usize;
        for (offset, byte) in self.bytes.get(from..).unwrap_or_default().iter().enumerate() {
            match byte {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                return from + offset + 1;
            }
        }
        self.bytes.len()
    }

    /// The lines after `from` that are indented deeper than the line of the name.
    fn block(&self, from: usize, name: usize) -> Option<Range<usize>> {
        let line_start =
            self.bytes.get(..name)?.iter().rposition(|byte| *byte == b'\n').map_or(0, |found| found + 1);
        let indent = self.until(line_start, |byte| byte != b' ' && byte != b'\t') - line_start;
        let start = (self.line_end(from) + 1).min(self.bytes.len());
        let mut end = start;
        let mut next = start;
        while next < self.bytes.len() {
            let stop = self.until(next, |byte| byte == b'\n');
            let depth = self.until(next, |byte| byte != b' ' && byte != b'\t') - next;
            let blank = next + depth >= stop;
            if !blank && depth <= indent {
                break;
            }
            if !blank {
                end = stop;
            }
            next = stop + 1;
        }
        let start = self.until(start, |byte| !byte.is_ascii_whitespace());
        (start < end).then_some(start..end)
    }

    /// Whether only indentation, list marks, comment marks and words like `export` stand before `at` in
    /// its line.
    fn leads_line(&self, at: usize) -> bool {
        let line_start = self
            .bytes
            .get(..at)
            .and_then(|head| head.iter().rev().take(NAME).position(|byte| *byte == b'\n'))
            .map_or_else(|| at.saturating_sub(NAME), |back| at - back);
        if line_start > 0 && self.before(line_start) != Some(b'\n') {
            return false;
        }
        self.bytes.get(line_start..at).is_some_and(|head| {
            head.split(|byte| {
                byte.is_ascii_whitespace() || matches!(byte, b'-' | b'#' | b'/' | b';' | b'*' | b'$')
            })
            .all(|word| {
                word.is_empty() || [&b"export"[..], b"set", b"ENV", b"ARG", b"env", b"local"].contains(&word)
            })
        })
    }

    /// The password in a line of a netrc file: `machine x login y password z`.
    fn netrc(&self, at: usize) -> Option<Range<usize>> {
        if !self.starts(at, b"password ") {
            return None;
        }
        let mut back = at.saturating_sub(PAIR);
        while !self.text.is_char_boundary(back) {
            back += 1;
        }
        let from = self.until(at + 9, |byte| byte != b' ');
        let value = from..self.until(from, is_end);
        let login = self.text.get(back..at)?.contains("login ");
        (login && !shape::is_harmless(self.text.get(value.clone())?)).then_some(value)
    }

    /// The text of an element whose start tag ends at `at`.
    fn element(&self, at: usize) -> Option<Range<usize>> {
        let head = self.bytes.get(at.saturating_sub(NAME)..at)?;
        let open = at - head.iter().rev().position(|byte| matches!(byte, b'<' | b'>' | b'\n'))?;
        if self.before(open) != Some(b'<') {
            return None;
        }
        let name = self.text.get(open..at)?.split([' ', '\t']).next()?;
        if name.starts_with('/') || names::classify(name) == Class::Plain {
            return None;
        }
        let value = at + 1..self.until(at + 1, |byte| byte == b'<');
        (!shape::is_harmless(self.text.get(value.clone())?.trim())).then_some(value)
    }

    /// The value after a flag: `--password x`, `-u user:password`.
    fn flag(&self, at: usize) -> Option<Range<usize>> {
        if self.before(at).is_some_and(|byte| !byte.is_ascii_whitespace() && !is_quote(byte)) {
            return None;
        }
        let end = self.until(at, |byte| !byte.is_ascii_alphanumeric() && !matches!(byte, b'-' | b'_' | b'.'));
        let flag = self.text.get(at..end)?;
        if !matches!(self.byte(end), Some(b' ' | b'\t')) || !is_flag(flag) {
            return None;
        }
        let mut from = self.until(end, |byte| byte != b' ' && byte != b'\t');
        let value = match self.byte(from)? {
            b'-' => return None,
            quote if is_quote(quote) => {
                from += 1;
                from..self.close(from, quote)
            }
            _ => from..self.until(from, is_end),
        };
        takes_secret(flag, self.text.get(value.clone())?).then_some(value)
    }
}

/// Whether a name and `=` follow the semicolon at `at`.
fn begins_pair(line: &str, at: usize) -> bool {
    line.get(at + 1..).and_then(|rest| rest.split_once('=')).is_some_and(|(name, _)| {
        !name.trim().is_empty()
            && name.len() <= 64
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'_' | b'-' | b'.'))
    })
}

fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'`')
}

fn is_end(byte: u8) -> bool {
    byte.is_ascii_whitespace() || is_quote(byte) || byte == b'<'
}
