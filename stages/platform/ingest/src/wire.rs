//! Reads reports in every form that they are sent in: those of event reporters, Codefresh's and ours (`{"data": {"object":
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
use stages_platform_store::{
    Commit, EntityName, Listing, Millis, Operation, Placement, Report, ResourceName, Text, group_of,
};

use crate::changes::{self, AnnotatedCommits};
use crate::fields::{Entries, Fields, LISTED, string};
use crate::refusal::Refusal;
use crate::{placement, steps};

/// Bytes of a key.
const KEY: usize = 256;
/// Bytes of a word, such as a kind or a namespace.
pub(crate) const WORD: usize = 253;
/// Bytes of a name, of a text for people, and of a list of images.
pub(crate) const NAME: usize = 1_024;
const TEXT: usize = 64 * 1024;
const IMAGES: usize = 1 << 20;
/// Phases of an operation that is over.
const ENDED: [&str; 3] = ["Succeeded", "Failed", "Error"];
/// A sender's clock may be ahead by so much.
const CLOCKS_DIFFER: Millis = 60 * 1000;

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
    fencing_epoch: Option<i64>,
    cluster_era: Option<i64>,
    #[serde(borrow)]
    pub(crate) data: &'a RawValue,
}

impl InBatch<'_> {
    /// As [`fence`] tells it of a report that comes alone.
    pub(crate) fn fence(&self) -> Result<(Option<i64>, i64), Refusal> {
        checked_fence(self.fencing_epoch, self.cluster_era)
    }
}

#[derive(Deserialize)]
struct Batch<'a> {
    #[serde(borrow)]
    reports: Vec<InBatch<'a>>,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    data: Fields<'a>,
}

/// An object: what is odd or null of it is as good as not there, and of fields of one name the last counts.
struct Object<'a> {
    api_version: String,
    kind: String,
    metadata: Metadata<'a>,
    /// As it stands: of an application alone it is read.
    spec: Option<&'a RawValue>,
    status: Option<&'a RawValue>,
}

struct Metadata<'a> {
    name: String,
    namespace: String,
    uid: String,
    version: Option<i64>,
    created_at: Option<Millis>,
    deletion_timestamp: Option<&'a RawValue>,
    owner_references: Option<&'a RawValue>,
    labels: Option<&'a RawValue>,
    annotations: Option<&'a RawValue>,
}

impl<'a> Object<'a> {
    fn read(text: &'a str) -> Result<Self, Refusal> {
        let fields: Fields<'a> = serde_json::from_str(text).map_err(|_| Refusal::NotAnObject)?;
        let metadata = Fields::of(fields.get("metadata"));
        let is_there = |value: &&RawValue| value.get() != "null";
        let version = metadata.get("resourceVersion").and_then(|version| match string(version) {
            Some(text) => text.parse().ok(),
            None => version.get().parse().ok(),
        });
        Ok(Self {
            api_version: fields.text_or_empty("apiVersion"),
            kind: fields.text_or_empty("kind"),
            spec: fields.get("spec").filter(is_there),
            status: fields.get("status").filter(is_there),
            metadata: Metadata {
                name: metadata.text_or_empty("name"),
                namespace: metadata.text_or_empty("namespace"),
                uid: metadata.text_or_empty("uid"),
                version,
                created_at: metadata.text("creationTimestamp").as_deref().and_then(time),
                deletion_timestamp: metadata.get("deletionTimestamp"),
                owner_references: metadata.get("ownerReferences"),
                labels: metadata.get("labels"),
                annotations: metadata.get("annotations"),
            },
        })
    }

    fn name(&self) -> ResourceName {
        ResourceName {
            api_version: self.api_version.clone(),
            kind: self.kind.clone(),
            namespace: self.metadata.namespace.clone(),
            name: self.metadata.name.clone(),
        }
    }
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

pub(crate) fn not_json(error: &serde_json::Error) -> Refusal {
    Refusal::NotJson { line: error.line(), column: error.column() }
}

/// The object that a report is about, and the manifests that it came as where it came as one.
struct SentObject {
    object: Text,
    /// Whether it stood there as JSON, or else as a text.
    is_json: bool,
    actual: Option<Text>,
    desired: Option<Text>,
}

impl SentObject {
    fn take_from(data: &mut Fields<'_>) -> Result<Self, Refusal> {
        let Some(object) = data.take("object") else {
            // Of the endpoints of their own: the object is the live manifest, else the desired one.
            let [actual, desired] = ["actualManifest", "desiredManifest"]
                .map(|name| data.take(name).and_then(string).filter(|text| !text.is_empty()))
                .map(|text| text.map(|text| Text::new(text.into_owned())));
            let object = actual.clone().or_else(|| desired.clone()).ok_or(Refusal::NoObject)?;
            return Ok(Self { object, is_json: false, actual, desired });
        };
        let (object, is_json) = match object.get().as_bytes().first() {
            Some(b'"') => {
                let encoded = string(object).ok_or(Refusal::NotAnObject)?;
                let decoded = STANDARD.decode(&*encoded).map_err(|_| Refusal::NotAnObject)?;
                (String::from_utf8(decoded).map_err(|_| Refusal::NotAnObject)?, false)
            }
            Some(b'{') => (object.get().to_owned(), true),
            _ => return Err(Refusal::NotAnObject),
        };
        Ok(Self { object: Text::new(object), is_json, actual: None, desired: None })
    }
}

/// The manifests of a source, which it is left without, else those that came otherwise.
fn take_manifests(source: &mut Fields<'_>, mut manifests: [Option<Text>; 3]) -> [Option<Text>; 3] {
    for (manifest, name) in manifests.iter_mut().zip(["actualManifest", "desiredManifest", "gitManifest"]) {
        // An empty one stays where it is: it may as well be left out.
        let text = source.get(name).and_then(string).filter(|text| !text.is_empty());
        if let Some(text) = text {
            *manifest = Some(Text::new(text.into_owned()));
            source.take(name);
        }
    }
    manifests
}

/// The commit that labels tell, else the one that is noted.
fn commit(labels: &Fields<'_>, noted: Commit) -> Commit {
    let told = |name: &str, noted: String, most: usize| {
        short(labels.text(&format!("app.meta.commit-{name}")).unwrap_or(noted), most)
    };
    Commit {
        author: told("author", noted.author, NAME),
        message: told("message", noted.message, TEXT),
        date: told("date", noted.date, NAME),
    }
}

fn payload(data: Fields<'_>, received: Millis) -> Result<Report, Refusal> {
    let mut data = data.few("data")?;
    let told = data.take("timestamp").and_then(string).as_deref().and_then(time);
    // A clock that is ahead would keep every later report of the same version from being the state.
    let at = told.filter(|told| *told <= received.saturating_add(CLOCKS_DIFFER)).unwrap_or(received);
    let deleted = marks_an_end(data.get("deleted"));
    let SentObject { object, is_json: object_is_json, actual, desired } = SentObject::take_from(&mut data)?;
    let read = Object::read(object.as_str())?;
    if read.kind.is_empty() || read.metadata.name.is_empty() {
        return Err(Refusal::NoName);
    }
    let source = data.get("source").filter(|source| source.get().starts_with('{'));
    let has_source = source.is_some();
    let mut source = Fields::of(source).few("source")?;
    let [actual, desired, git] = take_manifests(&mut source, [actual, desired, None]);
    let of = |name: &str| source.text(name);
    // Who reports objects alone says beside them whose they are.
    let application =
        Fields::of(data.get("application").filter(|application| application.get().starts_with('{')));
    let application = |name: &str| application.text(name).filter(|_| !has_source).unwrap_or_default();
    let is_application = read.kind == "Application" && read.api_version.starts_with("argoproj.io/");
    let status = Status::read(read.status);
    let metadata = &read.metadata;
    let entity = match is_application {
        true => EntityName {
            app_namespace: metadata.namespace.clone(),
            app_name: metadata.name.clone(),
            resource: None,
        },
        false => EntityName {
            app_namespace: of("appNamespace").unwrap_or_else(|| application("namespace")),
            app_name: of("appName").unwrap_or_else(|| application("name")),
            resource: Some(read.name()),
        },
    };
    // Of an application that is a resource of another, it is the other whose revision stands beside it.
    let is_its_own = of("appName").is_none_or(|name| name.is_empty() || name == metadata.name);
    let labels = Fields::of(metadata.labels);
    let noted = match read.spec.filter(|_| is_application) {
        Some(spec) => {
            changes::annotated_commits(&Fields::of(metadata.annotations), data.get("revisionsMetadata"), spec)
        }
        None => AnnotatedCommits::default(),
    };
    let own =
        |told: Option<String>, status: Option<String>| told.or_else(|| status.filter(|_| is_application));
    // The endpoints of their own have it as Argo CD does.
    let whole = Fields::of(source.get("healthStatus"));
    let told_health = of("healthStatus").or_else(|| whole.text("status"));
    let health = own(told_health, Fields::of(status.health).text("status"));
    let kind = (&*read.api_version, &*read.kind);
    let pods = steps::pods(kind, metadata.annotations, read.spec, read.status);
    let stepped = match (is_application, &health) {
        (false, None) => steps::of(kind, read.spec, read.status, pods),
        _ => None,
    };
    let (phase, step) = stepped.map_or((None, None), |(phase, step)| (Some(phase.to_owned()), Some(step)));
    let details = data.without_manifests(has_source.then_some(&source));
    let report = Report {
        entity,
        uid: metadata.uid.clone(),
        version: metadata.version,
        created_at: metadata.created_at,
        at,
        timed: told.is_some(),
        deleted: deleted || marks_an_end(metadata.deletion_timestamp),
        owner: owner_of(metadata.owner_references).filter(|_| !is_application).unwrap_or_default(),
        listed: if is_application { listed(status.resources)? } else { Vec::new() },
        sync: own(of("syncStatus"), Fields::of(status.sync).text("status")),
        health: health.or(phase),
        health_message: of("healthMessage")
            .or_else(|| whole.text("message"))
            .or(step)
            .map(|message| short(message, TEXT)),
        revision: match is_application {
            true => revision(&Fields::of(status.sync)).or_else(|| revision(&source).filter(|_| is_its_own)),
            false => revision(&source),
        },
        pods,
        operation: status.operation_state.filter(|_| is_application).and_then(operation),
        commit: commit(&labels, noted.commit),
        changes: noted.sources,
        images: Fields::of(status.summary.filter(|_| is_application))
            .get("images")
            .map_or("[]", RawValue::get)
            .to_owned(),
        placement: match read.spec {
            Some(spec) if is_application => placement::of(spec, &labels, &Fields::of(metadata.annotations)),
            _ => Placement::default(),
        },
        has_source: has_source || is_application,
        from_reporter: has_source,
        object_is_json,
        actual,
        desired,
        git,
        details: details.map(Text::new),
        object: Some(object.clone()),
    };
    bounded(&report)?;
    Ok(report)
}

/// What is looked up by, or shown in a list, has the length that Kubernetes gives it at most, and room beside that: Postgres
/// refuses to index what is much longer.
fn bounded(report: &Report) -> Result<(), Refusal> {
    let EntityName { app_namespace, app_name, resource } = &report.entity;
    let nothing = ["", "", "", ""];
    let [api_version, kind, namespace, name] = resource.as_ref().map_or(nothing, |resource| {
        [&*resource.api_version, &*resource.kind, &*resource.namespace, &*resource.name]
    });
    let of = |text: Option<&String>| text.map_or(0, String::len);
    let deployed = report.operation.as_ref().map(|operation| &operation.revision);
    let placement = &report.placement;
    for (field, length, most) in [
        ("application's namespace", app_namespace.len(), WORD),
        ("application's name", app_name.len(), NAME),
        ("apiVersion", api_version.len(), 512),
        ("kind", kind.len(), WORD),
        ("metadata.namespace", namespace.len(), WORD),
        ("metadata.name", name.len(), NAME),
        ("metadata.uid", report.uid.len(), WORD),
        ("sync status", of(report.sync.as_ref()), WORD),
        ("health status", of(report.health.as_ref()), WORD),
        ("revision", of(report.revision.as_ref()), TEXT),
        ("status.operationState.syncResult", of(deployed), TEXT),
        ("status.summary.images", report.images.len(), IMAGES),
        ("spec.project", placement.project.len(), WORD),
        ("spec.destination", placement.cluster.len().max(placement.namespace.len()), NAME),
        ("spec.source", placement.repository.len().max(placement.path.len()), 4_096),
    ] {
        if length > most {
            return Err(Refusal::Long { field, most });
        }
    }
    Ok(())
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct OwnerReference {
    api_version: String,
    kind: String,
    name: String,
    controller: bool,
}

/// What owns an object, as `group/kind/name`: of several owners the one that controls it. One that is odd, or longer than anything
/// is called, is no reason to refuse a report.
fn owner_of(references: Option<&RawValue>) -> Option<String> {
    let references: Vec<OwnerReference> = serde_json::from_str(references?.get()).ok()?;
    let of = references.iter().find(|of| of.controller).or(references.first())?;
    let group = group_of(&of.api_version);
    let parts = [group, &of.kind, &of.name];
    let is_whole = parts.iter().all(|part| part.len() <= WORD && !part.contains('/'));
    (is_whole && !of.kind.is_empty() && !of.name.is_empty()).then(|| parts.join("/"))
}

/// The beginning of what is for people to read; all of it stays in the object.
pub(crate) fn short(mut text: String, most: usize) -> String {
    text.truncate(text.floor_char_boundary(most));
    text
}

pub(crate) fn time(text: &str) -> Option<Millis> {
    text.parse::<Timestamp>().ok().map(Timestamp::as_millisecond)
}

/// A mark says yes, or when.
fn marks_an_end(mark: Option<&RawValue>) -> bool {
    let Some(mark) = mark else { return false };
    mark.get() == "true" || string(mark).is_some_and(|when| !when.is_empty() && when != "false")
}

/// Of an application's status: what is read of it, each as it stands.
struct Status<'a> {
    sync: Option<&'a RawValue>,
    health: Option<&'a RawValue>,
    resources: Option<&'a RawValue>,
    operation_state: Option<&'a RawValue>,
    summary: Option<&'a RawValue>,
}

impl<'a> Status<'a> {
    fn read(status: Option<&'a RawValue>) -> Self {
        let fields = Fields::of(status);
        Self {
            sync: fields.get("sync"),
            health: fields.get("health"),
            resources: fields.get("resources"),
            operation_state: fields.get("operationState"),
            summary: fields.get("summary"),
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Entry {
    group: Option<String>,
    kind: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
}

fn listed(resources: Option<&RawValue>) -> Result<Vec<Listing>, Refusal> {
    let Some(resources) = resources.filter(|resources| resources.get().starts_with('[')) else {
        return Ok(Vec::new());
    };
    let entries: Entries<'_> = serde_json::from_str(resources.get()).map_err(|_| Refusal::NotAnObject)?;
    if entries.are_many {
        return Err(Refusal::Many { field: "status.resources", most: LISTED });
    }
    let one = |entry: &RawValue| {
        let entry: Entry = serde_json::from_str(entry.get()).unwrap_or_default();
        let [group, kind, namespace, name] =
            [entry.group, entry.kind, entry.namespace, entry.name].map(Option::unwrap_or_default);
        Listing::new(&group, &kind, &namespace, &name)
    };
    Ok(entries.all.into_iter().map(one).collect())
}

/// A revision, or those of several sources with commas between them; `None` of none.
fn revision(of: &Fields<'_>) -> Option<String> {
    let several = || {
        let revisions: Entries<'_> = serde_json::from_str(of.get("revisions")?.get()).ok()?;
        Some(revisions.all.into_iter().filter_map(string).collect::<Vec<_>>().join(","))
    };
    let is_told = |revision: &String| !revision.is_empty();
    of.text("revision").filter(is_told).or_else(several).filter(is_told)
}

fn operation(state: &RawValue) -> Option<Operation> {
    let state = Fields::of(Some(state));
    let result = Fields::of(state.get("syncResult"));
    let asked = Fields::of(state.get("operation"));
    let initiated_by = Fields::of(asked.get("initiatedBy")).text_or_empty("username");
    let is_dry_run = Fields::of(asked.get("sync")).is("dryRun");
    let phase = state.text_or_empty("phase");
    // One that failed and is tried again is `Running`, and says when that try ended.
    let has_ended = ENDED.contains(&&*phase);
    Some(Operation {
        started_at: time(&state.text("startedAt")?)?,
        finished_at: state.text("finishedAt").as_deref().and_then(time).filter(|_| has_ended),
        phase: short(phase, NAME),
        revision: revision(&result).unwrap_or_default(),
        initiated_by: short(initiated_by, NAME),
        message: short(state.text_or_empty("message"), TEXT),
        is_dry_run,
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

/// Which owner reports, and how often the versions of its cluster had gone back: by its headers.
pub(crate) fn fence(headers: &HeaderMap) -> Result<(Option<i64>, i64), Refusal> {
    let whole = |name: &str, otherwise: Refusal| {
        let Some(text) = headers.get(name) else { return Ok(None) };
        text.to_str().ok().and_then(|text| text.parse().ok()).map(Some).ok_or(otherwise)
    };
    checked_fence(whole("fencing-epoch", Refusal::Epoch)?, whole("cluster-era", Refusal::Era)?)
}

fn checked_fence(epoch: Option<i64>, era: Option<i64>) -> Result<(Option<i64>, i64), Refusal> {
    match (epoch, era.unwrap_or_default()) {
        (Some(..0), _) => Err(Refusal::Epoch),
        (_, ..0) => Err(Refusal::Era),
        fence => Ok(fence),
    }
}
