//! How the cluster is reached and what is watched there, checked before anything runs.

use std::path::PathBuf;
use std::time::Duration;

use http::Uri;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig, KubeconfigError};
use pipeline_core::SecretString;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::api::Api;
use crate::connection::Connection;
use crate::credentials;
use crate::kind::{Kind, Mapping};
use crate::namespaces::{Namespaces, PatternError};
use crate::proxy;
use crate::rights::{self, Right, Scope};
use crate::selector::Selector;
use crate::token::TokenFile;
use crate::watch::{Deps, Watch};

/// How the API server is found, and who we are to it.
#[derive(Debug, Clone, Default)]
pub enum Cluster {
    /// The usual places: `$KUBECONFIG`, `~/.kube/config`, else the pod's service account.
    #[default]
    Infer,
    /// A kubeconfig.
    Kubeconfig {
        /// Its file; the usual places when `None`.
        path: Option<PathBuf>,
        /// Its context; the current one when `None`.
        context: Option<String>,
    },
    /// An address and a token.
    Server {
        /// `https://host:port`, a path after it included.
        url: String,
        /// The bearer token; goes before `token_file`.
        token: Option<SecretString>,
        /// A file that holds the bearer token; read anew for every request, so it may be replaced.
        token_file: Option<PathBuf>,
        /// PEM file of the authority that signed the server's certificate; the system's ones when `None`.
        ca_file: Option<PathBuf>,
    },
}

/// Settings of a [`Watch`].
#[derive(Debug, Clone)]
pub struct Config {
    /// How the API server is reached.
    pub cluster: Cluster,
    /// The runtime's namespace, always watched.
    pub namespace: String,
    /// Patterns of further namespaces, as [`Namespaces`] reads them; none means one namespace alone.
    pub namespaces: Vec<String>,
    /// Objects asked for in a page of a list.
    pub page_size: u32,
    /// After this long the server ends a watch; 1 s to 294 s.
    pub watch_timeout: Duration,
    /// A watch on which nothing came for this long, no bookmark either, is taken for dead. API servers send
    /// a bookmark about once a minute.
    pub idle_limit: Duration,
    /// A watch that was open for so long and breaks was ended by whoever stands before the server, such as a load balancer
    /// on which nothing came for a while: it is gone on from at once, and is no failure.
    pub settled: Duration,
    /// One page, one object, or the answer to a watch request has to be there within this time.
    pub call_timeout: Duration,
    /// Bytes of one answer, or of one line of a watch.
    pub max_body: usize,
    /// The first wait after a failure; doubled with each further one.
    pub backoff_min: Duration,
    /// The longest wait after a failure.
    pub backoff_max: Duration,
}

impl Config {
    /// What is watched; how long things take is as it always is.
    #[must_use]
    pub fn new(cluster: Cluster, namespace: String, namespaces: Vec<String>, page_size: u32) -> Self {
        Self {
            cluster,
            namespace,
            namespaces,
            page_size,
            watch_timeout: Duration::from_secs(290),
            idle_limit: Duration::from_secs(150),
            settled: Duration::from_secs(5),
            call_timeout: Duration::from_secs(60),
            max_body: 64 << 20,
            backoff_min: Duration::from_millis(800),
            backoff_max: Duration::from_secs(30),
        }
    }

    /// The namespace `home` alone, in the cluster that is usual.
    #[cfg(test)]
    pub(crate) fn tested() -> Self {
        Self::new(Cluster::Infer, "home".to_owned(), Vec::new(), 100)
    }
}

/// Why a watch cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A setting is outside of what it may be.
    #[error("{setting} must be {range}")]
    OutOfRange {
        /// The name of the field in [`Config`].
        setting: &'static str,
        /// What it may be.
        range: &'static str,
    },
    /// A namespace pattern cannot be used.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// The kubeconfig is no kubeconfig. What the parser says is left out: it quotes the text, and that holds
    /// tokens and keys.
    #[error("kubeconfig {place} is not a valid document")]
    KubeconfigText {
        /// Its path, or the paths of `$KUBECONFIG`.
        place: String,
    },
    /// The kubeconfig cannot be used.
    #[error("kubeconfig {place} cannot be used")]
    Kubeconfig {
        /// Its path, or the paths of `$KUBECONFIG`.
        place: String,
        /// Why not.
        source: Box<KubeconfigError>,
    },
    /// None of the usual places says which cluster.
    #[error("there is neither a kubeconfig ($KUBECONFIG, ~/.kube/config) nor a pod's service account")]
    Nowhere(#[source] kube::config::InClusterError),
    /// The address is none.
    #[error("api server url is not `http(s)://host:port`")]
    Url,
    /// The authority's file cannot be read, or holds no certificate.
    #[error("certificate authority file {path:?} holds no certificate that can be read")]
    Authority {
        /// The file.
        path: PathBuf,
        /// What is wrong with it; `None` when it is empty of certificates.
        source: Option<rustls::pki_types::pem::Error>,
    },
    /// The token's file cannot be read, or holds no token.
    #[error("token file {path:?} cannot be used")]
    Token {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: std::io::Error,
    },
    /// The credentials cannot be had. What an exec plug-in said and what it was given are left out: both hold
    /// tokens and keys.
    #[error("kubernetes credentials cannot be had: {what}")]
    Credentials {
        /// What is wrong with them, from a closed set.
        what: &'static str,
    },
    /// The proxy that the kubeconfig or the environment names is none, or speaks another protocol. Its address is left
    /// out: it may hold a password.
    #[error("proxy of the api server is not `http(s)://host:port`, or `socks5://host:port` without a user")]
    Proxy,
    /// The client cannot be built: TLS.
    #[error("kubernetes client cannot be built")]
    Client(#[source] Box<kube::Error>),
}

impl Config {
    /// What a watch of `kind` needs to be allowed.
    #[must_use]
    pub fn watch_right(&self, kind: Kind) -> Right {
        rights::watch(kind, self.scope())
    }

    /// What reading objects of `kind` by their names needs to be allowed.
    #[must_use]
    pub fn read_right(&self, kind: Kind) -> Right {
        rights::read(kind, self.scope())
    }

    /// What a watch of `kind` needs to be allowed, where only what is selected is watched.
    #[must_use]
    pub fn selected_right(&self, kind: Kind, selector: &Selector) -> Right {
        if selector.is_all() { self.watch_right(kind) } else { rights::selected(kind, self.scope()) }
    }

    fn scope(&self) -> Scope {
        if self.namespaces.is_empty() { Scope::Namespace(self.namespace.clone()) } else { Scope::Cluster }
    }

    /// Checks the settings and prepares the client; nothing is sent yet. Has to run inside a tokio runtime,
    /// with a default rustls crypto provider installed.
    ///
    /// # Errors
    /// [`ConfigError`] names the setting or the file that cannot be used.
    pub async fn build<M: Mapping>(self, mapping: M, deps: Deps) -> Result<Watch<M>, ConfigError> {
        self.check()?;
        let namespaces = Namespaces::new(&self.namespace, &self.namespaces)?;
        let connection = self.cluster.connection().await?;
        Ok(self.watch(connection, (namespaces, Selector::default()), mapping, deps))
    }

    /// The watch of a kind over a connection that others may share.
    pub(crate) fn watch<M: Mapping>(
        self,
        connection: Connection,
        (namespaces, selector): (Namespaces, Selector),
        mapping: M,
        deps: Deps,
    ) -> Watch<M> {
        let scope = if namespaces.everywhere() { None } else { Some(self.namespace.as_str()) };
        let api = Api::new(connection, (mapping.kind(), scope), &self, deps.meter).selecting(selector);
        Watch::new(self, namespaces, api, (deps.seen, deps.unwatched), mapping)
    }

    /// The address of the API server: the identity of the cluster that is watched.
    ///
    /// # Errors
    /// [`ConfigError`] names the file that cannot be used.
    pub async fn server(&self) -> Result<String, ConfigError> {
        let (config, _) = self.cluster.found().await?;
        Ok(config.cluster_url.to_string())
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let second = Duration::from_secs(1);
        let refused = |setting, range| Err(ConfigError::OutOfRange { setting, range });
        if self.namespace.is_empty() || self.namespace.contains('/') {
            return refused("namespace", "the name of a namespace");
        }
        if self.page_size == 0 {
            return refused("page_size", "at least 1");
        }
        if self.watch_timeout < second || self.watch_timeout >= Duration::from_secs(295) {
            return refused("watch_timeout", "1s to 294s");
        }
        if self.idle_limit.is_zero() {
            return refused("idle_limit", "more than 0s");
        }
        if self.call_timeout.is_zero() {
            return refused("call_timeout", "more than 0s");
        }
        if self.max_body == 0 {
            return refused("max_body", "more than 0 bytes");
        }
        if self.backoff_min.is_zero() || self.backoff_min > self.backoff_max {
            return refused("backoff_min", "more than 0s and at most backoff_max");
        }
        Ok(())
    }
}

impl Cluster {
    pub(crate) async fn connection(&self) -> Result<Connection, ConfigError> {
        let (config, own_token) = self.found().await?;
        let client = kube::Client::try_from(config).map_err(|error| match credentials::refused(&error) {
            Some(what) => ConfigError::Credentials { what },
            None => ConfigError::Client(Box::new(error)),
        })?;
        Ok(Connection::new(client, own_token))
    }

    async fn found(&self) -> Result<(kube::Config, Option<TokenFile>), ConfigError> {
        let mut own_token = None;
        let mut config = match self {
            Self::Infer => match kubeconfig(None, None).await {
                Err(ConfigError::Kubeconfig { source, .. }) if nothing_there(&source) => {
                    kube::Config::incluster().map_err(ConfigError::Nowhere)?
                }
                found => found?,
            },
            Self::Kubeconfig { path, context } => kubeconfig(path.as_ref(), context.clone()).await?,
            Self::Server { url, token, token_file, ca_file } => {
                let mut config = kube::Config::new(url.parse().map_err(|_| ConfigError::Url)?);
                config.proxy_url = proxy::of(&config.cluster_url, None, variable)?;
                let plain = match config.cluster_url.scheme_str() {
                    Some("http") => true,
                    Some("https") => false,
                    _ => return Err(ConfigError::Url),
                };
                let mut who = AuthInfo::default();
                who.token.clone_from(token);
                config.auth_info = who;
                if let (None, Some(path)) = (token, token_file) {
                    let refused = |source| ConfigError::Token { path: path.clone(), source };
                    own_token = Some(TokenFile::open(path).await.map_err(refused)?);
                }
                match ca_file {
                    Some(path) => {
                        config.root_cert = Some(certificates(path)?);
                        config.root_cert_file = Some(path.clone());
                    }
                    // Without TLS nothing is verified: do not insist on authorities of the system.
                    None if plain => config.root_cert = Some(Vec::new()),
                    None => {}
                }
                config
            }
        };
        // A user and a password in the address are never sent; kube would show them in its spans.
        config.cluster_url = without_user(config.cluster_url).ok_or(ConfigError::Url)?;
        // The engine alone retries: a retry in here would be neither seen nor counted.
        config.default_retry = false;
        Ok((config, own_token))
    }
}

async fn kubeconfig(path: Option<&PathBuf>, context: Option<String>) -> Result<kube::Config, ConfigError> {
    let place = || match path {
        Some(path) => path.display().to_string(),
        None => variable("KUBECONFIG").unwrap_or_else(|| "~/.kube/config".to_owned()),
    };
    let refused = |error| match error {
        KubeconfigError::Parse(_) => ConfigError::KubeconfigText { place: place() },
        error => ConfigError::Kubeconfig { place: place(), source: Box::new(error) },
    };
    let document = match path {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    }
    .map_err(refused)?;
    let cluster = cluster(&document, context.as_deref());
    let named = cluster.and_then(|cluster| cluster.proxy_url.clone());
    let authority = cluster.filter(|cluster| cluster.certificate_authority_data.is_none());
    let authority = authority.and_then(|cluster| cluster.certificate_authority.as_ref()).map(PathBuf::from);
    let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
    let mut config = kube::Config::from_custom_kubeconfig(document, &options).await.map_err(refused)?;
    config.proxy_url = proxy::of(&config.cluster_url, named, variable)?;
    // kube reads this one again every minute.
    config.root_cert_file = authority;
    Ok(config)
}

/// The cluster of `context`, or of the current one.
fn cluster<'a>(document: &'a Kubeconfig, context: Option<&str>) -> Option<&'a kube::config::Cluster> {
    let context = context.or(document.current_context.as_deref())?;
    let context = document.contexts.iter().find(|named| named.name == context)?.context.as_ref()?;
    document.clusters.iter().find(|named| named.name == context.cluster)?.cluster.as_ref()
}

/// Of the environment, which may change from one process to the next and not within one.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn without_user(address: Uri) -> Option<Uri> {
    let host = match address.authority() {
        Some(authority) => authority.as_str().rsplit_once('@').map(|(_, host)| host.to_owned()),
        None => None,
    };
    let Some(host) = host else { return Some(address) };
    let mut parts = address.into_parts();
    parts.authority = Some(host.parse().ok()?);
    Uri::from_parts(parts).ok()
}

fn nothing_there(error: &KubeconfigError) -> bool {
    match error {
        KubeconfigError::ReadConfig(error, _) => error.kind() == std::io::ErrorKind::NotFound,
        KubeconfigError::FindPath => true,
        _ => false,
    }
}

fn certificates(path: &PathBuf) -> Result<Vec<Vec<u8>>, ConfigError> {
    let refused = |source| ConfigError::Authority { path: path.clone(), source };
    let all: Vec<Vec<u8>> = CertificateDer::pem_file_iter(path)
        .and_then(|found| found.map(|der| der.map(|der| der.to_vec())).collect())
        .map_err(|error| refused(Some(error)))?;
    if all.is_empty() { Err(refused(None)) } else { Ok(all) }
}
