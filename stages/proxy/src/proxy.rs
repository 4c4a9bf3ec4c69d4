//! The app proxy: built from its settings, and run until it is told to stop.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use axum::Router;
use axum::http::HeaderValue;
use pipeline_core::{Call, Meter, Peer, SecretString, Shutdown};
use pipeline_redact::{RedactionKey, Redactor};
use stages_client::{Client, Target, TargetError, Token};
use stages_git::Checkouts;
use stages_kube::{Cluster, ConfigError, Right, Scope};
use tokio::sync::{Semaphore, watch};

use crate::archive::LogArchive;
use crate::argocd::{Access, ArgoCd};
use crate::audit::{Audit, Recorder};
use crate::component_logs::ComponentLogs;
use crate::dispatcher::Dispatcher;
use crate::gate::Gate;
use crate::git::{Calls, GitFiles, GitSecret, Integrations, OAuth, OAuthConfig};
use crate::heartbeat::Heartbeat;
use crate::own_pods::OwnPods;
use crate::platform::Platform;
use crate::registration::{Registration, RegistrationConfig};
use crate::rollouts::Rollouts;
use crate::routes::HttpApi;
use crate::schema::{self, RuntimeStatus, Services};
use crate::sealing::Sealing;
use crate::secret_names::{GIT_SECRET, REPOSITORIES_SECRET, TOKEN_SECRET};
use crate::series::{ARGOCD, ProxySeries, SEALED_SECRETS, WORKFLOWS};
use crate::stopping::Stopping;
use crate::strangers::Strangers;
use crate::streams::Streams;
use crate::workflows::{WorkflowServer, Workflows};

/// The settings of an app proxy.
#[derive(Debug)]
pub struct ProxyConfig {
    /// The platform's address.
    pub platform: String,
    /// The runtime's own token for the platform.
    pub platform_token: RuntimeToken,
    /// How the platform is called.
    pub platform_http: stages_client::Config,
    /// Argo CD's address, and the path that it is served under.
    pub argocd: (String, String),
    /// The credentials that Argo CD is called with.
    pub access: Access,
    /// How Argo CD is called.
    pub argocd_http: stages_client::Config,
    /// The server of Argo Workflows, its token, and how it is called; `None`: the API server is asked.
    pub workflows: Option<(String, Token, stages_client::Config)>,
    /// The controller of sealed-secrets, and how it is called; `None`: there is none.
    pub sealed_secrets: Option<(String, stages_client::Config)>,
    /// How the API server is found.
    pub cluster: Cluster,
    /// The runtime's namespace.
    pub namespace: String,
    /// The namespace of Argo CD, with the Applications of the runtime itself and the credentials of repositories.
    pub argocd_namespace: String,
    /// The labels of the runtime's own pods, as `key=value,key=value`.
    pub own_pods: String,
    /// Authorities that sign certificates of Git providers, beside the system's.
    pub git_ca_file: Option<PathBuf>,
    /// Whether Git tokens are taken without a check of what they may.
    pub takes_any_git_token: bool,
    /// The OAuth application by which people register a token that they need not make; `None`: there is none.
    pub oauth: Option<OAuthConfig>,
    /// Clones of people's repositories.
    pub checkouts: Checkouts,
    /// The origin whose pages may call it (CORS); empty: none.
    pub cors_origin: String,
    /// Limits of requests and streams.
    pub limits: Limits,
    /// Its metrics.
    pub series: ProxySeries,
}

/// Where the runtime's own token comes from.
#[derive(Debug)]
pub enum RuntimeToken {
    /// It is given in the settings.
    Given(Token),
    /// The runtime registers, and keeps it in the Secret `codefresh-token`.
    Registered(RegistrationConfig),
}

/// Limits of requests and streams, and intervals.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The most bytes of a request's body.
    pub body: usize,
    /// The most streams of logs that are open at a time, and the most sockets.
    pub streams: usize,
    /// How long the platform's answer whether somebody may do something is cached.
    pub remembered: Duration,
    /// How often the runtime is checked.
    pub heartbeat: Duration,
}

/// Why an app proxy cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// An address is malformed.
    #[error("take the setting {setting}")]
    Address {
        /// The setting with it.
        setting: &'static str,
        /// Why.
        source: TargetError,
    },
    /// A client cannot be built.
    #[error("prepare to call {peer}")]
    Client {
        /// The peer that it would call.
        peer: &'static str,
        /// Why.
        source: stages_client::BuildError,
    },
    /// The API server cannot be found.
    #[error("find the API server (settings under `kubernetes`)")]
    Cluster(#[from] ConfigError),
    /// `appProxy.cors` cannot be the value of a header.
    #[error("appProxy.cors is no origin such as https://platform.example.com")]
    Origin,
    /// There are no random numbers for a key.
    #[error("make a key that texts are redacted with")]
    Key(#[source] std::io::Error),
}

/// An app proxy that answers once its routes are served.
pub struct Proxy {
    front: HttpApi,
    dispatcher: Dispatcher,
    registration: Option<Registration>,
    heartbeat: Heartbeat,
    recorder: Recorder,
    stop: Shutdown,
    stopping: Stopping,
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxy").field("namespace", &self.heartbeat.namespace).finish_non_exhaustive()
    }
}

/// The peer that a client calls: its name in errors, and its label in metrics.
struct PeerName {
    words: &'static str,
    peer: Peer,
}

async fn client(
    PeerName { words, peer }: PeerName,
    (setting, address, root): (&'static str, &str, &str),
    http: stages_client::Config,
    meter: &Arc<dyn Meter>,
) -> Result<Client, BuildError> {
    let target = Target::new(address, root).map_err(|source| BuildError::Address { setting, source })?;
    let client = http.build(target).await.map_err(|source| BuildError::Client { peer: words, source })?;
    Ok(client.metered(Call::new(peer, "call"), meter.clone()))
}

async fn platform_client(
    url: &str,
    http: stages_client::Config,
    meter: &Arc<dyn Meter>,
) -> Result<Client, BuildError> {
    let called = PeerName { words: "the platform", peer: Peer::PLATFORM };
    client(called, ("platform.url", url, ""), http, meter).await
}

async fn argocd_client(
    (url, root): &(String, String),
    http: stages_client::Config,
    meter: &Arc<dyn Meter>,
) -> Result<Client, BuildError> {
    let called = PeerName { words: "Argo CD", peer: ARGOCD };
    client(called, ("argocd.url", url, root), http, meter).await
}

async fn workflow_server(
    setting: Option<(String, Token, stages_client::Config)>,
    meter: &Arc<dyn Meter>,
) -> Result<Option<WorkflowServer>, BuildError> {
    let Some((url, token, http)) = setting else { return Ok(None) };
    let called = PeerName { words: "Argo Workflows", peer: WORKFLOWS };
    let client = client(called, ("appProxy.workflows.url", &url, ""), http, meter).await?;
    Ok(Some(WorkflowServer { client, token }))
}

async fn sealing_controller(
    setting: Option<(String, stages_client::Config)>,
    meter: &Arc<dyn Meter>,
) -> Result<Option<Client>, BuildError> {
    let Some((url, http)) = setting else { return Ok(None) };
    let address = ("appProxy.sealedSecrets.url", url.as_str(), "");
    let called = PeerName { words: "the controller of sealed-secrets", peer: SEALED_SECRETS };
    client(called, address, http, meter).await.map(Some)
}

fn cors_origin(setting: &str) -> Result<Option<HeaderValue>, BuildError> {
    match setting {
        "" => Ok(None),
        origin => HeaderValue::from_str(origin).map(Some).map_err(|_| BuildError::Origin),
    }
}

impl RuntimeToken {
    /// The token; and where the runtime registers first, how, and where it is told what it got.
    fn begin(self) -> (Token, Option<(RegistrationConfig, watch::Sender<SecretString>)>) {
        match self {
            Self::Given(token) => (token, None),
            Self::Registered(config) => {
                let (token, told) = Token::told(SecretString::default());
                (token, Some((config, told)))
            }
        }
    }
}

impl ProxyConfig {
    /// Prepares everything, and asks nobody. `stop` ends streams, the heartbeat and the audit log.
    ///
    /// # Errors
    /// [`BuildError`] names the setting.
    pub async fn build(self, stop: Shutdown) -> Result<Proxy, BuildError> {
        let (series, meter) = (self.series.clone(), self.series.meter());
        let platform_client = platform_client(&self.platform, self.platform_http, &meter).await?;
        let (token, registers) = self.platform_token.begin();
        let why = registers.as_ref().map(|_| "it has just been started".to_owned());
        let (unregistered, registered) = watch::channel(why);
        let platform = Platform { client: platform_client, token };
        let key = RedactionKey::generate().map_err(BuildError::Key)?;
        let argocd = argocd_client(&self.argocd, self.argocd_http, &meter).await?;
        let argocd = Arc::new(ArgoCd::new(argocd, self.access, Redactor::new(key.as_bytes())));
        let server = workflow_server(self.workflows, &meter).await?;
        let controller = sealing_controller(self.sealed_secrets, &meter).await?;
        let cluster = Arc::new(self.cluster.reader().await?.metered(meter.clone()));
        let cors = cors_origin(&self.cors_origin)?;
        let (audit, recorder) = Audit::new(platform.clone(), series.clone());
        let gate = Gate::new(platform.clone(), registered.clone(), self.limits.remembered);
        let dispatcher = Dispatcher::new(gate, audit, series.clone());
        let (status, looked) = watch::channel(RuntimeStatus::unlooked());
        let git = Integrations {
            kept: GitSecret { cluster: cluster.clone(), namespace: self.namespace.clone() },
            of_argocd: GitSecret { cluster: cluster.clone(), namespace: self.argocd_namespace.clone() },
            platform: platform.clone(),
            calls: Calls { meter, ca_file: self.git_ca_file },
            takes_any: self.takes_any_git_token,
        };
        let oauth = OAuth::new(self.oauth, git.clone());
        let redactor = Arc::new(Redactor::new(key.as_bytes()));
        let pods =
            OwnPods { cluster: cluster.clone(), namespace: self.namespace.clone(), selector: self.own_pods };
        let services = Services {
            dispatcher: dispatcher.clone(),
            argocd: argocd.clone(),
            rollouts: Rollouts { cluster: cluster.clone(), argocd: argocd.clone() },
            workflows: Workflows { cluster: cluster.clone(), server },
            files: GitFiles { integrations: git.clone(), checkouts: self.checkouts },
            git: git.clone(),
            oauth: oauth.clone(),
            platform: platform.clone(),
            sealing: Sealing { controller },
            components: ComponentLogs { pods: pods.clone(), redactor: redactor.clone() },
            streams: Streams::new(self.limits.streams, series),
            status: looked,
        };
        let sockets = Arc::new(Semaphore::new(self.limits.streams.min(Semaphore::MAX_PERMITS)));
        let front = HttpApi {
            schema: schema::build(services),
            cors,
            body: self.limits.body,
            dispatcher: dispatcher.clone(),
            archive: Arc::new(LogArchive::new(pods, redactor)),
            oauth,
            stop: stop.clone(),
            registered,
            checking: Arc::new(Semaphore::new(sockets.available_permits())),
            sockets,
            strangers: Strangers::default(),
        };
        let registration = registers.map(|(config, token)| Registration {
            config,
            cluster: cluster.clone(),
            namespace: self.namespace.clone(),
            platform: platform.clone(),
            token,
            unregistered,
        });
        let heartbeat = Heartbeat {
            platform,
            argocd,
            cluster,
            namespace: self.namespace,
            argocd_namespace: self.argocd_namespace,
            git,
            every: self.limits.heartbeat,
            status,
            version_untold: AtomicBool::new(false),
            clusters_untold: AtomicBool::new(false),
        };
        Ok(Proxy {
            front,
            dispatcher,
            registration,
            heartbeat,
            recorder,
            stop,
            stopping: Stopping::default(),
        })
    }
}

impl Proxy {
    /// Its routes.
    pub fn routes(&self) -> Router {
        self.front.clone().routes()
    }

    /// Sets how long it waits for what is under way once it is told to stop.
    #[must_use]
    pub fn stopping(self, stopping: Stopping) -> Self {
        Self { stopping, ..self }
    }

    /// Registers the runtime if that is set, checks it at intervals, and sends records to the audit log. Once it is told to stop, it
    /// waits until the acts under way are done or in doubt, and recorded.
    pub async fn run(self) {
        let Self { front, dispatcher, registration, heartbeat, recorder, stop, stopping } = self;
        drop(front);
        let told = Shutdown::new();
        let acts = async {
            stop.cancelled().await;
            dispatcher.finished(stopping.acts).await;
            told.cancel();
        };
        let looking = async {
            if let Some(registration) = &registration {
                registration.run(stop.clone()).await;
            }
            let telling = Box::pin(async {
                if let Some(registration) = &registration {
                    registration.tell_address(stop.clone()).await;
                }
            });
            tokio::join!(telling, heartbeat.run(stop.clone()));
        };
        tokio::join!(looking, recorder.run(told.clone(), stopping.records), acts);
    }
}

/// The rights in Kubernetes that it needs: of Rollouts and Workflows in `namespaces` (`*`: all) and its own, of its logs and Secrets in
/// its own namespace and Argo CD's, and of the Secret of its OAuth application, where it has one.
#[must_use]
pub fn rights(
    (namespace, argocd_namespace): (&str, &str),
    namespaces: &[String],
    oauth_secret: Option<&str>,
) -> Vec<Right> {
    let places: BTreeSet<&str> = namespaces.iter().map(String::as_str).chain([namespace]).collect();
    let scopes: Vec<Scope> = match places.contains("*") {
        true => vec![Scope::Cluster],
        false => places.into_iter().map(|place| Scope::Namespace(place.to_owned())).collect(),
    };
    let right = |group, resource, verbs, scope: &Scope| Right {
        group,
        resource,
        verbs,
        names: Vec::new(),
        scope: scope.clone(),
    };
    let mut rights = Vec::new();
    for scope in &scopes {
        rights.push(right("apps", "replicasets", &["list"], scope));
        rights.push(right("argoproj.io", "analysisruns", &["list"], scope));
        rights.push(right("argoproj.io", "rollouts", &["get", "patch"], scope));
        rights.push(right("argoproj.io", "rollouts/status", &["patch"], scope));
        rights.push(right("argoproj.io", "workflows", &["create", "get", "list", "patch"], scope));
    }
    let own = Scope::Namespace(namespace.to_owned());
    let argocd = Scope::Namespace(argocd_namespace.to_owned());
    rights.push(right("argoproj.io", "applications", &["get", "list"], &argocd));
    // Its own logs.
    rights.push(right("", "pods", &["list"], &own));
    rights.push(right("", "pods/log", &["get"], &own));
    // The runtime's token where it registers; what people's Git tokens are sealed with, and where they are kept; what Argo CD reads
    // repositories with.
    let secrets = |names: &[&str], scope: &Scope| {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        Right { names, ..right("", "secrets", &["create", "get", "patch"], scope) }
    };
    if own == argocd {
        rights.push(secrets(&[TOKEN_SECRET, GIT_SECRET, REPOSITORIES_SECRET], &own));
    } else {
        rights.extend([secrets(&[TOKEN_SECRET, GIT_SECRET], &own), secrets(&[REPOSITORIES_SECRET], &argocd)]);
    }
    if let Some(secret) = oauth_secret {
        rights.push(Right { names: vec![secret.to_owned()], ..right("", "secrets", &["get"], &own) });
    }
    rights
}
