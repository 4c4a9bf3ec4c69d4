use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base64::Engine as _;
use loadtest_sim::PATIENCE;
use loadtest_sim::fault::{Fault, Rule};
use loadtest_sim::platform::{Config, EntityName, Keep, PlatformSim, ResourceKey, Totals};
use serde_json::{Value, json};

use super::client;

pub(super) async fn start(keep: Keep) -> PlatformSim {
    let config = Config { token: Some("raw".to_owned()), keep, ..Config::default() };
    PlatformSim::start(config).await.unwrap()
}

pub(super) fn zip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

pub(super) fn report(object: &Value, app: &str) -> String {
    let object = base64::engine::general_purpose::STANDARD.encode(object.to_string());
    json!({"data": {
        "timestamp": "2026-01-01T00:00:00.000Z", "object": object, "appVersions": {},
        "source": {"appName": app, "appNamespace": if app.is_empty() { "" } else { "argocd" }},
    }})
    .to_string()
}

pub(super) fn application(name: &str, version: u64) -> String {
    let object = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {
        "name": name, "namespace": "argocd", "uid": "u", "resourceVersion": version.to_string(),
    }, "status": {"resources": [{"version": "v1", "kind": "ConfigMap", "namespace": name, "name": "cm"}]}});
    report(&object, "")
}

pub(super) fn config_map(app: &str, version: u64) -> String {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": "cm", "namespace": app, "uid": "c", "resourceVersion": version.to_string(),
    }});
    report(&object, app)
}

pub(super) async fn post(platform: &PlatformSim, key: &str, text: &str) -> u16 {
    let mut request = request(platform, "", text);
    if !key.is_empty() {
        request = request.header("idempotency-key", key);
    }
    request.send().await.unwrap().status().as_u16()
}

pub(super) fn key(number: u8) -> String {
    format!("{number:064x}").chars().rev().collect()
}

#[tokio::test]
async fn reports_are_counted_ordered_and_remembered() {
    let platform = start(Keep { last: true, reports: 2 }).await;
    let seen = Arc::new(AtomicU64::new(0));
    let looked = seen.clone();
    platform.look_on(move |arrived| {
        assert_eq!(arrived.headers["content-type"], "application/json");
        looked.fetch_add(arrived.report.version.unwrap_or_default(), Ordering::Relaxed);
    });
    assert_eq!(post(&platform, &key(1), &application("a", 5)).await, 200);
    assert_eq!(post(&platform, &key(2), &config_map("a", 3)).await, 200);
    assert_eq!(post(&platform, &key(3), &application("a", 7)).await, 200);
    assert_eq!(post(&platform, &key(3), &application("a", 7)).await, 200);
    assert_eq!(post(&platform, &key(4), &application("a", 6)).await, 200);
    assert_eq!(post(&platform, &key(5), &config_map("a", 2)).await, 200);
    assert_eq!(post(&platform, "", &application("b", 1)).await, 200);
    let totals = platform.wait_until(PATIENCE, |totals| totals.posts == 7).await.unwrap();
    assert!(totals.bytes > 0);
    assert_eq!(
        Totals { bytes: 0, ..totals },
        Totals {
            posts: 7,
            taken: 6,
            applications: 4,
            resources: 2,
            duplicates: 1,
            without_key: 1,
            out_of_order: 1,
            resources_out_of_order: 1,
            ..Totals::default()
        }
    );
    assert_eq!(seen.load(Ordering::Relaxed), 5 + 3 + 7 + 7 + 6 + 2 + 1);
    assert_eq!(platform.last().len(), 3);
    let last = platform.last_of_application("argocd", "a").unwrap();
    assert_eq!((last.reports, last.version, last.uid.as_str()), (3, Some(6), "u"));
    let payload: Value = serde_json::from_slice(&last.payload.unwrap()).unwrap();
    assert_eq!(payload["timestamp"], "2026-01-01T00:00:00.000Z");
    let resource = EntityName {
        app_namespace: "argocd".to_owned(),
        app_name: "a".to_owned(),
        resource: Some(ResourceKey {
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            namespace: "a".to_owned(),
            name: "cm".to_owned(),
        }),
    };
    assert_eq!(platform.last_of(&resource).unwrap().version, Some(2));
    let kept = platform.kept();
    assert_eq!((kept.len(), &kept[0].entity, kept[0].key.clone()), (2, &resource, Some(key(5))));
    platform.reset();
    assert_eq!((platform.totals(), platform.last().len()), (Totals::default(), 0));
}

#[tokio::test]
async fn a_child_is_known_by_its_own_name() {
    let platform = start(Keep::default()).await;
    let object = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "child", "namespace": "argocd", "uid": "u", "resourceVersion": "9"}});
    post(&platform, &key(1), &report(&object, "parent")).await;
    assert_eq!(platform.last_of_application("argocd", "child").unwrap().version, Some(9));
    assert!(platform.last_of_application("argocd", "child").unwrap().payload.is_none());
    assert_eq!(platform.totals().applications, 1);
}

#[tokio::test]
async fn what_is_no_report_is_refused() {
    let platform = start(Keep::default()).await;
    let url = format!("{}/2.0/api/events", platform.url());
    let send = |body: Vec<u8>, encoding: &'static str, token: &'static str| {
        let url = url.clone();
        async move {
            let request =
                client().post(url).header("authorization", token).header("content-encoding", encoding);
            request.body(body).send().await.unwrap().status().as_u16()
        }
    };
    assert_eq!(send(zip(&application("a", 1)), "gzip", "Bearer raw").await, 401);
    assert_eq!(send(zip(&application("a", 1)), "identity", "raw").await, 400);
    assert_eq!(send(b"no gzip".to_vec(), "gzip", "raw").await, 400);
    assert_eq!(send(zip("{\"data\": "), "gzip", "raw").await, 400);
    assert_eq!(send(zip(r#"{"data": {"object": "!", "source": {}}}"#), "gzip", "raw").await, 400);
    let totals = platform.totals();
    assert_eq!((totals.posts, totals.unauthorized, totals.malformed, totals.taken), (5, 1, 4, 0));
    let untyped = client().post(&url).header("authorization", "raw").header("content-encoding", "gzip");
    assert_eq!(untyped.body(zip(&application("a", 1))).send().await.unwrap().status(), 400);
    let elsewhere = client().post(format!("{}/other", platform.url())).send().await.unwrap();
    assert_eq!(elsewhere.status(), 404);
}

#[tokio::test]
async fn a_refused_report_is_not_taken_unless_it_had_its_effect() {
    let platform = start(Keep::default()).await;
    let fault = Fault::Status { status: 503, retry_after: None };
    platform.faults().add(Rule::always(fault.clone()).of("a").times(1));
    assert_eq!(post(&platform, &key(1), &application("b", 1)).await, 200);
    assert_eq!(post(&platform, &key(2), &application("a", 1)).await, 503);
    assert_eq!(platform.totals().taken, 1);
    assert_eq!(post(&platform, &key(2), &application("a", 1)).await, 200);
    assert_eq!((platform.totals().taken, platform.totals().duplicates), (2, 0));

    platform.faults().add(Rule::always(fault).on("report").times(1).after_effect());
    assert_eq!(post(&platform, &key(3), &config_map("a", 1)).await, 503);
    assert_eq!(post(&platform, &key(3), &config_map("a", 1)).await, 200);
    let totals = platform.totals();
    assert_eq!((totals.taken, totals.duplicates, totals.spoilt), (3, 1, 2));
}

fn request(platform: &PlatformSim, below: &str, text: &str) -> reqwest::RequestBuilder {
    client()
        .post(format!("{}/2.0/api/events{below}", platform.url()))
        .header("authorization", "raw")
        .header("content-type", "application/json")
        .header("content-encoding", "gzip")
        .body(zip(text))
}

async fn post_of(platform: &PlatformSim, number: u8, text: &str, name: &str, value: &str) -> u16 {
    let request = request(platform, "", text).header("idempotency-key", key(number)).header(name, value);
    request.send().await.unwrap().status().as_u16()
}

async fn post_batch(platform: &PlatformSim, reports: Value) -> Value {
    let batch = json!({"reports": reports}).to_string();
    let answer = request(platform, "/batch", &batch).send().await.unwrap();
    serde_json::from_str(&answer.text().await.unwrap()).unwrap()
}

fn payload(text: &str) -> Value {
    serde_json::from_str::<Value>(text).unwrap()["data"].take()
}

const EPOCH: &str = "fencing-epoch";

#[tokio::test]
async fn an_owner_that_another_has_followed_is_refused() {
    let platform = start(Keep::default()).await;
    assert_eq!(post_of(&platform, 1, &application("a", 1), EPOCH, "7").await, 200);
    assert_eq!(post_of(&platform, 2, &config_map("a", 1), EPOCH, "8").await, 200);
    // Application and resources have one owner; other applications have their own.
    assert_eq!(post_of(&platform, 3, &application("a", 2), EPOCH, "7").await, 412);
    for (name, number) in [(EPOCH, "soon"), (EPOCH, "-1"), ("cluster-era", "late")] {
        assert_eq!(post_of(&platform, 3, &application("a", 2), name, number).await, 400, "{name}: {number}");
    }
    assert_eq!(post_of(&platform, 4, &application("b", 1), EPOCH, "3").await, 200);
    assert_eq!(post(&platform, &key(5), &application("a", 3)).await, 200);
    let totals = platform.totals();
    assert_eq!((totals.taken, totals.stale_refused, totals.malformed), (4, 1, 3));
    assert_eq!(platform.last_of_application("argocd", "a").unwrap().version, Some(3));
}

#[tokio::test]
async fn each_report_of_a_batch_is_admitted_by_its_own_epoch() {
    let platform = start(Keep::default()).await;
    assert_eq!(post_of(&platform, 1, &application("a", 1), EPOCH, "7").await, 200);
    let batch = json!([
        {"idempotencyKey": key(2), "fencingEpoch": 6, "data": payload(&application("a", 2))},
        {"idempotencyKey": key(3), "fencingEpoch": 6, "data": payload(&application("b", 2))},
        {"idempotencyKey": key(4), "data": payload(&config_map("a", 2))},
    ]);
    let answer = post_batch(&platform, batch).await;
    assert_eq!(answer, json!({"results": [{"status": 412}, {"status": 200}, {"status": 200}]}));
    let totals = platform.totals();
    assert_eq!((totals.taken, totals.stale_refused), (3, 1));
}

/// As after a restore of the cluster's store, which counts its versions anew from there.
#[tokio::test]
async fn a_report_of_a_later_era_is_newer_than_all_of_the_eras_before_it() {
    let platform = start(Keep::default()).await;
    let order = || {
        let totals = platform.totals();
        (totals.taken, totals.malformed, totals.out_of_order, totals.resources_out_of_order)
    };
    assert_eq!(post(&platform, &key(1), &application("a", 9)).await, 200);
    assert_eq!(post(&platform, &key(2), &config_map("a", 9)).await, 200);
    assert_eq!(post_of(&platform, 3, &application("a", 4), "cluster-era", "1").await, 200);
    let batch = json!([
        {"idempotencyKey": key(4), "clusterEra": 1, "data": payload(&application("a", 5))},
        {"idempotencyKey": key(5), "clusterEra": 1, "data": payload(&config_map("a", 4))},
    ]);
    assert_eq!(post_batch(&platform, batch).await, json!({"results": [{"status": 200}, {"status": 200}]}));
    assert_eq!(order(), (5, 0, 0, 0));
    assert_eq!(post(&platform, &key(6), &application("a", 10)).await, 200);
    assert_eq!(post(&platform, &key(7), &config_map("a", 10)).await, 200);
    assert_eq!(order(), (7, 0, 1, 1), "they are of the first era");
}

#[tokio::test]
async fn the_stream_is_written_as_lines() {
    let platform = start(Keep::default()).await;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("reports.jsonl");
    platform.write_to(&path).await.unwrap();
    for number in 1..=3 {
        post(&platform, &key(number), &application("a", u64::from(number))).await;
    }
    post(&platform, &key(3), &application("a", 3)).await;
    platform.close_file().await.unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3);
    assert_eq!((lines[2]["n"].as_u64(), lines[2]["key"].as_str()), (Some(2), Some(key(3).as_str())));
    assert!(lines[0]["data"]["object"].is_string());
    assert!(lines[0]["t"].as_f64().unwrap() > 1.7e9);
    let in_vain = platform.wait_until(Duration::from_millis(20), |totals| totals.taken == 4).await;
    assert!(
        in_vain.unwrap_err().to_string().starts_with("waited 20ms for reports in vain: Totals { posts: 4")
    );
}
