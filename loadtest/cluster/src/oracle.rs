//! Whether the platform was told what the cluster and Argo CD say, and nothing else.
//!
//! takes: the names of applications - gives: a line for each thing that the platform was told wrong, or not told
//! calls: `GET` on applications and on every object that they list, and on Secrets, to the API server;
//! `managed-resources`, `resource-tree` and `revisions/{revision}/metadata` to Argo CD; everything as administrator -
//! fails: when they do not answer in time
//!
//! What is compared, once nothing has changed for a while:
//! - the facts of [`loadtest_judge::oracle`] (health, sync status, revisions, operation, history, conditions, deletion), and the
//!   whole Application as it is in the cluster;
//! - of each resource that an application lists the live object, with the one in the cluster, and the desired one,
//!   with Argo CD's;
//! - that each life of an application that ended was reported as ended, also when another of that name followed;
//! - that there is no report of an application or a resource that never was ([`Witness`]), and no two reports of one
//!   life in the wrong order;
//! - author and message of the synced commit, and that a resource's report names a commit;
//! - that no value of a Secret is in any byte that was sent ([`judge_rest`]);
//! - where a real platform keeps it, that it shows all of this, each report once (`shown.rs`).
//!
//! What may differ, and why:
//! - Of an Application: `resourceVersion`, `generation`, `managedFields`, the annotation of `kubectl apply`,
//!   `status.reconciledAt` and the transition times of conditions. A change in these alone is not worth a report.
//!   Members that are empty or missing: some always stand in a report. The annotation and labels of commits, which
//!   are added.
//! - A live object is reported as it is when its entry or its health changed, and may have changed since in what is
//!   no part of these. So the report must equal, to the last member but `managedFields`, the state that the API server
//!   remembers of the `resourceVersion` in it; and where that is not the newest one, the newest one too but for
//!   `status`, labels, annotations, finalizers, `generation`, and members that are empty: what controllers add to their
//!   objects. `metadata.uid` and `spec` must be the newest ones.
//!   After a compaction the API server may have forgotten the older state; then only the newest counts.
//! - A manifest may be withheld (empty) while the application is deleted, and when the resource is to be pruned; nowhere
//!   else. The desired state of a hook is not compared: `managed-resources` has none.
//! - A text may be replaced by a redaction digest where the place, the name beside it or the text itself speaks of
//!   something secret; everywhere else a digest is a difference. Values of a Secret must be masked.
//! - The commit is compared for applications with one source in Git: others have none, or several.
//! - A child application belongs to its parent while that is there; afterwards its last report may be from before.
//! - A resource that left the application's list keeps its last report: there is no report that says so.

mod judged;
mod manifest;
mod secrets;
mod shown;
mod told;
mod truth;
mod witness;

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::platform::Door;
use loadtest_sim::platform::PlatformSim;
use told::Told;
use truth::Reader;
pub use witness::Witness;

/// Between two looks.
const AGAIN: Duration = Duration::from_millis(300);

/// Where the truth stands, and what was reported.
pub struct Judge<'a> {
    /// The API server, as administrator.
    pub kubernetes: kube::Client,
    /// The address of Argo CD, as `http://127.0.0.1:1234`.
    pub argocd_url: String,
    /// A token of an account there that may read all applications.
    pub argocd_token: String,
    /// The namespace of the applications.
    pub namespace: String,
    /// Who has looked on since before the reporter began.
    pub witness: &'a Witness,
    /// What was reported; it keeps the last payloads and all reports ([`loadtest_sim::platform::Keep`]).
    pub platform: &'a PlatformSim,
    /// The real platform that all of it was led to, if there is one: what it shows is compared too.
    pub shown_by: Option<Door>,
    /// Texts that must be in no byte that was sent, besides the values of all Secrets of the cluster.
    pub canaries: Vec<String>,
    /// So long nothing may change before the verdict counts.
    pub quiet: Duration,
}

impl std::fmt::Debug for Judge<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Judge").field("argocd_url", &self.argocd_url).finish_non_exhaustive()
    }
}

/// Waits until nothing changes and everything is as reported, and gives an empty list; or what differs at
/// `deadline` from now.
pub async fn judge(
    judge: &Judge<'_>,
    applications: &[String],
    deadline: Duration,
) -> anyhow::Result<Vec<String>> {
    let reader = Reader::new(judge)?;
    let end = Instant::now() + deadline;
    let mut equal: Option<(Instant, Vec<u64>)> = None;
    let mut found: anyhow::Result<Vec<String>> = Err(anyhow::anyhow!("nothing was read in time"));
    // A look that the deadline cuts off says nothing: the one before counts.
    while let Ok(looked) = tokio::time::timeout_at(end.into(), look(judge, &reader, applications)).await {
        found = match looked {
            Ok((differences, state)) if differences.is_empty() => {
                let since = match &equal {
                    Some((since, before)) if *before == state => *since,
                    _ => Instant::now(),
                };
                if since.elapsed() >= judge.quiet {
                    return Ok(Vec::new());
                }
                equal = Some((since, state));
                Ok(vec![format!("everything is as reported, but did not stay so for {:?}", judge.quiet)])
            }
            looked => {
                equal = None;
                looked.map(|(differences, _)| differences)
            }
        };
        if Instant::now() + AGAIN >= end {
            break;
        }
        tokio::time::sleep(AGAIN).await;
    }
    found.context("look at what was reported")
}

/// What differs now, and what must not change for that to count: versions of the applications, and how many reports
/// there are.
async fn look(
    judge: &Judge<'_>,
    reader: &Reader,
    applications: &[String],
) -> anyhow::Result<(Vec<String>, Vec<u64>)> {
    let told = Told::of(judge.platform, applications);
    let mut found = Vec::new();
    let mut state = vec![told.reports()];
    for name in applications {
        let told = told.of_application(&judge.namespace, name);
        let application = reader.application(judge, name, &told).await?;
        state.push(application.version());
        let differences = judged::differences(&application, &told);
        // What is shown of something that is not settled yet says nothing.
        if let Some(door) = judge.shown_by.as_ref().filter(|_| differences.is_empty()) {
            let resources = shown::listed(&application, &told);
            let shown = door.shown(&judge.namespace, name, &resources).await?;
            found.extend(shown::differences(&shown, &application, &told));
        }
        found.extend(differences);
    }
    Ok((found, state))
}

/// Reports about applications that the witness has never seen, and values of Secrets in any report or in `files` (the
/// reporter's log): what no single scenario is about. To be asked once at the end, and before the Secrets of a
/// scenario are deleted.
pub async fn judge_rest(judge: &Judge<'_>, files: &[&std::path::Path]) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    for (entity, _) in judge.platform.last() {
        let key = (entity.app_namespace, entity.app_name);
        if judge.witness.lives(&key.0, &key.1).is_empty() {
            found.push(format!("{}/{}: reported, but there never was such an application", key.0, key.1));
        }
    }
    found.sort();
    found.dedup();
    let canaries = secrets::canaries(judge.kubernetes.clone(), &judge.canaries).await?;
    let mut leaks: Vec<String> = Vec::new();
    for report in judge.platform.kept() {
        leaks.extend(canaries.leak_of(&report.entity, &report.payload));
    }
    leaks.sort();
    leaks.dedup();
    found.extend(leaks);
    for file in files {
        let text = tokio::fs::read(file).await.with_context(|| format!("read {}", file.display()))?;
        if let Some(leak) = canaries.leak(&text) {
            found.push(format!("{}: {leak} is there in clear", file.display()));
        }
    }
    Ok(found)
}
