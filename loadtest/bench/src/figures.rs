//! What was measured, as figures: each beside what it is measured against, and judged.

use std::collections::BTreeMap;

use loadtest_judge::median;

use super::limit::Limit;
use super::measured::{Beside, Bound, Correct, Figure, Latency, Run};
use super::play::Played;
use super::scenario::{Measure, Rate, Scenario, Wanted};
use super::subject;
use super::windows::Window;

/// Quantiles that are told.
const QUANTILES: [f64; 12] = [0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 0.9999, 1.0];
const MIB: f64 = 1_048_576.0;

/// One scenario, judged.
#[derive(Debug)]
pub(super) struct Outcome {
    /// What was measured.
    pub(super) run: Run,
    /// The scenario itself.
    pub(super) scenario: Scenario,
    /// Which of the run's figures the scenario is about, in its own order: the places in `run.figures`.
    pub(super) shown: Vec<usize>,
    /// Figures that the scenario is about and that could not be measured.
    pub(super) missing: Vec<String>,
    /// Events that were not accounted for, the first few.
    pub(super) violations: Vec<String>,
    values: BTreeMap<Measure, f64>,
}

impl Outcome {
    /// Makes figures of what was seen.
    pub(super) fn new(scenario: &Scenario, played: Played) -> Self {
        let (values, beside) = values(&played);
        let mut outcome = Self {
            run: Run {
                scenario: scenario.name.clone(),
                about: scenario.about.clone(),
                reporter: subject::name(),
                conditions: conditions(scenario),
                figures: Vec::new(),
                correct: played.correct,
                latencies: timed(&played.windows).map(latencies).unwrap_or_default(),
            },
            scenario: scenario.clone(),
            shown: Vec::new(),
            missing: Vec::new(),
            violations: played.seen.violations,
            values,
        };
        for (measure, value) in outcome.values.clone() {
            let wanted = scenario.figures.iter().find(|wanted| wanted.what == measure);
            let incumbent = wanted.and_then(|wanted| wanted.incumbent);
            let incumbent = incumbent.map(|value| Beside { whose: "incumbent, measured".to_owned(), value });
            outcome.run.figures.push(Figure {
                what: measure.label().to_owned(),
                unit: measure.unit().to_owned(),
                value,
                beside: beside.get(&measure).cloned().or(incumbent),
                bound: wanted.and_then(|wanted| outcome.bound(wanted)),
            });
        }
        for wanted in &scenario.figures {
            let label = wanted.what.label();
            match outcome.run.figures.iter().position(|figure| figure.what == label) {
                Some(at) => outcome.shown.push(at),
                None => outcome.missing.push(label.to_owned()),
            }
        }
        outcome
    }

    /// What the figure must be; a speed is not judged in the short form.
    fn bound(&self, wanted: &Wanted) -> Option<Bound> {
        let bound = wanted.at_least.map(Bound::AtLeast).or(wanted.at_most.map(Bound::AtMost));
        bound.filter(|_| self.has_bound(wanted.what))
    }

    fn has_bound(&self, measure: Measure) -> bool {
        !(self.scenario.is_short && measure.is_speed())
    }

    /// Adds the figures that stand beside those of other scenarios.
    pub(super) fn compare(&mut self, others: &[Outcome]) {
        for wanted in self.scenario.figures.clone() {
            let (Some(within), Some(of)) = (wanted.within, &wanted.of) else { continue };
            let what = format!("{}, over that of {of}", wanted.what.label());
            let other = others.iter().find(|other| other.run.scenario == *of);
            let other = other.and_then(|other| other.values.get(&wanted.what));
            let own = self.values.get(&wanted.what);
            match own.zip(other).filter(|(_, other)| **other > 0.0) {
                Some((own, other)) => {
                    let bound = Some(Bound::AtMost(within)).filter(|_| self.has_bound(wanted.what));
                    let beside = Some(Beside { whose: of.clone(), value: *other });
                    let label = wanted.what.label();
                    if let Some(figure) = self.run.figures.iter_mut().find(|figure| figure.what == label) {
                        figure.beside = beside;
                    }
                    let value = own / other;
                    let figure = Figure { what, unit: "x".to_owned(), value, beside: None, bound };
                    self.shown.push(self.run.figures.len());
                    self.run.figures.push(figure);
                }
                None => self.missing.push(what),
            }
        }
    }

    /// What fails it, a line each.
    pub(super) fn failures(&self) -> Vec<String> {
        let mut failures = Vec::new();
        let Correct { lost, duplicated, out_of_order, wrong } = self.run.correct;
        if !self.run.correct.holds() {
            failures.push(format!(
                "{lost} lost, {duplicated} duplicated, {out_of_order} out of order, {wrong} wrong at the end"
            ));
        }
        failures.extend(self.missing.iter().map(|what| format!("{what}: not measured")));
        for figure in &self.run.figures {
            if let Some(bound) = figure.bound.filter(|bound| !bound.holds(figure.value)) {
                let must = match bound {
                    Bound::AtLeast(least) => format!("must be {least} or more"),
                    Bound::AtMost(most) => format!("must be {most} or less"),
                };
                failures.push(format!("{}: {:.3} {must}", figure.what, figure.value));
            }
        }
        failures
    }
}

/// The window whose latencies are told.
fn timed(windows: &[Window]) -> Option<&Window> {
    let timed = |window: &&Window| !window.hot && window.latencies.count() > 0;
    let open = windows.iter().rev().filter(|window| window.rate.is_some()).find(timed);
    open.or_else(|| windows.iter().rev().find(timed))
}

fn latencies(window: &Window) -> Vec<Latency> {
    let told = |quantile| Some(Latency { quantile, milliseconds: window.milliseconds(quantile)? });
    QUANTILES.into_iter().filter_map(told).collect()
}

fn per(what: u64, each: u64) -> Option<f64> {
    (each > 0).then(|| what as f64 / each as f64)
}

type Values = BTreeMap<Measure, f64>;
type Besides = BTreeMap<Measure, Beside>;

/// Every figure that there is, and what some of them stand beside in the same run.
fn values(played: &Played) -> (Values, Besides) {
    let mut found: Vec<(Measure, Option<f64>)> = Vec::new();
    let mut besides = Besides::new();
    let cold = &played.cold;
    let applications = u64::from(cold.applications);
    found.extend([
        (Measure::Reported, Some(f64::from(cold.reported))),
        (Measure::Lost, Some(f64::from(cold.applications - cold.reported.min(cold.applications)))),
    ]);
    if cold.reported > 0 {
        found.extend([
            (Measure::FirstReports, Some(f64::from(cold.reported) / cold.took.as_secs_f64().max(0.001))),
            (Measure::CallsPerFirstReport, per(cold.calls, applications)),
            (Measure::ReadsPerFirstReport, per(cold.reads, applications)),
            (Measure::ReportsPerFirstReport, per(cold.reports, applications)),
            (Measure::CpuPerFirstReport, Some(cold.usage.cpu * 1e3 / applications as f64)),
        ]);
    }
    let plain = || played.windows.iter().rev().filter(|window| !window.hot && window.work.known > 0);
    let open = || plain().find(|window| window.rate.is_some());
    if let Some(fast) = plain().find(|window| window.rate.is_none()).or_else(open) {
        let work = &fast.work;
        // Whoever asks again for a commit that is not new asks for the sake of the change.
        let calls = work.calls + work.commit_calls.saturating_sub(work.commits);
        found.extend([
            (Measure::Changes, Some(fast.per_second())),
            (Measure::CallsPerChange, per(calls, work.known)),
            (Measure::CallsPerCommit, per(work.commit_calls, work.commits)),
            (Measure::ReadsPerChange, per(work.reads, work.known)),
            (Measure::ReportsPerChange, per(work.reports, work.known)),
        ]);
    }
    if let Some(calm) = open().or_else(|| plain().next()).filter(|window| window.known() > 0) {
        let each = |seconds: f64| Some(seconds * 1e3 / calm.known() as f64);
        found.extend([
            (Measure::CpuPerChange, each(calm.cpu)),
            (Measure::SimulatorCpuPerChange, each(calm.own_cpu)),
        ]);
        if let Some(Limit::Change(limit)) = played.limit {
            let ratio = calm.cpu / calm.known() as f64 / limit;
            found.push((Measure::CpuPerChangeRatio, Some(ratio)));
            let whose = "parsing and compressing the bytes alone".to_owned();
            besides.insert(Measure::CpuPerChange, Beside { whose, value: limit * 1e3 });
        }
    }
    if let Some(window) = timed(&played.windows) {
        found.extend([(Measure::P50, window.milliseconds(0.5)), (Measure::P99, window.milliseconds(0.99))]);
    }
    let coalesced = played.windows.iter().map(|window| window.coalesced).sum::<u64>();
    if played.windows.iter().any(|window| window.work.known > 0) {
        found.push((Measure::Coalesced, Some(coalesced as f64)));
    }
    if let Some((without, with, ratio)) = hot(&played.windows) {
        found.extend([(Measure::P99BesideHot, Some(with)), (Measure::P99BesideHotRatio, Some(ratio))]);
        besides.insert(Measure::P99BesideHot, Beside { whose: "without it".to_owned(), value: without });
    }
    if let (Some(Limit::Event(parsing)), Some(window)) = (played.limit, played.windows.last()) {
        let event = per(1, window.empty).map(|share| window.cpu * share);
        found.extend([
            (Measure::CpuFiltered, event.map(|seconds| seconds * 1e6)),
            (Measure::CpuFilteredRatio, event.map(|seconds| seconds / parsing)),
            (Measure::CallsFiltered, per(window.work.calls * 1_000, window.work.empty)),
            (Measure::ReadsFiltered, per(window.work.reads * 1_000, window.work.empty)),
        ]);
        let value = parsing * 1e6;
        besides.insert(Measure::CpuFiltered, Beside { whose: "parsing the JSON alone".to_owned(), value });
    }
    found.push((Measure::Unseen, played.unseen.map(|unseen| unseen as f64)));
    let peak = played.usage.peak.max(played.seen.peak);
    found.push((Measure::Resident, Some(peak as f64 / MIB)));
    found.push((Measure::Series, Some(played.series as f64)));
    if played.seen.looks > 0 {
        found.extend([
            (Measure::Unaccounted, Some(played.seen.unaccounted as f64)),
            (Measure::Queued, Some(played.seen.queued as f64)),
            (Measure::Overflowed, Some(played.seen.overflowed as f64)),
        ]);
    }
    let found = found.into_iter().filter_map(|(measure, value)| Some((measure, value?)));
    (found.filter(|(_, value)| value.is_finite()).collect(), besides)
}

/// Medians of the pairs: p99 without a hot application, with it, and of their ratios.
fn hot(windows: &[Window]) -> Option<(f64, f64, f64)> {
    let mut pairs = Vec::new();
    for pair in windows.windows(2) {
        let [without, with] = pair else { continue };
        if !without.hot && with.hot {
            pairs.push((without.milliseconds(0.99)?, with.milliseconds(0.99)?));
        }
    }
    let of = |which: fn(&(f64, f64)) -> f64| median(pairs.iter().map(which).collect());
    Some((of(|pair| pair.0)?, of(|pair| pair.1)?, of(|pair| pair.1 / pair.0)?))
}

/// The setting, as words.
fn conditions(scenario: &Scenario) -> BTreeMap<String, String> {
    let mut conditions = BTreeMap::new();
    let mut add = |name: &str, value: String| conditions.insert(name.to_owned(), value);
    add("applications", scenario.applications.to_string());
    add("resources each", scenario.resources.to_string());
    add("line of Argo CD", format!("{:?}", scenario.line).to_lowercase());
    add("processes", scenario.replicas.to_string());
    add("seed", scenario.seed.to_string());
    add("form", if scenario.is_short { "short" } else { "full" }.to_owned());
    add("argocd answers after", format!("{:?}", scenario.peers.argocd.latency.0));
    add("platform answers after", format!("{:?}", scenario.peers.platform.latency.0));
    if !scenario.settings.is_empty() {
        add("settings", serde_json::Value::Object(scenario.settings.clone()).to_string());
    }
    let windows = scenario.changes.iter().map(|changes| {
        let how = match changes.rate {
            Rate::Max => format!("closed loop, {} under way", changes.outstanding),
            Rate::Half => "open loop at half of that".to_owned(),
            Rate::PerSecond(rate) => format!("open loop, {rate} a second"),
        };
        let hot =
            changes.hot.map_or_else(String::new, |hot| format!(", one application {hot} a second more"));
        let pairs =
            changes.pairs.map_or_else(String::new, |pairs| format!(", {pairs} pairs without and with it"));
        format!("{how}{hot}{pairs}, {} s", changes.seconds)
    });
    add("changes", windows.collect::<Vec<_>>().join("; "));
    conditions
}
