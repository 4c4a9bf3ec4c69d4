use pipeline_core::{Digest, EntityId, Record, Report, ReportKind, Settled, Surveyed, Version};

use super::compare::{Difference, acknowledged, difference};
use super::*;

const OBJECT: ReportKind = ReportKind::of_object("object");

fn record(uid: &str, version: u64) -> Record {
    Record { version: Version(version), settled: Settled::Now, ..Record::new(uid.into()) }
}

fn told(record: Option<Record>, uid: &str, entity: EntityId) -> Option<Record> {
    let key = Key::new("ns", "store").unwrap();
    let report = Report::new(key, uid.into(), Version(1), entity, OBJECT, Digest(1));
    Record::acknowledge(record, &report)
}

#[test]
fn a_list_and_a_record_differ_in_one_way_at_a_time() {
    let key = Key::new("ns", "store").unwrap();
    let listed = |uid: &str, version: u64| -> Option<Surveyed> {
        Some(Surveyed { key: key.clone(), uid: uid.into(), version: Version(version), may_drift: false })
    };
    let drifting = listed("a", 5).map(|listed| Surveyed { may_drift: true, ..listed });
    let partly = Record { settled: Settled::Never, ..record("a", 5) };
    let mut in_doubt = record("a", 5);
    in_doubt.object_mut().in_doubt = true;
    for (listed, known, expected) in [
        (None, None, None),
        (listed("a", 5), None, Some(Difference::Missing)),
        (None, Some(record("a", 5)), Some(Difference::Unlisted)),
        (listed("a", 5), Some(record("a", 5)), None),
        (listed("a", 4), Some(record("a", 5)), None),
        (listed("a", 6), Some(record("a", 5)), Some(Difference::Newer)),
        (drifting.clone(), Some(record("a", 5)), Some(Difference::MayDrift)),
        (drifting, Some(record("a", 4)), Some(Difference::Newer)),
        (listed("a", 5), Some(partly), Some(Difference::Newer)),
        (listed("a", 5), Some(in_doubt), Some(Difference::Newer)),
        (listed("b", 6), Some(record("a", 5)), Some(Difference::Recreated)),
        // A cluster that was built anew counts its versions from the start.
        (listed("b", 1), Some(record("a", 5)), Some(Difference::Recreated)),
    ] {
        assert_eq!(difference(listed.as_ref(), known.as_ref()), expected, "{listed:?} {known:?}");
    }
}

#[test]
fn acknowledged_reports_are_counted_over_lives() {
    let one = told(None, "a", EntityId::OBJECT);
    let three = told(told(one.clone(), "a", EntityId(1)), "a", EntityId::OBJECT);
    let other = told(None, "b", EntityId::OBJECT);
    let count =
        |before: &Option<Record>, after: &Option<Record>| acknowledged(before.as_ref(), after.as_ref());
    assert_eq!(count(&None, &None), 0);
    assert_eq!(count(&None, &three), 3);
    assert_eq!(count(&one, &three), 2);
    assert_eq!(count(&three, &None), 1);
    assert_eq!(count(&three, &other), 2);
}

#[test]
fn what_is_found_is_named_in_part() {
    let keys: Vec<Key> = (0..250).rev().map(|n| Key::new("ns", &format!("app-{n:03}")).unwrap()).collect();
    let found = Found::of(keys.iter().chain(&keys[..3]));
    assert_eq!((found.total, found.keys.len()), (250, NAMED));
    assert_eq!((found.keys[0].as_str(), found.keys[99].as_str()), ("ns/app-000", "ns/app-099"));
}

#[test]
fn a_result_is_written_and_read() {
    let verified = Verified {
        objects: 3,
        gone: Found { total: 1, keys: vec!["ns/app".to_owned()] },
        receiver_differs: Some(Found::default()),
        seconds: 1.5,
        ..Verified::default()
    };
    let text = serde_json::to_string(&verified).unwrap();
    assert!(text.contains(r#""gone":{"total":1,"keys":["ns/app"]}"#), "{text}");
    assert!(
        text.contains(
            r#""receiverDiffers":{"total":0,"keys":[]},"receiverOthers":null,"othersUnknown":false,"unlisted":[],"receiverFailed":null"#
        ),
        "{text}"
    );
    assert_eq!(serde_json::from_str::<Verified>(&text).unwrap(), verified);
    let options: VerifyOptions = serde_json::from_str(r#"{"dry":true}"#).unwrap();
    assert_eq!(options, VerifyOptions { dry: true, ..VerifyOptions::default() });
}
