//! The payload of one report: the value under `data` in the platform's wire format, and its content digest.
//!
//! Every "now" in it is marked, so that two reports that differ in the hour alone have one content.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use jiff::Timestamp;
use pipeline_core::{Digest, Hasher};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

/// A moment that a fact names, or the moment the event was taken up because no fact names one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Moment {
    /// RFC 3339 in seconds.
    At(String),
    /// Marked out in the content digest.
    #[default]
    Now,
}

impl Moment {
    /// The moment written in `text`; now if there is none.
    pub(crate) fn or_now(text: &str) -> Self {
        time(text).map_or(Self::Now, Self::At)
    }
}

/// RFC 3339 in UTC and whole seconds, as every moment but `timestamp` is written; `None` if it is no moment.
pub(crate) fn time(text: &str) -> Option<String> {
    text.parse::<Timestamp>().ok().map(seconds)
}

/// RFC 3339 in UTC and whole seconds.
pub(crate) fn seconds(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn milliseconds(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

/// The JSON text of the reported object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ObjectText {
    pub(crate) text: String,
    /// The same with "now" left out, where the text holds it.
    pub(crate) timeless: Option<String>,
}

impl From<String> for ObjectText {
    fn from(text: String) -> Self {
        Self { text, timeless: None }
    }
}

/// `source`: what the object came from.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Source {
    pub(crate) desired_manifest: String,
    pub(crate) actual_manifest: String,
    pub(crate) git_manifest: String,
    pub(crate) repo_url: String,
    pub(crate) path: String,
    pub(crate) revision: String,
    pub(crate) commit_message: String,
    pub(crate) commit_author: String,
    pub(crate) commit_date: Option<String>,
    pub(crate) app_name: String,
    /// `null` in reports of resources of an application without labels.
    pub(crate) app_labels: Option<Map<String, Value>>,
    pub(crate) sync_status: String,
    pub(crate) sync_started_at: Moment,
    pub(crate) sync_finished_at: Option<Moment>,
    /// Status and message; absent together.
    pub(crate) health: Option<(String, String)>,
    pub(crate) cluster: String,
    pub(crate) history_id: i64,
    pub(crate) operation_sync_revision: String,
    pub(crate) app_uid: String,
    pub(crate) app_namespace: String,
    pub(crate) app_instance_label_key: String,
    pub(crate) tracking_method: &'static str,
}

/// `errors[].type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorKind {
    Sync,
    Health,
}

/// `errors[].level`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Error,
    Warning,
}

/// `errors[].sourceReference`: the resource whose node is degraded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Reference {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) namespace: String,
}

/// One of `errors`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) kind: ErrorKind,
    pub(crate) level: Level,
    pub(crate) message: String,
    pub(crate) last_seen: Moment,
    pub(crate) reference: Option<Reference>,
}

impl Fault {
    /// An error of a sync.
    pub(crate) fn of_sync(message: String, last_seen: Moment) -> Self {
        Self { kind: ErrorKind::Sync, level: Level::Error, message, last_seen, reference: None }
    }
}

/// The payload of one report.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Payload {
    pub(crate) object: ObjectText,
    pub(crate) source: Source,
    pub(crate) errors: Vec<Fault>,
    pub(crate) app_versions: Value,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Wire<'a> {
    timestamp: &'a str,
    #[serde(serialize_with = "base64")]
    object: &'a str,
    source: WireSource<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<WireFault<'a>>,
    app_versions: &'a Value,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireSource<'a> {
    desired_manifest: &'a str,
    actual_manifest: &'a str,
    git_manifest: &'a str,
    #[serde(rename = "repoURL")]
    repo_url: &'a str,
    path: &'a str,
    revision: &'a str,
    commit_message: &'a str,
    commit_author: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    commit_date: Option<&'a str>,
    app_name: &'a str,
    app_labels: Option<&'a Map<String, Value>>,
    sync_status: &'a str,
    sync_started_at: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    sync_finished_at: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    health_status: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    health_message: Option<&'a str>,
    cluster: &'a str,
    history_id: i64,
    operation_sync_revision: &'a str,
    #[serde(rename = "appUID")]
    app_uid: &'a str,
    app_namespace: &'a str,
    app_instance_label_key: &'a str,
    tracking_method: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireFault<'a> {
    r#type: &'static str,
    level: &'static str,
    message: &'a str,
    last_seen: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_reference: Option<&'a Reference>,
}

fn base64<S: Serializer>(object: &&str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&STANDARD.encode(object.as_bytes()))
}

impl Payload {
    /// The JSON text, as of `now`.
    pub(crate) fn body(&self, now: Timestamp) -> Bytes {
        let (stamp, now) = (milliseconds(now), seconds(now));
        let wire = Wire {
            timestamp: &stamp,
            object: &self.object.text,
            source: self.source.wire(&now),
            errors: self.errors.iter().map(|fault| fault.wire(&now)).collect(),
            app_versions: &self.app_versions,
        };
        let mut body = Vec::with_capacity(self.size());
        // Text and numbers always make JSON, and memory takes it.
        let _ = serde_json::to_writer(&mut body, &wire);
        // It waits for its turn to be sent.
        body.shrink_to_fit();
        body.into()
    }

    fn size(&self) -> usize {
        let source = &self.source;
        let manifests = [&source.desired_manifest, &source.actual_manifest, &source.git_manifest];
        let text: usize = manifests.iter().map(|text| text.len() + text.len() / 4).sum();
        2048 + self.object.text.len() * 4 / 3 + text
    }

    /// Of all that is sent but `timestamp`, with every "now" marked out.
    pub(crate) fn content(&self) -> Digest {
        let mut hasher = Hasher::default();
        hasher.write(self.object.timeless.as_ref().unwrap_or(&self.object.text).as_bytes());
        // An empty text is no moment, so it marks "now" unmistakably.
        let source = self.source.wire("");
        for text in [source.desired_manifest, source.actual_manifest, source.git_manifest] {
            hasher.write(text.as_bytes());
        }
        let rest = WireSource { desired_manifest: "", actual_manifest: "", git_manifest: "", ..source };
        let errors: Vec<_> = self.errors.iter().map(|fault| fault.wire("")).collect();
        let mut text = Vec::with_capacity(1024);
        let _ = serde_json::to_writer(&mut text, &(rest, errors, &self.app_versions));
        hasher.write(&text);
        hasher.finish()
    }
}

impl Source {
    fn wire<'a>(&'a self, now: &'a str) -> WireSource<'a> {
        WireSource {
            desired_manifest: &self.desired_manifest,
            actual_manifest: &self.actual_manifest,
            git_manifest: &self.git_manifest,
            repo_url: &self.repo_url,
            path: &self.path,
            revision: &self.revision,
            commit_message: &self.commit_message,
            commit_author: &self.commit_author,
            commit_date: self.commit_date.as_deref(),
            app_name: &self.app_name,
            app_labels: self.app_labels.as_ref(),
            sync_status: &self.sync_status,
            sync_started_at: self.sync_started_at.text(now),
            sync_finished_at: self.sync_finished_at.as_ref().map(|at| at.text(now)),
            health_status: self.health.as_ref().map(|(status, _)| status.as_str()),
            health_message: self.health.as_ref().map(|(_, message)| message.as_str()),
            cluster: &self.cluster,
            history_id: self.history_id,
            operation_sync_revision: &self.operation_sync_revision,
            app_uid: &self.app_uid,
            app_namespace: &self.app_namespace,
            app_instance_label_key: &self.app_instance_label_key,
            tracking_method: self.tracking_method,
        }
    }
}

impl Moment {
    fn text<'a>(&'a self, now: &'a str) -> &'a str {
        match self {
            Self::At(text) => text,
            Self::Now => now,
        }
    }
}

impl Fault {
    fn wire<'a>(&'a self, now: &'a str) -> WireFault<'a> {
        WireFault {
            r#type: match self.kind {
                ErrorKind::Sync => "sync",
                ErrorKind::Health => "health",
            },
            level: match self.level {
                Level::Error => "error",
                Level::Warning => "warning",
            },
            message: &self.message,
            last_seen: self.last_seen.text(now),
            source_reference: self.reference.as_ref(),
        }
    }
}
