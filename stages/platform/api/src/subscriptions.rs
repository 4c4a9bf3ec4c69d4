//! Places for subscriptions: so many may be open at a time, of one and of all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::caller::{Caller, Refusal};

/// Of one person, whatever they come in with, or of one runtime.
const OF_ONE: usize = 20;
/// Of all: each asks the store anew whenever anything is kept.
const OF_ALL: usize = 500;

/// Of somebody, or else of a runtime, by name.
type Whose = (bool, String);

/// Gives places; cloning shares.
#[derive(Debug, Clone, Default)]
pub(crate) struct Subscriptions(Arc<Mutex<HashMap<Whose, usize>>>);

/// One place, until it is dropped.
#[derive(Debug)]
pub(crate) struct SubscriptionPlace {
    of: Subscriptions,
    whose: Whose,
}

impl Subscriptions {
    fn open(&self) -> MutexGuard<'_, HashMap<Whose, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for one more.
    pub(crate) fn place(&self, caller: &Caller) -> Result<SubscriptionPlace, Refusal> {
        let whose = match caller {
            Caller::Person(person) => (true, person.access.who.clone()),
            Caller::Runtime(runtime) => (false, runtime.name.clone()),
        };
        let mut open = self.open();
        if open.values().sum::<usize>() >= OF_ALL {
            return Err(Refusal::AllSubscriptions);
        }
        let own = open.entry(whose.clone()).or_default();
        if *own >= OF_ONE {
            return Err(Refusal::OwnSubscriptions(OF_ONE));
        }
        *own += 1;
        drop(open);
        Ok(SubscriptionPlace { of: self.clone(), whose })
    }
}

impl Drop for SubscriptionPlace {
    fn drop(&mut self) {
        let mut open = self.of.open();
        if let Some(own) = open.get_mut(&self.whose) {
            *own -= 1;
            if *own == 0 {
                open.remove(&self.whose);
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
        let places = Subscriptions::default();
        let take =
            |name: &str, count| (0..count).map(|_| places.place(&caller(name)).unwrap()).collect::<Vec<_>>();
        let mut own = take("prod", OF_ONE);
        let many = places.place(&caller("prod")).unwrap_err().to_string();
        assert_eq!(many, "20 subscriptions of yours are open, and no more may be: end one");
        let others: Vec<_> = (1..OF_ALL / OF_ONE).map(|number| take(&number.to_string(), OF_ONE)).collect();
        let full = places.place(&caller("one-more")).unwrap_err().to_string();
        assert_eq!(full, "too many subscriptions are open: try again");
        own.pop();
        own.push(places.place(&caller("prod")).unwrap());
        drop((own, others));
        assert!(places.open().is_empty());
    }
}
