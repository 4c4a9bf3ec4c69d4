//! Recordings: real traffic of a cluster, an Argo CD and a reporter, as cases.
//!
//! A case is a folder of `case.json`, `watch.jsonl`, `calls.jsonl`, `bodies.jsonl` and, where a reporter was
//! recorded, `reports.jsonl` and `rounds.jsonl`. Cases are read from any folder ([`load_dir`]) or from the
//! copies inside this program ([`packed`]). Fails with the file and
//! the line that cannot be read.

mod pack;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

pub use pack::{SETS, packed, repository};

/// One recorded case.
#[derive(Debug, Clone)]
pub struct Case {
    /// The name of its folder.
    pub name: String,
    /// Which applications it is about, and the settings in force.
    pub meta: CaseMeta,
    /// What the API server sent, in order.
    pub watch: Vec<WatchLine>,
    /// What was asked of Argo CD, in order of `n`.
    pub calls: Vec<CallLine>,
    /// The answers, by [`CallLine::body`].
    pub bodies: HashMap<String, Box<RawValue>>,
    /// What the recorded reporter posted; empty where none ran.
    pub reports: Vec<ReportLine>,
    /// Which calls and reports belong to which watch event; empty where no reporter ran.
    pub rounds: Vec<RoundLine>,
}

/// `case.json`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CaseMeta {
    /// Names of the applications.
    #[serde(default, deserialize_with = "or_default")]
    pub applications: Vec<String>,
    /// `application.resourceTrackingMethod`; empty where it is not set.
    #[serde(default, deserialize_with = "or_default")]
    pub tracking_method: String,
    /// `application.instanceLabelKey`; empty where it is not set.
    #[serde(default, deserialize_with = "or_default")]
    pub instance_label_key: String,
    /// Which Argo CD answered, e.g. `argocd-3.2`.
    #[serde(default, deserialize_with = "or_default")]
    pub server: String,
}

/// One watch event.
#[derive(Debug, Clone)]
pub struct WatchLine {
    /// When, in Unix seconds.
    pub t: f64,
    /// `ADDED`, `MODIFIED` or `DELETED`.
    pub kind: String,
    /// The Application as the API server sent it.
    pub object: Box<RawValue>,
}

/// One GET to the Argo CD server.
#[derive(Debug, Clone, Deserialize)]
pub struct CallLine {
    /// Its number in the case.
    pub n: u64,
    /// When it was asked, in Unix seconds.
    pub t: f64,
    /// How long the answer took, in milliseconds.
    #[serde(default, deserialize_with = "or_default")]
    pub ms: f64,
    /// `reporter` or `observer`.
    pub by: String,
    /// Path and query, without a root path.
    pub path: String,
    /// HTTP status; 0 where no answer came.
    #[serde(default, deserialize_with = "or_default")]
    pub status: u16,
    /// Key of the answer in [`Case::bodies`]; empty where no answer came.
    #[serde(default, deserialize_with = "or_default")]
    pub body: String,
}

/// One post to the platform.
#[derive(Debug, Clone, Deserialize)]
pub struct ReportLine {
    /// Its number in the case.
    pub n: u64,
    /// When, in Unix seconds.
    pub t: f64,
    /// The payload: what stood under `data`.
    pub data: Value,
}

/// One watch event that the recorded reporter took up.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RoundLine {
    /// Its number in the case.
    pub n: u64,
    /// When it was taken up, in Unix seconds.
    pub t: f64,
    /// The application's name.
    pub app: String,
    /// Names the watch event.
    #[serde(default, deserialize_with = "or_default")]
    pub resource_version: String,
    /// The calls that were made for it.
    #[serde(default, deserialize_with = "or_default")]
    pub calls: Vec<u64>,
    /// The reports that came of it.
    #[serde(default, deserialize_with = "or_default")]
    pub reports: Vec<u64>,
    /// Nothing was reported, so that `resource_version` is only the next event in order.
    #[serde(default)]
    pub resource_version_is_a_guess: bool,
}

impl Case {
    /// The answer to a call, as JSON text; `None` where the recording holds no such body.
    #[must_use]
    pub fn answer(&self, call: &CallLine) -> Option<&RawValue> {
        self.bodies.get(&call.body).map(AsRef::as_ref)
    }
}

/// Nothing and `null` are one.
fn or_default<'de, D: serde::Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

#[derive(Deserialize)]
struct WatchWire {
    t: f64,
    event: WatchWireEvent,
}

#[derive(Deserialize)]
struct WatchWireEvent {
    #[serde(rename = "type")]
    kind: String,
    object: Box<RawValue>,
}

#[derive(Deserialize)]
struct BodyWire {
    id: String,
    body: Box<RawValue>,
}

/// Loads every case of `dir`: a folder of case folders, or one case folder. Sorted by name.
pub fn load_dir(dir: &Path) -> anyhow::Result<Vec<Case>> {
    if dir.join("case.json").is_file() {
        return Ok(vec![load_case(dir)?]);
    }
    let entries = fs::read_dir(dir).with_context(|| format!("read folder {}", dir.display()))?;
    let mut folders = Vec::new();
    for entry in entries {
        let path = entry.with_context(|| format!("read folder {}", dir.display()))?.path();
        if path.join("case.json").is_file() || path.join("watch.jsonl").is_file() {
            folders.push(path);
        }
    }
    if folders.is_empty() {
        bail!("no case in {}: a case is a folder with a case.json", dir.display());
    }
    folders.sort();
    folders.iter().map(|folder| load_case(folder)).collect()
}

fn load_case(dir: &Path) -> anyhow::Result<Case> {
    let full = dir.canonicalize().with_context(|| format!("find folder {}", dir.display()))?;
    let name = full.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    case(name, |file| {
        let path = dir.join(file);
        match fs::read(&path) {
            Ok(bytes) => Ok((path.display().to_string(), Some(bytes))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Ok((path.display().to_string(), None))
            }
            Err(error) => Err(error).with_context(|| format!("read {}", path.display())),
        }
    })
}

/// Reads one case; `file` gives for a file's name where it is and its bytes, `None` if it is not there.
fn case(
    name: String,
    mut file: impl FnMut(&str) -> anyhow::Result<(String, Option<Vec<u8>>)>,
) -> anyhow::Result<Case> {
    let mut must = |what: &str| -> anyhow::Result<(String, Vec<u8>)> {
        let (place, bytes) = file(what)?;
        let bytes = bytes.with_context(|| format!("find {place}"))?;
        Ok((place, bytes))
    };
    let (place, bytes) = must("case.json")?;
    let meta = serde_json::from_slice(&bytes).with_context(|| format!("read {place}"))?;
    let (place, bytes) = must("watch.jsonl")?;
    let watch = lines(&place, &bytes)?
        .into_iter()
        .map(|WatchWire { t, event }| WatchLine { t, kind: event.kind, object: event.object })
        .collect();
    let (calls_place, bytes) = must("calls.jsonl")?;
    let calls: Vec<CallLine> = lines(&calls_place, &bytes)?;
    let (place, bytes) = must("bodies.jsonl")?;
    let bodies: HashMap<_, _> =
        lines(&place, &bytes)?.into_iter().map(|BodyWire { id, body }| (id, body)).collect();
    let is_lost = |call: &&CallLine| !call.body.is_empty() && !bodies.contains_key(&call.body);
    if let Some(call) = calls.iter().find(is_lost) {
        bail!("read {calls_place}: call {} names body {}, which {place} has not", call.n, call.body);
    }
    let mut may = |what: &str| -> anyhow::Result<(String, Vec<u8>)> {
        let (place, bytes) = file(what)?;
        Ok((place, bytes.unwrap_or_default()))
    };
    let (place, bytes) = may("reports.jsonl")?;
    let reports = lines(&place, &bytes)?;
    let (place, bytes) = may("rounds.jsonl")?;
    let rounds = lines(&place, &bytes)?;
    Ok(Case { name, meta, watch, calls, bodies, reports, rounds })
}

fn lines<T: DeserializeOwned>(place: &str, bytes: &[u8]) -> anyhow::Result<Vec<T>> {
    bytes
        .split(|&byte| byte == b'\n')
        .enumerate()
        .filter(|(_, line)| !line.trim_ascii().is_empty())
        .map(|(index, line)| {
            serde_json::from_slice(line).with_context(|| format!("read {place}, line {}", index + 1))
        })
        .collect()
}
