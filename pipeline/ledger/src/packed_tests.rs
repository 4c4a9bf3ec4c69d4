//! The packed form: it loses nothing, takes any bytes, and does not change unnoticed.

use proptest::prelude::*;

use super::*;
use crate::binary::{seal, unseal};

prop_compose! {
    fn row()(id in any::<u64>(), decision in prop_oneof![any::<u64>(), 0..2_u64], content in any::<u64>(), counter in any::<u32>(),
             owed in any::<bool>(), unsure in any::<bool>(), unanswered in unanswered())
        -> ResourceRow {
        let (decision, content) = (Digest(decision), Digest(content));
        ResourceRow { id: EntityId(id), decision, content, counter: counter.into(), owed, unsure, unanswered }
    }
}

fn unanswered() -> impl Strategy<Value = Unanswered> {
    let sent = any::<(u64, u32)>();
    let sent = sent.prop_map(|(content, skipped)| Unanswered { content: Digest(content), skipped });
    prop_oneof![Just(Unanswered::default()), sent]
}

fn a_uid() -> impl Strategy<Value = Uid> {
    prop_oneof![
        any::<[u8; 16]>().prop_map(uid::of_uuid),
        any::<[u8; 16]>().prop_map(|bytes| uid::of_uuid(bytes).to_uppercase().into()),
        ".{0,40}".prop_map(Uid::from),
        "[0-9a-f-]{36}".prop_map(Uid::from),
    ]
}

prop_compose! {
    fn sections()(all in any::<[u64; 4]>()) -> Sections {
        let [spec, status, operation, metadata] = all.map(Digest);
        Sections { spec, status, operation, metadata }
    }
}

prop_compose! {
    fn stub()(repo_url in ".{0,200}", server in prop_oneof![".{0,40}", Just(HERE.to_owned())],
              parent in prop::option::of((".{0,10}", ".{1,10}"))) -> Stub {
        let parent = parent.map(|(namespace, name)| ParentRef { namespace, name });
        Stub { repo_url, server, parent }
    }
}

prop_compose! {
    pub(in crate) fn record()(
        uid in a_uid(),
        numbers in any::<(u64, u64, u64, u32, u32, u32)>(),
        sections in prop::option::of(sections()),
        bits in any::<(bool, bool, bool)>(),
        rows in prop::collection::vec(row(), 0..40),
        (unanswered, stub) in (unanswered(), stub()),
    ) -> Record {
        let (version, operation, content, counter, reported, floor) = numbers;
        let mut resources = rows;
        resources.sort_by_key(|row| row.id);
        resources.dedup_by_key(|row| row.id);
        Record {
            uid, version: Version(version), sections, healthy: bits.0, fact: Digest(operation),
            content: Digest(content), counter: counter.into(), owed: bits.1, unsure: bits.2, unanswered, reported,
            floor: floor.into(), resources, stub,
        }
    }
}

proptest! {
    #[test]
    fn every_record_comes_back(record in record()) {
        let packed = encode(&record);
        prop_assert_eq!(life(&packed), Ok((record.uid.clone(), record.version)));
        prop_assert_eq!(decode(&packed), Ok(record));
    }

    #[test]
    fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..400), headed in any::<bool>()) {
        let mut bytes = bytes;
        if headed && bytes.len() > 1 {
            bytes[0] = FORMAT;
        }
        // What decodes is a record: it has one packed form, and that decodes to itself.
        if let Ok(record) = decode(&bytes) {
            prop_assert_eq!(decode(&encode(&record)), Ok(record));
        }
        let _ = life(&bytes);
        let _ = unseal("ns/app", &bytes);
    }

    #[test]
    fn a_shortened_record_is_no_record(record in record(), at in any::<prop::sample::Index>()) {
        let packed = encode(&record);
        let short = &packed[..at.index(packed.len())];
        prop_assert!(decode(short).is_err());
    }

    #[test]
    fn a_flipped_bit_does_not_match_the_checksum(record in record(), at in any::<prop::sample::Index>(), bit in 0..8_u8) {
        let mut sealed = seal("ns/app", &encode(&record));
        let at = at.index(sealed.len());
        sealed[at] ^= 1_u8 << bit;
        prop_assert_eq!(unseal("ns/app", &sealed), Err(PackedError::Checksum));
    }
}

fn sample() -> Record {
    let mut record = Record::new("01234567-89ab-cdef-0123-456789abcdef".into());
    record.version = Version(0x0102);
    record.healthy = true;
    record.counter = 3;
    record.reported = 4;
    record.floor = 5;
    record.unsure = true;
    record.stub.repo_url = "u".to_owned();
    record.resources.push(ResourceRow {
        id: EntityId(7),
        decision: Digest(8),
        content: Digest(9),
        counter: 10,
        owed: true,
        unsure: true,
        unanswered: Unanswered { content: Digest(11), skipped: 12 },
    });
    record
}

#[test]
fn the_format_on_disk_is_this_one() {
    let hex: String = encode(&sample()).iter().map(|byte| format!("{byte:02x}")).collect();
    let expected = concat!(
        "04",
        "2a",
        "0123456789abcdef0123456789abcdef",
        "8202",
        "0000000000000000",
        "0000000000000000",
        "03",
        "04000000",
        "05",
        "0175",
        "00",
        "01",
        "cd02",
        "0700000000000000",
        "0800000000000000",
        "0900000000000000",
        "0b00000000000000",
        "0c000000",
    );
    assert_eq!(hex, expected);
}

/// As a version wrote it that knew no floor.
fn before_the_floor(record: &Record) -> Record {
    Record { floor: 0, ..record.clone() }
}

fn as_of_the_first_format(record: &Record) -> Record {
    let unanswered = Unanswered::default();
    let mut sure = Record { unsure: false, unanswered, reported: 0, floor: 0, ..record.clone() };
    sure.resources.iter_mut().for_each(|row| (row.unsure, row.unanswered) = (false, unanswered));
    sure
}

/// A record as an earlier format had it.
pub(crate) fn earlier_format(record: &Record, format: u8) -> Vec<u8> {
    earlier_format_of(record, format, |_| false)
}

/// The same, of resources some of which had left.
fn earlier_format_of(record: &Record, format: u8, left: impl Fn(&ResourceRow) -> bool) -> Vec<u8> {
    let record = &if format == FIRST { as_of_the_first_format(record) } else { record.clone() };
    let whole = encode(record);
    let mut out = vec![format, whole[1] & !AT_HOME];
    match uid::to_uuid(&record.uid) {
        Some(uid) => out.extend(uid),
        None => put_text(&mut out, &record.uid),
    }
    out.extend(record.version.0.to_le_bytes());
    let sections = record.sections.iter().flat_map(|it| [it.spec, it.status, it.operation, it.metadata]);
    for digest in sections.chain([record.fact, record.content]) {
        out.extend(digest.0.to_le_bytes());
    }
    out.extend(u32::try_from(record.counter).unwrap().to_le_bytes());
    let sent = |out: &mut Vec<u8>, unanswered: Unanswered| {
        if unanswered != Unanswered::default() {
            put_unanswered(out, unanswered);
        }
    };
    if format != FIRST {
        out.extend(record.reported.to_le_bytes());
        sent(&mut out, record.unanswered);
    }
    put_text(&mut out, &record.stub.repo_url);
    put_text(&mut out, &record.stub.server);
    if let Some(parent) = &record.stub.parent {
        put_text(&mut out, &parent.namespace);
        put_text(&mut out, &parent.name);
    }
    put_length(&mut out, record.resources.len());
    for row in &record.resources {
        for number in [row.id.0, row.decision.0, row.content.0] {
            out.extend(number.to_le_bytes());
        }
        out.extend(u32::try_from(row.counter).unwrap().to_le_bytes());
        let is_sent = row.unanswered != Unanswered::default();
        out.push(
            [row.owed, left(row), row.unsure, is_sent]
                .iter()
                .rev()
                .fold(0, |flags, set| flags << 1 | u8::from(*set)),
        );
        sent(&mut out, row.unanswered);
    }
    out
}

proptest! {
    #[test]
    fn a_record_of_the_first_format_is_sure_and_was_reported_at_no_known_time(record in record()) {
        let first = earlier_format(&record, FIRST);
        let expected = as_of_the_first_format(&record);
        prop_assert_eq!(life(&first), Ok((expected.uid.clone(), expected.version)));
        prop_assert_eq!(decode(&first), Ok(expected));
    }

    #[test]
    fn a_record_of_the_second_format_comes_back(record in record()) {
        let second = earlier_format(&record, SECOND);
        prop_assert_eq!(life(&second), Ok((record.uid.clone(), record.version)));
        prop_assert_eq!(decode(&second), Ok(before_the_floor(&record)));
    }

    #[test]
    fn a_resource_that_had_left_is_forgotten_and_its_counter_is_not(record in record()) {
        let left = |row: &ResourceRow| row.id.0.is_multiple_of(2);
        let mut expected = before_the_floor(&record);
        expected.forget(left);
        prop_assert_eq!(decode(&earlier_format_of(&record, SECOND, left)), Ok(expected));
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<char> = hex.chars().collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

#[test]
fn the_second_format_on_disk_is_read() {
    let second = bytes(concat!(
        "02",
        "2a",
        "0123456789abcdef0123456789abcdef",
        "0201000000000000",
        "0000000000000000",
        "0000000000000000",
        "03000000",
        "04000000",
        "0175",
        "00",
        "01",
        "0700000000000000",
        "0800000000000000",
        "0900000000000000",
        "0a000000",
        "0f",
        "0b00000000000000",
        "0c000000",
    ));
    let mut expected = before_the_floor(&sample());
    expected.forget(|_| true);
    assert_eq!((decode(&second), expected.floor), (Ok(expected.clone()), 11));
    let mut newer = second;
    newer[1] |= AT_HOME;
    assert_eq!(decode(&newer), Err(PackedError::Damaged), "the second format wrote every server's text");
}

#[test]
fn the_third_format_on_disk_is_read() {
    let third = bytes(concat!(
        "03",
        "2a",
        "0123456789abcdef0123456789abcdef",
        "8202",
        "0000000000000000",
        "0000000000000000",
        "03",
        "04000000",
        "0175",
        "00",
        "01",
        "cf02",
        "0700000000000000",
        "0800000000000000",
        "0900000000000000",
        "0b00000000000000",
        "0c000000",
    ));
    let mut expected = before_the_floor(&sample());
    expected.forget(|_| true);
    assert_eq!(decode(&third), Ok(expected));
    let mut present = third;
    present[2 + 16 + 2 + 8 + 8 + 1 + 4 + 2 + 1 + 1] &= !ROW_GONE;
    assert_eq!(decode(&present), Ok(before_the_floor(&sample())));
    let mut later = encode(&sample()).into_vec();
    later[2 + 16 + 2 + 8 + 8 + 1 + 4 + 1 + 2 + 1 + 1] |= ROW_GONE;
    assert_eq!(decode(&later), Err(PackedError::Damaged), "nothing that left is written any more");
}

#[test]
fn the_first_format_on_disk_is_read() {
    let first = bytes(concat!(
        "01",
        "0a",
        "0123456789abcdef0123456789abcdef",
        "0201000000000000",
        "0000000000000000",
        "0000000000000000",
        "03000000",
        "0175",
        "00",
        "01",
        "0700000000000000",
        "0800000000000000",
        "0900000000000000",
        "0a000000",
        "03",
    ));
    let mut expected = as_of_the_first_format(&sample());
    expected.forget(|_| true);
    assert_eq!(decode(&first), Ok(expected));
    let mut newer = first;
    newer[1] |= UNSURE;
    assert_eq!(decode(&newer), Err(PackedError::Damaged), "the first format knew nothing that is unsure");
}

/// A record of so many resources, each with a decision.
fn resources(decisions: impl Iterator<Item = u64>) -> Record {
    let mut record = sample();
    let row = ResourceRow { unanswered: Unanswered::default(), ..record.resources[0] };
    let of = |(id, decision)| ResourceRow { id: EntityId(id), decision: Digest(decision), ..row };
    record.resources = (0..).zip(decisions).map(of).collect();
    record
}

#[test]
fn a_resource_takes_at_most_26_bytes_and_8_less_where_it_is_in_the_state_of_the_one_before() {
    let one = encode(&resources(0..1)).len();
    let added = |record: &Record| encode(record).len() - one;
    // And one of the number of rows.
    assert_eq!(added(&resources(0..1001)), 26 * 1000 + 1);
    assert_eq!(added(&resources([7; 1001].into_iter())), 18 * 1000 + 1);
}

#[test]
fn a_decision_stands_there_once() {
    let record = resources([7, 7].into_iter());
    let mut packed = encode(&record).into_vec();
    assert_eq!(decode(&packed), Ok(record));
    let row = packed.len() - 18;
    let mut written_out = packed.clone();
    written_out[row] &= !ROW_AS_BEFORE;
    written_out.splice(row + 10..row + 10, 7_u64.to_le_bytes());
    assert_eq!(decode(&written_out), Err(PackedError::Damaged), "it is another spelling of the same");
    packed[row - 26] |= ROW_AS_BEFORE;
    assert_eq!(decode(&packed), Err(PackedError::Damaged), "no row is before the first");
}

#[test]
fn the_clusters_own_server_takes_no_room() {
    let mut record = sample();
    let none = encode(&record).len();
    record.stub.server = HERE.to_owned();
    let mut packed = encode(&record).into_vec();
    assert_eq!(packed.len(), none - 1);
    assert_eq!(decode(&packed), Ok(record));
    // Written out it is another spelling of the same.
    packed[1] &= !AT_HOME;
    let at = 2 + 16 + 2 + 8 + 8 + 1 + 4 + 1 + 2;
    packed.splice(at..at, [&[30], HERE.as_bytes()].concat());
    assert_eq!(decode(&packed), Err(PackedError::Damaged));
}

/// Of all eras there are the highest counters.
#[test]
fn the_counters_of_the_last_era_come_back() {
    let mut record = Record { uid: sample().uid, ..Record::begun("a".into(), Version(1).in_era(u8::MAX)) };
    record.resources = vec![ResourceRow { counter: (1 << 56) - 1, ..sample().resources[0] }];
    assert_eq!((record.counter, record.floor), (255 << 48, 255 << 48));
    assert_eq!(decode(&encode(&record)), Ok(record));
}

#[test]
fn a_number_has_one_spelling() {
    for number in [0, 1, 0x7f, 0x80, 0x3fff, 0x4000, u64::from(u32::MAX), u64::MAX >> 1, u64::MAX] {
        let mut out = Vec::new();
        put_number(&mut out, number);
        let mut from = Reader(&out);
        assert_eq!((from.number(), from.0), (Ok(number), &[][..]));
    }
    for bytes in
        [&[0x80, 0][..], &[0xff], &[], &[0xff; 11], &[255, 255, 255, 255, 255, 255, 255, 255, 255, 2]]
    {
        assert_eq!(Reader(bytes).number(), Err(PackedError::Damaged), "{bytes:?}");
    }
}

#[test]
fn a_record_of_another_format_is_named() {
    let mut packed = encode(&sample()).into_vec();
    packed[0] = 5;
    assert_eq!(decode(&packed).unwrap_err().to_string(), "a ledger record has format 5, not 4");
    packed[0] = FORMAT;
    packed.push(0);
    assert_eq!(decode(&packed).unwrap_err().to_string(), "a ledger record is damaged");
}

#[test]
fn rows_out_of_order_are_put_in_order_and_never_read() {
    let mut record = sample();
    record.resources[0].unanswered = Unanswered::default();
    let row = record.resources[0];
    record.resources = [5, 3, 5].map(|id| ResourceRow { id: EntityId(id), ..row }).to_vec();
    let ids = |record: &Record| record.resources.iter().map(|row| row.id.0).collect::<Vec<_>>();
    let mut packed = encode(&record);
    assert_eq!(ids(&decode(&packed).unwrap()), [3, 5]);
    // Its counter takes two bytes.
    let last = packed.len() - ROW - 1;
    packed[last] = 2;
    assert_eq!(decode(&packed), Err(PackedError::Damaged));
}

#[test]
fn a_record_under_another_key_does_not_match() {
    let sealed = seal("a/b", &encode(&sample()));
    assert!(unseal("a/b", &sealed).is_ok());
    assert_eq!(
        unseal("a/c", &sealed).unwrap_err().to_string(),
        "a ledger record does not match its checksum"
    );
    assert_eq!(unseal("a/b", &sealed[..7]), Err(PackedError::Damaged));
}
