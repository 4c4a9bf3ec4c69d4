//! Refusals of people who are known, told to the audit log: so many of one person a minute, and none in the last half of the
//! places, so that whoever is refused again and again fills no log and keeps nobody's act waiting.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use moka::sync::Cache;

use crate::audit::{Audit, Record};

/// The most refusals of one person that are recorded within [`WINDOW`].
const MAX_REFUSALS: u32 = 120;
const WINDOW: Duration = Duration::from_secs(60);
/// The most people whose refusals are counted.
const MAX_PEOPLE: u64 = 10_000;

/// Refusals that are told to the audit log.
#[derive(Debug, Clone)]
pub(crate) struct RefusalLog {
    audit: Audit,
    counts: Cache<String, Arc<AtomicU32>>,
}

impl RefusalLog {
    pub(crate) fn new(audit: Audit) -> Self {
        Self { audit, counts: Cache::builder().max_capacity(MAX_PEOPLE).time_to_live(WINDOW).build() }
    }

    /// Records that somebody was refused, unless there were too many of them. The last one says so.
    pub(crate) fn record(&self, mut refused: Record) {
        let before = self.counts.get_with_by_ref(&refused.who, Arc::default).fetch_add(1, Ordering::Relaxed);
        if before >= MAX_REFUSALS || !self.audit.is_half_free() {
            return;
        }
        if before + 1 == MAX_REFUSALS {
            refused.outcome.push_str("; what is refused within the minute after is not recorded");
        }
        if let Ok(permit) = self.audit.reserve() {
            permit.send(refused);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::ProxySeries;

    fn refused(who: &str) -> Record {
        Record::new(who, "sync", "shop/web", "refused: no rule allows it")
    }

    #[test]
    fn a_person_who_is_refused_again_and_again_is_told_of_so_often_and_keeps_nobody_out() {
        let (audit, mut waiting) = Audit::kept(ProxySeries::new(&prometheus::Registry::new()));
        let log = RefusalLog::new(audit);
        (0..300).for_each(|_| log.record(refused("mallory")));
        log.record(refused("ada"));
        let told: Vec<Record> = std::iter::from_fn(|| waiting.try_recv().ok()).collect();
        let of = |who: &str| told.iter().filter(|record| record.who == who).count();
        assert_eq!((of("mallory"), of("ada")), (120, 1));
        let says_so = |record: &&Record| record.outcome.ends_with("within the minute after is not recorded");
        assert!(told.get(119).as_ref().is_some_and(says_so));
        assert_eq!(told.iter().filter(says_so).count(), 1);
    }

    #[test]
    fn refusals_leave_half_of_the_places_to_acts() {
        let (audit, _waiting) = Audit::kept(ProxySeries::new(&prometheus::Registry::new()));
        let log = RefusalLog::new(audit.clone());
        (0..2_000).for_each(|number| log.record(refused(&format!("mallory{number}"))));
        let permits: Vec<_> = std::iter::from_fn(|| audit.reserve().ok()).collect();
        assert!(permits.len() >= 499, "{}", permits.len());
    }
}
