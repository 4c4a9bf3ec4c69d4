//! Pairs of which one half names what the other holds: `{name: DB_PASSWORD, value: x}`, `<entry key="password">x</entry>`.

use std::ops::Range;

use serde_json::Value;

use super::super::names::{self, Class};
use super::super::prose;
use super::super::scan::Found;
use super::super::shape;
use super::super::tree;
use super::super::walk::{is_bare, is_key_reference, is_schema, is_secret_value};
use super::super::words::PAIR_NAMES;
use super::{LINE, NAME, Name, PAIR, Scan, is_quote, is_quote_letter};

/// How far the end of an element's text is looked for, in bytes.
const CONTENT: usize = 65_536;

impl<'t> Scan<'t> {
    /// `value` beside the name of a pair.
    pub(super) fn values(&self, marks: &[usize], found: &mut Vec<Found>) {
        let mut done = 0;
        for at in marks {
            if *at < done || !self.word_starts(*at) {
                continue;
            }
            let end = at + "value".len();
            let shut = self.within(end, 4, |byte| !(is_quote(byte) || byte == b'\\'));
            let gap = self.within(shut, 8, |byte| byte != b' ' && byte != b'\t');
            if !matches!(self.byte(gap), Some(b':' | b'=' | b'>')) {
                continue;
            }
            let class = self.class_of_pair(*at);
            if class == Class::Plain {
                continue;
            }
            let quoted = shut > end;
            let name = Name { text: "value", start: *at, quoted, apart: gap > shut };
            let range = match self.byte(gap) {
                Some(b'>') => self.content(gap + 1),
                _ => self.named(&name, gap, class),
            };
            if let Some(range) = range {
                done = range.end;
                found.push(Found::new(range, "value of a pair"));
            }
        }
    }

    /// What the name of the pair says whose `value` begins at `at`: `- name: DB_PASSWORD` in the line
    /// before, `key="Password"` before it in an element.
    fn class_of_pair(&self, at: usize) -> Class {
        let Some(head) = self.text.get(self.boundary(at.saturating_sub(PAIR))..at) else {
            return Class::Plain;
        };
        if let Some(field) = head.strip_suffix("Invalid ").map(|head| head.trim_end().trim_end_matches(':')) {
            // `env[0].value: Invalid value: "x"`, `data[password]: Invalid value: "x"`: the API server quotes.
            let field = field.rsplit(char::is_whitespace).next().unwrap_or_default();
            let value =
                field.ends_with(".value") || field.starts_with("data[") || field.starts_with("stringData[");
            let class = if value { Class::Secret } else { names::classify(field) };
            return if class == Class::Plain { self.class_behind(at) } else { class };
        }
        let noise =
            |letter: char| letter.is_whitespace() || matches!(letter, ':' | '=' | '"' | '\'' | '\\' | '>');
        let words = [
            "name", "key", "path", "Name", "Key", "field", "header", "label", "variable", "param",
            "property", "Property",
        ];
        let named = words.iter().filter_map(|word| {
            let ends = head.rmatch_indices(word).map(|(found, _)| found + word.len());
            ends.into_iter().find(|end| {
                let begins = head.get(..end - word.len()).is_some_and(|head| {
                    let end_tag = head
                        .rsplit_once('<')
                        .is_some_and(|(_, tag)| tag.starts_with('/') && !tag.contains('>'));
                    !end_tag && !head.ends_with(|letter: char| letter.is_alphanumeric() || letter == '/')
                });
                begins && head.get(*end..).is_some_and(|rest| rest.starts_with(noise))
            })
        });
        let Some(rest) = named.max().and_then(|found| head.get(found..)) else {
            let line = head.rsplit('\n').next().unwrap_or_default();
            let variable =
                line.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').find(|word| {
                    word.len() >= 4
                        && word.bytes().all(|byte| !byte.is_ascii_lowercase())
                        && names::classify(word) != Class::Plain
                });
            return variable.filter(|_| head.ends_with(' ')).map_or(Class::Plain, names::classify);
        };
        if ["/>", "},", "}\n"].iter().any(|end| rest.contains(end)) {
            // The pair before.
            return Class::Plain;
        }
        let rest = rest.trim_start_matches(noise);
        // A dot of a key itself is escaped in parameters of Helm: `config.smtp\.password`.
        let ends = |(at, letter): (usize, char)| {
            (letter != ':' && noise(letter) || matches!(letter, ',' | '<'))
                && !rest.get(at..).is_some_and(|rest| rest.starts_with("\\."))
        };
        let end = rest.char_indices().find(|place| ends(*place)).map_or(rest.len(), |(at, _)| at);
        let name = rest.get(..end).unwrap_or_default().trim_end_matches(':');
        // `kubectl patch configmap`: what says no secret there is none.
        let configures = || {
            let line = self.line_before(at, 4 * LINE).to_ascii_lowercase();
            line.contains("patch configmap") || line.contains("patch cm ")
        };
        if (name.starts_with("/data/") || name.starts_with("/stringData/")) && !configures() {
            return Class::Secret;
        }
        names::classify(name.rsplit(['/', ':']).next().unwrap_or(name))
    }

    /// What the field says that stands behind a value: `value: "x": spec.password in body should be at least 16 chars long`.
    fn class_behind(&self, at: usize) -> Class {
        let field = || {
            let (_, rest) = self.line_from(at).strip_prefix("value: \"")?.split_once("\": ")?;
            rest.split_once(" in body").map(|(field, _)| field).filter(|field| !field.contains(' '))
        };
        field().map_or(Class::Plain, names::classify)
    }

    /// What a name that is itself the value of `name` or `key` says of the other half: of what stands before it in its
    /// tag or bracket, `<add value="x" key="ApiKey"/>`, or of the text of its element, `<entry key="password">x</entry>`.
    pub(super) fn attribute(
        &self,
        name: &Name<'t>,
        gap: usize,
        class: Class,
    ) -> Option<(Range<usize>, &'static str)> {
        let from = self.boundary(name.start.saturating_sub(PAIR));
        let head = without_words(without_section(self.text.get(from..name.start)?));
        let head = head.trim_end_matches(is_quote_letter);
        let head = head.trim_end_matches(['\\', ' ']);
        let element = head.ends_with('=');
        let head = head.strip_suffix(['=', ':'])?.trim_end_matches(['"', '\'', '\\', ' ']);
        let word = head.rsplit(|letter: char| !letter.is_ascii_alphanumeric()).next().unwrap_or_default();
        if !PAIR_NAMES.contains(word.to_ascii_lowercase().as_str()) {
            return None;
        }
        let (open, close) = if element { ('<', '>') } else { ('{', '}') };
        let inner = head.rfind(open)?;
        let tag = head.get(inner..)?;
        if tag.contains(close) {
            return None;
        }
        if let Some(at) = tag.to_ascii_lowercase().rfind("value") {
            let end = from + inner + at + "value".len();
            let shut = self.within(end, 4, |byte| !(is_quote(byte) || byte == b'\\'));
            let gap = self.within(shut, 8, |byte| byte != b' ');
            if matches!(self.byte(gap), Some(b':' | b'=')) {
                let name = Name { text: "value", start: end - 5, quoted: shut > end, apart: false };
                return self.named(&name, gap, class).map(|range| (range, "value of a pair"));
            }
        }
        let end = self.within(gap, LINE, |byte| matches!(byte, b'<' | b'>'));
        if !element || self.byte(end) != Some(b'>') || self.before(end) == Some(b'/') {
            return None;
        }
        let range = self.content(end + 1)?;
        let text = self.text.get(range.clone())?.trim();
        // What a page says of it: `<a name="API Token">How to make one</a>`.
        let told = tag.starts_with("<a ") && prose::is_saying(text);
        (class.holds(name.text, text) && !told).then_some((range, "text of an element"))
    }

    /// What a name in quotes is set to: ``set `JWT_SECRET` to "x"``.
    pub(super) fn set_to(&self, name: &Name<'t>, gap: usize, class: Class) -> Option<Range<usize>> {
        let line = self.line_from(gap);
        let value = ["to ", "is ", "as ", "with "].iter().find_map(|word| line.strip_prefix(word))?;
        let quote = value.bytes().next().filter(|byte| is_quote(*byte))?;
        let from = gap + line.len() - value.len() + 1;
        let value = from..self.close(from, quote);
        let text = self.text.get(value.clone())?;
        (class.holds(name.text, text) && !prose::is_name_of_field(text) && !text.contains(' '))
            .then_some(value)
    }

    /// The default in the last cell of a row of Markdown whose first cell is the name: ``| `password` | told | `x` |``.
    pub(super) fn row(&self, name: &Name<'t>, gap: usize, class: Class) -> Option<Range<usize>> {
        if self.line_before(name.start, NAME).trim_end_matches(is_quote_letter).rsplit('|').next()?.len() > 1
        {
            return None;
        }
        let line = self.line_from(gap).trim_end().strip_suffix('|')?.trim_end();
        let text = line.strip_suffix('`')?.rsplit('`').next()?;
        let end = gap + line.len() - 1;
        let bare = text.trim_matches(['"', '\'']);
        let start = end - text.len() + text.find(bare).unwrap_or_default();
        (class.holds(name.text, bare) && !prose::is_name_of_field(bare) && !bare.contains(' '))
            .then(|| start..start + bare.len())
    }

    /// Whether a quote opens before the name that begins at `start`, with or without the section it lies in:
    /// `"ida:ClientSecret"`.
    pub(super) fn opens_quoted(&self, start: usize) -> bool {
        let head = self.head(start, NAME);
        without_section(head).ends_with(is_quote_letter)
    }

    /// The default of a variable of Terraform, whose block opens at `from`.
    pub(super) fn default_of(&self, name: &Name<'t>, from: usize, class: Class) -> Option<Range<usize>> {
        let end = self.within(from, LINE, |byte| byte == b'}');
        let from = from + self.text.get(from..end)?.find("default ")?;
        let from = self.within(from, LINE, |byte| matches!(byte, b'"' | b'\n'));
        let value = from + 1..self.close(from + 1, self.byte(from).filter(|byte| is_quote(*byte))?);
        class.holds(name.text, self.text.get(value.clone())?).then_some(value)
    }

    /// The text behind a key of a property list, `<key>password</key><string>x</string>`, which ends at `end`.
    pub(super) fn plist(&self, end: usize) -> Option<Range<usize>> {
        let rest = self.text.get(end..)?.strip_prefix("</key>")?;
        let from = self.within(end + "</key>".len(), 32, |byte| !byte.is_ascii_whitespace());
        let open = ["<string>", "<data>"].iter().find(|open| rest.trim_start().starts_with(**open))?;
        self.content(from + open.len())
    }

    /// Whether the value of a name in a text is a structure that is no secret as a whole, as in a tree: its members are
    /// looked at by themselves.
    pub(super) fn is_structure(&self, name: &str, class: Class, value: &Range<usize>) -> bool {
        let head = self.line_before(value.start, LINE);
        let indent = if head.trim().is_empty() { head.len() } else { 0 };
        let text = self.text.get(value.start - indent..value.end).filter(|text| text.len() <= 2 * LINE);
        let Some(documents) = text.and_then(|text| tree::yaml(text).ok()) else { return false };
        let [only @ Value::Object(map)] = documents.as_slice() else { return false };
        // The schema of one: `"password":{"type":"string"}`.
        if is_schema(only)
            && !["default", "example", "examples", "enum", "const"].iter().any(|told| map.contains_key(*told))
        {
            return true;
        }
        let refers = is_key_reference(name, only);
        self.refers.set(if refers { value.end } else { 0 });
        refers || !is_secret_value(name, class, only) || map.iter().all(|(name, value)| is_bare(name, value))
    }

    /// The text of an element whose start tag is the name and ends at `end`.
    pub(super) fn element(&self, name: &Name<'t>, end: usize) -> Option<Range<usize>> {
        if self.before(name.start) != Some(b'<') {
            return None;
        }
        // Of Windows: `<Password><Value>x</Value>`.
        let from = self.within(end + 1, 64, |byte| !byte.is_ascii_whitespace());
        let inner = self.text.get(from..).filter(|rest| rest.starts_with("<Value>"));
        self.content(inner.map_or(end + 1, |_| from + "<Value>".len()))
    }

    /// The text from `from` to the end tag.
    fn content(&self, from: usize) -> Option<Range<usize>> {
        let data = self.text.get(from..).and_then(|rest| rest.strip_prefix("<![CDATA[")).is_some();
        let from = from + if data { 9 } else { 0 };
        let end = self.within(from, CONTENT, |byte| byte == if data { b']' } else { b'<' });
        let closed = data || self.byte(end + 1) == Some(b'/');
        let text = self.text.get(from..end)?.trim();
        (closed && !shape::is_harmless(text)).then_some(from..end)
    }
}

/// What stands before a name, without the sections of .NET's settings: `"Azure:Storage:` before `Key"`.
fn without_section(head: &str) -> &str {
    let letter = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.' | ':');
    match head.ends_with(':') {
        true => {
            Some(head.trim_end_matches(letter)).filter(|head| head.ends_with(is_quote_letter)).unwrap_or(head)
        }
        false => head,
    }
}

/// What stands before a name in quotes, without the words of it before the last: `name="Manager ` before `Password`.
fn without_words(head: &str) -> &str {
    let bare = head.trim_end_matches(|letter: char| letter.is_ascii_alphabetic() || letter == ' ');
    if head.ends_with(' ') && bare.ends_with(is_quote_letter) { bare } else { head }
}
