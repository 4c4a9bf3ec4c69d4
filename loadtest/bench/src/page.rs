//! The results as one HTML page that needs no network and no script: a table of figures, and charts as inline SVG.
//!
//! takes: what was measured - gives: the page's text - fails: when a chart cannot be drawn
//!
//! All names come from files that others write: everything goes through the template library, which escapes it,
//! and the page forbids itself whatever it does not bring along.

#[cfg(test)]
mod tests;

use anyhow::Context as _;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use plotters::prelude::*;

use crate::measured::{Bound, Figure, Results, Run, Sample};
use crate::number::{number, with_unit};

const STYLE: &str = include_str!("page.css");
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";
const MEBIBYTE: f64 = 1_048_576.0;
/// A chart's units; it is shown as large as there is room.
const SIZE: (u32, u32) = (800, 420);
/// Larger values are no measurements, and no axis holds them.
const MOST: f64 = 1e12;
/// One for each line of a chart; further reporters stand in the table alone.
const COLOURS: [RGBColor; 4] = [
    RGBColor(0x0B, 0x5C, 0xAD),
    RGBColor(0xB8, 0x46, 0x00),
    RGBColor(0x00, 0x73, 0x5A),
    RGBColor(0x8A, 0x2D, 0x8F),
];

/// What stands above the runs.
#[derive(Debug)]
pub(super) struct Head {
    /// Title and first heading.
    pub(super) title: String,
    /// Words and what they say, e.g. `measured` and a time.
    pub(super) facts: Vec<(String, String)>,
}

/// The page of one command's results.
pub(crate) fn html(results: &Results) -> anyhow::Result<String> {
    let facts = [
        ("measured", time(results)),
        ("processor cores, shared by reporter, simulators and driver", results.cores.to_string()),
    ];
    let facts = facts.map(|(word, said)| (word.to_owned(), said)).into();
    draw(&Head { title: "Benchmark".to_owned(), facts }, &results.runs)
}

/// When the first run began, to the minute.
pub(super) fn time(results: &Results) -> String {
    results.when.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

/// The page of any runs.
pub(super) fn draw(head: &Head, runs: &[Run]) -> anyhow::Result<String> {
    let mut scenarios: Vec<(&str, Vec<&Run>)> = Vec::new();
    for run in runs {
        match scenarios.iter_mut().find(|(name, _)| *name == run.scenario) {
            Some((_, runs)) => runs.push(run),
            None => scenarios.push((&run.scenario, vec![run])),
        }
    }
    let sections: Vec<Markup> =
        scenarios.iter().map(|(name, runs)| section(name, runs)).collect::<anyhow::Result<_>>()?;
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                title { (head.title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { (head.title) }
                (terms(head.facts.iter().map(|(word, said)| (word, said))))
                @if runs.is_empty() {
                    p.untold { "No run was measured." }
                } @else {
                    (figures(runs))
                }
                @for section in &sections { (section) }
            }
        }
    };
    Ok(page.into_string())
}

/// Every figure of every run; whether the reports were right stands beside each.
fn figures(runs: &[Run]) -> Markup {
    html! {
        div.scroll {
            table {
                thead {
                    tr {
                        @for word in ["Figure", "Measured", "Beside", "Ratio", "Must be", "Reports"] { th { (word) } }
                    }
                }
                @for run in runs {
                    tbody {
                        tr { th colspan="6" { (run.scenario) " " small { (run.reporter) } } }
                        @for figure in &run.figures {
                            tr {
                                td { (figure.what) }
                                td { strong { (with_unit(figure.value, &figure.unit)) } }
                                td {
                                    @if let Some(beside) = &figure.beside {
                                        (with_unit(beside.value, &figure.unit)) " " small { (beside.whose) }
                                    }
                                }
                                td { (ratio(figure)) }
                                td { @if let Some(bound) = figure.bound { (must(bound, figure)) } }
                                td { span class=(judged(run.correct.holds())) { (run.correct) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// How many times better or worse than what it stands beside; a plain quotient where nobody said what is better.
fn ratio(figure: &Figure) -> String {
    let Some(beside) = &figure.beside else { return String::new() };
    let times = figure.value / beside.value;
    if !times.is_finite() || times <= 0.0 {
        return String::new();
    }
    let gain = match figure.bound {
        None => return format!("{} \u{d7}", number(times)),
        Some(Bound::AtLeast(_)) => times,
        Some(Bound::AtMost(_)) => times.recip(),
    };
    if number(gain) == "1" {
        "same".to_owned()
    } else if gain > 1.0 {
        format!("{} \u{d7} better", number(gain))
    } else {
        format!("{} \u{d7} worse", number(gain.recip()))
    }
}

fn must(bound: Bound, figure: &Figure) -> Markup {
    let (word, limit) = match bound {
        Bound::AtLeast(least) => ("at least", least),
        Bound::AtMost(most) => ("at most", most),
    };
    let kept = bound.holds(figure.value);
    html! {
        (word) " " (with_unit(limit, &figure.unit)) " "
        span class=(judged(kept)) { @if kept { "kept" } @else { "missed" } }
    }
}

fn judged(good: bool) -> &'static str {
    if good { "good" } else { "bad" }
}

/// One scenario: what it is about, the conditions of each run, and the charts of all.
fn section(name: &str, runs: &[&Run]) -> anyhow::Result<Markup> {
    let charts: Vec<Markup> = charts(runs).iter().map(Chart::figure).collect::<anyhow::Result<_>>()?;
    let is_common =
        |(word, said): &(&String, &String)| runs.iter().all(|run| run.conditions.get(*word) == Some(*said));
    Ok(html! {
        h2 { (name) }
        @if let Some(run) = runs.first() {
            p { (run.about) }
            (terms(run.conditions.iter().filter(is_common)))
        }
        ol {
            @for (at, run) in runs.iter().enumerate() {
                li {
                    @if let Some(colour) = COLOURS.get(at) { span style={ "color:" (hex(*colour)) } { "\u{25a0} " } }
                    (run.reporter)
                    (terms(run.conditions.iter().filter(|condition| !is_common(condition))))
                }
            }
        }
        div.charts { @for chart in &charts { (chart) } }
    })
}

/// Words and what they say, as a list.
fn terms<'a>(pairs: impl Iterator<Item = (&'a String, &'a String)>) -> Markup {
    html! { dl { @for (word, said) in pairs { div { dt { (word) } dd { (said) } } } } }
}

fn hex(RGBColor(red, green, blue): RGBColor) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}

/// Lines over an axis.
struct Chart {
    title: &'static str,
    /// The unit of the values, in words.
    unit: &'static str,
    /// What the values are told of, e.g. `seconds since the run began`.
    along: &'static str,
    mark: fn(f64) -> String,
    /// A line for each reporter.
    lines: Vec<Vec<(f64, f64)>>,
}

type Value = fn(&Sample) -> Option<f64>;

/// The charts of one scenario: each shows all of its runs.
fn charts(runs: &[&Run]) -> Vec<Chart> {
    let over_time: [(&str, &str, Value); 5] = [
        ("Throughput", "changes a second", |sample| Some(sample.changes)),
        ("99th percentile over time", "milliseconds", |sample| sample.p99),
        ("Queue", "events queued, waiting and in flight", |sample| sample.queue.map(|queue| queue as f64)),
        ("Resident memory", "MiB", |sample| Some(sample.resident as f64 / MEBIBYTE)),
        ("Calls per change", "calls to Argo CD", |sample| sample.calls),
    ];
    let mut charts: Vec<Chart> = over_time
        .into_iter()
        .map(|(title, unit, value)| Chart {
            title,
            unit,
            along: "seconds since the run began",
            mark: number,
            lines: lines(runs, |run| {
                run.curve.iter().filter_map(|sample| Some((sample.seconds, value(sample)?))).collect()
            }),
        })
        .collect();
    charts.push(Chart {
        title: "Latency",
        unit: "milliseconds, from due to acknowledged",
        along: "part of the changes that took no longer",
        mark: |nines| format!("{}%", number(100.0 * (1.0 - 10_f64.powf(-nines)))),
        // Each nine of a quantile takes the same room; the maximum would stand beyond the last.
        lines: lines(runs, |run| {
            let below = run.latencies.iter().filter(|latency| latency.quantile < 1.0);
            below.map(|latency| ((1.0 - latency.quantile).recip().log10(), latency.milliseconds)).collect()
        }),
    });
    charts
}

fn lines(runs: &[&Run], points: impl Fn(&Run) -> Vec<(f64, f64)>) -> Vec<Vec<(f64, f64)>> {
    let line = |run: &&Run| {
        let mut line = points(run);
        // What is no number, for one.
        line.retain(|(x, y)| [x, y].iter().all(|value| (0.0..=MOST).contains(*value)));
        line.sort_by(|one, other| one.0.total_cmp(&other.0));
        line
    };
    runs.iter().take(COLOURS.len()).map(line).collect()
}

impl Chart {
    /// The chart, or a note where nobody told anything.
    fn figure(&self) -> anyhow::Result<Markup> {
        let drawn = if self.lines.iter().all(Vec::is_empty) {
            html! { p.untold { "Not told: there is nothing to draw." } }
        } else {
            PreEscaped(
                self.draw().with_context(|| format!("draw the chart of {}", self.title.to_lowercase()))?,
            )
        };
        Ok(html! { figure { figcaption { (self.title) " " small { (self.unit) } } (drawn) } })
    }

    fn draw(&self) -> anyhow::Result<String> {
        let most = |of: fn(&(f64, f64)) -> f64| {
            self.lines.iter().flatten().map(of).fold(0.0, f64::max).max(1e-3) * 1.02
        };
        let mut text = String::new();
        {
            let area = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
            let mut chart = ChartBuilder::on(&area)
                .margin(12)
                .set_label_area_size(LabelAreaPosition::Left, 110)
                .set_label_area_size(LabelAreaPosition::Bottom, 60)
                .build_cartesian_2d(0.0..most(|point| point.0), 0.0..most(|point| point.1))?;
            chart
                .configure_mesh()
                .light_line_style(TRANSPARENT)
                .label_style(("sans-serif", 20).into_font())
                .x_desc(self.along)
                .x_label_formatter(&|x| (self.mark)(*x))
                .y_label_formatter(&|y| number(*y))
                .draw()?;
            for (line, colour) in self.lines.iter().zip(COLOURS).filter(|(line, _)| !line.is_empty()) {
                chart.draw_series([PathElement::new(line.clone(), colour.stroke_width(3))])?;
            }
            area.present()?;
        }
        Ok(text)
    }
}
