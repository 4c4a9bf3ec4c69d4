//! The recordings inside this program, with what Git says of files in the place of what a fork of Argo CD said.

use loadtest::replay::{Field, Git, Summary, replay_from};
use loadtest_sim::recordings::{packed, repository};

fn run(set: &str) -> anyhow::Result<Summary> {
    replay_from(&packed(set)?, Some(&Git::of_bundle(repository())?))
}

#[test]
fn what_the_fork_said_of_files_and_versions_is_said_from_git() {
    let summary = run("incumbent-2.12").unwrap();
    assert_eq!(summary.different, 0, "{}", summary.text);
    for field in summary.fields {
        assert!(field.equal > 100 && field.different == 0, "{}", summary.text);
    }
    let Field { equal, on_purpose, .. } = summary.fields[1];
    assert!(summary.text.contains(&format!(
        "field source.path: {equal} equal, {on_purpose} different on purpose, 0 different\n"
    )));
    assert!(summary.is_good(), "{}", summary.text);
}

#[test]
fn every_file_of_upstreams_applications_is_named() {
    let summary = run("argocd-3.2").unwrap();
    assert_eq!(summary.exceptions, 0, "{}", summary.text);
    let (named, others) = summary.named;
    // Hooks whose names are generated, and what the newest commit has no more, are in no file.
    assert!(named > 200 && named > others * 10, "{}", summary.text);
}
