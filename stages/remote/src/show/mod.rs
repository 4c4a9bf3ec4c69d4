//! How answers are shown: tables for people, JSON, YAML and names for programs.

pub(crate) mod screen;
pub(crate) mod table;

use clap::ValueEnum;
use jiff::Timestamp;
use serde::Serialize;

pub(crate) use self::screen::Screen;
pub(crate) use self::table::{Cell, Column, table};
use crate::error::RemoteError;

/// How it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// Columns, for people
    Table,
    /// The same with more of them
    Wide,
    /// One JSON document
    Json,
    /// One YAML document
    Yaml,
    /// A name a line, as other commands take it
    Name,
}

/// A document for programs.
pub(crate) fn document<T: Serialize + ?Sized>(value: &T, output: Output) -> Result<String, RemoteError> {
    let wrong = |error: Box<dyn std::error::Error + Send + Sync>| RemoteError::Format(error);
    match output {
        Output::Yaml => serde_saphyr::to_string(&value).map_err(|error| wrong(error.into())),
        _ => Ok(serde_json::to_string_pretty(value).map_err(|error| wrong(error.into()))? + "\n"),
    }
}

/// A text on one line, without what a terminal would obey.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Several lines, alike.
pub(crate) fn lines(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' && c != '\t' { ' ' } else { c }).collect()
}

/// A word of the schema as people know it: `OUT_OF_SYNC` is `OutOfSync`.
pub(crate) fn word(name: &str) -> String {
    let part = |part: &str| {
        let mut letters = part.chars();
        letters.next().into_iter().chain(letters.flat_map(char::to_lowercase)).collect::<String>()
    };
    name.split('_').map(part).collect()
}

/// The beginning of a commit's id; anything else whole.
pub(crate) fn revision(text: &str) -> String {
    let is_id = text.len() >= 40 && text.chars().all(|c| c.is_ascii_hexdigit());
    plain(if is_id { text.get(..8).unwrap_or(text) } else { text })
}

/// How long ago a time is, as short as it can be said.
pub(crate) fn age(at: Option<&str>, now: Timestamp) -> String {
    let Some(at) = at.and_then(|at| at.parse::<Timestamp>().ok()) else { return String::new() };
    let seconds = now.duration_since(at).as_secs().max(0);
    match seconds {
        s if s < 120 => format!("{s}s"),
        s if s < 2 * 3_600 => format!("{}m", s / 60),
        s if s < 48 * 3_600 => format!("{}h", s / 3_600),
        s => format!("{}d", s / 86_400),
    }
}

/// A time and how long ago that is.
pub(crate) fn moment(at: Option<&str>, now: Timestamp) -> String {
    match at.and_then(|text| text.parse::<Timestamp>().ok()) {
        Some(time) => format!("{} ({} ago)", time.strftime("%F %TZ"), age(at, now)),
        None => String::new(),
    }
}

/// Names and values, one below the other; what has no value is left out.
pub(crate) fn facts(all: &[(&str, String)]) -> String {
    let shown = || all.iter().filter(|(_, value)| !value.is_empty());
    let widest = shown().map(|(name, _)| name.len()).max().unwrap_or_default() + 1;
    shown().fold(String::new(), |text, (name, value)| {
        let name = format!("{name}:");
        let mut lines = value.lines();
        let first = format!("{name:<widest$}  {}\n", plain(lines.next().unwrap_or_default()));
        lines.fold(text + &first, |text, line| text + &format!("{:widest$}  {}\n", "", plain(line)))
    })
}

/// How many of something; the plural is made with s.
pub(crate) fn count(number: usize, of: &str) -> String {
    if number == 1 { format!("1 {of}") } else { format!("{number} {of}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_schema_are_those_that_people_know() {
        let words = ["OUT_OF_SYNC", "HEALTHY", "Succeeded", ""].map(word);
        assert_eq!(words, ["OutOfSync", "Healthy", "Succeeded", ""]);
    }

    #[test]
    fn an_age_is_as_short_as_it_can_be_said() {
        let now: Timestamp = "2026-11-25T12:00:00Z".parse().unwrap();
        for (at, said) in [
            ("2026-11-25T11:59:30.5Z", "29s"),
            ("2026-11-25T10:01:00Z", "119m"),
            ("2026-11-24T10:01:00Z", "25h"),
            ("2026-11-01T10:01:00Z", "24d"),
            ("2026-11-25T13:00:00Z", "0s"),
            ("yesterday", ""),
        ] {
            assert_eq!(age(Some(at), now), said, "{at}");
        }
        assert_eq!(age(None, now), "");
        assert_eq!(moment(Some("2026-11-25T11:59:30Z"), now), "2026-11-25 11:59:30Z (30s ago)");
    }

    #[test]
    fn a_commit_is_shown_by_its_beginning_and_a_version_as_it_is() {
        let id = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!([revision(id), revision("v1.2.3")], ["01234567", "v1.2.3"]);
    }

    #[test]
    fn what_a_terminal_would_obey_is_taken_out() {
        assert_eq!(plain("a\u{1b}[31mb\nc"), "a [31mb c");
        assert_eq!(lines("a\u{1b}c\nb\tc\r"), "a c\nb\tc ");
        assert_eq!(facts(&[("a", "x\ny".to_owned()), ("none", String::new())]), "a:  x\n    y\n");
    }
}
