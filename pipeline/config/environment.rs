//! The environment: the variables of the incumbent event reporter, understood as they are, so that swapping
//! the image of a container is enough; and our own, one for each setting.
//!
//! A variable that is set to nothing counts as not set: charts write empty values for what they do not know.

use std::collections::BTreeMap;

use super::catalogue::{Catalogue, removed};
use super::layers::Layers;
use super::problem::{Origin, did_you_mean};

/// What our own variables begin with.
pub(crate) const PREFIX: &str = "GITOPS_RUNTIME_";

/// Names the file of settings; not a setting itself.
pub(crate) const FILE: &str = "GITOPS_RUNTIME_CONFIG";

/// Names the platform that people's commands ask; not a setting itself.
const CONTEXT: &str = "GITOPS_RUNTIME_CONTEXT";

/// The variables of the process, but for those that are not text.
pub(crate) type Variables = BTreeMap<String, String>;

/// A variable that is known and has no effect; worth one line in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ignored {
    /// The variable.
    pub(crate) name: String,
    /// Why it is not needed.
    pub(crate) why: &'static str,
}

/// What a variable of the incumbent means here.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Meaning {
    /// The setting, written the same way.
    Same(&'static str),
    /// The setting, once rewritten.
    As(&'static str, fn(&str) -> String),
    /// Several settings, or what another value leaves as it is: see [`replicas`], [`mode`] and [`namespaced`].
    Joint,
}

use Meaning::{As, Joint, Same};

/// Every variable the incumbent reads, of both its generations: the one in the fork of Argo CD 2.12 and the
/// later one of the chart. Where two set the same, the later line wins.
pub(crate) const INCUMBENT: &[(&str, Meaning)] = &[
    ("ARGOCD_APPLICATION_NAMESPACES", Same("kubernetes.applicationNamespaces")),
    ("EVENT_REPORTER_APPLICATION_SERVER", As("argocd.url", with_scheme)),
    ("ARGOCD_SERVER", As("argocd.url", with_scheme)),
    ("ARGOCD_SERVER_ROOTPATH", Same("argocd.rootPath")),
    ("ARGOCD_TOKEN", Same("argocd.token")),
    ("ARGO_CD_TOKEN_SECRET_NAME", Same("argocd.tokenSecret.name")),
    ("ARGO_CD_TOKEN_SECRET_KEY", Same("argocd.tokenSecret.key")),
    ("CODEFRESH_URL", Same("platform.url")),
    ("CODEFRESH_TOKEN", Same("platform.token")),
    ("CODEFRESH_SSL_CERT_PATH", Same("platform.caFile")),
    ("CODEFRESH_TLS_INSECURE", Same("platform.insecure")),
    ("EVENT_REPORTER_LISTEN_ADDRESS", As("serve.address", with_port::<8088>)),
    ("LISTEN_ADDRESS", As("serve.address", with_port::<8088>)),
    ("EVENT_REPORTER_METRICS_LISTEN_ADDRESS", As("serve.metricsAddress", with_port::<8087>)),
    ("METRICS_LISTEN_ADDRESS", As("serve.metricsAddress", with_port::<8087>)),
    ("EVENT_REPORTER_LOG_LEVEL", As("log.level", level)),
    ("LOG_LEVEL", As("log.level", level)),
    ("EVENT_REPORTER_LOGFORMAT", As("log.format", str::to_lowercase)),
    ("LOG_FORMAT", As("log.format", str::to_lowercase)),
    ("EVENT_REPORTER_SHARDING_ALGORITHM", As("reporter.sharding.algorithm", algorithm)),
    ("SHARDING_ALGORITHM", As("reporter.sharding.algorithm", algorithm)),
    ("EVENT_REPORTER_REPLICAS", Joint),
    ("EVENT_REPORTER_SHARD", Joint),
    ("APP_QUEUE_SIZE", Same("reporter.queue.events")),
    ("RATE_LIMITER_ENABLED", Same("reporter.rateLimit.enabled")),
    ("RATE_LIMITER_BUCKET_SIZE", As("reporter.rateLimit.bucket", at_most_32_bits)),
    ("RATE_LIMITER_DURATION", Same("reporter.rateLimit.window")),
    ("RATE_LIMITER_LEARNING_MODE_ENABLED", Same("reporter.rateLimit.learning")),
    ("REPORTER_MODE", Joint),
    ("IS_NAMESPACED_RUNTIME", Joint),
];

/// Variables of the incumbent that mean nothing here, and why.
pub(crate) const NOT_NEEDED: &[(&str, &str)] = &[
    ("it chooses the role when the command line names none", "BINARY_NAME"),
    (
        "what was reported is remembered in the ledger",
        "ARGOCD_APP_EVENTS_CACHE_DURATION ARGOCD_RESOURCE_EVENTS_CACHE_DURATION REDIS_SERVER \
         REDIS_USERNAME REDIS_PASSWORD REDIS_COMPRESSION REDIS_SENTINEL_USERNAME REDIS_SENTINEL_PASSWORD \
         REDISDB",
    ),
    (
        "manifests are asked of the Argo CD API server",
        "EVENT_REPORTER_REPO_SERVER EVENT_REPORTER_REPO_SERVER_PLAINTEXT \
         EVENT_REPORTER_REPO_SERVER_STRICT_TLS EVENT_REPORTER_REPO_SERVER_TIMEOUT_SECONDS REPO_SERVER \
         REPO_SERVER_PLAINTEXT REPO_SERVER_STRICT_TLS REPO_SERVER_TIMEOUT_SECONDS",
    ),
    (
        "what is served is served as plain HTTP",
        "EVENT_REPORTER_INSECURE EVENT_REPORTER_CONTENT_SECURITY_POLICY INSECURE",
    ),
    ("Argo CD is spoken to over REST", "USE_GRPC"),
    (
        "a watch that breaks is always restarted",
        "EVENT_REPORTER_K8S_RETRY_COUNT EVENT_REPORTE_K8S_RETRY_DURATION_MILLISECONDS",
    ),
    ("reporter.lanes.concurrency is per shard; set that instead", "THREADINESS RESOURCE_THREADINESS"),
    ("a report is tried again until it is delivered", "MAX_APP_RETRIES"),
    ("reporter.sources says who is asked for versions of applications", "ARGO_GATEWAY_URL SOURCES_SERVER"),
    ("traces are exported to traces.otlp.url alone", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"),
    (
        "names of the installation are not reported",
        "RUNTIME_VERSION SERVICE_NAME CF_SERVICE_NAME CF_SERVICE_VERSION",
    ),
];

/// Lays what the incumbent's variables say.
pub(crate) fn incumbent(layers: &mut Layers, variables: &Variables) {
    for (name, meaning) in INCUMBENT {
        let Some(text) = set(variables, name) else { continue };
        match meaning {
            Same(path) => lay(layers, path, text, name),
            As(path, rewrite) => lay(layers, path, &rewrite(text), name),
            Joint => {}
        }
    }
    for (why, names) in NOT_NEEDED {
        let given = names.split_whitespace().filter(|name| set(variables, name).is_some());
        layers.ignored.extend(given.map(|name| Ignored { name: name.to_owned(), why }));
    }
    replicas(layers, variables);
    mode(layers, variables);
    namespaced(layers, variables);
}

/// Lays what our own variables say. A variable of our prefix that is not known is a problem, unless
/// Kubernetes made it for a Service whose name begins like ours.
pub(crate) fn own(layers: &mut Layers, variables: &Variables) {
    let settings = &Catalogue::get().settings;
    for (name, text) in variables.iter().filter(|(name, _)| name.starts_with(PREFIX)) {
        if let Some(setting) = settings.iter().find(|setting| setting.variable == *name) {
            if !text.is_empty() {
                layers.text(setting, text, Origin::Variable(name.clone()));
            }
        } else if ![FILE, CONTEXT].contains(&name.as_str()) && !is_service_link(name) {
            // Compared without what all of them begin with, which would make everything near.
            let rest = |name: &'static str| name.strip_prefix(PREFIX).unwrap_or(name);
            let known = settings.iter().map(|setting| setting.variable.as_str()).chain([FILE]).map(rest);
            let near = did_you_mean(name.strip_prefix(PREFIX).unwrap_or(name), known);
            let near = near.replacen('\'', &format!("'{PREFIX}"), 1);
            let instead = removed(name).unwrap_or(&near);
            layers.problems.add(name, format!("unknown variable{instead}"));
        }
    }
}

/// Replicas with fixed shards, the incumbent's way: as many shards as replicas, and each replica owns the one
/// of its number. One replica owns everything, however many shards it works with.
fn replicas(layers: &mut Layers, variables: &Variables) {
    const REPLICAS: &str = "EVENT_REPORTER_REPLICAS";
    const SHARD: &str = "EVENT_REPORTER_SHARD";
    let (replicas, shard) = (set(variables, REPLICAS), set(variables, SHARD));
    if let Some(replicas) = replicas {
        if matches!(replicas, "0" | "1") {
            let why = "one process owns every shard";
            let names = [Some(REPLICAS), shard.map(|_| SHARD)];
            let ignored = names.into_iter().flatten().map(|name| Ignored { name: name.to_owned(), why });
            layers.ignored.extend(ignored);
            return;
        }
        lay(layers, "reporter.sharding.shards", replicas, REPLICAS);
    }
    match shard {
        Some(number) if !number.starts_with('-') => lay(layers, "reporter.sharding.shard", number, SHARD),
        Some(_) => lay(layers, "reporter.sharding.shard", "hostname", SHARD),
        None if replicas.is_some() => lay(layers, "reporter.sharding.shard", "hostname", REPLICAS),
        None => {}
    }
}

/// What the incumbent's one binary of reporters is to report.
const MODE: &str = "REPORTER_MODE";
/// The mode of objects that are no Applications.
const OF_RESOURCES: &str = "resource";

fn mode(layers: &mut Layers, variables: &Variables) {
    let why = match set(variables, MODE) {
        None => return,
        Some("app") => "the reporter reports applications and their resources",
        Some("combined") => "applications and their resources are reported, other resources are not",
        Some(OF_RESOURCES) => "the role resource-reporter reports resources alone",
        Some(_) => return layers.problems.add(MODE, "only app, combined and resource are understood"),
    };
    layers.ignored.push(Ignored { name: MODE.to_owned(), why });
}

/// A runtime that has rights in its own namespace alone: objects elsewhere would be refused, and with them all of the kind. A file
/// that says where they are knows better: the variable says nothing of further namespaces that rights were given in.
fn namespaced(layers: &mut Layers, variables: &Variables) {
    const NAMESPACED: &str = "IS_NAMESPACED_RUNTIME";
    const NAMESPACES: &str = "resources.namespaces";
    if !set(variables, NAMESPACED).is_some_and(|is| is.eq_ignore_ascii_case("true")) {
        return;
    }
    let setting = Catalogue::get().setting(NAMESPACES);
    if setting.is_some_and(|setting| matches!(layers.value(setting).1, Origin::File(_))) {
        let why = "resources.namespaces of the file says what is watched";
        layers.ignored.push(Ignored { name: NAMESPACED.to_owned(), why });
    } else {
        lay(layers, NAMESPACES, "", NAMESPACED);
    }
}

/// What the reporter of applications cannot be started with: the deployment that reports resources must not become a second one of it.
pub(crate) fn of_reporter(layers: &mut Layers, variables: &Variables) {
    if set(variables, MODE) == Some(OF_RESOURCES) {
        let problem =
            "resource is of the role resource-reporter: run that instead, or take the variable away";
        layers.problems.add(MODE, problem);
    }
}

/// The role that the incumbent's variables choose, as they choose what its images run; `None` where they name nothing of it that is
/// here.
pub(crate) fn role(binary: &str, variables: &Variables) -> Option<&'static str> {
    match binary {
        "event-reporter" if set(variables, MODE) == Some(OF_RESOURCES) => Some("resource-reporter"),
        "event-reporter" | "event-reporter-server" => Some("reporter"),
        "argo-gateway" | "sources-server" => Some("source-server"),
        _ => None,
    }
}

fn lay(layers: &mut Layers, path: &str, text: &str, name: &str) {
    if let Some(setting) = Catalogue::get().setting(path) {
        layers.text(setting, text.trim(), Origin::Variable(name.to_owned()));
    }
}

/// The text of a variable that is set to something.
pub(crate) fn set<'a>(variables: &'a Variables, name: &str) -> Option<&'a str> {
    variables.get(name).map(|text| text.trim()).filter(|text| !text.is_empty())
}

/// Whether Kubernetes made the variable: it describes each Service of the namespace by some, and a Service may
/// well be called `gitops-runtime`.
fn is_service_link(name: &str) -> bool {
    let protocol = |rest: &str| ["_TCP", "_UDP", "_SCTP"].iter().any(|name| rest.contains(name));
    let numbered = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit()) && protocol(rest);
    name.ends_with("_SERVICE_HOST")
        || name.ends_with("_SERVICE_PORT")
        || name.contains("_SERVICE_PORT_")
        || name.ends_with("_PORT")
        || name.split("_PORT_").skip(1).any(numbered)
}

/// The incumbent's address of Argo CD has no scheme, and means plain HTTP then.
fn with_scheme(text: &str) -> String {
    if text.contains("://") { text.to_owned() } else { format!("http://{text}") }
}

/// The incumbent's addresses to listen on are hosts; its ports are fixed.
fn with_port<const PORT: u16>(text: &str) -> String {
    match text.parse::<std::net::IpAddr>() {
        Ok(ip) => std::net::SocketAddr::new(ip, PORT).to_string(),
        Err(_) if text == "localhost" => format!("127.0.0.1:{PORT}"),
        Err(_) => text.to_owned(),
    }
}

/// The incumbent's levels, in any case.
fn level(text: &str) -> String {
    match text.to_lowercase().as_str() {
        "warning" => "warn".to_owned(),
        "fatal" | "panic" => "error".to_owned(),
        other => other.to_owned(),
    }
}

fn algorithm(text: &str) -> String {
    if text == "legacy" { "fnv-modulo".to_owned() } else { text.to_owned() }
}

/// The incumbent counts with 64 bits, and its largest number means no limit.
fn at_most_32_bits(text: &str) -> String {
    match text.parse::<u64>() {
        Ok(number) => number.min(u64::from(u32::MAX)).to_string(),
        Err(_) => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
