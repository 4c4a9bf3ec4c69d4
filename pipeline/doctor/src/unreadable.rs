//! A file that is none of values.

use std::io::ErrorKind;

const NONE: &str = "no such file";
const DIRECTORY: &str = "a directory, and no file";
const FORBIDDEN: &str = "a file that may not be read";
const UTF_16: &str = "text in UTF-16, as Windows PowerShell writes it";
const PACKED: &str = "packed by gzip";
/// Bytes that tell in which encoding a text is.
const HEAD: usize = 64;

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

    /// The text that bytes are.
    ///
    /// # Errors
    /// When they are none in UTF-8.
    pub fn text(bytes: Vec<u8>) -> Result<String, Self> {
        let why = match bytes.as_slice() {
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => UTF_16,
            [0x1f, 0x8b, ..] => PACKED,
            // A text without a mark at its beginning.
            other if other.iter().take(HEAD).any(|byte| *byte == 0) => UTF_16,
            _ => {
                return String::from_utf8(bytes).map_err(|error| {
                    let (head, _) = error.as_bytes().split_at(error.utf8_error().valid_up_to());
                    let before = head.iter().filter(|byte| **byte == b'\n').count();
                    Self { line: 1 + before as u64, why: "a byte that is none of a text in UTF-8" }
                });
            }
        };
        Err(Self { line: 0, why })
    }

    /// What to do about it.
    #[must_use]
    pub fn todo(&self) -> &'static str {
        match self.why {
            NONE | DIRECTORY => "give the path of a file",
            FORBIDDEN => "let whoever runs this read it",
            UTF_16 => {
                "write it in UTF-8: iconv -f UTF-16 -t UTF-8, or Set-Content -Encoding utf8 of PowerShell"
            }
            PACKED => "unpack it first",
            _ => "correct the file",
        }
    }
}
