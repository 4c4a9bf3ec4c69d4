//! What several pages show alike.

use maud::{Markup, html};

use crate::view::application::Change;
use crate::view::deployment::{Deployment, Outcome};
use crate::view::state::{Health, SyncStatus};

/// A shape, told in a word.
pub(super) fn glyph(class: &str, word: &str, shape: &str) -> Markup {
    html! { span class={"glyph " (class)} role="img" aria-label=(word) title=(word) { (shape) } }
}

pub(crate) fn health(state: Health) -> Markup {
    glyph(state.class(), state.word(), state.glyph())
}

pub(crate) fn sync(state: SyncStatus) -> Markup {
    glyph(state.class(), state.word(), state.glyph())
}

pub(crate) fn outcome(state: Outcome) -> Markup {
    glyph(state.class(), state.word(), state.glyph())
}

/// A revision, or those of several sources, which have commas between them: of what Git or a registry gives the first seven digits,
/// of what somebody chose, such as a chart's version, all.
pub(crate) fn short(revision: &str) -> String {
    let one = |one: &str| {
        let digits = one.strip_prefix("sha256:").unwrap_or(one);
        let is_digest = digits.len() >= 40 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let end = one.len() - digits.len() + 7;
        plain(if is_digest { one.get(..end).unwrap_or(one) } else { one })
    };
    revision.split(',').filter(|one| !one.is_empty()).map(one).collect::<Vec<_>>().join(" ")
}

/// What a message begins with: the subject of a commit, what an error says before its details.
pub(crate) fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// A text without the marks that turn the order of letters around: what is read is what stands there.
pub(crate) fn plain(text: &str) -> String {
    let turns = |letter| matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.replace(turns, " ")
}

/// Whose commit it is, below what it changed, where a list has no room for a column of it.
pub(crate) fn author(change: &Change) -> Markup {
    html! { @if !name(&change.author).is_empty() { div.who.narrow-only { bdi { (plain(name(&change.author))) } } } }
}

/// The same with the beginning of its revision.
pub(crate) fn who(change: &Change) -> Markup {
    html! {
        div.who.narrow-only {
            code { (short(&change.revision)) }
            @if !name(&change.author).is_empty() { " · " bdi { (plain(name(&change.author))) } }
        }
    }
}

/// A commit: its revision, then the first line of its message.
pub(crate) fn change(change: &Change) -> Markup {
    html! {
        code.faint title=(change.revision) { (short(&change.revision)) } " "
        bdi.message { (plain(first_line(&change.message))) }
    }
}

/// Authors come as `Name <address>`: the address is not for a list.
pub(crate) fn name(author: &str) -> &str {
    author.split_once('<').map_or(author, |(name, _)| name).trim()
}

/// Somebody: initials on a colour that is always theirs, and the name.
pub(crate) fn person(author: &str) -> Markup {
    let name = name(author);
    let initials: String = name.split_whitespace().filter_map(|word| word.chars().next()).take(2).collect();
    let colour = name.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into())) % 6;
    html! {
        @if !name.is_empty() {
            span.person {
                span class={"avatar avatar-" (colour)} aria-hidden="true" { (initials.to_uppercase()) }
                " " bdi.name { (plain(name)) }
            }
        }
    }
}

/// How many of some are healthy, as a bar; grey where that is as of an earlier time.
pub(crate) fn share(healthy: u64, all: u64, is_old: bool) -> Markup {
    let width = (healthy * 330).checked_div(all).unwrap_or(0);
    html! {
        svg.share viewBox="0 0 330 8" preserveAspectRatio="none" role="img" aria-label={(healthy) " of " (all) " healthy"} {
            rect.rest x="0" y="0" width=(if all > 0 { 330 } else { 0 }) height="8" rx="2" {}
            rect class=(if is_old { "still" } else { "ok" }) x="0" y="0" width=(width) height="8" rx="2" {}
        }
    }
}

/// A text in which what stands between backticks is to be typed as it is.
pub(crate) fn prose(text: &str) -> Markup {
    html! {
        @for (index, part) in text.split('`').enumerate() {
            @if index % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

/// A number with its thousands apart.
pub(crate) fn number(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A quotient, rounded; of nothing there is none.
pub(crate) fn rounded(value: u64, by: u64) -> Option<u64> {
    (value + by / 2).checked_div(by)
}

/// How many there are of something: "1 application", "1,204 applications".
pub(crate) fn counted(count: u64, one: &str) -> String {
    let end = if count == 1 { "" } else { "s" };
    format!("{} {one}{end}", number(count))
}

/// A commit by its revision, with the way to its page where there is one.
pub(super) fn revision(link: Option<&str>, revision: &str) -> Markup {
    html! {
        @match link {
            Some(link) => a href=(link) rel="noreferrer" title=(revision) { code { (short(revision)) } },
            None => code title=(revision) { (short(revision)) },
        }
    }
}

/// Whose commit a deployment is of, and who synced it.
pub(super) fn people(one: &Deployment) -> Markup {
    html! { (person(&one.change.author)) @if let Some(by) = &one.by { small.mute { " synced by " (by) } } }
}

/// What to say where there is nothing: what it is, why, and what to do next.
pub(crate) fn empty(title: &str, body: &Markup) -> Markup {
    html! { div.empty { h2 { (title) } (body) } }
}

/// A command to be copied.
pub(crate) fn command(text: &str) -> Markup {
    html! {
        div.command {
            pre tabindex="0" { code { (text) } }
            button type="button" data-copy=(text) { "Copy" }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart() {
        let cases = [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn no_text_of_a_commit_turns_the_letters_of_another_around() {
        let change = Change {
            revision: "3f9c1e2".to_owned(),
            message: "safe \u{202e}gnirts".to_owned(),
            author: "A\u{2067}da <ada@example.com>".to_owned(),
        };
        for (shown, part) in [
            (super::change(&change), "<bdi class=\"message\">safe  gnirts</bdi>"),
            (person(&change.author), "<bdi class=\"name\">A da</bdi>"),
            (who(&change), "<code>3f9c1e2</code> · <bdi>A da</bdi>"),
        ] {
            assert!(shown.0.contains(part), "{}", shown.0);
        }
    }

    #[test]
    fn a_commit_is_cut_and_a_version_is_not() {
        let commit = "3f9c1e2a00000000000000000000000000000000";
        for (revision, told) in [
            (commit, "3f9c1e2"),
            ("10.20.31", "10.20.31"),
            ("20261124093000", "20261124093000"),
            (&*format!("sha256:{commit}000000000000000000000000"), "sha256:3f9c1e2"),
            (&*format!("10.20.31,,{commit}"), "10.20.31 3f9c1e2"),
            ("v1\u{202e}2", "v1 2"),
            ("", ""),
        ] {
            assert_eq!(short(revision), told);
        }
    }

    #[test]
    fn one_is_told_as_one() {
        let all = [0, 1, 2, 1_204].map(|count| counted(count, "application"));
        assert_eq!(all, ["0 applications", "1 application", "2 applications", "1,204 applications"]);
    }
}
