//! Processes that die, and processes that meet: children of the test, told what to do by the environment.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use pipeline_core::EntityId;

use super::digests::tests::report;
use super::tests::{counted, key, open, slow};
use super::{Ledger, Origin};

/// What a child process is to do with the ledger named in `LEDGER_CHILD`; run by the tests below alone.
#[test]
fn child() {
    let Some(path) = std::env::var_os("LEDGER_CHILD") else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let ledger = open(Path::new(&path));
    if std::env::var_os("LEDGER_SENDING").is_some() {
        for n in 0.. {
            let first = report(n, "01234567-89ab-cdef-0123-456789abcdef", EntityId::OBJECT, 1);
            runtime.block_on(ledger.sending(&key(n), &first, None));
            println!("durable {n}");
        }
    }
    for n in 1..u64::MAX {
        for at in 0..8 {
            ledger.update(&key(at), |_| Some(counted(n)));
        }
        runtime.block_on(ledger.flush()).unwrap();
        println!("durable {n}");
        if std::env::var_os("LEDGER_ABORT").is_some() && n == 20 {
            (0..4).for_each(|at| ledger.update(&key(at), |_| Some(counted(n + 1))));
            std::process::abort();
        }
    }
}

fn spawn_child(path: &Path, abort: bool) -> std::process::Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "crash_tests::child", "--nocapture"]).env("LEDGER_CHILD", path);
    if abort {
        command.env("LEDGER_ABORT", "1");
    }
    command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn an_abort_loses_at_most_the_last_group() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.redb");
    let status = spawn_child(&path, true).wait().unwrap();
    assert!(!status.success());
    let ledger = open(&path);
    assert_eq!(ledger.origin(), &Origin::Existing);
    let counters: Vec<u64> = (0..8).map(|at| ledger.get(&key(at)).unwrap().object().counter).collect();
    assert!(counters.iter().all(|counter| *counter == 20) || counters == [21, 21, 21, 21, 20, 20, 20, 20]);
}

#[test]
fn a_kill_at_any_moment_keeps_what_was_flushed_and_groups_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.redb");
    let (mut id, mut reached) = (None, 0);
    for round in 0..10_u32 {
        let mut child = spawn_child(&path, false);
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let durable = lines
            .filter_map(|line| line.rsplit_once("durable ").and_then(|(_, n)| n.parse::<u64>().ok()))
            .nth(2 + round as usize)
            .unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let ledger = open(&path);
        assert_eq!(ledger.id(), id.get_or_insert_with(|| ledger.id().to_owned()));
        let counters: HashSet<u64> =
            (0..8).map(|at| ledger.get(&key(at)).unwrap().object().counter).collect();
        assert_eq!(counters.len(), 1, "a group was torn: {counters:?}");
        let counter = counters.into_iter().next().unwrap();
        assert!(counter >= durable, "{durable} was flushed, {counter} is there");
        reached += counter;
    }
    assert!(reached >= 10 * 3);
}

#[test]
fn a_second_process_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.redb");
    let mut child = spawn_child(&path, false);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("durable 1")));
    let error = Ledger::open(&path, slow()).err();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(
        error.unwrap().to_string(),
        format!(
            "another process holds the ledger file {}: one process writes a ledger, so stop the other one or give \
             this one a file of its own",
            path.display()
        )
    );
}

#[test]
fn a_kill_forgets_no_report_that_was_on_its_way() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.redb");
    let mut known = 0;
    for _ in 0..5 {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "crash_tests::child", "--nocapture"]);
        command.env("LEDGER_CHILD", &path).env("LEDGER_SENDING", "1");
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let told =
            lines.filter_map(|line| line.rsplit_once("durable ").and_then(|(_, n)| n.parse::<usize>().ok()));
        let reached = told.take_while(|n| *n <= known + 40).last().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let ledger = open(&path);
        let in_doubt = |n: usize| {
            ledger.get(&key(n)).is_some_and(|record| record.object().in_doubt && record.object().counter == 0)
        };
        assert!((0..=reached).all(in_doubt), "of {reached} reports on their way some were forgotten");
        known = reached;
    }
    assert!(known > 100, "{known}");
}
