//! Reads reports in every form that they are sent in, as `spec` names them: the incumbent's and ours (`{"data": {"object":
//! <base64>, "source": ...}}`), those of resource reporters (`{"data": {"object": <manifest>}}`), and those of two
//! endpoints of their own (`actualManifest` instead of `object`, and nothing around it).
//!
//! takes: a body's text - gives: a report for the store - fails: with the refusal that says why it is none

use axum::http::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use stages_platform_store::{
    Commit, EntityName, Listing, Millis, Operation, Placement, Report, ResourceName, Text,
};

use crate::placement;
use crate::refusal::Refusal;

/// Bytes of a key.
const KEY: usize = 256;

/// Which body an endpoint takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// `{"data": <payload>}`.
    Event,
    /// A payload alone, whose object is `actualManifest`.
    Alone,
}

/// A report of a batch.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InBatch<'a> {
    pub(crate) idempotency_key: String,
    pub(crate) fencing_epoch: Option<i64>,
    #[serde(borrow)]
    pub(crate) data: &'a RawValue,
}

#[derive(Deserialize)]
struct Batch<'a> {
    #[serde(borrow)]
    reports: Vec<InBatch<'a>>,
}

#[derive(Deserialize)]
struct Event {
    data: Map<String, Value>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Object<'a> {
    api_version: String,
    kind: String,
    metadata: Metadata,
    /// As it stands: of an application alone it is read.
    #[serde(borrow)]
    spec: Option<&'a RawValue>,
    /// As it stands: an odd one is no reason to refuse a report.
    status: Value,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    name: String,
    namespace: String,
    uid: String,
    resource_version: String,
    creation_timestamp: Option<String>,
    deletion_timestamp: Value,
    labels: Value,
}

pub(crate) fn batch(text: &[u8]) -> Result<Vec<InBatch<'_>>, Refusal> {
    let not = |error: serde_json::Error| Refusal::NotABatch { line: error.line(), column: error.column() };
    Ok(serde_json::from_slice::<Batch<'_>>(text).map_err(not)?.reports)
}

pub(crate) fn report(text: &[u8], form: Form, received: Millis) -> Result<Report, Refusal> {
    let data = match form {
        Form::Event => serde_json::from_slice(text).map(|Event { data }| data),
        Form::Alone => serde_json::from_slice(text),
    };
    payload(data.map_err(|error| not_json(&error))?, received)
}

pub(crate) fn report_in_batch(data: &RawValue, received: Millis) -> Result<Report, Refusal> {
    payload(serde_json::from_str(data.get()).map_err(|error| not_json(&error))?, received)
}

fn not_json(error: &serde_json::Error) -> Refusal {
    Refusal::NotJson { line: error.line(), column: error.column() }
}

fn payload(mut data: Map<String, Value>, received: Millis) -> Result<Report, Refusal> {
    let at = text(data.remove("timestamp").as_ref()).as_deref().and_then(time).unwrap_or(received);
    let deleted = marks_an_end(data.get("deleted"));
    // Of the endpoints of their own: the object is the live manifest, else the desired one.
    let manifests = ["actualManifest", "desiredManifest"]
        .map(|name| if data.contains_key("object") { None } else { text(data.remove(name).as_ref()) });
    let mut object_is_json = false;
    let (object, actual, desired) = match data.remove("object") {
        Some(Value::String(encoded)) => {
            let decoded = STANDARD.decode(encoded).map_err(|_| Refusal::NotAnObject)?;
            (String::from_utf8(decoded).map_err(|_| Refusal::NotAnObject)?, None, None)
        }
        Some(object @ Value::Object(_)) => {
            object_is_json = true;
            (object.to_string(), None, None)
        }
        Some(_) => return Err(Refusal::NotAnObject),
        None => {
            let [actual, desired] = manifests.map(|manifest| manifest.filter(|text| !text.is_empty()));
            let object = actual.clone().or_else(|| desired.clone()).ok_or(Refusal::NoObject)?;
            (object, actual, desired)
        }
    };
    let read: Object<'_> = serde_json::from_str(&object).map_err(|_| Refusal::NotAnObject)?;
    if read.kind.is_empty() || read.metadata.name.is_empty() {
        return Err(Refusal::NoName);
    }
    let source = data.get_mut("source").and_then(Value::as_object_mut);
    let has_source = source.is_some();
    let mut manifests = [actual, desired, None];
    let mut told = Map::new();
    if let Some(source) = source {
        for (manifest, name) in manifests.iter_mut().zip(["actualManifest", "desiredManifest", "gitManifest"])
        {
            // An empty one stays where it is: it may as well be left out.
            if source.get(name).and_then(Value::as_str).is_some_and(|text| !text.is_empty()) {
                *manifest = text(source.remove(name).as_ref());
            }
        }
        told.clone_from(source);
    }
    let [actual, desired, git] = manifests;
    let of = |name: &str| text(told.get(name));
    let is_application = read.kind == "Application" && read.api_version.starts_with("argoproj.io/");
    let status = |path: &str| text(read.status.pointer(path));
    let metadata = &read.metadata;
    let entity = match is_application {
        true => EntityName {
            app_namespace: metadata.namespace.clone(),
            app_name: metadata.name.clone(),
            resource: None,
        },
        false => EntityName {
            app_namespace: of("appNamespace").unwrap_or_default(),
            app_name: of("appName").unwrap_or_default(),
            resource: Some(ResourceName {
                api_version: read.api_version.clone(),
                kind: read.kind.clone(),
                namespace: metadata.namespace.clone(),
                name: metadata.name.clone(),
            }),
        },
    };
    let label = |name: &str| text(metadata.labels.get(name)).unwrap_or_default();
    let own = |told: Option<String>, path: &str| told.or_else(|| status(path).filter(|_| is_application));
    Ok(Report {
        entity,
        uid: metadata.uid.clone(),
        version: metadata.resource_version.parse().ok(),
        created_at: metadata.creation_timestamp.as_deref().and_then(time),
        at,
        deleted: deleted || marks_an_end(Some(&metadata.deletion_timestamp)),
        listed: if is_application { listed(&read.status) } else { Vec::new() },
        sync: own(of("syncStatus"), "/sync/status"),
        health: own(of("healthStatus"), "/health/status"),
        health_message: of("healthMessage"),
        revision: own(of("revision").filter(|text| !text.is_empty()), "/sync/revision"),
        operation: is_application.then(|| operation(&read.status)).flatten(),
        commit: Commit {
            author: label("app.meta.commit-author"),
            message: label("app.meta.commit-message"),
            date: label("app.meta.commit-date"),
        },
        images: read
            .status
            .pointer("/summary/images")
            .filter(|_| is_application)
            .map_or("[]".to_owned(), Value::to_string),
        placement: match read.spec {
            Some(spec) if is_application => placement::of(spec, &metadata.labels),
            _ => Placement::default(),
        },
        has_source: has_source || is_application,
        object: Some(Text::new(object)),
        object_is_json,
        actual: actual.map(Text::new),
        desired: desired.map(Text::new),
        git: git.map(Text::new),
        details: (!data.is_empty()).then(|| Text::new(Value::Object(data).to_string())),
    })
}

fn text(value: Option<&Value>) -> Option<String> {
    value.and_then(Value::as_str).map(str::to_owned)
}

fn time(text: &str) -> Option<Millis> {
    text.parse::<Timestamp>().ok().map(Timestamp::as_millisecond)
}

/// A mark says yes, or when.
fn marks_an_end(mark: Option<&Value>) -> bool {
    match mark {
        Some(Value::Bool(yes)) => *yes,
        Some(Value::String(when)) => !when.is_empty() && when != "false",
        _ => false,
    }
}

fn listed(status: &Value) -> Vec<Listing> {
    let entries = status.get("resources").and_then(Value::as_array).into_iter().flatten();
    let one = |entry: &Value| {
        let of = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        Listing::new(of("group"), of("kind"), of("namespace"), of("name"))
    };
    entries.map(one).collect()
}

fn operation(status: &Value) -> Option<Operation> {
    let state = status.get("operationState")?;
    let of = |path: &str| text(state.pointer(path));
    let several = || {
        let revisions = state.pointer("/syncResult/revisions")?.as_array()?;
        Some(revisions.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","))
    };
    let revision = of("/syncResult/revision").filter(|revision| !revision.is_empty()).or_else(several);
    Some(Operation {
        started_at: time(&of("/startedAt")?)?,
        finished_at: of("/finishedAt").as_deref().and_then(time),
        phase: of("/phase").unwrap_or_default(),
        revision: revision.unwrap_or_default(),
        initiated_by: of("/operation/initiatedBy/username").unwrap_or_default(),
        message: of("/message").unwrap_or_default(),
    })
}

/// What the key of a single report comes as: `None` where there is none.
pub(crate) fn key(headers: &HeaderMap) -> Result<Option<&str>, Refusal> {
    let key = headers.get("idempotency-key").map(|key| key.to_str().map_err(|_| Refusal::Key)).transpose()?;
    key.map(checked_key).transpose()
}

pub(crate) fn checked_key(key: &str) -> Result<&str, Refusal> {
    if key.is_empty() || key.len() > KEY { Err(Refusal::Key) } else { Ok(key) }
}

pub(crate) fn epoch(headers: &HeaderMap) -> Result<Option<i64>, Refusal> {
    let Some(epoch) = headers.get("fencing-epoch") else { return Ok(None) };
    let epoch = epoch.to_str().ok().and_then(|epoch| epoch.parse::<i64>().ok()).filter(|epoch| *epoch >= 0);
    epoch.map(Some).ok_or(Refusal::Epoch)
}
