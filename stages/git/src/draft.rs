//! A commit that is to be: made on a branch as it is now, in memory alone, with the pack of what it adds.
//!
//! takes: files as somebody wants them, and the commit that they looked at - gives: a [`Draft`] - calls: nothing
//! fails: with a [`DraftError`]; what others changed since is merged, and what cannot be is a conflict and named

use std::collections::BTreeMap;

use git2::build::TreeUpdateBuilder;
use git2::{
    Buf, Commit, ErrorCode, FileMode, MergeFileInput, ObjectType, Oid, Repository, Signature, Time, Tree,
    merge_file,
};

use crate::GitRepository;
use crate::error::GitError;
use crate::snapshot::shown;
use crate::trees::LINK;

/// Bytes of a path.
const LONGEST: usize = 1_024;
/// Files of one commit.
pub const MOST_FILES: usize = 1_000;
/// The backend in memory goes before what is on the disk.
const BEFORE_ALL: i32 = 1_000;

/// What becomes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// It is written.
    Written(Vec<u8>),
    /// It is deleted.
    Deleted,
}

/// A file of a commit that is to be.
#[derive(Debug, Clone)]
pub struct NewFile {
    /// From the root of the repository.
    pub path: String,
    /// What becomes of it.
    pub content: Content,
    /// The branch, tag or commit that whoever changes it looked at; `None`: the branch as it is when they ask.
    pub revision: Option<String>,
}

/// A commit that is to be.
#[derive(Debug, Clone)]
pub struct NewCommit {
    /// The branch: one that is there, unless it is to begin at `base`, or is the first one of the repository.
    pub branch: String,
    /// The branch, tag or commit that a new branch begins at.
    pub base: Option<String>,
    /// What it changes.
    pub files: Vec<NewFile>,
    /// What it says.
    pub message: String,
    /// Whose it is.
    pub name: String,
    /// Where they are reached.
    pub email: String,
    /// When, in seconds since 1970.
    pub seconds: i64,
    /// What others changed meanwhile is written over.
    pub force: bool,
    /// It is made although it changes nothing.
    pub allow_empty: bool,
}

/// Why no commit can be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DraftError {
    /// A path is none.
    #[error("{path} cannot be written: {why}")]
    Path {
        /// Which.
        path: String,
        /// Why not.
        why: &'static str,
    },
    /// No branch can be called so.
    #[error("{branch} cannot be the name of a branch")]
    Branch {
        /// What.
        branch: String,
    },
    /// No files, or too many.
    #[error("a commit changes between one and {MOST_FILES} files")]
    Files,
    /// A file that is to be deleted is not there.
    #[error("{path} is not there to be deleted")]
    Missing {
        /// Which.
        path: String,
    },
    /// What others changed does not go together with it.
    #[error("others have changed {paths} meanwhile, and both changes do not go together: read it again")]
    Conflict {
        /// Which files.
        paths: String,
    },
    /// All files are so already.
    #[error("the files are so already: there is nothing to commit")]
    Nothing,
    /// Something of the repository could not be had.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// A commit that no repository holds yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Draft {
    /// Its id.
    pub(crate) id: Oid,
    /// What it adds to what it was made on.
    pub(crate) pack: Vec<u8>,
}

/// A file as it stands in a commit.
#[derive(Clone, PartialEq, Eq)]
struct Found {
    id: Oid,
    mode: FileMode,
}

/// Judges what can be judged without a repository.
pub(crate) fn check(new: &NewCommit) -> Result<(), DraftError> {
    if new.branch.len() > LONGEST || !git2::Branch::name_is_valid(&new.branch).unwrap_or_default() {
        return Err(DraftError::Branch { branch: shown(&new.branch) });
    }
    if !(1..=MOST_FILES).contains(&new.files.len()) {
        return Err(DraftError::Files);
    }
    let mut seen: Vec<&str> = new.files.iter().map(|file| file.path.as_str()).collect();
    seen.sort_unstable();
    if let Some(twice) = seen.windows(2).find(|two| two.first() == two.last()).and_then(|two| two.first()) {
        return Err(DraftError::Path { path: shown(twice), why: "it is named twice" });
    }
    new.files.iter().try_for_each(|file| check_path(&file.path))
}

fn check_path(path: &str) -> Result<(), DraftError> {
    let refused = |why| Err(DraftError::Path { path: shown(path), why });
    if path.is_empty() || path.len() > LONGEST {
        return refused("a path has between one and 1,024 bytes");
    }
    if path.contains(|c: char| c.is_control() || c == '\\') {
        return refused("it holds a backslash or a control character");
    }
    for part in path.split('/') {
        match part {
            "" | "." | ".." => return refused("it is not relative to the root of the repository"),
            // Names that a file system may take for `.git`.
            _ if part.trim_end_matches(['.', ' ']).eq_ignore_ascii_case(".git") => {
                return refused("it is a part of Git's own");
            }
            _ if part.to_ascii_lowercase().starts_with("git~") => {
                return refused("it is a part of Git's own");
            }
            _ => {}
        }
    }
    Ok(())
}

impl GitRepository {
    /// Makes a commit on `tip`, or the first one of all. `bases` are the commits that the files' revisions name; `base` is that
    /// of all others.
    ///
    /// # Errors
    /// [`DraftError`].
    pub(crate) fn draft(
        &self,
        tip: Option<Oid>,
        new: &NewCommit,
        base: Option<Oid>,
        bases: &BTreeMap<String, Oid>,
    ) -> Result<Draft, DraftError> {
        let repository = self.repository();
        let failed = |what: &'static str| move |source| GitError::Read { what: what.to_owned(), source };
        let odb = repository.odb().map_err(failed("the objects"))?;
        // Nothing is written to the disk: a process that is killed leaves no half of a commit.
        let _memory = odb.add_new_mempack_backend(BEFORE_ALL).map_err(failed("the memory"))?;
        let parent = tip.map(|tip| repository.find_commit(tip)).transpose();
        let parent = parent.map_err(failed("the branch's commit"))?;
        let before = tree_of(repository, parent.as_ref()).map_err(failed("the branch's files"))?;
        let (mut update, mut conflicts) = (TreeUpdateBuilder::new(), Vec::new());
        for file in &new.files {
            let seen = file.revision.as_ref().and_then(|revision| bases.get(revision)).copied();
            let seen = if new.force { tip } else { seen.or(base) };
            let then = match seen == tip {
                true => find(repository, &before, &file.path)?,
                false => {
                    let commit = seen.map(|seen| repository.find_commit(seen)).transpose();
                    let tree = commit.and_then(|commit| tree_of(repository, commit.as_ref()));
                    find(repository, &tree.map_err(failed("the files that were looked at"))?, &file.path)?
                }
            };
            let now = find(repository, &before, &file.path)?;
            match merged(repository, &file.path, &file.content, (then, now.clone()))? {
                None => conflicts.push(shown(&file.path)),
                Some(Content::Deleted) => {
                    if now.is_some() {
                        update.remove(file.path.as_str());
                    }
                }
                Some(Content::Written(data)) => {
                    let id = repository.blob(&data).map_err(failed("a file"))?;
                    let mode = now.map_or(FileMode::Blob, |now| now.mode);
                    update.upsert(file.path.as_str(), id, mode);
                }
            }
        }
        if !conflicts.is_empty() {
            return Err(DraftError::Conflict { paths: conflicts.join(", ") });
        }
        let tree = update.create_updated(repository, &before).map_err(failed("the directories"))?;
        if tree == before.id() && !new.allow_empty {
            return Err(DraftError::Nothing);
        }
        let tree = repository.find_tree(tree).map_err(failed("the directories"))?;
        let when = Time::new(new.seconds, 0);
        let who = Signature::new(&name(&new.name), &name(&new.email), &when).map_err(failed("the author"))?;
        let id = repository
            .commit(None, &who, &who, &new.message, &tree, &parent.iter().collect::<Vec<_>>())
            .map_err(failed("the commit"))?;
        let mut added = vec![id];
        add_new(repository, &tree, Some(&before), &mut added)?;
        let pack = pack(repository, &added).map_err(failed("the pack"))?;
        Ok(Draft { id, pack })
    }

    /// Whether a commit is another, or one that follows it.
    pub(crate) fn follows(&self, commit: Oid, other: Oid) -> bool {
        commit == other || self.repository().graph_descendant_of(commit, other).unwrap_or_default()
    }
}

/// The files of a commit; none: of no commit.
fn tree_of<'a>(repository: &'a Repository, commit: Option<&Commit<'a>>) -> Result<Tree<'a>, git2::Error> {
    match commit {
        Some(commit) => commit.tree(),
        None => repository.find_tree(repository.treebuilder(None)?.write()?),
    }
}

/// A name as a commit can hold it.
fn name(of: &str) -> String {
    let clean: String = of.chars().filter(|c| !c.is_control() && !matches!(c, '<' | '>')).take(200).collect();
    match clean.trim() {
        "" => "unknown".to_owned(),
        clean => clean.to_owned(),
    }
}

/// A file of a tree that may be written.
fn find(repository: &Repository, tree: &Tree<'_>, path: &str) -> Result<Option<Found>, DraftError> {
    let refused = |why| Err(DraftError::Path { path: shown(path), why });
    let parts: Vec<&str> = path.split('/').collect();
    let mut at = tree.clone();
    for (number, part) in parts.iter().enumerate() {
        let Some(entry) = at.get_name(part).map(|entry| entry.to_owned()) else { return Ok(None) };
        let is_last = number + 1 == parts.len();
        match entry.kind() {
            Some(ObjectType::Tree) if is_last => return refused("it is a directory"),
            Some(ObjectType::Tree) => {
                at = repository
                    .find_tree(entry.id())
                    .map_err(|source| GitError::Read { what: shown(path), source })?;
            }
            Some(ObjectType::Blob) if entry.filemode_raw() == LINK => {
                return refused("it is a symbolic link, or behind one");
            }
            Some(ObjectType::Blob) if is_last => {
                let mode = match entry.filemode() & 0o100 {
                    0 => FileMode::Blob,
                    _ => FileMode::BlobExecutable,
                };
                return Ok(Some(Found { id: entry.id(), mode }));
            }
            Some(ObjectType::Blob) => return refused("a file stands where it wants a directory"),
            _ => return refused("it is in a submodule, which is another repository"),
        }
    }
    Ok(None)
}

/// What becomes of a file that somebody wants so, who looked at it as it was `then`; `None`: it does not go together with what
/// it is `now`.
fn merged(
    repository: &Repository,
    path: &str,
    wanted: &Content,
    (then, now): (Option<Found>, Option<Found>),
) -> Result<Option<Content>, DraftError> {
    let is_same = then.as_ref().map(|of| of.id) == now.as_ref().map(|of| of.id);
    let data = match wanted {
        Content::Deleted if then.is_none() => return Err(DraftError::Missing { path: shown(path) }),
        Content::Deleted if is_same || now.is_none() => return Ok(Some(Content::Deleted)),
        Content::Deleted => return Ok(None),
        Content::Written(data) if is_same => return Ok(Some(Content::Written(data.clone()))),
        Content::Written(data) => data,
    };
    let Some(now) = now else { return Ok(None) };
    let read = |id| {
        let blob = repository.find_blob(id);
        blob.map_err(|source| GitError::Read { what: shown(path), source })
    };
    let ours = read(now.id)?;
    if ours.content() == data {
        return Ok(Some(Content::Written(data.clone())));
    }
    let Some(then) = then else { return Ok(None) };
    let base = read(then.id)?;
    if [base.content(), ours.content(), data].iter().any(|text| text.contains(&0)) {
        return Ok(None);
    }
    let side = |content| {
        let mut side = MergeFileInput::new();
        side.content(content);
        side
    };
    let done = merge_file(&side(base.content()), &side(ours.content()), &side(data), None)
        .map_err(|source| GitError::Read { what: shown(path), source })?;
    Ok(done.is_automergeable().then(|| Content::Written(done.content().to_vec())))
}

/// A pack of some objects.
fn pack(repository: &Repository, objects: &[Oid]) -> Result<Vec<u8>, git2::Error> {
    let mut pack = repository.packbuilder()?;
    pack.set_threads(1);
    for id in objects {
        pack.insert_object(*id, None)?;
    }
    let mut bytes = Buf::new();
    pack.write_buf(&mut bytes)?;
    Ok(bytes.to_vec())
}

/// What a tree has that another has not.
fn add_new(
    repository: &Repository,
    tree: &Tree<'_>,
    before: Option<&Tree<'_>>,
    added: &mut Vec<Oid>,
) -> Result<(), GitError> {
    let failed = |source| GitError::Read { what: "the directories".to_owned(), source };
    if before.is_some_and(|before| before.id() == tree.id()) {
        return Ok(());
    }
    added.push(tree.id());
    for entry in tree {
        let former = before.and_then(|before| before.get_name_bytes(entry.name_bytes()));
        if former.as_ref().is_some_and(|former| former.id() == entry.id()) {
            continue;
        }
        match entry.kind() {
            Some(ObjectType::Blob) => added.push(entry.id()),
            Some(ObjectType::Tree) => {
                let former = match former.filter(|former| former.kind() == Some(ObjectType::Tree)) {
                    Some(former) => match repository.find_tree(former.id()) {
                        Ok(found) => Some(found),
                        Err(error) if error.code() == ErrorCode::NotFound => None,
                        Err(error) => return Err(failed(error)),
                    },
                    None => None,
                };
                let tree = repository.find_tree(entry.id()).map_err(failed)?;
                add_new(repository, &tree, former.as_ref(), added)?;
            }
            _ => {}
        }
    }
    Ok(())
}
