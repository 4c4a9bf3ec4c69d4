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
