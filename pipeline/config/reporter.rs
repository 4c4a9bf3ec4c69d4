//! The settings of the role `reporter`.

use std::path::PathBuf;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use url::Url;

use super::problem::Problems;
use super::sharding::Sharding;
use super::source_server::{NO_BUS, Sources};
use super::units::{As, Size, Unit, UrlPath};

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
    digest: Digest,
    pub(crate) sources: Sources,
    pub(crate) change_revisions: ChangeRevisions,
    pub(crate) sink: Sink,
}

impl Reporter {
    /// How often a sink of this kind is told what it should hold; `None`: never.
    pub(crate) fn digest(&self, kind: SinkKind) -> Option<Duration> {
        let wanted = match self.digest.enabled {
            Choosing::Auto => matches!(kind, SinkKind::File | SinkKind::Platform),
            Choosing::Given(given) => given,
        };
        wanted.then_some(*self.digest.interval)
    }

    pub(super) fn check(&self, has_bus: bool, problems: &mut Problems) {
        let retry = &self.lanes.retry;
        problems.positive("reporter.lanes.retry.min", *retry.min);
        if *retry.max < *retry.min {
            problems.add("reporter.lanes.retry.max", "must not be shorter than reporter.lanes.retry.min");
        }
        problems.positive("reporter.circuit.refusedProbe", *self.circuit.refused_probe);
        problems.positive("reporter.journal.interval", *self.journal.interval);
        problems.positive("reporter.digest.interval", *self.digest.interval);
        self.sources.check(has_bus, problems);
        self.change_revisions.check(has_bus, problems);
        problems.positive("reporter.rateLimit.window", *self.rate_limit.window);
        match self.sink.kind {
            SinkKind::Platform => {
                let batch = &self.sink.platform.batch;
                problems.at_least("reporter.sink.platform.batch.bytes", &batch.bytes, "1Ki");
            }
            SinkKind::CloudEvents => {
                let events = &self.sink.cloudevents;
                if events.url.is_none() {
                    let next = "not set, and the sink cloudevents needs it; set it to where events are taken";
                    problems.missing("reporter.sink.cloudevents.url", next);
                }
                problems.positive("reporter.sink.cloudevents.timeout", *events.timeout);
                problems.at_least("reporter.sink.cloudevents.bytes", &events.bytes, "1Ki");
            }
            SinkKind::File if self.sink.file.path.is_none() => {
                let next = "not set, and the sink file needs it; set --output FILE";
                problems.missing("reporter.sink.file.path", next);
            }
            SinkKind::Stdout | SinkKind::File | SinkKind::Nats => {}
        }
        problems.at_least("reporter.queue.bytes", &self.queue.bytes, "1Mi");
    }

    /// Finds where the ledger is kept: never [`Storage::Auto`] afterwards.
    pub(super) fn settle_storage(&mut self, has_bus: bool, problems: &mut Problems) {
        const AT: &str = "reporter.ledger.storage";
        const SHARED: &str = "replicas that come and go share a ledger";
        let (leased, path) = (self.sharding.leased, self.ledger.path.is_some());
        self.ledger.of_routes = self.ledger.storage != Storage::Memory;
        self.ledger.storage = match self.ledger.storage {
            Storage::File | Storage::Memory if leased => {
                let text = format!(
                    "{SHARED}: take bucket or auto, or give each replica shards of its own by reporter.sharding.shard"
                );
                problems.add(AT, text);
                Storage::Bucket
            }
            Storage::Auto if leased => {
                if path {
                    let text = format!("{SHARED}, which is a bucket of the bus and no file: leave it empty");
                    problems.add("reporter.ledger.path", text);
                }
                Storage::Bucket
            }
            Storage::Bucket if !has_bus => {
                let text = "a bucket is on the bus, and bus.url is not set; set it (--bus nats://nats:4222), or take file";
                problems.missing(AT, text);
                Storage::Memory
            }
            Storage::Auto if path || self.sink.kind != SinkKind::Stdout => Storage::File,
            Storage::Auto => Storage::Memory,
            given => given,
        };
    }
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
    /// Whether those of further routes are kept in files, too: where nothing says that this one is kept in memory.
    #[serde(skip)]
    pub(crate) of_routes: bool,
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
struct Digest {
    enabled: Choosing,
    interval: As<Duration>,
}

/// A switch that may be left to the process.
#[derive(Debug)]
enum Choosing {
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

/// Whom the reporter asks which commits changed an application.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeRevisions {
    pub(crate) from: ChangesFrom,
    pub(crate) timeout: As<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ChangesFrom {
    ArgoCd,
    Here,
    Bus,
}

impl ChangeRevisions {
    fn check(&self, has_bus: bool, problems: &mut Problems) {
        if self.from == ChangesFrom::Bus && !has_bus {
            problems.missing("reporter.changeRevisions.from", NO_BUS);
        }
        problems.positive("reporter.changeRevisions.timeout", *self.timeout);
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sink {
    pub(crate) kind: SinkKind,
    pub(crate) platform: SinkPlatform,
    pub(crate) file: SinkFile,
    pub(crate) cloudevents: SinkCloudEvents,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SinkKind {
    Platform,
    Stdout,
    File,
    CloudEvents,
    // Of routes alone. Without words for the schema: no setting names it.
    #[serde(skip)]
    Nats,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct SinkCloudEvents {
    pub(crate) url: As<Option<Url>>,
    pub(crate) token_file: As<Option<PathBuf>>,
    pub(crate) ca_file: As<Option<PathBuf>>,
    pub(crate) timeout: As<Duration>,
    pub(crate) source: As<EventSource>,
    pub(crate) mode: EventMode,
    #[schemars(range(min = 1, max = 1000))]
    pub(crate) events: usize,
    pub(crate) bytes: As<Size>,
}

/// How events stand in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum EventMode {
    Structured,
    Binary,
    Batched,
}

/// The attribute `source` of events.
#[derive(Debug)]
pub(crate) struct EventSource(pub(crate) String);

impl Unit for EventSource {
    const FORMAT: &'static str = "uri-reference";

    fn read(text: &str) -> Result<Self, String> {
        match !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()) {
            true => Ok(Self(text.to_owned())),
            false => Err(format!("'{text}' is not a URI reference such as /clusters/one")),
        }
    }
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
    pub(crate) changes: SinkChanges,
}

/// Where the role `change-revision` reports.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SinkChanges {
    pub(crate) enabled: bool,
    pub(crate) path: As<UrlPath>,
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
