//! The role `platform` as a process: killed while reports arrive, reported to by the reporter, backed up and restored.

mod canaries;
mod newer;
mod objects;
mod restored;
mod streams;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use loadtest::process::Start;
use loadtest::sim::kube::Collection;
use loadtest::sim::people::FIRST;
use loadtest::sim::port;
use loadtest::sim::{Simulation, local_client, wait_for};
use pipeline_core::Key;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::runtime::{PROGRAM, Runtime, SOON, eventually, http_client};
use crate::told;
use crate::verify::{findings, verified};

/// A platform with a state directory of its own and one address over its lives.
pub(crate) struct Platform {
    folder: TempDir,
    port: u16,
    /// The port of its figures.
    figures: u16,
    token: String,
    runtime: Option<Runtime>,
}

impl Platform {
    pub(crate) async fn start() -> Self {
        let mut platform = Self {
            folder: TempDir::new().unwrap(),
            port: port::free().unwrap(),
            figures: port::free().unwrap(),
            token: String::new(),
            runtime: None,
        };
        platform.token = platform.command(&["token", "create", "--runtime", "prod"]).await.unwrap();
        std::fs::write(platform.token_file(), &platform.token).unwrap();
        platform.up().await;
        platform
    }

    pub(crate) fn token_file(&self) -> PathBuf {
        self.folder.path().join("token")
    }

    fn state(&self) -> String {
        self.folder.path().join("state").display().to_string()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("it runs")
    }

    /// Starts it, at the address that it had.
    async fn up(&mut self) {
        self.up_with("unlimited", &[]).await;
    }

    /// The same where no file may grow beyond so many kilobytes, as on a disk that is full, and with these settings.
    async fn up_with(&mut self, file_size: &str, settings: &[&str]) {
        let listen = format!("127.0.0.1:{}", self.port);
        let limited = format!("ulimit -f {file_size}; exec \"$0\" \"$@\"");
        let state = self.state();
        let figures = format!("serve.metricsAddress=127.0.0.1:{}", self.figures);
        let args =
            ["-c", &limited, PROGRAM, "platform", "--listen", &listen, "--state", &state, "--set", &figures];
        let start = Start {
            program: "/bin/bash".into(),
            args: args
                .into_iter()
                .chain(settings.iter().flat_map(|one| ["--set", one]))
                .map(Into::into)
                .collect(),
            env: Vec::new(),
            directory: self.folder.path().to_path_buf(),
        };
        let runtime = Runtime::serving(start).await;
        runtime.says("receiving reports").await;
        self.runtime = Some(runtime);
    }

    /// Runs a command about its store; what it prints, or why it failed.
    pub(crate) async fn command(&self, arguments: &[&str]) -> Result<String, String> {
        let state = self.state();
        let mut command = tokio::process::Command::new(PROGRAM);
        command.arg("platform").args(arguments).args(["--state", &state]).env_clear().stdin(Stdio::null());
        let output = tokio::time::timeout(SOON, command.kill_on_drop(true).output()).await.unwrap().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap().trim_end().to_owned();
        if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
    }

    fn silent_of_tokens(&self) {
        for line in self.runtime().process().lines().all() {
            assert!(
                !line.contains("gort_") && !line.contains(&self.token),
                "a token stands in the log: {line}"
            );
        }
    }

    async fn get(&self, client: &reqwest::Client, path: &str) -> Value {
        let (status, page) = self.answer(client, path).await;
        assert_eq!(status, 200, "{path}");
        page
    }

    /// A page of its API; what it answers where there is none yet.
    pub(crate) async fn page(&self, client: &reqwest::Client, path: &str) -> Value {
        self.answer(client, path).await.1
    }

    async fn answer(&self, client: &reqwest::Client, path: &str) -> (u16, Value) {
        let request = client.get(format!("{}{path}", self.url())).bearer_auth(&self.token);
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        (status, serde_json::from_str(&response.text().await.unwrap()).unwrap_or_default())
    }
}

fn body(name: &str, version: u64) -> String {
    let object = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "namespace": "argocd", "uid": name, "resourceVersion": version.to_string()},
    });
    json!({"data": {"object": STANDARD.encode(object.to_string()), "source": {"syncStatus": "Synced"}}})
        .to_string()
}

/// Reports one version after the other, each until it is acknowledged; how many were.
async fn post(
    client: reqwest::Client,
    url: String,
    token: String,
    name: String,
    stop: Arc<AtomicBool>,
    all: Arc<AtomicU64>,
) -> u64 {
    let mut version = 0;
    while !stop.load(Ordering::Relaxed) {
        version += 1;
        let (body, key) = (body(&name, version), format!("{name}-{version}"));
        loop {
            let request = client.post(format!("{url}/2.0/api/events")).header("authorization", &token);
            let request = request.header("idempotency-key", &key).body(body.clone());
            match request.send().await {
                Ok(response) if response.status().is_success() => break,
                Ok(response) => {
                    assert!([429, 503].contains(&response.status().as_u16()), "{}", response.status());
                }
                // It was killed.
                Err(_) => {}
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        all.fetch_add(1, Ordering::Relaxed);
    }
    version
}

/// `LOADTEST_PLATFORM_KILLS` says how often it is killed, else three times.
#[tokio::test]
async fn what_was_acknowledged_is_there_once_however_often_it_is_killed() {
    let kills = std::env::var("LOADTEST_PLATFORM_KILLS").map_or(3, |kills| kills.parse().unwrap());
    let mut platform = Platform::start().await;
    let (client, stop, all) = (http_client(), Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let posters: Vec<_> = (0..8)
        .map(|number| {
            let (url, token, name) = (platform.url(), platform.token.clone(), format!("shop-{number}"));
            tokio::spawn(post(client.clone(), url, token, name, stop.clone(), all.clone()))
        })
        .collect();
    for kill in 0..=kills {
        let target = all.load(Ordering::Relaxed) + 100;
        eventually("reports to be acknowledged", || all.load(Ordering::Relaxed) >= target).await;
        if kill < kills {
            platform.silent_of_tokens();
            platform.runtime.take().unwrap().kill().await;
            platform.up().await;
        }
    }
    stop.store(true, Ordering::Relaxed);
    for (number, poster) in posters.into_iter().enumerate() {
        let acknowledged = poster.await.unwrap();
        let (mut versions, mut before) = (Vec::new(), u64::MAX >> 1);
        loop {
            let path = format!("/api/v1/applications/argocd/shop-{number}/timeline?before={before}");
            let page = platform.get(&client, &path).await;
            for entry in page["transitions"].as_array().unwrap() {
                assert_eq!(entry["reports"], 1, "{entry}");
                versions.push(entry["version"].as_u64().unwrap());
            }
            match page["next"].as_u64() {
                Some(next) => before = next,
                None => break,
            }
        }
        versions.reverse();
        assert_eq!(versions, (1..=acknowledged).collect::<Vec<_>>(), "of shop-{number}");
    }
    platform.silent_of_tokens();
    platform.runtime.take().unwrap().stop().await;
}

/// Whether the receiver differs, as `verify` says of a receiver that compares.
async fn differs(simulation: &Simulation, arguments: &[&str]) -> Vec<String> {
    let (_, found) = verified(simulation, arguments).await;
    assert!(found["receiverDiffers"]["total"].is_u64(), "it did not compare: {found:#}");
    findings(&found).get("receiverDiffers").into_iter().flatten().map(|key| (*key).to_owned()).collect()
}

async fn names(platform: &Platform) -> Vec<(String, bool)> {
    let page = platform.get(&http_client(), "/api/v1/applications").await;
    let all = page["applications"].as_array().unwrap().iter();
    all.map(|one| (one["name"].as_str().unwrap().to_owned(), one["deleted"].as_bool().unwrap())).collect()
}

#[tokio::test]
async fn our_reporter_reports_to_it_and_verify_finds_what_a_restore_lost() {
    let mut platform = Platform::start().await;
    let simulation = told::world(|_| {}).await;
    told::put(&simulation, "shop");
    let settings = json!({
        "platform": {"url": platform.url(), "tokenFile": platform.token_file()},
        "reporter": {"sink": {"platform": {"batch": {"enabled": true}}}},
    });
    let reporter = Runtime::start(&simulation, &settings).await;
    reporter.idle(1).await;
    let none: [&str; 0] = [];
    assert_eq!(differs(&simulation, &[]).await, none);

    let copy = platform.folder.path().join("copy.db").display().to_string();
    let made = platform.command(&["backup", &copy]).await.unwrap();
    let path = Path::new(&platform.state()).join("platform.db").display().to_string();
    assert_eq!(made, format!("the store {path} was copied to {copy}"));
    let in_use = platform.command(&["restore", &copy]).await.unwrap_err();
    let text = format!(
        "gitops-runtime: restore the store: another process has the store {path} open: stop it first"
    );
    assert_eq!(in_use, text);

    let observed = reporter.status().await.total.observed;
    told::put(&simulation, "web");
    reporter.idle(observed + 1).await;
    assert_eq!(differs(&simulation, &[]).await, none);
    assert_eq!(names(&platform).await, [("shop".to_owned(), false), ("web".to_owned(), false)]);

    platform.silent_of_tokens();
    platform.runtime.take().unwrap().stop().await;
    let restored = platform.command(&["restore", &copy]).await.unwrap();
    assert!(
        restored.starts_with(&format!("{copy} is the store now\nwhat was there is {path}.replaced-")),
        "{restored}"
    );
    platform.up().await;
    assert_eq!(differs(&simulation, &["--dry-run"]).await, ["argocd/web"]);
    assert_eq!(differs(&simulation, &[]).await, ["argocd/web"], "and is repaired");
    assert_eq!(differs(&simulation, &[]).await, none);
    assert_eq!(names(&platform).await.len(), 2);

    let observed = reporter.status().await.total.observed;
    assert!(simulation.kube.delete(Collection::Applications, &Key::new("argocd", "web").unwrap()));
    reporter.idle(observed + 1).await;
    assert_eq!(differs(&simulation, &[]).await, none);
    assert_eq!(names(&platform).await, [("shop".to_owned(), false), ("web".to_owned(), true)]);
    reporter.stop().await;
    platform.silent_of_tokens();
    platform.runtime.take().unwrap().stop().await;
}

#[tokio::test]
async fn verify_is_clean_after_platform_and_reporter_were_killed_in_turn() {
    const ROUNDS: usize = 4;
    const EACH: usize = 8;
    let mut platform = Platform::start().await;
    let simulation = told::world(|_| {}).await;
    let settings = json!({
        "platform": {"url": platform.url(), "tokenFile": platform.token_file()},
        "reporter": {"sink": {"platform": {"batch": {"enabled": true}}}},
    });
    let mut reporter = Runtime::start(&simulation, &settings).await;
    let name = |round: usize, number: usize| format!("shop-{round}-{number}");
    let mut alive = std::collections::BTreeSet::new();
    for round in 0..ROUNDS {
        for number in 0..EACH {
            told::put(&simulation, &name(round, number));
            alive.insert(name(round, number));
        }
        // One of the round before goes while its reports may be under way.
        if let Some(before) = round.checked_sub(1) {
            let key = Key::new("argocd", &name(before, 0)).unwrap();
            assert!(simulation.kube.delete(Collection::Applications, &key));
            alive.remove(&name(before, 0));
        }
        // As soon as anything of the round is there, and most of it is not.
        let first = format!("shop-{round}-");
        let is_shown = |names: &Vec<(String, bool)>| names.iter().any(|(name, _)| name.starts_with(&first));
        wait_for("a report of the round", async || names(&platform).await, is_shown).await;
        if round % 2 == 0 {
            platform.runtime.take().unwrap().kill().await;
            platform.up().await;
        } else {
            reporter.kill().await;
            reporter = Runtime::start(&simulation, &settings).await;
        }
    }
    // One that went before it was reported was never there.
    let shown = async || {
        let there = names(&platform).await.into_iter().filter(|(_, deleted)| !deleted);
        there.map(|(name, _)| name).collect::<std::collections::BTreeSet<_>>()
    };
    wait_for("reports of everything", shown, |shown| *shown == alive).await;
    reporter.until("nothing to be under way", |status| status.total.idle()).await;
    let (code, found) = verified(&simulation, &["--dry-run"]).await;
    assert!(found["receiverDiffers"]["total"].is_u64(), "it did not compare: {found:#}");
    assert_eq!((code, findings(&found)), (Some(0), std::collections::BTreeMap::new()));
    reporter.stop().await;
    platform.silent_of_tokens();
    platform.runtime.take().unwrap().stop().await;
}

#[tokio::test]
async fn a_full_disk_is_told_and_everything_acknowledged_is_there_when_it_has_room() {
    let mut platform = Platform::start().await;
    platform.runtime.take().unwrap().stop().await;
    platform.up_with("400", &[]).await;
    let client = http_client();
    let mut acknowledged = 0;
    let refused = loop {
        let request = client.post(format!("{}/2.0/api/events", platform.url()));
        let request = request.header("authorization", &platform.token).body(body("shop", acknowledged + 1));
        let response = request.send().await.unwrap();
        if !response.status().is_success() {
            break (response.status().as_u16(), response.headers()["retry-after"].clone());
        }
        acknowledged += 1;
        assert!(acknowledged < 5_000, "the disk never was full");
    };
    assert_eq!((refused.0, refused.1.to_str().unwrap()), (503, "5"));
    let degraded = (200, "degraded: the store cannot be written, the log says why\n".to_owned());
    assert_eq!(platform.runtime().page("/healthz").await, degraded);
    let line = platform.runtime().says("reports cannot be kept: none is acknowledged").await;
    assert_eq!(line.level, "WARN");
    platform.runtime.take().unwrap().stop().await;
    platform.up().await;
    let page = platform.get(&client, "/api/v1/applications/argocd/shop/timeline?limit=1").await;
    let newest = &page["transitions"][0];
    assert_eq!((newest["version"].as_u64().unwrap(), &newest["current"]), (acknowledged, &json!(true)));
    platform.runtime.take().unwrap().stop().await;
}

#[tokio::test]
async fn a_token_that_is_taken_away_is_refused() {
    let platform = Platform::start().await;
    let other = platform.command(&["token", "create", "--runtime", "other"]).await.unwrap();
    let listed = platform.command(&["token", "list"]).await.unwrap();
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines.len(), 2, "{listed}");
    let (name, runtime) = (other.get(..13).unwrap(), "other");
    assert!(lines[0].starts_with(name) && lines[0].ends_with(&format!("Z  {runtime}")), "{listed}");
    assert!(!listed.contains(other.get(..14).unwrap()), "{listed}");
    let post = async |token: &str| {
        let request = http_client().post(format!("{}/2.0/api/events", platform.url()));
        request.header("authorization", token).body(body("shop", 1)).send().await.unwrap().status().as_u16()
    };
    assert_eq!(post(&other).await, 200);
    let revoked = platform.command(&["token", "revoke", name]).await.unwrap();
    assert_eq!(revoked, format!("{name} is taken away: a platform that runs refuses it within 10 seconds"));
    // It is remembered for a while.
    wait_for("the token to be refused", async || post(&other).await, |status| *status == 401).await;
    assert_eq!(post(&platform.token).await, 200, "the other one is good");
    let again = platform.command(&["token", "revoke", name]).await.unwrap_err();
    let text = format!(
        "gitops-runtime: take a token away: there is no token {name}: `gitops-runtime platform token list` shows those that there are"
    );
    assert_eq!(again, text);
    // Where there is none, it may be another store than the one that is meant.
    platform.command(&["token", "revoke", platform.token.get(..13).unwrap()]).await.unwrap();
    let none = platform.command(&["token", "list"]).await.unwrap();
    assert!(
        none.starts_with(&format!("there is none in the store {}/platform.db: ", platform.state())),
        "{none}"
    );
}

#[tokio::test]
async fn a_platform_that_cannot_start_says_why() {
    let platform = Platform::start().await;
    let wrong = "gitops-runtime: make a token: 'Prod' is no name of a runtime: lower-case letters and digits, a letter first, at most 38";
    assert_eq!(platform.command(&["token", "create", "--runtime", "Prod"]).await.unwrap_err(), wrong);
    let wrong = "gitops-runtime: make a token: 'a/b' is no name of a runtime: an adopter's has letters, digits, '-', '_' and '.', begins \
                 and ends with one of the first two, and has at most 63";
    let adopted = ["token", "create", "--adopted", "--runtime"];
    assert_eq!(platform.command(&[&adopted[..], &["a/b"]].concat()).await.unwrap_err(), wrong);
    let taken = platform.command(&[&adopted[..], &["prod-eu"]].concat()).await.unwrap();
    assert!(taken.starts_with("gort_"), "{taken}");
    let listed = platform.command(&["token", "list"]).await.unwrap();
    assert!(listed.lines().any(|line| line.ends_with("Z  prod-eu  prodeu3312b6955a")), "{listed}");
    assert!(listed.lines().any(|line| line.ends_with("Z  prod")), "{listed}");
    let taken = ["--listen", "127.0.0.1:0", "--set", "serve.metricsAddress="];
    let again = platform.command(&taken).await.unwrap_err();
    assert!(again.contains("open the store: another process has the store "), "{again}");
    let both = ["--set", "platformServer.store.path=x", "--set", "platformServer.store.postgresUrlFile=y"];
    let both = platform.command(&both).await.unwrap_err();
    assert!(both.contains("platformServer.store.path"), "{both}");
    let (status, text) = platform.runtime().page("/healthz").await;
    assert_eq!((status, text.as_str()), (200, "ok\n"));
    assert_eq!(platform.runtime().page("/metrics").await.0, 404, "figures are not for senders");
    let metrics =
        http_client().get(format!("http://127.0.0.1:{}/metrics", platform.figures)).send().await.unwrap();
    let metrics = metrics.text().await.unwrap();
    for name in ["kept_total", "repeated_total", "requests_total", "commit_failures_total"] {
        assert!(metrics.contains(&format!("gitops_runtime_platform_{name} 0")), "{name}: {metrics}");
    }
    assert!(metrics.contains("gitops_runtime_platform_refused_total{reason=\"quota\"} 0"), "{metrics}");
}

/// The address that makes the first account, as it is printed where the platform is started; `None`: it prints none.
pub(crate) fn first_link(runtime: &Runtime) -> Option<String> {
    let lines = runtime.process().lines().all();
    lines.iter().find_map(|line| line.strip_prefix(FIRST).map(str::to_owned))
}

#[tokio::test]
async fn its_console_shows_the_recorded_traffic_and_what_changes_while_somebody_looks() {
    let mut platform = Platform::start().await;
    let client = local_client().redirect(reqwest::redirect::Policy::none()).timeout(SOON).build().unwrap();
    let report = async |data: &Value| {
        let request = client
            .post(format!("{}/2.0/api/events", platform.url()))
            .header("authorization", &platform.token);
        let response = request.body(json!({"data": data}).to_string()).send().await.unwrap();
        assert_eq!(response.status(), 200);
    };
    let cases = loadtest::recordings::packed("incumbent-2.12").unwrap();
    for line in cases
        .iter()
        .filter(|case| ["failing-sync", "directory-drift"].contains(&&*case.name))
        .flat_map(|case| &case.reports)
    {
        report(&line.data).await;
    }

    let link = first_link(platform.runtime()).expect("nobody has an account yet");
    let (address, token) = link.split_once("/welcome?token=").expect("a link");
    assert_eq!(address, platform.url(), "without a setting it is the address that is listened on");
    let form = format!("token={token}&name=ada&password=correct+horse+battery");
    let made = client.post(format!("{}/welcome", platform.url())).body(form).send().await.unwrap();
    assert_eq!(made.status(), 303);
    let session = made.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let ask = async |path: &str| {
        let request = client.get(format!("{}{path}", platform.url())).header("cookie", &session);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        response
    };
    let page = async |path: &str| ask(path).await.text().await.unwrap();
    let holds = |page: &str, all: &[&str]| {
        for text in all {
            assert!(page.contains(text), "{text} is not in {page}");
        }
    };
    let failing = "/applications/prod/argocd/failing";
    holds(
        &page("/").await,
        &[
            "What needs you now",
            "1 of 2 applications and 1 runtime",
            "Sync failed: one or more objects failed to apply",
        ],
    );
    holds(
        &page("/applications?q=env:test%20by:grace").await,
        &["2 of 2 applications", "Grace Hopper", ">store<"],
    );
    holds(&page("/applications?q=health:healthy").await, &["1 of 2 applications"]);
    holds(&page(failing).await, &["project default", "Deployment/bad is missing", "ConfigMap", "good"]);
    holds(
        &page(&format!("{failing}?tab=errors")).await,
        &[
            "Resource apps/Deployment/failing/bad appeared 2 times",
            "The same resource stands more than once in what Git gives",
        ],
    );
    holds(
        &page("/applications/prod/argocd/store?tab=timeline&days=90").await,
        &["Deployed", "Progressing", "OutOfSync"],
    );
    holds(&page("/resources?q=good").await, &["ConfigMap", failing]);
    holds(&page("/deployments").await, &["Grace Hopper", "2f7e3db"]);
    holds(&page("/runtimes").await, &["prod", "1 of 2 healthy"]);

    // A stream is open while something is reported: it names what changed, beside what may have changed just before.
    let mut stream = ask("/live").await;
    let mut told = String::new();
    let last = cases.iter().find(|case| case.name == "hooks").and_then(|case| case.reports.first()).unwrap();
    report(&last.data).await;
    while !told.contains("\"prod/argocd/hooks\"") {
        let chunk = tokio::time::timeout(SOON, stream.chunk()).await.expect("it says what changed").unwrap();
        told.push_str(std::str::from_utf8(&chunk.expect("it goes on")).unwrap());
    }
    let added = client.post(format!("{}/runtimes", platform.url())).header("cookie", &session);
    let added = added.body("name=eu1").send().await.unwrap().text().await.unwrap();
    let fresh = added.split_once("--from-literal=token=").expect("a token is shown").1;
    let fresh: String = fresh.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    let request = client.post(format!("{}/2.0/api/events", platform.url())).header("authorization", fresh);
    assert_eq!(request.body(body("web", 1)).send().await.unwrap().status(), 200, "it is known at once");
    let again = client.post(format!("{}/runtimes", platform.url())).header("cookie", &session);
    let again = again.body("name=eu1").send().await.unwrap().text().await.unwrap();
    assert!(again.contains("There is a runtime named eu1 already: choose another name."), "{again}");

    platform.silent_of_tokens();
    platform.runtime.take().unwrap().stop().await;
    platform.up().await;
    assert_eq!(first_link(platform.runtime()), None, "somebody has an account");
    platform.runtime.take().unwrap().stop().await;
}

#[tokio::test]
async fn its_api_answers_whoever_has_a_token_and_its_schema_is_printed() {
    let platform = Platform::start().await;
    let asked = |token: &str| {
        let query = json!({"query": "{ me { runtimeName } runtimes { edges { cursor } } }"});
        let asked = http_client().post(format!("{}/2.0/api/graphql", platform.url()));
        asked.header("authorization", token).json(&query).send()
    };
    let answer: Value = asked(platform.token.trim()).await.unwrap().json().await.unwrap();
    let expected =
        json!({"data": {"me": {"runtimeName": "prod"}, "runtimes": {"edges": [{"cursor": "prod"}]}}});
    assert_eq!(answer, expected);
    assert_eq!(asked("gort_nothing").await.unwrap().status(), 401);
    platform.silent_of_tokens();
    let printed = std::process::Command::new(PROGRAM).arg("schema").output().unwrap();
    let schema = String::from_utf8(printed.stdout).unwrap();
    assert!(
        schema
            .contains("createRuntime(installationArgs: RuntimeInstallationArgs!): RuntimeCreationResponse!")
    );
}
