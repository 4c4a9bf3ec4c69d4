//! How many applications get another owner when a sixth replica comes: by leases, and by the incumbent's ordinals.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, bail};
use serde::Deserialize;
use tokio::process::Command;

use loadtest_sim::generate::Fleet;

/// Names that are distributed.
const NAMES: u32 = 50_000;
/// The part of them that may move.
const MOST: f64 = 0.17;

/// Parts of the names, from 0 to 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moved {
    leases: f64,
    incumbent: f64,
}

impl Moved {
    /// Whether few enough move.
    pub(super) fn is_good(self) -> bool {
        self.leases <= MOST
    }

    /// What is printed of it.
    pub(super) fn line(self) -> String {
        let percent = |part: f64| format!("{:.1} %", part * 100.0);
        let most = percent(MOST);
        format!(
            "5 -> 6 replicas: {} of {NAMES} names move, at most {most} may (incumbent: {})",
            percent(self.leases),
            percent(self.incumbent)
        )
    }
}

/// Asks the binary.
pub(super) async fn from_five_to_six(program: &Path) -> anyhow::Result<Moved> {
    let names: String = (0..NAMES).map(|index| Fleet::name(index) + "\n").collect();
    let folder = tempfile::tempdir().context("make a folder for names")?;
    let file = folder.path().join("names");
    std::fs::write(&file, names).context("write the names of applications")?;
    Ok(Moved {
        leases: part(program, &file, "leases").await?,
        incumbent: part(program, &file, "fnv-modulo").await?,
    })
}

#[derive(Deserialize)]
struct Previewed {
    moved: Part,
}

#[derive(Deserialize)]
struct Part {
    part: f64,
}

async fn part(program: &Path, names: &Path, way: &str) -> anyhow::Result<f64> {
    let mut command = Command::new(program);
    command.args(["distribution", "--replicas", "6", "--from", "5", "--output", "json", "--way", way]);
    let told = command.arg("--names").arg(names).stdin(Stdio::null()).kill_on_drop(true).output().await;
    let told = told.with_context(|| format!("run {}", program.display()))?;
    if !told.status.success() {
        bail!("{} distribution failed: {}", program.display(), String::from_utf8_lossy(&told.stderr).trim());
    }
    let previewed: Previewed =
        serde_json::from_slice(&told.stdout).context("read what the command distribution says")?;
    Ok(previewed.moved.part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadtest_sim::process;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_sixth_replica_moves_a_sixth_of_the_names_and_the_incumbents_moves_five_sixths() {
        let moved = from_five_to_six(&process::binary().await.unwrap()).await.unwrap();
        assert!(moved.is_good() && moved.leases > 0.1, "{moved:?}");
        assert!((0.8..0.86).contains(&moved.incumbent), "{moved:?}");
    }

    #[test]
    fn more_than_may_move_is_told() {
        let moved = Moved { leases: 0.154, incumbent: 0.833 };
        assert_eq!(
            moved.line(),
            "5 -> 6 replicas: 15.4 % of 50000 names move, at most 17.0 % may (incumbent: 83.3 %)"
        );
        assert!(moved.is_good() && !Moved { leases: 0.171, ..moved }.is_good());
    }
}
