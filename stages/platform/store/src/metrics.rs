//! What is counted of the store.

use pipeline_core::Families;
use prometheus::{Histogram, IntCounter, IntGauge, Registry};

use crate::error::StoreError;
use crate::report::Outcome;
use crate::writer::KeepResult;

/// Counts of the store; cloning shares.
#[derive(Debug, Clone)]
pub(crate) struct StoreMetrics {
    kept: IntCounter,
    repeated: IntCounter,
    commits: Histogram,
    failed: IntCounter,
    statements: IntCounter,
    writable: IntGauge,
}

impl StoreMetrics {
    pub(crate) fn new(registry: &Registry) -> Self {
        let make = Families::new(registry, "gitops_runtime_platform_");
        let writable = make.gauge("store_writable", "Whether the last commit succeeded.");
        writable.set(1);
        Self {
            kept: make.counter("kept_total", "Reports that were kept."),
            repeated: make.counter("repeated_total", "Reports that were kept before, under the same key."),
            commits: make.histogram(
                "commit_reports",
                "Reports in one commit.",
                &[1.0, 4.0, 16.0, 64.0, 256.0],
            ),
            failed: make
                .counter("commit_failures_total", "Commits that failed; nothing of them was acknowledged."),
            statements: make.counter(
                "statements_total",
                "Statements of commits of reports: each is a turn of the database.",
            ),
            writable,
        }
    }

    pub(crate) fn committed(&self, done: &Result<Vec<KeepResult>, StoreError>, statements: u64) {
        self.statements.inc_by(statements);
        match done {
            Ok(outcomes) => {
                let refused = outcomes.iter().filter(|kept| kept.is_err()).count();
                self.writable.set(i64::from(refused < outcomes.len()));
                self.failed.inc_by(refused as u64);
                let all = outcomes.iter().flatten().flatten();
                self.commits.observe(all.clone().count() as f64);
                self.kept.inc_by(all.clone().filter(|outcome| **outcome == Outcome::Kept).count() as u64);
                self.repeated.inc_by(all.filter(|outcome| **outcome == Outcome::Repeated).count() as u64);
            }
            Err(_) => {
                self.writable.set(0);
                self.failed.inc();
            }
        }
    }

    pub(crate) fn is_writable(&self) -> bool {
        self.writable.get() == 1
    }
}
