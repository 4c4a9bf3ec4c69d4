//! The ledger's figures as metrics.

use pipeline_core::Families;
use prometheus::{Gauge, IntCounter, IntGauge};

use super::figures::{say, show};
use super::lanes::seconds;
use pipeline_ledger::LedgerStatus;

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

    pub(super) fn take(&self, status: &LedgerStatus) {
        show(&self.records, status.records as u64);
        show(&self.bytes, status.bytes as u64);
        show(&self.file, status.file_bytes);
        show(&self.waiting, status.waiting as u64);
        show(&self.in_doubt, status.in_doubt as u64);
        show(&self.journal, status.journal as u64);
        say(&self.refused, status.journal_refused);
        show(&self.failing, u64::from(status.failing));
        say(&self.commits, status.commits);
        say(&self.errors, status.errors);
        say(&self.intents, status.intent_errors);
        seconds(&self.age, status.last_commit_age.unwrap_or_default());
    }
}
