//! Where the sources of an Application stand, by what Argo CD says of it.

use serde_json::{Value, json};

use super::{Redactor, ReportedSync, is_dry_run, started_at, synced, waits_to_begin};

fn between(application: &Value) -> Vec<(Option<String>, Option<String>)> {
    synced(application).into_iter().map(|of| (of.current, of.previous)).collect()
}

fn redactor() -> Redactor {
    Redactor::new(b"0123456789abcdef0123456789abcdef")
}

fn pair(current: &str, previous: &str) -> (Option<String>, Option<String>) {
    let of = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    (of(current), of(previous))
}

#[test]
fn one_source_went_from_the_sync_before_to_the_last_one() {
    let mut application = json!({
        "spec": {"source": {"repoURL": "https://example.com/a", "path": "x"}},
        "status": {
            "sync": {"status": "Synced", "revision": "c"},
            "operationState": {"syncResult": {"revision": "c"}},
            "history": [{"revision": "a"}, {"revision": "b"}, {"revision": "c"}],
        },
    });
    assert_eq!(between(&application), [pair("c", "b")]);
    // A sync that was asked for goes from the last one.
    application["status"]["sync"]["status"] = "OutOfSync".into();
    assert_eq!(between(&application), [pair("", "c")]);
    application["operation"] = json!({"sync": {"revision": "d"}});
    assert_eq!(between(&application), [pair("d", "c")]);
    application["status"] = json!({"sync": {"status": "Synced", "revision": "c"}});
    application["operation"] = Value::Null;
    assert_eq!(between(&application), [pair("c", "")]);
    application["status"] = json!({});
    assert_eq!(between(&application), [pair("", "")]);
    application["status"] = json!({
        "sync": {"status": "Synced"},
        "operationState": {"syncResult": {"revision": "a"}},
        "history": [{"revision": "a"}],
    });
    assert_eq!(between(&application), [pair("a", "")]);
}

#[test]
fn a_sync_counts_though_it_is_out_of_sync_again_or_was_of_some_resources_alone() {
    let mut application = json!({
        "spec": {"source": {"repoURL": "https://example.com/a", "path": "x"}},
        "status": {
            "sync": {"status": "OutOfSync", "revision": "d"},
            "operationState": {"phase": "Succeeded", "syncResult": {"revision": "c"}},
            "history": [{"revision": "b"}, {"revision": "c"}],
        },
    });
    assert_eq!(between(&application), [pair("c", "b")]);
    application["status"]["operationState"]["syncResult"]["revision"] = "d".into();
    assert_eq!(between(&application), [pair("d", "c")]);
    application["status"]["operationState"]["phase"] = "Failed".into();
    assert_eq!(between(&application), [pair("", "c")]);
}

#[test]
fn what_was_told_last_is_where_the_next_begins_as_long_as_the_history_has_it() {
    let application = json!({
        "spec": {"source": {"repoURL": "https://example.com/a", "path": "x"}},
        "status": {
            "sync": {"status": "Synced", "revision": "d"},
            "operationState": {"syncResult": {"revision": "d"}},
            "history": [{"revision": "a"}, {"revision": "b"}, {"revision": "c"}, {"revision": "d"}],
        },
    });
    let of = &synced(&application)[0];
    let told = |repo: &str, revision: &str| ReportedSync {
        repo_url: repo.to_owned(),
        revision: revision.to_owned(),
        started_at: Some("one".to_owned()),
    };
    let here = "https://example.com/a";
    let now = Some("one");
    assert_eq!(of.since(Some(&told(here, "b")), now, &redactor()).as_deref(), Some("b"));
    for other in [None, Some(told(here, "d")), Some(told(here, "gone")), Some(told("https://other", "b"))] {
        assert_eq!(of.since(other.as_ref(), now, &redactor()).as_deref(), Some("c"), "{other:?}");
    }
    assert_eq!(of.told(now, &redactor()), Some(told(here, "d")));
    // The same once more brings nothing; of what was told before it had begun nobody knows that.
    assert_eq!(of.since(Some(&told(here, "d")), Some("two"), &redactor()).as_deref(), Some("d"));
    let before = ReportedSync { started_at: None, ..told(here, "d") };
    assert_eq!(of.since(Some(&before), Some("two"), &redactor()).as_deref(), Some("c"));
}

#[test]
fn a_sync_has_begun_when_its_operation_is_of_the_revisions_that_it_brought() {
    let mut application = json!({
        "spec": {"source": {"repoURL": "https://example.com/a", "path": "x"}},
        "status": {
            "sync": {"status": "Synced", "revision": "d"},
            "operationState": {"startedAt": "2026-11-25T10:00:00Z", "syncResult": {"revision": "d"}},
            "history": [{"revision": "c"}, {"revision": "d"}],
        },
    });
    let begun = |application: &Value| started_at(application, &synced(application));
    assert_eq!(begun(&application).as_deref(), Some("2026-11-25T10:00:00Z"));
    assert!(!waits_to_begin(&application));
    // The next is asked for, and the operation is still that of the last.
    application["operation"] = json!({"sync": {"revision": "e"}});
    application["status"]["sync"]["status"] = "OutOfSync".into();
    assert_eq!(synced(&application)[0].current.as_deref(), Some("e"));
    assert_eq!(begun(&application), None);
    assert!(waits_to_begin(&application));
    application["status"]["operationState"] =
        json!({"startedAt": "2026-11-25T11:00:00Z", "operation": {"sync": {"revision": "e"}}});
    assert_eq!(begun(&application).as_deref(), Some("2026-11-25T11:00:00Z"));
    for (phase, waits) in [("Running", false), ("Terminating", false), ("Failed", true), ("", true)] {
        application["status"]["operationState"]["phase"] = phase.into();
        assert_eq!(waits_to_begin(&application), waits, "{phase}");
    }
    application["status"] = json!({});
    application["operation"] = json!({});
    assert_eq!(begun(&application), None);
    let several = json!({
        "spec": {"sources": [{"repoURL": "https://example.com/a"}, {"repoURL": "https://example.com/b"}]},
        "status": {
            "sync": {"status": "Synced"},
            "operationState": {"startedAt": "2026-11-25T10:00:00Z", "syncResult": {"revisions": ["a", "b"]}},
            "history": [{"revisions": ["a", "b"]}],
        },
    });
    assert_eq!(begun(&several).as_deref(), Some("2026-11-25T10:00:00Z"));
}

#[test]
fn of_several_sources_each_is_found_in_the_history_by_its_place_or_by_what_it_is() {
    let source = |name: &str| json!({"repoURL": format!("https://example.com/{name}"), "path": "x"});
    let application = json!({
        "spec": {"sources": [source("a"), source("b"), source("new")]},
        "status": {
            "sync": {"status": "Synced"},
            "operationState": {"syncResult": {"revisions": ["a2", "b2", "n1"]}},
            "history": [
                {"revisions": ["b1", "a1"], "sources": [source("b"), source("a")]},
                {"revisions": ["a2", "b2", "n1"], "sources": [source("a"), source("b"), source("new")]},
            ],
        },
    });
    assert_eq!(between(&application), [pair("a2", "a1"), pair("b2", "b1"), pair("n1", "")]);
}

#[test]
fn what_is_hydrated_stands_at_a_revision_of_the_branch_that_argo_cd_writes_to() {
    let mut application = json!({
        "spec": {"sourceHydrator": {
            "drySource": {"repoURL": "https://example.com/a", "path": "charts/x", "targetRevision": "main"},
            "syncSource": {"targetBranch": "environments/dev", "path": "x"},
        }},
        "status": {
            "sync": {"status": "Synced", "revision": "wet2"},
            "operationState": {"startedAt": "2026-11-25T10:00:00Z", "syncResult": {"revision": "wet2"}},
            "history": [{"revision": "wet1"}, {"revision": "wet2"}],
            "sourceHydrator": {"lastSuccessfulOperation": {"drySHA": "dry3", "hydratedSHA": "wet3"}},
        },
    });
    let of = |application: &Value| {
        let all = synced(application);
        let begun = started_at(application, &all);
        (all.into_iter().map(|of| (of.repo_url, of.current, of.previous)).collect::<Vec<_>>(), begun)
    };
    let stands = vec![("https://example.com/a".to_owned(), Some("wet2".to_owned()), Some("wet1".to_owned()))];
    let expected = (stands, Some("2026-11-25T10:00:00Z".to_owned()));
    assert_eq!(of(&application), expected);
    // What else stands there Argo CD passes over.
    application["spec"]["source"] = json!({"repoURL": "https://example.com/old"});
    application["spec"]["sources"] =
        json!([{"repoURL": "https://example.com/b"}, {"repoURL": "https://example.com/c"}]);
    assert_eq!(of(&application), expected);
}

#[test]
fn another_source_beside_one_takes_nothing_from_its_history() {
    let (app, values) = (
        json!({"repoURL": "https://example.com/a", "path": "x"}),
        json!({"repoURL": "https://example.com/b", "ref": "values"}),
    );
    let sync =
        |revisions: Value| json!({"sync": {"status": "Synced"}, "operationState": {"syncResult": revisions}});
    let mut several = json!({
        "spec": {"sources": [values, app]},
        "status": sync(json!({"revisions": ["v1", "a2"]})),
    });
    several["status"]["history"] = json!([
        {"revision": "a1", "source": app},
        {"revisions": ["v1", "a2"], "sources": [values, app]},
    ]);
    assert_eq!(between(&several), [pair("v1", ""), pair("a2", "a1")]);
    // And back.
    let mut single = json!({"spec": {"source": app}, "status": sync(json!({"revision": "a3"}))});
    single["status"]["history"] = json!([
        {"revisions": ["v1", "a2"], "sources": [values, app]},
        {"revision": "a3", "source": app},
    ]);
    assert_eq!(between(&single), [pair("a3", "a2")]);
    // Of one source it does not matter where it stood then, and another repository's revisions are told to be unknown.
    single["status"]["history"][0] =
        json!({"revision": "a2", "source": {"repoURL": "https://example.com/a", "path": "y"}});
    assert_eq!(between(&single), [pair("a3", "a2")]);
}

#[test]
fn where_one_source_stood_in_another_repository_is_not_where_it_goes_from() {
    let source = |url: &str| json!({"repoURL": url, "path": "x"});
    let mut application = json!({
        "spec": {"source": source("https://example.com/a")},
        "status": {
            "sync": {"status": "Synced", "revision": "a1"},
            "operationState": {"phase": "Succeeded", "syncResult": {"revision": "a1", "source": source("https://example.com/a")}},
            "history": [{"revision": "o1", "source": source("https://example.com/old")},
                {"revision": "a1", "source": source("https://example.com/a")}],
        },
    });
    assert_eq!(between(&application), [pair("a1", "")]);
    application["status"]["history"][0]["source"] = source("git@example.com:a.git");
    assert_eq!(between(&application), [pair("a1", "o1")], "it is the same, written otherwise");
    // It was moved elsewhere and is not synced from there yet.
    application["spec"]["source"] = source("https://example.com/new");
    application["status"]["sync"]["status"] = "OutOfSync".into();
    assert_eq!(between(&application), [pair("", "")]);
}

#[test]
fn of_sources_that_were_put_in_another_order_and_not_synced_since_each_stands_where_the_last_sync_brought_it()
{
    let source = |name: &str| json!({"repoURL": format!("https://example.com/{name}"), "path": "x"});
    let mut application = json!({
        "spec": {"sources": [source("b"), source("a"), source("new")]},
        "status": {
            "sync": {"status": "OutOfSync", "revisions": ["b2", "a2", "n1"]},
            "operationState": {"phase": "Succeeded", "startedAt": "2026-11-25T10:00:00Z",
                "syncResult": {"revisions": ["a1", "b1"], "source": {"repoURL": ""}, "sources": [source("a"), source("b")]}},
            "history": [{"revisions": ["a1", "b1"], "sources": [source("a"), source("b")]}],
        },
    });
    assert_eq!(between(&application), [pair("b1", ""), pair("a1", ""), pair("", "")]);
    let begun = |application: &Value| started_at(application, &synced(application));
    assert_eq!(begun(&application).as_deref(), Some("2026-11-25T10:00:00Z"));
    // What is the same as what lives counts without a sync.
    application["status"]["sync"]["status"] = "Synced".into();
    assert_eq!(between(&application), [pair("b1", ""), pair("a1", ""), pair("n1", "")]);
}

#[test]
fn of_several_sources_one_that_is_written_otherwise_or_has_another_directory_goes_from_where_it_stood() {
    let source = |(url, path): (&str, &str)| json!({"repoURL": url, "path": path});
    let values = json!({"repoURL": "https://example.com/v", "ref": "values"});
    for (before, now) in [
        (("https://example.com/a", "x"), ("https://example.com/a.git", "x")),
        (("https://example.com/a", "x"), ("git@example.com:a.git", "x")),
        (("https://example.com/a", "x"), ("https://example.com/a", "y")),
    ] {
        let mut application = json!({
            "spec": {"sources": [source(now), values]},
            "status": {
                "sync": {"status": "Synced"},
                "operationState": {"syncResult": {"revisions": ["a2", "v1"], "sources": [source(now), values]}},
                "history": [
                    {"revisions": ["a1", "v1"], "sources": [source(before), values]},
                    {"revisions": ["a2", "v1"], "sources": [source(now), values]},
                ],
            },
        });
        assert_eq!(between(&application), [pair("a2", "a1"), pair("v1", "v1")], "{now:?}");
        // It is not synced since: where it stands is known of what is written otherwise, not of another directory.
        application["status"] = json!({
            "sync": {"status": "OutOfSync"},
            "operationState": {"phase": "Succeeded",
                "syncResult": {"revisions": ["a1", "v1"], "sources": [source(before), values]}},
            "history": [{"revisions": ["a1", "v1"], "sources": [source(before), values]}],
        });
        let expected = if before.1 == now.1 { pair("a1", "") } else { pair("", "a1") };
        assert_eq!(between(&application), [expected.clone(), pair("v1", "")], "{now:?}");
        // A dry run brings nothing anywhere.
        application["operation"] = json!({"sync": {"dryRun": true}});
        assert_eq!(between(&application), [expected, pair("v1", "")], "{now:?}");
    }
    // Another repository at its place is not where it goes from.
    let new = source(("https://example.com/a", "x"));
    let application = json!({
        "spec": {"sources": [new, values]},
        "status": {
            "sync": {"status": "Synced"},
            "operationState": {"syncResult": {"revisions": ["a1", "v2"], "sources": [new, values]}},
            "history": [
                {"revisions": ["v1"], "sources": [values]},
                {"revisions": ["a1", "v2"], "sources": [new, values]},
            ],
        },
    });
    assert_eq!(between(&application), [pair("a1", ""), pair("v2", "v1")]);
}

#[test]
fn what_is_empty_in_a_source_is_as_what_is_not_there_in_the_history() {
    let source = |name: &str| json!({"repoURL": format!("https://example.com/{name}"), "path": "x"});
    let mut written = source("a");
    written["chart"] = "".into();
    written["ref"] = Value::Null;
    let application = json!({
        "spec": {"sources": [written, source("b")]},
        "status": {
            "sync": {"status": "Synced"},
            "operationState": {"syncResult": {"revisions": ["a2", "b2"]}},
            "history": [
                {"revisions": ["a1", "b1"], "sources": [source("a"), source("b")]},
                {"revisions": ["a2", "b2"], "sources": [source("a"), source("b")]},
            ],
        },
    });
    assert_eq!(between(&application), [pair("a2", "a1"), pair("b2", "b1")]);
}

#[test]
fn where_argo_cd_keeps_no_history_the_next_begins_at_what_was_told_last() {
    let mut application = json!({
        "spec": {"source": {"repoURL": "https://example.com/a", "path": "x"}, "revisionHistoryLimit": 0},
        "status": {
            "sync": {"status": "Synced", "revision": "b"},
            "operationState": {"phase": "Succeeded", "syncResult": {"revision": "b"}},
        },
    });
    let told = ReportedSync {
        repo_url: "https://example.com/a".to_owned(),
        revision: "a".to_owned(),
        started_at: Some("one".to_owned()),
    };
    let of = |application: &Value, told: &ReportedSync| {
        let all = synced(application);
        (all[0].current.clone(), all[0].since(Some(told), Some("two"), &redactor()))
    };
    assert_eq!(of(&application, &told), pair("b", "a"));
    let elsewhere = ReportedSync { repo_url: "https://example.com/b".to_owned(), ..told.clone() };
    assert_eq!(of(&application, &elsewhere), pair("b", ""), "another repository's revision");
    application["status"]["history"] = json!([{"revision": "b"}]);
    assert_eq!(of(&application, &told), pair("b", ""), "a history that has it no more");
}

#[test]
fn a_dry_run_leaves_the_sources_where_the_last_sync_brought_them() {
    let mut application = json!({
        "spec": {"source": {"repoURL": "https://example.com/a", "path": "x"}},
        "status": {
            "sync": {"status": "OutOfSync", "revision": "c"},
            "operationState": {"phase": "Succeeded", "startedAt": "2026-11-25T10:00:00Z",
                "operation": {"sync": {"revision": "c", "dryRun": true}}, "syncResult": {"revision": "c"}},
            "history": [{"revision": "a"}, {"revision": "b"}],
        },
    });
    let of = |application: &Value| (between(application), started_at(application, &synced(application)));
    for phase in ["Succeeded", "Running", "Failed"] {
        application["status"]["operationState"]["phase"] = phase.into();
        assert!(is_dry_run(&application));
        assert_eq!(of(&application), (vec![pair("b", "a")], None), "{phase}");
    }
    application["status"].as_object_mut().unwrap().remove("operationState");
    application["operation"] = json!({"sync": {"revision": "c", "dryRun": true}});
    assert_eq!(of(&application), (vec![pair("b", "a")], None), "it is asked for");
    application["status"].as_object_mut().unwrap().remove("history");
    assert_eq!(of(&application), (vec![pair("", "")], None), "nothing was ever synced");
    application["operation"]["sync"]["dryRun"] = false.into();
    assert!(!is_dry_run(&application));
    assert_eq!(of(&application).0, [pair("c", "")]);
}

#[test]
fn a_source_that_cannot_be_read_keeps_its_place_among_the_revisions() {
    let source = |name: &str| json!({"repoURL": format!("https://example.com/{name}"), "path": name});
    let object = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "odd"},
        "spec": {"sources": [source("a"), null, source("b")]},
        "status": {
            "sync": {"status": "Synced"},
            "operationState": {"syncResult": {"revisions": ["a1", "x", "b1"]}},
            "history": [{"revisions": ["a1", "x", "b1"], "sources": [source("a"), {}, source("b")]}],
        },
    });
    let application = stages_git::application::Application::read(&object).unwrap();
    let all = synced(&object);
    let paths: Vec<&str> = all.iter().map(|of| &*application.sources[of.index].path).collect();
    assert_eq!(paths, ["a", "b"]);
    assert_eq!(all.iter().map(|of| of.current.as_deref()).collect::<Vec<_>>(), [Some("a1"), Some("b1")]);
}
