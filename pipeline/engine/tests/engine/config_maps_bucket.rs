//! The reporter of ConfigMaps with its ledger in a bucket of the bus.

use std::sync::Arc;

use pipeline_bus::jetstream::{JetStream, LEDGER};
use pipeline_engine::run::Config;
use pipeline_ledger::{Ledger, LedgerOptions};

use crate::on;
use crate::proofs::{follows, overflows};
use crate::running::{config, one_shard};

async fn ledger(bus: &JetStream, config: Config) -> Ledger {
    let bucket = bus.bucket(LEDGER);
    bucket.ensure().await.unwrap();
    Ledger::in_bucket(bucket, config.sharding, LedgerOptions::new("journal")).unwrap()
}

#[tokio::test]
async fn config_maps_are_reported_with_a_ledger_in_a_bucket() {
    let kept = on::server();
    let bus = kept.connect();
    let ledger = ledger(&bus, config()).await;
    follows(ledger, Arc::new(bus)).await;
    kept.end();
}

#[tokio::test]
async fn config_maps_are_reported_through_a_queue_of_ten_with_a_ledger_in_a_bucket() {
    let kept = on::server();
    let bus = kept.connect();
    let ledger = ledger(&bus, one_shard()).await;
    overflows(ledger, Arc::new(bus)).await;
    kept.end();
}
