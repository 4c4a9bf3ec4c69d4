//! What of the bus a shard has not answered: each message that it took is answered once it is done with the object.
//!
//! takes: messages as they come in, and what the lane then holds of their objects - gives: those to be answered
//! calls: nothing; it is told the time - fails: never
//!
//! A message is answered when an attempt of its state or a newer one of that life has ended, or when the lane has nothing left to
//! do for the object: it was reported, filtered, or refused for good, or a later message says all that it said. Until
//! then the server keeps it, and delivers it again should this process end.

use std::collections::HashMap;
use std::time::Duration;

use pipeline_core::{Key, Uid, Version};

/// Messages that were taken and are not answered, by object. Bounded by what the bus delivers unanswered.
#[derive(Debug)]
pub(crate) struct Receipts<R> {
    held: HashMap<Key, Vec<(Uid, Version, R)>>,
    /// How often the bus is told that what is held is worked on.
    every: Duration,
    told: Duration,
}

impl<R: Clone> Receipts<R> {
    pub(crate) fn new(every: Duration) -> Self {
        Self { held: HashMap::new(), every, told: Duration::ZERO }
    }

    /// A message of `key` was taken at `now`.
    pub(crate) fn hold(&mut self, key: Key, uid: Uid, version: Version, receipt: R, now: Duration) {
        if self.held.is_empty() {
            self.told = now;
        }
        self.held.entry(key).or_default().push((uid, version, receipt));
    }

    /// Whether anything of `key` is unanswered.
    pub(crate) fn holds(&self, key: &Key) -> bool {
        self.held.contains_key(key)
    }

    /// An attempt of this state has ended for good: what showed it, or an earlier one of the same life, is to be answered.
    pub(crate) fn ended(&mut self, key: &Key, uid: &Uid, version: Version) -> Vec<R> {
        let Some(held) = self.held.get_mut(key) else { return Vec::new() };
        let done = held.extract_if(.., |(of, shown, _)| of == uid && *shown <= version);
        let done: Vec<R> = done.map(|(.., receipt)| receipt).collect();
        if held.is_empty() {
            self.held.remove(key);
        }
        done
    }

    /// Nothing is left to do for `key`: all that is held of it is to be answered.
    pub(crate) fn rests(&mut self, key: &Key) -> Vec<R> {
        let held = self.held.remove(key).unwrap_or_default();
        held.into_iter().map(|(.., receipt)| receipt).collect()
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
        self.held.values().flatten().map(|(.., receipt)| receipt.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
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
            receipts.hold(key(name), uid.into(), Version(version), receipt, SECOND);
        }
        receipts
    }

    #[test]
    fn an_attempt_answers_what_showed_its_state_or_an_earlier_one_of_that_life() {
        let mut receipts = taken();
        assert_eq!(receipts.ended(&key("a"), &"1".into(), Version(6)), [0]);
        assert_eq!(receipts.ended(&key("a"), &"1".into(), Version(6)), [0; 0], "each once");
        assert_eq!(receipts.ended(&key("c"), &"1".into(), Version(6)), [0; 0]);
        assert_eq!(receipts.ended(&key("a"), &"2".into(), Version(6)), [2]);
        assert!(receipts.holds(&key("a")));
        assert_eq!(receipts.ended(&key("a"), &"1".into(), Version(7)), [1]);
        assert!(!receipts.holds(&key("a")));
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
        receipts.hold(key("c"), "1".into(), Version(1), 9, SECOND * 9);
        assert_eq!(receipts.due(), Some(SECOND * 10), "not at once");
    }
}
