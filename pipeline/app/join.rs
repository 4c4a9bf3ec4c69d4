//! Joins the bus: connects, finds the ledger and the redaction key that the replicas share, and begins to ask for shards.

use std::sync::Arc;

use anyhow::Context as _;
use pipeline_bus::Bus;
use pipeline_bus::jetstream::{Expect, JetStream, LEDGER, PutError, connect};
use pipeline_core::{Shutdown, Timestamp};
use pipeline_engine::run::Leases;
use pipeline_ledger::{Ledger, LedgerOptions};
use pipeline_ownership::drive;
use pipeline_redact::RedactionKey;

use super::{build, bus};
use crate::config::{self, Config, Places};

/// The key of the bucket under which the replicas find the redaction key, where none is set.
pub(crate) const KEY: &str = "redaction";

/// Between questions to a bus that does not answer.
const AGAIN: std::time::Duration = std::time::Duration::from_secs(1);

/// A connection to the bus of the settings.
pub(super) struct Connected<'a> {
    settings: &'a config::Bus,
    jetstream: JetStream,
}

/// Connects to the bus. Tries until the server answers.
///
/// # Errors
/// When the settings cannot be used, or the process is stopped meanwhile.
pub(super) async fn connected<'a>(
    settings: &'a config::Bus,
    stop: &Shutdown,
) -> anyhow::Result<Connected<'a>> {
    tracing::info!("connecting to the bus");
    let connection = bus::connection(settings).await?;
    let jetstream = connect(connection, stop).await.context("connect to the bus (settings under `bus`)")?;
    Ok(Connected { settings, jetstream })
}

impl Connected<'_> {
    /// The connection.
    pub(super) fn jetstream(&self) -> JetStream {
        self.jetstream.clone()
    }

    /// Asks the bus until it does what is asked. It may go away again before all is there, and servers of a cluster that are
    /// still looking for each other refuse what they do a moment later: each reason is said once.
    async fn answer<T, E: std::error::Error + 'static>(
        &self,
        what: &'static str,
        mut ask: impl AsyncFnMut() -> Result<T, E>,
    ) -> T {
        let mut said = String::new();
        loop {
            match ask().await {
                Ok(answer) => return answer,
                Err(error) => {
                    let reason = error.to_string();
                    if reason != said {
                        let error: &dyn std::error::Error = &error;
                        tracing::warn!(what, error, "the bus does not do what is asked of it; trying on");
                        said = reason;
                    }
                    tokio::time::sleep(AGAIN).await;
                }
            }
        }
    }

    /// The ledger in the bucket, of what this receiver acknowledged; `None` where it is kept elsewhere.
    pub(super) async fn ledger(
        &self,
        config: &Config,
        acknowledged_by: &str,
    ) -> anyhow::Result<Option<Ledger>> {
        if !self.settings.bucket {
            return Ok(None);
        }
        let bucket = self.jetstream.bucket(LEDGER);
        let ensured = self.answer("make the bucket of the ledger", async || bucket.ensure().await).await;
        for difference in ensured.differences {
            tracing::warn!(%difference, "the bucket of the ledger is not as it should be");
        }
        let options = LedgerOptions::new(acknowledged_by.to_owned());
        let ledger = Ledger::in_bucket(bucket, build::engine(config).sharding, options)
            .context("open the ledger in the bucket")?;
        tracing::info!("the ledger is in the bucket of the bus");
        Ok(Some(ledger))
    }

    /// The redaction key that all replicas find in the bucket, where the settings name no file: with keys of their own each
    /// would tell other digests of the same secret. The first one makes it.
    pub(super) async fn redaction_key(&self, places: &Places) -> anyhow::Result<Option<RedactionKey>> {
        let own = places.key.is_some() && !places.make_key;
        if own || !self.settings.bucket {
            return Ok(None);
        }
        let bucket = self.jetstream.bucket(LEDGER);
        let made = RedactionKey::generate().context("make a redaction key")?;
        let put = self.answer("share the redaction key", async || {
            match bucket.put(KEY, made.as_bytes().to_vec().into(), Expect::Last(0)).await {
                // Another replica was first, or this one whose answer was lost.
                Err(PutError::Conflict) => Ok(()),
                put => put.map(drop),
            }
        });
        put.await;
        let found = self.answer("read the redaction key", async || bucket.get(KEY).await).await;
        let (key, _) = found.context("read the redaction key: it is gone")?;
        Ok(Some(RedactionKey::from_bytes(&key)))
    }

    /// The bus, and what gives this process its shards where the settings say that they come and go.
    pub(super) fn join(self, stop: &Shutdown) -> anyhow::Result<(Arc<dyn Bus>, Option<Leases>)> {
        let Self { settings, jetstream } = self;
        let leases = match &settings.leases {
            None => None,
            Some(leases) => {
                let me = bus::replica(settings)?;
                let now = u64::try_from(Timestamp::now().as_second()).unwrap_or_default();
                let (ownership, post_timeout) = (leases.ownership(now), leases.post_timeout);
                tracing::info!(replica = %me, shards = leases.shards(), "asking for shards");
                let store = jetstream.leases(leases.shards(), *leases.ttl);
                Some(Leases { driven: drive(ownership, me, store, post_timeout, stop.clone()), post_timeout })
            }
        };
        Ok((Arc::new(jetstream), leases))
    }
}
