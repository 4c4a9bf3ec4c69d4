//! What is known of each application while the demo runs: from the player, the reporter's metrics and the
//! platform.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::oracle::Expected;
use crate::reporter::{Metrics, Status};
use crate::sim::Simulation;

/// Figures of one application.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Row {
    /// Watch events that the API server sent.
    pub(super) events: u64,
    /// Events that the reporter took in, re-reads included.
    pub(super) observed: u64,
    /// Events that brought no report.
    pub(super) filtered: u64,
    /// Tries that failed and were repeated.
    pub(super) retried: u64,
    /// Events whose state was folded into a newer one; known whenever the reporter is idle.
    pub(super) coalesced: u64,
    /// Reports of the application itself that the platform took.
    pub(super) applications: u64,
    /// Reports of its resources that the platform took.
    pub(super) resources: u64,
    /// Events whose reports were all acknowledged.
    pub(super) acked: u64,
}

/// Rows by the application's name.
#[derive(Debug, Clone)]
pub(super) struct Board {
    rows: Arc<Mutex<BTreeMap<String, Row>>>,
}

const COMPAT: &str = "codefresh_event_reporter_";

impl Board {
    /// A row for every application that is expected; reports are counted as the platform takes them.
    pub(super) fn of(expected: &[Expected], simulation: &Simulation) -> Self {
        let rows = expected.iter().map(|expected| (expected.entity.app_name.clone(), Row::default()));
        let board = Self { rows: Arc::new(Mutex::new(rows.collect())) };
        let onlooker = board.clone();
        simulation.platform.look_on(move |arrived| {
            if !arrived.duplicate {
                let mut rows = onlooker.lock();
                let row = rows.entry(arrived.report.entity.app_name.clone()).or_default();
                match arrived.report.entity.resource {
                    None => row.applications += 1,
                    Some(_) => row.resources += 1,
                }
            }
        });
        board
    }

    /// Counts a watch event.
    pub(super) fn sent(&self, application: &str) {
        self.lock().entry(application.to_owned()).or_default().events += 1;
    }

    /// Takes what the reporter says. Between `before` and `after`, two looks at its status, the metrics were
    /// taken: when it was idle all the while, what it took in and neither reported nor filtered was coalesced.
    pub(super) fn take(&self, before: &Status, metrics: &Metrics, after: &Status) {
        let still = before.total.idle() && before.total == after.total && after.total.parked == 0;
        let mut rows = self.lock();
        for (name, row) in rows.iter_mut() {
            let sum = |family: &str| {
                // A count of events; exact up to 2^53.
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small count")]
                let count = metrics.sum(&format!("{COMPAT}{family}"), &[("application", name)]) as u64;
                count
            };
            row.observed = sum("enqueued_events_total");
            row.filtered = sum("cached_ignored_events");
            row.retried = sum("errored_events_total");
            row.acked = sum("event_processing_duration_count");
            if still {
                row.coalesced = row.observed.saturating_sub(row.acked + row.filtered);
            }
        }
    }

    /// All rows, sorted by name.
    pub(super) fn rows(&self) -> Vec<(String, Row)> {
        self.lock().iter().map(|(name, row)| (name.clone(), row.clone())).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Row>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_left_no_other_way_was_coalesced_once_all_is_still() {
        let board = Board { rows: Arc::new(Mutex::new(BTreeMap::from([("a".to_owned(), Row::default())]))) };
        let status = |queued: u64| -> Status {
            let figures = serde_json::json!({"observed": 9, "queued": queued});
            let status = serde_json::json!({
                "ready": true, "circuit": {"state": "closed"}, "total": figures, "shards": [],
            });
            serde_json::from_value(status).unwrap()
        };
        let metrics = Metrics::read(
            "codefresh_event_reporter_enqueued_events_total{reporter_shard=\"0\",application=\"a\"} 9\n\
             codefresh_event_reporter_cached_ignored_events{application=\"a\"} 2\n\
             codefresh_event_reporter_errored_events_total{application=\"a\"} 1\n\
             codefresh_event_reporter_errored_events_total{application=\"b\"} 7\n\
             codefresh_event_reporter_event_processing_duration_count{application=\"a\"} 4\n",
        );
        board.take(&status(1), &metrics, &status(1));
        assert_eq!(board.rows()[0].1.coalesced, 0);
        board.take(&status(0), &metrics, &status(0));
        let row = board.rows()[0].1.clone();
        assert_eq!((row.observed, row.filtered, row.retried, row.coalesced), (9, 2, 1, 3));
    }
}
