//! Health of a process that shares its work with others: the bus, who watches, and which shards can be claimed.

use std::time::{Duration, Instant};

use super::{HANDOVER, Health, HealthInputs, State};

/// How long a replica must have owned the first shard to be taken for the one that watches: a replica that may not claim
/// it gives it up earlier.
const SETTLED: Duration = Duration::from_secs(10);

/// How the bus is connected with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// It has not been reached since the start, or has not what is needed there.
    Joining,
    /// It answers.
    Whole,
    /// There is no connection any more.
    Away,
}

/// Why a shard's part of the ledger may not be claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimRefusal {
    /// A newer version wrote it.
    Version,
    /// It was written with another number of shards, or another way to share them out.
    Sharding,
}

impl ClaimRefusal {
    /// The reason in words, as it stands in the text of the check.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Version => "a newer version wrote its part of the ledger",
            Self::Sharding => "its part of the ledger was written with another sharding",
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Bus {
    link: Link,
    since: Instant,
}

/// What is known of the replicas that the shards are shared out among.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shares {
    /// Whether this process watches for all.
    pub(super) watches: bool,
    /// Whether this process knows which replica owns which shard.
    pub(super) knows: bool,
    /// Whether any replica owns the first shard, and since when that is so.
    owned: (bool, Instant),
    /// Since when nobody is known to watch.
    unwatched: Instant,
}

impl Shares {
    fn new(now: Instant) -> Self {
        Self { watches: false, knows: false, owned: (false, now), unwatched: now }
    }

    /// Whether another replica watches. While the bus is away nobody can tell.
    pub(super) fn watched(&self, is_away: bool, now: Instant) -> (State, String) {
        let (owned, since) = self.owned;
        if self.knows && owned && now.saturating_duration_since(since) >= SETTLED {
            return (State::Ok, "another replica watches".to_owned());
        }
        let unwatched = now.saturating_duration_since(self.unwatched);
        if is_away || !self.knows {
            let state = if unwatched > HANDOVER && !is_away { State::Degraded } else { State::Ok };
            return (state, "it is not known who watches".to_owned());
        }
        let text = format!("nobody has watched for {} s", unwatched.as_secs());
        if unwatched > HANDOVER {
            (State::Failing, text)
        } else if unwatched > HANDOVER / 3 {
            (State::Degraded, text)
        } else if owned {
            (State::Ok, "another replica begins to watch".to_owned())
        } else {
            (State::Ok, text)
        }
    }
}

impl Health {
    /// How the bus is connected with; never told where there is none.
    pub fn bus(&self, link: Link, now: Instant) {
        let mut inputs = self.inputs();
        let before = inputs.bus.map(|bus| bus.link);
        if before == Some(link) {
            return;
        }
        inputs.bus = Some(Bus { link, since: now });
        if link != Link::Whole {
            return;
        }
        // What could not be done before has its full time from now on.
        if before == Some(Link::Joining) {
            (inputs.started, inputs.moved) = (now, now);
        }
        for lane in &mut inputs.lanes {
            lane.progressed = now;
        }
        if let Some(shares) = &mut inputs.shares {
            shares.unwatched = now;
        }
    }

    /// The shards are shared out among replicas, so that only those that run here are checked. The process is not ready until
    /// it `knows` which replica owns which shard; `owned` says whether any replica owns the first shard, as that one watches
    /// for all.
    pub fn shares(&self, knows: bool, owned: bool, now: Instant) {
        let mut inputs = self.inputs();
        let shares = inputs.shares.get_or_insert_with(|| Shares::new(now));
        shares.knows = knows;
        if shares.owned.0 != owned {
            let (was, since) = shares.owned;
            if was && now.saturating_duration_since(since) >= SETTLED {
                shares.unwatched = now;
            }
            shares.owned = (owned, now);
        }
    }

    /// This process begins or ceases to watch for all.
    pub fn watches(&self, watches: bool, now: Instant) {
        let mut inputs = self.inputs();
        let shares = inputs.shares.get_or_insert_with(|| Shares::new(now));
        let begins = watches && !shares.watches;
        if shares.watches && !watches {
            shares.unwatched = now;
        }
        shares.watches = watches;
        if begins {
            (inputs.listed, inputs.moved, inputs.broken) = (false, now, None);
        }
    }

    /// A shard's part of the ledger is being claimed.
    pub fn claims(&self, shard: u32, now: Instant) {
        self.inputs().claims.entry(shard).or_insert(now);
    }

    /// A shard's part of the ledger is not being claimed any more, and was not claimed.
    pub fn claims_no_more(&self, shard: u32) {
        self.inputs().claims.remove(&shard);
    }

    /// A shard's part of the ledger was claimed.
    pub fn claimed(&self, shard: u32) {
        let mut inputs = self.inputs();
        inputs.claims.remove(&shard);
        inputs.refused.remove(&shard);
    }

    /// A shard's part of the ledger may not be claimed; that is remembered until it is claimed.
    pub fn refused(&self, shard: u32, why: ClaimRefusal) {
        let mut inputs = self.inputs();
        inputs.claims.remove(&shard);
        inputs.refused.insert(shard, why);
    }
}

impl HealthInputs {
    pub(super) fn is_joining(&self) -> bool {
        self.bus.is_some_and(|bus| bus.link == Link::Joining)
    }

    pub(super) fn is_away(&self) -> bool {
        self.bus.is_some_and(|bus| bus.link != Link::Whole)
    }

    pub(super) fn bus(&self, now: Instant) -> (State, String) {
        let Some(Bus { link, since }) = self.bus else { return (State::Ok, "not needed".to_owned()) };
        let lasting = now.saturating_duration_since(since).as_secs();
        match link {
            Link::Whole => (State::Ok, "connected".to_owned()),
            Link::Joining => (
                State::Degraded,
                format!(
                    "not ready for {lasting} s, as the log says: nothing is watched or reported before it is"
                ),
            ),
            Link::Away => (State::Degraded, format!("no connection for {lasting} s, tried again")),
        }
    }

    /// What is to be said of shards that cannot be claimed.
    pub(super) fn unclaimed(&self, now: Instant) -> Option<String> {
        if let Some((shard, why)) = self.refused.first_key_value() {
            let others = match self.refused.len() - 1 {
                0 => String::new(),
                others => format!(", and {others} others"),
            };
            return Some(format!("shard {shard}{others} cannot be claimed: {}", why.as_str()));
        }
        let late = |(_, since): &(&u32, &Instant)| now.saturating_duration_since(**since) > HANDOVER;
        let (shard, since) = self.claims.iter().find(late)?;
        let lasting = now.saturating_duration_since(*since).as_secs();
        (!self.is_away())
            .then(|| format!("shard {shard}: its part of the ledger has not been claimed for {lasting} s"))
    }
}
