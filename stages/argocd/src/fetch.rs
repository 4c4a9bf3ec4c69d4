//! Fetches what a plan needs, from Argo CD or from what was kept of it.
//!
//! takes: a [`Fetch`] - gives: a [`Response`], never an error - calls: the path that the fetch names - fails: as
//! [`Response::Failed`], after all tries; nothing that failed is kept.
//!
//! Kept are manifests (per application, sources and revisions), revision metadata (per repository and
//! revision) and parents (per version that the watch has seen), each bounded in bytes; whoever asks for what
//! is just being fetched waits for that. `managed-resources`, `resource` and `resource-tree` change without
//! notice and are never kept.

use std::hash::Hash;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use moka::Expiry;
use moka::future::Cache;
use pipeline_core::{Key, Names, ObjectIndex, Reason, Short, Uid, Version};
use serde::Deserialize;
use serde_json::value::RawValue;
use stages_client::{Fault, HttpError, Reply};
use tokio::time::timeout_at;

use crate::client::{ArgoCd, CallBudget};
use crate::plan::{AppRef, Fetch, ManifestsKey, Response};
use crate::responses::Manifests;
use crate::sources::{ManifestsResponse, Sources};
use crate::ttl_set::TtlSet;

/// What is kept, and for how long.
#[derive(Debug, Clone)]
pub struct Config {
    /// Bytes of manifests.
    pub manifests_bytes: u64,
    /// Bytes of revision metadata.
    pub revisions_bytes: u64,
    /// Bytes of parent applications.
    pub parents_bytes: u64,
    /// How long "these manifests cannot be generated" stands: what is wrong may be put right outside of
    /// everything that the answer is kept under.
    pub generation_error: Duration,
    /// A tree, and the states of what is not in sync, are read for an application that did not change at most once in
    /// this time.
    pub look_every: Duration,
    /// An application of which Argo CD holds nothing is not asked about again in this time: less than passes until it is looked at
    /// again.
    pub unheld_for: Duration,
}

impl Config {
    /// Caches of so many bytes.
    #[must_use]
    pub fn new(manifests_bytes: u64, revisions_bytes: u64, parents_bytes: u64) -> Self {
        Self {
            manifests_bytes,
            revisions_bytes,
            parents_bytes,
            generation_error: Duration::from_secs(60),
            look_every: Duration::from_secs(10),
            unheld_for: Duration::from_secs(50),
        }
    }
}

/// Applications whose last look is remembered; one that is forgotten is looked at once more.
const LOOKS: u64 = 2048;

/// Applications of which nothing is held that are remembered: all of an Argo CD whose cache lost them. One that is forgotten would be
/// asked about with each event, and each question makes one.
const UNHELD_APPS: u64 = 32_768;

/// What is said of an application of which nothing is held is said of all of them.
const UNHELD: &str = "states that are not held";

/// So many others are waited for with the same fetch, one after the other, while none is told more than of itself.
const LEADERS: usize = 3;

/// The version of a parent that the watch has seen.
type Parent = (Key, Uid, Version);

/// What is kept, and fetched once for all who ask for it at the same time.
type SharedFetches<K> = Cache<K, Response>;

/// Fetches. Cheap to share, and to be shared: what it keeps is for all events.
pub struct Fetcher {
    argocd: Arc<ArgoCd>,
    seen: ObjectIndex,
    /// The revision that was asked for belongs to the name.
    manifests: SharedFetches<(ManifestsKey, Option<String>)>,
    /// By repository and revision, in short.
    commits: SharedFetches<Short>,
    names: Names,
    parents: SharedFetches<Parent>,
    /// Namespace and name of the applications whose tree or states were asked for just now.
    looks: TtlSet,
    /// The same of those of which Argo CD held nothing just now.
    unheld: TtlSet,
    sources: Option<Arc<dyn Sources>>,
}

impl Config {
    /// Builds the fetcher; `seen` is what the watch has seen, and `sources` says what Git says, if anybody does.
    #[must_use]
    pub fn build(self, argocd: Arc<ArgoCd>, seen: ObjectIndex, sources: Option<Arc<dyn Sources>>) -> Fetcher {
        Fetcher {
            argocd,
            seen,
            manifests: cache(self.manifests_bytes, self.generation_error, |(key, _)| {
                key.uid.len() + key.revisions.iter().map(String::len).sum::<usize>()
            }),
            commits: cache(self.revisions_bytes, self.generation_error, |_| 0),
            names: Names::default(),
            parents: cache(self.parents_bytes, self.generation_error, |(key, uid, _)| {
                key.as_str().len() + uid.len()
            }),
            looks: TtlSet::new(LOOKS, self.look_every),
            unheld: TtlSet::new(UNHELD_APPS, self.unheld_for),
            sources,
        }
    }
}

/// A cache of so many bytes; `size` is that of a key's texts.
fn cache<K: Name>(bytes: u64, generation_error: Duration, size: fn(&K) -> usize) -> SharedFetches<K> {
    Cache::builder()
        .max_capacity(bytes)
        .weigher(move |key, response: &Response| weight(size(key), response))
        .expire_after(GenerationErrors(generation_error))
        .build()
}

/// Under what an answer may be kept.
trait Name: Clone + Eq + Hash + Send + Sync + 'static {}

impl<K: Clone + Eq + Hash + Send + Sync + 'static> Name for K {}

impl Fetcher {
    /// Fetches one thing within the budget's time. `namespace` is where a parent is looked for whose tracking
    /// value names none: Argo CD's own.
    pub async fn fetch(&self, fetch: &Fetch, budget: &CallBudget, namespace: &str) -> Response {
        // What is waited for may be another event's call, which has its own, later, end.
        timeout_at(budget.deadline, self.respond(fetch, budget, namespace))
            .await
            .unwrap_or(Response::Failed(Reason::Timeout))
    }

    /// Whether the tree or the states of an application were asked for so lately that a paced call would be skipped.
    pub(crate) fn was_looked_at(&self, key: &Key) -> bool {
        self.looks.contains(&(key.namespace(), key.name()))
    }

    async fn respond(&self, fetch: &Fetch, budget: &CallBudget, namespace: &str) -> Response {
        if state_of(fetch).is_some_and(|app| self.unheld.contains(&(&app.namespace, &app.name))) {
            return Response::NotHeld;
        }
        match fetch {
            Fetch::ResourceTree { app, paced } | Fetch::ManagedResources { app, paced } => {
                if !self.looks.insert(&(&app.namespace, &app.name)) && *paced {
                    return Response::Skipped;
                }
                self.call(fetch, budget).await
            }
            Fetch::Manifests { revision, cache: Some(key), fresh, .. } => {
                let key = (key.clone(), revision.clone());
                if *fresh {
                    // What is generated while the refresh goes on may still be the old state.
                    self.manifests.invalidate(&key).await;
                    return self.call(fetch, budget).await;
                }
                let is_readable = |response: &Response| match response {
                    Response::Body(body) => Manifests::read(body).is_ok_and(|read| !read.sources_unknown),
                    other => *other == Response::GenerationError,
                };
                Box::pin(self.kept(&self.manifests, key, fetch, budget, is_readable)).await
            }
            Fetch::RevisionMetadata { repo_url, revision, .. } => {
                let key = self.names.of(&(repo_url, revision));
                let is_body = |response: &Response| matches!(response, Response::Body(_));
                Box::pin(self.kept(&self.commits, key, fetch, budget, is_body)).await
            }
            Fetch::Parent { namespace: own, name } => {
                self.parent(fetch, budget, if own.is_empty() { namespace } else { own }, name).await
            }
            Fetch::Manifests { cache: None, .. } | Fetch::Resource { .. } => self.call(fetch, budget).await,
        }
    }

    /// One call per version that the watch has seen. Argo CD may lag behind the watch: an older answer is
    /// used, and not kept.
    async fn parent(&self, fetch: &Fetch, budget: &CallBudget, namespace: &str, name: &str) -> Response {
        // Of an unknown version nothing would tell that it is over.
        let seen = self.seen_as(namespace, name).filter(|(.., version)| *version != Version(0));
        let Some((key, uid, version)) = seen else { return self.call(fetch, budget).await };
        let is_current = |response: &Response| match response {
            Response::Body(body) => version_of(body).is_some_and(|shown| is_not_older(shown, version)),
            _ => false,
        };
        let response =
            Box::pin(self.kept(&self.parents, (key, uid, version), fetch, budget, is_current)).await;
        if response == Response::NotFound
            && let Some((key, ..)) = self.seen_as(namespace, name)
            && self.argocd.is_news(Reason::Forbidden, key.as_str())
        {
            tracing::warn!(parent = %key, "a parent that is there may not be read: its children are reported as root applications");
        }
        response
    }

    /// From `cache`, else fetched once for all who ask at the same time, and kept if it is to be. Who asked first asked
    /// for a commit through an application of its own, and where all that is said is of that application, the next one asks.
    async fn kept<K: Name>(
        &self,
        cache: &SharedFetches<K>,
        key: K,
        fetch: &Fetch,
        budget: &CallBudget,
        is_to_be_kept: impl Fn(&Response) -> bool,
    ) -> Response {
        for _ in 0..LEADERS {
            let mut called = false;
            let fetched = async {
                called = true;
                let response = self.call(fetch, budget).await;
                if is_to_be_kept(&response) { Ok(response) } else { Err(response) }
            };
            let shared = cache.try_get_with(key.clone(), fetched).await;
            let response = shared.unwrap_or_else(|shared| Response::clone(&shared));
            if called {
                return response;
            }
            let is_about_another =
                matches!(response, Response::NotFound | Response::Failed(Reason::Forbidden))
                    && matches!(fetch, Fetch::RevisionMetadata { .. });
            if !is_about_another {
                self.argocd.count_cached(fetch.call(), budget);
                return response;
            }
        }
        self.call(fetch, budget).await
    }

    async fn call(&self, fetch: &Fetch, budget: &CallBudget) -> Response {
        let path = fetch.path("");
        match self.argocd.get(fetch.call(), &path, budget, |reply| judge(fetch, reply, &self.seen)).await {
            Ok(Response::NotHeld) => {
                self.note_unheld(fetch);
                Response::NotHeld
            }
            Ok(response) => self.with_sources(fetch, response).await,
            // A name that cannot be addressed, an empty revision for one, names nothing.
            Err(error) if matches!(error.fault(), Fault::Address(_)) => Response::NotFound,
            Err(error) => {
                let subject = match app_of(fetch) {
                    Some(app) if error.reason() == Reason::Forbidden => app.project.as_str(),
                    // Which application is that large is what whoever raises the limit wants to know.
                    Some(app) if error.reason() == Reason::TooLarge => app.name.as_str(),
                    _ => fetch.call().as_str(),
                };
                self.argocd.say(&error, subject);
                Response::Failed(error.reason())
            }
        }
    }

    /// Argo CD holds nothing of an application, though it had it compared before it said so. That writes to the application, which the
    /// watch shows: to ask with each such event would go on for ever.
    fn note_unheld(&self, fetch: &Fetch) {
        let Some(app) = state_of(fetch) else { return };
        self.unheld.insert(&(&app.namespace, &app.name));
        if self.argocd.is_news(Reason::ServerError, UNHELD) {
            let (namespace, application) = (&app.namespace, &app.name);
            tracing::warn!(
                namespace,
                application,
                "the cache of argo cd holds nothing of an application: see its controller and redis; resources are reported once it does"
            );
        }
    }

    /// What Argo CD answered, with what Git says of it where Git is asked.
    async fn with_sources(&self, fetch: &Fetch, response: Response) -> Response {
        let (Some(sources), Fetch::Manifests { sources: Some(of), .. }) = (&self.sources, fetch) else {
            return response;
        };
        match &response {
            Response::Body(body) => match ManifestsResponse::read(body) {
                Some(answer) => {
                    let described = sources.describe(of, answer.compiled()).await;
                    Response::Body(answer.composed(described.as_ref()))
                }
                None => response,
            },
            _ => response,
        }
    }

    fn seen_as(&self, namespace: &str, name: &str) -> Option<Parent> {
        let key = Key::new(namespace, name).ok()?;
        let (uid, version) = self.seen.get(&key)?;
        Some((key, uid, version))
    }
}

impl std::fmt::Debug for Fetcher {
    /// Without what is kept: a cache would show every manifest.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fetcher").field("argocd", &self.argocd).finish_non_exhaustive()
    }
}

/// Lets generation errors go after a while, and keeps the rest until there is no room.
struct GenerationErrors(Duration);

impl<K> Expiry<K, Response> for GenerationErrors {
    fn expire_after_create(&self, _: &K, response: &Response, _: Instant) -> Option<Duration> {
        matches!(response, Response::GenerationError).then_some(self.0)
    }
}

/// An error as Argo CD's gateway writes it.
#[derive(Deserialize)]
struct Refusal {
    #[serde(default)]
    code: i64,
    #[serde(default)]
    message: String,
    #[serde(default)]
    error: String,
}

/// gRPC's "unknown": what Argo CD passes on of Git, Helm and the like.
const UNKNOWN: i64 = 2;
/// As Argo CD names the conditions of an application of which it holds no state.
const NOT_COMPARED: [&str; 2] = ["comparisonerror: ", "invalidspecerror: "];

/// As Argo CD says that its cache holds nothing, after it had the application compared anew.
const NOT_HELD: &str = "cache: key is missing";

/// What an answer means for a fetch; an error where another try, or somebody's act, is needed.
fn judge(fetch: &Fetch, reply: Reply, seen: &ObjectIndex) -> Result<Response, HttpError> {
    let status = reply.status();
    if (200..300).contains(&status) {
        return match not_an_object(reply.body()) {
            Some(fault) => Err(reply.into_error(fault)),
            None => reply.into_body().map(Response::Body),
        };
    }
    let refusal = serde_json::from_slice::<Refusal>(reply.body()).ok();
    let says = |text: &str| {
        refusal.as_ref().is_some_and(|refusal| {
            let found = |field: &str| field.to_ascii_lowercase().contains(text);
            found(&refusal.message) || found(&refusal.error)
        })
    };
    let is_unknown = refusal.as_ref().is_some_and(|refusal| refusal.code == UNKNOWN);
    let is_manifests = matches!(fetch, Fetch::Manifests { .. });
    if is_manifests && status == 500 && (is_unknown || says("manifest generation error")) {
        return Ok(Response::GenerationError);
    }
    // Why it is not compared may be that something else is not found: a repository, a chart.
    let is_state = matches!(fetch, Fetch::ManagedResources { .. } | Fetch::ResourceTree { .. });
    if is_state && status == 500 && NOT_COMPARED.iter().any(|condition| says(condition)) {
        return Ok(Response::NotCompared);
    }
    if state_of(fetch).is_some() && status == 500 && says(NOT_HELD) {
        return Ok(Response::NotHeld);
    }
    // What stands before Argo CD, what Argo CD stands on, or the account that asks may be what is not found:
    // that passes, or is put right.
    let is_passing = matches!(status, 300..=399 | 401 | 429 | 502 | 503 | 504);
    if says("not found") && !is_passing {
        return Ok(Response::NotFound);
    }
    match status {
        // Of something before Argo CD, which knows no application, a 404 says that there is no Argo CD.
        404 if refusal.is_some() || reply.body().is_empty() => Ok(Response::NotFound),
        403 if is_gone(fetch, seen) => Ok(Response::NotFound),
        // A branch that was never resolved to a commit has no metadata, however often it is asked for.
        500 if is_unknown && says("must be resolved") => Ok(Response::NotFound),
        _ => reply.into_body().map(Response::Body),
    }
}

/// Why a body is not the JSON object that every answer is.
fn not_an_object(body: &[u8]) -> Option<Fault> {
    match serde_json::from_slice::<&RawValue>(body) {
        Ok(json) if json.get().starts_with('{') => None,
        Ok(_) => Some(Fault::Json { line: 1, column: 1 }),
        Err(error) => Some(error.into()),
    }
}

/// Argo CD answers 403 for what does not exist. A parent that may not be read cannot be told from one that
/// is gone, and its child must be reported all the same.
fn is_gone(fetch: &Fetch, seen: &ObjectIndex) -> bool {
    let Some(app) = app_of(fetch) else { return true };
    Key::new(&app.namespace, &app.name).is_ok_and(|key| seen.get(&key).is_none())
}

/// Whose state is asked for: what Argo CD's controller keeps of an application in the cache.
fn state_of(fetch: &Fetch) -> Option<&AppRef> {
    match fetch {
        Fetch::ManagedResources { app, .. }
        | Fetch::ResourceTree { app, .. }
        | Fetch::Resource { app, .. } => Some(app),
        Fetch::Manifests { .. } | Fetch::RevisionMetadata { .. } | Fetch::Parent { .. } => None,
    }
}

fn app_of(fetch: &Fetch) -> Option<&AppRef> {
    match fetch {
        Fetch::ManagedResources { app, .. }
        | Fetch::ResourceTree { app, .. }
        | Fetch::Manifests { app, .. }
        | Fetch::Resource { app, .. }
        | Fetch::RevisionMetadata { app, .. } => Some(app),
        Fetch::Parent { .. } => None,
    }
}

/// Whether an answer shows what the watch has seen, or something newer. An answer says nothing of the era that it is of:
/// once versions went back, one of before may have any number, and only the very one that was seen is surely not older.
fn is_not_older(shown: Version, seen: Version) -> bool {
    if seen.era() == 0 { shown >= seen } else { shown.number() == seen.number() }
}

fn version_of(application: &Bytes) -> Option<Version> {
    #[derive(Deserialize)]
    struct Application {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        resource_version: String,
    }
    let application: Application = serde_json::from_slice(application).ok()?;
    application.metadata.resource_version.parse().ok().map(Version::of_number)
}

/// Bytes that an entry of a cache is charged with.
fn weight(key: usize, response: &Response) -> u32 {
    let body = if let Response::Body(body) = response { body.len() } else { 0 };
    // An entry's own bookkeeping is of this order.
    u32::try_from(256 + key + body).unwrap_or(u32::MAX)
}
