//! What is told: why a state was folded, and where a key stands.

use pipeline_core::Folded;

use super::*;
use crate::limit::RateLimit;

/// Which versions of `x` were folded, and why.
fn folded(bench: &Bench) -> Vec<(u64, Folded)> {
    let why = |trace: &Trace| match trace.step {
        Step::Coalesced(why) if trace.key.name() == "x" => Some((trace.version.0, why)),
        _ => None,
    };
    bench.traces.iter().filter_map(why).collect()
}

#[test]
fn a_full_queue_folds_the_first_and_the_mark_folds_the_next() {
    let mut bench = Bench::new(Config { queue_events: 1, ..small() });
    for event in [state("busy", 1), state("x", 2), state("x", 3), state("x", 4)] {
        bench.take(event);
    }
    assert_eq!(folded(&bench), [(3, Folded::Full), (4, Folded::Dirty)]);
    bench.end("busy", ACKED);
    bench.end("x", ACKED);
    assert_eq!(bench.reading(), ["x>=4"]);
    bench.take(state("x", 5));
    assert_eq!(folded(&bench)[2..], [(5, Folded::Dirty)], "it is being read");
    bench.found("x", state("x", 9));
    bench.take(state("x", 6));
    bench.take(ending(1, state("x", 7)));
    let overtaken = [(6, Folded::Overtaken), (7, Folded::Overtaken)];
    assert_eq!(folded(&bench)[3..], overtaken, "with and without something to keep");
}

#[test]
fn too_many_events_of_one_key_or_too_many_bytes_are_a_full_queue() {
    let size = state("x", 1).size() as u64;
    for config in [Config { queue_events_per_key: 1, ..small() }, Config { queue_bytes: 2 * size, ..small() }]
    {
        let mut bench = Bench::new(config);
        for version in 1..=3 {
            bench.take(state("x", version));
        }
        assert_eq!(folded(&bench), [(3, Folded::Full)], "{config:?}");
    }
}

#[test]
fn what_the_rate_limit_delays_is_folded_by_it() {
    let rate_limit = Some(RateLimit {
        events: NonZeroU32::new(1).unwrap(),
        window: Duration::from_secs(60),
        learning: false,
    });
    let mut bench = Bench::new(Config { queue_events: 9, rate_limit, ..small() });
    for version in 1..=3 {
        bench.take(state("x", version));
    }
    bench.end("x", ACKED);
    bench.take(state("x", 4));
    assert_eq!(folded(&bench), [(3, Folded::Limited), (4, Folded::Limited)]);
}

#[test]
fn a_state_of_a_life_that_a_read_showed_to_be_over_is_a_former_one() {
    let mut bench = Bench::new(small());
    bench.step(Input::Replay { key: key("x"), uid: None });
    bench.found("x", of("b", state("x", 9)));
    bench.take(state("x", 5));
    assert_eq!(folded(&bench), [(5, Folded::Former)]);
}

#[test]
fn a_retry_without_room_is_folded_into_its_next_event_or_into_a_mark() {
    for next in [false, true] {
        let mut bench = Bench::new(Config { queue_events: 1, ..small() });
        bench.take(state("x", 1));
        bench.take(state(if next { "x" } else { "y" }, 2));
        bench.end("x", retry(Blame::Sink));
        assert_eq!(folded(&bench), [(1, Folded::Retried)], "{next}");
        assert_eq!(bench.counts().dirty, u64::from(!next));
    }
}

fn standing(bench: &Bench) -> Standing {
    bench.lane.standing(&key("x"), bench.now).expect("is busy")
}

const NOTHING: Standing = Standing {
    state: "idle",
    events: 0,
    dirty: false,
    failures: 0,
    blame: None,
    due: None,
    refetch: None,
    unreported: None,
};

#[test]
fn it_is_said_where_a_key_stands() {
    const fn seconds(number: u64) -> Option<Duration> {
        Some(Duration::from_secs(number))
    }
    let mut bench = Bench::new(Config { queue_events: 2, ..small() });
    assert_eq!(bench.lane.standing(&key("x"), bench.now), None);
    bench.take(state("busy", 1));
    bench.take(state("x", 2));
    bench.take(state("x", 3));
    bench.take(state("x", 4));
    bench.pass(Duration::from_secs(3));
    let lined = Standing { state: "in line", events: 2, dirty: true, unreported: seconds(3), ..NOTHING };
    assert_eq!(standing(&bench), lined);
    bench.end("busy", ACKED);
    assert_eq!(standing(&bench), Standing { state: "in flight", events: 1, ..lined });
    bench.end("x", retry(Blame::Enrich));
    bench.pass(Duration::from_millis(200));
    let waits = Standing {
        state: "waiting",
        failures: 1,
        blame: Some(Blame::Enrich),
        due: Some(Duration::from_millis(300)),
        unreported: Some(Duration::from_millis(3200)),
        ..lined
    };
    assert_eq!(standing(&bench), waits);
    bench.pass(Duration::from_millis(300));
    let again = Standing { state: "in flight", events: 1, due: None, ..waits };
    assert_eq!(standing(&bench), Standing { unreported: Some(Duration::from_millis(3500)), ..again });
    bench.end("x", ACKED);
    bench.take(state("busy", 5));
    bench.end("x", Outcome::Acked { refetch: Some(Refetch::Incomplete) });
    let read = Standing {
        state: "in line to be read",
        dirty: true,
        refetch: seconds(60),
        unreported: Some(Duration::from_millis(3500)),
        ..NOTHING
    };
    assert_eq!(standing(&bench), read);
    bench.end("busy", ACKED);
    assert_eq!(standing(&bench), Standing { state: "being read", dirty: false, ..read });
    bench.found("x", state("x", 4));
    bench.end("x", Outcome::Filtered { why: Filtered::Unchanged, refetch: None, settled: false });
    bench.pass(Duration::from_secs(20));
    assert_eq!(standing(&bench), Standing { refetch: seconds(40), ..NOTHING });
    bench.pass(Duration::from_secs(40));
    bench.found("x", state("x", 4));
    bench.end("x", ACKED);
    assert_eq!(bench.lane.standing(&key("x"), bench.now), None);
}
