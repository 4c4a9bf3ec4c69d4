//! What the platform remembers of the reports it took.

use std::collections::{HashMap, HashSet, VecDeque};

use bytes::Bytes;

use super::held::LastKeys;
use super::wire::{EntityName, Parsed};

/// Counts of everything that came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Requests of any kind.
    pub posts: u64,
    /// Of those, batches.
    pub batches: u64,
    /// Reports that were taken, duplicates not among them.
    pub taken: u64,
    /// Of those, reports of applications.
    pub applications: u64,
    /// Of those, reports of resources.
    pub resources: u64,
    /// Reports whose `Idempotency-Key` had been taken before.
    pub duplicates: u64,
    /// Reports that came without an `Idempotency-Key`.
    pub without_key: u64,
    /// Reports of an application's older state after a newer one.
    pub out_of_order: u64,
    /// Reports of a resource's older state after a newer one.
    pub resources_out_of_order: u64,
    /// Reports of an epoch that a higher one of the same application had followed, refused for it.
    pub stale_refused: u64,
    /// Requests that were answered with a fault.
    pub spoilt: u64,
    /// Requests that are no report: not gzipped JSON by its headers or its bytes, no object.
    pub malformed: u64,
    /// Requests without the right token.
    pub unauthorized: u64,
    /// Bytes of bodies, zipped.
    pub bytes: u64,
}

impl Totals {
    /// What no reporter may do, a line each.
    #[must_use]
    pub fn wrong(&self) -> Vec<String> {
        let counts = [
            (self.out_of_order, "reports of an application's older state came after a newer one"),
            (self.resources_out_of_order, "reports of a resource's older state came after a newer one"),
            (self.without_key, "reports came without an idempotency key"),
            (self.malformed, "requests were no reports"),
            (self.unauthorized, "requests came without the token"),
        ];
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect()
    }
}

/// The last report of one entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Last {
    /// How many reports of it were taken.
    pub reports: u64,
    /// `metadata.uid` of the object.
    pub uid: String,
    /// How often the versions of its cluster had gone back: of a later era each is newer.
    pub era: u64,
    /// `metadata.resourceVersion` of the object.
    pub version: Option<u64>,
    /// The payload, where bodies are kept.
    pub payload: Option<Bytes>,
}

/// One kept report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptReport {
    /// Its `Idempotency-Key`.
    pub key: Option<String>,
    /// What it is about.
    pub entity: EntityName,
    /// The payload: what stood under `data`.
    pub payload: Bytes,
}

/// How much of the payloads is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Keep {
    /// The last payload of every entity.
    pub last: bool,
    /// So many reports in the order they came; older ones go.
    pub reports: usize,
}

#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) totals: Totals,
    pub(super) keep: Keep,
    pub(super) keys: HashSet<u128>,
    pub(super) last: HashMap<EntityName, Last>,
    pub(super) kept: VecDeque<KeptReport>,
    pub(super) held: LastKeys,
    /// Keys of reports that were refused for their epoch.
    pub(super) stale: HashSet<u128>,
    /// The highest epoch of each application, by namespace and name.
    pub(super) epochs: HashMap<(String, String), u64>,
}

impl Tally {
    /// Whether a report may be taken by its epoch; one without an epoch always may.
    pub(super) fn admit(&mut self, parsed: &Parsed, epoch: Option<u64>, key: Option<&str>) -> bool {
        let Some(epoch) = epoch else { return true };
        let EntityName { app_namespace, app_name, .. } = &parsed.entity;
        let highest = self.epochs.entry((app_namespace.clone(), app_name.clone())).or_default();
        if epoch >= *highest {
            *highest = epoch;
        } else {
            self.totals.stale_refused += 1;
            self.stale.extend(key.map(short));
            return false;
        }
        true
    }

    /// Takes a report of an object in an era of its cluster; whether it is a duplicate.
    pub(super) fn take(&mut self, parsed: &Parsed, era: u64, key: Option<&str>, payload: &str) -> bool {
        if let Some(key) = key {
            if !self.keys.insert(short(key)) {
                self.totals.duplicates += 1;
                return true;
            }
        } else {
            self.totals.without_key += 1;
        }
        self.totals.taken += 1;
        let ends = parsed.entity.resource.is_none() && parsed.ends;
        self.held.take(parsed, key.unwrap_or_default(), ends);
        let of_application = parsed.entity.resource.is_none();
        if of_application {
            self.totals.applications += 1;
        } else {
            self.totals.resources += 1;
        }
        let text =
            (self.keep.last || self.keep.reports > 0).then(|| Bytes::copy_from_slice(payload.as_bytes()));
        let payload = text.clone().filter(|_| self.keep.last);
        match self.last.get_mut(&parsed.entity) {
            Some(last) => {
                let versions = last.version.zip(parsed.version);
                let older = last.uid == parsed.uid
                    && versions.is_some_and(|(before, now)| (era, now) < (last.era, before));
                if older && of_application {
                    self.totals.out_of_order += 1;
                } else if older {
                    self.totals.resources_out_of_order += 1;
                }
                last.reports += 1;
                if last.uid != parsed.uid {
                    last.uid.clone_from(&parsed.uid);
                }
                (last.era, last.version, last.payload) = (era, parsed.version, payload);
            }
            None => {
                let (uid, version) = (parsed.uid.clone(), parsed.version);
                let last = Last { reports: 1, uid, era, version, payload };
                self.last.insert(parsed.entity.clone(), last);
            }
        }
        if let Some(payload) = text.filter(|_| self.keep.reports > 0) {
            let key = key.map(str::to_owned);
            self.kept.push_back(KeptReport { key, entity: parsed.entity.clone(), payload });
            while self.kept.len() > self.keep.reports {
                self.kept.pop_front();
            }
        }
        false
    }

    /// Whether a report under this key was refused for its epoch.
    pub(super) fn is_stale(&self, key: &str) -> bool {
        self.stale.contains(&short(key))
    }

    /// A report under this key is none that was taken.
    pub(super) fn forget_key(&mut self, key: &str) {
        self.keys.remove(&short(key));
    }
}

/// 128 bits of a key: its own first 32 hexadecimal digits, or a digest of anything else.
fn short(key: &str) -> u128 {
    match key.get(..32).and_then(|hex| u128::from_str_radix(hex, 16).ok()) {
        Some(bits) if key.len() == 64 => bits,
        _ => u128::from(pipeline_core::Digest::of(key.as_bytes()).0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_must_be_nought_are_told() {
        assert_eq!(Totals { taken: 9, duplicates: 3, ..Totals::default() }.wrong(), [""; 0]);
        let totals = Totals { out_of_order: 2, malformed: 1, ..Totals::default() };
        assert_eq!(
            totals.wrong(),
            [
                "2 reports of an application's older state came after a newer one",
                "1 requests were no reports"
            ]
        );
    }
}
