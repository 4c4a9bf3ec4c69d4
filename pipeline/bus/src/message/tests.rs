use proptest::prelude::*;

use super::*;

fn end(text: &str) -> Fact {
    Fact { id: Digest::of(text.as_bytes()), body: text.repeat(3).into() }
}

fn change(body: &'static [u8]) -> Message {
    Message {
        key: Key::new("ns", "shop").unwrap(),
        uid: "u-1".into(),
        version: Version(7),
        observed: Timestamp::from_millisecond(1_700_000_000_123).unwrap(),
        trace: 1 << 100,
        fact: Some(end("Succeeded")),
        coalesced: vec![end("Failed")],
        labels: pipeline_core::ObjectLabels::default(),
        again: false,
        payload: Payload::Change { body: Bytes::from_static(body) },
    }
}

/// A map from names to values, as another writer might write it.
fn map(fields: &serde_json::Value) -> Bytes {
    Bytes::from(rmp_serde::to_vec_named(fields).unwrap())
}

fn fields() -> serde_json::Value {
    serde_json::json!({
        "format": 2, "kind": "deleted", "namespace": "ns", "name": "shop", "uid": "u", "version": 7, "observed": 0,
    })
}

/// `fields` with `more`, as bytes; the trace is 16 bytes, which JSON has no word for.
fn with(more: &[(&str, serde_json::Value)]) -> Bytes {
    let mut all = fields();
    for (name, value) in more {
        all[*name] = value.clone();
    }
    let names = all.as_object().unwrap().len();
    let mut bytes = map(&all).to_vec();
    assert_eq!(bytes[0], 0x80 + u8::try_from(names).unwrap(), "a small map says its size in its first byte");
    bytes[0] += 1;
    bytes.extend(rmp_serde::to_vec_named("trace").unwrap());
    bytes.extend(rmp_serde::to_vec_named(&0_u128).unwrap());
    Bytes::from(bytes)
}

#[test]
fn the_wire_is_a_map_with_names_and_bytes() {
    let bytes = change(b"{}").encode(1_000_000).unwrap().bytes;
    let has = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
    assert!(has(b"\xa6format\x02"), "the format is a small number under its name");
    assert!(has(b"\xa4kind\xa6change") && has(b"\xa9namespace\xa2ns"));
    assert!(has(b"\xa4body\xc4\x02{}"), "the body is binary, not a list of numbers");
}

#[test]
fn a_body_is_a_part_of_what_was_read_and_not_a_copy() {
    let bytes = change(b"{\"a\":1}").encode(1_000_000).unwrap().bytes;
    let read = decode(&bytes).unwrap();
    let (body, all) = (read.body().unwrap().as_ptr_range(), bytes.as_ptr_range());
    assert!(all.contains(&body.start));
}

#[test]
fn fields_of_a_later_writer_are_ignored_and_a_later_format_is_refused() {
    let plain = decode(&with(&[])).unwrap();
    assert_eq!(plain.payload, Payload::Deleted { body: None });
    let more = [("later", serde_json::json!({ "deep": [1, { "er": null }] }))];
    assert_eq!(decode(&with(&more)), Ok(plain));
    // In a newer format nothing else is looked at.
    let newer = map(&serde_json::json!({ "format": 3, "kind": 17 }));
    assert_eq!(decode(&newer), Err(DecodeError::Newer { format: 3 }));
    assert_eq!(
        decode(&newer).unwrap_err().to_string(),
        "the message is of format 3, and the newest that is known is 2"
    );
}

#[test]
fn garbage_is_refused_by_what_is_wrong_with_it() {
    let json = |value: serde_json::Value| value;
    let long = "x".repeat(MAX_NAME + 1);
    let cases: [(Bytes, &str); 12] = [
        (Bytes::new(), "it is no map"),
        (Bytes::from_static(b"{\"format\":1}"), "it is no map"),
        (Bytes::from_static(b"\x91\x01"), "it is no map"),
        (Bytes::from_static(b"\x80"), "it is malformed or has no format"),
        (map(&json(serde_json::json!({ "format": "1" }))), "it is malformed or has no format"),
        (map(&json(serde_json::json!({ "format": 1 }))), "its format is older than any that is read"),
        (map(&fields()), "a field is missing or malformed"),
        (with(&[("kind", "secret".into())]), "its kind is not known"),
        (with(&[("kind", "change".into())]), "its fields do not fit its kind"),
        (with(&[("entity", 3.into())]), "its fields do not fit its kind"),
        (with(&[("name", "a/b".into())]), "its key is no key"),
        (with(&[("uid", long.into())]), "a name is too long"),
    ];
    for (bytes, why) in cases {
        assert_eq!(decode(&bytes), Err(DecodeError::Garbage(why)));
    }
    let mut trailing = with(&[]).to_vec();
    trailing.push(0);
    assert_eq!(
        decode(&Bytes::from(trailing)).unwrap_err().to_string(),
        "the message is garbage: something stands behind it"
    );
    let many = serde_json::json!(vec![(0, ""); MAX_FACTS + 1]);
    let refused = decode(&with(&[("coalesced", many)]));
    assert_eq!(refused, Err(DecodeError::Garbage("a field is missing or malformed")));
    let fit = serde_json::json!(vec![(0, ""); MAX_FACTS]);
    assert_eq!(decode(&with(&[("coalesced", fit)])).unwrap().coalesced.len(), MAX_FACTS);
}

#[test]
fn nesting_ends_at_a_bound() {
    // A known field stands first, so that the depth is what is refused.
    let mut bytes = vec![0x82];
    bytes.extend(b"\xa6format\x02\xa1z");
    bytes.extend(std::iter::repeat_n(0x91, 100_000));
    bytes.push(0xc0);
    assert_eq!(decode(&Bytes::from(bytes)), Err(DecodeError::Garbage("it is malformed or has no format")));
}

#[test]
fn a_body_beyond_the_bound_stays_behind() {
    let whole = change(b"0123456789");
    let size = whole.encode(1_000_000).unwrap().bytes.len();
    assert!(whole.encode(size).unwrap().whole);
    let cut = whole.encode(size - 1).unwrap();
    assert!(!cut.whole);
    assert_eq!(decode(&cut.bytes).unwrap(), whole.without_body());
    assert_eq!(whole.without_body().payload, Payload::Overlarge { about: None });

    let gone = Message { payload: Payload::Deleted { body: whole.body().cloned() }, ..whole.clone() };
    assert_eq!(
        decode(&gone.encode(size - 1).unwrap().bytes).unwrap().payload,
        Payload::Deleted { body: None }
    );

    let bare = Message { fact: None, coalesced: Vec::new(), ..whole.without_body() };
    let least = bare.encode(size).unwrap().bytes.len();
    let error = whole.encode(least - 1).unwrap_err();
    assert_eq!(error, EncodeError::TooLarge { size: least, max: least - 1 });
    assert_eq!(
        EncodeError::TooLarge { size: 30, max: 20 }.to_string(),
        "a message of the bus is 30 bytes without its body, and the server takes 20"
    );
}

#[test]
fn of_facts_that_do_not_fit_the_oldest_are_given_up_and_counted() {
    let fact = |n: u8| Fact { id: Digest(n.into()), body: vec![n; 100].into() };
    let all = Message { fact: Some(fact(9)), coalesced: (0..9).map(fact).collect(), ..change(b"{}") };
    let whole = all.encode(1_000_000).unwrap();
    assert_eq!((whole.whole, whole.given_up), (true, 0));
    let size = all.without_body().encode(1_000_000).unwrap().bytes.len();
    for (room, given_up) in [(size, 0), (size - 1, 1), (size - 250, 3), (size - 901, 10)] {
        let some = all.encode(room).unwrap();
        assert_eq!((some.whole, some.given_up), (false, given_up), "{room}");
        let read = decode(&some.bytes).unwrap();
        assert_eq!(read.coalesced, all.coalesced[given_up.min(9)..]);
        assert_eq!(read.fact.is_some(), given_up < 10);
    }
}

#[test]
fn what_is_beyond_any_real_name_is_not_written() {
    let refused = |message: Message| message.encode(1_000_000).unwrap_err().to_string();
    let long = "x".repeat(MAX_NAME + 1);
    let uid = Message { uid: long.as_str().into(), ..change(b"") };
    assert_eq!(refused(uid), "a message of the bus has a uid beyond its bound");
    let name = Message { key: Key::new("ns", &long).unwrap(), ..change(b"") };
    assert_eq!(refused(name), "a message of the bus has a name beyond its bound");
    let facts = Message { coalesced: (0..=MAX_FACTS).map(|_| end("x")).collect(), ..change(b"") };
    assert_eq!(refused(facts), "a message of the bus has a number of facts beyond its bound");
}

#[test]
fn an_event_comes_back_as_the_watch_gave_it() {
    let event = change(b"{}").into_event().unwrap();
    assert_eq!((event.cause, event.version), (Cause::Watch, Version(7)));
    assert_eq!(Message::of(event), change(b"{}"));
    let overlarge = change(b"{}").without_body();
    assert_eq!(*overlarge.clone().into_event().unwrap_err(), overlarge);
}

#[test]
fn what_is_printed_holds_nothing_of_the_object() {
    let message = change(b"canary");
    let encoded = message.encode(1_000_000).unwrap();
    let printed = format!("{message:?} {encoded:?} {:?}", Payload::Deleted { body: message.body().cloned() });
    assert!(!printed.contains("canary"), "{printed}");
    assert!(printed.contains("Change(6 bytes)"), "{printed}");
}

fn text() -> impl Strategy<Value = String> {
    "\\PC{0,40}"
}

fn ends() -> impl Strategy<Value = Fact> {
    (any::<u64>(), text()).prop_map(|(id, text)| Fact { id: Digest(id), body: text.into() })
}

fn payload() -> impl Strategy<Value = Payload> {
    let about =
        (proptest::option::of(any::<u64>()), 0..3_usize, any::<u64>()).prop_map(|(id, kind, content)| {
            About {
                entity: pipeline_core::EntityId(id.unwrap_or_default()),
                report: ["app", "child_app", "resource"][kind].into(),
                content: Digest(content),
            }
        });
    let body = proptest::collection::vec(any::<u8>(), 0..300).prop_map(Bytes::from);
    prop_oneof![
        body.clone().prop_map(|body| Payload::Change { body }),
        proptest::option::of(body.clone()).prop_map(|body| Payload::Deleted { body }),
        (about.clone(), body).prop_map(|(about, body)| Payload::Result { about, body }),
        proptest::option::of(about).prop_map(|about| Payload::Overlarge { about }),
    ]
}

prop_compose! {
    fn messages()(
        kind in "[^/]{0,9}", namespace in "[^/]{1,60}", name in "[^/]{1,60}", uid in text(), version in any::<u64>(),
        observed in 0_i64..4_000_000_000_000, trace in any::<u128>(), fact in proptest::option::of(ends()),
        coalesced in proptest::collection::vec(ends(), 0..5), payload in payload(),
    ) -> Message {
        Message {
            key: Key::of_kind(&kind, &namespace, &name).unwrap(), uid: uid.into(), version: Version(version),
            observed: Timestamp::from_millisecond(observed).unwrap(), trace, fact, coalesced, labels: pipeline_core::ObjectLabels::default(), again: false, payload,
        }
    }
}

proptest! {
    #[test]
    fn reading_undoes_writing(message in messages()) {
        let encoded = message.encode(1_000_000).unwrap();
        prop_assert!(encoded.whole);
        prop_assert_eq!(decode(&encoded.bytes), Ok(message));
    }

    #[test]
    fn any_bytes_are_a_message_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = decode(&Bytes::from(bytes));
    }

    #[test]
    fn a_damaged_message_is_a_message_or_an_error(
        message in messages(), cut in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), to in any::<u8>(),
    ) {
        let mut bytes = message.encode(1_000_000).unwrap().bytes.to_vec();
        let cut = cut.index(bytes.len());
        prop_assert!(decode(&Bytes::copy_from_slice(&bytes[..cut])).is_err(), "a part of a message is none");
        let at = at.index(bytes.len());
        bytes[at] = to;
        let _ = decode(&Bytes::from(bytes));
    }
}
