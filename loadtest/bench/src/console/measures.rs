//! All that was measured, in its order.

use super::measure::Measure;
use loadtest_judge::screen::{say, table};

/// The measures of a run. Each is told as soon as it is there, as a run is long and one that fails was not for nothing; at the
/// end all of them stand in one table.
pub(super) struct Measures {
    all: Vec<Measure>,
    is_short: bool,
}

impl Measures {
    /// None yet.
    pub(super) fn new(is_short: bool) -> Self {
        Self { all: Vec::new(), is_short }
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
        say(&table(2, &["console", "", "figure", "bar"], &rows));
        let missed = self.all.iter().filter(|measure| measure.is_missed(self.is_short)).count();
        say(&format!("console: {} measures, {missed} missed", self.all.len()));
        missed == 0
    }
}
