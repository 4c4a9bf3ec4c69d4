//! What every bus does, whatever it is made of.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use pipeline_core::{Requests, Shutdown};
use tokio::sync::{mpsc, watch};

use crate::{BusError, DecodeError, Durable, Keep, Message, Published};

/// Learns what became of a publish. Dropped, the message still travels, and nobody learns it.
pub type Publishing = BoxFuture<'static, Result<Published, BusError>>;

/// Connects those who watch with those who work on what is watched.
#[async_trait]
pub trait Bus: Requests {
    /// Whether what is published is taken at once, by those who subscribed, and for certain: nothing is refused, replaced or
    /// lost on the way, and nothing is kept for those who come later.
    fn is_lossless(&self) -> bool;

    /// Makes whatever `durables` need, trying until it is there: to be awaited before the first publish, with the durables of
    /// everybody who is to see what is published.
    async fn ready(&self, durables: Vec<Durable>);

    /// How often everything was made anew, because it was lost, or lost its end: whoever watches then lists and publishes everything again.
    fn made(&self) -> watch::Receiver<u64>;

    /// A publish found something gone when [`Bus::made`] was `seen`: it is made anew, unless it was meanwhile.
    async fn make_anew(&self, _seen: u64) {}

    /// Looks whether something is gone, or was made anew by another process, which hears of it alone: then it was made anew
    /// for this one too.
    async fn look(&self) {}

    /// Whether there is a connection at this moment.
    fn is_connected(&self) -> bool {
        true
    }

    /// Publishes a message of `source` for a shard. Messages arrive in the order in which this returned; waits while too much
    /// is unanswered, so that whoever keeps many [`Publishing`]s and awaits none of them waits for ever.
    ///
    /// # Errors
    /// [`BusError`]: nothing was published.
    async fn publish(
        &self,
        source: &str,
        shard: u32,
        message: Message,
        keep: Keep,
    ) -> Result<Publishing, BusError>;

    /// Makes room for newer reports by discarding the oldest; returns how many went, `None` where there are none.
    ///
    /// # Errors
    /// [`BusError`].
    async fn discard_reports(&self) -> Result<Option<u64>, BusError> {
        Ok(None)
    }

    /// Delivers what is published of one shard of a source to one of a group, into `out`, until `stop`: from this call on,
    /// and for as long as what it returns is awaited. Each group sees everything, whatever the others do.
    fn subscribe(&self, of: Durable, out: mpsc::Sender<Delivered>, stop: Shutdown) -> BoxFuture<'static, ()>;

    /// Says in which epoch this process publishes from now on: those who work on it can tell what a former publisher sent late.
    fn publishes_in(&self, _epoch: u64) {}

    /// The highest epoch of a publisher that is known of.
    fn knows_epoch(&self, _epoch: u64) {}

    /// After how long without a word what was delivered is delivered again, where it ever is.
    fn ack_wait(&self) -> Option<Duration> {
        None
    }

    /// Waits until acknowledgements that were given are on their way, for the end of a process.
    ///
    /// # Errors
    /// [`BusError`], after `patience`.
    async fn flush(&self, _patience: Duration) -> Result<(), BusError> {
        Ok(())
    }
}

/// What a bus brings.
#[derive(Debug)]
pub enum Delivered {
    /// A message.
    Message {
        /// What it says.
        message: Box<Message>,
        /// It may be older than what came before, or lack its body: the object is to be read again.
        again: bool,
        /// Takes the answer; `None` where nobody asks for one.
        acker: Option<Arc<dyn Acker>>,
    },
    /// Something that is no message, which was kept aside.
    Unreadable {
        /// Where it stood.
        sequence: u64,
        /// Why it cannot be read.
        why: DecodeError,
    },
}

/// Answers for one delivery. Dropped, it is delivered again.
#[async_trait]
pub trait Acker: Send + Sync + std::fmt::Debug {
    /// It is done with.
    ///
    /// # Errors
    /// [`BusError::Away`]: it is delivered again.
    async fn ack(&self) -> Result<(), BusError>;

    /// It is being worked on: the time until it is delivered again begins anew.
    ///
    /// # Errors
    /// As [`Acker::ack`].
    async fn progress(&self) -> Result<(), BusError>;
}
