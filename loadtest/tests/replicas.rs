//! The command `loadtest replicas` itself, as far as it can be told in seconds; the rest runs with it as a whole.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::{Command, Output};

fn replicas(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_loadtest")).arg("replicas").args(arguments).output().unwrap()
}

#[test]
fn a_program_that_is_no_reporter_is_told() {
    let done = replicas(&["--program", "/bin/false", "--seed", "7"]);
    assert_eq!(done.status.code(), Some(1));
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(said.starts_with("seed 7\n") && said.contains("does not serve after"), "{said}");
    let last = "replicas: 0 events, 0 lost, 0 out of order, 0 accepted from stale owners";
    assert_eq!(said.lines().last(), Some(last));
}

#[test]
fn too_few_applications_are_refused() {
    let done = replicas(&["--applications", "49"]);
    assert_eq!(done.status.code(), Some(2));
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(said.contains("49 is not in 50.."), "{said}");
}
