//! What a password was and what it is now, in lines of their own below what says that it was changed: `rotate the password of
//! orders`, and `old: x`, `new: y`; what it was set to, at the end of a sentence.

use std::ops::Range;

use super::super::names::{self, Class};
use super::super::prose;
use super::super::scan::Found;
use super::super::shape;
use super::super::words::{ABOUT, OWNS, TERMS};
use super::{NAME, Name, Scan, is_quote_letter};

/// Lines that are read below what says that a password was changed.
const LINES: usize = 12;

/// How a word begins that says that something was changed.
const CHANGES: [&str; 12] = [
    "rotat",
    "chang",
    "replac",
    "renew",
    "reset",
    "updat",
    "swap",
    "roll",
    "regenerat",
    "geänder",
    "ersetz",
    "rotier",
];

/// What stands before the colon of either half.
const HALVES: [&str; 9] = ["old", "new", "before", "after", "previous", "was", "now", "alt", "neu"];

/// Words with which a sentence begins that says what a password becomes.
const SETS: [&str; 12] = [
    "set", "sets", "setting", "reset", "resets", "change", "changes", "changed", "update", "updated",
    "rotate", "rotated",
];

impl<'t> Scan<'t> {
    /// Both halves of what a line says was changed. Each line is read once.
    pub(super) fn rotations(&self, marks: &[usize], found: &mut Vec<Found>) {
        let mut done = 0;
        for at in marks {
            if *at < done {
                continue;
            }
            let mut end = self.line_end(*at);
            done = end;
            if self.line_before(*at, NAME).len() + end - at > NAME {
                continue;
            }
            let Some(password) = changed(self.line_around(*at)) else { continue };
            // A word of small letters is one where the other half was made up: `old: manual` tells how something is done.
            let (mut words, mut made) = (Vec::new(), false);
            for _ in 0..LINES {
                let start = self.within(end, 2, |byte| !matches!(byte, b'\r' | b'\n'));
                let line = self.line_from(start);
                if start == end || !matches!(self.byte(start + line.len()), None | Some(b'\n' | b'\r')) {
                    break;
                }
                end = start + line.len();
                if let Some((name, value)) = half(line) {
                    let from = start + line.len() - value.len();
                    let word = value.split([' ', '\t']).next().unwrap_or_default();
                    let bare = word.trim_matches(is_quote_letter);
                    let from = from + word.find(bare).unwrap_or_default();
                    let half = Found::new(from..from + bare.len(), "what was changed");
                    if is_one(bare, password, false) {
                        made = true;
                        found.push(half);
                    } else if is_one(bare, password, names_half(name)) {
                        words.push(half);
                    }
                    done = end;
                }
            }
            found.extend(words.into_iter().filter(|_| made));
        }
    }

    /// What a sentence that begins so says a password was set to, where it ends with that: `set the password of ada to x`.
    pub(super) fn assigned(&self, name: &Name<'t>, from: usize) -> Option<Range<usize>> {
        let head = self.line_before(name.start, NAME);
        let subject =
            head.rsplit_once(": ").map_or(head, |(_, subject)| subject).trim_start_matches([' ', '-', '*']);
        let verb = subject.split(' ').next().unwrap_or_default().to_ascii_lowercase();
        let line = self.line_from(from).trim_end().trim_end_matches(['.', '!', ';', ',', ')']);
        let (whose, word) = match line.strip_prefix("to ") {
            Some(word) => ("", word),
            None => line.split_once(" to ")?,
        };
        let bare = word.trim_matches(is_quote_letter);
        let start = from + line.len() - word.len() + word.find(bare)?;
        let secret = names::is_password(name.text)
            && SETS.contains(&verb.as_str())
            && whose.split_whitespace().next().is_none_or(|word| OWNS.contains(word))
            && whose.split_whitespace().count() <= 5
            && is_assigned(bare);
        secret.then(|| start..start + bare.len())
    }
}

/// Whether a line says that a secret was changed, and if so whether it is a password. What was changed *about* one is a
/// setting: `change the password policy`.
fn changed(line: &str) -> Option<bool> {
    let words = || line.split([' ', '\t', '(', ')', ':', ',', '.', '"', '`']).filter(|word| !word.is_empty());
    let lower = line.to_lowercase();
    let says = |word: &str| CHANGES.iter().any(|begin| word.starts_with(begin));
    if !lower.split(|letter: char| !letter.is_alphabetic()).any(says) {
        return None;
    }
    let mut next = words().skip(1).map(str::to_lowercase);
    let mut secret = None;
    for word in words() {
        let after = next.next();
        let about = after.is_some_and(|after| ABOUT.contains(after.as_str()) && !says(&after));
        let class = names::classify(word);
        if about || !matches!(class, Class::Secret | Class::Scalar) {
            continue;
        }
        secret = Some(secret == Some(true) || names::is_password(word) || word.starts_with("credential"));
    }
    secret
}

/// What stands before and behind the colon of `old: x`, where it is a word alone or with an aside behind it.
fn half(line: &str) -> Option<(&str, &str)> {
    let bare = line.trim_start_matches([' ', '\t', '-', '*', '>', '+']);
    let (name, value) = bare.split_once([':', '='])?;
    let name = name.trim_matches([' ', '*', '`']);
    let value = value.trim_start_matches([' ', '\t', '*']);
    let rest = value.split_once([' ', '\t']).map_or("", |(_, rest)| rest).trim();
    let alone = rest.is_empty() || rest.starts_with(['(', '#']);
    (alone && HALVES.iter().any(|half| name.eq_ignore_ascii_case(half))).then_some((name, value))
}

/// Whether a half is called for what it is, and not for when: of the latter a state is told as often, `now: pending`.
fn names_half(name: &str) -> bool {
    ["old", "new", "alt", "neu"].iter().any(|half| name.eq_ignore_ascii_case(half))
}

/// Whether what a secret was, or is now, stands there, and not how it is made, kept or called, where, or for how long. What is
/// `called` old or new may be a word of small letters too.
fn is_one(text: &str, password: bool, called: bool) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let told = shape::is_harmless(text)
        || shape::is_switch(text)
        || shape::is_version(text)
        || shape::is_duration(text)
        || shape::is_share(text)
        || shape::is_mail_address(text)
        || shape::is_address(text)
        || shape::is_hash(text) && text.len() < 32
        || prose::is_word_of_prose(text)
        || prose::is_state(text)
        || prose::is_participle(text)
        || names::classify(text) != Class::Plain
        || TERMS.contains(text.to_ascii_lowercase().as_str());
    let made = || {
        text.len() >= 6
            && !is_place(text)
            && text.bytes().any(|byte| byte.is_ascii_alphabetic())
            && (digits > 0 || is_cased(text) || called && is_word(text))
    };
    !told && (shape::is_key(text) || shape::is_password(text) && !is_place(text) || password && made())
}

/// Whether a text has capital and small letters as no name of somebody has them: `austernFischer`, `Gannet_auk`.
fn is_cased(text: &str) -> bool {
    let upper = |text: &str| text.bytes().any(|byte| byte.is_ascii_uppercase());
    let joined = upper(text) && text.contains(['_', '-', '.', '!', '+', '*']);
    text.bytes().any(|byte| byte.is_ascii_lowercase()) && (joined || text.get(1..).is_some_and(upper))
}

/// Whether a text is a word of small letters that says no more than that.
fn is_word(text: &str) -> bool {
    text.len() >= 6 && text.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// Whether a text is a host, an image, a file or a path: `db-2.example.com`, `pg-02:5432`, `redis:7.2`, `a/b`.
fn is_place(text: &str) -> bool {
    let (host, port) = text.rsplit_once(':').map_or((text, ""), |(host, port)| (host, port));
    let small = host
        .bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.'));
    let ends = || {
        let end = host.rsplit(['-', '.']).next().unwrap_or_default();
        host.contains('.') && end.bytes().all(|byte| byte.is_ascii_lowercase())
            || host.contains('-') && end.len() <= 2
            || host.contains('-') && end.starts_with('v') && end.len() <= 3
    };
    text.contains('/')
        || small
            && (ends() || !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
}

/// Whether a word behind `set the password to` is one: letters and digits, perhaps words with a sign between them, and no
/// version, path or host, nor the name of a variable or of an object.
fn is_assigned(word: &str) -> bool {
    let letters = |part: &str| part.bytes().any(|byte| byte.is_ascii_alphabetic());
    let version = |part: &str| {
        part.starts_with(['v', 'V'])
            && part.len() > 1
            && part.bytes().skip(1).all(|byte| byte.is_ascii_digit())
    };
    let small = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (6..=64).contains(&word.len())
        && letters(word)
        && word.bytes().any(|byte| byte.is_ascii_digit())
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.!@#$%^&*+?".contains(&byte))
        && !(word.contains('-') && word.bytes().all(small))
        && !word.split(['-', '_', '.']).any(version)
        && word.matches('.').count() < 2
        && names::classify(word) == names::Class::Plain
        && !TERMS.contains(word.to_ascii_lowercase().as_str())
        && !shape::is_version(word)
        && !shape::is_harmless(word)
        && !shape::is_duration(word)
        && !(shape::is_hash(word) && word.len() < 32)
}
