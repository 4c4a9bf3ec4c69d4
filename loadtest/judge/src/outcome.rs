//! What one thing that was broken came to, and how that is printed.

use std::time::Duration;

use loadtest_sim::platform::PlatformSim;

use crate::screen::{judged, table};
use crate::truth::Missing;
use crate::witness::Witness;

/// What one fault, or one event, came to.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Its name.
    pub name: &'static str,
    /// What was broken, in a few words.
    pub broken: String,
    /// Changes that were made in the cluster meanwhile.
    pub changes: u64,
    /// Applications, resources, deletions and operation ends that the platform does not know in the end.
    pub lost: u64,
    /// Reports that the platform had been given before.
    pub duplicated: u64,
    /// Of those, the ones that had been acknowledged and written down, or came under another key.
    pub beyond: u64,
    /// Reports of an older state after a newer one of the same entity.
    pub out_of_order: u64,
    /// The most memory the binary had resident, in bytes.
    pub peak: u64,
    /// Until the platform knew everything.
    pub drain: Option<Duration>,
    /// Further columns of its table: a header and what stands below it.
    pub more: Vec<(&'static str, String)>,
    /// What else is demanded and was not met.
    pub wrong: Vec<String>,
    /// What is worth knowing.
    pub notes: Vec<String>,
}

/// What the platform and the witness counted from the start on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    /// Reports that the platform took, and repetitions.
    pub reports: u64,
    /// Reports that it had been given before.
    pub duplicated: u64,
    /// Of those, the ones that nothing excuses.
    pub beyond: u64,
    /// Reports of an older state after a newer one.
    pub out_of_order: u64,
    /// Reports that were refused, because another owner was newer.
    pub stale_refused: u64,
    /// Reports that were taken although another owner was newer.
    pub stale_accepted: u64,
    /// Reports that named no epoch.
    pub unfenced: u64,
    /// Reports without a key, and requests that were none.
    pub unreadable: u64,
}

impl Counts {
    /// As of now.
    #[must_use]
    pub fn of(witness: &Witness, platform: &PlatformSim) -> Self {
        let totals = platform.totals();
        let seen = witness.lock();
        Self {
            reports: totals.taken + totals.duplicates,
            duplicated: seen.duplicates,
            beyond: seen.beyond,
            out_of_order: seen.out_of_order,
            stale_refused: totals.stale_refused,
            stale_accepted: seen.epochs.outdated,
            unfenced: seen.epochs.without,
            unreadable: totals.without_key + totals.malformed,
        }
    }

    /// What came since.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            reports: self.reports - before.reports,
            duplicated: self.duplicated - before.duplicated,
            beyond: self.beyond - before.beyond,
            out_of_order: self.out_of_order - before.out_of_order,
            stale_refused: self.stale_refused - before.stale_refused,
            stale_accepted: self.stale_accepted - before.stale_accepted,
            unfenced: self.unfenced - before.unfenced,
            unreadable: self.unreadable - before.unreadable,
        }
    }
}

impl Outcome {
    /// Of what is called so.
    #[must_use]
    pub fn new(name: &'static str, broken: impl Into<String>) -> Self {
        Self { name, broken: broken.into(), ..Self::default() }
    }

    /// Whether nothing was lost, repeated without need or out of order, and all that is demanded was met.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.lost + self.beyond + self.out_of_order == 0 && self.wrong.is_empty()
    }

    /// `held`, or not.
    #[must_use]
    pub fn verdict(&self) -> &'static str {
        if self.is_good() { "held" } else { "FAILED" }
    }

    /// Notes what is wrong unless `held`.
    pub fn demand(&mut self, held: bool, otherwise: impl FnOnce() -> String) {
        if !held {
            self.wrong.push(otherwise());
        }
    }

    /// Fills in what was counted and what is `missing`. Gives the application that tells most of what is wrong, if anything
    /// is.
    pub fn judge(&mut self, counts: Counts, missing: Missing, witness: &Witness) -> Option<String> {
        self.lost += missing.count;
        self.duplicated += counts.duplicated;
        self.beyond += counts.beyond;
        self.out_of_order += counts.out_of_order;
        self.wrong.extend(missing.told);
        self.demand(counts.unreadable == 0, || {
            format!("{} reports came without a key or were none", counts.unreadable)
        });
        let suspect = {
            let mut seen = witness.lock();
            self.wrong.append(&mut seen.told);
            seen.suspect.take()
        };
        if let Some(name) = &suspect {
            self.wrong.push(format!("{name}: {}", witness.story(name)));
        }
        missing.names.first().cloned().or(suspect)
    }

    fn row(&self) -> Vec<String> {
        let drain = self.drain.map_or_else(|| "-".to_owned(), seconds);
        let mut row = vec![self.name.to_owned(), self.broken.clone(), judged(self.verdict(), self.is_good())];
        row.extend(
            [self.changes, self.lost, self.duplicated, self.beyond, self.out_of_order]
                .map(|count| count.to_string()),
        );
        row.extend([format!("{:.0}", self.peak as f64 / f64::from(1 << 20)), drain]);
        row.extend(self.more.iter().map(|(_, said)| said.clone()));
        row
    }
}

const HEADER: [&str; 10] = [
    "",
    "what was broken",
    "verdict",
    "changes",
    "lost",
    "duplicated",
    "of these beyond",
    "out of order",
    "peak MiB",
    "drained in",
];

/// A row for each, and under the table what is to be said of each.
#[must_use]
pub fn text(outcomes: &[Outcome]) -> String {
    let more = outcomes.first().into_iter().flat_map(|first| first.more.iter().map(|(header, _)| *header));
    let header: Vec<&str> = HEADER.into_iter().chain(more).collect();
    let rows: Vec<Vec<String>> = outcomes.iter().map(Outcome::row).collect();
    let mut text = table(3, &header, &rows);
    for outcome in outcomes {
        for note in &outcome.notes {
            text.push_str(&format!("\n{}: {note}", outcome.name));
        }
        for wrong in &outcome.wrong {
            text.push_str(&format!("\n{}", judged(&format!("{}: WRONG: {wrong}", outcome.name), false)));
        }
    }
    text
}

/// A sum over all of them.
#[must_use]
pub fn sum(outcomes: &[Outcome], of: fn(&Outcome) -> u64) -> u64 {
    outcomes.iter().map(of).sum()
}

/// A time for people.
#[must_use]
pub fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_unless_one_of_the_four_fails() {
        let good = Outcome { duplicated: 7, ..Outcome::new("kill", "killed") };
        assert!(good.is_good(), "what was in flight may come twice");
        for bad in [
            Outcome { lost: 1, ..good.clone() },
            Outcome { beyond: 1, ..good.clone() },
            Outcome { out_of_order: 1, ..good.clone() },
            Outcome { wrong: vec!["too slow".to_owned()], ..good.clone() },
        ] {
            assert!(!bad.is_good(), "{bad:?}");
        }
        let mut own = good;
        own.demand(true, || unreachable!());
        own.demand(false, || "too late".to_owned());
        assert_eq!((own.is_good(), own.wrong), (false, vec!["too late".to_owned()]));
    }

    #[test]
    fn notes_and_what_is_wrong_stand_under_the_table() {
        let outcome = Outcome {
            notes: vec!["30 kills".to_owned()],
            wrong: vec!["7 of 30 kills met nothing".to_owned()],
            drain: Some(Duration::from_millis(1_250)),
            peak: 50 << 20,
            more: vec![("owned again", "3.0 s".to_owned())],
            ..Outcome::new("kill", "killed 30 times")
        };
        let text = text(&[outcome]);
        for told in ["FAILED", "1.2 s", "50", "owned again", "3.0 s"] {
            assert!(text.contains(told), "{told}: {text}");
        }
        assert!(text.ends_with("\nkill: 30 kills\nkill: WRONG: 7 of 30 kills met nothing"), "{text}");
    }
}
