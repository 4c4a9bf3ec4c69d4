//! The comments of a text in YAML. They are found generously: a `#` inside a value counts too.

use std::ops::Range;

use super::occurrences::Occurrences;
use super::scan::Found;
use super::shape;

/// Bytes of the longest word that is looked for as a whole word alone: shorter ones stand in other words, too.
const WORD: usize = 4;

/// What stands behind each `#` that could begin a comment, line by line.
#[derive(Debug, Default)]
pub(super) struct Comments {
    pub(super) text: String,
    /// Where in `text` each line begins, and where in the whole.
    lines: Vec<(usize, usize)>,
    /// Lines that stand below each other in the whole, and are nothing but comments: parts of `text`.
    blocks: Vec<Range<usize>>,
    /// Values that are commented out among the data of a Secret: parts of `text`.
    data: Vec<Range<usize>>,
}

impl Comments {
    pub(super) fn of(whole: &str) -> Self {
        let mut comments = Self::default();
        if !whole.contains('#') {
            return comments;
        }
        let (mut at, mut joins) = (0, false);
        let mut place = Data::default();
        for line in whole.split_inclusive('\n') {
            let begins =
                |at: usize| line.get(..at).is_some_and(|head| head.is_empty() || head.ends_with([' ', '\t']));
            let sign = line.match_indices('#').find(|(at, _)| begins(*at));
            let alone =
                sign.is_some_and(|(sign, _)| line.get(..sign).is_some_and(|head| head.trim().is_empty()));
            let start = comments.text.len();
            let within = place.holds(line);
            if let Some((sign, _)) = sign {
                if let Some(value) = line.get(sign + 1..).filter(|_| alone && within).and_then(commented_out)
                {
                    comments.data.push(start + value.start..start + value.end);
                }
                comments.lines.push((start, at + sign + 1));
                comments
                    .text
                    .push_str(line.get(sign + 1..).unwrap_or_default().trim_end_matches(['\n', '\r']));
                comments.text.push('\n');
            }
            match comments.blocks.last_mut() {
                Some(block) if alone && joins => block.end = comments.text.len(),
                _ if sign.is_some() => comments.blocks.push(start..comments.text.len()),
                _ => {}
            }
            // An empty line does not part them.
            joins = alone || joins && line.trim().is_empty();
            at += line.len();
        }
        comments
    }

    /// The blocks in which a whole Secret stands, and what is commented out in one.
    pub(super) fn dumps(&self) -> impl Iterator<Item = Found> + '_ {
        let dumps = |text: &str| shape::mentions_secret(text) && holds_data(text);
        let blocks =
            self.blocks.iter().filter(move |block| self.text.get((*block).clone()).is_some_and(dumps));
        let data = self.data.iter().map(|value| Found::new(value.clone(), "comment"));
        blocks.map(|block| Found::new(block.start..block.end - 1, "comment")).chain(data)
    }

    /// Where they repeat one of these; nothing when that cannot be told.
    pub(super) fn repeat(&self, gone: &[String]) -> Option<Vec<Found>> {
        let hits = Occurrences::of(gone)?.within(&self.text)?;
        let letter = |at: Option<usize>| {
            at.and_then(|at| self.text.as_bytes().get(at)).is_some_and(u8::is_ascii_alphanumeric)
        };
        let alone = |range: &Range<usize>| {
            range.len() > WORD || !letter(range.start.checked_sub(1)) && !letter(Some(range.end))
        };
        let found = hits.iter().map(|hit| hit.range()).filter(alone);
        Some(found.map(|range| Found::new(range, "comment")).collect())
    }

    /// Where a part of them stands in the whole.
    pub(super) fn place(&self, range: &Range<usize>) -> Option<Range<usize>> {
        let place = |at: usize| {
            let line = self.lines.partition_point(|(begins, _)| *begins <= at).checked_sub(1)?;
            self.lines.get(line).map(|(begins, stands)| stands + at - begins)
        };
        Some(place(range.start)?..place(range.end.checked_sub(1)?)? + 1)
    }
}

/// Whether lines stand among the data of a Secret that is a document by itself.
#[derive(Debug, Default)]
struct Data {
    secret: bool,
    open: bool,
}

impl Data {
    /// Takes the next line; whether it stands there.
    fn holds(&mut self, line: &str) -> bool {
        if line.starts_with("---") {
            *self = Self::default();
        } else if !line.starts_with([' ', '\t', '#', '\n', '\r']) {
            let name = line.trim_end();
            self.open = matches!(name, "data:" | "stringData:");
            self.secret = self.secret || name == "kind: Secret";
        }
        self.secret && self.open
    }
}

/// Where the value stands in what is commented out, a name and one word that was made up: ` token: x`.
fn commented_out(comment: &str) -> Option<Range<usize>> {
    let (name, value) = comment.trim_end().split_once(": ")?;
    let bare = value.trim_matches([' ', '"', '\'']);
    let named = name.trim_start().bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
    let start = name.len() + 2 + value.find(bare)?;
    let made = shape::is_password(bare) || shape::is_key(bare);
    // `owner: ada@example.org`.
    let plain = shape::is_harmless(bare) || shape::is_mail_address(bare);
    (named && made && !bare.contains(' ') && !plain).then(|| start..start + bare.len())
}

/// Whether `data` or `stringData` is a name in a text, and not `metadata`.
fn holds_data(text: &str) -> bool {
    text.match_indices("ata").any(|(at, word)| {
        let head = text.get(..at).unwrap_or_default();
        let rest = text.get(at + word.len()..).unwrap_or_default().trim_start_matches(['"', '\'', '\\', ' ']);
        let begins = head.ends_with("stringD")
            || head
                .strip_suffix('d')
                .is_some_and(|head| !head.ends_with(|letter: char| letter.is_ascii_alphanumeric()));
        begins && rest.starts_with(':')
    })
}
