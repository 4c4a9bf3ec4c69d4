//! Which objects are to be published again, because the bus did not take, or not for certain, what was published of them.
//!
//! Pure. What the cluster still shows is read again, so that never an older state follows a newer one; what it does not
//! show any more (a deletion, a fact) is kept. Objects take turns, so that one which cannot be read, or a
//! deletion that is not taken, holds up no other.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};
use std::time::Duration;

use pipeline_core::{Backoff, Change, Event, Fact, Key, Timestamp, Uid, Version};
use tokio::time::Instant;

use crate::lane::KEPT_FACTS;

/// Bytes of facts kept of all objects.
const FACT_BYTES: usize = 16 << 20;

/// Between reads of an object that fail: its kind may be gone, or the right to it, for as long as the process runs.
const FAILING: Backoff = Backoff { min: Duration::from_secs(1), max: Duration::from_secs(30) };

/// What is to be published again of one object.
#[derive(Debug, Default)]
struct Entry {
    /// Deletions that the bus has not taken, without their bodies, oldest first; there is one a life.
    deleted: Vec<Event>,
    /// The newest state is to be read.
    read: bool,
    /// Facts that a newer state may not show any more, each with its incarnation and the state that showed it.
    facts: Vec<(Uid, Version, Fact)>,
    /// Of all facts, those of its deletions too.
    bytes: usize,
    /// The number of the read that is under way, and shows what was marked last.
    reading: Option<u64>,
    /// Reads that failed, in a row.
    failures: u32,
    /// When it is read again after a read that failed.
    again: Option<Instant>,
}

/// Objects to be published again: bounded by how many there are, and their facts by [`KEPT_FACTS`] and [`FACT_BYTES`].
#[derive(Debug, Default)]
pub(in crate::run) struct Unpublished {
    entries: BTreeMap<Key, Entry>,
    /// Of all facts.
    bytes: usize,
    /// Reads that were begun.
    reads: u64,
    /// The object whose turn to be read was last.
    last_read: Option<Key>,
    /// The object whose turn to have its deletions published was last.
    last_deletion: Option<Key>,
}

impl Entry {
    /// A deletion that is told once more takes over what was to be told with it.
    fn reopen(&mut self, event: &Event) {
        let again = |known: &mut Event| event.is_deleted() && known.uid == event.uid;
        for Event { uid, version, coalesced, .. } in self.deleted.extract_if(.., again) {
            self.facts.splice(0..0, coalesced.into_iter().map(|fact| (uid.clone(), version, fact)));
        }
    }

    fn keep(&mut self, event: &Event) {
        for fact in event.coalesced.iter().chain(&event.fact) {
            if !self.facts.iter().any(|(uid, _, known)| *uid == event.uid && known.is_same(fact)) {
                self.bytes += fact.size();
                self.facts.push((event.uid.clone(), event.version, fact.clone()));
            }
        }
    }

    /// Of what is too much the oldest goes. Returns how many facts that are.
    fn give_up(&mut self, spare: usize) -> usize {
        let had = self.facts.len();
        while self.facts.len() > KEPT_FACTS || (!self.facts.is_empty() && self.bytes > spare) {
            self.bytes -= self.facts.remove(0).2.size();
        }
        had - self.facts.len()
    }
}

impl Unpublished {
    pub(in crate::run) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The bus did not take this event, or it is not known whether it did. Returns how many facts had to be given up.
    pub(in crate::run) fn mark(&mut self, event: Event) -> usize {
        let entry = self.entries.entry(event.key.clone()).or_default();
        let others = self.bytes - entry.bytes;
        // What is being read may be older.
        entry.reading = None;
        entry.reopen(&event);
        entry.keep(&event);
        let given_up = entry.give_up(FACT_BYTES.saturating_sub(others));
        if event.is_deleted() {
            let (own, facts) = of(&event.uid, std::mem::take(&mut entry.facts));
            entry.facts = facts;
            let gone = Change::Deleted { body: None };
            let coalesced = own.into_iter().map(|(_, fact)| fact).collect();
            let labels = pipeline_core::ObjectLabels::default();
            entry.deleted.push(Event { change: gone, labels, fact: None, coalesced, ..event });
        } else {
            entry.read = true;
        }
        self.bytes = others + entry.bytes;
        given_up
    }

    /// The watch shows a newer event of a marked object: what is to be published now, in order.
    pub(in crate::run) fn overtaken(&mut self, event: Event) -> Vec<Event> {
        let Some(mut entry) = self.take(&event.key) else { return vec![event] };
        entry.reopen(&event);
        let Entry { mut deleted, facts, .. } = entry;
        deleted.append(&mut with(event, facts));
        deleted
    }

    fn take(&mut self, key: &Key) -> Option<Entry> {
        let entry = self.entries.remove(key)?;
        self.bytes -= entry.bytes;
        Some(entry)
    }

    /// The deletions of the next `most` objects that have any, to be published now, in order. No read is waited for.
    pub(in crate::run) fn deletions(&mut self, most: usize) -> Vec<Event> {
        let mut deleted = Vec::new();
        for key in next(&self.entries, &mut self.last_deletion, most, |entry| !entry.deleted.is_empty()) {
            let Some(entry) = self.entries.get_mut(&key) else { continue };
            let events = std::mem::take(&mut entry.deleted);
            let told: usize = events.iter().flat_map(|event| &event.coalesced).map(Fact::size).sum();
            (entry.bytes, self.bytes) = (entry.bytes - told, self.bytes - told);
            deleted.extend(events);
            if !entry.read {
                self.take(&key);
            }
        }
        deleted
    }

    /// The next `most` objects to be read now, each with the number under which [`Unpublished::read`] is offered what is found. One
    /// whose deletions were not published yet is not among them.
    pub(in crate::run) fn reads(&mut self, most: usize, now: Instant) -> Vec<(Key, u64)> {
        let is_due = |entry: &Entry| {
            let is_idle = entry.read && entry.reading.is_none() && entry.deleted.is_empty();
            is_idle && entry.again.is_none_or(|again| again <= now)
        };
        let mut begun = Vec::new();
        for key in next(&self.entries, &mut self.last_read, most, is_due) {
            let Some(entry) = self.entries.get_mut(&key) else { continue };
            self.reads += 1;
            entry.reading = Some(self.reads);
            begun.push((key, self.reads));
        }
        begun
    }

    /// What a read found at `now`: `None` for nothing. Gives what is to be published, in order. What was found by a read that
    /// began before the object was marked again is left to the next one.
    pub(in crate::run) fn read(
        &mut self,
        key: &Key,
        read: u64,
        found: Option<Event>,
        now: Timestamp,
    ) -> Vec<Event> {
        if self.entries.get(key).is_none_or(|entry| entry.reading != Some(read)) {
            return Vec::new();
        }
        let facts = self.take(key).map(|entry| entry.facts).unwrap_or_default();
        match found {
            Some(event) => with(event, facts),
            // The watch tells of the end by itself, and without what is kept here.
            None => {
                let gone = Change::Deleted { body: None };
                former(facts, &Event::watched(key.clone(), "".into(), Version(0), gone, now))
            }
        }
    }

    /// A read failed: it is tried again later, and less and less often until the watch shows a newer event. `seed` chooses
    /// the jitter.
    pub(in crate::run) fn not_read(&mut self, key: &Key, read: u64, now: Instant, seed: u64) {
        if let Some(entry) = self.entries.get_mut(key)
            && entry.reading.take_if(|reading| *reading == read).is_some()
        {
            entry.failures = entry.failures.saturating_add(1);
            entry.again = Some(now + FAILING.wait(entry.failures, None, seed));
        }
    }
}

/// The first `most` objects after `last` whose entries are `due`, from the first of all on where the end is reached.
/// `last` becomes the last of them.
fn next(
    entries: &BTreeMap<Key, Entry>,
    last: &mut Option<Key>,
    most: usize,
    due: impl Fn(&Entry) -> bool,
) -> Vec<Key> {
    let after = entries.range((last.as_ref().map_or(Unbounded, Excluded), Unbounded));
    let before = last.as_ref().map(|last| entries.range(..=last));
    let all = after.chain(before.into_iter().flatten());
    let keys: Vec<Key> = all.filter(|(_, entry)| due(entry)).map(|(key, _)| key.clone()).take(most).collect();
    if let Some(key) = keys.last() {
        *last = Some(key.clone());
    }
    keys
}

/// Facts of one incarnation, and those of others.
type Split = (Vec<(Version, Fact)>, Vec<(Uid, Version, Fact)>);

fn of(uid: &Uid, facts: Vec<(Uid, Version, Fact)>) -> Split {
    let (own, others): (Vec<_>, Vec<_>) = facts.into_iter().partition(|(whose, ..)| whose == uid);
    (own.into_iter().map(|(_, version, fact)| (version, fact)).collect(), others)
}

/// The event, with facts of its incarnation that it does not show by itself. An incarnation that it follows is over: its
/// facts go before, with its end.
fn with(mut event: Event, facts: Vec<(Uid, Version, Fact)>) -> Vec<Event> {
    let (own, others) = of(&event.uid, facts);
    let mut all = former(others, &event);
    let known = |fact: &Fact| {
        let carried = event.coalesced.iter().chain(&event.fact);
        carried.into_iter().any(|known| known.is_same(fact))
    };
    let mut coalesced: Vec<_> = own.into_iter().map(|(_, fact)| fact).filter(|fact| !known(fact)).collect();
    coalesced.append(&mut event.coalesced);
    event.coalesced = coalesced;
    all.push(event);
    all
}

/// The ends of all incarnations that facts are of, each with its own, seen when `event` was.
fn former(mut facts: Vec<(Uid, Version, Fact)>, event: &Event) -> Vec<Event> {
    let mut all = Vec::new();
    while let Some((uid, ..)) = facts.first().cloned() {
        let (own, rest) = of(&uid, facts);
        facts = rest;
        all.push(Event {
            uid,
            version: own.iter().map(|(version, _)| *version).max().unwrap_or_default(),
            change: Change::Deleted { body: None },
            labels: pipeline_core::ObjectLabels::default(),
            again: false,
            fact: None,
            coalesced: own.into_iter().map(|(_, fact)| fact).collect(),
            ..event.clone()
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use pipeline_core::{Timestamp, Version};

    use super::*;
    use bytes::Bytes;
    use pipeline_core::Digest;

    fn key() -> Key {
        Key::new("ns", "shop").unwrap()
    }

    fn event(version: u64, end: Option<u32>) -> Event {
        let change = Change::Applied { body: "{}".into() };
        let fact = end.map(|second| Fact { id: Digest(second.into()), body: Bytes::new() });
        let event = Event::watched(key(), "1".into(), Version(version), change, Timestamp::UNIX_EPOCH);
        Event { fact, ..event }
    }

    fn gone(version: u64) -> Event {
        Event { change: Change::Deleted { body: Some("{}".into()) }, ..event(version, None) }
    }

    fn ends(event: &Event) -> Vec<u64> {
        event.coalesced.iter().map(|end| end.id.0).collect()
    }

    /// Begins the one read that is due, and gives its number.
    fn begin(unpublished: &mut Unpublished) -> u64 {
        match &unpublished.reads(8, Instant::now())[..] {
            [(of, read)] if *of == key() => *read,
            reads => panic!("{reads:?}"),
        }
    }

    fn not_read(unpublished: &mut Unpublished, number: u64) {
        // So long ago that it is tried again now.
        unpublished.not_read(&key(), number, Instant::now() - FAILING.max, 0);
    }

    fn read(unpublished: &mut Unpublished, number: u64, found: Option<Event>) -> Vec<Event> {
        unpublished.read(&key(), number, found, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn a_state_is_read_again_with_the_ends_it_may_not_show() {
        let mut unpublished = Unpublished::default();
        unpublished.mark(event(1, Some(1)));
        unpublished.mark(event(2, Some(2)));
        let failed = begin(&mut unpublished);
        assert!(unpublished.reads(8, Instant::now()).is_empty(), "it is being read");
        not_read(&mut unpublished, failed);
        let number = begin(&mut unpublished);
        let found = read(&mut unpublished, number, Some(event(3, Some(2)))).remove(0);
        assert_eq!((found.version, ends(&found), unpublished.len()), (Version(3), vec![1], 0));
        assert_eq!(read(&mut unpublished, number, Some(event(3, None))), [], "nobody asked for it");
    }

    #[test]
    fn a_fact_goes_with_the_incarnation_that_it_is_of() {
        let other = |version| Event { uid: "2".into(), ..event(version, None) };
        let told = |events: &[Event]| -> Vec<_> {
            events.iter().map(|event| (event.uid.to_string(), event.is_deleted(), ends(event))).collect()
        };
        let both = [("1".to_owned(), true, vec![1]), ("2".to_owned(), false, vec![])];
        let mut unpublished = Unpublished::default();
        unpublished.mark(event(1, Some(1)));
        let number = begin(&mut unpublished);
        assert_eq!(told(&read(&mut unpublished, number, Some(other(3)))), both, "what is read is another");
        unpublished.mark(event(1, Some(1)));
        assert_eq!(told(&unpublished.overtaken(other(3))), both, "what is watched is another");
        unpublished.mark(Event { uid: "2".into(), ..event(2, Some(2)) });
        unpublished.mark(gone(3));
        let now = unpublished.overtaken(other(4));
        let of_each = [("1".to_owned(), true, vec![]), ("2".to_owned(), false, vec![2])];
        assert_eq!(told(&now), of_each, "a deletion takes none of another");
    }

    #[test]
    fn what_the_watch_shows_meanwhile_is_not_followed_by_what_was_read() {
        let mut unpublished = Unpublished::default();
        unpublished.mark(event(1, Some(1)));
        let number = begin(&mut unpublished);
        let now = unpublished.overtaken(event(3, None));
        assert_eq!((now.len(), ends(&now[0])), (1, vec![1]));
        assert_eq!(read(&mut unpublished, number, Some(event(2, None))), []);
        unpublished.mark(now[0].clone());
        assert_eq!(read(&mut unpublished, number, Some(event(2, None))), [], "the read began before");
        let next = begin(&mut unpublished);
        assert_eq!(read(&mut unpublished, number, Some(event(2, None))), [], "another read is under way");
        not_read(&mut unpublished, number);
        let found = read(&mut unpublished, next, Some(event(3, None)));
        assert_eq!((found.len(), found[0].version, ends(&found[0])), (1, Version(3), vec![1]));
        unpublished.mark(event(3, None));
        assert_eq!(unpublished.overtaken(event(4, None)).len(), 1);
        assert_eq!(unpublished.overtaken(event(5, None)).len(), 1, "what is not marked passes");
    }

    #[test]
    fn a_deletion_is_kept_and_comes_before_the_next_life() {
        let mut unpublished = Unpublished::default();
        unpublished.mark(event(1, Some(1)));
        unpublished.mark(gone(2));
        let next = Event { uid: "2".into(), ..event(3, None) };
        let now = unpublished.overtaken(next.clone());
        let [first, second] = &now[..] else { panic!("{now:?}") };
        assert!(first.is_deleted() && first.body().is_none());
        assert_eq!((ends(first), second), (vec![1], &next));

        unpublished.mark(gone(2));
        assert_eq!(unpublished.overtaken(gone(4)).len(), 1, "one of a life is enough");
        unpublished.mark(gone(2));
        let deleted = unpublished.deletions(8);
        assert!(matches!(&deleted[..], [event] if event.is_deleted()), "{deleted:?}");
        assert_eq!(unpublished.len(), 0);
        unpublished.mark(gone(2));
        unpublished.mark(next);
        assert_eq!(
            unpublished.reads(8, Instant::now()),
            [],
            "the next life follows the end of the one before"
        );
        assert_eq!(unpublished.deletions(8).len(), 1);
        let number = begin(&mut unpublished);
        assert_eq!(read(&mut unpublished, number, None), []);
        assert_eq!(unpublished.len(), 0, "the watch tells of the end");
    }

    #[test]
    fn a_deletion_that_is_told_once_more_brings_along_what_was_to_be_told_with_it() {
        let mut unpublished = Unpublished::default();
        unpublished.mark(event(1, Some(1)));
        unpublished.mark(gone(2));
        let now = unpublished.overtaken(gone(4));
        assert_eq!((now.len(), ends(&now[0])), (1, vec![1]), "a list shows that it is not there");
        unpublished.mark(event(1, Some(1)));
        unpublished.mark(gone(2));
        unpublished.mark(Event { fact: event(4, Some(2)).fact, ..gone(4) });
        let deleted = unpublished.deletions(8);
        let [gone] = &deleted[..] else { panic!("{deleted:?}") };
        assert_eq!((ends(gone), unpublished.bytes), (vec![1, 2], 0));
    }

    #[test]
    fn what_was_kept_of_an_object_that_is_not_there_any_more_is_told_with_its_end() {
        let mut unpublished = Unpublished::default();
        unpublished.mark(event(1, Some(1)));
        unpublished.mark(event(2, Some(2)));
        let number = begin(&mut unpublished);
        let now = read(&mut unpublished, number, None);
        let [end] = &now[..] else { panic!("{now:?}") };
        assert!(end.is_deleted() && end.body().is_none());
        assert_eq!((&*end.uid, end.version, ends(end), unpublished.len()), ("1", Version(2), vec![1, 2], 0));
    }

    #[test]
    fn as_many_facts_are_kept_as_in_a_lane_and_what_is_too_much_is_counted() {
        let mut unpublished = Unpublished::default();
        let many = u32::try_from(KEPT_FACTS).unwrap();
        let given_up: usize = (1..=many).map(|n| unpublished.mark(event(n.into(), Some(n)))).sum();
        assert_eq!(given_up, 0);
        assert_eq!(unpublished.mark(event(100, Some(many + 1))), 1, "the oldest goes");
        let kept = unpublished.overtaken(event(101, None)).remove(0);
        assert_eq!((kept.coalesced.len(), ends(&kept)[0]), (KEPT_FACTS, 2));
        assert_eq!(unpublished.bytes, 0);
        // All together they take no more than so many bytes.
        let large = |n: u32| {
            let fact = Fact { id: Digest(n.into()), body: vec![0; FACT_BYTES / 2].into() };
            Event { fact: Some(fact), ..event(n.into(), None) }
        };
        let other = Event { key: Key::new("ns", "other").unwrap(), ..large(1) };
        assert_eq!((unpublished.mark(other), unpublished.mark(large(1))), (0, 1), "half of it is taken");
        assert_eq!(
            (unpublished.len(), unpublished.reads(8, Instant::now()).len()),
            (2, 2),
            "each is read all the same"
        );
    }

    /// Marks so many objects that come before all others.
    fn mark_first(unpublished: &mut Unpublished, count: usize) {
        for n in 0..count {
            unpublished
                .mark(Event { key: Key::new("a", &format!("first-{n:02}")).unwrap(), ..event(1, None) });
        }
    }

    #[test]
    fn what_can_be_read_is_read_soon_behind_any_number_of_objects_that_cannot() {
        let (mut unpublished, now) = (Unpublished::default(), Instant::now());
        mark_first(&mut unpublished, 40);
        unpublished.mark(event(1, None));
        let looks = (1..).find(|_| {
            let begun = unpublished.reads(16, now);
            // As if each failed so long ago that it is due again.
            begun.iter().for_each(|(of, read)| unpublished.not_read(of, *read, now - FAILING.max, 0));
            begun.iter().any(|(of, _)| *of == key())
        });
        assert_eq!(looks, Some(3), "41 objects, 16 a look");
        let names: Vec<_> =
            unpublished.reads(8, now).into_iter().map(|(of, _)| of.name().to_owned()).collect();
        assert_eq!(names[..2], ["first-07", "first-08"], "the turn goes round");
    }

    #[test]
    fn a_deletion_waits_for_no_read_and_one_that_is_not_taken_holds_up_no_other() {
        let (mut unpublished, now) = (Unpublished::default(), Instant::now());
        mark_first(&mut unpublished, 3);
        let end = |name: &str| Event { key: Key::new("z", name).unwrap(), ..gone(1) };
        for name in ["a", "b", "c"] {
            unpublished.mark(end(name));
        }
        assert_eq!(unpublished.reads(8, now).len(), 3, "all reads that there may be are under way");
        let mut told = Vec::new();
        for _ in 0..4 {
            for event in unpublished.deletions(1) {
                told.push(event.key.name().to_owned());
                unpublished.mark(event);
            }
        }
        assert_eq!(told, ["a", "b", "c", "a"]);
    }

    #[test]
    fn an_object_that_cannot_be_read_is_tried_less_and_less_often_until_the_watch_shows_it() {
        let (mut unpublished, mut now) = (Unpublished::default(), Instant::now());
        unpublished.mark(event(1, None));
        let mut fail_after = |unpublished: &mut Unpublished, wait: Duration| {
            let early = now + wait.saturating_sub(Duration::from_nanos(1));
            assert!(wait.is_zero() || unpublished.reads(8, early).is_empty(), "{wait:?} are not over");
            now += wait;
            let [(_, read)] = unpublished.reads(8, now)[..] else { panic!("not due after {wait:?}") };
            unpublished.not_read(&key(), read, now, 0);
        };
        // The jitter takes up to half of each.
        for wait in [0, 500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000, 15_000] {
            fail_after(&mut unpublished, Duration::from_millis(wait));
        }
        assert_eq!(unpublished.overtaken(event(2, None)).len(), 1);
        unpublished.mark(event(2, None));
        fail_after(&mut unpublished, Duration::ZERO);
        fail_after(&mut unpublished, Duration::from_millis(500));
    }
}
