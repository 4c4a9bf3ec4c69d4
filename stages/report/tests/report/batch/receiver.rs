//! A platform that answers as a test says, and remembers what it was asked.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use stages_report::platform::{Batch, Platform};

use super::{NEVER, PATH};
use crate::support::{Requests, platform, serve, unzipped};

/// A platform that answers the `n`th request, from 0, and what it was asked: path and unzipped body.
pub(super) struct Receiver {
    pub(super) address: String,
    pub(super) requests: Requests,
    paths: Arc<Mutex<Vec<String>>>,
}

type Answering = Arc<dyn Fn(usize, bool, Vec<String>) -> BoxFuture<'static, Response> + Send + Sync>;

#[derive(Clone)]
struct Receiving {
    answer: Answering,
    requests: Requests,
    paths: Arc<Mutex<Vec<String>>>,
}

impl Receiver {
    /// `answer` takes the number of the request, whether it is a batch, and its keys.
    pub(super) async fn new(
        answer: impl Fn(usize, bool, Vec<String>) -> BoxFuture<'static, Response> + Send + Sync + 'static,
    ) -> Self {
        let (requests, paths) = (Requests::default(), Arc::default());
        let receiving = Receiving {
            answer: Arc::new(answer),
            requests: Requests::clone(&requests),
            paths: Arc::clone(&paths),
        };
        let address = serve(Router::new().fallback(receive).with_state(receiving)).await;
        Self { address, requests, paths }
    }

    /// Every batch is answered with `status` for each report, every other request with 200.
    pub(super) async fn of(status: u16) -> Self {
        Self::new(move |_, batch, keys| at_once(if batch { list(&vec![status; keys.len()]) } else { ok() }))
            .await
    }

    pub(super) async fn sink(&self, change: impl FnOnce(&mut Batch)) -> Platform {
        let mut batch = Batch { linger: NEVER, ..crate::support::batch(PATH) };
        change(&mut batch);
        platform(&self.address, |config| config.batch = Some(batch)).await
    }

    /// Of each request how many reports it had; 0 for one that is no batch.
    pub(super) fn sizes(&self) -> Vec<usize> {
        self.keys().into_iter().map(|(batch, keys)| if batch { keys.len() } else { 0 }).collect()
    }

    /// Of each request whether it is a batch, and its keys.
    pub(super) fn keys(&self) -> Vec<(bool, Vec<String>)> {
        let requests = self.requests.lock().unwrap();
        let paths = self.paths.lock().unwrap();
        paths.iter().zip(requests.iter()).map(|(path, (headers, body))| keys(path, headers, body)).collect()
    }
}

fn keys(path: &str, headers: &HeaderMap, body: &Bytes) -> (bool, Vec<String>) {
    if path != PATH {
        return (false, vec![headers["idempotency-key"].to_str().unwrap().to_owned()]);
    }
    let body: Value = serde_json::from_str(&unzipped(body)).unwrap();
    let reports = body["reports"].as_array().unwrap().iter();
    (true, reports.map(|report| report["idempotencyKey"].as_str().unwrap().to_owned()).collect())
}

async fn receive(State(receiving): State<Receiving>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    let path = parts.uri.path().to_owned();
    let (batch, keys) = keys(&path, &parts.headers, &body);
    let n = {
        let mut requests = receiving.requests.lock().unwrap();
        requests.push((parts.headers, body));
        receiving.paths.lock().unwrap().push(path);
        requests.len() - 1
    };
    (receiving.answer)(n, batch, keys).await
}

pub(super) fn at_once(response: Response) -> BoxFuture<'static, Response> {
    Box::pin(std::future::ready(response))
}

pub(super) fn ok() -> Response {
    StatusCode::OK.into_response()
}

pub(super) fn list(statuses: &[u16]) -> Response {
    let results: Vec<Value> = statuses.iter().map(|status| json!({"status": status})).collect();
    json!({"results": results}).to_string().into_response()
}
