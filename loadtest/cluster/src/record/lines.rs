//! Writes a recording's files, line by line while it runs, and the reports at its end.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::mpsc;

use super::{Config, Line, owners};
use loadtest_sim::recordings::CaseMeta;

type Out = tokio::io::BufWriter<tokio::fs::File>;

/// The files of all cases.
pub(super) struct Files {
    owners: HashMap<String, String>,
    cases: HashMap<String, Case>,
    hidden: Vec<(String, String)>,
}

struct Case {
    watch: Out,
    calls: Out,
    bodies: Out,
    /// Bodies that stand there already.
    written: HashSet<String>,
    asked: u64,
    /// The settings when an application came last.
    meta: Option<CaseMeta>,
}

impl Files {
    /// Makes a folder for every case; what stands there of an earlier recording goes.
    pub(super) async fn new(config: &Config) -> anyhow::Result<Self> {
        let mut cases = HashMap::new();
        for name in config.cases.keys() {
            let folder = config.directory.join(name);
            tokio::fs::create_dir_all(&folder)
                .await
                .with_context(|| format!("make folder {}", folder.display()))?;
            let case = Case {
                watch: create(&folder, "watch.jsonl").await?,
                calls: create(&folder, "calls.jsonl").await?,
                bodies: create(&folder, "bodies.jsonl").await?,
                written: HashSet::new(),
                asked: 0,
                meta: None,
            };
            cases.insert(name.clone(), case);
        }
        Ok(Self { owners: owners(&config.cases), cases, hidden: config.hidden.clone() })
    }

    /// Writes what comes until nobody can send any more; gives the settings of each case.
    pub(super) async fn write(
        mut self,
        mut lines: mpsc::Receiver<Line>,
    ) -> anyhow::Result<HashMap<String, CaseMeta>> {
        while let Some(line) = lines.recv().await {
            self.take(line).await.context("write a recording")?;
        }
        for case in self.cases.values_mut() {
            for file in [&mut case.watch, &mut case.calls, &mut case.bodies] {
                file.flush().await.context("write a recording")?;
            }
        }
        let metas = self.cases.into_iter().filter_map(|(name, case)| Some((name, case.meta?)));
        Ok(metas.collect())
    }

    async fn take(&mut self, line: Line) -> anyhow::Result<()> {
        let (Line::Watch { application, .. }
        | Line::Settings { application, .. }
        | Line::Call { application, .. }) = &line;
        let Some(case) = self.owners.get(application).and_then(|owner| self.cases.get_mut(owner)) else {
            return Ok(());
        };
        match line {
            Line::Watch { t, event, .. } => {
                let event = hide(&self.hidden, &String::from_utf8_lossy(&event));
                case.watch.write_all(format!("{{\"t\":{t},\"event\":{event}}}\n").as_bytes()).await?;
            }
            Line::Settings { meta, .. } => case.meta = Some(meta),
            Line::Call { by, t, ms, path, status, body, .. } => {
                let body = hide(&self.hidden, &text(&body));
                let id = if status == 0 { String::new() } else { id(&body) };
                if !id.is_empty() && case.written.insert(id.clone()) {
                    let line = format!("{{\"id\":\"{id}\",\"body\":{body}}}\n");
                    case.bodies.write_all(line.as_bytes()).await?;
                }
                let n = case.asked;
                case.asked += 1;
                let path = hide(&self.hidden, &path);
                let line =
                    json!({"n": n, "t": t, "ms": ms, "by": by, "path": path, "status": status, "body": id});
                case.calls.write_all(format!("{line}\n").as_bytes()).await?;
            }
        }
        Ok(())
    }
}

async fn create(folder: &Path, name: &str) -> anyhow::Result<Out> {
    let path = folder.join(name);
    let file = tokio::fs::File::create(&path).await.with_context(|| format!("write {}", path.display()))?;
    Ok(tokio::io::BufWriter::new(file))
}

/// An answer as JSON on one line; one that is no JSON as the text that it is.
fn text(body: &[u8]) -> String {
    let raw: Option<&RawValue> = serde_json::from_slice(body).ok();
    match raw.map(RawValue::get) {
        Some(raw) if !raw.contains('\n') => raw.to_owned(),
        // JSON lets line breaks stand between its tokens alone, where they mean nothing.
        Some(raw) => raw.replace(['\n', '\r'], " "),
        None => Value::from(String::from_utf8_lossy(body)).to_string(),
    }
}

fn id(body: &str) -> String {
    let digest = Sha256::digest(body.as_bytes());
    digest.iter().take(6).fold("b".to_owned(), |mut id, byte| {
        // A string takes every text.
        let _ = write!(id, "{byte:02x}");
        id
    })
}

fn hide(hidden: &[(String, String)], text: &str) -> String {
    hidden.iter().fold(text.to_owned(), |text, (from, to)| {
        if text.contains(from.as_str()) { text.replace(from.as_str(), to) } else { text }
    })
}

#[derive(Deserialize)]
struct Report {
    t: f64,
    data: Box<RawValue>,
}

#[derive(Deserialize)]
struct Data {
    object: String,
    source: Source,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Source {
    app_name: String,
}

/// What is read of the object that a report is about.
#[derive(Deserialize)]
struct Object {
    metadata: Name,
}

#[derive(Deserialize)]
struct Name {
    #[serde(default)]
    name: String,
}

/// Sorts the reports by case and writes each `case.json`.
pub(super) fn reports(
    config: &Config,
    first: &CaseMeta,
    metas: &HashMap<String, CaseMeta>,
) -> anyhow::Result<Vec<PathBuf>> {
    let owners = owners(&config.cases);
    let mut files = BTreeMap::new();
    let mut folders = Vec::new();
    for (name, applications) in &config.cases {
        let folder = config.directory.join(name);
        let meta = metas.get(name).unwrap_or(first);
        let case = json!({
            "applications": applications, "trackingMethod": meta.tracking_method,
            "instanceLabelKey": meta.instance_label_key, "server": meta.server,
        });
        let path = folder.join("case.json");
        std::fs::write(&path, format!("{case:#}\n")).with_context(|| format!("write {}", path.display()))?;
        let path = folder.join("reports.jsonl");
        let file = std::fs::File::create(&path).with_context(|| format!("write {}", path.display()))?;
        files.insert(name.clone(), (BufWriter::new(file), 0_u64));
        folders.push(folder);
    }
    let all = super::reports(&config.directory);
    let file = std::fs::File::open(&all).with_context(|| format!("read {}", all.display()))?;
    for line in BufReader::new(file).lines() {
        let line = line.context("read a report")?;
        let report: Report = serde_json::from_str(&line).context("read a report")?;
        let Some((out, number)) = case(&report, &owners)?.and_then(|case| files.get_mut(case)) else {
            continue;
        };
        let data = hide_report(&config.hidden, report.data.get())?;
        writeln!(out, r#"{{"n":{number},"t":{},"data":{data}}}"#, report.t).context("write a report")?;
        *number += 1;
    }
    for (out, _) in files.values_mut() {
        out.flush().context("write a report")?;
    }
    std::fs::remove_file(&all).with_context(|| format!("remove {}", all.display()))?;
    Ok(folders)
}

/// Which case a report belongs to: a root application's report names none, so that its object must.
fn case<'a>(report: &Report, owners: &'a HashMap<String, String>) -> anyhow::Result<Option<&'a String>> {
    let data: Data = serde_json::from_str(report.data.get()).context("read a report")?;
    if !data.source.app_name.is_empty() {
        return Ok(owners.get(&data.source.app_name));
    }
    let object: Object = serde_json::from_slice(&decode(&data.object)?).context("read a report's object")?;
    Ok(owners.get(&object.metadata.name))
}

/// Hides texts in a report, its object included.
fn hide_report(hidden: &[(String, String)], data: &str) -> anyhow::Result<String> {
    let data = hide(hidden, data);
    let Data { object, .. } = serde_json::from_str(&data).context("read a report")?;
    let Ok(text) = String::from_utf8(decode(&object)?) else {
        bail!("read a report's object: it is no text")
    };
    let clean = hide(hidden, &text);
    if clean == text { Ok(data) } else { Ok(data.replace(&object, &STANDARD.encode(clean))) }
}

fn decode(object: &str) -> anyhow::Result<Vec<u8>> {
    STANDARD.decode(object).context("decode a report's object")
}
