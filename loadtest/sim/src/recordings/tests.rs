use std::fs;

use super::*;

#[test]
fn packed_sets_hold_every_case() {
    let incumbent = packed("incumbent-2.12").unwrap();
    let upstream = packed("argocd-3.2").unwrap();
    for cases in [&incumbent, &upstream] {
        assert_eq!(cases.len(), 11);
        assert!(cases.iter().any(|case| case.name == "secret-commit-prune"));
        assert!(cases.is_sorted_by_key(|case| case.name.clone()));
    }
    let sum = |of: fn(&Case) -> usize| incumbent.iter().map(of).sum::<usize>();
    assert_eq!(sum(|case| case.watch.len()), 283);
    assert_eq!(sum(|case| case.calls.len()), 1981);
    assert_eq!(sum(|case| case.reports.len()), 476);
    assert!(sum(|case| case.rounds.iter().filter(|round| round.resource_version_is_a_guess).count()) > 0);
    assert!(upstream.iter().all(|case| case.reports.is_empty() && case.rounds.is_empty()));
    let call = &upstream[0].calls[0];
    assert!(upstream[0].answer(call).unwrap().get().starts_with('{'));
    assert_eq!(upstream[0].meta.server, "argocd-3.2");
}

#[test]
fn what_cannot_be_read_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let text = |result: anyhow::Result<Vec<Case>>| format!("{:#}", result.unwrap_err());
    assert_eq!(
        text(load_dir(root)),
        format!("no case in {}: a case is a folder with a case.json", root.display())
    );
    assert_eq!(text(packed("mine")), "no packed recordings named mine: there are incumbent-2.12, argocd-3.2");

    let case = root.join("one");
    fs::create_dir(&case).unwrap();
    fs::write(case.join("watch.jsonl"), "").unwrap();
    assert_eq!(text(load_dir(root)), format!("find {}", case.join("case.json").display()));

    let meta = r#"{"applications":["a"],"trackingMethod":"label","instanceLabelKey":"k","server":"s"}"#;
    fs::write(case.join("case.json"), meta).unwrap();
    let good = r#"{"t": 1.5, "event": {"type": "ADDED", "object": {"a":  1}}}"#;
    fs::write(case.join("watch.jsonl"), format!("{good}\n\n{{\"t\": 2}}\n")).unwrap();
    assert_eq!(
        text(load_dir(root)),
        format!(
            "read {}, line 3: missing field `event` at line 1 column 8",
            case.join("watch.jsonl").display()
        )
    );

    fs::write(case.join("watch.jsonl"), good).unwrap();
    fs::write(case.join("bodies.jsonl"), "").unwrap();
    let call = r#"{"n":7,"t":1,"ms":1,"by":"observer","path":"/x","status":200,"body":"b"}"#;
    fs::write(case.join("calls.jsonl"), call).unwrap();
    assert_eq!(
        text(load_dir(root)),
        format!(
            "read {}: call 7 names body b, which {} has not",
            case.join("calls.jsonl").display(),
            case.join("bodies.jsonl").display()
        )
    );

    fs::write(case.join("bodies.jsonl"), r#"{"id":"b","body":null}"#).unwrap();
    let cases = load_dir(root).unwrap();
    assert_eq!(cases[0].watch[0].object.get(), r#"{"a":  1}"#);
    assert_eq!((cases[0].watch[0].t, cases[0].watch[0].kind.as_str()), (1.5, "ADDED"));
}
