//! `loadtest compare A B`: two files of results side by side.
//!
//! takes: two files that `loadtest bench --json` wrote - gives: for each scenario and figure both values, their ratio,
//! and whether the second is better or worse; one page with both, if asked for
//! fails: exit code 1 when the second is worse in a figure that has a direction, or reported anything wrong

mod pairs;
mod read;
mod table;
#[cfg(test)]
mod tests;
mod verdict;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, ensure};

use super::measured::{Beside, Results, Run};
use super::page;
use loadtest_judge::screen::say;
use pairs::{Pairs, pair};

const EXAMPLES: &str = "\
Examples:
  What a change did, measured before and after it on the same machine:
    loadtest bench --json before.json
    loadtest bench --json after.json
    loadtest compare before.json after.json
  Only what differs by more than a tenth counts, and a page with the charts of both:
    loadtest compare before.json after.json --threshold 10% --html compared.html

A figure has a direction where it has a bound: what must be at least so much is better when it is more.
Exit codes: 0, or 1 when B is worse by more than the threshold in any such figure or reported anything wrong,
or when a file cannot be read.";

/// Arguments of `loadtest compare`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The results that are compared with
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// The results that are judged
    #[arg(value_name = "B")]
    pub b: PathBuf,
    /// Differences up to this are noise
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = threshold)]
    pub threshold: f64,
    /// Write one self-contained HTML page with the tables and charts of both
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// A part of the whole: `5%` is 0.05.
fn threshold(text: &str) -> Result<f64, String> {
    let read = text.strip_suffix('%').and_then(|number| number.parse::<f64>().ok());
    read.filter(|percent| (0.0..=100.0).contains(percent))
        .map(|percent| percent / 100.0)
        .ok_or_else(|| "a threshold is written as 5% or 2.5%, from 0% to 100%".to_owned())
}

/// Runs `loadtest compare`.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (a, b) = (read::results(&args.a)?, read::results(&args.b)?);
    let compared = compare(&a, &b)?;
    say(&compared.table(args.threshold));
    if let Some(file) = &args.html {
        let page = compared.page(&a, &b)?;
        std::fs::write(file, page).with_context(|| format!("write the page to {}", file.display()))?;
    }
    Ok(if compared.is_good(args.threshold) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Two files of results, run beside run.
#[derive(Debug)]
struct Compared<'a> {
    runs: Pairs<'a, Run>,
    cores: (u32, u32),
}

fn compare<'a>(a: &'a Results, b: &'a Results) -> anyhow::Result<Compared<'a>> {
    let scenario = |run: &'a Run| run.scenario.as_str();
    // Versions and command lines differ from file to file: who has no namesake stands beside who is left.
    let namesakes = pair(&a.runs, &b.runs, |run| (scenario(run), run.reporter.as_str()));
    let others = pair(namesakes.only_a, namesakes.only_b, scenario);
    let mut runs = Pairs { both: namesakes.both.into_iter().chain(others.both).collect(), ..others };
    let place = |run: &Run| a.runs.iter().position(|own| std::ptr::eq(own, run));
    runs.both.sort_by_key(|(a, _)| place(a));
    ensure!(!runs.both.is_empty(), "compare the two: no scenario is in both");
    Ok(Compared { runs, cores: (a.cores, b.cores) })
}

impl Compared<'_> {
    /// One page with the runs of both; each figure of B stands beside that of A.
    fn page(&self, a: &Results, b: &Results) -> anyhow::Result<String> {
        let facts = [("A", a), ("B", b)].map(|(which, results)| {
            let said = format!("measured {}, {} processor cores", page::time(results), results.cores);
            (which.to_owned(), said)
        });
        let named =
            |which: &str, run: &Run| Run { reporter: format!("{which}: {}", run.reporter), ..run.clone() };
        let mut runs = Vec::new();
        for (a, b) in &self.runs.both {
            runs.push(named("A", a));
            let mut later = named("B", b);
            let figures = pair(&a.figures, &b.figures, |figure| (figure.what.as_str(), figure.unit.as_str()));
            for (before, after) in figures.both {
                let at = b.figures.iter().position(|figure| std::ptr::eq(figure, after));
                if let Some(figure) = at.and_then(|at| later.figures.get_mut(at)) {
                    figure.beside = Some(Beside { whose: "A".to_owned(), value: before.value });
                }
            }
            runs.push(later);
        }
        runs.extend(self.runs.only_a.iter().map(|run| named("A", run)));
        runs.extend(self.runs.only_b.iter().map(|run| named("B", run)));
        page::draw(&page::Head { title: "Comparison".to_owned(), facts: facts.into() }, &runs)
    }
}
