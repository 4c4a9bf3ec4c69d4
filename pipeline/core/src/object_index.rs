//! What the watch has seen: the newest version and the uid of every object, whoever owns its shard.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};

use crate::{Key, Uid, Version};

/// Shared between the watch, which writes it, and enrichment, which asks it about parents. Bounded by the
/// number of objects; holds no object. Cloning shares.
#[derive(Debug, Clone, Default)]
pub struct ObjectIndex {
    lives: Arc<RwLock<Lives>>,
}

#[derive(Debug, Default)]
struct Lives {
    /// What the watch showed last of each name; version 0 of a life of which a read alone has told.
    newest: HashMap<Key, (Uid, Version)>,
    /// Later lives that reads have shown, of names of which the watch still shows a former one: few, and for moments.
    ahead: HashMap<Key, (Uid, Version)>,
}

impl Lives {
    fn put(&mut self, key: &Key, uid: Uid, version: Version) {
        self.newest.insert(key.clone(), (uid, version));
    }
}

impl ObjectIndex {
    /// Notes that the watch showed `key`. An older version than the one known of the same uid changes nothing.
    pub fn note(&self, key: &Key, uid: &Uid, version: Version) {
        let mut lives = self.write();
        if lives.ahead.get(key).is_some_and(|(ahead, at)| ahead == uid || *at <= version) {
            lives.ahead.remove(key);
        }
        match lives.newest.get_mut(key) {
            Some((known, at)) if *known == *uid => *at = (*at).max(version),
            _ => lives.put(key, uid.clone(), version),
        }
    }

    /// Notes that a read showed `key`. The life may be over before a list or the watch shows it: then the next list must
    /// miss it, also when the watch, which may be behind, shows more of a former life meanwhile. Which state it was is not
    /// noted, since a list must hand over that state all the same.
    pub fn read(&self, key: &Key, uid: &Uid, version: Version) {
        let mut lives = self.write();
        match lives.newest.get(key) {
            None => lives.put(key, uid.clone(), Version(0)),
            Some((known, at)) if known != uid && *at < version => {
                let ahead = lives.ahead.entry(key.clone()).or_insert_with(|| (uid.clone(), version));
                if ahead.1 < version {
                    *ahead = (uid.clone(), version);
                }
            }
            Some(_) => {}
        }
    }

    /// Forgets `key`: it is gone. Returns what was known of it.
    pub fn forget(&self, key: &Key) -> Option<(Uid, Version)> {
        let mut lives = self.write();
        lives.ahead.remove(key);
        lives.newest.remove(key)
    }

    /// The life `uid` of `key` is over: it is forgotten, unless a later one was seen since.
    pub fn ended(&self, key: &Key, uid: &Uid) {
        let mut lives = self.write();
        if lives.ahead.get(key).is_some_and(|(ahead, _)| ahead == uid) {
            // So are all before it.
            lives.ahead.remove(key);
            lives.newest.remove(key);
        } else if lives.newest.get(key).is_some_and(|(known, _)| known == uid) {
            match lives.ahead.remove(key) {
                Some((ahead, _)) => lives.put(key, ahead, Version(0)),
                None => drop(lives.newest.remove(key)),
            }
        }
    }

    /// The watch showed a state of `key`, or that this life is over.
    pub fn shown(&self, key: &Key, uid: &Uid, version: Version, over: bool) {
        if over { self.ended(key, uid) } else { self.note(key, uid, version) }
    }

    /// The latest life known of `key`, and the version that the watch showed of it; 0 when that is none.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<(Uid, Version)> {
        let lives = self.lives.read().unwrap_or_else(PoisonError::into_inner);
        let ahead = lives.ahead.get(key).map(|(ahead, _)| (ahead.clone(), Version(0)));
        ahead.or_else(|| lives.newest.get(key).cloned())
    }

    fn write(&self) -> RwLockWriteGuard<'_, Lives> {
        self.lives.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same key, as it stands here where it does: all that is remembered of an object then shares one copy of
    /// it, where each event brings a new one.
    #[must_use]
    pub fn shared(&self, key: Key) -> Key {
        let lives = self.lives.read().unwrap_or_else(PoisonError::into_inner);
        lives.newest.get_key_value(&key).map_or(key, |(known, _)| known.clone())
    }

    /// Every key that is there, in no order.
    #[must_use]
    pub fn keys(&self) -> Vec<Key> {
        self.lives.read().unwrap_or_else(PoisonError::into_inner).newest.keys().cloned().collect()
    }

    /// How many objects are there.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lives.read().unwrap_or_else(PoisonError::into_inner).newest.len()
    }

    /// Whether none is there.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_of_an_object_shares_one_copy_of_its_name() {
        let (seen, key) = (ObjectIndex::default(), || Key::new("ns", "app").unwrap());
        let place = |key: &Key| key.as_str().as_ptr();
        seen.note(&key(), &"one".into(), Version(1));
        let (first, second) = (seen.shared(key()), seen.shared(key()));
        assert_eq!((place(&first), &first), (place(&second), &key()));
        seen.forget(&key());
        assert_ne!(place(&seen.shared(key())), place(&first));
    }

    #[test]
    fn a_name_has_one_life() {
        let (seen, key, [one, other, _]) = lives();
        for (uid, version) in [(&one, 1), (&other, 2), (&one, 3), (&other, 4)] {
            seen.note(&key, uid, Version(version));
            assert_eq!(seen.get(&key), Some((uid.clone(), Version(version))));
            assert_eq!((seen.len(), seen.keys()), (1, vec![key.clone()]));
        }
        seen.note(&key, &other, Version(3));
        assert_eq!(seen.get(&key), Some((other.clone(), Version(4))), "no watch goes back");
        seen.read(&key, &one, Version(5));
        seen.ended(&key, &other);
        assert_eq!(seen.forget(&key), Some((one, Version(0))));
        assert!(seen.is_empty() && seen.forget(&key).is_none());
    }

    fn lives() -> (ObjectIndex, Key, [Uid; 3]) {
        let key = Key::new("ns", "store").unwrap();
        (ObjectIndex::default(), key, ["a", "b", "c"].map(Uid::from))
    }

    #[test]
    fn a_later_life_that_a_read_showed_outlives_what_a_late_watch_shows_of_the_former() {
        let (seen, key, [former, later, latest]) = lives();
        seen.note(&key, &former, Version(6));
        seen.read(&key, &later, Version(38));
        assert_eq!(seen.get(&key), Some((later.clone(), Version(0))));
        seen.shown(&key, &former, Version(17), false);
        assert_eq!(seen.get(&key), Some((later.clone(), Version(0))), "the watch is behind");
        seen.shown(&key, &former, Version(18), true);
        assert_eq!(
            seen.get(&key),
            Some((later.clone(), Version(0))),
            "its end says nothing of the later one"
        );
        seen.shown(&key, &later, Version(32), false);
        assert_eq!(seen.get(&key), Some((later.clone(), Version(32))));
        seen.read(&key, &former, Version(30));
        assert_eq!(seen.get(&key), Some((later.clone(), Version(32))), "the read is behind");
        seen.read(&key, &latest, Version(60));
        seen.read(&key, &later, Version(40));
        seen.note(&key, &later, Version(61));
        assert_eq!(
            seen.get(&key),
            Some((later, Version(61))),
            "no watch goes back: the read was of another cluster"
        );
        assert_eq!((seen.len(), seen.keys()), (1, vec![key]));
    }

    #[test]
    fn what_is_over_is_forgotten_with_all_before_it() {
        let (seen, key, [former, later, latest]) = lives();
        seen.note(&key, &former, Version(6));
        seen.read(&key, &later, Version(8));
        seen.ended(&key, &latest);
        assert_eq!(seen.get(&key), Some((later.clone(), Version(0))));
        seen.ended(&key, &later);
        assert_eq!(seen.get(&key), None);
        seen.read(&key, &later, Version(8));
        seen.ended(&key, &former);
        assert_eq!(seen.forget(&key), Some((later.clone(), Version(0))));
        seen.note(&key, &former, Version(9));
        seen.read(&key, &later, Version(10));
        seen.forget(&key);
        seen.note(&key, &former, Version(9));
        assert_eq!(seen.get(&key), Some((former, Version(9))));
    }
}
