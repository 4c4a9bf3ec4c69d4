//! A platform that runs on a Postgres whose tables a newer version has changed meanwhile.

use std::path::Path;

use loadtest::sim::platform_process::PlatformProcess;
use loadtest::sim::postgres::PostgresServer;
use serde_json::json;
use tempfile::TempDir;

use crate::runtime::{PROGRAM, http_client};

#[tokio::test]
async fn a_platform_beside_a_newer_one_lives_and_is_not_ready() {
    let (server, folder) = (PostgresServer::start().await.unwrap(), TempDir::new().unwrap());
    let url = folder.path().join("url");
    std::fs::write(&url, server.url()).unwrap();
    let url = format!("platformServer.store.postgresUrlFile={}", url.display());
    let settings = vec!["serve.metricsAddress=".to_owned(), url];
    let platform = PlatformProcess::with(Path::new(PROGRAM), folder.path(), settings).await.unwrap();
    let (client, token) = (http_client(), platform.token("prod").await.unwrap());
    let page = async |path: &str| {
        let answer = client.get(format!("{}{path}", platform.url())).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    let page_of = |status: u16, text: &str| (status, text.to_owned());
    let report = async || {
        let object =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}});
        let request =
            client.post(format!("{}/2.0/api/events", platform.url())).header("authorization", &token);
        let request = request.body(json!({"data": {"object": object}}).to_string());
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!(report().await, 200);
    assert_eq!(page("/readyz").await, page_of(200, "ready\n"));

    let newer = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
                 VALUES (100000, 'newer', true, '\\x00', 0)";
    server.run(newer).await.unwrap();
    assert_eq!(report().await, 503);
    let why = "a newer version has the store: this one writes nothing\n";
    assert_eq!(page("/readyz").await, page_of(503, why));
    let lives = "degraded: the store cannot be written, the log says why\n";
    assert_eq!(page("/healthz").await, page_of(200, lives));
    platform.stop().await.unwrap();
}
