//! Credentials of repositories in files that change, and in the environment.

use std::path::Path;

use git2::{Repository, Signature, Time};
use loadtest::process::Start;
use loadtest::sim::wait_for;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::forge::Forge;
use crate::runtime::{PROGRAM, Runtime, http_client};

/// A repository with one commit that holds nothing, and its id.
fn repository(directory: &Path) -> String {
    let made = Repository::init_bare(directory).unwrap();
    let tree = made.find_tree(made.treebuilder(None).unwrap().write().unwrap()).unwrap();
    let who = Signature::new("Ada", "ada@example.com", &Time::new(1_700_000_000, 0)).unwrap();
    made.commit(Some("HEAD"), &who, &who, "First\n", &tree, &[]).unwrap().to_string()
}

/// A source server that fetches what these settings say, with these variables.
async fn serve(folder: &Path, repositories: Value, env: Vec<(String, String)>) -> Runtime {
    std::fs::write(folder.join("token"), "callers-token").unwrap();
    let mut repositories = repositories;
    repositories["directory"] = json!(folder.join("clones"));
    let settings = json!({
        "log": {"format": "json"},
        "sourceServer": {
            "listen": "127.0.0.1:0", "callers": {"tokenFile": folder.join("token")}, "timeout": "5m",
            "git": {"repositories": repositories},
        },
    });
    let file = folder.join("settings.yaml");
    std::fs::write(&file, settings.to_string()).unwrap();
    let args = ["source-server", "--config", file.to_str().unwrap()];
    Runtime::serving(Start {
        program: PROGRAM.into(),
        args: args.into_iter().map(Into::into).collect(),
        env,
        directory: folder.to_path_buf(),
    })
    .await
}

/// What is told of the newest commit of a repository.
async fn ask(server: &Runtime, url: &str) -> (u16, Value) {
    let client = http_client();
    let request = client.get(format!("{}/v1/commit", server.url())).bearer_auth("callers-token");
    let answer = request.query(&[("repoURL", url)]).send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

#[tokio::test]
async fn a_password_in_a_file_is_followed_as_it_changes() {
    let (folder, forge) = (TempDir::new().unwrap(), Forge::new().await);
    let revision = repository(&forge.directory("private/a.git"));
    let team = folder.path().join("team");
    std::fs::create_dir(&team).unwrap();
    for (name, content) in
        [("url", forge.url("private")), ("username", "ada".into()), ("password", "hidden-word".into())]
    {
        std::fs::write(team.join(name), content).unwrap();
    }
    let server = serve(folder.path(), json!({"credentials": [team]}), Vec::new()).await;
    let url = forge.url("private/a.git");
    let refused = format!(
        "{url} refused the credentials of the files of {}: they are wrong, expired, or may not read it",
        team.display()
    );
    assert_eq!(ask(&server, &url).await, (502, json!({"error": refused})));
    // Nothing else is fetched with it, nor at all.
    let (status, told) = ask(&server, &forge.url("open/a.git")).await;
    assert_eq!(status, 403, "{told}");
    std::fs::write(team.join("password"), "right\n").unwrap();
    let is_used = |(status, told): &(u16, Value)| {
        assert!([200, 502].contains(status), "{told}");
        *status == 200
    };
    let (_, told) =
        wait_for("the other password to be used", async || ask(&server, &url).await, is_used).await;
    assert_eq!(told["revision"], revision.as_str());
    server.says("other credentials or certificates of repositories are used from now on").await;
    assert!(!server.process().lines().any("hidden-word"));
    server.stop().await;
}

#[tokio::test]
async fn a_password_of_the_environment_is_for_addresses_that_begin_as_it_says() {
    let (folder, forge) = (TempDir::new().unwrap(), Forge::new().await);
    let revision = repository(&forge.directory("private/a.git"));
    let variable = |name: &str, value: String| {
        (format!("GITOPS_RUNTIME_SOURCE_SERVER__GIT__REPOSITORIES__CREDENTIAL__{name}"), value)
    };
    let env = vec![
        variable("URL", forge.url("private")),
        variable("USERNAME", "ada".to_owned()),
        variable("PASSWORD", "right".to_owned()),
    ];
    let server = serve(folder.path(), json!({}), env).await;
    let (status, told) = ask(&server, &forge.url("private/a.git")).await;
    assert_eq!((status, &told["revision"]), (200, &json!(revision)), "{told}");
    assert_eq!(ask(&server, &forge.url("open/a.git")).await.0, 403);
    server.stop().await;
}
