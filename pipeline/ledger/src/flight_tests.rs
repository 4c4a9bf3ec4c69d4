//! The form of the flight file: whatever happens to its bytes, what can be read is what was written.

use pipeline_core::{EntityId, Uid};
use proptest::prelude::*;

use super::*;

/// Bytes of the second frame.
const NUMBER: usize = 4 + 4 + 8 + 8;

pub(crate) fn owner() -> Owner {
    Owner { id: "00112233445566778899aabbccddeeff".to_owned(), sink: "platform".to_owned() }
}

/// The note of a first report of `app-<n>`.
pub(crate) fn a_note(number: u64, n: usize) -> Note {
    let sent = Sent {
        uid: format!("01234567-89ab-cdef-0123-{n:012x}").into(),
        version: Version(number.wrapping_add(1)),
        entity: Entity::Application,
        ends: false,
        first: true,
        counter: 0,
        unanswered: Unanswered::default(),
        content: Digest::NONE,
        decision: Digest::NONE,
        owed: false,
        fact: Digest::NONE,
        told: Vec::new(),
        stub: Some(Stub { repo_url: "https://git/store".to_owned(), ..Stub::default() }),
    };
    Note { number, key: Key::new("argocd", &format!("app-{n}")).unwrap(), sent }
}

pub(crate) fn file(notes: &[Note]) -> Vec<u8> {
    after(owner().head(0), notes)
}

/// As a version wrote it that knew of no number of a commit.
pub(crate) fn without_a_number(notes: &[Note]) -> Vec<u8> {
    let mut head = owner().head(0);
    head.truncate(head.len() - NUMBER);
    after(head, notes)
}

fn after(mut head: Vec<u8>, notes: &[Note]) -> Vec<u8> {
    notes.iter().for_each(|note| owner().write(note, &mut head));
    head
}

prop_compose! {
    fn stub()(texts in prop::array::uniform4(".{0,30}"), child in any::<bool>()) -> Stub {
        let [repo_url, server, namespace, name] = texts;
        Stub { repo_url, server, parent: child.then_some(ParentRef { namespace, name }) }
    }
}

prop_compose! {
    fn note()(names in ("[a-z]{1,9}", "[a-z]{1,9}", ".{0,40}"), numbers in any::<(u64, u64, u64, u64, u64)>(),
              counter in prop_oneof![any::<u32>().prop_map(u64::from), any::<u64>()],
              flags in any::<[bool; 3]>(), unanswered in any::<(u64, u32)>(), id in prop::option::of(any::<u64>()),
              told in prop::collection::vec(any::<u64>(), 0..4), stub in prop::option::of(stub())) -> Note {
        let (namespace, name, uid) = names;
        let (number, version, content, decision, operation) = numbers;
        let [ends, first, owed] = flags;
        let entity = id.map_or(Entity::Application, |id| Entity::Resource(EntityId(id)));
        let sent = Sent {
            uid: Uid::from(uid), version: Version(version), entity, ends, first, counter,
            unanswered: Unanswered { content: Digest(unanswered.0), skipped: unanswered.1 }, content: Digest(content),
            decision: Digest(decision), owed, fact: Digest(operation), stub,
            told: told.into_iter().map(Digest).collect(),
        };
        Note { number, key: Key::new(&namespace, &name).unwrap(), sent }
    }
}

proptest! {
    #[test]
    fn every_note_comes_back(notes in prop::collection::vec(note(), 0..8)) {
        let found = owner().read(&file(&notes));
        let mut notes = notes;
        notes.sort_by_key(|note| note.number);
        prop_assert_eq!(found, Found { notes, whole: true, ..Found::default() });
    }

    #[test]
    fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..300), marked in any::<bool>()) {
        let mut all = if marked { MARK.to_vec() } else { Vec::new() };
        all.extend(bytes);
        let found = owner().read(&all);
        prop_assert!(found.notes.is_empty() && !found.damaged && !found.foreign);
        prop_assert!(!found.whole, "it has no head");
        let _ = super::note(&all);
    }
}

#[test]
fn a_file_cut_short_anywhere_holds_what_came_before_and_is_not_damaged() {
    let notes: Vec<Note> = (0..5).map(|n| a_note(n as u64, n)).collect();
    let bytes = file(&notes);
    let ends: Vec<usize> = (0..=5).map(|n| file(&notes[..n]).len()).collect();
    for length in 0..=bytes.len() {
        let found = owner().read(&bytes[..length]);
        let expected = ends.iter().filter(|end| **end <= length).count().saturating_sub(1);
        assert_eq!(found.notes, notes[..expected], "cut at {length}");
        assert_eq!((found.damaged, found.foreign), (false, false), "cut at {length}");
        assert_eq!(found.whole, ends.contains(&length), "cut at {length}");
    }
}

#[test]
fn a_flipped_bit_anywhere_costs_one_note_and_is_told_unless_it_is_the_last() {
    let notes: Vec<Note> = (0..5).map(|n| a_note(n as u64, n)).collect();
    let bytes = file(&notes);
    let ends: Vec<usize> = (0..=5).map(|n| file(&notes[..n]).len()).collect();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            let found = owner().read(&flipped);
            assert!(!found.whole && !found.foreign, "bit {bit} of byte {at}");
            match ends.iter().position(|end| at < *end).unwrap() {
                0 => assert_eq!((found.notes.as_slice(), found.damaged), (notes.as_slice(), true)),
                met => {
                    let mut left = notes.clone();
                    left.remove(met - 1);
                    assert_eq!(found.notes, left, "bit {bit} of byte {at}");
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
    owner().write(&a_note(0x2345, 1), &mut bytes);
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
    let found = owner().read(&without_a_number(&[a_note(1, 1)]));
    assert_eq!(found, Found { notes: vec![a_note(1, 1)], ..Found::default() }, "of an earlier version");
    assert_eq!(owner().read(&bytes[..number]), Found::default(), "cut off before it");
}

#[test]
fn a_file_of_another_ledger_or_sink_is_foreign_and_its_notes_do_not_pass() {
    let bytes = file(&[a_note(1, 1)]);
    let others =
        [Owner { id: "another".to_owned(), ..owner() }, Owner { sink: "file".to_owned(), ..owner() }];
    for other in others {
        assert_eq!(other.read(&bytes), Found { foreign: true, ..Found::default() });
        let headless = &bytes[owner().head(0).len() - NUMBER..];
        assert_eq!(other.read(headless).covered, 0);
        assert!(other.read(headless).notes.is_empty());
    }
}

#[test]
fn only_the_newest_note_of_an_entity_is_kept_and_it_knows_the_first() {
    let mut notes = Notes::default();
    let mut second = a_note(2, 1);
    (second.sent.first, second.sent.stub, second.sent.counter) = (false, None, 1);
    notes.add(a_note(1, 1));
    notes.add(a_note(3, 2));
    notes.add(second.clone());
    (second.sent.first, second.sent.stub) = (true, a_note(1, 1).sent.stub);
    assert_eq!(notes.in_order(), [&second, &a_note(3, 2)]);
    notes.cover(2);
    assert_eq!(notes.in_order(), [&a_note(3, 2)]);
    notes.cover(3);
    assert!(notes.is_empty());
}
