//! Where the ledger and the redaction key are kept.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// What is to be kept, and where it may be.
#[derive(Debug, Clone)]
pub(crate) struct State {
    /// Directories, the best first: the one that was given, or those of the host.
    pub(crate) directories: Vec<PathBuf>,
    /// Whether the ledger is kept in a file at all.
    pub(crate) keep_ledger: bool,
    /// The ledger's file, when one was given.
    pub(crate) ledger: Option<PathBuf>,
    /// The name of the ledger's file in the state directory: replicas may share one.
    pub(crate) ledger_name: String,
    /// The redaction key's file, when one was given; it must exist.
    pub(crate) key_file: Option<PathBuf>,
}

/// The places that were found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Places {
    /// The ledger's file, in a directory that exists; `None`: in memory.
    pub(crate) ledger: Option<PathBuf>,
    /// The file of the redaction key; `None`: a key for as long as the process lives.
    pub(crate) key: Option<PathBuf>,
    /// Whether the key is made when its file does not exist.
    pub(crate) make_key: bool,
}

impl State {
    /// Finds, and makes, the directory of the ledger; blocking, for the start. Fails when none of the
    /// directories can be written to.
    pub(crate) fn open(&self) -> anyhow::Result<Places> {
        let ledger = match &self.ledger {
            _ if !self.keep_ledger => None,
            Some(path) => {
                let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
                let directory = directory.unwrap_or(Path::new("."));
                writable(directory).with_context(|| refused(&[directory.to_owned()]))?;
                Some(path.clone())
            }
            None => {
                let found = self.directories.iter().find(|directory| writable(directory).is_ok());
                let directory = found.with_context(|| refused(&self.directories))?;
                Some(directory.join(&self.ledger_name))
            }
        };
        let beside =
            ledger.as_deref().and_then(Path::parent).map(|directory| directory.join("redaction.key"));
        Ok(Places { make_key: self.key_file.is_none(), key: self.key_file.clone().or(beside), ledger })
    }
}

fn refused(directories: &[PathBuf]) -> String {
    let names: Vec<String> = directories.iter().map(|directory| directory.display().to_string()).collect();
    format!(
        "keep the ledger in {}: set state.directory to a directory that can be written to, or \
         reporter.ledger.storage to memory",
        names.join(" or ")
    )
}

/// Makes the directory, for its owner alone, and tries to write in it.
fn writable(directory: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)?;
    let probe = directory.join(format!(".write-probe-{}", std::process::id()));
    let made = std::fs::File::create(&probe).and_then(|file| file.metadata())?;
    std::fs::remove_file(&probe)?;
    match directory.starts_with(std::env::temp_dir()) && !is_owned_alike(&made, &directory.metadata()?) {
        true => Err(std::io::Error::other("it belongs to someone else")),
        false => Ok(()),
    }
}

/// Whether two files have one owner: in the temporary directory anybody may have made ours, and put a key of
/// their own there.
#[cfg(unix)]
fn is_owned_alike(left: &std::fs::Metadata, right: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    left.uid() == right.uid()
}

#[cfg(not(unix))]
fn is_owned_alike(_: &std::fs::Metadata, _: &std::fs::Metadata) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(directories: Vec<PathBuf>) -> State {
        let ledger_name = "reporter-ledger.redb".to_owned();
        State { directories, keep_ledger: true, ledger: None, ledger_name, key_file: None }
    }

    #[test]
    fn the_first_directory_that_can_be_written_to_is_taken() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        std::fs::write(&file, "").unwrap();
        let good = root.path().join("a/b");
        let places = state(vec![file.clone(), good.clone()]).open().unwrap();
        assert_eq!(places.ledger, Some(good.join("reporter-ledger.redb")));
        assert_eq!(places.key, Some(good.join("redaction.key")));
        assert!(places.make_key);
        assert_eq!(std::fs::read_dir(&good).unwrap().count(), 0);
        let text = format!("{}", state(vec![file.clone()]).open().unwrap_err());
        let expected = format!(
            "keep the ledger in {}: set state.directory to a directory that can be written to, or \
             reporter.ledger.storage to memory",
            file.display()
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn files_that_are_given_are_taken_and_memory_keeps_nothing() {
        let root = tempfile::tempdir().unwrap();
        let ledger = root.path().join("l.redb");
        let mut given = state(Vec::new());
        given.ledger = Some(ledger.clone());
        assert_eq!(given.open().unwrap().ledger, Some(ledger));
        given.keep_ledger = false;
        assert_eq!(given.open().unwrap(), Places { ledger: None, key: None, make_key: true });
        given.key_file = Some("/keys/redaction".into());
        let key = Some("/keys/redaction".into());
        assert_eq!(given.open().unwrap(), Places { ledger: None, key, make_key: false });
    }
}
