//! As much of a Kubernetes API server as leases need: real HTTP, and the rules by which it writes.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::body::{Body, to_bytes};
use axum::extract::{Query, Request};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::{Json, Router};
use futures::StreamExt as _;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

pub(crate) const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/argocd/leases";

/// What is wrong with it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Mood {
    #[default]
    Well,
    /// It answers everything with this status.
    Fails(u16),
    /// It never answers.
    Silent,
    /// Its watches say at once that the version is too old.
    Expired,
}

#[derive(Default)]
struct State {
    mood: Mood,
    version: u64,
    lives: u64,
    objects: BTreeMap<String, Value>,
    /// Every change: its version, and the line of a watch.
    log: Vec<(u64, String)>,
    watches: Vec<mpsc::UnboundedSender<io::Result<String>>>,
    asked: Vec<String>,
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<State>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    pub(crate) async fn start() -> Self {
        let state: Arc<Mutex<State>> = Arc::default();
        state.lock().unwrap().version = 100;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::clone(&state);
        let app = Router::new().fallback(move |request: Request| answer(Arc::clone(&shared), request));
        let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { address, state, task }
    }

    pub(crate) fn mood(&self, mood: Mood) {
        self.state.lock().unwrap().mood = mood;
    }

    /// Breaks every watch off.
    pub(crate) fn cut(&self) {
        for watch in self.state.lock().unwrap().watches.drain(..) {
            let _ = watch.send(Err(io::Error::other("cut")));
        }
    }

    /// Ends every watch, as a server does after a while.
    pub(crate) fn end_watches(&self) {
        self.state.lock().unwrap().watches.clear();
    }

    /// Somebody else writes an object, whatever was there; gives its version.
    pub(crate) fn put(&self, name: &str, object: Value) -> u64 {
        self.state.lock().unwrap().store(name, object)
    }

    pub(crate) fn delete(&self, name: &str) {
        self.state.lock().unwrap().delete(name);
    }

    pub(crate) fn object(&self, name: &str) -> Option<Value> {
        self.state.lock().unwrap().objects.get(name).cloned()
    }

    /// How often something was asked, as `GET`, `LIST`, `WATCH`, `POST`, `PUT` or `DELETE`.
    pub(crate) fn asked(&self, what: &str) -> usize {
        self.state.lock().unwrap().asked.iter().filter(|asked| *asked == what).count()
    }
}

impl State {
    fn store(&mut self, name: &str, mut object: Value) -> u64 {
        self.version += 1;
        let before = self.objects.get(name).map(|before| before["metadata"]["uid"].clone());
        let kind = if before.is_some() { "MODIFIED" } else { "ADDED" };
        let uid = before.unwrap_or_else(|| {
            self.lives += 1;
            format!("uid-{}", self.lives).into()
        });
        object["metadata"]["uid"] = uid;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.objects.insert(name.to_owned(), object.clone());
        self.show(kind, &object);
        self.version
    }

    fn delete(&mut self, name: &str) {
        if let Some(mut object) = self.objects.remove(name) {
            self.version += 1;
            object["metadata"]["resourceVersion"] = self.version.to_string().into();
            self.show("DELETED", &object);
        }
    }

    fn show(&mut self, kind: &str, object: &Value) {
        let line = format!("{}\n", json!({"type": kind, "object": object}));
        self.watches.retain(|watch| watch.send(Ok(line.clone())).is_ok());
        self.log.push((self.version, line));
    }

    /// Whether what is there is what a request expects.
    fn is_as_expected(&self, name: &str, expected: &Value) -> bool {
        let same = |field: &str| {
            let wanted = &expected[field];
            let there = self.objects.get(name).map(|object| &object["metadata"][field]);
            wanted.is_null() || there == Some(wanted)
        };
        same("uid") && same("resourceVersion")
    }

    fn watch(&mut self, since: u64) -> Body {
        let (sender, receiver) = mpsc::unbounded_channel();
        if self.mood == Mood::Expired {
            let line = json!({"type": "ERROR", "object": {"kind": "Status", "code": 410}});
            sender.send(Ok(format!("{line}\n"))).unwrap();
        } else {
            for (_, line) in self.log.iter().filter(|(version, _)| *version > since) {
                sender.send(Ok(line.clone())).unwrap();
            }
            self.watches.push(sender);
        }
        let chunks = futures::stream::unfold(receiver, |mut receiver| async {
            receiver.recv().await.map(|chunk| (chunk, receiver))
        });
        Body::from_stream(chunks.boxed())
    }
}

async fn answer(state: Arc<Mutex<State>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let query: BTreeMap<String, String> = Query::try_from_uri(&parts.uri).unwrap().0;
    let body = to_bytes(body, 1 << 20).await.unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let name = parts.uri.path().strip_prefix(LEASES).map(|rest| rest.trim_start_matches('/').to_owned());
    let Some(name) = name else { return refused(404) };
    if state.lock().unwrap().mood == Mood::Silent {
        return std::future::pending().await;
    }
    let mut state = state.lock().unwrap();
    let is_watch = query.get("watch").is_some_and(|watch| watch == "true");
    let what = match (&parts.method, name.is_empty()) {
        (&Method::GET, true) if is_watch => "WATCH",
        (&Method::GET, true) => "LIST",
        (method, _) => method.as_str(),
    };
    state.asked.push(what.to_owned());
    if let Mood::Fails(code) = state.mood {
        return refused(code);
    }
    match what {
        "LIST" | "WATCH"
            if query.get("labelSelector").is_none_or(|all| all != "gitops-runtime/leases=reporter") =>
        {
            refused(400)
        }
        "LIST" => {
            let ours = |object: &&Value| object["metadata"]["labels"]["gitops-runtime/leases"] == "reporter";
            let items: Vec<&Value> = state.objects.values().filter(ours).collect();
            let metadata = json!({"resourceVersion": state.version.to_string()});
            Json(json!({"kind": "LeaseList", "metadata": metadata, "items": items})).into_response()
        }
        "WATCH" => state.watch(query["resourceVersion"].parse().unwrap()).into_response(),
        "GET" => match state.objects.get(&name) {
            Some(object) => Json(object.clone()).into_response(),
            None => refused(404),
        },
        "POST" => {
            let name = body["metadata"]["name"].as_str().unwrap().to_owned();
            if state.objects.contains_key(&name) {
                return refused(409);
            }
            assert!(body["metadata"]["resourceVersion"].is_null(), "what is made has no version yet");
            state.store(&name, body);
            (StatusCode::CREATED, Json(state.objects[&name].clone())).into_response()
        }
        // Leases are made by `PUT` too, but not where the request names a life.
        "PUT" if state.objects.contains_key(&name) && body["metadata"]["resourceVersion"].is_null() => {
            refused(422)
        }
        "PUT" if !state.is_as_expected(&name, &body["metadata"]) => refused(409),
        "PUT" => {
            state.store(&name, body);
            Json(state.objects[&name].clone()).into_response()
        }
        "DELETE" if !state.objects.contains_key(&name) => refused(404),
        "DELETE" if !state.is_as_expected(&name, &body["preconditions"]) => refused(409),
        "DELETE" => {
            state.delete(&name);
            Json(json!({"kind": "Status", "status": "Success"})).into_response()
        }
        _ => refused(405),
    }
}

fn refused(code: u16) -> Response {
    let status = StatusCode::from_u16(code).unwrap();
    (status, Json(json!({"kind": "Status", "code": code, "message": "canary-hunter2"}))).into_response()
}
