use std::path::Path;
use std::time::Duration;

use futures::{FutureExt as _, poll};
use serde_json::json;
use stages_git::remote::Config;

use super::*;
use crate::testing::{all_slots_taken, commit};

async fn walks(folder: &Path) -> Walks {
    let config = Config { files: true, concurrent: 1, ..Config::new(folder.join("clones")) };
    let redactor = Redactor::new(b"0123456789abcdef0123456789abcdef");
    Walks::new(Checkouts::new(config).await.unwrap(), 100, 0, redactor)
}

/// What is asked of the repository in this directory.
fn asked(directory: &Path, current: &str, previous: Option<&str>) -> SourceQuestion {
    let repo_url = format!("file://{}", directory.display());
    let object = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "web", "namespace": "argocd"},
        "spec": {"source": {"repoURL": repo_url, "path": "."}},
    });
    SourceQuestion {
        application: Application::read(&object).unwrap(),
        tenant: Tenant::new("default", "argocd"),
        source: 0,
        repo_url,
        current: current.to_owned(),
        previous: previous.map(str::to_owned),
        in_full: true,
    }
}

#[tokio::test]
async fn questions_of_those_who_are_gone_are_not_kept_and_nothing_is_fetched_for_them() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("a.git");
    let current = commit(&directory, "main", "a: 1");
    let walks = walks(folder.path()).await;
    for _ in 0..10 {
        assert!(walks.ask(asked(&directory, &current, None)).now_or_never().is_none());
    }
    let kept = || walks.inner.waiting.all().values().map(Vec::len).sum::<usize>();
    assert!(kept() <= 1, "{} are kept", kept());
    while !walks.inner.waiting.all().is_empty() {
        tokio::task::yield_now().await;
    }
    let clones = std::fs::read_dir(folder.path().join("clones")).unwrap().flatten();
    assert_eq!(clones.filter(|of| of.path().extension().is_some_and(|end| end == "git")).count(), 0);
    let answer = walks.ask(asked(&directory, &current, None)).await.unwrap();
    assert_eq!(answer.change_revision, Some(current));
}

#[tokio::test]
async fn whose_revisions_are_here_is_answered_before_the_revision_of_another_is_fetched() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("a.git");
    let before = commit(&directory, "main", "a: 1");
    let current = commit(&directory, "main", "a: 2");
    let walks = walks(folder.path()).await;
    walks.ask(asked(&directory, &current, None)).await.unwrap();
    let elsewhere = commit(&directory, "other", "a: 3");
    let hanging = all_slots_taken(&walks.inner.checkouts).await;
    let mut waits = Box::pin(walks.ask(asked(&directory, &current, Some(&elsewhere))));
    assert!(poll!(&mut waits).is_pending());
    let quick = walks.ask(asked(&directory, &current, Some(&before)));
    let quick =
        tokio::time::timeout(Duration::from_secs(60), quick).await.expect("it waits for another's revision");
    let told: Vec<String> = quick.unwrap().changes.into_iter().map(|of| of.revision).collect();
    assert_eq!(told, std::slice::from_ref(&current));
    assert!(poll!(&mut waits).is_pending());
    drop(hanging);
    let told = waits.await.unwrap();
    assert_eq!((told.changes.len(), told.previous_unknown), (2, false));
}

#[tokio::test]
async fn whose_revisions_are_here_is_answered_while_the_current_revision_of_another_is_fetched() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("a.git");
    let before = commit(&directory, "main", "a: 1");
    let current = commit(&directory, "main", "a: 2");
    let walks = walks(folder.path()).await;
    walks.ask(asked(&directory, &current, None)).await.unwrap();
    let elsewhere = commit(&directory, "other", "a: 3");
    let hanging = all_slots_taken(&walks.inner.checkouts).await;
    let mut waits = Box::pin(walks.ask(asked(&directory, &elsewhere, None)));
    assert!(poll!(&mut waits).is_pending());
    // The first is asked together with the one that waits, the other one while that is fetched.
    for _ in 0..2 {
        let quick = walks.ask(asked(&directory, &current, Some(&before))).await;
        let told: Vec<String> = quick.unwrap().changes.into_iter().map(|of| of.revision).collect();
        assert_eq!(told, std::slice::from_ref(&current));
    }
    assert!(poll!(&mut waits).is_pending());
    drop(hanging);
    assert_eq!(waits.await.unwrap().change_revision, Some(elsewhere));
}

#[tokio::test]
async fn a_previous_revision_that_nobody_can_have_makes_everything_new_and_one_that_may_come_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("a.git");
    let current = commit(&directory, "main", "a: 1");
    let walks = walks(folder.path()).await;
    let asked = asked(&directory, &current, Some("1234567890123456789012345678901234567890"));
    let url = RepositoryUrl::read(&asked.repo_url).unwrap();
    let checkout = walks.inner.checkouts.checkout(&url, &current).await.unwrap();
    let repository = checkout.open().unwrap();
    let (host, why) = ("git.example".to_owned(), "not our ref".to_owned());
    let url = || "https://git.example/a".to_owned();
    let since = |error: FetchError| {
        let mut revisions = Revisions::from([(current.clone(), Ok(checkout.clone()))]);
        revisions.insert(asked.previous.clone().unwrap(), Err(Arc::new(error)));
        wanted_of(&asked, &revisions, &repository).map(|wanted| wanted.since.is_some())
    };
    for gone in [
        FetchError::NoRevision { url: url(), revision: "a".to_owned(), branches: None },
        FetchError::TooLarge { url: url(), limit: 1 },
        FetchError::LargeObject { url: url(), size: 2, limit: 1 },
    ] {
        assert!(since(gone).unwrap());
    }
    for passing in [
        FetchError::Connect { host: host.clone(), why: why.clone() },
        FetchError::Remote { host, message: why.clone() },
        FetchError::Damaged { url: url(), why },
        FetchError::Refused { url: url(), from: "a Secret".to_owned(), said: None },
    ] {
        assert!(since(passing).is_err());
    }
}
