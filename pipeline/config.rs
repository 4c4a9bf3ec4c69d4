//! The settings of the process: read once, checked as a whole, typed.
//!
//! takes: `config/default.yaml` < a file < the incumbent's variables < our own < flags - gives: [`Config`], and
//! the variables that are known and not needed - fails: with every problem at once, each with the path of its
//! setting. Nothing is read from or written to the disk but the file of settings; what a setting names (tokens,
//! the state directory) is opened by whoever starts: see [`State::open`].

mod bus;
mod catalogue;
mod command;
mod environment;
mod host;
mod layers;
mod print;
mod problem;
mod raw;
mod resolve;
mod sharding;
mod state;
mod traces;
mod units;

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use pipeline_core::SecretString;
use url::Url;

pub(crate) use self::bus::{Bus, Credentials as BusCredentials};
pub(crate) use self::command::run;
use self::environment::FILE;
pub(crate) use self::environment::{Ignored, Variables, set};
use self::host::Host;
use self::layers::Layers;
pub(crate) use self::problem::Problems;
pub(crate) use self::raw::{Algorithm, LogFormat, LogLevel, TrackingMethod};
pub(crate) use self::resolve::NAMESPACE;
pub(crate) use self::state::{Places, State};
pub(crate) use self::traces::Traces;
pub(crate) use self::units::SocketPlace;

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

/// Everything, resolved.
#[derive(Debug)]
pub(crate) struct Config {
    /// The API server whose Applications are watched.
    pub(crate) kubernetes: Kubernetes,
    /// The Argo CD API server.
    pub(crate) argocd: Argocd,
    /// The platform.
    pub(crate) platform: Platform,
    /// The bus; `None`: it is in memory, and there is one process or each has its own shard.
    pub(crate) bus: Option<Bus>,
    /// The ledger and the redaction key: which, and where.
    pub(crate) state: State,
    /// Where `/healthz`, `/readyz`, `/metrics` and `/app-distribution` are served; `None` serves nothing.
    pub(crate) serve: Option<SocketAddr>,
    /// Where `/metrics` is served as well; never the same as `serve`.
    pub(crate) serve_metrics: Option<SocketAddr>,
    /// Who may ask the process, beside the socket in [`State`].
    pub(crate) admin: Admin,
    /// Where traces go; `None`: there are none.
    pub(crate) traces: Option<Traces>,
    /// Whether the incumbent's metrics, with application names, are exposed too.
    pub(crate) compat_metrics: bool,
    /// The least severe level that is logged.
    pub(crate) log_level: LogLevel,
    /// How lines are logged.
    pub(crate) log_format: LogFormat,
    /// What work in flight gets after SIGTERM.
    pub(crate) grace: Duration,
    /// The application event reporter.
    pub(crate) reporter: Reporter,
}

/// How the Kubernetes API server is reached, and what is watched there.
#[derive(Debug)]
pub(crate) struct Kubernetes {
    /// `None`: the usual places.
    pub(crate) kubeconfig: Option<PathBuf>,
    /// `None`: the kubeconfig's current one.
    pub(crate) context: Option<String>,
    /// Given: no kubeconfig is read.
    pub(crate) server: Option<Url>,
    /// For `server`.
    pub(crate) token: Token,
    /// For `server`.
    pub(crate) ca_file: Option<PathBuf>,
    /// The namespace Argo CD is installed in.
    pub(crate) namespace: String,
    /// Patterns of further namespaces, as `stages_kube::Namespaces` reads them; empty: `namespace` alone is watched.
    pub(crate) application_namespaces: Vec<String>,
    /// Applications in a page of a list.
    pub(crate) page_size: u32,
}

/// How Argo CD is asked.
#[derive(Debug)]
pub(crate) struct Argocd {
    /// Without a path.
    pub(crate) url: Url,
    /// Empty, or `/` and a path that does not end with `/`.
    pub(crate) root_path: String,
    pub(crate) token: Token,
    pub(crate) ca_file: Option<PathBuf>,
    pub(crate) insecure: bool,
    /// Of one call.
    pub(crate) timeout: Duration,
    /// Of all calls of one event.
    pub(crate) event_timeout: Duration,
    /// The most calls in flight.
    pub(crate) concurrency: usize,
    /// The fewest that may be, at most `concurrency`.
    pub(crate) min_concurrency: usize,
    /// The most that begin in a second; `None` for any number.
    pub(crate) requests_per_second: Option<NonZeroU32>,
    /// Tries of one call, at least 1.
    pub(crate) retries: u32,
    /// Bytes of an answer.
    pub(crate) max_body: usize,
    /// Between two looks at the tracking settings.
    pub(crate) settings_interval: Duration,
    /// `Auto` asks Argo CD.
    pub(crate) tracking_method: TrackingMethod,
    /// `None` asks Argo CD.
    pub(crate) instance_label_key: Option<String>,
    /// Bytes of cached manifests.
    pub(crate) cache_manifests: u64,
    /// Bytes of cached commit metadata.
    pub(crate) cache_revisions: u64,
    /// Bytes of cached parent applications.
    pub(crate) cache_parents: u64,
}

/// How the platform is reached.
#[derive(Debug)]
pub(crate) struct Platform {
    /// Its address, as given.
    pub(crate) url: Url,
    pub(crate) token: Token,
    pub(crate) ca_file: Option<PathBuf>,
    pub(crate) insecure: bool,
    /// Of one request; with leases at most [`Leases::post_timeout`].
    pub(crate) timeout: Duration,
}

/// The admin address.
#[derive(Debug)]
pub(crate) struct Admin {
    /// Loopback, or there is a token; `None`: nothing is served over TCP.
    pub(crate) address: Option<SocketAddr>,
    /// What each request to `address` carries.
    pub(crate) token: Token,
}

/// The application event reporter.
#[derive(Debug)]
pub(crate) struct Reporter {
    /// How a name finds its shard.
    pub(crate) algorithm: Algorithm,
    /// Over all processes, at least 1.
    pub(crate) shards: u32,
    /// The one this process owns, less than `shards`; `None`: all of them, or those whose [`Leases`] it holds.
    pub(crate) shard: Option<u32>,
    /// Events in the queue of one shard.
    pub(crate) queue_events: usize,
    /// Bytes in the queues of all shards of the process.
    pub(crate) queue_bytes: usize,
    /// Applications of one shard worked on at once.
    pub(crate) concurrency: usize,
    /// Reports of one application sent at once.
    pub(crate) report_concurrency: usize,
    /// Dirty applications read at once.
    pub(crate) reads: usize,
    /// The first wait before a retry.
    pub(crate) retry_min: Duration,
    /// The longest wait before a retry.
    pub(crate) retry_max: Duration,
    /// Between probes of a sink that refuses the token or the rights.
    pub(crate) refused_probe: Duration,
    /// How long something may be unreported before what cannot be read again of it is kept in the ledger.
    pub(crate) journal: Duration,
    /// How often the sink is told what it should hold; `None`: never.
    pub(crate) digest: Option<Duration>,
    /// `None`: no limit.
    pub(crate) rate_limit: Option<RateLimit>,
    /// Where reports go.
    pub(crate) sink: Sink,
}

/// How often one application is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RateLimit {
    /// Events in a window.
    pub(crate) bucket: NonZeroU32,
    /// The window.
    pub(crate) window: Duration,
    /// Count only.
    pub(crate) learning: bool,
}

/// Where reports go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sink {
    /// To [`Config::platform`].
    Platform {
        /// The events API there, beginning with `/`.
        path: String,
        /// 0 to 9.
        gzip_level: u32,
        /// Requests of one report each that may be under way, at least 1.
        concurrency: usize,
        /// How many reports share a request; `None`: each has its own.
        batch: Option<Batch>,
    },
    /// A line each.
    Stdout,
    /// A line each, appended.
    File(PathBuf),
}

/// What shares a request to the platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Batch {
    /// Where batches are taken, beginning with `/`.
    pub(crate) path: String,
    /// The most reports in one.
    pub(crate) reports: usize,
    /// The most bytes of reports in one.
    pub(crate) bytes: usize,
    /// How long a report waits for others.
    pub(crate) linger: Duration,
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

/// Reads a duration as settings have it, such as 90m.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    <Duration as units::Unit>::read(text)
}

/// The variables of this process. What is not text in them is replaced, and refused where it matters.
pub(crate) fn variables() -> Variables {
    let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    std::env::vars_os().map(|(name, value)| (text(name), text(value))).collect()
}

#[cfg(test)]
pub(crate) fn setting_paths() -> std::collections::BTreeSet<String> {
    catalogue::Catalogue::get().settings.iter().map(|setting| setting.path.clone()).collect()
}

impl Config {
    /// Reads the settings of this process.
    pub(crate) fn load(given: &Given, variables: &Variables) -> Result<Loaded, Problems> {
        let mut layers = Self::lay(given, variables);
        let config = Self::resolve(&mut layers, &Host::read(variables))?;
        Ok(Loaded { config, ignored: layers.ignored })
    }

    /// Reads the settings for a command that starts nothing: what only a start cannot do without may be missing.
    pub(crate) fn load_given(given: &Given, variables: &Variables) -> Result<Self, Problems> {
        let mut layers = Self::lay(given, variables);
        let host = Host::read(variables);
        let config = layers.raw().and_then(|raw| resolve::config(raw, &host, &mut layers.problems));
        match config {
            Some(config) if !layers.problems.is_wrong() => Ok(config),
            _ if layers.problems.is_wrong() => Err(layers.problems.without_missing()),
            _ => Err(layers.problems),
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
        let config = layers.raw().and_then(|raw| resolve::config(raw, host, &mut layers.problems));
        match config {
            Some(config) if layers.problems.is_empty() => Ok(config),
            _ => Err(std::mem::take(&mut layers.problems)),
        }
    }
}
