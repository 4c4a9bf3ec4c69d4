//! A secret that somebody gives: of a file, typed where it is not shown, or of standard input. Never of an argument, which every
//! process of the machine may read.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read};
use std::path::Path;

use pipeline_core::SecretString;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use crate::error::RemoteError;

/// What is wanted, in the words that it is asked for and refused in.
pub(crate) struct Wanted<'a> {
    /// What is shown to whoever types it.
    pub(crate) prompt: &'a str,
    /// Completes "cannot ...".
    pub(crate) read: &'static str,
    /// Said where there is none.
    pub(crate) none: &'static str,
    /// Said where it cannot be one.
    pub(crate) wrong: &'static str,
    /// Bytes of the longest.
    pub(crate) longest: u64,
}

impl Wanted<'_> {
    /// Takes it: `-` is standard input, as is no file where nobody types.
    pub(crate) fn take(&self, file: Option<&Path>) -> Result<SecretString, RemoteError> {
        let text = match file {
            Some(path) if path != Path::new("-") => {
                let failed = |source| RemoteError::File { act: self.read, path: path.to_path_buf(), source };
                self.bounded(File::open(path).map_err(failed)?).map_err(failed)?
            }
            None if io::stdin().is_terminal() => {
                self.ask().map_err(|error| RemoteError::Terminal(self.read, error))?
            }
            _ => {
                let failed = |error| RemoteError::Terminal(self.read, error);
                self.bounded(io::stdin().lock()).map_err(failed)?
            }
        };
        let text = text.trim();
        if text.is_empty() {
            return Err(RemoteError::Missing(self.none.to_owned()));
        }
        if text.len() as u64 > self.longest || !text.chars().all(|c| c.is_ascii_graphic()) {
            return Err(RemoteError::Missing(self.wrong.to_owned()));
        }
        Ok(SecretString::from(text))
    }

    /// Asks for it on the terminal, which shows nothing of what is typed from before the prompt stands there: who pastes it at
    /// once is not shown either.
    fn ask(&self) -> io::Result<String> {
        let terminal = File::open("/dev/tty")?;
        let as_it_was = tcgetattr(&terminal)?;
        let mut hidden = as_it_was.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&terminal, OptionalActions::Now, &hidden)?;
        let asked = rpassword::prompt_password(self.prompt);
        tcsetattr(&terminal, OptionalActions::Now, &as_it_was)?;
        asked
    }

    fn bounded(&self, from: impl Read) -> io::Result<String> {
        let mut text = String::new();
        from.take(self.longest + 2).read_to_string(&mut text)?;
        Ok(text)
    }
}
