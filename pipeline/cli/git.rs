//! `gitops-runtime git`: what a repository says of applications, without a cluster.

mod remote;
mod show;

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use serde::Serialize;
use stages_git::application::{Application, applications};
use stages_git::manifests::manifests;
use stages_git::walk::{Change, WalkLimits, WalkRequest};
use stages_git::{Address, Commit, GitRepository, Paths};

use crate::cli::{ApplicationsArgs, ChangedArgs, CommitsArgs, GitArgs, GitCommand, ManifestsArgs, print};
use crate::config::Variables;

/// Bytes of the largest file of applications.
const LARGEST: u64 = 256 * 1024 * 1024;

/// Something of an application is changed, and the exit code is to say so.
const CHANGED: u8 = 3;

/// A commit that changed an application, as it is shown.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownCommit {
    #[serde(flatten)]
    commit: Commit,
    paths: Vec<String>,
    #[serde(skip_serializing_if = "is_zero")]
    more_paths: usize,
}

/// What is known of one application.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownApplication {
    application: String,
    commits: Vec<ShownCommit>,
    /// There are more commits than were asked for.
    more: bool,
    /// No commit is new: the newest that there is at all stands in their place.
    none_is_new: bool,
}

/// The answer to `git commits`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownCommits {
    revision: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    applications: Vec<ShownApplication>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    shallow: bool,
}

/// The answer to `git changed`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownChanges {
    base: String,
    head: String,
    merge_base: String,
    /// Applications whose manifests may differ, sorted.
    changed: Vec<ShownChange>,
    /// How many applications of this repository are not changed.
    unchanged: usize,
    /// How many have nothing of this repository, or follow another branch.
    elsewhere: usize,
}

/// An application that is changed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownChange {
    application: String,
    paths: Vec<String>,
    #[serde(skip_serializing_if = "is_zero")]
    more_paths: usize,
    /// Which commits did it, the newest first.
    commits: Vec<ShownCommit>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Answers one question about a repository.
///
/// # Errors
/// It cannot be answered; each with what to do next.
pub(crate) fn run(given: &GitArgs, variables: &Variables) -> anyhow::Result<ExitCode> {
    match &given.command {
        GitCommand::Changed(given) => changed(given, variables),
        GitCommand::Commits(given) => commits(given, variables),
        GitCommand::Manifests(given) => listed(given, variables),
        GitCommand::Remote(command) => Ok(super::remote::run_git(command, variables)),
    }
}

fn listed(given: &ManifestsArgs, variables: &Variables) -> anyhow::Result<ExitCode> {
    let opened = remote::open(&given.repository, &[&given.revision], variables)?;
    let (repository, revision) = (&opened.repository, opened.resolve(&given.revision)?);
    let found = manifests(&repository.snapshot(revision)?, &given.path, given.recurse)?;
    if found.manifests.is_empty() && found.unread.is_empty() {
        bail!(
            "nothing is at {:?} in {}: neither a manifest nor a directory that holds one",
            given.path,
            given.revision
        );
    }
    print(&show::manifests(&found, given.repository.output)?)?;
    Ok(ExitCode::SUCCESS)
}

fn commits(given: &CommitsArgs, variables: &Variables) -> anyhow::Result<ExitCode> {
    let revisions: Vec<&str> =
        [Some(&*given.revision), given.since.as_deref()].into_iter().flatten().collect();
    let opened = remote::open(&given.repository, &revisions, variables)?;
    let (repository, to) = (&opened.repository, opened.resolve(&given.revision)?);
    let since = given.since.as_deref().map(|since| opened.resolve(since)).transpose()?;
    let mut names = Vec::new();
    let mut asked = Vec::new();
    if given.paths.is_empty() {
        let files = repository.snapshot(to)?;
        let address = address(repository, &given.applications)?;
        for application in read(&given.applications.files)? {
            let application = application.standing_in(&[&files])?;
            let mut paths = Paths::default();
            for source in application.of(&address) {
                paths.extend(application.paths(source, &files)?);
            }
            if !paths.is_empty() {
                names.push(application.id());
                asked.push(WalkRequest { to, since, paths });
            }
        }
        if names.is_empty() {
            bail!(
                "none of the applications has a source in {address}; --url says how they call this repository"
            );
        }
    } else {
        names.push(given.paths.join(" "));
        asked.push(WalkRequest { to, since, paths: given.paths.clone().into() });
    }
    let limits = WalkLimits { changes: usize::from(given.limit), ..WalkLimits::default() };
    let found = repository.changes(&asked, limits)?;
    let mut shown = ShownCommits {
        revision: to.to_string(),
        since: since.map(|since| since.to_string()),
        applications: Vec::new(),
        shallow: found.iter().any(|found| found.shallow),
    };
    for (application, found) in names.into_iter().zip(found) {
        let none_is_new = found.since.is_empty();
        let all = if none_is_new { found.newest.into_iter().collect() } else { found.since };
        shown.applications.push(ShownApplication {
            application,
            commits: told(repository, all)?,
            more: found.more,
            none_is_new,
        });
    }
    print(&show::commits(&shown, given.repository.output)?)?;
    Ok(ExitCode::SUCCESS)
}

fn told(repository: &GitRepository, changes: Vec<Change>) -> anyhow::Result<Vec<ShownCommit>> {
    changes
        .into_iter()
        .map(|change| {
            let commit = repository.commit(change.commit)?;
            Ok(ShownCommit { commit, paths: change.paths, more_paths: change.more_paths })
        })
        .collect()
}

fn changed(given: &ChangedArgs, variables: &Variables) -> anyhow::Result<ExitCode> {
    if given.applications.files.is_empty() {
        bail!("-f names no file of applications; kubectl get applications -A -o yaml makes one");
    }
    let opened = remote::open(&given.repository, &[&given.base, &given.head], variables)?;
    let repository = &opened.repository;
    let (base, head) = (opened.resolve(&given.base)?, opened.resolve(&given.head)?);
    let from = repository.merge_base(base, head).context(
        "a clone without its whole history does not show what a pull request changes: fetch it with --unshallow",
    )?;
    let address = address(repository, &given.applications)?;
    let all = read(&given.applications.files)?;
    let (before, after) = (repository.snapshot(from)?, repository.snapshot(head)?);
    let mut names = Vec::new();
    let mut asked = Vec::new();
    let mut elsewhere = 0;
    for application in &all {
        let application = application.standing_in(&[&before, &after])?;
        let mut paths = Paths::default();
        for source in application.of(&address) {
            let follows = &application.sources[source].target_revision;
            let follows = follows.strip_prefix("refs/heads/").unwrap_or(follows);
            if given
                .into
                .as_ref()
                .is_none_or(|into| follows == into || follows.is_empty() || follows == "HEAD")
            {
                // What it was made of counts as well: a base that is not used any more may be deleted here.
                paths.extend(application.paths(source, &before)?);
                paths.extend(application.paths(source, &after)?);
            }
        }
        if paths.is_empty() {
            elsewhere += 1;
        } else {
            names.push(application.id());
            asked.push(WalkRequest { to: head, since: Some(base), paths });
        }
    }
    if names.is_empty() {
        bail!("none of the applications has a source in {address}; --url says how they call this repository");
    }
    let paths: Vec<Paths> = asked.iter().map(|asked| asked.paths.clone()).collect();
    let differing = repository.differing(from, head, &paths)?;
    let (touched, rest): (Vec<_>, Vec<_>) =
        names.into_iter().zip(asked).zip(differing).partition(|(_, differing)| differing.is_some());
    let wanted: Vec<WalkRequest> = touched.iter().map(|((_, asked), _)| asked.clone()).collect();
    let found = repository.changes(&wanted, WalkLimits { changes: 20, ..WalkLimits::default() })?;
    let mut shown = ShownChanges {
        base: base.to_string(),
        head: head.to_string(),
        merge_base: from.to_string(),
        changed: Vec::new(),
        unchanged: rest.len(),
        elsewhere,
    };
    for (((application, _), differing), found) in touched.into_iter().zip(found) {
        let Some(differing) = differing else { continue };
        shown.changed.push(ShownChange {
            application,
            paths: differing.paths,
            more_paths: differing.more_paths,
            commits: told(repository, found.since)?,
        });
    }
    shown.changed.sort_by(|a, b| a.application.cmp(&b.application));
    print(&show::changes(&shown, given.repository.output)?)?;
    let tells = given.exit_code && !shown.changed.is_empty();
    Ok(if tells { ExitCode::from(CHANGED) } else { ExitCode::SUCCESS })
}

/// How applications call the repository.
fn address(repository: &GitRepository, given: &ApplicationsArgs) -> anyhow::Result<Address> {
    match given.url.clone().or_else(|| repository.origin()) {
        Some(url) => Ok(Address::read(&url)),
        None => bail!("the repository has no remote origin: --url says how applications call it"),
    }
}

fn read(files: &[std::path::PathBuf]) -> anyhow::Result<Vec<Application>> {
    let mut all = Vec::new();
    for file in files {
        let standard = file == Path::new("-");
        let named = if standard { "standard input".to_owned() } else { file.display().to_string() };
        let mut text = String::new();
        let done = if standard {
            io::stdin().lock().take(LARGEST + 1).read_to_string(&mut text)
        } else {
            File::open(file).and_then(|file| file.take(LARGEST + 1).read_to_string(&mut text))
        };
        done.with_context(|| format!("read {named}"))?;
        if text.len() as u64 > LARGEST {
            bail!("{named} holds more than 256 MiB");
        }
        let found = applications(&text).with_context(|| format!("read {named}"))?;
        if found.is_empty() {
            bail!("{named} holds no Argo CD Application");
        }
        all.extend(found);
    }
    Ok(all)
}

/// An id as it is shown to people.
fn short(id: &str) -> &str {
    id.get(..8).unwrap_or(id)
}
