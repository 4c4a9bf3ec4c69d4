//! `helm` and `kubectl`, as a person runs them.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, bail};
use serde_json::Value;
use tokio::process::Command;

/// Both programs, with a kubeconfig and a folder for what they keep.
#[derive(Debug, Clone)]
pub(crate) struct Tools {
    programs: PathBuf,
    kubeconfig: PathBuf,
    home: PathBuf,
}

impl Tools {
    /// Those in the folder `programs`.
    pub(crate) fn new(programs: &Path, kubeconfig: &Path, home: &Path) -> Self {
        let [programs, kubeconfig, home] = [programs, kubeconfig, home].map(Path::to_path_buf);
        Self { programs, kubeconfig, home }
    }

    /// Runs one and gives what it printed.
    pub(crate) async fn run(&self, program: &str, args: &[&str]) -> anyhow::Result<String> {
        self.run_loud(program, args).await.map(|(said, _)| said)
    }

    /// Runs one and reads the JSON that it printed.
    pub(crate) async fn json(&self, program: &str, args: &[&str]) -> anyhow::Result<Value> {
        let said = self.run(program, args).await?;
        serde_json::from_str(&said).with_context(|| format!("read what {program} printed"))
    }

    /// Runs one and gives what it printed, and what it said beside that on its standard error.
    pub(crate) async fn run_loud(&self, program: &str, args: &[&str]) -> anyhow::Result<(String, String)> {
        let output = Command::new(self.programs.join(program))
            .args(args)
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .env("HOME", &self.home)
            .env("KUBECONFIG", &self.kubeconfig)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .with_context(|| format!("run {program}"))?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        if !output.status.success() {
            bail!("{program} {}: {}\n{}", args.first().unwrap_or(&""), why.trim(), said.trim());
        }
        Ok((said, why))
    }
}
