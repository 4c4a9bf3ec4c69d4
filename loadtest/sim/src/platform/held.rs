//! What the platform holds, told by idempotency keys, and its answers to whoever asks whether that is all.
//!
//! `POST /2.0/api/events/digest`, whose call is `digest` in fault rules, and `POST
//! /2.0/api/events/digest/applications`, whose call is `differing`. A platform does not know which applications are in
//! which shard: it compares a shard only where there is one, and answers 204 otherwise. So does `POST
//! /2.0/api/events/digest/others`, whose call is `others`, for whoever does not ask about all shards.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::wire::{EntityName, Listed, Parsed, ResourceKey};
use super::{Last, PlatformSim, Shared};
use crate::fault::{PeerResponse, authorized, spoil};

/// Applications that one answer names.
const AT_ONCE: usize = 1_000;

/// How often the platform was asked to compare.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Comparisons {
    /// Shards.
    pub shards: u64,
    /// Applications.
    pub applications: u64,
    /// What is held beside those that are known.
    pub others: u64,
}

#[derive(Debug, Clone, Default)]
struct Application {
    uid: String,
    /// The last key of each entity; of the application itself under `None`.
    last: HashMap<Option<ResourceKey>, String>,
    /// What the application's last report lists: no other resource counts.
    listed: HashSet<Listed>,
}

impl Application {
    /// The keys that count.
    fn keys(&self) -> impl Iterator<Item = &String> {
        let counts = |resource: &Option<ResourceKey>| {
            resource.as_ref().is_none_or(|resource| self.listed.contains(&resource.listed()))
        };
        self.last.iter().filter(move |(resource, _)| counts(resource)).map(|(_, key)| key)
    }

    fn digest(&self) -> u128 {
        self.keys().fold(0, |sum, key| sum ^ digest(key))
    }
}

/// The last key of every entity.
#[derive(Debug, Clone, Default)]
pub(super) struct LastKeys {
    applications: HashMap<(String, String), Application>,
    compared: Comparisons,
}

impl LastKeys {
    /// Remembers the key of a report. An application's end, or another life of it, takes everything away that was held
    /// of it.
    pub(super) fn take(&mut self, parsed: &Parsed, key: &str, deleted: bool) {
        let EntityName { app_namespace, app_name, resource } = &parsed.entity;
        let name = (app_namespace.clone(), app_name.clone());
        if deleted {
            self.applications.remove(&name);
            return;
        }
        let application = self.applications.entry(name).or_default();
        if resource.is_none() && application.uid != parsed.uid {
            // What came of it before its own first report is of this life.
            if !application.uid.is_empty() {
                application.last.clear();
            }
            application.uid.clone_from(&parsed.uid);
        }
        if resource.is_none() {
            application.listed = parsed.listed.iter().copied().collect();
        }
        application.last.insert(resource.clone(), key.to_owned());
    }

    /// Forgets one entity, or an application with all of its own; the keys that were held.
    fn forget(&mut self, namespace: &str, name: &str, resource: Option<&ResourceKey>) -> Vec<String> {
        let name = (namespace.to_owned(), name.to_owned());
        match resource {
            None => {
                self.applications.remove(&name).into_iter().flat_map(|held| held.last.into_values()).collect()
            }
            Some(_) => {
                let held = self.applications.get_mut(&name);
                held.and_then(|held| held.last.remove(&resource.cloned())).into_iter().collect()
            }
        }
    }

    fn equals(&self, shard: &Shard) -> bool {
        let entities: usize = self.applications.values().map(|held| held.keys().count()).sum();
        let sum = self.applications.values().fold(0, |sum, held| sum ^ held.digest());
        let held = self.applications.values().filter(|held| held.keys().next().is_some()).count();
        (held as u64, entities as u64, format!("{sum:032x}"))
            == (shard.applications, shard.entities, shard.digest.clone())
    }

    fn differs(&self, asked: &Asked) -> bool {
        let Some((namespace, name)) = asked.key.split_once('/') else { return true };
        let Some(held) = self.applications.get(&(namespace.to_owned(), name.to_owned())) else { return true };
        (held.keys().count() as u64, format!("{:032x}", held.digest()))
            != (asked.entities, asked.digest.clone())
            || held.uid != asked.uid
    }

    /// Key and uid of what is held in a range, beside what is known, in order.
    fn others(&self, asked: &Known) -> Vec<(String, &str)> {
        let held = self.applications.iter().filter(|(_, held)| held.keys().next().is_some());
        let mut all: Vec<_> =
            held.map(|((namespace, name), held)| (format!("{namespace}/{name}"), &*held.uid)).collect();
        all.retain(|(key, _)| {
            *key > asked.after
                && asked.upto.as_ref().is_none_or(|upto| key <= upto)
                && !asked.known.contains(key)
        });
        all.sort_unstable();
        all.truncate(AT_ONCE);
        all
    }
}

/// The first 16 bytes of a key's SHA-256.
fn digest(key: &str) -> u128 {
    let bytes: [u8; 32] = Sha256::digest(key.as_bytes()).into();
    bytes.iter().take(16).fold(0, |number, byte| number << 8 | u128::from(*byte))
}

#[derive(Deserialize)]
struct Shard {
    shards: u32,
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

#[derive(Deserialize)]
struct Known {
    shards: usize,
    own: HashSet<u32>,
    after: String,
    upto: Option<String>,
    known: HashSet<String>,
}

/// What a platform held at one moment.
#[derive(Debug, Clone)]
pub struct Backup {
    held: LastKeys,
    keys: HashSet<u128>,
    last: HashMap<EntityName, Last>,
}

impl PlatformSim {
    /// What it holds now, and which keys it remembers.
    #[must_use]
    pub fn backup(&self) -> Backup {
        let tally = self.shared.tally();
        Backup { held: tally.held.clone(), keys: tally.keys.clone(), last: tally.last.clone() }
    }

    /// Puts back what it held; what was counted since stays counted.
    pub fn restore(&self, backup: Backup) {
        let mut tally = self.shared.tally();
        let compared = tally.held.compared;
        tally.held = LastKeys { compared, ..backup.held };
        (tally.keys, tally.last) = (backup.keys, backup.last);
    }

    /// Loses an application with all of its entities, or one resource of it, as if it had never been reported: its
    /// keys are forgotten too. `false` when it was not held.
    pub fn forget(&self, namespace: &str, name: &str, resource: Option<&ResourceKey>) -> bool {
        let mut tally = self.shared.tally();
        let keys = tally.held.forget(namespace, name, resource);
        for key in &keys {
            tally.forget_key(key);
        }
        tally.last.retain(|entity, _| {
            (entity.app_namespace.as_str(), entity.app_name.as_str()) != (namespace, name)
                || resource.is_some_and(|resource| entity.resource.as_ref() != Some(resource))
        });
        !keys.is_empty()
    }

    /// How often it was asked to compare.
    #[must_use]
    pub fn comparisons(&self) -> Comparisons {
        self.shared.tally().held.compared
    }
}

/// Answers whether a shard is held as it was acknowledged.
pub(super) async fn shard(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    answer(&shared, &headers, "digest", || {
        let shard: Shard = serde_json::from_slice(&body).ok()?;
        let mut tally = shared.tally();
        tally.held.compared.shards += 1;
        if shard.shards != 1 {
            return Some(PeerResponse::new(204, Bytes::new()));
        }
        Some(PeerResponse::ok(json!({"equal": tally.held.equals(&shard)}).to_string()))
    })
    .await
}

/// Answers which applications are not held as they were acknowledged.
pub(super) async fn applications(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    answer(&shared, &headers, "differing", || {
        let Applications { applications } = serde_json::from_slice(&body).ok()?;
        let mut tally = shared.tally();
        tally.held.compared.applications += applications.len() as u64;
        let differing: Vec<&str> =
            applications.iter().filter(|asked| tally.held.differs(asked)).map(|asked| &*asked.key).collect();
        Some(PeerResponse::ok(json!({"differing": differing}).to_string()))
    })
    .await
}

/// Answers which applications are held beside those that are known.
pub(super) async fn others(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    answer(&shared, &headers, "others", || {
        let asked: Known = serde_json::from_slice(&body).ok()?;
        let mut tally = shared.tally();
        tally.held.compared.others += 1;
        if asked.own.len() < asked.shards {
            return Some(PeerResponse::new(204, Bytes::new()));
        }
        let others = tally.held.others(&asked);
        let others: Vec<_> = others.into_iter().map(|(key, uid)| json!({"key": key, "uid": uid})).collect();
        Some(PeerResponse::ok(json!({"others": others}).to_string()))
    })
    .await
}

async fn answer(
    shared: &Shared,
    headers: &HeaderMap,
    call: &str,
    found: impl FnOnce() -> Option<PeerResponse>,
) -> Response {
    let wanted = shared.authorization.read().unwrap_or_else(PoisonError::into_inner).clone();
    if !authorized(headers, wanted.as_ref()) {
        return PeerResponse::new(401, r#"{"message":"unauthorized"}"#).response();
    }
    shared.faults.latency().await;
    let answer = found().unwrap_or_else(|| PeerResponse::new(400, r#"{"message":"not a digest"}"#));
    match shared.faults.meet(call, "") {
        None => answer.response(),
        Some(rule) => {
            let error = |_| Bytes::from_static(br#"{"message":"told to fail"}"#);
            spoil(&rule.fault, answer, error, &shared.stop).await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(name: &&str) -> ResourceKey {
        let (api_version, kind) = ("batch/v1".to_owned(), "Job".to_owned());
        ResourceKey { api_version, kind, namespace: "ns".to_owned(), name: (*name).to_owned() }
    }

    fn report(resource: Option<&str>, listed: &[&str]) -> Parsed {
        let (app_namespace, app_name) = ("argocd".to_owned(), "shop".to_owned());
        let entity = EntityName { app_namespace, app_name, resource: resource.as_ref().map(job) };
        let listed = listed.iter().map(|name| job(name).listed()).collect();
        Parsed { entity, parent: String::new(), uid: "u".into(), version: None, ends: false, listed }
    }

    #[test]
    fn only_what_the_application_lists_counts() {
        let mut held = LastKeys::default();
        held.take(&report(None, &["a"]), "application", false);
        held.take(&report(Some("a"), &[]), "a", false);
        let name = ("argocd".to_owned(), "shop".to_owned());
        let sum = |keys: &[&str]| keys.iter().fold(0, |sum, key| sum ^ digest(key));
        assert_eq!(held.applications[&name].digest(), sum(&["application", "a"]));
        held.take(&report(None, &["b"]), "later", false);
        assert_eq!(held.applications[&name].digest(), sum(&["later"]));
        held.take(&report(Some("b"), &[]), "b", false);
        held.take(&report(None, &["a", "b"]), "last", false);
        assert_eq!(held.applications[&name].digest(), sum(&["last", "a", "b"]));
    }
}
