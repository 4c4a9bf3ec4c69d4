//! A process that is watched while it runs.

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use loadtest_sim::reporter::memory_of;
use tokio::process::Command;

/// How often its memory is looked at.
const LOOK: Duration = Duration::from_millis(2);

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
        let ended = child.wait_with_output();
        let mut ended = std::pin::pin!(ended);
        let mut anonymous = 0;
        let output = loop {
            tokio::select! {
                output = &mut ended => break output.context("wait for the program")?,
                () = tokio::time::sleep(LOOK) => {
                    anonymous = anonymous.max(memory_of(id, "RssAnon:").unwrap_or(0));
                }
            }
        };
        let took = begun.elapsed();
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "the program ended with {}: {said}", output.status);
        Ok(Self { output: output.stdout, took, anonymous })
    }
}
