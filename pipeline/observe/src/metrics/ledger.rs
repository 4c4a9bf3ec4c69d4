//! The ledger's figures as metrics.

use pipeline_core::Families;
use prometheus::{Gauge, IntCounter, IntGauge};

use super::figures::{set_counter, set_gauge};
use super::lanes::seconds;
use pipeline_ledger::LedgerStatus;

/// The series of the ledger.
pub(super) struct LedgerSeries {
    records: IntGauge,
    bytes: IntGauge,
    file: IntGauge,
    waiting: IntGauge,
    in_doubt: IntGauge,
    journal: IntGauge,
    refused: IntCounter,
    failing: IntGauge,
    commits: IntCounter,
    errors: IntCounter,
    intents: IntCounter,
    age: Gauge,
}

impl LedgerSeries {
    pub(super) fn new(make: &Families) -> Self {
        Self {
            records: make.gauge("ledger_records", "Applications that the ledger remembers."),
            bytes: make.gauge("ledger_bytes", "Bytes of the ledger in memory."),
            file: make.gauge("ledger_file_bytes", "Bytes of the ledger's file."),
            waiting: make.gauge("ledger_waiting", "Records newer in memory than in the file."),
            in_doubt: make.gauge("ledger_in_doubt", "Entities of which the receiver's state is not known."),
            journal: make.gauge("ledger_journal", "Applications with journaled ends or deletions."),
            refused: make.counter("ledger_journal_refused_total", "Journal entries that found no room."),
            failing: make.gauge("ledger_failing", "1 while the ledger cannot be written."),
            commits: make.counter("ledger_commits_total", "Commits of the ledger."),
            errors: make.counter("ledger_errors_total", "Commits of the ledger that failed."),
            intents: make.counter("ledger_flight_errors_total", "Notes of reports on their way that failed."),
            age: make.measure("ledger_commit_age_seconds", "How long ago the ledger was written last."),
        }
    }

    /// Sets the series to the ledger's newest status.
    pub(super) fn take(&self, status: &LedgerStatus) {
        set_gauge(&self.records, status.records as u64);
        set_gauge(&self.bytes, status.bytes as u64);
        set_gauge(&self.file, status.file_bytes);
        set_gauge(&self.waiting, status.waiting as u64);
        set_gauge(&self.in_doubt, status.in_doubt as u64);
        set_gauge(&self.journal, status.journal as u64);
        set_counter(&self.refused, status.journal_refused);
        set_gauge(&self.failing, u64::from(status.failing));
        set_counter(&self.commits, status.commits);
        set_counter(&self.errors, status.errors);
        set_counter(&self.intents, status.intent_errors);
        seconds(&self.age, status.last_commit_age.unwrap_or_default());
    }
}
