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

    /// Writes an answer in the place of the one before.
    pub(crate) fn redraw(&self, text: &str) -> Result<(), RemoteError> {
        self.say(&format!("{CLEAR}{text}"))
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

/// A line of what is said beside an answer, as standard error shows it: folded, where that is a terminal.
pub(crate) fn beside(text: &str) -> String {
    let width = io::stderr().is_terminal().then(columns).flatten();
    fold(&format!("gitops-runtime: {text}"), width.map(usize::from), 2)
}
