//! Which charts a scenario has: each shows all of its runs.

use maud::Markup;

use super::axis::Axis;
use super::chart::{Chart, Line, glyph};
use crate::bench::measured::{Run, Sample};

const MEBIBYTE: f64 = 1_048_576.0;

/// A chart over time.
struct OverTime {
    title: &'static str,
    unit: &'static str,
    by_need: bool,
    value: fn(&Sample) -> Option<f64>,
}

const OVER_TIME: [OverTime; 6] = [
    OverTime {
        title: "Throughput",
        unit: "changes a second",
        by_need: false,
        value: |sample| Some(sample.changes),
    },
    OverTime {
        title: "99th percentile over time",
        unit: "milliseconds",
        by_need: true,
        value: |sample| sample.p99,
    },
    OverTime {
        title: "Queue",
        unit: "events queued, waiting and in flight",
        by_need: false,
        value: |sample| sample.queue.map(|queue| queue as f64),
    },
    OverTime {
        title: "Resident memory",
        unit: "MiB",
        by_need: false,
        value: |sample| Some(sample.resident as f64 / MEBIBYTE),
    },
    OverTime {
        title: "Calls per change",
        unit: "calls to Argo CD",
        by_need: false,
        value: |sample| sample.calls,
    },
    OverTime { title: "Processor", unit: "cores used", by_need: false, value: |sample| Some(sample.cores) },
];

/// The charts of one scenario; `index` makes their names unique in the page.
///
/// # Errors
/// When one cannot be drawn.
pub(super) fn of(index: usize, runs: &[&Run]) -> anyhow::Result<Vec<Markup>> {
    let last =
        runs.iter().flat_map(|run| &run.curve).map(|sample| sample.seconds).filter(|at| at.is_finite());
    let time = Axis::seconds(last.fold(0.0, f64::max));
    let mut charts: Vec<Chart<'_>> = OVER_TIME
        .iter()
        .enumerate()
        .map(|(number, OverTime { title, unit, by_need, value })| Chart {
            id: format!("c{index}-{number}"),
            title,
            unit,
            x: time.clone(),
            along: "seconds since the run began",
            by_need: *by_need,
            lines: runs
                .iter()
                .map(|run| Line { name: &run.reporter, points: over_time(run, *value) })
                .collect(),
        })
        .collect();
    charts.insert(1, latencies(index, runs));
    charts.iter().map(Chart::figure).collect()
}

fn over_time(run: &Run, value: fn(&Sample) -> Option<f64>) -> Vec<Option<(f64, f64)>> {
    let mut samples: Vec<&Sample> = run.curve.iter().filter(|sample| sample.seconds.is_finite()).collect();
    samples.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
    let told = |sample: &&Sample| {
        value(sample).filter(|value| value.is_finite()).map(|value| (sample.seconds, value))
    };
    samples.iter().map(told).collect()
}

fn latencies<'a>(index: usize, runs: &[&'a Run]) -> Chart<'a> {
    let lines: Vec<Line<'a>> = runs
        .iter()
        .map(|run| {
            let told = run.latencies.iter().map(|latency| (latency.quantile, latency.milliseconds));
            let mut points: Vec<(f64, f64)> = told
                .filter(|(quantile, value)| (0.0..=1.0).contains(quantile) && value.is_finite())
                .collect();
            points.sort_by(|one, other| one.0.total_cmp(&other.0));
            Line { name: &run.reporter, points: points.into_iter().map(Some).collect() }
        })
        .collect();
    let quantiles = lines.iter().flat_map(|line| line.points.iter().flatten().map(|(quantile, _)| *quantile));
    let x = Axis::nines(quantiles, glyph());
    Chart {
        id: format!("c{index}-latencies"),
        title: "Latency",
        unit: "milliseconds, from due to acknowledged",
        x,
        along: "part of the changes that took no longer",
        by_need: true,
        lines,
    }
}
