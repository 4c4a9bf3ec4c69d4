//! The table of what was measured: a row each, with what it must be.

use std::time::Duration;

use crate::times::{Times, mib, millis};
use loadtest_judge::screen::{judged, say, table};

/// What was measured.
pub(super) struct Measure {
    what: String,
    figure: String,
    bar: String,
    /// Whether it is what it must be; `None`: there is nothing that it must be.
    is_held: Option<bool>,
    /// A neighbour on the machine changes it: it is judged in the long form alone.
    is_speed: bool,
}

impl Measure {
    /// How long something took.
    pub(super) fn time(what: impl Into<String>, took: Duration, bar: Duration) -> Self {
        Self {
            what: what.into(),
            figure: millis(took),
            bar: format!("{} ms", bar.as_millis()),
            is_held: Some(took <= bar),
            is_speed: true,
        }
    }

    /// Within which time nineteen of twenty were done.
    pub(super) fn p95(what: &str, times: &Times, bar: Duration) -> Self {
        let what = format!("{what}, p95 of {}", times.count());
        Self::time(what, times.quantile(0.95), bar)
    }

    /// A number that is the same on every machine.
    pub(super) fn number(what: impl Into<String>, number: u64, bar: u64, unit: &str) -> Self {
        let told = |number: u64| format!("{number} {unit}").trim_end().to_owned();
        Self {
            what: what.into(),
            figure: told(number),
            bar: told(bar),
            is_held: Some(number <= bar),
            is_speed: false,
        }
    }

    /// A ratio of two times.
    pub(super) fn ratio(what: impl Into<String>, ratio: f64, bar: f64) -> Self {
        let is_held = Some(ratio <= bar);
        Self {
            what: what.into(),
            figure: format!("{ratio:.2} x"),
            bar: format!("{bar:.2} x"),
            is_held,
            is_speed: true,
        }
    }

    /// A figure that is so much or more.
    pub(super) fn at_least(what: impl Into<String>, figure: f64, least: f64) -> Self {
        let (bar, is_held) = (format!("{least:.0} or more"), Some(figure >= least));
        Self { what: what.into(), figure: format!("{figure:.0}"), bar, is_held, is_speed: true }
    }

    /// Bytes of memory; where they depend on the build or on the machine, they are judged in the long form alone.
    pub(super) fn memory(what: impl Into<String>, bytes: u64, bar: u64) -> Self {
        let is_held = Some(bytes <= bar);
        Self { what: what.into(), figure: mib(bytes), bar: mib(bar), is_held, is_speed: true }
    }

    /// What must be as it is said.
    pub(super) fn exactly(what: impl Into<String>, number: u64, bar: u64) -> Self {
        Self { is_held: Some(number == bar), ..Self::number(what, number, bar, "") }
    }

    /// What stands beside the others, and has no bar.
    pub(super) fn beside(what: impl Into<String>, figure: String) -> Self {
        Self { what: what.into(), figure, bar: String::new(), is_held: None, is_speed: false }
    }

    /// The same, as one that depends on how long it was looked at: it is judged in the long form alone.
    pub(super) fn of_a_while(self) -> Self {
        Self { is_speed: true, ..self }
    }

    /// Whether it fails the command.
    pub(super) fn is_missed(&self, is_short: bool) -> bool {
        self.is_held == Some(false) && !(is_short && self.is_speed)
    }

    /// As a row: what it is, the verdict, the figure and what it must be.
    pub(super) fn row(&self, is_short: bool) -> [String; 4] {
        let verdict = match self.is_held {
            None => String::new(),
            Some(_) if is_short && self.is_speed => "not judged".to_owned(),
            Some(true) => judged("held", true),
            Some(false) => judged("missed", false),
        };
        [self.what.clone(), verdict, self.figure.clone(), self.bar.clone()]
    }
}

/// The measures of a run. Each is told as soon as it is there, as a run is long and one that fails was not for nothing; at the
/// end all of them stand in one table.
pub(super) struct Measures {
    name: &'static str,
    all: Vec<Measure>,
    is_short: bool,
}

impl Measures {
    /// None yet, of a bench of this name.
    pub(super) fn new(name: &'static str, is_short: bool) -> Self {
        Self { name, all: Vec::new(), is_short }
    }

    /// Takes some more, and tells them.
    pub(super) fn add(&mut self, more: impl IntoIterator<Item = Measure>) {
        for measure in more {
            let [what, verdict, figure, bar] = measure.row(self.is_short);
            let bar = if bar.is_empty() { bar } else { format!(" of {bar}: {verdict}") };
            say(&format!("  {what}: {figure}{bar}"));
            self.all.push(measure);
        }
    }

    /// Tells all of them again; whether none was missed.
    pub(super) fn judge(&self) -> bool {
        let rows: Vec<Vec<String>> =
            self.all.iter().map(|measure| measure.row(self.is_short).into()).collect();
        say(&table(2, &[self.name, "", "figure", "bar"], &rows));
        let missed = self.all.iter().filter(|measure| measure.is_missed(self.is_short)).count();
        let said = format!("{}: {} measures, {missed} missed", self.name, self.all.len());
        say(&judged(&said, missed == 0));
        missed == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_is_judged_in_the_long_form_alone_and_a_number_in_both() {
        let slow = Measure::time("a page", Duration::from_millis(101), Duration::from_millis(100));
        assert_eq!((slow.is_missed(true), slow.is_missed(false)), (false, true));
        assert_eq!(slow.row(true), ["a page", "not judged", "101.0 ms", "100 ms"]);
        let large = Measure::number("bytes of a page", 3, 2, "B");
        assert_eq!((large.is_missed(true), large.is_missed(false)), (true, true));
        assert_eq!(large.row(true)[2..], ["3 B", "2 B"]);
        let within = Measure::ratio("a narrow user", 1.0, 1.1);
        assert!(!within.is_missed(false) && !Measure::beside("rows", "7".to_owned()).is_missed(false));
    }
}
