//! What a shard tells: steps and counters.

use std::time::Duration;

use pipeline_core::{Key, Step, Timestamp, Trace};
use tokio::time::Instant;

use super::{Moment, Shard};

/// Counters are published at most this often, and at least this long after they changed.
pub(super) const PUBLISH: Duration = Duration::from_millis(100);
/// Between two warnings of what was given up.
const WARN_EVERY: Duration = Duration::from_secs(60);

impl Shard {
    /// Counts and remembers a step, and tells it to whoever listens.
    pub(super) fn told(&mut self, trace: Trace) {
        let (metrics, shard) = (&self.shared.metrics, self.number);
        match trace.step {
            Step::Filtered(why) => {
                metrics.filtered(why);
                if let Some(unreported) = &self.shared.unreported {
                    unreported.filtered(&trace.key, why);
                }
            }
            Step::Retried { reason, .. } => metrics.retried(reason),
            Step::Parked(reason) => {
                metrics.parked(reason);
                let key = &trace.key;
                self.refused = Some(key.clone());
                tracing::warn!(%key, reason = reason.as_str(), "an event was refused for good and is parked");
            }
            Step::Acked { after } => metrics.acknowledged(after),
            _ => {}
        }
        if let Some(compat) = metrics.compat() {
            match trace.step {
                Step::Observed => compat.enqueued(shard, &trace.key),
                Step::Limited(_) => compat.dropped(shard, &trace.key),
                Step::Filtered(_) => compat.ignored(shard, &trace.key),
                Step::Retried { .. } | Step::Parked(_) => compat.errored(shard, &trace.key),
                Step::Acked { after } => compat.processed(shard, &trace.key, after),
                _ => {}
            }
        }
        let (now, at) = (self.shared.now(), Timestamp::now());
        self.top.step(&trace, now, at);
        self.spans.iter_mut().for_each(|spans| spans.told(&trace, (now, at)));
        if let Step::GaveUp(count) = trace.step {
            self.warn_of_loss(&trace.key, count);
        }
        let Trace { version, trace: id, step, .. } = trace;
        let moment = Moment { at, version, trace: id, step };
        self.history.push(&trace.key, now, moment);
        self.shared.tell(shard, || trace);
    }

    /// Says at most once a minute what is lost, and of whom: `explain` says it of each.
    fn warn_of_loss(&mut self, key: &Key, count: u64) {
        self.given_up += count;
        let now = Instant::now();
        if self.loss_warned.is_some_and(|at| now.duration_since(at) < WARN_EVERY) {
            return;
        }
        self.loss_warned = Some(now);
        let count = std::mem::take(&mut self.given_up);
        tracing::warn!(
            %key,
            count,
            "facts were given up, the oldest first: more came than are kept while an object cannot be reported; the key is the \
             last of them"
        );
    }

    /// Shows what there is to do, and the counters, if they changed, and not too often.
    pub(super) fn publish(&mut self, at_once: bool) {
        self.ports.backlog.send_replace(self.lane.backlog());
        if !self.changed || (!at_once && self.published.elapsed() < PUBLISH) {
            return;
        }
        let counts = self.lane.counts(self.shared.now());
        self.shared.metrics.lane(self.number, &counts);
        self.shared.health.lane(self.number, &counts, std::time::Instant::now());
        self.ports.counts.send_replace(counts);
        self.published = Instant::now();
        self.changed = false;
    }
}
