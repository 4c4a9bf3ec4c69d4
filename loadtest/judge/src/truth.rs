//! What the platform must know in the end: the last state of every application and resource in the simulated cluster,
//! every deletion of an application that had been reported, and operation ends that had to survive.

use std::collections::BTreeSet;
use std::time::Instant;

use serde_json::Value;

use crate::oracle::{self, Expected, LastState};
use crate::witness::{KEPT, Life, Witness, named};
use loadtest_sim::Simulation;
use loadtest_sim::generate::Fleet;
use loadtest_sim::kube::Collection;

/// An operation that ended in one life of an application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// The application's name.
    pub name: String,
    /// The life's uid.
    pub uid: String,
    /// `status.operationState.finishedAt`.
    pub finished: String,
    /// When it happened.
    pub at: Instant,
}

/// What the platform does not know.
#[derive(Debug, Clone, Default)]
pub struct Missing {
    /// How much.
    pub count: u64,
    /// The first of it.
    pub told: Vec<String>,
    /// The applications it is about.
    pub names: BTreeSet<String>,
}

impl Missing {
    fn add(&mut self, what: impl FnOnce() -> String) {
        self.count += 1;
        if self.told.len() < KEPT {
            self.told.push(what());
        }
    }
}

/// Compares the platform's last reports with the cluster, and deletions with `ended`, the lives that are over; the application `spared`
/// is left out.
pub fn missing(
    simulation: &Simulation,
    witness: &Witness,
    ended: &[Life],
    spared: Option<&str>,
) -> anyhow::Result<Missing> {
    let mut expected: Vec<Expected> = Vec::new();
    if let Some(fleet) = &simulation.fleet {
        for state in fleet.snapshot().into_iter().filter(|state| !state.gone) {
            if spared == Some(Fleet::name(state.index).as_str()) {
                continue;
            }
            let key = fleet.key(state.index)?;
            let Some(text) = simulation.kube.text(Collection::Applications, &key) else { continue };
            let object: Value = serde_json::from_slice(&text)?;
            let managed: Value = serde_json::from_slice(&fleet.managed_resources(&state))?;
            let tree: Value = serde_json::from_slice(&fleet.resource_tree(&state))?;
            expected.extend(oracle::expected_of(&LastState {
                object: Some(&object),
                deleted: false,
                managed: Some(&managed),
                tree: Some(&tree),
            }));
        }
    }
    let mut missing = Missing::default();
    let mut before = None;
    for difference in oracle::check(&expected, &simulation.platform.last()) {
        // An entity counts once, however many of its facts are wrong.
        if before.as_ref() != Some(&difference.entity) {
            missing.names.insert(difference.entity.app_name.clone());
            missing.add(|| {
                let fact = difference.fact;
                format!(
                    "{}: {fact} is {}, expected {}",
                    named(&difference.entity),
                    difference.reported,
                    difference.expected
                )
            });
        }
        before = Some(difference.entity);
    }
    let stories: Vec<String> =
        missing.names.iter().take(2).map(|name| format!("{name}: {}", witness.story(name))).collect();
    missing.told.extend(stories);
    let seen = witness.lock();
    for life in ended {
        if seen.lives.contains_key(life) && !seen.deleted.contains(life) {
            missing.add(|| format!("{} ({}): its deletion was not reported", life.0, life.1));
        }
    }
    Ok(missing)
}

/// Lives that were reported as over although they are not.
pub fn false_ends(witness: &Witness, ended: &[Life]) -> Missing {
    let over: BTreeSet<_> = ended.iter().collect();
    let mut missing = Missing::default();
    for life in witness.lock().deleted.iter().filter(|life| !over.contains(life)) {
        missing.names.insert(life.0.clone());
        missing.add(|| format!("{} ({}): it was reported as deleted, and is there", life.0, life.1));
    }
    missing
}

/// Operation ends that were not reported, of those that the platform could be told: an application that was never
/// reported in that life has none to tell.
pub fn missing_ends<'a>(witness: &Witness, ends: impl Iterator<Item = &'a End>) -> Missing {
    let seen = witness.lock();
    let mut missing = Missing::default();
    for end in ends {
        let life = (end.name.clone(), end.uid.clone());
        if seen.lives.contains_key(&life) && !seen.ends.contains(&(end.uid.clone(), end.finished.clone())) {
            missing.add(|| {
                format!(
                    "{} ({}): the operation that ended at {} was not reported",
                    end.name, end.uid, end.finished
                )
            });
        }
    }
    missing
}
