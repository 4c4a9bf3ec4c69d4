//! What is committed: dashboards as JSON, alert rules and their unit tests as YAML.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

/// One dashboard.
pub(crate) struct Dashboard {
    /// Its file's name without the ending.
    pub(crate) name: String,
    /// All of it.
    pub(crate) json: Value,
}

/// One query of a panel.
pub(crate) struct Target<'a> {
    /// Dashboard, panel and query, for messages.
    pub(crate) place: String,
    /// Its PromQL, with variables in it.
    pub(crate) expr: &'a str,
    /// Asked for one moment, not for the time shown.
    pub(crate) instant: bool,
}

impl Dashboard {
    pub(crate) fn panels(&self) -> &[Value] {
        self.json["panels"].as_array().expect("a dashboard has panels")
    }

    pub(crate) fn variables(&self) -> &[Value] {
        self.json["templating"]["list"].as_array().expect("a dashboard has variables")
    }

    pub(crate) fn targets(&self) -> impl Iterator<Item = Target<'_>> {
        self.panels().iter().flat_map(move |panel| {
            let title = panel["title"].as_str().unwrap_or("a panel without a title");
            panel["targets"].as_array().into_iter().flatten().map(move |target| Target {
                place: format!("{}, {title}, {}", self.name, target["refId"].as_str().unwrap_or("?")),
                expr: target["expr"].as_str().expect("a query has an expression"),
                instant: target["instant"] == true,
            })
        })
    }
}

/// One alert.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rule {
    pub(crate) alert: String,
    pub(crate) expr: String,
    #[serde(rename = "for")]
    pub(crate) _lasting: Option<String>,
    pub(crate) labels: Labels,
    pub(crate) annotations: Annotations,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Labels {
    pub(crate) severity: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Annotations {
    pub(crate) summary: String,
    pub(crate) description: String,
}

/// One unit test of rules, as far as it is read.
#[derive(Deserialize)]
pub(crate) struct Unit {
    pub(crate) promql_expr_test: Vec<Expected>,
}

#[derive(Deserialize)]
pub(crate) struct Expected {
    pub(crate) expr: String,
    pub(crate) exp_samples: Vec<Value>,
}

#[derive(Deserialize)]
struct RuleFile {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
struct UnitFile {
    tests: Vec<Unit>,
}

/// All dashboards.
pub(crate) fn dashboards() -> Vec<Dashboard> {
    let read = |path: PathBuf| Dashboard {
        name: path.file_stem().unwrap().to_str().unwrap().to_owned(),
        json: serde_json::from_str(&text(&path))
            .unwrap_or_else(|error| panic!("{}: {error}", path.display())),
    };
    files("helm/gitops-runtime/dashboards", "json").into_iter().map(read).collect()
}

/// The files of the alert rules.
pub(crate) fn rule_files() -> Vec<PathBuf> {
    files("helm/gitops-runtime/alerts", "yaml")
}

/// The files of their unit tests.
pub(crate) fn unit_files() -> Vec<PathBuf> {
    files("helm/gitops-runtime/alerts/tests", "yaml")
}

/// All alert rules.
pub(crate) fn rules() -> Vec<Rule> {
    let read = |path: PathBuf| yaml::<RuleFile>(&path).groups.into_iter().flat_map(|group| group.rules);
    rule_files().into_iter().flat_map(read).collect()
}

/// All unit tests of alert rules.
pub(crate) fn units() -> Vec<Unit> {
    unit_files().into_iter().flat_map(|path| yaml::<UnitFile>(&path).tests).collect()
}

/// The repository's folder.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn yaml<T: serde::de::DeserializeOwned>(path: &Path) -> T {
    serde_saphyr::from_str(&text(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|own| own == ending)).collect();
    assert!(!files.is_empty(), "there is no {ending} in {folder}");
    files.sort();
    files
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
