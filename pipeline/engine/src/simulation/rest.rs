//! How a run ends: everything comes to rest, and then it must be as it should.

use std::time::Duration;

use pipeline_core::Key;

use super::books::End;
use super::receiver::Mood;
use super::{Simulation, process};
use pipeline_core::CircuitState;

/// A run that has not come to rest after so many steps never will.
const ENDLESS: usize = 50_000;

impl Simulation {
    /// Nothing fails any more, and everything may come to rest: then it must be as it should.
    pub(super) fn rest(&mut self) -> Result<(), String> {
        self.note(|_| "nothing fails any more".to_owned());
        (self.blind, self.receiver.mood, self.receiver.failing) = (false, Mood::Well, 0);
        self.knobs.fetches_fail = 0;
        self.process.books.set_full(false);
        self.settle()?;
        // What was refused for good is tried again by a person, once the receiver takes it.
        self.receiver.poison = None;
        let parked: Vec<_> = self.parked().collect();
        for key in parked {
            self.replay(&key, false);
        }
        self.settle()?;
        if let Some(key) = self.parked().next() {
            return Err(format!("{key} is still parked"));
        }
        self.check.rest(&self.world, &self.receiver, self.dropped)?;
        let (taken, repeated) = (self.receiver.taken.len(), self.receiver.repeated);
        self.restart(End::Orderly)?;
        self.settle()?;
        let again = (self.receiver.taken.len() - taken, self.receiver.repeated - repeated);
        // What a record had no room for is reported again.
        if again == (0, 0) || self.knobs.room < usize::MAX {
            Ok(())
        } else {
            Err(format!("a restart alone sent {again:?} reports"))
        }
    }

    fn parked(&self) -> impl Iterator<Item = Key> {
        self.process.shards.iter().flat_map(|shard| shard.lane.parked()).map(|(key, _)| key.clone())
    }

    fn settle(&mut self) -> Result<(), String> {
        for _ in 0..ENDLESS {
            self.steps += 1;
            let busy = |attempts: bool| {
                self.process.shards.iter().position(|shard| {
                    if attempts { !shard.attempts.is_empty() } else { !shard.reads.is_empty() }
                })
            };
            let (attempts, reads) = (busy(true), busy(false));
            if !self.process.watch.is_done(&self.world) {
                self.watch();
            } else if let Some(place) = attempts {
                self.attempt(place)?;
            } else if let Some(place) = reads {
                self.read(place);
            } else if let Some(place) = self.unheard() {
                self.process.heard(place);
                self.process.probe(place);
            } else if let Some(due) = self.due() {
                self.tick(due.max(self.process.now));
            } else if self.process.shards.iter().all(|shard| shard.lane.is_at_rest()) {
                return Ok(());
            } else {
                return Err("a lane holds what nothing is going to happen to".to_owned());
            }
            self.look()?;
        }
        Err("never comes to rest".to_owned())
    }

    fn unheard(&self) -> Option<usize> {
        let state = self.process.circuit.state();
        self.process.shards.iter().position(|shard| shard.circuit != state)
    }

    /// When something happens next.
    fn due(&self) -> Option<Duration> {
        let until = |shard: &process::Shard| match shard.circuit {
            CircuitState::Open { until, .. } if shard.lane.has_probe() => Some(until),
            _ => None,
        };
        let shards = self.process.shards.iter();
        shards
            .flat_map(|shard| {
                shard.lane.next_deadline().into_iter().chain(shard.journal.due()).chain(until(shard))
            })
            .min()
    }
}
