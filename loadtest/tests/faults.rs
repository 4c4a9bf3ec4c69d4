//! The command `loadtest faults` itself, as far as it can be told in seconds; the rest runs with it as a whole.

use std::process::Command;

use loadtest::faults;

#[tokio::test]
async fn a_program_that_does_not_serve_has_not_held() {
    let outcomes = faults::outcomes(&["token"], 5, "/bin/false".into()).await.unwrap();
    assert!(!outcomes[0].is_good());
    assert!(outcomes[0].wrong[0].starts_with("the process does not serve after "), "{outcomes:#?}");
}

#[test]
fn an_unknown_fault_is_refused_with_the_list() {
    let done = Command::new(env!("CARGO_BIN_EXE_loadtest")).args(["faults", "fire"]).output().unwrap();
    assert_eq!(done.status.code(), Some(1));
    assert_eq!(
        String::from_utf8_lossy(&done.stderr).lines().next(),
        Some(
            "Error: there is no fault \"fire\"; there are kill, away, away-restart, restart, platform, disk, damage, token, \
             poison, clones"
        )
    );
}

#[test]
fn a_fault_that_fails_gives_exit_code_1_and_the_last_line() {
    let done = Command::new(env!("CARGO_BIN_EXE_loadtest"))
        .args(["faults", "token", "poison", "--seed", "9", "--program", "/bin/false"])
        .output()
        .unwrap();
    assert_eq!(done.status.code(), Some(1));
    let said = String::from_utf8_lossy(&done.stdout);
    assert_eq!(said.lines().next(), Some("seed 9"));
    assert_eq!(
        said.lines().last(),
        Some("faults: 2 faults, 0 lost, 0 duplicated beyond what was in flight, 0 out of order")
    );
}
