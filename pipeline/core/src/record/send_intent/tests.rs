//! Reports on their way: what a killed process knows of them at its next start.

use bytes::Bytes;

use super::*;
use crate::EntityId;
use crate::record::tests::{report, settle};

const RESOURCE: EntityId = EntityId(9);

fn end(uid: &str, version: u64) -> Report {
    Report { ends: true, ..report(uid, version, EntityId::OBJECT, 0) }
}

fn state() -> Bytes {
    Bytes::from_static(b"what the stage remembers")
}

/// A process that acknowledges `told` after each is sent, but the last; with what it had committed before.
fn killed(committed: Option<Record>, told: &[Report]) -> (Option<Record>, Option<Record>) {
    let (mut live, mut notes) = (committed.clone(), Vec::new());
    for (n, report) in told.iter().enumerate() {
        notes.extend(SendIntent::new(live.as_ref(), report, Some(&state())));
        live = Record::sending(live, report, Some(&state()));
        if n + 1 < told.len() {
            live = Record::acknowledge(live, report);
        }
    }
    (live, notes.iter().fold(committed, Record::resume))
}

#[test]
fn a_report_on_its_way_leaves_its_entity_in_doubt_until_it_is_acknowledged() {
    let first = report("a", 5, EntityId::OBJECT, 1);
    let sent = Record::sending(None, &first, Some(&state())).unwrap();
    assert_eq!(
        (sent.object().in_doubt, sent.object().counter, sent.version, &sent.state),
        (true, 0, Version(5), &state())
    );
    let sure = Record::acknowledge(Some(sent), &first).unwrap();
    assert_eq!((sure.is_in_doubt(), sure.object().counter, &sure.state), (false, 1, &state()));
    let in_doubt = Record::sending(Some(sure), &report("a", 5, RESOURCE, 2), None).unwrap();
    assert!(
        !in_doubt.object().in_doubt
            && in_doubt.entity(EntityId(9)).unwrap().in_doubt
            && in_doubt.is_in_doubt()
    );
}

#[test]
fn a_kill_loses_no_acknowledgement_that_a_later_report_of_the_entity_shows() {
    for entity in [EntityId::OBJECT, RESOURCE] {
        let told: Vec<Report> = (1..4).map(|content| report("a", 5, entity, content)).collect();
        let (live, resumed) = killed(None, &told);
        assert_eq!(live.unwrap().counter(entity), 2);
        let resumed = resumed.unwrap();
        assert_eq!(resumed.counter(entity), 2, "the next report has the key that it had");
        assert!(resumed.is_in_doubt());
        let content = resumed.entity(entity).unwrap().content;
        assert_eq!(content, Digest(2));
    }
}

#[test]
fn a_note_whose_report_was_acknowledged_and_committed_changes_nothing() {
    let first = report("a", 5, EntityId::OBJECT, 1);
    let note = SendIntent::new(None, &first, None).unwrap();
    let committed = Record::acknowledge(None, &first);
    assert_eq!(Record::resume(committed.clone(), &note), committed);
}

#[test]
fn an_object_whose_only_report_was_on_its_way_can_be_reported_as_deleted() {
    let (live, resumed) = killed(None, &[report("a", 5, EntityId::OBJECT, 1)]);
    assert_eq!(live, resumed);
    assert_eq!(resumed.unwrap().state, state());
    let (_, resumed) = killed(None, &[report("a", 5, EntityId::OBJECT, 1), end("a", 6)]);
    let resumed = resumed.unwrap();
    assert_eq!((resumed.object().in_doubt, resumed.object().counter, &resumed.state), (true, 1, &state()));
}

#[test]
fn an_end_on_its_way_leaves_an_object_in_doubt_and_makes_no_record() {
    let committed = Record::acknowledge(None, &report("a", 5, EntityId::OBJECT, 1));
    let (live, resumed) = killed(committed, &[end("a", 6)]);
    assert_eq!((live.as_ref().unwrap().object().in_doubt, resumed.clone()), (true, live));
    assert_eq!(killed(None, &[end("a", 6)]), (None, None));
    let gone = SendIntent::new(resumed.as_ref(), &end("a", 6), None).unwrap();
    assert_eq!(Record::resume(None, &gone), None, "its end was acknowledged and committed");
}

/// What the key of an end is made of, once it goes out; and the record then.
fn of_end(record: Option<Record>, content: u64) -> ((Digest, u64), Option<Record>) {
    let end = Report { content: Digest(content), ..end("a", 9) };
    let record = Record::sending(record, &end, None);
    let known = record.as_ref().unwrap();
    ((known.stay(), known.object().counter), record)
}

#[test]
fn an_end_is_told_again_as_the_same_however_it_is_told() {
    let settled = |version| {
        let told = report("a", version, EntityId::OBJECT, version);
        Record::checkpoint(Record::acknowledge(None, &told), &settle("a", version, &[]))
    };
    for before in [Some(settled(5)), Record::sending(None, &report("a", 5, EntityId::OBJECT, 1), None)] {
        let (first, record) = of_end(before, 1);
        let (stub, record) = of_end(record, 2);
        assert_eq!((stub, of_end(record.clone(), 1).0), (first, first));
        // It is back, and gone again before anybody answered.
        let back = Record::sending(record, &report("a", 8, EntityId::OBJECT, 8), None);
        assert_ne!(of_end(back, 1).0, first);
        // It was acknowledged, and another stay began with the very same.
        let (later, _) = of_end(Some(settled(8)), 1);
        assert_ne!(later, first);
    }
}

#[test]
fn an_end_is_told_again_as_the_same_after_a_kill_that_lost_the_delivery_before_it() {
    let told = |version| report("a", version, EntityId::OBJECT, version);
    let delivery = |version| settle("a", version, &[]);
    let committed = Record::checkpoint(Record::acknowledge(None, &told(5)), &delivery(5));
    let mut notes: Vec<_> = SendIntent::new(Some(&committed), &told(7), None).into_iter().collect();
    let live = Record::acknowledge(Record::sending(Some(committed.clone()), &told(7), None), &told(7));
    let live = Record::checkpoint(live, &delivery(7));
    notes.extend(SendIntent::new(Some(&live), &end("a", 9), None));
    let (first, _) = of_end(Some(live), 0);
    let resumed = notes.iter().fold(Some(committed), Record::resume);
    assert!(resumed.as_ref().unwrap().is_in_doubt());
    assert_eq!(of_end(resumed, 4).0, first);
}

#[test]
fn a_later_life_takes_the_place_of_the_former_and_an_earlier_one_does_not() {
    let committed = Record::acknowledge(None, &report("a", 5, EntityId::OBJECT, 1));
    let told = [end("a", 6), report("b", 7, EntityId::OBJECT, 2)];
    let (live, resumed) = killed(committed.clone(), &told);
    assert_eq!(resumed, live);
    assert_eq!(&*live.unwrap().uid, "b");
    let unended = Record::sending(committed.clone(), &told[1], Some(&state())).unwrap();
    assert_eq!((&*unended.uid, unended.object().counter, &unended.state), ("b", 0, &state()));
    let late = report("z", 4, EntityId::OBJECT, 2);
    assert_eq!(Record::sending(committed.clone(), &late, None), committed);
}

#[test]
fn the_newest_note_of_an_entity_stands_for_the_earlier_ones() {
    let (mut live, mut notes) = (None, Vec::new());
    for report in [report("a", 5, EntityId::OBJECT, 1), report("a", 6, EntityId::OBJECT, 2), end("a", 7)] {
        notes.extend(SendIntent::new(live.as_ref(), &report, Some(&state())));
        live = Record::acknowledge(Record::sending(live, &report, Some(&state())), &report);
    }
    let all = notes.iter().fold(None, Record::resume);
    let newest = notes.clone().into_iter().reduce(|earlier, mut later| {
        later.follows(earlier);
        later
    });
    assert_eq!(Record::resume(None, &newest.unwrap()), all);
    assert_eq!(all.unwrap().object().counter, 2);
}

#[test]
fn what_was_acknowledged_as_a_whole_before_a_first_commit_is_known_after_a_kill_by_its_version() {
    let told = |version| report("a", version, EntityId::OBJECT, version);
    let killed = |settled: &[u64]| {
        let (mut live, mut notes) = (None, Vec::new());
        for version in settled {
            notes.extend(SendIntent::new(live.as_ref(), &told(*version), Some(&state())));
            let acknowledged = Record::acknowledge(live, &told(*version));
            live = Some(Record::checkpoint(acknowledged, &settle("a", *version, &[])));
        }
        notes.extend(SendIntent::new(live.as_ref(), &told(9), Some(&state())));
        let resumed = notes.iter().fold(None, Record::resume).unwrap();
        (resumed.settled, resumed.version)
    };
    assert_eq!(killed(&[5, 8]), (Settled::Unwritten, Version(8)));
    assert_eq!(killed(&[]), (Settled::Never, Version(9)), "it may not have arrived");
}

#[test]
fn notes_say_which_ends_of_operations_were_told_since_the_last_commit() {
    let (mut live, mut notes) = (None, Vec::new());
    for operation in 1..=4 {
        let report = Report { fact: Some(Digest(operation)), ..report("a", 5, EntityId::OBJECT, operation) };
        notes.extend(SendIntent::new(live.as_ref(), &report, None));
        live = Record::acknowledge(Record::sending(live, &report, None), &report);
    }
    let told: Vec<Digest> = notes.iter().flat_map(SendIntent::facts).collect();
    assert_eq!(told, [1, 2, 3].map(Digest), "the fourth may not have been");
    let both = |earlier: SendIntent, mut later: SendIntent| {
        later.follows(earlier);
        later
    };
    let newest = notes.clone().into_iter().reduce(both).unwrap();
    assert_eq!(newest.facts().collect::<Vec<_>>(), told);
    let again = both(newest.clone(), notes[3].clone());
    assert_eq!(again.facts().collect::<Vec<_>>(), told, "each once");
    let other = both(newest.clone(), SendIntent { uid: "b".into(), ..notes[0].clone() });
    assert_eq!(other.facts().count(), 0, "they are another life's");
    let many = (0..1000)
        .fold(newest, |sent, n| both(sent, SendIntent { fact: Digest(100 + n), ..notes[3].clone() }));
    assert_eq!((many.facts().count(), many.facts().last()), (REPORTED + 1, Some(Digest(1099))));
}

#[test]
fn doubt_spares_nothing() {
    let mut record = Record::acknowledge(None, &report("a", 5, RESOURCE, 1)).unwrap();
    record.doubt();
    assert!(record.object().in_doubt && record.entity(EntityId(9)).unwrap().in_doubt);
}

/// A record of which the bus has no room for the resources, and one whose rows went after the notes were written.
#[test]
fn a_note_of_a_row_that_went_moves_nothing_unless_it_is_newer() {
    let first = report("a", 5, RESOURCE, 1);
    let known = Record::acknowledge(None, &first).unwrap();
    let note = SendIntent::new(Some(&known), &report("a", 6, RESOURCE, 2), None).unwrap();
    let cut = known.clone().without_listed();
    assert_eq!(
        (cut.floor, cut.counter(RESOURCE)),
        (2, 2),
        "above the counter under which the note's report went"
    );
    assert_eq!(Record::resume(Some(cut.clone()), &note), Some(cut.clone()));

    // It went on in memory, was acknowledged twice more, and was killed before it could be written again.
    let later = Record::acknowledge(Some(known), &report("a", 6, RESOURCE, 2));
    let newer = SendIntent::new(later.as_ref(), &report("a", 7, RESOURCE, 3), None).unwrap();
    let resumed = Record::resume(Some(cut.clone()), &newer).unwrap();
    let row = resumed.entity(EntityId(9)).unwrap();
    assert_eq!((row.counter, row.content, row.in_doubt), (2, Digest(2), true));
    assert_eq!(row.unacked, Unacked { content: Digest(3), skipped: 0 });

    // One that begins above the floor, and that nobody answered.
    let anew = SendIntent::new(Some(&cut), &report("a", 8, RESOURCE, 4), None).unwrap();
    let resumed = Record::resume(Some(cut), &anew).unwrap();
    let row = resumed.entity(EntityId(9)).unwrap();
    assert_eq!((row.counter, row.content, row.unacked.skipped), (2, Digest::NONE, 0));
}

/// The counters that reports of these contents go out with, none of which is answered.
fn unacked(contents: &[u64], entity: EntityId) -> (Vec<u64>, Record) {
    let first = report("a", 5, entity, 1);
    let mut record = Record::acknowledge(None, &first);
    let mut counters = Vec::new();
    for content in contents {
        record = Record::sending(record, &report("a", 6, entity, *content), None);
        counters.push(record.as_ref().unwrap().counter(entity));
    }
    (counters, record.unwrap())
}

#[test]
fn a_content_that_comes_back_after_another_that_was_not_answered_has_another_key() {
    for entity in [EntityId::OBJECT, RESOURCE] {
        assert_eq!(unacked(&[2, 2], entity).0, [1, 1], "a retry has the key that it had");
        let (counters, record) = unacked(&[2, 3, 3, 2], entity);
        assert_eq!(counters, [1, 2, 2, 3]);
        let acked = Record::acknowledge(Some(record), &report("a", 7, entity, 2)).unwrap();
        assert_eq!((acked.counter(entity), acked.is_in_doubt()), (4, false));
        let unacked = acked.entity(entity).unwrap().unacked;
        assert_eq!(unacked, Unacked::default());
    }
}

#[test]
fn a_kill_keeps_what_was_not_answered() {
    let first = report("a", 5, EntityId::OBJECT, 1);
    let committed = Record::acknowledge(None, &first);
    let (mut live, mut notes) = (committed.clone(), Vec::new());
    for content in [2, 3] {
        let report = report("a", 6, EntityId::OBJECT, content);
        notes.extend(SendIntent::new(live.as_ref(), &report, None));
        live = Record::sending(live, &report, None);
    }
    let resumed = notes.iter().fold(committed, Record::resume).unwrap();
    assert_eq!(
        (resumed.object().counter, resumed.object().unacked),
        (2, Unacked { content: Digest(3), skipped: 1 })
    );
    assert_eq!(Some(resumed), live);
}
