//! A simulated Argo CD server: what it answers about applications, from a recording, generated, or as told.
//!
//! Under an optional root path, with a bearer token. Fault rules name calls as [`Kind::as_str`] does; error
//! bodies have the real server's shape `{"error", "code", "message"}`.

mod ask;
mod recorded;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use anyhow::Context as _;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, Uri};
use axum::response::Response;
use bytes::Bytes;
use serde_json::json;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::fault::{Faults, PeerResponse, authorized, spoil};
use super::generate::{Fleet, Line};
use super::server::{Listen, Server};
use super::traffic::Traffic;
pub use ask::{Ask, Asked, Kind, ResourceName};
pub use recorded::Recorded;

/// Where the answers come from.
#[derive(Debug, Clone)]
pub enum Content {
    /// A recording.
    Recorded(Arc<Recorded>),
    /// Generated applications.
    Generated(Arc<Fleet>),
    /// Only what [`ArgoCdSim::set`] says.
    Told,
}

/// Settings of a simulated Argo CD.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where it listens.
    pub listen: Listen,
    /// The path it is served under, such as `/argo-cd`.
    pub root: String,
    /// The bearer token it wants; `None` lets everyone in.
    pub token: Option<String>,
    /// Where the answers come from.
    pub content: Content,
}

/// The settings that a reporter reads.
#[derive(Debug)]
struct Settings {
    /// `application.resourceTrackingMethod`.
    tracking_method: String,
    /// `application.instanceLabelKey`.
    instance_label_key: String,
    /// The server's version.
    version: String,
}

impl Settings {
    fn of(content: &Content) -> Self {
        let (tracking_method, instance_label_key, old) = match content {
            Content::Recorded(recorded) => match recorded.meta() {
                Some(meta) => (
                    meta.tracking_method.clone(),
                    meta.instance_label_key.clone(),
                    meta.server.contains("2.12"),
                ),
                None => (String::new(), String::new(), false),
            },
            Content::Generated(fleet) => (String::new(), String::new(), fleet.shape().line == Line::V2),
            Content::Told => (String::new(), String::new(), false),
        };
        let or = |text: String, default: &str| if text.is_empty() { default.to_owned() } else { text };
        Self {
            tracking_method: or(tracking_method, "annotation"),
            instance_label_key: or(instance_label_key, "app.kubernetes.io/instance"),
            version: if old { "v2.12.6+unknown" } else { "v3.2.0+unknown" }.to_owned(),
        }
    }
}

#[derive(Debug)]
struct Shared {
    root: String,
    authorization: RwLock<Option<HeaderValue>>,
    /// Who may log in: name and password. The session's token is the one that is wanted.
    account: RwLock<Option<(String, String)>>,
    logins: [AtomicU64; 2],
    content: Content,
    settings: Settings,
    told: RwLock<HashMap<(Kind, String), (u16, Bytes)>>,
    told_count: AtomicUsize,
    faults: Faults,
    counts: Mutex<BTreeMap<Kind, u64>>,
    unauthorized: AtomicU64,
    traffic: Traffic,
    stop: CancellationToken,
}

/// A running Argo CD and its controls.
#[derive(Debug)]
pub struct ArgoCdSim {
    _stop: DropGuard,
    shared: Arc<Shared>,
    server: Server,
}

impl ArgoCdSim {
    /// Starts it.
    pub async fn start(config: Config) -> anyhow::Result<Self> {
        let authorization = RwLock::new(config.token.as_deref().map(bearer).transpose()?);
        let root = config.root.trim_matches('/');
        let shared = Arc::new(Shared {
            root: if root.is_empty() { String::new() } else { format!("/{root}") },
            authorization,
            account: RwLock::default(),
            logins: Default::default(),
            settings: Settings::of(&config.content),
            content: config.content,
            told: RwLock::default(),
            told_count: AtomicUsize::new(0),
            faults: Faults::default(),
            counts: Mutex::default(),
            unauthorized: AtomicU64::new(0),
            traffic: Traffic::default(),
            stop: CancellationToken::new(),
        });
        let router = Router::new().fallback(serve).with_state(shared.clone());
        let server = Server::start(router, config.listen).await.context("start Argo CD")?;
        let stop = shared.stop.clone().drop_guard();
        Ok(Self { _stop: stop, shared, server })
    }

    /// Its address without the root path, as `http://127.0.0.1:1234`.
    #[must_use]
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// How it misbehaves.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.shared.faults
    }

    /// How often calls of a kind were made, spoilt ones too.
    #[must_use]
    pub fn count(&self, kind: Kind) -> u64 {
        self.shared.counts().get(&kind).copied().unwrap_or_default()
    }

    /// How often calls about applications were made: all but settings, version and unknown ones.
    #[must_use]
    pub fn calls(&self) -> u64 {
        let counts = self.shared.counts();
        let is_about = |kind: &Kind| !matches!(kind, Kind::Settings | Kind::Version | Kind::Other);
        counts.iter().filter(|(kind, _)| is_about(kind)).map(|(_, count)| count).sum()
    }

    /// Wants another token from now on.
    pub fn set_token(&self, token: &str) -> anyhow::Result<()> {
        let wanted = Some(bearer(token)?);
        *self.shared.authorization.write().unwrap_or_else(PoisonError::into_inner) = wanted;
        Ok(())
    }

    /// Lets an account log in by this password alone, which it gives the token that is wanted.
    pub fn set_account(&self, name: &str, password: &str) {
        let account = Some((name.to_owned(), password.to_owned()));
        *self.shared.account.write().unwrap_or_else(PoisonError::into_inner) = account;
    }

    /// How many logins were granted, and how many refused.
    #[must_use]
    pub fn logins(&self) -> [u64; 2] {
        self.shared.logins.each_ref().map(|count| count.load(Ordering::Relaxed))
    }

    /// How many requests came without the right token.
    #[must_use]
    pub fn unauthorized(&self) -> u64 {
        self.shared.unauthorized.load(Ordering::Relaxed)
    }

    /// Answers this kind of call about this application so from now on.
    pub fn set(&self, kind: Kind, application: &str, status: u16, body: impl Into<Bytes>) {
        let mut told = self.shared.told.write().unwrap_or_else(PoisonError::into_inner);
        told.insert((kind, application.to_owned()), (status, body.into()));
        self.shared.told_count.store(told.len(), Ordering::Release);
    }

    /// The last requests, and how many stood open at once.
    #[must_use]
    pub fn traffic(&self) -> &Traffic {
        &self.shared.traffic
    }

    /// Stops listening and breaks every connection.
    pub async fn down(&self) {
        self.server.down().await;
    }

    /// Listens again at the same address.
    pub async fn up(&self) -> anyhow::Result<()> {
        self.server.up().await
    }
}

fn bearer(token: &str) -> anyhow::Result<HeaderValue> {
    HeaderValue::from_str(&format!("Bearer {token}")).context("put the token into a header")
}

async fn serve(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if method == Method::POST && uri.path() == format!("{}/api/v1/session", shared.root) {
        return shared.login(&body).response();
    }
    let asked = Asked::read(&uri, &shared.root);
    let kind = asked.kind();
    let wanted = shared.authorization.read().unwrap_or_else(PoisonError::into_inner).clone();
    if !authorized(&headers, wanted.as_ref()) && kind != Kind::Version {
        shared.unauthorized.fetch_add(1, Ordering::Relaxed);
        return refused(401, "no session information").response();
    }
    *shared.counts().entry(kind).or_default() += 1;
    let _open = shared.traffic.enter(&uri);
    shared.faults.latency().await;
    let answer = if method == Method::GET { shared.answer(&asked) } else { refused(501, "Not Implemented") };
    match shared.faults.meet(kind.as_str(), asked.application()) {
        None => answer.response(),
        Some(rule) => {
            let error = |status| refused(status, "told to fail").body;
            spoil(&rule.fault, answer, error, &shared.stop).await
        }
    }
}

impl Shared {
    fn counts(&self) -> MutexGuard<'_, BTreeMap<Kind, u64>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn login(&self, body: &Bytes) -> PeerResponse {
        let given: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
        let account = self.account.read().unwrap_or_else(PoisonError::into_inner);
        let is_right = account
            .as_ref()
            .is_some_and(|(name, password)| given["username"] == **name && given["password"] == **password);
        self.logins[usize::from(!is_right)].fetch_add(1, Ordering::Relaxed);
        if !is_right {
            return refused(401, "Invalid username or password");
        }
        let wanted = self.authorization.read().unwrap_or_else(PoisonError::into_inner);
        let token = wanted.as_ref().and_then(|value| value.to_str().ok()).unwrap_or_default();
        PeerResponse::ok(json!({"token": token.trim_start_matches("Bearer ")}).to_string())
    }

    fn answer(&self, asked: &Asked) -> PeerResponse {
        if self.told_count.load(Ordering::Acquire) > 0 {
            let told = self.told.read().unwrap_or_else(PoisonError::into_inner);
            if let Some((status, body)) = told.get(&(asked.kind(), asked.application().to_owned())) {
                return PeerResponse::new(*status, body.clone());
            }
        }
        match asked {
            Asked::About { application, ask } => match &self.content {
                Content::Recorded(recorded) => {
                    let (status, body) = recorded.answer(application, ask);
                    PeerResponse::new(status, body)
                }
                Content::Generated(fleet) => generated(fleet, application, ask),
                Content::Told => not_found(application),
            },
            Asked::Settings => {
                let settings = &self.settings;
                let body = json!({
                    "appLabelKey": settings.instance_label_key, "trackingMethod": settings.tracking_method,
                    "resourceOverrides": {}, "help": {}, "controllerNamespace": "argocd",
                });
                PeerResponse::ok(body.to_string())
            }
            Asked::Version => PeerResponse::ok(json!({"Version": self.settings.version}).to_string()),
            Asked::Other => refused(404, "Not Found"),
        }
    }
}

fn generated(fleet: &Fleet, application: &str, ask: &Ask) -> PeerResponse {
    let Some(state) = fleet.find(application) else {
        return if *ask == Ask::Application { denied() } else { not_found(application) };
    };
    match ask {
        Ask::ManagedResources => PeerResponse::ok(fleet.managed_resources(&state)),
        Ask::ResourceTree => PeerResponse::ok(fleet.resource_tree(&state)),
        Ask::Manifests { .. } => PeerResponse::ok(fleet.manifests(&state)),
        Ask::RevisionMetadata { revision, .. } => PeerResponse::ok(Fleet::revision_metadata(revision)),
        Ask::Resource(name) => match fleet.resource(&state, &name.kind, &name.name) {
            Some(body) => PeerResponse::ok(body),
            None => recorded::no_resource(application, name),
        },
        Ask::Application => {
            let mut out = Vec::new();
            fleet.application(&state, 0, &mut out);
            PeerResponse::ok(out)
        }
    }
}

/// An error in Argo CD's shape.
fn refused(status: u16, message: &str) -> PeerResponse {
    let code = match status {
        400 => 3,
        401 => 16,
        403 => 7,
        404 => 5,
        501 => 12,
        503 => 14,
        _ => 2,
    };
    PeerResponse::new(status, json!({"error": message, "code": code, "message": message}).to_string())
}

/// 404 for an application that is not there.
fn not_found(application: &str) -> PeerResponse {
    refused(404, &format!("applications.argoproj.io \"{application}\" not found"))
}

/// 403, as Argo CD answers for an application that is not there when it itself is asked for.
fn denied() -> PeerResponse {
    refused(403, "permission denied")
}
