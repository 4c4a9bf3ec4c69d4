//! Leases as objects of the Kubernetes API, for replicas that have no other store in common.
//!
//! takes: what the driver of ownership asks - gives: [`Store`]
//! calls: `/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases`: a list and a watch by label, `POST`, `PUT`, `GET`
//! and `DELETE` of single ones - fails: with [`Answer::Failed`]; a watch that breaks is begun anew with a list
//!
//! The compare-and-set is the API server's own: a `PUT` that carries `resourceVersion` and `uid` replaces that very write of
//! that very object, or is refused. With the `uid` it does not make an object anew that was deleted, which a `PUT` of a
//! `Lease` otherwise does. Revisions are resource versions, which are numbers that rise with every write of leases.
//!
//! That an API server loses its storage, or is put back to an older state, is not provided for here as it is for a broker.

mod follow;
mod object;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use kube::api::{DeleteParams, GetParams, PostParams};
use kube::core::Request;
use kube::core::params::Preconditions;
use pipeline_core::Reason;
use pipeline_core::leases::{Answer, Lease, Presence, Replica, Shown, Store};
use serde_json::Value;
use tokio::sync::mpsc;

use self::object::{At, Names, Object, Record};
use crate::api::{Failure, exchange, segment, unbuilt};
use crate::token::TokenFile;
use crate::{Cluster, ConfigError, Right, Scope};

/// Bytes of one answer: thousands of objects.
const LARGEST: usize = 16 << 20;

/// Settings of [`LeaseObjects`].
#[derive(Debug, Clone)]
pub struct LeaseConfig {
    /// How the API server is reached.
    pub cluster: Cluster,
    /// Where the objects are.
    pub namespace: String,
    /// What the names of all objects begin with, and the value of their label: the same for all replicas, and for no others.
    /// Lower-case letters, digits and `-`, 50 at most.
    pub name: String,
    /// How long a lease lives.
    pub ttl: Duration,
}

/// The store of leases in the cluster.
pub struct LeaseObjects {
    client: kube::Client,
    token: Option<TokenFile>,
    names: Names,
    collection: String,
    /// Which life of each shard's object was seen last.
    lives: Mutex<HashMap<u32, String>>,
    /// The presence of this process, as it was written last.
    present: tokio::sync::Mutex<Option<At>>,
    writing: Said,
    watching: Said,
}

/// What was said of one kind of failure since it last went well.
#[derive(Debug)]
struct Said {
    what: &'static str,
    last: Mutex<Option<Reason>>,
}

impl LeaseConfig {
    /// What the store needs to be allowed.
    #[must_use]
    pub fn rights(&self) -> Vec<Right> {
        vec![Right {
            group: "coordination.k8s.io",
            resources: &["leases"],
            verbs: &["create", "delete", "get", "list", "update", "watch"],
            // New objects cannot be granted by name.
            names: Vec::new(),
            scope: Scope::Namespace(self.namespace.clone()),
        }]
    }

    /// Checks the settings and prepares the client; nothing is sent yet. Has to run inside a tokio runtime, with a default
    /// rustls crypto provider installed.
    ///
    /// # Errors
    /// [`ConfigError`] names the setting or the file that cannot be used.
    pub async fn build(self) -> Result<LeaseObjects, ConfigError> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let edges = |name: &str| name.starts_with('-') || name.ends_with('-');
        if !(1..=50).contains(&self.name.len()) || !self.name.bytes().all(plain) || edges(&self.name) {
            let range = "1 to 50 lower-case letters, digits or -, with no - at an end";
            return Err(ConfigError::OutOfRange { setting: "name", range });
        }
        if self.namespace.is_empty() || self.namespace.contains('/') {
            return Err(ConfigError::OutOfRange { setting: "namespace", range: "the name of a namespace" });
        }
        if self.ttl.is_zero() {
            return Err(ConfigError::OutOfRange { setting: "ttl", range: "more than 0s" });
        }
        let (client, token) = self.cluster.client().await?;
        let namespace = segment(&self.namespace);
        Ok(LeaseObjects {
            client,
            token,
            names: Names { namespace: self.namespace, name: self.name, ttl: self.ttl },
            collection: format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"),
            lives: Mutex::default(),
            present: tokio::sync::Mutex::default(),
            writing: Said::new("written"),
            watching: Said::new("watched"),
        })
    }
}

impl Store for LeaseObjects {
    async fn write(&self, lease: &Lease, expected: Option<u64>) -> Answer {
        let written = match expected {
            Some(version) => self.replace(lease, version).await,
            None => self.create(lease).await,
        };
        self.writing.take(written).unwrap_or(Answer::Failed)
    }

    async fn announce(&self, presence: &Presence) {
        let mut present = self.present.lock().await;
        let before = present.take();
        let written = match self.announced(presence, before.as_ref()).await {
            // It was deleted, or it is there from a request that was not answered.
            Err(Failure::Status { code: 404 | 409, .. }) => self.announced_anew(presence).await,
            written => written,
        };
        *present = self.writing.take(written);
    }

    async fn leave(&self, replica: &Replica) {
        let left = self.delete(&self.names.replica(replica), None).await;
        self.writing.take(left);
    }

    async fn watch(&self, out: mpsc::Sender<Shown>) {
        tokio::select! {
            () = self.follow(&out) => {}
            () = out.closed() => {}
        }
    }
}

impl LeaseObjects {
    async fn create(&self, lease: &Lease) -> Result<Answer, Failure> {
        const ACT: &str = "create a lease";
        match self
            .send(ACT, |ask| ask.create(&PostParams::default(), body(&self.names.lease(lease, None))))
            .await
        {
            Ok(made) => self.granted(ACT, &made),
            Err(Failure::Status { code: 409, .. }) => self.refused(lease.shard).await,
            Err(failure) => Err(failure),
        }
    }

    async fn replace(&self, lease: &Lease, version: u64) -> Result<Answer, Failure> {
        const ACT: &str = "update a lease";
        let Some(uid) = self.life(lease.shard) else { return self.refused(lease.shard).await };
        let (name, at) = (self.names.shard(lease.shard), At { uid, version });
        let object = body(&self.names.lease(lease, Some(&at)));
        match self.send(ACT, |ask| ask.replace(&name, &PostParams::default(), object)).await {
            Ok(written) => self.granted(ACT, &written),
            Err(Failure::Status { code: 404 | 409, .. }) => self.refused(lease.shard).await,
            Err(failure) => Err(failure),
        }
    }

    fn granted(&self, act: &'static str, answer: &[u8]) -> Result<Answer, Failure> {
        let object = self.read(act, answer)?;
        self.note(&object);
        Ok(Answer::Granted { revision: object.at.version })
    }

    /// What there is instead.
    async fn refused(&self, shard: u32) -> Result<Answer, Failure> {
        const ACT: &str = "get a lease";
        let name = self.names.shard(shard);
        match self.send(ACT, |ask| ask.get(&name, &GetParams::default())).await {
            Ok(answer) => {
                let object = self.read(ACT, &answer)?;
                self.note(&object);
                let Record::Lease(lease) = object.record else { return Err(foreign(ACT)) };
                Ok(Answer::Refused { current: Some((lease, object.at.version)) })
            }
            Err(Failure::Status { code: 404, .. }) => Ok(Answer::Refused { current: None }),
            Err(failure) => Err(failure),
        }
    }

    async fn announced(&self, presence: &Presence, before: Option<&At>) -> Result<At, Failure> {
        const ACT: &str = "say that this replica is there";
        let (name, asked) = (self.names.replica(&presence.replica), PostParams::default());
        let object = body(&self.names.presence(presence, before));
        let answer = match before {
            Some(_) => self.send(ACT, |ask| ask.replace(&name, &asked, object)).await?,
            None => self.send(ACT, |ask| ask.create(&asked, object)).await?,
        };
        Ok(self.read(ACT, &answer)?.at)
    }

    async fn announced_anew(&self, presence: &Presence) -> Result<At, Failure> {
        const ACT: &str = "say that this replica is there";
        let name = self.names.replica(&presence.replica);
        let before = match self.send(ACT, |ask| ask.get(&name, &GetParams::default())).await {
            Ok(answer) => Some(self.read(ACT, &answer)?.at),
            Err(Failure::Status { code: 404, .. }) => None,
            Err(failure) => return Err(failure),
        };
        self.announced(presence, before.as_ref()).await
    }

    /// Deletes an object, only if it is as it was seen; that it is not there, or no longer so, is no failure.
    async fn delete(&self, name: &str, seen: Option<&At>) -> Result<(), Failure> {
        let asked = DeleteParams {
            preconditions: seen.map(|at| Preconditions {
                resource_version: Some(at.version.to_string()),
                uid: Some(at.uid.clone()),
            }),
            ..DeleteParams::default()
        };
        match self.send("delete a lease", |ask| ask.delete(name, &asked)).await {
            Ok(_) | Err(Failure::Status { code: 404 | 409, .. }) => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    async fn send(
        &self,
        act: &'static str,
        build: impl FnOnce(Request) -> Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<Bytes, Failure> {
        let request = build(Request::new(&self.collection)).map_err(|error| unbuilt(act, error))?;
        exchange(act, &self.client, self.token.as_ref(), request, LARGEST).await
    }

    fn read(&self, act: &'static str, answer: &[u8]) -> Result<Object, Failure> {
        let object: Value = serde_json::from_slice(answer)
            .map_err(|_| Failure::Malformed { act, what: "the answer is not json" })?;
        self.names.read(&object).ok_or_else(|| foreign(act))
    }

    fn note(&self, object: &Object) {
        if let Record::Lease(lease) = &object.record {
            let mut lives = self.lives.lock().unwrap_or_else(PoisonError::into_inner);
            lives.insert(lease.shard, object.at.uid.clone());
        }
    }

    fn life(&self, shard: u32) -> Option<String> {
        self.lives.lock().unwrap_or_else(PoisonError::into_inner).get(&shard).cloned()
    }
}

impl Said {
    fn new(what: &'static str) -> Self {
        Self { what, last: Mutex::default() }
    }

    /// Says a failure, once as long as it stays the same, until something goes well.
    fn take<T>(&self, result: Result<T, Failure>) -> Option<T> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let failure = match result {
            Ok(value) => {
                if last.take().is_some() {
                    tracing::info!("leases can be {} again", self.what);
                }
                return Some(value);
            }
            Err(failure) => failure,
        };
        let reason = failure.reason();
        if last.replace(reason) != Some(reason) {
            let error: &dyn std::error::Error = &failure;
            match reason {
                Reason::Forbidden => tracing::error!(
                    error,
                    resource = "leases.coordination.k8s.io",
                    verbs = "create, delete, get, list, update, watch",
                    "a right is missing: grant it to the account that this process runs as"
                ),
                _ => tracing::warn!(error, "leases cannot be {}; trying on", self.what),
            }
        }
        None
    }
}

fn body(object: &Value) -> Vec<u8> {
    object.to_string().into_bytes()
}

fn foreign(act: &'static str) -> Failure {
    Failure::Malformed { act, what: "the object of that name is not one of these leases" }
}

impl std::fmt::Debug for LeaseObjects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LeaseObjects").field("names", &self.names).finish_non_exhaustive()
    }
}
