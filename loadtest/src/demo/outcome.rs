//! What a demo came to: a table by application, what is missing, and one line.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use super::board::Row;
use super::play::Story;
use crate::oracle::{self, Difference};
use crate::reporter::{Metrics, Status};
use crate::screen::table;

/// Differences that are listed.
const LISTED: usize = 40;

/// What a demo came to.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Applications that were reported, and those that had to be.
    pub applications: (usize, usize),
    /// Reports that the platform took.
    pub reports: u64,
    /// Applications and resources whose last report is not what the recording ends with.
    pub lost: usize,
    /// Reports of an older state after a newer one.
    pub out_of_order: u64,
    /// Events that were refused for good.
    pub parked: u64,
    /// Tries at sending a report that failed and were repeated.
    pub retried: u64,
    /// How long it took.
    pub took: Duration,
    rows: Vec<Vec<String>>,
    differences: Vec<String>,
}

impl Outcome {
    pub(super) fn of(
        story: &Story<'_>,
        differences: &[Difference],
        metrics: &Metrics,
        status: &Status,
        took: Duration,
    ) -> Self {
        let platform = &story.simulation.platform;
        let totals = platform.totals();
        let disorder = oracle::order(&platform.kept());
        let last = platform.last();
        let shown = |name: &str, fact: &str| -> String {
            let own = last.iter().find(|(entity, _)| entity.resource.is_none() && entity.app_name == name);
            let facts = own.and_then(|(_, last)| oracle::shown(last.payload.as_ref()?));
            let Some(facts) = facts else { return "never reported".to_owned() };
            if facts.get("deleted") == Some(&Value::Bool(true)) {
                return "deleted".to_owned();
            }
            facts.get(fact).and_then(Value::as_str).unwrap_or("-").to_owned()
        };
        let lost = |name: &str| -> usize {
            let own = differences.iter().filter(|difference| difference.entity.app_name == name);
            own.map(|difference| &difference.entity).collect::<BTreeSet<_>>().len()
        };
        let all = story.board.rows();
        let mut rows = Vec::new();
        for (name, row) in &all {
            rows.push(cells(name, row, &shown(name, "sync status"), &shown(name, "health"), lost(name)));
        }
        let sum = |of: fn(&Row) -> u64| all.iter().map(|(_, row)| of(row)).sum::<u64>();
        let total = Row {
            events: sum(|row| row.events),
            observed: sum(|row| row.observed),
            filtered: sum(|row| row.filtered),
            retried: sum(|row| row.retried),
            coalesced: sum(|row| row.coalesced),
            applications: sum(|row| row.applications),
            resources: sum(|row| row.resources),
            acked: sum(|row| row.acked),
        };
        let lost_in_all = all.iter().map(|(name, _)| lost(name)).sum();
        rows.push(cells("all", &total, "", "", lost_in_all));
        let wanted: BTreeSet<_> = story.expected.iter().map(|expected| &expected.entity.app_name).collect();
        let reported = all.iter().filter(|(name, row)| wanted.contains(name) && row.applications > 0).count();
        let texts = differences.iter().chain(&disorder).map(ToString::to_string).collect();
        // A count of reports.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small count")]
        let retried = metrics.sum("gitops_runtime_reports_total", &[("result", "retried")]) as u64;
        Self {
            applications: (reported, wanted.len()),
            reports: totals.taken,
            lost: lost_in_all,
            out_of_order: totals.out_of_order + totals.resources_out_of_order + disorder.len() as u64,
            parked: status.total.parked,
            retried,
            took,
            rows,
            differences: texts,
        }
    }

    /// Whether every application was reported, in order, and nothing is lost.
    #[must_use]
    pub fn is_good(&self) -> bool {
        let (reported, wanted) = self.applications;
        reported == wanted && wanted > 0 && self.lost == 0 && self.out_of_order == 0 && self.parked == 0
    }

    /// The table, and what is not as it should be.
    #[must_use]
    pub fn text(&self) -> String {
        let header = [
            "application",
            "last sync",
            "last health",
            "watch events",
            "observed",
            "reports",
            "of resources",
            "retried",
            "filtered",
            "coalesced",
            "lost",
        ];
        let mut text = format!("\n{}\n", table(3, &header, &self.rows));
        for difference in self.differences.iter().take(LISTED) {
            text.push_str(&format!("\nlost: {difference}"));
        }
        if self.differences.len() > LISTED {
            text.push_str(&format!("\nand {} more", self.differences.len() - LISTED));
        }
        let took = self.took.as_secs_f64();
        let Self { retried, out_of_order, parked, .. } = self;
        text.push_str(&format!(
            "\n{took:.1} s; {retried} failed tries at sending a report, each repeated; {out_of_order} out of \
             order; {parked} refused for good"
        ));
        text
    }

    /// The last line.
    #[must_use]
    pub fn line(&self) -> String {
        let (reported, wanted) = self.applications;
        let applications =
            if reported == wanted { wanted.to_string() } else { format!("{reported} of {wanted}") };
        format!("demo: {applications} applications, {} reports, {} lost", self.reports, self.lost)
    }
}

fn cells(name: &str, row: &Row, sync: &str, health: &str, lost: usize) -> Vec<String> {
    let numbers = [
        row.events,
        row.observed,
        row.applications,
        row.resources,
        row.retried,
        row.filtered,
        row.coalesced,
        lost as u64,
    ];
    let texts = [name, sync, health].map(str::to_owned);
    texts.into_iter().chain(numbers.map(|number| number.to_string())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome() -> Outcome {
        Outcome {
            applications: (2, 2),
            reports: 7,
            lost: 0,
            out_of_order: 0,
            parked: 0,
            retried: 1,
            took: Duration::from_secs(3),
            rows: vec![cells("web", &Row { observed: 4, ..Row::default() }, "Synced", "Healthy", 0)],
            differences: Vec::new(),
        }
    }

    #[test]
    fn all_reported_and_none_lost_is_good() {
        assert!(outcome().is_good());
        assert_eq!(outcome().line(), "demo: 2 applications, 7 reports, 0 lost");
        assert!(outcome().text().contains("web"), "{}", outcome().text());
    }

    #[test]
    fn each_thing_that_is_missing_is_not_good() {
        let unreported = Outcome { applications: (1, 2), ..outcome() };
        assert_eq!(unreported.line(), "demo: 1 of 2 applications, 7 reports, 0 lost");
        for bad in [
            unreported,
            Outcome { applications: (0, 0), ..outcome() },
            Outcome { lost: 1, ..outcome() },
            Outcome { out_of_order: 1, ..outcome() },
            Outcome { parked: 1, ..outcome() },
        ] {
            assert!(!bad.is_good(), "{}", bad.line());
        }
    }

    #[test]
    fn differences_are_listed_up_to_a_bound() {
        let differences = (0..50).map(|number| format!("difference {number}")).collect();
        let text = Outcome { differences, ..outcome() }.text();
        assert_eq!(text.matches("lost: difference").count(), LISTED);
        assert!(text.contains("and 10 more"), "{text}");
    }
}
