//! Idempotency keys that were not taken before a group.

use std::collections::HashSet;

use crate::connection::{Arg, Connection, Row};
use crate::error::StoreError;
use crate::report::{Delivery, Millis};
use crate::rows::with_rows;

pub(super) const TAKE: &str = "INSERT INTO reports (runtime_id, key, received_at) SELECT column1, column2, column3 \
    FROM (VALUES ROWS) AS named WHERE column1 IS NOT NULL ON CONFLICT DO NOTHING RETURNING runtime_id, key";

/// Keys that were not taken before, each with its runtime.
#[derive(Debug, Default)]
pub(super) struct NewKeys(HashSet<(i64, [u8; 32])>);

impl NewKeys {
    /// Takes those of all deliveries.
    pub(super) async fn take(
        connection: &mut Connection,
        deliveries: &[&Delivery],
        now: Millis,
    ) -> Result<Self, StoreError> {
        let rows: Vec<_> = deliveries
            .iter()
            .map(|delivery| [Arg::Int(delivery.runtime), Arg::Bytes(&delivery.key), Arg::Int(now)])
            .collect();
        let rows = with_rows(connection, TAKE, &rows).await?;
        // They come back as they were given: 32 bytes each.
        let key = |row: &Row| Ok((row.int(0)?, row.bytes(1)?.try_into().unwrap_or_default()));
        rows.iter().map(key).collect::<Result<_, _>>().map(Self)
    }

    /// Those of deliveries of which none was taken.
    #[cfg(test)]
    pub(super) fn of(deliveries: &[Delivery]) -> Self {
        Self(deliveries.iter().map(|delivery| (delivery.runtime, delivery.key)).collect())
    }

    /// Whether that of a delivery is one of them, and no delivery before it was kept under it.
    pub(super) fn has(&self, delivery: &Delivery) -> bool {
        self.0.contains(&(delivery.runtime, delivery.key))
    }

    /// A delivery is kept under its key.
    pub(super) fn keep(&mut self, delivery: &Delivery) {
        self.0.remove(&(delivery.runtime, delivery.key));
    }

    /// What was refused may come again.
    pub(super) async fn give_back(self, connection: &mut Connection) -> Result<(), StoreError> {
        for (runtime, key) in self.0 {
            let sql = "DELETE FROM reports WHERE runtime_id = $1 AND key = $2";
            connection.execute(sql, &[Arg::Int(runtime), Arg::Bytes(&key)]).await?;
        }
        Ok(())
    }
}
