//! A service beside a pipeline, asked over the bus and over HTTP.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use pipeline_core::{RequestError, Service as _, ServiceContext, Shutdown, StageError, async_trait};
use pipeline_engine::run::{Config, Engine, EngineError, Match, Pipeline};
use pipeline_http::serve::{ServeConfig, Served};
use pipeline_ledger::Ledger;

use super::api::Api;
use super::configmaps::Journal;
use super::greeter::{Greeter, SUBJECT};
use super::{pipeline, route};
use crate::on;
use crate::running::{PATIENCE, one_shard};

#[tokio::test]
async fn a_service_answers_over_the_bus_and_over_http() {
    let (bus, kept) = on::bus();
    let (greeter, stop) = (Greeter::new(), Shutdown::new());
    let journal = Journal::default();
    let route = route("archive", Match::default(), &journal, Ledger::memory(), one_shard());
    let served = Served {
        health: route.health.clone(),
        metrics: route.metrics.clone(),
        sharding: one_shard().sharding,
        works: Arc::new(OnceLock::new()),
        routes: Vec::new(),
    };
    let server = ServeConfig::new("127.0.0.1:0", "serve.address").build(served).await.unwrap();
    let server = server.mount(greeter.routes());
    let url = format!("http://{}", server.address());
    let serving = tokio::spawn(Box::new(server).serve(ServiceContext::alone(stop.clone())));
    let api = Arc::new(Api::new());
    let engine = Engine::new(one_shard(), bus.clone(), None).pipeline(pipeline(&api, vec![route]));
    let task = tokio::spawn(engine.service(greeter).run(stop.clone()));

    let begun = Instant::now();
    let answer = loop {
        match bus.request(SUBJECT, Bytes::from_static(b"bus"), PATIENCE).await {
            Ok(answer) => break answer,
            // It has not begun.
            Err(RequestError::NobodyServes(_)) if begun.elapsed() < PATIENCE => {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(answer, "hello, bus");
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let get =
        async |path: &str| client.get(format!("{url}{path}")).send().await.unwrap().text().await.unwrap();
    assert_eq!(get("/greeting/web").await, "hello, web");
    assert!(get("/metrics").await.contains("greeted_total 2"), "its metrics are shown with all others");
    assert_eq!(get("/nothing").await, "no such page: / lists them\n");
    stop.cancel();
    task.await.unwrap().unwrap();
    serving.await.unwrap().unwrap();
    kept.end();
}

/// Ends at once.
struct Broken;

#[async_trait]
impl pipeline_core::Service for Broken {
    fn name(&self) -> &'static str {
        "broken"
    }

    async fn serve(self: Box<Self>, _: ServiceContext) -> Result<(), StageError> {
        Ok(())
    }
}

#[tokio::test]
async fn a_service_that_ends_by_itself_ends_the_process() {
    let (bus, kept) = on::bus();
    let stop = Shutdown::new();
    let ended = Engine::new(one_shard(), bus, None).service(Broken).run(stop.clone()).await;
    assert!(matches!(ended, Err(EngineError::Service { name: "broken", source: None })), "{ended:?}");
    assert!(stop.is_cancelled(), "whatever else runs in the process is told");
    kept.end();
}

/// Never ends, whatever it is told.
struct Deaf;

#[async_trait]
impl pipeline_core::Service for Deaf {
    fn name(&self) -> &'static str {
        "deaf"
    }

    async fn serve(self: Box<Self>, _: ServiceContext) -> Result<(), StageError> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_service_that_does_not_end_is_left_behind_after_the_grace_period() {
    let (bus, kept) = on::bus();
    let stop = Shutdown::new();
    stop.cancel();
    let config = Config { grace: Duration::from_millis(50), ..one_shard() };
    Engine::new(config, bus, None).service(Deaf).run(stop).await.unwrap();
    kept.end();
}

#[tokio::test]
#[should_panic(expected = "the name of pipeline reports is taken")]
async fn a_pipeline_may_not_have_the_name_of_a_stream_of_the_bus() {
    let (bus, kept) = on::bus();
    let reports = Pipeline { name: "reports".to_owned(), ..pipeline(&Arc::new(Api::new()), Vec::new()) };
    let _ = Engine::new(one_shard(), bus, None).pipeline(reports);
    kept.end();
}
