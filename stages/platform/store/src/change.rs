//! Which commits changed an application in a sync: kept by the application's name and by when the sync began, since it is told by
//! another role than the sync itself, and may come first.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::connection::{Arg, Connection, Row};
use crate::error::StoreError;
use crate::report::{Millis, Report};
use crate::rows::with_rows;
use crate::statement::Statement;
use crate::store::Store;

/// Syncs of one application whose commits are read at most, the newest.
const SYNCS: i64 = 100;
/// Bytes of all texts that are kept of one sync.
const BYTES: usize = 32 * 1024;
/// Paths of one commit.
const PATHS: usize = 50;
/// Bytes of an address, a revision, an author and a date, and of a message, an error and a path.
const SHORT: usize = 1_024;
const LONG: usize = 2_048;
/// Bytes of all differences of files that are kept of one sync, of one file, and files of one commit.
const DIFFS: usize = 256 * 1024;
const ENTRY: usize = 64;
const DIFF: usize = 64 * 1024;
const FILES: usize = 100;

/// Told by the report of the application itself: a commit of each source, without its paths.
const BY_APPLICATION: i64 = 0;
/// Told by whoever looks at repositories and could not read them all.
const IN_PART: i64 = 1;
/// Told by whoever looks at repositories, of all of them. What knows less (a smaller number) never takes its place.
const WHOLE: i64 = 2;

/// Its place in the sequence of all that is told is the default of the table in Postgres, and given by triggers in SQLite.
macro_rules! keep {
    ($values:literal) => {
        concat!(
            "INSERT INTO changes (runtime_id, namespace, name, started_at, known, sources, diffs) ",
            $values,
            " ON CONFLICT (runtime_id, namespace, name, started_at) DO UPDATE SET known = excluded.known, \
             sources = excluded.sources, diffs = excluded.diffs, place = excluded.place \
             WHERE changes.known < excluded.known OR (changes.known = excluded.known \
             AND (changes.sources <> excluded.sources OR (excluded.diffs <> '' AND changes.diffs <> excluded.diffs)))"
        )
    };
}
const KEEP: &str = keep!("VALUES ($1, $2, $3, $4, $5, $6, $7)");
pub(crate) const KEEP_ALL: &str = keep!(
    "SELECT column1, column2, column3, column4, column5, column6, '' FROM (VALUES ROWS) AS named WHERE column1 IS NOT NULL"
);

/// A source of an application, and the commits that changed it in a sync.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SourceChange {
    /// Where its repository is.
    pub repository: String,
    /// The revision that was synced.
    pub revision: String,
    /// The revision that it stood at before; empty where there was none or it is not known.
    pub previous: String,
    /// The commits that changed it since, the newest first; where there is none, the newest that there is at all.
    pub commits: Vec<CommitOf>,
    /// There are more than stand here.
    pub more: bool,
    /// None of them is new: a rollback, or the same once more.
    pub none_is_new: bool,
    /// Why it is not known which they are; empty where it is.
    pub error: String,
}

/// A commit that changed an application.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CommitOf {
    /// Its id.
    pub revision: String,
    /// Who wrote it.
    pub author: String,
    /// When, as it was reported.
    pub date: String,
    /// What it says.
    pub message: String,
    /// The commit of people that it was made from, where Argo CD wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub made_from: Option<MadeFrom>,
    /// The paths of the application that it changed, as far as they are known.
    pub paths: Vec<String>,
    /// How many more of them there are.
    pub more_paths: u64,
    /// What differs in the first of them: read of one sync alone, and of none in a list.
    #[serde(skip)]
    pub diffs: Vec<FileDiff>,
}

/// A commit of people that Argo CD made another one from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MadeFrom {
    /// Where its repository is.
    pub repository: String,
    /// Its id.
    pub revision: String,
    /// Who wrote it; empty where it is not known, as what follows.
    pub author: String,
    /// When, as it was reported.
    pub date: String,
    /// What it says.
    pub message: String,
}

/// What a commit changed in one file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FileDiff {
    /// The file.
    pub path: String,
    /// A unified diff without its head; empty where there is none.
    pub text: String,
    /// A word for why there is none; empty where there is one.
    pub untold: String,
    /// There is more of it.
    pub cut: bool,
}

/// The files of one commit, as they are kept.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct KeptDiffs {
    source: usize,
    commit: usize,
    files: Vec<FileDiff>,
}

fn cut(text: &mut String, most: usize) -> usize {
    text.truncate(text.floor_char_boundary(most));
    text.len()
}

impl MadeFrom {
    /// Its bytes, once its texts are in their bounds.
    fn bounded(&mut self) -> usize {
        let Self { repository, revision, author, date, message } = self;
        let own: usize = [repository, revision, author, date].into_iter().map(|text| cut(text, SHORT)).sum();
        own + cut(message, LONG)
    }
}

/// What is kept of it: texts have their bounds, and all of them together too. What does not fit in is counted; paths go before
/// commits, and what is older before what is newer.
fn bounded(mut sources: Vec<SourceChange>) -> Vec<SourceChange> {
    let mut room = BYTES;
    for source in &mut sources {
        let SourceChange { repository, revision, previous, error, .. } = source;
        let own: usize = [repository, revision, previous].into_iter().map(|text| cut(text, SHORT)).sum();
        room = room.saturating_sub(own + cut(error, LONG));
    }
    for source in &mut sources {
        let mut kept = 0;
        for commit in &mut source.commits {
            let CommitOf { revision, author, date, message, made_from, .. } = commit;
            let own: usize = [revision, author, date].into_iter().map(|text| cut(text, SHORT)).sum();
            let own = own + cut(message, LONG) + made_from.as_mut().map_or(0, MadeFrom::bounded);
            if own > room {
                break;
            }
            (room, kept) = (room - own, kept + 1);
        }
        source.more |= kept < source.commits.len();
        source.commits.truncate(kept);
    }
    for commit in sources.iter_mut().flat_map(|source| &mut source.commits) {
        let all = commit.paths.len();
        commit.paths.truncate(PATHS);
        let fits = |path: &String| {
            let is_room = path.len() <= LONG && path.len() < room;
            room -= if is_room { path.len() + 1 } else { 0 };
            is_room
        };
        commit.paths.retain(fits);
        commit.more_paths = commit.more_paths.saturating_add((all - commit.paths.len()) as u64);
    }
    sources
}

/// What is kept of the differences of files: in its bounds, the newest first; empty where there are none.
fn diffs(sources: &mut [SourceChange]) -> String {
    let mut room = DIFFS;
    let mut all = Vec::new();
    for (source, of) in sources.iter_mut().enumerate() {
        for (commit, of) in of.commits.iter_mut().enumerate() {
            let mut files = std::mem::take(&mut of.diffs);
            files.truncate(FILES);
            files.retain_mut(|file| {
                let own = cut(&mut file.path, LONG) + cut(&mut file.untold, SHORT) + ENTRY;
                file.cut |= file.text.len() > DIFF;
                let own = own + cut(&mut file.text, DIFF);
                // After one that finds no room there is none for any: what is told are the first of its paths.
                room = room.saturating_sub(own);
                room > 0
            });
            if !files.is_empty() {
                all.push(KeptDiffs { source, commit, files });
            }
        }
    }
    if all.is_empty() { String::new() } else { serde_json::to_string(&all).unwrap_or_default() }
}

/// Texts and numbers are JSON always.
fn text(sources: &[SourceChange]) -> String {
    serde_json::to_string(sources).unwrap_or_else(|_| "[]".to_owned())
}

/// What cannot be read says nothing.
fn read(text: &str) -> Vec<SourceChange> {
    serde_json::from_str(text).unwrap_or_default()
}

/// What reports of applications say of the commits of their last syncs, each of a runtime and none of a sync that another speaks of.
pub(crate) async fn of_reports(
    connection: &mut Connection,
    reports: &[(i64, &Report)],
) -> Result<(), StoreError> {
    let mut said = Vec::new();
    for (runtime, report) in reports {
        if let Some(operation) = &report.operation {
            said.push((
                *runtime,
                &report.entity,
                operation.started_at,
                text(&bounded(report.changes.clone())),
            ));
        }
    }
    let rows: Vec<_> = said
        .iter()
        .map(|(runtime, entity, started_at, sources)| {
            let (namespace, name) = (Arg::Text(&entity.app_namespace), Arg::Text(&entity.app_name));
            let (runtime, started_at) = (Arg::Int(*runtime), Arg::Int(*started_at));
            [runtime, namespace, name, started_at, Arg::Int(BY_APPLICATION), Arg::Text(sources)]
        })
        .collect();
    with_rows(connection, KEEP_ALL, &rows).await.map(drop)
}

/// What is known of the commits of a sync, in the column that is named.
pub(crate) fn column(row: &Row, column: usize) -> Result<Vec<SourceChange>, StoreError> {
    Ok(row.text_or_null(column)?.map(|text| read(&text)).unwrap_or_default())
}

impl Store {
    /// Keeps which commits changed an application in the sync that began then. The same once more changes nothing, and what
    /// knows less of it than is known already neither.
    ///
    /// # Errors
    /// [`StoreError`] when it was not kept.
    pub async fn keep_changes(
        &self,
        runtime: i64,
        (namespace, name): (&str, &str),
        started_at: Millis,
        sources: Vec<SourceChange>,
    ) -> Result<(), Arc<StoreError>> {
        let known = if sources.iter().all(|source| source.error.is_empty()) { WHOLE } else { IN_PART };
        let mut sources = bounded(sources);
        let diffs = diffs(&mut sources);
        let sources = text(&sources);
        let values = [
            runtime.into(),
            namespace.into(),
            name.into(),
            started_at.into(),
            known.into(),
            (&*sources).into(),
            (&*diffs).into(),
        ];
        self.change(vec![Statement::may(KEEP, values)]).await
    }

    /// Which commits changed an application in the syncs that began between two moments: of the newest hundred, the oldest
    /// first.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn changes_between(
        &self,
        application: i64,
        (begin, end): (Millis, Millis),
    ) -> Result<Vec<(Millis, Vec<SourceChange>)>, StoreError> {
        let sql = "SELECT c.started_at, c.sources FROM applications a JOIN changes c ON c.runtime_id = a.runtime_id \
                   AND c.namespace = a.namespace AND c.name = a.name \
                   WHERE a.id = $1 AND c.started_at >= $2 AND c.started_at <= $3 ORDER BY c.started_at DESC LIMIT $4";
        let arguments = [Arg::Int(application), Arg::Int(begin), Arg::Int(end), Arg::Int(SYNCS)];
        let rows = self.read().await?.rows(sql, &arguments).await?;
        rows.iter().rev().map(|row| Ok((row.int(0)?, column(row, 1)?))).collect()
    }

    /// Which commits changed an application in the sync that began then, with what they changed in files; none where nothing is
    /// known of it.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn changes_at(&self, application: i64, began: Millis) -> Result<Vec<SourceChange>, StoreError> {
        let sql = "SELECT c.sources, c.diffs FROM applications a JOIN changes c ON c.runtime_id = a.runtime_id \
                   AND c.namespace = a.namespace AND c.name = a.name WHERE a.id = $1 AND c.started_at = $2";
        let rows = self.read().await?.rows(sql, &[Arg::Int(application), Arg::Int(began)]).await?;
        let Some(row) = rows.first() else { return Ok(Vec::new()) };
        let mut sources = column(row, 0)?;
        let kept: Vec<KeptDiffs> =
            row.text_or_null(1)?.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        for KeptDiffs { source, commit, files } in kept {
            if let Some(of) = sources.get_mut(source).and_then(|of| of.commits.get_mut(commit)) {
                of.diffs = files;
            }
        }
        Ok(sources)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(revision: usize, paths: usize) -> CommitOf {
        CommitOf {
            revision: format!("{revision:040x}"),
            author: "Ada <ada@example.com>".to_owned(),
            message: "é".repeat(4_000),
            paths: (0..paths).map(|path| format!("apps/shop/{path}.yaml")).collect(),
            ..CommitOf::default()
        }
    }

    #[test]
    fn what_does_not_fit_in_is_counted_and_the_newest_stays() {
        let few = bounded(vec![SourceChange { commits: vec![commit(1, 60)], ..SourceChange::default() }]);
        assert_eq!((few[0].commits[0].paths.len(), few[0].commits[0].more_paths), (50, 10));
        assert_eq!((few[0].commits[0].message.len(), few[0].more), (LONG, false));
        let commits = (0..100).map(|number| commit(number, 60)).collect();
        let many = bounded(vec![SourceChange { commits, ..SourceChange::default() }]);
        let kept = &many[0].commits;
        assert!(many[0].more && (10..20).contains(&kept.len()), "{}", kept.len());
        assert_eq!(kept[0].revision, format!("{:040x}", 0), "the newest");
        let paths = kept.iter().map(|commit| commit.paths.len() as u64 + commit.more_paths);
        assert!(paths.clone().all(|paths| paths == 60), "{:?}", paths.collect::<Vec<_>>());
        assert!(serde_json::to_string(&many).unwrap().len() < BYTES + 8 * 1024);
        let made_from = MadeFrom { message: "é".repeat(4_000), ..MadeFrom::default() };
        let made =
            (0..100).map(|number| CommitOf { made_from: Some(made_from.clone()), ..commit(number, 0) });
        let made = bounded(vec![SourceChange { commits: made.collect(), ..SourceChange::default() }]);
        assert!(made[0].more && serde_json::to_string(&made).unwrap().len() < BYTES + 8 * 1024);
        let long = CommitOf { paths: vec!["x".repeat(LONG + 1), "y".to_owned()], ..CommitOf::default() };
        let long = bounded(vec![SourceChange { commits: vec![long], ..SourceChange::default() }]);
        assert_eq!((&*long[0].commits[0].paths[0], long[0].commits[0].more_paths), ("y", 1));
    }

    #[test]
    fn differences_of_files_have_their_bounds_and_the_newest_stay() {
        let file = |bytes: usize| FileDiff {
            path: "a".to_owned(),
            text: "é".repeat(bytes / 2),
            ..FileDiff::default()
        };
        let commit = |files: Vec<FileDiff>| CommitOf { diffs: files, ..CommitOf::default() };
        let source = |commits: Vec<CommitOf>| SourceChange { commits, ..SourceChange::default() };
        let kept = |mut sources: Vec<SourceChange>| {
            let text = diffs(&mut sources);
            assert!(sources.iter().flat_map(|source| &source.commits).all(|commit| commit.diffs.is_empty()));
            text
        };
        assert_eq!(kept(vec![source(vec![commit(Vec::new())])]), "");
        let all: Vec<KeptDiffs> = serde_json::from_str(&kept(vec![
            source(vec![commit(vec![file(2); FILES + 1]), commit(vec![file(DIFF + 2)])]),
            source(vec![commit(Vec::new()), commit(vec![file(DIFF); 4])]),
        ]))
        .unwrap();
        let of = |kept: &KeptDiffs| (kept.source, kept.commit, kept.files.len());
        assert_eq!(all.iter().map(of).collect::<Vec<_>>(), [(0, 0, FILES), (0, 1, 1), (1, 1, 2)]);
        assert_eq!(
            (all[1].files[0].text.len(), all[1].files[0].cut, all[2].files[0].cut),
            (DIFF, true, false)
        );
    }
}
