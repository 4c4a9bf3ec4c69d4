//! What the API server showed, by a watch of its own, and whether all of it was reported.
//!
//! takes: a client with an administrator's rights, the reports as they came - gives: what differs, a line each
//! calls: the API server - fails: when its own watch broke, so that it cannot say what there was
//!
//! Of each life of an object the phases and steps that the watch showed, one after the other, must be those that were reported,
//! one after the other: none is missing, none comes twice, none at another place. What is a phase or a step is said here anew.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io::Read as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::{StreamExt as _, pin_mut};
use kube::api::{Api, DynamicObject};
use kube::core::ApiResource;
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::{Map, Value};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::play::gvk;
use loadtest_sim::PATIENCE;
use loadtest_sim::platform::KeptReport;

/// Of each kind the members of its status that tell of a phase or a step.
const KINDS: [(&str, &[&str]); 4] = [
    (
        "Rollout",
        &["phase", "message", "abort", "currentStepIndex", "currentPodHash", "stableRS", "pauseConditions"],
    ),
    ("AnalysisRun", &["phase", "message"]),
    ("Workflow", &["phase", "message"]),
    ("CronWorkflow", &["phase", "lastScheduledTime"]),
];
/// How soon a watch that failed goes on.
const AGAIN: Duration = Duration::from_millis(200);
/// Lines about one object that are told of what differs.
const LINES: usize = 20;

/// A phase or a step; `None` is the end of the object.
type Shown = Option<Value>;

/// What was shown of one life of an object, or reported of it.
#[derive(Debug, Clone, Default)]
pub(super) struct Life {
    /// E.g. `Rollout shop/web`.
    name: String,
    /// Each phase and step, told from the one before it.
    shown: Vec<Shown>,
}

impl Life {
    fn show(&mut self, shown: Shown) {
        if self.shown.last() != Some(&shown) {
            self.shown.push(shown);
        }
    }
}

/// By uid.
type Lives = BTreeMap<String, Life>;

#[derive(Debug, Default)]
struct Seen {
    lives: Lives,
    /// By uid and version, what a Workflow says packed of its nodes.
    packed: HashMap<(String, String), String>,
    /// Why what was seen may not be all.
    broken: Option<String>,
}

/// Looks on from before the reporter was started.
pub(super) struct Oracle {
    seen: Arc<Mutex<Seen>>,
    _stop: DropGuard,
}

/// What was reported.
#[derive(Debug, Default)]
pub(super) struct Reported {
    lives: Lives,
    /// By uid and version, what stood beside a Workflow of its packed nodes, and these.
    unpacked: HashMap<(String, String), (String, Value)>,
    /// Reports of the same content that came under another key, a line each.
    repeated: Vec<String>,
    count: usize,
}

/// What was judged.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    objects: usize,
    shown: usize,
    reports: usize,
    packed: usize,
    /// What is wrong, a line each.
    pub(super) wrong: Vec<String>,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { objects, shown, reports, packed, wrong } = self;
        write!(
            f,
            "{shown} phases and steps of {objects} objects, and {packed} states with packed nodes, in {reports} reports: {}",
            if wrong.is_empty() { "all reported".to_owned() } else { format!("{} WRONG", wrong.len()) }
        )
    }
}

impl Oracle {
    /// Starts to look on; returns when there is a first list of each kind.
    pub(super) async fn start(client: &kube::Client, namespace: &str) -> anyhow::Result<Self> {
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let stop = CancellationToken::new();
        let mut listed = Vec::new();
        for (kind, _) in KINDS {
            let resource = ApiResource::from_gvk(&gvk(kind)?);
            let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
            let (seen, stop) = (seen.clone(), stop.clone());
            let (tell, first) = tokio::sync::oneshot::channel();
            tokio::spawn(async move {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = follow(kind, api, seen, tell) => {}
                }
            });
            listed.push(first);
        }
        match tokio::time::timeout(PATIENCE, futures::future::try_join_all(listed)).await {
            Ok(Ok(_)) => Ok(Self { seen, _stop: stop.drop_guard() }),
            _ => bail!("what the story is about was not listed within {PATIENCE:?}"),
        }
    }

    /// What differs at this moment.
    pub(super) fn verdict(&self, reported: &Reported) -> anyhow::Result<Verdict> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(why) = &seen.broken {
            bail!("the oracle lost sight of the API server: {why}");
        }
        let mut verdict = Verdict {
            objects: seen.lives.len(),
            shown: seen.lives.values().map(|life| life.shown.len()).sum(),
            reports: reported.count,
            wrong: differences(&seen.lives, &reported.lives),
            ..Verdict::default()
        };
        for ((uid, version), packed) in &seen.packed {
            // States between two that differ in nothing that counts need not be reported.
            let Some((told, nodes)) = reported.unpacked.get(&(uid.clone(), version.clone())) else {
                continue;
            };
            verdict.packed += 1;
            if told != "decompressed" || *nodes != unpacked(packed)? {
                let name = seen.lives.get(uid).map_or(uid, |life| &life.name);
                verdict.wrong.push(format!(
                    "{name} at version {version}: its packed nodes were not reported ({told})"
                ));
            }
        }
        if verdict.packed == 0 {
            verdict.wrong.push("no Workflow with packed nodes was reported".to_owned());
        }
        verdict.wrong.extend(reported.repeated.iter().cloned());
        Ok(verdict)
    }
}

/// Takes every event, for ever.
async fn follow(
    kind: &'static str,
    api: Api<DynamicObject>,
    seen: Arc<Mutex<Seen>>,
    listed: tokio::sync::oneshot::Sender<()>,
) {
    let mut listed = Some(listed);
    let events = watcher(api, watcher::Config::default());
    pin_mut!(events);
    while let Some(event) = events.next().await {
        // The watch goes on where it was, or begins anew.
        if event.is_err() {
            tokio::time::sleep(AGAIN).await;
            continue;
        }
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Ok(Event::Init) if listed.is_none() => {
                seen.broken.get_or_insert(format!("its watch of {kind}s began anew"));
            }
            Ok(Event::Init) => {}
            Ok(Event::InitDone) => drop(listed.take().map(|listed| listed.send(()))),
            Ok(Event::InitApply(object) | Event::Apply(object)) => seen.take(kind, object, false),
            Ok(Event::Delete(object)) => seen.take(kind, object, true),
            Err(_) => {}
        }
    }
}

impl Seen {
    fn take(&mut self, kind: &str, object: DynamicObject, gone: bool) {
        let Ok(object) = serde_json::to_value(object) else { return };
        let (uid, name) = identity(kind, &object);
        if let Some(packed) = object["status"]["compressedNodes"].as_str().filter(|packed| !packed.is_empty())
        {
            self.packed.insert((uid.clone(), text(&object, "/metadata/resourceVersion")), packed.to_owned());
        }
        let life = self.lives.entry(uid).or_default();
        life.name = name;
        if !gone || !life.shown.is_empty() {
            life.show(shown(kind, &object));
        }
        if gone {
            life.show(None);
        }
    }
}

/// Opens reports, oldest first.
pub(super) fn reports(kept: &[KeptReport]) -> anyhow::Result<Reported> {
    let mut reported = Reported { count: kept.len(), ..Reported::default() };
    // Of each life: a phase that comes back may look as it did before.
    let mut last: HashMap<String, &KeptReport> = HashMap::new();
    for report in kept {
        let payload: Value = serde_json::from_slice(&report.payload).context("read a report")?;
        let object = &payload["object"];
        let kind = text(object, "/kind");
        if !KINDS.iter().any(|(known, _)| *known == kind) {
            continue;
        }
        let (uid, name) = identity(&kind, object);
        let before = last.insert(uid.clone(), report);
        if before.is_some_and(|before| before.payload == report.payload && before.key != report.key) {
            reported.repeated.push(format!("{name}: one report came under two keys"));
        }
        if let Some(told) = payload["nodes"].as_str() {
            let at = (uid.clone(), text(object, "/metadata/resourceVersion"));
            reported.unpacked.insert(at, (told.to_owned(), object["status"]["nodes"].clone()));
        }
        let life = reported.lives.entry(uid).or_default();
        life.name = name;
        if payload["deleted"] == true {
            if object.get("status").is_some() {
                life.show(shown(&kind, object));
            }
            life.show(None);
        } else {
            life.show(shown(&kind, object));
        }
    }
    Ok(reported)
}

/// What of each life was not reported as it was shown.
fn differences(seen: &Lives, reported: &Lives) -> Vec<String> {
    let mut wrong = Vec::new();
    for (uid, life) in seen {
        let told = reported.get(uid).map(|life| life.shown.as_slice()).unwrap_or_default();
        if life.shown != told {
            wrong.push(format!("{} was not reported as it was shown", life.name));
            wrong.extend(compared(&life.shown, told));
        }
    }
    let unknown = reported.iter().filter(|(uid, _)| !seen.contains_key(*uid));
    wrong.extend(unknown.map(|(_, life)| format!("{} was reported and never shown", life.name)));
    wrong
}

/// Where two rows of phases part, and how each goes on.
fn compared(seen: &[Shown], told: &[Shown]) -> Vec<String> {
    let same = seen.iter().zip(told).take_while(|(seen, told)| seen == told).count();
    let rest = |what: &str, all: &[Shown]| -> Vec<String> {
        let rest = all.iter().skip(same).take(LINES);
        rest.map(|shown| format!("  {what}: {}", shown.as_ref().map_or("gone".to_owned(), Value::to_string)))
            .collect()
    };
    [vec![format!("  the first {same} are the same")], rest("shown", seen), rest("reported", told)].concat()
}

fn shown(kind: &str, object: &Value) -> Shown {
    let members =
        KINDS.iter().find(|(known, _)| *known == kind).map(|(_, members)| *members).unwrap_or_default();
    let status = &object["status"];
    let there = members.iter().filter_map(|member| {
        let value = status.get(*member).filter(|value| !value.is_null())?;
        Some(((*member).to_owned(), value.clone()))
    });
    Some(Value::Object(there.collect::<Map<_, _>>()))
}

fn identity(kind: &str, object: &Value) -> (String, String) {
    let [uid, namespace, name] =
        ["/metadata/uid", "/metadata/namespace", "/metadata/name"].map(|pointer| text(object, pointer));
    (uid, format!("{kind} {namespace}/{name}"))
}

fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The nodes of a Workflow that its controller has packed.
fn unpacked(packed: &str) -> anyhow::Result<Value> {
    let zipped = STANDARD.decode(packed).context("read packed nodes")?;
    let mut nodes = String::new();
    flate2::read::GzDecoder::new(zipped.as_slice()).read_to_string(&mut nodes).context("unpack nodes")?;
    serde_json::from_str(&nodes).context("read unpacked nodes")
}

#[cfg(test)]
mod tests;
