//! Which commits changed an application: as the role `change-revision` reports it, and as an application's own report says it.

use jiff::Timestamp;
use serde_json::{Value, json};
use stages_platform_store::{SourceChange, View};

use crate::forms::event;
use crate::support::{Platform, config, gzip, refused, start, taken};

const BEGAN: &str = "2026-11-21T11:00:00Z";

fn application(annotations: &Value) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "shop", "namespace": "argocd", "uid": "u", "resourceVersion": "1", "annotations": annotations},
        "spec": {"sources": [{"repoURL": "https://git.example/one"}, {"repoURL": "https://git.example/two"}]},
        "status": {"operationState": {
            "phase": "Succeeded", "startedAt": BEGAN, "finishedAt": "2026-11-21T11:00:05Z",
            "syncResult": {"revisions": ["abc", "def"]},
        }},
    })
}

impl Platform {
    async fn told(&self, body: &Value) {
        let headers = [("authorization", &*self.token), ("content-encoding", "gzip")];
        let body = gzip(body.to_string().as_bytes());
        assert_eq!(self.post("/2.0/api/events/changes", &headers, body).await, taken());
    }

    /// What the one deployment of the application brought.
    async fn brought(&self) -> Vec<SourceChange> {
        let mut all = self.store.deployments(self.runtime.id, ("argocd", "shop")).await.unwrap();
        assert_eq!(all.len(), 1);
        all.remove(0).changes
    }
}

#[tokio::test]
async fn what_changed_an_application_stands_with_its_deployment_and_is_answered() {
    let platform = start(config()).await;
    let commit = json!({
        "revision": "abc", "author": "Ada <ada@example.com>", "date": "2026-11-21T10:00:00Z", "message": "raise it",
        "madeFrom": {"repoURL": "https://git.example/dry", "revision": "dry", "author": "Bob", "date": "2026-11-21T09:00:00Z", "message": "first"},
        "paths": ["apps/shop/x.yaml", 7, "apps/shop/y.yaml"], "morePaths": 3,
        "diffs": [
            {"path": "apps/shop/x.yaml", "text": "@@ -1,1 +1,1 @@\n-a: 1\n+a: 2\n", "cut": true}, 7,
            {"path": "apps/shop/y.yaml", "untold": "binary", "text": 7},
        ],
    });
    let odd = json!({"revision": "aab", "madeFrom": 7});
    let whole = json!({"data": {
        "namespace": "argocd", "name": "shop", "uid": "u", "startedAt": BEGAN, "changeRevisions": ["abc", ""],
        "sources": [
            {"repoURL": "https://git.example/one", "revision": "abc", "previousRevision": "aaa", "changes": [commit, odd], "more": true},
            {"repoURL": "https://git.example/two", "revision": "def", "changes": [], "noneIsNew": true},
        ],
    }});
    platform.told(&whole).await;
    platform.told(&whole).await;
    assert_eq!(platform.report(&event(&application(&json!({})), "01")).await, taken());
    let brought = serde_json::to_value(platform.brought().await).unwrap();
    let expected = json!([
        {
            "repository": "https://git.example/one", "revision": "abc", "previous": "aaa", "more": true, "noneIsNew": false,
            "error": "", "commits": [{
                "revision": "abc", "author": "Ada <ada@example.com>", "date": "2026-11-21T10:00:00Z", "message": "raise it",
                "madeFrom": {
                    "repository": "https://git.example/dry", "revision": "dry", "author": "Bob", "date": "2026-11-21T09:00:00Z",
                    "message": "first",
                },
                "paths": ["apps/shop/x.yaml", "apps/shop/y.yaml"], "morePaths": 3,
            }, {"revision": "aab", "author": "", "date": "", "message": "", "paths": [], "morePaths": 0}],
        },
        {
            "repository": "https://git.example/two", "revision": "def", "previous": "", "more": false, "noneIsNew": true,
            "error": "", "commits": [],
        },
    ]);
    assert_eq!(brought, expected);
    let page = platform.get("/api/v1/applications/argocd/shop/timeline").await;
    assert_eq!(page.body["deployments"][0]["changes"], expected);
    let known = platform.shop().await;
    let began: Timestamp = BEGAN.parse().unwrap();
    let told = platform.store.changes_at(known.id, began.as_millisecond()).await.unwrap();
    assert_eq!(
        serde_json::to_value(&told[0].commits[0].diffs).unwrap(),
        json!([
            {"path": "apps/shop/x.yaml", "text": "@@ -1,1 +1,1 @@\n-a: 1\n+a: 2\n", "untold": "", "cut": true},
            {"path": "", "text": "", "untold": "", "cut": false},
            {"path": "apps/shop/y.yaml", "text": "", "untold": "binary", "cut": false},
        ])
    );
    // Of an end, and of a sync that has not begun, there is nothing to keep.
    let data = |data: Value| json!({ "data": data });
    platform.told(&data(json!({"namespace": "argocd", "name": "shop", "deleted": true}))).await;
    platform.told(&data(json!({"namespace": "argocd", "name": "shop", "sources": []}))).await;
    platform
        .told(&data(json!({"namespace": "argocd", "name": "shop", "startedAt": "soon", "sources": []})))
        .await;
    assert_eq!(serde_json::to_value(platform.brought().await).unwrap(), expected);
}

#[tokio::test]
async fn the_commits_that_a_report_notes_stand_with_its_deployment_and_an_odd_note_is_no_reason_to_refuse_it()
{
    let platform = start(config()).await;
    let noted = |note: &str| application(&json!({"app.meta.revisions-metadata": note}));
    for odd in ["", "[]", "{", "{\"changeRevisions\": 7}", "{\"changeRevisions\": [7, {\"revision\": 7}]}"] {
        assert_eq!(platform.report(&event(&noted(odd), "01")).await, taken(), "{odd}");
    }
    assert!(platform.brought().await.iter().all(|source| source.commits.is_empty()));
    let metadata = json!({"author": "Ada", "date": "2026-11-21T10:00:00Z", "message": "raise it"});
    let note = json!({
        "syncRevisions": [{"revision": "abc"}, {"revision": "def"}],
        "changeRevisions": [{"revision": "aaa", "metadata": metadata}, {"revision": ""}],
    });
    assert_eq!(platform.report(&event(&noted(&note.to_string()), "02")).await, taken());
    let brought = platform.brought().await;
    let [first, second] = &brought[..] else { panic!("{brought:?}") };
    assert_eq!((&*first.repository, &*first.revision), ("https://git.example/one", "abc"));
    assert_eq!(
        (&*second.repository, &*second.revision, second.commits.len()),
        ("https://git.example/two", "def", 0)
    );
    let commit = &first.commits[0];
    assert_eq!((&*commit.revision, &*commit.author, &*commit.message), ("aaa", "Ada", "raise it"));
    assert_eq!(commit.paths, [] as [String; 0]);
}

#[tokio::test]
async fn the_commits_that_stand_beside_an_application_are_kept_as_those_that_it_is_annotated_with() {
    let commit = |author: &str| json!({"author": author, "date": "2026-11-21T10:00:00Z", "message": format!("of {author}")});
    let beside = json!({
        "syncRevisions": [{"revision": "abc", "metadata": commit("Val")}, {"revision": "def", "metadata": commit("Ada")}],
        "changeRevisions": [{"revision": "aaa", "metadata": commit("Eve")}, {"revision": "ddd", "metadata": commit("Bob")}],
    });
    let mut shop = application(&json!({}));
    shop["spec"]["sources"][0]["ref"] = json!("values");
    let told = async |application: &Value, beside: &Value| {
        let platform = start(config()).await;
        let headers = [("authorization", &*platform.token), ("content-encoding", "gzip")];
        let body = json!({
            "timestamp": "2026-11-21T12:00:01.000Z", "actualManifest": application.to_string(), "revisionsMetadata": beside,
        });
        let body = gzip(body.to_string().as_bytes());
        assert_eq!(platform.post("/2.0/api/applications", &headers, body).await, taken(), "{beside}");
        let known = platform.store.visible_one(&View::ALL, (&platform.runtime.name, "argocd", "shop")).await;
        let known = known.unwrap().unwrap();
        let commits = platform.brought().await.into_iter().flat_map(|source| source.commits);
        let commits: Vec<_> =
            commits.map(|of| [of.revision, of.author, of.message, of.date].join("; ")).collect();
        ((known.author, known.message), commits)
    };
    let text = |author: &str, message: &str| (author.to_owned(), message.to_owned());
    let changed = ["aaa; Eve; of Eve; 2026-11-21T10:00:00Z", "ddd; Bob; of Bob; 2026-11-21T10:00:00Z"];
    let changed = changed.map(str::to_owned).to_vec();
    // The first source has no manifests of its own.
    assert_eq!(told(&shop, &beside).await, (text("Ada", "of Ada"), changed));
    for odd in [
        json!(null),
        json!(7),
        json!("{}"),
        json!([]),
        json!({"syncRevisions": 7}),
        json!({"syncRevisions": [7, 7]}),
    ] {
        assert_eq!(told(&shop, &odd).await, (text("", ""), Vec::new()), "{odd}");
    }
    // What the application says itself goes before.
    shop["metadata"]["labels"] = json!({"app.meta.commit-author": "Own", "app.meta.commit-message": "own"});
    shop["metadata"]["annotations"] = json!({"app.meta.revisions-metadata": "{}"});
    assert_eq!(told(&shop, &beside).await, (text("Own", "own"), Vec::new()));
}

#[tokio::test]
async fn versions_of_charts_and_digests_of_registries_are_no_commits() {
    let platform = start(config()).await;
    let note = json!({
        "syncRevisions": [{"revision": "1.2.3"}, {"revision": "sha256:2d7a"}, {"revision": "abc"}],
        "changeRevisions": [{"revision": "1.2.3"}, {"revision": "sha256:2d7a"}, {"revision": "aaa"}],
    });
    let mut shop = application(&json!({"app.meta.revisions-metadata": note.to_string()}));
    shop["spec"]["sources"] = json!([
        {"repoURL": "https://charts.example", "chart": "web"},
        {"repoURL": "oci://registry.example/team/web", "path": "."},
        {"repoURL": "https://git.example/one", "path": "web"},
    ]);
    assert_eq!(platform.report(&event(&shop, "01")).await, taken());
    let brought = platform.brought().await;
    let told: Vec<_> = brought
        .iter()
        .map(|of| (&*of.repository, &*of.revision, of.commits.iter().map(|of| &*of.revision).collect()))
        .collect();
    let expected: [(&str, &str, Vec<&str>); 3] = [
        ("https://charts.example", "1.2.3", vec![]),
        ("oci://registry.example/team/web", "sha256:2d7a", vec![]),
        ("https://git.example/one", "abc", vec!["aaa"]),
    ];
    assert_eq!(told, expected);
}

#[tokio::test]
async fn what_is_no_report_of_changes_is_refused() {
    let platform = start(config()).await;
    let headers = [("authorization", &*platform.token)];
    let nobody = "the report names no application";
    let many = json!({"data": {"name": "shop", "sources": vec![json!({}); 101]}}).to_string();
    let long = json!({"data": {"name": "n".repeat(1_025)}}).to_string();
    let far = json!({"data": {"name": "shop", "namespace": "n".repeat(254)}}).to_string();
    for (body, text) in [
        ("x".to_owned(), "the body is not JSON that holds a report, at line 1 column 1"),
        ("{}".to_owned(), nobody),
        (r#"{"data": []}"#.to_owned(), nobody),
        (r#"{"data": {"name": 7}}"#.to_owned(), nobody),
        (many, "the report's sources has more than 100 entries"),
        (long, "the report's application's name is longer than 1024 bytes"),
        (far, "the report's application's namespace is longer than 253 bytes"),
    ] {
        assert_eq!(platform.post("/2.0/api/events/changes", &headers, body).await, refused(400, text));
    }
}
