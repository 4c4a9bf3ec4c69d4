//! The roles that run beside Argo CD: each a process with an account of its own, which may do what the role prints.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use crate::Cluster;
use crate::argocd::ArgoCd;
use crate::audit::Verdict;
use crate::role::{Role, write};
use loadtest_judge::screen::say;
use loadtest_sim::{PATIENCE, until};

const REPORTER: &str = "reporter";
/// Its account; those of the others are called as they are.
const ACCOUNT: &str = "event-reporter";
const SOURCES: &str = "source-server";
const CHANGES: &str = "change-revision";
/// The file in its folder that it tells changes to.
const TOLD: &str = "changes.ndjson";
/// Between two looks at that.
const LOOK: Duration = Duration::from_millis(150);

/// All three.
pub(super) struct Roles {
    reporter: Role,
    sources: Role,
    changes: Role,
}

impl Roles {
    /// Starts them: the reporter asks the source server with the token of its account, which a review knows.
    pub(super) async fn start(
        program: &Path,
        cluster: &Cluster,
        (platform, platform_token): (&str, &str),
        repository: &str,
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let at = (program, &cluster.control, folder);
        let clones = |name: &str| json!({"files": true, "directory": folder.join(name).join("clones")});
        let settings = json!({"sourceServer": {
            "listen": "127.0.0.1:0",
            "callers": {"accounts": [format!("{}/{ACCOUNT}", ArgoCd::NAMESPACE)]},
            "git": {"allowed": [repository], "repositories": clones(SOURCES)},
        }});
        let mut sources = Role::prepare((SOURCES, SOURCES), at, settings).await?;
        let url = sources.start().await?;
        let settings = json!({
            "reporter": {"sink": {"kind": "file", "file": {"path": folder.join(CHANGES).join(TOLD)}}},
            "changeRevision": {"annotations": true, "repositories": clones(CHANGES)},
        });
        let mut changes = Role::prepare((CHANGES, CHANGES), at, settings).await?;
        changes.start().await?;
        let own = folder.join(REPORTER);
        let settings = json!({
            "argocd": {"url": cluster.argocd.url(), "tokenFile": own.join("argocd-token"), "settingsInterval": "1s"},
            "platform": {"url": platform, "tokenFile": own.join("platform-token")},
            "reporter": {
                "sink": {"kind": "platform"},
                "lanes": {"retry": {"min": "250ms", "max": "2s"}},
                "sources": {"from": "server", "url": url, "tokenFile": own.join("token")},
                // What an application is annotated with holds; where it is not, Git is asked.
                "changeRevisions": {"from": "here"},
            },
            "changeRevision": {"repositories": clones(REPORTER)},
        });
        let mut reporter = Role::prepare((REPORTER, ACCOUNT), at, settings).await?;
        write(&own.join("argocd-token"), &cluster.argocd.token(ArgoCd::REPORTER)?).await?;
        write(&own.join("platform-token"), platform_token).await?;
        reporter.start().await?;
        Ok(Self { reporter, sources, changes })
    }

    /// Kills who says what changed.
    pub(super) async fn kill_changes(&mut self) -> anyhow::Result<()> {
        self.changes.kill().await
    }

    /// Starts it again on what it has left.
    pub(super) async fn start_changes(&mut self) -> anyhow::Result<()> {
        self.changes.start().await.map(drop)
    }

    /// Waits until it is told that a commit changed an application.
    pub(super) async fn told(&self, application: &str, commit: &str) -> anyhow::Result<()> {
        let file = self.changes.directory().join(TOLD);
        let look = async || {
            let text = tokio::fs::read_to_string(&file).await.context("read what changed applications")?;
            let mut lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            Ok(lines
                .any(|line| line["data"]["name"] == application && line["data"]["changeRevision"] == commit))
        };
        let is_told = until(PATIENCE, LOOK, look, |is_told| *is_told).await?;
        ensure!(is_told, "it is not told within {PATIENCE:?} that {commit} changed {application}");
        Ok(())
    }

    /// Ends all; what is wrong with what their accounts asked for while there were so many syncs.
    pub(super) async fn stop(
        &mut self,
        cluster: &Cluster,
        syncs: (usize, usize),
    ) -> anyhow::Result<Vec<String>> {
        let all = [&mut self.reporter, &mut self.changes, &mut self.sources];
        let mut wrong = Vec::new();
        for role in all {
            role.stop().await?;
            wrong.extend(judged(role.name(), &role.asked(&cluster.control).await?, syncs));
        }
        Ok(wrong)
    }
}

/// What is wrong with what a role's account asked for. It writes to an application once for each of so many syncs, and no more than
/// `again` times what a kill had it write once more.
fn judged(role: &str, verdict: &Verdict, (syncs, again): (usize, usize)) -> Vec<String> {
    say(&format!("{role}: {}", verdict.summary()));
    let written: usize =
        verdict.used.iter().filter(|(right, _)| right.verb == "patch").map(|(_, times)| times).sum();
    let too_often = (written > syncs + again)
        .then(|| format!("it wrote to applications {written} times for {syncs} syncs"));
    // Of an application alone is asked when a queue was full, which the scenarios of `cluster run --all` see to.
    let wrong =
        verdict.wrong(|what| what.starts_with("granted and never used: get applications.argoproj.io"));
    wrong.into_iter().chain(too_often).map(|what| format!("{role}: {what}")).collect()
}
