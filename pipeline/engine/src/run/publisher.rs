//! Publishes what the watch shows.
//!
//! takes: events - gives: messages on the stream, each object's in order
//! calls: the server, and the source for what it did not take - fails: never; what the bus refuses, or does not answer for,
//! leaves its object unpublished: it is read and published again

use std::collections::HashMap;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use pipeline_core::{Change, Digest, Event, Key, Shutdown, StageError, Timestamp, Uid, Version};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::feed::Feed;
use super::unpublished::Unpublished;
use pipeline_bus::{BusError, Keep, Message, Published};
use pipeline_observe::metrics::BusSeries;

/// Messages on their way.
const FLYING: usize = 128;
/// Between looks at what is unpublished.
const LOOK: Duration = Duration::from_millis(500);
/// Reads at a time of what is unpublished.
const READS: usize = 16;
/// At the end, answers are awaited so long.
const LAST: Duration = Duration::from_secs(2);

/// What became of one publish, with the event as far as it is needed to try again.
type Flown = (Event, Result<Published, BusError>, u64);
/// What became of one read, with its number.
type Looked = (Key, u64, Result<Option<Event>, StageError>);

pub(super) struct Publisher {
    feed: Feed,
    made: watch::Receiver<u64>,
    metrics: BusSeries,
    /// The fact that was published last of each incarnation, since the bus was made anew: later states show it as well, and
    /// coalesce.
    told: HashMap<Uid, Digest>,
    unpublished: Unpublished,
    flying: FuturesUnordered<BoxFuture<'static, Flown>>,
    reading: FuturesUnordered<BoxFuture<'static, Looked>>,
    away: bool,
    /// Facts given up while the bus took nothing.
    given_up: usize,
}

impl Publisher {
    pub(super) fn new(feed: Feed, metrics: BusSeries) -> Self {
        Self {
            made: feed.bus.made(),
            feed,
            metrics,
            told: HashMap::new(),
            unpublished: Unpublished::default(),
            flying: FuturesUnordered::new(),
            reading: FuturesUnordered::new(),
            away: false,
            given_up: 0,
        }
    }

    /// Publishes until `stop`. What is unpublished is given up when another process `watches`: it lists everything.
    pub(super) async fn run(
        mut self,
        mut events: mpsc::Receiver<Event>,
        watches: watch::Receiver<bool>,
        stop: Shutdown,
    ) {
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                Some(flown) = self.flying.next() => self.flown(flown).await,
                Some((key, read, looked)) = self.reading.next() => match looked {
                    Ok(found) => {
                        for event in self.unpublished.read(&key, read, found, Timestamp::now()) {
                            self.publish(event).await;
                        }
                    }
                    Err(error) => {
                        let error: &dyn std::error::Error = &error;
                        tracing::debug!(%key, error, "cannot read an object to publish it again");
                        self.unpublished.not_read(&key, read, Instant::now(), fastrand::u64(..));
                    }
                },
                event = events.recv(), if self.flying.len() < FLYING => match event {
                    Some(event) => {
                        for event in self.unpublished.overtaken(event) {
                            self.publish(event).await;
                        }
                    }
                    None => break,
                },
                _ = look.tick() => {
                    if !*watches.borrow() {
                        self.unpublished = Unpublished::default();
                        self.reading.clear();
                        self.told.clear();
                    }
                    self.look().await;
                }
            }
        }
        // What is not answered by then is listed by whoever watches next.
        let last = async { while self.flying.next().await.is_some() {} };
        let _ = timeout(LAST, last).await;
    }

    /// Takes up some of what is unpublished, if the server may take it.
    async fn look(&mut self) {
        self.metrics.unpublished(self.unpublished.len());
        if self.unpublished.len() == 0 || !self.feed.bus.is_connected() {
            return;
        }
        // Reads may all be under way, or fail: a deletion needs none.
        for event in self.unpublished.deletions(FLYING.saturating_sub(self.flying.len())) {
            self.publish(event).await;
        }
        for (key, read) in self.unpublished.reads(READS.saturating_sub(self.reading.len()), Instant::now()) {
            let source = self.feed.source.clone();
            self.reading.push(Box::pin(async move {
                let found = source.read(&key, Version(0)).await;
                (key, read, found)
            }));
        }
    }

    /// Sends one event. While it waits for room, what was sent before is attended to.
    async fn publish(&mut self, event: Event) {
        if self.made.has_changed().unwrap_or_default() {
            self.told.clear();
        }
        let made = *self.made.borrow_and_update();
        let message = Message::of(event.clone());
        let keep = Keep::of(&message, self.told.get(&event.uid).copied());
        let shard = self.feed.sharding.place(&event.key);
        let event = slim(event);
        let (feed, mut earlier) = (self.feed.clone(), Vec::new());
        let sent = {
            let mut sending = feed.bus.publish(&feed.name, shard, message, keep);
            loop {
                tokio::select! {
                    sent = sending.as_mut() => break sent,
                    Some(flown) = self.flying.next() => earlier.push(flown),
                }
            }
        };
        match sent {
            Ok(sent) => self.flying.push(Box::pin(async move { (event, sent.await, made) })),
            Err(error) => earlier.push((event, Err(error), made)),
        }
        for flown in earlier {
            self.flown(flown).await;
        }
    }

    async fn flown(&mut self, (event, published, made): Flown) {
        let error = match published {
            Ok(Published::Stored { .. } | Published::Duplicate) => {
                self.metrics.published();
                match &event.fact {
                    _ if event.is_deleted() => drop(self.told.remove(&event.uid)),
                    Some(fact) if made == *self.made.borrow() => {
                        self.told.insert(event.uid.clone(), fact.id);
                    }
                    Some(_) | None => {}
                }
                if std::mem::take(&mut self.away) {
                    tracing::info!("the bus takes events again");
                }
                let facts = std::mem::take(&mut self.given_up);
                if facts > 0 {
                    tracing::warn!(
                        facts,
                        "more happened while the bus took nothing than is kept: facts were given up"
                    );
                }
                return;
            }
            Ok(Published::Refused(why)) => {
                if !std::mem::replace(&mut self.away, true) {
                    tracing::warn!(
                        why = why.as_str(),
                        "the bus has no room: what it does not take is read and published again"
                    );
                }
                None
            }
            Err(error) => Some(error),
        };
        self.metrics.refused();
        self.told.remove(&event.uid);
        self.given_up += self.unpublished.mark(event);
        let Some(error) = error else { return };
        if matches!(error, BusError::Gone { .. }) {
            self.feed.bus.make_anew(made).await;
        } else if !std::mem::replace(&mut self.away, true) {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(error, "the bus does not take events: they are read and published again");
        }
    }
}

/// What is needed of an event whose object is unpublished.
fn slim(mut event: Event) -> Event {
    event.change = match event.change {
        Change::Applied { .. } => Change::Applied { body: bytes::Bytes::new() },
        Change::Deleted { .. } => Change::Deleted { body: None },
    };
    event
}

#[cfg(test)]
mod tests;
