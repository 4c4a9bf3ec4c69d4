//! Replicas of the real binary: processes that share a bus, each with a state directory, a name and a way to the bus of
//! its own.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use futures::future::try_join_all;
use serde::Deserialize;
use serde_json::Value;

use super::owners::Owners;
use loadtest_sim::Simulation;
use loadtest_sim::nats::NatsServer;
use loadtest_sim::process;
use loadtest_sim::proxy::{Network, Proxy};
use loadtest_sim::reporter::{Reporter, Usage, merge};

/// All replicas.
#[derive(Debug)]
pub(super) struct Group {
    program: PathBuf,
    /// Settings of each, but for what is its own.
    settings: Value,
    directory: PathBuf,
    /// The bus that they share.
    bus: std::net::SocketAddr,
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
    proxy: Proxy,
}

impl Group {
    /// Nobody yet.
    pub(super) fn new(
        program: &Path,
        simulation: &Simulation,
        bus: &NatsServer,
        more: &Value,
    ) -> anyhow::Result<Self> {
        let mut settings = simulation.settings().clone();
        merge(&mut settings, &Reporter::settings());
        merge(&mut settings, more);
        Ok(Self {
            program: program.to_path_buf(),
            settings,
            directory: simulation.directory().to_path_buf(),
            bus: bus.address(),
            members: BTreeMap::new(),
            owners: Owners::watch()?,
            named: 0,
            panics: BTreeSet::new(),
            logs: Vec::new(),
        })
    }

    /// Starts so many more, all at once; their names.
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
        let proxy = Proxy::start(self.bus).await?;
        let bus = Some(format!("nats://{}", proxy.address()));
        let reporter = Reporter::replica(&self.program, &self.directory, name, &self.settings, bus).await?;
        Ok(Member { reporter, proxy })
    }

    /// Who is there, sorted.
    pub(super) fn names(&self) -> Vec<String> {
        self.members.keys().cloned().collect()
    }

    /// One of them.
    pub(super) fn reporter(&self, name: &str) -> anyhow::Result<&Reporter> {
        Ok(&self.member(name)?.reporter)
    }

    fn member(&self, name: &str) -> anyhow::Result<&Member> {
        self.members.get(name).with_context(|| format!("there is no {name}"))
    }

    /// The applications of the shards that one owns, each as `namespace/name`.
    pub(super) async fn applications(&self, name: &str) -> anyhow::Result<HashSet<String>> {
        let page = self.reporter(name)?.page("/app-distribution").await?;
        let Page { default: Placed { apps } } =
            serde_json::from_str(&page).context("read which applications are in which shard")?;
        let owned = self.owners.told().remove(name).unwrap_or_default();
        Ok(apps.into_iter().filter(|(_, shard)| owned.contains(shard)).map(|(key, _)| key).collect())
    }

    /// What the kernel knows of all of them together.
    pub(super) fn usage(&self) -> anyhow::Result<Usage> {
        let add = |sum: Usage, member: &Member| Ok(sum.plus(member.reporter.usage()?));
        self.members.values().try_fold(Usage::default(), add)
    }

    /// Whether none of them holds anything.
    pub(super) async fn is_idle(&self) -> anyhow::Result<bool> {
        let asked = self.members.values().map(|member| member.reporter.status());
        Ok(try_join_all(asked).await?.iter().all(|status| status.total.idle()))
    }

    /// Cuts or mends one's way to the bus.
    pub(super) fn cut(&self, name: &str, network: Network) -> anyhow::Result<()> {
        self.member(name)?.proxy.set(network);
        match network {
            Network::Whole => self.owners.mended(name),
            Network::Silent | Network::Broken => self.owners.cut(name),
        }
        Ok(())
    }

    /// Lets one stand still (SIGSTOP): it does not answer.
    pub(super) async fn pause(&self, name: &str) -> anyhow::Result<()> {
        self.reporter(name)?.process().signal("STOP").await?;
        self.owners.left(name);
        Ok(())
    }

    /// Lets it go on.
    pub(super) async fn resume(&self, name: &str) -> anyhow::Result<()> {
        let reporter = self.reporter(name)?;
        reporter.process().signal("CONT").await?;
        self.owners.joined(name, reporter.url());
        Ok(())
    }

    /// Kills one in this instant, after telling `first`.
    pub(super) async fn kill(&mut self, name: &str, first: impl FnOnce()) -> anyhow::Result<()> {
        self.look();
        let member = self.members.remove(name).with_context(|| format!("there is no {name}"))?;
        let lines = member.reporter.process().lines().clone();
        first();
        self.owners.left(name);
        member.reporter.kill().await?;
        self.logs.push((name.to_owned(), lines.all()));
        Ok(())
    }

    /// Asks these to stop (SIGTERM), all at once, and waits for their end.
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
                (name, lines, stopped)
            });
        }
        for (name, lines, stopped) in futures::future::join_all(stopping).await {
            self.owners.left(name);
            self.panics.extend(lines.panics());
            self.logs.push((name.clone(), lines.all()));
            stopped.with_context(|| format!("stop {name}"))?;
        }
        Ok(())
    }

    /// Notes panics.
    pub(super) fn look(&mut self) {
        for member in self.members.values() {
            self.panics.extend(member.reporter.process().lines().panics());
        }
    }

    /// Writes the log of every process there was into a folder that stays.
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
            let told = process::explain(&self.program, application, &self.directory.join(name)).await;
            said.push(format!("{name}: {told}"));
        }
        said.join("\n")
    }

    /// Asks all of them to stop, within the time that one has.
    pub(super) async fn end(&mut self) -> anyhow::Result<()> {
        self.stop(&self.names()).await
    }

    /// Waits until every shard is owned by one replica, and evenly.
    pub(super) async fn settled(&self, within: Duration) -> anyhow::Result<()> {
        self.owners.settled(within).await
    }
}
