//! All three simulators together, and the settings that point the runtime at them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::argocd::{self, ArgoCdSim, Content};
use super::certificate::{Authority, Identity};
use super::generate::{Changed, Fleet, Mix, Shape};
use super::kube::{self, Collection, KubeSim};
use super::platform::{self, Keep, PlatformSim};
use super::player::Player;
use super::server::Listen;
use crate::recordings::Case;
use crate::reporter::merge;

/// What the simulators serve.
#[derive(Debug, Clone, Default)]
pub enum Load {
    /// Cases of one cluster, replayed by [`Simulation::player`].
    Recording(Vec<Case>),
    /// Generated applications, put into the cluster by [`Simulation::populate`].
    Generated(Shape),
    /// Nothing but what a test puts in.
    #[default]
    Told,
}

/// What a simulation is like.
#[derive(Debug, Clone)]
pub struct Setup {
    /// What is served.
    pub load: Load,
    /// Ports of the API server, Argo CD and the platform; 0 takes a free one.
    pub ports: [u16; 3],
    /// TLS with this certificate for the API server, Argo CD and the platform; `None` is plain HTTP.
    pub tls: [Option<Identity>; 3],
    /// The path Argo CD is served under.
    pub argocd_root: String,
    /// How late Argo CD answers.
    pub argocd_latency: Duration,
    /// How late the platform answers.
    pub platform_latency: Duration,
    /// How many past changes a watch may start from.
    pub history: usize,
    /// How much of the payloads the platform keeps.
    pub keep: Keep,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            load: Load::default(),
            ports: [0; 3],
            tls: [Some(Identity::Good), None, None],
            argocd_root: String::new(),
            argocd_latency: Duration::ZERO,
            platform_latency: Duration::ZERO,
            history: 10_000,
            keep: Keep::default(),
        }
    }
}

/// The running simulators. Dropping it ends them and removes its files.
#[derive(Debug)]
pub struct Simulation {
    /// The API server.
    pub kube: KubeSim,
    /// Argo CD.
    pub argocd: ArgoCdSim,
    /// The platform.
    pub platform: PlatformSim,
    /// Plays the recording, if that is the load.
    pub player: Option<Player>,
    /// The generated applications, if they are the load.
    pub fleet: Option<Arc<Fleet>>,
    directory: TempDir,
    settings: Value,
}

const KUBE_TOKEN: &str = "simulated-kubernetes-token";
const ARGOCD_TOKEN: &str = "simulated-argocd-token";
const PLATFORM_TOKEN: &str = "simulated-platform-token";

impl Simulation {
    /// Starts the simulators on loopback.
    pub async fn start(setup: Setup) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir().context("make a folder for the simulation")?;
        let authority = Authority::new()?;
        let ca = directory.path().join("ca.pem");
        write(&ca, &authority.pem())?;
        let mut listens = Vec::new();
        for (port, identity) in setup.ports.into_iter().zip(setup.tls) {
            let listen = Listen::port(port);
            listens.push(match identity {
                Some(identity) => listen.with_tls(authority.server(identity)?),
                None => listen,
            });
        }
        let mut listen = listens.into_iter();
        let (mut player, mut fleet) = (None, None);
        let content = match setup.load {
            Load::Recording(cases) => play(Player::new(&cases)?, &mut player),
            Load::Generated(shape) => {
                let own = Arc::new(Fleet::new(shape)?);
                fleet = Some(own.clone());
                Content::Generated(own)
            }
            Load::Told => Content::Told,
        };
        let kube = KubeSim::start(kube::Config {
            listen: listen.next().unwrap_or_default(),
            token: Some(KUBE_TOKEN.to_owned()),
            history: setup.history,
            fleet: fleet.clone(),
            ..kube::Config::default()
        })
        .await?;
        let argocd = ArgoCdSim::start(argocd::Config {
            listen: listen.next().unwrap_or_default(),
            root: setup.argocd_root.clone(),
            token: Some(ARGOCD_TOKEN.to_owned()),
            content,
        })
        .await?;
        argocd.faults().set_latency(setup.argocd_latency);
        let platform = PlatformSim::start(platform::Config {
            listen: listen.next().unwrap_or_default(),
            token: Some(PLATFORM_TOKEN.to_owned()),
            keep: setup.keep,
        })
        .await?;
        platform.faults().set_latency(setup.platform_latency);

        let path = |name: &str| directory.path().join(name).display().to_string();
        for (name, token) in [("argocd-token", ARGOCD_TOKEN), ("platform-token", PLATFORM_TOKEN)] {
            write(Path::new(&path(name)), token)?;
        }
        write(Path::new(&path("kubeconfig")), &kubeconfig(&kube.url(), &ca).to_string())?;
        let trusted = |tls: Option<Identity>| tls.map(|_| ca.display().to_string()).unwrap_or_default();
        let settings = json!({
            "kubernetes": {"kubeconfig": path("kubeconfig"), "namespace": "argocd"},
            "argocd": {
                "url": argocd.url(), "rootPath": setup.argocd_root, "tokenFile": path("argocd-token"),
                "caFile": trusted(setup.tls[1]),
            },
            "platform": {
                "url": platform.url(), "tokenFile": path("platform-token"), "caFile": trusted(setup.tls[2]),
            },
            "state": {"directory": path("state")},
        });
        std::fs::create_dir(path("state")).context("make a folder for the runtime's state")?;
        Ok(Self { kube, argocd, platform, player, fleet, directory, settings })
    }

    /// The folder of the simulation's files; it goes with the simulation.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The runtime's settings that point it at the simulators, in the shape of its configuration file.
    #[must_use]
    pub fn settings(&self) -> &Value {
        &self.settings
    }

    /// Writes a configuration file of [`Self::settings`] with `more` over them, and gives the environment
    /// that makes the runtime read it.
    pub fn environment(&self, more: &Value) -> anyhow::Result<Vec<(String, String)>> {
        let mut settings = self.settings.clone();
        merge(&mut settings, more);
        let path = self.directory.path().join("config.yaml");
        // JSON is YAML.
        write(&path, &format!("{settings:#}\n"))?;
        Ok(vec![("GITOPS_RUNTIME_CONFIG".to_owned(), path.display().to_string())])
    }

    /// Puts every generated application into the cluster; gives how many.
    pub fn populate(&self) -> anyhow::Result<usize> {
        let Some(fleet) = &self.fleet else { return Ok(0) };
        let states = fleet.snapshot();
        for state in &states {
            self.kube.apply_generated(&fleet.key(state.index)?, state.clone());
        }
        Ok(states.len())
    }

    /// Changes a generated application in Argo CD and then in the cluster; gives the change and its
    /// resourceVersion, `None` when there is no application.
    pub fn change(&self, mix: Mix, chance: &mut fastrand::Rng) -> anyhow::Result<Option<(Changed, u64)>> {
        let Some(fleet) = &self.fleet else { return Ok(None) };
        let Some(changed) = fleet.change(mix, chance) else { return Ok(None) };
        let version = self.kube.apply_generated(&fleet.key(changed.state.index)?, changed.state.clone());
        Ok(Some((changed, version)))
    }

    /// Deletes a generated application from Argo CD and the cluster.
    pub fn delete(&self, index: u32) -> anyhow::Result<bool> {
        let Some(fleet) = &self.fleet else { return Ok(false) };
        fleet.remove(index);
        Ok(self.kube.delete(Collection::Applications, &fleet.key(index)?))
    }

    /// Ends the simulators and removes their files.
    pub async fn stop(self) -> anyhow::Result<()> {
        self.kube.down().await;
        self.argocd.down().await;
        self.platform.down().await;
        self.platform.close_file().await?;
        self.directory.close().context("remove the simulation's folder")
    }
}

fn play(own: Player, player: &mut Option<Player>) -> Content {
    let recorded = own.recorded();
    *player = Some(own);
    Content::Recorded(recorded)
}

fn kubeconfig(url: &str, ca: &Path) -> Value {
    let mut cluster = json!({"server": url});
    if url.starts_with("https") {
        cluster["certificate-authority"] = json!(ca.display().to_string());
    }
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "simulation",
        "clusters": [{"name": "simulation", "cluster": cluster}],
        "users": [{"name": "simulation", "user": {"token": KUBE_TOKEN}}],
        "contexts": [{"name": "simulation", "context": {
            "cluster": "simulation", "user": "simulation", "namespace": "argocd",
        }}],
    })
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("write {}", path.display()))
}
