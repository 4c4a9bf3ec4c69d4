//! Which clusters are up: a file each in a folder of the user's.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use super::processes::Process;

/// A cluster that is up, or was left behind by one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// Its folder, by its full path.
    pub(super) directory: PathBuf,
    /// The process that holds it.
    pub(super) process: Process,
    /// Whether the folder goes with it.
    pub(super) is_temporary: bool,
    /// The programs that ran when it was ready; none before.
    pub(super) programs: Vec<String>,
}

/// The folder of all entries.
#[derive(Debug, Clone)]
pub(super) struct Registry {
    folder: PathBuf,
}

impl Registry {
    /// That of the user.
    pub(super) fn of_user() -> anyhow::Result<Self> {
        let of = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let own = of("LOADTEST_CACHE");
        let shared = || of("XDG_RUNTIME_DIR").or_else(|| of("XDG_CACHE_HOME"));
        let home = || of("HOME").map(|home| home.join(".cache"));
        let folder = own.or_else(|| shared().or_else(home).map(|folder| folder.join("gitops-runtime")));
        let folder = folder.context("neither HOME nor XDG_CACHE_HOME says where clusters are noted")?;
        Ok(Self::at(folder.join("clusters")))
    }

    /// One in `folder`, which need not be there yet.
    pub(super) fn at(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Notes a cluster, in place of what was noted for its folder.
    pub(super) fn put(&self, entry: &Entry) -> anyhow::Result<()> {
        let act = || format!("note the cluster in {}", self.folder.display());
        fs::create_dir_all(&self.folder).with_context(act)?;
        let text = serde_json::to_string(entry).with_context(act)?;
        write(&self.file(entry), &text)
    }

    /// Forgets a cluster.
    pub(super) fn remove(&self, entry: &Entry) -> anyhow::Result<()> {
        match fs::remove_file(self.file(entry)) {
            Err(why) if why.kind() != std::io::ErrorKind::NotFound => {
                Err(why).with_context(|| format!("forget the cluster in {}", self.folder.display()))
            }
            _ => Ok(()),
        }
    }

    /// All clusters, by their folders.
    pub(super) fn all(&self) -> anyhow::Result<Vec<Entry>> {
        let act = || format!("read which clusters are up in {}", self.folder.display());
        let files = match fs::read_dir(&self.folder) {
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            files => files.with_context(act)?,
        };
        let mut entries = Vec::new();
        for file in files {
            let path = file.with_context(act)?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                let text = fs::read_to_string(&path).with_context(act)?;
                entries.push(
                    serde_json::from_str::<Entry>(&text)
                        .with_context(|| format!("read {}", path.display()))?,
                );
            }
        }
        entries.sort_by(|one, other| one.directory.cmp(&other.directory));
        Ok(entries)
    }

    fn file(&self, entry: &Entry) -> PathBuf {
        let name = pipeline_core::Digest::of(entry.directory.as_os_str().as_encoded_bytes());
        self.folder.join(format!("{:016x}.json", name.0))
    }
}

/// Writes a file that its owner alone can read, at once: whoever finds it finds all of it.
pub(super) fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let act = || format!("write {}", path.display());
    let draft = path.with_extension("draft");
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&draft)
        .with_context(act)?;
    file.write_all(text.as_bytes()).with_context(act)?;
    fs::rename(&draft, path).with_context(act)
}
