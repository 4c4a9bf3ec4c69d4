//! Programs that are run to their end.

use std::io::Write as _;
use std::process::Stdio;

use anyhow::{Context as _, ensure};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::PATIENCE;

/// What a command prints; `act` is what it does.
///
/// # Errors
/// It cannot be started, or fails: with what it says then.
pub async fn printed(command: &mut Command, act: &str) -> anyhow::Result<String> {
    let done = command.stdin(Stdio::null()).kill_on_drop(true).output().await;
    let done = done.with_context(|| act.to_owned())?;
    ensure!(done.status.success(), "{act}: {}", String::from_utf8_lossy(&done.stderr).trim());
    String::from_utf8(done.stdout).with_context(|| format!("{act}: read what is printed"))
}

/// What a program prints that is given this on its standard input, and that nobody waits for meanwhile; without blanks around it.
///
/// # Errors
/// It cannot be started, or fails: with its arguments, and what it says then.
pub fn fed(command: &mut std::process::Command, input: &[u8]) -> anyhow::Result<String> {
    let arguments: Vec<_> = command.get_args().map(std::ffi::OsStr::to_owned).collect();
    let act = format!("run {} {arguments:?}", command.get_program().display());
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.with_context(|| act.clone())?;
    // What is fed so reads all before it prints anything.
    let written = child.stdin.take().with_context(|| act.clone())?.write_all(input);
    let done = child.wait_with_output().with_context(|| act.clone())?;
    ensure!(done.status.success(), "{act}: {}", String::from_utf8_lossy(&done.stderr).trim());
    written.with_context(|| act.clone())?;
    Ok(String::from_utf8(done.stdout).context(act)?.trim().to_owned())
}

/// What a command said: its exit code, and both its outputs.
#[derive(Debug)]
pub struct Said(pub i32, pub String, pub String);

impl Said {
    /// Runs it to its end, with this typed into it.
    ///
    /// # Errors
    /// It cannot be started, or does not end.
    pub async fn by(command: &mut Command, typed: &str) -> anyhow::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().context("run a command")?;
        let mut stdin = child.stdin.take().context("type something")?;
        // Whoever refuses reads nothing.
        let _ = stdin.write_all(typed.as_bytes()).await;
        drop(stdin);
        let output = tokio::time::timeout(PATIENCE, child.wait_with_output()).await;
        let output = output.context("wait for the end of a command")??;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(Self(output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_fed_and_fails_is_told_with_its_reason() {
        let mut program = std::process::Command::new("sh");
        let failed =
            fed(program.args(["-c", "read word; echo no $word >&2; exit 2"]), b"link\n").unwrap_err();
        assert_eq!(failed.to_string(), "run sh [\"-c\", \"read word; echo no $word >&2; exit 2\"]: no link");
    }
}
