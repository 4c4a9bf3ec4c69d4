//! Answers a reporter that asks whether what it was acknowledged is held: see the sink's own module of that name.
//!
//! A shard's digest does not say how applications find their shard: both ways there are are tried, and a digest that is equal
//! under one of them is no coincidence.

use std::num::NonZeroU32;

use axum::Json;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use pipeline_core::Key;
use pipeline_ownership::sharding::Sharding;
use serde::Deserialize;
use serde_json::json;
use stages_platform_store::{HeldApplication, Placed, StoreError};

use crate::ingest::Ingest;
use crate::refusal::Refusal;

/// Applications in one question.
const AT_ONCE: usize = 1_000;

#[derive(Deserialize)]
struct Shard {
    shard: u32,
    shards: NonZeroU32,
    applications: u64,
    entities: u64,
    digest: String,
}

#[derive(Deserialize)]
struct Asked {
    key: String,
    uid: String,
    entities: u64,
    digest: String,
}

#[derive(Deserialize)]
struct Applications {
    applications: Vec<Asked>,
}

/// A state that was acknowledged.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Acknowledged {
    key: String,
    namespace: String,
    name: String,
    uid: String,
    resource_version: String,
}

#[derive(Deserialize)]
struct Objects {
    objects: Vec<Acknowledged>,
}

pub(crate) async fn shard(State(ingest): State<Ingest>, request: Request<Body>) -> Result<Response, Refusal> {
    let sent = ingest.sent(request).await?;
    let asked: Shard = serde_json::from_slice(&sent.text).map_err(|_| Refusal::NotADigest)?;
    // Of whom nothing changes it is all that comes.
    ingest.heard(&sent, "reporter");
    let store = &ingest.store;
    let all = store.placed(sent.runtime.id).await.map_err(unreadable)?;
    let ways = [Sharding::Jump { shards: asked.shards }, Sharding::FnvModulo { replicas: asked.shards }];
    let mut equal = false;
    for way in ways {
        let is_own = |one: &&Placed| {
            Key::new(&one.namespace, &one.name).is_ok_and(|key| way.place(&key) == asked.shard)
        };
        let own: Vec<&Placed> = all.iter().filter(is_own).collect();
        let held = store.held(&own).await.map_err(unreadable)?;
        let (entities, digest) = held
            .iter()
            .fold((0, 0), |(entities, digest), held| (entities + held.entities, digest ^ held.digest));
        equal = (held.len() as u64, entities, format!("{digest:032x}"))
            == (asked.applications, asked.entities, asked.digest.clone());
        if equal {
            break;
        }
    }
    Ok(Json(json!({"equal": equal})).into_response())
}

pub(crate) async fn applications(
    State(ingest): State<Ingest>,
    request: Request<Body>,
) -> Result<Response, Refusal> {
    let sent = ingest.sent(request).await?;
    let asked: Applications = serde_json::from_slice(&sent.text).map_err(|_| Refusal::NotADigest)?;
    if asked.applications.len() > AT_ONCE {
        return Err(Refusal::NotADigest);
    }
    let mut differing = Vec::new();
    for asked in asked.applications {
        let name = asked.key.split_once('/');
        let found = match name {
            Some(name) => ingest.store.find(sent.runtime.id, name).await.map_err(unreadable)?,
            None => None,
        };
        let held = ingest.store.held(&found.iter().collect::<Vec<_>>()).await.map_err(unreadable)?;
        if !held.first().is_some_and(|held| is_same(held, &asked)) {
            differing.push(asked.key);
        }
    }
    Ok(Json(json!({"differing": differing})).into_response())
}

/// Which states it does not hold, nor later ones. Whoever else reported of an object told of it as well as whoever asks.
pub(crate) async fn objects(
    State(ingest): State<Ingest>,
    request: Request<Body>,
) -> Result<Response, Refusal> {
    let sent = ingest.sent(request).await?;
    let asked: Objects = serde_json::from_slice(&sent.text).map_err(|_| Refusal::NotADigest)?;
    if asked.objects.len() > AT_ONCE {
        return Err(Refusal::NotADigest);
    }
    let mut differing = Vec::new();
    for asked in asked.objects {
        let held = match asked.resource_version.parse() {
            Ok(version) => {
                let object = (&*asked.namespace, &*asked.name, &*asked.uid);
                ingest.store.holds(sent.runtime.id, object, version).await.map_err(unreadable)?
            }
            Err(_) => false,
        };
        if !held {
            differing.push(asked.key);
        }
    }
    Ok(Json(json!({"differing": differing})).into_response())
}

fn is_same(held: &HeldApplication, asked: &Asked) -> bool {
    (&held.uid, held.entities, format!("{:032x}", held.digest))
        == (&asked.uid, asked.entities, asked.digest.clone())
}

#[expect(clippy::needless_pass_by_value, reason = "it is what an error is mapped by")]
pub(crate) fn unreadable(error: StoreError) -> Refusal {
    tracing::warn!(error = &error as &dyn std::error::Error, "the store cannot be read");
    Refusal::Unreadable
}
