//! A document in which nothing differs from what stood there but the scalars that were replaced: quotes, comments, the
//! order of members and the spelling of every other value stay.
//!
//! What is written is read again: it must give the very documents that were to be written, or it is not taken.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess};
use serde_json::Value;
use serde_saphyr::Spanned;

use super::occurrences::Occurrences;
use super::tree;

/// Bytes of what was replaced that are kept, and looked for in comments; where it is more, none of these stays.
pub(super) const GONE: usize = 64 * 1024;
/// Bytes of the shortest fragment that is looked for by itself: shorter ones stand in other words, too.
const LEAST: usize = 4;

/// A part of a text that was replaced, and what stands for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fragment {
    pub(super) old: String,
    pub(super) new: String,
}

/// What was replaced in one document.
pub(super) struct Changes<'f> {
    pub(super) changed: bool,
    /// All of it, where it is known piece by piece.
    pub(super) fragments: &'f [Fragment],
}

/// A text in which nothing but scalars was replaced.
#[derive(Debug, Default)]
pub(super) struct Spliced {
    pub(super) text: String,
    /// What was replaced, and must stand nowhere else; an empty one where it is not known what it was.
    pub(super) gone: Vec<String>,
}

/// Writes `documents` into `text`, of which they were read before some of their scalars were replaced. Nothing is read
/// again but the documents that changed.
pub(super) fn splice_those(text: &str, documents: &[Value], changes: &[Changes<'_>]) -> Option<Spliced> {
    let parts = parts(text);
    if changes.iter().all(|changes| !changes.changed) {
        return Some(Spliced { text: text.to_owned(), ..Spliced::default() });
    }
    if parts.len() < 2 || parts.len() != documents.len() || changes.len() != documents.len() {
        let fragments: Vec<_> = changes.iter().flat_map(|one| one.fragments.iter().cloned()).collect();
        return substitute(text, documents, &fragments).or_else(|| splice(text, documents));
    }
    let mut all = Spliced { text: String::with_capacity(text.len() + 256), ..Spliced::default() };
    for ((part, document), changes) in parts.iter().zip(documents).zip(changes) {
        let document = std::slice::from_ref(document);
        if changes.changed {
            let new = substitute(part, document, changes.fragments).or_else(|| splice(part, document))?;
            all.text.push_str(&new.text);
            all.gone.extend(new.gone);
        } else {
            all.text.push_str(part);
        }
    }
    Some(all)
}

/// The same as [`splice`], without reading where each scalar stands: every fragment is replaced wherever it stands, if
/// that is as often as it was replaced in the documents.
fn substitute(text: &str, documents: &[Value], fragments: &[Fragment]) -> Option<Spliced> {
    let mut known: BTreeMap<&str, (&str, usize)> = BTreeMap::new();
    for Fragment { old, new } in fragments {
        if old.len() < LEAST || old.contains(['\n', '\r', '"', '\'', '\\']) {
            return None;
        }
        let (stands, times) = known.entry(old).or_insert((new, 0));
        *times += 1;
        if stands != new {
            return None;
        }
    }
    if known.is_empty() {
        return None;
    }
    let hits = Occurrences::of(known.keys())?.within(text)?;
    let mut gone = Vec::new();
    known.keys().for_each(|old| keep(&mut gone, old));
    let known: Vec<(&str, usize)> = known.into_values().collect();
    let mut times = vec![0; known.len()];
    let mut out = String::with_capacity(text.len() + fragments.len() * 32);
    let mut done = 0;
    for hit in hits {
        let number = hit.pattern().as_usize();
        *times.get_mut(number)? += 1;
        out.push_str(text.get(done..hit.start())?);
        out.push_str(known.get(number)?.0);
        done = hit.end();
    }
    out.push_str(text.get(done..)?);
    let all = known.iter().zip(&times).all(|((_, replaced), found)| replaced == found);
    (all && reads_as(&out, documents)).then_some(Spliced { text: out, gone })
}

/// Whether a text reads as these documents.
pub(super) fn reads_as(text: &str, documents: &[Value]) -> bool {
    let json = || text.trim_start().starts_with(['{', '[']);
    match documents {
        [document] if json() && tree::json(text).is_ok_and(|read| read == *document) => true,
        _ => tree::yaml(text).is_ok_and(|read| read == documents),
    }
}

/// Adds what was replaced, and the password in it, to what must stand nowhere else.
fn keep(gone: &mut Vec<String>, part: &str) {
    let password = part.split_once(':').map_or("", |(_, password)| password);
    gone.extend([part, password].into_iter().filter(|part| !part.is_empty()).map(str::to_owned));
}

/// The documents of a text, each with the line that opens it; nothing where more than such lines part them.
fn parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut from, mut at, mut told) = (0, 0, false);
    for line in text.split_inclusive('\n') {
        if line.starts_with('%') || line.starts_with("...") || line.contains('\r') {
            return Vec::new();
        }
        if !line.starts_with("---") {
            told = told || !(line.starts_with('#') || line.trim().is_empty());
        } else if line.trim_end() != "---" {
            return Vec::new();
        } else if told {
            parts.extend(text.get(from..at));
            from = at;
            told = false;
        }
        at += line.len();
    }
    parts.extend(text.get(from..));
    parts
}

/// Writes `documents` into `text`, of which they were read before some of their scalars were replaced. Nothing when that
/// cannot be done, or would not read back as the same: then they are written anew.
fn splice(text: &str, documents: &[Value]) -> Option<Spliced> {
    let nodes: Vec<Spanned<Placed>> = serde_saphyr::from_multiple_with_options(text, tree::options()).ok()?;
    let json = text.trim_start().starts_with(['{', '[']) && tree::json(text).is_ok();
    let mut edits = Edits { text, json, scalars: Vec::new(), gone: Vec::new() };
    if nodes.len() != documents.len() {
        return None;
    }
    for (node, document) in nodes.iter().zip(documents) {
        edits.compare(node, document)?;
    }
    let Edits { scalars: mut edits, gone, .. } = edits;
    edits.sort_by_key(|(range, _)| range.start);
    // What an alias repeats stands in one place.
    edits.dedup();
    let mut out = String::with_capacity(text.len() + edits.len() * 32);
    let mut done = 0;
    for (range, new) in edits {
        out.push_str(text.get(done..range.start)?);
        out.push_str(&new);
        done = range.end;
    }
    out.push_str(text.get(done..)?);
    reads_as(&out, documents).then_some(Spliced { text: out, gone })
}

/// What is to be written where.
struct Edits<'t> {
    text: &'t str,
    json: bool,
    scalars: Vec<(Range<usize>, String)>,
    /// What must stand nowhere else.
    gone: Vec<String>,
}

impl Edits<'_> {
    /// What makes `node` read as `new`.
    fn compare(&mut self, node: &Spanned<Placed>, new: &Value) -> Option<()> {
        match (&node.value, new) {
            (Placed::Leaf(old), new) if old == new => Some(()),
            (Placed::Leaf(old), Value::String(new)) => {
                let Range { start, end } = self.place(node)?;
                let value = old.as_str().map_or_else(|| old.to_string(), str::to_owned);
                let Some(parts) = replaced(&value, new) else {
                    // It is not known what: any comment may repeat it.
                    self.gone.push(String::new());
                    return self.push(start..end, &value, new);
                };
                let parts = parts.into_iter().filter_map(|(part, _)| value.get(part));
                parts.for_each(|part| keep(&mut self.gone, part));
                self.push(start..end, &value, new)
            }
            (Placed::List(items), Value::Array(new)) if items.len() == new.len() => {
                items.iter().zip(new).try_for_each(|(item, new)| self.compare(item, new))
            }
            (Placed::Map(members), Value::Object(new)) if members.len() == new.len() => {
                members.iter().try_for_each(|(name, value)| self.compare(value, new.get(name)?))
            }
            _ => None,
        }
    }

    /// Where a scalar is to be replaced: where it stands, or the alias that repeats it alone. One that is repeated with
    /// the object in which it stands, as `<<: *base` does it, is replaced where it was written.
    fn place(&self, node: &Spanned<Placed>) -> Option<Range<usize>> {
        let range = |span: serde_saphyr::Span| {
            let start = usize::try_from(span.byte_offset()?).ok()?;
            Some(start..start + usize::try_from(span.byte_len()?).ok()?)
        };
        let stands = range(node.referenced.span())?;
        let written = range(node.defined.span())?;
        let alias = self.text.get(stands.clone())?.strip_prefix('*').filter(|_| stands != written);
        let Some(name) = alias else { return Some(stands) };
        // The anchor stands close before, so that no more is looked at.
        let head = self.text.as_bytes().get(..written.start)?;
        let head = head.get(head.len().saturating_sub(name.len() + 64)..)?.trim_ascii_end();
        let alone = head.strip_suffix(name.as_bytes()).is_some_and(|head| head.ends_with(b"&"));
        Some(if alone { stands } else { written })
    }

    fn push(&mut self, range: Range<usize>, value: &str, new: &str) -> Option<()> {
        self.scalars.push(scalar(self.text, range, value, new, self.json)?);
        Some(())
    }
}

/// A scalar in the style of the one that stands at `range`.
fn scalar(
    text: &str,
    range: Range<usize>,
    value: &str,
    new: &str,
    json: bool,
) -> Option<(Range<usize>, String)> {
    if let Some(header) = header(text, range.start) {
        return block(text, range, &header, new);
    }
    let old = text.get(range.clone())?;
    let quoted = || Value::String(new.to_owned()).to_string();
    let plain = |text: &str| !text.contains(['\n', '\r']) && !text.chars().any(char::is_control);
    if old.contains('\n')
        && let Some(written) = folded(old, value, new)
    {
        return Some((range, written));
    }
    let written = match old.as_bytes().first()? {
        b'"' => quoted(),
        b'\'' if plain(new) => format!("'{}'", new.replace('\'', "''")),
        _ if json || !plain(new) || old.contains('\n') => quoted(),
        _ => new.to_owned(),
    };
    Some((range, written))
}

/// A scalar of several lines, which are folded into one when it is read: only the digests of `new` are put where in it the
/// parts of `value` stand that they replace.
fn folded(old: &str, value: &str, new: &str) -> Option<String> {
    let quote = old.chars().next().filter(|first| matches!(first, '"' | '\''));
    let space = |letter: char| matches!(letter, ' ' | '\n' | '\t');
    let mut at = usize::from(quote.is_some());
    // Where each byte of the value stands.
    let mut places = Vec::with_capacity(value.len() + 1);
    for letter in value.chars() {
        places.extend(std::iter::repeat_n(at, letter.len_utf8()));
        let rest = old.get(at..)?;
        at += match space(letter) {
            true => rest.len() - rest.trim_start_matches(space).len(),
            false => rest.strip_prefix(letter).map(|_| letter.len_utf8())?,
        };
    }
    places.push(at);
    let mut out = String::with_capacity(old.len() + 64);
    let mut done = 0;
    for (range, digest) in replaced(value, new)? {
        let (start, end) = (*places.get(range.start)?, *places.get(range.end)?);
        out.push_str(old.get(done..start)?);
        out.push_str(digest);
        done = end;
    }
    out.push_str(old.get(done..)?);
    Some(out)
}

/// The parts of `value` that digests stand for in `new`, each with its digest.
fn replaced<'n>(value: &str, new: &'n str) -> Option<Vec<(Range<usize>, &'n str)>> {
    let length = super::PREFIX.len() + super::DIGITS;
    let mut found = Vec::new();
    let (mut done, mut at) = (0, 0);
    let mut digests = new.match_indices(super::PREFIX).map(|(at, _)| at).peekable();
    while let Some(digest) = digests.next() {
        let kept = new.get(at..digest)?;
        if found.is_empty() {
            value.strip_prefix(kept)?;
            done = kept.len();
        }
        at = digest + length;
        let rest = value.get(done..)?;
        let next = match digests.peek() {
            Some(next) => new.get(at..*next).filter(|next| !next.is_empty())?,
            None => new.get(at..)?,
        };
        let end = if digests.peek().is_some() {
            done + rest.find(next)?
        } else {
            done + rest.strip_suffix(next)?.len()
        };
        found.push((done..end, new.get(digest..at)?));
        done = end + next.len();
    }
    Some(found)
}

/// The header of a block of lines, `|-` or `>`.
struct Header {
    /// Where it stands.
    at: usize,
    /// Whether its lines are one line of the value each.
    literal: bool,
    /// What stands before each line of the block.
    indent: usize,
}

/// The header of the block whose first line has its text at `start`.
fn header(text: &str, start: usize) -> Option<Header> {
    let head = text.get(..start)?;
    let above = head.trim_end_matches(' ');
    let lines = above.strip_suffix('\n')?.trim_end();
    let begin = lines.rfind('\n').map_or(0, |end| end + 1);
    let line = lines.get(begin..)?;
    let line = line.split_once(" #").map_or(line, |(line, _)| line).trim_end();
    let before = line.trim_end_matches(|letter: char| letter.is_ascii_digit() || matches!(letter, '+' | '-'));
    let sign = before.chars().next_back().filter(|sign| matches!(sign, '|' | '>'))?;
    let at = begin + before.len() - 1;
    Some(Header { at, literal: sign == '|', indent: head.len() - above.len() })
}

/// A block of lines, indented as those that stood there; a scalar in its place when its last line does not end as theirs.
fn block(text: &str, range: Range<usize>, header: &Header, new: &str) -> Option<(Range<usize>, String)> {
    let old = text.get(range.clone())?;
    let end = range.start + old.trim_end().len();
    let strips = text.get(header.at..range.start)?.lines().next()?.contains('-');
    if new.ends_with('\n') == strips || new.chars().any(|letter| letter.is_control() && letter != '\n') {
        let quoted = new.starts_with(super::PREFIX) && !new.contains(['\n', ' ']);
        let written = if quoted { new.to_owned() } else { Value::String(new.to_owned()).to_string() };
        return Some((header.at..end, written));
    }
    let indent = " ".repeat(header.indent);
    let mut written = String::with_capacity(new.len() + 64);
    for (number, line) in new.trim_end_matches('\n').split('\n').enumerate() {
        if number > 0 {
            written.push_str(if header.literal { "\n" } else { "\n\n" });
            if !line.is_empty() {
                written.push_str(&indent);
            }
        }
        written.push_str(line);
    }
    Some((range.start..end, written))
}

/// A value, and where each part of it stands.
enum Placed {
    Leaf(Value),
    List(Vec<Spanned<Placed>>),
    Map(Vec<(String, Spanned<Placed>)>),
}

impl<'de> Deserialize<'de> for Placed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        tree::read(deserializer)
    }
}

impl<'de> tree::Node<'de> for Placed {
    fn leaf(value: Value) -> Self {
        Self::Leaf(value)
    }

    fn list<A: SeqAccess<'de>>(mut items: A) -> Result<Self, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Self::List(list))
    }

    fn map<A: MapAccess<'de>>(mut members: A) -> Result<Self, A::Error> {
        let mut map = Vec::new();
        while let Some(member) = members.next_entry()? {
            map.push(member);
        }
        Ok(Self::Map(map))
    }
}

#[cfg(test)]
mod tests;
