//! The runtime's redaction key: one file, shared by all replicas that should give equal digests.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret as _, SecretBox};

/// Bytes of a key that is generated, and at least of one that is read.
const LENGTH: usize = 32;
/// Bytes of a key file that are read at most.
const FILE: u64 = 4096;

/// 32 bytes or more, masked in `Debug` and wiped on drop.
pub struct RedactionKey {
    bytes: SecretBox<[u8]>,
}

/// Why there is no key, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum RedactionKeyError {
    /// The file is there and cannot be read.
    #[error("reading the redaction key `{}`: give the process the right to read it", path.display())]
    Read {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is there and holds no key.
    #[error(
        "the redaction key `{}` holds neither 64 or more hexadecimal digits nor base64 of 32 bytes or more: write it with `openssl rand -hex 32`, or remove it to have one generated",
        path.display()
    )]
    Malformed {
        /// Where.
        path: PathBuf,
    },
    /// There is no file and none can be written.
    #[error(
        "creating the redaction key `{}`: mount a key there, or give the process a directory it can write to",
        path.display()
    )]
    Create {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl RedactionKey {
    /// Reads the key at `path`; when there is none, generates one there (mode 0600, 64 hexadecimal digits).
    /// Of several processes that start at once, one creates it and all read the same. Blocks: call it before
    /// the runtime's threads have work.
    ///
    /// # Errors
    /// [`RedactionKeyError`] when the file cannot be read or written, or holds no key.
    pub fn load_or_create(path: &Path) -> Result<Self, RedactionKeyError> {
        if let Some(key) = Self::load(path)? {
            return Ok(key);
        }
        create(path).map_err(|source| RedactionKeyError::Create { path: path.to_owned(), source })?;
        Self::load(path)?.ok_or_else(|| RedactionKeyError::Create {
            path: path.to_owned(),
            source: io::ErrorKind::NotFound.into(),
        })
    }

    /// A new key, for a process that keeps nothing. Blocks.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub fn generate() -> io::Result<Self> {
        let mut bytes = [0_u8; LENGTH];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        Ok(Self::from_bytes(&bytes))
    }

    /// A key that is given, e.g. by a test.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self { bytes: SecretBox::new(bytes.into()) }
    }

    /// The key, for [`super::Redactor::new`].
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.expose_secret()
    }

    fn load(path: &Path) -> Result<Option<Self>, RedactionKeyError> {
        let read = |source| RedactionKeyError::Read { path: path.to_owned(), source };
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(read(error)),
        };
        let mut text = Vec::new();
        file.take(FILE).read_to_end(&mut text).map_err(read)?;
        let key = decode(text.trim_ascii())
            .ok_or_else(|| RedactionKeyError::Malformed { path: path.to_owned() })?;
        Ok(Some(Self::from_bytes(&key)))
    }
}

impl fmt::Debug for RedactionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RedactionKey(***)")
    }
}

fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let hex = hex::decode(text).ok();
    hex.or_else(|| STANDARD.decode(text).ok()).filter(|key| key.len() >= LENGTH)
}

/// Writes a new key beside `path` and links it there, which fails when another process was first; then the
/// other's key is the key.
fn create(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    // The last eight bytes only tell the new file apart from that of another process, which may run under
    // the same process id on another machine.
    let mut random = [0_u8; LENGTH + 8];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let (key, suffix) = random.split_at(LENGTH);
    let text = format!("{}\n", hex::encode(key));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let new = directory.join(format!(".{name}.{}.new", hex::encode(suffix)));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    let linked = file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::hard_link(&new, path));
    let removed = fs::remove_file(&new);
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => removed?,
    }
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests;
