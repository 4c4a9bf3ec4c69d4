//! A bare clone in the cache: opened, made anew when it cannot be used, and told what was fetched.

use std::fs;
use std::path::Path;

use git2::{ErrorCode, Oid, Repository, Sort};

use super::advertised::Ref;
use super::{FetchError, RepositoryUrl};

/// Commits that a server is told we have.
const HAVES: usize = 256;
/// Tags that are kept of one repository, to name commits by.
const MOST_TAGS: usize = 10_000;
/// Commits that were fetched by their id and are remembered as tips.
const SLOTS: u8 = 64;
/// Packs of one clone. Each fetch adds one, and nothing puts them together: beyond, the clone is made anew.
const MOST_PACKS: usize = 128;

/// Opens the clone of a directory. One that cannot be opened, or that consists of too many parts, is made anew: all it holds
/// can be fetched again.
pub(super) fn prepare(directory: &Path, url: &RepositoryUrl) -> Result<Repository, FetchError> {
    let cannot = |error: &git2::Error| FetchError::Cache {
        directory: directory.display().to_string(),
        why: error.message().to_owned(),
    };
    if let Ok(repository) = Repository::open_bare(directory)
        && packs(directory) <= MOST_PACKS
        && repository.odb().is_ok()
    {
        return Ok(repository);
    }
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(FetchError::cache(directory, &error));
        }
        _ => {}
    }
    let mut options = git2::RepositoryInitOptions::new();
    // No hooks or descriptions: a template of this machine is nothing to us.
    options.bare(true).external_template(false);
    let repository = Repository::init_opts(directory, &options).map_err(|error| cannot(&error))?;
    repository.remote("origin", url.as_str()).map_err(|error| cannot(&error))?;
    Ok(repository)
}

/// Removes what a process that was killed in the middle of a fetch left behind.
pub(super) fn sweep(directory: &Path) {
    let objects = directory.join("objects/pack");
    for entry in fs::read_dir(&objects).into_iter().flatten().flatten() {
        let path = entry.path();
        // A pack is nothing without its index, and the other way round.
        let other = match path.extension().and_then(|end| end.to_str()) {
            Some("pack") => Some(path.with_extension("idx")),
            Some("idx") => Some(path.with_extension("pack")),
            _ => None,
        };
        let named = entry.file_name().to_string_lossy().starts_with("pack-");
        if !named || other.is_none_or(|other| !other.exists()) {
            let _ = fs::remove_file(&path);
        }
    }
    remove_locks(directory, 0);
}

fn remove_locks(directory: &Path, depth: usize) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        let path = entry.path();
        if kind.is_dir() && depth < 32 && entry.file_name() != "objects" {
            remove_locks(&path, depth + 1);
        } else if path.extension().is_some_and(|end| end == "lock") {
            let _ = fs::remove_file(&path);
        }
    }
}

fn packs(directory: &Path) -> usize {
    let all = fs::read_dir(directory.join("objects/pack")).into_iter().flatten().flatten();
    all.filter(|entry| entry.path().extension().is_some_and(|end| end == "pack")).count()
}

/// Whether a commit and its files are there.
pub(super) fn has(repository: &Repository, commit: Oid) -> bool {
    repository.find_commit(commit).and_then(|commit| commit.tree()).is_ok()
}

/// Whether commits are there with all that they follow, and the root directory of each: what was there before is passed over.
pub(super) fn is_whole(repository: &Repository, new: &[Oid], before: &[Oid]) -> bool {
    let whole = || {
        let (mut walk, odb) = (repository.revwalk()?, repository.odb()?);
        for id in new {
            walk.push(*id)?;
        }
        for id in before {
            walk.hide(*id)?;
        }
        for id in walk {
            let tree = repository.find_commit(id?)?.tree_id();
            if !odb.exists(tree) {
                return Ok(false);
            }
        }
        Ok::<_, git2::Error>(true)
    };
    whole().unwrap_or_default()
}

/// Removes a clone that lacks something: what is there of it would keep the rest from being sent.
pub(super) fn remove(directory: &Path) {
    let _ = fs::remove_dir_all(directory);
}

/// The commit that an abbreviated id means.
pub(super) fn abbreviated(repository: &Repository, id: &str) -> Option<Oid> {
    let oid = git2::Oid::from_str(id).ok()?;
    let whole = repository.odb().ok()?.exists_prefix(oid, id.len()).ok()?;
    repository.find_commit(whole).ok().map(|commit| commit.id())
}

/// The newest commits that are there, which a server need not send again.
pub(super) fn haves(repository: &Repository) -> Vec<Oid> {
    let Ok(mut walk) = repository.revwalk() else { return Vec::new() };
    let names = ["refs/remotes/*", "refs/revisions/*"];
    for reference in names.iter().filter_map(|glob| repository.references_glob(glob).ok()).flatten().flatten()
    {
        if let Some(id) = reference.target().filter(|id| has(repository, *id)) {
            let _ = walk.push(id);
        }
    }
    let _ = walk.set_sorting(Sort::TIME);
    walk.map_while(Result::ok).take(HAVES).collect()
}

/// Names what was fetched: the branch or tag that was asked for, and all tags whose commits are there.
pub(super) fn name(
    repository: &Repository,
    url: &RepositoryUrl,
    wanted: &[(String, Oid)],
    refs: &[Ref],
) -> Result<(), FetchError> {
    let cannot = |error: &git2::Error| FetchError::Cache {
        directory: repository.path().display().to_string(),
        why: error.message().to_owned(),
    };
    for (name, id) in wanted {
        if !has(repository, *id) {
            return Err(FetchError::NotSent { url: url.to_string(), commit: *id });
        }
        set(repository, name, *id).map_err(|error| cannot(&error))?;
    }
    let tags = refs.iter().filter(|of| of.name.starts_with("refs/tags/")).take(MOST_TAGS);
    for tag in tags {
        let known = repository.find_reference(&tag.name).ok().and_then(|of| of.target());
        // A tag's object comes with its commit; where it did not, the commit stands for it.
        let target =
            if repository.odb().is_ok_and(|odb| odb.exists(tag.target)) { tag.target } else { tag.commit() };
        if known != Some(target) && has(repository, tag.commit()) {
            // Two names of which one is the directory of the other cannot stand beside each other.
            let _ = set(repository, &tag.name, target);
        }
    }
    Ok(())
}

fn set(repository: &Repository, name: &str, id: Oid) -> Result<(), git2::Error> {
    match repository.reference(name, id, true, "fetched") {
        Ok(_) => Ok(()),
        // A branch `a` was deleted and `a/b` made, or the other way round.
        Err(error) if !matches!(error.code(), ErrorCode::InvalidSpec) => {
            for reference in repository.references()?.flatten() {
                let Ok(other) = reference.name() else { continue };
                if other.starts_with(&format!("{name}/")) || name.starts_with(&format!("{other}/")) {
                    let other = other.to_owned();
                    repository.find_reference(&other)?.delete()?;
                }
            }
            repository.reference(name, id, true, "fetched").map(|_| ())
        }
        Err(error) => Err(error),
    }
}

/// What a branch, tag or commit of the server is called in the clone.
pub(super) fn kept_as(of: &str, commit: Oid) -> String {
    match of.strip_prefix("refs/heads/") {
        Some(branch) => format!("refs/remotes/origin/{branch}"),
        None if of == "HEAD" => "refs/remotes/origin/HEAD".to_owned(),
        None if of.starts_with("refs/tags/") => of.to_owned(),
        None => {
            let slot = commit.as_bytes().first().copied().unwrap_or_default() % SLOTS;
            format!("refs/revisions/{slot}")
        }
    }
}

/// Bytes of the files below a directory.
pub(super) fn size(directory: &Path, depth: usize) -> u64 {
    let mut sum = 0;
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let Ok(metadata) = entry.path().symlink_metadata() else { continue };
        sum += metadata.len();
        if metadata.is_dir() && depth < 32 {
            sum += size(&entry.path(), depth + 1);
        }
    }
    sum
}
