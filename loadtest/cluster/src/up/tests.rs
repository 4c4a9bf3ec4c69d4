use super::*;

#[test]
fn the_environment_can_be_sourced() {
    let environment = [("ONE", "it's"), ("PATH", "/somewhere/else")];
    let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let lines = exports(&environment, Path::new("/the programs"));
    let told = std::process::Command::new("sh")
        .args(["-c", &format!("{lines}echo \"$ONE\"; echo \"$PATH\"")])
        .env("PATH", "/usr/bin:/bin")
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&told.stdout), "it's\n/the programs:/usr/bin:/bin\n");
}

#[test]
fn what_is_said_of_a_node_is_nothing_that_a_shell_runs() {
    let hints = hints(Network::new(0), "ctr import -");
    assert!(hints.lines().all(|line| line.starts_with('#')), "{hints}");
    assert!(hints.contains(
        "node ports (at 198.18.0.2) can be reached from this machine, and it from pods (as 198.18.0.1)"
    ));
    assert!(hints.contains("#   ctr import - <image.tar\n"));
}
