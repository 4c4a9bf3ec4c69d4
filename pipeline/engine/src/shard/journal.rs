//! What of a shard must outlive the process, beside what was acknowledged: facts and deletions that were
//! not reported yet, and what was refused for good.
//!
//! takes: keys that something happened to, and what the lane then holds of them - gives: what is to be written
//! calls: nothing; it is told the time - fails: never
//!
//! A key is looked at a while after something first happened to it, so that what is reported within that time is
//! never written. What was written is corrected at once, so that a restart has little to repeat. What could not be
//! written for want of room is offered again.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use pipeline_core::{Key, Pending};

/// What found no room is offered again after this long.
const AGAIN: Duration = Duration::from_secs(1);
/// Between two offers of what found no room, however much it is.
const APART: Duration = Duration::from_millis(4);
/// Room for so many keys is kept, however few are busy.
const SPARE: usize = 128;

/// Knows what was written, and what has to be looked at.
#[derive(Debug)]
pub(crate) struct Journal {
    every: Duration,
    /// Keys to be looked at, and when; each once. Bounded by the objects that something happens to within
    /// `every`.
    line: VecDeque<(Duration, Key)>,
    /// Keys of which something found no room, and when it is offered again; each in one line alone.
    again: VecDeque<(Duration, Key)>,
    in_line: HashSet<Key>,
    /// What is written of each key, in short.
    written: HashMap<Key, u64>,
    /// Keys that are written as refused for good.
    parked: HashSet<Key>,
}

impl Journal {
    pub(crate) fn new(every: Duration) -> Self {
        Self {
            every,
            line: VecDeque::new(),
            again: VecDeque::new(),
            in_line: HashSet::new(),
            written: HashMap::new(),
            parked: HashSet::new(),
        }
    }

    /// Notes what an earlier process wrote of `key`.
    pub(crate) fn restored(&mut self, key: &Key, pending: &Pending) {
        self.written.insert(key.clone(), short(pending));
    }

    /// Something happened to `key`. Returns whether it is to be looked at now: something of it is written.
    pub(crate) fn touched(&mut self, key: &Key, now: Duration) -> bool {
        if self.written.contains_key(key) {
            return true;
        }
        if self.in_line.insert(key.clone()) {
            self.line.push_back((now + self.every, key.clone()));
        }
        false
    }

    /// Whether something of `key` is written, or it is to be looked at some time.
    pub(crate) fn knows(&self, key: &Key) -> bool {
        self.written.contains_key(key) || self.in_line.contains(key)
    }

    /// When a key is to be looked at next.
    pub(crate) fn due(&self) -> Option<Duration> {
        let first = [self.line.front(), self.again.front()];
        first.into_iter().flatten().map(|(at, _)| *at).min()
    }

    /// The next key that is to be looked at by `now`.
    pub(crate) fn next(&mut self, now: Duration) -> Option<Key> {
        let due = |(at, _): &mut (Duration, Key)| *at <= now;
        let (_, key) = self.line.pop_front_if(due).or_else(|| self.again.pop_front_if(due))?;
        self.in_line.remove(&key);
        if self.in_line.is_empty() {
            // After a burst of all objects few are busy.
            self.line.shrink_to(SPARE);
            self.in_line.shrink_to(SPARE);
            self.written.shrink_to(SPARE);
        }
        Some(key)
    }

    /// Every key that is to be looked at some time.
    pub(crate) fn all(&mut self) -> Vec<Key> {
        self.in_line.clear();
        let all = self.line.drain(..).chain(self.again.drain(..));
        all.map(|(_, key)| key).collect()
    }

    /// Compares what the lane holds of `key` with what is written, and has it written if that differs. `write` answers
    /// whether there was room; if not, what was written before stays, and it is offered again later.
    pub(crate) fn look(
        &mut self,
        key: &Key,
        pending: Option<Pending>,
        now: Duration,
        write: impl FnOnce(Option<Pending>) -> bool,
    ) {
        let held = pending.as_ref().map(short);
        if self.written.get(key).copied() == held {
            return;
        }
        if !write(pending) {
            if self.in_line.insert(key.clone()) {
                let last = self.again.back().map_or(Duration::ZERO, |(at, _)| *at);
                self.again.push_back(((now + AGAIN).max(last + APART), key.clone()));
            }
            return;
        }
        match held {
            Some(held) => drop(self.written.insert(key.clone(), held)),
            None => drop(self.written.remove(key)),
        }
    }

    /// Notes whether `key` is refused for good by now. Returns whether that is to be written: always when it was
    /// refused (`anew`), since the reason may be another.
    pub(crate) fn parked(&mut self, key: &Key, is: bool, anew: bool) -> bool {
        if is { self.parked.insert(key.clone()) || anew } else { self.parked.remove(key) }
    }

    /// Whether `key` is written as refused for good.
    pub(crate) fn is_parked(&self, key: &Key) -> bool {
        self.parked.contains(key)
    }
}

/// Two with the same number are taken to be the same; each fact is told by its id.
fn short(pending: &Pending) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (uid, version, fact) in &pending.facts {
        (uid, version.0, fact.id.0).hash(&mut hasher);
    }
    hasher.write_u8(0);
    for (uid, version) in &pending.gone {
        (uid, version.0).hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {

    use pipeline_core::{Fact, Version};

    use super::*;
    use bytes::Bytes;
    use pipeline_core::Digest;

    const EVERY: Duration = Duration::from_millis(100);

    fn key(name: &str) -> Key {
        Key::new("ns", name).unwrap()
    }

    fn fact(second: u32) -> Fact {
        Fact { id: Digest(u64::from(second)), body: Bytes::new() }
    }

    fn pending(facts: &[u32], gone: &[u64]) -> Pending {
        Pending {
            facts: facts
                .iter()
                .map(|second| ("uid".into(), Version(u64::from(*second)), fact(*second)))
                .collect(),
            gone: gone.iter().map(|version| ("gone".into(), Version(*version))).collect(),
        }
    }

    /// What is to be written, if anything is.
    #[expect(clippy::option_option, reason = "write nothing, or write that there is nothing")]
    fn look(journal: &mut Journal, pending: Option<Pending>) -> Option<Option<Pending>> {
        let mut written = None;
        journal.look(&key("a"), pending, Duration::ZERO, |pending| {
            written = Some(pending);
            true
        });
        written
    }

    #[test]
    fn a_key_is_looked_at_once_a_while_after_something_first_happened_to_it() {
        let mut journal = Journal::new(EVERY);
        let at = Duration::from_millis;
        assert_eq!(journal.due(), None);
        assert!(!journal.knows(&key("a")));
        assert!(!journal.touched(&key("a"), at(10)));
        assert!(journal.knows(&key("a")) && !journal.knows(&key("b")));
        assert!(!journal.touched(&key("b"), at(20)));
        assert!(!journal.touched(&key("a"), at(30)));
        assert_eq!(journal.due(), Some(at(110)));
        assert_eq!(journal.next(at(109)), None);
        assert_eq!(journal.next(at(115)), Some(key("a")));
        assert_eq!((journal.next(at(115)), journal.due()), (None, Some(at(120))));
        journal.touched(&key("a"), at(116));
        assert_eq!(journal.next(at(500)), Some(key("b")));
        assert_eq!(journal.next(at(500)), Some(key("a")));
        assert_eq!(journal.next(at(500)), None);
    }

    #[test]
    fn only_what_differs_from_what_is_written_is_written() {
        let mut journal = Journal::new(EVERY);
        assert_eq!(look(&mut journal, None), None, "healthy traffic");
        let one = pending(&[1], &[]);
        assert_eq!(look(&mut journal, Some(one.clone())), Some(Some(one.clone())));
        assert_eq!(look(&mut journal, Some(one)), None);
        for other in [pending(&[1, 2], &[]), pending(&[2], &[]), pending(&[2], &[7]), pending(&[2], &[8])] {
            assert_eq!(look(&mut journal, Some(other.clone())), Some(Some(other)));
        }
        assert_eq!(look(&mut journal, None), Some(None));
        assert_eq!(look(&mut journal, None), None);
    }

    #[test]
    fn what_is_written_is_corrected_at_once() {
        let mut journal = Journal::new(EVERY);
        journal.restored(&key("a"), &pending(&[1], &[]));
        assert!(journal.knows(&key("a")) && journal.touched(&key("a"), Duration::ZERO));
        assert_eq!(look(&mut journal, Some(pending(&[1], &[]))), None, "an earlier process wrote it");
        assert_eq!(look(&mut journal, None), Some(None));
        assert!(!journal.touched(&key("a"), Duration::ZERO));
    }

    #[test]
    fn being_parked_is_written_each_time_and_its_end_once() {
        let mut journal = Journal::new(EVERY);
        assert!(!journal.parked(&key("a"), false, false));
        assert!(journal.parked(&key("a"), true, true));
        assert!(journal.parked(&key("a"), true, true), "perhaps for another reason");
        assert!(!journal.parked(&key("a"), true, false));
        assert!(journal.is_parked(&key("a")));
        assert!(journal.parked(&key("a"), false, false));
        assert!(!journal.parked(&key("a"), false, true));
    }

    #[test]
    fn what_finds_no_room_is_offered_again_and_what_was_written_before_stays() {
        let mut journal = Journal::new(EVERY);
        let now = Duration::from_secs(5);
        assert_eq!(look(&mut journal, Some(pending(&[1], &[]))), Some(Some(pending(&[1], &[]))));
        let full = |_| false;
        for name in ["a", "b", "c", "a"] {
            journal.look(&key(name), Some(pending(&[1, 2], &[])), now, full);
        }
        assert_eq!(journal.due(), Some(now + AGAIN));
        assert_eq!(journal.next(now + AGAIN), Some(key("a")), "once");
        assert_eq!(journal.next(now + AGAIN), None, "the others a little later");
        assert_eq!(journal.next(now + AGAIN + APART), Some(key("b")));
        assert_eq!(look(&mut journal, Some(pending(&[1], &[]))), None, "it is what stands there");
        assert_eq!(look(&mut journal, None), Some(None));
        journal.touched(&key("d"), now);
        assert_eq!(journal.all(), [key("d"), key("c")]);
        assert_eq!((journal.due(), journal.all()), (None, vec![]));
        assert!(!journal.touched(&key("c"), now) && journal.due().is_some());
    }
}
