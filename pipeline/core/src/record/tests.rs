use bytes::Bytes;

use super::*;
use crate::{Key, ReportKind, Shipment};

const OBJECT: ReportKind = ReportKind::of_object("object");

pub(super) fn report(uid: &str, version: u64, entity: EntityId, content: u64) -> Report {
    let key = Key::new("ns", "store").unwrap();
    let report = Report::new(key, uid.into(), Version(version), entity, OBJECT, Digest(content));
    Report { decision: Digest(content + 100), ..report }
}

pub(super) fn settle(uid: &str, version: u64, present: &[u64]) -> Checkpoint {
    let present = present.iter().copied().map(EntityId).collect();
    Checkpoint { fact: Digest(7), present, ..Checkpoint::new(uid.into(), Version(version), "state".into()) }
}

#[test]
fn an_acknowledgement_moves_only_its_own_entity() {
    let record = Record::acknowledge(None, &report("a", 5, EntityId::OBJECT, 1)).unwrap();
    let record = Record::acknowledge(Some(record), &report("a", 5, EntityId(9), 2)).unwrap();
    assert_eq!((record.object().content, record.object().counter), (Digest(1), 1));
    assert_eq!(record.listed().count(), 1);
    let row = record.entity(EntityId(9)).unwrap();
    assert_eq!((row.content, row.decision, row.counter), (Digest(2), Digest(102), 1));
    assert_eq!(record.settled, Settled::Never, "the object's decision moves last");
}

#[test]
fn the_version_of_a_settled_record_moves_only_with_its_delivery() {
    let first = Record::acknowledge(None, &report("a", 5, EntityId::OBJECT, 1));
    assert_eq!(first.as_ref().unwrap().version, Version(5), "tells a life from an earlier one");
    let settled = Record::checkpoint(first, &settle("a", 5, &[]));
    let begun = Record::acknowledge(Some(settled), &report("a", 8, EntityId::OBJECT, 2)).unwrap();
    assert_eq!(begun.version, Version(5), "the delivery at 8 is not acknowledged as a whole");
    assert_eq!(Record::checkpoint(Some(begun), &settle("a", 8, &[])).version, Version(8));
}

/// A watch that goes on from an older version shows an older state first, and the newest may have gone out before a kill.
#[test]
fn what_is_settled_first_of_an_older_state_leaves_all_that_followed_it_to_be_told() {
    let newest = Record::sending(None, &report("a", 8, EntityId::OBJECT, 2), None);
    assert_eq!(newest.as_ref().unwrap().version, Version(8));
    let older = Record::acknowledge(newest.clone(), &report("a", 5, EntityId::OBJECT, 1));
    let settled = Record::checkpoint(older, &settle("a", 5, &[]));
    assert_eq!((settled.version, settled.settled), (Version(5), Settled::Now));
    // A kill that lost all but the notes knows that as well.
    let next = report("a", 6, EntityId::OBJECT, 3);
    let note = SendIntent::new(Some(&settled), &next, None).unwrap();
    let killed = Record::resume(newest, &note).unwrap();
    assert_eq!((killed.version, killed.settled), (Version(5), Settled::Unwritten));
}

#[test]
fn what_is_settled_of_an_older_state_leaves_a_newer_one_to_be_looked_at() {
    let newer = Record::checkpoint(None, &settle("a", 8, &[]));
    let settled = Record::checkpoint(Some(newer), &settle("a", 5, &[]));
    assert_eq!((settled.version, settled.settled), (Version(8), Settled::Before));
    assert!(Record::checkpoint(Some(settled), &settle("a", 8, &[])).is_settled());
}

#[test]
fn another_life_begins_anew_and_an_end_forgets_only_its_own() {
    let old = Record::acknowledge(None, &report("a", 5, EntityId::OBJECT, 1));
    let new = Record::acknowledge(old, &report("b", 9, EntityId::OBJECT, 1)).unwrap();
    assert_eq!((&*new.uid, new.object().counter), ("b", 1));
    let mut end = report("a", 6, EntityId::OBJECT, 3);
    end.ends = true;
    let kept = Record::acknowledge(Some(new), &end);
    assert_eq!(kept.as_ref().map(|record| &*record.uid), Some("b"));
    end.uid = "b".into();
    assert_eq!(Record::acknowledge(kept, &end), None);
}

#[test]
fn a_resource_that_left_is_forgotten_and_counts_on_when_it_is_back() {
    let entity = EntityId(9);
    let mut incomplete = report("a", 5, entity, 2);
    incomplete.incomplete = true;
    let record = Record::checkpoint(Record::acknowledge(None, &incomplete), &settle("a", 5, &[9]));
    assert!(record.is_incomplete());
    let record = Record::checkpoint(Some(record), &settle("a", 6, &[]));
    assert!(!record.is_incomplete() && record.listed().count() == 0);
    let again = record.counter(entity);
    assert!(again >= 1, "the key of its first report is not given to another");
    let sent = Record::sending(Some(record), &report("a", 7, entity, 2), None);
    let back = Record::acknowledge(sent, &report("a", 7, entity, 2)).unwrap();
    assert_eq!((back.counter(entity), back.listed().count()), (again + 1, 1));
}

/// Else a life that a restored store shows again would have the keys of its former reports, however often it was reported.
#[test]
fn no_counter_of_one_era_reaches_those_of_the_next() {
    let resource = EntityId(9);
    for often in [(1 << 24) - 1, u32::MAX.into()] {
        let row = EntityRow { id: EntityId(9), counter: often, ..EntityRow::default() };
        let own = EntityRow { counter: often, ..EntityRow::default() };
        let mut before = Record { entities: vec![own, row], ..Record::new("a".into()) };
        for era in 1..=Version::LAST_ERA {
            before = Record::acknowledge(Some(before), &report("a", 5, EntityId::OBJECT, 1)).unwrap();
            before.forget(|_| true);
            let counters = [EntityId::OBJECT, resource].map(|entity| before.counter(entity));
            let after = Record::begun("a".into(), Version(1).in_era(era));
            for entity in [EntityId::OBJECT, resource] {
                let first = after.counter(entity);
                assert!(counters.iter().all(|used| *used < first), "{counters:?}, then {first} in {era}");
            }
            let row = EntityRow { id: EntityId(9), counter: after.floor + often, ..EntityRow::default() };
            let own = EntityRow { counter: after.floor + often, ..EntityRow::default() };
            before = Record { entities: vec![own, row], ..after };
        }
        assert_eq!(Record::counted(before.object().counter), often);
    }
}

/// Jobs and workflows have names that never come back.
#[test]
fn a_record_does_not_grow_with_the_resources_that_left() {
    let mut record = None;
    let mut keys = std::collections::BTreeSet::new();
    for delivery in 0..10_000_u64 {
        let entity = EntityId(delivery / 2 % 1_500);
        let report = report("a", delivery, entity, delivery % 3);
        record = Record::sending(record, &report, None);
        let counter = record.as_ref().map_or(0, |record| record.counter(entity));
        assert!(keys.insert((entity, counter, report.content)), "delivery {delivery} repeats a key");
        let answered = if delivery % 7 == 0 { record } else { Record::acknowledge(record, &report) };
        // Every other delivery nothing is left.
        let present: &[u64] = if delivery % 2 == 0 { &[delivery / 2 % 1_500] } else { &[] };
        record = Some(Record::checkpoint(answered, &settle("a", delivery, present)));
        let rows = record.as_ref().map_or(0, |record| record.listed().count());
        assert!(rows <= 1, "{rows} rows after delivery {delivery}, of one resource at a time");
    }
}

#[test]
fn what_was_not_sent_moves_its_decision_and_not_its_counter() {
    let first = Record::acknowledge(None, &report("a", 5, EntityId(9), 2));
    let mut delivery = settle("a", 6, &[9]);
    delivery.unsent = vec![(EntityId(9), Digest(55), true)];
    let record = Record::checkpoint(first, &delivery);
    let row = record.entity(EntityId(9)).unwrap();
    assert_eq!((row.decision, row.content, row.counter, row.incomplete), (Digest(55), Digest(2), 1, true));
}

#[test]
fn an_acknowledged_end_of_an_operation_moves_the_record_at_once() {
    let showing = |fact| Report { fact, ..report("a", 5, EntityId::OBJECT, 1) };
    let record = Record::acknowledge(None, &showing(Some(Digest(3)))).unwrap();
    assert_eq!(record.fact, Digest(3));
    let record = Record::acknowledge(Some(record), &showing(None)).unwrap();
    assert_eq!(record.fact, Digest(3), "only a settled delivery forgets it");
    assert_eq!(Record::checkpoint(Some(record), &settle("a", 5, &[])).fact, Digest(7));
}

#[test]
fn what_happens_once_has_one_key() {
    let key = |report: &Report, counter| Shipment::new(report.clone(), "l", "s", counter).idempotency_key;
    let of = |content| report("a", 5, EntityId::OBJECT, content);
    let end = |content| Report { ends: true, ..of(content) };
    assert_eq!(key(&end(1), 0), key(&end(2), 7), "the end of a life");
    assert_ne!(key(&end(1), 0), key(&Report { uid: "b".into(), ..end(1) }, 0));
    let of_stay = |stay, content| Report { fact: Some(Digest(stay)), ..end(content) };
    assert_eq!(key(&of_stay(3, 1), 7), key(&of_stay(3, 2), 7), "the end of a stay");
    for other in [key(&of_stay(4, 1), 7), key(&of_stay(3, 1), 8), key(&end(1), 7)] {
        assert_ne!(key(&of_stay(3, 1), 7), other);
    }
    let operation = |digest, content| Report { fact: Some(Digest(digest)), ..of(content) };
    assert_ne!(key(&operation(3, 1), 0), key(&of_stay(3, 1), 0));
    assert_eq!(key(&operation(3, 1), 0), key(&operation(3, 2), 7), "the end of an operation");
    assert_ne!(key(&operation(3, 1), 0), key(&operation(4, 1), 0));
    let state = of(1);
    assert_ne!(key(&operation(3, 1), 0), key(&state, 0));
    assert_eq!(*key(&state, 4), *crate::idempotency_key("l", "s", "a", EntityId::OBJECT, 4, Digest(1)),);
}

#[test]
fn an_idempotency_key_is_the_same_text_in_every_version() {
    let key = crate::idempotency_key("l", "s", "a", EntityId::OBJECT, 4, Digest(1));
    assert_eq!(key, "f138eaec90e7fcd9405a97b13df25229ebab70fc8ee729bb3bf853dad5bea5d0");
}

#[test]
fn an_idempotency_key_is_repeated_for_the_same_content_alone() {
    let key = |report: Report, ledger: &str, sink: &str, counter: u64| {
        Shipment::new(report, ledger, sink, counter).idempotency_key
    };
    let of = |content| report("a", 5, EntityId::OBJECT, content);
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
        key(report("b", 5, EntityId::OBJECT, 1), "ledger", "platform", 0),
        key(report("a", 5, EntityId(1), 1), "ledger", "platform", 0),
    ] {
        assert_ne!(first, other);
    }
}

/// Else a return to the settled state would look like no change, and the receiver would keep what came between.
#[test]
fn between_a_report_and_its_delivery_no_state_counts_as_reported() {
    let first = report("a", 5, EntityId::OBJECT, 1);
    let of = |version, state| Checkpoint { state: Bytes::from_static(state), ..settle("a", version, &[9]) };
    let settled = Record::checkpoint(Record::acknowledge(None, &first), &of(5, b"one"));
    assert_eq!((settled.settled, &*settled.state), (Settled::Now, b"one".as_slice()));
    let cut = Record::acknowledge(Some(settled), &report("a", 8, EntityId::OBJECT, 2)).unwrap();
    assert_eq!(cut.settled, Settled::Before);
    assert!(!cut.is_settled());
    let cut = Record::acknowledge(Some(cut), &report("a", 8, EntityId(9), 3)).unwrap();
    assert_eq!((cut.settled, &*cut.state), (Settled::Before, b"one".as_slice()));
    let settled = Record::checkpoint(Some(cut), &of(9, b"two"));
    assert_eq!((settled.settled, &*settled.state), (Settled::Now, b"two".as_slice()));
}

fn end(second: u64) -> Fact {
    Fact { id: Digest(second), body: Bytes::new() }
}

#[test]
fn facts_are_told_but_for_the_one_that_was_told_last() {
    let (third, second, first) = (end(3), end(2), end(1));
    let all = [first.clone(), second.clone(), third.clone()];
    let untold = |record: Option<&Record>| Record::unreported(record, &all).collect::<Vec<_>>();
    assert_eq!(untold(None), [&first, &second, &third]);
    let begun = Record::new("a".into());
    assert_eq!(untold(Some(&begun)), [&first, &second, &third]);
    let shows = |end: &Fact| Report { fact: Some(end.id), ..report("a", 5, EntityId::OBJECT, 1) };
    // A read may have shown the second before the watch showed the first, whatever came of the delivery that told it.
    let told = Record::acknowledge(Some(begun.clone()), &shows(&second)).unwrap();
    assert_eq!(untold(Some(&told)), [&first, &third]);
    let settled = Checkpoint { fact: second.id, ..settle("a", 5, &[]) };
    assert_eq!(untold(Some(&Record::checkpoint(None, &settled))), [&first, &third]);
    let other = Record::acknowledge(Some(begun), &shows(&end(9))).unwrap();
    assert_eq!(untold(Some(&other)), [&first, &second, &third]);
}

#[test]
fn a_delivery_whose_acknowledgements_a_killed_process_lost_is_not_settled() {
    let second = end(2);
    let state = Checkpoint { fact: second.id, ..settle("a", 5, &[]) };
    let committed =
        Record::checkpoint(Record::acknowledge(None, &report("a", 2, EntityId::OBJECT, 1)), &state);
    let told = Report { fact: Some(end(3).id), ..report("a", 8, EntityId::OBJECT, 2) };
    let cut = Record::acknowledge(Some(committed.clone()), &told).unwrap();
    let noted = SendIntent::new(Some(&cut), &report("a", 8, EntityId::OBJECT, 3), None).unwrap();
    let resumed = Record::resume(Some(committed), &noted).unwrap();
    assert_eq!((resumed.settled, resumed.version), (Settled::Before, Version(5)));
    assert_eq!((resumed.fact, resumed.is_settled()), (end(3).id, false));
}

#[test]
fn the_version_of_what_was_acknowledged_before_a_report_went_out_outlives_a_kill() {
    let told = |version, content| report("a", version, EntityId::OBJECT, content);
    let committed = Record::checkpoint(Record::acknowledge(None, &told(5, 1)), &settle("a", 5, &[]));
    let live = Record::acknowledge(Some(committed.clone()), &told(8, 2));
    let live = Record::checkpoint(live, &settle("a", 8, &[]));
    let noted = SendIntent::new(Some(&live), &told(9, 3), None).unwrap();
    let resumed = Record::resume(Some(committed), &noted).unwrap();
    assert_eq!((resumed.settled, resumed.version), (Settled::Before, Version(8)));
}
