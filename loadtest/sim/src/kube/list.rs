//! Lists in pages and single objects, with the API server's rules for `resourceVersion`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pipeline_core::Key;
use serde::{Deserialize, Serialize};

use super::Shared;
use super::request::Query;
use super::status;
use super::store::{Collection, Entry, NotAt, Page};
use crate::fault::PeerResponse;

/// What a continue token says; the shape is the API server's own.
#[derive(Debug, Serialize, Deserialize)]
struct Token {
    v: String,
    rv: i64,
    start: String,
}

impl Token {
    fn encode(rv: i64, start: &str) -> String {
        let token = Self { v: "meta.k8s.io/v1".to_owned(), rv, start: format!("{start}\0") };
        STANDARD.encode(serde_json::to_vec(&token).unwrap_or_default())
    }

    fn decode(text: &str) -> Option<Self> {
        let bytes = STANDARD.decode(text).ok()?;
        let mut token: Self = serde_json::from_slice(&bytes).ok()?;
        token.start = token.start.trim_end_matches('\0').to_owned();
        Some(token)
    }
}

/// Answers a list.
pub(super) fn list(
    shared: &Shared,
    collection: Collection,
    namespace: Option<&str>,
    query: &Query,
) -> PeerResponse {
    let bad = |message: &str| PeerResponse::new(400, status::status(400, message));
    let (keys, labels) = match (query.selector(namespace), query.labels()) {
        (Ok(keys), Ok(labels)) => (keys, labels),
        (Err(message), _) | (_, Err(message)) => return bad(&message),
    };
    let wanted = |key: &Key, entry: &Entry| keys(key) && labels.select(entry, shared.fleet());
    let Ok(version) = query.version() else {
        return bad("resourceVersion: Invalid value");
    };
    let exact = query.get("resourceVersionMatch") == Some("Exact");
    if query.get("resourceVersionMatch").is_some() && version.is_none() {
        return bad("resourceVersionMatch is forbidden unless resourceVersion is provided");
    }
    let limit = query.get("limit").and_then(|limit| limit.parse().ok()).filter(|&limit| limit > 0);
    // Served from the watch cache, a list of "any" version is never cut into pages.
    let most = if version == Some(0) { usize::MAX } else { limit.unwrap_or(usize::MAX) };
    let store = shared.store();
    let newest = store.version();
    let page = match query.get("continue").filter(|token| !token.is_empty()) {
        Some(_) if version.is_some_and(|version| version > 0) => {
            return bad("resourceVersion: Forbidden: may not be specified when continue is set");
        }
        Some(token) => {
            let Some(token) = Token::decode(token) else {
                return bad("continue key is not valid");
            };
            let at = u64::try_from(token.rv).unwrap_or(newest);
            match store.list(collection, wanted, at, Some(&token.start), most) {
                Err(NotAt::Compacted { .. }) => {
                    let again = Token::encode(-1, &token.start);
                    return PeerResponse::new(410, status::expired_token(&again));
                }
                page => (at, page),
            }
        }
        None => {
            let at = if exact { version.unwrap_or(newest) } else { newest };
            if let Some(wanted) = version.filter(|&wanted| wanted > newest) {
                return PeerResponse::new(504, status::too_large(wanted, newest));
            }
            (at, store.list(collection, wanted, at, None, most))
        }
    };
    drop(store);
    match page {
        (_, Ok(page)) => PeerResponse::ok(render(shared, collection, &page)),
        (at, Err(NotAt::Compacted { oldest })) => PeerResponse::new(410, status::too_old(at, oldest)),
        (at, Err(NotAt::Future { newest })) => PeerResponse::new(504, status::too_large(at, newest)),
    }
}

fn render(shared: &Shared, collection: Collection, page: &Page) -> Vec<u8> {
    let mut out = Vec::with_capacity(256 + page.items.len() * 6_000);
    let head =
        format!("{{\"apiVersion\":\"{}\",\"kind\":\"{}List\",", collection.api_version(), collection.kind());
    out.extend_from_slice(head.as_bytes());
    out.extend_from_slice(b"\"metadata\":{\"continue\":\"");
    if let Some((last, _)) = page.items.last().filter(|_| page.remaining > 0) {
        let rv = i64::try_from(page.version).unwrap_or(i64::MAX);
        out.extend_from_slice(Token::encode(rv, last.as_str()).as_bytes());
        out.extend_from_slice(format!("\",\"remainingItemCount\":{},", page.remaining).as_bytes());
    } else {
        out.extend_from_slice(b"\",");
    }
    out.extend_from_slice(format!("\"resourceVersion\":\"{}\"}},\"items\":[", page.version).as_bytes());
    for (at, (_, entry)) in page.items.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        entry.render(shared.fleet(), &mut out);
    }
    out.extend_from_slice(b"]}");
    out
}

/// Answers a read of one object.
pub(super) fn get(shared: &Shared, collection: Collection, key: &Key, query: &Query) -> PeerResponse {
    let Ok(version) = query.version() else {
        return PeerResponse::new(400, status::status(400, "resourceVersion: Invalid value"));
    };
    let (newest, entry) = {
        let store = shared.store();
        (store.version(), store.get(collection, key))
    };
    if let Some(wanted) = version.filter(|&wanted| wanted > newest) {
        return PeerResponse::new(504, status::too_large(wanted, newest));
    }
    match entry {
        Some(entry) => {
            let mut out = Vec::with_capacity(6_000);
            entry.render(shared.fleet(), &mut out);
            PeerResponse::ok(out)
        }
        None => PeerResponse::new(404, status::not_found(collection, key.name())),
    }
}
