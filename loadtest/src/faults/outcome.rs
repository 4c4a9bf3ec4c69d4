//! What one fault came to, and how that is printed.

use std::time::Duration;

use serde_json::{Value, json};

use crate::screen::{judged, table};

/// How many lines of what is wrong are kept of one kind.
pub(crate) const KEPT: usize = 8;

/// What one fault came to.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Its name.
    pub fault: &'static str,
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
    /// From the end of the fault until the platform knew everything.
    pub drain: Option<Duration>,
    /// What else the fault demands and was not met.
    pub wrong: Vec<String>,
    /// What is worth knowing.
    pub notes: Vec<String>,
}

impl Outcome {
    /// Of a fault with this name.
    #[must_use]
    pub fn new(fault: &'static str, broken: impl Into<String>) -> Self {
        Self { fault, broken: broken.into(), ..Self::default() }
    }

    /// Whether nothing was lost, repeated without need or out of order, and the fault's own demands were met.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.lost + self.beyond + self.out_of_order == 0 && self.wrong.is_empty()
    }

    /// Notes what is wrong unless `held`.
    pub fn demand(&mut self, held: bool, otherwise: impl FnOnce() -> String) {
        if !held {
            self.wrong.push(otherwise());
        }
    }

    fn row(&self) -> Vec<String> {
        let drain = self.drain.map_or_else(|| "-".to_owned(), |took| format!("{:.1} s", took.as_secs_f64()));
        let verdict = if self.is_good() { "held" } else { "FAILED" };
        vec![
            self.fault.to_owned(),
            self.broken.clone(),
            judged(verdict, self.is_good()),
            self.changes.to_string(),
            self.lost.to_string(),
            self.duplicated.to_string(),
            self.beyond.to_string(),
            self.out_of_order.to_string(),
            format!("{:.0}", self.peak as f64 / f64::from(1 << 20)),
            drain,
        ]
    }

    fn json(&self) -> Value {
        json!({
            "fault": self.fault, "broken": self.broken, "changes": self.changes, "lost": self.lost,
            "duplicated": self.duplicated, "duplicated_beyond_in_flight": self.beyond,
            "out_of_order": self.out_of_order, "peak_bytes": self.peak,
            "drain_seconds": self.drain.map(|took| took.as_secs_f64()), "held": self.is_good(),
            "wrong": self.wrong, "notes": self.notes,
        })
    }
}

const HEADER: [&str; 10] = [
    "fault",
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

/// A row for each fault, and under the table what is to be said of each.
pub(super) fn text(outcomes: &[Outcome]) -> String {
    let rows: Vec<Vec<String>> = outcomes.iter().map(Outcome::row).collect();
    let mut text = table(3, &HEADER, &rows);
    for outcome in outcomes {
        for note in &outcome.notes {
            text.push_str(&format!("\n{}: {note}", outcome.fault));
        }
        for wrong in &outcome.wrong {
            text.push_str(&format!("\n{}", judged(&format!("{}: WRONG: {wrong}", outcome.fault), false)));
        }
    }
    text
}

/// All outcomes for tools.
pub(super) fn json(outcomes: &[Outcome], seed: u64) -> Value {
    let all: Vec<Value> = outcomes.iter().map(Outcome::json).collect();
    json!({"seed": seed, "faults": all, "line": last_line(outcomes), "held": outcomes.iter().all(Outcome::is_good)})
}

/// The last line of a run.
pub(super) fn last_line(outcomes: &[Outcome]) -> String {
    let sum = |of: fn(&Outcome) -> u64| outcomes.iter().map(of).sum::<u64>();
    format!(
        "faults: {} faults, {} lost, {} duplicated beyond what was in flight, {} out of order",
        outcomes.len(),
        sum(|outcome| outcome.lost),
        sum(|outcome| outcome.beyond),
        sum(|outcome| outcome.out_of_order)
    )
}

/// Numbers as a line of bars, from the least to the most of them.
pub(super) fn sparkline(numbers: &[f64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let most = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let width = (most - least).max(f64::EPSILON);
    let bar = |number: &f64| {
        let place = ((number - least) / width * 7.0).round();
        // Between 0 and 7, whatever the numbers are.
        BARS[place.clamp(0.0, 7.0) as usize]
    };
    numbers.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_holds_unless_one_of_the_four_fails() {
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
    fn the_last_line_sums_what_must_be_nought() {
        let one = Outcome { lost: 1, beyond: 2, out_of_order: 3, duplicated: 9, ..Outcome::default() };
        assert_eq!(
            last_line(&[one.clone(), one]),
            "faults: 2 faults, 2 lost, 4 duplicated beyond what was in flight, 6 out of order"
        );
        assert_eq!(
            last_line(&[]),
            "faults: 0 faults, 0 lost, 0 duplicated beyond what was in flight, 0 out of order"
        );
    }

    #[test]
    fn notes_and_what_is_wrong_stand_under_the_table() {
        let outcome = Outcome {
            notes: vec!["30 kills".to_owned()],
            wrong: vec!["7 of 30 kills met nothing".to_owned()],
            drain: Some(Duration::from_millis(1_250)),
            peak: 50 << 20,
            ..Outcome::new("kill", "killed 30 times")
        };
        let text = text(&[outcome]);
        assert!(text.contains("FAILED") && text.contains("1.2 s") && text.contains("50"), "{text}");
        assert!(text.ends_with("\nkill: 30 kills\nkill: WRONG: 7 of 30 kills met nothing"), "{text}");
    }

    #[test]
    fn numbers_are_drawn_between_the_least_and_the_most() {
        assert_eq!(sparkline(&[1.0, 4.5, 8.0]), "▁▅█");
        assert_eq!(sparkline(&[3.0, 3.0]), "▁▁");
        assert_eq!(sparkline(&[]), "");
    }
}
