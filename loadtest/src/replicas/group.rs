//! Replicas of the real binary: processes that share a bus, each with a state directory, a name and a way to the bus of
//! its own.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use futures::future::try_join_all;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::process::Command;

use super::owners::Owners;
use crate::nats::NatsServer;
use crate::proxy::{Network, Proxy};
use crate::reporter::{Reporter, Usage, merge};
use crate::sim::Simulation;

/// What the log says of a panic, before and after it is set up.
const PANICS: [&str; 2] = ["panicked at", "a panic: this is a bug"];
/// How long one may take to explain itself.
const EXPLAINS_WITHIN: Duration = Duration::from_secs(10);
/// The key by which secret values are digested, in hexadecimal digits: the same for all.
const KEY: &str = "4b65792074686174206576657279207265706c69636120736861726573202e2e";

/// All replicas.
#[derive(Debug)]
pub(super) struct Group {
    program: PathBuf,
    /// Settings of each, but for what is its own.
    settings: Value,
    directory: PathBuf,
    /// The bus that they share; without one there is one process.
    bus: Option<std::net::SocketAddr>,
    members: BTreeMap<String, Member>,
    pub(super) owners: Owners,
    /// How many were ever named.
    named: u32,
    /// Lines of panics.
    pub(super) panics: BTreeSet<String>,
    /// The log of each that has ended.
    logs: Vec<(String, Vec<String>)>,
}

/// `/app-distribution`, as far as it is read.
#[derive(Deserialize)]
struct Page {
    default: Placed,
}

#[derive(Deserialize)]
struct Placed {
    /// The shard of each application.
    apps: HashMap<String, u32>,
}

/// One replica.
#[derive(Debug)]
struct Member {
    reporter: Reporter,
    /// Its way to the bus.
    proxy: Option<Proxy>,
}

impl Group {
    /// Nobody yet.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub(super) fn new(
        program: &Path,
        simulation: &Simulation,
        bus: Option<&NatsServer>,
        more: &Value,
    ) -> anyhow::Result<Self> {
        let directory = simulation.directory().to_path_buf();
        let key = directory.join("redaction-key");
        std::fs::write(&key, KEY).context("write the key of the replicas")?;
        let mut settings = simulation.settings().clone();
        merge(&mut settings, &Reporter::settings());
        merge(&mut settings, &json!({"redaction": {"keyFile": key.display().to_string()}}));
        merge(&mut settings, more);
        Ok(Self {
            program: program.to_path_buf(),
            settings,
            directory,
            bus: bus.map(NatsServer::address),
            members: BTreeMap::new(),
            owners: Owners::watch()?,
            named: 0,
            panics: BTreeSet::new(),
            logs: Vec::new(),
        })
    }

    /// Starts so many more, all at once; their names.
    ///
    /// # Errors
    /// When one does not serve.
    pub(super) async fn add(&mut self, count: u32) -> anyhow::Result<Vec<String>> {
        let names: Vec<String> = (self.named..self.named + count).map(|n| format!("replica-{n}")).collect();
        self.named += count;
        let started = try_join_all(names.iter().map(|name| self.start(name))).await?;
        for (name, member) in names.iter().zip(started) {
            self.joined(name, member);
        }
        Ok(names)
    }

    /// Starts one that was killed again, under its name and on its state.
    ///
    /// # Errors
    /// When it does not serve.
    pub(super) async fn restart(&mut self, name: &str) -> anyhow::Result<()> {
        let member = self.start(name).await?;
        self.joined(name, member);
        Ok(())
    }

    fn joined(&mut self, name: &str, member: Member) {
        self.owners.joined(name, member.reporter.url());
        self.members.insert(name.to_owned(), member);
    }

    async fn start(&self, name: &str) -> anyhow::Result<Member> {
        let directory = self.directory.join(name);
        std::fs::create_dir_all(&directory).context("make a folder for a replica")?;
        let mut settings = self.settings.clone();
        merge(&mut settings, &json!({"state": {"directory": directory.display().to_string()}}));
        let file = directory.join("config.yaml");
        // JSON is YAML.
        std::fs::write(&file, format!("{settings:#}\n")).context("write the settings of a replica")?;
        let mut arguments = vec!["--config".into(), file.into_os_string()];
        let mut proxy = None;
        if let Some(bus) = self.bus {
            let way = Proxy::start(bus).await?;
            arguments.extend(["--bus".into(), format!("nats://{}", way.address()).into()]);
            proxy = Some(way);
        }
        let environment = vec![("HOSTNAME".to_owned(), name.to_owned())];
        let reporter = Reporter::launch(&self.program, arguments, environment, &directory).await;
        Ok(Member { reporter: reporter.with_context(|| format!("start {name}"))?, proxy })
    }

    /// Who is there, sorted.
    pub(super) fn names(&self) -> Vec<String> {
        self.members.keys().cloned().collect()
    }

    /// One of them.
    ///
    /// # Errors
    /// When there is none of this name.
    pub(super) fn reporter(&self, name: &str) -> anyhow::Result<&Reporter> {
        Ok(&self.member(name)?.reporter)
    }

    fn member(&self, name: &str) -> anyhow::Result<&Member> {
        self.members.get(name).with_context(|| format!("there is no {name}"))
    }

    /// The applications of the shards that one owns, each as `namespace/name`.
    ///
    /// # Errors
    /// When it does not answer.
    pub(super) async fn applications(&self, name: &str) -> anyhow::Result<HashSet<String>> {
        let page = self.reporter(name)?.page("/app-distribution").await?;
        let Page { default: Placed { apps } } =
            serde_json::from_str(&page).context("read which applications are in which shard")?;
        let owned = self.owners.told().remove(name).unwrap_or_default();
        Ok(apps.into_iter().filter(|(_, shard)| owned.contains(shard)).map(|(key, _)| key).collect())
    }

    /// What the kernel knows of all of them together.
    ///
    /// # Errors
    /// When one has ended.
    pub(super) fn usage(&self) -> anyhow::Result<Usage> {
        let add = |sum: Usage, member: &Member| Ok(sum.plus(member.reporter.usage()?));
        self.members.values().try_fold(Usage::default(), add)
    }

    /// Whether none of them holds anything.
    ///
    /// # Errors
    /// When one does not answer.
    pub(super) async fn is_idle(&self) -> anyhow::Result<bool> {
        let asked = self.members.values().map(|member| member.reporter.status());
        Ok(try_join_all(asked).await?.iter().all(|status| status.total.idle()))
    }

    /// Cuts or mends one's way to the bus.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn cut(&self, name: &str, network: Network) -> anyhow::Result<()> {
        self.member(name)?.proxy.as_ref().context("it has no way to a bus")?.set(network);
        match network {
            Network::Whole => self.owners.mended(name),
            Network::Silent | Network::Broken => self.owners.cut(name),
        }
        Ok(())
    }

    /// Lets one stand still (SIGSTOP): it does not answer.
    ///
    /// # Errors
    /// When it has ended.
    pub(super) async fn pause(&self, name: &str) -> anyhow::Result<()> {
        self.reporter(name)?.process().signal("STOP").await?;
        self.owners.left(name);
        Ok(())
    }

    /// Lets it go on.
    ///
    /// # Errors
    /// When it has ended.
    pub(super) async fn resume(&self, name: &str) -> anyhow::Result<()> {
        let reporter = self.reporter(name)?;
        reporter.process().signal("CONT").await?;
        self.owners.joined(name, reporter.url());
        Ok(())
    }

    /// Kills one in this instant, after telling `first`.
    ///
    /// # Errors
    /// When there is none of this name.
    pub(super) async fn kill(&mut self, name: &str, first: impl FnOnce()) -> anyhow::Result<()> {
        self.look();
        let member = self.members.remove(name).with_context(|| format!("there is no {name}"))?;
        let lines = member.reporter.process().lines().clone();
        first();
        self.owners.left(name);
        member.reporter.strike().await?;
        self.logs.push((name.to_owned(), lines.all()));
        Ok(())
    }

    /// Asks these to stop (SIGTERM), all at once, and waits for their end.
    ///
    /// # Errors
    /// When one does not end with success.
    pub(super) async fn stop(&mut self, names: &[String]) -> anyhow::Result<()> {
        let mut stopping = Vec::new();
        for name in names {
            let member = self.members.remove(name).with_context(|| format!("there is no {name}"))?;
            let lines = member.reporter.process().lines().clone();
            stopping.push(async move {
                // It reaches the bus until it has ended.
                let Member { reporter, proxy } = member;
                let stopped = reporter.stop().await;
                drop(proxy);
                (name, lines.all(), stopped)
            });
        }
        for (name, lines, stopped) in futures::future::join_all(stopping).await {
            self.owners.left(name);
            self.panics.extend(panics(&lines));
            self.logs.push((name.clone(), lines));
            stopped.with_context(|| format!("stop {name}"))?;
        }
        Ok(())
    }

    /// Notes panics.
    pub(super) fn look(&mut self) {
        for member in self.members.values() {
            self.panics.extend(panics(&member.reporter.process().lines().all()));
        }
    }

    /// Writes the log of every process there was into a folder that stays.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub(super) fn keep_logs(&self) -> anyhow::Result<PathBuf> {
        let folder = tempfile::Builder::new().prefix("replicas-").disable_cleanup(true).tempdir();
        let folder = folder.context("make a folder for logs")?;
        let now = self.members.iter().map(|(name, member)| (name, member.reporter.process().lines().all()));
        let before = self.logs.iter().map(|(name, lines)| (name, lines.clone()));
        for (at, (name, lines)) in before.chain(now).enumerate() {
            let file = folder.path().join(format!("{at:02}-{name}.log"));
            std::fs::write(file, lines.join("\n")).context("write a log")?;
        }
        Ok(folder.path().to_path_buf())
    }

    /// What they say themselves of an application.
    pub(super) async fn explain(&self, application: &str) -> String {
        let mut said = Vec::new();
        for name in self.members.keys() {
            let mut explain = Command::new(&self.program);
            explain
                .args(["explain", application, "--state"])
                .arg(self.directory.join(name))
                .kill_on_drop(true);
            let told = match tokio::time::timeout(EXPLAINS_WITHIN, explain.output()).await {
                Ok(Ok(told)) => {
                    String::from_utf8_lossy(&[told.stdout, told.stderr].concat()).trim().to_owned()
                }
                Ok(Err(error)) => format!("it cannot be asked: {error}"),
                Err(_) => "it does not answer".to_owned(),
            };
            said.push(format!("{name}: {told}"));
        }
        said.join("\n")
    }

    /// Asks all of them to stop, within the time that one has.
    ///
    /// # Errors
    /// When one does not end with success.
    pub(super) async fn end(&mut self) -> anyhow::Result<()> {
        self.stop(&self.names()).await
    }

    /// Waits until every shard is owned by one replica, and evenly; there is nothing to wait for without a bus.
    ///
    /// # Errors
    /// When that takes longer than `within`.
    pub(super) async fn settled(&self, within: Duration) -> anyhow::Result<()> {
        if self.bus.is_some() { self.owners.settled(within).await } else { Ok(()) }
    }
}

fn panics(lines: &[String]) -> impl Iterator<Item = String> {
    lines.iter().filter(|line| PANICS.iter().any(|panic| line.contains(panic))).cloned()
}
