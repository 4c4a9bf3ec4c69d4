//! When Argo CD's settings are known, and what follows while they are not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::IntoResponse;
use pipeline_core::{Outcome, Reason, Service as _, Shutdown};
use stages_argocd::labels;
use stages_argocd::plan::{RawManifests, TrackingMethod};
use stages_argocd::settings::{Config, Current, SettingsWatch};

use crate::support::{Rig, Server};

/// Of which settings are the first given body, and the version the second; empty ones are answered 503.
async fn server(settings: &'static str, version: &'static str) -> Server {
    Server::new(move |_, path| match if path == "/api/version" { version } else { settings } {
        "" => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        body => body.into_response(),
    })
    .await
}

async fn watch(server: &Server, config: Config) -> (SettingsWatch, Current) {
    config.build(Rig::of(server).await.argocd)
}

/// What is known after one look: tracking method, label key, namespace.
async fn looked(
    settings: &'static str,
    version: &'static str,
    config: Config,
) -> Option<(TrackingMethod, String, String)> {
    let server = server(settings, version).await;
    let (watch, current) = watch(&server, config).await;
    let result = watch.look().await;
    let known = current.borrow().clone();
    assert_eq!(result.is_ok(), known.is_some());
    known.map(|known| {
        let settings = known.settings();
        (settings.tracking_method, settings.instance_label_key, known.namespace.clone())
    })
}

#[tokio::test]
async fn settings_are_read_and_their_defaults_follow_the_version() {
    let of = |method, label: &str, namespace: &str| Some((method, label.to_owned(), namespace.to_owned()));
    let instance = "app.kubernetes.io/instance";
    let v3 = r#"{"Version":"v3.2.0+unknown"}"#;
    let full = r#"{"appLabelKey":"own/label","trackingMethod":"annotation+label","controllerNamespace":"gitops","x":1}"#;
    assert_eq!(
        looked(full, v3, crate::support::looking()).await,
        of(TrackingMethod::AnnotationAndLabel, "own/label", "gitops")
    );
    // Named, it needs no version.
    assert_eq!(
        looked(r#"{"trackingMethod":"label"}"#, "", crate::support::looking()).await,
        of(TrackingMethod::Label, instance, "argocd")
    );
    for settings in ["{}", r#"{"trackingMethod":""}"#] {
        assert_eq!(
            looked(settings, v3, crate::support::looking()).await,
            of(TrackingMethod::Annotation, instance, "argocd")
        );
        assert_eq!(
            looked(settings, r#"{"Version":"v2.12.3-fork"}"#, crate::support::looking()).await,
            of(TrackingMethod::Label, instance, "argocd")
        );
        assert_eq!(looked(settings, "", crate::support::looking()).await, None);
        let method = Config { tracking_method: Some(TrackingMethod::Label), ..crate::support::looking() };
        assert_eq!(looked(settings, "", method).await, of(TrackingMethod::Label, instance, "argocd"));
    }
    let overridden = Config {
        tracking_method: Some(TrackingMethod::Label),
        instance_label_key: Some("mine".to_owned()),
        namespace: Some("here".to_owned()),
        ..crate::support::looking()
    };
    assert_eq!(looked(full, v3, overridden).await, of(TrackingMethod::Label, "mine", "here"));
}

#[tokio::test]
async fn what_is_overridden_is_known_without_a_look() {
    let server = server("", "").await;
    let config = Config {
        tracking_method: Some(TrackingMethod::Label),
        instance_label_key: Some("mine".to_owned()),
        ..crate::support::looking()
    };
    let (watch, current) = watch(&server, config).await;
    assert_eq!(current.borrow().as_ref().unwrap().settings().instance_label_key, "mine");
    assert!(watch.look().await.is_err());
    assert!(current.borrow().is_some());
}

#[tokio::test]
async fn an_argo_cd_that_says_no_installation_has_none_if_it_would_say_it() {
    let version = |number: &str| -> &'static str { format!(r#"{{"Version":"{number}"}}"#).leak() };
    for (settings, version, expected) in [
        (r#"{"installationID":"tenant"}"#, version("v3.2.0"), Some("tenant")),
        ("{}", version("v3.2.0+66b2f30"), Some("")),
        ("{}", version("v4.0.0"), Some("")),
        // What these make bears it as well.
        ("{}", version("v3.1.9"), None),
        ("{}", version("v2.14.20"), None),
        ("{}", version("unknown"), None),
    ] {
        let server = server(settings, version).await;
        let config = Config {
            tracking_method: Some(TrackingMethod::Annotation),
            instance_label_key: Some("mine".to_owned()),
            ..crate::support::looking()
        };
        let (watch, current) = watch(&server, config).await;
        let known = || current.borrow().as_ref().unwrap().settings().installation_id;
        assert_eq!(known(), None, "nothing was said yet");
        watch.look().await.unwrap();
        assert_eq!(known().as_deref(), expected, "{settings} {version}");
    }
}

#[tokio::test]
async fn an_answer_that_is_none_leaves_the_settings_unknown() {
    for (settings, version, message, reason) in [
        (
            "<html>",
            "{}",
            "its answer is not the JSON that was expected (line 1, column 1)",
            Reason::Malformed,
        ),
        ("[1]", "{}", "its answer is not the JSON that was expected (line 1, column 2)", Reason::Malformed),
        (
            "{}",
            "<html>",
            "its answer is not the JSON that was expected (line 1, column 1)",
            Reason::Malformed,
        ),
        ("", "{}", "it answered 503", Reason::ServerError),
    ] {
        let server = server(settings, version).await;
        let (watch, current) = watch(&server, crate::support::looking()).await;
        let error = watch.look().await.unwrap_err();
        assert_eq!(error.to_string(), format!("cannot read the settings at {}: {message}", server.host()));
        assert_eq!(error.reason(), reason);
        assert!(current.borrow().is_none());
    }
}

#[tokio::test]
async fn a_change_takes_effect_and_a_failure_changes_nothing() {
    let turn = Arc::new(AtomicUsize::new(0));
    let now = turn.clone();
    let server = Server::new(move |_, path| {
        let (method, version) = match now.load(Ordering::SeqCst) {
            0 => ("label", "v2.12.0"),
            1 => return StatusCode::UNAUTHORIZED.into_response(),
            2 => ("annotation", "v2.12.0"),
            _ => ("annotation", "v3.0.0"),
        };
        match path {
            "/api/version" => format!(r#"{{"Version":"{version}"}}"#).into_response(),
            _ => format!(r#"{{"trackingMethod":"{method}"}}"#).into_response(),
        }
    })
    .await;
    let (watch, current) = watch(&server, crate::support::looking()).await;
    let look = async |at| {
        turn.store(at, Ordering::SeqCst);
        let result = watch.look().await;
        let known = current.borrow().clone().unwrap().settings();
        (result.is_ok(), known.tracking_method, known.raw_manifests)
    };
    assert_eq!(look(0).await, (true, TrackingMethod::Label, RawManifests::Unknown));
    current.borrow().as_ref().unwrap().learn(RawManifests::Served);
    assert_eq!(look(0).await, (true, TrackingMethod::Label, RawManifests::Served));
    assert_eq!(look(1).await, (false, TrackingMethod::Label, RawManifests::Served));
    assert_eq!(look(2).await, (true, TrackingMethod::Annotation, RawManifests::Unknown));
    current.borrow().as_ref().unwrap().learn(RawManifests::Absent);
    // A newer Argo CD may answer otherwise.
    assert_eq!(look(3).await, (true, TrackingMethod::Annotation, RawManifests::Unknown));
    let before = current.borrow().clone().unwrap();
    look(3).await;
    assert!(Arc::ptr_eq(&before, current.borrow().as_ref().unwrap()), "nothing differs");
}

#[tokio::test]
async fn it_keeps_looking_until_it_is_stopped() {
    let server = Server::new(|n, path| match (n, path) {
        (0..6, _) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        (_, "/api/version") => r#"{"Version":"v3.2.0"}"#.into_response(),
        (6..20, _) => r#"{"trackingMethod":"label"}"#.into_response(),
        _ => r#"{"trackingMethod":"annotation"}"#.into_response(),
    })
    .await;
    let rig = Rig::of(&server).await;
    let brief = Duration::from_millis(1);
    // Two times three tries fail, then the settings come, and later they change.
    let config = Config { every: brief, every_until_known: brief, ..crate::support::looking() };
    let (watch, mut current) = config.build(rig.argocd.clone());
    let stop = Shutdown::new();
    let served = tokio::spawn(Box::new(watch).serve(pipeline_core::ServiceContext::alone(stop.clone())));
    let method = async |current: &mut Current| {
        current.changed().await.unwrap();
        current.borrow_and_update().as_ref().unwrap().settings().tracking_method
    };
    assert_eq!(method(&mut current).await, TrackingMethod::Label);
    assert_eq!(method(&mut current).await, TrackingMethod::Annotation);
    stop.cancel();
    served.await.unwrap().unwrap();
    let samples = rig.samples.all();
    assert!(samples.iter().all(|(call, _)| *call == labels::SETTINGS));
    assert_eq!(samples[..6], [(labels::SETTINGS, Outcome::Failed(Reason::ServerError)); 6]);
}
