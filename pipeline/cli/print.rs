//! What a command found, on standard output.

use std::io::{self, Write as _};

use anyhow::Context as _;

/// Prints it whole. Whoever reads no further has read enough.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("write to standard output")
        }
        _ => Ok(()),
    }
}
