//! What a person who asks for a replay is told.

use std::sync::Arc;

use pipeline_core::{Service as _, ServiceContext};
use pipeline_http::admin::wire::Counted;
use pipeline_http::admin::{Admin, Answering};
use serde_json::{Value, json};

use crate::fakes::{Cluster, Enricher, Receiver, key};
use crate::running::{one_shard, start};

#[tokio::test]
async fn what_is_not_watched_is_refused_and_a_stop_tells_how_far_it_came() {
    let cluster = Cluster::new();
    for name in ["app", "other"] {
        cluster.put(name, 1);
    }
    let engine = start(one_shard(), cluster, Enricher::default(), Receiver::new());
    engine.until_idle(2).await;
    engine.cluster.unwatched.lock().unwrap().insert(key("other"));
    let answering = Answering {
        handle: engine.handle.clone(),
        ledger: engine.ledger.clone(),
        health: engine.health.clone(),
        sharding: one_shard().sharding,
        keys: Arc::new(Vec::new),
        namespace: "ns".to_owned(),
        role: "reporter",
        counts: Counted::default(),
        routes: Vec::new(),
    };
    let admin = Admin::on_address("127.0.0.1:0", None, answering).await.unwrap();
    let url = format!("http://{}/v1/replay", admin.address().unwrap());
    let stop = pipeline_core::Shutdown::new();
    let serving = tokio::spawn(Box::new(admin).serve(ServiceContext::alone(stop.clone())));
    // It may be installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let replay = async |asked: Value| {
        let request = client.post(&url).header("content-type", "application/json");
        let answer = request.body(asked.to_string()).send().await.unwrap();
        assert_eq!(answer.headers()["cache-control"], "no-store");
        let status = answer.status().as_u16();
        (status, serde_json::from_str::<Value>(&answer.text().await.unwrap()).unwrap())
    };

    let why = "ns/other is in a namespace that is not watched: it is left as it is";
    let refused = json!({ "marked": 1, "older": [], "unknown": [{ "error": why }], "unwatched": 0 });
    assert_eq!(replay(json!({ "app": ["ns/other", "ns/app"] })).await, (200, refused));
    let since = json!({ "since": 3600, "whole": true });
    let left = json!({ "marked": 1, "older": [], "unknown": [], "unwatched": 1 });
    assert_eq!(replay(since.clone()).await, (200, left));
    engine.until("reported", |counts| counts.acked == 3).await;
    assert!(engine.receiver.came().iter().skip(2).all(|came| came.key == key("app")));
    let other = client.get(&url).send().await.unwrap();
    assert_eq!(other.status().as_u16(), 405);
    assert_eq!(other.text().await.unwrap(), r#"{"error":"this path is not asked with this method"}"#);

    engine.stop.cancel();
    engine.task.await.unwrap().unwrap();
    let why = json!({ "error": "the reporter is stopping: 0 of 1 were marked" });
    assert_eq!(replay(since).await, (503, why));
    stop.cancel();
    serving.await.unwrap().unwrap();
}
