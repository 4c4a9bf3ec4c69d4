//! Refetches, the circuit, the rate limit, shedding, and stopping.

use super::*;
use crate::limit::RateLimit;

const MINUTE: Duration = Duration::from_secs(60);

fn incomplete() -> Outcome {
    Outcome::Acked { refetch: Some(Refetch::Incomplete) }
}

#[test]
fn what_is_incomplete_is_refetched_when_its_time_has_come() {
    let mut bench = Bench::new(small());
    bench.take(state("x", 1));
    bench.end("x", incomplete());
    assert_eq!((bench.counts().incomplete, bench.counts().oldest), (1, Duration::ZERO));
    bench.pass(MINUTE - Duration::from_millis(1));
    assert_eq!(bench.reading(), [""; 0]);
    bench.pass(Duration::from_millis(1));
    assert_eq!((bench.reading(), bench.counts().incomplete), (vec!["x>=1".to_owned()], 0));
    bench.found("x", state("x", 1));
    assert_eq!(bench.starts[0].event.cause, Cause::Refetch);
    bench.end(
        "x",
        Outcome::Filtered { why: Filtered::SameContent, refetch: Some(Refetch::Incomplete), settled: true },
    );
    assert_eq!(bench.counts().incomplete, 1, "still incomplete");
    bench.pass(MINUTE);
    bench.found("x", state("x", 1));
    bench.end("x", ACKED);
    assert!(bench.lane.keys.is_empty());
}

#[test]
fn events_do_not_wait_for_a_refetch_and_may_make_it_needless() {
    let mut bench = Bench::new(small());
    bench.take(state("x", 1));
    bench.end("x", incomplete());
    bench.take(state("x", 2));
    assert_eq!(bench.running(), ["x@2"]);
    bench.end("x", Outcome::Filtered { why: Filtered::Unchanged, refetch: None, settled: false });
    assert_eq!(bench.counts().incomplete, 1, "it was not looked at: it is still incomplete");
    bench.take(state("x", 3));
    bench.end("x", ACKED);
    assert_eq!((bench.counts().incomplete, bench.lane.next_deadline()), (0, None));
}

#[test]
fn what_an_event_completes_is_not_refetched() {
    let mut bench = Bench::new(small());
    bench.take(state("x", 1));
    bench.end("x", incomplete());
    let at_a_glance = |why| Outcome::Filtered { why, refetch: None, settled: false };
    let glances = [Filtered::Unchanged, Filtered::Stale, Filtered::Of("paced")].map(at_a_glance);
    for (version, outcome) in (2..).zip(glances) {
        bench.take(state("x", version));
        bench.end("x", outcome);
        assert_eq!(bench.counts().incomplete, 1);
    }
    let settled = |refetch| Outcome::Filtered { why: Filtered::Of("paced"), refetch, settled: true };
    bench.pass(MINUTE / 2);
    bench.take(state("x", 5));
    bench.end("x", settled(Some(Refetch::Incomplete)));
    assert_eq!(bench.counts().incomplete, 1, "something is lacking still");
    bench.take(state("x", 6));
    bench.end("x", settled(None));
    assert_eq!((bench.counts().incomplete, bench.lane.next_deadline()), (0, None));
    bench.pass(MINUTE);
    assert_eq!((bench.reading(), bench.lane.keys.is_empty()), (vec![], true), "nothing is read for it");
}

#[test]
fn a_busy_object_does_not_put_off_its_refetch() {
    let mut bench = Bench::new(small());
    bench.take(state("x", 1));
    bench.end("x", incomplete());
    for (version, outcome) in [
        (2, incomplete()),
        (
            3,
            Outcome::Filtered {
                why: Filtered::Unchanged,
                refetch: Some(Refetch::Incomplete),
                settled: false,
            },
        ),
    ] {
        bench.pass(MINUTE / 3);
        bench.take(state("x", version));
        bench.end("x", outcome);
        assert_eq!(bench.counts().incomplete, 1);
    }
    bench.pass(MINUTE / 3);
    assert_eq!(bench.reading(), ["x>=3"], "a minute after the first of them");
    bench.found("x", state("x", 3));
    bench.end("x", incomplete());
    bench.pass(MINUTE - Duration::from_millis(1));
    assert_eq!(bench.reading(), [""; 0], "it was looked at: the next time is a minute later");
    bench.pass(Duration::from_millis(1));
    assert_eq!(bench.reading(), ["x>=3"]);
}

#[test]
fn what_is_incomplete_is_refetched_also_when_something_else_is_noted_with_it() {
    for during in [false, true] {
        let mut bench = Bench::new(small());
        bench.take(state("x", 1));
        bench.end("x", incomplete());
        if !during {
            bench.step(Input::Pause);
        }
        bench.pass(MINUTE);
        bench.take(state("x", 2));
        assert_eq!(bench.counts().oldest, Duration::ZERO, "{during}");
        bench.step(Input::Resume);
        bench.found("x", state("x", 2));
        assert_eq!((bench.running(), bench.starts[0].event.cause), (vec!["x@2".to_owned()], Cause::Refetch));
        bench.end("x", ACKED);
        assert!(bench.lane.keys.is_empty(), "{during}");
    }
}

#[test]
fn an_open_circuit_starts_nothing_but_one_probe() {
    let mut bench = Bench::new(Config::default());
    bench.take(state("w", 1));
    bench.step(Input::Pause);
    for (name, version) in [("x", 2), ("y", 3), ("z", 4)] {
        bench.take(state(name, version));
    }
    assert_eq!(bench.running(), ["w@1"]);
    assert!(bench.counts().paused && bench.lane.has_probe());
    bench.step(Input::Probe);
    assert_eq!(bench.running(), ["w@1", "x@2"]);
    assert_eq!(bench.starts.iter().map(|start| start.probe).collect::<Vec<_>>(), [false, true]);
    bench.end("x", retry(Blame::Sink));
    bench.end("w", retry(Blame::Sink));
    assert_eq!(bench.running(), [""; 0]);
    bench.step(Input::Resume);
    assert_eq!(bench.running(), ["y@3", "z@4", "w@1", "x@2"], "retries because of the sink go at once");
}

#[test]
fn only_what_waits_because_of_the_sink_goes_when_the_circuit_closes() {
    let mut bench = Bench::new(Config::default());
    bench.take(state("sink", 1));
    bench.take(state("enrich", 2));
    bench.step(Input::Pause);
    bench.end("sink", retry(Blame::Sink));
    bench.end("enrich", retry(Blame::Enrich));
    bench.step(Input::Resume);
    assert_eq!(bench.running(), ["sink@1"]);
    assert_eq!(bench.starts[0].attempt, 1);
}

#[test]
fn a_probe_takes_a_waiting_key_when_nothing_else_is_in_line() {
    let mut bench = Bench::new(Config::default());
    assert!(!bench.lane.has_probe());
    bench.take(state("x", 1));
    bench.step(Input::Pause);
    bench.end("x", retry(Blame::Sink));
    assert!(bench.lane.has_probe());
    bench.step(Input::Probe);
    assert_eq!(bench.running(), ["x@1"]);
    bench.end("x", retry(Blame::Enrich));
    assert!(!bench.lane.has_probe(), "what waits because of enrichment cannot probe the sink");
    bench.step(Input::Probe);
    assert_eq!(bench.running(), [""; 0]);
}

#[test]
fn a_probe_may_begin_with_a_read() {
    let mut bench = Bench::new(Config { queue_events: 0, ..Config::default() });
    bench.step(Input::Pause);
    bench.take(state("x", 1));
    bench.take(state("y", 2));
    bench.step(Input::Probe);
    assert_eq!(bench.reading(), ["x>=1"]);
    bench.found("x", state("x", 1));
    assert!(bench.starts[0].probe);
    bench.step(Input::Resume);
    assert_eq!(bench.reading(), ["y>=2"]);
}

#[test]
fn a_read_that_ends_while_paused_waits() {
    let mut bench = Bench::new(Config { queue_events: 0, ..Config::default() });
    bench.take(state("x", 1));
    bench.step(Input::Pause);
    bench.found("x", state("x", 1));
    assert_eq!((bench.running(), bench.counts().queued), (vec![], 1));
    bench.step(Input::Resume);
    assert_eq!(bench.running(), ["x@1"]);
}

fn limited(learning: bool) -> Bench {
    let events = NonZeroU32::new(2).unwrap();
    let limit = RateLimit { events, window: Duration::from_secs(20), learning };
    Bench::new(Config { rate_limit: Some(limit), ..Config::default() })
}

#[test]
fn a_limited_key_waits_and_what_comes_is_folded() {
    let mut bench = limited(false);
    for version in 1..=4 {
        bench.take(state("x", version));
    }
    for _ in 0..2 {
        bench.end("x", ACKED);
    }
    assert_eq!(bench.running(), [""; 0]);
    let counts = bench.counts();
    assert_eq!((counts.limited, counts.waiting, counts.coalesced, counts.dirty), (1, 1, 1, 1));
    bench.take(ending(1, state("x", 5)));
    bench.take(state("y", 6));
    assert_eq!(bench.running(), ["y@6"], "others are not limited by it");
    assert_eq!(bench.counts().coalesced, 2);
    bench.pass(Duration::from_secs(10));
    assert_eq!(bench.running(), ["y@6", "x@3"]);
    bench.end("x", ACKED);
    assert_eq!(bench.reading(), [""; 0]);
    bench.pass(Duration::from_secs(10));
    assert_eq!(bench.reading(), ["x>=5"]);
    bench.found("x", state("x", 5));
    assert_eq!(bench.carried("x"), ["end 1"], "the read has paid for its turn");
}

#[test]
fn a_retry_is_not_limited_again() {
    let mut bench = limited(false);
    bench.take(state("x", 1));
    for _ in 0..5 {
        bench.end("x", retry(Blame::Enrich));
        bench.pass(Duration::from_secs(300));
        assert_eq!(bench.running(), ["x@1"]);
    }
    assert_eq!(bench.counts().limited, 0);
}

#[test]
fn learning_only_counts() {
    let mut bench = limited(true);
    for version in 1..=4 {
        bench.take(state("x", version));
        bench.end("x", ACKED);
    }
    let counts = bench.counts();
    assert_eq!((counts.limited, counts.limited_learning, counts.acked), (0, 2, 4));
}

#[test]
fn a_retry_that_no_longer_fits_is_shown_by_its_next_event() {
    let mut bench = Bench::new(small());
    bench.take(ending(1, state("x", 1)));
    bench.take(state("x", 2));
    bench.take(state("y", 3));
    bench.end("x", retry(Blame::Sink));
    let counts = bench.counts();
    assert_eq!((counts.coalesced, counts.waiting, counts.in_flight), (1, 1, 1));
    bench.end("y", ACKED);
    bench.pass(Duration::from_secs(1));
    assert_eq!((bench.running(), bench.carried("x")), (vec!["x@2".to_owned()], vec!["end 1".to_owned()]));
    assert_eq!(bench.starts[0].attempt, 1);
    bench.end("x", ACKED);
    assert_eq!(bench.counts().bytes, 0);
}

#[test]
fn a_retry_that_no_longer_fits_is_read_again_when_nothing_follows() {
    let mut bench = Bench::new(Config { queue_events: 1, ..small() });
    bench.take(ending(1, state("x", 1)));
    bench.take(state("y", 2));
    bench.starts[0].attempt = 0;
    bench.step(Input::Pause);
    bench.end("x", retry(Blame::Sink));
    let counts = bench.counts();
    assert_eq!((counts.coalesced, counts.dirty, counts.summaries), (1, 1, 1));
    bench.step(Input::Resume);
    bench.end("y", ACKED);
    assert_eq!(bench.reading(), ["x>=1"]);
    bench.found("x", state("x", 5));
    assert_eq!((bench.carried("x"), bench.starts[0].attempt), (vec!["end 1".to_owned()], 1));
}

#[test]
fn a_deletion_that_no_longer_fits_loses_its_body_alone() {
    let mut bench = Bench::new(Config { queue_events: 1, ..small() });
    bench.take(deleted("x", 1));
    bench.take(state("y", 2));
    bench.step(Input::Pause);
    bench.end("x", retry(Blame::Sink));
    bench.step(Input::Resume);
    bench.end("y", ACKED);
    assert_eq!((bench.running(), bench.starts[0].event.body()), (vec!["-x@1".to_owned()], None));
    bench.end("x", ACKED);
    assert_eq!(bench.counts().bytes, 0);
}

#[test]
fn a_deletion_that_loses_its_body_still_tells_of_the_operation_that_its_body_showed() {
    let mut bench = Bench::new(Config { queue_events: 2, ..small() });
    bench.take(ending(1, state("x", 1)));
    bench.take(ending(1, deleted("x", 2)));
    bench.take(state("y", 3));
    bench.end("x", retry(Blame::Sink));
    assert_eq!(bench.running(), ["y@3"], "the state is shown by the deletion, which waits as the state did");
    bench.take(state("z", 4));
    bench.end("y", ACKED);
    bench.pass(Duration::from_secs(1));
    bench.end("z", ACKED);
    assert_eq!((bench.running(), bench.carried("x")), (vec!["-x@2".to_owned()], vec![]));
    bench.take(state("y", 5));
    bench.take(state("z", 6));
    bench.end("x", retry(Blame::Sink));
    bench.end("y", ACKED);
    bench.end("z", ACKED);
    bench.pass(Duration::from_secs(2));
    assert_eq!((bench.running(), bench.starts[0].event.body()), (vec!["-x@2".to_owned()], None));
    assert_eq!(bench.carried("x"), ["end 1"]);
    assert_eq!(bench.starts[0].event.fact, None, "once");
}

#[test]
fn a_long_outage_keeps_marks_and_no_bodies() {
    let mut bench = Bench::new(Config { queue_events: 10, concurrency: 4, ..Config::default() });
    for version in 1..=500 {
        bench.take(state(&format!("app-{}", version % 100), version));
        if let Some(start) = bench.starts.front() {
            let name = start.event.key.name().to_owned();
            bench.end(&name, retry(Blame::Sink));
        }
        if let Some((key, version)) = bench.reads.front().cloned() {
            bench.found(key.name(), state(key.name(), version.0));
        }
    }
    let counts = bench.counts();
    assert!(counts.queued + counts.waiting <= 14, "{counts:?}");
    assert!(counts.dirty >= 80, "{counts:?}");
}

#[test]
fn stopping_starts_nothing_and_lets_what_runs_end() {
    let mut bench = Bench::new(Config { concurrency: 1, ..Config::default() });
    bench.take(state("x", 1));
    bench.take(state("y", 2));
    bench.step(Input::Stop);
    assert_eq!(bench.running(), ["x@1"]);
    bench.end("x", ACKED);
    assert_eq!((bench.running(), bench.counts().queued), (vec![], 1));
    bench.step(Input::Resume);
    bench.step(Input::Probe);
    bench.take(state("z", 3));
    assert_eq!(bench.running(), [""; 0]);
}
