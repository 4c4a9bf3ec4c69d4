//! Stands in front of Argo CD: hands every call on as it is, and notes those about applications.

use std::time::Instant;

use anyhow::Context as _;
use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::{ANSWER, Asker, Line, now};
use loadtest_sim::recordings::CaseMeta;

/// The largest request that is handed on, in bytes.
const REQUEST: usize = 8 << 20;
/// Headers of one connection, and those that the two ends settle for themselves.
const OWN: [HeaderName; 7] = [
    header::HOST,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::TE,
    header::UPGRADE,
    header::ACCEPT_ENCODING,
];

pub(super) fn router(asker: Asker) -> Router {
    Router::new().fallback(pass).layer(DefaultBodyLimit::max(REQUEST)).with_state(asker)
}

async fn pass(State(asker): State<Asker>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    let Ok(body) = axum::body::to_bytes(body, REQUEST).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let about = (parts.method == Method::GET).then(|| application(&path)).flatten();
    let (t, began) = (now(), Instant::now());
    let call = asker.client.request(parts.method, format!("{}{path}", asker.argocd));
    let answer = answer(call.headers(ends(&parts.headers)).body(body)).await;
    let (status, headers, body) = match answer {
        Ok(answer) => answer,
        Err(_) => (StatusCode::BAD_GATEWAY, HeaderMap::new(), Bytes::new()),
    };
    if let Some(application) = about {
        let lost = status == StatusCode::BAD_GATEWAY && headers.is_empty();
        let status = if lost { 0 } else { status.as_u16() };
        asker.note(application, "reporter", (t, began), path, status, body.clone()).await;
    }
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

impl Asker {
    /// Asks as observer what is live and what is desired.
    pub(super) async fn look(&self, application: &str) {
        for call in ["managed-resources", "resource-tree"] {
            let namespace = &self.namespace;
            // Names of applications need no escaping.
            let path = format!("/api/v1/applications/{application}/{call}?appNamespace={namespace}");
            let (t, began) = (now(), Instant::now());
            // A call that met no answer is recorded as that.
            let (status, body) = self.get(&path).await.unwrap_or_default();
            self.note(application.to_owned(), "observer", (t, began), path, status, body).await;
        }
    }

    /// Notes the settings in force.
    pub(super) async fn settings(&self, application: &str) {
        // A server that does not answer is asked again when the next application comes.
        if let Ok(meta) = self.meta().await {
            // A writer that has failed is told at the end.
            let _ = self.lines.send(Line::Settings { application: application.to_owned(), meta }).await;
        }
    }

    /// The settings in force.
    pub(super) async fn meta(&self) -> anyhow::Result<CaseMeta> {
        let ask = async |path: &str| -> anyhow::Result<Value> {
            let (_, body) = self.get(path).await?;
            serde_json::from_slice(&body).with_context(|| format!("read Argo CD's answer to {path}"))
        };
        let (settings, version) = (ask("/api/v1/settings").await?, ask("/api/version").await?);
        let text = |value: &Value, name: &str| {
            value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        Ok(CaseMeta {
            applications: Vec::new(),
            tracking_method: text(&settings, "trackingMethod"),
            instance_label_key: text(&settings, "appLabelKey"),
            server: server(&text(&version, "Version")),
        })
    }

    async fn get(&self, path: &str) -> anyhow::Result<(u16, Bytes)> {
        let call = self.client.get(format!("{}{path}", self.argocd)).bearer_auth(&self.token);
        let (status, _, body) = answer(call).await.with_context(|| format!("ask Argo CD for {path}"))?;
        Ok((status.as_u16(), body))
    }

    async fn note(
        &self,
        application: String,
        by: &'static str,
        (t, began): (f64, Instant),
        path: String,
        status: u16,
        body: Bytes,
    ) {
        let ms = began.elapsed().as_micros() as f64 / 1_000.0;
        // A writer that has failed is told at the end.
        let _ = self.lines.send(Line::Call { application, by, t, ms, path, status, body }).await;
    }
}

/// The whole answer, unzipped.
async fn answer(call: reqwest::RequestBuilder) -> anyhow::Result<(StatusCode, HeaderMap, Bytes)> {
    let answer = call.send().await.context("call Argo CD")?;
    let (status, headers) = (answer.status(), ends(answer.headers()));
    let (mut body, mut chunks) = (BytesMut::new(), answer.bytes_stream());
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.context("read Argo CD's answer")?;
        anyhow::ensure!(
            body.len() + chunk.len() <= ANSWER,
            "read Argo CD's answer: it is larger than 64 MiB"
        );
        body.extend_from_slice(&chunk);
    }
    Ok((status, headers, body.freeze()))
}

/// What one end means for the other.
fn ends(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    for name in OWN {
        headers.remove(name);
    }
    headers
}

/// The application that a path is about.
fn application(path: &str) -> Option<String> {
    let name = path.strip_prefix("/api/v1/applications/")?.split(['/', '?']).next()?;
    let name = percent_decode_str(name).decode_utf8().ok()?;
    (!name.is_empty()).then(|| name.into_owned())
}

/// `v3.2.0+1a2b3c` is `argocd-3.2`.
fn server(version: &str) -> String {
    let mut numbers = version.trim_start_matches('v').split('.');
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) if !major.is_empty() => format!("argocd-{major}.{minor}"),
        _ => "argocd".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_application_is_read_from_the_path() {
        assert_eq!(application("/api/v1/applications/a-b/resource?name=c"), Some("a-b".to_owned()));
        assert_eq!(application("/api/v1/applications/a%2Db?appNamespace=x"), Some("a-b".to_owned()));
        assert_eq!(application("/api/v1/applications?name=x"), None);
        assert_eq!(application("/api/v1/applications/"), None);
        assert_eq!(application("/api/v1/settings"), None);
    }

    #[test]
    fn the_server_is_named_by_its_version() {
        assert_eq!(server("v3.2.0+1a2b"), "argocd-3.2");
        assert_eq!(server("v99.9"), "argocd-99.9");
        assert_eq!(server(""), "argocd");
    }
}
