//! One thing that happened to one object.

use std::fmt;

use bytes::Bytes;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Fact, Key, ObjectLabels, Uid};

/// `metadata.resourceVersion` as a number, and in its three highest bits the era that it is of; comparable within one
/// cluster. 0 means unknown.
///
/// A cluster's store counts its writes, or says when they were made: GKE's has nanoseconds since 1970, which fit until 2043.
/// One that is restored from a snapshot counts anew from there, and what it says then is newer than all before, whatever the
/// numbers. Whoever notices it begins another era: so every comparison of versions holds, and what remembers them needs to
/// know nothing of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Version(pub u64);

impl Version {
    const NUMBER: u32 = 61;

    /// No era follows this one.
    pub const LAST_ERA: u8 = (1 << (u64::BITS - Self::NUMBER)) - 1;

    /// The version that the API server calls so. A number of more than 61 bits is unknown.
    #[must_use]
    pub const fn of_number(number: u64) -> Self {
        if number >> Self::NUMBER == 0 { Self(number) } else { Self(0) }
    }

    /// The same number in an era. What is unknown stays so.
    #[must_use]
    pub const fn in_era(self, era: u8) -> Self {
        match self.number() {
            0 => Self(0),
            number => {
                let era = if era > Self::LAST_ERA { Self::LAST_ERA } else { era };
                Self((era as u64) << Self::NUMBER | number)
            }
        }
    }

    /// The older of two; the other one where one is unknown.
    #[must_use]
    pub fn older(self, other: Self) -> Self {
        match (self.0, other.0) {
            (0, _) => other,
            (_, 0) => self,
            _ => self.min(other),
        }
    }

    /// All versions before this one; unknown where there is none in its era.
    #[must_use]
    pub const fn before(self) -> Self {
        match self.number() {
            0 | 1 => Self(0),
            _ => Self(self.0 - 1),
        }
    }

    /// How often the cluster's versions had gone back before; from 0.
    #[must_use]
    pub const fn era(self) -> u8 {
        (self.0 >> Self::NUMBER) as u8
    }

    /// What the API server calls it.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0 & ((1 << Self::NUMBER) - 1)
    }
}

/// What happened.
#[derive(Clone, PartialEq, Eq)]
pub enum Change {
    /// The object is there, as in `body`: the JSON text exactly as the API server sent it.
    Applied {
        /// The object's JSON, shared and never copied.
        body: Bytes,
    },
    /// The object is gone; `body` is its last state where the watch delivered one, `None` where only its
    /// absence was noticed.
    Deleted {
        /// The last state, if known.
        body: Option<Bytes>,
    },
}

/// Without the object: what is printed may end in a log.
impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Applied { body } => write!(f, "Applied({} bytes)", body.len()),
            Self::Deleted { body } => write!(f, "Deleted({:?} bytes)", body.as_ref().map(Bytes::len)),
        }
    }
}

/// Why the event exists; stale redeliveries are dropped only for [`Cause::Watch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The watch, or a list of it, delivered the object.
    Watch,
    /// The key was dirty and its object was read again.
    Read,
    /// Something that could not be fetched for the last report is incomplete; its time has come.
    Refetch,
}

/// One observed change of one object, as it travels from a source through a lane to the enrichment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Whose.
    pub key: Key,
    /// Which life of it.
    pub uid: Uid,
    /// Which state of it.
    pub version: Version,
    /// What happened.
    pub change: Change,
    /// What its text says of labels.
    pub labels: ObjectLabels,
    /// Why the event exists.
    pub cause: Cause,
    /// A watch that goes on where a former process ended shows it, and what followed it as well: a state that is not the newest,
    /// or an end. Of several routes one may have been told of it before, and another not.
    pub again: bool,
    /// When the runtime saw it.
    pub observed: Timestamp,
    /// The fact that this state shows, if it shows one.
    pub fact: Option<Fact>,
    /// Facts of states that were coalesced into this one, oldest first.
    pub coalesced: Vec<Fact>,
    /// W3C trace id of the event's life.
    pub trace: u128,
}

impl Event {
    /// What a watch shows of an object at `observed`; nothing else is known of it.
    #[must_use]
    pub fn watched(key: Key, uid: Uid, version: Version, change: Change, observed: Timestamp) -> Self {
        Self {
            key,
            uid,
            version,
            change,
            labels: ObjectLabels::default(),
            cause: Cause::Watch,
            again: false,
            observed,
            fact: None,
            coalesced: Vec::new(),
            trace: 0,
        }
    }

    /// Whether the object is gone.
    #[must_use]
    pub fn is_deleted(&self) -> bool {
        matches!(self.change, Change::Deleted { .. })
    }

    /// Whether it brings a fact or an end along, which a newer state need not show.
    #[must_use]
    pub fn must_be_told(&self) -> bool {
        self.fact.is_some() || !self.coalesced.is_empty() || self.is_deleted()
    }

    /// The JSON text of the object, if there is one.
    #[must_use]
    pub fn body(&self) -> Option<&Bytes> {
        match &self.change {
            Change::Applied { body } => Some(body),
            Change::Deleted { body } => body.as_ref(),
        }
    }

    /// Bytes the event is charged with in a queue.
    #[must_use]
    pub fn size(&self) -> usize {
        size_of::<Self>()
            + self.body().map_or(0, Bytes::len)
            + self.fact.iter().chain(&self.coalesced).map(Fact::size).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_later_era_says_is_newer_whatever_its_number() {
        let (late, early) = (Version::of_number(900), Version::of_number(7));
        assert!(early < late && late < early.in_era(1) && late.in_era(1) < early.in_era(2));
        assert!(early.in_era(1) < late.in_era(1));
        for era in [0, 1, Version::LAST_ERA] {
            assert_eq!((late.in_era(era).era(), late.in_era(era).number()), (era, 900));
            assert_eq!(late.in_era(3).in_era(era), late.in_era(era));
            assert_eq!(Version(0).in_era(era), Version(0), "unknown");
        }
        assert_eq!(late.in_era(u8::MAX).era(), Version::LAST_ERA);
        assert_eq!(Version::of_number((1 << 61) - 1).number(), (1 << 61) - 1);
        assert_eq!(Version::of_number(1 << 61), Version(0));
    }

    #[test]
    fn a_store_that_says_when_it_was_written_has_versions() {
        let [early, late] = [1_748_511_447_930_607_001, 1_748_511_447_930_607_002].map(Version::of_number);
        assert_eq!(early.number(), 1_748_511_447_930_607_001);
        assert!(early < late && late < early.in_era(1) && early.in_era(1) < late.in_era(1));
        assert_eq!(late.in_era(1).number(), late.number());
    }

    #[test]
    fn the_older_of_two_versions_is_one_that_is_known() {
        let [none, early, late] = [0, 7, 900].map(Version);
        for (one, other, older) in
            [(early, late, early), (late, none, late), (none, early, early), (none, none, none)]
        {
            assert_eq!((one.older(other), other.older(one)), (older, older));
        }
        assert_eq!((late.before(), Version(1).before(), none.before()), (Version(899), none, none));
        assert_eq!(early.in_era(2).before(), Version(6).in_era(2));
        assert_eq!(Version(1).in_era(2).before(), none, "no version of its era is before it");
    }

    #[test]
    fn what_is_printed_of_a_change_holds_nothing_of_the_object() {
        let body = Bytes::from_static(b"canary");
        let printed = format!(
            "{:?} {:?}",
            Change::Applied { body: body.clone() },
            Change::Deleted { body: Some(body) }
        );
        assert_eq!(printed, "Applied(6 bytes) Deleted(Some(6) bytes)");
    }
}
