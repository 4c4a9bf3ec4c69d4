//! Processes of this machine, as the kernel tells of them.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};
use tokio::process::Command;

const ASK: Duration = Duration::from_millis(50);

/// A process that is not taken for a later one with the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Process {
    /// Its number.
    pub(super) id: u32,
    /// When it was started, in the kernel's ticks since the machine was.
    pub(super) started: u64,
}

/// What `/proc/PID/stat` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    is_dead: bool,
    parent: u32,
    started: u64,
}

impl Process {
    /// This one.
    pub(super) fn this() -> anyhow::Result<Self> {
        let id = std::process::id();
        let stat = stat(id).context("read the state of this process")?;
        Ok(Self { id, started: stat.started })
    }

    /// Whether it has not ended.
    pub(super) fn is_alive(self) -> bool {
        stat(self.id).is_some_and(|stat| !stat.is_dead && stat.started == self.started)
    }

    /// Waits for its end, and tells whether it came.
    pub(super) async fn ends(self, within: Duration) -> bool {
        let began = Instant::now();
        while self.is_alive() {
            if began.elapsed() > within {
                return false;
            }
            tokio::time::sleep(ASK).await;
        }
        true
    }
}

/// The programs that run as children of process `parent`, by their file names.
pub(super) fn children(parent: u32) -> anyhow::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir("/proc").context("list processes")? {
        let entry = entry.context("list processes")?;
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if stat(id).is_some_and(|stat| stat.parent == parent && !stat.is_dead) {
            names.extend(program(id));
        }
    }
    Ok(names)
}

/// Sends a signal by its name.
pub(super) async fn signal(id: u32, name: &str) -> anyhow::Result<()> {
    let sent = Command::new("kill")
        .arg(format!("-{name}"))
        .arg(id.to_string())
        .status()
        .await
        .context("run kill")?;
    if !sent.success() {
        bail!("cannot send SIG{name} to process {id}");
    }
    Ok(())
}

fn stat(id: u32) -> Option<Stat> {
    read_stat(&std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
}

/// `PID (NAME) STATE PARENT ...`: the name may hold anything, so it is skipped from behind; the start is field 22.
fn read_stat(text: &str) -> Option<Stat> {
    let (_, fields) = text.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    Some(Stat {
        is_dead: matches!(*fields.first()?, "Z" | "X"),
        parent: fields.get(1)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    })
}

fn program(id: u32) -> Option<String> {
    let line = std::fs::read(format!("/proc/{id}/cmdline")).ok()?;
    let first = line.split(|byte| *byte == 0).next()?;
    let first = std::str::from_utf8(first).ok()?;
    // Redis puts its address behind its name.
    let first = first.split(' ').next()?;
    Some(Path::new(first).file_name()?.to_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_blanks_is_skipped() {
        let text = "77 (a) b (c)) S 12 77 77 0 -1 4194560 90 0 0 0 1 2 0 0 20 0 1 0 5150 1 2\n";
        assert_eq!(read_stat(text), Some(Stat { is_dead: false, parent: 12, started: 5150 }));
        assert_eq!(read_stat(&text.replace(" S ", " Z ")).map(|stat| stat.is_dead), Some(true));
        assert_eq!(read_stat("nothing"), None);
    }

    #[test]
    fn this_process_is_alive_and_one_of_its_number_that_was_started_before_is_not() {
        let this = Process::this().unwrap();
        assert!(this.is_alive());
        assert!(!Process { started: this.started - 1, ..this }.is_alive());
    }

    #[tokio::test]
    async fn a_child_is_listed_by_its_program_until_it_ends() {
        let this = std::process::id();
        let mut child = Command::new("sleep").arg("600").kill_on_drop(true).spawn().unwrap();
        let id = child.id().unwrap();
        // Between fork and exec it still has the name of this program.
        while program(id).as_deref() != Some("sleep") {
            tokio::task::yield_now().await;
        }
        let process = Process { id, started: stat(id).unwrap().started };
        assert!(children(this).unwrap().contains("sleep"));
        signal(id, "TERM").await.unwrap();
        child.wait().await.unwrap();
        assert!(process.ends(Duration::from_secs(20)).await);
        let error = signal(id, "TERM").await.unwrap_err().to_string();
        assert_eq!(error, format!("cannot send SIGTERM to process {id}"));
    }
}
