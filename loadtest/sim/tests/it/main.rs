//! The simulators, spoken to over HTTP.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod argocd;
mod compare;
mod faults;
mod kube;
mod platform;
mod relay;
mod simulation;
mod tls;
mod watches;

use loadtest_sim::{PATIENCE, local_client};
use reqwest::{Client, ClientBuilder, Response};
use serde_json::Value;

fn builder() -> ClientBuilder {
    local_client().redirect(reqwest::redirect::Policy::none()).timeout(PATIENCE)
}

fn client() -> Client {
    builder().build().unwrap()
}

async fn get(url: &str) -> Response {
    client().get(url).send().await.unwrap()
}

/// Status and JSON of a GET.
async fn json(url: &str) -> (u16, Value) {
    let response = get(url).await;
    (response.status().as_u16(), response.json().await.unwrap())
}
