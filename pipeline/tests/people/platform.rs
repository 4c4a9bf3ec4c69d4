//! A platform of its own, as a process, with a first account.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use loadtest::process::{Process, Start};
use loadtest::sim::local_client;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The binary under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_gitops-runtime");
/// How long anything may take before a test gives up.
pub(crate) const SOON: Duration = Duration::from_secs(300);

/// A platform that runs.
pub(crate) struct Platform {
    folder: TempDir,
    process: Option<Process>,
    client: reqwest::Client,
    url: String,
    token: String,
    key: String,
}

impl Platform {
    /// With the token of a runtime, prod, and an API key of its first account, ada, an admin.
    pub(crate) async fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let state = folder.path().join("state").display().to_string();
        let mut command = tokio::process::Command::new(PROGRAM);
        command.args(["platform", "token", "create", "--runtime", "prod", "--state", &state]).env_clear();
        let made = command.stdin(Stdio::null()).output().await.unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let token = String::from_utf8(made.stdout).unwrap().trim().to_owned();
        let listen = ["platform", "--listen", "127.0.0.1:0", "--state", &state];
        let sets = ["--set", "serve.metricsAddress=", "--set", "log.format=json"];
        let start = Start {
            program: PROGRAM.into(),
            args: listen.iter().chain(&sets).map(Into::into).collect(),
            // Which platform people's commands ask is of no concern to a role.
            env: vec![("GITOPS_RUNTIME_CONTEXT".to_owned(), "none".to_owned())],
            directory: folder.path().to_path_buf(),
        };
        let mut process = Process::start(&start).unwrap();
        let url = format!("http://{}", process.address(SOON).await.unwrap());
        let client = local_client().redirect(reqwest::redirect::Policy::none());
        let client = client.timeout(SOON).build().unwrap();
        std::fs::write(folder.path().join("token"), &token).unwrap();
        let mut platform = Self { folder, process: Some(process), client, url, token, key: String::new() };
        platform.key = platform.first_key().await;
        platform
    }

    async fn first_key(&self) -> String {
        let begin = "nobody has an account yet; open this within 15 minutes to make the first one: ";
        let link = async {
            loop {
                let lines = self.process.as_ref().unwrap().lines().all();
                if let Some(link) = lines.iter().find_map(|line| line.strip_prefix(begin)) {
                    break link.split_once("/welcome?token=").expect("a link").1.to_owned();
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let token = tokio::time::timeout(SOON, link).await.unwrap();
        let form = format!("token={token}&name=ada&password=correct+horse+battery");
        let made = loop {
            // It serves a moment after it said the link.
            match self.client.post(format!("{}/welcome", self.url)).body(form.clone()).send().await {
                Ok(made) => break made,
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        };
        assert_eq!(made.status(), 303);
        let session = made.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
        let asked = self.client.post(format!("{}/settings/keys", self.url)).header("cookie", session);
        let asked = asked.header("sec-fetch-site", "same-origin").body("name=people&scope=full&days=1");
        let page = asked.send().await.unwrap().text().await.unwrap();
        let (_, behind) = page.split_once(">goak_").expect("a key");
        let digits: String = behind.chars().take_while(char::is_ascii_hexdigit).collect();
        format!("goak_{digits}")
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
        let state = self.folder.path().join("state").display().to_string();
        let mut command = tokio::process::Command::new(PROGRAM);
        command.args(["platform", "token", "list", "--state", &state]).env_clear();
        let listed = command.stdin(Stdio::null()).output().await.unwrap();
        assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
        let text = String::from_utf8(listed.stdout).unwrap();
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
        assert!(process.stop(SOON).await.unwrap().success());
        for line in lines.all() {
            assert!(!line.contains("goak_") && !line.contains("gort_"), "a secret stands in the log: {line}");
        }
    }
}
