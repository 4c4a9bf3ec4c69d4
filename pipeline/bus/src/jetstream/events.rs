//! What the connection tells, said in the log: each trouble once, until there is a connection again.

use std::sync::atomic::{AtomicBool, Ordering};

use async_nats::{ClientError, ConnectErrorKind, Event, ServerError};

/// What was said since there was a connection last.
#[derive(Debug, Default)]
pub(super) struct ConnectionLog {
    /// What the server is to this process.
    of: &'static str,
    /// Whose it is, where there are several.
    route: Option<String>,
    credentials: &'static str,
    away: AtomicBool,
    refused: AtomicBool,
    denied: AtomicBool,
    slow: AtomicBool,
}

impl ConnectionLog {
    pub(super) fn of_the_bus(credentials: &'static str) -> Self {
        Self { of: "the bus", credentials, ..Self::default() }
    }

    pub(super) fn of_route(route: &str, credentials: &'static str) -> Self {
        Self {
            of: "the NATS server of a route",
            route: Some(route.to_owned()),
            credentials,
            ..Self::default()
        }
    }

    /// Whether the credentials are refused at the moment.
    pub(super) fn is_refused(&self) -> bool {
        self.refused.load(Ordering::Relaxed)
    }

    /// One attempt to connect failed.
    pub(super) fn failed(&self, kind: ConnectErrorKind, error: &async_nats::ConnectError) {
        if super::access::is_refusal(kind) { self.refused() } else { self.away(&error.to_string()) }
    }

    /// One event of the connection.
    pub(super) fn hear(&self, event: Event) {
        let (of, route) = (self.of, self.route.as_deref());
        match event {
            Event::Connected => {
                for flag in [&self.away, &self.refused, &self.denied, &self.slow] {
                    flag.store(false, Ordering::Relaxed);
                }
                tracing::info!(route, "{of} is connected");
            }
            Event::Disconnected => {
                if first(&self.away) {
                    tracing::warn!(route, "the connection to {of} is lost; trying on");
                }
            }
            Event::ServerError(ServerError::AuthorizationViolation) => self.refused(),
            Event::ServerError(ServerError::Other(error)) => {
                if first(&self.denied) {
                    tracing::error!(route, error, "{of} refuses what this runtime does");
                }
            }
            Event::ClientError(ClientError::Other(error)) if is_refusal(&error) => self.refused(),
            // One attempt of those that the connection makes by itself.
            Event::ClientError(ClientError::Other(error)) => self.away(&error),
            Event::SlowConsumer(_) | Event::ServerError(ServerError::SlowConsumer(_)) => {
                if first(&self.slow) {
                    tracing::warn!(route, "{of} delivers faster than this process reads");
                }
            }
            Event::LameDuckMode => tracing::info!(route, "the server of {of} is about to stop"),
            Event::Draining | Event::Closed | Event::ClientError(_) => {}
        }
    }

    /// Files of the credentials hold something else, which is used from now on.
    pub(super) fn followed(&self) {
        let (of, route) = (self.of, self.route.as_deref());
        tracing::info!(route, "the credentials of {of} have changed: it is connected anew");
    }

    /// They hold something else, which cannot be used.
    pub(super) fn unusable(&self, error: &std::io::Error) {
        let (of, route) = (self.of, self.route.as_deref());
        let error = error as &dyn std::error::Error;
        tracing::warn!(route, error, "the new credentials of {of} cannot be used: the connection stays");
    }

    fn away(&self, error: &str) {
        let (of, route) = (self.of, self.route.as_deref());
        if first(&self.away) {
            tracing::warn!(route, error = %error, "{of} cannot be reached; trying on");
        }
    }

    fn refused(&self) {
        let (of, route) = (self.of, self.route.as_deref());
        if first(&self.refused) {
            let credentials = self.credentials;
            tracing::error!(route, credentials, "{of} refuses the credentials of this runtime; trying on");
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
