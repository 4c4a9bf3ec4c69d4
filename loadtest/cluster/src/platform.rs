//! The real platform, which keeps what the reporter sends, behind the simulated one that every request is led through.
//!
//! takes: the binary, and a folder for its store - gives: what it shows of an application to the runtime that reports it
//! calls: its API, as any client does - fails: when it does not start, ends badly, or does not answer
//!
//! The reporter's own bytes reach it, its answers reach the reporter, and what it acknowledged is known beside it, so that the
//! oracle has something to compare it with.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;

use loadtest_sim::local_client;
use loadtest_sim::platform::{PlatformSim, ResourceKey};
use loadtest_sim::platform_process::PlatformProcess;

/// What the runtime is called there.
const RUNTIME: &str = "cluster";
/// How long it may take to answer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(60);
/// Resources whose manifests are asked for at a time; more would be too complex a query.
const AT_ONCE: usize = 50;
const APPLICATION: &str = "application(runtime: $runtime, namespace: $namespace, name: $name)";
const VARIABLES: &str = "$runtime: String!, $namespace: String!, $name: String!";
const STATE: &str = "uid deleted healthStatus syncStatus revision operationPhase project \
                     resources { resource { apiVersion kind namespace name } healthStatus syncStatus }";

/// The platform, which may be down.
#[derive(Debug)]
pub struct Platform {
    program: PathBuf,
    directory: PathBuf,
    life: Mutex<Life>,
}

#[derive(Debug)]
struct Life {
    running: Option<PlatformProcess>,
    /// What the processes logged that have ended.
    logged: Vec<String>,
}

/// Where it is reached, and by which token.
#[derive(Clone)]
pub struct Door {
    client: reqwest::Client,
    url: String,
    token: String,
}

/// What it shows of an application.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Shown {
    /// Its states and those of its resources, newest first.
    pub timeline: Vec<Value>,
    /// Itself, with what it lists; null where it is not known.
    pub application: Value,
    /// The manifests of each resource that was asked about.
    pub manifests: Vec<(ResourceKey, Value)>,
}

impl Platform {
    /// Starts it with an empty store, and leads what `sim` is sent to it. Gives the token by which the reporter reports too.
    pub async fn start(
        program: &Path,
        directory: &Path,
        sim: &PlatformSim,
    ) -> anyhow::Result<(Self, String)> {
        tokio::fs::create_dir_all(directory).await.context("make a folder for the platform")?;
        let running = PlatformProcess::start(program, directory).await?;
        let token = running.token(RUNTIME).await?;
        sim.lead_to(running.url())?;
        let life = Mutex::new(Life { running: Some(running), logged: Vec::new() });
        Ok((Self { program: program.to_path_buf(), directory: directory.to_path_buf(), life }, token))
    }

    /// Takes it away: nothing reaches it any more, and once all that did is answered it is killed (SIGKILL).
    pub async fn away(&self, sim: &PlatformSim) -> anyhow::Result<()> {
        sim.down().await;
        sim.settled().await;
        let mut life = self.life.lock().await;
        let Some(running) = life.running.take() else { return Ok(()) };
        let lines = running.lines().clone();
        let killed = running.kill().await;
        life.logged.extend(lines.all());
        killed
    }

    /// Starts it again on what it has kept, where it is down.
    pub async fn back(&self, sim: &PlatformSim) -> anyhow::Result<()> {
        let mut life = self.life.lock().await;
        if life.running.is_none() {
            let running = PlatformProcess::start(&self.program, &self.directory).await?;
            sim.lead_to(running.url())?;
            life.running = Some(running);
        }
        sim.up().await
    }

    /// Asks it to stop; what all of its processes have logged.
    pub async fn stop(self) -> anyhow::Result<Vec<String>> {
        let Life { running, mut logged } = self.life.into_inner();
        let running = running.context("the platform is down")?;
        let lines = running.lines().clone();
        running.stop().await?;
        logged.extend(lines.all());
        Ok(logged)
    }

    /// The folder of its files.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Where it is reached now.
    pub async fn door(&self, token: &str) -> anyhow::Result<Door> {
        let life = self.life.lock().await;
        let url = life.running.as_ref().context("the platform is down")?.url().to_owned();
        Door::new(&url, token)
    }
}

impl Door {
    /// To the platform at `url`.
    pub fn new(url: &str, token: &str) -> anyhow::Result<Self> {
        let client = local_client().timeout(ANSWERS_WITHIN).build().context("make a client")?;
        Ok(Self { client, url: url.to_owned(), token: token.to_owned() })
    }

    /// What it shows of an application, with the manifests of these of its resources.
    pub async fn shown(
        &self,
        namespace: &str,
        name: &str,
        resources: &[ResourceKey],
    ) -> anyhow::Result<Shown> {
        let timeline = self.timeline(namespace, name).await?;
        let own = json!({"runtime": RUNTIME, "namespace": namespace, "name": name});
        let application =
            self.ask(&format!("query({VARIABLES}) {{ {APPLICATION} {{ {STATE} }} }}"), &own).await?;
        let mut manifests = Vec::new();
        for some in resources.chunks(AT_ONCE) {
            let numbers = || 0..some.len();
            let given: String = numbers().map(|number| format!(", $r{number}: ResourceArgs!")).collect();
            let each = |number| format!("r{number}: manifests(resource: $r{number}) {{ live desired git }} ");
            let asked: String = numbers().map(each).collect();
            let mut variables = own.clone();
            for (number, key) in some.iter().enumerate() {
                variables[format!("r{number}")] = resource(key);
            }
            let query = format!("query({VARIABLES}{given}) {{ {APPLICATION} {{ {asked} }} }}");
            let mut answer = self.ask(&query, &variables).await?;
            let of = |(number, key): (usize, &ResourceKey)| {
                (key.clone(), answer.get_mut(format!("r{number}")).map(Value::take).unwrap_or_default())
            };
            manifests.extend(some.iter().enumerate().map(of));
        }
        Ok(Shown { timeline, application, manifests })
    }

    /// Every state of an application and its resources; none where it is not known.
    async fn timeline(&self, namespace: &str, name: &str) -> anyhow::Result<Vec<Value>> {
        let (mut all, mut before) = (Vec::new(), None);
        loop {
            let path = format!("{}/api/v1/applications/{namespace}/{name}/timeline", self.url);
            let request = self.client.get(path).header("authorization", &self.token);
            let request = request.query(&before.map(|number: i64| ("before", number)).as_slice());
            let answer = request.send().await.context("ask the platform for a timeline")?;
            if answer.status() == reqwest::StatusCode::NOT_FOUND {
                return Ok(all);
            }
            let answer = answer.error_for_status().context("ask the platform for a timeline")?;
            let mut page: Map<String, Value> = answer.json().await.context("read a timeline")?;
            match page.remove("transitions") {
                Some(Value::Array(transitions)) => all.extend(transitions),
                _ => bail!("the platform answers no timeline"),
            }
            before = page.get("next").and_then(Value::as_i64);
            if before.is_none() {
                return Ok(all);
            }
        }
    }

    /// The application of an answer; null where there is none.
    async fn ask(&self, query: &str, variables: &Value) -> anyhow::Result<Value> {
        let asked = self.client.post(format!("{}/2.0/api/graphql", self.url));
        let asked = asked.header("authorization", &self.token);
        let answer = asked.json(&json!({"query": query, "variables": variables})).send().await;
        let answer = answer.context("ask the platform")?.error_for_status().context("ask the platform")?;
        let mut answer: Value = answer.json().await.context("read what the platform shows")?;
        if answer.get("errors").is_some_and(|errors| !errors.is_null()) {
            bail!("the platform refuses to show an application: {}", answer["errors"]);
        }
        Ok(answer["data"]["application"].take())
    }
}

/// As the API asks for a resource.
fn resource(key: &ResourceKey) -> Value {
    let group = key.api_version.split_once('/').map_or("", |(group, _)| group);
    json!({"group": group, "kind": key.kind, "namespace": key.namespace, "name": key.name})
}

impl std::fmt::Debug for Door {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Door").field("url", &self.url).finish_non_exhaustive()
    }
}
