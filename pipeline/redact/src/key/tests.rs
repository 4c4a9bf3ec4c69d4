//! Keys are made, kept and read, and what is none is refused.

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
    for text in ["", "short", "0123456789abcdef", "not base64, not hex, but long enough to be one of them"] {
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
        format!("reading the redaction key `{}`: give the process the right to read it", folder.display())
    );
    fs::write(folder.join("file"), "").unwrap();
    let below = folder.join("file/key");
    let refused = refusal(&below);
    assert!(
        refused.starts_with("reading the redaction key") || refused.starts_with("creating the redaction key")
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
