//! The repositories, read by stock Git.

use std::path::Path;

use tempfile::TempDir;

use super::*;

struct Place {
    git: Git,
    folder: TempDir,
}

async fn place() -> Place {
    let folder = TempDir::new().unwrap();
    let template = folder.path().join("template");
    std::fs::create_dir_all(template.join("plain")).unwrap();
    std::fs::write(template.join("plain/one.yaml"), "repo: $REPO\nnamespace: $NAMESPACE\n").unwrap();
    std::fs::write(template.join("README.md"), "# A template\n").unwrap();
    let git = Git::start(&folder.path().join("repositories"), &template).await.unwrap();
    Place { git, folder }
}

fn commit(message: &str, files: &[(&str, Option<&str>)]) -> Commit {
    Commit {
        author: "Grace Hopper".to_owned(),
        email: "grace@example.com".to_owned(),
        message: message.to_owned(),
        files: files.iter().map(|(path, text)| ((*path).to_owned(), text.map(str::to_owned))).collect(),
    }
}

async fn stock(directory: &Path, args: &[&str]) -> Result<String, String> {
    git(directory, args).await.map_err(|error| format!("{error:#}"))
}

#[tokio::test]
async fn stock_git_clones_what_the_template_holds() {
    let place = place().await;
    let repository = place.git.repository("case-1").await.unwrap();
    assert!(repository.url().starts_with("file:///"), "{}", repository.url());
    stock(place.folder.path(), &["clone", "--quiet", repository.url(), "copy"]).await.unwrap();
    let text = std::fs::read_to_string(place.folder.path().join("copy/plain/one.yaml")).unwrap();
    assert_eq!(text, format!("repo: {}\nnamespace: case-1\n", repository.url()));
    let head = stock(&place.folder.path().join("copy"), &["rev-parse", "HEAD"]).await.unwrap();
    assert_eq!(head.trim(), repository.head().await.unwrap());
}

#[tokio::test]
async fn a_commit_is_fetched_with_its_author_and_message() {
    let place = place().await;
    let repository = place.git.repository("case").await.unwrap();
    let copy = place.folder.path().join("copy");
    stock(place.folder.path(), &["clone", "--quiet", repository.url(), "copy"]).await.unwrap();
    let change = commit(
        "Change one\n\nand say why\n",
        &[("plain/one.yaml", Some("one: 2\n")), ("a b/ü.txt", Some(""))],
    );
    let id = repository.commit(&change).await.unwrap();
    stock(&copy, &["fetch", "--quiet"]).await.unwrap();
    let log = stock(&copy, &["log", "-1", "--format=%H|%an|%ae|%cn|%s|%b", "origin/main"]).await.unwrap();
    assert_eq!(
        log.trim(),
        format!("{id}|Grace Hopper|grace@example.com|Grace Hopper|Change one|and say why")
    );
    assert_eq!(repository.show("plain/one.yaml").await.unwrap(), "one: 2\n");
    assert_eq!(repository.show("a b/ü.txt").await.unwrap(), "");
    assert_eq!(repository.show("README.md").await.unwrap(), "# A template\n");
}

#[tokio::test]
async fn a_deleted_file_is_gone_and_a_missing_one_is_refused() {
    let place = place().await;
    let repository = place.git.repository("case").await.unwrap();
    repository.commit(&commit("Delete", &[("README.md", None)])).await.unwrap();
    assert!(repository.show("README.md").await.is_err());
    let before = repository.head().await.unwrap();
    let refused = repository.commit(&commit("Again", &[("README.md", None)])).await.unwrap_err();
    assert_eq!(refused.to_string(), "delete README.md in a commit: it is not there");
    assert_eq!(repository.head().await.unwrap(), before);
}

#[tokio::test]
async fn what_cannot_stand_in_a_commit_is_refused() {
    let place = place().await;
    let repository = place.git.repository("case").await.unwrap();
    let before = repository.head().await.unwrap();
    for path in ["../out", "/root", "a//b", ".git/config", "two\nlines", "\"quoted\""] {
        let refused = repository.commit(&commit("No", &[(path, Some(""))])).await.unwrap_err();
        assert_eq!(refused.to_string(), format!("write a commit: the path {path:?} cannot stand in one"));
    }
    let refused =
        repository.commit(&Commit { author: "A <b>".to_owned(), ..commit("No", &[]) }).await.unwrap_err();
    assert_eq!(refused.to_string(), "write a commit: the author \"A <b>\" cannot stand in one");
    assert_eq!(repository.head().await.unwrap(), before);
}

#[tokio::test]
async fn a_repository_is_made_once_and_many_commits_line_up() {
    let place = place().await;
    let (one, two) = tokio::join!(place.git.repository("case"), place.git.repository("case"));
    let (one, two) = (one.unwrap(), two.unwrap());
    let commits = (0..6).map(|i| {
        let repository = if i % 2 == 0 { one.clone() } else { two.clone() };
        async move { repository.commit(&commit("One of many", &[(&format!("file-{i}"), Some("x"))])).await }
    });
    futures::future::try_join_all(commits).await.unwrap();
    let count = git(&one.folder, ["rev-list", "--count", BRANCH]).await.unwrap();
    assert_eq!(count.trim(), "7");
}

#[tokio::test]
async fn a_name_that_is_no_folder_is_refused() {
    let place = place().await;
    let refused = place.git.repository("Case/..").await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "name a repository \"Case/..\": only lower-case letters, digits and dashes can stand there"
    );
}
