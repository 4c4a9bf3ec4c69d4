//! Digests: what a receiver would compute from the keys that it was sent.

use std::collections::BTreeMap;

use pipeline_core::{Checkpoint, EntityId, Report, ReportKind, Shipment, Version};
use proptest::prelude::*;

use super::*;
use crate::Ledger;

const OBJECT: ReportKind = ReportKind::of_object("object");

pub(crate) fn report(n: usize, uid: &str, entity: EntityId, content: u64) -> Report {
    let key = Key::new("ns", &format!("app-{n}")).unwrap();
    let report = Report::new(key, uid.into(), Version(1), entity, OBJECT, Digest(content));
    Report { decision: Digest(content + 1), ..report }
}

/// A receiver that remembers the last key of every entity.
#[derive(Default)]
struct Receiver {
    keys: BTreeMap<(Key, EntityId), String>,
}

impl Receiver {
    fn take(&mut self, ledger: &Ledger, report: &Report) {
        let known = ledger.get(&report.key).filter(|record| record.uid == report.uid);
        let counter = known.map_or(0, |record| record.counter(report.entity));
        let shipment = Shipment::new(report.clone(), ledger.id(), "", counter);
        if report.ends {
            self.keys.retain(|(key, _), _| *key != report.key);
        } else {
            self.keys.insert((report.key.clone(), report.entity), shipment.idempotency_key.to_string());
        }
    }

    fn digests(&self, place: impl Fn(&Key) -> Option<u32>) -> BTreeMap<u32, AckedDigest> {
        let mut shards = BTreeMap::<u32, (std::collections::BTreeSet<&Key>, AckedDigest)>::new();
        for ((key, _), last) in &self.keys {
            let Some(shard) = place(key) else { continue };
            let (objects, sum) = shards.entry(shard).or_default();
            objects.insert(key);
            sum.entities += 1;
            let full = sha2::Sha256::digest(last.as_bytes());
            sum.digest ^= u128::from_be_bytes(full[..16].try_into().unwrap());
        }
        let count = |(objects, sum): (std::collections::BTreeSet<&Key>, AckedDigest)| AckedDigest {
            objects: objects.len() as u64,
            ..sum
        };
        shards.into_iter().map(|(shard, held)| (shard, count(held))).collect()
    }
}

fn place(key: &Key) -> Option<u32> {
    let number: u32 = key.name().trim_start_matches("app-").parse().unwrap();
    (number != 5).then_some(number % 2)
}

proptest! {
    #[test]
    fn the_digests_are_those_of_the_keys_that_were_sent(
        acts in prop::collection::vec((0..6_usize, 0..4_u64, 1..4_u64, 0..8_u8), 1..60),
    ) {
        let (ledger, mut receiver) = (Ledger::memory(), Receiver::default());
        for (n, id, content, act) in acts {
            let entity = if id == 0 { EntityId::OBJECT } else { EntityId(id) };
            let mut report = report(n, "a", entity, content);
            if act == 0 {
                (report.ends, report.entity) = (true, EntityId::OBJECT);
            }
            if act == 1 {
                // SendIntent, and never answered.
                ledger.update(&report.key, |record| Record::sending(record, &report, None));
                continue;
            }
            if act == 2 {
                prop_assert_eq!(ledger.digests(place), receiver.digests(place));
            }
            receiver.take(&ledger, &report);
            ledger.acknowledge(&report.key, &report);
            let of = ledger.digest(&report.key).map(|digest| (digest.entities, digest.digest));
            let only = |key: &Key| (*key == report.key).then_some(0);
            let expected = receiver.digests(only).remove(&0).map(|sum| (sum.entities, sum.digest));
            prop_assert_eq!(of, expected);
        }
        prop_assert_eq!(ledger.digests(place), receiver.digests(place));
        prop_assert_eq!(ledger.digests(|_| None), BTreeMap::new());
    }
}

#[test]
fn neither_a_resource_that_left_counts_nor_what_was_never_acknowledged() {
    let ledger = Ledger::memory();
    let key = Key::new("ns", "app-1").unwrap();
    let first = report(1, "a", EntityId::OBJECT, 1);
    ledger.update(&key, |record| Record::sending(record, &first, None));
    assert_eq!((ledger.digest(&key), ledger.digests(place)), (None, BTreeMap::new()));
    ledger.acknowledge(&key, &first);
    let alone = ledger.digest(&key).unwrap();
    ledger.acknowledge(&key, &report(1, "a", EntityId(3), 1));
    let both = ledger.digest(&key).unwrap();
    assert_eq!((both.entities, &*both.uid), (2, "a"));
    let settle = Checkpoint::new("a".into(), Version(1), "state".into());
    ledger.update(&key, |record| Some(Record::checkpoint(record, &settle)));
    assert_eq!(ledger.digest(&key), Some(alone.clone()));
    let back = report(1, "a", EntityId(3), 1);
    ledger.update(&key, |record| Record::sending(record, &back, None));
    assert_eq!(
        ledger.digest(&key),
        Some(alone),
        "it begins above what went, and nothing of it is acknowledged"
    );
    ledger.acknowledge(&key, &back);
    assert_eq!(ledger.digest(&key).unwrap().entities, 2);
    assert_ne!(ledger.digest(&key), Some(both), "its last key is another one");
}
