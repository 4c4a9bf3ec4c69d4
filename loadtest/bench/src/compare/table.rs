//! The comparison as text.

use super::Compared;
use super::pairs::{Pairs, pair};
use super::verdict::{Verdict, verdict};
use crate::measured::{Figure, Run};
use crate::number::{number, with_unit};
use loadtest_judge::screen::{judged, table};

impl Compared<'_> {
    /// Whether B is nowhere worse by more than the threshold, and reported nothing wrong.
    pub(super) fn is_good(&self, threshold: f64) -> bool {
        self.worse(threshold) == 0 && self.incorrect() == 0
    }

    fn verdicts(&self, threshold: f64) -> impl Iterator<Item = Verdict> + '_ {
        let figures = self.runs.both.iter().flat_map(|(a, b)| figures(a, b).both);
        figures.map(move |(a, b)| verdict(a, b, threshold)).filter(|verdict| *verdict != Verdict::Undirected)
    }

    fn worse(&self, threshold: f64) -> usize {
        self.verdicts(threshold).filter(|verdict| *verdict == Verdict::Worse).count()
    }

    /// Runs of B that reported anything wrong, also where A has no such run.
    fn incorrect(&self) -> usize {
        let runs = self.runs.both.iter().map(|(_, b)| b).chain(&self.runs.only_b);
        runs.filter(|run| !run.correct.holds()).count()
    }

    /// A table for each run that both have, what only one has, and the verdict.
    pub(super) fn table(&self, threshold: f64) -> String {
        let mut parts = Vec::new();
        if self.cores.0 != self.cores.1 {
            let (a, b) = self.cores;
            parts
                .push(format!("A was measured on {a} cores and B on {b}: the figures compare unlike things"));
        }
        parts.extend(self.runs.both.iter().map(|(a, b)| of(a, b, threshold)));
        for (which, runs) in [("A", &self.runs.only_a), ("B", &self.runs.only_b)] {
            for run in runs {
                let (scenario, reporter) = (plain(&run.scenario), plain(&run.reporter));
                parts.push(format!("only in {which}: {scenario}, {reporter}: {}", run.correct));
            }
        }
        parts.push(self.conclusion(threshold));
        parts.join("\n\n")
    }

    fn conclusion(&self, threshold: f64) -> String {
        let (all, worse, incorrect) =
            (self.verdicts(threshold).count(), self.worse(threshold), self.incorrect());
        let percent = number(threshold * 100.0);
        let speed =
            format!("B is worse by more than {percent}% in {worse} of {all} figures that have a direction");
        let runs = self.runs.both.len() + self.runs.only_b.len();
        let wrong = format!("reported something wrong in {incorrect} of {runs} runs");
        judged(&format!("{speed}, and {wrong}"), self.is_good(threshold))
    }
}

fn figures<'a>(a: &'a Run, b: &'a Run) -> Pairs<'a, Figure> {
    pair(&a.figures, &b.figures, |figure| (figure.what.as_str(), figure.unit.as_str()))
}

fn of(a: &Run, b: &Run, threshold: f64) -> String {
    let mut text = plain(&a.scenario);
    for (which, run) in [("A", a), ("B", b)] {
        text.push_str(&format!("\n  {which}: {}", plain(&run.reporter)));
    }
    for (word, a, b) in differing(a, b) {
        text.push_str(&format!("\n  {word} differs: {a} in A, {b} in B"));
    }
    let pairs = figures(a, b);
    let mut rows = Vec::new();
    for (a, b) in &pairs.both {
        let verdict = verdict(a, b, threshold);
        let told = match verdict {
            Verdict::Better | Verdict::Worse => judged(verdict.text(), verdict == Verdict::Better),
            Verdict::Same | Verdict::Undirected => verdict.text().to_owned(),
        };
        rows.push(vec![plain(&a.what), figure(a), figure(b), ratio(a.value, b.value), told]);
    }
    let none = || "-".to_owned();
    for a in &pairs.only_a {
        rows.push(vec![plain(&a.what), figure(a), none(), String::new(), "only in A".to_owned()]);
    }
    for b in &pairs.only_b {
        rows.push(vec![plain(&b.what), none(), figure(b), String::new(), "only in B".to_owned()]);
    }
    let right = if b.correct.holds() { String::new() } else { judged("incorrect", false) };
    rows.push(vec!["reports".to_owned(), a.correct.to_string(), b.correct.to_string(), String::new(), right]);
    format!("{text}\n{}", table(1, &["", "A", "B", "B / A", ""], &rows))
}

fn figure(figure: &Figure) -> String {
    with_unit(figure.value, &plain(&figure.unit))
}

fn ratio(a: f64, b: f64) -> String {
    let times = b / a;
    if times.is_finite() { format!("{} x", number(times)) } else { String::new() }
}

/// Conditions that are not alike, with what each said.
fn differing(a: &Run, b: &Run) -> Vec<(String, String, String)> {
    let mut words: Vec<&String> = a.conditions.keys().chain(b.conditions.keys()).collect();
    words.sort();
    words.dedup();
    let said = |run: &Run, word: &String| {
        run.conditions.get(word).map_or_else(|| "not told".to_owned(), |said| plain(said))
    };
    words
        .into_iter()
        .filter(|word| a.conditions.get(*word) != b.conditions.get(*word))
        .map(|word| (plain(word), said(a, word), said(b, word)))
        .collect()
}

/// A text from a file without what steers a terminal.
fn plain(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect()
}
