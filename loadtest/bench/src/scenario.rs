//! Scenarios of benchmarks as data.
//!
//! takes: YAML, one scenario a file, its name that of the file - gives: a [`Scenario`] in which every name, rate and
//! size was checked - calls: nothing - fails: with the file, the place in it, and what is wrong there
//!
//! A file's own `short` lies over it where the short form is asked for: the same scenario, small.

mod form;
mod measure;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde::Deserialize;
use serde_json::Value;

pub(super) use form::{Rate, Time};
use loadtest_sim::generate::{Line, Mix};
pub(super) use measure::Measure;

/// The scenarios that come with the program, in the order in which they make the table of figures.
const FILES: &[(&str, &str)] = &[
    ("steady", include_str!("../scenarios/steady.yaml")),
    ("sixty", include_str!("../scenarios/sixty.yaml")),
    ("hot", include_str!("../scenarios/hot.yaml")),
    ("cold", include_str!("../scenarios/cold.yaml")),
    ("overload", include_str!("../scenarios/overload.yaml")),
    ("filtered", include_str!("../scenarios/filtered.yaml")),
    ("few", include_str!("../scenarios/few.yaml")),
    ("many", include_str!("../scenarios/many.yaml")),
    ("memory", include_str!("../scenarios/memory.yaml")),
    ("bus", include_str!("../scenarios/bus.yaml")),
];

/// One scenario.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Scenario {
    /// The name of its file.
    #[serde(skip)]
    pub(super) name: String,
    /// It is the small one.
    #[serde(skip)]
    pub(super) is_short: bool,
    /// One sentence.
    pub(super) about: String,
    /// It belongs to the table of figures.
    #[serde(default)]
    pub(super) table: bool,
    /// Applications that are there at the start.
    pub(super) applications: u32,
    /// Resources of each.
    #[serde(default = "form::ten")]
    pub(super) resources: u32,
    /// Which Argo CD answers.
    #[serde(default)]
    pub(super) line: Line,
    /// Decides everything that looks random.
    #[serde(default = "form::one")]
    pub(super) seed: u64,
    /// How the reporter meets the applications.
    #[serde(default)]
    pub(super) arrive: Arrive,
    /// How the peers answer.
    #[serde(default)]
    pub(super) peers: Peers,
    /// What changes are made.
    #[serde(default)]
    pub(super) mix: Mix,
    /// Processes that share the applications, on a bus.
    #[serde(default = "form::single")]
    pub(super) replicas: u32,
    /// They share a NATS server of their own.
    #[serde(default)]
    pub(super) bus: bool,
    /// Settings of this product's reporter, in the shape of its configuration file.
    #[serde(default)]
    pub(super) settings: serde_json::Map<String, Value>,
    /// Windows of changes, one after the other, once everything was reported.
    #[serde(default)]
    pub(super) changes: Vec<Changes>,
    /// How often the reporter's own figures are looked at, and every event of it must be accounted for.
    #[serde(default = "form::a_second")]
    pub(super) look: Time,
    /// What has not moved for so long is given up.
    #[serde(default)]
    patience: Option<Time>,
    /// The figures that it is about.
    pub(super) figures: Vec<Wanted>,
    /// What is different in the short form.
    #[serde(default)]
    short: Option<serde_json::Map<String, Value>>,
}

/// How the reporter meets the applications.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Arrive {
    /// They are there when it starts: it lists them.
    #[default]
    Listed,
    /// They come all at once when it watches.
    Watched,
}

/// How the peers answer.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Peers {
    pub(super) argocd: Peer,
    pub(super) platform: Peer,
}

/// How one peer answers.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Peer {
    /// How late.
    pub(super) latency: Time,
}

/// One window of changes, or pairs of windows.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Changes {
    /// How many changes are made.
    pub(super) rate: Rate,
    /// Changes under way at once in closed loop, each of another application.
    #[serde(default = "form::outstanding")]
    pub(super) outstanding: u32,
    /// Seconds of the window; some before it are not measured.
    pub(super) seconds: f64,
    /// One application changes so many times a second beside the others.
    #[serde(default)]
    pub(super) hot: Option<f64>,
    /// So many pairs of windows, one without the hot application and one with it, alternating.
    #[serde(default)]
    pub(super) pairs: Option<u32>,
}

/// A figure that a scenario is about.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Wanted {
    /// Which.
    pub(super) what: Measure,
    /// It must be this or more.
    #[serde(default)]
    pub(super) at_least: Option<f64>,
    /// It must be this or less.
    #[serde(default)]
    pub(super) at_most: Option<f64>,
    /// The incumbent's, measured under the same conditions.
    #[serde(default)]
    pub(super) incumbent: Option<f64>,
    /// It must be at most so many times that of another scenario ...
    #[serde(default)]
    pub(super) within: Option<f64>,
    /// ... of this name.
    #[serde(default)]
    pub(super) of: Option<String>,
}

impl Scenario {
    /// Reads a scenario.
    pub(super) fn read(name: &str, text: &str, short: bool) -> anyhow::Result<Self> {
        let read = || -> anyhow::Result<Self> {
            let mut value: Value = serde_saphyr::from_str(text)?;
            let mut scenario = form::parse(&value)?;
            scenario.check()?;
            if let Some(over) = scenario.short.take().filter(|_| short) {
                form::lay_over(&mut value, over);
                scenario = form::parse(&value).context("read the short form")?;
                scenario.check().context("read the short form")?;
            }
            scenario.short = None;
            Ok(Self { name: name.to_owned(), is_short: short, ..scenario })
        };
        read().with_context(|| format!("read the scenario {name}"))
    }

    fn check(&self) -> anyhow::Result<()> {
        ensure!((1..=100_000).contains(&self.applications), "applications: from 1 to 100,000");
        ensure!((1..=1_000).contains(&self.resources), "resources: from 1 to 1,000");
        ensure!((1..=64).contains(&self.replicas), "replicas: from 1 to 64");
        ensure!(!self.look.0.is_zero(), "look: longer than 0");
        ensure!(self.replicas == 1 || self.bus, "replicas: only on a bus are there several");
        let mut maximum = false;
        for (at, changes) in self.changes.iter().enumerate() {
            let told = |error: &str| format!("changes[{at}]: {error}");
            ensure!(changes.seconds > 0.0 && changes.seconds <= 3_600.0, told("from 0 to 3,600 seconds"));
            ensure!(changes.outstanding > 0, told("nothing would be under way"));
            if changes.rate == Rate::Half && !maximum {
                bail!(told("there is no window with rate max before it to take half of"));
            }
            if changes.rate == Rate::Max && self.only_refreshes() {
                bail!(told("nothing is reported of a refresh, so that rate max has no end; give a number"));
            }
            if changes.hot.is_some_and(|hot| !(hot > 0.0 && hot <= 1e6)) {
                bail!(told("hot is a number of changes a second above 0"));
            }
            if changes.hot.is_some() && self.applications < 2 {
                bail!(told("a hot application needs another one beside it"));
            }
            if changes.pairs.is_some_and(|pairs| pairs == 0 || changes.hot.is_none()) {
                bail!(told("pairs are windows without and with a hot application; give hot as well"));
            }
            maximum |= changes.rate == Rate::Max;
        }
        for (at, wanted) in self.figures.iter().enumerate() {
            if wanted.within.is_some() != wanted.of.is_some() {
                bail!("figures[{at}]: within and of belong together");
            }
        }
        Ok(())
    }

    /// Whether no change is worth a report.
    pub(super) fn only_refreshes(&self) -> bool {
        self.mix.reconcile > 0 && self.mix == Mix { reconcile: self.mix.reconcile, ..Mix::NONE }
    }

    /// Whether the scenario is about this figure.
    pub(super) fn is_asked_for(&self, measure: Measure) -> bool {
        self.figures.iter().any(|figure| figure.what == measure)
    }

    /// Whether one application is hot at any time.
    pub(super) fn has_hot(&self) -> bool {
        self.changes.iter().any(|changes| changes.hot.is_some())
    }

    /// Scenarios whose figures those of this one stand beside.
    fn needs(&self) -> impl Iterator<Item = &str> {
        self.figures.iter().filter_map(|wanted| wanted.of.as_deref())
    }

    /// What has not moved for so long is given up. In the short form, which is played beside other work, a machine that
    /// is busy must not look like a reporter that stands still.
    pub(super) fn patience(&self) -> Duration {
        let usual = Duration::from_secs(if self.is_short { 300 } else { 30 });
        self.patience.map_or(usual, |time| time.0)
    }
}

/// The scenarios of these names and files, all of the table of figures when none is given; before each those that its
/// figures stand beside.
pub(super) fn chosen(given: &[String], short: bool) -> anyhow::Result<Vec<Scenario>> {
    let own = own(short)?;
    let mut chosen: Vec<Scenario> = Vec::new();
    let add = |scenario: &Scenario, chosen: &mut Vec<Scenario>| -> anyhow::Result<()> {
        for need in scenario.needs() {
            let known = chosen.iter().any(|chosen| chosen.name == need);
            let found = own.iter().find(|scenario| scenario.name == need);
            match found.filter(|_| !known) {
                Some(needed) => chosen.push(needed.clone()),
                None if known => {}
                None => bail!(
                    "read the scenario {}: there is no scenario {need:?} for its figures to stand beside",
                    scenario.name
                ),
            }
        }
        if !chosen.iter().any(|chosen| chosen.name == scenario.name) {
            chosen.push(scenario.clone());
        }
        Ok(())
    };
    if given.is_empty() {
        for scenario in own.iter().filter(|scenario| scenario.table) {
            add(scenario, &mut chosen)?;
        }
    }
    for name in given {
        if let Some(scenario) = own.iter().find(|scenario| scenario.name == *name) {
            add(scenario, &mut chosen)?;
            continue;
        }
        let path = Path::new(name);
        if !path.is_file() {
            bail!("there is neither a scenario nor a file {name:?}; there are {}", names());
        }
        let text = std::fs::read_to_string(path).with_context(|| format!("read {name}"))?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let scenario = Scenario::read(&stem, &text, short).with_context(|| format!("read {name}"))?;
        add(&scenario, &mut chosen)?;
    }
    Ok(chosen)
}

/// The text of a scenario that comes with the program.
pub(super) fn text(name: &str) -> anyhow::Result<&'static str> {
    let own = FILES.iter().find(|(own, _)| *own == name).map(|(_, text)| *text);
    own.with_context(|| format!("there is no scenario {name:?}; there are {}", names()))
}

fn names() -> String {
    FILES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// The scenarios that come with the program.
pub(super) fn own(short: bool) -> anyhow::Result<Vec<Scenario>> {
    FILES.iter().map(|(name, text)| Scenario::read(name, text, short)).collect()
}
