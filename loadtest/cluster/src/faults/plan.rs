//! What is taken away in which round, when and for how long: a function of the seed alone.

use std::fmt;
use std::time::Duration;

use fastrand::Rng;

use crate::argocd::Part;

/// How long changes go on before something is taken away, in milliseconds.
const BEFORE: std::ops::RangeInclusive<u64> = 500..=3_000;
/// How long it stays away, in milliseconds.
const AWAY: std::ops::RangeInclusive<u64> = 1_000..=4_000;

/// What is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Victim {
    /// The API server; while it is away, etcd forgets its history.
    ApiServer,
    /// One part of Argo CD, or all of it.
    ArgoCd(Option<Part>),
    /// The reporter.
    Reporter,
}

impl fmt::Display for Victim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::ApiServer => "API server",
            Self::ArgoCd(None) => "Argo CD, all of it",
            Self::ArgoCd(Some(Part::Redis)) => "Argo CD's redis and controller",
            Self::ArgoCd(Some(Part::RepoServer)) => "Argo CD's repo server",
            Self::ArgoCd(Some(Part::Controller)) => "Argo CD's controller",
            Self::ArgoCd(Some(Part::Server)) => "Argo CD's API server",
            Self::Reporter => "reporter",
        })
    }
}

/// One round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Round {
    /// What is killed.
    pub(super) victim: Victim,
    /// How long changes go on before.
    pub(super) before: Duration,
    /// How long it stays away.
    pub(super) away: Duration,
    /// The application that is deleted meanwhile takes its resources with it.
    pub(super) cascade: bool,
    /// It is made anew as soon as it is gone, and not when its end has been reported.
    pub(super) at_once: bool,
}

/// The rounds of a seed. The three kinds take turns, so that each is met in any three rounds, and the API server is
/// among the first two.
pub(super) fn rounds(seed: u64, count: usize) -> Vec<Round> {
    let mut dice = Rng::with_seed(seed);
    let (api_server, argocd, reporter) = (Victim::ApiServer, Victim::ArgoCd(None), Victim::Reporter);
    let turns = match dice.u8(0..4) {
        0 => [api_server, argocd, reporter],
        1 => [api_server, reporter, argocd],
        2 => [argocd, api_server, reporter],
        _ => [reporter, api_server, argocd],
    };
    let mut parts =
        [Some(Part::Redis), Some(Part::RepoServer), Some(Part::Controller), Some(Part::Server), None];
    dice.shuffle(&mut parts);
    let mut parts = parts.into_iter().cycle();
    let turns = turns.into_iter().cycle().take(count);
    let rounds = turns.map(|turn| Round {
        victim: match turn {
            // An iterator that never ends has a next one.
            Victim::ArgoCd(_) => Victim::ArgoCd(parts.next().flatten()),
            other => other,
        },
        before: Duration::from_millis(dice.u64(BEFORE)),
        away: Duration::from_millis(dice.u64(AWAY)),
        // What it takes along would keep it until Argo CD has found the API server again.
        cascade: dice.bool() && turn != Victim::ApiServer,
        at_once: dice.bool(),
    });
    rounds.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(round: &Round) -> u8 {
        match round.victim {
            Victim::ApiServer => 0,
            Victim::ArgoCd(_) => 1,
            Victim::Reporter => 2,
        }
    }

    #[test]
    fn any_three_rounds_meet_every_kind_and_the_first_two_the_api_server() {
        for seed in 0..200 {
            let rounds = rounds(seed, 10);
            for three in rounds.windows(3) {
                let mut kinds: Vec<u8> = three.iter().map(kind).collect();
                kinds.sort_unstable();
                assert_eq!(kinds, [0, 1, 2], "seed {seed}");
            }
            assert!(rounds[..2].iter().any(|round| round.victim == Victim::ApiServer), "seed {seed}");
        }
    }

    #[test]
    fn fifteen_rounds_kill_every_part_of_argo_cd_and_all_of_it() {
        let rounds = rounds(7, 15);
        for part in
            [None, Some(Part::Redis), Some(Part::RepoServer), Some(Part::Controller), Some(Part::Server)]
        {
            assert!(rounds.iter().any(|round| round.victim == Victim::ArgoCd(part)), "{part:?}");
        }
    }

    #[test]
    fn a_seed_says_everything_and_seeds_differ() {
        assert_eq!(rounds(3, 10), rounds(3, 10));
        assert_eq!(rounds(3, 10)[..4], rounds(3, 4), "fewer rounds are the beginning of more");
        assert_ne!(rounds(3, 10), rounds(4, 10));
        let away = |seed| rounds(seed, 10).into_iter().map(|round| round.away);
        assert!((0..50).flat_map(away).all(|away| (1..=4).contains(&away.as_millis().div_ceil(1_000))));
    }
}
