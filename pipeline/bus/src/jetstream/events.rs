//! What the connection tells, said in the log: each trouble once, until there is a connection again.

use std::sync::atomic::{AtomicBool, Ordering};

use async_nats::{ClientError, ConnectErrorKind, Event, ServerError};

/// What was said since there was a connection last.
#[derive(Debug, Default)]
pub(super) struct Said {
    credentials: &'static str,
    away: AtomicBool,
    refused: AtomicBool,
    denied: AtomicBool,
    slow: AtomicBool,
}

impl Said {
    pub(super) fn new(credentials: &'static str) -> Self {
        Self { credentials, ..Self::default() }
    }

    /// One attempt to connect failed.
    pub(super) fn failed(&self, kind: ConnectErrorKind, error: &async_nats::ConnectError) {
        match kind {
            ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => self.refused(),
            _ => {
                if first(&self.away) {
                    tracing::warn!(%error, "the bus cannot be reached; trying on");
                }
            }
        }
    }

    /// One event of the connection.
    pub(super) fn hear(&self, event: Event) {
        match event {
            Event::Connected => {
                for flag in [&self.away, &self.refused, &self.denied, &self.slow] {
                    flag.store(false, Ordering::Relaxed);
                }
                tracing::info!("the bus is connected");
            }
            Event::Disconnected => {
                if first(&self.away) {
                    tracing::warn!("the connection to the bus is lost; trying on");
                }
            }
            Event::ServerError(ServerError::AuthorizationViolation) => self.refused(),
            Event::ServerError(ServerError::Other(error)) => {
                if first(&self.denied) {
                    tracing::error!(error, "the bus refuses what this runtime does");
                }
            }
            Event::ClientError(ClientError::Other(error)) if is_refusal(&error) => self.refused(),
            Event::SlowConsumer(_) | Event::ServerError(ServerError::SlowConsumer(_)) => {
                if first(&self.slow) {
                    tracing::warn!("the bus delivers faster than this process reads");
                }
            }
            Event::LameDuckMode => tracing::info!("the server of the bus is about to stop"),
            Event::Draining | Event::Closed | Event::ClientError(_) => {}
        }
    }

    fn refused(&self) {
        if first(&self.refused) {
            tracing::error!(
                credentials = self.credentials,
                "the bus refuses the credentials of this runtime; trying on"
            );
        }
    }
}

fn first(flag: &AtomicBool) -> bool {
    !flag.swap(true, Ordering::Relaxed)
}

/// A failed reconnection is told as text alone: the text of its kind.
fn is_refusal(text: &str) -> bool {
    [ConnectErrorKind::AuthorizationViolation, ConnectErrorKind::Authentication]
        .iter()
        .any(|kind| text == kind.to_string())
}
