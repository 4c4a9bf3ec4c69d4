//! Answers a reporter that asks whether what it was acknowledged is held: the protocol stands in `compare.rs` of `stages-report`,
//! which asks.
//!
//! A shard's digest does not say how applications find their shard: both ways there are are tried, and a digest that is equal
//! under one of them is no coincidence.
//!
//! An answer reads what is held of many applications: a runtime has one at a time, and the connections that it reads over are those
//! of everybody, a part at a time.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroU32;

use axum::Json;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use pipeline_core::Key;
use pipeline_ownership::sharding::Sharding;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use stages_platform_store::{HeldApplication, NumberedApplication, ObjectState, StoreError};

use crate::ingest::{Ingest, Sent};
use crate::refusal::Refusal;

/// Applications in one question.
const AT_ONCE: usize = 1_000;
/// Applications that are read at a time of a range of names.
const PAGE: u32 = 1_000;

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

/// What is known of a range of names.
#[derive(Deserialize)]
struct Known {
    shards: NonZeroU32,
    own: HashSet<u32>,
    #[serde(default)]
    after: String,
    upto: Option<String>,
    known: HashSet<String>,
}

pub(crate) async fn shard(State(ingest): State<Ingest>, request: Request<Body>) -> Result<Response, Refusal> {
    let sent = ingest.sent(request).await?;
    let asked: Shard = read(&sent)?;
    // Of whom nothing changes it is all that comes.
    ingest.heard(&sent, "reporter");
    let _turn = ingest.turns.take(sent.runtime.id).await?;
    let store = &ingest.store;
    let all = store.numbered_applications(sent.runtime.id).await.map_err(unreadable)?;
    let ways = ways(asked.shards);
    let mut equal = false;
    for way in ways {
        let is_own = |one: &&NumberedApplication| {
            Key::new(&one.namespace, &one.name).is_ok_and(|key| way.place(&key) == asked.shard)
        };
        let own: Vec<&NumberedApplication> = all.iter().filter(is_own).collect();
        let held = store.held(&own).await.map_err(unreadable)?;
        let (mut applications, mut entities, mut digest) = (0, 0, 0);
        for held in held.into_iter().flatten() {
            (applications, entities) = (applications + 1, entities + held.entities);
            digest ^= held.digest;
        }
        equal = (applications, entities, format!("{digest:032x}"))
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
    let asked: Applications = read(&sent)?;
    few(asked.applications.len())?;
    let _turn = ingest.turns.take(sent.runtime.id).await?;
    let names: Vec<_> = asked.applications.iter().filter_map(|asked| asked.key.split_once('/')).collect();
    let found = ingest.store.find(sent.runtime.id, &names).await.map_err(unreadable)?;
    let found: Vec<&NumberedApplication> = found.iter().flatten().collect();
    let held = ingest.store.held(&found).await.map_err(unreadable)?;
    let names = found.into_iter().map(|one| (&*one.namespace, &*one.name));
    let held: HashMap<_, _> = names.zip(held).filter_map(|(name, held)| Some((name, held?))).collect();
    let differs = |asked: &Asked| {
        let held = asked.key.split_once('/').and_then(|name| held.get(&name));
        !held.is_some_and(|held| is_same(held, asked))
    };
    Ok(differing(asked.applications.iter().filter(|asked| differs(asked)).map(|asked| &*asked.key)))
}

/// Which states it does not hold, nor later ones. Whoever else reported of an object told of it as well as whoever asks.
pub(crate) async fn objects(
    State(ingest): State<Ingest>,
    request: Request<Body>,
) -> Result<Response, Refusal> {
    let sent = ingest.sent(request).await?;
    let asked: Objects = read(&sent)?;
    few(asked.objects.len())?;
    let _turn = ingest.turns.take(sent.runtime.id).await?;
    // A version that is no number is none that is held.
    let versions: Vec<_> = asked
        .objects
        .iter()
        .filter_map(|asked| Some((asked, asked.resource_version.parse().ok()?)))
        .collect();
    let states: Vec<_> = versions.iter().map(|(asked, version)| asked.state(*version)).collect();
    let holds = ingest.store.holds(sent.runtime.id, &states).await.map_err(unreadable)?;
    let held: HashSet<_> =
        states.into_iter().zip(holds).filter_map(|(state, holds)| holds.then_some(state)).collect();
    let is_held = |asked: &Acknowledged| {
        asked.resource_version.parse().is_ok_and(|version| held.contains(&asked.state(version)))
    };
    Ok(differing(asked.objects.iter().filter(|asked| !is_held(asked)).map(|asked| &*asked.key)))
}

/// Which applications are held of a range of names, beside those that are known. What is not held is of before, and names no other
/// one.
pub(crate) async fn others(
    State(ingest): State<Ingest>,
    request: Request<Body>,
) -> Result<Response, Refusal> {
    let sent = ingest.sent(request).await?;
    let asked: Known = read(&sent)?;
    few(asked.known.len())?;
    let _turn = ingest.turns.take(sent.runtime.id).await?;
    let (ways, mut after, mut others) = (ways(asked.shards), asked.after.clone(), Vec::new());
    loop {
        let range = (&*after, asked.upto.as_deref());
        let page = ingest.store.placed_between(sent.runtime.id, range, PAGE).await.map_err(unreadable)?;
        let named = page.iter().filter_map(|one| Some((Key::new(&one.namespace, &one.name).ok()?, one)));
        let (keys, placed): (Vec<Key>, Vec<&NumberedApplication>) =
            named.filter(|(key, _)| asked.asks(key, ways)).unzip();
        let held = ingest.store.held(&placed).await.map_err(unreadable)?;
        let held = keys.iter().zip(held).filter_map(|(key, held)| Some((key, held?.uid)));
        others.extend(held.map(|(key, uid)| json!({"key": key, "uid": uid})));
        let Some(last) = page.last().filter(|_| others.len() < AT_ONCE) else { break };
        after = format!("{}/{}", last.namespace, last.name);
    }
    others.truncate(AT_ONCE);
    Ok(Json(json!({"others": others})).into_response())
}

fn read<T: DeserializeOwned>(sent: &Sent) -> Result<T, Refusal> {
    serde_json::from_slice(&sent.text).map_err(|_| Refusal::NotADigest)
}

fn few(count: usize) -> Result<(), Refusal> {
    if count > AT_ONCE { Err(Refusal::NotADigest) } else { Ok(()) }
}

fn differing<'k>(keys: impl Iterator<Item = &'k str>) -> Response {
    Json(json!({"differing": keys.collect::<Vec<_>>()})).into_response()
}

/// How applications may find their shard.
const fn ways(shards: NonZeroU32) -> [Sharding; 2] {
    [Sharding::Jump { shards }, Sharding::FnvModulo { replicas: shards }]
}

impl Known {
    /// Whether it is asked about this one of the range, and does not name it.
    fn asks(&self, key: &Key, ways: [Sharding; 2]) -> bool {
        !self.known.contains(key.as_str()) && ways.iter().any(|way| self.own.contains(&way.place(key)))
    }
}

impl Acknowledged {
    fn state(&self, version: i64) -> ObjectState<'_> {
        ObjectState { namespace: &self.namespace, name: &self.name, uid: &self.uid, version }
    }
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
