//! What was told is journaled no more, whoever asks, and goes in the commit that moves its record.

use std::collections::HashSet;
use std::fs;
use std::time::Duration;

use futures::FutureExt as _;
use pipeline_core::{Cause, Checkpoint, EntityId, Record, Report, Shipment, Version};

use super::*;
use crate::digests::tests::report;
use crate::hostile_tests::fast_folder;
use crate::intent_file::path_of;
use crate::intent_log::tests::an_intent;
use crate::simulated::Disk;
use crate::tables::Tables;
use crate::tests::{key, open, slow};
use crate::{LedgerOptions, Origin};

type End = (Uid, Version, Fact);

fn end(uid: &str, n: u64) -> End {
    let end = Fact { id: Digest(n), body: "done".into() };
    (uid.into(), Version(n), end)
}

fn pending(ends: &[End], gone: &[(&str, u64)]) -> Option<Pending> {
    let gone = gone.iter().map(|(uid, version)| ((*uid).into(), Version(*version))).collect();
    Some(Pending { facts: ends.to_vec(), gone })
}

fn settle(uid: &str, fact: Digest) -> Checkpoint {
    Checkpoint { fact, ..Checkpoint::new(uid.into(), Version(9), "state".into()) }
}

fn last(uid: &str) -> Report {
    Report { ends: true, ..report(1, uid, EntityId::OBJECT, 0) }
}

#[test]
fn a_settled_delivery_strikes_what_it_told_and_nothing_else() {
    let ledger = Ledger::memory();
    let ends = [end("a", 1), end("b", 1), end("b", 2), end("b", 3), end("b", 4)];
    assert!(ledger.journal(&key(1), pending(&ends, &[("a", 1)])));
    ledger.checkpoint(&key(1), &settle("b", ends[3].2.id), &[ends[1].2.clone(), ends[2].2.clone()]);
    let left = pending(&[ends[0].clone(), ends[4].clone()], &[("a", 1)]).unwrap();
    assert_eq!(ledger.journaled(), [(key(1), left.clone())]);
    let expected = Record::checkpoint(None, &settle("b", ends[3].2.id));
    assert_eq!(ledger.get(&key(1)), Some(expected));

    assert!(ledger.journal(&key(1), pending(&ends, &[("a", 1)])), "the lane has not heard of it yet");
    assert_eq!(ledger.journaled(), [(key(1), left)]);
    assert!(ledger.journal(&key(2), pending(&ends[1..3], &[])), "of another object");
    assert_eq!(ledger.journaled()[1].1.facts.len(), 2);
    assert!(ledger.journal(&key(1), pending(&ends[1..3], &[])));
    assert_eq!(ledger.journaled().len(), 1, "nothing of it is left");
    ledger.checkpoint(&key(2), &settle("b", Digest::NONE), &[ends[1].2.clone(), ends[2].2.clone()]);
    assert_eq!(ledger.journaled(), []);
}

#[test]
fn the_end_of_an_incarnation_strikes_what_is_journaled_of_it_until_it_is_back() {
    let ledger = Ledger::memory();
    let all = pending(&[end("a", 1), end("b", 2)], &[("a", 3)]);
    assert!(ledger.journal(&key(1), all.clone()));
    ledger.acknowledge(&key(1), &report(1, "a", EntityId::OBJECT, 1));
    ledger.acknowledge(&key(1), &last("a"));
    let left = pending(&[end("b", 2)], &[]).unwrap();
    assert_eq!((ledger.journaled(), ledger.get(&key(1))), (vec![(key(1), left.clone())], None));
    ledger.journal(&key(1), all.clone());
    assert_eq!(ledger.journaled(), [(key(1), left.clone())]);
    let (a, b) = ("a".into(), "b".into());
    assert!(ledger.has_ended(&key(1), &a) && !ledger.has_ended(&key(1), &b));
    assert!(!ledger.has_ended(&key(2), &a));

    ledger.acknowledge(&key(1), &report(1, "b", EntityId::OBJECT, 1));
    assert!(ledger.has_ended(&key(1), &a), "another incarnation says nothing of it");
    ledger.acknowledge(&key(1), &report(1, "a", EntityId(2), 1));
    assert!(!ledger.has_ended(&key(1), &a), "it was not over");
    ledger.journal(&key(1), all.clone());
    assert_eq!(ledger.journaled(), [(key(1), all.unwrap())]);
    ledger.acknowledge(&key(1), &last("a"));
    assert!(ledger.has_ended(&key(1), &a));
    assert_eq!(ledger.journaled(), [(key(1), left)]);
}

fn tells(uid: &str, end: &End) -> Report {
    let content = end.1.0;
    Report { fact: Some(end.2.id), ..report(1, uid, EntityId::OBJECT, content) }
}

#[test]
fn an_end_that_was_told_is_struck_at_once_and_an_earlier_one_that_comes_late_is_not() {
    let ledger = Ledger::memory();
    let ends: Vec<End> = (1..=4).map(|n| end("a", n)).collect();
    assert!(ledger.journal(&key(1), pending(&ends[1..], &[])));
    ledger.acknowledge(&key(1), &tells("a", &ends[1]));
    ledger.acknowledge(&key(1), &tells("a", &ends[2]));
    // The delivery broke off, and a watch that was behind shows the first.
    assert!(ledger.journal(&key(1), pending(&ends, &[])));
    let left = pending(&[ends[0].clone(), ends[3].clone()], &[]).unwrap();
    assert_eq!(ledger.journaled(), [(key(1), left)]);
}

#[test]
fn a_killed_process_that_lost_its_acknowledgements_left_which_ends_were_told() {
    let disk = Disk::new(3);
    let ledger = Ledger::simulated(&disk);
    let ends: Vec<End> = (1..=5).map(|n| end("a", n)).collect();
    assert!(ledger.journal(&key(1), pending(&ends, &[])));
    assert!(ledger.commit_simulated());
    let tell = |end: &End| {
        let report = tells("a", end);
        assert_eq!(ledger.sending(&key(1), &report, None).now_or_never(), Some(true));
        ledger.acknowledge(&key(1), &report);
    };
    ends[1..4].iter().for_each(tell);
    let left = pending(&[ends[0].clone(), ends[3].clone(), ends[4].clone()], &[]).unwrap();
    let next = Ledger::simulated(&disk);
    assert_eq!(next.journaled(), [(key(1), left.clone())], "of the fourth it is not known");
    assert_eq!(next.get(&key(1)).unwrap().fact, ends[2].2.id);

    // A commit of that process strikes them for good.
    assert!(next.commit_simulated());
    disk.power_loss();
    assert_eq!(Ledger::simulated(&disk).journaled(), [(key(1), left)]);
}

#[test]
fn the_latest_are_remembered_each_once_and_the_newest_of_them_stored() {
    let mut recent = RecentlyReported::default();
    recent.begin(3, vec![u64::MAX]);
    assert!(recent.has(3, u64::MAX) && recent.take_changed().is_empty(), "the store holds it");
    for one in 0..2 * KEPT as u64 {
        recent.add(3, one);
        recent.add(3, one);
    }
    let kept = KEPT as u64;
    assert!(!recent.has(3, kept - 1) && recent.has(3, kept) && !recent.has(4, kept));
    recent.remove(3, 2 * kept - 1);
    let taken = recent.take_changed();
    assert!(recent.take_changed().is_empty(), "nothing has changed since");
    let [(3, bytes)] = &taken[..] else { panic!("one page is to be stored") };
    let latest: Vec<u64> = (2 * kept - 1 - STORED as u64..2 * kept - 1).collect();
    assert_eq!(stored::decode::<Vec<u64>>(bytes), Ok(latest));
    recent.add(3, kept);
    assert!(recent.take_changed().is_empty(), "it was there");
    recent.put_back(3);
    recent.put_back(5);
    assert_eq!(recent.take_changed(), taken);
    recent.begin(3, Vec::new());
    assert!(!recent.has(3, kept));
    recent.forget(3);
    recent.put_back(3);
    assert!(recent.take_changed().is_empty());
}

#[test]
fn what_only_the_intents_of_a_former_owner_say_is_taken_in_and_stored() {
    let mut state = State::default();
    let mut intent = an_intent(1, 1);
    (intent.sent.reported, intent.sent.fact) = (vec![Digest(4)], Digest(5));
    state.begin(Tables::default(), 0, &[intent.clone(), an_intent(2, 2)]);
    for operation in [4, 5] {
        assert!(state.recent.has(0, digest(&intent.key, &intent.sent.uid, Digest(operation))));
    }
    assert_eq!(state.recent.take_changed().len(), 1);
}

#[test]
fn nothing_is_journaled_of_an_incarnation_that_ends_at_the_same_moment() {
    let ledger = Ledger::memory();
    let both = std::sync::Barrier::new(2);
    for n in 0..2000 {
        let uid = format!("life-{n}");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                both.wait();
                ledger.journal(&key(1), pending(&[end(&uid, 1)], &[(&uid, 1)]));
            });
            both.wait();
            ledger.acknowledge(&key(1), &last(&uid));
        });
        assert_eq!(ledger.journaled(), [], "after {n} lives");
    }
}

#[test]
fn a_commit_holds_records_and_journal_of_one_moment() {
    const ALL: usize = 200;
    let folder = fast_folder();
    let path = folder.path().join("ledger.redb");
    let options = LedgerOptions { group_size: usize::MAX, ..slow() };
    let ledger = Ledger::open(&path, options).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let both = std::sync::Barrier::new(2);
    let (mut before, mut after) = (0, 0);
    for round in 1..=12 {
        let told = end("a", round);
        let operation = told.2.id;
        for n in 0..ALL {
            assert!(ledger.journal(&key(n), pending(std::slice::from_ref(&told), &[])));
            ledger.acknowledge(&key(n), &report(n, "a", EntityId::OBJECT, round));
        }
        std::thread::scope(|scope| {
            scope.spawn(|| {
                both.wait();
                std::thread::sleep(Duration::from_micros(150 * round));
                for n in 0..ALL {
                    ledger.checkpoint(&key(n), &settle("a", operation), std::slice::from_ref(&told.2));
                }
            });
            both.wait();
            runtime.block_on(ledger.flush()).unwrap();
            let copy = folder.path().join("copy.redb");
            fs::copy(&path, &copy).unwrap();
            let found = open(&copy);
            assert_eq!(found.origin(), &Origin::Existing);
            let journaled: HashSet<Key> = found.journaled().into_iter().map(|(key, _)| key).collect();
            for n in 0..ALL {
                let is_told = found.get(&key(n)).unwrap().fact == operation;
                assert_ne!(is_told, journaled.contains(&key(n)), "round {round}: told and kept, or neither");
                *(if is_told { &mut after } else { &mut before }) += 1;
            }
        });
        runtime.block_on(ledger.flush()).unwrap();
    }
    println!("{before} before, {after} after");
    assert!(before > 0);
}

#[test]
fn the_name_under_which_a_file_counts_is_the_name_in_its_keys() {
    let folder = fast_folder();
    let ledger = open(&folder.path().join("ledger.redb"));
    ledger.sent_as("another");
    assert_eq!(ledger.sink(), "platform");
    let memory = Ledger::memory();
    assert_eq!(memory.sink(), "");
    memory.sent_as("stdout");
    memory.sent_as("another");
    assert_eq!(memory.sink(), "stdout");
    for ledger in [ledger, memory] {
        let first = report(1, "a", EntityId::OBJECT, 1);
        let shipment = Shipment::new(first.clone(), ledger.id(), ledger.sink(), 0);
        ledger.acknowledge(&key(1), &first);
        let full = {
            use sha2::Digest as _;
            sha2::Sha256::digest(shipment.idempotency_key.as_bytes())
        };
        let expected = u128::from_be_bytes(full[..16].try_into().unwrap());
        assert_eq!(ledger.digest(&key(1)).unwrap().digest, expected);
        assert_eq!(ledger.digests(|_| Some(0))[&0].digest, expected);
    }
}

#[test]
fn one_start_with_another_sink_leaves_what_the_first_had_on_its_way() {
    let folder = fast_folder();
    let path = folder.path().join("ledger.redb");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let ledger = open(&path);
    runtime.block_on(ledger.sending(&key(1), &report(1, "a", EntityId::OBJECT, 1), None));
    // What a kill at this moment leaves.
    let killed = folder.path().join("killed.redb");
    let intents = |path: &std::path::Path| path_of(path, "platform");
    fs::copy(&path, &killed).unwrap();
    fs::copy(intents(&path), intents(&killed)).unwrap();
    let other = Ledger::open(&killed, LedgerOptions { sink: "file".to_owned(), ..slow() }).unwrap();
    assert_eq!((other.id(), other.known().len()), (ledger.id(), 0));
    runtime.block_on(other.sending(&key(2), &report(2, "b", EntityId::OBJECT, 1), None));
    drop(other);
    let first = open(&killed);
    assert!(first.get(&key(1)).is_some_and(|record| record.object().in_doubt), "its notes are gone");
    assert_eq!(first.known().len(), 1);
}

/// The end of an incarnation, with facts.
fn gone(uid: &str, version: u64, body: Option<bytes::Bytes>, ends: &[Fact]) -> Event {
    let (change, observed) = (Change::Deleted { body }, pipeline_core::Timestamp::UNIX_EPOCH);
    let event = Event::watched(key(1), uid.into(), Version(version), change, observed);
    Event { coalesced: ends.to_vec(), trace: 5, ..event }
}

#[test]
fn what_a_settled_delivery_told_is_taken_out_of_an_event_that_brings_it_again() {
    let ledger = Ledger::memory();
    let ends: Vec<_> = (1..=4).map(|n| end("a", n).2).collect();
    let event = |uid: &str, ends: &[Fact]| Event { cause: Cause::Read, ..gone(uid, 7, None, ends) };
    assert!(ledger.without_reported(&event("a", &ends), None).is_none(), "nothing was told");
    ledger.checkpoint(&key(1), &settle("a", ends[2].id), &ends[..1]);
    let left = ledger.without_reported(&event("a", &ends), None).unwrap();
    assert_eq!((&left.coalesced[..], left.trace), (&[ends[1].clone(), ends[3].clone()][..], 5));
    assert!(ledger.without_reported(&event("b", &ends), None).is_none(), "they are another incarnation's");
    assert!(ledger.without_reported(&Event { key: key(2), ..event("a", &ends) }, None).is_none());
}

#[test]
fn a_list_that_ends_an_incarnation_that_was_told_to_be_over_ends_the_one_that_is_known() {
    let ledger = Ledger::memory();
    let first = gone("a", 20, Some("{}".into()), &[end("a", 1).2]);
    let known = Record::new("b".into());
    assert!(ledger.without_reported(&first, Some(&known)).is_none(), "both are over, and nobody knows");
    ledger.acknowledge(&key(1), &last("a"));
    let other = ledger.without_reported(&first, Some(&known)).unwrap();
    assert_eq!((&*other.uid, other.version, other.coalesced.len()), ("b", Version(20), 0));
    assert!(other.is_deleted() && other.body().is_none(), "what is there of it was the first one's");
    assert!(ledger.without_reported(&first, None).is_none());
    assert!(ledger.without_reported(&Event { uid: "b".into(), ..first }, Some(&known)).is_none());
}
