use std::os::unix::fs::PermissionsExt as _;

use super::*;

/// A folder with kwok's stages, and one for the files of a control plane.
fn folders() -> (tempfile::TempDir, std::path::PathBuf, std::path::PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let (stages, plane) = (root.path().join("stages"), root.path().join("plane"));
    for file in flags::stage_files(&stages) {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, format!("kind: Stage\nfile: {}\n", file.file_name().unwrap().display()))
            .unwrap();
    }
    std::fs::create_dir(&plane).unwrap();
    (root, stages, plane)
}

fn has(flags: &[String], flag: &str) -> bool {
    flags.iter().any(|one| one == flag)
}

#[tokio::test]
async fn the_files_are_the_owners_alone_and_each_cluster_has_tokens_of_its_own() {
    let (_root, stages, plane) = folders();
    let files = Files::write(&plane, "https://127.0.0.1:4", None, &stages).await.unwrap();
    let first = files.admin_token().to_owned();
    for entry in std::fs::read_dir(&plane).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(
            entry.metadata().unwrap().permissions().mode() & 0o777,
            0o600,
            "{}",
            entry.path().display()
        );
    }
    let tokens = std::fs::read_to_string(files.tokens()).unwrap();
    assert_eq!(tokens.lines().next().unwrap(), format!("{first},admin,admin,\"system:masters\""));
    assert_eq!(tokens.lines().count(), 2);
    assert!(!format!("{files:?}").contains(&first));

    let second = Files::write(&plane, "https://127.0.0.1:4", None, &stages).await.unwrap();
    assert_ne!(first, second.admin_token());
    assert_eq!(first.len(), 43);
}

#[tokio::test]
async fn nobody_elects_a_leader_or_listens_beyond_loopback() {
    let (_root, stages, plane) = folders();
    let files = Files::write(&plane, "https://127.0.0.1:4", None, &stages).await.unwrap();
    for flags in [flags::controllers(&files, None), flags::scheduler(&files)] {
        assert!(has(&flags, "--leader-elect=false"), "{flags:?}");
        assert!(has(&flags, "--secure-port=0"), "{flags:?}");
    }
    assert!(has(&flags::kwok(&files, 7, None), "--server-address=127.0.0.1:7"));
    let flags = etcd::flags("http://127.0.0.1:1", "http://127.0.0.1:2", Path::new("/data"));
    assert!(has(&flags, "--initial-cluster=one=http://127.0.0.1:2"));
    assert!(has(&flags, "--unsafe-no-fsync"));
}
