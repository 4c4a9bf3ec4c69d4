//! Asks the platform whether it holds what it acknowledged.
//!
//! Four requests, all optional for a platform: 204, 404, 405 and 501 mean that it does not compare, and so does a
//! 2xx that does not say. 400, 403, 500 and whatever else a report would be parked for refuse the question. `{events}` is
//! the path of events, by default `/2.0/api/events`; bodies are JSON and not zipped, `Authorization` is as for reports.
//!
//! `POST {events}/digest`, one per shard:
//! `{"ledger": "...", "shard": 0, "shards": 32, "applications": 312, "entities": 4105, "digest": "<32 hexadecimal
//! digits>", "at": "2026-11-21T12:00:00Z"}`, answered by `200 {"equal": true}` or `200 {"equal": false}`.
//!
//! `POST {events}/digest/applications`, at most 1,000 at once, after a shard was found to differ:
//! `{"applications": [{"key": "namespace/name", "uid": "...", "entities": 14, "digest": "<32 hexadecimal
//! digits>"}]}`, answered by `200 {"differing": ["namespace/name"]}` with those of which it holds something else.
//!
//! To answer, a platform remembers the `Idempotency-Key` of the last report that it took of every entity: an
//! application by namespace and name, a resource by its application and the object's apiVersion, kind, namespace and
//! name. When an application's deletion arrives (a report whose object has a `deletionTimestamp` in its metadata), or
//! its first report with another `metadata.uid`, the platform forgets what it held of it before. A resource that
//! `status.resources` of the object in the application's last report does not list does not count; neither does one whose
//! application was not reported yet. An application's digest is the exclusive or of the first 16 bytes of
//! the SHA-256 of each of the keys that count as sent, as [`pipeline_core::ShardDigest`] and
//! [`pipeline_core::ObjectDigest`] say it; a shard's is the exclusive or of those of its applications.
//!
//! Both questions are about applications. Of objects of other kinds, whose keys name their kind, a platform holds what two
//! reporters may have told, so that keys say nothing. It is asked for the states that it holds:
//! `POST {events}/digest/objects`, at most 1,000 at once:
//! `{"objects": [{"key": "rollout/shop/web", "namespace": "shop", "name": "web", "uid": "...", "resourceVersion": "42"}]}`, answered by
//! `200 {"differing": ["rollout/shop/web"]}` with those that it does not hold: in that life, in that state or a later one, and not
//! as deleted. `resourceVersion` is that of the last state that was acknowledged, `0` where none is known.
//!
//! None of these asks for what a platform holds and the ledger has forgotten, as an application that was deleted after the backup
//! which the platform was restored from. `POST {events}/digest/others`:
//! `{"shards": 32, "own": [0, 3], "after": "namespace/name", "upto": "namespace/name", "known": ["namespace/name"]}`, with at most
//! 1,000 that are known, answered by `200 {"others": [{"key": "namespace/name", "uid": "..."}]}`: the applications that it holds, as
//! its digests count them, of those in one of the shards `own` (whichever way there is to find one) whose key comes after `after`,
//! empty where the range begins with the first, and up to `upto`, itself included, `null` where it ends with the last; and of these
//! the ones that are not `known`. Keys are compared by their bytes. They are in order, and at most 1,000, the first of them: whoever
//! is given so many asks on after the last. Of objects of other kinds nobody asks this: another reporter may have told of one
//! that this one does not know.

use std::collections::{BTreeMap, HashSet};

use bytes::Bytes;
use pipeline_core::{
    Compared, Key, OTHERS_AT_ONCE, ObjectDigest, Others, OthersQuestion, ShardDigest, StageError, Uid,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use stages_client::header::CONTENT_TYPE;
use stages_client::{HttpError, Method, Reply};

use super::{Platform, classify};
use crate::envelope;

/// Objects in one request.
const AT_ONCE: usize = 1_000;
/// Bytes of an answer: room for the names of so many applications.
const ANSWER: usize = 1024 * 1024;

#[derive(Deserialize)]
struct Shard {
    equal: Option<bool>,
}

#[derive(Deserialize)]
struct Differing {
    differing: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct HeldBeside {
    others: Option<Vec<HeldApplication>>,
}

#[derive(Deserialize)]
struct HeldApplication {
    key: String,
    uid: String,
}

impl Platform {
    pub(super) async fn compare_shard(&self, digest: &ShardDigest) -> Result<Compared, StageError> {
        const ACT: &str = "compare a shard";
        let answer: Option<Shard> = self.ask(ACT, "digest", envelope::shard(digest)).await?;
        Ok(match answer.and_then(|answer| answer.equal) {
            Some(true) => Compared::Equal,
            Some(false) => Compared::Differs,
            None => Compared::Unknown,
        })
    }

    /// A name that was not asked for is none of those that differ.
    pub(super) async fn compare_objects(
        &self,
        objects: &[ObjectDigest],
    ) -> Result<Option<Vec<Key>>, StageError> {
        let (applications, others): (Vec<_>, Vec<_>) =
            objects.iter().partition(|object| object.key.kind().is_empty());
        let mut differing = Vec::new();
        for some in applications.chunks(AT_ONCE) {
            let question = ("compare applications", "digest/applications", envelope::applications(some));
            let Some(own) = self.differing_of(some, question).await? else { return Ok(None) };
            differing.extend(own);
        }
        for some in others.chunks(AT_ONCE) {
            let question = ("compare objects", "digest/objects", envelope::objects(some));
            let Some(own) = self.differing_of(some, question).await? else { return Ok(None) };
            differing.extend(own);
        }
        Ok(Some(differing))
    }

    /// What was not asked for is not among what is held, nor is what has no name or no life that could be told to be over.
    pub(super) async fn compare_others(
        &self,
        question: &OthersQuestion,
    ) -> Result<Option<Others>, StageError> {
        let body = envelope::others(question);
        let answer: Option<HeldBeside> =
            self.ask("compare other applications", "digest/others", body).await?;
        let Some(named) = answer.and_then(|answer| answer.others) else { return Ok(None) };
        let is_cut = named.len() >= OTHERS_AT_ONCE;
        let is_asked = |key: &Key| {
            key.kind().is_empty()
                && question.after.as_ref().is_none_or(|after| key > after)
                && question.upto.as_ref().is_none_or(|upto| key <= upto)
        };
        let keys =
            named.into_iter().filter_map(|held| Some((Key::parse(&held.key).ok()?, Uid::from(held.uid))));
        let mut held: BTreeMap<Key, Uid> = keys.filter(|(key, _)| is_asked(key)).collect();
        let more_after = held.last_key_value().map(|(key, _)| key.clone()).filter(|_| is_cut);
        held.retain(|key, uid| !uid.is_empty() && question.known.binary_search(key).is_err());
        Ok(Some(Others { held: held.into_iter().collect(), more_after }))
    }

    async fn differing_of(
        &self,
        asked: &[&ObjectDigest],
        (act, below, body): (&'static str, &str, Vec<u8>),
    ) -> Result<Option<Vec<Key>>, StageError> {
        let answer: Option<Differing> = self.ask(act, below, body).await?;
        let Some(names) = answer.and_then(|answer| answer.differing) else { return Ok(None) };
        let names: HashSet<String> = names.into_iter().collect();
        let keys = asked.iter().map(|object| &object.key);
        Ok(Some(keys.filter(|key| names.contains(key.as_str())).cloned().collect()))
    }

    /// Posts `body`; `None` when the platform does not compare.
    async fn ask<T: DeserializeOwned>(
        &self,
        act: &'static str,
        below: &str,
        body: Vec<u8>,
    ) -> Result<Option<T>, StageError> {
        let reply = self.post_json(act, below, body.into()).await;
        let refused = |error: HttpError| match error.status() {
            // A platform that takes reports, and cannot take this.
            Some(403 | 500) => error.into_reject(),
            // Whether a report was ever taken does not matter: "not found" is an answer here.
            _ => classify(error, true, false),
        };
        let reply = reply.map_err(refused)?;
        match reply.status() {
            200 => read(reply).map(Some).map_err(HttpError::into_retry),
            404 | 405 | 501 => Ok(None),
            _ => reply.checked().map(|_| None).map_err(refused),
        }
    }

    async fn post_json(&self, act: &'static str, below: &str, body: Bytes) -> Result<Reply, HttpError> {
        let path = match self.path.split_once('?') {
            Some((path, query)) => format!("{path}/{below}?{query}"),
            None => format!("{}/{below}", self.path),
        };
        let request = self.client.request_escaped(act, Method::POST, &path)?;
        let request = request.header(CONTENT_TYPE, "application/json").body(body);
        let request = self.client.authorize(act, request, &self.token, "").await?;
        self.client.send_within(act, request, ANSWER).await
    }
}

/// What a 200 says. Nothing at all is something that a platform may say to whatever it is sent.
fn read<T: DeserializeOwned>(reply: Reply) -> Result<T, HttpError> {
    let text = if reply.body().is_empty() { b"{}" } else { &reply.body()[..] };
    serde_json::from_slice(text).map_err(|error| reply.into_error(error.into()))
}
