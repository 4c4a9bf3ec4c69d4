//! What is journaled and parked comes back as it was, and any bytes are taken.

use proptest::prelude::*;

use super::*;

prop_compose! {
    fn end()(uid in ".{0,40}", version in any::<u64>(), id in any::<u64>(), body in ".{0,20}")
        -> (Uid, Version, Fact) {
        let end = Fact { id: Digest(id), body: body.into() };
        (uid.into(), Version(version), end)
    }
}

prop_compose! {
    fn pending()(facts in prop::collection::vec(end(), 0..9),
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
                version in any::<u64>(), uid in prop::option::of(".{1,40}"),
                refused in prop::collection::vec((prop::option::of(any::<u64>()), any::<u64>(), reason()), 0..5))
        -> Parked {
        let entity = |id: Option<u64>| id.map_or(Entity::Application, |id| Entity::Resource(EntityId(id)));
        let refused: Vec<_> =
            refused.into_iter().map(|(id, content, reason)| (entity(id), Digest(content), reason)).collect();
        let at = Timestamp::new(at, nanos).unwrap();
        Parked { reason, at, version: Version(version), uid: uid.map(Uid::from), refused: refused.into() }
    }
}

proptest! {
    #[test]
    fn what_is_journaled_comes_back(pending in pending()) {
        let packed = encode_pending(&pending);
        prop_assert_eq!(decode_pending(&packed), Ok(pending));
        prop_assert!((0..packed.len()).all(|length| decode_pending(&packed[..length]).is_err()));
    }

    #[test]
    fn what_is_parked_comes_back(parked in parked()) {
        let packed = encode_parked(&parked);
        prop_assert_eq!(decode_parked(&packed), Ok(parked));
        prop_assert!((0..packed.len()).all(|length| decode_parked(&packed[..length]).is_err()));
    }

    #[test]
    fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut bytes = bytes;
        let _ = (decode_pending(&bytes), decode_parked(&bytes));
        if let Some(first) = bytes.first_mut() {
            *first = FORMAT;
        }
        let _ = (decode_pending(&bytes), decode_parked(&bytes));
    }
}

#[test]
fn a_longer_or_later_form_is_damaged() {
    let mut packed = encode_pending(&Pending::default()).into_vec();
    assert_eq!(packed, [1, 0, 0]);
    packed.push(0);
    assert_eq!(decode_pending(&packed), Err(PackedError::Damaged));
    assert_eq!(decode_pending(&[2, 0, 0]), Err(PackedError::Damaged));
}
