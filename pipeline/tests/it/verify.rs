//! Whether cluster, ledger and receiver hold the same: asked by a person, and told at intervals.

use std::collections::BTreeMap;
use std::path::Path;

use loadtest::sim::Simulation;
use loadtest::sim::fault::{Fault, Rule};
use loadtest::sim::kube::Collection;
use loadtest::sim::platform::{EntityName, ResourceKey};
use pipeline_core::Key;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::ask::{answer, ask, json, reported};
use crate::runtime::{Runtime, eventually, object, taken};
use crate::told::{self, REPORTS};

/// What the log says of the receiver, once each time it is news.
pub(crate) const SAME: &str = "the receiver holds the same";
pub(crate) const OTHER: &str =
    "the receiver holds something else than what it acknowledged: run `gitops-runtime verify`";

/// The ConfigMap of an application of [`told::put`].
fn config_map() -> ResourceKey {
    ResourceKey {
        api_version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        namespace: "shop".to_owned(),
        name: "thing".to_owned(),
    }
}

/// How often each entity of an application was reported, as the platform remembers it.
fn reports_of(simulation: &Simulation, name: &str) -> Vec<u64> {
    let of =
        |entity: &EntityName| (entity.app_namespace.as_str(), entity.app_name.as_str()) == ("argocd", name);
    let mut all = simulation.platform.last();
    all.retain(|(entity, _)| of(entity));
    all.sort_by(|(a, _), (b, _)| a.cmp(b));
    all.into_iter().map(|(_, last)| last.reports).collect()
}

/// Runs `verify` as JSON; it may end with 1.
pub(crate) async fn verified(simulation: &Simulation, arguments: &[&str]) -> (Option<i32>, Value) {
    let (code, text, error) = ask(simulation, &[&["verify", "--json"], arguments].concat()).await;
    assert_eq!(error, "", "{text}");
    (code, serde_json::from_str(&text).unwrap())
}

/// The names under each finding that has any.
pub(crate) fn findings(verified: &Value) -> BTreeMap<&str, Vec<&str>> {
    let found = verified.as_object().unwrap().iter().filter_map(|(name, found)| {
        let keys = found.get("keys")?.as_array()?;
        assert_eq!(found["total"].as_u64(), Some(keys.len() as u64), "{found}");
        (!keys.is_empty()).then(|| (name.as_str(), keys.iter().map(|key| key.as_str().unwrap()).collect()))
    });
    found.collect()
}

#[tokio::test]
async fn verify_finds_what_was_never_reported_and_reports_it() {
    let (simulation, runtime) = reported(&["shop"]).await;
    let text = answer(&simulation, &["verify"]).await;
    assert!(text.starts_with("1 application in the cluster, 1 acknowledged, compared in "), "{text}");
    assert!(text.ends_with("nothing differs\n"), "{text}");
    // The watch is silent, and nobody notices.
    simulation.kube.stall_watches(true);
    told::put(&simulation, "web");
    let (code, text, error) = ask(&simulation, &["verify", "--dry-run"]).await;
    assert_eq!((code, error.as_str()), (Some(1), ""), "{text}");
    let found = " missing    in the cluster, and never reported  argocd/web  1\n";
    assert!(text.contains(found), "{text}");
    assert!(text.ends_with("this was a dry run: without --dry-run it is reported again\n"), "{text}");
    assert_eq!(simulation.platform.totals().posts, REPORTS);
    let verified = json(&simulation, &["verify", "--within", "1m"]).await;
    assert_eq!((&verified["missing"]["keys"], &verified["repaired"]), (&json!(["argocd/web"]), &json!(1)));
    assert_eq!(verified["stillDifferent"]["total"], 0, "{verified:#}");
    assert_eq!(simulation.platform.totals().posts, 2 * REPORTS);
    let (code, _, error) = ask(&simulation, &["verify", "--within", "0s"]).await;
    assert_eq!(code, Some(2));
    assert!(error.contains("must be from 1s to 24h"), "{error}");
    runtime.stop().await;
}

#[tokio::test]
async fn what_the_platform_forgot_is_found_and_reported_again() {
    let (simulation, runtime) = reported(&["shop", "web", "other"]).await;
    let (code, before) = verified(&simulation, &[]).await;
    assert_eq!((code, findings(&before), &before["repaired"]), (Some(0), BTreeMap::new(), &json!(0)));
    assert_eq!(before["receiverDiffers"], json!({"total": 0, "keys": []}), "{before:#}");
    assert!(simulation.platform.forget("argocd", "shop", Some(&config_map())), "it was held");
    assert!(simulation.platform.forget("argocd", "web", None), "it was held");
    let totals = simulation.platform.totals();

    // Each was out of sync, and read again for that.
    runtime.until("what was read again", |status| status.total.observed == 6).await;
    let both = ["argocd/shop", "argocd/web"];
    let (code, dry) = verified(&simulation, &["--dry-run"]).await;
    let expected = BTreeMap::from([("receiverDiffers", both.to_vec()), ("stillDifferent", both.to_vec())]);
    assert_eq!((code, findings(&dry)), (Some(1), expected), "{dry:#}");
    assert_eq!((&dry["dry"], &dry["repaired"], &dry["reports"]), (&json!(true), &json!(0), &json!(0)));
    assert_eq!(simulation.platform.totals(), totals, "a dry run reports nothing");
    assert_eq!(runtime.status().await.total.observed, 6, "and reads nothing again");

    let text = answer(&simulation, &["verify"]).await;
    let found = " differs  the receiver holds something else  argocd/shop argocd/web  2\n";
    assert!(text.contains(found), "{text}");
    let end = "2 applications reported again, 6 reports acknowledged; nothing differs any more\n";
    assert!(text.ends_with(end), "{text}");
    assert_eq!(simulation.platform.totals().posts, totals.posts + 2 * REPORTS, "those two, and no other");
    assert_eq!(reports_of(&simulation, "other"), [1, 1, 1]);
    assert_eq!(reports_of(&simulation, "web"), [1, 1, 1], "all that was forgotten is held again");
    assert_eq!(reports_of(&simulation, "shop").len(), 3);
    assert_eq!(simulation.platform.totals().wrong(), [""; 0]);

    let (code, after) = verified(&simulation, &[]).await;
    assert_eq!((code, findings(&after)), (Some(0), BTreeMap::new()));
    assert_eq!(simulation.platform.totals().posts, totals.posts + 2 * REPORTS);
    runtime.stop().await;
}

#[tokio::test]
async fn an_end_that_the_watch_did_not_tell_is_found_and_reported_once() {
    let (simulation, runtime) = reported(&["shop", "web"]).await;
    simulation.kube.stall_watches(true);
    assert!(simulation.kube.delete(Collection::Applications, &Key::new("argocd", "web").unwrap()));
    let (code, dry) = verified(&simulation, &["--dry-run"]).await;
    let gone = vec!["argocd/web"];
    let expected = BTreeMap::from([("gone", gone.clone()), ("stillDifferent", gone.clone())]);
    assert_eq!((code, findings(&dry)), (Some(1), expected), "{dry:#}");
    assert_eq!(simulation.platform.totals().posts, 2 * REPORTS);

    let (code, repaired) = verified(&simulation, &[]).await;
    assert_eq!((code, findings(&repaired)), (Some(0), BTreeMap::from([("gone", gone)])), "{repaired:#}");
    assert_eq!((&repaired["objects"], &repaired["repaired"]), (&json!(1), &json!(1)));
    let last = simulation.platform.last_of_application("argocd", "web").unwrap();
    let told = object(last.payload.as_deref().unwrap());
    assert!(told["metadata"]["deletionTimestamp"].is_string(), "{told:#}");
    let posts = simulation.platform.totals().posts;

    // The watch tells it too, late.
    let observed = runtime.status().await.total.observed;
    simulation.kube.stall_watches(false);
    runtime.idle(observed + 1).await;
    let (code, after) = verified(&simulation, &[]).await;
    assert_eq!((code, findings(&after)), (Some(0), BTreeMap::new()), "{after:#}");
    assert_eq!((&after["objects"], &after["acknowledged"]), (&json!(1), &json!(1)));
    assert_eq!(simulation.platform.totals().posts, posts, "its end is reported once");
    runtime.stop().await;
}

#[tokio::test]
async fn an_end_that_a_restored_platform_forgot_is_told_by_the_next_process_where_it_was_not_taken() {
    let (simulation, runtime) = reported(&["shop", "web"]).await;
    let backup = simulation.platform.backup();
    let observed = runtime.status().await.total.observed;
    assert!(simulation.kube.delete(Collection::Applications, &Key::new("argocd", "web").unwrap()));
    runtime.idle(observed + 1).await;
    taken(&simulation, 2 * REPORTS + 1).await;
    simulation.platform.restore(backup);
    let deleted = || {
        let last = simulation.platform.last_of_application("argocd", "web").unwrap();
        object(last.payload.as_deref().unwrap())["metadata"]["deletionTimestamp"].is_string()
    };
    assert!(!deleted(), "it holds what it held before");

    let rule = Rule::always(Fault::Status { status: 503, retry_after: None }).on("report");
    let rule = simulation.platform.faults().add(rule);
    let (code, found) = verified(&simulation, &["--within", "3s"]).await;
    let web = vec!["argocd/web"];
    let expected = BTreeMap::from([
        ("receiverOthers", web.clone()),
        ("stillDifferent", web.clone()),
        ("unfinished", web),
    ]);
    assert_eq!((code, findings(&found)), (Some(1), expected), "{found:#}");
    runtime.kill().await;
    simulation.platform.faults().remove(rule);

    let runtime = Runtime::start(&simulation, &json!({})).await;
    eventually("the end to be told", deleted).await;
    let (code, after) = verified(&simulation, &[]).await;
    assert_eq!((code, findings(&after)), (Some(0), BTreeMap::new()), "{after:#}");
    assert_eq!(simulation.platform.totals().wrong(), [""; 0]);
    runtime.stop().await;
}

/// Waits until the platform was asked to compare so many shards more.
async fn compared(simulation: &Simulation, more: u64) {
    let target = simulation.platform.comparisons().shards + more;
    eventually("more comparisons", || simulation.platform.comparisons().shards >= target).await;
}

#[tokio::test]
async fn digests_are_told_at_intervals_and_a_difference_is_said_once() {
    let simulation = told::world(|_| {}).await;
    ["shop", "web"].into_iter().for_each(|name| told::put(&simulation, name));
    let settings = json!({"reporter": {
        "sharding": {"shards": 1},
        "digest": {"enabled": true, "interval": "100ms"},
    }});
    let runtime = Runtime::start(&simulation, &settings).await;
    taken(&simulation, 2 * REPORTS).await;
    runtime.idle(2).await;
    assert_eq!(runtime.says(SAME).await.level, "INFO");
    assert!(simulation.platform.comparisons().shards > 0);
    assert_eq!(runtime.said(OTHER), 0);

    assert!(simulation.platform.forget("argocd", "shop", Some(&config_map())), "it was held");
    let line = runtime.says(OTHER).await;
    assert_eq!((line.level.as_str(), &line.fields["shard"]), ("WARN", &json!(0)));
    compared(&simulation, 5).await;
    assert_eq!(runtime.said(OTHER), 1, "once, however often it is asked");
    let differs = runtime.counted("gitops_runtime_digests_total", &[("result", "differs")]).await;
    assert!(differs >= 5.0, "{differs}");
    assert_eq!(simulation.platform.totals().posts, 2 * REPORTS, "nothing is reported again by itself");

    assert_eq!(json(&simulation, &["verify"]).await["repaired"], 1);
    let again = || runtime.said(SAME) == 2;
    eventually("the receiver to hold the same again", again).await;
    compared(&simulation, 3).await;
    assert_eq!((runtime.said(SAME), runtime.said(OTHER)), (2, 1));
    runtime.stop().await;
}

#[tokio::test]
async fn a_platform_is_told_no_digests_where_they_are_not_wanted() {
    let simulation = told::world(|_| {}).await;
    told::put(&simulation, "shop");
    let settings =
        json!({"reporter": {"sharding": {"shards": 1}, "digest": {"enabled": false, "interval": "1ms"}}});
    let runtime = Runtime::start(&simulation, &settings).await;
    taken(&simulation, REPORTS).await;
    runtime.idle(1).await;
    runtime.stop().await;
    assert_eq!(simulation.platform.comparisons().shards, 0);
}

/// The reports and the digests in a file, as far as its lines are whole.
fn lines(path: &Path) -> (Vec<Value>, Vec<Value>) {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    let lines: Vec<Value> = whole.map(|line| serde_json::from_str(line).unwrap()).collect();
    lines.into_iter().partition(|line| line.get("digest").is_none())
}

#[tokio::test]
async fn the_file_holds_digests_that_follow_from_its_reports() {
    let simulation = told::world(|_| {}).await;
    ["shop", "web"].into_iter().for_each(|name| told::put(&simulation, name));
    let path = simulation.directory().join("reports.ndjson");
    let settings = json!({"reporter": {
        "sharding": {"shards": 1},
        "digest": {"interval": "50ms"},
        "sink": {"kind": "file", "file": {"path": path}},
    }});
    let runtime = Runtime::start(&simulation, &settings).await;
    runtime.idle(2).await;
    let whole = || lines(&path).1.last().is_some_and(|line| line["digest"]["entities"] == 2 * REPORTS);
    eventually("a digest of everything", whole).await;
    runtime.stop().await;

    let (reports, digests) = lines(&path);
    assert_eq!(reports.len(), 6, "one of each entity");
    let sum = reports.iter().fold(0, |sum, report| {
        let key = report["idempotencyKey"].as_str().unwrap();
        let bytes: [u8; 32] = Sha256::digest(key.as_bytes()).into();
        sum ^ u128::from_be_bytes(*bytes.first_chunk().unwrap())
    });
    let last = &digests.last().unwrap()["digest"];
    let expected = (0, 1, 2, format!("{sum:032x}"));
    let number = |name: &str| last[name].as_u64().unwrap();
    let told = (number("shard"), number("shards"), number("applications"));
    assert_eq!((told.0, told.1, told.2, last["digest"].as_str().unwrap().to_owned()), expected);
    for line in &digests {
        assert_eq!(line.as_object().unwrap().len(), 1, "{line}");
        assert_eq!(line["digest"]["ledger"], last["ledger"]);
    }
}
