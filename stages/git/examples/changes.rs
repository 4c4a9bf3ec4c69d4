//! How long one walk takes that tells 1,000 applications which of 10,000 commits changed them, beside the incumbent's way: a
//! process of git for each application and commit.
//!
//! `cargo run --release -p stages-git --example changes`; it wants the program git.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement for people")]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use stages_git::GitRepository;
use stages_git::walk::{Asked, WalkLimits};

const APPLICATIONS: usize = 1_000;
const COMMITS: usize = 10_000;
/// Processes of git that are measured; all that the incumbent's way takes would take hours.
const SAMPLE: usize = 200;

fn main() {
    let directory = tempfile::tempdir().unwrap();
    make(directory.path());
    let repository = GitRepository::open(directory.path()).unwrap();
    let (to, since) = (repository.resolve("main").unwrap(), repository.resolve("start").unwrap());
    let path = |n: usize| vec![format!("apps/a{n}")];
    let asked: Vec<Asked> =
        (0..APPLICATIONS).map(|n| Asked { to, since: Some(since), paths: path(n) }).collect();
    let began = Instant::now();
    let found = repository.changes(&asked, WalkLimits::default()).unwrap();
    let ours = began.elapsed().as_secs_f64();
    let told: usize = found.iter().map(|of| of.since.len()).sum();

    // The newest first, until one touches the application: its newest change is so many processes away.
    let list = git(directory.path(), &["rev-list", "--ancestry-path", "start..main"]);
    let order: Vec<&str> = list.lines().collect();
    let processes: usize = found
        .iter()
        .filter_map(|of| of.newest.as_ref())
        .filter_map(|newest| order.iter().position(|id| *id == newest.commit.to_string()))
        .map(|place| place + 2)
        .sum();
    let began = Instant::now();
    for id in order.iter().take(SAMPLE) {
        git(directory.path(), &["diff-tree", "--no-commit-id", "--name-only", "-r", id]);
    }
    let each = began.elapsed().as_secs_f64() / SAMPLE as f64;
    let theirs = each * processes as f64;
    println!("{APPLICATIONS} applications, {COMMITS} commits");
    println!("one walk:                  {ours:.3} s, {told} changes told");
    println!(
        "a process for each commit: {theirs:.0} s ({processes} processes of {:.2} ms, measured on {SAMPLE})",
        each * 1_000.0
    );
    println!("ratio:                     {:.0}", theirs / ours);
}

/// A bare repository; each commit changes one application, in turn, and the first makes all.
fn make(directory: &Path) {
    git(directory, &["init", "-q", "--bare", "."]);
    let mut child = Command::new("git")
        .args(["fast-import", "--quiet"])
        .current_dir(directory)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stream = child.stdin.take().unwrap();
    for n in 0..=COMMITS {
        let branch = if n == 0 { "start" } else { "main" };
        write!(
            stream,
            "commit refs/heads/{branch}\ncommitter A <a@example.com> {} +0000\ndata 1\nx",
            1_700_000_000 + n
        )
        .unwrap();
        if n == 1 {
            write!(stream, "\nfrom refs/heads/start").unwrap();
        }
        let all = if n == 0 { 0..APPLICATIONS } else { n * 7 % APPLICATIONS..n * 7 % APPLICATIONS + 1 };
        for application in all {
            let content = format!("value: {n}\n");
            write!(
                stream,
                "\nM 100644 inline apps/a{application}/values.yaml\ndata {}\n{content}",
                content.len()
            )
            .unwrap();
        }
        writeln!(stream).unwrap();
    }
    drop(stream);
    assert!(child.wait().unwrap().success());
}

fn git(directory: &Path, arguments: &[&str]) -> String {
    let done = Command::new("git").args(arguments).current_dir(directory).output().unwrap();
    assert!(done.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}
