//! A secret that somebody gives: in a file, on a terminal that does not show it, or on standard input. It is never an argument, which
//! every process of the machine may read.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read, Write as _};
use std::path::{Path, PathBuf};

use pipeline_core::SecretString;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, tcgetattr, tcsetattr};

use crate::error::RemoteError;

/// The most bytes of a line that a terminal takes.
const LINE: usize = 4_096;

/// How a secret is asked for, and the errors where there is none.
pub(crate) struct SecretPrompt<'a> {
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

impl SecretPrompt<'_> {
    /// Takes it: `-` is standard input, as is no file where nobody types.
    pub(crate) fn take(&self, file: Option<&Path>) -> Result<SecretString, RemoteError> {
        let text = match file {
            Some(path) if path != Path::new("-") => {
                let failed = |source| RemoteError::File { act: self.read, path: path.to_path_buf(), source };
                self.bounded(File::open(path).map_err(failed)?).map_err(failed)?
            }
            _ => {
                let is_typed = file.is_none() && io::stdin().is_terminal();
                let read = if is_typed { self.ask() } else { self.bounded(io::stdin().lock()) };
                let path = PathBuf::from(if is_typed { "the terminal" } else { "standard input" });
                read.map_err(|source| RemoteError::File { act: self.read, path, source })?
            }
        };
        // Windows begins a file with a mark of its encoding.
        let text = text.trim_start_matches('\u{feff}').trim();
        if text.is_empty() {
            return Err(RemoteError::Missing(self.none.to_owned()));
        }
        if text.len() as u64 > self.longest || !text.chars().all(|c| c.is_ascii_graphic()) {
            return Err(RemoteError::Missing(self.wrong.to_owned()));
        }
        Ok(SecretString::from(text))
    }

    /// Asks for it on the terminal, which shows nothing of what is typed from before the prompt stands there: who pastes it at
    /// once is not shown either. Ctrl-C ends the line and not the process, after which nothing would be shown any more.
    fn ask(&self) -> io::Result<String> {
        let mut terminal = File::options().read(true).write(true).open("/dev/tty")?;
        let as_it_was = tcgetattr(&terminal)?;
        let mut hidden = as_it_was.clone();
        let interrupt = as_it_was.special_codes[SpecialCodeIndex::VINTR];
        hidden.local_modes.remove(LocalModes::ECHO | LocalModes::ISIG);
        hidden.special_codes[SpecialCodeIndex::VEOL] = interrupt;
        tcsetattr(&terminal, OptionalActions::Now, &hidden)?;
        let asked = self.typed(&mut terminal);
        tcsetattr(&terminal, OptionalActions::Now, &as_it_was)?;
        match asked? {
            line if line.last() == Some(&interrupt) => Err(io::ErrorKind::Interrupted.into()),
            line => String::from_utf8(line).map_err(|_| io::ErrorKind::InvalidData.into()),
        }
    }

    fn typed(&self, terminal: &mut File) -> io::Result<Vec<u8>> {
        terminal.write_all(self.prompt.as_bytes())?;
        // A terminal gives a line at a time, and of a longer one the beginning.
        let mut line = vec![0; LINE];
        let read = terminal.read(&mut line)?;
        line.truncate(read);
        terminal.write_all(b"\n")?;
        Ok(line)
    }

    fn bounded(&self, from: impl Read) -> io::Result<String> {
        let mut text = String::new();
        from.take(self.longest + 2).read_to_string(&mut text)?;
        Ok(text)
    }
}
