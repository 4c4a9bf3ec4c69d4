use super::*;

fn read(status: &str) -> Status {
    serde_json::from_str(status).unwrap()
}

fn with_operation(state: &str) -> Option<OperationEnd> {
    read(&format!(r#"{{"operationState":{state}}}"#)).operation_end(&Redactor::new(b"test"))
}

#[test]
fn what_is_out_of_sync_says_so_as_a_text() {
    assert!(read(r#"{"sync":{"status":"OutOfSync"}}"#).is_out_of_sync());
    for other in [
        r#"{"sync":{"status":"Synced"}}"#,
        r#"{"sync":"OutOfSync"}"#,
        r#"{"sync":{"status":["OutOfSync"]}}"#,
        "{}",
    ] {
        assert!(!read(other).is_out_of_sync(), "{other}");
    }
}

#[test]
fn whatever_stands_where_an_object_is_expected_is_passed_over() {
    for other in
        ["null", "true", "5", "-5", "1.5", "\"x\"", "\"\\u00fc\"", "[]", "[1,{\"phase\":\"x\"}]", "{}"]
    {
        assert_eq!(with_operation(other), None, "{other}");
        assert!(!read(&format!(r#"{{"sync":{other}}}"#)).is_out_of_sync(), "{other}");
        let end = with_operation(&format!(r#"{{"syncResult":{other},"finishedAt":"t"}}"#)).unwrap();
        assert_eq!((end.finished_at.as_str(), end.revision.as_str()), ("t", ""), "{other}");
    }
}

#[test]
fn a_text_that_cannot_be_unescaped_is_passed_over() {
    let end = with_operation(r#"{"finishedAt":"t","message":"\ud800","phase":"\u0046ailed"}"#).unwrap();
    assert_eq!((end.message.as_str(), end.phase.as_str()), ("", "Failed"));
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
        revisions: Vec::new(),
        asked: RequestedOperation::default(),
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
fn of_an_operation_it_is_kept_who_asked_for_it_and_for_what() {
    let read = |operation: serde_json::Value, revisions: serde_json::Value| {
        let state = serde_json::json!({"finishedAt": "t", "operation": operation, "syncResult": {"revisions": revisions}});
        with_operation(&state.to_string()).unwrap()
    };
    let end = read(
        serde_json::json!({
            "initiatedBy": {"username": "alice", "automated": true},
            "sync": {"revision": "a", "revisions": ["b", 7], "dryRun": true, "changeRevision": "c", "changeRevisions": ["d"]},
        }),
        serde_json::json!(["e", "f"]),
    );
    let asked = RequestedOperation {
        username: "alice".to_owned(),
        is_automated: true,
        is_dry_run: true,
        revision: "a".to_owned(),
        revisions: vec!["b".to_owned(), String::new()],
        change_revision: "c".to_owned(),
        change_revisions: vec!["d".to_owned()],
    };
    assert_eq!((end.asked, end.revisions), (asked, vec!["e".to_owned(), "f".to_owned()]));
    for other in [serde_json::json!(7), serde_json::json!({"initiatedBy": [], "sync": "x"})] {
        assert_eq!(read(other, serde_json::json!({})).asked, RequestedOperation::default());
    }
    let long = "x".repeat(LONGEST_NAME + 1);
    let end = read(
        serde_json::json!({"initiatedBy": {"username": long}}),
        serde_json::json!(vec!["a"; SOURCES + 1]),
    );
    assert_eq!((end.asked.username, end.revisions), (String::new(), Vec::<String>::new()));
}
