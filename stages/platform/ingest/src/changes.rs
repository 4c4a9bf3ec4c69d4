//! Reads which commits changed an application: as the role `change-revision` reports it after a sync, and as little of it as
//! stands in the reports of the application itself.
//!
//! takes: a body's text, or an application's annotations - gives: sources with their commits - fails: with the refusal that says
//! why it is none; what is odd within an annotation is no reason to refuse a report

use serde_json::value::RawValue;
use stages_platform_store::{Commit, CommitOf, FileDiff, MadeFrom, Millis, SourceChange};

use crate::fields::{Entries, Fields, string};
use crate::placement::{self, Source};
use crate::refusal::Refusal;
use crate::wire::{NAME, WORD, not_json, time};

/// Sources of an application, and commits of a source, that are read: the newest of them are kept.
const SOURCES: usize = 100;
const COMMITS: usize = 1_000;
/// Files of a commit whose differences are read.
const FILES: usize = 100;

/// The annotation in which a report of an application says of commits what is known of them.
const REVISIONS: &str = "app.meta.revisions-metadata";

/// What is told of one sync.
pub(crate) struct SyncChanges {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) started_at: Millis,
    pub(crate) sources: Vec<SourceChange>,
}

/// A report; `None` where there is nothing to keep: of an end, and of a sync that nobody has seen begin.
pub(crate) fn report(text: &[u8]) -> Result<Option<SyncChanges>, Refusal> {
    let event: Fields<'_> = serde_json::from_slice(text).map_err(|error| not_json(&error))?;
    let data = Fields::of(event.get("data")).few("data")?;
    let [namespace, name] = ["namespace", "name"].map(|name| data.text_or_empty(name));
    if name.is_empty() {
        return Err(Refusal::NoApplicationName);
    }
    for (field, text, most) in
        [("application's namespace", &namespace, WORD), ("application's name", &name, NAME)]
    {
        if text.len() > most {
            return Err(Refusal::Long { field, most });
        }
    }
    let sources = Entries::of(data.get("sources"));
    if sources.are_many || sources.all.len() > SOURCES {
        return Err(Refusal::Many { field: "sources", most: SOURCES });
    }
    let started_at = data.text("startedAt").as_deref().and_then(time);
    Ok(started_at.map(|started_at| {
        let sources = sources.all.into_iter().map(source).collect();
        SyncChanges { namespace, name, started_at, sources }
    }))
}

fn source(source: &RawValue) -> SourceChange {
    let source = Fields::of(Some(source));
    let text = |name| source.text_or_empty(name);
    let commits = Entries::of(source.get("changes"));
    SourceChange {
        repository: text("repoURL"),
        revision: text("revision"),
        previous: text("previousRevision"),
        more: source.is("more") || commits.all.len() > COMMITS,
        none_is_new: source.is("noneIsNew"),
        error: text("error"),
        commits: commits.all.into_iter().take(COMMITS).map(commit).collect(),
    }
}

fn commit(commit: &RawValue) -> CommitOf {
    let commit = Fields::of(Some(commit));
    let text = |name| commit.text_or_empty(name);
    let paths = Entries::of(commit.get("paths"));
    let more = commit.get("morePaths").and_then(|more| more.get().parse().ok());
    let diffs = Entries::of(commit.get("diffs"));
    CommitOf {
        revision: text("revision"),
        author: text("author"),
        date: text("date"),
        message: text("message"),
        made_from: commit.get("madeFrom").map(made_from).filter(|of| !of.revision.is_empty()),
        paths: paths.all.into_iter().filter_map(string).map(Into::into).collect(),
        more_paths: more.unwrap_or(0),
        diffs: diffs.all.into_iter().take(FILES).map(diff).collect(),
    }
}

fn made_from(commit: &RawValue) -> MadeFrom {
    let commit = Fields::of(Some(commit));
    let text = |name| commit.text_or_empty(name);
    MadeFrom {
        repository: text("repoURL"),
        revision: text("revision"),
        author: text("author"),
        date: text("date"),
        message: text("message"),
    }
}

fn diff(file: &RawValue) -> FileDiff {
    let file = Fields::of(Some(file));
    let text = |name| file.text_or_empty(name);
    FileDiff { path: text("path"), text: text("text"), untold: text("untold"), cut: file.is("cut") }
}

/// What a report of an application says of commits.
#[derive(Default)]
pub(crate) struct AnnotatedCommits {
    /// Of each source the commit that last changed it, and whose it is; of one that has no commits what it stands at, alone.
    pub(crate) sources: Vec<SourceChange>,
    /// What was synced of the first source that has manifests.
    pub(crate) commit: Commit,
}

/// Reads it of the application's annotations, else of what stands `beside` the application, which is the same as JSON.
pub(crate) fn annotated_commits(
    annotations: &Fields<'_>,
    beside: Option<&RawValue>,
    spec: &RawValue,
) -> AnnotatedCommits {
    let annotated = annotations.get(REVISIONS).and_then(string);
    let noted = match &annotated {
        Some(text) => serde_json::from_str(text).unwrap_or_default(),
        None => Fields::of(beside),
    };
    let (changed, synced) =
        (Entries::of(noted.get("changeRevisions")), Entries::of(noted.get("syncRevisions")));
    if changed.all.is_empty() && synced.all.is_empty() {
        return AnnotatedCommits::default();
    }
    let sources = placement::sources(spec);
    let one = |(index, changed): (usize, &RawValue)| {
        let changed = Fields::of(Some(changed));
        let Commit { author, message, date } = committed(&changed);
        let revision = changed.text_or_empty("revision");
        let commit = CommitOf { revision, author, date, message, ..CommitOf::default() };
        let synced = synced.all.get(index).and_then(|synced| Fields::of(Some(synced)).text("revision"));
        let source = sources.get(index);
        let is_commit = !commit.revision.is_empty() && source.is_none_or(Source::has_commits);
        SourceChange {
            repository: source.map(|source| source.repository.clone()).unwrap_or_default(),
            revision: synced.unwrap_or_default(),
            commits: if is_commit { vec![commit] } else { Vec::new() },
            ..SourceChange::default()
        }
    };
    let first = sources.iter().position(|source| !source.is_reference()).unwrap_or(0);
    let commit = synced.all.get(first).map(|synced| committed(&Fields::of(Some(synced))));
    AnnotatedCommits {
        sources: changed.all.iter().copied().take(SOURCES).enumerate().map(one).collect(),
        commit: commit.unwrap_or_default(),
    }
}

/// Who made a revision, when, and what they said.
fn committed(revision: &Fields<'_>) -> Commit {
    let of = Fields::of(revision.get("metadata"));
    let text = |name| of.text_or_empty(name);
    Commit { author: text("author"), message: text("message"), date: text("date") }
}
