//! A bare clone in the cache: opened, made anew when it cannot be used, and told what was fetched.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use git2::{ErrorCode, Oid, Reference, Repository, Sort};

use super::advertised::Ref;
use super::clone_dir::CloneDir;
use super::packs::{packs, put_together};
use super::{FetchError, RepositoryUrl};

/// Commits that a server is told we have.
const HAVES: usize = 256;
/// Tags that are kept of one repository, to name commits by.
const MOST_TAGS: usize = 10_000;
/// Commits that were fetched by their id and are remembered as tips.
const SLOTS: u8 = 64;
/// Packs of one clone. Each fetch adds one: beyond, they are put together as soon as nobody reads it, and where they cannot be, the
/// clone is made anew.
const MOST_PACKS: usize = 128;
/// A file that says that a clone lacks something.
const DAMAGED: &str = "damaged";

/// Opens the clone for a fetch. The parts of one that consists of too many are put together. One that cannot be opened, or lacks
/// something, is made anew: all it holds can be fetched again.
pub(super) fn prepare(clone: &CloneDir, url: &RepositoryUrl) -> Result<Repository, FetchError> {
    let directory = clone.path();
    let failed = |error: std::io::Error| FetchError::cache(directory, error);
    if let Ok(repository) = Repository::open_bare(directory)
        && repository.odb().is_ok()
    {
        let damaged = is_damaged(directory);
        if !damaged && packs(directory).len() <= MOST_PACKS {
            return Ok(repository);
        }
        if !damaged && clone.while_unread(|| {}) && put_together(clone, &repository) {
            return open(directory);
        }
        match clone.take_away().map_err(failed)? {
            true => {}
            false if damaged => {
                let why =
                    "its clone lacks objects, and is made anew when nobody reads it any more".to_owned();
                return Err(FetchError::Damaged { url: url.to_string(), why });
            }
            // Whoever reads it goes before what it costs.
            false => return Ok(repository),
        }
    }
    // What does not open is read by nobody.
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let cannot = |error: git2::Error| FetchError::cache(directory, error.message());
    let mut options = git2::RepositoryInitOptions::new();
    // No hooks or descriptions: a template of this machine is nothing to us.
    options.bare(true).external_template(false);
    let repository = Repository::init_opts(directory, &options).map_err(cannot)?;
    repository.remote("origin", url.as_str()).map_err(cannot)?;
    Ok(repository)
}

/// Opens the clone as it is.
pub(super) fn open(directory: &Path) -> Result<Repository, FetchError> {
    Repository::open_bare(directory).map_err(|error| FetchError::cache(directory, error.message()))
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

/// The commit that an id means, if it and its files are there: the object of an annotated tag means the one that the tag names.
pub(super) fn commit_of(repository: &Repository, id: Oid) -> Option<Oid> {
    let commit = repository.find_object(id, None).and_then(|object| object.peel_to_commit()).ok()?;
    commit.tree().ok().map(|_| commit.id())
}

/// The whole id of a commit, or of a tag's object.
pub(super) fn whole(revision: &str) -> Option<Oid> {
    (revision.len() == 40).then(|| Oid::from_str(revision).ok()).flatten()
}

/// Whether the commit that an id means is there, with its files.
pub(super) fn has(repository: &Repository, id: Oid) -> bool {
    commit_of(repository, id).is_some()
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

/// Takes away a clone that lacks something: what is there of it would keep the rest from being sent. While somebody reads
/// what is whole of it, it is used for nothing else.
pub(super) fn condemn(clone: &CloneDir) {
    if !clone.take_away().unwrap_or_default() {
        let _ = fs::File::create(clone.path().join(DAMAGED));
    }
}

/// Whether a clone lacks something.
pub(super) fn is_damaged(directory: &Path) -> bool {
    directory.join(DAMAGED).exists()
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

/// Names what was fetched: the branch or tag that was asked for, and all tags whose commits are there. Tags of which `refs` say something
/// else are none any more.
pub(super) fn name(
    repository: &Repository,
    url: &RepositoryUrl,
    wanted: &[(String, Oid)],
    refs: &[Ref],
) -> Result<(), FetchError> {
    for (name, id) in wanted {
        if !has(repository, *id) {
            return Err(FetchError::NotSent { url: url.to_string(), commit: *id });
        }
        set(repository, name, *id).map_err(|error| FetchError::cache(repository.path(), error.message()))?;
    }
    remove_former_tags(repository, refs);
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

/// Removes the tags that the server has no more, or elsewhere.
fn remove_former_tags(repository: &Repository, refs: &[Ref]) {
    let now: HashMap<&str, &Ref> = refs.iter().map(|of| (of.name.as_str(), of)).collect();
    let stands = |tag: &Reference<'_>| {
        let of = tag.name().ok().and_then(|name| now.get(name));
        of.zip(tag.target()).is_some_and(|(of, id)| id == of.target || id == of.commit())
    };
    let known = repository.references_glob("refs/tags/*").into_iter().flatten().flatten();
    let former: Vec<Reference<'_>> = known.filter(|tag| !stands(tag)).collect();
    for mut tag in former {
        // One that cannot be removed is tried again with the next fetch.
        let _ = tag.delete();
    }
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

#[cfg(test)]
mod tests {
    use super::super::RepositoryUrl;
    use super::super::clone_dir::CloneDir;
    use super::{condemn, is_damaged, prepare};

    #[test]
    fn a_clone_that_lacks_something_is_made_anew_when_nobody_reads_it_any_more() {
        let folder = tempfile::tempdir().unwrap();
        let url = RepositoryUrl::read("https://git.example/a.git").unwrap();
        let clone = CloneDir::new(folder.path().join("a.git"));
        prepare(&clone, &url).unwrap();
        let reading = clone.read();
        condemn(&clone);
        assert_eq!(
            prepare(&clone, &url).err().unwrap().to_string(),
            "what https://git.example/a.git sent is damaged: its clone lacks objects, and is made anew when nobody \
             reads it any more"
        );
        drop(reading);
        prepare(&clone, &url).unwrap();
        assert!(!is_damaged(clone.path()));
        condemn(&clone);
        assert!(!clone.path().exists());
    }
}
