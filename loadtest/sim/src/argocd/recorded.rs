//! Recorded answers, and which of them stands at a point of the replayed watch.
//!
//! The position of an application is the number of its watch events that were replayed. The answer to a call
//! is, in this order: the last one recorded after the newest replayed event and before the next one; the
//! first one later; the last one earlier. So the answers at the end are the last recorded ones, which is what
//! an oracle compares with. Of an application whose newest event is a deletion only answers recorded since
//! then count; without one it is not found.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::http::Uri;
use bytes::Bytes;
use serde_json::{Value, json};

use super::ask::{Ask, Asked, ResourceName};
use super::{denied, not_found, refused};
use crate::fault::PeerResponse;
use crate::recordings::{Case, CaseMeta};

#[derive(Debug, Clone)]
struct Reply {
    t: f64,
    status: u16,
    body: Bytes,
}

/// One replayed or coming watch event of an application.
#[derive(Debug, Clone)]
struct Moment {
    t: f64,
    deleted: bool,
    object: Bytes,
}

#[derive(Debug, Default)]
struct App {
    moments: Vec<Moment>,
    replies: HashMap<Ask, Vec<Reply>>,
}

/// The answers of recordings, by application.
#[derive(Debug)]
pub struct Recorded {
    apps: BTreeMap<String, App>,
    revisions: HashMap<(String, String), Reply>,
    positions: Mutex<HashMap<String, usize>>,
    meta: Option<CaseMeta>,
}

impl Recorded {
    /// Sorts the answers of cases that were recorded with one Argo CD.
    #[must_use]
    pub fn new(cases: &[Case]) -> Self {
        let mut apps: BTreeMap<String, App> = BTreeMap::new();
        let mut revisions: HashMap<(String, String), Reply> = HashMap::new();
        for case in cases {
            for line in &case.watch {
                let object = Bytes::copy_from_slice(line.object.get().as_bytes());
                let moment = Moment { t: line.t, deleted: line.kind == "DELETED", object };
                apps.entry(name_of(line.object.get())).or_default().moments.push(moment);
            }
            for call in &case.calls {
                let (Ok(uri), Some(body)) = (call.path.parse::<Uri>(), case.answer(call)) else { continue };
                let Asked::About { application, ask } = Asked::read(&uri, "") else { continue };
                let body = Bytes::copy_from_slice(body.get().as_bytes());
                let reply = Reply { t: call.t, status: call.status, body };
                if let (Ask::RevisionMetadata { revision, source_index }, 200) = (&ask, call.status) {
                    revisions.insert((revision.clone(), source_index.clone()), reply.clone());
                }
                apps.entry(application).or_default().replies.entry(ask).or_default().push(reply);
            }
        }
        for app in apps.values_mut() {
            for replies in app.replies.values_mut() {
                replies.sort_by(|left, right| left.t.total_cmp(&right.t));
            }
        }
        let meta = cases.first().map(|case| case.meta.clone());
        Self { apps, revisions, positions: Mutex::default(), meta }
    }

    /// Settings in force when it was recorded.
    #[must_use]
    pub fn meta(&self) -> Option<&CaseMeta> {
        self.meta.as_ref()
    }

    /// Moves an application to its next watch event; to be called before that event is sent.
    pub fn advance(&self, application: &str) {
        *self.positions().entry(application.to_owned()).or_default() += 1;
    }

    /// Moves every application to its last watch event: [`Self::answer`] then gives what an oracle compares
    /// with.
    pub fn finish(&self) {
        *self.positions() = self.apps.iter().map(|(name, app)| (name.clone(), app.moments.len())).collect();
    }

    /// The last replayed object of an application; `None` when it is not there (any more, or yet).
    #[must_use]
    pub fn object(&self, application: &str) -> Option<Bytes> {
        let app = self.apps.get(application)?;
        let moment = app.moments.get(self.position(application).checked_sub(1)?)?;
        (!moment.deleted).then(|| moment.object.clone())
    }

    /// Names of all recorded applications.
    pub fn applications(&self) -> impl Iterator<Item = &str> {
        self.apps.keys().map(String::as_str)
    }

    /// What Argo CD answers now: status and body.
    #[must_use]
    pub fn answer(&self, application: &str, ask: &Ask) -> (u16, Bytes) {
        let PeerResponse { status, body } = self.find(application, ask);
        (status, body)
    }

    fn find(&self, application: &str, ask: &Ask) -> PeerResponse {
        let Some(app) = self.apps.get(application) else { return gone(application, ask) };
        let position = self.position(application);
        if let Some(reply) = app.reply(ask, position) {
            return PeerResponse::new(reply.status, reply.body.clone());
        }
        let there = position > 0 && !app.is_deleted(position);
        match ask {
            _ if !there => gone(application, ask),
            Ask::Manifests { revision: Some(_) } => {
                self.find(application, &Ask::Manifests { revision: None })
            }
            Ask::Manifests { revision: None } => {
                let any = app.replies.keys().filter(|ask| matches!(ask, Ask::Manifests { .. }));
                match any.filter_map(|ask| app.reply(ask, position)).max_by(|a, b| a.t.total_cmp(&b.t)) {
                    Some(reply) => PeerResponse::new(reply.status, reply.body.clone()),
                    None => PeerResponse::ok(r#"{"manifests":[]}"#),
                }
            }
            Ask::RevisionMetadata { revision, source_index } => {
                match self.revisions.get(&(revision.clone(), source_index.clone())) {
                    Some(reply) => PeerResponse::ok(reply.body.clone()),
                    None => refused(404, &format!("revision {revision} not found")),
                }
            }
            Ask::Resource(name) => {
                let managed = app.reply(&Ask::ManagedResources, position);
                match managed.and_then(|reply| live_state(&reply.body, name)) {
                    Some(live) => PeerResponse::ok(json!({"manifest": live}).to_string()),
                    None => no_resource(application, name),
                }
            }
            Ask::Application => match app.moments.get(position - 1) {
                Some(moment) => PeerResponse::ok(moment.object.clone()),
                None => denied(),
            },
            Ask::ManagedResources => PeerResponse::ok(r#"{"items":[]}"#),
            Ask::ResourceTree => PeerResponse::ok(r#"{"nodes":[]}"#),
        }
    }

    fn position(&self, application: &str) -> usize {
        self.positions().get(application).copied().unwrap_or_default()
    }

    fn positions(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.positions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl App {
    fn is_deleted(&self, position: usize) -> bool {
        position.checked_sub(1).and_then(|at| self.moments.get(at)).is_some_and(|moment| moment.deleted)
    }

    fn reply(&self, ask: &Ask, position: usize) -> Option<&Reply> {
        let replies = self.replies.get(ask)?;
        let since = self.moments.get(position.checked_sub(1)?)?.t;
        let until = self.moments.get(position).map_or(f64::INFINITY, |moment| moment.t);
        let from = replies.partition_point(|reply| reply.t < since);
        let to = replies.partition_point(|reply| reply.t < until);
        let inside = replies.get(from..to).and_then(<[Reply]>::last);
        if self.is_deleted(position) {
            return inside;
        }
        inside.or_else(|| replies.get(to)).or_else(|| replies.last())
    }
}

/// The name in an Application's text; empty when there is none.
fn name_of(object: &str) -> String {
    #[derive(Default, serde::Deserialize)]
    struct Head {
        metadata: Named,
    }
    #[derive(Default, serde::Deserialize)]
    #[serde(default)]
    struct Named {
        name: String,
    }
    serde_json::from_str::<Head>(object).unwrap_or_default().metadata.name
}

fn live_state(managed: &[u8], wanted: &ResourceName) -> Option<String> {
    let managed: Value = serde_json::from_slice(managed).ok()?;
    let text = |item: &Value, name: &str| item[name].as_str().unwrap_or_default().to_owned();
    let item = managed["items"].as_array()?.iter().find(|item| {
        text(item, "kind") == wanted.kind
            && text(item, "group") == wanted.group
            && text(item, "namespace") == wanted.namespace
            && text(item, "name") == wanted.name
    })?;
    Some(text(item, "liveState")).filter(|live| !live.is_empty() && live != "null")
}

fn gone(application: &str, ask: &Ask) -> PeerResponse {
    match ask {
        Ask::Application => denied(),
        _ => not_found(application),
    }
}

/// Argo CD's answer for a resource that is not (yet) in the tree.
pub(super) fn no_resource(application: &str, name: &ResourceName) -> PeerResponse {
    let ResourceName { group, kind, name, .. } = name;
    refused(400, &format!("{kind} {group} {name} not found as part of application {application}"))
}
