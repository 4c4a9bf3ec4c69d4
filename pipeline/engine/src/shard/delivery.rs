//! A delivery, the reports of one attempt: which may be sent now, and what it all comes to.
//!
//! Pure. Reports of objects go strictly one after the other, then those of resources, some at a time.
//! Each acknowledgement moves its own report's digests; what the whole delivery moves ([`Checkpoint`]) moves only
//! when every report was acknowledged, so that a later try finds what is missing.

use std::collections::VecDeque;
use std::time::Duration;

use pipeline_core::{
    Checkpoint, Digest, Enriched, EntityId, Filtered, Reason, Record, Refetch, Refused, Report, Timestamp,
    Version,
};

use crate::circuit::Verdict;
use crate::lane::{Blame, Outcome};

/// A delivery under way.
#[derive(Debug)]
pub(crate) struct Delivery {
    /// Reports of objects not sent yet, in order.
    objects: VecDeque<Report>,
    /// Reports of resources not sent yet.
    resources: VecDeque<Report>,
    /// What the ledger holds, moved by each acknowledgement: numbers the next report of an entity.
    record: Option<Record>,
    settle: Option<Checkpoint>,
    /// When the attempt was taken up.
    now: Timestamp,
    filtered: Option<Filtered>,
    refetch: Option<Refetch>,
    /// Reports of resources that may be on their way at a time.
    limit: usize,
    /// Reports on their way.
    flying: usize,
    object_flies: bool,
    acked: usize,
    failed: Option<(Reason, Option<Duration>)>,
    refused: Vec<(EntityId, Digest, Reason)>,
    rejected: Option<Reason>,
    /// Facts that were acknowledged.
    told: Vec<Digest>,
}

/// What a delivery came to.
#[derive(Debug)]
pub(crate) struct End {
    /// What moves now in the ledger.
    pub(crate) settle: Option<Checkpoint>,
    /// How the attempt ended.
    pub(crate) outcome: Outcome,
}

impl Delivery {
    /// Begins a delivery. What `refused` lists is not sent again.
    pub(crate) fn new(
        enriched: Enriched,
        known: Option<Record>,
        refused: &Refused,
        limit: usize,
        now: Timestamp,
    ) -> Self {
        let earlier = |report: &Report| {
            let same = |(entity, content, _): &&(EntityId, Digest, Reason)| {
                *entity == report.entity && *content == report.content
            };
            refused.iter().find(same).copied()
        };
        let mut delivery = Self {
            objects: VecDeque::new(),
            resources: VecDeque::new(),
            record: known,
            settle: enriched.settle,
            now,
            filtered: enriched.filtered,
            refetch: enriched.refetch,
            limit: limit.max(1),
            flying: 0,
            object_flies: false,
            acked: 0,
            failed: None,
            refused: Vec::new(),
            rejected: None,
            told: Vec::new(),
        };
        for report in enriched.reports {
            if let Some(refusal) = earlier(&report) {
                delivery.rejected = Some(refusal.2);
                delivery.refused.push(refusal);
            } else if report.entity.is_object() {
                delivery.objects.push_back(report);
            } else {
                delivery.resources.push_back(report);
            }
        }
        delivery
    }

    /// Of an object that the watch has shown up to this state.
    pub(crate) fn of_watched(mut self, watched: Version) -> Self {
        self.settle.iter_mut().for_each(|settle| settle.watched = watched);
        self
    }

    /// The next report to send now, and how many reports of its entity were acknowledged before.
    pub(crate) fn next(&mut self) -> Option<(Report, u64)> {
        if self.object_flies || self.flying >= self.limit {
            return None;
        }
        let report = match self.objects.pop_front() {
            Some(report) => {
                self.object_flies = true;
                report
            }
            None => self.resources.pop_front()?,
        };
        self.flying += 1;
        self.record = Record::sending(self.record.take(), &report, None);
        let known = self.record.as_ref().filter(|record| record.uid == report.uid);
        let counter =
            known.map_or_else(|| Record::first(report.version), |record| record.counter(report.entity));
        Some((report, counter))
    }

    /// Notes the verdict on a report that [`Delivery::next`] gave.
    pub(crate) fn settled(&mut self, report: &Report, verdict: Verdict) {
        self.flying -= 1;
        if report.entity.is_object() {
            self.object_flies = false;
        }
        match verdict {
            Verdict::Acked => {
                self.acked += 1;
                if let Some(fact) = report.fact.filter(|_| !report.ends) {
                    self.told.push(fact);
                }
                self.record = Record::acknowledge(self.record.take(), report);
            }
            Verdict::Reject { reason } => {
                self.rejected = Some(reason);
                self.refused.push((report.entity, report.content, reason));
            }
            Verdict::Retry { reason, after } => {
                let longest = self.failed.and_then(|(_, known)| known).max(after);
                self.failed = Some((reason, longest));
                if report.entity.is_object() {
                    // Nothing may overtake the object's own report.
                    self.objects.clear();
                    self.resources.clear();
                }
            }
        }
    }

    /// Sends no more: the sink's circuit is open. What is on its way still settles.
    pub(crate) fn halt(&mut self, reason: Reason) {
        self.objects.clear();
        self.resources.clear();
        self.failed.get_or_insert((reason, None));
    }

    /// What the delivery came to, once nothing is on its way and nothing is left to send.
    pub(crate) fn end(self) -> End {
        if let Some((reason, after)) = self.failed {
            let (refused, told, blame) = (self.refused.into(), self.told, Blame::Sink);
            return End { settle: None, outcome: Outcome::Retry { reason, after, blame, refused, told } };
        }
        if let Some(reason) = self.rejected {
            let refused = self.refused.into();
            let at = self.now;
            return End { settle: None, outcome: Outcome::Reject { reason, refused, at } };
        }
        let refetch = self.refetch;
        let outcome = if self.acked > 0 {
            Outcome::Acked { refetch }
        } else {
            let why = self.filtered.unwrap_or(Filtered::Unchanged);
            Outcome::Filtered { why, refetch, settled: self.settle.is_some() }
        };
        End { settle: self.settle, outcome }
    }
}

#[cfg(test)]
mod tests;
