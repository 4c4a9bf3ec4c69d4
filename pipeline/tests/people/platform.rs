//! A platform of its own, as a process, with a first account.

use std::path::{Path, PathBuf};
use std::time::Duration;

use loadtest::sim::command::printed;
use loadtest::sim::people::{Admin, FIRST};
use loadtest::sim::platform_process::PlatformProcess;
use loadtest::sim::{PATIENCE, local_client};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The binary under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_gitops-runtime");
/// How long anything may take before a test gives up.
pub(crate) const SOON: Duration = PATIENCE;

/// A platform that runs.
pub(crate) struct Platform {
    folder: TempDir,
    process: Option<PlatformProcess>,
    client: reqwest::Client,
    url: String,
    token: String,
    key: String,
}

impl Platform {
    /// With the token of a runtime, prod, and an API key of its first account, ada, an admin.
    pub(crate) async fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let process = PlatformProcess::start(Path::new(PROGRAM), folder.path()).await.unwrap();
        let (url, token) = (process.url().to_owned(), process.token("prod").await.unwrap());
        std::fs::write(folder.path().join("token"), &token).unwrap();
        let client = local_client().redirect(reqwest::redirect::Policy::none());
        let client = client.timeout(SOON).build().unwrap();
        let link = process.lines().rest_of(FIRST).await.unwrap();
        let admin = Admin::first(&client, &url, &link).await.unwrap();
        let key = admin.0.key("full").await.unwrap();
        Self { folder, process: Some(process), client, url, token, key }
    }

    /// Its address.
    pub(crate) fn url(&self) -> String {
        self.url.clone()
    }

    /// The API key of ada.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// The token of the runtime.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// A file that holds it.
    pub(crate) fn token_file(&self) -> PathBuf {
        self.folder.path().join("token")
    }

    /// Reports what stands under `data`.
    pub(crate) async fn report(&self, data: &Value) {
        let request = self.client.post(format!("{}/2.0/api/events", self.url));
        let request = request.header("authorization", &self.token).body(json!({"data": data}).to_string());
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 200, "{}", answer.text().await.unwrap());
    }

    /// Registers the runtime at an address.
    pub(crate) async fn register(&self, url: &str) {
        let query = "mutation Register($args: RuntimeInstallationArgs!) { createRuntime(installationArgs: $args) { name } }";
        let variables = json!({"args": {"runtimeName": "prod", "recover": true, "ingressHost": url}});
        let asked =
            self.client.post(format!("{}/2.0/api/graphql", self.url)).header("authorization", &self.key);
        let asked = asked.json(&json!({"query": query, "variables": variables}));
        let answer: Value = asked.send().await.unwrap().json().await.unwrap();
        assert_eq!(answer["data"]["createRuntime"]["name"], "prod", "{answer}");
    }

    /// What it answers to a query of somebody.
    pub(crate) async fn ask(&self, token: &str, query: &Value) -> Value {
        let asked = self.client.post(format!("{}/2.0/api/graphql", self.url)).header("authorization", token);
        asked.json(query).send().await.unwrap().json().await.unwrap()
    }

    /// The tokens that there are: of which runtime, and what each begins with.
    pub(crate) async fn tokens(&self) -> Vec<(String, String)> {
        let state = self.process.as_ref().unwrap().state();
        let mut command = tokio::process::Command::new(PROGRAM);
        command.args(["platform", "token", "list", "--state"]).arg(state).env_clear();
        let text = printed(&mut command, "list the tokens").await.unwrap();
        let line = |line: &str| {
            let parts: Vec<&str> = line.split("  ").collect();
            (parts[2].to_owned(), parts[0].to_owned())
        };
        text.lines().map(line).collect()
    }

    /// Asks it to stop; neither a key nor a token is in its log.
    pub(crate) async fn stop(&mut self) {
        let process = self.process.take().unwrap();
        let lines = process.lines().clone();
        process.stop().await.unwrap();
        for line in lines.all() {
            assert!(!line.contains("goak_") && !line.contains("gort_"), "a secret stands in the log: {line}");
        }
    }
}
