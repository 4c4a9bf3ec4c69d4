//! The role `source-server` as a process, and reports with what Git says where Argo CD does not.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use axum::extract::Query;
use axum::routing::get;
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use git2::{IndexEntry, IndexTime, Oid, Repository, Signature, Time};
use loadtest::process::Start;
use loadtest::sim::Simulation;
use loadtest::sim::server::serve;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::forge::Forge;
use crate::runtime::{PROGRAM, Runtime, eventually, http_client};
use crate::told;

pub(crate) const URL: &str = "https://git.example/repo.git";
const CHART: &str = "name: shop\nappVersion: \"2.7.1\"\n";
pub(crate) const THING: &str = "# By hand.\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: thing}\n";

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
pub(crate) struct Kept {
    pub(crate) folder: TempDir,
    pub(crate) revision: String,
}

impl Kept {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let revision = repository(&folder.path().join("repo")).to_string();
        std::fs::write(folder.path().join("token"), "callers-token\n").unwrap();
        Self { folder, revision }
    }

    pub(crate) fn place(&self) -> String {
        format!("{URL}={}", self.folder.path().join("repo").display())
    }

    pub(crate) fn token(&self) -> PathBuf {
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

    /// A source server with these settings.
    pub(crate) async fn server_of(&self, settings: &Value) -> Runtime {
        let file = self.folder.path().join("settings.yaml");
        std::fs::write(&file, settings.to_string()).unwrap();
        let args = ["source-server".into(), "--config".into(), file.into()];
        Runtime::serving(Start {
            program: PROGRAM.into(),
            args: args.to_vec(),
            env: Vec::new(),
            directory: self.folder.path().to_path_buf(),
        })
        .await
    }

    /// Settings of a server that fetches what is below `open/`, and what the Secrets of this API server name.
    fn of_secrets(&self, cluster: &str, forge: &Forge) -> Value {
        json!({
            "kubernetes": {"server": cluster, "token": "any", "namespace": "argocd"},
            "log": {"format": "json"},
            "sourceServer": {
                "listen": "127.0.0.1:0", "callers": {"tokenFile": self.token()}, "timeout": "5m",
                "git": {"allowed": [forge.url("open")], "repositories": {
                    "argocdSecrets": true, "directory": self.folder.path().join("clones"), "timeout": "5m",
                }},
            },
        })
    }

    /// An application of that repository, synced at its commit; a hook of it is in no file.
    pub(crate) fn put(&self, simulation: &Simulation, url: &str) {
        let mut object = told::application("web", &told::thing());
        object["spec"]["source"]["repoURL"] = json!(url);
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
pub(crate) fn reported(simulation: &Simulation, resource: Option<&str>) -> Option<Value> {
    let is_it = |name: Option<&str>| name == resource;
    let all = simulation.platform.last();
    let (_, last) =
        all.into_iter().find(|(entity, _)| is_it(entity.resource.as_ref().map(|key| key.name.as_str())))?;
    serde_json::from_slice(&last.payload?).ok()
}

pub(crate) fn carries_what_git_says(simulation: &Simulation) -> bool {
    let (app, thing) = (reported(simulation, None), reported(simulation, Some("thing")));
    let (Some(app), Some(thing)) = (app, thing) else { return false };
    app["appVersions"] == json!({"appVersion": "2.7.1", "dependencies": {"deps": CHART}})
        && thing["source"]["path"] == "shop/thing.yaml"
        && thing["source"]["gitManifest"] == THING
}

#[tokio::test]
async fn reports_carry_what_git_says_where_argo_cd_says_nothing_of_it() {
    let (kept, simulation) = (Kept::new(), told::world(|_| {}).await);
    kept.put(&simulation, URL);
    let settings = json!({
        "reporter": {"sources": {"from": "here"}}, "sourceServer": {"repositories": [kept.place()]},
    });
    let runtime = Runtime::start(&simulation, &settings).await;
    eventually("what git says", || carries_what_git_says(&simulation)).await;
    eventually("the hook, which no file makes", || {
        reported(&simulation, Some("hook")).is_some_and(|hook| {
            let manifest = hook["source"]["gitManifest"].as_str();
            hook["source"]["path"] == "" && manifest.is_some_and(|text| text.contains("kind: ConfigMap"))
        })
    })
    .await;
    runtime.stop().await;
}

#[tokio::test]
async fn reports_carry_what_git_says_of_a_repository_that_is_fetched() {
    let (kept, simulation) = (Kept::new(), told::world(|_| {}).await);
    let url = format!("file://{}", kept.folder.path().join("repo").display());
    kept.put(&simulation, &url);
    let repositories = json!({"files": true, "directory": kept.folder.path().join("clones")});
    let settings = json!({
        "reporter": {"sources": {"from": "here"}},
        "sourceServer": {"git": {"allowed": [url], "repositories": repositories}},
    });
    let runtime = Runtime::start(&simulation, &settings).await;
    eventually("what git says", || carries_what_git_says(&simulation)).await;
    runtime.stop().await;
}

/// A Secret of Argo CD's that names a repository.
fn secret(name: &str, url: &str, password: &str) -> Value {
    // `git`, `ada`.
    let mut data = json!({"type": "Z2l0", "username": "YWRh"});
    for (key, value) in [("url", url), ("password", password)] {
        data[key] = json!(BASE64.encode(value));
    }
    let labels = json!({"argocd.argoproj.io/secret-type": "repository"});
    json!({"metadata": {"namespace": "argocd", "name": name, "labels": labels}, "data": data})
}

/// An API server that has these Secrets, for whoever asks for those of repositories.
async fn api_server(secrets: Vec<Value>) -> String {
    let list = json!({"apiVersion": "v1", "kind": "SecretList", "items": secrets});
    let listed = async move |Query(query): Query<HashMap<String, String>>| {
        let selector = "argocd.argoproj.io/secret-type in (repository,repo-creds)";
        assert_eq!(query["labelSelector"], selector);
        Json(list)
    };
    let project = |name: &str, repositories: &[&str]| json!({"metadata": {"name": name, "resourceVersion": "1"}, "spec": {"sourceRepos": repositories}});
    let mut heir = project("heir", &[]);
    heir["metadata"]["labels"] = json!({"inherits": "all"});
    let projects =
        json!({"items": [project("default", &["*"]), project("team", &["*"]), project("narrow", &[]), heir]});
    let global = "- {projectName: default, labelSelector: {matchLabels: {inherits: all}}}";
    let settings = json!({"metadata": {"resourceVersion": "1"}, "data": {"globalProjects": global}});
    let router = Router::new()
        .route("/api/v1/namespaces/argocd/secrets", get(listed))
        .route("/api/v1/namespaces/argocd/configmaps/argocd-cm", get(async move || Json(settings)))
        .route("/apis/argoproj.io/v1alpha1/namespaces/argocd/appprojects", get(async move || Json(projects)));
    serve(router).await.unwrap()
}

#[tokio::test]
async fn repositories_elsewhere_are_fetched_where_that_is_allowed_and_no_others_are_called() {
    let (kept, forge) = (Kept::new(), Forge::new().await);
    let all =
        ["open/repo.git", "open/vanished.git", "private/right.git", "private/wrong.git", "other/repo.git"];
    let mut revision = String::new();
    for name in all {
        revision = repository(&forge.directory(name)).to_string();
    }
    let cluster = api_server(vec![
        secret("right", &forge.url("private/right.git"), "right"),
        secret("wrong", &forge.url("private/wrong.git"), "hidden-word"),
    ])
    .await;
    let server = kept.server_of(&kept.of_secrets(&cluster, &forge)).await;
    let client = http_client();
    let ask = async |url: &str, revision: &str| {
        let request = client.get(format!("{}/v1/commit", server.url())).bearer_auth("callers-token");
        let answer = request.query(&[("repoURL", url), ("revision", revision)]).send().await.unwrap();
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap())
    };
    for name in ["open/repo.git", "open/vanished.git", "private/right.git"] {
        let (status, told) = ask(&forge.url(name), "").await;
        assert_eq!((status, &told["revision"]), (200, &json!(revision)), "{told}");
    }
    let why = async |url: &str, revision: &str| {
        let (status, told) = ask(url, revision).await;
        (status, told["error"].as_str().unwrap().to_owned())
    };
    let (open, wrong, other) =
        (forge.url("open/repo.git"), forge.url("private/wrong.git"), forge.url("other/repo.git"));
    assert_eq!(why(&open, "none").await, (404, format!("{open} has no branch, tag or commit none")));
    let refused = format!(
        "{wrong} refused the credentials of the Secret argocd/wrong: they are wrong, expired, or may not read it"
    );
    assert_eq!(why(&wrong, "").await, (502, refused));
    let none = forge.url("open/none.git");
    let nothing_at = |url: &str| {
        let more = "it was moved or deleted, or the credentials may not see it";
        (404, format!("no repository is at {url}: {more}"))
    };
    assert_eq!(why(&none, "").await, nothing_at(&none));
    let not_allowed = |url: &str| {
        let more = "add how it begins to sourceServer.git.allowed, or give Argo CD a Secret for it that \
                    sourceServer.git.repositories.argocdSecrets reads";
        (403, format!("{url} may not be fetched: {more}"))
    };
    let (nobody, beside) = (forge.url("private/nobody.git"), forge.url("open2/repo.git"));
    for url in [&other, &nobody, &beside, "http://169.254.169.254/latest", "ssh://git@127.0.0.1/a"] {
        assert_eq!(why(url, "").await, not_allowed(url));
    }
    let upwards = forge.url("open/..%2fother/repo.git");
    for (url, more) in [
        (upwards.as_str(), "its path leads upwards"),
        (
            "http://ada:hidden-word@127.0.0.1/a",
            "it holds a password: give it in a Secret, a file or the environment",
        ),
    ] {
        let refused = format!("the address of the repository is refused: {more}");
        assert_eq!(why(url, "").await, (400, refused));
    }
    for name in ["other/", "open2/", "private/nobody"] {
        assert!(!forge.was_asked(name), "{name} was called");
    }
    // What is here of a repository that vanished is told of; what is not, is not.
    let vanished = forge.url("open/vanished.git");
    std::fs::remove_dir_all(forge.directory("open/vanished.git")).unwrap();
    assert_eq!(ask(&vanished, &revision).await.0, 200);
    assert_eq!(why(&vanished, "other").await, nothing_at(&vanished));
    let lines = server.stop().await;
    let warned = lines.iter().filter(|line| line.message == "a repository could not be fetched").count();
    assert_eq!(warned, 1);
    assert!(lines.iter().all(|line| !line.fields.to_string().contains("hidden-word")));
}

#[tokio::test]
async fn a_directory_that_is_not_there_is_said_at_the_start_and_read_once_it_is() {
    let kept = Kept::new();
    let (there, elsewhere) = (kept.folder.path().join("repo"), kept.folder.path().join("moved"));
    std::fs::rename(&there, &elsewhere).unwrap();
    let server = kept.server().await;
    let said = "a directory of sourceServer.repositories is not there: mount it, or correct the path; until then what \
                is asked of its repository is refused";
    assert_eq!(server.says(said).await.fields["directory"], there.display().to_string());
    let client = http_client();
    let ask = async || {
        let request = client.get(format!("{}/v1/commit", server.url())).bearer_auth("callers-token");
        request.query(&[("repoURL", URL)]).send().await.unwrap().status().as_u16()
    };
    assert_ne!(ask().await, 200);
    std::fs::rename(&elsewhere, &there).unwrap();
    assert_eq!(ask().await, 200);
    server.stop().await;
}

#[tokio::test]
async fn an_application_is_told_only_of_what_its_project_may_have() {
    let (kept, forge) = (Kept::new(), Forge::new().await);
    repository(&forge.directory("private/team.git"));
    repository(&forge.directory("open/repo.git"));
    let (team, open) = (forge.url("private/team.git"), forge.url("open/repo.git"));
    let mut of_team = secret("team", &team, "right");
    of_team["data"]["project"] = json!(BASE64.encode("team"));
    let cluster = api_server(vec![of_team]).await;
    let server = kept.server_of(&kept.of_secrets(&cluster, &forge)).await;
    let client = http_client();
    let asked = async |project: &str, url: &str| {
        let app = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"namespace": "argocd", "name": "web"},
            "spec": {"project": project, "source": {"repoURL": url, "path": "."}},
        });
        let request = client.post(format!("{}/v1/changes", server.url())).bearer_auth("callers-token");
        let answer = request.json(&json!({"app": app, "to": "HEAD"})).send().await.unwrap();
        let (status, told) = (answer.status().as_u16(), answer.json::<Value>().await.unwrap());
        (status, told["error"].as_str().unwrap_or_default().to_owned())
    };
    for (project, url) in [("team", &team), ("default", &open), ("heir", &open)] {
        assert_eq!(asked(project, url).await, (200, String::new()), "{project} and {url}");
    }
    let of_others = |project: &str| {
        let more = "give Argo CD a Secret for it with that project, or without any";
        (403, format!("{team} has credentials of other projects than {project} alone: {more}"))
    };
    assert_eq!(asked("default", &team).await, of_others("default"));
    assert_eq!(asked("heir", &team).await, of_others("heir"));
    let none = format!("{open} is no repository of AppProject narrow: add it to spec.sourceRepos there");
    assert_eq!(asked("narrow", &open).await, (403, none));
    let gone = "there is no AppProject gone in namespace argocd".to_owned();
    assert_eq!(asked("gone", &open).await, (403, gone));
    server.stop().await;
}

#[tokio::test]
async fn reports_carry_what_the_source_server_says_and_go_without_it_while_it_is_away() {
    let (kept, simulation) = (Kept::new(), told::world(|_| {}).await);
    kept.put(&simulation, URL);
    let server = kept.server().await;
    let sources = |url: &str| json!({"reporter": {"sources": {"from": "server", "url": url, "tokenFile": kept.token()}}});
    let runtime = Runtime::start(&simulation, &sources(server.url())).await;
    eventually("what git says", || carries_what_git_says(&simulation)).await;
    runtime.stop().await;
    server.stop().await;

    let simulation = told::world(|_| {}).await;
    kept.put(&simulation, URL);
    let runtime = Runtime::start(&simulation, &sources("http://127.0.0.1:9")).await;
    eventually("a report without it", || reported(&simulation, Some("thing")).is_some()).await;
    let thing = reported(&simulation, Some("thing")).unwrap();
    assert_eq!(thing["source"]["path"], "");
    runtime
        .says("the source server did not answer; what it says is missing in a report, and asked for again")
        .await;
    runtime.stop().await;
}

/// A repository of the server's own machine is refused by name, not told as a server that is away.
#[tokio::test]
async fn a_repository_of_its_own_machine_that_the_source_server_may_not_read_is_said_to_be_refused() {
    let (kept, simulation) = (Kept::new(), told::world(|_| {}).await);
    let url = format!("file://{}", kept.folder.path().join("repo").display());
    kept.put(&simulation, &url);
    let token = kept.token();
    let clones = kept.folder.path().join("clones");
    let settings = json!({"sourceServer": {
        "listen": "127.0.0.1:0", "callers": {"tokenFile": &token},
        "git": {"allowed": [&url], "repositories": {"directory": clones}},
    }});
    let server = kept.server_of(&settings).await;
    let asked = http_client().get(format!("{}/v1/commit", server.url()));
    let answer = asked.query(&[("repoURL", &url)]).bearer_auth("callers-token").send().await.unwrap();
    let why = format!("{url} is on this machine, where repositories are read only if `files` allows it");
    assert_eq!(answer.status().as_u16(), 403);
    assert_eq!(answer.json::<Value>().await.unwrap(), json!({"error": why}));

    let from = json!({"from": "server", "url": server.url(), "tokenFile": token});
    let runtime = Runtime::start(&simulation, &json!({"reporter": {"sources": from}})).await;
    let line = runtime
        .says("the source server refused; what it says is missing in a report, and asked for again")
        .await;
    assert_eq!(line.field("repositories"), url);
    assert!(line.field("error").ends_with(": it answered 403"), "{}", line.field("error"));
    let lines = runtime.stop().await;
    assert!(lines.iter().all(|line| !line.message.contains("did not answer")));
    server.stop().await;
}

#[tokio::test]
async fn the_source_server_answers_who_may_ask() {
    let kept = Kept::new();
    let server = kept.server().await;
    let app =
        json!({"app": {"spec": {"source": {"repoURL": URL, "path": "shop"}}}, "revision": kept.revision});
    let client = http_client();
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

pub(crate) fn refused(flags: &[&str]) -> String {
    let output = Command::new(PROGRAM).arg("source-server").args(flags).env_clear().output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{flags:?}");
    let text = String::from_utf8(output.stderr).unwrap();
    text.lines().filter(|line| line.starts_with("gitops-runtime:")).collect::<Vec<_>>().join("\n")
}

#[test]
fn without_repositories_or_callers_it_does_not_start() {
    let nothing = "gitops-runtime: no repository is configured: say where each is, such as --repository \
                   https://git.example.com/mono.git=/repositories/mono, or which are fetched, such as --fetch \
                   https://git.example.com/team";
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
