//! Places that nobody takes all of: so many may be taken at a time, of one and of all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::caller::Caller;

/// Of somebody, whatever they come in with, or else of a runtime, by name.
type Whose = (bool, String);

/// Gives places; cloning shares.
#[derive(Debug, Clone)]
pub(crate) struct Shares {
    taken: Arc<Mutex<HashMap<Whose, usize>>>,
    of_one: usize,
    of_all: usize,
}

/// One place, until it is dropped.
#[derive(Debug)]
pub(crate) struct SharedPlace {
    of: Shares,
    whose: Whose,
}

/// Why there is no place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoPlace {
    /// Whoever asks has as many as one may have, which is told.
    OfOne(usize),
    /// All are taken.
    OfAll,
}

impl Shares {
    pub(crate) fn new(of_one: usize, of_all: usize) -> Self {
        Self { taken: Arc::default(), of_one, of_all }
    }

    fn taken(&self) -> MutexGuard<'_, HashMap<Whose, usize>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for one more.
    pub(crate) fn place(&self, caller: &Caller) -> Result<SharedPlace, NoPlace> {
        let whose = match caller {
            Caller::Person(person) => (true, person.access.who.clone()),
            Caller::Runtime(runtime) => (false, runtime.name.clone()),
        };
        let mut taken = self.taken();
        if taken.values().sum::<usize>() >= self.of_all {
            return Err(NoPlace::OfAll);
        }
        if taken.get(&whose).is_some_and(|own| *own >= self.of_one) {
            return Err(NoPlace::OfOne(self.of_one));
        }
        *taken.entry(whose.clone()).or_default() += 1;
        drop(taken);
        Ok(SharedPlace { of: self.clone(), whose })
    }
}

impl Drop for SharedPlace {
    fn drop(&mut self) {
        let mut taken = self.of.taken();
        if let Some(own) = taken.get_mut(&self.whose) {
            *own -= 1;
            if *own == 0 {
                taken.remove(&self.whose);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use stages_platform_store::Runtime;

    use super::*;

    fn caller(name: &str) -> Caller {
        Caller::Runtime(Runtime { id: 1, name: name.to_owned() })
    }

    #[test]
    fn nobody_has_more_than_their_own_and_all_together_not_more_than_there_are() {
        let shares = Shares::new(20, 500);
        let take =
            |name: &str, count| (0..count).map(|_| shares.place(&caller(name)).unwrap()).collect::<Vec<_>>();
        let mut own = take("prod", 20);
        assert_eq!(shares.place(&caller("prod")).unwrap_err(), NoPlace::OfOne(20));
        let others: Vec<_> = (1..25).map(|number| take(&number.to_string(), 20)).collect();
        assert_eq!(shares.place(&caller("one-more")).unwrap_err(), NoPlace::OfAll);
        own.pop();
        own.push(shares.place(&caller("prod")).unwrap());
        drop((own, others));
        assert!(shares.taken().is_empty());
    }
}
