use bytes::Bytes;

use super::*;
use crate::{Key, ReportKind, Shipment};

fn report(uid: &str, version: u64, entity: Entity, content: u64) -> Report {
    Report {
        key: Key::new("argocd", "store").unwrap(),
        uid: uid.into(),
        version: Version(version),
        entity,
        kind: ReportKind::App,
        decision: Digest(content + 100),
        content: Digest(content),
        owed: false,
        ends: false,
        body: Bytes::new(),
        trace: 0,
    }
}

fn settle(uid: &str, version: u64, present: &[u64]) -> Settle {
    Settle {
        uid: uid.into(),
        version: Version(version),
        sections: Sections::default(),
        healthy: true,
        operation: Digest(7),
        owed: false,
        unsent: Vec::new(),
        present: present.iter().copied().map(EntityId).collect(),
        stub: Stub::default(),
    }
}

#[test]
fn an_acknowledgement_moves_only_its_own_entity() {
    let record = Record::acknowledge(None, &report("a", 5, Entity::Application, 1)).unwrap();
    let record =
        Record::acknowledge(Some(record), &report("a", 5, Entity::Resource(EntityId(9)), 2)).unwrap();
    assert_eq!((record.content, record.counter), (Digest(1), 1));
    assert_eq!(record.resources.len(), 1);
    let row = record.resource(EntityId(9)).unwrap();
    assert_eq!((row.content, row.decision, row.counter), (Digest(2), Digest(102), 1));
    assert_eq!(record.sections, None, "the application's decision moves last");
}

#[test]
fn the_version_of_a_settled_record_moves_only_with_its_round() {
    let first = Record::acknowledge(None, &report("a", 5, Entity::Application, 1));
    assert_eq!(first.as_ref().unwrap().version, Version(5), "tells a life from an earlier one");
    let settled = Record::settle(first, &settle("a", 5, &[]));
    let begun = Record::acknowledge(Some(settled), &report("a", 8, Entity::Application, 2)).unwrap();
    assert_eq!(begun.version, Version(5), "the round at 8 is not acknowledged as a whole");
    assert_eq!(Record::settle(Some(begun), &settle("a", 8, &[])).version, Version(8));
}

#[test]
fn another_life_begins_anew_and_an_end_forgets_only_its_own() {
    let old = Record::acknowledge(None, &report("a", 5, Entity::Application, 1));
    let new = Record::acknowledge(old, &report("b", 9, Entity::Application, 1)).unwrap();
    assert_eq!((&*new.uid, new.counter), ("b", 1));
    let mut end = report("a", 6, Entity::Application, 3);
    end.ends = true;
    let kept = Record::acknowledge(Some(new), &end);
    assert_eq!(kept.as_ref().map(|record| &*record.uid), Some("b"));
    end.uid = "b".into();
    assert_eq!(Record::acknowledge(kept, &end), None);
}

#[test]
fn a_resource_that_left_keeps_its_counter_and_is_no_longer_owed() {
    let mut owed = report("a", 5, Entity::Resource(EntityId(9)), 2);
    owed.owed = true;
    let record = Record::settle(Record::acknowledge(None, &owed), &settle("a", 5, &[9]));
    assert!(record.is_owed());
    let record = Record::settle(Some(record), &settle("a", 6, &[]));
    assert!(!record.is_owed());
    assert_eq!(record.counter(Entity::Resource(EntityId(9))), 1);
    let again = Record::acknowledge(Some(record), &report("a", 7, Entity::Resource(EntityId(9)), 2)).unwrap();
    assert_eq!(again.counter(Entity::Resource(EntityId(9))), 2);
    assert!(!again.resource(EntityId(9)).unwrap().gone);
}

#[test]
fn what_was_not_sent_moves_its_decision_and_not_its_counter() {
    let first = Record::acknowledge(None, &report("a", 5, Entity::Resource(EntityId(9)), 2));
    let mut round = settle("a", 6, &[9]);
    round.unsent = vec![(EntityId(9), Digest(55), true)];
    let record = Record::settle(first, &round);
    let row = record.resource(EntityId(9)).unwrap();
    assert_eq!((row.decision, row.content, row.counter, row.owed), (Digest(55), Digest(2), 1, true));
}

#[test]
fn an_idempotency_key_is_repeated_for_the_same_content_alone() {
    let key = |report: Report, ledger: &str, sink: &str, counter: u32| {
        Shipment::new(report, ledger, sink, counter).idempotency_key
    };
    let of = |content| report("a", 5, Entity::Application, content);
    let first = key(of(1), "ledger", "platform", 0);
    assert_eq!(first.len(), 64);
    assert_eq!(first, key(of(1), "ledger", "platform", 0), "a retry");
    let mut later = of(1);
    later.version = Version(6);
    assert_eq!(first, key(later, "ledger", "platform", 0), "a retry built from a newer state, same content");
    for other in [
        key(of(2), "ledger", "platform", 0),
        key(of(1), "other", "platform", 0),
        key(of(1), "ledger", "file", 0),
        key(of(1), "ledger", "platform", 1),
        key(report("b", 5, Entity::Application, 1), "ledger", "platform", 0),
        key(report("a", 5, Entity::Resource(EntityId(1)), 1), "ledger", "platform", 0),
    ] {
        assert_ne!(first, other);
    }
}
