//! The model's process is killed, and another one starts with what was written down.

use super::model::World;
use super::*;
use crate::lane::dirty_entry::{KEPT_FACTS, KEPT_LIVES};

impl World {
    /// Writes down what must outlive the process of one key: whatever was delivered and is not yet told.
    pub(super) fn journal(&mut self, name: &str) {
        let pending = self.bench.lane.pending(&key(name));
        let (facts, gone) = pending.as_ref().map_or((&[][..], &[][..]), |all| (&all.facts, &all.gone));
        let fate = &self.fates[name];
        if !fate.refused && self.bench.counts().summaries_dropped == 0 {
            let written = |(life, at): &&(String, String)| {
                facts.iter().any(|(uid, _, end)| **uid == **life && text_of(end) == *at)
            };
            let forgotten: Vec<_> = fate.due.difference(&fate.told).filter(|end| !written(end)).collect();
            assert!(forgotten.is_empty() || facts.len() == KEPT_FACTS, "not journaled: {forgotten:?}");
            let written = |life: &&String| gone.iter().any(|(uid, _)| **uid == ***life);
            let forgotten: Vec<_> =
                fate.ends.difference(&fate.deleted).filter(|life| !written(life)).collect();
            assert!(forgotten.is_empty() || gone.len() == KEPT_LIVES, "not journaled: {forgotten:?}");
        }
        match pending {
            Some(pending) => drop(self.journal.insert(name.to_owned(), pending)),
            None => drop(self.journal.remove(name)),
        }
    }

    /// What was not written down may be forgotten. What is there is listed, and so is what the ledger knew and is
    /// not there any more.
    pub(super) fn crash(&mut self) {
        self.crashes += 1;
        self.dropped += self.bench.counts().summaries_dropped;
        let parked: Vec<_> =
            self.bench.lane.parked().map(|(key, parked)| (key.clone(), parked.clone())).collect();
        let now = self.bench.now;
        self.bench = Bench::new(self.config);
        self.bench.now = now;
        self.running.clear();
        self.watch.clear();
        self.delivered.clear();
        for (name, fate) in &mut self.fates {
            let pending = self.journal.get(name).cloned().unwrap_or_default();
            let journaled = |life: &str, at: &str| {
                pending.facts.iter().any(|(uid, _, end)| **uid == *life && text_of(end) == at)
            };
            let told = &fate.told;
            fate.due.retain(|end| told.contains(end) || journaled(&end.0, &end.1));
            fate.ends.retain(|life| pending.gone.iter().any(|(uid, _)| **uid == **life));
            fate.lives.clone_from(&fate.deleted);
            fate.lives.extend(pending.facts.iter().map(|(uid, ..)| uid.to_string()));
            fate.lives.extend(pending.gone.iter().map(|(uid, _)| uid.to_string()));
            fate.lives.extend(fate.ledger.clone());
        }
        for (key, parked) in parked {
            self.step(Input::Park { key, parked });
        }
        for (name, pending) in self.journal.clone() {
            self.step(Input::Restore { key: key(&name), pending, awaited: false });
        }
        for number in 0..self.objects.len() {
            let known = self.fates[&format!("k{number}")].ledger.clone();
            let event = self.snapshot(number);
            if self.objects[number].there {
                self.watch.push_back(event);
            } else if let Some(uid) = known {
                let gone = Event { change: Change::Deleted { body: None }, fact: None, ..event };
                self.watch.push_back(Event { version: Version(self.clock), ..of(&uid, gone) });
            }
        }
    }
}
