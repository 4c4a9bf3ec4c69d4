//! Moves a ledger from a file into a bucket.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use futures::future::ready;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};

use super::super::error::LedgerError;
use super::super::tables::Table;
use super::row::{self, Claim, FORMAT, Names, Place};
use super::{BucketOptions, Copied};
use crate::Ledger;
use pipeline_bus::jetstream::{Bucket, Entry, Expect};

/// Within this time all that stands in the bucket must have been read.
const PATIENCE: Duration = Duration::from_secs(120);

/// Rows that may be unanswered at a time.
const WINDOW: usize = 128;

/// The epoch of a shard that nobody owned yet.
const NOBODY: u64 = 0;

impl Ledger {
    /// Copies this ledger, an open file, into `bucket`, which is made if it is absent: the rows of each shard, then its
    /// claim, with this ledger's id, so that whoever claims it goes on under the same idempotency keys. Nothing is reported
    /// from this ledger meanwhile, nor afterwards. It may be called again when it was interrupted; until then a shard that
    /// is claimed without having been copied is reported as a whole.
    ///
    /// # Errors
    /// [`LedgerError::Taken`] when a shard of the sink was claimed by somebody, before anything was written;
    /// [`LedgerError::Bus`] when the bus is away or somebody claims a shard meanwhile.
    pub async fn copy_to(&self, bucket: &Bucket, options: &BucketOptions) -> Result<Copied, LedgerError> {
        let names = Names::new(&options.sink).map_err(|error| LedgerError::bus("name")(error.into()))?;
        bucket.ensure().await.map_err(LedgerError::bus("make"))?;
        let there = bucket.load(&names.all(), None, PATIENCE).await.map_err(LedgerError::bus("read"))?;
        self.check(&names, &there)?;
        let mut claims = HashMap::new();
        for shard in 0..options.sharding.shards().get() {
            // Also of one that was removed.
            let (_, sequence) = bucket.last(&names.claim(shard)).await.map_err(LedgerError::bus("read"))?;
            claims.insert(shard, sequence);
        }
        let sequence = |shard: u32| claims.get(&shard).copied().unwrap_or_default();
        let rows = {
            let state = self.inner.shared.lock();
            state.image(state.tables.slots())
        };
        let failed = |source| LedgerError::Bus { act: "copy", source: Box::new(source) };

        let mut copied = Copied { shards: options.sharding.shards().get(), ..Copied::default() };
        let mut writes: HashMap<String, (u32, Option<Bytes>)> = HashMap::new();
        // What an interrupted copy left and the file does not hold any more.
        for Entry { key, .. } in there {
            if let Some((shard, _)) = names.parse(&key).filter(|(_, place)| *place != Place::Claim) {
                writes.insert(key, (shard, None));
            }
        }
        for (slot, bytes) in rows {
            let Some(bytes) = bytes else { continue };
            let shard = options.sharding.place(&slot.1);
            writes
                .insert(names.row(shard, &slot), (shard, Some(row::fitting(&slot, &bytes, bucket.room()).0)));
            match slot.0 {
                Table::Records => copied.records += 1,
                Table::Journal => copied.journal += 1,
                Table::Parked => copied.parked += 1,
            }
        }
        let written = writes.into_iter().map(async |(key, (shard, value))| {
            let expect = Expect::Other { key: &names.claim(shard), sequence: sequence(shard) };
            match value {
                Some(value) => bucket.put(&key, value, expect).await,
                None => bucket.remove(&key, expect).await,
            }
        });
        let written = stream::iter(written).buffer_unordered(WINDOW);
        written.try_for_each(|_| ready(Ok(()))).await.map_err(failed)?;
        let (ledger, sharding) = (Some(self.id().to_owned()), options.sharding.to_string());
        let claim = Claim { format: FORMAT, epoch: NOBODY, ledger, sharding };
        for shard in 0..copied.shards {
            let expect = Expect::Last(sequence(shard));
            bucket.put(&names.claim(shard), claim.bytes(), expect).await.map_err(failed)?;
        }
        Ok(copied)
    }

    /// Whether there are no claims but those that an interrupted copy of this ledger left.
    fn check(&self, names: &Names, there: &[Entry]) -> Result<(), LedgerError> {
        for Entry { key, value, .. } in there {
            let Some((shard, Place::Claim)) = names.parse(key) else { continue };
            match Claim::read(value) {
                Some(claim) if claim.epoch == NOBODY && claim.ledger.as_deref() == Some(self.id()) => {}
                _ => return Err(LedgerError::Taken { shard }),
            }
        }
        Ok(())
    }
}
