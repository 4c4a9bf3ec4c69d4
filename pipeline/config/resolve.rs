//! From the settings as they are written to those that are used: defaults that depend on the host, choices
//! that exclude each other, and what a choice cannot do without.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use pipeline_core::SecretString;
use url::Url;

use super::bus::{self, Around};
use super::host::Host;
use super::problem::Problems;
use super::raw::{self, Choosing, Raw, SinkKind, Storage};
use super::sharding::{self, Sharding};
use super::state::State;
use super::traces;
use super::units;
use super::{Admin, Argocd, Batch, Config, Kubernetes, Platform, RateLimit, Reporter, Sink, Token};

/// The namespace Argo CD is installed in, unless something says otherwise.
pub(crate) const NAMESPACE: &str = "argocd";

/// Resolves everything; `None` when a problem leaves nothing to resolve.
pub(crate) fn config(raw: Raw, host: &Host, problems: &mut Problems) -> Option<Config> {
    let kind = raw.reporter.sink.kind;
    let has_bus = !raw.bus.url.0.0.is_empty();
    let sharding = sharding::resolve(&raw.reporter.sharding, has_bus, host, problems);
    let storage = storage(&raw.reporter, has_bus, sharding.leases, problems);
    let state = state(&raw, storage, sharding, host);
    let kubernetes = kubernetes(raw.kubernetes, host, problems);
    let argocd = argocd(raw.argocd, problems);
    let platform = platform(raw.platform, kind, problems);
    let admin = admin(raw.admin, problems);
    let reporter = reporter(raw.reporter, sharding, problems);
    let (argocd, mut platform, reporter) = (argocd?, platform?, reporter?);
    let around = Around {
        host,
        leases: sharding.leases.then_some(sharding.shards),
        bucket: storage == Storage::Bucket,
        post_timeout: platform.timeout,
    };
    let bus = bus::resolve(raw.bus, &around, problems);
    if let Some(leases) = bus.as_ref().and_then(|bus| bus.leases) {
        platform.timeout = leases.post_timeout;
    }
    Some(Config {
        kubernetes,
        argocd,
        platform,
        bus,
        state,
        serve: raw.serve.address.0,
        serve_metrics: raw.serve.metrics_address.0.filter(|other| {
            let same = raw.serve.address.0 == Some(*other);
            !same || other.port() == 0
        }),
        admin,
        traces: traces::resolve(raw.traces, host, problems),
        compat_metrics: raw.metrics.compat,
        log_level: raw.log.level,
        log_format: raw.log.format,
        grace: raw.shutdown.grace.0,
        reporter,
    })
}

fn kubernetes(raw: raw::Kubernetes, host: &Host, problems: &mut Problems) -> Kubernetes {
    let token = token("kubernetes", raw.token.0, raw.token_file.0, None, problems);
    if raw.server.0.is_some() {
        if matches!(token, Token::None) {
            let next = "not set, and kubernetes.server needs it; set kubernetes.tokenFile, or leave \
                        kubernetes.server empty to use a kubeconfig";
            problems.missing("kubernetes.token", next);
        }
        if raw.kubeconfig.0.is_some() {
            problems.add("kubernetes.server", "excludes kubernetes.kubeconfig: give one of them", None);
        }
    } else if !matches!(token, Token::None) {
        problems.add("kubernetes.token", "is for kubernetes.server, which is not set", None);
    }
    Kubernetes {
        kubeconfig: raw.kubeconfig.0,
        context: raw.context.0,
        server: raw.server.0,
        token,
        ca_file: raw.ca_file.0,
        namespace: raw.namespace.0.or_else(|| host.namespace.clone()).unwrap_or_else(|| NAMESPACE.to_owned()),
        application_namespaces: raw.application_namespaces.into_iter().map(|pattern| pattern.0.0).collect(),
        page_size: raw.page_size,
    }
}

fn argocd(raw: raw::Argocd, problems: &mut Problems) -> Option<Argocd> {
    let secret = raw.token_secret.name.0.map(|name| {
        let key = raw.token_secret.key.0.unwrap_or_else(|| "token".to_owned());
        Token::Secret { name, key }
    });
    let token = token("argocd", raw.token.0, raw.token_file.0, secret, problems);
    if matches!(token, Token::None) {
        let next = "not set; set argocd.tokenFile (--argocd-token-file), argocd.tokenSecret.name, or the \
                    variable ARGOCD_TOKEN to the token of an account that may read applications";
        problems.missing("argocd.token", next);
    }
    positive("argocd.timeout", raw.timeout.0, problems);
    positive("argocd.eventTimeout", raw.event_timeout.0, problems);
    positive("argocd.settingsInterval", raw.settings_interval.0, problems);
    if raw.event_timeout.0 < raw.timeout.0 {
        problems.add("argocd.eventTimeout", "must not be shorter than argocd.timeout", None);
    }
    let max_body = bytes("argocd.maxBody", raw.max_body.0.0, 1 << 10, problems);
    let url = needed("argocd.url", raw.url.0, problems)?;
    let (url, root_path) = rooted(url, &raw.root_path.0.0);
    Some(Argocd {
        url,
        root_path,
        token,
        ca_file: raw.ca_file.0,
        insecure: raw.insecure,
        timeout: raw.timeout.0,
        event_timeout: raw.event_timeout.0,
        concurrency: raw.concurrency,
        min_concurrency: raw.min_concurrency.min(raw.concurrency),
        requests_per_second: NonZeroU32::new(raw.requests_per_second),
        retries: raw.retries,
        max_body,
        settings_interval: raw.settings_interval.0,
        tracking_method: raw.tracking_method,
        instance_label_key: raw.instance_label_key.0,
        cache_manifests: raw.cache.manifests.0.0,
        cache_revisions: raw.cache.revisions.0.0,
        cache_parents: raw.cache.parents.0.0,
    })
}

fn platform(raw: raw::Platform, kind: SinkKind, problems: &mut Problems) -> Option<Platform> {
    let token = token("platform", raw.token.0, raw.token_file.0, None, problems);
    if kind == SinkKind::Platform && matches!(token, Token::None) {
        let next = "not set; set platform.tokenFile (--platform-token-file) or the variable CODEFRESH_TOKEN, \
                    or choose another sink: --sink stdout needs no platform";
        problems.missing("platform.token", next);
    }
    positive("platform.timeout", raw.timeout.0, problems);
    Some(Platform {
        url: needed("platform.url", raw.url.0, problems)?,
        token,
        ca_file: raw.ca_file.0,
        insecure: raw.insecure,
        timeout: raw.timeout.0,
    })
}

fn admin(raw: raw::Admin, problems: &mut Problems) -> Admin {
    let token = token("admin", raw.token.0, raw.token_file.0, None, problems);
    let (address, has_token) = (raw.address.0, !matches!(token, Token::None));
    match address {
        Some(address) if !has_token && !address.ip().is_loopback() => {
            let text = format!(
                "{address} can be reached from other hosts, and no token is given; set admin.tokenFile, or take a \
                 loopback address such as 127.0.0.1:8089"
            );
            problems.add("admin.address", text, None);
        }
        None if has_token => problems.add("admin.token", "is for admin.address, which is not set", None),
        _ => {}
    }
    Admin { address, token }
}

fn reporter(raw: raw::Reporter, sharding: Sharding, problems: &mut Problems) -> Option<Reporter> {
    positive("reporter.lanes.retry.min", raw.lanes.retry.min.0, problems);
    if raw.lanes.retry.max.0 < raw.lanes.retry.min.0 {
        problems.add("reporter.lanes.retry.max", "must not be shorter than reporter.lanes.retry.min", None);
    }
    positive("reporter.circuit.refusedProbe", raw.circuit.refused_probe.0, problems);
    positive("reporter.journal.interval", raw.journal.interval.0, problems);
    positive("reporter.digest.interval", raw.digest.interval.0, problems);
    let digest = match raw.digest.enabled {
        Choosing::Auto => raw.sink.kind == SinkKind::File,
        Choosing::Given(given) => given,
    };
    positive("reporter.rateLimit.window", raw.rate_limit.window.0, problems);
    let bucket = NonZeroU32::new(raw.rate_limit.bucket).filter(|_| raw.rate_limit.enabled);
    let limit =
        |bucket| RateLimit { bucket, window: raw.rate_limit.window.0, learning: raw.rate_limit.learning };
    let sink = match (raw.sink.kind, raw.sink.file.path.0) {
        (SinkKind::Platform, _) => {
            let raw::SinkPlatform { path, gzip_level, concurrency, batch } = raw.sink.platform;
            let most = bytes("reporter.sink.platform.batch.bytes", batch.bytes.0.0, 1 << 10, problems);
            let batch = batch.enabled.then_some(Batch {
                path: batch.path.0.0,
                reports: batch.reports,
                bytes: most,
                linger: batch.linger.0,
            });
            Sink::Platform { path: path.0.0, gzip_level, concurrency, batch }
        }
        (SinkKind::Stdout, _) => Sink::Stdout,
        (SinkKind::File, Some(path)) => Sink::File(path),
        (SinkKind::File, None) => {
            problems
                .missing("reporter.sink.file.path", "not set, and the sink file needs it; set --output FILE");
            return None;
        }
    };
    Some(Reporter {
        algorithm: raw.sharding.algorithm,
        shards: sharding.shards,
        shard: sharding.shard,
        queue_events: raw.queue.events,
        queue_bytes: bytes("reporter.queue.bytes", raw.queue.bytes.0.0, 1 << 20, problems),
        concurrency: raw.lanes.concurrency,
        report_concurrency: raw.lanes.report_concurrency,
        reads: raw.lanes.reads,
        retry_min: raw.lanes.retry.min.0,
        retry_max: raw.lanes.retry.max.0,
        refused_probe: raw.circuit.refused_probe.0,
        journal: raw.journal.interval.0,
        digest: digest.then_some(raw.digest.interval.0),
        rate_limit: bucket.map(limit),
        sink,
    })
}

/// Where the ledger is kept; never `Auto`.
fn storage(raw: &raw::Reporter, has_bus: bool, leases: bool, problems: &mut Problems) -> Storage {
    const AT: &str = "reporter.ledger.storage";
    const SHARED: &str = "replicas that come and go share a ledger";
    let path = raw.ledger.path.0.is_some();
    match raw.ledger.storage {
        Storage::File | Storage::Memory if leases => {
            let text = format!(
                "{SHARED}: take bucket or auto, or give each replica shards of its own by reporter.sharding.shard"
            );
            problems.add(AT, text, None);
            Storage::Bucket
        }
        Storage::Auto if leases => {
            if path {
                let text = format!("{SHARED}, which is a bucket of the bus and no file: leave it empty");
                problems.add("reporter.ledger.path", text, None);
            }
            Storage::Bucket
        }
        Storage::Bucket if !has_bus => {
            let text = "a bucket is on the bus, and bus.url is not set; set it (--bus nats://nats:4222), or take file";
            problems.missing(AT, text);
            Storage::Memory
        }
        Storage::Auto if path || raw.sink.kind != SinkKind::Stdout => Storage::File,
        Storage::Auto => Storage::Memory,
        given => given,
    }
}

fn state(raw: &Raw, storage: Storage, sharding: Sharding, host: &Host) -> State {
    let of_shard = |shard| format!("{shard}-of-{}", sharding.shards);
    let ledger_name = match sharding.shard {
        Some(shard) => format!("reporter-ledger-{}.redb", of_shard(shard)),
        None => "reporter-ledger.redb".to_owned(),
    };
    let socket_name = match sharding.shard {
        Some(shard) => format!("admin-{}.sock", of_shard(shard)),
        None => "admin.sock".to_owned(),
    };
    State {
        directories: raw.state.directory.0.clone().map_or_else(|| host.state.clone(), |given| vec![given]),
        keep_ledger: storage == Storage::File,
        ledger: raw.reporter.ledger.path.0.clone(),
        ledger_name,
        socket: raw.admin.socket.0.clone(),
        socket_name,
        key_file: raw.redaction.key_file.0.clone(),
    }
}

pub(super) fn token(
    group: &str,
    value: Option<SecretString>,
    file: Option<PathBuf>,
    secret: Option<Token>,
    problems: &mut Problems,
) -> Token {
    if value.is_some() && file.is_some() {
        problems.add(format!("{group}.token"), format!("excludes {group}.tokenFile: give one of them"), None);
    }
    value.map(Token::Value).or_else(|| file.map(Token::File)).or(secret).unwrap_or(Token::None)
}

/// Splits the path off the address of Argo CD. The incumbent's chart gives the root path twice: in the
/// address, and on its own.
fn rooted(mut url: Url, root: &str) -> (Url, String) {
    let path = url.path().trim_end_matches('/').to_owned();
    url.set_path("");
    let root = if path.ends_with(root) { path } else { path + root };
    (url, root)
}

fn needed(at: &str, url: Option<Url>, problems: &mut Problems) -> Option<Url> {
    if url.is_none() {
        problems.missing(at, "not set");
    }
    url
}

pub(super) fn positive(at: &str, duration: Duration, problems: &mut Problems) {
    if duration.is_zero() {
        problems.add(at, "must be longer than 0", None);
    }
}

fn bytes(at: &str, size: u64, least: u64, problems: &mut Problems) -> usize {
    if size < least {
        problems.add(at, format!("must be at least {}", units::size(least)), None);
    }
    usize::try_from(size).unwrap_or(usize::MAX)
}

#[cfg(test)]
#[path = "resolve_tests.rs"]
pub(super) mod tests;
