//! Registers this runtime with its platform: once, with the API key of an admin, for a token of the runtime's own; and anew where its
//! address is another than the platform knows, as after an upgrade that changed it.
//!
//! takes: nothing - gives: the runtime's token - calls: the API server, for the Secret `codefresh-token`; the platform (`ping`,
//! `runtime`, `createRuntime`) - fails: never; it says why it is not done and tries again, until it is told to stop
//!
//! The Secret says how far it is, so that whoever is stopped at any step goes on there. First it holds `installation`, a secret of
//! this one registration: whoever asks the platform with the same again, because an answer was lost or two began at once, is given
//! the same token. Then it holds `token` in its place. A Secret with a token is of a runtime that is registered.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pipeline_core::{Backoff, ExposeSecret as _, SecretString, Shutdown};
use serde::Deserialize;
use serde_json::{Value, json};
use stages_client::{HttpError, Token, TokenError, Url};
use stages_kube::{QuestionError, Reader};
use tokio::sync::watch;

use crate::VERSION;
use crate::error::said;
use crate::platform::Platform;
use crate::secret_names::TOKEN_SECRET;
use crate::shown::shown;

const RETRY: Backoff = Backoff { min: Duration::from_millis(500), max: Duration::from_secs(30) };
/// How often one try reads the Secret: where two register at once, each may have to read it again.
const MAX_STEPS: usize = 50;
/// The most characters of the platform's error message that are told.
const MAX_MESSAGE: usize = 300;
const CREATE: &str = "mutation CreateRuntime($installationArgs: RuntimeInstallationArgs!) { createRuntime(installationArgs: $installationArgs) { newAccessToken } }";

/// How a runtime registers.
#[derive(Debug, Clone)]
pub struct RegistrationConfig {
    /// The API key of an admin of the platform.
    pub key: Token,
    /// The name of the runtime.
    pub runtime: String,
    /// The address of its cluster, as Argo CD knows it.
    pub cluster: String,
    /// The address of its router from outside; empty: none.
    pub ingress_host: String,
    /// The address of its router from within the cluster; empty: none.
    pub internal_ingress_host: String,
    /// How it is reached, `INGRESS` or `TUNNEL`; empty: otherwise.
    pub access_mode: String,
    /// The class of its Ingress; empty: it has none.
    pub ingress_class: String,
    /// The controller of that class.
    pub ingress_controller: String,
    /// The version of the chart that installed it; empty: none did.
    pub chart_version: String,
    /// Whether its Argo CD was not installed with it.
    pub is_external_argo_cd: bool,
}

/// Why the runtime is not registered yet; `None` once it is.
pub(crate) type RegistrationState = watch::Receiver<Option<String>>;

/// Registers the runtime, and keeps its token in a Secret.
pub(crate) struct Registration {
    pub(crate) config: RegistrationConfig,
    pub(crate) cluster: Arc<Reader>,
    pub(crate) namespace: String,
    /// Asked with the runtime's own token.
    pub(crate) platform: Platform,
    /// Tells the token to those who call the platform with it.
    pub(crate) token: watch::Sender<SecretString>,
    pub(crate) unregistered: watch::Sender<Option<String>>,
}

/// Why it is not registered.
#[derive(Debug, thiserror::Error)]
enum RegistrationError {
    #[error("the API server did not keep the Secret {TOKEN_SECRET}: {}", said(.0))]
    Cluster(#[source] QuestionError),
    #[error("the platform did not answer: {0}")]
    Away(#[source] HttpError),
    #[error(
        "the platform does not know the key of appProxy.registration.tokenFile: make an API key of an admin, of the scope full"
    )]
    UnknownKey,
    #[error("the platform does not register it: {0}")]
    Refused(String),
    #[error("the key of appProxy.registration.tokenFile is not to be had: {0}")]
    Key(#[source] TokenError),
    #[error("the Secret {TOKEN_SECRET} cannot be read")]
    Unreadable,
    #[error("others write the Secret {TOKEN_SECRET} all the time")]
    Busy,
    #[error("there are no random numbers for the installation")]
    Random,
}

impl RegistrationError {
    /// Whether another try may do better, though nobody changes anything.
    fn may_pass(&self) -> bool {
        match self {
            Self::Cluster(_) | Self::Busy => true,
            Self::Away(source) => source.status().is_none_or(|status| status >= 500 || status == 429),
            _ => false,
        }
    }
}

/// The Secret [`TOKEN_SECRET`], as far as it is read.
struct TokenSecret {
    version: Value,
    token: Option<SecretString>,
    installation: Option<SecretString>,
}

impl TokenSecret {
    fn read(secret: &Value) -> Result<Self, RegistrationError> {
        let text = |key: &str| {
            let Some(value) = secret.get("data").and_then(|data| data.get(key)?.as_str()) else {
                return Ok(None);
            };
            let bytes = STANDARD.decode(value).map_err(|_| RegistrationError::Unreadable)?;
            let text = String::from_utf8(bytes).map_err(|_| RegistrationError::Unreadable)?;
            Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty()))
        };
        Ok(Self {
            version: secret.pointer("/metadata/resourceVersion").cloned().unwrap_or_default(),
            token: text("token")?.map(SecretString::from),
            installation: text("installation")?.map(SecretString::from),
        })
    }
}

/// Where the runtime is, as the platform knows it.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct KnownAddress {
    ingress_host: Option<String>,
    internal_ingress_host: Option<String>,
}

impl KnownAddress {
    /// Whether the settings say another address.
    fn is_outdated(&self, by: &RegistrationConfig) -> bool {
        let is_other = |own: &str, known: Option<&str>| {
            !own.is_empty() && !known.is_some_and(|known| is_same(own, known))
        };
        is_other(&by.ingress_host, self.ingress_host.as_deref())
            || is_other(&by.internal_ingress_host, self.internal_ingress_host.as_deref())
    }
}

/// Whether two addresses are one, however they are written.
fn is_same(one: &str, other: &str) -> bool {
    let read = |text: &str| Url::parse(text.trim()).map_or_else(|_| text.trim().to_owned(), String::from);
    read(one).trim_end_matches('/') == read(other).trim_end_matches('/')
}

impl Registration {
    /// Tries again and again, until the runtime is registered, or `stop`.
    pub(crate) async fn run(&self, stop: Shutdown) {
        let mut tries = 0;
        loop {
            let error = tokio::select! {
                done = self.register() => match done {
                    Ok(()) => return,
                    Err(error) => error,
                },
                () = stop.cancelled() => return,
            };
            let why = error.to_string();
            if self.unregistered.send_replace(Some(why.clone())).as_ref() != Some(&why) {
                tracing::warn!(why, "the runtime is not registered with the platform yet");
            }
            tries += 1;
            tokio::select! {
                () = tokio::time::sleep(RETRY.wait(tries, None, u64::from(tries))) => {}
                () = self.config.key.changed() => {}
                () = stop.cancelled() => return,
            }
        }
    }

    /// Tells the platform where the runtime is, if that is elsewhere than it knows; tries again while the platform is away, until
    /// `stop`.
    pub(crate) async fn tell_address(&self, stop: Shutdown) {
        let mut tries = 0;
        loop {
            let error = tokio::select! {
                done = self.tell_address_once() => match done {
                    Ok(()) => return,
                    Err(error) => error,
                },
                () = stop.cancelled() => return,
            };
            if !error.may_pass() {
                let why = error.to_string();
                tracing::warn!(
                    why,
                    "the platform could not be told where the runtime is now, and may ask for it at a former address"
                );
                return;
            }
            tries += 1;
            tokio::select! {
                () = tokio::time::sleep(RETRY.wait(tries, None, u64::from(tries))) => {}
                () = stop.cancelled() => return,
            }
        }
    }

    async fn tell_address_once(&self) -> Result<(), RegistrationError> {
        let known = self.known_address().await?.filter(|known| known.is_outdated(&self.config));
        let Some(known) = known else { return Ok(()) };
        let token = self.create(("recover", true.into()), known).await?;
        tracing::info!(runtime = self.config.runtime, "the platform was told where the runtime is now");
        let path = self.path();
        for _ in 0..MAX_STEPS {
            let secret = self.cluster.get(&path).await.map_err(RegistrationError::Cluster)?;
            let kept = TokenSecret::read(&secret.unwrap_or_default())?;
            let patch = json!({"metadata": {"resourceVersion": kept.version}, "data": {"token": token}});
            match self.cluster.merge(&path, &patch, false).await {
                Ok(_) => return self.register().await,
                Err(QuestionError::Status(409)) => {}
                Err(error) => return Err(RegistrationError::Cluster(error)),
            }
        }
        Err(RegistrationError::Busy)
    }

    /// Where the platform knows the runtime; `None`: it does not say, or the token is another runtime's, whose address is not ours to tell.
    async fn known_address(&self) -> Result<Option<KnownAddress>, RegistrationError> {
        let own = &self.config.runtime;
        let query = json!({
            "query": "query($name: String!) { me { runtimeName } runtime(name: $name) { ingressHost internalIngressHost } }",
            "variables": {"name": own},
        });
        let known = self.platform.graphql("ask where it knows the runtime", &query).await;
        let mut known = known.map_err(RegistrationError::Away)?;
        let is_own = known.pointer("/me/runtimeName").and_then(Value::as_str) == Some(own.as_str());
        let address = known.get_mut("runtime").map(Value::take).filter(|_| is_own).unwrap_or_default();
        Ok(serde_json::from_value(address).unwrap_or_default())
    }

    fn path(&self) -> String {
        format!("/api/v1/namespaces/{}/secrets/{TOKEN_SECRET}", self.namespace)
    }

    async fn register(&self) -> Result<(), RegistrationError> {
        let path = self.path();
        for _ in 0..MAX_STEPS {
            let Some(secret) = self.cluster.get(&path).await.map_err(RegistrationError::Cluster)? else {
                let secret = json!({
                    "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
                    "metadata": {"name": TOKEN_SECRET, "namespace": self.namespace},
                });
                self.cluster.apply(&path, &secret).await.map_err(RegistrationError::Cluster)?;
                continue;
            };
            let kept = TokenSecret::read(&secret)?;
            let data = match (kept.token, kept.installation) {
                (Some(token), _) => {
                    self.is_registered(token);
                    return Ok(());
                }
                (None, Some(installation)) => {
                    let how = ("installationId", installation.expose_secret().into());
                    json!({"token": self.create(how, KnownAddress::default()).await?, "installation": null})
                }
                (None, None) => json!({"installation": installation()?}),
            };
            // With the version that was read: of two who register at once one goes on, and the other one reads the Secret again.
            let patch = json!({"metadata": {"resourceVersion": kept.version}, "data": data});
            match self.cluster.merge(&path, &patch, false).await {
                Ok(_) | Err(QuestionError::Status(409)) => {}
                Err(error) => return Err(RegistrationError::Cluster(error)),
            }
        }
        Err(RegistrationError::Busy)
    }

    fn is_registered(&self, token: SecretString) {
        self.token.send_replace(token);
        if self.unregistered.send_replace(None).is_some() {
            tracing::info!(runtime = self.config.runtime, "the runtime is registered with the platform");
        }
    }

    /// Registers the runtime at the platform, and gives its token, encoded for a Secret. `how`: as an installation, the same of which is
    /// given the same token, or anew; then an address that the settings do not say stays as it is known.
    async fn create(&self, how: (&str, Value), known: KnownAddress) -> Result<Value, RegistrationError> {
        self.config.key.read().await.map_err(RegistrationError::Key)?;
        let platform = Platform { client: self.platform.client.clone(), token: self.config.key.clone() };
        platform.ping().await.map_err(RegistrationError::Away)?;
        let of = &self.config;
        let given = |text: &String| (!text.is_empty()).then(|| text.clone());
        let mut args = json!({
            "runtimeName": of.runtime, "runtimeNamespace": self.namespace, "cluster": of.cluster, "componentNames": [],
            "installationType": "HELM", "managed": false, "runtimeVersion": VERSION,
            "chartVersion": given(&of.chart_version), "isExternalArgoCd": of.is_external_argo_cd,
            "ingressHost": given(&of.ingress_host).or(known.ingress_host),
            "internalIngressHost": given(&of.internal_ingress_host).or(known.internal_ingress_host),
            "accessMode": given(&of.access_mode), "ingressClass": given(&of.ingress_class),
            "ingressController": given(&of.ingress_controller),
        });
        let (name, value) = how;
        args[name] = value;
        let query = json!({"query": CREATE, "variables": {"installationArgs": args}});
        let answer =
            platform.answer("register the runtime", &query).await.map_err(|error| match error.status() {
                Some(401) => RegistrationError::UnknownKey,
                _ => RegistrationError::Away(error),
            })?;
        let token = answer.pointer("/data/createRuntime/newAccessToken").and_then(Value::as_str);
        match token.filter(|token| !token.is_empty()) {
            Some(token) => Ok(STANDARD.encode(token).into()),
            None => {
                let said = answer.pointer("/errors/0/message").and_then(Value::as_str);
                let said = said.unwrap_or("it does not say why");
                Err(RegistrationError::Refused(shown(said, MAX_MESSAGE)))
            }
        }
    }
}

/// A new installation id, encoded for a Secret.
fn installation() -> Result<Value, RegistrationError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|_| RegistrationError::Random)?;
    Ok(STANDARD.encode(hex::encode(bytes)).into())
}
