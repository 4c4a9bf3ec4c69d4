//! What of the bus a shard has not answered: each message that it took is answered once it is done with the object.
//!
//! takes: messages as they come in, and what the lane then holds of their objects - gives: those to be answered
//! calls: nothing; it is told the time - fails: never
//!
//! A message is answered when an attempt of its state or a newer one of that life has ended, or when the lane has nothing left to
//! do for the object: it was reported, filtered, or refused for good, or a later message says all that it said. Until
//! then the server keeps it, and delivers it again should this process end. One that must be told itself, which came
//! behind the state of that attempt, waits with the object, which is read again for it.

use std::collections::HashMap;
use std::time::Duration;

use pipeline_core::{Event, Key, Uid, Version};

/// Messages that were taken and are not answered, by object. Bounded by what the bus delivers unanswered.
#[derive(Debug)]
pub(crate) struct Receipts<R> {
    held: HashMap<Key, Vec<PendingMessage<R>>>,
    /// How often the bus is told that what is held is worked on.
    every: Duration,
    told: Duration,
}

/// A message that is not answered.
#[derive(Debug)]
struct PendingMessage<R> {
    uid: Uid,
    version: Version,
    /// As of [`Event::must_be_told`].
    must_be_told: bool,
    receipt: R,
}

impl<R: Clone> Receipts<R> {
    pub(crate) fn new(every: Duration) -> Self {
        Self { held: HashMap::new(), every, told: Duration::ZERO }
    }

    /// The message of `event` was taken at `now`.
    pub(crate) fn hold(&mut self, event: &Event, receipt: R, now: Duration) {
        if self.held.is_empty() {
            self.told = now;
        }
        let (uid, version, must_be_told) = (event.uid.clone(), event.version, event.must_be_told());
        let held = PendingMessage { uid, version, must_be_told, receipt };
        self.held.entry(event.key.clone()).or_default().push(held);
    }

    /// Whether anything of `key` is unanswered.
    pub(crate) fn holds(&self, key: &Key) -> bool {
        self.held.contains_key(key)
    }

    /// An attempt of this state has ended for good: what showed it, or an earlier one of the same life, is to be answered.
    /// Where the object `is_dirty` by then, it may be so for what came meanwhile and was not told.
    pub(crate) fn ended(&mut self, key: &Key, uid: &Uid, version: Version, is_dirty: bool) -> Vec<R> {
        let Some(held) = self.held.get_mut(key) else { return Vec::new() };
        let is_done = |held: &mut PendingMessage<R>| {
            held.uid == *uid && held.version <= version && !(is_dirty && held.must_be_told)
        };
        let done: Vec<R> = held.extract_if(.., is_done).map(|held| held.receipt).collect();
        if held.is_empty() {
            self.held.remove(key);
        }
        done
    }

    /// Nothing is left to do for `key`: all that is held of it is to be answered.
    pub(crate) fn rests(&mut self, key: &Key) -> Vec<R> {
        let held = self.held.remove(key).unwrap_or_default();
        held.into_iter().map(|held| held.receipt).collect()
    }

    /// When the bus is to be told next that what is held is worked on; never, while nothing is.
    pub(crate) fn due(&self) -> Option<Duration> {
        (!self.held.is_empty()).then_some(self.told + self.every)
    }

    /// All that is held, if it is time to tell that it is worked on.
    pub(crate) fn busy(&mut self, now: Duration) -> Vec<R> {
        if self.due().is_none_or(|due| due > now) {
            return Vec::new();
        }
        self.told = now;
        self.held.values().flatten().map(|held| held.receipt.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use pipeline_core::{Change, Digest, Fact, Timestamp};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn key(name: &str) -> Key {
        Key::new("ns", name).unwrap()
    }

    fn taken() -> Receipts<u32> {
        let mut receipts = Receipts::new(SECOND);
        for (name, uid, version, receipt) in
            [("a", "1", 5, 0), ("a", "1", 7, 1), ("a", "2", 6, 2), ("b", "1", 1, 3)]
        {
            receipts.hold(&event(name, uid, version), receipt, SECOND);
        }
        receipts
    }

    fn event(name: &str, uid: &str, version: u64) -> Event {
        let change = Change::Applied { body: Bytes::new() };
        Event::watched(key(name), uid.into(), Version(version), change, Timestamp::UNIX_EPOCH)
    }

    fn ended(receipts: &mut Receipts<u32>, name: &str, uid: &str, version: u64) -> Vec<u32> {
        receipts.ended(&key(name), &uid.into(), Version(version), false)
    }

    #[test]
    fn an_attempt_answers_what_showed_its_state_or_an_earlier_one_of_that_life() {
        let mut receipts = taken();
        assert_eq!(ended(&mut receipts, "a", "1", 6), [0]);
        assert_eq!(ended(&mut receipts, "a", "1", 6), [0; 0], "each once");
        assert_eq!(ended(&mut receipts, "c", "1", 6), [0; 0]);
        assert_eq!(ended(&mut receipts, "a", "2", 6), [2]);
        assert!(receipts.holds(&key("a")));
        assert_eq!(ended(&mut receipts, "a", "1", 7), [1]);
        assert!(!receipts.holds(&key("a")));
    }

    #[test]
    fn a_fact_that_came_behind_the_state_of_an_attempt_is_not_answered_before_it_is_told() {
        let fact = || Fact { id: Digest(1), body: Bytes::new() };
        let gone = Change::Deleted { body: None };
        let mut receipts = Receipts::new(SECOND);
        for (receipt, event) in [
            event("a", "1", 8),
            Event { fact: Some(fact()), ..event("a", "1", 8) },
            Event { coalesced: vec![fact()], ..event("a", "1", 9) },
            Event { change: gone, ..event("a", "1", 9) },
        ]
        .iter()
        .enumerate()
        {
            receipts.hold(event, receipt, SECOND);
        }
        // The object is read again, for the facts.
        assert_eq!(receipts.ended(&key("a"), &"1".into(), Version(10), true), [0]);
        assert_eq!(receipts.ended(&key("a"), &"1".into(), Version(10), false), [1, 2, 3]);
    }

    #[test]
    fn a_key_at_rest_answers_everything_of_it() {
        let mut receipts = taken();
        assert_eq!(receipts.rests(&key("a")), [0, 1, 2]);
        assert_eq!(receipts.rests(&key("a")), [0; 0]);
        assert!(receipts.holds(&key("b")));
    }

    #[test]
    fn what_is_held_long_is_told_to_be_worked_on() {
        let mut receipts = taken();
        assert_eq!(receipts.due(), Some(SECOND * 2));
        assert_eq!(receipts.busy(SECOND), [0; 0]);
        assert_eq!(receipts.busy(SECOND * 2).len(), 4);
        assert_eq!((receipts.busy(SECOND * 2), receipts.due()), (Vec::new(), Some(SECOND * 3)));
        receipts.rests(&key("a"));
        receipts.rests(&key("b"));
        assert_eq!(receipts.due(), None);
        receipts.hold(&event("c", "1", 1), 9, SECOND * 9);
        assert_eq!(receipts.due(), Some(SECOND * 10), "not at once");
    }
}
