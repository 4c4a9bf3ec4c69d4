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
    assert_eq!(String::from_utf8_lossy(&done.stdout), "seed 7\n");
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(said.lines().next(), Some("Error: /bin/false distribution failed: "), "{said}");
}

#[test]
fn too_few_applications_are_refused() {
    let done = replicas(&["--applications", "49"]);
    assert_eq!(done.status.code(), Some(2));
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(said.contains("49 is not in 50.."), "{said}");
}
