//! The settings as they stand in a file: their names, types and limits. What each means, and its default,
//! stands in `config/default.yaml`, and there alone.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use pipeline_core::SecretString;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use url::Url;

use super::bus::Written as Bus;
use super::sharding::{Shard, Shards};
use super::traces::{Headers, Ratio};
use super::units::{As, Pattern, Size, SocketPlace, UrlPath};

/// Everything.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Raw {
    pub(crate) kubernetes: Kubernetes,
    pub(crate) argocd: Argocd,
    pub(crate) platform: Platform,
    pub(crate) bus: Bus,
    pub(crate) state: State,
    pub(crate) redaction: Redaction,
    pub(crate) serve: Serve,
    pub(crate) admin: Admin,
    pub(crate) metrics: Metrics,
    pub(crate) traces: Traces,
    pub(crate) log: Log,
    pub(crate) shutdown: Shutdown,
    pub(crate) reporter: Reporter,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Kubernetes {
    pub(crate) kubeconfig: As<Option<PathBuf>>,
    pub(crate) context: As<Option<String>>,
    pub(crate) server: As<Option<Url>>,
    pub(crate) token: As<Option<SecretString>>,
    pub(crate) token_file: As<Option<PathBuf>>,
    pub(crate) ca_file: As<Option<PathBuf>>,
    pub(crate) namespace: As<Option<String>>,
    pub(crate) application_namespaces: Vec<As<Pattern>>,
    #[schemars(range(min = 1, max = 500))]
    pub(crate) page_size: u32,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Argocd {
    pub(crate) url: As<Option<Url>>,
    pub(crate) root_path: As<UrlPath>,
    pub(crate) token: As<Option<SecretString>>,
    pub(crate) token_file: As<Option<PathBuf>>,
    pub(crate) token_secret: TokenSecret,
    pub(crate) ca_file: As<Option<PathBuf>>,
    pub(crate) insecure: bool,
    pub(crate) timeout: As<Duration>,
    pub(crate) event_timeout: As<Duration>,
    #[schemars(range(min = 1, max = 1024))]
    pub(crate) concurrency: usize,
    #[schemars(range(min = 1, max = 1024))]
    pub(crate) min_concurrency: usize,
    #[schemars(range(min = 0, max = 100_000))]
    pub(crate) requests_per_second: u32,
    #[schemars(range(min = 1, max = 10))]
    pub(crate) retries: u32,
    pub(crate) max_body: As<Size>,
    pub(crate) settings_interval: As<Duration>,
    pub(crate) tracking_method: TrackingMethod,
    pub(crate) instance_label_key: As<Option<String>>,
    pub(crate) cache: Cache,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TokenSecret {
    pub(crate) name: As<Option<String>>,
    pub(crate) key: As<Option<String>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cache {
    pub(crate) manifests: As<Size>,
    pub(crate) revisions: As<Size>,
    pub(crate) parents: As<Size>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TrackingMethod {
    Auto,
    Label,
    Annotation,
    #[serde(rename = "annotation+label")]
    AnnotationAndLabel,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Platform {
    pub(crate) url: As<Option<Url>>,
    pub(crate) token: As<Option<SecretString>>,
    pub(crate) token_file: As<Option<PathBuf>>,
    pub(crate) ca_file: As<Option<PathBuf>>,
    pub(crate) insecure: bool,
    pub(crate) timeout: As<Duration>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct State {
    pub(crate) directory: As<Option<PathBuf>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Redaction {
    pub(crate) key_file: As<Option<PathBuf>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Serve {
    pub(crate) address: As<Option<SocketAddr>>,
    pub(crate) metrics_address: As<Option<SocketAddr>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Admin {
    pub(crate) socket: As<SocketPlace>,
    pub(crate) address: As<Option<SocketAddr>>,
    pub(crate) token: As<Option<SecretString>>,
    pub(crate) token_file: As<Option<PathBuf>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Metrics {
    pub(crate) compat: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Traces {
    pub(crate) ratio: As<Ratio>,
    pub(crate) service: TracedService,
    pub(crate) otlp: Otlp,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TracedService {
    pub(crate) name: As<Option<String>>,
    pub(crate) namespace: As<Option<String>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Otlp {
    pub(crate) url: As<Option<Url>>,
    pub(crate) token: As<Option<SecretString>>,
    pub(crate) token_file: As<Option<PathBuf>>,
    pub(crate) headers: As<Headers>,
    pub(crate) ca_file: As<Option<PathBuf>>,
    pub(crate) insecure: bool,
    pub(crate) timeout: As<Duration>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Log {
    pub(crate) level: LogLevel,
    pub(crate) format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    Text,
    Json,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Shutdown {
    pub(crate) grace: As<Duration>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Reporter {
    pub(crate) sharding: Sharding,
    pub(crate) queue: Queue,
    pub(crate) lanes: Lanes,
    pub(crate) circuit: Circuit,
    pub(crate) rate_limit: RateLimit,
    pub(crate) ledger: Ledger,
    pub(crate) journal: Journal,
    pub(crate) digest: Digest,
    pub(crate) sink: Sink,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sharding {
    pub(crate) algorithm: Algorithm,
    pub(crate) shards: As<Shards>,
    pub(crate) shard: As<Shard>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Algorithm {
    Jump,
    FnvModulo,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Queue {
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) events: usize,
    pub(crate) bytes: As<Size>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Lanes {
    #[schemars(range(min = 1, max = 1024))]
    pub(crate) concurrency: usize,
    #[schemars(range(min = 1, max = 256))]
    pub(crate) report_concurrency: usize,
    #[schemars(range(min = 1, max = 256))]
    pub(crate) reads: usize,
    pub(crate) retry: Retry,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Retry {
    pub(crate) min: As<Duration>,
    pub(crate) max: As<Duration>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Circuit {
    pub(crate) refused_probe: As<Duration>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RateLimit {
    pub(crate) enabled: bool,
    #[schemars(range(min = 0, max = 4_294_967_295_u32))]
    pub(crate) bucket: u32,
    pub(crate) window: As<Duration>,
    pub(crate) learning: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ledger {
    pub(crate) storage: Storage,
    pub(crate) path: As<Option<PathBuf>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Storage {
    Auto,
    File,
    Memory,
    Bucket,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Journal {
    pub(crate) interval: As<Duration>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Digest {
    pub(crate) enabled: Choosing,
    pub(crate) interval: As<Duration>,
}

/// A switch that may be left to the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choosing {
    Auto,
    Given(bool),
}

impl<'de> Deserialize<'de> for Choosing {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Bool(given) => Ok(Self::Given(given)),
            Value::String(word) if word == "auto" => Ok(Self::Auto),
            _ => Err(serde::de::Error::custom("must be auto, true or false")),
        }
    }
}

impl JsonSchema for Choosing {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "choosing".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "enum": ["auto", true, false] })
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sink {
    pub(crate) kind: SinkKind,
    pub(crate) platform: SinkPlatform,
    pub(crate) file: SinkFile,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SinkKind {
    Platform,
    Stdout,
    File,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct SinkPlatform {
    pub(crate) path: As<UrlPath>,
    #[schemars(range(min = 0, max = 9))]
    pub(crate) gzip_level: u32,
    #[schemars(range(min = 1, max = 4096))]
    pub(crate) concurrency: usize,
    pub(crate) batch: Batch,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Batch {
    pub(crate) enabled: bool,
    pub(crate) path: As<UrlPath>,
    #[schemars(range(min = 1, max = 1000))]
    pub(crate) reports: usize,
    pub(crate) bytes: As<Size>,
    pub(crate) linger: As<Duration>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SinkFile {
    pub(crate) path: As<Option<PathBuf>>,
}
