//! Which objects are to be published again, because the bus did not take, or not surely, what was published of them.
//!
//! Pure. What the cluster still shows is read again, so that never an older state follows a newer one; what it does not
//! show any more (a deletion, the end of an operation) is kept.

use std::collections::BTreeMap;

use pipeline_core::{Change, Event, Fact, Key, Uid, Version};

/// Facts kept of one object, as in a lane.
const FACTS: usize = 8;

/// What is to be published again of one object.
#[derive(Debug, Default)]
struct Entry {
    /// Deletions that the bus has not taken, without their bodies, oldest first; there is one a life.
    deleted: Vec<Event>,
    /// The newest state is to be read.
    read: bool,
    /// Facts that a newer state may not show any more, each with its incarnation and the state that showed it.
    facts: Vec<(Uid, Version, Fact)>,
    /// Being read now.
    reading: bool,
}

/// Objects to be published again: bounded by how many there are.
#[derive(Debug, Default)]
pub(in crate::run) struct Dirty {
    entries: BTreeMap<Key, Entry>,
}

/// What to do for one object.
#[derive(Debug)]
pub(in crate::run) enum Republish {
    /// Publish this.
    Publish(Event),
    /// Read it, and offer what is found with [`Dirty::read`].
    Read(Key),
}

impl Dirty {
    pub(in crate::run) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The bus did not take this event, or it is not known whether it did.
    pub(in crate::run) fn mark(&mut self, event: Event) {
        let entry = self.entries.entry(event.key.clone()).or_default();
        // What is being read may be older.
        entry.reading = false;
        for end in event.coalesced.iter().chain(&event.fact).cloned() {
            if !entry.facts.iter().any(|(uid, _, known)| *uid == event.uid && known.is_same(&end)) {
                entry.facts.push((event.uid.clone(), event.version, end));
            }
        }
        entry.facts.drain(..entry.facts.len().saturating_sub(FACTS));
        if event.is_deleted() {
            let (own, others) = of(&event.uid, std::mem::take(&mut entry.facts));
            entry.facts = others;
            let gone = Change::Deleted { body: None };
            let coalesced = own.into_iter().map(|(_, fact)| fact).collect();
            let labels = pipeline_core::ObjectLabels::default();
            let slim = Event { change: gone, labels, fact: None, coalesced, ..event };
            entry.deleted.retain(|known| known.uid != slim.uid);
            entry.deleted.push(slim);
        } else {
            entry.read = true;
        }
    }

    /// The watch shows a newer event of a marked object: what is to be published now, in order.
    pub(in crate::run) fn overtaken(&mut self, event: Event) -> Vec<Event> {
        let Some(Entry { mut deleted, facts, .. }) = self.entries.remove(&event.key) else {
            return vec![event];
        };
        deleted.retain(|known| known.uid != event.uid || !event.is_deleted());
        deleted.append(&mut with(event, facts));
        deleted
    }

    /// What to do next for at most `most` objects.
    pub(in crate::run) fn next(&mut self, most: usize) -> Vec<Republish> {
        let mut work = Vec::new();
        let mut rest = Vec::new();
        for (key, entry) in self.entries.iter_mut().filter(|(_, entry)| !entry.reading).take(most) {
            work.extend(entry.deleted.drain(..).map(Republish::Publish));
            if entry.read {
                entry.reading = true;
                work.push(Republish::Read(key.clone()));
            } else {
                rest.push(key.clone());
            }
        }
        for key in rest {
            self.entries.remove(&key);
        }
        work
    }

    /// What a read found: `None` for nothing, which the watch tells by itself. Gives what is to be published, in order.
    pub(in crate::run) fn read(&mut self, key: &Key, found: Option<Event>) -> Vec<Event> {
        let Some(entry) = self.entries.get(key).filter(|entry| entry.reading) else { return Vec::new() };
        debug_assert!(entry.deleted.is_empty(), "they were published when the read began");
        let facts = self.entries.remove(key).map(|entry| entry.facts).unwrap_or_default();
        found.map(|event| with(event, facts)).unwrap_or_default()
    }

    /// A read failed: it is tried again later.
    pub(in crate::run) fn not_read(&mut self, key: &Key) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.reading = false;
        }
    }
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
    let (own, mut others) = of(&event.uid, facts);
    let mut all = Vec::new();
    while let Some((uid, ..)) = others.first().cloned() {
        let (former, rest) = of(&uid, others);
        others = rest;
        all.push(Event {
            uid,
            version: former.iter().map(|(version, _)| *version).max().unwrap_or_default(),
            change: Change::Deleted { body: None },
            labels: pipeline_core::ObjectLabels::default(),
            again: false,
            fact: None,
            coalesced: former.into_iter().map(|(_, fact)| fact).collect(),
            ..event.clone()
        });
    }
    let known = |end: &Fact| {
        let carried = event.coalesced.iter().chain(&event.fact);
        carried.into_iter().any(|known| known.is_same(end))
    };
    let mut coalesced: Vec<_> = own.into_iter().map(|(_, end)| end).filter(|end| !known(end)).collect();
    coalesced.append(&mut event.coalesced);
    event.coalesced = coalesced;
    all.push(event);
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

    #[test]
    fn a_state_is_read_again_with_the_ends_it_may_not_show() {
        let mut dirty = Dirty::default();
        dirty.mark(event(1, Some(1)));
        dirty.mark(event(2, Some(2)));
        assert!(matches!(&dirty.next(8)[..], [Republish::Read(of)] if *of == key()));
        assert!(dirty.next(8).is_empty(), "it is being read");
        dirty.not_read(&key());
        assert_eq!(dirty.next(8).len(), 1);
        let found = dirty.read(&key(), Some(event(3, Some(2)))).remove(0);
        assert_eq!((found.version, ends(&found), dirty.len()), (Version(3), vec![1], 0));
        assert_eq!(dirty.read(&key(), Some(event(3, None))), [], "nobody asked for it");
    }

    #[test]
    fn a_fact_goes_with_the_incarnation_that_it_is_of() {
        let other = |version| Event { uid: "2".into(), ..event(version, None) };
        let told = |events: &[Event]| -> Vec<_> {
            events.iter().map(|event| (event.uid.to_string(), event.is_deleted(), ends(event))).collect()
        };
        let both = [("1".to_owned(), true, vec![1]), ("2".to_owned(), false, vec![])];
        let mut dirty = Dirty::default();
        dirty.mark(event(1, Some(1)));
        dirty.next(8);
        assert_eq!(told(&dirty.read(&key(), Some(other(3)))), both, "what is read is another");
        dirty.mark(event(1, Some(1)));
        assert_eq!(told(&dirty.overtaken(other(3))), both, "what is watched is another");
        dirty.mark(Event { uid: "2".into(), ..event(2, Some(2)) });
        dirty.mark(gone(3));
        let now = dirty.overtaken(other(4));
        let of_each = [("1".to_owned(), true, vec![]), ("2".to_owned(), false, vec![2])];
        assert_eq!(told(&now), of_each, "a deletion takes none of another");
    }

    #[test]
    fn what_the_watch_shows_meanwhile_is_not_followed_by_what_was_read() {
        let mut dirty = Dirty::default();
        dirty.mark(event(1, Some(1)));
        dirty.next(8);
        let now = dirty.overtaken(event(3, None));
        assert_eq!((now.len(), ends(&now[0])), (1, vec![1]));
        assert_eq!(dirty.read(&key(), Some(event(2, None))), []);
        dirty.mark(now[0].clone());
        assert_eq!(dirty.read(&key(), Some(event(2, None))), [], "the read began before");
        assert_eq!(dirty.overtaken(event(4, None)).len(), 1);
        assert_eq!(dirty.overtaken(event(5, None)).len(), 1, "what is not marked passes");
    }

    #[test]
    fn a_deletion_is_kept_and_comes_before_the_next_life() {
        let mut dirty = Dirty::default();
        dirty.mark(event(1, Some(1)));
        dirty.mark(gone(2));
        let next = Event { uid: "2".into(), ..event(3, None) };
        let now = dirty.overtaken(next.clone());
        let [first, second] = &now[..] else { panic!("{now:?}") };
        assert!(first.is_deleted() && first.body().is_none());
        assert_eq!((ends(first), second), (vec![1], &next));

        dirty.mark(gone(2));
        assert_eq!(dirty.overtaken(gone(4)).len(), 1, "one of a life is enough");
        dirty.mark(gone(2));
        let work = dirty.next(8);
        assert!(matches!(&work[..], [Republish::Publish(event)] if event.is_deleted()), "{work:?}");
        assert_eq!(dirty.len(), 0);
        dirty.mark(gone(2));
        dirty.mark(next);
        let work = dirty.next(8);
        assert!(matches!(&work[..], [Republish::Publish(_), Republish::Read(_)]), "{work:?}");
        assert_eq!(dirty.read(&key(), None), []);
        assert_eq!(dirty.len(), 0, "the watch tells of the end");
    }
}
