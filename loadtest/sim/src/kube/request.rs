//! Requests: their path and query, the token, and who answers them.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{Query as UrlQuery, State};
use axum::http::{HeaderMap, Method, Uri};
use axum::response::Response;
use bytes::Bytes;
use pipeline_core::Key;
use serde_json::json;

use super::labels::Labels;
use super::store::Collection;
use super::{Counts, Shared, list, patch, status, watch};
use crate::fault::{PeerResponse, authorized, spoil};

/// The query of a request.
pub(super) struct Query(HashMap<String, String>);

impl Query {
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub(super) fn is_true(&self, name: &str) -> bool {
        matches!(self.get(name), Some("true" | "1"))
    }

    /// `resourceVersion`; `None` without one.
    pub(super) fn version(&self) -> Result<Option<u64>, ()> {
        match self.get("resourceVersion") {
            None | Some("") => Ok(None),
            Some(version) => version.parse().map(Some).map_err(|_| ()),
        }
    }

    /// What is asked of labels.
    pub(super) fn labels(&self) -> Result<Labels, String> {
        Labels::read(self.get("labelSelector").unwrap_or_default())
    }

    /// Which keys are meant: of one namespace or all, and by field selector.
    pub(super) fn selector(
        &self,
        namespace: Option<&str>,
    ) -> Result<impl Fn(&Key) -> bool + Send + Sync + 'static, String> {
        let mut wanted: Vec<(bool, String)> = Vec::new();
        wanted.extend(namespace.map(|namespace| (false, namespace.to_owned())));
        for part in self.get("fieldSelector").unwrap_or_default().split(',').filter(|part| !part.is_empty()) {
            match part.split_once('=').map(|(field, value)| (field, value.trim_start_matches('='))) {
                Some(("metadata.name", name)) => wanted.push((true, name.to_owned())),
                Some(("metadata.namespace", namespace)) => wanted.push((false, namespace.to_owned())),
                _ => return Err(format!("field label not supported: {part}")),
            }
        }
        Ok(move |key: &Key| {
            wanted
                .iter()
                .all(|(name, value)| if *name { key.name() == value } else { key.namespace() == value })
        })
    }
}

pub(super) async fn serve(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if !authorized(&headers, shared.authorization.as_ref()) {
        shared.counts().unauthorized += 1;
        return PeerResponse::new(401, status::status(401, "Unauthorized")).response();
    }
    if uri.path() == "/version" {
        return PeerResponse::ok(r#"{"major":"1","minor":"31","gitVersion":"v1.31.0"}"#).response();
    }
    if let Some(told) = discovery(&shared, uri.path()) {
        return PeerResponse::ok(told).response();
    }
    let Some((collection, namespace, name)) =
        route(uri.path()).filter(|(collection, ..)| !shared.is_absent(*collection))
    else {
        let message = "the server could not find the requested resource";
        return PeerResponse::new(404, status::status(404, message)).response();
    };
    let patches = method == Method::PATCH && name.is_some();
    if method != Method::GET && !patches {
        return PeerResponse::new(405, status::status(405, "the server does not allow this method"))
            .response();
    }
    if shared.is_forbidden(collection) {
        return PeerResponse::new(403, status::status(403, "forbidden")).response();
    }
    let query = match UrlQuery::<HashMap<String, String>>::try_from_uri(&uri) {
        Ok(UrlQuery(query)) => Query(query),
        Err(_) => return PeerResponse::new(400, status::status(400, "the query cannot be read")).response(),
    };
    let (call, count): (_, fn(&mut Counts)) = match &name {
        Some(_) if patches => ("patch", |counts| counts.patches += 1),
        Some(_) => ("get", |counts| counts.gets += 1),
        None if query.is_true("watch") => ("watch", |counts| counts.watches += 1),
        None => ("list", |counts| counts.lists += 1),
    };
    count(&mut shared.counts());
    let _open = shared.traffic.enter(&uri);
    shared.faults.latency().await;
    let met = shared.faults.meet(call, name.as_deref().unwrap_or_default());
    let answer = match (&name, call) {
        (Some(name), _) => match Key::new(namespace.as_deref().unwrap_or_default(), name) {
            // What is told to fail changes nothing.
            Ok(key) if patches && met.is_none() => patch::patch(&shared, collection, &key, &headers, &body),
            Ok(key) => list::get(&shared, collection, &key, &query),
            Err(_) => PeerResponse::new(404, status::not_found(collection, name)),
        },
        (None, "watch") if met.is_none() => {
            match watch::watch(&shared, collection, namespace.as_deref(), &query) {
                Ok(response) => return response,
                Err(answer) => answer,
            }
        }
        (None, "watch") => PeerResponse::ok(Bytes::new()),
        (None, _) => list::list(&shared, collection, namespace.as_deref(), &query),
    };
    match met {
        None => answer.response(),
        Some(rule) => {
            let error = |code| status::status(code, "told to fail");
            spoil(&rule.fault, answer, error, &shared.stop).await
        }
    }
}

/// What is served of a group, or of one of its versions.
fn discovery(shared: &Shared, path: &str) -> Option<String> {
    let there = Collection::ALL.into_iter().filter(|collection| !shared.is_absent(*collection));
    let resources: Vec<_> = there
        .clone()
        .filter(|collection| collection.base() == path)
        .map(|collection| {
            json!({
                "name": collection.plural(), "singularName": collection.kind().to_lowercase(),
                "namespaced": true, "kind": collection.kind(), "verbs": ["get", "list", "watch"],
            })
        })
        .collect();
    if !resources.is_empty() {
        return Some(
            json!({"kind": "APIResourceList", "apiVersion": "v1", "resources": resources}).to_string(),
        );
    }
    let group = path.strip_prefix("/apis/")?;
    let served =
        there.map(Collection::api_version).find(|version| version.split('/').next() == Some(group))?;
    let version = json!({"groupVersion": served, "version": served.split('/').next_back()});
    let group = json!({
        "kind": "APIGroup", "apiVersion": "v1", "name": group, "versions": [version], "preferredVersion": version,
    });
    Some(group.to_string())
}

/// Which collection, namespace and name a path means.
fn route(path: &str) -> Option<(Collection, Option<String>, Option<String>)> {
    let decode = |part: &str| percent_encoding::percent_decode_str(part).decode_utf8_lossy().into_owned();
    Collection::ALL.into_iter().find_map(|collection| {
        let rest = path.strip_prefix(collection.base())?;
        let parts: Vec<&str> = rest.trim_start_matches('/').split('/').collect();
        match parts.as_slice() {
            [plural] if *plural == collection.plural() => Some((collection, None, None)),
            ["namespaces", namespace, plural] if *plural == collection.plural() => {
                Some((collection, Some(decode(namespace)), None))
            }
            ["namespaces", namespace, plural, name] if *plural == collection.plural() => {
                Some((collection, Some(decode(namespace)), Some(decode(name))))
            }
            _ => None,
        }
    })
}
