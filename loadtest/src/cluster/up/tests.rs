use super::*;

fn entry(directory: &str) -> Entry {
    let process = Process { started: 0, ..Process::this().unwrap() };
    Entry { directory: directory.into(), process, is_temporary: false, programs: vec!["etcd".to_owned()] }
}

#[test]
fn the_environment_can_be_sourced() {
    let environment = [("KUBECONFIG", "/tmp/it's here"), ("PATH", "/all/of/them")];
    let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let lines = exports(&environment, Path::new("/cluster/bin"));
    assert_eq!(lines, "export KUBECONFIG='/tmp/it'\\''s here'\nexport PATH='/cluster/bin':\"$PATH\"\n");

    let script = format!("{lines}printf '%s|%s' \"$KUBECONFIG\" \"$PATH\"");
    let said =
        std::process::Command::new("/bin/sh").args(["-c", &script]).env("PATH", "/bin").output().unwrap();
    assert_eq!(String::from_utf8(said.stdout).unwrap(), "/tmp/it's here|/cluster/bin:/bin");
}

#[test]
fn clusters_are_noted_by_their_folders_and_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::at(folder.path().join("clusters"));
    assert_eq!(registry.all().unwrap(), []);
    let (one, two) = (entry("/tmp/one"), entry("/tmp/two"));
    registry.put(&two).unwrap();
    registry.put(&one).unwrap();
    assert_eq!(registry.all().unwrap(), [one.clone(), two.clone()]);
    let ready = Entry { programs: vec!["etcd".to_owned(), "kwok".to_owned()], ..one };
    registry.put(&ready).unwrap();
    registry.remove(&two).unwrap();
    registry.remove(&two).unwrap();
    assert_eq!(registry.all().unwrap(), [ready]);
}

#[test]
fn the_cluster_that_is_meant_must_be_clear() {
    let both = || vec![entry("/nowhere/one"), entry("/nowhere/two")];
    let refused = |entries, directory: Option<&str>, all| {
        chosen(entries, directory.map(Path::new), all).unwrap_err().to_string()
    };
    let names = |entries: Vec<Entry>| entries.into_iter().map(|one| one.directory).collect::<Vec<_>>();
    assert_eq!(names(chosen(both(), None, true).unwrap()), names(both()));
    assert_eq!(
        names(chosen(both(), Some(Path::new("/nowhere/two")), false).unwrap()),
        [Path::new("/nowhere/two")]
    );
    assert_eq!(names(chosen(vec![entry("/nowhere/one")], None, false).unwrap()), [Path::new("/nowhere/one")]);
    assert_eq!(chosen(Vec::new(), None, true).unwrap(), []);
    assert_eq!(
        refused(both(), None, false),
        "2 clusters are up; name one, or say --all: /nowhere/one, /nowhere/two"
    );
    assert_eq!(refused(both(), Some("/nowhere/three"), false), "no cluster is up in /nowhere/three");
    assert_eq!(refused(Vec::new(), None, false), "no cluster is up");
}

#[tokio::test]
async fn a_cluster_is_well_when_its_holder_and_every_program_run() {
    let mut sleep = Command::new("sleep").arg("600").kill_on_drop(true).spawn().unwrap();
    let this = Process::this().unwrap();
    while !processes::children(this.id).unwrap().contains("sleep") {
        tokio::task::yield_now().await;
    }
    let of = |process, programs: &[&str]| Entry {
        process,
        programs: programs.iter().map(|&name| name.to_owned()).collect(),
        ..entry("/nowhere/one")
    };
    let well = |name: &str, runs| (name.to_owned(), runs);
    let health_of = |process, programs| health(&of(process, programs));
    assert_eq!(
        health_of(this, &["sleep", "no-such-program"]),
        [well("loadtest", true), well("sleep", true), well("no-such-program", false)]
    );
    assert_eq!(health_of(this, &[]), [well("loadtest", true), well("(not ready)", false)]);
    // A later process with the holder's number is not the holder.
    let other = Process { started: this.started + 1, ..this };
    assert_eq!(health_of(other, &["sleep"]), [well("loadtest", false), well("sleep", false)]);
    sleep.kill().await.unwrap();
}
