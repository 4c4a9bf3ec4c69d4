//! Definitions that somebody made by hand, handed over to a release (`gitops-runtime crds adopt`), as a real API server and Helm see
//! it.
//!
//! takes: a control plane without definitions of argoproj.io - gives: what is wrong with what the program and Helm say
//! calls: Helm, with a chart of the definitions of Argo Workflows; the program - fails: when one of them cannot be run

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use tokio::process::Command;

use super::chart::ended;
use super::definitions::define;

const NAMESPACE: &str = "runtime";
/// Who takes them over first, and who does then.
const FIRST: &str = "front";
const SECOND: &str = "back";
/// What Helm says of an object that it did not make.
const NOT_ITS_OWN: &str = "invalid ownership metadata";
/// What is said of a definition that another release has.
const OF_ANOTHER: &str = "belong to another release";

/// What the definitions are handed over with.
pub(super) struct Adoption<'a> {
    pub(super) program: &'a Path,
    pub(super) helm: PathBuf,
    pub(super) kubeconfig: &'a Path,
    /// The folder of the definitions.
    pub(super) definitions: PathBuf,
}

impl Adoption<'_> {
    /// Makes the definitions, has one release take them over and then another, and says what is wrong.
    pub(super) async fn judge(&self, client: &kube::Client, folder: &Path) -> anyhow::Result<Vec<String>> {
        define(client, &[], &self.definitions, &[]).await?;
        let chart = self.chart(folder).await?;
        let first = format!("over to {FIRST} in namespace {NAMESPACE}");
        let second =
            format!("over to {SECOND} in namespace {NAMESPACE} from {FIRST} in namespace {NAMESPACE}");
        let mut wrong = Vec::new();
        let mut expect = |act: &str, (is_done, said): (bool, String), expected: (bool, &str)| {
            if is_done != expected.0 || !said.contains(expected.1) {
                wrong.push(format!("{act} (done: {is_done}) says {}", said.trim()));
            }
        };
        let definition = "workflows.argoproj.io: ";
        expect("Helm, of definitions by hand,", self.install(FIRST, &chart).await?, (false, NOT_ITS_OWN));
        let would = format!("{definition}would be handed {first}");
        expect("a dry run", self.adopt(FIRST, &["--dry-run"]).await?, (true, &would));
        expect("Helm, after a dry run,", self.install(FIRST, &chart).await?, (false, NOT_ITS_OWN));
        let is = format!("{definition}is handed {first}");
        expect("taking over", self.adopt(FIRST, &[]).await?, (true, &is));
        expect("Helm, of what was taken over,", self.install(FIRST, &chart).await?, (true, ""));
        let already = format!("{definition}is of {FIRST} in namespace {NAMESPACE} already");
        expect("taking over again", self.adopt(FIRST, &[]).await?, (true, &already));
        expect("another release", self.adopt(SECOND, &[]).await?, (false, OF_ANOTHER));
        expect("Helm, of another's,", self.install(SECOND, &chart).await?, (false, NOT_ITS_OWN));
        let is = format!("{definition}is handed {second}");
        expect("another release by force", self.adopt(SECOND, &["--force"]).await?, (true, &is));
        expect("Helm, after that,", self.install(SECOND, &chart).await?, (true, ""));
        Ok(wrong.into_iter().map(|line| format!("crds adopt: {line}")).collect())
    }

    /// A chart whose templates are the definitions.
    async fn chart(&self, folder: &Path) -> anyhow::Result<PathBuf> {
        let chart = folder.join("definitions");
        let templates = chart.join("templates");
        let act = || format!("make the chart {}", chart.display());
        tokio::fs::create_dir_all(&templates).await.with_context(act)?;
        let about = "apiVersion: v2\nname: definitions\nversion: 1.0.0\n";
        tokio::fs::write(chart.join("Chart.yaml"), about).await.with_context(act)?;
        let mut entries = tokio::fs::read_dir(&self.definitions).await.with_context(act)?;
        let mut number = 0;
        while let Some(entry) = entries.next_entry().await.with_context(act)? {
            let name = entry.file_name();
            if name.to_string_lossy().starts_with("argoproj.io_") {
                tokio::fs::copy(entry.path(), templates.join(&name)).await.with_context(act)?;
                number += 1;
            }
        }
        ensure!(number > 0, "there are no definitions in {}", self.definitions.display());
        Ok(chart)
    }

    async fn install(&self, release: &str, chart: &Path) -> anyhow::Result<(bool, String)> {
        let mut helm = Command::new(&self.helm);
        helm.args(["upgrade", "--install", release]).arg(chart).args(["--namespace", NAMESPACE]);
        helm.arg("--kubeconfig").arg(self.kubeconfig);
        ended(helm, "").await
    }

    async fn adopt(&self, release: &str, more: &[&str]) -> anyhow::Result<(bool, String)> {
        let mut program = Command::new(self.program);
        program.args(["crds", "adopt", "--release", release, "--namespace", NAMESPACE]).args(more);
        program.arg("--kubeconfig").arg(self.kubeconfig);
        ended(program, "").await
    }
}
