//! Connects, and stays connected.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use async_nats::Client;
use pipeline_core::Shutdown;
use tokio::sync::{Mutex, Semaphore, watch};
use tokio_util::task::AbortOnDropHandle;

use super::access::{Files, is_refusal};
use super::events::ConnectionLog;
use super::publish::{ROOM_KIB, context};
use super::{Config, ConfigError, Inner, JetStream, servers};
use crate::{Prefix, PrefixError};

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
    let access = &config.access;
    let servers = servers(&access.urls)?;
    let said = Arc::new(ConnectionLog::of_the_bus(access.credentials.kind()));
    let files = Files::of(access).await.map_err(ConnectError::Credentials)?;
    let client = tokio::select! {
        client = access.connect(&servers, &said, |_| {}) => client,
        () = stop.cancelled() => return Err(ConnectError::Stopped),
    };
    Ok(open(client, config, prefix, (files, said)))
}

/// Tries each server once, for a person who waits; once connected reconnects for ever.
///
/// # Errors
/// [`ConnectError`].
pub async fn connect_once(config: Config) -> Result<JetStream, ConnectError> {
    config.check()?;
    let prefix = Prefix::new(&config.prefix).map_err(ConfigError::from)?;
    let access = &config.access;
    let kind = access.credentials.kind();
    let said = Arc::new(ConnectionLog::of_the_bus(kind));
    let files = Files::of(access).await.map_err(ConnectError::Credentials)?;
    let connected = access.connect_once(&servers(&access.urls)?, &said, |_| {}).await;
    let client = connected.map_err(|error| match is_refusal(error.kind()) {
        true => ConnectError::Refused(kind),
        false => ConnectError::Away(error),
    })?;
    Ok(open(client, config, prefix, (files, said)))
}

fn open(
    client: Client,
    config: Config,
    prefix: Prefix,
    (files, said): (Files, Arc<ConnectionLog>),
) -> JetStream {
    let following = files.followed(client.clone(), config.access.clone(), said, || {});
    over(client, config, prefix, following)
}

fn over(
    client: Client,
    config: Config,
    prefix: Prefix,
    following: Option<AbortOnDropHandle<()>>,
) -> JetStream {
    let context = context(&client, config.access.timeout);
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
            reached: super::reached::Reached::default(),
            life: AtomicU64::new(0),
            _following: following,
        }),
    }
}

impl JetStream {
    /// What stands under another prefix, by the same connection: files that say who asks are followed for as long as this one lives.
    ///
    /// # Errors
    /// [`PrefixError`], when it cannot be one.
    pub fn beside(&self, prefix: &str) -> Result<Self, PrefixError> {
        let Inner { client, config, .. } = &*self.inner;
        let config = Config { prefix: prefix.to_owned(), ..config.clone() };
        Ok(over(client.clone(), config, Prefix::new(prefix)?, None))
    }
}
