//! Which lives of applications the platform has heard of, and since when.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use loadtest_sim::platform::PlatformSim;

/// After so long the reporter has noted down that the platform has a report: its ledger is written in groups.
const NOTED: Duration = Duration::from_secs(3);

/// Uids that were reported. An application of which nothing was noted down before the reporter was killed and that is
/// deleted before it is back leaves no trace anywhere, so its end cannot be reported; such a one is not deleted here.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    since: Arc<Mutex<HashMap<String, Instant>>>,
}

impl Known {
    /// Listens to the platform from now on.
    pub(super) fn listen(platform: &PlatformSim) -> Self {
        let known = Self::default();
        let own = known.clone();
        platform.look_on(move |arrived| {
            if arrived.report.entity.resource.is_none() {
                own.note(&arrived.report.uid, Instant::now());
            }
        });
        known
    }

    fn note(&self, uid: &str, now: Instant) {
        self.since.lock().unwrap_or_else(PoisonError::into_inner).entry(uid.to_owned()).or_insert(now);
    }

    /// Begins anew: what was reported a moment before the reporter was killed may not have been noted down, and is
    /// reported again.
    pub(super) fn forget_newest(&self) {
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        since.retain(|_, since| since.elapsed() >= NOTED);
    }

    /// Whether a life was reported long enough ago.
    pub(super) fn is_settled(&self, uid: &str) -> bool {
        let since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        since.get(uid).is_some_and(|since| since.elapsed() >= NOTED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_reported_a_while_ago_is_settled() {
        let known = Known::default();
        // However long this test stands still, it was reported just now.
        let soon = Instant::now() + Duration::from_secs(3600);
        known.note("new", soon);
        let before = Instant::now().checked_sub(NOTED * 2).unwrap();
        known.note("old", before);
        known.note("old", Instant::now());
        assert!(known.is_settled("old") && !known.is_settled("new") && !known.is_settled("other"));
        known.note("again", soon);
        known.forget_newest();
        known.note("again", before);
        assert!(known.is_settled("again"), "what is reported again counts from then");
        assert!(known.is_settled("old"));
    }
}
