//! The role `app-proxy`: what people ask for of Argo CD, Rollouts and Workflows, done in the cluster within their rights.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use pipeline_core::{Service as _, ServiceContext, Shutdown};
use pipeline_http::serve::{FOLLOWED, ServeConfig};
use prometheus::Registry;
use stages_git::GitSeries;
use stages_kube::Right;
use stages_proxy::{Access, Limits, ProxyConfig, ProxySeries, RegistrationConfig, RuntimeToken, Stopping};

use super::build;
use super::pages::Pages;
use super::repositories;
use crate::cli::AppProxyRoleArgs;
use crate::config::{Config, Variables};

/// Connections at a time.
const CONNECTIONS: usize = 1_024;
/// An answer begins within this time: Argo CD renders manifests for some of them.
const ANSWERED_WITHIN: Duration = Duration::from_secs(120);
/// The largest answer of the platform.
const LARGEST: usize = 1 << 20;

/// Runs it until SIGTERM or SIGINT.
///
/// # Errors
/// Whatever kept it from starting, with what to do next.
pub(crate) fn command(given: &AppProxyRoleArgs, variables: &Variables) -> anyhow::Result<ExitCode> {
    super::serve(&given.given(), variables, async |config, stop| Box::pin(run(config, stop)).await)
}

/// What it needs to be allowed.
pub(super) fn rights(config: &Config) -> Vec<Right> {
    let settings = &config.app_proxy;
    let places = (config.kubernetes.namespace.as_str(), config.argocd_namespace());
    stages_proxy::rights(places, &settings.namespaces(), settings.oauth.secret())
}

async fn run(config: &Config, stop: Shutdown) -> anyhow::Result<()> {
    let settings = &config.app_proxy;
    let registry = Registry::new();
    let (proxy, following) = proxy(config, &registry, &stop).await?;
    let stopping = Stopping::within(*config.shutdown.grace);
    let proxy = proxy.build(stop.clone()).await?.stopping(stopping);
    let listen = settings.listen.context("appProxy.listen is not set: it is reached there")?;
    let serve = ServeConfig {
        request_timeout: ANSWERED_WITHIN,
        answer_age: FOLLOWED,
        connections: CONNECTIONS,
        grace: *config.shutdown.grace,
        flag: Some("--listen"),
        ..ServeConfig::new(listen.to_string(), "appProxy.listen")
    };
    let server = serve.build_bare(proxy.routes()).await?;
    let pages = Pages::start(config, registry, &stop, || Ok(())).await?;
    tracing::info!(address = %server.address(), "taking requests");
    let served = async {
        let served =
            Box::new(server).serve(ServiceContext::alone(stop.clone())).await.context("take requests");
        // It ends by itself only when something is wrong: nothing else goes on without it.
        stop.cancel();
        served
    };
    let (served, (), ()) = tokio::join!(served, proxy.run(), following);
    pages.stop().await.and(served)
}

/// How it registers; `None`: it does not.
fn registration(config: &Config) -> anyhow::Result<Option<RegistrationConfig>> {
    let of = &config.app_proxy.registration;
    let Some(runtime) = &*of.runtime else { return Ok(None) };
    let key = build::token(&of.token()).context("the key that the runtime is registered with")?;
    Ok(Some(RegistrationConfig {
        key: key.context("appProxy.registration.tokenFile is not set: the runtime is registered with it")?,
        runtime: runtime.clone(),
        cluster: of.cluster.clone(),
        ingress_host: of.ingress_host.as_ref().map(ToString::to_string).unwrap_or_default(),
        internal_ingress_host: of.internal_ingress_host.as_ref().map(ToString::to_string).unwrap_or_default(),
        access_mode: of.access_mode.clone(),
        ingress_class: of.ingress_class.clone(),
        ingress_controller: of.ingress_controller.clone(),
        chart_version: of.chart_version.clone(),
        is_external_argo_cd: of.external_argo_cd,
    }))
}

/// What it is made of, and what follows the token of Argo CD where that stands in a Secret, and the authorities of Git providers.
async fn proxy(
    config: &Config,
    registry: &Registry,
    stop: &Shutdown,
) -> anyhow::Result<(ProxyConfig, impl Future<Output = ()> + Send + 'static)> {
    let (settings, platform) = (&config.app_proxy, &config.platform);
    let platform_token = match registration(config)? {
        Some(registration) => RuntimeToken::Registered(registration),
        None => {
            let token = build::token(&platform.token()).context("the token of the platform")?;
            RuntimeToken::Given(token.context(
                "there is no token of the platform: set platform.tokenFile to the runtime's own, which \
                 `gitops-runtime platform token create` makes, or let it register under appProxy.registration",
            )?)
        }
    };
    let url = build::platform_url(config)?;
    let (argocd, following) = build::argocd(config, stop).await?;
    let access = match argocd.access {
        stages_argocd::client::Access::Token(token) => Access::Token(token),
        stages_argocd::client::Access::Login(login) => Access::Login(login),
        stages_argocd::client::Access::Anonymous => anyhow::bail!(
            "there is no token of Argo CD: set argocd.tokenFile to that of an account that may do what people may ask for"
        ),
    };
    let http = |ca_file: &Option<std::path::PathBuf>, insecure, most| stages_client::Config {
        ca_file: ca_file.clone(),
        insecure_skip_verify: insecure,
        ..stages_client::Config::new(*platform.timeout, most)
    };
    let workflows = match &*settings.workflows.url {
        Some(url) => {
            let token = build::token(&settings.workflows.token()).context("the token of Argo Workflows")?;
            let token = token
                .context("appProxy.workflows.url is set, and no token: set appProxy.workflows.tokenFile")?;
            let of = &settings.workflows;
            Some((url.to_string(), token, http(&of.ca_file, of.insecure, config.argocd.max_body.len())))
        }
        None => None,
    };
    let sealed_secrets =
        settings.sealed_secrets.url.as_ref().map(|url| (url.to_string(), http(&None, false, LARGEST)));
    let clones = stages_git::remote::Config { series: GitSeries::new(registry), ..settings.checkouts() };
    let checkouts = stages_git::Checkouts::new(clones)
        .await
        .context("keep clones of repositories (settings under `appProxy.repositories`)")?;
    let trusting = repositories::trust(&settings.git_ca_file, checkouts.clone(), stop.clone())
        .await
        .context("trust the authorities of Git providers (the setting `appProxy.gitCaFile`)")?;
    let origin = url.origin().ascii_serialization();
    let proxy = ProxyConfig {
        platform: url.to_string(),
        platform_token,
        platform_http: build::platform_http(config, *platform.timeout, LARGEST),
        argocd: (argocd.url, argocd.root_path),
        access,
        argocd_http: stages_client::Config { timeout: ANSWERED_WITHIN, ..argocd.http },
        workflows,
        sealed_secrets,
        cluster: build::watch(config).cluster,
        namespace: config.kubernetes.namespace.to_string(),
        argocd_namespace: config.argocd_namespace().to_owned(),
        own_pods: settings.own_pods.clone(),
        git_ca_file: settings.git_ca_file.clone(),
        takes_any_git_token: settings.skip_git_permission_validation,
        oauth: settings.oauth.config(),
        checkouts,
        cors_origin: settings.cors.clone().unwrap_or(origin),
        limits: Limits {
            body: settings.max_body.len(),
            streams: settings.log_streams,
            remembered: *settings.remember,
            heartbeat: *settings.heartbeat,
        },
        series: ProxySeries::new(registry),
    };
    let following = async move {
        tokio::join!(following, trusting);
    };
    Ok((proxy, following))
}
