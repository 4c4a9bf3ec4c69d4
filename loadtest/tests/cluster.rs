//! The life of a cluster's processes, with a program in etcd's place that only waits.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use loadtest::sim::PATIENCE;
use loadtest::sim::child::is_alive;

/// A user's folders, and programs that are none.
struct Home {
    root: tempfile::TempDir,
}

impl Home {
    /// `etcd` is a shell script that runs in the folder of the control plane.
    fn new(etcd: &str) -> Self {
        use std::os::unix::fs::PermissionsExt as _;
        let root = tempfile::tempdir().unwrap();
        for folder in ["path", "programs/bin", "temporary"] {
            std::fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        let program = root.path().join("path/etcd");
        std::fs::write(&program, format!("#!/bin/sh\n{etcd}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        for stage in [
            "node/fast/node-initialize",
            "pod/fast/pod-ready",
            "pod/fast/pod-complete",
            "pod/fast/pod-delete",
        ] {
            let file = root.path().join(format!("programs/share/kwok/{stage}.yaml"));
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, "kind: Stage\n").unwrap();
        }
        Self { root }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_loadtest"));
        let path = std::env::var_os("PATH").unwrap();
        let paths = std::iter::once(self.path("path")).chain(std::env::split_paths(&path));
        command
            .arg("cluster")
            .args(args)
            .env("PATH", std::env::join_paths(paths).unwrap())
            .env("LOADTEST_CLUSTER_BINARIES", self.path("programs"))
            .env("TMPDIR", self.path("temporary"))
            .env("RUST_BACKTRACE", "0")
            .env_remove("NO_COLOR")
            .stdin(Stdio::null());
        command
    }

    /// Starts a cluster in the foreground and waits for its first program; tells that one's number.
    fn up(&self, directory: Option<&str>) -> (Holder, u32) {
        let folder = directory.map(|name| self.path(name));
        let mut command = self.command(&["up"]);
        command.args(folder.iter().flat_map(|folder| [Path::new("--directory"), folder]));
        let holder = Holder(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        let mut id = None;
        until("the first program runs", || {
            let folder = folder.clone().or_else(|| self.temporary());
            id = folder.and_then(|folder| {
                std::fs::read_to_string(folder.join("control/id")).ok()?.trim().parse().ok()
            });
            id.is_some()
        });
        (holder, id.unwrap())
    }

    /// The folder that a cluster made for itself.
    fn temporary(&self) -> Option<PathBuf> {
        Some(std::fs::read_dir(self.path("temporary")).unwrap().next()?.unwrap().path())
    }
}

/// A cluster in the foreground; killed when a test ends early.
struct Holder(Child);

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Says its number, and waits.
const WAITS: &str = "echo $$ > id; exec sleep 600";

#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "waited for: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn signal(name: &str, id: u32) {
    assert!(Command::new("kill").args([format!("-{name}"), id.to_string()]).status().unwrap().success());
}

#[test]
fn programs_end_with_a_killed_holder() {
    let home = Home::new(WAITS);
    let (mut holder, program) = home.up(Some("one"));
    holder.0.kill().unwrap();
    holder.0.wait().unwrap();
    until("the program is gone", || !is_alive(program));
    assert!(home.path("one/control/etcd.log").is_file(), "a folder that was named stays");
}

#[test]
fn a_cluster_that_is_interrupted_while_it_starts_leaves_nothing() {
    let home = Home::new(WAITS);
    let (mut holder, program) = home.up(None);
    signal("INT", holder.0.id());
    assert_eq!(holder.0.wait().unwrap().code(), Some(130));
    until("the program is gone", || !is_alive(program));
    assert_eq!(home.temporary(), None);
}

#[test]
fn one_is_ended_while_another_runs_beside_it() {
    let home = Home::new(WAITS);
    let ((mut one, program_one), (mut two, program_two)) = (home.up(Some("one")), home.up(Some("two")));
    signal("TERM", one.0.id());
    assert_eq!(one.0.wait().unwrap().code(), Some(130));
    until("the first one's program is gone", || !is_alive(program_one));
    assert!(is_alive(program_two));
    signal("TERM", two.0.id());
    two.0.wait().unwrap();
    until("the second one's program is gone", || !is_alive(program_two));
}

#[test]
fn one_that_does_not_start_says_why_and_keeps_its_logs() {
    let home = Home::new("echo no room on this disk >&2; exit 7");
    let failed = home.command(&["up"]).output().unwrap();
    assert_eq!(failed.status.code(), Some(1));
    let folder = home.temporary().unwrap();
    assert_eq!(String::from_utf8_lossy(&failed.stdout), format!("logs: {}\n", folder.display()));
    let errors = String::from_utf8_lossy(&failed.stderr);
    assert!(
        errors.contains("Error: etcd ended before it was ready (exit status: 7); the end of"),
        "{errors}"
    );
    assert!(errors.contains("no room on this disk"), "{errors}");
    assert!(folder.join("control/etcd.log").is_file());
}
