//! Tests of the replay: that it finds what it should find.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::compare::{Tally, compare};
use super::play::{Playback, Watched, play};
use super::rules::Rules;
use super::watched;
use loadtest_judge::diff::{Difference, diff, patch};
use loadtest_judge::view::View;
use loadtest_sim::recordings::{Case, packed};

const ANNOTATION: &str = "app.meta.revisions-metadata";

fn case(name: &str) -> Case {
    let cases = packed("incumbent-2.12").unwrap();
    cases.into_iter().find(|case| case.name == name).unwrap()
}

fn tally(case: &Case, playback: &Playback<'_>) -> Tally {
    tally_by(&mut Rules::load().unwrap(), case, playback)
}

fn tally_by(rules: &mut Rules, case: &Case, playback: &Playback<'_>) -> Tally {
    compare(case, playback, rules)
}

fn with_play(name: &str, test: impl FnOnce(&Case, &Playback<'_>)) {
    let case = case(name);
    let watched: Vec<Watched> = watched(&case).unwrap();
    let playback = play(&case, &watched, false);
    assert_eq!(tally(&case, &playback).different.len(), 0);
    test(&case, &playback);
}

/// The report as it was posted, made of one that was opened.
fn close(mut data: Value) -> Value {
    let annotation = |manifest: &mut Value| {
        let place = manifest.pointer_mut("/metadata/annotations").and_then(|all| all.get_mut(ANNOTATION));
        if let Some(place) = place {
            *place = Value::String(place.to_string());
        }
    };
    annotation(&mut data["object"]);
    data["object"] = STANDARD.encode(data["object"].to_string()).into();
    for name in ["actualManifest", "desiredManifest"] {
        let manifest = &mut data["source"][name];
        if manifest.is_object() {
            annotation(manifest);
            *manifest = Value::String(manifest.to_string());
        }
    }
    data
}

/// Every leaf of a report, with its path.
fn leaves(view: &View) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    walk("", view.data(), &mut found);
    found
}

fn walk(path: &str, value: &Value, found: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(object) if !object.is_empty() => {
            object
                .iter()
                .for_each(|(name, value)| walk(&loadtest_judge::diff::member(path, name), value, found));
        }
        Value::Array(list) if !list.is_empty() => {
            list.iter()
                .enumerate()
                .for_each(|(index, value)| walk(&format!("{path}[{index}]"), value, found));
        }
        leaf => found.push((path.to_owned(), leaf.clone())),
    }
}

fn changed(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64().unwrap_or(0.0) + 1.0),
        Value::Bool(flag) => json!(!flag),
        // A moment stays a moment, an hour off.
        Value::String(text) if text.starts_with("2026-") => json!(text.replace("T1", "T0")),
        Value::String(text) => json!(format!("{text}x")),
        _ => json!("x"),
    }
}

/// Every field of these reports matters: whichever is changed or taken away, the comparison says so.
#[test]
fn no_predicate_hides_a_wrong_value() {
    for (name, reports) in [
        ("delete-without-finalizer", vec![5, 18]),
        ("app-of-apps", vec![20]),
        ("rollout-workflow", vec![10]),
        ("helm-cascade-delete", vec![18]),
    ] {
        with_play(name, |case, playback| {
            let mut case = case.clone();
            let mut rules = Rules::load().unwrap();
            for n in reports {
                let at = case.reports.iter().position(|report| report.n == n).unwrap();
                let view = View::of(&case.reports[at].data);
                // Only what belongs to this round is compared.
                let round = playback.rounds.iter().position(|round| round.line.reports.contains(&n)).unwrap();
                let only = playback.only(round);
                // Who manages which field says the same thing hundreds of times.
                let leaves = leaves(&view).into_iter().filter(|(path, _)| !path.contains(".fieldsV1"));
                for (path, leaf) in leaves {
                    let mut wrong = vec![Some(changed(&leaf))];
                    let empty = matches!(&leaf, Value::Null | Value::Bool(false))
                        || leaf == json!("")
                        || leaf == json!({})
                        || leaf == json!([])
                        || leaf == json!(0);
                    // Rules allow that the recorded reporter drops what is empty, and a condition's time.
                    if !empty && !path.ends_with(".lastTransitionTime") {
                        wrong.push(None);
                    }
                    for theirs in wrong {
                        let mut data = view.data().clone();
                        let change = Difference { path: path.clone(), ours: None, theirs: theirs.clone() };
                        patch(&mut data, "", &change);
                        assert!(data != *view.data(), "{name} {n} {path}: nothing was changed");
                        case.reports[at].data = close(data);
                        let found = !tally_by(&mut rules, &case, &only).different.is_empty();
                        // This one differs on purpose, in that ours has none.
                        let agreed = (name, path.as_str()) == ("rollout-workflow", "source.syncFinishedAt");
                        assert!(found || agreed, "{name}: report {n}: {path}: {theirs:?} is not found");
                    }
                }
                case.reports[at].data = close(view.data().clone());
            }
        });
    }
}

#[test]
fn a_missing_and_an_extra_report_are_found() {
    with_play("directory-drift", |case, playback| {
        let mut without = case.clone();
        // The recorded reporter posted it, and no rule says that it need not.
        without.reports.remove(4);
        let found = tally(&without, playback).different;
        assert_eq!((found.len(), found[0].report), (1, None));
        assert_eq!(found[0].differences[0].path, "report");
        let mut with = case.clone();
        let mut extra = with.reports[4].clone();
        extra.n = 9999;
        extra.data = close({
            let mut data = View::of(&extra.data).data().clone();
            data["object"]["metadata"]["name"] = json!("another");
            data
        });
        with.reports.push(extra);
        let mut playback = playback.only(4);
        let mut line = playback.rounds[0].line.clone();
        line.reports.push(9999);
        playback.rounds[0].line = &line;
        let found = tally(&with, &playback).different;
        assert_eq!((found.len(), found[0].report), (1, Some(9999)));
    });
}

#[test]
fn differences_are_printed_short_and_with_their_path() {
    with_play("missing-path", |case, playback| {
        let mut case = case.clone();
        case.reports[2].data["source"]["syncStatus"] = json!("s".repeat(500));
        let tally = tally(&case, playback);
        let lines = super::output::differences("missing-path", &tally);
        assert_eq!(lines.len(), 1);
        assert!(
            lines[0].starts_with(
                "missing-path: round 2, report 2, Application argocd/nopath: source.syncStatus: ours \
                 \"Unknown\" theirs \"sss"
            ),
            "{}",
            lines[0]
        );
        assert!(lines[0].ends_with("... (502 bytes)"));
    });
}

#[test]
fn every_rule_has_one_path_and_a_reason() {
    let rules = Rules::load().unwrap();
    assert!(!rules.rules.is_empty());
    for rule in &rules.rules {
        assert!(!rule.path.replace("[*]", "").contains('*'), "{}: one concrete path", rule.name);
        assert!(rule.reason.len() > 10, "{}", rule.name);
    }
}

#[test]
fn opening_and_closing_a_report_changes_nothing() {
    let case = case("app-of-apps");
    for report in &case.reports {
        let opened = View::of(&report.data);
        let again = View::of(&close(opened.data().clone()));
        let mut found = Vec::new();
        diff("", Some(opened.data()), Some(again.data()), &mut found);
        assert_eq!(found, []);
    }
}

#[test]
fn what_is_no_now_says_the_same_in_a_report_that_is_made_in_its_very_second() {
    let at = |second: u32| format!("2026-11-21T11:50:{second}Z");
    let report = |made: u32, started: u32, seen: u32| {
        let times = json!({"syncStartedAt": at(started)});
        View::opened(json!({"timestamp": at(made), "source": times, "errors": [{"lastSeen": at(seen)}]}))
    };
    let same = |one: (u32, u32, u32), other: (u32, u32, u32)| {
        let (here, there) = (at(one.0), at(other.0));
        let (one, other) = (report(one.0, one.1, one.2), report(other.0, other.1, other.2));
        let redactor = super::play::redactor();
        super::memory::is_same((&one, (&here, &here)), (&other, (&there, &there)), &redactor)
    };
    assert!(same((43, 44, 20), (44, 44, 20)), "an operation that begins within the second of the later one");
    assert!(same((43, 10, 43), (44, 10, 44)), "both say now");
    assert!(!same((43, 43, 20), (44, 20, 20)), "one alone says now");
    assert!(!same((43, 43, 20), (43, 42, 20)));
}

fn replayed(case: &Case) -> super::Summary {
    super::replay(std::slice::from_ref(case)).unwrap()
}

fn with_body(case: &mut Case, edit: impl Fn(&mut Value)) {
    for body in case.bodies.values_mut() {
        let mut value: Value = serde_json::from_str(body.get()).unwrap();
        edit(&mut value);
        *body = serde_json::value::to_raw_value(&value).unwrap();
    }
}

/// The recorded reporter takes up the last event of the case again, as it does when it forgot everything:
/// every report of `round` again, and the live states have moved on.
fn taken_up_again(case: &mut Case, from: usize, reports: &[u64]) {
    let mut line = case.rounds[from].clone();
    line.n = 9000;
    line.t += 60.0;
    line.reports.clear();
    for (index, n) in reports.iter().enumerate() {
        let mut report = case.reports.iter().find(|report| report.n == *n).unwrap().clone();
        report.n = 9000 + index as u64;
        report.t = line.t;
        let mut view = View::of(&report.data).data().clone();
        if view["object"]["kind"] != "Application" {
            view["object"]["metadata"]["resourceVersion"] = json!("moved");
        }
        report.data = close(view);
        line.reports.push(report.n);
        case.reports.push(report);
    }
    case.rounds.insert(from + 1, line);
}

#[test]
fn what_was_forgotten_in_a_restart_is_sent_again_by_them_alone() {
    let mut case = case("directory-drift");
    let all = case.reports.len();
    let last = case.rounds.len() - 1;
    let kinds = |kind: &str| {
        let of_kind =
            |report: &&loadtest_sim::recordings::ReportLine| View::of(&report.data).identity().kind == kind;
        case.reports.iter().rev().find(of_kind).unwrap().n
    };
    let again = [kinds("Application"), kinds("Deployment"), kinds("Service")];
    taken_up_again(&mut case, last, &again);
    let summary = replayed(&case);
    assert_eq!((summary.reports, summary.different), (all + 3, 0), "{}", summary.text);
    // That of the application says what the last one said; the states of the others have moved on.
    assert!(summary.text.contains("rule nothing-forgotten: 2 uses"), "{}", summary.text);
}

#[test]
fn a_report_of_a_changed_entry_is_not_taken_for_a_forgotten_one() {
    let mut case = case("directory-drift");
    let deployment =
        case.reports.iter().find(|report| View::of(&report.data).identity().kind == "Deployment");
    let n = deployment.unwrap().n;
    let round = case.rounds.iter().position(|round| round.reports.contains(&n)).unwrap();
    taken_up_again(&mut case, round, &[n]);
    // Told of another event than that which the product reported it for.
    case.rounds[round + 1].resource_version = case.rounds[round + 4].resource_version.clone();
    assert!(replayed(&case).different > 0);
}

#[test]
fn a_round_that_was_cut_short_is_made_up_for_when_it_is_taken_up_again() {
    let mut cut = case("sixty-resources");
    let at = (0..cut.rounds.len()).max_by_key(|&at| cut.rounds[at].reports.len()).unwrap();
    let mut again = cut.rounds[at].clone();
    again.n = 9000;
    again.reports.drain(..2);
    cut.rounds[at].reports.truncate(2);
    let without = replayed(&cut);
    assert_eq!(without.different, again.reports.len(), "nothing says that they were sent later");
    let sent = again.reports.len();
    cut.rounds.insert(at + 1, again);
    let summary = replayed(&cut);
    assert_eq!(summary.different, 0, "{}", summary.text);
    assert!(summary.text.contains(&format!("rule not-cut-short: {sent} uses")), "{}", summary.text);
}

#[test]
fn secrets_in_every_manifest_differ_on_purpose() {
    let mut case = case("directory-drift");
    let add = |manifest: &mut Value| {
        let containers = manifest.pointer_mut("/spec/template/spec/containers").and_then(Value::as_array_mut);
        let variable = json!({"name": "DB_PASSWORD", "value": "hunter2hunter2"});
        containers.into_iter().flatten().for_each(|container| container["env"] = json!([variable]));
    };
    let in_text = |text: &mut Value| {
        let Some(mut manifest) = text.as_str().and_then(|text| serde_json::from_str(text).ok()) else {
            return;
        };
        add(&mut manifest);
        *text = Value::String(manifest.to_string());
    };
    with_body(&mut case, |body| {
        if let Some(text) = body.get_mut("manifest") {
            in_text(text);
        }
        for item in body.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten() {
            in_text(&mut item["liveState"]);
        }
        for manifest in body.get_mut("manifests").and_then(Value::as_array_mut).into_iter().flatten() {
            in_text(&mut manifest["compiledManifest"]);
            manifest["rawManifest"] = json!("");
        }
    });
    for report in &mut case.reports {
        let mut data = View::of(&report.data).data().clone();
        add(&mut data["object"]);
        for name in ["actualManifest", "desiredManifest"] {
            add(&mut data["source"][name]);
        }
        let desired = data["source"]["desiredManifest"].clone();
        let yaml = desired.is_object().then(|| serde_saphyr::to_string(&desired).unwrap());
        data["source"]["gitManifest"] = yaml.unwrap_or_default().into();
        report.data = close(data);
    }
    let summary = replayed(&case);
    assert_eq!((summary.different, summary.unequal_rounds), (0, 0), "{}", summary.text);
    for rule in
        ["redacted-object", "redacted-actual-manifest", "redacted-desired-manifest", "redacted-git-manifest"]
    {
        assert!(!summary.text.contains(&format!("rule {rule}: 0 uses")), "{rule}");
    }
}

#[test]
fn answers_are_found_whatever_their_order_and_read_whatever_their_form() {
    let mut case = case("directory-drift");
    let expected = replayed(&case).equal;
    for call in &mut case.calls {
        if let Some((path, query)) = call.path.split_once('?') {
            let mut pairs: Vec<_> = query.split('&').collect();
            pairs.reverse();
            call.path = format!("{path}?{}&new=", pairs.join("&").replace("argocd", "%61rgocd"));
        }
    }
    with_body(&mut case, |body| {
        if body.get("code").is_some() {
            *body = body["message"].clone();
        }
    });
    let summary = replayed(&case);
    assert_eq!((summary.equal, summary.different), (expected, 0), "{}", summary.text);
}

#[test]
fn reports_of_an_event_that_was_not_recorded_are_different() {
    let mut case = case("directory-drift");
    let reports = case.rounds[3].reports.len();
    case.rounds[3].resource_version = "1".to_owned();
    assert!(replayed(&case).different >= reports);
    // A round without a report, whose event is a guess, says nothing.
    let mut case = self::case("directory-drift");
    let mut guess = case.rounds[3].clone();
    (guess.n, guess.resource_version, guess.resource_version_is_a_guess) = (9000, "1".to_owned(), true);
    guess.reports.clear();
    case.rounds.push(guess);
    assert_eq!(replayed(&case).different, 0);
}
