//! Many runs, and runs that are broken on purpose.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::*;
use crate::lane;

/// Runs, unless `LOADTEST_SIMULATIONS` says how many.
const RUNS: u64 = 10_000;
/// The first seed, unless `LOADTEST_SEED` says which: with `LOADTEST_SIMULATIONS=1` it is a failed run's once more.
const SEED: u64 = 20_240_301;
const WORKERS: usize = 2;

fn setting(name: &str, default: u64) -> u64 {
    let Ok(text) = std::env::var(name) else { return default };
    // A commit serves as a seed too.
    let hex = || u64::from_str_radix(text.get(..15).unwrap_or(&text), 16).ok();
    text.parse().ok().or_else(hex).unwrap_or_else(|| panic!("{name} is no number"))
}

/// In one of eight runs records are larger than what the ledger has room for.
fn room(seed: u64) -> usize {
    if seed.is_multiple_of(8) { Rng::with_seed(seed).usize(80..250) } else { usize::MAX }
}

/// In one of four runs the rate of each object's events is limited.
fn setting_of(seed: u64, goes_on: bool) -> Setting {
    Setting { room: room(seed), goes_on, is_limited: seed % 4 == 1 }
}

/// Runs simulations until one fails; gives after how many, and how.
fn runs(number: u64, seed: u64, mutant: Option<Mutant>, goes_on: bool) -> Option<(u64, Violation)> {
    let (next, found) = (AtomicU64::new(0), Mutex::new(None));
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= number {
                return;
            }
            let seed = seed.wrapping_add(at);
            let result = catch_unwind(AssertUnwindSafe(|| run(seed, mutant, setting_of(seed, goes_on))))
                .unwrap_or_else(|panic| {
                    let why = panic.downcast_ref::<String>().cloned();
                    let why = format!("panicked: {}", why.unwrap_or_default());
                    Err(Violation { seed, step: 0, why, trace: VecDeque::new() })
                });
            if let Err(violation) = result {
                next.store(number, Ordering::Relaxed);
                found.lock().unwrap().get_or_insert((at + 1, violation));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(work);
        }
    });
    found.into_inner().unwrap()
}

fn all_hold(seed: u64, goes_on: bool) {
    let number = setting("LOADTEST_SIMULATIONS", RUNS);
    let begun = Instant::now();
    if let Some((at, violation)) = runs(number, seed, None, goes_on) {
        panic!("run {at} of {number}, base seed {seed}:\n{violation}");
    }
    println!("simulations: {number} runs from seed {seed} in {:.1?}", begun.elapsed());
}

#[test]
fn nothing_is_lost_nothing_is_sent_twice_and_everything_is_in_order() {
    all_hold(setting("LOADTEST_SEED", SEED), false);
}

#[test]
fn nor_is_anything_where_the_watch_of_a_process_goes_on_where_the_one_before_it_ended() {
    all_hold(setting("LOADTEST_SEED", SEED), true);
}

/// Runs that once failed, each for a reason of its own.
#[test]
fn runs_that_once_failed_hold() {
    for (seed, why) in [
        (7_016_515, "a deletion that lost its body told nothing of the operation that its body showed"),
        (20_244_729, "a list that ended a life once more moved its end behind that of a later one"),
        (30_016_587, "a killed process knew the counter of a settled delivery, and not its operation"),
        (30_032_217, "a deletion of which only the name was known ended the life that followed"),
        (30_060_403, "a list made the watch forget a later life that a read had shown"),
        (30_085_662, "what two reads told was told again when the watch came to it"),
        (7_037_313, "a replay that named a life ended the one that was noted"),
        (
            3_176_335_769,
            "two ends of operations were told again after an end that nobody knew to have arrived",
        ),
        (3_176_385_704, "an end before the one of a settled delivery was taken for told by a killed process"),
        (200_026_366, "a late watch made a later life forgotten that a read had shown"),
        (400_105_447, "a replay of a life that was over asked for no more than a state of it"),
        (
            300_618_304,
            "an end that a late watch showed after a broken delivery had told a later one was not told",
        ),
        (400_379_413, "the same"),
        (700_137_096, "the same"),
        (
            910_454_637,
            "a list made a life that the ledger knew the last of five, and told its end without that of its operation",
        ),
        (50_002_223, "a list ended a former life after the one that a read had shown since"),
    ] {
        let setting = Setting { room: usize::MAX, goes_on: false, is_limited: false };
        if let Err(violation) = run(seed, None, setting) {
            panic!("{why}:\n{violation}");
        }
    }
}

/// The same with watches that go on where a former process ended.
#[test]
fn runs_that_once_failed_where_a_watch_went_on_hold() {
    for (seed, why) in [
        (
            2_000_090,
            "what was between a first state that was settled and a newer one, which had gone out before a kill, was left out",
        ),
        (777_002_208, "the same, of a life that was over"),
        (
            4_005_010,
            "lives that were shown again while what was journaled was read were told after those that followed them",
        ),
        (6_000_920, "the same, and not lost"),
        (
            920_002_822,
            "lives that were shown again were told after a later one that a read had shown to be over",
        ),
        (5_550_000_448, "the same"),
        (31_008_659, "a life that a list had ended late was told after one that was shown again"),
        (880_014_745, "a life that had not been told of was told after a later one that nobody remembered"),
        (660_011_002, "states before one that was refused for good were told once more, after it"),
        (31_014_590, "what led to a state that was refused for good was taken for refused as well"),
        (
            920_014_653,
            "what led to a state whose answer a kill had lost was told after it, and an earlier one that looked the same had come between",
        ),
        (
            555_039_777,
            "a life that was shown again after those that followed it were journaled was told after them, without what happened in it",
        ),
    ] {
        let setting = Setting { room: room(seed), goes_on: true, is_limited: false };
        if let Err(violation) = run(seed, None, setting) {
            panic!("{why}:\n{violation}");
        }
    }
}

fn is_caught(mutant: Mutant) {
    let (number, seed) = (setting("LOADTEST_SIMULATIONS", RUNS), setting("LOADTEST_SEED", SEED));
    let Some((at, violation)) = runs(number, seed, Some(mutant), false) else {
        panic!("{mutant:?} was not caught in {number} runs from seed {seed}");
    };
    println!("{mutant:?}: caught after {at} runs, seed {}: {}", violation.seed, violation.why);
}

#[test]
fn a_lane_that_drops_what_finds_the_queue_full_is_caught() {
    is_caught(Mutant::Lane(lane::Mutant::DropsOnFull));
}

#[test]
fn a_lane_that_forgets_a_retry_is_caught() {
    is_caught(Mutant::Lane(lane::Mutant::ForgetsRetry));
}

#[test]
fn an_attempt_that_marks_before_the_acknowledgement_is_caught() {
    is_caught(Mutant::MarksBeforeAck);
}

#[test]
fn a_process_that_forgets_what_it_is_not_sure_of_is_caught() {
    is_caught(Mutant::ForgetsDoubt);
}
