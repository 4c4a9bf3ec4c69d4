//! A file that is none of values.

use std::io::ErrorKind;

const NONE: &str = "no such file";
const DIRECTORY: &str = "a directory, and no file";
const FORBIDDEN: &str = "a file that may not be read";

/// A file that is none of values: where, and why. Holds nothing of what stands in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// The line, from 1; 0 where that is not known.
    pub line: u64,
    /// Why.
    pub why: &'static str,
}

impl Unreadable {
    /// A file whose text the system does not give, by what it says of its path.
    #[must_use]
    pub fn unopened(kind: ErrorKind) -> Self {
        let why = match kind {
            ErrorKind::NotFound => NONE,
            ErrorKind::IsADirectory => DIRECTORY,
            ErrorKind::PermissionDenied => FORBIDDEN,
            _ => "nothing that can be read as text",
        };
        Self { line: 0, why }
    }

    /// What to do about it.
    pub(crate) fn todo(&self) -> &'static str {
        match self.why {
            NONE | DIRECTORY => "give the path of a file",
            FORBIDDEN => "let whoever runs this read it",
            _ => "correct the file",
        }
    }
}
