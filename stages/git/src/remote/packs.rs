//! The packs of a clone: each fetch adds one, and most are small. Many small ones become one, which asks no server for anything.

use std::fs;
use std::path::{Path, PathBuf};

use git2::{Oid, Repository};

use super::clone_dir::CloneDir;

/// So many of the largest stay as they are.
const STAY: usize = 16;
/// Of so many at least one is made: fewer are not worth it.
const LEAST: usize = 64;
/// Bytes of those of which one is made.
const MOST_BYTES: u64 = 256 * 1024 * 1024;
/// What it may take of memory, in bytes: of differences between objects, none of which is looked for in a larger one, and of the
/// objects that are compared.
const MEMORY: [(&str, i64); 2] =
    [("pack.deltaCacheSize", 16 * 1024 * 1024), ("pack.windowMemory", 64 * 1024 * 1024)];
/// How a file begins that says which objects a pack holds and where.
const INDEX: &[u8] = b"\xfftOc\0\0\0\x02";
/// Bytes of an object's id.
const ID: usize = 20;

/// The packs in the directory of a clone, and how large each is.
pub(super) fn packs(directory: &Path) -> Vec<(u64, PathBuf)> {
    let all = fs::read_dir(directory.join("objects/pack")).into_iter().flatten().flatten();
    let packs = all.filter(|entry| entry.path().extension().is_some_and(|end| end == "pack"));
    packs.map(|entry| (entry.metadata().map_or(0, |of| of.len()), entry.path())).collect()
}

/// Makes one pack of many small ones, which are removed unless somebody reads the clone by then: they are tried again later. `false`:
/// they cannot be put together, or are too few.
pub(super) fn put_together(clone: &CloneDir, repository: &Repository) -> bool {
    let mut all = packs(clone.path());
    all.sort_unstable();
    all.truncate(all.len().saturating_sub(STAY));
    let mut bytes: u64 = 0;
    let small = all.into_iter().take_while(|(size, _)| {
        bytes = bytes.saturating_add(*size);
        bytes <= MOST_BYTES
    });
    let small: Vec<PathBuf> = small.map(|(_, path)| path).collect();
    if small.len() < LEAST {
        return false;
    }
    let Some(made) = one_of(repository, &small) else { return false };
    clone.while_unread(|| {
        for path in small.iter().filter(|path| path.file_name().is_none_or(|name| name != made.as_str())) {
            // What is left of one is removed at the next start.
            let _ = fs::remove_file(path.with_extension("idx"));
            let _ = fs::remove_file(path);
        }
    });
    true
}

/// Makes one pack of others; gives its name.
fn one_of(repository: &Repository, packs: &[PathBuf]) -> Option<String> {
    let mut config = repository.config().ok()?;
    for (name, bytes) in MEMORY {
        config.set_i64(name, bytes).ok()?;
    }
    let mut made = repository.packbuilder().ok()?;
    for pack in packs {
        for id in objects(&pack.with_extension("idx"))? {
            made.insert_object(id, None).ok()?;
        }
    }
    made.write(&repository.path().join("objects/pack"), 0o644).ok()?;
    let name = made.name().ok().flatten()?;
    Some(format!("pack-{name}.pack"))
}

/// The objects of a pack, as its index has them.
fn objects(index: &Path) -> Option<Vec<Oid>> {
    let bytes = fs::read(index).ok()?;
    // How many there are up to each first byte of an id, then the ids.
    let (counts, rest) = bytes.strip_prefix(INDEX)?.split_at_checked(256 * 4)?;
    let count = usize::try_from(u32::from_be_bytes(*counts.last_chunk()?)).ok()?;
    let (ids, _) = rest.split_at_checked(count.checked_mul(ID)?)?;
    ids.chunks_exact(ID).map(|id| Oid::from_bytes(id).ok()).collect()
}
