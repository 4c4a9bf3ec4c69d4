use super::*;

const WHOLE: &str = r#"{"apiVersion":"argoproj.io/v1alpha1","metadata":{"name":"a","namespace":"argocd","uid":"u1","resourceVersion":"42"}}"#;

fn read(text: &str) -> Event {
    event(&head(text).unwrap(), false, Cause::Watch, (Timestamp::UNIX_EPOCH, 7), &Redactor::new(b"test"))
}

fn with_metadata(metadata: &str) -> String {
    format!(r#"{{"metadata":{metadata},"spec":{{}}}}"#)
}

fn with_operation(state: &str) -> Option<OperationEnd> {
    let identity = r#"{"name":"a","namespace":"argocd","uid":"u1","resourceVersion":"42"}"#;
    read(&format!(r#"{{"metadata":{identity},"status":{{"operationState":{state}}}}}"#))
        .fact
        .map(|fact| OperationEnd::of(&fact).unwrap())
}

#[test]
fn the_body_is_the_text_to_the_byte() {
    let text = r#"{ "metadata": {"name":"a","namespace":"argocd","uid":"u1","resourceVersion":"42"},  "spec":{"x":1e999} }"#;
    let event = read(text);
    assert_eq!(event.body().unwrap(), text.as_bytes());
    assert_eq!((event.key.as_str(), &*event.uid, event.version), ("argocd/a", "u1", Version(42)));
    assert_eq!((event.cause, event.observed, event.trace), (Cause::Watch, Timestamp::UNIX_EPOCH, 7));
    assert_eq!(event.fact, None);
}

#[test]
fn a_deletion_carries_the_last_state() {
    let redactor = Redactor::new(b"test");
    let event = event(&head(WHOLE).unwrap(), true, Cause::Read, (Timestamp::UNIX_EPOCH, 7), &redactor);
    assert_eq!(event.change, Change::Deleted { body: Some(Bytes::from_static(WHOLE.as_bytes())) });
    assert_eq!(event.cause, Cause::Read);
}

#[test]
fn wrong_types_beside_the_identity_do_not_matter() {
    for metadata in [
        r#"{"name":"a","namespace":"argocd","uid":"u1","resourceVersion":"42","labels":{"n":1},"annotations":[]}"#,
        r#"{"name":"a","namespace":"argocd","uid":"u1","resourceVersion":"42","creationTimestamp":"yesterday"}"#,
        r#"{"name":"a","namespace":"argocd","uid":"u1","resourceVersion":"42","generation":"x","finalizers":7}"#,
    ] {
        assert_eq!(read(&with_metadata(metadata)).version, Version(42), "{metadata}");
    }
    assert_eq!(
        read(&WHOLE.replace("{\"apiVersion\"", "{\"status\":5,\"apiVersion\""))
            .fact
            .map(|fact| OperationEnd::of(&fact).unwrap()),
        None
    );
}

#[test]
fn whatever_stands_where_an_object_is_expected_is_passed_over() {
    let identity = r#""name":"a","namespace":"argocd","uid":"u1","resourceVersion":"42""#;
    for other in
        ["null", "true", "5", "-5", "1.5", "\"x\"", "\"\\u00fc\"", "[]", "[1,{\"phase\":\"x\"}]", "{}"]
    {
        let bare = read(&format!(r#"{{"status":{other},"metadata":{{{identity}}}}}"#));
        let inner = read(&format!(r#"{{"metadata":{{{identity}}},"status":{{"operationState":{other}}}}}"#));
        for event in [bare, inner] {
            assert_eq!((event.key.as_str(), event.version), ("argocd/a", Version(42)), "{other}");
            assert_eq!(event.fact, None, "{other}");
        }
        let end = with_operation(&format!(r#"{{"syncResult":{other},"finishedAt":"t"}}"#)).unwrap();
        assert_eq!((end.finished_at.as_str(), end.revision.as_str()), ("t", ""), "{other}");
        let error = head(&with_metadata(other)).unwrap_err();
        assert_eq!(error.part, if other == "{}" { "namespace" } else { "metadata" }, "{other}");
    }
}

#[test]
fn a_text_that_cannot_be_unescaped_is_passed_over() {
    let end = with_operation(r#"{"finishedAt":"t","message":"\ud800","phase":"\u0046ailed"}"#).unwrap();
    assert_eq!((end.message.as_str(), end.phase.as_str()), ("", "Failed"));
    let error = head(&with_metadata(r#"{"name":"\ud800","namespace":"argocd","uid":"u1"}"#)).unwrap_err();
    assert_eq!(error.part, "name");
}

#[test]
fn a_version_that_is_no_number_is_unknown_and_kept_as_written() {
    let text = WHOLE.replace("\"42\"", "\"abc\"");
    let head = head(&text).unwrap();
    assert_eq!((head.version, head.resource_version.as_str()), (Version(0), "abc"));
}

#[test]
fn a_missing_identity_is_named() {
    let key = || Key::parse("argocd/a").ok();
    let rv = || Some("42".to_owned());
    for (text, part, key, resource_version) in [
        ("5".to_owned(), "object", None, None),
        ("{\"metadata\":".to_owned(), "object", None, None),
        ("{}".to_owned(), "metadata", None, None),
        (with_metadata("[1]"), "metadata", None, None),
        (with_metadata(r#"{"namespace":"argocd","uid":"u1","resourceVersion":"42"}"#), "name", None, rv()),
        (with_metadata(r#"{"name":"a/b","namespace":"argocd","resourceVersion":"42"}"#), "name", None, rv()),
        (with_metadata(r#"{"name":"a","namespace":7,"resourceVersion":"42"}"#), "namespace", None, rv()),
        (with_metadata(r#"{"name":"a","namespace":"argocd","resourceVersion":"42"}"#), "uid", key(), rv()),
        (
            with_metadata(r#"{"name":"a","namespace":"argocd","uid":"u1","resourceVersion":42}"#),
            "resourceVersion",
            key(),
            None,
        ),
    ] {
        assert_eq!(head(&text).unwrap_err(), Unreadable { part, key, resource_version }, "{text}");
    }
}

#[test]
fn an_operation_has_ended_when_it_says_when() {
    let end = with_operation(
        r#"{"phase":"Failed","startedAt":"2026-11-21T12:00:00Z","finishedAt":"2026-11-21T12:00:09Z",
            "message":"no","syncResult":{"revision":"abc","resources":null}}"#,
    );
    let expected = OperationEnd {
        phase: "Failed".to_owned(),
        started_at: "2026-11-21T12:00:00Z".to_owned(),
        finished_at: "2026-11-21T12:00:09Z".to_owned(),
        revision: "abc".to_owned(),
        message: "no".to_owned(),
    };
    assert_eq!(end.as_ref(), Some(&expected));
    for running in [r#"{"phase":"Running"}"#, r#"{"finishedAt":""}"#, r#"{"finishedAt":null}"#, "7", "[]"] {
        assert_eq!(with_operation(running), None, "{running}");
    }
    let sparse = with_operation(r#"{"finishedAt":"t","phase":1,"message":{},"syncResult":"x"}"#).unwrap();
    assert_eq!((sparse.phase.as_str(), sparse.message.as_str(), sparse.revision.as_str()), ("", "", ""));
}

#[test]
fn a_long_message_is_cut_between_characters() {
    let end = with_operation(&format!(r#"{{"finishedAt":"t","message":"x{}"}}"#, "ü".repeat(600))).unwrap();
    assert_eq!(end.message.len(), 1023);
    assert!(end.message.ends_with('ü'));
}

#[test]
fn a_secret_that_a_message_quotes_is_withheld_even_where_its_kind_is_cut_off() {
    let data: serde_json::Map<String, serde_json::Value> =
        (0..90).map(|n| (format!("entry{n}"), "aHVudGVyMi1odW50ZXIyLWh1bnRlcjI=".into())).collect();
    let secret = serde_json::json!({"apiVersion": "v1", "data": data, "kind": "Secret"}).to_string();
    assert!(secret.find("\"kind\"").is_some_and(|at| at > TEXT_LIMIT));
    let message = format!("one or more objects failed to apply: invalid object: {secret}");
    let state = serde_json::json!({"finishedAt": "t", "message": message}).to_string();
    let end = with_operation(&state).unwrap();
    assert!(!end.message.contains("aHVudGVy") && !end.message.is_empty(), "{}", end.message);
    assert!(end.message.len() <= TEXT_LIMIT);
}

#[test]
fn a_text_that_would_hold_up_the_watch_is_left_out() {
    for (length, left_out) in [(LONGEST_TEXT, false), (LONGEST_TEXT + 1, true)] {
        let state = serde_json::json!({"finishedAt": "t", "message": "x".repeat(length)}).to_string();
        let end = with_operation(&state).unwrap();
        assert_eq!(end.message == "(a text of more than 64 kB, left out)", left_out, "{length}");
    }
}

#[test]
fn every_kept_text_of_an_operations_end_is_redacted_and_what_is_harmless_stays() {
    let token = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let end = with_operation(&format!(
        r#"{{"finishedAt":"t","phase":"{token}","message":"git fetch https://me:hunter2@git.example.com/x: no",
            "syncResult":{{"revision":"{token}"}}}}"#
    ))
    .unwrap();
    let kept = format!("{end:?}");
    assert!(!kept.contains("hunter2") && !kept.contains(token), "{kept}");
    assert!(end.message.contains("git.example.com/x: no"), "{kept}");
    let (revision, time) = ("b7c4e1f0a9d8c7b6a5948372615049382716afbe", "2026-11-21T12:00:09Z");
    let end = with_operation(&format!(
        r#"{{"finishedAt":"{time}","startedAt":"{time}","phase":"Succeeded","syncResult":{{"revision":"{revision}"}}}}"#
    ))
    .unwrap();
    assert_eq!(
        [&*end.finished_at, &end.started_at, &end.phase, &end.revision],
        [time, time, "Succeeded", revision]
    );
}

#[test]
fn what_nobody_could_read_of_a_status_costs_the_operation_alone() {
    let with = |status: &str| {
        let metadata = r#"{"name":"a","namespace":"n","uid":"u","resourceVersion":"7"}"#;
        format!(r#"{{"status":{status},"metadata":{metadata}}}"#)
    };
    for status in
        [r#"{"operationState":{},"operationState":{}}"#, r#"{"operationState":1e999}"#, r#""\ud800""#]
    {
        let text = with(status);
        let head = head(&text).unwrap();
        assert_eq!((head.key.as_str(), head.resource_version.as_str()), ("n/a", "7"), "{status}");
        assert!(head.operation.is_none(), "{status}");
    }
    assert!(head(&with("{]")).is_err());
}

#[test]
fn a_bookmark_has_a_version_alone() {
    let bookmark = r#"{"kind":"Application","metadata":{"resourceVersion":"99","creationTimestamp":null}}"#;
    assert_eq!(resource_version(bookmark).as_deref(), Some("99"));
    assert_eq!(resource_version(r#"{"metadata":{"resourceVersion":""}}"#), None);
    assert_eq!(resource_version("[]"), None);
}
