//! The image: the same bytes each time, nobody's files, a numeric user, and as small as it must be.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

fn write(folder: &Path, out: &str, more: &[&str]) -> Output {
    let program = folder.join("program");
    std::fs::write(&program, b"a program").unwrap();
    image_of(&program, folder, out, more)
}

fn image_of(program: &Path, folder: &Path, out: &str, more: &[&str]) -> Output {
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    Command::new(env!("CARGO_BIN_EXE_image"))
        .arg("--program")
        .arg(program)
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

/// The files of the layer: their rights, their user, their bytes; of a link, where it leads.
type Found = BTreeMap<String, (u32, u64, Vec<u8>)>;

/// The configuration of an image and what is in its layer; every digest and every time is compared.
fn opened(layout: &Path) -> (Value, Found) {
    let index = document(&std::fs::read(layout.join("index.json")).unwrap());
    let named = &index["manifests"][0];
    assert_eq!(named["annotations"]["io.containerd.image.name"], "registry.example.com/gitops-runtime:1");
    let manifest = document(&blob(layout, named["digest"].as_str().unwrap()));
    let config = document(&blob(layout, manifest["config"]["digest"].as_str().unwrap()));
    let layer = blob(layout, manifest["layers"][0]["digest"].as_str().unwrap());
    let mut tar = Vec::new();
    flate2::read::GzDecoder::new(&layer[..]).read_to_end(&mut tar).unwrap();
    let hash: String = Sha256::digest(&tar).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(config["rootfs"]["diff_ids"][0], format!("sha256:{hash}"));
    let mut found = Found::new();
    for entry in tar::Archive::new(&tar[..]).entries().unwrap() {
        let mut entry = entry.unwrap();
        assert_eq!(entry.header().mtime().unwrap(), 1_700_000_000);
        let path = entry.path().unwrap().display().to_string();
        let (mode, user) = (entry.header().mode().unwrap(), entry.header().uid().unwrap());
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        if let Some(to) = entry.link_name().unwrap() {
            bytes = to.display().to_string().into_bytes();
        }
        assert!(found.insert(path, (mode, user, bytes)).is_none(), "a path stands there twice");
    }
    (config, found)
}

#[test]
fn every_digest_is_right_and_the_layer_holds_what_it_should() {
    let folder = tempfile::tempdir().unwrap();
    assert!(write(folder.path(), "image", &["--revision", "abc"]).status.success());
    let (config, found) = opened(&folder.path().join("image"));
    assert_eq!(config["config"]["User"], "65532:65532");
    assert_eq!(config["config"]["Entrypoint"], json!(["/gitops-runtime"]));
    assert_eq!(config["config"]["Labels"]["org.opencontainers.image.revision"], "abc");
    assert_eq!(config["created"], "2023-11-14T22:13:20Z");
    let is = |path: &str, mode: u32, user: u64| {
        let (found_mode, found_user, _) = &found[path];
        assert_eq!((*found_mode, *found_user), (mode, user), "{path}");
    };
    is("gitops-runtime", 0o755, 0);
    is("etc/ssl/", 0o755, 0);
    is("var/lib/", 0o755, 0);
    is("var/lib/gitops-runtime/", 0o700, 65_532);
    is("tmp/", 0o1777, 0);
    let programs: Vec<_> = found
        .iter()
        .filter(|(path, (mode, ..))| mode & 0o111 != 0 && !path.ends_with('/'))
        .map(|(path, _)| path)
        .collect();
    assert_eq!(programs, ["gitops-runtime"], "there is no shell");
}

#[test]
fn beside_a_program_stand_the_loader_and_the_libraries_that_it_names() {
    let folder = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_image"));
    let output = image_of(program, folder.path(), "image", &["--most", "1000", "--level", "1"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (_, found) = opened(&folder.path().join("image"));
    let said = Command::new("ldd").arg(program).output().unwrap().stdout;
    let said = String::from_utf8(said).unwrap();
    let named: Vec<&str> = said.split_whitespace().filter(|word| word.starts_with('/')).collect();
    assert!(named.len() > 1, "a loader and a library at least: {named:?}");
    for path in named {
        let (mode, user, bytes) = &found[path.trim_start_matches('/')];
        assert_eq!((*mode, *user), (0o755, 0), "{path}");
        assert_eq!(*bytes, std::fs::read(path).unwrap(), "{path}");
    }
}

#[test]
fn other_programs_and_links_stand_where_they_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    std::fs::write(&program, b"a program").unwrap();
    let other = Path::new(env!("CARGO_BIN_EXE_image"));
    let image = loadtest_image::Image {
        program,
        entrypoint: "usr/local/bin/all".to_owned(),
        further: vec![("usr/bin/other".to_owned(), other.to_path_buf())],
        links: vec![("usr/local/bin/one".to_owned(), "all".to_owned())],
        state: None,
        authorities: None,
        license: None,
        materials: None,
        name: "registry.example.com/gitops-runtime:1".to_owned(),
        architecture: "amd64".to_owned(),
        version: "1".to_owned(),
        revision: String::new(),
        time: 1_700_000_000,
        level: 1,
    };
    image.build().unwrap().write(&folder.path().join("image")).unwrap();
    let (config, found) = opened(&folder.path().join("image"));
    assert_eq!(config["config"]["Entrypoint"], json!(["/usr/local/bin/all"]));
    assert_eq!(found["usr/local/bin/all"], (0o755, 0, b"a program".to_vec()));
    assert_eq!(found["usr/local/bin/one"], (0o777, 0, b"all".to_vec()));
    assert_eq!(found["usr/bin/other"], (0o755, 0, std::fs::read(other).unwrap()));
    assert!(found.keys().any(|path| path.contains("libc.so")), "what the other one is linked with");
}

#[test]
fn a_level_that_there_is_not_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let output = write(folder.path(), "image", &["--level", "13"]);
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("a layer is compressed by 0 to 12, and not 13"), "{said}");
}

#[test]
fn an_image_that_is_too_large_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let output = write(folder.path(), "image", &["--most", "0"]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("and 0 are the most"));
}
