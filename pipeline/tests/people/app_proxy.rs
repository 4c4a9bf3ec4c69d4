//! An app proxy that answers what it is given to answer, and remembers what it was asked: how commands deal with its answers is
//! tested here, what the real one does stands in its own tests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use loadtest::sim::server::serve;
use serde_json::{Value, json};

/// What was asked: the field, the variables, and the key.
pub(crate) type Asked = (String, Value, String);

#[derive(Default)]
struct Inner {
    answers: Mutex<BTreeMap<String, Vec<Value>>>,
    asked: Mutex<Vec<Asked>>,
}

/// An app proxy.
#[derive(Clone)]
pub(crate) struct AppProxy {
    inner: Arc<Inner>,
    /// Its address.
    pub(crate) url: String,
}

impl AppProxy {
    pub(crate) async fn start() -> Self {
        let inner = Arc::new(Inner::default());
        let routes = Router::new().route("/api/graphql", post(answer));
        let cut = async || {
            let pieces = [Ok("half an"), Err(std::io::Error::other("the process stops"))];
            Body::from_stream(futures::stream::iter(pieces))
        };
        let endless = async || {
            let begin = futures::stream::iter([Ok::<_, std::io::Error>("half an")]);
            Body::from_stream(futures::StreamExt::chain(begin, futures::stream::pending()))
        };
        let routes = routes
            .route("/app-proxy/api/graphql", post(answer))
            .route("/api/applications/logs", get(async || "an archive"))
            .route("/cut/api/applications/logs", get(cut))
            .route("/endless/api/applications/logs", get(endless))
            .route(
                "/refused/api/applications/logs",
                get(async || (StatusCode::FORBIDDEN, "it is for admins\n")),
            )
            .with_state(inner.clone());
        let url = serve(routes).await.unwrap();
        Self { inner, url }
    }

    /// From now on a field is answered so: with the last of these again and again, once the others were given.
    pub(crate) fn answers(&self, field: &str, answers: &[Value]) {
        self.inner.answers.lock().unwrap().insert(field.to_owned(), answers.to_vec());
    }

    /// From now on a field is refused.
    pub(crate) fn refuses(&self, field: &str, why: &str) {
        self.answers(field, &[json!({"refused": why})]);
    }

    /// What was asked since this was asked last.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.inner.asked.lock().unwrap())
    }

    /// The same without what reads alone.
    pub(crate) fn changed(&self) -> Vec<Asked> {
        let all = self.asked();
        let reads =
            ["resourceTree", "managedResources", "application", "rollout", "workflow", "resourceActions"];
        all.into_iter().filter(|(field, ..)| !reads.iter().any(|read| field.starts_with(read))).collect()
    }
}

async fn answer(State(inner): State<Arc<Inner>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let key = head.headers[header::AUTHORIZATION].to_str().unwrap().to_owned();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    let query = body["query"].as_str().unwrap();
    let field = query.split_once('{').unwrap().1.trim_start();
    let field: String = field.chars().take_while(|c| c.is_ascii_alphanumeric()).collect();
    inner.asked.lock().unwrap().push((field.clone(), body["variables"].clone(), key));
    let answer = {
        let mut answers = inner.answers.lock().unwrap();
        let Some(answers) = answers.get_mut(&field) else {
            return (StatusCode::BAD_GATEWAY, format!("nobody answers {field}\n")).into_response();
        };
        if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() }
    };
    if let Some(why) = answer["refused"].as_str() {
        return Json(json!({"data": null, "errors": [{"message": why}]})).into_response();
    }
    if query.starts_with("subscription") {
        let event = |one: &Value| format!("event: next\ndata: {}\n\n", json!({"data": {&*field: one}}));
        let events: String = answer.as_array().unwrap().iter().map(event).collect();
        let text = format!(":\n\n{events}event: complete\n\n");
        return ([(header::CONTENT_TYPE, "text/event-stream")], text).into_response();
    }
    Json(json!({"data": {&*field: answer}})).into_response()
}
