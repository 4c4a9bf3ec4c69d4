//! What is counted of the store.

use prometheus::{Histogram, HistogramOpts, IntCounter, IntGauge, Registry};

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
    pub(crate) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let of = |name: &str, help: &str| format_counter(name, help);
        let sizes = vec![1.0, 4.0, 16.0, 64.0, 256.0];
        let group = HistogramOpts::new("gitops_runtime_platform_commit_reports", "Reports in one commit.");
        let metrics = Self {
            kept: of("kept", "Reports that were kept.")?,
            repeated: of("repeated", "Reports that were kept before, under the same key.")?,
            commits: Histogram::with_opts(group.buckets(sizes))?,
            failed: of("commit_failures", "Commits that failed; nothing of them was acknowledged.")?,
            statements: of(
                "statements",
                "Statements of commits of reports: each is a turn of the database.",
            )?,
            writable: IntGauge::new(
                "gitops_runtime_platform_store_writable",
                "Whether the last commit succeeded.",
            )?,
        };
        metrics.writable.set(1);
        registry.register(Box::new(metrics.kept.clone()))?;
        registry.register(Box::new(metrics.repeated.clone()))?;
        registry.register(Box::new(metrics.commits.clone()))?;
        registry.register(Box::new(metrics.failed.clone()))?;
        registry.register(Box::new(metrics.statements.clone()))?;
        registry.register(Box::new(metrics.writable.clone()))?;
        Ok(metrics)
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

fn format_counter(name: &str, help: &str) -> Result<IntCounter, prometheus::Error> {
    IntCounter::new(format!("gitops_runtime_platform_{name}_total"), help)
}
