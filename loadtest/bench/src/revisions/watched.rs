//! A process that is watched while it runs.

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use tokio::process::Command;

use crate::watch::{LOOK, anonymous, most_while};

/// What a process said, and what it took.
pub(super) struct Watched {
    pub(super) output: Vec<u8>,
    pub(super) took: Duration,
    /// The most anonymous memory that it was seen with: what it allocated, without the files that it maps.
    pub(super) anonymous: u64,
}

impl Watched {
    /// Runs it to its end.
    pub(super) async fn run(mut command: Command) -> anyhow::Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let begun = Instant::now();
        let child = command.spawn().context("start the program")?;
        let id = child.id().context("find the program")?;
        let (ended, most) = most_while(LOOK, || anonymous(id), child.wait_with_output()).await;
        let (output, took) = (ended.context("wait for the program")?, begun.elapsed());
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "the program ended with {}: {said}", output.status);
        let [anonymous] = most.context("look at the memory of the program")?;
        Ok(Self { output: output.stdout, took, anonymous })
    }
}
