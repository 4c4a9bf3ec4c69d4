//! Programs that are run to their end.

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
