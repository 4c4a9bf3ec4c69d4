//! The image: the same bytes each time, nobody's files, a numeric user, and as small as it must be.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

fn write(folder: &Path, out: &str, more: &[&str]) -> Output {
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    Command::new(env!("CARGO_BIN_EXE_image"))
        .arg("--program")
        .arg(file("program", b"a program"))
        .arg("--authorities")
        .arg(file("authorities", b"-----BEGIN CERTIFICATE-----"))
        .arg("--license")
        .arg(file("license", b"a licence"))
        .arg("--out")
        .arg(folder.join(out))
        .args(["--name", "registry.example.com/gitops-runtime:1", "--time", "1700000000"])
        .args(more)
        .env_remove("SOURCE_DATE_EPOCH")
        .output()
        .unwrap()
}

fn blob(layout: &Path, digest: &str) -> Vec<u8> {
    let bytes = std::fs::read(layout.join("blobs").join(digest.replace(':', "/"))).unwrap();
    let hash: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(format!("sha256:{hash}"), digest);
    bytes
}

fn document(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

#[test]
fn the_same_files_make_the_same_image() {
    let folder = tempfile::tempdir().unwrap();
    let first = write(folder.path(), "one", &[]);
    assert!(first.status.success(), "{}", String::from_utf8_lossy(&first.stderr));
    assert_eq!(write(folder.path(), "two", &[]).stdout, first.stdout);
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert_eq!(read("one.tar"), read("two.tar"));
    assert_ne!(write(folder.path(), "later", &["--time", "1700000001"]).stdout, first.stdout);
}

#[test]
fn every_digest_is_right_and_the_layer_holds_what_it_should() {
    let folder = tempfile::tempdir().unwrap();
    assert!(write(folder.path(), "image", &["--revision", "abc"]).status.success());
    let layout = folder.path().join("image");
    let index = document(&std::fs::read(layout.join("index.json")).unwrap());
    let named = &index["manifests"][0];
    assert_eq!(named["annotations"]["io.containerd.image.name"], "registry.example.com/gitops-runtime:1");
    let manifest = document(&blob(&layout, named["digest"].as_str().unwrap()));
    let config = document(&blob(&layout, manifest["config"]["digest"].as_str().unwrap()));
    assert_eq!(config["config"]["User"], "65532:65532");
    assert_eq!(config["config"]["Entrypoint"], json!(["/gitops-runtime"]));
    assert_eq!(config["created"], "2023-11-14T22:13:20Z");
    let layer = blob(&layout, manifest["layers"][0]["digest"].as_str().unwrap());
    let mut tar = Vec::new();
    flate2::read::GzDecoder::new(&layer[..]).read_to_end(&mut tar).unwrap();
    let hash: String = Sha256::digest(&tar).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(config["rootfs"]["diff_ids"][0], format!("sha256:{hash}"));
    let mut found = BTreeMap::new();
    for entry in tar::Archive::new(&tar[..]).entries().unwrap() {
        let entry = entry.unwrap();
        let header = entry.header();
        assert_eq!(header.mtime().unwrap(), 1_700_000_000);
        let path = entry.path().unwrap().display().to_string();
        found.insert(path, (header.mode().unwrap(), header.uid().unwrap()));
    }
    assert_eq!(found["gitops-runtime"], (0o755, 0));
    assert_eq!(found["var/lib/gitops-runtime/"], (0o700, 65_532));
    assert_eq!(found["tmp/"], (0o1777, 0));
    let programs: Vec<_> =
        found.iter().filter(|(path, (mode, _))| mode & 0o111 != 0 && !path.ends_with('/')).collect();
    assert_eq!(programs.len(), 1, "there is no shell: {programs:?}");
}

#[test]
fn an_image_that_is_too_large_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let output = write(folder.path(), "image", &["--most", "0"]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("and 0 are the most"));
}
