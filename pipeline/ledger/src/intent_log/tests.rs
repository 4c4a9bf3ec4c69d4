//! Whatever happens to the bytes of a log of intents, what can be read is what was written.

use pipeline_core::{Digest, EntityId, Key, SendIntent, Uid, Unacked, Version};
use proptest::prelude::*;

use super::*;
use crate::stored::tests::state;

/// Bytes of the second frame.
const NUMBER: usize = 4 + 4 + 8 + 8;

pub(crate) fn owner() -> Owner {
    Owner { id: "00112233445566778899aabbccddeeff".to_owned(), sink: "platform".to_owned() }
}

/// The intent of a first report of `app-<n>`.
pub(crate) fn an_intent(number: u64, n: usize) -> Intent {
    let sent = SendIntent {
        uid: format!("01234567-89ab-cdef-0123-{n:012x}").into(),
        version: Version(number.wrapping_add(1)),
        entity: EntityId::OBJECT,
        ends: false,
        first: true,
        counter: 0,
        unacked: Unacked::default(),
        content: Digest::NONE,
        decision: Digest::NONE,
        incomplete: false,
        fact: Digest::NONE,
        reported: Vec::new(),
        state: Some(bytes::Bytes::from_static(b"https://git/store")),
        settled: false,
        sent: Version(number.wrapping_add(1)),
    };
    Intent { number, key: Key::new("ns", &format!("app-{n}")).unwrap(), sent }
}

pub(crate) fn log(intents: &[Intent]) -> Vec<u8> {
    let mut bytes = owner().head(0);
    intents.iter().for_each(|intent| owner().write(intent, &mut bytes));
    bytes
}

prop_compose! {
    fn intent()(names in ("[a-z]{1,9}", "[a-z]{1,9}", ".{0,40}"), numbers in any::<(u64, u64, u64, u64, u64)>(),
              counter in prop_oneof![any::<u32>().prop_map(u64::from), any::<u64>()],
              flags in any::<[bool; 4]>(), unacked in any::<(u64, u32)>(), id in prop::option::of(any::<u64>()),
              told in prop::collection::vec(any::<u64>(), 0..4), state in prop::option::of(state())) -> Intent {
        let (namespace, name, uid) = names;
        let (number, version, content, decision, operation) = numbers;
        let [ends, first, incomplete, settled] = flags;
        let entity = id.map_or(EntityId::OBJECT, EntityId);
        let sent = SendIntent {
            uid: Uid::from(uid), version: Version(version), entity, ends, first, counter,
            unacked: Unacked { content: Digest(unacked.0), skipped: unacked.1 }, content: Digest(content),
            decision: Digest(decision), incomplete, fact: Digest(operation), state, settled,
            reported: told.into_iter().map(Digest).collect(), sent: Version(number),
        };
        Intent { number, key: Key::new(&namespace, &name).unwrap(), sent }
    }
}

proptest! {
    #[test]
    fn every_intent_comes_back(intents in prop::collection::vec(intent(), 0..8)) {
        let found = owner().read(&log(&intents));
        let mut intents = intents;
        intents.sort_by_key(|intent| intent.number);
        prop_assert_eq!(found, Found { intents, whole: true, ..Found::default() });
    }

    #[test]
    fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..300), marked in any::<bool>()) {
        let mut all = if marked { MARK.to_vec() } else { Vec::new() };
        all.extend(bytes);
        let found = owner().read(&all);
        prop_assert!(found.intents.is_empty() && !found.damaged && !found.foreign);
        prop_assert!(!found.whole, "it has no head");
    }
}

#[test]
fn a_file_cut_short_anywhere_holds_what_came_before_and_is_not_damaged() {
    let intents: Vec<Intent> = (0..5).map(|n| an_intent(n as u64, n)).collect();
    let bytes = log(&intents);
    let ends: Vec<usize> = (0..=5).map(|n| log(&intents[..n]).len()).collect();
    for length in 0..=bytes.len() {
        let found = owner().read(&bytes[..length]);
        let expected = ends.iter().filter(|end| **end <= length).count().saturating_sub(1);
        assert_eq!(found.intents, intents[..expected], "cut at {length}");
        assert_eq!((found.damaged, found.foreign), (false, false), "cut at {length}");
        assert_eq!(found.whole, ends.contains(&length), "cut at {length}");
    }
}

#[test]
fn a_flipped_bit_anywhere_costs_one_intent_and_is_told_unless_it_is_the_last() {
    let intents: Vec<Intent> = (0..5).map(|n| an_intent(n as u64, n)).collect();
    let bytes = log(&intents);
    let ends: Vec<usize> = (0..=5).map(|n| log(&intents[..n]).len()).collect();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            let found = owner().read(&flipped);
            assert!(!found.whole && !found.foreign, "bit {bit} of byte {at}");
            match ends.iter().position(|end| at < *end).unwrap() {
                0 => assert_eq!((found.intents.as_slice(), found.damaged), (intents.as_slice(), true)),
                met => {
                    let mut left = intents.clone();
                    left.remove(met - 1);
                    assert_eq!(found.intents, left, "bit {bit} of byte {at}");
                    assert_eq!(found.damaged, met != 5, "bit {bit} of byte {at}");
                }
            }
        }
    }
}

#[test]
fn the_number_of_the_last_commit_comes_back_and_no_other_does() {
    let mut bytes = owner().head(0x1234);
    let (length, number) = (bytes.len(), bytes.len() - NUMBER);
    owner().write(&an_intent(0x2345, 1), &mut bytes);
    assert_eq!((owner().read(&bytes).covered, length), (0x1234, owner().head(u64::MAX).len()));
    for at in 0..length {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            let found = owner().read(&flipped);
            assert_eq!(found.covered, 0, "bit {bit} of byte {at}");
            assert_eq!(owner().read(&flipped[..length]).covered, 0, "bit {bit} of byte {at}");
        }
    }
    assert_eq!(owner().read(&bytes[..number]), Found::default(), "cut off before it");
}

#[test]
fn a_file_of_another_ledger_or_sink_is_foreign_and_its_intents_do_not_pass() {
    let bytes = log(&[an_intent(1, 1)]);
    let others =
        [Owner { id: "another".to_owned(), ..owner() }, Owner { sink: "file".to_owned(), ..owner() }];
    for other in others {
        assert_eq!(other.read(&bytes), Found { foreign: true, ..Found::default() });
        let headless = &bytes[owner().head(0).len() - NUMBER..];
        assert_eq!(other.read(headless).covered, 0);
        assert!(other.read(headless).intents.is_empty());
    }
}
