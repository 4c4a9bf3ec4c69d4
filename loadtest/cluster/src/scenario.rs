//! Scenarios as data: what is done to a cluster, step by step.
//!
//! takes: YAML files, one scenario each, named after it - gives: [`Scenario`]s whose every name was checked
//! calls: nothing - fails: with the file and what is wrong in it
//!
//! A scenario has a Git repository and a destination namespace of its own, both named after it, so that several can
//! be played at once. `$REPO` and `$NAMESPACE` stand for them anywhere in the file, and
//! `$APPLICATION` for the name of the application that a step makes.

mod step;
#[cfg(test)]
mod tests;
mod time;

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context as _, bail};
use serde::Deserialize;

pub use step::{
    Commit, Create, Delete, Edit, Ends, Lifecycle, Link, ObjectName, Observe, Patch, Refresh, Rollback, Step,
    Sync, Target, Wait,
};

/// Selects every application of the scenario.
pub const ALL: &str = "*";
/// The most names that one range may stand for.
const RANGE: usize = 200;

/// One scenario.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// The name of its file, of its repository and of its destination namespace.
    pub name: String,
    /// One sentence.
    pub about: String,
    /// Every application that it makes, by itself or through a parent.
    pub applications: Vec<String>,
    /// Controllers that it needs beside those of Kubernetes and Argo CD.
    pub controllers: BTreeSet<Controller>,
    /// Nothing else may run beside it: it takes the platform or the reporter away, or changes settings of Argo CD.
    pub alone: bool,
    /// What is done, in order.
    pub steps: Vec<Step>,
    text: String,
}

/// A controller that not every scenario needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Controller {
    /// Argo Rollouts.
    Rollouts,
    /// Argo Workflows.
    Workflows,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct File {
    about: String,
    applications: Vec<String>,
    #[serde(default)]
    controllers: BTreeSet<Controller>,
    #[serde(default)]
    alone: bool,
    steps: Vec<Step>,
}

impl Scenario {
    /// Reads a scenario.
    pub fn read(name: &str, text: &str) -> anyhow::Result<Self> {
        let read = || -> anyhow::Result<Self> {
            placeholders(text)?;
            let file: File = parse(text)?;
            let applications = names(&file.applications)?;
            let scenario = Self {
                name: name.to_owned(),
                about: file.about,
                applications,
                controllers: file.controllers,
                alone: file.alone,
                steps: file.steps,
                text: text.to_owned(),
            };
            scenario.check()?;
            Ok(scenario)
        };
        read().with_context(|| format!("read scenario {name}"))
    }

    /// The same with its repository's address and its namespace filled in.
    pub fn filled(&self, repository: &str) -> anyhow::Result<Self> {
        let text = self.text.replace("$REPO", repository).replace("$NAMESPACE", &self.name);
        Self::read(&self.name, &text)
    }

    /// The applications that a step means: the one named, all, or without a name the first.
    #[must_use]
    pub fn selected<'a>(&'a self, application: Option<&'a str>) -> &'a [String] {
        match application {
            None => self.applications.get(..1).unwrap_or_default(),
            Some(ALL) => &self.applications,
            Some(name) => match self.applications.iter().position(|known| known == name) {
                Some(at) => self.applications.get(at..=at).unwrap_or_default(),
                None => &[],
            },
        }
    }

    fn check(&self) -> anyhow::Result<()> {
        if !is_label(&self.name) {
            bail!("its name is no DNS label");
        }
        if self.about.trim().is_empty() {
            bail!("about is empty");
        }
        if self.applications.is_empty() {
            bail!("it has no applications");
        }
        let mut known = BTreeSet::new();
        for application in &self.applications {
            let rest = application.strip_prefix(&self.name);
            if !rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-')) || !is_label(application) {
                bail!("application {application} is neither {0} nor {0}-...", self.name);
            }
            if !known.insert(application) {
                bail!("application {application} stands twice");
            }
        }
        if self.steps.is_empty() {
            bail!("it has no steps");
        }
        let mut is_down = false;
        for (at, step) in self.steps.iter().enumerate() {
            let mut check = || -> anyhow::Result<()> {
                if let Some(application) = step.application()
                    && self.selected(Some(application)).is_empty()
                {
                    bail!("there is no application {application}");
                }
                if matches!(step, Step::Platform(_)) && !self.alone {
                    bail!("only a scenario that is alone may take the platform away");
                }
                match step {
                    Step::Reporter(_) if !self.alone => {
                        bail!("only a scenario that is alone may stop the reporter")
                    }
                    Step::Reporter(Lifecycle::Start) if !is_down => bail!("the reporter runs"),
                    Step::Reporter(Lifecycle::Start) => is_down = false,
                    Step::Reporter(_) | Step::Check(_) if is_down => bail!("the reporter is down"),
                    Step::Reporter(_) => is_down = true,
                    _ => {}
                }
                step.check()
            };
            check().with_context(|| format!("step {}, {}", at + 1, step.name()))?;
        }
        if is_down {
            bail!("it leaves the reporter down");
        }
        Ok(())
    }
}

/// Reads every scenario of a folder, in the order of their names.
pub fn load(directory: &Path) -> anyhow::Result<Vec<Scenario>> {
    let place = || format!("read scenarios of {}", directory.display());
    let mut scenarios = Vec::new();
    for entry in std::fs::read_dir(directory).with_context(place)? {
        let path = entry.with_context(place)?.path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let name = path.file_stem().and_then(|stem| stem.to_str()).with_context(place)?;
        let text = std::fs::read_to_string(&path).with_context(|| format!("read file {}", path.display()))?;
        scenarios.push(Scenario::read(name, &text)?);
    }
    if scenarios.is_empty() {
        bail!("there is no scenario in {}", directory.display());
    }
    scenarios.sort_by(|left, right| left.name.cmp(&right.name));
    let mut owners = std::collections::BTreeMap::new();
    for scenario in &scenarios {
        for application in &scenario.applications {
            if let Some(other) = owners.insert(application, &scenario.name) {
                bail!("application {application} belongs to scenarios {other} and {}", scenario.name);
            }
        }
    }
    Ok(scenarios)
}

fn parse(text: &str) -> anyhow::Result<File> {
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| anyhow::anyhow!("{}", error.without_snippet()))
}

/// Refuses a placeholder that is not known.
fn placeholders(text: &str) -> anyhow::Result<()> {
    for (at, line) in text.lines().enumerate() {
        for part in line.split('$').skip(1) {
            let end = part.find(|letter: char| !letter.is_ascii_uppercase()).unwrap_or(part.len());
            let name = part.get(..end).unwrap_or_default();
            if !matches!(name, "" | "REPO" | "NAMESPACE" | "APPLICATION" | "ROUND") {
                let expected = "$REPO, $NAMESPACE, $APPLICATION or $ROUND";
                bail!("line {}: unknown placeholder ${name}, expected {expected}", at + 1);
            }
        }
    }
    Ok(())
}

/// Writes out ranges such as `burst-{00..39}`.
fn names(patterns: &[String]) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for pattern in patterns {
        let Some((before, rest)) = pattern.split_once('{') else {
            names.push(pattern.clone());
            continue;
        };
        let range = || {
            let (range, after) = rest.split_once('}')?;
            let (first, last) = range.split_once("..")?;
            let (from, to) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
            (from <= to && to - from < RANGE).then_some((from, to, first.len(), after))
        };
        let Some((from, to, width, after)) = range() else {
            bail!("{pattern} is no range of at most {RANGE} names, such as name-{{00..39}}");
        };
        names.extend((from..=to).map(|number| format!("{before}{number:0width$}{after}")));
    }
    Ok(names)
}

fn is_label(name: &str) -> bool {
    let fits = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    !name.is_empty()
        && name.len() <= 63
        && name.chars().all(fits)
        && !name.starts_with('-')
        && !name.ends_with('-')
}
