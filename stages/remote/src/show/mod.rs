//! How answers are shown: tables for people, JSON, YAML and names for programs.

pub(crate) mod screen;
pub(crate) mod table;
pub(crate) mod text;

use clap::ValueEnum;
use crossterm::style::Stylize as _;
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

/// Whether a terminal would obey it: what moves, colours or clears, and what turns the order of letters round.
fn is_obeyed(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A text on one line, without what a terminal would obey.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if is_obeyed(c) { ' ' } else { c }).collect()
}

/// Several lines, alike.
pub(crate) fn lines(text: &str) -> String {
    text.chars().map(|c| if is_obeyed(c) && c != '\n' && c != '\t' { ' ' } else { c }).collect()
}

/// A word of the schema as people know it: `OUT_OF_SYNC` is `OutOfSync`.
pub(crate) fn word(name: &str) -> String {
    let part = |part: &str| {
        let mut letters = part.chars();
        letters.next().into_iter().chain(letters.flat_map(char::to_lowercase)).collect::<String>()
    };
    name.split('_').map(part).collect()
}

/// The beginning of a commit's id; anything else whole. Of several sources, between commas, each.
pub(crate) fn revision(text: &str) -> String {
    let short = |one: &str| {
        let is_id = one.len() >= 40 && one.chars().all(|c| c.is_ascii_hexdigit());
        plain(if is_id { one.get(..8).unwrap_or(one) } else { one })
    };
    text.split(',').map(short).collect::<Vec<_>>().join(",")
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

/// What tells how something is: the first word in the colour of that.
const STATES: [&str; 5] = ["Health", "Operation", "Phase", "Status", "Sync"];

/// Names and values, one below the other; what has no value is left out. What has no room on a terminal goes on below.
pub(crate) fn facts(all: &[(&str, String)], screen: &Screen) -> String {
    let shown = || all.iter().filter(|(_, value)| !value.is_empty());
    let indent = shown().map(|(name, _)| name.len()).max().unwrap_or_default() + 3;
    let mut text = String::new();
    for (name, value) in shown() {
        for (number, line) in value.lines().enumerate() {
            let named = if number == 0 { format!("{name}:") } else { String::new() };
            let most = screen.width.map(|width| usize::from(width).saturating_sub(indent));
            let mut value = text::fold(&plain(line), most, 0).replace('\n', &format!("\n{:indent$}", ""));
            if screen.colour && number == 0 && STATES.contains(name) {
                value = coloured(&value);
            }
            text += &format!("{named:indent$}{value}\n");
        }
    }
    text
}

/// A text whose first word is a state, which is coloured.
fn coloured(text: &str) -> String {
    let (state, behind) = text.split_at(text.find([' ', ':', ',', '\n']).unwrap_or(text.len()));
    match table::colour(state) {
        Some(colour) => format!("{}{behind}", state.with(colour)),
        None => text.to_owned(),
    }
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
        // Of several sources each.
        let ids = format!("{id},1.2.3,{}", id.replace("0123", "fedc"));
        assert_eq!(revision(&ids), "01234567,1.2.3,fedc4567");
        assert_eq!(revision("a, b"), "a, b");
    }

    #[test]
    fn what_a_terminal_would_obey_is_taken_out() {
        assert_eq!(plain("a\u{1b}[31mb\nc"), "a [31mb c");
        assert_eq!(lines("a\u{1b}c\nb\tc\r"), "a c\nb\tc ");
        // What turns the order of letters round, so that a name reads as another.
        assert_eq!(plain("a\u{202e}b\u{2069}"), "a b ");
    }

    #[test]
    fn facts_stand_below_each_other_and_what_has_no_room_goes_on_below() {
        let screen = |width| Screen { is_terminal: true, width, colour: false };
        let of = |text: &str| text.to_owned();
        let all = [("a", of("x\ny")), ("none", of("")), ("Health", of("Degraded: back-off restarting"))];
        let whole = "a:       x\n         y\nHealth:  Degraded: back-off restarting\n";
        assert_eq!(facts(&all, &screen(None)), whole);
        let folded = "a:       x\n         y\nHealth:  Degraded: back-off\n         restarting\n";
        assert_eq!(facts(&all, &screen(Some(30))), folded);
        let coloured = facts(&all, &Screen { colour: true, ..screen(None) });
        assert!(coloured.contains("\u{1b}[38;5;1mDegraded\u{1b}[39m: back-off"), "{coloured:?}");
        let unknown = facts(&[("Phase", of("Pending"))], &Screen { colour: true, ..screen(None) });
        assert_eq!(unknown, "Phase:  Pending\n");
    }
}
