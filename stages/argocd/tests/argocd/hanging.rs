//! Calls that are never answered, beside calls that are.

use std::sync::Arc;
use std::time::Duration;

use axum::response::{IntoResponse, Response as HttpResponse};
use pipeline_core::Outcome;
use stages_argocd::client::{self, CallBudget};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use crate::support::{Rig, Server, body, managed, manifests};

#[tokio::test]
async fn a_repository_that_does_not_answer_holds_up_no_other_application() {
    let (began, mut begun) = mpsc::unbounded_channel();
    let server = Server::waiting(move |_, request| {
        let began = began.clone();
        Box::pin(async move {
            if !request.uri().path().ends_with("/manifests") {
                return "{}".into_response();
            }
            began.send(()).unwrap();
            std::future::pending::<HttpResponse>().await
        })
    })
    .await;
    let forever = Duration::from_secs(3_600);
    let http = stages_client::Config { timeout: forever, ..server.config().http };
    let config = client::Config { http, ..server.config() };
    assert_eq!(config.min_concurrency, 4);
    let rig = Arc::new(Rig::new(config, crate::support::kept()).await);
    let hanging: Vec<_> = (0..4)
        .map(|n| {
            let rig = rig.clone();
            tokio::spawn(async move {
                let budget = CallBudget::until(Instant::now() + forever);
                rig.fetcher.fetch(&manifests(&format!("u-{n}"), "v"), &budget, "argocd").await
            })
        })
        .collect();
    for n in 0..4 {
        timeout(Duration::from_secs(60), begun.recv())
            .await
            .unwrap_or_else(|_| panic!("{n} of 4 calls hang"));
    }
    for n in 0..200 {
        assert_eq!(rig.fetch(&managed(&format!("app-{n}"))).await, body("{}"), "{n}");
    }
    assert_eq!(rig.samples.outcomes(), [Outcome::Ok; 200]);
    assert!(hanging.iter().all(|call| !call.is_finished()));
    hanging.iter().for_each(tokio::task::JoinHandle::abort);
}
