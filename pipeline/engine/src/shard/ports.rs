//! What goes into a shard and comes out of it.

use std::sync::Arc;
use std::time::Duration;

use pipeline_core::{Key, LaneCounts, Parked, Pending, Shutdown, Uid};
use tokio::sync::{mpsc, watch};

use super::Command;
use crate::lane::Backlog;
use pipeline_bus::{Acker, Delivered};
use pipeline_ownership::Fence;

/// What a shard takes and tells.
pub(crate) struct Ports {
    /// What the bus delivers.
    pub(crate) deliveries: mpsc::Receiver<Delivered>,
    pub(crate) commands: mpsc::Receiver<Command>,
    pub(crate) counts: watch::Sender<LaneCounts>,
    pub(crate) backlog: watch::Sender<Backlog>,
    /// Takes the answers to deliveries.
    pub(crate) answers: Option<Answers>,
    /// Until when reports may be sent, where that ends some time.
    pub(crate) fence: Option<Fence>,
    /// What is in flight when the shard is told to stop may finish within the grace period, or, once this is cancelled,
    /// within that time.
    pub(crate) cut: (Shutdown, Duration),
}

/// Takes the answers of shards to the bus.
#[derive(Debug, Clone)]
pub(crate) struct Answers {
    /// As many as the bus delivers unanswered at most, and so without a bound of its own.
    pub(crate) to: mpsc::UnboundedSender<BusAnswer>,
    /// How often what is held is told to be worked on.
    pub(crate) every: Duration,
}

/// An answer to messages.
#[derive(Debug)]
pub(crate) enum BusAnswer {
    /// Those of a shard are done with, as soon as the ledger is written.
    Done(u32, Vec<Arc<dyn Acker>>),
    /// They are worked on.
    Busy(Vec<Arc<dyn Acker>>),
}

/// What an earlier process left to a shard.
#[derive(Debug, Default)]
pub(crate) struct RecoveredWork {
    /// What was refused for good.
    pub(crate) parked: Vec<(Key, Parked)>,
    /// What was not reported and cannot be read again.
    pub(crate) pending: Vec<(Key, Pending)>,
    /// The watch goes on where an earlier process ended, of kinds of which the ledger says where that was.
    pub(crate) goes_on: bool,
    /// What is to be read again although no message may come of it: something of it is incomplete, or in doubt.
    pub(crate) unfinished: Vec<(Key, Uid)>,
}
