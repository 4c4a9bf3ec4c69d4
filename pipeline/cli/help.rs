//! Help that fits the terminal that it is shown on: examples stay commands that a shell takes, however narrow it is.
//!
//! takes: a command, with examples in lines as long as they came - gives: the same, with none longer than a width - calls: nothing -
//! fails: never

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{ArgMatches, Command};

use crate::config::{Variables, set};

/// Longer lines are not read with ease, however wide a terminal is.
const WIDEST: usize = 110;
/// Narrower than this no help can be read.
const NARROWEST: usize = 40;
/// Behind so many spaces a line goes on with what is said beside a command.
const BESIDE: usize = 16;
/// What is said beside a command stands there if it has so many columns; below it else.
const ROOM: usize = 40;
/// How a shell is told that a command goes on.
const GOES_ON: &str = " \\";

/// What was given to a command. Who asks for help, or gives something wrong, is told so, and the process ends.
pub(super) fn read(command: fn() -> Command, arguments: &[OsString], variables: &Variables) -> ArgMatches {
    command().try_get_matches_from(arguments).unwrap_or_else(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            fitted(command(), width(variables)).get_matches_from(arguments)
        }
        _ => error.exit(),
    })
}

/// How wide help is: as the terminal, where there is one.
fn width(variables: &Variables) -> usize {
    let terminal = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    let said = || set(variables, "COLUMNS").and_then(|columns| columns.parse().ok());
    terminal.or_else(said).unwrap_or(WIDEST).clamp(NARROWEST, WIDEST)
}

/// A command whose help, and that of all below it, is so wide.
fn fitted(command: Command, width: usize) -> Command {
    let examples = command.get_after_help().map(|text| examples(&text.to_string(), width));
    let command = command.term_width(width).mut_subcommands(|one| fitted(one, width));
    match examples {
        Some(text) => command.after_help(text),
        None => command,
    }
}

fn examples(text: &str, width: usize) -> String {
    let laid: Vec<String> = joined(text).iter().flat_map(|line| lay(line, width)).collect();
    laid.join("\n")
}

/// Each line whole, with what of it stands in the next one of the text.
fn joined(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for line in text.lines() {
        match all.last_mut() {
            Some(before) if goes_on(before, line) => {
                before.push(' ');
                before.push_str(line.trim_start());
            }
            _ => all.push(line.to_owned()),
        }
    }
    all
}

/// Whether a line is the rest of the one before: of a sentence, or of what is said beside a command.
fn goes_on(before: &str, line: &str) -> bool {
    let is_sentence = indent(before) == 0 && indent(line) == 0 && !before.ends_with(['.', ':']);
    !before.is_empty() && !line.is_empty() && (is_sentence || indent(line) >= BESIDE)
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn columns(text: &str) -> usize {
    text.chars().count()
}

/// A line as lines that are no longer than a width: a sentence, a command, or a command and what is said beside it.
fn lay(line: &str, width: usize) -> Vec<String> {
    let (indent, text) = (indent(line), line.trim_start());
    if columns(line) <= width {
        return vec![line.to_owned()];
    }
    if indent == 0 || text.ends_with(':') {
        return wrapped(text.split(' '), width, (" ".repeat(indent), indent), "");
    }
    let Some((command, rest)) = text.split_once("  ") else { return shell(text, width, indent) };
    let said = rest.trim_start();
    let at = columns(line) - columns(said);
    if at + ROOM <= width {
        let before = line.chars().take(at).collect();
        return wrapped(said.split(' '), width, (before, at), "");
    }
    let below = indent + 4;
    let mut lines = shell(command, width, indent);
    lines.extend(wrapped(said.split(' '), width, (" ".repeat(below), below), ""));
    lines
}

/// A command, which goes on where a shell says so.
fn shell(command: &str, width: usize, indent: usize) -> Vec<String> {
    let (command, end) = command.strip_suffix(GOES_ON).map_or((command, ""), |command| (command, GOES_ON));
    let mut quote = None;
    // What is quoted is one word.
    let words = command.split(|c| {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            _ => {}
        }
        c == ' ' && quote.is_none()
    });
    let words = with_values(words, width.saturating_sub(indent + 2 + GOES_ON.len()));
    let words = words.iter().map(String::as_str);
    let mut lines = wrapped(words, width, (" ".repeat(indent), indent + 2), GOES_ON);
    if let Some(last) = lines.last_mut() {
        last.push_str(end);
    }
    lines
}

/// Words of a command, a flag with its value as one and a command with the pipe that leads to it, unless that is longer than so much.
fn with_values<'t>(words: impl Iterator<Item = &'t str>, most: usize) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for word in words {
        match all.last_mut() {
            Some(before)
                if before.starts_with(['-', '|'])
                    && !before.contains(' ')
                    && !word.starts_with(['-', '|', '>'])
                    && columns(before) + 1 + columns(word) <= most =>
            {
                before.push(' ');
                before.push_str(word);
            }
            _ => all.push(word.to_owned()),
        }
    }
    all
}

/// Words in lines that are no longer than a width, unless a word alone is: the first behind a text, all others behind so many
/// spaces, each but the last with this at its end.
fn wrapped<'t>(
    words: impl Iterator<Item = &'t str>,
    width: usize,
    (mut line, hang): (String, usize),
    end: &str,
) -> Vec<String> {
    let (mut lines, mut is_begun) = (Vec::new(), false);
    for word in words {
        if is_begun && columns(&line) + 1 + columns(word) + columns(end) > width {
            lines.push(line + end);
            (line, is_begun) = (" ".repeat(hang), false);
        }
        if is_begun {
            line.push(' ');
        }
        line.push_str(word);
        is_begun = true;
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    /// The help of a command and of all below it, the short one and the long one, each with its name.
    fn all(command: &mut Command, found: &mut Vec<(String, String)>) {
        let name = command.get_bin_name().unwrap_or(command.get_name()).to_owned();
        found.push((name.clone(), command.render_help().to_string()));
        found.push((name, command.render_long_help().to_string()));
        for one in command.get_subcommands_mut() {
            all(one, found);
        }
    }

    #[test]
    fn no_line_of_help_is_longer_than_its_terminal_is_wide() {
        for width in [60, 80, WIDEST] {
            let mut command = fitted(Cli::command(), width);
            command.build();
            let mut found = Vec::new();
            all(&mut command, &mut found);
            assert!(found.len() > 100, "{} helps", found.len());
            for (name, help) in &found {
                for line in help.lines() {
                    // A word that is longer alone, and the form of a command, are left to the terminal.
                    let is_form = line.starts_with("Usage: ") || line.starts_with("       gitops-runtime ");
                    let is_word = line.split_whitespace().count() < 2;
                    assert!(columns(line) <= width || is_form || is_word, "{width}: {name}: {line}");
                }
            }
        }
    }

    /// The requests that stand in quotes in the examples of a command and of all below it.
    fn requests(command: &Command, found: &mut Vec<String>) {
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let quoted = text
            .lines()
            .flat_map(|line| line.split('\'').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>());
        found.extend(quoted.filter(|text| text.starts_with("{\"")));
        command.get_subcommands().for_each(|one| requests(one, found));
    }

    #[test]
    fn a_request_of_an_example_stands_on_one_line_as_no_text_of_json_goes_on_in_another() {
        let mut wanted = Vec::new();
        requests(&Cli::command(), &mut wanted);
        assert!(wanted.len() > 1, "{wanted:?}");
        for width in [80, WIDEST] {
            let mut command = fitted(Cli::command(), width);
            command.build();
            let mut helps = Vec::new();
            all(&mut command, &mut helps);
            for request in &wanted {
                assert!(helps.iter().any(|(_, help)| help.contains(request.as_str())), "{width}: {request}");
            }
        }
    }

    #[test]
    fn what_fits_stays_as_it_was_written() {
        let text = "Examples:\n  One:\n    gitops-runtime a | b\n\nIt says so.\nIt stays.";
        assert_eq!(examples(text, 60), text);
    }

    #[test]
    fn a_command_goes_on_as_a_shell_reads_it_and_is_not_broken_where_it_is_quoted() {
        let text = "  A request:\n    curl -H \"Authorization: $KEY\" -d '{\"query\": \"a b c\"}' http://h/p --fail \\\n      --silent";
        assert_eq!(
            examples(text, 40),
            "  A request:\n    curl -H \"Authorization: $KEY\" \\\n      -d '{\"query\": \"a b c\"}' \\\n      http://h/p --fail \\\n      --silent"
        );
    }

    #[test]
    fn what_is_said_beside_a_command_stands_beside_it_or_below() {
        let text = "  gitops-runtime top      what keeps it busy, again and again; q quits,\n                          and so does ^C";
        assert_eq!(
            examples(text, 66),
            "  gitops-runtime top      what keeps it busy, again and again; q\n                          quits, and so does ^C"
        );
        assert_eq!(
            examples(text, 44),
            "  gitops-runtime top\n      what keeps it busy, again and again; q\n      quits, and so does ^C"
        );
    }

    #[test]
    fn a_sentence_goes_on_where_its_line_ended_and_the_next_one_begins_its_own() {
        let text = "What is given up is tried\nagain when it changes.\nIt is kept.";
        assert_eq!(examples(text, 30), "What is given up is tried\nagain when it changes.\nIt is kept.");
        assert_eq!(examples(text, 80), "What is given up is tried again when it changes.\nIt is kept.");
    }
}
