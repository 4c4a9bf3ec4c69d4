//! Which replica owns which shard, when replicas come and go: placement, leases, and the machine that claims them.
//!
//! An object belongs to a shard by its name ([`crate::sharding`]), a shard to the replica that holds its lease.
//! A lease is one record of a store that writes by compare-and-set, such as a key of a JetStream bucket. [`place`] says who
//! is to have a shard, the same to everybody who sees the same replicas and leases; [`Ownership`] is the pure state machine
//! of one replica that brings that about, without a store, a clock or a task of its own; whoever drives it does what it says
//! ([`Action`]) and tells it what happened ([`Input`]). [`drive`] does, over any [`Store`], and gives orders to begin and to
//! stop, each with a [`Fence`].
//!
//! What holds, whatever is lost, late, paused or killed, as long as monotonic clocks run at one rate:
//! - At any moment at most one replica may begin to send for a shard ([`LeaseTerm::may_send`]), and what it began has ended,
//!   by an answer or by its time-out, before another one may.
//! - Every owner of a shard has a higher epoch than all before it, also after the store lost everything.
//! - A replica that may not claim a shard's part of the ledger leaves that shard to another one that may.
//! - A shard whose owner is gone has another one within [`Config::ttl`] and a little: see [`Config`].
//!
//! No time is read from a record: replicas' clocks need not agree. An owner counts its lease from when the write that
//! renewed it was asked for; everybody else counts a whole [`Config::ttl`] from when they saw the record change, which
//! is later. So a record must not expire by itself in the store (its epoch would go with it); it is replaced. A store that
//! may lose everything refuses what was asked of its former life ([`Store::write`]), or whoever drives the machine tells it
//! that the connection was lost ([`Shown::Unwatched`]) before it writes over the next one.

mod driver;
mod input;
mod leases;
mod machine;
mod mine;
mod placement;
pub mod sharding;
mod view;

#[cfg(test)]
mod machine_tests;
#[cfg(test)]
mod simulation;

use std::num::NonZeroU32;
use std::time::Duration;

pub use self::leases::{
    Lease, LeaseError, LeaseWrite, Presence, RECORD_BYTES, REFUSED, Replica, ReplicaError, Shown, Store,
};

pub use self::driver::{Driven, Fence, Order, Standing, drive};
pub use self::input::{Action, Input, LeaseTerm, Purpose, Refusal, Request, StopHow, Write};
pub use self::machine::Ownership;
pub use self::placement::{place, place_allowed, weight};

/// Shards when replicas come and go: few enough to renew each by itself, many enough that five or six replicas have
/// nearly the same number.
pub const SHARDS: NonZeroU32 = NonZeroU32::MIN.saturating_add(31);

/// How leases are held.
///
/// A shard whose owner was killed is owned again after at most `ttl` (from the last renewal that the others saw), one
/// [`Config::tick`] and two answers of the store: within 15 s where `ttl` is 10 s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// How many shards there are: the same for all replicas.
    pub shards: NonZeroU32,
    /// How long a lease lives without being renewed.
    pub ttl: Duration,
    /// How often leases and the replica's own presence are renewed.
    pub renew: Duration,
    /// How often [`Input::Tick`] is to come, whatever else does.
    pub tick: Duration,
    /// What the store has not answered in this time is asked again.
    pub answer: Duration,
    /// A shard that this replica was refused is tried again after so long, unless somebody else has it.
    pub again: Duration,
    /// A shard that is handed over has this long to drain; then its lease is left to lapse.
    pub drain: Duration,
    /// Seconds since 1970 when the clock of [`Ownership::step`] stood at nothing. No epoch is lower than the seconds since
    /// 1970 by this, so where the store lost everything, epochs go on rising, also those of a replica that has not seen
    /// the former ones. Otherwise epochs ask nothing of the wall clock.
    pub first_epoch: u64,
}

impl Config {
    /// Leases of these times; the steps between are short where they are. See [`Config::first_epoch`].
    #[must_use]
    pub fn new(shards: NonZeroU32, ttl: Duration, renew: Duration, first_epoch: u64) -> Self {
        Self {
            shards,
            ttl,
            renew,
            tick: Duration::from_millis(500).min(renew / 4),
            answer: Duration::from_secs(2).min(renew),
            again: Duration::from_secs(60),
            drain: Duration::from_secs(30),
            first_epoch,
        }
    }

    /// Leases as long as they usually are.
    #[cfg(test)]
    pub(crate) fn tested(first_epoch: u64) -> Self {
        Self::new(SHARDS, Duration::from_secs(10), Duration::from_secs(3), first_epoch)
    }

    /// Checks that leases can be held with these times, where sending a report takes `post_timeout` at most: one renewal
    /// may fail without the owner having to stop sending.
    ///
    /// # Errors
    /// [`ConfigError`], which says what to change.
    pub fn check(&self, post_timeout: Duration) -> Result<(), ConfigError> {
        let (ttl, renew) = (self.ttl, self.renew);
        if self.tick.is_zero() || self.tick > renew || self.answer.is_zero() || self.answer > renew {
            return Err(ConfigError::Steps { tick: self.tick, answer: self.answer, renew });
        }
        if post_timeout + renew * 2 > ttl {
            return Err(ConfigError::Short { ttl, renew, post_timeout });
        }
        Ok(())
    }
}

/// Times with which no lease can be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A lease that one late renewal makes useless.
    #[error(
        "a lease of {ttl:?} that is renewed every {renew:?} is too short for reports that may take {post_timeout:?}: \
         it is to last two renewals and a report, {:?}", *post_timeout + *renew * 2
    )]
    Short {
        /// The lease.
        ttl: Duration,
        /// Between renewals.
        renew: Duration,
        /// The longest that sending a report takes.
        post_timeout: Duration,
    },
    /// Steps that are longer than what they make up.
    #[error(
        "a tick of {tick:?} and an answer within {answer:?} must be more than nothing, and no more than the \
         {renew:?} between renewals"
    )]
    Steps {
        /// The tick.
        tick: Duration,
        /// The time for an answer.
        answer: Duration,
        /// Between renewals.
        renew: Duration,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_that_is_too_short_for_a_report_is_refused() {
        let config = Config::tested(1);
        assert_eq!(config.shards.get(), 32);
        assert_eq!(config.check(Duration::from_secs(4)), Ok(()));
        assert_eq!(
            config.check(Duration::from_secs(5)).unwrap_err().to_string(),
            "a lease of 10s that is renewed every 3s is too short for reports that may take 5s: it is to last two \
             renewals and a report, 11s"
        );
        for (tick, answer) in [(0, 1000), (3001, 1000), (500, 0), (500, 3001)] {
            let (tick, answer) = (Duration::from_millis(tick), Duration::from_millis(answer));
            let error = Config { tick, answer, ..config }.check(Duration::ZERO).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!(
                    "a tick of {tick:?} and an answer within {answer:?} must be more than nothing, and no more than the \
                     3s between renewals"
                )
            );
        }
    }
}
