use super::*;

const WHOLE: &str = r#"{"apiVersion":"example.org/v1","metadata":{"name":"a","namespace":"home","uid":"u1","resourceVersion":"42"}}"#;

fn read(text: &str) -> Event {
    parse(text).unwrap().event(false, Cause::Watch, (Timestamp::UNIX_EPOCH, 7))
}

/// What is read of a status here.
#[derive(Debug, Deserialize)]
struct Status {
    state: Option<u8>,
}

fn parse(text: &str) -> Result<Head<'_, Status>, Unreadable> {
    head("", text)
}

fn with_metadata(metadata: &str) -> String {
    format!(r#"{{"metadata":{metadata},"spec":{{}}}}"#)
}

#[test]
fn the_body_is_the_text_to_the_byte() {
    let text = r#"{ "metadata": {"name":"a","namespace":"home","uid":"u1","resourceVersion":"42"},  "spec":{"x":1e999} }"#;
    let event = read(text);
    assert_eq!(event.body().unwrap(), text.as_bytes());
    assert_eq!((event.key.as_str(), &*event.uid, event.version), ("home/a", "u1", Version(42)));
    assert_eq!((event.cause, event.observed, event.trace), (Cause::Watch, Timestamp::UNIX_EPOCH, 7));
}

#[test]
fn a_deletion_carries_the_last_state() {
    let event = parse(WHOLE).unwrap().event(true, Cause::Read, (Timestamp::UNIX_EPOCH, 7));
    assert_eq!(event.change, Change::Deleted { body: Some(Bytes::from_static(WHOLE.as_bytes())) });
    assert_eq!(event.cause, Cause::Read);
}

#[test]
fn wrong_types_beside_the_identity_do_not_matter() {
    for metadata in [
        r#"{"name":"a","namespace":"home","uid":"u1","resourceVersion":"42","labels":{"n":1},"annotations":[]}"#,
        r#"{"name":"a","namespace":"home","uid":"u1","resourceVersion":"42","creationTimestamp":"yesterday"}"#,
        r#"{"name":"a","namespace":"home","uid":"u1","resourceVersion":"42","generation":"x","finalizers":7}"#,
    ] {
        assert_eq!(read(&with_metadata(metadata)).version, Version(42), "{metadata}");
    }
}

#[test]
fn whatever_stands_where_an_object_is_expected_is_passed_over() {
    let identity = r#""name":"a","namespace":"home","uid":"u1","resourceVersion":"42""#;
    for other in
        ["null", "true", "5", "-5", "1.5", "\"x\"", "\"\\u00fc\"", "[]", "[1,{\"phase\":\"x\"}]", "{}"]
    {
        let text = format!(r#"{{"status":{other},"metadata":{{{identity}}}}}"#);
        let head = parse(&text).unwrap();
        assert_eq!((head.key.as_str(), head.version), ("home/a", Version(42)), "{other}");
        assert_eq!(head.status.is_some(), other == "{}", "{other}");
        let error = parse(&with_metadata(other)).unwrap_err();
        assert_eq!(error.part, if other == "{}" { "namespace" } else { "metadata" }, "{other}");
    }
}

#[test]
fn a_name_that_cannot_be_unescaped_is_missing() {
    let error = parse(&with_metadata(r#"{"name":"\ud800","namespace":"home","uid":"u1"}"#)).unwrap_err();
    assert_eq!(error.part, "name");
}

#[test]
fn a_version_that_is_no_number_is_unknown_and_kept_as_written() {
    let text = WHOLE.replace("\"42\"", "\"abc\"");
    let head = parse(&text).unwrap();
    assert_eq!((head.version, head.resource_version.as_str()), (Version(0), "abc"));
}

#[test]
fn a_missing_identity_is_named() {
    let key = || Key::parse("home/a").ok();
    let rv = || Some("42".to_owned());
    for (text, part, key, resource_version) in [
        ("5".to_owned(), "object", None, None),
        ("{\"metadata\":".to_owned(), "object", None, None),
        ("{}".to_owned(), "metadata", None, None),
        (with_metadata("[1]"), "metadata", None, None),
        (with_metadata(r#"{"namespace":"home","uid":"u1","resourceVersion":"42"}"#), "name", None, rv()),
        (with_metadata(r#"{"name":"a/b","namespace":"home","resourceVersion":"42"}"#), "name", None, rv()),
        (with_metadata(r#"{"name":"a","namespace":7,"resourceVersion":"42"}"#), "namespace", None, rv()),
        (with_metadata(r#"{"name":"a","namespace":"home","resourceVersion":"42"}"#), "uid", key(), rv()),
        (
            with_metadata(r#"{"name":"a","namespace":"home","uid":"u1","resourceVersion":42}"#),
            "resourceVersion",
            key(),
            None,
        ),
    ] {
        assert_eq!(parse(&text).unwrap_err(), Unreadable { part, key, resource_version }, "{text}");
    }
}

#[test]
fn a_status_of_another_form_costs_the_status_alone() {
    let with = |status: &str| {
        let metadata = r#"{"name":"a","namespace":"n","uid":"u","resourceVersion":"7"}"#;
        format!(r#"{{"status":{status},"metadata":{metadata}}}"#)
    };
    for status in [r#"{"state":1,"state":2}"#, r#"{"state":1e999}"#, r#"{"state":"x"}"#, r#""\ud800""#] {
        let text = with(status);
        let head = parse(&text).unwrap();
        assert_eq!((head.key.as_str(), head.resource_version.as_str()), ("n/a", "7"), "{status}");
        assert!(head.status.is_none(), "{status}");
    }
    assert_eq!(parse(&with(r#"{"state":7}"#)).unwrap().status.unwrap().state, Some(7));
    assert!(parse(&with("{]")).is_err());
}

#[test]
fn a_bookmark_has_a_version_alone() {
    let bookmark = r#"{"kind":"Widget","metadata":{"resourceVersion":"99","creationTimestamp":null}}"#;
    assert_eq!(resource_version(bookmark).as_deref(), Some("99"));
    assert_eq!(resource_version(r#"{"metadata":{"resourceVersion":""}}"#), None);
    assert_eq!(resource_version("[]"), None);
}
