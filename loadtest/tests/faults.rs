//! The command `loadtest faults` itself, as far as it can be told in seconds; the rest runs with it as a whole.

use std::process::Command;

#[test]
fn a_fault_that_fails_gives_exit_code_1_and_the_last_line() {
    let done = Command::new(env!("CARGO_BIN_EXE_loadtest"))
        .args(["faults", "token", "poison", "--seed", "9", "--program", "/bin/false"])
        .output()
        .unwrap();
    assert_eq!(done.status.code(), Some(1));
    let said = String::from_utf8_lossy(&done.stdout);
    assert_eq!(said.lines().next(), Some("seed 9"));
    assert!(said.contains("WRONG: the process does not serve after "), "{said}");
    assert_eq!(
        said.lines().last(),
        Some("faults: 2 faults, 0 lost, 0 duplicated beyond what was in flight, 0 out of order")
    );
}
