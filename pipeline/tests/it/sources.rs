//! The role `source-server` as a process, and reports with what Git says where Argo CD does not.

use std::path::{Path, PathBuf};
use std::process::Command;

use git2::{IndexEntry, IndexTime, Oid, Repository, Signature, Time};
use loadtest::process::Start;
use loadtest::sim::Simulation;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::runtime::{PROGRAM, Runtime, eventually};
use crate::told;

const URL: &str = "https://git.example/repo.git";
const CHART: &str = "name: shop\nappVersion: \"2.7.1\"\n";
const THING: &str = "# By hand.\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: thing}\n";

/// A repository in a directory, and its only commit.
fn repository(directory: &Path) -> Oid {
    let made = Repository::init_bare(directory).unwrap();
    let mut index = git2::Index::new().unwrap();
    for (path, content) in [("shop/Chart.yaml", CHART), ("shop/thing.yaml", THING)] {
        let entry = IndexEntry {
            ctime: IndexTime::new(0, 0),
            mtime: IndexTime::new(0, 0),
            dev: 0,
            ino: 0,
            mode: 0o100_644,
            uid: 0,
            gid: 0,
            file_size: 0,
            id: made.blob(content.as_bytes()).unwrap(),
            flags: 0,
            flags_extended: 0,
            path: path.as_bytes().to_vec(),
        };
        index.add(&entry).unwrap();
    }
    let tree = made.find_tree(index.write_tree_to(&made).unwrap()).unwrap();
    let who = Signature::new("Ada", "ada@example.com", &Time::new(1_700_000_000, 0)).unwrap();
    made.commit(Some("HEAD"), &who, &who, "First\n", &tree, &[]).unwrap()
}

/// A folder with a repository and a token.
struct Kept {
    folder: TempDir,
    revision: String,
}

impl Kept {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let revision = repository(&folder.path().join("repo")).to_string();
        std::fs::write(folder.path().join("token"), "callers-token\n").unwrap();
        Self { folder, revision }
    }

    fn place(&self) -> String {
        format!("{URL}={}", self.folder.path().join("repo").display())
    }

    fn token(&self) -> PathBuf {
        self.folder.path().join("token")
    }

    async fn server(&self) -> Runtime {
        let token = self.token().display().to_string();
        let args = [
            "source-server",
            "--listen",
            "127.0.0.1:0",
            "--token-file",
            &token,
            "--repository",
            &self.place(),
        ];
        Runtime::serving(Start {
            program: PROGRAM.into(),
            args: args.into_iter().chain(["--set", "log.format=json"]).map(Into::into).collect(),
            env: Vec::new(),
            directory: self.folder.path().to_path_buf(),
        })
        .await
    }

    /// An application of that repository, synced at its commit; a hook of it is in no file.
    fn put(&self, simulation: &Simulation) {
        let mut object = told::application("web", &told::thing());
        object["spec"]["source"]["directory"] = json!({"recurse": true});
        object["status"]["sync"]["revision"] = json!(self.revision);
        object["status"]["history"][0]["revision"] = json!(self.revision);
        object["status"]["operationState"] = json!({
            "phase": "Succeeded", "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:01Z",
            "operation": {"sync": {"revision": self.revision}}, "syncResult": {"revision": self.revision},
        });
        told::put_object(simulation, object);
    }
}

/// The newest report of the application itself, and of its resource of this name.
fn reported(simulation: &Simulation, resource: Option<&str>) -> Option<Value> {
    let is_it = |name: Option<&str>| name == resource;
    let all = simulation.platform.last();
    let (_, last) =
        all.into_iter().find(|(entity, _)| is_it(entity.resource.as_ref().map(|key| key.name.as_str())))?;
    serde_json::from_slice(&last.payload?).ok()
}

fn carries_what_git_says(simulation: &Simulation) -> bool {
    let (app, thing) = (reported(simulation, None), reported(simulation, Some("thing")));
    let (Some(app), Some(thing)) = (app, thing) else { return false };
    app["appVersions"] == json!({"appVersion": "2.7.1", "dependencies": {"deps": CHART}})
        && thing["source"]["path"] == "shop/thing.yaml"
        && thing["source"]["gitManifest"] == THING
}

#[tokio::test]
async fn reports_carry_what_git_says_where_argo_cd_says_nothing_of_it() {
    let (kept, simulation) = (Kept::new(), told::world(|_| {}).await);
    kept.put(&simulation);
    let settings = json!({
        "reporter": {"sources": {"from": "here"}}, "sourceServer": {"repositories": [kept.place()]},
    });
    let runtime = Runtime::start(&simulation, &settings).await;
    eventually("what git says", || carries_what_git_says(&simulation)).await;
    let hook = reported(&simulation, Some("hook")).unwrap();
    assert_eq!(hook["source"]["path"], "", "no file makes it");
    assert!(hook["source"]["gitManifest"].as_str().unwrap().contains("kind: ConfigMap"));
    runtime.stop().await;
}

#[tokio::test]
async fn reports_carry_what_the_source_server_says_and_go_without_it_while_it_is_away() {
    let (kept, simulation) = (Kept::new(), told::world(|_| {}).await);
    kept.put(&simulation);
    let server = kept.server().await;
    let sources = |url: &str| json!({"reporter": {"sources": {"from": "server", "url": url, "tokenFile": kept.token()}}});
    let runtime = Runtime::start(&simulation, &sources(server.url())).await;
    eventually("what git says", || carries_what_git_says(&simulation)).await;
    runtime.stop().await;
    server.stop().await;

    let simulation = told::world(|_| {}).await;
    kept.put(&simulation);
    let runtime = Runtime::start(&simulation, &sources("http://127.0.0.1:9")).await;
    eventually("a report without it", || reported(&simulation, Some("thing")).is_some()).await;
    let thing = reported(&simulation, Some("thing")).unwrap();
    assert_eq!(thing["source"]["path"], "");
    runtime
        .says("the source server did not answer; what it says is missing in a report, and asked for again")
        .await;
    runtime.stop().await;
}

#[tokio::test]
async fn the_source_server_answers_who_may_ask() {
    let kept = Kept::new();
    let server = kept.server().await;
    let app =
        json!({"app": {"spec": {"source": {"repoURL": URL, "path": "shop"}}}, "revision": kept.revision});
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let ask = async |token: &str| {
        let request = client.post(format!("{}/getAppVersion", server.url())).bearer_auth(token).json(&app);
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap())
    };
    let version = json!({"appVersion": "2.7.1", "dependencies": {"helm/dependencies": CHART}});
    assert_eq!(ask("callers-token").await, (200, version));
    assert_eq!(ask("other").await, (403, json!({"error": "whoever has this token may not ask here"})));
    for (page, status) in [("/healthz", 200), ("/readyz", 200), ("/openapi.json", 200), ("/v1/commit", 401)] {
        assert_eq!(server.page(page).await.0, status, "{page}");
    }
    let ok = [("operation", "app_version"), ("status", "ok")];
    server.counts("gitops_runtime_source_requests_total", &ok, 1.0).await;
    let lines = server.stop().await;
    assert!(lines.iter().all(|line| line.level != "ERROR"));
}

fn refused(flags: &[&str]) -> String {
    let output = Command::new(PROGRAM).arg("source-server").args(flags).env_clear().output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{flags:?}");
    let text = String::from_utf8(output.stderr).unwrap();
    text.lines().filter(|line| line.starts_with("gitops-runtime:")).collect::<Vec<_>>().join("\n")
}

#[test]
fn without_repositories_or_callers_it_does_not_start() {
    let nothing = "gitops-runtime: no repository is configured: say where each is, such as --repository \
                   https://git.example.com/mono.git=/repositories/mono";
    assert_eq!(refused(&["--token-file", "token"]), nothing);
    let nobody = "gitops-runtime: nobody may ask: name the ServiceAccounts that may in sourceServer.callers.accounts, \
                  such as argocd/event-reporter, or set sourceServer.callers.tokenFile to a file with one token for all";
    assert_eq!(refused(&["--repository", "https://a/b=/c"]), nobody);
}

#[test]
fn what_it_answers_is_printed_for_programs() {
    let output = Command::new(PROGRAM).args(["source-server", "schema"]).env_clear().output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["openapi"], "3.1.0");
    assert!(document["paths"]["/getAppVersion"]["post"].is_object());
}
