//! Follows what a reporter publishes on the bus, so that the API server is watched once for both; and watches by itself for as long
//! as there is no reporter to follow.
//!
//! takes: the watch, and the bus where the reporter publishes - gives: what the watch would - calls: the API server, for lists and
//! reads; the bus - fails: never; what cannot be followed is watched
//!
//! Nothing is missed, since whoever begins to follow lists afterwards: what was published before is no newer than the list, and
//! what is published later is delivered. Where something may have been missed (the stream or the durable are gone, an object cannot
//! be read, the reporter has been away), the watch begins anew, and again with a list.

mod tries;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use pipeline_bus::jetstream::{Following, JetStream};
use pipeline_bus::{BusError, Delivered, Message};
use pipeline_core::{
    Change, Emitter, Event, Key, ObjectIndex, Shutdown, Source, SourceNote, StageError, Survey, Version,
    async_trait,
};
use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use self::tries::Tries;
use super::{PIPELINE, ROUTE};

/// How often it is looked whether a reporter publishes.
const LOOK: Duration = Duration::from_secs(2);
/// After so many looks that found none, there is none. One whose queues are full asks for nothing for a moment.
const LOOKS: u32 = 5;

/// A watch that rests while its objects are published by a reporter.
pub(super) struct Follower<W> {
    pub(super) watch: W,
    /// What the watch, and what is followed, have shown last.
    pub(super) seen: ObjectIndex,
    /// Where the reporter publishes.
    pub(super) bus: JetStream,
    /// The group that this process is one of there.
    pub(super) group: String,
    /// The shards of the reporter: while each is consumed, all is published.
    pub(super) shards: u32,
}

#[async_trait]
impl<W: Survey> Source for Follower<W> {
    fn name(&self) -> &'static str {
        self.watch.name()
    }

    async fn run(&self, out: Emitter, stop: Shutdown) -> Result<(), StageError> {
        let mut tries = Tries::default();
        // A reporter that is there already is followed from the start.
        let mut begun = self.try_to_follow(&stop, &mut tries).await;
        while !stop.is_cancelled() {
            let mut following = match begun.take() {
                Some(following) => following,
                None => {
                    tracing::info!("the API server is watched: no reporter is followed");
                    // Wherever the watch waits it may be dropped: a list follows.
                    tokio::select! {
                        ended = self.watch.run(out.clone(), stop.clone()) => return ended,
                        following = self.until_followed(&stop, &mut tries) => following,
                    }
                }
            };
            let since = Instant::now();
            let work = Box::pin(self.follow(&out, &stop, &mut following));
            let lost = stop.run_until_cancelled(work).await;
            following.end().await;
            let Some(Err(lost)) = lost else { break };
            tries.ended(since.elapsed());
            let error: &dyn std::error::Error = lost.as_ref();
            tracing::warn!(error, "the reporter is not followed any more");
        }
        Ok(())
    }

    async fn read(&self, key: &Key, not_older_than: Version) -> Result<Option<Event>, StageError> {
        self.watch.read(key, not_older_than).await
    }

    fn delivered(&self, event: &Event) {
        self.watch.delivered(event);
    }

    fn as_survey(&self) -> Option<&dyn Survey> {
        self.watch.as_survey()
    }
}

impl<W: Survey> Follower<W> {
    /// Whether a reporter takes what it publishes.
    async fn is_published(&self) -> Result<bool, BusError> {
        self.bus.are_consumed(ROUTE, PIPELINE, self.shards).await
    }

    async fn until_followed(&self, stop: &Shutdown, tries: &mut Tries) -> Following {
        loop {
            sleep(tries.pause(fastrand::u64(..))).await;
            if let Some(following) = self.try_to_follow(stop, tries).await {
                return following;
            }
        }
    }

    /// Begins to follow a reporter that is there.
    async fn try_to_follow(&self, stop: &Shutdown, tries: &mut Tries) -> Option<Following> {
        let begun = match self.is_published().await {
            Ok(false) => {
                tries.found_nobody();
                return None;
            }
            Ok(true) => self.bus.follow(&self.group, PIPELINE, stop.clone()).await,
            Err(error) => Err(error),
        };
        match begun {
            Ok(following) => {
                tries.begin();
                Some(following)
            }
            Err(error) => {
                tries.refused(&error);
                None
            }
        }
    }

    /// Lists once, and takes what is published since `following` was begun, until nobody takes events any more.
    ///
    /// # Errors
    /// Where something may have been missed.
    async fn follow(&self, out: &Emitter, stop: &Shutdown, following: &mut Following) -> anyhow::Result<()> {
        let listed = Arc::new(Notify::new());
        let (told, notes) = (listed.clone(), out.clone());
        let listing = out.clone().progressing(None).noting(move |note| {
            notes.note(note);
            if matches!(note, SourceNote::Listed { .. }) {
                told.notify_one();
            }
        });
        tokio::select! {
            // It ends with the process alone.
            _ = self.watch.run(listing, stop.clone()) => return Ok(()),
            () = listed.notified() => {}
        }
        tracing::info!("the reporter is followed: the API server is not watched");
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut missed = 0;
        loop {
            tokio::select! {
                next = following.next() => {
                    let next = next.context("take what the reporter publishes")?;
                    let Some(all) = next else { return Ok(()) };
                    for delivered in all {
                        if !self.take(out, delivered).await? {
                            return Ok(());
                        }
                    }
                }
                _ = look.tick() => {
                    missed = if self.is_published().await.unwrap_or(false) { 0 } else { missed + 1 };
                    anyhow::ensure!(missed < LOOKS, "no reporter consumes each of its shards");
                    out.note(SourceNote::Alive);
                }
            }
        }
    }

    /// Hands over what was published; `false` when nobody takes it any more. It is acknowledged once it was taken: whoever ends after
    /// that lists when it begins anew.
    async fn take(&self, out: &Emitter, delivered: Delivered) -> anyhow::Result<bool> {
        // What cannot be read is kept aside; where it names an object, that comes as one to be read again.
        let Delivered::Message { message, again, acker } = delivered else { return Ok(true) };
        if out.wants(&message.key) && self.watch.watches(&message.key) {
            let event =
                self.event(*message, again).await.context("read an object that the reporter published")?;
            self.watch.delivered(&event);
            if !out.emit(event).await {
                return Ok(false);
            }
        }
        if let Some(acker) = acker {
            // One that is lost brings it again.
            let _ = acker.ack().await;
        }
        Ok(true)
    }

    /// What a message says. A state is read where a newer one, or the end of this life, may have been shown before: by a list, or
    /// since it was delivered before. An end is one whenever it comes.
    async fn event(&self, message: Message, again: bool) -> Result<Event, StageError> {
        let Message { key, uid, version, observed, trace, .. } = &message;
        let is_newest = self.seen.get(key).is_some_and(|(life, newest)| life == *uid && newest <= *version);
        let change = Change::Deleted { body: None };
        let gone = Event::watched(key.clone(), uid.clone(), *version, change, *observed);
        let gone = Event { trace: *trace, ..gone };
        match message.into_event() {
            Ok(event) if event.is_deleted() || (is_newest && !again) => Ok(event),
            _ => Ok(self.watch.read(&gone.key, gone.version).await?.unwrap_or(gone)),
        }
    }
}

#[cfg(test)]
mod tests;
