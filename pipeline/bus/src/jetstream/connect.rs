//! Connects, and stays connected.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use async_nats::jetstream::context::ContextBuilder;
use async_nats::{AuthError, Client, ConnectErrorKind, ConnectOptions};
use pipeline_core::{Backoff, Digest, Shutdown};
use tokio::sync::{Mutex, Semaphore, watch};
use tokio_util::task::AbortOnDropHandle;

use super::credentials::{digests, follow};
use super::events::Said;
use super::publish::{IN_FLIGHT, ROOM_KIB};
use super::{Config, ConfigError, Credentials, Inner, JetStream};
use crate::Prefix;

/// Between attempts to connect.
const BACKOFF: Backoff = Backoff { min: Duration::from_millis(100), max: Duration::from_secs(8) };

/// Why there will be no connection. A server that is away or refuses is not among it: that is tried for ever.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// A setting cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A file of the credentials cannot be read, or holds none.
    #[error("reading the bus's credentials file failed")]
    Credentials(#[source] std::io::Error),
    /// The runtime stops.
    #[error("stopped while connecting to the bus")]
    Stopped,
    /// The server refuses who asks; told by [`connect_once`] alone.
    #[error("the bus refuses the credentials of this runtime ({0})")]
    Refused(&'static str),
    /// No server answers as one; told by [`connect_once`] alone.
    #[error("no server of the bus can be reached")]
    Away(#[source] async_nats::ConnectError),
}

/// Connects to the first server that answers, trying for ever with growing pauses, and once connected reconnects for ever.
/// A refusal is logged once, without secrets.
///
/// # Errors
/// [`ConnectError`].
pub async fn connect(config: Config, stop: &Shutdown) -> Result<JetStream, ConnectError> {
    config.check()?;
    let prefix = Prefix::new(&config.prefix).map_err(ConfigError::from)?;
    let servers = config.servers()?;
    let said = Arc::new(Said::new(config.credentials.kind()));
    let files = Files::of(&config).await?;
    let mut attempt = 0;
    let client = loop {
        let options = options(&config, Arc::clone(&said));
        let tried = tokio::select! {
            tried = options.connect(servers.clone()) => tried,
            () = stop.cancelled() => return Err(ConnectError::Stopped),
        };
        match tried {
            Ok(client) => break client,
            Err(error) => said.failed(error.kind(), &error),
        }
        attempt += 1;
        tokio::select! {
            () = tokio::time::sleep(pause(attempt)) => {}
            () = stop.cancelled() => return Err(ConnectError::Stopped),
        }
    };
    Ok(open(client, config, prefix, files))
}

/// Tries each server once, for a person who waits; once connected reconnects for ever.
///
/// # Errors
/// [`ConnectError`].
pub async fn connect_once(config: Config) -> Result<JetStream, ConnectError> {
    config.check()?;
    let prefix = Prefix::new(&config.prefix).map_err(ConfigError::from)?;
    let kind = config.credentials.kind();
    let files = Files::of(&config).await?;
    let options = options(&config, Arc::new(Said::new(kind)));
    let client = options.connect(config.servers()?).await.map_err(|error| match error.kind() {
        ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
            ConnectError::Refused(kind)
        }
        _ => ConnectError::Away(error),
    })?;
    Ok(open(client, config, prefix, files))
}

/// The files that say who asks and whom to trust, and what they held before the first connection.
struct Files(Vec<PathBuf>, Vec<Option<Digest>>);

impl Files {
    /// What cannot be used at the start is an error; what cannot be used later is tried again.
    async fn of(config: &Config) -> Result<Self, ConnectError> {
        let mut files: Vec<PathBuf> = config.credentials.file().map(Path::to_owned).into_iter().collect();
        if let Some(tls) = &config.tls {
            files.extend(tls.ca.clone());
            files.extend(
                tls.identity.iter().flat_map(|(certificate, key)| [certificate.clone(), key.clone()]),
            );
        }
        let held = digests(&files).await;
        config.credentials.answer(b"").await.map_err(ConnectError::Credentials)?;
        Ok(Self(files, held))
    }
}

fn open(client: Client, config: Config, prefix: Prefix, Files(files, held): Files) -> JetStream {
    let following = (!files.is_empty())
        .then(|| AbortOnDropHandle::new(tokio::spawn(follow(client.clone(), config.clone(), files, held))));
    let context = ContextBuilder::new()
        .timeout(config.timeout)
        .ack_timeout(config.timeout)
        .max_ack_inflight(IN_FLIGHT)
        .build(client.clone());
    JetStream {
        inner: Arc::new(Inner {
            client,
            context,
            prefix,
            config,
            room: Arc::new(Semaphore::new(ROOM_KIB)),
            epoch: AtomicU64::new(0),
            newest: AtomicU64::new(0),
            made: watch::Sender::new(0),
            making: Mutex::default(),
            _following: following,
        }),
    }
}

fn options(config: &Config, said: Arc<Said>) -> ConnectOptions {
    let options = match config.credentials.clone() {
        Credentials::None => ConnectOptions::new(),
        credentials => {
            let credentials = Arc::new(credentials);
            ConnectOptions::with_auth_callback(move |nonce| {
                let credentials = Arc::clone(&credentials);
                async move { credentials.answer(&nonce).await.map_err(AuthError::new) }
            })
        }
    };
    let options = options
        .name("gitops-runtime")
        .max_reconnects(None)
        .reconnect_delay_callback(pause)
        .connection_timeout(config.timeout)
        .request_timeout(Some(config.timeout))
        .ping_interval(Duration::from_secs(10))
        .client_capacity(IN_FLIGHT)
        .event_callback(move |event| {
            said.hear(event);
            std::future::ready(())
        });
    let Some(tls) = &config.tls else { return options };
    let options = options.require_tls(true);
    let options = match &tls.ca {
        Some(ca) => options.add_root_certificates(ca.clone()),
        None => options,
    };
    match &tls.identity {
        Some((certificate, key)) => options.add_client_certificate(certificate.clone(), key.clone()),
        None => options,
    }
}

/// The pause before an attempt, counted from 1: hardly any before the first, so that many clients of a server that was
/// away do not come at once.
fn pause(attempt: usize) -> Duration {
    let failures = u32::try_from(attempt).unwrap_or(u32::MAX).saturating_sub(1);
    let wait = BACKOFF.wait(failures, None, fastrand::u64(..));
    if failures == 0 { wait / 4 } else { wait }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_a_bound_and_vary() {
        assert!(pause(1) < Duration::from_millis(50));
        let (mut least, mut most) = (Duration::MAX, Duration::ZERO);
        for _ in 0..200 {
            assert!((Duration::from_millis(50)..=Duration::from_millis(100)).contains(&pause(2)));
            let late = pause(usize::MAX);
            (least, most) = (least.min(late), most.max(late));
        }
        assert!(least >= BACKOFF.max / 2 && most <= BACKOFF.max);
        assert!(least < most, "they vary");
    }
}
