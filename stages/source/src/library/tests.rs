use std::sync::Arc;
use std::time::Duration;

use pipeline_core::async_trait;
use serde_json::{Value, json};
use stages_git::remote::Tenant;

use super::{Library, LibraryConfig, SourceError};
use crate::manifests::{ManifestsRequest, RequestedSource};
use crate::repositories::{Directories, LocalCommit, Repositories, RepositoryError};
use crate::testing::{commit, repository};
use crate::version_sources::{FixedVersionSource, VersionSources};
use crate::versions::VersionSource;

const URL: &str = "https://git.example.com/team/mono.git";
const WEB: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n";

fn library(repositories: impl Repositories + 'static, versions: impl VersionSources + 'static) -> Library {
    let config = LibraryConfig { concurrency: 2, timeout: Duration::from_secs(120), cache_bytes: 1 << 20 };
    config.build(Arc::new(repositories), Arc::new(versions))
}

fn asked(source: Value, compiled: &[&str]) -> ManifestsRequest {
    let sources = vec![RequestedSource { source, ..RequestedSource::default() }];
    ManifestsRequest {
        sources,
        compiled: compiled.iter().map(|&text| text.to_owned()).collect(),
        ..ManifestsRequest::default()
    }
}

#[tokio::test]
async fn an_application_is_described_at_the_commit_that_its_revision_names() {
    let files = [("a/web.yaml", WEB), ("a/Chart.yaml", "appVersion: \"1\"\n")];
    let (directory, _repository, first) = repository(&files);
    let library = library(Directories::new([(URL, directory.path().to_owned())]), FixedVersionSource(None));
    let source =
        json!({"repoURL": "git@git.example.com:team/mono", "path": "a", "directory": {"recurse": true}});
    let told = library.describe(asked(source.clone(), &[WEB, "no: object"])).await.unwrap();
    assert_eq!(told.revisions, [first.to_string()]);
    assert_eq!(told.objects[0].origin().unwrap().path, "a/web.yaml");
    assert_eq!(told.objects[1].origin(), None);
    assert_eq!((told.files.len(), told.files[0].text.as_str()), (1, WEB));
    assert_eq!(told.versions.as_ref().unwrap().app_version, "1");
    // A branch moves, and what it names is looked up each time.
    let second = commit(directory.path(), &[("a/web.yaml", &format!("# moved\n{WEB}"))]);
    let told = library.describe(asked(source, &[WEB])).await.unwrap();
    assert_eq!((told.revisions[0].as_str(), told.versions.is_none()), (second.to_string().as_str(), true));
}

#[tokio::test]
async fn a_source_that_is_told_of_elsewhere_is_not_looked_at_and_what_it_may_make_is_nobody_elses() {
    let config_map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n";
    let files = [("c/Chart.yaml", "name: c\nappVersion: \"3\"\n"), ("d/web.yaml", WEB)];
    let (directory, _repository, commit) = repository(&files);
    let library = library(Directories::new([(URL, directory.path().to_owned())]), FixedVersionSource(None));
    let here = |path: &str| json!({"repoURL": URL, "path": path});
    let there = |more: Value| RequestedSource { source: more, elsewhere: true, ..RequestedSource::default() };
    let at = |source: Value| RequestedSource { source, ..RequestedSource::default() };
    let ask = async |sources: Vec<RequestedSource>| {
        let compiled = vec![config_map.to_owned(), WEB.to_owned()];
        library.describe(ManifestsRequest { sources, compiled, ..ManifestsRequest::default() }).await.unwrap()
    };
    let nowhere = json!({"repoURL": "https://git.example.com/unknown.git", "path": "x"});
    let told = ask(vec![there(nowhere.clone()), at(here("c")), at(here("d"))]).await;
    assert_eq!(told.revisions, [String::new(), commit.to_string(), commit.to_string()]);
    let gap = "another source of the application is told of elsewhere";
    assert_eq!(told.gaps, [gap]);
    assert_eq!(told.objects[0].origin(), None, "the chart may have made it, and so may the other source");
    assert_eq!((told.objects[1].source(), &*told.objects[1].origin().unwrap().path), (Some(2), "d/web.yaml"));
    assert_eq!(told.versions.as_ref().unwrap().app_version, "3");
    // Of what others only take files of nothing is made.
    let values = json!({"repoURL": "https://git.example.com/unknown.git", "ref": "values"});
    let told = ask(vec![there(values), at(here("c")), at(here("d"))]).await;
    assert_eq!(told.gaps, [] as [&str; 0]);
    assert_eq!(told.objects[0].origin().unwrap().path, "c/Chart.yaml");
    let error = library
        .describe(ManifestsRequest { sources: vec![at(nowhere)], ..ManifestsRequest::default() })
        .await
        .unwrap_err();
    assert!(
        error.to_string().starts_with("no repository is configured for git.example.com/unknown"),
        "{error}"
    );
}

#[tokio::test]
async fn without_compiled_manifests_all_that_the_files_make_is_listed() {
    let files = [
        ("k/kustomization.yaml", "resources: [web.yaml]\nnamePrefix: p-\n"),
        ("k/web.yaml", WEB),
        ("c/Chart.yaml", "name: c"),
    ];
    let (directory, _repository, _) = repository(&files);
    let library = library(Directories::new([(URL, directory.path().to_owned())]), FixedVersionSource(None));
    let told = library.describe(asked(json!({"repoURL": URL, "path": "k"}), &[])).await.unwrap();
    let listed: Vec<_> =
        told.listed.iter().map(|of| (of.kind.as_str(), of.name.as_str(), of.origin.path.as_str())).collect();
    assert_eq!(listed, [("Deployment", "p-web", "k/web.yaml")]);
    let told = library.describe(asked(json!({"repoURL": URL, "path": "c"}), &[])).await.unwrap();
    assert_eq!(told.gaps, ["what the chart c makes is known once it is rendered"]);
}

#[tokio::test]
async fn what_a_registry_holds_is_not_looked_for_in_repositories() {
    let (directory, _repository, commit) =
        repository(&[("a/web.yaml", WEB), ("a/Chart.yaml", "appVersion: \"1\"\n")]);
    let library = library(Directories::new([(URL, directory.path().to_owned())]), FixedVersionSource(None));
    // The repository is at the same place, but for the scheme; and nobody knows the other.
    for repo_url in ["oci://git.example.com/team/mono", "oci://registry.example.com/team/web"] {
        let artifact = json!({"repoURL": repo_url, "path": ".", "targetRevision": "1.2.3"});
        let alone = library.describe(asked(artifact.clone(), &[WEB])).await.unwrap();
        assert_eq!(alone.revisions, [""], "{repo_url}");
        assert_eq!(alone.gaps, ["the source is an artifact of an OCI registry"], "{repo_url}");
        assert_eq!((alone.objects[0].origin(), &alone.versions), (None, &None), "{repo_url}");
        let mut beside = asked(artifact, &[WEB]);
        let git = json!({"repoURL": URL, "path": "a", "directory": {"recurse": true}});
        beside.sources.push(RequestedSource { source: git, ..RequestedSource::default() });
        let beside = library.describe(beside).await.unwrap();
        assert_eq!(beside.revisions, [String::new(), commit.to_string()], "{repo_url}");
        assert_eq!(beside.objects[0].origin().unwrap().path, "a/web.yaml", "{repo_url}");
        assert_eq!(beside.versions.as_ref().unwrap().app_version, "1", "{repo_url}");
    }
}

#[tokio::test]
async fn every_refusal_says_what_to_do() {
    let (directory, _repository, _) = repository(&[("a/x.yaml", WEB)]);
    let library = library(Directories::new([(URL, directory.path().to_owned())]), FixedVersionSource(None));
    let why = async |asked: ManifestsRequest| library.describe(asked).await.unwrap_err().to_string();
    assert_eq!(why(ManifestsRequest::default()).await, "it names no source");
    assert_eq!(why(asked(json!("x"), &[])).await, "a source is no object");
    let many = ManifestsRequest {
        sources: vec![RequestedSource { source: json!({}), ..RequestedSource::default() }; 65],
        ..ManifestsRequest::default()
    };
    assert_eq!(why(many).await, "it names more than 64 sources");
    let much =
        ManifestsRequest { compiled: vec![String::new(); 20_001], ..asked(json!({"repoURL": URL}), &[]) };
    assert_eq!(why(much).await, "more than 20000 compiled manifests are asked about at once");
    assert_eq!(
        why(asked(json!({"repoURL": "https://user:secret@elsewhere.example.com/a"}), &[])).await,
        "no repository is configured for elsewhere.example.com/a: add it to sourceServer.repositories"
    );
    assert_eq!(
        why(asked(json!({"repoURL": URL, "targetRevision": "gone"}), &[])).await,
        "no commit is named gone: neither a branch, a tag nor an object of the repository is"
    );
}

#[tokio::test]
async fn commits_and_changes_are_told() {
    let (directory, _repository, first) = repository(&[("a/x.yaml", WEB), ("b/y.yaml", "")]);
    let second = commit(directory.path(), &[("a/x.yaml", "changed"), ("b/y.yaml", ""), ("c/z.yaml", "")]);
    let library = library(Directories::new([(URL, directory.path().to_owned())]), FixedVersionSource(None));
    let told = library.commit(URL, &first.to_string()).await.unwrap();
    assert_eq!(told.commit.author, "Ada <ada@example.com>");
    assert_eq!((told.commit.date.as_str(), told.commit.signed), ("2023-11-14T22:13:20Z", false));
    let (from, to) = (first.to_string(), second.to_string());
    let all = library.changes(URL, &from, &to, Vec::new()).await.unwrap();
    assert_eq!((all.files, all.more), (vec!["a/x.yaml".to_owned(), "c/z.yaml".to_owned()], 0));
    let some = library.changes(URL, &from, "HEAD", vec!["c".to_owned(), "b".to_owned()]).await.unwrap();
    assert_eq!((some.files, some.to), (vec!["c/z.yaml".to_owned()], to));
}

#[tokio::test]
async fn a_commit_is_told_with_its_tags_its_signature_and_where_its_provider_shows_it() {
    let (directory, _repository, first) = repository(&[("a/x.yaml", WEB)]);
    let made = git2::Repository::open(directory.path()).unwrap();
    let signature = "-----BEGIN SSH SIGNATURE-----\nU1NIU0lH\n-----END SSH SIGNATURE-----";
    let content = format!(
        "tree {}\nparent {first}\nauthor Ada <7+ada-l@users.noreply.github.com> 1700000000 +0000\ncommitter Ada <ada@example.com> \
         1700000000 +0000\n\nSigned\n",
        made.find_commit(first).unwrap().tree_id()
    );
    let signed = made.commit_signed(&content, signature, None).unwrap();
    made.reference("refs/tags/v1.0", signed, false, "tagged").unwrap();
    let who = git2::Signature::now("Ada", "ada@example.com").unwrap();
    made.tag("v1.0-annotated", made.find_commit(signed).unwrap().as_object(), &who, "Release", false)
        .unwrap();
    made.reference("refs/tags/v0", first, false, "tagged").unwrap();
    let url = "https://github.com/team/mono.git";
    let library = library(Directories::new([(url, directory.path().to_owned())]), FixedVersionSource(None));
    let told = library.commit(url, "v1.0-annotated").await.unwrap();
    assert_eq!(
        serde_json::to_value(told).unwrap(),
        json!({
            "revision": signed.to_string(), "author": "Ada <7+ada-l@users.noreply.github.com>",
            "date": "2023-11-14T22:13:20Z", "message": "Signed\n", "tags": ["v1.0", "v1.0-annotated"], "signed": true,
            "commitUrl": format!("https://github.com/team/mono/commit/{signed}"),
            "profileUrl": "https://github.com/ada-l", "avatarUrl": "https://github.com/ada-l.png",
        })
    );
    let plain = library.commit(url, "v0").await.unwrap().commit;
    assert_eq!((plain.tags, plain.signed), (vec!["v0".to_owned()], false));
}

/// Never has anything.
#[derive(Debug)]
struct Hanging;

#[async_trait]
impl Repositories for Hanging {
    async fn hold(&self, _: &str, _: &str, _: Option<&Tenant>) -> Result<LocalCommit, RepositoryError> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_repository_that_hangs_holds_nobody_for_longer_than_the_time_for_an_answer() {
    let config = LibraryConfig { concurrency: 1, timeout: Duration::from_millis(50), cache_bytes: 0 };
    let library = config.build(Arc::new(Hanging), Arc::new(FixedVersionSource(None)));
    let error = library.commit(URL, "HEAD").await.unwrap_err();
    assert!(matches!(error, SourceError::Busy(_)));
    assert_eq!(error.to_string(), "it was not answered within 50ms: ask again later");
}

#[tokio::test]
async fn what_somebody_says_of_versions_counts() {
    let (directory, _repository, _) = repository(&[("a/v.json", "{\"tag\": \"v9\"}")]);
    let own = |file: &str| {
        FixedVersionSource(Some(VersionSource { file: file.to_owned(), json_path: "{.tag}".to_owned() }))
    };
    let sources =
        [RequestedSource { source: json!({"repoURL": URL, "path": "a"}), ..RequestedSource::default() }];
    let directories = || Directories::new([(URL, directory.path().to_owned())]);
    let versions = library(directories(), own("v.json")).versions(&Value::Null, "", &sources).await.unwrap();
    assert_eq!(versions.unwrap().app_version, "v9");
    let error = library(directories(), own("w.json")).versions(&Value::Null, "", &sources).await.unwrap_err();
    assert_eq!(error.to_string(), "read the version in a/w.json: there is no such file");
    assert_eq!(
        library(directories(), FixedVersionSource(None)).versions(&Value::Null, "", &sources).await.unwrap(),
        None
    );
}
