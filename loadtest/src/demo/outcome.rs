//! What a demo came to: a table by application, what is missing, and one line.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use loadtest_judge::oracle::{self, Difference, Expected};
use loadtest_judge::screen::table;
use loadtest_sim::platform::PlatformSim;
use serde_json::Value;

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
    /// Applications that the platform shows, and those whose last report was not of their end.
    pub shown: (BTreeSet<String>, BTreeSet<String>),
    rows: Vec<Vec<String>>,
    differences: Vec<String>,
}

impl Outcome {
    pub(super) fn of(
        platform: &PlatformSim,
        expected: &[Expected],
        events: &BTreeMap<String, u64>,
        differences: &[Difference],
        (parked, retried): (u64, f64),
        took: Duration,
        shown: BTreeSet<String>,
    ) -> Self {
        let totals = platform.totals();
        let disorder = oracle::order(&platform.kept());
        let last = platform.last();
        let wanted: BTreeSet<&str> = expected.iter().map(|expected| &*expected.entity.app_name).collect();
        let (mut rows, mut reported, mut lost, mut there) = (Vec::new(), 0, 0, BTreeSet::new());
        for name in &wanted {
            let own = || last.iter().filter(|(entity, _)| entity.app_name == *name);
            let itself = own().find(|(entity, _)| entity.resource.is_none()).map(|(_, last)| last);
            let facts = itself.and_then(|last| oracle::shown(last.payload.as_ref()?));
            let shown = |fact: &str| match &facts {
                None => "never reported".to_owned(),
                Some(facts) if facts.get("deleted") == Some(&Value::Bool(true)) => "deleted".to_owned(),
                Some(facts) => facts.get(fact).and_then(Value::as_str).unwrap_or("-").to_owned(),
            };
            if facts.as_ref().is_some_and(|facts| facts.get("deleted") != Some(&Value::Bool(true))) {
                there.insert((*name).to_owned());
            }
            let applications = itself.map_or(0, |last| last.reports);
            let all: u64 = own().map(|(_, last)| last.reports).sum();
            let missing: BTreeSet<_> =
                differences.iter().map(|one| &one.entity).filter(|entity| entity.app_name == *name).collect();
            reported += usize::from(applications > 0);
            lost += missing.len();
            let numbers = [
                events.get(*name).copied().unwrap_or_default(),
                applications,
                all - applications,
                missing.len() as u64,
            ];
            let texts = [(*name).to_owned(), shown("sync status"), shown("health")];
            rows.push(texts.into_iter().chain(numbers.map(|number| number.to_string())).collect());
        }
        // A count of reports.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small count")]
        let retried = retried as u64;
        Self {
            applications: (reported, wanted.len()),
            reports: totals.taken,
            lost,
            out_of_order: totals.out_of_order + totals.resources_out_of_order + disorder.len() as u64,
            parked,
            retried,
            took,
            shown: (shown, there),
            rows,
            differences: differences.iter().chain(&disorder).map(ToString::to_string).collect(),
        }
    }

    /// Whether every application was reported, in order, and nothing is lost.
    #[must_use]
    pub fn is_good(&self) -> bool {
        let (reported, wanted) = self.applications;
        reported == wanted
            && wanted > 0
            && self.lost == 0
            && self.out_of_order == 0
            && self.parked == 0
            && self.shown.0 == self.shown.1
    }

    /// The table, and what is not as it should be.
    #[must_use]
    pub fn text(&self) -> String {
        let header =
            ["application", "last sync", "last health", "watch events", "reports", "of resources", "lost"];
        let mut text = format!("\n{}\n", table(3, &header, &self.rows));
        for difference in self.differences.iter().take(LISTED) {
            text.push_str(&format!("\nlost: {difference}"));
        }
        if self.differences.len() > LISTED {
            text.push_str(&format!("\nand {} more", self.differences.len() - LISTED));
        }
        for name in self.shown.0.symmetric_difference(&self.shown.1) {
            let what = if self.shown.0.contains(name) { "shown, though it was deleted" } else { "not shown" };
            text.push_str(&format!("\nplatform: {name} is {what}"));
        }
        let Self { retried, out_of_order, parked, took, .. } = self;
        text.push_str(&format!(
            "\n{:.1} s; {retried} failed tries at sending a report, each repeated; {out_of_order} out of order; \
             {parked} refused for good",
            took.as_secs_f64()
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
            shown: (BTreeSet::from(["web".to_owned()]), BTreeSet::from(["web".to_owned()])),
            rows: vec![vec!["web".to_owned()]],
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
            Outcome { shown: (BTreeSet::new(), outcome().shown.1), ..outcome() },
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
