//! How a server of NATS is reached and who asks: the same for the bus and for the streams of others.

use std::error::Error as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_nats::rustls;
use async_nats::{AuthError, Client, ConnectError, ConnectErrorKind, ConnectOptions, Event, ServerAddr};
use pipeline_core::{Backoff, Digest};
use tokio_util::task::AbortOnDropHandle;

use super::credentials::{digests, follow};
use super::events::Said;
use super::publish::IN_FLIGHT;
use super::{Credentials, Tls, trust};

/// Between attempts to connect.
const BACKOFF: Backoff = Backoff { min: Duration::from_millis(100), max: Duration::from_secs(8) };

/// Servers, and who asks them.
#[derive(Debug, Clone)]
pub struct Access {
    /// Servers, `nats://host:port` or `tls://host:port`, tried in any order; never with a user or password in them.
    pub urls: Vec<String>,
    /// For how long one question may go unanswered.
    pub timeout: Duration,
    /// Who asks.
    pub credentials: Credentials,
    /// TLS; also without it a server that asks for TLS gets it, with the system's roots.
    pub tls: Option<Tls>,
    /// What subjects of answers begin with, of a user who may subscribe below that alone; `None`: `_INBOX`, as usual.
    pub inbox_prefix: Option<String>,
}

impl Access {
    /// Connects to the first server that answers, trying for ever with growing pauses, and once connected reconnects for ever.
    pub(super) async fn connect(
        &self,
        servers: &[ServerAddr],
        said: &Arc<Said>,
        heard: impl Fn(&Event) + Clone + Send + Sync + 'static,
    ) -> Client {
        let mut attempt = 0;
        loop {
            match self.connect_once(servers, said, heard.clone()).await {
                Ok(client) => return client,
                Err(error) => said.failed(error.kind(), &error),
            }
            attempt += 1;
            tokio::time::sleep(pause(attempt)).await;
        }
    }

    /// Tries each server once. One that is to say the first word in TLS alone (`handshake_first`) says nothing without: where TLS is
    /// insisted on and no server answered, each is tried once more, beginning with TLS. What answered so is reconnected to so.
    pub(super) async fn connect_once(
        &self,
        servers: &[ServerAddr],
        said: &Arc<Said>,
        heard: impl Fn(&Event) + Clone + Send + Sync + 'static,
    ) -> Result<Client, ConnectError> {
        let options = || self.options(Arc::clone(said), heard.clone());
        let failed = match self.tried(servers, options).await {
            Ok(client) => return Ok(client),
            Err(failed) => failed,
        };
        let is_insisted_on = self.tls.is_some() || servers.iter().any(ServerAddr::tls_required);
        if is_refusal(failed.kind()) || !is_insisted_on {
            return Err(failed);
        }
        let answered = self.tried(servers, || options().tls_first()).await;
        answered.map_err(|again| if is_refusal(again.kind()) || is_of_tls(&again) { again } else { failed })
    }

    /// Tries each server once. Before the client speaks TLS as it is told to it loads the authorities of the system, which nobody asks
    /// where others are given: if they cannot be loaded (`SSL_CERT_FILE` names no file) it is given the file of those alone.
    async fn tried(
        &self,
        servers: &[ServerAddr],
        options: impl Fn() -> ConnectOptions,
    ) -> Result<Client, ConnectError> {
        // What a client needs while it connects takes kilobytes, and nothing afterwards.
        let failed = match Box::pin(self.over_tls(options()).connect(servers.to_vec())).await {
            Ok(client) => return Ok(client),
            Err(failed) => failed,
        };
        let Some(Tls { ca: Some(ca), identity }) = &self.tls else { return Err(failed) };
        if failed.kind() != ConnectErrorKind::Tls {
            return Err(failed);
        }
        let options = options().require_tls(true).add_root_certificates(ca.clone());
        let options = match identity {
            Some((certificate, key)) => options.add_client_certificate(certificate.clone(), key.clone()),
            None => options,
        };
        Box::pin(options.connect(servers.to_vec())).await
    }

    /// How to connect; what the connection tells is said, and heard by `heard` before.
    fn options(&self, said: Arc<Said>, heard: impl Fn(&Event) + Send + Sync + 'static) -> ConnectOptions {
        let options = match self.credentials.clone() {
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
            .connection_timeout(self.timeout)
            .request_timeout(Some(self.timeout))
            .ping_interval(Duration::from_secs(10))
            .client_capacity(IN_FLIGHT)
            .event_callback(move |event| {
                heard(&event);
                said.hear(event);
                std::future::ready(())
            });
        match &self.inbox_prefix {
            Some(prefix) => options.custom_inbox_prefix(prefix),
            None => options,
        }
    }

    fn over_tls(&self, options: ConnectOptions) -> ConnectOptions {
        let Some(tls) = &self.tls else { return options };
        let options = options.require_tls(true);
        match (&tls.ca, &tls.identity) {
            (Some(ca), identity) => options.tls_client_config(trust::client(ca, identity.as_ref())),
            (None, Some((certificate, key))) => {
                options.add_client_certificate(certificate.clone(), key.clone())
            }
            (None, None) => options,
        }
    }
}

/// Whether the server refuses who asks.
pub(super) fn is_refusal(kind: ConnectErrorKind) -> bool {
    matches!(kind, ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication)
}

/// Whether TLS was spoken and failed, as with a certificate that is not trusted, and not because a server answered without.
fn is_of_tls(error: &ConnectError) -> bool {
    let failed = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    let cause = failed.and_then(io::Error::get_ref).and_then(|cause| cause.downcast_ref::<rustls::Error>());
    cause.is_some_and(|cause| !matches!(cause, rustls::Error::InvalidMessage(_)))
}

/// The files that say who asks and whom to trust, and what they held before the first connection.
pub(super) struct Files(Vec<PathBuf>, Vec<Option<Digest>>);

impl Files {
    /// What cannot be used at the start is an error; what cannot be used later is tried again.
    pub(super) async fn of(access: &Access) -> io::Result<Self> {
        let mut files: Vec<PathBuf> = access.credentials.file().map(Path::to_owned).into_iter().collect();
        if let Some(tls) = &access.tls {
            files.extend(tls.ca.clone());
            files.extend(
                tls.identity.iter().flat_map(|(certificate, key)| [certificate.clone(), key.clone()]),
            );
        }
        let held = digests(&files).await;
        access.credentials.answer(b"").await?;
        Ok(Self(files, held))
    }

    /// Connects `client` anew whenever they hold something else, and calls `changed` before; ends at once where there are none.
    pub(super) async fn follow(self, client: &Client, access: &Access, said: &Said, changed: impl Fn()) {
        let Self(files, held) = self;
        if !files.is_empty() {
            follow(client, access, &files, held, said, changed).await;
        }
    }

    /// The same in a task of its own; `None` where there are none.
    pub(super) fn followed(
        self,
        client: Client,
        access: Access,
        said: Arc<Said>,
        changed: impl Fn() + Send + 'static,
    ) -> Option<AbortOnDropHandle<()>> {
        (!self.0.is_empty()).then(|| {
            AbortOnDropHandle::new(tokio::spawn(async move {
                self.follow(&client, &access, &said, changed).await;
            }))
        })
    }
}

/// The pause before an attempt, counted from 1: hardly any before the first, so that many clients of a server that was
/// away do not come at once.
pub(super) fn pause(attempt: usize) -> Duration {
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
