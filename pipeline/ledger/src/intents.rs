//! Reports that are about to be sent, as they are written down before they go.

use std::collections::BTreeMap;

use pipeline_core::{EntityId, Key, SendIntent};
use serde::{Deserialize, Serialize};

/// A report that is about to be sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Intent {
    /// Counts the ledger's intents and commits: a commit covers the intents that have lower numbers.
    pub(super) number: u64,
    /// Whose report.
    pub(super) key: Key,
    /// What was acknowledged before it.
    pub(super) sent: SendIntent,
}

/// The intents that are needed, at most one of an entity: bounded by what is reported.
#[derive(Debug, Default)]
pub(super) struct Intents {
    by_entity: BTreeMap<(Key, EntityId), Intent>,
}

impl Intents {
    /// Takes an intent in. An earlier one of the same entity is not needed beside it.
    pub(super) fn add(&mut self, mut intent: Intent) {
        let place = (intent.key.clone(), intent.sent.entity);
        if let Some(earlier) = self.by_entity.remove(&place) {
            intent.sent.follows(earlier.sent);
        }
        self.by_entity.insert(place, intent);
    }

    /// Forgets the intents up to `number`: the ledger's rows hold what they say. Returns whether there were any.
    pub(super) fn cover(&mut self, number: u64) -> bool {
        let before = self.by_entity.len();
        self.by_entity.retain(|_, intent| intent.number > number);
        self.by_entity.len() < before
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_entity.is_empty()
    }

    /// In order of their numbers.
    pub(super) fn in_order(&self) -> Vec<&Intent> {
        let mut intents: Vec<&Intent> = self.by_entity.values().collect();
        intents.sort_unstable_by_key(|intent| intent.number);
        intents
    }
}

impl FromIterator<Intent> for Intents {
    fn from_iter<T: IntoIterator<Item = Intent>>(all: T) -> Self {
        let mut intents = Self::default();
        all.into_iter().for_each(|intent| intents.add(intent));
        intents
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intent_log::tests::an_intent;

    #[test]
    fn only_the_newest_intent_of_an_entity_is_kept_and_it_knows_the_first() {
        let mut second = an_intent(2, 1);
        (second.sent.first, second.sent.state, second.sent.counter) = (false, None, 1);
        let mut intents: Intents = [an_intent(1, 1), an_intent(3, 2), second.clone()].into_iter().collect();
        (second.sent.first, second.sent.state) = (true, an_intent(1, 1).sent.state);
        assert_eq!(intents.in_order(), [&second, &an_intent(3, 2)]);
        assert!(intents.cover(2));
        assert_eq!(intents.in_order(), [&an_intent(3, 2)]);
        assert!(intents.cover(3) && intents.is_empty());
    }
}
