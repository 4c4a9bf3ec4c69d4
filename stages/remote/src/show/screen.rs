//! Where answers go: standard output, which is a terminal or not; and what is said beside them.

use std::io::{self, IsTerminal as _, Write as _};

use super::text::fold;
use crate::environment::Environment;
use crate::error::RemoteError;

/// Clears a terminal, and begins at its top.
const CLEAR: &str = "\u{1b}[2J\u{1b}[H";
/// Narrower than this no table can be read: it is shown as if the terminal were this wide.
const NARROWEST: u16 = 40;

/// Standard output.
#[derive(Debug, Clone)]
pub(crate) struct Screen {
    pub(crate) is_terminal: bool,
    /// Its columns; `None`: as many as there are.
    pub(crate) width: Option<u16>,
    /// Whether colours are shown.
    pub(crate) colour: bool,
}

impl Screen {
    /// As it is now.
    pub(crate) fn new(environment: &Environment) -> Self {
        let is_terminal = io::stdout().is_terminal();
        Self {
            is_terminal,
            width: is_terminal.then(columns).flatten().map(|width| width.max(NARROWEST)),
            colour: is_terminal && !environment.no_color && !environment.dumb,
        }
    }

    /// Writes an answer, at once.
    pub(crate) fn say(&self, text: &str) -> Result<(), RemoteError> {
        let mut out = io::stdout().lock();
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        written.map_err(|error| RemoteError::Terminal("write to standard output", error))
    }

    /// Writes what was or would be done: a line that has no room goes on below.
    pub(crate) fn tell(&self, text: &str) -> Result<(), RemoteError> {
        self.say(&text.lines().map(|line| self.folded(line) + "\n").collect::<String>())
    }

    /// A line, of which what has no room goes on below, a little further in.
    pub(crate) fn folded(&self, line: &str) -> String {
        let own = line.chars().take_while(|letter| *letter == ' ').count();
        fold(line, self.width.map(usize::from), own + 2)
    }

    /// Writes an answer in the place of the one before, as far as a terminal has room for it: what is longer would push its own
    /// beginning out each time.
    pub(crate) fn redraw(&self, text: &str) -> Result<(), RemoteError> {
        self.say(&format!("{CLEAR}{}", fitting(text, rows())))
    }

    /// Says something beside the answer.
    pub(crate) fn note(&self, text: &str) {
        // Nobody is left to be told that standard error is closed.
        let _ = writeln!(io::stderr().lock(), "{}", beside(text));
    }

    /// Whether somebody can be asked something.
    pub(crate) fn can_ask() -> bool {
        io::stdin().is_terminal() && io::stderr().is_terminal()
    }
}

/// The columns of the terminal, if there is one.
fn columns() -> Option<u16> {
    crossterm::terminal::size().ok().map(|(width, _)| width).filter(|width| *width > 0)
}

/// Its rows.
fn rows() -> Option<usize> {
    crossterm::terminal::size().ok().map(|(_, height)| usize::from(height)).filter(|height| *height > 0)
}

/// As many lines of a text as so many rows show, above the one where the cursor is then; the last of them says how many more there
/// are.
fn fitting(text: &str, rows: Option<usize>) -> String {
    let (count, most) = (text.lines().count(), rows.map_or(usize::MAX, |rows| rows.saturating_sub(1)));
    if count <= most {
        return text.to_owned();
    }
    let shown = most.saturating_sub(1);
    let lines = text.lines().take(shown).map(|line| format!("{line}\n"));
    format!("{}and {} more lines than there is room for\n", lines.collect::<String>(), count - shown)
}

/// A line of what is said beside an answer, as standard error shows it: folded, where that is a terminal.
pub(crate) fn beside(text: &str) -> String {
    let width = io::stderr().is_terminal().then(columns).flatten();
    fold(&format!("gitops-runtime: {text}"), width.map(usize::from), 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_longer_than_a_terminal_is_cut_and_its_beginning_stays() {
        let text = "NAME\na\nb\nc\n";
        for rows in [None, Some(5), Some(24)] {
            assert_eq!(fitting(text, rows), text);
        }
        assert_eq!(fitting(text, Some(4)), "NAME\na\nand 2 more lines than there is room for\n");
        assert_eq!(fitting(text, Some(1)), "and 4 more lines than there is room for\n");
        assert_eq!(fitting("", Some(1)), "");
    }
}
