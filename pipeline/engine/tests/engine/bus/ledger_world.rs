//! What the tests of the ledger in a bucket share.

use std::num::NonZeroU32;
use std::time::Duration;

use pipeline_bus::jetstream::{Bucket, LEDGER};
use pipeline_core::{Checkpoint, Digest, EntityId, Key, Record, Report, ReportKind, Version};
use pipeline_ledger::{Claimed, Ledger, LedgerOptions};
use pipeline_ownership::sharding::Sharding;

use crate::bus::world::{config, connected, soon};
use crate::server::Server;

const OBJECT: ReportKind = ReportKind::of_object("object");

pub(crate) const UID: &str = "01234567-89ab-cdef-0123-456789abcdef";

pub(crate) const SHARDS: u32 = 4;

pub(crate) fn sharding() -> Sharding {
    Sharding::Jump { shards: NonZeroU32::new(SHARDS).unwrap() }
}

/// Groups that only a flush, a full group or a release ends.
pub(crate) fn slow() -> LedgerOptions {
    LedgerOptions {
        group_time: Duration::from_secs(600),
        retry: Duration::from_millis(50),
        ..LedgerOptions::new("platform")
    }
}

/// A bucket over a connection of its own.
pub(crate) async fn bucket(server: &Server) -> Bucket {
    connected(config(server)).await.bucket(LEDGER)
}

/// A replica's ledger, over a connection of its own.
pub(crate) async fn replica(server: &Server) -> Ledger {
    with(server, slow()).await
}

pub(crate) async fn with(server: &Server, options: LedgerOptions) -> Ledger {
    Ledger::in_bucket(bucket(server).await, sharding(), options).unwrap()
}

pub(crate) async fn claim(ledger: &Ledger, shard: u32, epoch: u64) -> Claimed {
    soon("a claim", ledger.claim(shard, epoch)).await.unwrap()
}

/// The n-th key of a shard.
pub(crate) fn key(shard: u32, n: usize) -> Key {
    let keys = (0..).map(|n| Key::new("ns", &format!("app-{n}")).unwrap());
    keys.filter(|key| sharding().place(key) == shard).nth(n).unwrap()
}

pub(crate) fn counted(n: u64) -> Record {
    let mut record = Record::new(UID.into());
    record.object_mut().counter = n;
    record
}

pub(crate) fn report(key: &Key, content: u64) -> Report {
    let (entity, content) = (EntityId::OBJECT, Digest(content));
    let report = Report::new(key.clone(), UID.into(), Version(1), entity, OBJECT, content);
    Report { decision: Digest(content.0 + 1), ..report }
}

pub(crate) fn settle() -> Checkpoint {
    Checkpoint::new(UID.into(), Version(9), "state".into())
}

/// Reports an object as the engine does: sent, acknowledged, settled.
pub(crate) async fn reported(ledger: &Ledger, key: &Key, content: u64) {
    let report = report(key, content);
    assert!(soon("a note", ledger.sending(key, &report, None)).await, "it may go");
    ledger.acknowledge(key, &report);
    ledger.checkpoint(key, &settle(), &[]);
}

pub(crate) async fn flushed(ledger: &Ledger) {
    soon("a flush", ledger.flush()).await.unwrap();
}

/// Keys that stand in the bucket.
pub(crate) async fn keys(bucket: &Bucket, filter: &str) -> Vec<String> {
    let entries = bucket.load(&[filter.to_owned()], None, crate::bus::world::DEADLINE).await.unwrap();
    let mut keys: Vec<String> = entries.into_iter().map(|entry| entry.key).collect();
    keys.sort();
    keys
}

/// Waits until a condition holds.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    soon(what, wait).await;
}
