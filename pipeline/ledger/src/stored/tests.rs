//! Every value comes back as it was, and any bytes are taken.

use bytes::Bytes;
use pipeline_core::{Digest, EntityId, EntityRow, Fact, Reason, Settled, Timestamp, Uid, Unacked, Version};
use proptest::prelude::*;

use super::*;

fn unacked() -> impl Strategy<Value = Unacked> {
    any::<(u64, u32)>().prop_map(|(content, skipped)| Unacked { content: Digest(content), skipped })
}

prop_compose! {
    fn row()(id in any::<u64>(), digests in any::<(u64, u64)>(), counter in any::<u64>(),
             (incomplete, in_doubt) in any::<(bool, bool)>(), unacked in unacked()) -> EntityRow {
        let (decision, content) = (Digest(digests.0), Digest(digests.1));
        EntityRow { id: EntityId(id), decision, content, counter, incomplete, in_doubt, unacked }
    }
}

pub(crate) fn state() -> impl Strategy<Value = Bytes> {
    prop::collection::vec(any::<u8>(), 0..300).prop_map(Bytes::from)
}

prop_compose! {
    pub(crate) fn a_record()(
        uid in ".{0,40}",
        (version, fact, reported, floor, sent, watched) in any::<(u64, u64, u32, u64, u64, Option<u64>)>(),
        settled in prop::sample::select(vec![Settled::Never, Settled::Before, Settled::Now, Settled::Unwritten]),
        state in state(),
        mut entities in prop::collection::vec(row(), 0..40),
    ) -> Record {
        entities.sort_by_key(|row| row.id);
        entities.dedup_by_key(|row| row.id);
        let (version, fact, sent) = (Version(version), Digest(fact), Version(sent));
        let watched = watched.map(Version);
        Record { uid: uid.into(), version, settled, state, fact, reported, floor, entities, sent, watched }
    }
}

prop_compose! {
    fn fact()(uid in ".{0,40}", version in any::<u64>(), id in any::<u64>(), body in ".{0,20}")
        -> (Uid, Version, Fact) {
        (uid.into(), Version(version), Fact { id: Digest(id), body: Bytes::from(body) })
    }
}

prop_compose! {
    fn pending()(facts in prop::collection::vec(fact(), 0..9),
                 gone in prop::collection::vec((".{0,40}", any::<u64>()), 0..9)) -> Pending {
        let gone = gone.into_iter().map(|(uid, version)| (uid.into(), Version(version))).collect();
        Pending { facts, gone }
    }
}

fn reason() -> impl Strategy<Value = Reason> {
    prop::sample::select(Reason::ALL.to_vec())
}

prop_compose! {
    fn parked()(reason in reason(), at in -377_705_023_201_i64..253_402_207_200, nanos in 0..1_000_000_000_i32,
                version in any::<u64>(), uid in prop::option::of(".{0,40}"),
                refused in prop::collection::vec((prop::option::of(any::<u64>()), any::<u64>(), reason()), 0..5))
        -> Parked {
        let entity = |id: Option<u64>| EntityId(id.unwrap_or_default());
        let refused: Vec<_> =
            refused.into_iter().map(|(id, content, reason)| (entity(id), Digest(content), reason)).collect();
        let at = Timestamp::new(at, nanos).unwrap();
        Parked { reason, at, version: Version(version), uid: uid.map(Uid::from), refused: refused.into() }
    }
}

proptest! {
    #[test]
    fn every_value_comes_back_and_a_shortened_one_does_not(
        kept in a_record(), pending in pending(), parked in parked(), at in any::<prop::sample::Index>(),
    ) {
        let bytes = encode(&kept);
        prop_assert_eq!(incarnation(&bytes), Ok((kept.uid.clone(), kept.version)));
        prop_assert_eq!(record(&bytes), Ok(kept));
        prop_assert!(record(&bytes[..at.index(bytes.len())]).is_err());
        let bytes = encode(&pending);
        prop_assert_eq!(decode::<Pending>(&bytes), Ok(pending));
        prop_assert!(decode::<Pending>(&bytes[..at.index(bytes.len())]).is_err());
        let bytes = encode(&parked);
        prop_assert_eq!(decode::<Parked>(&bytes), Ok(parked));
        prop_assert!(decode::<Parked>(&bytes[..at.index(bytes.len())]).is_err());
    }

    #[test]
    fn a_record_of_a_former_version_says_neither_what_was_sent_nor_what_was_watched(kept in a_record()) {
        let Record { uid, version, settled, state, fact, reported, floor, entities, sent, .. } = &kept;
        let bytes = encode(&(uid, version, settled, state, fact, reported, floor, entities, sent));
        prop_assert_eq!(incarnation(&bytes), Ok((uid.clone(), *version)));
        prop_assert_eq!(record(&bytes), Ok(Record { watched: None, ..kept.clone() }));
        let bytes = encode(&(uid, version, settled, state, fact, reported, floor, entities));
        prop_assert_eq!(incarnation(&bytes), Ok((uid.clone(), *version)));
        prop_assert_eq!(record(&bytes), Ok(Record { sent: Version(0), watched: None, ..kept }));
    }

    #[test]
    fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..400), headed in any::<bool>()) {
        let bytes = if headed { [b"\x81\xa2V1".as_slice(), &bytes].concat() } else { bytes };
        if let Ok(read) = record(&bytes) {
            prop_assert_eq!(record(&encode(&read)), Ok(read));
        }
        let _ = (decode::<Pending>(&bytes), decode::<Parked>(&bytes), unseal("ns/app", &bytes));
    }

    #[test]
    fn a_flipped_bit_does_not_match_the_checksum(
        kept in a_record(), at in any::<prop::sample::Index>(), bit in 0..8_u8,
    ) {
        let mut sealed = seal("ns/app", &encode(&kept));
        let at = at.index(sealed.len());
        sealed[at] ^= 1_u8 << bit;
        prop_assert_eq!(unseal("ns/app", &sealed), Err(Unreadable));
    }
}

#[test]
fn what_is_stored_is_this() {
    let mut record = Record::new("u1".into());
    record.entities.push(EntityRow { id: EntityId(7), decision: Digest(8), ..EntityRow::default() });
    let hex: String = encode(&record).iter().map(|byte| format!("{byte:02x}")).collect();
    let row = "97 07 08 00 00 c2 c2 92 00 00";
    let own = "97 00 00 00 00 c2 c2 92 00 00";
    let never = "a5 4e 65 76 65 72";
    let expected = format!("81 a2 56 31 9a a2 75 31 00 {never} c4 00 00 00 00 92 {own} {row} 00 c0");
    assert_eq!(hex, expected.replace(' ', ""), "another layout is another version");
}

#[test]
fn what_a_later_version_adds_to_a_record_is_passed_over() {
    let mut kept = Record::new("u1".into());
    kept.watched = Some(Version(7));
    let Record { uid, version, settled, state, fact, reported, floor, entities, sent, watched } = &kept;
    let later = ("more", [1_u8, 2]);
    let bytes =
        encode(&(uid, version, settled, state, fact, reported, floor, entities, sent, watched, 9_u64, later));
    assert_eq!(incarnation(&bytes), Ok((uid.clone(), *version)));
    assert_eq!(record(&bytes), Ok(kept.clone()));
}

#[test]
fn what_a_later_version_adds_to_the_rows_of_a_record_is_passed_over() {
    let mut kept = Record::new("u1".into());
    kept.entities.push(EntityRow { id: EntityId(7), decision: Digest(8), ..EntityRow::default() });
    let longer = |row: &EntityRow| {
        let EntityRow { id, decision, content, counter, incomplete, in_doubt, unacked } = *row;
        (id, decision, content, counter, incomplete, in_doubt, unacked, "more")
    };
    let rows: Vec<_> = kept.entities.iter().map(longer).collect();
    let Record { uid, version, settled, state, fact, reported, floor, sent, watched, .. } = &kept;
    let bytes = encode(&(uid, version, settled, state, fact, reported, floor, rows, sent, watched));
    assert_eq!(incarnation(&bytes), Ok((uid.clone(), *version)));
    assert_eq!(record(&bytes), Ok(kept.clone()));
}

#[test]
fn a_newer_version_and_rows_out_of_order_are_refused() {
    let mut kept = Record::new("u1".into());
    let mut newer = encode(&kept);
    newer[3] = b'2';
    assert_eq!(record(&newer), Err(Unreadable));
    kept.entities = [5, 3].map(|id| EntityRow { id: EntityId(id), ..EntityRow::default() }).to_vec();
    assert_eq!(record(&encode(&kept)), Err(Unreadable));
}

#[test]
fn a_value_under_another_key_does_not_match() {
    let sealed = seal("a/b", &encode(&Record::new("u1".into())));
    assert!(unseal("a/b", &sealed).is_ok());
    assert_eq!(unseal("a/c", &sealed), Err(Unreadable));
    assert_eq!(unseal("a/b", &sealed[..7]), Err(Unreadable));
}
