//! Bodies as they were recorded, each of an application of its own.

use std::io::Write as _;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use loadtest_judge::report::object_of;
use loadtest_sim::recordings;
use serde_json::{Value, json};

/// Teams that applications are of, by their label `team`.
pub(super) const TEAMS: usize = 20;

/// A body, and the key that it is sent under.
pub(super) struct Body {
    pub(super) key: String,
    pub(super) gzip: Vec<u8>,
}

/// Makes bodies of some applications.
pub(super) struct Bodies {
    /// The reports of each recorded case that begins with every entity's first.
    cases: Vec<Case>,
    applications: usize,
    /// The application and the report that come next.
    at: (usize, usize),
    firsts: usize,
    /// Of the object's version: each body differs from all before it.
    version: u64,
    random: fastrand::Rng,
}

struct Case {
    /// One of each entity.
    firsts: Vec<Value>,
    all: Vec<Value>,
}

impl Bodies {
    pub(super) fn new(applications: usize) -> anyhow::Result<Self> {
        let mut cases = Vec::new();
        for case in recordings::packed("incumbent-2.12")? {
            let all: Vec<Value> = case.reports.into_iter().map(|line| line.data).collect();
            let (mut seen, mut firsts) = (Vec::new(), Vec::new());
            for report in &all {
                let name = entity(report)?;
                if !seen.contains(&name) {
                    seen.push(name);
                    firsts.push(report.clone());
                }
            }
            cases.push(Case { firsts, all });
        }
        let random = fastrand::Rng::with_seed(1);
        Ok(Self { cases, applications, at: (0, 0), firsts: 0, version: 0, random })
    }

    /// How many first reports there were.
    pub(super) const fn firsts(&self) -> usize {
        self.firsts
    }

    /// The next first reports, at most so many; none when every application had its own.
    pub(super) fn first(&mut self, most: usize) -> anyhow::Result<Vec<Body>> {
        let mut made = Vec::new();
        while made.len() < most && self.at.0 < self.applications {
            let (application, number) = self.at;
            let case = self.case(application)?;
            match case.firsts.get(number).cloned() {
                Some(report) => {
                    made.push(self.body(report, application)?);
                    self.at.1 += 1;
                }
                None => self.at = (application + 1, 0),
            }
        }
        self.firsts += made.len();
        Ok(made)
    }

    /// So many reports of states that follow, in the recordings' mix, of applications at random.
    pub(super) fn next(&mut self, count: usize) -> anyhow::Result<Vec<Body>> {
        let mut made = Vec::new();
        for _ in 0..count {
            let application = self.random.usize(0..self.applications);
            let number = self.random.usize(..);
            let all = &self.case(application)?.all;
            let report = all.get(number % all.len()).cloned().context("a recorded report")?;
            made.push(self.body(report, application)?);
        }
        Ok(made)
    }

    /// One report each of the first `lived` applications, as of a moment.
    pub(super) fn past(&mut self, lived: usize, at: Timestamp) -> anyhow::Result<Vec<Body>> {
        let mut made = Vec::new();
        for application in 0..lived.min(self.applications) {
            let number = self.random.usize(..);
            let all = &self.case(application)?.all;
            let mut report = all.get(number % all.len()).cloned().context("a recorded report")?;
            report["timestamp"] = at.to_string().into();
            made.push(self.body(report, application)?);
        }
        Ok(made)
    }

    fn case(&self, application: usize) -> anyhow::Result<&Case> {
        self.cases.get(application % self.cases.len()).context("a recorded case")
    }

    fn body(&mut self, mut data: Value, application: usize) -> anyhow::Result<Body> {
        self.version += 1;
        let suffix = format!("-{application}");
        let mut object = object(&data)?;
        let is_application = object["kind"] == "Application";
        let append = |value: &mut Value| {
            if let Some(text) = value.as_str() {
                *value = format!("{text}{suffix}").into();
            }
        };
        let metadata = &mut object["metadata"];
        for name in ["uid", if is_application { "name" } else { "namespace" }] {
            metadata.get_mut(name).map(append);
        }
        metadata["resourceVersion"] = self.version.to_string().into();
        if is_application {
            metadata["labels"]["team"] = team(application).into();
        }
        let text = object.to_string();
        data["object"] = STANDARD.encode(&text).into();
        if let Some(source) = data["source"].as_object_mut() {
            source.get_mut("appName").map(append);
            if source.get("actualManifest").and_then(Value::as_str).is_some_and(|text| !text.is_empty()) {
                source.insert("actualManifest".to_owned(), text.into());
            }
            for name in ["desiredManifest", "gitManifest"] {
                source.get_mut(name).filter(|text| text != &"").map(append);
            }
        }
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(json!({"data": data}).to_string().as_bytes())?;
        Ok(Body { key: format!("{:032x}", self.version), gzip: encoder.finish()? })
    }
}

/// The label `team` of an application.
pub(super) fn team(application: usize) -> String {
    format!("team-{}", application % TEAMS)
}

fn object(data: &Value) -> anyhow::Result<Value> {
    object_of(data).context("read a recorded object")
}

fn entity(data: &Value) -> anyhow::Result<String> {
    let object = object(data)?;
    let metadata = &object["metadata"];
    let application = &data["source"]["appName"];
    Ok(format!("{application} {} {} {}", object["kind"], metadata["namespace"], metadata["name"]))
}
