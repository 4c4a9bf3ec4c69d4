//! What an engine is told of the bus that it works on.

use std::time::Duration;

use pipeline_bus::jetstream::JetStream;
use pipeline_ownership::Driven;

/// What connects the watch of an engine with its shards.
#[derive(Debug, Default)]
pub enum Bus {
    /// The memory of this process.
    #[default]
    Memory,
    /// NATS JetStream.
    JetStream(Joined),
}

/// An engine's part in a bus on NATS JetStream.
#[derive(Debug)]
pub struct Joined {
    /// The connection.
    pub jetstream: JetStream,
    /// Whether what was acknowledged is published too, for other readers.
    pub reports: bool,
    /// Through what this process gets its shards; `None`: it has those that its settings name, for good.
    pub leases: Option<Leases>,
}

/// Shards that come and go.
#[derive(Debug)]
pub struct Leases {
    /// What is to be done, and who is told of it.
    pub driven: Driven,
    /// How long sending one report may take.
    pub post_timeout: Duration,
}
