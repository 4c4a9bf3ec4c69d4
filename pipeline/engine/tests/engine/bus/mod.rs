//! The bus on a real `nats-server`, started on a free port with its storage in a temporary folder.

mod access;
mod differences;
mod hostile;
mod lease_world;
mod leases;
mod ledger;
mod ledger_bucket;
mod ledger_intents;
mod ledger_lost;
mod ledger_recent;
mod ledger_world;
mod redelivery;
mod restart;
mod room;
mod round;
mod world;
