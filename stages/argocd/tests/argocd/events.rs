//! Whole events through the stage.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse, Response as HttpResponse};
use pipeline_core::{
    Attempt, Change, Enrich as _, Enriched, Event, Filtered, Key, ObjectIndex, Outcome, Reason, ReportKind,
    StageError, Timestamp, Version,
};
use pipeline_redact::Redactor;
use serde_json::{Value, json};
use stages_argocd::client;
use stages_argocd::labels;
use stages_argocd::settings::SettingsWatch;
use stages_argocd::stage::{ArgoCdEnrichment, Config};
use tokio::sync::Barrier;

use crate::support::{Samples, Server};

/// An application of Argo CD 3 with two resources.
pub(crate) fn application(name: &str) -> Value {
    let entry = |kind: &str| json!({"kind": kind, "version": "v1", "namespace": "there", "name": name, "status": "Synced"});
    json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": name, "namespace": "apps", "uid": name, "resourceVersion": "7"},
        "spec": {
            "project": "default",
            "source": {"repoURL": "https://git.example/r", "path": "p", "targetRevision": "main"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "there"},
        },
        "status": {
            "resourceHealthSource": "appTree",
            "health": {"status": "Healthy"},
            "sync": {"status": "Synced", "revision": "v1"},
            "resources": [entry("Service"), entry("ConfigMap")],
        },
    })
}

pub(crate) fn event(name: &str) -> Event {
    let key = Key::new("apps", name).unwrap();
    let change = Change::Applied { body: application(name).to_string().into() };
    Event::watched(key, name.into(), Version(7), change, Timestamp::UNIX_EPOCH)
}

/// What an upstream Argo CD answers to `path`.
pub(crate) fn argo_cd(path: &str) -> HttpResponse {
    if path == "/api/v1/settings" {
        return r#"{"trackingMethod":"annotation"}"#.into_response();
    }
    if path == "/api/version" {
        return r#"{"Version":"v3.2.0"}"#.into_response();
    }
    if path.contains("/manifests?") {
        return r#"{"manifests":["{}"]}"#.into_response();
    }
    "{}".into_response()
}

fn calls_of(server: &Server, what: &str) -> usize {
    server.asked().iter().filter(|path| path.contains(what)).count()
}

fn config(argocd: client::Config) -> Config {
    let (kept, looking) = (crate::support::kept(), crate::support::looking());
    Config::new(argocd, kept, looking, Duration::from_secs(120))
}

pub(crate) struct Stage {
    pub(crate) stage: ArgoCdEnrichment,
    watch: SettingsWatch,
}

impl Stage {
    async fn new(server: &Server, change: impl FnOnce(&mut Config)) -> Self {
        let mut config = config(server.config());
        config.settings_wait = Duration::from_secs(60);
        change(&mut config);
        let redactor = Redactor::new(b"key");
        let meter = Arc::new(Samples::default());
        let (stage, watch) = config.build(ObjectIndex::default(), redactor, meter).await.unwrap();
        Self { stage, watch }
    }

    pub(crate) async fn looked(server: &Server, change: impl FnOnce(&mut Config)) -> Self {
        let stage = Self::new(server, change).await;
        stage.watch.look().await.unwrap();
        stage
    }

    pub(crate) async fn enrich(&self, event: &Event) -> Result<Enriched, StageError> {
        let attempt = Attempt::at(Timestamp::UNIX_EPOCH);
        self.stage.enrich(event, None, &attempt).await
    }
}

#[tokio::test]
async fn the_calls_of_an_event_are_told_with_it() {
    let server = Server::new(|_, path| argo_cd(path)).await;
    let stage = Stage::looked(&server, |_| {}).await;
    let calls = async |event: &Event| {
        let attempt = Attempt::at(Timestamp::UNIX_EPOCH);
        stage.stage.enrich(event, None, &attempt).await.unwrap();
        let calls = attempt.calls.take();
        assert!(calls.iter().all(|sample| sample.call.peer() == labels::ARGOCD));
        let mut told: Vec<_> = calls.iter().map(|sample| (sample.call.as_str(), sample.outcome)).collect();
        told.sort_by_key(|(call, _)| *call);
        told
    };
    let ok = |call| (call, Outcome::Ok);
    let mut made = calls(&event("store")).await;
    made.dedup();
    let asked = ["managed_resources", "manifests", "resource", "resource_tree", "revision_metadata"];
    assert_eq!(made, asked.map(ok));
    // Another application at the same revision of the same repository: what is kept is told as such.
    let told = calls(&event("other")).await;
    assert!(told.contains(&("revision_metadata", Outcome::Cached)), "{told:?}");
}

#[tokio::test]
async fn an_event_becomes_reports_of_the_application_and_its_resources() {
    let server = Server::new(|_, path| argo_cd(path)).await;
    let stage = Stage::looked(&server, |_| {}).await;
    let enriched = stage.enrich(&event("store")).await.unwrap();
    let kinds: Vec<ReportKind> = enriched.reports.iter().map(|report| report.kind).collect();
    assert_eq!(kinds, [labels::APP_REPORT, labels::RESOURCE_REPORT, labels::RESOURCE_REPORT]);
    for (what, calls) in [("managed-resources", 1), ("resource-tree", 1), ("/metadata", 1), ("manifests", 1)]
    {
        assert_eq!(calls_of(&server, what), calls, "{what}");
    }
}

#[tokio::test]
async fn resources_whose_states_together_are_too_large_are_asked_for_one_by_one() {
    let server = Server::new(|_, path| {
        if path.contains("/managed-resources?") {
            return format!(r#"{{"items":[],"more":"{}"}}"#, "x".repeat(4096)).into_response();
        }
        if path.contains("/resource?") {
            return r#"{"manifest":"{\"kind\":\"Service\"}"}"#.into_response();
        }
        argo_cd(path)
    })
    .await;
    let stage = Stage::looked(&server, |config| config.argocd.http.max_body = 4096).await;
    let enriched = stage.enrich(&event("store")).await.unwrap();
    let kinds: Vec<ReportKind> = enriched.reports.iter().map(|report| report.kind).collect();
    assert_eq!(kinds, [labels::APP_REPORT, labels::RESOURCE_REPORT, labels::RESOURCE_REPORT]);
    assert!(enriched.reports.iter().all(|report| !report.incomplete));
    assert_eq!(enriched.refetch, None);
    assert_eq!((calls_of(&server, "/managed-resources?"), calls_of(&server, "/resource?")), (1, 2));
}

#[tokio::test]
async fn what_manifests_look_like_is_learned_once() {
    let server = Server::new(|_, path| argo_cd(path)).await;
    let stage = Stage::looked(&server, |_| {}).await;
    for name in ["one", "two", "three"] {
        assert_eq!(stage.enrich(&event(name)).await.unwrap().reports.len(), 3);
    }
    assert_eq!(calls_of(&server, "managed-resources"), 3);
    // Upstream, they say nothing that managed-resources does not; and a commit is of a repository.
    assert_eq!(calls_of(&server, "manifests"), 1);
    assert_eq!(calls_of(&server, "/metadata"), 1);
}

#[tokio::test]
async fn nothing_is_enriched_before_the_settings_are_known() {
    let server = Server::new(|_, path| argo_cd(path)).await;
    let stage = Stage::new(&server, |config| config.settings_wait = Duration::from_millis(1)).await;
    assert!(!stage.stage.health().settings_known);
    assert_eq!(stage.stage.health().last_success, None);
    let error = stage.enrich(&event("store")).await.unwrap_err();
    assert_eq!(error.to_string(), "the settings of argo cd are not known yet");
    assert!(matches!(error, StageError::Retry { reason: Reason::Unreachable, after: None, .. }));
    assert_eq!(server.asked(), Vec::<String>::new());
    stage.watch.look().await.unwrap();
    assert!(stage.stage.health().settings_known && stage.stage.health().last_success.is_some());
    assert_eq!(stage.enrich(&event("store")).await.unwrap().reports.len(), 3);
}

#[tokio::test]
async fn an_event_waits_for_the_settings() {
    let server = Server::new(|_, path| argo_cd(path)).await;
    let stage = Stage::new(&server, |_| {}).await;
    let event = event("store");
    // The event begins first, and could not end if it did not wait.
    let (enriched, looked) = tokio::join!(stage.enrich(&event), stage.watch.look());
    looked.unwrap();
    assert_eq!(enriched.unwrap().reports.len(), 3);
}

#[tokio::test]
async fn managed_resources_that_fail_put_the_event_off_as_long_as_argo_cd_asks() {
    let server = Server::new(|_, path| {
        if path.contains("managed-resources") {
            return (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "600")]).into_response();
        }
        argo_cd(path)
    })
    .await;
    let stage = Stage::looked(&server, |_| {}).await;
    let error = stage.enrich(&event("store")).await.unwrap_err();
    let StageError::Retry { reason, after, .. } = error else { panic!("not a retry") };
    assert_eq!((reason, after), (Reason::ServerError, Some(Duration::from_secs(600))));
}

#[tokio::test]
async fn an_event_whose_time_is_over_is_put_off() {
    let server = Server::waiting(|_, request| {
        let path = request.uri().to_string();
        Box::pin(async move {
            if path.contains("managed-resources") { std::future::pending().await } else { argo_cd(&path) }
        })
    })
    .await;
    let stage = Stage::looked(&server, |config| config.event_timeout = Duration::from_secs(5)).await;
    let error = stage.enrich(&event("store")).await.unwrap_err();
    assert!(matches!(error, StageError::Retry { reason: Reason::Timeout, after: None, .. }));
    assert_eq!(calls_of(&server, "managed-resources"), 1);
}

#[tokio::test]
async fn answers_of_one_event_are_bounded_in_bytes() {
    let server = Server::new(|_, path| argo_cd(path)).await;
    let stage = Stage::looked(&server, |config| config.event_bytes = 1).await;
    let enriched = stage.enrich(&event("store")).await.unwrap();
    assert_eq!(
        enriched.reports.len(),
        1,
        "it is the application's, which waits for nothing that is too large"
    );
    assert!(enriched.refetch.is_some());
}

#[tokio::test]
async fn events_wait_for_room() {
    let (under_way, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (all, together) = (Arc::new(Barrier::new(4)), Arc::new(AtomicBool::new(false)));
    let (count, peak, wait) = (under_way.clone(), most.clone(), together.clone());
    let server = Server::waiting(move |_, request| {
        let path = request.uri().to_string();
        let (count, peak, all, wait) = (count.clone(), peak.clone(), all.clone(), wait.clone());
        Box::pin(async move {
            if path.contains("managed-resources") {
                peak.fetch_max(count.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                if wait.load(Ordering::SeqCst) {
                    all.wait().await;
                } else {
                    // Every opportunity for another event's call to be there at the same time.
                    for _ in 0..1000 {
                        tokio::task::yield_now().await;
                    }
                }
                count.fetch_sub(1, Ordering::SeqCst);
            }
            argo_cd(&path)
        })
    })
    .await;
    // Room for one application of which nothing is known.
    let stage = Stage::looked(&server, |config| config.held_bytes = 256 * 1024).await;
    let events: Vec<Event> = ["one", "two", "three", "four"].map(event).into();
    let enrich_all = async || {
        for enriched in futures::future::join_all(events.iter().map(|event| stage.enrich(event))).await {
            assert_eq!(enriched.unwrap().reports.len(), 3);
        }
    };
    enrich_all().await;
    assert_eq!(most.load(Ordering::SeqCst), 1);
    // They turned out to be small: now all four fit, and none is answered before all are there.
    together.store(true, Ordering::SeqCst);
    enrich_all().await;
    assert_eq!(most.load(Ordering::SeqCst), 4);
}

#[tokio::test]
async fn reports_take_up_room_until_their_attempt_ends() {
    let server = Server::new(|_, path| argo_cd(path)).await;
    // Less than the reports of one event, so that there is none for another.
    let change =
        |config: &mut Config| (config.held_bytes, config.event_timeout) = (1024, Duration::from_secs(5));
    let stage = Stage::looked(&server, change).await;
    let attempt = Attempt::at(Timestamp::UNIX_EPOCH);
    assert_eq!(stage.stage.enrich(&event("one"), None, &attempt).await.unwrap().reports.len(), 3);
    let error = stage.enrich(&event("two")).await.unwrap_err();
    assert!(matches!(error, StageError::Retry { reason: Reason::Timeout, .. }));
    drop(attempt);
    assert_eq!(stage.enrich(&event("two")).await.unwrap().reports.len(), 3);
}

#[tokio::test]
async fn what_is_no_application_is_rejected_and_what_has_no_identity_is_filtered() {
    let server = Server::new(|_, path| argo_cd(path)).await;
    let stage = Stage::looked(&server, |_| {}).await;
    let mut broken = event("store");
    broken.change = Change::Applied { body: "[]".into() };
    let error = stage.enrich(&broken).await.unwrap_err();
    assert!(matches!(error, StageError::Reject { reason: Reason::Malformed, .. }));
    let mut gone = event("store");
    gone.change = Change::Deleted { body: None };
    gone.uid = "".into();
    assert_eq!(stage.enrich(&gone).await.unwrap(), Enriched::filtered(Filtered::NeverReported));
    assert_eq!(calls_of(&server, "/applications/"), 0);
}

#[tokio::test]
async fn a_stage_for_no_address_is_not_built() {
    let config = config(crate::support::calling("nowhere"));
    let built =
        config.build(ObjectIndex::default(), Redactor::new(b"key"), Arc::new(Samples::default())).await;
    assert_eq!(
        built.unwrap_err().to_string(),
        "cannot address Argo CD: the address is not a URL such as `https://argocd.example`"
    );
}
