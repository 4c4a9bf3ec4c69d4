//! Where the ledger, the redaction key and the admin socket are.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::Config;
use super::host::Host;
use super::reporter::Storage;
use super::units::SocketPlace;

/// What is to be kept, and where it may be.
#[derive(Debug, Default, Clone)]
pub(crate) struct State {
    /// Directories, the best first: the one that was given, or those of the host.
    pub(crate) directories: Vec<PathBuf>,
    /// Whether the ledger is kept in a file at all.
    pub(crate) keep_ledger: bool,
    /// Whether ledgers of further routes are kept in files beside it.
    pub(crate) keep_routes: bool,
    /// The ledger's file, when one was given.
    pub(crate) ledger: Option<PathBuf>,
    /// The name of the ledger's file in the state directory: replicas may share one.
    pub(crate) ledger_name: String,
    /// Where the admin socket is.
    pub(crate) socket: SocketPlace,
    /// The name of its file where the process chooses the directory.
    pub(crate) socket_name: String,
    /// The redaction key's file, when one was given; it must exist.
    pub(crate) key_file: Option<PathBuf>,
}

/// The places that were found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Places {
    /// The ledger's file, in a directory that exists; `None`: in memory.
    pub(crate) ledger: Option<PathBuf>,
    /// The admin socket; `None`: none is wanted, or there is no directory for it.
    pub(crate) socket: Option<PathBuf>,
    /// The file of the redaction key; `None`: a key for as long as the process lives.
    pub(crate) key: Option<PathBuf>,
    /// Whether the key is made when its file does not exist.
    pub(crate) make_key: bool,
}

impl State {
    pub(super) fn of(config: &Config, host: &Host) -> Self {
        let sharding = &config.reporter.sharding;
        let of_shard = |name: &str| match sharding.shard() {
            Some(shard) => format!("{name}-{shard}-of-{}", sharding.shards()),
            None => name.to_owned(),
        };
        let given = config.directory.directory.clone();
        Self {
            directories: given.map_or_else(|| host.state.clone(), |given| vec![given]),
            keep_ledger: config.reporter.ledger.storage == Storage::File,
            keep_routes: false,
            ledger: config.reporter.ledger.path.clone(),
            ledger_name: of_shard("reporter-ledger") + ".redb",
            socket: config.admin.socket.clone(),
            socket_name: of_shard("admin") + ".sock",
            key_file: config.redaction.key_file.clone(),
        }
    }

    /// That of the resource reporter, which may run beside the other one with the same settings.
    pub(crate) fn of_resources(self) -> Self {
        let (ledger_name, socket_name) =
            (format!("resource-{}", self.ledger_name), format!("resource-{}", self.socket_name));
        Self { ledger_name, socket_name, ..self }
    }

    /// The same where further routes have ledgers in files, if they are `kept`.
    pub(crate) fn with_routes(self, kept: bool) -> Self {
        Self { keep_routes: kept, ..self }
    }

    /// That of the role `change-revision`, which may run beside them; `name` is what its ledger is called.
    pub(super) fn of_changes(self, name: &str) -> Self {
        let ledger_name = format!("{name}-{}", self.ledger_name);
        Self { ledger_name, socket_name: format!("changes-{}", self.socket_name), ..self }
    }

    /// Finds, and makes, the directory of the ledger; blocking, for the start. Fails when none of the
    /// directories can be written to.
    pub(crate) fn open(&self) -> anyhow::Result<Places> {
        let place = if self.keep_ledger || self.keep_routes { Some(self.ledger_place()?) } else { None };
        let beside = place.as_deref().and_then(Path::parent).map(|directory| directory.join("redaction.key"));
        let ledger = place.filter(|_| self.keep_ledger);
        let socket = match (&self.socket, ledger.as_deref().and_then(Path::parent)) {
            (SocketPlace::None, _) => None,
            (SocketPlace::Path(path), _) => Some(path.clone()),
            (SocketPlace::Auto, Some(directory)) => Some(directory.join(&self.socket_name)),
            (SocketPlace::Auto, None) => {
                self.writable_directory().map(|directory| directory.join(&self.socket_name))
            }
        };
        let key = self.key_file.clone().or(beside);
        Ok(Places { make_key: self.key_file.is_none(), key, ledger, socket })
    }

    /// Where the ledger is or would be, in a directory that is made where there is none.
    fn ledger_place(&self) -> anyhow::Result<PathBuf> {
        match &self.ledger {
            Some(path) => {
                let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
                let directory = directory.unwrap_or(Path::new("."));
                writable(directory).with_context(|| refused(&[directory.to_owned()]))?;
                Ok(path.clone())
            }
            None => {
                let directory = self.writable_directory().with_context(|| refused(&self.directories))?;
                Ok(directory.join(&self.ledger_name))
            }
        }
    }

    /// The best directory that can be written to; it is made where there is none.
    fn writable_directory(&self) -> Option<&PathBuf> {
        self.directories.iter().find(|directory| writable(directory).is_ok())
    }

    /// The file of a further route's ledger, beside that of the first; blocking, for the start.
    pub(crate) fn open_route(&self, name: &str) -> anyhow::Result<PathBuf> {
        let first = self.ledger_place()?;
        let stem = first.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let extension = first.extension().map(|extension| format!(".{}", extension.to_string_lossy()));
        Ok(first.with_file_name(format!("{stem}-{name}{}", extension.unwrap_or_default())))
    }

    /// Finds, and makes, the state directory for what is durable; blocking, for the start.
    pub(crate) fn directory(&self) -> anyhow::Result<PathBuf> {
        self.writable_directory().cloned().with_context(|| {
            format!(
                "keep the store in {}: set state.directory to a directory that can be written to, or \
                 platformServer.store.path to a file in one",
                either(&self.directories)
            )
        })
    }

    /// Where the admin socket of a process with these settings may be, the likeliest first; makes nothing.
    pub(crate) fn sockets(&self) -> Vec<PathBuf> {
        let given = self.ledger.as_deref().filter(|_| self.keep_ledger);
        match (&self.socket, given.and_then(Path::parent)) {
            (SocketPlace::None, _) => Vec::new(),
            (SocketPlace::Path(path), _) => vec![path.clone()],
            (SocketPlace::Auto, Some(directory)) => vec![directory.join(&self.socket_name)],
            (SocketPlace::Auto, None) => {
                self.directories.iter().map(|directory| directory.join(&self.socket_name)).collect()
            }
        }
    }
}

fn refused(directories: &[PathBuf]) -> String {
    format!(
        "keep the ledger in {}: set state.directory to a directory that can be written to, or \
         reporter.ledger.storage to memory",
        either(directories)
    )
}

/// Places for a message: one or another.
pub(crate) fn either(places: &[PathBuf]) -> String {
    let names: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
    names.join(" or ")
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
        let (socket, socket_name) = (SocketPlace::Auto, "admin.sock".to_owned());
        State {
            directories,
            keep_ledger: true,
            keep_routes: false,
            ledger: None,
            ledger_name,
            socket,
            socket_name,
            key_file: None,
        }
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
        assert_eq!(places.socket, Some(good.join("admin.sock")));
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
        assert_eq!(given.sockets(), [root.path().join("admin.sock")]);
        assert_eq!(given.open().unwrap().socket.as_ref(), given.sockets().first());
        given.keep_ledger = false;
        let nothing = Places { ledger: None, socket: None, key: None, make_key: true };
        assert_eq!(given.open().unwrap(), nothing);
        given.key_file = Some("/keys/redaction".into());
        let key = Some("/keys/redaction".into());
        assert_eq!(given.open().unwrap(), Places { key, make_key: false, ..nothing });
        given.socket = SocketPlace::Path("/run/s".into());
        assert_eq!(
            (given.open().unwrap().socket, given.sockets()),
            (Some("/run/s".into()), vec!["/run/s".into()])
        );
        given.socket = SocketPlace::None;
        assert_eq!((given.open().unwrap().socket, given.sockets()), (None, Vec::new()));
    }

    #[test]
    fn a_route_has_its_ledger_beside_the_first_one_wherever_that_is() {
        let root = tempfile::tempdir().unwrap();
        let mut given = state(vec![root.path().to_owned()]).of_resources();
        let beside = |name: &str| root.path().join(name);
        assert_eq!(given.open_route("audit").unwrap(), beside("resource-reporter-ledger-audit.redb"));
        given.ledger = Some(beside("a.b"));
        assert_eq!(given.open_route("x").unwrap(), beside("a-x.b"));
        given.ledger = Some(beside("plain"));
        assert_eq!(given.open_route("x").unwrap(), beside("plain-x"));
        // The key outlives the process where any ledger does.
        given.keep_ledger = false;
        assert_eq!(given.open().unwrap().key, None);
        let kept = given.with_routes(true).open().unwrap();
        assert_eq!((kept.ledger, kept.key), (None, Some(beside("redaction.key"))));
    }

    #[test]
    fn without_a_ledger_the_socket_is_in_the_state_directory() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        std::fs::write(&file, "").unwrap();
        let mut given = state(vec![file.clone(), root.path().join("a")]);
        given.keep_ledger = false;
        assert_eq!(given.sockets(), [file.join("admin.sock"), root.path().join("a/admin.sock")]);
        assert!(!root.path().join("a").exists(), "looking makes nothing");
        assert_eq!(given.open().unwrap().socket, Some(root.path().join("a/admin.sock")));
    }
}
