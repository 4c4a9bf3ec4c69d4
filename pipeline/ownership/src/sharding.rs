//! Which shard owns an object, and which shards this process owns.

pub mod preview;

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use pipeline_core::Key;
use serde::Serialize;

/// How a shard is found: always by the object's name, without its namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharding {
    /// Seahash of the name, placed by jump consistent hash: going from 5 to 6 shards moves a sixth of the
    /// objects.
    Jump {
        /// How many shards there are.
        shards: NonZeroU32,
    },
    /// FNV-1a (32 bits) of the name, modulo the number of replicas: the incumbent's way, for running beside
    /// it.
    FnvModulo {
        /// How many replicas there are.
        replicas: NonZeroU32,
    },
}

/// A sharding that is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no sharding: `default`, `jump`, `jump:N`, `fnv-modulo` or `fnv-modulo:N` with N at least 1"
)]
pub struct ShardingError(String);

impl Sharding {
    /// How many shards there are.
    #[must_use]
    pub fn shards(self) -> NonZeroU32 {
        match self {
            Self::Jump { shards } => shards,
            Self::FnvModulo { replicas } => replicas,
        }
    }

    /// The shard that owns `key`: at least 0, less than [`Sharding::shards`].
    #[must_use]
    pub fn place(self, key: &Key) -> u32 {
        let name = key.name().as_bytes();
        match self {
            Self::Jump { shards } => jump(seahash::hash(name), shards),
            Self::FnvModulo { replicas } => fnv1a(name) % replicas,
        }
    }

    /// Reads the name of a sharding; without a number it has as many shards as `self`, and a number alone is
    /// the way of `self` with so many. `default` is `self`.
    ///
    /// # Errors
    /// [`ShardingError`] for any other name.
    pub fn named(self, name: &str) -> Result<Self, ShardingError> {
        let unknown = || ShardingError(name.to_owned());
        let (way, count) = match name.split_once(':') {
            Some((way, count)) => (way, NonZeroU32::from_str(count).map_err(|_| unknown())?),
            None => (name, self.shards()),
        };
        match way {
            "default" if !name.contains(':') => Ok(self),
            number if !name.contains(':') && number.starts_with(|digit: char| digit.is_ascii_digit()) => {
                let count = NonZeroU32::from_str(number).map_err(|_| unknown())?;
                Ok(match self {
                    Self::Jump { .. } => Self::Jump { shards: count },
                    Self::FnvModulo { .. } => Self::FnvModulo { replicas: count },
                })
            }
            "jump" => Ok(Self::Jump { shards: count }),
            "fnv-modulo" => Ok(Self::FnvModulo { replicas: count }),
            _ => Err(unknown()),
        }
    }
}

impl fmt::Display for Sharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Jump { shards } => write!(f, "jump:{shards}"),
            Self::FnvModulo { replicas } => write!(f, "fnv-modulo:{replicas}"),
        }
    }
}

/// Which shards this process owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owned {
    /// All of them: it is alone.
    All,
    /// This one.
    One(u32),
}

impl Owned {
    /// The shards owned, in order.
    #[must_use]
    pub fn shards(self, sharding: Sharding) -> Vec<u32> {
        match self {
            Self::All => (0..sharding.shards().get()).collect(),
            Self::One(shard) => vec![shard],
        }
    }

    /// Whether this process owns the shard of `key`.
    #[must_use]
    pub fn owns(self, sharding: Sharding, key: &Key) -> bool {
        match self {
            Self::All => true,
            Self::One(own) => own == sharding.place(key),
        }
    }
}

/// Where objects are, under one sharding.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Distribution {
    /// Objects by shard; a shard without any is there with 0.
    pub distribution: BTreeMap<u32, u64>,
    /// Shard by `namespace/name`.
    pub apps: BTreeMap<String, u32>,
}

impl Distribution {
    /// Places `keys`.
    #[must_use]
    pub fn of<'a>(sharding: Sharding, keys: impl IntoIterator<Item = &'a Key>) -> Self {
        let mut distribution: BTreeMap<u32, u64> = (0..sharding.shards().get()).map(|n| (n, 0)).collect();
        let mut apps = BTreeMap::new();
        for key in keys {
            let shard = sharding.place(key);
            *distribution.entry(shard).or_default() += 1;
            apps.insert(key.as_str().to_owned(), shard);
        }
        Self { distribution, apps }
    }
}

/// The distribution of `keys` under every sharding that is asked for by name, separated by commas (empty:
/// `default`); see [`Sharding::named`].
///
/// # Errors
/// [`ShardingError`] when a name is unknown.
pub fn distributions(
    asked: &str,
    current: Sharding,
    keys: &[Key],
) -> Result<BTreeMap<String, Distribution>, ShardingError> {
    let names = asked.split(',').map(str::trim).filter(|name| !name.is_empty());
    let mut found = BTreeMap::new();
    for name in names {
        found.insert(name.to_owned(), Distribution::of(current.named(name)?, keys));
    }
    if found.is_empty() {
        found.insert("default".to_owned(), Distribution::of(current, keys));
    }
    Ok(found)
}

/// Jump consistent hash (Lamping and Veach): the bucket of `hash` among `buckets`.
fn jump(mut hash: u64, buckets: NonZeroU32) -> u32 {
    let buckets = u64::from(buckets.get());
    let (mut bucket, mut next) = (0, 0);
    while next < buckets {
        bucket = next;
        hash = hash.wrapping_mul(2_862_933_555_777_941_757).wrapping_add(1);
        next = ((bucket + 1) as f64 * ((1_u64 << 31) as f64 / ((hash >> 33) + 1) as f64)) as u64;
    }
    u32::try_from(bucket).unwrap_or(u32::MAX)
}

fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn count(number: u32) -> NonZeroU32 {
        NonZeroU32::new(number).unwrap()
    }

    fn key(name: &str) -> Key {
        Key::new("ns", name).unwrap()
    }

    #[test]
    fn jump_places_as_published() {
        let published = [
            (10_863_919_174_838_991, 11, 6),
            (2_016_238_256_797_177_309, 11, 3),
            (1_673_758_223_894_951_030, 11, 5),
            (2, 100_001, 80_343),
            (2201, 100_001, 22_152),
            (2202, 100_001, 15_018),
        ];
        for (hash, buckets, bucket) in published {
            assert_eq!(jump(hash, count(buckets)), bucket, "{hash} of {buckets}");
        }
    }

    #[test]
    fn fnv1a_hashes_as_published() {
        assert_eq!(fnv1a(b""), 0x811c_9dc5);
        assert_eq!(fnv1a(b"a"), 0xe40c_292c);
        assert_eq!(fnv1a(b"foobar"), 0xbf9c_f968);
    }

    #[test]
    fn one_more_shard_moves_at_most_seventeen_percent_and_modulo_moves_five_sixths() {
        let keys: Vec<Key> = (0..50_000).map(|n| key(&format!("team-{}-app-{n}", n % 37))).collect();
        let moved = |from: Sharding, to: Sharding| {
            keys.iter().filter(|key| from.place(key) != to.place(key)).count() as f64 / keys.len() as f64
        };
        let jump = moved(Sharding::Jump { shards: count(5) }, Sharding::Jump { shards: count(6) });
        assert!((0.15..0.17).contains(&jump), "{jump}");
        let modulo =
            moved(Sharding::FnvModulo { replicas: count(5) }, Sharding::FnvModulo { replicas: count(6) });
        assert!((0.82..0.85).contains(&modulo), "{modulo}");
    }

    #[test]
    fn jump_spreads_evenly() {
        let keys: Vec<Key> = (0..50_000).map(|n| key(&format!("app-{n}"))).collect();
        let spread = Distribution::of(Sharding::Jump { shards: count(5) }, &keys);
        for (shard, apps) in spread.distribution {
            assert!((9_600..10_400).contains(&apps), "{shard}: {apps}");
        }
    }

    #[test]
    fn owning_one_shard_takes_its_keys_alone() {
        let sharding = Sharding::Jump { shards: count(5) };
        for number in 0..100 {
            let key = key(&format!("app-{number}"));
            let shard = sharding.place(&key);
            assert!(Owned::All.owns(sharding, &key));
            for own in 0..5 {
                assert_eq!(Owned::One(own).owns(sharding, &key), own == shard);
            }
        }
        assert_eq!(Owned::All.shards(sharding), [0, 1, 2, 3, 4]);
        assert_eq!(Owned::One(3).shards(sharding), [3]);
    }

    #[test]
    fn distributions_are_given_in_the_documented_shape() {
        let current = Sharding::FnvModulo { replicas: count(2) };
        let keys = [key("a"), key("b")];
        let json = serde_json::to_value(distributions("", current, &keys).unwrap()).unwrap();
        assert_eq!(
            json,
            serde_json::json!({"default": {
                "distribution": {"0": 1, "1": 1}, "apps": {"ns/a": 0, "ns/b": 1}
            }})
        );
        let several = distributions("default, jump:3", current, &keys).unwrap();
        assert_eq!(several.keys().collect::<Vec<_>>(), ["default", "jump:3"]);
        assert_eq!(several["jump:3"].distribution.len(), 3);
    }

    #[test]
    fn unknown_shardings_are_refused() {
        let current = Sharding::Jump { shards: count(5) };
        for name in ["modulo", "jump:0", "jump:x", "default:3", "jump:", "0", "7x"] {
            assert_eq!(
                distributions(name, current, &[]).unwrap_err().to_string(),
                format!(
                    "`{name}` is no sharding: `default`, `jump`, `jump:N`, `fnv-modulo` or `fnv-modulo:N` \
                     with N at least 1"
                )
            );
        }
        assert_eq!(current.named("7"), Ok(Sharding::Jump { shards: count(7) }));
        assert_eq!(current.named("fnv-modulo"), Ok(Sharding::FnvModulo { replicas: count(5) }));
        assert_eq!(current.to_string(), "jump:5");
    }

    proptest! {
        #[test]
        fn a_shard_is_always_in_range(name in "[a-z0-9.-]{1,60}", shards in 1_u32..500) {
            let key = Key::new("ns", &name).unwrap();
            let count = count(shards);
            for sharding in [Sharding::Jump { shards: count }, Sharding::FnvModulo { replicas: count }] {
                prop_assert!(sharding.place(&key) < shards);
            }
        }

        #[test]
        fn a_new_shard_takes_and_the_others_keep(name in "[a-z0-9-]{1,40}", shards in 1_u32..100) {
            let key = Key::new("ns", &name).unwrap();
            let before = Sharding::Jump { shards: count(shards) }.place(&key);
            let after = Sharding::Jump { shards: count(shards + 1) }.place(&key);
            prop_assert!(after == before || after == shards);
        }
    }
}
