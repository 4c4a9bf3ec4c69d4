//! From the settings to what each crate takes.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use pipeline_core::{Backoff, ExposeSecret as _, Hasher, Meter, Shutdown, Sink};
use pipeline_engine::circuit;
use pipeline_engine::limit::RateLimit;
use pipeline_engine::run;
use pipeline_ledger::{Ledger, LedgerOptions};
use pipeline_ownership::sharding::{Owned, Sharding};
use pipeline_redact::{RedactionKey, Redactor};
use stages_argocd::client::Login;
use stages_argocd::plan::TrackingMethod;
use stages_report::cloudevents::Mode;
use stages_report::nats::Format;
use url::Url;

use super::{Following, nats, nothing_to_follow};
use crate::config::{
    self, Access, Algorithm, Config, EventMode, Places, Target, ToEvents, ToNats, ToPlatform, Token,
};

/// Messages of a route that no stream has answered yet.
const MESSAGES: usize = 64;

/// The engine's bounds.
pub(super) fn engine(config: &Config) -> run::Config {
    let reporter = &config.reporter;
    let (lanes, limit) = (&reporter.lanes, &reporter.rate_limit);
    let shards = at_least_one(reporter.sharding.shards());
    let refused = *reporter.circuit.refused_probe;
    run::Config {
        sharding: match reporter.sharding.algorithm {
            Algorithm::Jump => Sharding::Jump { shards },
            Algorithm::FnvModulo => Sharding::FnvModulo { replicas: shards },
        },
        owned: reporter.sharding.shard().map_or(Owned::All, Owned::One),
        queue_events: reporter.queue.events,
        queue_bytes: reporter.queue.bytes.0,
        concurrency: count(lanes.concurrency),
        reads: count(lanes.reads),
        reports_per_key: count(lanes.report_concurrency),
        retry: Backoff { min: *lanes.retry.min, max: *lanes.retry.max },
        circuit: circuit::Config {
            failures: 5,
            backoff: backoff(1, 30),
            refused: Backoff { min: refused, max: refused },
        },
        journal_every: *reporter.journal.interval,
        grace: *config.shutdown.grace,
        rate_limit: NonZeroU32::new(limit.bucket).filter(|_| limit.enabled).map(|events| RateLimit {
            events,
            window: *limit.window,
            learning: limit.learning,
        }),
        kind_limits: &[],
        // What no setting says.
        queue_events_per_key: 100,
        summary_bytes: 16 << 20,
        restart: backoff(1, 60),
        refetch: backoff(60, 3_600),
        parked: 10_000,
        history: 2_000,
    }
}

/// Reports that are on their way to a sink at a time; `None` is as many as the lanes work on.
pub(super) fn concurrency(target: &Target<'_>) -> Option<NonZeroU32> {
    match target {
        Target::Platform(to) if !to.settings.batch.enabled => Some(count(to.settings.concurrency)),
        Target::Nats(_) => Some(count(MESSAGES)),
        // What is shipped at the same time shares a request, or a write. Of events that have a request each, `reporter.lanes` bounds
        // how many are under way, as where batches are of one event.
        _ => None,
    }
}

fn count(number: usize) -> NonZeroU32 {
    at_least_one(u32::try_from(number).unwrap_or(u32::MAX))
}

fn backoff(min: u64, max: u64) -> Backoff {
    Backoff { min: Duration::from_secs(min), max: Duration::from_secs(max) }
}

/// Where the ledger and the redaction key are.
pub(super) async fn places(config: &Config) -> anyhow::Result<Places> {
    let state = config.state.clone();
    tokio::task::spawn_blocking(move || state.open()).await.context("find the state directory")?
}

/// Replaces secrets by digests under the key of this runtime, or the one that it `shared` with others.
pub(super) async fn redactor(places: &Places, shared: Option<RedactionKey>) -> anyhow::Result<Redactor> {
    if let Some(shared) = shared {
        return Ok(Redactor::new(shared.as_bytes()));
    }
    let places = places.clone();
    tokio::task::spawn_blocking(move || {
        let key = match &places.key {
            Some(path) if places.make_key || path.exists() => RedactionKey::load_or_create(path)?,
            Some(path) => anyhow::bail!(
                "the redaction key {} does not exist; write one with `openssl rand -hex 32`, or leave \
                 redaction.keyFile empty to have one made beside the ledger",
                path.display()
            ),
            None => RedactionKey::generate().context("make a redaction key")?,
        };
        Ok(Redactor::new(key.as_bytes()))
    })
    .await
    .context("read the redaction key")?
}

/// The ledger in a file, or in memory, of what was `acknowledged_by` a receiver. What was acknowledged elsewhere, or of another
/// cluster, counts for nothing here.
pub(super) async fn ledger(acknowledged_by: String, file: Option<PathBuf>) -> anyhow::Result<Ledger> {
    let options = LedgerOptions::new(acknowledged_by);
    tokio::task::spawn_blocking(move || match file {
        Some(path) => {
            let ledger = Ledger::open(&path, options)?;
            tracing::info!(path = %path.display(), origin = ?ledger.origin(), "ledger open");
            Ok(ledger)
        }
        None => {
            tracing::info!("the ledger is kept in memory: a restart reports everything again");
            Ok(Ledger::memory())
        }
    })
    .await
    .context("open the ledger")?
}

/// The watch.
pub(super) fn watch(config: &Config) -> stages_kube::Config {
    let kubernetes = &config.kubernetes;
    let cluster = match &*kubernetes.server {
        Some(server) => {
            let (token, token_file) = match kubernetes.token() {
                Token::Value(token) => (Some(token), None),
                Token::File(file) => (None, Some(file)),
                Token::None | Token::Secret { .. } => (None, None),
            };
            stages_kube::Cluster::Server {
                url: server.to_string(),
                token,
                token_file,
                ca_file: kubernetes.ca_file.clone(),
            }
        }
        None if kubernetes.kubeconfig.is_none() && kubernetes.context.is_none() => {
            stages_kube::Cluster::Infer
        }
        None => stages_kube::Cluster::Kubeconfig {
            path: kubernetes.kubeconfig.clone(),
            context: kubernetes.context.clone(),
        },
    };
    let namespaces = kubernetes.application_namespaces.iter().map(|pattern| pattern.0.clone()).collect();
    stages_kube::Config::new(cluster, kubernetes.namespace.to_string(), namespaces, kubernetes.page_size)
}

/// How Argo CD is reached.
pub(super) struct ArgoCd {
    pub(super) url: String,
    pub(super) root_path: String,
    pub(super) access: stages_argocd::client::Access,
    pub(super) http: stages_client::Config,
}

/// Argo CD, and what follows its token or password where that stands in a Secret; to be run until `stop`.
pub(super) async fn argocd(config: &Config, stop: &Shutdown) -> anyhow::Result<(ArgoCd, Following)> {
    let argocd = &config.argocd;
    let url = argocd.url.as_ref().context("argocd.url is not set")?;
    let mut following = nothing_to_follow();
    let access = argocd.access();
    let what = match &access {
        Access::Token(_) => "the token of Argo CD",
        Access::Login { .. } => "the password of Argo CD",
    };
    let secret = match access.secret() {
        Token::Secret { name, key } => {
            let secret = watch(config).secret(name, key).await.context(what)?;
            let first = secret.read().await.context(what)?;
            let (token, sender) = stages_client::Token::told(first.clone());
            let tell = move |token| drop(sender.send(token));
            following = Box::pin(secret.follow(first, tell, stop.clone()));
            Some(token)
        }
        given => token(given).context(what)?,
    };
    let access = match (access, secret) {
        (Access::Login { username, .. }, Some(password)) => {
            let retry = Login::RETRY;
            stages_argocd::client::Access::Login(Login { username, password, retry })
        }
        (_, Some(token)) => stages_argocd::client::Access::Token(token),
        (_, None) => stages_argocd::client::Access::Anonymous,
    };
    let reached = ArgoCd {
        url: url.to_string(),
        root_path: argocd.root_path.0.clone(),
        access,
        http: stages_client::Config {
            ca_file: argocd.ca_file.clone(),
            insecure_skip_verify: argocd.insecure,
            ..stages_client::Config::new(*argocd.timeout, argocd.max_body.len())
        },
    };
    Ok((reached, following))
}

/// The enrichment, and what follows its token or password where that stands in a Secret; to be run until `stop`.
pub(super) async fn enrichment(
    config: &Config,
    stop: &Shutdown,
) -> anyhow::Result<(stages_argocd::stage::Config, Following)> {
    let (ArgoCd { url, root_path, access, http }, following) = self::argocd(config, stop).await?;
    let argocd = &config.argocd;
    let client = stages_argocd::client::Config {
        url,
        root_path,
        access,
        http,
        concurrency: argocd.concurrency,
        min_concurrency: argocd.min_concurrency.min(argocd.concurrency),
        per_second: NonZeroU32::new(argocd.requests_per_second),
        tries: argocd.retries,
        backoff: Backoff { min: Duration::from_millis(250), max: Duration::from_secs(10) },
    };
    let cache = &argocd.cache;
    let fetch = stages_argocd::fetch::Config::new(cache.manifests.0, cache.revisions.0, cache.parents.0);
    let settings = stages_argocd::settings::Config::new(*argocd.settings_interval);
    let mut enrichment = stages_argocd::stage::Config::new(client, fetch, settings, *argocd.event_timeout);
    enrichment.settings.instance_label_key.clone_from(&argocd.instance_label_key);
    enrichment.settings.namespace = Some(config.kubernetes.namespace.to_string());
    enrichment.settings.tracking_method = match argocd.tracking_method {
        config::TrackingMethod::Auto => None,
        config::TrackingMethod::Label => Some(TrackingMethod::Label),
        config::TrackingMethod::Annotation => Some(TrackingMethod::Annotation),
        config::TrackingMethod::AnnotationAndLabel => Some(TrackingMethod::AnnotationAndLabel),
    };
    Ok((enrichment, following))
}

/// A sink.
pub(super) async fn sink(
    target: Target<'_>,
    meter: Arc<dyn Meter>,
    stop: &Shutdown,
) -> anyhow::Result<Arc<dyn Sink>> {
    let sink: Arc<dyn Sink> = match target {
        Target::Platform(to) => {
            let sink = platform_sink(to)?.build(meter).await;
            Arc::new(sink.context("reach the platform (settings under `platform`)")?)
        }
        Target::CloudEvents(to) => {
            let sink = events_sink(&to)?.build(meter).await;
            Arc::new(sink.context("reach who takes events (settings under `reporter.sink.cloudevents`)")?)
        }
        Target::Nats(ToNats { route, urls, timeout, access, subject, events }) => {
            let access = nats::access("sink", &access, urls, timeout).await?;
            let sink = stages_report::nats::Config {
                access,
                route: route.to_owned(),
                subject: subject.clone(),
                format: events
                    .map_or(Format::Json, |source| Format::CloudEvents { source: source.0.clone() }),
            };
            Arc::new(sink.build(meter).await.context("reach the NATS server of the sink")?)
        }
        Target::Stdout => {
            let sink = stages_report::stdout::Config.build(stop.clone());
            Arc::new(sink.context("write to standard output")?)
        }
        Target::File(path) => {
            let path = path.context("reporter.sink.file.path is not set")?.to_owned();
            let file = stages_report::file::Config { path };
            let file = tokio::task::spawn_blocking(move || file.build()).await;
            Arc::new(file.context("open the report file")??)
        }
    };
    Ok(sink)
}

fn platform_sink(to: ToPlatform<'_>) -> anyhow::Result<stages_report::platform::Config> {
    let ToPlatform { url, token, ca_file, insecure, timeout, path, batch, settings } = to;
    let token = self::token(&token).context("the token of the platform")?;
    let token = token.context("no token for the platform: set platform.tokenFile")?;
    let url = url.context("platform.url is not set")?;
    Ok(stages_report::platform::Config {
        address: url.to_string(),
        path: path.0.clone(),
        token,
        http: stages_client::Config {
            ca_file: ca_file.map(Path::to_owned),
            insecure_skip_verify: insecure,
            max_idle: settings.concurrency,
            ..stages_client::Config::new(timeout, 64 << 20)
        },
        gzip_level: settings.gzip_level,
        concurrency: 16,
        batch: batch.map(|batch| stages_report::platform::Batch {
            path: batch.path.0.clone(),
            reports: batch.reports,
            bytes: batch.bytes.len(),
            linger: *batch.linger,
        }),
    })
}

fn events_sink(to: &ToEvents<'_>) -> anyhow::Result<stages_report::cloudevents::Config> {
    let ToEvents { url, token_file, ca_file, source, mode, settings } = *to;
    let url = url.context("reporter.sink.cloudevents.url is not set")?;
    Ok(stages_report::cloudevents::Config {
        address: url.to_string(),
        token: token_file.map(stages_client::Token::file),
        http: stages_client::Config {
            ca_file: ca_file.map(Path::to_owned),
            ..stages_client::Config::new(*settings.timeout, 1 << 20)
        },
        source: source.0.clone(),
        mode: match mode {
            EventMode::Structured => Mode::Structured,
            EventMode::Binary => Mode::Binary,
            EventMode::Batched => Mode::Batched { events: settings.events, bytes: settings.bytes.len() },
        },
    })
}

/// The name acknowledgements are remembered under: one for each pair of a cluster and a receiver.
pub(super) fn acknowledged_by(target: &Target<'_>, server: &str) -> String {
    let mut parts = Hasher::default();
    parts.write(server.trim_end_matches('/').as_bytes());
    let kind = match target {
        Target::Platform(to) => {
            parts.write(to.url.map_or("", Url::as_str).as_bytes());
            parts.write(to.path.0.as_bytes());
            "platform"
        }
        Target::CloudEvents(to) => {
            parts.write(to.url.map_or("", Url::as_str).as_bytes());
            "cloudevents"
        }
        Target::Nats(to) => {
            to.urls.iter().for_each(|url| parts.write(url.as_bytes()));
            parts.write(to.subject.as_str().as_bytes());
            "nats"
        }
        Target::Stdout => "stdout",
        Target::File(path) => {
            let path = path.unwrap_or(Path::new(""));
            let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
            parts.write(absolute.as_os_str().as_encoded_bytes());
            "file"
        }
    };
    format!("{kind}-{:016x}", parts.finish().0)
}

/// Where the platform is.
pub(super) fn platform_url(config: &Config) -> anyhow::Result<&Url> {
    config.platform.url.as_ref().context("platform.url is not set")
}

/// How the platform is spoken to: in this time, with answers of at most so many bytes.
pub(super) fn platform_http(config: &Config, timeout: Duration, largest: usize) -> stages_client::Config {
    stages_client::Config {
        ca_file: config.platform.ca_file.clone(),
        insecure_skip_verify: config.platform.insecure,
        ..stages_client::Config::new(timeout, largest)
    }
}

/// A token as the settings give it; one in a file follows the file.
pub(super) fn token(token: &Token) -> anyhow::Result<Option<stages_client::Token>> {
    Ok(match token {
        Token::None => None,
        Token::Value(value) => Some(stages_client::Token::literal(value.expose_secret())),
        Token::File(path) => Some(stages_client::Token::file(path)),
        Token::Secret { .. } => {
            anyhow::bail!("only the token and the password of Argo CD may stand in a Secret")
        }
    })
}

fn at_least_one(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_limit_needs_a_bucket_and_to_be_enabled() {
        let limit = |flags: &[(&str, &str)]| {
            let flag = |(path, text): &(&str, &str)| (path.to_string(), "--set".to_owned(), text.to_string());
            let given = config::Given { file: None, flags: flags.iter().map(flag).collect() };
            engine(&Config::load_given(&given, &config::Variables::new()).unwrap()).rate_limit
        };
        let (enabled, bucket) = (("reporter.rateLimit.enabled", "true"), ("reporter.rateLimit.bucket", "7"));
        assert_eq!((limit(&[enabled]), limit(&[bucket])), (None, None));
        let (events, window) = (NonZeroU32::new(7).unwrap(), Duration::from_secs(86_400));
        assert_eq!(limit(&[enabled, bucket]), Some(RateLimit { events, window, learning: false }));
    }
}
