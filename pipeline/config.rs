//! The settings of the process: read once, checked as a whole, typed.
//!
//! takes: `config/default.yaml` < a file < the incumbent's variables < our own < flags - gives: [`Config`], and
//! the variables that are known and not needed - fails: with every problem at once, each with the path of its
//! setting. Nothing is read from or written to the disk but the file of settings; what a setting names (tokens,
//! the state directory) is opened by whoever starts: see [`State::open`].

mod app_proxy;
mod bus;
mod catalogue;
mod change_revision;
mod command;
mod environment;
mod host;
mod layers;
mod listed;
mod nats;
mod peers;
mod platform_server;
mod print;
mod problem;
mod process;
mod reporter;
mod repositories;
mod resources;
mod router;
mod sharding;
mod source_server;
mod state;
mod target;
mod tls;
mod traces;
mod tunnel;
mod units;

use std::path::PathBuf;

use pipeline_core::SecretString;
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) use self::bus::Bus;
use self::bus::{Around, Followed};
pub(crate) use self::command::run;
use self::environment::FILE;
pub(crate) use self::environment::{Ignored, Variables, role, set};
use self::host::Host;
use self::layers::Layers;
pub(crate) use self::nats::NatsAccess;
pub(crate) use self::peers::{Access, Argocd, Kubernetes, Platform, TrackingMethod};
pub(crate) use self::platform_server::PlatformServer;
pub(crate) use self::problem::Problems;
pub(crate) use self::process::{Admin, Log, LogFormat, LogLevel, Serve, Shutdown};
use self::process::{Directory, Redaction};
use self::reporter::Storage;
pub(crate) use self::reporter::{ChangesFrom, EventMode, Reporter, SinkKind};
pub(crate) use self::repositories::Repositories;
pub(crate) use self::resources::{KindRules, Matching, RouteRules};
pub(crate) use self::sharding::Algorithm;
pub(crate) use self::source_server::From as SourcesFrom;
pub(crate) use self::state::{Places, State, either};
pub(crate) use self::target::{Target, ToEvents, ToNats, ToPlatform};
pub(crate) use self::traces::Traces;
pub(crate) use self::units::{As, SocketPlace};

/// Where a token comes from. Its text is never shown.
#[derive(Debug, Clone)]
pub(crate) enum Token {
    /// There is none.
    None,
    /// It was given as it is.
    Value(SecretString),
    /// It stands in a file, which may change.
    File(PathBuf),
    /// It stands in a Secret in `kubernetes.namespace`, to be read through the Kubernetes API.
    Secret {
        /// The Secret's name.
        name: String,
        /// The key in it.
        key: String,
    },
}

impl Token {
    /// A value stands above a file.
    fn of(value: &Option<SecretString>, file: &Option<PathBuf>) -> Self {
        match (value, file) {
            (Some(value), _) => Self::Value(value.clone()),
            (None, Some(file)) => Self::File(file.clone()),
            (None, None) => Self::None,
        }
    }

    fn is_given(&self) -> bool {
        !matches!(self, Self::None)
    }
}

/// Everything: a section each, as it stands in a file. What was left to the process is settled once it is loaded.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(title = "gitops-runtime")]
pub(crate) struct Config {
    pub(crate) kubernetes: Kubernetes,
    pub(crate) argocd: Argocd,
    pub(crate) platform: Platform,
    /// Apart, as others are: the settings are held by value where they are read, and these are large.
    pub(crate) platform_server: Box<PlatformServer>,
    pub(crate) router: router::Router,
    pub(crate) app_proxy: Box<app_proxy::AppProxy>,
    pub(crate) source_server: Box<source_server::SourceServer>,
    pub(crate) change_revision: Box<change_revision::ChangeRevision>,
    pub(crate) tunnel_server: tunnel::Server,
    pub(crate) tunnel_client: tunnel::Client,
    /// `None`: it is in memory, and there is one process or each has its own shard.
    #[schemars(with = "Bus")]
    pub(crate) bus: Option<Bus>,
    #[serde(rename = "state")]
    directory: Directory,
    redaction: Redaction,
    pub(crate) serve: Serve,
    pub(crate) admin: Admin,
    pub(crate) metrics: process::Metrics,
    /// `None`: there are none.
    #[schemars(with = "Traces")]
    pub(crate) traces: Option<Traces>,
    pub(crate) log: Log,
    pub(crate) shutdown: Shutdown,
    pub(crate) reporter: Reporter,
    pub(crate) resources: resources::Resources,
    /// The namespace of the process's pod, in a pod.
    #[serde(skip)]
    pub(crate) namespace: Option<String>,
    /// The ledger, the redaction key and the admin socket: which, and where.
    #[serde(skip)]
    pub(crate) state: State,
}

/// What the command line says of the settings. Not to be printed: somebody may have put a secret there.
#[derive(Default)]
pub(crate) struct Given {
    /// The file of settings; `None`: the one that the environment names, if it does.
    pub(crate) file: Option<PathBuf>,
    /// Path of a setting, flag, text.
    pub(crate) flags: Vec<(String, String, String)>,
}

/// A configuration, and what is worth saying of it.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// The settings.
    pub(crate) config: Config,
    /// The incumbent's variables that are set and not needed: to be logged once.
    pub(crate) ignored: Vec<Ignored>,
}

/// The variables of this process. What is not text in them is replaced, and refused where it matters.
pub(crate) fn variables() -> Variables {
    let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    std::env::vars_os().map(|(name, value)| (text(name), text(value))).collect()
}

/// What is wrong with settings that stand in the chart's values: the path of each, and why. What the environment
/// may still give is not missed.
pub(crate) fn judge(settings: &serde_json::Value) -> Vec<(String, String)> {
    let mut layers = Layers::default();
    layers.lay(settings.clone(), "", &problem::Origin::Default);
    match Config::resolve(&mut layers, &Host::default()) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.without_missing().into_pairs(),
    }
}

/// The paths of all settings.
#[cfg(test)]
pub(crate) fn setting_paths() -> std::collections::BTreeSet<String> {
    catalogue::Catalogue::get().settings.iter().map(|setting| setting.path.clone()).collect()
}

impl Config {
    /// Reads the settings of this process as the reporter has them.
    pub(crate) fn load(given: &Given, variables: &Variables) -> Result<Loaded, Problems> {
        let mut layers = Self::lay(given, variables);
        environment::of_reporter(&mut layers, variables);
        let config = Self::resolve(&mut layers, &Host::read(variables));
        let config = config.map_err(|problems| match layers.is_unread {
            true => problems.without_missing(),
            false => problems,
        })?;
        Ok(Loaded { config, ignored: layers.ignored })
    }

    /// Reads the settings for a command that starts nothing: what only a start cannot do without may be missing.
    pub(crate) fn load_given(given: &Given, variables: &Variables) -> Result<Self, Problems> {
        let mut layers = Self::lay(given, variables);
        let config =
            layers.read().and_then(|config| config.settle(&Host::read(variables), &mut layers.problems));
        match config {
            Some(config) if !layers.problems.is_wrong() => Ok(config),
            _ if layers.problems.is_wrong() => Err(layers.problems.without_missing()),
            _ => Err(layers.problems),
        }
    }

    /// Where Argo CD's own objects are, for a role whose own namespace may be another.
    pub(crate) fn argocd_namespace(&self) -> &str {
        self.argocd.namespace.as_deref().unwrap_or(&self.kubernetes.namespace)
    }

    /// As the role `change-revision` has them, which may run beside the reporter with the same settings: with a ledger, and on the
    /// bus shards, of its own. What was told is not yet written to the applications: where that begins, everything is told again.
    pub(crate) fn of_changes(&mut self) {
        let name = if self.change_revision.annotations { "annotations" } else { "changes" };
        self.state = std::mem::take(&mut self.state).of_changes(name);
        if let Some(bus) = &mut self.bus {
            let of_reporter = Followed { prefix: bus.prefix.0.clone(), group: name.to_owned() };
            bus.answered = Some(bus.prefix.0.clone());
            bus.followed = self.change_revision.follow_reporter.then_some(of_reporter);
            bus.prefix.0 = format!("{}.{name}", bus.prefix.0);
        }
    }

    fn lay(given: &Given, variables: &Variables) -> Layers {
        let mut layers = Layers::default();
        let named = || set(variables, FILE).map(PathBuf::from);
        if let Some(file) = given.file.clone().or_else(named) {
            layers.file(&file);
        }
        environment::incumbent(&mut layers, variables);
        environment::own(&mut layers, variables);
        for (path, flag, text) in &given.flags {
            layers.flag(path, flag, text);
        }
        layers
    }

    fn resolve(layers: &mut Layers, host: &Host) -> Result<Self, Problems> {
        let config = layers.read().and_then(|config| config.settle(host, &mut layers.problems));
        match config {
            Some(config) if layers.problems.is_empty() => Ok(config),
            _ => Err(std::mem::take(&mut layers.problems)),
        }
    }

    /// Finds what depends on the host, the choices that exclude each other, and what a choice cannot do without;
    /// `None` when a problem leaves nothing to go on with.
    fn settle(mut self, host: &Host, problems: &mut Problems) -> Option<Self> {
        let has_bus = self.bus.as_ref().is_some_and(|bus| !bus.urls.0.is_empty());
        self.reporter.sharding.settle(has_bus, host, problems);
        self.reporter.settle_storage(has_bus, problems);
        self.kubernetes.settle(host, problems);
        self.argocd.settle(problems);
        self.platform.check(self.reporter.sink.kind == SinkKind::Platform, problems);
        self.platform_server.check(problems);
        self.router.check(problems);
        self.app_proxy.check(problems);
        self.source_server.check(has_bus, problems);
        self.change_revision.check(problems);
        self.tunnel_server.check(problems);
        self.tunnel_client.check(problems);
        self.admin.check(problems);
        self.reporter.check(has_bus, problems);
        self.resources.check((&self.platform, &self.reporter.sink), problems);
        let no_file = self.reporter.sink.kind == SinkKind::File && self.reporter.sink.file.path.is_none();
        if self.argocd.url.is_none() || self.platform.url.is_none() || no_file {
            return None;
        }
        let around = Around {
            host,
            leased: self.reporter.sharding.leased,
            shards: self.reporter.sharding.shards(),
            bucket: self.reporter.ledger.storage == Storage::Bucket,
            post_timeout: *self.platform.timeout,
        };
        self.bus = self.bus.and_then(|bus| bus.settle(&around, problems));
        if let Some(leases) = self.bus.as_ref().and_then(|bus| bus.leases.as_ref()) {
            *self.platform.timeout = leases.post_timeout;
        }
        self.serve.settle();
        self.traces = self.traces.and_then(|traces| traces.settle(host, problems));
        self.namespace.clone_from(&host.namespace);
        self.state = State::of(&self, host);
        Some(self)
    }
}

#[cfg(test)]
mod tests;
