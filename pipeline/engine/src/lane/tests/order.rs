//! Order, concurrency, retries, stale redeliveries.

use pipeline_core::Refused;

use super::*;

#[test]
fn one_attempt_a_key_in_order_and_others_beside_it() {
    let mut bench = Bench::new(Config { concurrency: 2, ..Config::default() });
    for event in [state("x", 1), state("x", 2), state("y", 3), state("z", 4)] {
        bench.take(event);
    }
    assert_eq!(bench.running(), ["x@1", "y@3"]);
    bench.end("y", ACKED);
    assert_eq!(bench.running(), ["x@1", "z@4"], "x is busy: its next event waits");
    bench.end("x", ACKED);
    assert_eq!(bench.running(), ["z@4", "x@2"]);
    assert_eq!(bench.counts().acked, 2);
}

#[test]
fn a_fact_that_comes_late_with_a_state_that_is_being_reported_is_told_after_it() {
    let late = || Event { coalesced: vec![end(1)], ..state("x", 10) };
    let mut bench = Bench::new(Config::default());
    bench.take(state("x", 10));
    bench.step(Input::Redelivered(Arc::new(late())));
    assert_eq!((bench.running(), bench.carried("x")), (vec!["x@10".to_owned()], vec![]));
    assert!(bench.lane.is_dirty(&key("x")));
    bench.end("x", ACKED);
    assert!(bench.lane.is_dirty(&key("x")), "it is being read");
    bench.found("x", Event { cause: Cause::Read, ..state("x", 10) });
    assert_eq!((bench.running(), bench.carried("x")), (vec!["x@10".to_owned()], vec!["end 1".to_owned()]));
    assert!(!bench.lane.is_dirty(&key("x")));
    // Taken for what it shows, it is known, and its fact with it.
    let mut bench = Bench::new(Config::default());
    bench.take(state("x", 10));
    bench.take(late());
    assert!(!bench.lane.is_dirty(&key("x")));
}

#[test]
fn keys_take_turns() {
    let mut bench = Bench::new(Config { concurrency: 1, ..Config::default() });
    for event in [state("x", 1), state("x", 2), state("x", 3), state("y", 4)] {
        bench.take(event);
    }
    bench.end("x", ACKED);
    assert_eq!(bench.running(), ["y@4"], "the busy key goes behind the other");
}

#[test]
fn a_retry_waits_with_its_later_events_behind_it_and_others_go_on() {
    let mut bench = Bench::new(Config { concurrency: 1, ..Config::default() });
    for event in [state("x", 1), state("x", 2), state("y", 3)] {
        bench.take(event);
    }
    bench.end("x", retry(Blame::Enrich));
    assert_eq!(bench.running(), ["y@3"]);
    let counts = bench.counts();
    assert_eq!((counts.waiting, counts.queued, counts.in_flight, counts.retried), (1, 1, 1, 1));
    assert_eq!(bench.lane.next_deadline(), Some(bench.now + Duration::from_millis(500)));
    bench.end("y", ACKED);
    assert_eq!(bench.running(), [""; 0]);

    bench.pass(Duration::from_millis(499));
    assert_eq!(bench.running(), [""; 0]);
    bench.pass(Duration::from_millis(1));
    let start = &bench.starts[0];
    assert_eq!((show(&start.event).as_str(), start.attempt), ("x@1", 1));
    assert_eq!(start.trying_for, Duration::from_millis(500));
    bench.end("x", ACKED);
    assert_eq!((bench.running(), bench.starts[0].attempt), (vec!["x@2".to_owned()], 0));
}

#[test]
fn waits_double_and_trying_for_counts_from_the_first_try() {
    let mut bench = Bench::new(small());
    bench.take(state("x", 1));
    let mut tried = Duration::ZERO;
    for (attempt, wait) in [500, 1000, 2000, 4000].into_iter().enumerate() {
        assert_eq!((bench.starts[0].attempt as usize, bench.starts[0].trying_for), (attempt, tried));
        bench.end("x", retry(Blame::Enrich));
        bench.pass(Duration::from_millis(wait));
        tried += Duration::from_millis(wait);
    }
}

#[test]
fn retry_after_is_honoured() {
    let mut bench = Bench::new(small());
    bench.take(state("x", 1));
    let after = Some(Duration::from_secs(30));
    let busy = Outcome::Retry {
        reason: Reason::RateLimited,
        after,
        blame: Blame::Sink,
        refused: Arc::new([]),
        told: Vec::new(),
    };
    bench.end("x", busy);
    bench.pass(Duration::from_millis(29_999));
    assert_eq!(bench.running(), [""; 0]);
    bench.pass(Duration::from_millis(1));
    assert_eq!(bench.running(), ["x@1"]);
}

#[test]
fn what_the_sink_refused_is_handed_to_the_next_try() {
    let mut bench = Bench::new(small());
    bench.take(state("x", 1));
    let refused: Refused =
        Arc::new([(pipeline_core::EntityId::OBJECT, pipeline_core::Digest(7), Reason::TooLarge)]);
    let outcome = Outcome::Retry {
        reason: Reason::Timeout,
        after: None,
        blame: Blame::Sink,
        refused: refused.clone(),
        told: Vec::new(),
    };
    bench.end("x", outcome);
    bench.pass(Duration::from_secs(1));
    assert_eq!(bench.starts[0].refused, refused);
    bench.end("x", ACKED);
    bench.take(state("x", 2));
    assert!(bench.starts[0].refused.is_empty(), "another event starts anew");
}

#[test]
fn ends_that_were_told_are_not_handed_to_the_next_try() {
    for queue_events in [small().queue_events, 1] {
        let mut bench = Bench::new(Config { queue_events, ..small() });
        let event = Event { coalesced: vec![end(1), end(2), end(3)], ..ending(4, state("x", 4)) };
        bench.take(event.clone());
        let bytes = bench.counts().bytes;
        let told = vec![end(1).id, end(3).id];
        let (reason, blame) = (Reason::Timeout, Blame::Sink);
        bench.end("x", Outcome::Retry { reason, after: None, blame, refused: Arc::new([]), told });
        assert!(bench.counts().bytes < bytes);
        bench.pass(Duration::from_secs(1));
        assert_eq!(bench.starts[0].event.coalesced, [end(2)]);
        bench.end("x", ACKED);
        assert_eq!(bench.counts().bytes, 0);
    }
}

#[test]
fn stale_redeliveries_are_filtered() {
    let mut bench = Bench::new(small());
    bench.take(state("x", 5));
    bench.take(state("x", 5));
    bench.take(state("x", 4));
    bench.take(state("x", 6));
    let counts = bench.counts();
    assert_eq!((counts.filtered, counts.stale, counts.queued), (2, 2, 1));
    let stale = bench.traces.iter().filter(|trace| trace.step == Step::Filtered(Filtered::Stale));
    assert_eq!(stale.map(|trace| trace.version.0).collect::<Vec<_>>(), [5, 4]);
}

#[test]
fn deletions_new_lives_and_unknown_versions_are_never_stale() {
    let mut bench = Bench::new(Config { concurrency: 1, ..Config::default() });
    bench.take(state("x", 5));
    for event in [deleted("x", 5), of("b", state("x", 6)), of("b", state("x", 0))] {
        bench.take(event);
    }
    for expected in ["x@5", "-x@5", "x/b@6", "x/b@0"] {
        assert_eq!(bench.running(), [expected]);
        bench.end("x", ACKED);
    }
}

#[test]
fn a_rejected_event_is_parked_and_later_events_go_on() {
    let mut bench = Bench::new(small());
    bench.take(state("x", 1));
    bench.take(state("x", 2));
    bench.end("x", reject(Reason::TooLarge));
    let parked: Vec<_> = bench.lane.parked().map(|(key, parked)| (key.clone(), parked.clone())).collect();
    let entry = Parked {
        reason: Reason::TooLarge,
        at: Timestamp::UNIX_EPOCH,
        version: Version(1),
        uid: Some("a".into()),
        refused: Refused::default(),
    };
    assert_eq!(parked, [(key("x"), entry)]);
    assert_eq!(bench.running(), ["x@2"]);
    let counts = bench.counts();
    assert_eq!((counts.parked, counts.parked_keys, counts.bytes > 0), (1, 1, true));

    bench.end("x", Outcome::Filtered { why: Filtered::Stale, refetch: None, settled: false });
    assert_eq!(bench.counts().parked_keys, 1, "a stale redelivery says nothing");
    bench.take(state("x", 3));
    bench.end("x", ACKED);
    assert_eq!(bench.counts().parked_keys, 0, "a newer state has arrived");
    assert_eq!((bench.counts().parked, bench.counts().bytes), (1, 0));
}

#[test]
fn a_parked_key_is_replayed_by_reading_it_again_or_discarded() {
    let mut bench = Bench::new(small());
    for name in ["x", "y"] {
        bench.take(state(name, 1));
        bench.end(name, reject(Reason::Refused));
    }
    bench.step(Input::Replay { key: key("x"), uid: Some("a".into()) });
    assert_eq!(bench.reading(), ["x>=0"]);
    bench.found("x", state("x", 1));
    assert_eq!((bench.running(), bench.starts[0].event.cause), (vec!["x@1".to_owned()], Cause::Refetch));
    bench.end("x", ACKED);
    bench.step(Input::Discard { key: key("y") });
    assert_eq!(bench.counts().parked_keys, 0);
    bench.take(state("x", 1));
    assert!(bench.lane.keys.is_empty(), "nothing is kept of a key whose read the watch has delivered");
}

#[test]
fn the_list_of_parked_keys_is_bounded() {
    let mut bench = Bench::new(Config { parked: 2, ..small() });
    for (name, version) in [("x", 1), ("y", 1), ("z", 1), ("x", 2)] {
        bench.take(state(name, version));
        bench.end(name, reject(Reason::Refused));
    }
    let counts = bench.counts();
    assert_eq!((counts.parked, counts.parked_keys, counts.parked_dropped), (4, 2, 1));
}

#[test]
fn the_age_of_the_oldest_unreported_change_is_shown() {
    let mut bench = Bench::new(small());
    bench.take(state("x", 1));
    bench.pass(Duration::from_secs(3));
    bench.take(state("y", 2));
    bench.pass(Duration::from_secs(4));
    assert_eq!(bench.counts().oldest, Duration::from_secs(7));
    bench.end("x", ACKED);
    assert_eq!(bench.counts().oldest, Duration::from_secs(4));
    bench.end("y", ACKED);
    assert_eq!(bench.counts().oldest, Duration::ZERO);
    let acked = |trace: &&Trace| trace.step == Step::Acked { after: Duration::from_secs(7) };
    assert_eq!(bench.traces.iter().filter(acked).count(), 1);
}
