//! `loadtest bench revisions`: which commits changed which of many applications of one repository.
//!
//! takes: a generated repository that holds its applications, a history in which each commit changes one of them, and files that
//! nobody asks about - gives: the time of `gitops-runtime git commits` for all applications, from its start to its last byte,
//! the most anonymous memory that it had, and beside them one process of git for each application and commit, of which some are
//! measured - calls: the program and git as processes - fails: when a commit is told of an application that it did not change,
//! or is not told of one that it did, or in the long form when a figure misses its bound

mod history;
mod watched;

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde::Deserialize;
use serde_json::json;

use self::history::History;
use self::watched::Watched;
use crate::measure::{Measure, Measures};
use crate::times::mib;
use loadtest_judge::median;
use loadtest_judge::screen::say;

/// How applications call the repository.
const URL: &str = "https://git.example.com/mono.git";
/// So often it is measured: the median counts, since a neighbour on the machine takes some time of one.
const ROUNDS: usize = 3;
/// What must be reached in the long form.
const WITHIN: Duration = Duration::from_secs(2);
const ANONYMOUS: u64 = 256 << 20;

/// How much there is.
#[derive(Debug, Clone, Copy)]
struct Form {
    applications: usize,
    commits: usize,
    /// Files of a megabyte each that no application is made of.
    megabytes: usize,
    /// Processes of git that are measured.
    sample: usize,
    is_judged: bool,
}

const SHORT: Form = Form { applications: 50, commits: 500, megabytes: 2, sample: 5, is_judged: false };
const LONG: Form =
    Form { applications: 1_000, commits: 10_000, megabytes: 2_048, sample: 200, is_judged: true };

/// What `git commits -o json` tells.
#[derive(Deserialize)]
struct Told {
    applications: Vec<ToldApplication>,
}

#[derive(Deserialize)]
struct ToldApplication {
    application: String,
    commits: Vec<ToldCommit>,
}

#[derive(Deserialize)]
struct ToldCommit {
    revision: String,
}

/// Runs it; whether all was as it must be.
pub(crate) async fn run(program: &Path, is_short: bool) -> anyhow::Result<bool> {
    let form = if is_short { SHORT } else { LONG };
    say(&format!("== revisions: a repository of {} MB is made", form.megabytes));
    let folder = tempfile::TempDir::new().context("make a folder")?;
    let history = History::make(folder.path(), form.applications, form.commits, form.megabytes)?;
    let size = history.size()?;
    ensure!(
        size >= (form.megabytes as u64) << 20,
        "the repository has {size} bytes, not the {} MB that it is to have",
        form.megabytes
    );
    let applications = folder.path().join("applications.json");
    std::fs::write(&applications, objects(form.applications)).context("write the applications")?;

    let (mut took, mut anonymous) = (Vec::new(), 0);
    for _ in 0..ROUNDS {
        let mut command = tokio::process::Command::new(program);
        command.args(["git", "commits", "--revision", "main", "--since", "start", "--limit", "1000"]);
        command
            .args(["--url", URL, "-o", "json", "--repo"])
            .arg(history.directory())
            .arg("-f")
            .arg(&applications);
        let watched = Watched::run(command).await?;
        judge(&watched.output, &history, form)?;
        took.push(watched.took.as_secs_f64());
        anonymous = anonymous.max(watched.anonymous);
    }
    let (each, processes) = history.one_by_one(form.sample)?;
    let theirs = each.mul_f64(processes as f64);

    let ours = median(took).context("measure it")?;
    let mut measures = Measures::new("revisions", !form.is_judged);
    let ratio = theirs.as_secs_f64() / ours;
    measures.add([
        Measure::time("gitops-runtime git commits", Duration::from_secs_f64(ours), WITHIN),
        Measure::memory("its anonymous memory, most", anonymous, ANONYMOUS),
        Measure::beside(
            format!("git, {processes} processes, each for one application and commit"),
            format!("{:.0} s, {ratio:.0} x", theirs.as_secs_f64()),
        ),
    ]);
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    say(&format!(
        "revisions: {} applications, {} commits, a repository of {}, {cores} cores, the program {}; the median of {ROUNDS} runs, \
         from its start to its last byte. git: a process for each application and commit, the newest commit first, until one \
         changed it; {} processes were measured, {:.2} ms each, and the rest is that times as many",
        form.applications,
        form.commits,
        mib(size),
        program.display(),
        form.sample,
        each.as_secs_f64() * 1_000.0
    ));
    Ok(measures.judge())
}

/// The applications, each a directory of the repository.
fn objects(applications: usize) -> String {
    let object = |number: usize| {
        json!({
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Application",
            "metadata": {"namespace": "argocd", "name": format!("a{number}")},
            "spec": {"source": {"repoURL": URL, "path": History::path(number), "targetRevision": "main"}},
        })
    };
    let items: Vec<_> = (0..applications).map(object).collect();
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

/// Each commit is told of the one application that it changed, and the newest first.
fn judge(output: &[u8], history: &History, form: Form) -> anyhow::Result<()> {
    let told: Told = serde_json::from_slice(output).context("read what is told of the applications")?;
    ensure!(
        told.applications.len() == form.applications,
        "{} applications are told of, not {}",
        told.applications.len(),
        form.applications
    );
    let mut wanted: HashMap<String, Vec<&str>> = HashMap::new();
    for (number, id) in history.newest_first() {
        wanted.entry(format!("argocd/a{}", history.changed(number))).or_default().push(id);
    }
    for of in told.applications {
        let found: Vec<&str> = of.commits.iter().map(|commit| commit.revision.as_str()).collect();
        let right = wanted.remove(&of.application).unwrap_or_default();
        ensure!(found == right, "{} was changed by {right:?}, and {found:?} are told", of.application);
    }
    ensure!(wanted.is_empty(), "nothing is told of {} applications that were changed", wanted.len());
    Ok(())
}
