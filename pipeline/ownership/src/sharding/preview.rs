//! What a number of replicas would own, and how much would move: nothing is changed by asking.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use pipeline_core::Key;
use serde::{Deserialize, Serialize};

use super::Sharding;
use crate::{Replica, SHARDS, place};

/// The most replicas that are asked about.
pub const REPLICAS: u32 = 256;
/// The most shards that are asked about.
pub const MOST_SHARDS: u32 = 1024;

/// How shards find their replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// By leases, with more shards than replicas; names find their shard by jump hash.
    #[default]
    Leases,
    /// Each replica has the shard of its ordinal; names find it by jump hash.
    Jump,
    /// Each replica has the shard of its ordinal; names find it as the incumbent's do.
    FnvModulo,
}

impl Way {
    /// All names, in the order of [`Way`].
    pub const NAMES: [&'static str; 3] = ["leases", "jump", "fnv-modulo"];

    /// The way of this name.
    ///
    /// # Errors
    /// [`PreviewError::Way`] when there is none.
    pub fn named(name: &str) -> Result<Self, PreviewError> {
        match name {
            "leases" => Ok(Self::Leases),
            "jump" => Ok(Self::Jump),
            "fnv-modulo" => Ok(Self::FnvModulo),
            _ => Err(PreviewError::Way(name.to_owned())),
        }
    }
}

/// A preview that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PreviewError {
    /// Too many, none, or no number.
    #[error("`{name}` is to be a number from 1 to {most}, and not `{given}`")]
    Number {
        /// Of what.
        name: &'static str,
        /// The most.
        most: u32,
        /// What was given.
        given: String,
    },
    /// Where each replica has one shard.
    #[error("`shards` is for the way `leases`: by the others there are as many shards as replicas")]
    Shards,
    /// No such way.
    #[error("`{0}` is no way that shards find their replicas: `leases`, `jump` or `fnv-modulo`")]
    Way(String),
    /// A number of replicas is what it is about.
    #[error(
        "`from`, `shards` and `way` are asked with `replicas`, the number of replicas that there would be"
    )]
    Replicas,
}

/// What is asked, as text.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Question {
    /// How many replicas there would be.
    pub replicas: Option<String>,
    /// How many there are.
    pub from: Option<String>,
    /// How many shards there are.
    pub shards: Option<String>,
    /// [`Way`], by name.
    pub way: Option<String>,
}

impl Question {
    /// What is meant; `None`: nothing is asked.
    ///
    /// # Errors
    /// [`PreviewError`], which says what is wrong.
    pub fn read(&self) -> Result<Option<Preview>, PreviewError> {
        let number = |name, most, given: &Option<String>| {
            let Some(given) = given else { return Ok(None) };
            let number = given.parse().ok().filter(|number: &NonZeroU32| number.get() <= most);
            number.map(Some).ok_or_else(|| PreviewError::Number { name, most, given: given.clone() })
        };
        let Some(replicas) = number("replicas", REPLICAS, &self.replicas)? else {
            let bare = self.from.is_none() && self.shards.is_none() && self.way.is_none();
            return if bare { Ok(None) } else { Err(PreviewError::Replicas) };
        };
        let way = self.way.as_deref().map_or(Ok(Way::default()), Way::named)?;
        let shards = number("shards", MOST_SHARDS, &self.shards)?;
        if shards.is_some() && way != Way::Leases {
            return Err(PreviewError::Shards);
        }
        let from = number("from", REPLICAS, &self.from)?;
        Ok(Some(Preview { replicas, from, shards: shards.unwrap_or(SHARDS), way }))
    }
}

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preview {
    replicas: NonZeroU32,
    from: Option<NonZeroU32>,
    shards: NonZeroU32,
    way: Way,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Previewed {
    /// By which way.
    pub way: Way,
    /// What each replica would own, by its ordinal.
    pub replicas: Vec<Share>,
    /// All objects.
    pub objects: u64,
    /// Their resources.
    pub resources: u64,
    /// Objects of which it is not known how many resources they have: they count as none.
    pub uncounted: u64,
    /// What would move, where it was asked from how many replicas.
    pub moved: Option<Moved>,
}

/// What one replica would own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Its shards.
    pub shards: Vec<u32>,
    /// Their objects.
    pub objects: u64,
    /// The resources of these.
    pub resources: u64,
}

/// What would move to another replica.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Moved {
    /// How many replicas there are before.
    pub from: u32,
    /// Objects that would have another replica.
    pub objects: u64,
    /// Their resources.
    pub resources: u64,
    /// These objects as a part of all, 0 to 1.
    pub part: f64,
}

impl Preview {
    /// Distributes objects, each with the number of its resources where that is known.
    ///
    /// With leases the shards that each replica has depend on its name too, and its name is not known before it is there:
    /// how many it has does not, nor does how many move. Here replicas are called `replica-0` and so on, and those of
    /// [`Moved::from`] came first.
    #[must_use]
    pub fn of<'a>(self, objects: impl IntoIterator<Item = (&'a Key, Option<u64>)>) -> Previewed {
        let before = self.from.map(|from| self.owners(from, None));
        let after = self.owners(self.replicas, before.as_deref());
        let mut shares = vec![Share::default(); self.replicas.get() as usize];
        for (shard, owner) in (0..).zip(&after) {
            if let Some(share) = shares.get_mut(*owner) {
                share.shards.push(shard);
            }
        }
        let (mut all, mut moved, mut uncounted) = (Share::default(), Share::default(), 0);
        for (key, counted) in objects {
            let resources = counted.unwrap_or_default();
            uncounted += u64::from(counted.is_none());
            let count = |share: &mut Share| {
                share.objects += 1;
                share.resources = share.resources.saturating_add(resources);
            };
            let home = |owners: &[usize], replicas| {
                owners.get(self.sharding(replicas).place(key) as usize).copied().unwrap_or_default()
            };
            let owner = home(&after, self.replicas);
            count(&mut all);
            if let Some(share) = shares.get_mut(owner) {
                count(share);
            }
            if let (Some(before), Some(from)) = (&before, self.from)
                && home(before, from) != owner
            {
                count(&mut moved);
            }
        }
        let part = moved.objects as f64 / all.objects.max(1) as f64;
        let Share { objects, resources, .. } = moved;
        Previewed {
            way: self.way,
            replicas: shares,
            objects: all.objects,
            resources: all.resources,
            uncounted,
            moved: self.from.map(|from| Moved { from: from.get(), objects, resources, part }),
        }
    }

    fn sharding(self, replicas: NonZeroU32) -> Sharding {
        match self.way {
            Way::Leases => Sharding::Jump { shards: self.shards },
            Way::Jump => Sharding::Jump { shards: replicas },
            Way::FnvModulo => Sharding::FnvModulo { replicas },
        }
    }

    /// The ordinal of the owner of each shard.
    fn owners(self, replicas: NonZeroU32, before: Option<&[usize]>) -> Vec<usize> {
        let count = replicas.get() as usize;
        if self.way != Way::Leases {
            return (0..count).collect();
        }
        let most = self.from.map_or(count, |from| count.max(from.get() as usize));
        let names: Vec<Replica> = (0..most).map(ordinal).collect();
        let members: BTreeSet<Replica> = names.iter().take(count).cloned().collect();
        let ordinals: BTreeMap<&Replica, usize> = names.iter().zip(0..).collect();
        let held = |shard: u32| before.and_then(|before| names.get(*before.get(shard as usize)?));
        let placed = place(self.shards, &members, held);
        placed.into_iter().filter_map(|owner| ordinals.get(owner).copied()).collect()
    }
}

#[expect(clippy::expect_used, reason = "letters, a dash and digits are a name")]
fn ordinal(number: usize) -> Replica {
    Replica::new(&format!("replica-{number}")).expect("letters, a dash and digits")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(replicas: &str, from: &str, shards: &str, way: &str) -> Question {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Question { replicas: text(replicas), from: text(from), shards: text(shards), way: text(way) }
    }

    fn keys() -> Vec<Key> {
        (0..50_000).map(|n| Key::new("ns", &format!("team-{}-app-{n}", n % 37)).unwrap()).collect()
    }

    fn previewed(question: &Question, keys: &[Key]) -> Previewed {
        let preview = question.read().unwrap().unwrap();
        preview.of(keys.iter().zip(0..).map(|(key, n)| (key, (n % 5 > 0).then_some(n % 5))))
    }

    #[test]
    fn every_way_gives_each_object_one_replica_and_counts_what_moves() {
        let keys = keys();
        for (way, least, most) in [("leases", 0.15, 0.17), ("jump", 0.15, 0.17), ("fnv-modulo", 0.82, 0.85)] {
            for (replicas, from) in [("6", "5"), ("5", "6")] {
                let found = previewed(&question(replicas, from, "", way), &keys);
                assert_eq!(found.replicas.len().to_string(), replicas);
                assert_eq!((found.objects, found.resources, found.uncounted), (50_000, 100_000, 10_000));
                let sum = |of: fn(&Share) -> u64| found.replicas.iter().map(of).sum::<u64>();
                assert_eq!((sum(|share| share.objects), sum(|share| share.resources)), (50_000, 100_000));
                let moved = found.moved.unwrap();
                assert!((least..=most).contains(&moved.part), "{way} {from} -> {replicas}: {}", moved.part);
                assert_eq!(moved.part, moved.objects as f64 / 50_000.0);
                assert!(moved.resources > moved.objects && moved.resources < 3 * moved.objects);
            }
        }
    }

    #[test]
    fn with_leases_every_replica_has_its_share_of_the_shards() {
        let keys = keys();
        let found = previewed(&question("6", "", "64", ""), &keys);
        assert_eq!((found.way, found.moved.clone()), (Way::Leases, None));
        let mut shards: Vec<u32> = found.replicas.iter().flat_map(|share| share.shards.clone()).collect();
        shards.sort_unstable();
        assert_eq!(shards, (0..64).collect::<Vec<_>>());
        assert!(found.replicas.iter().all(|share| (10..=11).contains(&share.shards.len())));
        // Nothing moves where nothing changes.
        assert_eq!(previewed(&question("6", "6", "", ""), &keys).moved.unwrap().objects, 0);
        // Only the new one takes.
        let (five, six) =
            (previewed(&question("5", "", "", ""), &keys), previewed(&question("6", "5", "", ""), &keys));
        for (before, after) in five.replicas.iter().zip(&six.replicas) {
            assert!(after.shards.iter().all(|shard| before.shards.contains(shard)));
        }
        let empty = previewed(&question("3", "2", "", ""), &[]);
        assert_eq!((empty.objects, empty.moved.unwrap().part), (0, 0.0));
    }

    #[test]
    fn by_ordinals_replicas_own_what_a_static_sharding_gives_them() {
        let keys = keys();
        let found = previewed(&question("3", "", "", "fnv-modulo"), &keys);
        let sharding = Sharding::FnvModulo { replicas: NonZeroU32::new(3).unwrap() };
        let distribution = super::super::Distribution::of(sharding, &keys).distribution;
        let shares: BTreeMap<u32, u64> =
            found.replicas.iter().map(|share| (share.shards[0], share.objects)).collect();
        assert_eq!(shares, distribution);
    }

    #[test]
    fn what_cannot_be_previewed_is_refused() {
        assert_eq!(question("", "", "", "").read(), Ok(None));
        for (asked, message) in [
            (question("0", "", "", ""), "`replicas` is to be a number from 1 to 256, and not `0`"),
            (question("257", "", "", ""), "`replicas` is to be a number from 1 to 256, and not `257`"),
            (question("six", "", "", ""), "`replicas` is to be a number from 1 to 256, and not `six`"),
            (question("6", "-1", "", ""), "`from` is to be a number from 1 to 256, and not `-1`"),
            (question("6", "", "1025", ""), "`shards` is to be a number from 1 to 1024, and not `1025`"),
            (
                question("6", "", "32", "jump"),
                "`shards` is for the way `leases`: by the others there are as many shards as replicas",
            ),
            (
                question("6", "", "", "modulo"),
                "`modulo` is no way that shards find their replicas: `leases`, `jump` or `fnv-modulo`",
            ),
            (
                question("", "5", "", ""),
                "`from`, `shards` and `way` are asked with `replicas`, the number of replicas that there would be",
            ),
        ] {
            assert_eq!(asked.read().unwrap_err().to_string(), message);
        }
        for name in Way::NAMES {
            assert_eq!(serde_json::to_value(Way::named(name).unwrap()).unwrap(), name);
        }
    }
}
