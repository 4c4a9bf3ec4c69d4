//! Whatever JSON comes, a plan ends without a panic, in a report or a refusal.

use pipeline_core::{Change, Event, Reason};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

#[test]
fn what_is_no_application_is_refused() {
    for (text, message) in [
        ("", "read application: not json"),
        ("{\"metadata\":", "read application: not json"),
        ("[]", "read application: not an object"),
        ("{}", "read application: no metadata.name"),
        (r#"{"metadata": {"name": 7}}"#, "read application: no metadata.name"),
    ] {
        let event = Event { change: Change::Applied { body: text.into() }, ..event(&store()) };
        let result = run_with(&event, None, &settings(RawManifests::Absent), Duration::ZERO, healthy).0;
        let error = result.unwrap_err();
        assert_eq!((error.reason(), error.to_string().as_str()), (Reason::Malformed, message));
        assert!(!error.is_retry());
    }
}

#[test]
fn json_that_nests_without_end_is_refused() {
    let deep =
        format!("{{\"metadata\":{{\"name\":\"a\"}},\"spec\":{}{}}}", "[".repeat(5000), "]".repeat(5000));
    let event = Event { change: Change::Applied { body: deep.into() }, ..event(&store()) };
    let result = run_with(&event, None, &settings(RawManifests::Absent), Duration::ZERO, healthy).0;
    assert_eq!(result.unwrap_err().to_string(), "read application: not json");
}

#[test]
fn no_spec_and_no_status_is_reported() {
    let bare =
        json!({"metadata": {"name": "store", "namespace": "argocd", "uid": "u1", "resourceVersion": "1"}});
    let (enriched, asked) = run(&event(&bare), None, healthy);
    assert_eq!(kinds(&enriched), ["Application"]);
    assert!(asked.is_empty());
}

#[test]
fn a_large_application_is_reported() {
    let mut large = store();
    large["metadata"]["annotations"] = json!({"note": "x".repeat(3 << 20)});
    let (enriched, _) = run(&event(&large), None, healthy);
    assert!(enriched.reports[0].body.len() > 3 << 20);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[ -~\\u{0}-\\u{20}\\u{2028}<>&é]{0,12}".prop_map(Value::from),
        Just(json!("null")),
        Just(json!("2026-11-21T12:00:00+02:00")),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[a-zA-Z/.]{0,8}", inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Puts something else in a place of a value that is as it should be.
fn wrecked(mut value: Value, at: &[usize], with: Value) -> Value {
    wreck(&mut value, at, with);
    value
}

fn wreck(place: &mut Value, at: &[usize], with: Value) {
    let Some((&index, below)) = at.split_first() else {
        *place = with;
        return;
    };
    match place {
        Value::Object(object) if !object.is_empty() => {
            let index = index % object.len();
            wreck(object.values_mut().nth(index).unwrap(), below, with);
        }
        Value::Array(list) if !list.is_empty() => {
            let index = index % list.len();
            wreck(&mut list[index], below, with);
        }
        other => *other = with,
    }
}

fn bodies_are_json(enriched: &Enriched) -> bool {
    enriched.reports.iter().all(|report| serde_json::from_slice::<Value>(&report.body).is_ok())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn any_object_ends_in_a_report_or_a_refusal(
        at in prop::collection::vec(0_usize..16, 1..5),
        with in any_json(),
        tree in any::<bool>(),
        gone in any::<bool>(),
    ) {
        let base = if tree { store_with_health_in_tree() } else { store() };
        let app = wrecked(base, &at, with);
        let event = if gone { deleted(&app) } else { event(&app) };
        for raw in [RawManifests::Unknown, RawManifests::Served, RawManifests::Absent] {
            let result = run_with(&event, None, &settings(raw), Duration::ZERO, healthy).0;
            if let Ok(enriched) = result {
                prop_assert!(bodies_are_json(&enriched));
            }
        }
    }

    #[test]
    fn any_answer_ends_in_a_report(
        at in prop::collection::vec(0_usize..16, 0..5),
        with in any_json(),
        raw in any::<bool>(),
    ) {
        let app = store_with_health_in_tree();
        let event = event(&app);
        let response = |fetch: &Fetch| match healthy(fetch) {
            Response::Body(text) => {
                let value = serde_json::from_slice(&text).unwrap();
                body(wrecked(value, &at, with.clone()))
            }
            other => other,
        };
        let settings = settings(if raw { RawManifests::Served } else { RawManifests::Unknown });
        let result = run_with(&event, None, &settings, Duration::from_secs(300), response).0;
        prop_assert!(!result.unwrap().reports.is_empty());
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let app = store();
        let event = event(&app);
        let response = |_: &Fetch| Response::Body(bytes.clone().into());
        let upstream = settings(RawManifests::Unknown);
        let result = run_with(&event, None, &upstream, Duration::from_secs(300), response).0;
        prop_assert!(result.is_ok());
        let event = Event { change: Change::Applied { body: bytes.clone().into() }, ..event };
        let _ = run_with(&event, None, &upstream, Duration::ZERO, healthy);
    }
}
