//! What one event came to, and how that is printed.

use std::time::Duration;

use serde_json::{Value, json};

use super::event::Event;
use crate::screen::{judged, table};

/// What one event came to.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    pub(super) event: Event,
    /// What it was, in a few words.
    pub(super) told: String,
    /// From its beginning until the platform knew everything.
    pub(super) took: Duration,
    /// The longest that a shard was owned by nobody.
    pub(super) unowned: Duration,
    /// That was too long.
    pub(super) late: bool,
    /// Changes that were made in the cluster meanwhile.
    pub(super) changes: u64,
    /// Reports that the platform took, and repetitions.
    pub(super) reports: u64,
    /// Reports that it had been given before.
    pub(super) duplicates: u64,
    /// Of those, the ones that had been acknowledged and written down, or came under another key.
    pub(super) beyond: u64,
    /// Reports that it refused, because another owner was newer.
    pub(super) stale_refused: u64,
    /// Reports that it took although another owner was newer.
    pub(super) stale_accepted: u64,
    /// Applications, resources and deletions that it does not know in the end.
    pub(super) lost: u64,
    /// Reports of an older state after a newer one of the same entity.
    pub(super) out_of_order: u64,
    /// What else must not be.
    pub(super) wrong: Vec<String>,
}

impl Outcome {
    pub(super) fn new(event: Event, told: String) -> Self {
        Self {
            event,
            told,
            took: Duration::ZERO,
            unowned: Duration::ZERO,
            late: false,
            changes: 0,
            reports: 0,
            duplicates: 0,
            beyond: 0,
            stale_refused: 0,
            stale_accepted: 0,
            lost: 0,
            out_of_order: 0,
            wrong: Vec::new(),
        }
    }

    /// Whether all of it held.
    pub(super) fn is_good(&self) -> bool {
        let none = self.lost + self.out_of_order + self.stale_accepted + self.beyond == 0;
        none && !self.late && self.wrong.is_empty()
    }

    /// Notes what is wrong unless `held`.
    pub(super) fn demand(&mut self, held: bool, otherwise: impl FnOnce() -> String) {
        if !held {
            self.wrong.push(otherwise());
        }
    }

    fn row(&self) -> Vec<String> {
        let verdict = if self.is_good() { "held" } else { "FAILED" };
        let mut row = vec![
            self.event.name().to_owned(),
            self.told.clone(),
            judged(verdict, self.is_good()),
            seconds(self.took),
            seconds(self.unowned),
        ];
        let counts = [
            self.changes,
            self.reports,
            self.duplicates,
            self.beyond,
            self.stale_refused,
            self.lost,
            self.out_of_order,
        ];
        row.extend(counts.iter().map(u64::to_string));
        row
    }

    fn json(&self) -> Value {
        json!({
            "event": self.event.name(), "told": self.told, "took_seconds": self.took.as_secs_f64(),
            "unowned_seconds": self.unowned.as_secs_f64(), "changes": self.changes, "reports": self.reports,
            "duplicates": self.duplicates, "duplicates_beyond_in_flight": self.beyond,
            "stale_refused": self.stale_refused, "stale_accepted": self.stale_accepted, "lost": self.lost,
            "out_of_order": self.out_of_order, "held": self.is_good(), "wrong": self.wrong,
        })
    }

    /// The same in one line, as soon as it is known.
    pub(super) fn line(&self) -> String {
        let verdict = if self.is_good() { "held  " } else { "FAILED" };
        let line = format!(
            "{verdict} {}: {}; shards owned again after {}, everything known after {}",
            self.event.name(),
            self.told,
            seconds(self.unowned),
            seconds(self.took)
        );
        judged(&line, self.is_good())
    }
}

const HEADER: [&str; 12] = [
    "event",
    "what happened",
    "verdict",
    "took",
    "owned again",
    "changes",
    "reports",
    "duplicates",
    "of these beyond",
    "refused stale",
    "lost",
    "out of order",
];

/// A row for each event, and under the table what is wrong.
pub(super) fn text(outcomes: &[Outcome]) -> String {
    let rows: Vec<Vec<String>> = outcomes.iter().map(Outcome::row).collect();
    let mut text = table(3, &HEADER, &rows);
    for outcome in outcomes {
        for wrong in &outcome.wrong {
            text.push_str(&format!(
                "\n{}",
                judged(&format!("{}: WRONG: {wrong}", outcome.event.name()), false)
            ));
        }
    }
    text
}

/// All outcomes for tools.
pub(super) fn json(outcomes: &[Outcome], seed: u64) -> Value {
    let all: Vec<Value> = outcomes.iter().map(Outcome::json).collect();
    json!({"seed": seed, "events": all, "line": last_line(outcomes), "held": outcomes.iter().all(Outcome::is_good)})
}

/// The last line of a run.
pub(super) fn last_line(outcomes: &[Outcome]) -> String {
    let sum = |of: fn(&Outcome) -> u64| outcomes.iter().map(of).sum::<u64>();
    format!(
        "replicas: {} events, {} lost, {} out of order, {} accepted from stale owners",
        outcomes.len(),
        sum(|outcome| outcome.lost),
        sum(|outcome| outcome.out_of_order),
        sum(|outcome| outcome.stale_accepted)
    )
}

/// A time for people.
fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Outcome {
        Outcome { duplicates: 7, stale_refused: 2, ..Outcome::new(Event::Kill, "one killed".to_owned()) }
    }

    #[test]
    fn an_event_holds_unless_something_is_wrong() {
        assert!(good().is_good(), "what was in flight may come twice, and a stale owner may be refused");
        for bad in [
            Outcome { lost: 1, ..good() },
            Outcome { beyond: 1, ..good() },
            Outcome { out_of_order: 1, ..good() },
            Outcome { stale_accepted: 1, ..good() },
            Outcome { late: true, ..good() },
            Outcome { wrong: vec!["a panic".to_owned()], ..good() },
        ] {
            assert!(!bad.is_good(), "{bad:?}");
            assert!(bad.line().starts_with("FAILED kill: one killed; shards owned again after 0.0 s"));
        }
    }

    #[test]
    fn the_last_line_sums_what_must_be_nought() {
        let one = Outcome { lost: 1, out_of_order: 2, stale_accepted: 3, beyond: 9, ..good() };
        assert_eq!(
            last_line(&[one.clone(), one.clone()]),
            "replicas: 2 events, 2 lost, 4 out of order, 6 accepted from stale owners"
        );
        let mut wrong = one;
        wrong.demand(true, || unreachable!());
        wrong.demand(false, || "too slow".to_owned());
        let text = text(&[good(), wrong]);
        assert!(text.contains("held") && text.ends_with("\nkill: WRONG: too slow"), "{text}");
    }
}
