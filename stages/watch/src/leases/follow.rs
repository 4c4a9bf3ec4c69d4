//! Lists leases, then follows what changes.

use std::collections::HashMap;
use std::time::Duration;

use kube::api::{ListParams, WatchParams};
use kube::core::Request;
use pipeline_core::leases::{Replica, Shown};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use super::object::{At, Record};
use super::{LARGEST, LeaseObjects};
use crate::api::{self, Failure, unbuilt};
use crate::lines::Line;

const LIST: &str = "list leases";
const WATCH: &str = "watch leases";
/// For how long a list, or the answer to a watch request, may take.
const CALL: Duration = Duration::from_secs(10);
/// After so long the server ends a watch.
const WATCH_FOR: Duration = Duration::from_secs(290);
/// Waits after a failure: the first, doubled with each further one up to the longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));
/// The least between two watches: a server may end one as soon as it has begun.
const BETWEEN: Duration = Duration::from_millis(100);
/// Replicas that say nothing for so many lives of a lease are gone for good: somebody deletes what they left.
const SILENT: u32 = 6;

/// What a watch has come to.
struct Following<'a> {
    out: &'a mpsc::Sender<Shown>,
    /// The version that it goes on from; `None`: a list comes first.
    at: Option<String>,
    /// Objects of replicas, each with when it was first seen as it is.
    members: HashMap<String, (At, Instant)>,
    swept: Instant,
}

/// Nobody takes what is shown any more.
struct NobodyListens;

enum Stopped {
    Failed(Failure),
    NobodyListens,
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<NobodyListens> for Stopped {
    fn from(_: NobodyListens) -> Self {
        Self::NobodyListens
    }
}

impl Following<'_> {
    async fn show(&self, shown: Shown) -> Result<(), NobodyListens> {
        self.out.send(shown).await.map_err(|_| NobodyListens)
    }

    /// Shows what a record says of refused shards, if it says anything.
    async fn refused(&self, replica: Replica, shards: Vec<u32>, revision: u64) -> Result<(), NobodyListens> {
        if shards.is_empty() { Ok(()) } else { self.show(Shown::Refused { replica, shards, revision }).await }
    }

    fn note(&mut self, name: String, at: At) {
        if self.members.get(&name).is_none_or(|(seen, _)| *seen != at) {
            self.members.insert(name, (at, Instant::now()));
        }
    }
}

impl LeaseObjects {
    pub(super) async fn follow(&self, out: &mpsc::Sender<Shown>) {
        let mut following = Following { out, at: None, members: HashMap::new(), swept: Instant::now() };
        let mut pause = PAUSE.0;
        loop {
            let was_listed = following.at.is_some();
            match self.follow_once(&mut following).await {
                Ok(()) => pause = PAUSE.0,
                Err(Stopped::NobodyListens) => return,
                Err(Stopped::Failed(failure)) => {
                    if following.at.take().is_some() && following.show(Shown::Unwatched).await.is_err() {
                        return;
                    }
                    self.watching.take::<()>(Err(failure));
                    pause = if was_listed { PAUSE.0 } else { (pause * 2).min(PAUSE.1) };
                    sleep(pause.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
                }
            }
        }
    }

    /// One list where there has to be one, and one watch to its end.
    async fn follow_once(&self, following: &mut Following<'_>) -> Result<(), Stopped> {
        if following.at.is_none() {
            self.list(following).await?;
        }
        let begun = Instant::now();
        let version = following.at.as_deref().unwrap_or_default();
        let seconds = u32::try_from(WATCH_FOR.as_secs()).unwrap_or(u32::MAX);
        let asked = WatchParams::default().timeout(seconds).labels(&self.names.selector());
        let request = Request::new(&self.collection).watch(&asked, version);
        let request = request.map_err(|error| unbuilt(WATCH, error))?;
        // Something comes with every renewal, of this process if of no other.
        let bounds = (LARGEST, self.names.ttl.max(CALL));
        let opened = api::follow(WATCH, &self.client, self.token.as_ref(), request, bounds);
        let opened = timeout(CALL, opened).await.unwrap_or(Err(Failure::Timeout { act: WATCH }));
        let mut changes = opened?;
        while let Some(line) = changes.next().await? {
            let Line::Whole(line) = line else {
                return Err(malformed("a line of the watch is too long").into());
            };
            self.take(following, &line).await?;
            self.watching.take(Ok(()));
            self.sweep(following).await;
        }
        tokio::time::sleep_until(begun + BETWEEN).await;
        Ok(())
    }

    async fn list(&self, following: &mut Following<'_>) -> Result<(), Stopped> {
        let asked = ListParams::default().labels(&self.names.selector());
        let answer = timeout(CALL, self.send(LIST, |ask| ask.list(&asked))).await;
        let answer = answer.unwrap_or(Err(Failure::Timeout { act: LIST }))?;
        let list: Value = serde_json::from_slice(&answer).map_err(|_| malformed("the answer is not json"))?;
        let items = list["items"].as_array().ok_or_else(|| malformed("the answer is not a list"))?;
        let version = list["metadata"]["resourceVersion"].as_str().filter(|version| !version.is_empty());
        let version = version.ok_or_else(|| malformed("the list has no version"))?.to_owned();
        let (mut leases, mut members) = (Vec::new(), Vec::new());
        let before = std::mem::take(&mut following.members);
        for object in items.iter().filter_map(|item| self.names.read(item)) {
            self.note(&object);
            match object.record {
                Record::Lease(lease) => leases.push((lease, object.at.version)),
                Record::Member(member) => {
                    if let Some((replica, shards)) = member {
                        members.push((replica.clone(), object.at.version));
                        following.refused(replica, shards, object.at.version).await?;
                    }
                    let kept = before.get(&object.name).filter(|(at, _)| *at == object.at).cloned();
                    let seen = kept.unwrap_or_else(|| (object.at, Instant::now()));
                    following.members.insert(object.name, seen);
                }
            }
        }
        following.show(Shown::Listed { leases, members }).await?;
        following.at = Some(version);
        Ok(())
    }

    /// One line of a watch.
    async fn take(&self, following: &mut Following<'_>, line: &[u8]) -> Result<(), Stopped> {
        let change: Value =
            serde_json::from_slice(line).map_err(|_| malformed("a line of the watch is not json"))?;
        let (kind, object) = (change["type"].as_str().unwrap_or_default(), &change["object"]);
        if kind == "ERROR" {
            let code = object["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(500);
            return Err(Failure::Status { act: WATCH, code, after: None }.into());
        }
        if let Some(version) = object["metadata"]["resourceVersion"].as_str() {
            following.at = Some(version.to_owned());
        }
        let Some(object) = self.names.read(object) else { return Ok(()) };
        let is_gone = kind == "DELETED";
        let revision = object.at.version;
        let shown = match object.record {
            Record::Lease(ref lease) if is_gone => Shown::LeaseGone { shard: lease.shard },
            Record::Lease(ref lease) => {
                self.note(&object);
                Shown::Lease { lease: lease.clone(), revision }
            }
            Record::Member(member) => {
                if is_gone {
                    following.members.remove(&object.name);
                } else {
                    following.note(object.name, object.at);
                }
                let Some((replica, shards)) = member else { return Ok(()) };
                if is_gone {
                    Shown::MemberGone { replica }
                } else {
                    following.refused(replica.clone(), shards, revision).await?;
                    Shown::Member { replica, revision }
                }
            }
        };
        Ok(following.show(shown).await?)
    }

    /// Deletes what replicas left that are long gone; objects do not go by themselves.
    async fn sweep(&self, following: &mut Following<'_>) {
        let now = Instant::now();
        if now < following.swept + self.names.ttl {
            return;
        }
        following.swept = now;
        let silent = self.names.ttl * SILENT;
        let gone = following.members.iter().filter(|(_, (_, since))| *since + silent <= now);
        let gone: Vec<(String, At)> = gone.map(|(name, (at, _))| (name.clone(), at.clone())).collect();
        for (name, at) in gone {
            if let Ok(deleted) = timeout(CALL, self.delete(&name, Some(&at))).await {
                self.writing.take(deleted);
            }
        }
    }
}

fn malformed(what: &'static str) -> Failure {
    Failure::Malformed { act: WATCH, what }
}
