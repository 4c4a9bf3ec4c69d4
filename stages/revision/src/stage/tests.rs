use git2::{Repository, Signature, Time};
use pipeline_core::{Change, Key, Timestamp, Version};
use stages_git::Checkouts;
use stages_git::remote::{Access, Config, Projects};

use super::*;

const FILE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: of-another-project}\n";

fn event(namespace: &str, project: &str, url: &str, revision: &str) -> Event {
    let object = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {"project": project, "source": {"repoURL": url, "path": "."}},
        "status": {
            "sync": {"status": "Synced", "revision": revision},
            "operationState": {"phase": "Succeeded", "syncResult": {"revision": revision}},
            "history": [{"revision": revision}],
        },
    });
    let key = Key::new(namespace, "web").unwrap();
    let change = Change::Applied { body: object.to_string().into() };
    Event::watched(key, "u".into(), Version(1), change, Timestamp::UNIX_EPOCH)
}

#[tokio::test]
async fn whoever_may_write_an_application_is_told_of_no_repository_that_its_project_does_not_permit() {
    let folder = tempfile::tempdir().unwrap();
    let made = Repository::init_bare(folder.path().join("secret.git")).unwrap();
    let mut tree = made.treebuilder(None).unwrap();
    tree.insert("thing.yaml", made.blob(FILE.as_bytes()).unwrap(), 0o100_644).unwrap();
    let tree = made.find_tree(tree.write().unwrap()).unwrap();
    let who = Signature::new("Ada", "ada@example.com", &Time::new(1_700_000_000, 0)).unwrap();
    let revision = made.commit(Some("HEAD"), &who, &who, "Secret\n", &tree, &[]).unwrap().to_string();
    let url = format!("file://{}", folder.path().join("secret.git").display());

    let config = Config { files: true, ..Config::new(folder.path().join("clones")) };
    let checkouts = Checkouts::new(config).await.unwrap();
    let project = |name: &str, repositories: &[&str], namespaces: &[&str]| {
        let spec = json!({"sourceRepos": repositories, "sourceNamespaces": namespaces});
        json!({"metadata": {"name": name}, "spec": spec})
    };
    let all = [project("owner", &["*"], &[]), project("tenant", &["https://git.example/*"], &["tenant-*"])];
    let projects = Some(Projects::read("argocd", &all, ""));
    checkouts.set_access(Access { projects, ..Access::default() });
    let redactor = Redactor::new(b"0123456789abcdef0123456789abcdef");
    let walks = Walks::new(checkouts, 100, 1 << 16, redactor.clone());
    let enrich = RevisionEnrichment::new(walks, redactor);
    let told = async |namespace: &str, project: &str| {
        let event = event(namespace, project, &url, &revision);
        let done = enrich.enrich(&event, None, &Attempt::at(Timestamp::UNIX_EPOCH)).await.unwrap();
        let report: Value = serde_json::from_slice(&done.reports[0].body).unwrap();
        (done.refetch, report)
    };
    let (refetch, report) = told("argocd", "owner").await;
    assert_eq!(refetch, None);
    assert!(report.to_string().contains("of-another-project"), "{report}");
    for (namespace, project, why) in [
        ("argocd", "tenant", format!("{url} is no repository of AppProject tenant: add it to spec.sourceRepos there")),
        (
            "tenant-a",
            "owner",
            "an application of namespace tenant-a is none of AppProject owner: add the namespace to spec.sourceNamespaces there"
                .to_owned(),
        ),
        ("argocd", "", "there is no AppProject default in namespace argocd".to_owned()),
    ] {
        let (refetch, report) = told(namespace, project).await;
        assert_eq!(report["sources"][0]["error"], why);
        assert_eq!(refetch, Some(Refetch::Incomplete), "it is looked at again");
        for hidden in ["of-another-project", "thing.yaml", "Secret", "Ada"] {
            assert!(!report.to_string().contains(hidden), "{hidden} stands in {report}");
        }
    }
}

#[tokio::test]
async fn what_a_registry_holds_is_told_with_its_digest_and_looked_for_in_no_repository() {
    const DIGEST: &str = "sha256:2d7a6b0c";
    let folder = tempfile::tempdir().unwrap();
    let checkouts = Checkouts::new(Config::new(folder.path().join("clones"))).await.unwrap();
    let redactor = Redactor::new(b"0123456789abcdef0123456789abcdef");
    let enrich = RevisionEnrichment::new(Walks::new(checkouts, 100, 1 << 16, redactor.clone()), redactor);
    let event = event("argocd", "default", "oci://registry.example.com/team/web", DIGEST);
    let done = enrich.enrich(&event, None, &Attempt::at(Timestamp::UNIX_EPOCH)).await.unwrap();
    let report: Value = serde_json::from_slice(&done.reports[0].body).unwrap();
    assert_eq!(done.refetch, None, "{report}");
    assert_eq!(report["changeRevisions"], json!([DIGEST]), "{report}");
    let source = &report["sources"][0];
    assert_eq!((&source["revision"], source.get("error")), (&json!(DIGEST), None), "{report}");
}

#[test]
fn what_is_hydrated_is_told_anew_when_it_is_synced_from_elsewhere_and_not_when_it_is_made_from_elsewhere() {
    let decided = |dry: &str, synced_from: &str| {
        let object = json!({
            "spec": {"source": {"repoURL": "https://example.com/old"}, "sourceHydrator": {
                "drySource": {"repoURL": "https://example.com/a", "path": dry},
                "syncSource": {"targetBranch": "environments/dev", "path": synced_from},
            }},
            "status": {"sync": {"status": "Synced", "revision": "b"}},
        });
        decision(&object, &synced(&object), None)
    };
    assert_eq!(decided("charts/web", "web"), decided("charts/shop", "web"));
    assert_ne!(decided("charts/web", "web"), decided("charts/web", "shop"));
}

#[tokio::test]
async fn of_a_commit_that_argo_cd_wrote_it_is_told_which_commit_of_people_it_was_made_from() {
    let folder = tempfile::tempdir().unwrap();
    let made = Repository::init_bare(folder.path().join("mono.git")).unwrap();
    let dry = "4f2a91c04f2a91c04f2a91c04f2a91c04f2a91c0";
    let note = json!({"repoURL": "https://git.example/mono", "drySha": dry, "author": "Ada <ada@example.com>",
        "date": "2026-11-25T10:00:00Z", "subject": "Raise it", "body": "Because."});
    let bot = Signature::new("Argo CD", "argo-cd@example.com", &Time::new(1_700_000_000, 0)).unwrap();
    let mut commits: Vec<git2::Oid> = Vec::new();
    for manifest in ["kind: Service\n", "kind: Service # by hand\n"] {
        let (mut below, mut tree) = (made.treebuilder(None).unwrap(), made.treebuilder(None).unwrap());
        below.insert("hydrator.metadata", made.blob(b"{}").unwrap(), 0o100_644).unwrap();
        below.insert("manifest.yaml", made.blob(manifest.as_bytes()).unwrap(), 0o100_644).unwrap();
        tree.insert("hydrator.metadata", made.blob(note.to_string().as_bytes()).unwrap(), 0o100_644).unwrap();
        tree.insert("web", below.write().unwrap(), 0o040_000).unwrap();
        let tree = made.find_tree(tree.write().unwrap()).unwrap();
        let parents: Vec<_> = commits.iter().map(|id| made.find_commit(*id).unwrap()).collect();
        let parents: Vec<_> = parents.iter().rev().take(1).collect();
        commits.push(made.commit(Some("HEAD"), &bot, &bot, "Hydrate\n", &tree, &parents).unwrap());
    }
    let url = format!("file://{}", folder.path().join("mono.git").display());
    let config = Config { files: true, ..Config::new(folder.path().join("clones")) };
    let redactor = Redactor::new(b"0123456789abcdef0123456789abcdef");
    let walks = Walks::new(Checkouts::new(config).await.unwrap(), 100, 0, redactor.clone());
    let event = event("argocd", "default", &url, &commits[1].to_string());
    let mut object: Value = serde_json::from_slice(event.body().unwrap()).unwrap();
    let told = async |object: &Value| {
        let change = Change::Applied { body: object.to_string().into() };
        let event = Event::watched(event.key.clone(), "u".into(), Version(1), change, Timestamp::UNIX_EPOCH);
        let enrich = RevisionEnrichment::new(walks.clone(), redactor.clone());
        let done = enrich.enrich(&event, None, &Attempt::at(Timestamp::UNIX_EPOCH)).await.unwrap();
        serde_json::from_slice::<Value>(&done.reports[0].body).unwrap()["sources"][0]["changes"].clone()
    };
    assert_eq!(told(&object).await[1]["madeFrom"], Value::Null, "it is an application like any other");
    object["spec"] = json!({"sourceHydrator": {
        "drySource": {"repoURL": url, "path": "charts/web", "targetRevision": "main"},
        "syncSource": {"targetBranch": "environments/dev", "path": "web"},
    }});
    let changes = told(&object).await;
    assert_eq!(changes[0]["madeFrom"], Value::Null, "somebody wrote it by hand: {changes}");
    let expected = json!({"repoURL": "https://git.example/mono", "revision": dry, "author": "Ada <ada@example.com>",
        "date": "2026-11-25T10:00:00Z", "message": "Raise it\n\nBecause."});
    assert_eq!(
        (&changes[1]["author"], &changes[1]["madeFrom"]),
        (&json!("Argo CD <argo-cd@example.com>"), &expected)
    );
}

const DIGESTS: [&str; 3] = ["sha256:1a", "sha256:2b", "sha256:3c"];

/// Of an application that was synced to these, the last of them the newest, from a registry that its address has a password for.
fn synced_with_a_password(digests: &[&str]) -> Event {
    let mut event = event(
        "argocd",
        "default",
        "oci://ada:hunter2hunter2@registry.example.com/web",
        digests[digests.len() - 1],
    );
    let mut object: Value = serde_json::from_slice(event.body().unwrap()).unwrap();
    object["status"]["history"] = digests.iter().map(|digest| json!({"revision": digest})).collect();
    event.change = Change::Applied { body: object.to_string().into() };
    event
}

#[tokio::test]
async fn no_password_of_an_address_is_kept_and_what_was_told_of_it_is_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let checkouts = Checkouts::new(Config::new(folder.path().join("clones"))).await.unwrap();
    let redactor = Redactor::new(b"0123456789abcdef0123456789abcdef");
    let enrich = RevisionEnrichment::new(Walks::new(checkouts, 100, 1 << 16, redactor.clone()), redactor);
    let told = async |event: &Event, known: Option<&Record>| {
        enrich.enrich(event, known, &Attempt::at(Timestamp::UNIX_EPOCH)).await.unwrap()
    };
    let first = told(&synced_with_a_password(&DIGESTS[..1]), None).await;
    let mut settle = first.settle.unwrap();
    let state = String::from_utf8(settle.state.to_vec()).unwrap();
    assert!(state.contains(DIGESTS[0]) && !state.contains("hunter2"), "{state}");
    let raw =
        json!([{"repo_url": "oci://ada:hunter2hunter2@registry.example.com/web", "revision": DIGESTS[0]}]);
    // As it is kept now, and as it was kept once.
    for state in [state, raw.to_string()] {
        settle.state = state.into();
        let known = Record::checkpoint(Record::acknowledge(None, &first.reports[0]), &settle);
        let next = told(&synced_with_a_password(&DIGESTS), Some(&known)).await;
        let report: Value = serde_json::from_slice(&next.reports[0].body).unwrap();
        assert_eq!(report["sources"][0]["previousRevision"], DIGESTS[0], "{report}");
        let state = next.settle.unwrap().state;
        assert!(!String::from_utf8(state.to_vec()).unwrap().contains("hunter2"));
    }
}

#[tokio::test(start_paused = true)]
async fn repositories_that_do_not_come_are_told_of_together_and_keep_nobody_from_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config { files: true, concurrent: 1, ..Config::new(folder.path().join("clones")) };
    let checkouts = Checkouts::new(config).await.unwrap();
    let _hanging = crate::testing::all_slots_taken(&checkouts).await;
    let redactor = Redactor::new(b"0123456789abcdef0123456789abcdef");
    let enrich = RevisionEnrichment::new(Walks::new(checkouts, 100, 1 << 16, redactor.clone()), redactor);
    let mut event = event("argocd", "default", "", "");
    let mut object: Value = serde_json::from_slice(event.body().unwrap()).unwrap();
    let url = |name: &str| format!("file://{}/{name}.git", folder.path().display());
    let addresses = [url("a"), url("b"), url("c"), "oci://registry.example.com/web".to_owned()];
    let sources: Vec<Value> = addresses.iter().map(|url| json!({"repoURL": url, "path": "."})).collect();
    let revisions = ["a".repeat(40), "b".repeat(40), "c".repeat(40), DIGESTS[0].to_owned()];
    object["spec"] = json!({"project": "default", "sources": sources});
    object["status"] = json!({"sync": {"status": "Synced", "revisions": revisions}});
    event.change = Change::Applied { body: object.to_string().into() };
    let (began, attempt) = (tokio::time::Instant::now(), Attempt::at(Timestamp::UNIX_EPOCH));
    let told = enrich.enrich(&event, None, &attempt);
    let told = tokio::time::timeout(std::time::Duration::from_secs(3_600), told).await.unwrap().unwrap();
    assert!(began.elapsed() < std::time::Duration::from_secs(60), "{:?}", began.elapsed());
    assert_eq!(told.refetch, Some(Refetch::Incomplete));
    let report: Value = serde_json::from_slice(&told.reports[0].body).unwrap();
    let shown = |name: &str| {
        report["sources"].as_array().unwrap().iter().map(|of| of[name].clone()).collect::<Vec<_>>()
    };
    let late = "its repository is not here after 30 s, and is waited for no longer";
    assert_eq!(shown("error"), [json!(late), json!(late), json!(late), Value::Null]);
    assert_eq!(shown("changeRevision")[3], DIGESTS[0]);
}

#[tokio::test]
async fn of_more_than_64_sources_the_first_are_told_and_of_the_rest_that_they_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let checkouts = Checkouts::new(Config::new(folder.path().join("clones"))).await.unwrap();
    let redactor = Redactor::new(b"0123456789abcdef0123456789abcdef");
    let enrich = RevisionEnrichment::new(Walks::new(checkouts, 100, 1 << 16, redactor.clone()), redactor);
    let told = async |count: usize| {
        let mut event = event("argocd", "default", "", "");
        let mut object: Value = serde_json::from_slice(event.body().unwrap()).unwrap();
        let source = |n: usize| json!({"repoURL": format!("oci://registry.example.com/{n}"), "path": "."});
        let revisions: Vec<String> = (0..count).map(|n| format!("sha256:{n:064}")).collect();
        object["spec"] = json!({"project": "default", "sources": (0..count).map(source).collect::<Vec<_>>()});
        object["status"] = json!({"sync": {"status": "Synced", "revisions": revisions}});
        event.change = Change::Applied { body: object.to_string().into() };
        let done = enrich.enrich(&event, None, &Attempt::at(Timestamp::UNIX_EPOCH)).await.unwrap();
        // It is whole all the same: no later try tells more.
        assert_eq!(done.refetch, None);
        let report: Value = serde_json::from_slice(&done.reports[0].body).unwrap();
        report["sources"].as_array().unwrap().clone()
    };
    assert_eq!(told(64).await.len(), 64);
    let all = told(67).await;
    assert_eq!(all.len(), 65);
    assert!(all[..64].iter().all(|of| of["changeRevision"].is_string() && of["error"].is_null()));
    assert_eq!(
        all[64]["error"],
        "3 more sources are not told, as one application is told with 64: make several applications of them"
    );
}
