//! Many runs, and runs that are broken on purpose.

use super::*;

const RUNS: u64 = 12;
const SEED: u64 = 20_261_122;

/// The first seed, unless `LOADTEST_SEED` says which; a commit serves as a seed too.
fn seed() -> u64 {
    let Ok(text) = std::env::var("LOADTEST_SEED") else { return SEED };
    let hex = || u64::from_str_radix(text.get(..15).unwrap_or(&text), 16).ok();
    text.parse().ok().or_else(hex).expect("LOADTEST_SEED is no number")
}

#[test]
fn a_shard_has_one_sender_at_a_time_rising_epochs_and_soon_an_owner() {
    let first = seed();
    // Some that are always run, and those that were asked for.
    for seed in (1..=4).chain((0..RUNS).map(|at| first.wrapping_add(at))) {
        match run(seed, None) {
            Ok(sent) => assert!(sent > 0, "seed {seed}: nothing was sent"),
            Err(why) => panic!("{why}"),
        }
    }
}

#[test]
fn whatever_is_broken_on_purpose_is_found() {
    for mutant in [
        Mutant::BlindStore,
        Mutant::LateReports,
        Mutant::HastyDrain,
        Mutant::CountedFromAnswer,
        Mutant::Impatient,
    ] {
        let found = (0..300).find_map(|seed| run(seed, Some(mutant)).err());
        let Some(found) = found else { panic!("{mutant:?} is not found") };
        assert!(found.contains("shard"), "{mutant:?}: {found}");
    }
}
