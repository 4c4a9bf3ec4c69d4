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
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
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
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let hex = || {
        let pairs = text.chunks_exact(2);
        let whole = pairs.remainder().is_empty();
        let bytes: Option<Vec<u8>> = pairs
            .map(|pair| match pair {
                [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
                _ => None,
            })
            .collect();
        bytes.filter(|_| whole)
    };
    hex().or_else(|| STANDARD.decode(text).ok()).filter(|key| key.len() >= LENGTH)
}

/// Writes a new key beside `path` and links it there, which fails when another process was first; then the
/// other's key is the key.
fn create(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    // The last eight bytes only tell the new file apart from that of another process, which may run under
    // the same process id on another machine.
    let mut random = [0_u8; LENGTH + 8];
    File::open("/dev/urandom")?.read_exact(&mut random)?;
    let (key, suffix) = random.split_at(LENGTH);
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let text = format!("{}\n", hex(key));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let new = directory.join(format!(".{name}.{}.new", hex(suffix)));
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
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::{process, thread};

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("redaction-key-{name}-{}", process::id()));
        drop(fs::remove_dir_all(&folder));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn is_generated_once_and_then_read() {
        let folder = folder("generated");
        let path = folder.join("below/key");
        let first = RedactionKey::load_or_create(&path).unwrap();
        assert_eq!(first.as_bytes().len(), 32);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_to_string(&path).unwrap().len(), 65);
        assert_eq!(fs::read_dir(folder.join("below")).unwrap().count(), 1, "nothing else is left");
        assert_eq!(RedactionKey::load_or_create(&path).unwrap().as_bytes(), first.as_bytes());
        let other = RedactionKey::load_or_create(&folder.join("other")).unwrap();
        assert_ne!(other.as_bytes(), first.as_bytes());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn all_that_start_at_once_have_the_same() {
        let folder = folder("raced");
        let path = folder.join("key");
        let keys: Vec<Vec<u8>> = thread::scope(|scope| {
            let started: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| RedactionKey::load_or_create(&path).unwrap().as_bytes().to_vec()))
                .collect();
            started.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(keys.iter().all(|key| *key == keys[0]));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_mounted_key_is_hex_or_base64() {
        let folder = folder("mounted");
        let path = folder.join("key");
        fs::write(&path, format!("{}\n", "0aF".repeat(22))).unwrap();
        assert_eq!(RedactionKey::load_or_create(&path).unwrap().as_bytes().len(), 33);
        fs::write(&path, STANDARD.encode([7_u8; 40])).unwrap();
        assert_eq!(RedactionKey::load_or_create(&path).unwrap().as_bytes(), [7; 40]);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let folder = folder("refused");
        let path = folder.join("key");
        let refusal = |path: &Path| RedactionKey::load_or_create(path).unwrap_err().to_string();
        for text in
            ["", "short", "0123456789abcdef", "not base64, not hex, but long enough to be one of them"]
        {
            fs::write(&path, text).unwrap();
            assert_eq!(
                refusal(&path),
                format!(
                    "the redaction key `{}` holds neither 64 or more hexadecimal digits nor base64 of 32 bytes or \
                     more: write it with `openssl rand -hex 32`, or remove it to have one generated",
                    path.display()
                )
            );
        }
        assert_eq!(
            refusal(&folder),
            format!(
                "reading the redaction key `{}`: give the process the right to read it",
                folder.display()
            )
        );
        fs::write(folder.join("file"), "").unwrap();
        let below = folder.join("file/key");
        let refused = refusal(&below);
        assert!(
            refused.starts_with("reading the redaction key")
                || refused.starts_with("creating the redaction key")
        );
        let nowhere = Path::new("/proc/no-such-place/key");
        assert_eq!(
            refusal(nowhere),
            "creating the redaction key `/proc/no-such-place/key`: mount a key there, or give the process a \
             directory it can write to"
        );
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn debug_shows_nothing() {
        assert_eq!(format!("{:?}", RedactionKey::from_bytes(b"canary")), "RedactionKey(***)");
    }
}
