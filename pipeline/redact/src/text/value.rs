//! Where the value that belongs to a name begins and ends.

use std::ops::Range;

use super::super::words::TELLERS;
use super::super::{names, placeholders, prose, shape};
use super::{LINE, NAME, Name, Scan, is_end, is_quote, is_quote_letter};

/// Words before the credentials of an `Authorization`.
const SCHEMES: [&str; 9] =
    ["bearer", "basic", "token", "digest", "apikey", "negotiate", "key", "splunk", "geniekey"];

impl<'t> Scan<'t> {
    /// Where the value that begins at `from` ends.
    pub(super) fn value(&self, from: usize, name: &Name<'_>, delimiter: u8) -> Option<Range<usize>> {
        // A flag sets no more than a word, `--env PASSWORD=x --env HOST=y`; a comment of SQL may hold several.
        let head = self.line_before(name.start, NAME).trim_start();
        let flag = head
            .strip_prefix("--")
            .is_some_and(|rest| rest.starts_with(|letter: char| letter.is_alphanumeric()));
        let leads = !flag && self.leads_line(name.start);
        let first = self.byte(from)?;
        if matches!(first, b'\n' | b'\r') || (matches!(first, b'|' | b'>') && leads && delimiter == b':') {
            return (leads && delimiter == b':').then(|| self.block(from, name.start)).flatten();
        }
        let open = self.within(from, 8, |byte| byte != b'\\');
        if first == b'\\' && self.byte(open).is_some_and(is_quote) {
            let close = self.within(open + 1, 65_536, |byte| Some(byte) == self.byte(open) || byte == b'\n');
            let text = self.text.get(open + 1..close)?;
            return Some(open + 1..open + 1 + text.trim_end_matches('\\').len());
        }
        if first == b'!' && leads && delimiter == b':' {
            // A tag: `!vault |`.
            let from = self.within(from, NAME, |byte| byte == b' ' || byte == b'\n');
            if self.byte(from + 1) == Some(b'|') {
                return self.block(from + 1, name.start);
            }
        }
        if b"NEUXBbrf".contains(&first) && matches!(self.byte(from + 1), Some(b'\'' | b'"')) {
            // Of SQL, `N'x'`, and of Python, `b"x"`.
            return self.value(from + 1, name, delimiter);
        }
        // Of a shell, which has no space before the sign.
        if first == b'`' && !name.apart && is_command(self.text.get(from + 1..self.close(from + 1, first))?) {
            return None;
        }
        if is_quote(first)
            && let Some(end) = self.placeholder(from + 1)
        {
            return Some(from + 1..end);
        }
        if is_quote(first) && self.byte(from + 1) == Some(first) && self.byte(from + 2) == Some(first) {
            let end = self.close(from + 3, first);
            return Some(from + 3..end);
        }
        if is_quote(first) {
            return Some(from + 1..self.close_behind_templates(from + 1, first));
        }
        if first == b'<' && self.byte(from + 1) == Some(b'<') && self.byte(from + 2) == Some(b'"') {
            // Of Erlang: `password: <<"x">>`.
            return Some(from + 3..self.close(from + 3, b'"'));
        }
        if first.is_ascii_uppercase() {
            // `Some("x")`, `SecretString("x")`.
            let open = self.within(from, 32, |byte| !byte.is_ascii_alphanumeric());
            let quote = self.byte(open + 1).filter(|byte| self.byte(open) == Some(b'(') && is_quote(*byte));
            if let Some(quote) = quote {
                return Some(open + 2..self.close(open + 2, quote));
            }
        }
        // Of Go: `[]byte("x")`.
        let bytes = first == b'[' && self.text.get(from..).is_some_and(|rest| rest.starts_with("[]byte("));
        if bytes && let Some(quote) = self.byte(from + 7).filter(|byte| is_quote(*byte)) {
            return Some(from + 8..self.close(from + 8, quote));
        }
        if first == b'(' && delimiter == b':' {
            // Of Go, which says of which type something is, and how long: `(string) (len=2) "x"`.
            let open = self.within(from, 48, is_quote);
            let told = self.text.get(from..open).is_some_and(|head| {
                head.split_terminator(' ').all(|word| word.starts_with('(') && word.ends_with(')'))
            });
            if let Some(quote) = self.byte(open).filter(|byte| told && *byte == b'"') {
                return Some(open + 1..self.close(open + 1, quote));
            }
        }
        // Of PHP, which says how long it is: `string(7) "x"`.
        if self.text.get(from..).is_some_and(|rest| rest.starts_with("string(")) {
            let open = self.within(from, 20, is_quote);
            if self.byte(open) == Some(b'"') && self.text.get(from..open)?.ends_with(") ") {
                return Some(open + 1..self.close(open + 1, b'"'));
            }
        }
        if let Some(value) = self.hashed(from) {
            return Some(value);
        }
        if matches!(first, b'{' | b'[')
            && !matches!(self.byte(from + 1), Some(b'{' | b'['))
            && (leads
                || name.quoted
                || delimiter == b':' && self.before(from) == Some(b' ') && self.within_braces(name.start))
        {
            let end = self.bracket(from);
            // Of Spring, which says how it is kept: `{noop}x`.
            let kept = self.text.get(from + 1..end.saturating_sub(1)).is_some_and(|kind| {
                kind != "cipher"
                    && kind.len() <= 16
                    && kind
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'@' | b'_' | b'-'))
            });
            if first == b'{' && kept && self.byte(end).is_some_and(|byte| byte.is_ascii_alphanumeric()) {
                // What is empty says nothing: all of `{}x` is the value.
                let value = if end == from + 2 { from } else { end };
                return Some(value..self.within(end, LINE, is_end));
            }
            return Some(from..end);
        }
        if let Some(end) = self.placeholder(from) {
            return Some(from..end);
        }
        if name.quoted {
            let told =
                self.line_before(name.start, 8).trim_end_matches(is_quote_letter).trim_end().ends_with(':');
            if (name.apart || told || self.is_called(name, from))
                && delimiter == b':'
                && first.is_ascii_alphabetic()
            {
                // Prose: `volume "creds" : not found`, `value: "creds": a label`; JSON would quote the value.
                return None;
            }
            let end =
                self.until(from, |byte| byte.is_ascii_whitespace() || matches!(byte, b',' | b'}' | b']'));
            return Some(from..from + self.text.get(from..end)?.trim_end_matches(';').len());
        }
        if let Some(quote) = self.before(name.start).filter(|byte| is_quote(*byte)) {
            let end = self.until(from, |byte| byte == quote || byte == b'\n');
            // `-e "db_password=x env=prod"`.
            let line = self.text.get(from..end)?;
            let next = line.match_indices(' ').take(8).find(|(at, _)| begins_pair(line, *at));
            return Some(from..next.filter(|_| delimiter == b'=').map_or(end, |(at, _)| from + at));
        }
        if leads {
            let end = self.line_end(from);
            let line = self.text.get(from..end)?;
            let variable = delimiter == b'='
                && self.before(from) == Some(b'=')
                && name
                    .text
                    .bytes()
                    .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
            if variable
                && let Some((value, command)) = line.split_once(' ')
                && command.starts_with(|letter: char| letter.is_ascii_lowercase() || letter == '"')
                && command.contains([' ', '/'])
                && (command.contains(" -")
                    || command.contains("=")
                    || command.starts_with("exec ")
                    || shape::is_key(value)
                    || shape::is_password(value)
                    || prose::is_sentence(command))
            {
                return Some(from..from + value.len());
            }
            // `ENV SECRET=x PORT=1`, `access_key=x region=y`.
            let next = line.find(' ').filter(|next| {
                let name =
                    line.get(next + 1..).and_then(|rest| rest.split_once('=')).map_or("", |(name, _)| name);
                let joined = delimiter == b'=' && self.before(from) == Some(b'=');
                let set = || line.split(' ').all(|pair| pair.contains('=') || line.starts_with(pair));
                let small = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
                !name.is_empty()
                    && (variable && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
                        || joined && name.bytes().all(small) && set())
            });
            if let Some(next) = next {
                return Some(from..from + next);
            }
            let pair = line.find([';', ',']).filter(|more| {
                delimiter == b'=' && !names::is_password(name.text) && begins_pair(line, *more)
            });
            return Some(
                from..pair.map_or(from + line.trim_end().trim_end_matches(';').len(), |more| from + more),
            );
        }
        // Behind a letter or what ends an address `#` begins the fragment of a URL, else a comment.
        let fragment = self.before(name.start) == Some(b'#')
            && self
                .before(name.start - 1)
                .is_some_and(|byte| byte.is_ascii_alphanumeric() || b"/?=\"'".contains(&byte));
        if fragment || matches!(self.before(name.start), Some(b'?' | b'&')) {
            let end = self.until(from, |byte| is_end(byte) || matches!(byte, b'&' | b'#'));
            // Of game servers, whose settings each begin so: `Map?listen?ServerPassword=x?MaxPlayers=20`.
            let next = self.within(from, end - from, |byte| byte == b'?');
            let named = self.byte(next + 1).is_some_and(|byte| byte.is_ascii_uppercase());
            return Some(from..if named && begins_pair(self.text.get(..end)?, next) { next } else { end });
        }
        let mut end = self.word_end(from);
        if self.before(end) == Some(b'[')
            && let Some(quote) = self.byte(end).filter(|_| end > from)
        {
            // What a program reads by its name: `connect(token=config["token"])`.
            let close = self.within(end + 1, NAME, |byte| byte == quote || byte == b'\n');
            end = if self.byte(close + 1) == Some(b']') { close + 2 } else { end };
        }
        let line = self.line_from(from);
        // `username=a,password=b,vers=3`: a comma before the next name ends a value without spaces.
        let set =
            || ["--set ", "--set-string "].iter().any(|set| self.line_before(name.start, 16).ends_with(set));
        let list = delimiter == b'=' && (self.before(name.start) == Some(b',') || set());
        if list && let Some(more) = line.find(',').filter(|more| begins_pair(line, *more)) {
            end = end.min(from + more);
        }
        // `Password=two words;Server=x`: a semicolon before the next name ends a value that may hold spaces.
        if let Some(more) = line.find(';').filter(|more| begins_pair(line, *more)) {
            let gap = self.text.get(end..from + more);
            if gap.is_none_or(|gap| !gap.contains(['=', ':'])) {
                end = from + more;
            }
        }
        let text = self.text.get(from..end)?;
        let mut length = text.trim_end_matches([',', ')', ';', ']', '}']).len();
        // What closes a call or an index belongs to it: `generate_key().decode()`.
        let open =
            |text: &str, signs: [char; 2]| text.matches(signs[0]).count() > text.matches(signs[1]).count();
        let closes = |length: usize| match (text.as_bytes().get(length), text.get(..length)) {
            (Some(b')'), Some(text)) => open(text, ['(', ')']),
            (Some(b']'), Some(text)) => text.contains(['"', '\'']) && open(text, ['[', ']']),
            _ => false,
        };
        while length < text.len().min(NAME) && closes(length) {
            length += 1;
        }
        Some(from..from + length)
    }

    /// The literal that a program gives a variable behind its type, which begins at `from`: `password: String = "x"`.
    pub(super) fn typed(&self, from: usize) -> Option<Range<usize>> {
        let (kind, rest) = self.line_from(from).split_once('=')?;
        let kind = kind.trim_end();
        let literal = rest.trim_start();
        let quote = literal.bytes().next().filter(|byte| is_quote(*byte))?;
        let value = from + kind.len();
        let value = self.within(value, LINE, |byte| byte == quote) + 1;
        prose::is_type(kind.strip_prefix("&'static ").unwrap_or(kind))
            .then(|| value..self.close(value, quote))
    }

    /// Whether a number that begins at `from` is the one of a field, as messages are declared: `string password = 2;`.
    pub(super) fn is_field_number(&self, name: usize, from: usize) -> bool {
        let end = self.within(from, 8, |byte| !byte.is_ascii_digit());
        let kinds = ["string", "bytes", "bool", "int32", "int64", "uint32", "uint64"];
        end > from
            && self.text.get(end..).is_some_and(|rest| rest.starts_with(';') || rest.starts_with(" ["))
            && self
                .line_before(name, NAME)
                .split_whitespace()
                .next_back()
                .is_some_and(|kind| kinds.contains(&kind))
    }

    /// The end of a placeholder that begins at `from` and is all of the value: it may hold spaces.
    pub(super) fn placeholder(&self, from: usize) -> Option<usize> {
        if !matches!(self.byte(from), Some(b'{' | b'$' | b'<' | b'%' | b'[' | b'#' | b'(')) {
            return None;
        }
        let line = self.line_from(from);
        let mut end = placeholders::one(line, 0)?;
        // `{{with secret "x"}}{{.Data.token}}{{end}}`.
        while let Some(next) =
            line.get(end..).filter(|rest| rest.starts_with("{{")).and_then(|_| placeholders::one(line, end))
        {
            end = next;
        }
        let rest = line.get(end..)?;
        (rest.is_empty()
            || rest.starts_with([' ', ',', ';', ')', '&', '"', '\'', '}', ']', '.', ':', '@', '/']))
        .then_some(from + end)
    }

    /// Leaves the scheme of an `Authorization` outside, and takes in the credentials that follow it.
    pub(super) fn after_scheme(&self, value: Range<usize>) -> Range<usize> {
        let text = self.text.get(value.clone()).unwrap_or_default();
        let line = end_of_escaped_line(text);
        let value = value.start..value.start + line;
        let end = self.word_end(value.start);
        let scheme = self
            .text
            .get(value.start..end)
            .is_some_and(|word| SCHEMES.iter().any(|known| word.eq_ignore_ascii_case(known)));
        if !scheme || !matches!(self.byte(end), Some(b' ' | b'\t')) {
            return value;
        }
        let from = self.until(end, |byte| byte != b' ' && byte != b'\t');
        let end = self.word_end(from);
        let more = self.text.get(from..end).unwrap_or_default();
        let end = from + end_of_escaped_line(more);
        from..if line < text.len() { value.end } else { value.end.max(end) }
    }

    /// What a value that ends at `end` becomes, as Terraform writes it, `"x" -> "y"`, or people, `x -> y`.
    pub(super) fn becomes(&self, end: usize) -> Option<Range<usize>> {
        let Some(quote) = self.byte(end).filter(|byte| is_quote(*byte)) else {
            let rest = self.line_from(end);
            let next = [" -> ", " => ", " → "].iter().find_map(|sign| rest.strip_prefix(sign))?;
            let from = end + rest.len() - next.len();
            let text =
                self.text.get(from..self.within(from, LINE, is_end))?.trim_end_matches([')', ',', '.', ';']);
            return (shape::is_password(text) || shape::is_key(text)).then(|| from..from + text.len());
        };
        let line = self.line_from(end + 1);
        let rest = line.trim_start();
        let arrow = rest.strip_prefix("->").or_else(|| rest.strip_prefix("=>"));
        // `replace password `x` by `y``.
        let word = || ["by ", "with ", "to "].iter().find_map(|word| rest.strip_prefix(word));
        let next = arrow.or_else(word)?.trim_start();
        let from = end + 1 + line.len() - next.len();
        let value = from + 1..self.close(from + 1, quote);
        let text = self.text.get(value.clone())?;
        let made = arrow.is_some() || shape::is_password(text) || shape::is_key(text);
        (self.byte(from) == Some(quote) && made && !shape::is_harmless(text)).then_some(value)
    }

    /// The literal of which a call from `from` on makes the value: `md5('x')`, `base64encode("x")`.
    fn hashed(&self, from: usize) -> Option<Range<usize>> {
        let calls =
            ["md5", "sha1", "sha2", "sha256", "sha512", "crypt", "encrypt", "bcrypt", "hash", "encode"];
        let open = self.within(from, 24, |byte| !(byte.is_ascii_alphanumeric() || byte == b'_'));
        let call = self.text.get(from..open)?.to_ascii_lowercase();
        let quote = self.byte(open + 1).filter(|byte| self.byte(open) == Some(b'(') && is_quote(*byte))?;
        calls
            .iter()
            .any(|known| call == *known || call.ends_with(known) && call.contains(['_', '6']))
            .then(|| open + 2..self.close(open + 2, quote))
    }

    /// Whether a sentence calls something by a name in quotes, and goes on behind it: `volume "creds": not found`.
    fn is_called(&self, name: &Name<'_>, from: usize) -> bool {
        let head = self.line_before(name.start, NAME).trim_end_matches(is_quote_letter);
        let word = head.strip_suffix(' ').and_then(|head| head.split_whitespace().next_back());
        let text = self.text.get(from..self.within(from, LINE, is_end)).unwrap_or_default();
        word.is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_alphabetic()))
            && !shape::is_key(text)
            && !shape::is_password(text)
    }

    /// Whether what stands beside a name tells of it: the rule of a grammar, `token = word | number`; what a parser did
    /// not expect; what was done in a list of changes, `secret: recreated`.
    pub(super) fn is_told(&self, name: &Name<'_>, value: &Range<usize>, text: &str) -> bool {
        let small = text.bytes().all(|byte| byte.is_ascii_lowercase());
        let grammar = || self.text.get(value.end..).is_some_and(|rest| rest.starts_with(" | "));
        let unexpected = || self.line_before(name.start, NAME).trim_end().ends_with("nexpected");
        let renamed = || {
            self.text.get(..value.start).is_some_and(|head| head.ends_with("=> "))
                && !self.leads_line(name.start)
        };
        // `Unexpected token: ';'`.
        let short = !text.chars().any(char::is_alphanumeric) && name.text.eq_ignore_ascii_case("token");
        short && unexpected()
            || small
                && (grammar()
                    || unexpected()
                    || renamed()
                    || !self.leads_line(name.start) && prose::is_participle(text))
    }

    /// The literal that is taken when an expression that ends at `end` gives nothing: `process.env.X || "x"`.
    pub(super) fn instead(&self, end: usize) -> Option<Range<usize>> {
        let line = self.line_from(end);
        let rest = line.trim_start_matches([' ', ')']);
        let rest = ["||", "??", "?:", "or "].iter().find_map(|or| rest.strip_prefix(or))?.trim_start();
        let from = end + line.len() - rest.len();
        let quote = self.byte(from).filter(|byte| is_quote(*byte))?;
        let value = from + 1..self.close(from + 1, quote);
        (!shape::is_harmless(self.text.get(value.clone())?)).then_some(value)
    }

    /// The closing `quote` from `from` on, else the end of the line. A quote behind an odd number of backslashes does
    /// not close.
    pub(super) fn close(&self, from: usize, quote: u8) -> usize {
        let slot = match quote {
            b'"' => 0,
            b'\'' => 1,
            _ => 2,
        };
        let Some(known) = self.closes.get(slot) else { return self.line_end(from) };
        let (asked, found) = known.get();
        let at = if asked <= from && from <= found {
            found
        } else {
            let mut at = from;
            while let Some(byte) = self.byte(at) {
                match byte {
                    b'\\' => at += 1,
                    _ if byte == quote => break,
                    _ => {}
                }
                at += 1;
            }
            let at = at.min(self.bytes.len());
            known.set((from, at));
            at
        };
        if at < self.bytes.len() { at } else { self.line_end(from) }
    }

    /// The closing `quote` from `from` on, none of those in a template: `"{{ env "USER" }}:{{ env "PASS" }}@db"`.
    fn close_behind_templates(&self, from: usize, quote: u8) -> usize {
        let mut end = self.close(from, quote);
        for _ in 0..4 {
            let open = self.text.get(from..end).filter(|text| text.len() <= LINE).and_then(|text| {
                text.rfind("{{").filter(|at| text.get(*at..).is_some_and(|rest| !rest.contains("}}")))
            });
            let Some(shut) = open.and_then(|_| self.line_from(end).find("}}")) else { break };
            end = self.close(end + shut + 2, quote);
        }
        // Of YAML and of SQL, which write a quote twice: `'it''s'`.
        while quote == b'\'' && end > from && self.text.get(end..).is_some_and(|rest| rest.starts_with("''"))
        {
            end = self.close(end + 2, quote);
        }
        end
    }

    /// The end of the bracket that opens at `from`, else the end of the text.
    fn bracket(&self, from: usize) -> usize {
        if from >= self.unclosed.get() {
            return self.bytes.len();
        }
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
        self.unclosed.set(from);
        self.bytes.len()
    }

    /// Whether a name stands in a structure that is written in braces: `global: {auth: {token: x}}`.
    fn within_braces(&self, at: usize) -> bool {
        let head = self.line_before(at, NAME).trim_end();
        head.ends_with(['{', ',']) && head.contains(": {")
    }

    /// The lines after `from` that are indented deeper than the line of the name.
    fn block(&self, from: usize, name: usize) -> Option<Range<usize>> {
        // It leads its line, so the line begins near.
        let line_start = name - self.line_before(name, NAME).len();
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
    pub(super) fn leads_line(&self, at: usize) -> bool {
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
                word.is_empty()
                    || [
                        &b"export"[..],
                        b"set",
                        b"ENV",
                        b"ARG",
                        b"env",
                        b"local",
                        b"let",
                        b"var",
                        b"val",
                        b"const",
                    ]
                    .contains(&word)
            })
        })
    }
}

/// Whether a line begins with a scheme of `Authorization`, and credentials behind it that are no word.
pub(super) fn begins_scheme(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let scheme =
        words.next().is_some_and(|word| SCHEMES.iter().any(|known| word.eq_ignore_ascii_case(known)));
    let Some(word) = words.next().filter(|_| scheme) else { return false };
    word.len() >= 12 && word.bytes().any(|byte| byte.is_ascii_digit())
        || words.next().is_none() && shape::is_password(word)
}

/// Whether a name and `=` follow the semicolon at `at`.
fn begins_pair(line: &str, at: usize) -> bool {
    line.get(at + 1..).and_then(|rest| rest.split_once('=')).is_some_and(|(name, _)| {
        !name.trim().is_empty()
            && name.len() <= 64
            // The next of several keys in base64: `x==,y==`.
            && !shape::is_key(name)
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'_' | b'-' | b'.'))
    })
}

/// Where a line ends whose end is written as an escape; the end of the text where none is. Nothing behind it is read.
fn end_of_escaped_line(text: &str) -> usize {
    let is_end = |at: &usize| matches!(text.as_bytes().get(at + 1), Some(b'r' | b'n'));
    text.match_indices('\\').map(|(at, _)| at).find(is_end).unwrap_or(text.len())
}

/// Whether what stands in backquotes is run, and gives the value: `cat /run/secrets/x`.
fn is_command(text: &str) -> bool {
    text.split_once(' ').is_some_and(|(program, rest)| {
        !matches!(program, "echo" | "printf")
            && program.bytes().all(|byte| byte.is_ascii_lowercase() || b"-_/".contains(&byte))
            && (rest.starts_with(['/', '-', '$', '.', '"', '\''])
                || rest.contains(" | ")
                || TELLERS.contains(program))
    })
}

/// Whether every line of a block gives a name what looks like a key.
pub(super) fn holds_keys(block: &str) -> bool {
    // In one line they are parted by commas.
    let mut lines = block
        .split(['\n', ','])
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .peekable();
    lines.peek().is_some()
        && lines.all(|line| {
            line.split_once('=').is_some_and(|(_, value)| {
                shape::is_key(value) || shape::is_harmless(value.trim().trim_matches('"'))
            })
        })
}

/// Whether a line of a block gives nothing but what is filled in elsewhere.
pub(super) fn is_filled_line(line: &str) -> bool {
    let line = line.trim();
    let value = line
        .split_once(": ")
        .or_else(|| line.split_once(" = "))
        .map_or(line, |(_, value)| value)
        .trim()
        .trim_matches(['"', '\'']);
    line.starts_with('#') || line.ends_with(':') || shape::is_harmless(value)
}
