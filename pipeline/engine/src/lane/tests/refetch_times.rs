//! What could not be fetched: how often it is asked for again.

use super::*;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const INCOMPLETE: Option<Refetch> = Some(Refetch::Incomplete);

/// Nothing new, and something lacks still.
fn vain() -> Outcome {
    Outcome::Filtered { why: Filtered::SameContent, refetch: INCOMPLETE, settled: true }
}

/// Lets time pass until something is read, and answers that nothing changed. Returns how long it took.
fn refetch(bench: &mut Bench, outcome: Outcome, seed: u64) -> Duration {
    let begun = bench.now;
    while bench.reads.is_empty() {
        bench.now = bench.lane.next_deadline().expect("it is looked at again");
        bench.step(Input::Tick);
    }
    let (key, version) = bench.reads.pop_front().expect("it is read");
    let event = state(key.name(), version.0.max(1));
    bench.step(Input::Read { key: key.clone(), result: ReadResult::Found(Arc::new(event)), seed });
    assert_eq!(bench.starts.pop_front().expect("its attempt begins").event.cause, Cause::Refetch);
    bench.step(Input::Attempted { key, outcome, seed });
    bench.now - begun
}

#[test]
fn what_stays_missing_is_asked_for_less_and_less_often() {
    for (seed, share) in [(0, 0.5), (u64::MAX, 1.0)] {
        let mut bench = Bench::new(small());
        bench.take(state("x", 1));
        bench.step(Input::Attempted { key: key("x"), outcome: Outcome::Acked { refetch: INCOMPLETE }, seed });
        bench.starts.clear();
        assert_eq!(refetch(&mut bench, vain(), seed), MINUTE);
        for doubled in [2, 4, 8, 16, 32, 60, 60, 60] {
            let waited = refetch(&mut bench, vain(), seed).as_secs_f64();
            let full = f64::from(60 * doubled) * share;
            assert!((waited - full).abs() < 0.001, "{doubled} minutes: {waited} s");
        }
    }
    let mut bench = Bench::new(small());
    bench.take(state("x", 1));
    bench.end("x", Outcome::Acked { refetch: INCOMPLETE });
    let (begun, mut asked) = (bench.now, 0);
    while bench.now - begun < 24 * HOUR {
        refetch(&mut bench, vain(), 0);
        asked += 1;
    }
    assert!(asked <= 55, "asked {asked} times in a day");
}

#[test]
fn what_changes_or_is_found_is_asked_for_soon_again() {
    let mut bench = Bench::new(small());
    bench.take(state("x", 1));
    bench.end("x", Outcome::Acked { refetch: INCOMPLETE });
    for _ in 0..8 {
        refetch(&mut bench, vain(), 0);
    }
    bench.pass(Duration::from_secs(1));
    bench.take(state("x", 2));
    bench.end("x", Outcome::Acked { refetch: INCOMPLETE });
    assert_eq!(refetch(&mut bench, vain(), 0), MINUTE, "the object changed");
    for _ in 0..8 {
        refetch(&mut bench, vain(), 0);
    }
    refetch(&mut bench, Outcome::Acked { refetch: INCOMPLETE }, 0);
    assert_eq!(refetch(&mut bench, ACKED, 0), MINUTE, "something of it was found");
    assert!(bench.lane.keys.is_empty(), "and then the rest");
}

#[test]
fn refreshes_do_not_hasten_what_stays_missing() {
    let mut bench = Bench::new(small());
    bench.take(state("x", 1));
    bench.end("x", Outcome::Acked { refetch: INCOMPLETE });
    for _ in 0..8 {
        refetch(&mut bench, vain(), 0);
    }
    let due = bench.lane.next_deadline();
    for version in 2..20 {
        bench.pass(Duration::from_secs(10));
        bench.take(state("x", version));
        let settled = version % 2 == 0;
        let refreshed = Outcome::Filtered { why: Filtered::Of("paced"), refetch: INCOMPLETE, settled };
        bench.end("x", refreshed);
        assert_eq!((bench.lane.next_deadline(), bench.counts().incomplete), (due, 1));
    }
}

#[test]
fn what_was_looked_at_just_before_is_looked_at_when_it_may_be_and_is_no_refetch() {
    let mut bench = Bench::new(small());
    bench.take(state("x", 1));
    let paced = Some(Refetch::Paced(Duration::from_secs(10)));
    bench.end("x", Outcome::Filtered { why: Filtered::Of("paced"), refetch: paced, settled: false });
    assert_eq!((bench.counts().incomplete, bench.counts().oldest), (1, Duration::ZERO));
    bench.pass(Duration::from_secs(10));
    assert_eq!((bench.reading(), bench.counts().incomplete), (vec!["x>=1".to_owned()], 0));
    assert_eq!(bench.counts().oldest, Duration::ZERO, "nothing of it is unreported");
    bench.found("x", state("x", 1));
    assert_eq!(bench.starts[0].event.cause, Cause::Read);
    bench.end("x", Outcome::Filtered { why: Filtered::Of("paced"), refetch: None, settled: true });
    assert!(bench.lane.keys.is_empty());
}

/// A lane with so many objects that were all reported just now, each without something.
fn incomplete(objects: u32) -> Bench {
    let mut bench = Bench::new(Config { concurrency: 16, queue_events: 2_000, ..Config::default() });
    for number in 0..objects {
        bench.take(state(&format!("app-{number}"), 1));
    }
    while let Some(start) = bench.starts.front() {
        let name = start.event.key.name().to_owned();
        bench.end(&name, Outcome::Acked { refetch: INCOMPLETE });
    }
    bench
}

#[test]
fn once_an_outage_is_over_one_refetch_follows_the_other_at_once() {
    let mut bench = incomplete(1_000);
    let begun = bench.now;
    for _ in 0..10 {
        refetch(&mut bench, vain(), 0);
        bench.step(Input::Refetched { calls: 2, lacking: true });
    }
    assert_eq!(bench.now - begun, MINUTE + Duration::from_secs(18), "two calls each, the last not yet paid");
    assert_eq!(refetch(&mut bench, ACKED, 0), Duration::from_secs(2));
    let over = bench.now;
    for _ in 0..900 {
        bench.step(Input::Refetched { calls: 4, lacking: false });
        refetch(&mut bench, ACKED, 0);
    }
    assert_eq!(bench.now - over, Duration::ZERO);
}

#[test]
fn a_refetch_delays_the_next_by_the_calls_that_it_made_itself() {
    let mut bench = incomplete(5);
    refetch(&mut bench, vain(), 0);
    let next = |bench: &mut Bench, calls, lacking| {
        bench.step(Input::Refetched { calls, lacking });
        refetch(bench, vain(), 0).as_secs()
    };
    assert_eq!(next(&mut bench, 10, true), 10);
    assert_eq!(next(&mut bench, 0, true), 1, "all its answers were at hand");
    assert_eq!(refetch(&mut bench, vain(), 0).as_secs(), 1, "the one before is under way still");
    // What one of the two found forgives nothing of what the other asked in vain.
    bench.step(Input::Refetched { calls: 3, lacking: true });
    assert_eq!(next(&mut bench, 7, false), 2);
}

#[test]
fn what_is_missing_for_a_thousand_objects_costs_a_call_a_second() {
    const CALLS: u32 = 4;
    let mut bench = incomplete(1_000);
    let mut asked = std::collections::BTreeMap::<String, u32>::new();
    let (begun, mut calls) = (bench.now, 0);
    while bench.now - begun < 6 * HOUR {
        refetch(&mut bench, vain(), 0);
        bench.step(Input::Refetched { calls: CALLS, lacking: true });
        *asked.entry(bench.traces.last().expect("it is told").key.name().to_owned()).or_default() += 1;
        calls += CALLS;
        let most = (bench.now - begun).as_secs_f64() + f64::from(CALLS);
        assert!(f64::from(calls) <= most, "{calls} calls in {most} seconds");
    }
    assert!(asked.len() == 1_000 && asked.values().all(|times| *times >= 4), "each gets its turn");
    // Whoever changes does not wait in that line.
    bench.take(state("app-7", 2));
    assert_eq!(bench.running(), ["app-7@2"]);
}
