//! Keys that were refused for good, and restarts.

use pipeline_core::Refused;

use super::*;

fn parked(uid: &str, version: u64) -> Parked {
    Parked {
        reason: Reason::Refused,
        at: Timestamp::UNIX_EPOCH,
        version: Version(version),
        uid: Some(uid.into()),
        refused: Refused::default(),
    }
}

/// A lane in which `x`, life `a`, was refused at version 5 before the process ended.
fn restored() -> Bench {
    let mut bench = Bench::new(small());
    bench.step(Input::Park { key: key("x"), parked: parked("a", 5) });
    bench
}

#[test]
fn a_parked_state_that_is_listed_again_is_not_tried_again() {
    let mut bench = restored();
    bench.take(state("x", 5));
    bench.take(state("x", 4));
    bench.take(Event { again: true, ..ending(1, state("x", 5)) });
    bench.take(Event { again: true, ..state("x", 4) });
    let counts = bench.counts();
    assert_eq!((counts.filtered, counts.stale, counts.parked, counts.parked_keys), (4, 0, 0, 1));
    assert_eq!((bench.running(), bench.reading()), (vec![], vec![]));
    assert!(bench.lane.keys.is_empty());
    let steps = bench.traces.iter().map(|trace| trace.step).collect::<Vec<_>>();
    let filtered = Step::Filtered(Filtered::Parked);
    assert_eq!(steps, [Step::Observed, filtered].repeat(4));
    assert_eq!(Filtered::Parked.as_str(), "parked");
}

/// A read may have shown the refused state before a watch came to what led to it.
#[test]
fn a_fact_that_led_to_a_parked_state_is_told_with_the_newest_state_when_a_watch_shows_it_again() {
    let mut bench = restored();
    for version in [3, 4, 5] {
        bench.take(Event { again: true, ..ending(1, state("x", version)) });
    }
    assert_eq!((bench.running(), bench.reading()), (vec![], vec!["x>=3".to_owned()]));
    assert_eq!((bench.counts().filtered, bench.counts().parked_keys), (1, 1));
    bench.found("x", ending(2, state("x", 9)));
    assert_eq!((bench.running(), bench.carried("x")), (vec!["x@9".to_owned()], vec!["end 1".to_owned()]));
}

#[test]
fn facts_that_the_bus_brings_along_with_a_parked_state_are_told_with_the_newest() {
    let mut bench = restored();
    let Event { fact, .. } = ending(1, state("x", 3));
    let brings = Event { coalesced: fact.into_iter().collect(), ..state("x", 5) };
    bench.step(Input::Redelivered(Arc::new(brings)));
    assert_eq!((bench.running(), bench.reading()), (vec![], vec!["x>=5".to_owned()]));
    bench.found("x", state("x", 5));
    assert_eq!((bench.running(), bench.carried("x")), (vec!["x@5".to_owned()], vec!["end 1".to_owned()]));
}

#[test]
fn in_the_same_process_it_is_not_tried_again_either() {
    let mut bench = Bench::new(small());
    bench.take(state("x", 5));
    bench.end("x", reject(Reason::Refused));
    bench.take(state("x", 5));
    assert_eq!((bench.running(), bench.counts().filtered, bench.counts().parked_keys), (vec![], 1, 1));
}

#[test]
fn what_is_newer_another_life_or_a_deletion_goes_on() {
    for event in [
        state("x", 6),
        of("b", state("x", 5)),
        of("b", state("x", 9)),
        deleted("x", 5),
        deleted("x", 9),
        state("x", 0),
        Event { cause: Cause::Read, ..state("x", 5) },
        Event { cause: Cause::Refetch, ..state("x", 5) },
    ] {
        let shown = show(&event);
        let mut bench = restored();
        bench.take(event);
        assert_eq!(
            (bench.running(), bench.counts().parked_keys),
            (vec![shown.clone()], 1),
            "until it is taken"
        );
        bench.end("x", ACKED);
        assert_eq!(bench.counts().parked_keys, 0, "{shown}");
    }
}

#[test]
fn a_key_that_could_not_be_read_is_tried_with_whatever_is_listed() {
    let mut bench = Bench::new(small());
    bench.step(Input::Park { key: key("x"), parked: Parked { uid: None, ..parked("a", 0) } });
    bench.take(state("x", 1));
    assert_eq!(bench.running(), ["x@1"]);
}

#[test]
fn a_replay_tries_a_parked_state_again_and_parks_it_anew() {
    let mut bench = restored();
    bench.step(Input::Replay { key: key("x"), uid: None });
    bench.take(state("x", 5));
    assert_eq!(bench.counts().filtered, 1, "the list says nothing new");
    bench.found("x", state("x", 5));
    assert_eq!(bench.running(), ["x@5"]);
    let refused: Refused =
        Arc::new([(pipeline_core::EntityId::OBJECT, pipeline_core::Digest(7), Reason::TooLarge)]);
    let at = Timestamp::from_second(60).unwrap();
    bench.end("x", Outcome::Reject { reason: Reason::TooLarge, refused: refused.clone(), at });
    let entry = Parked { reason: Reason::TooLarge, at, refused, ..parked("a", 5) };
    assert_eq!(bench.lane.how_parked(&key("x")), Some(&entry));
    assert_eq!(bench.lane.how_parked(&key("y")), None);
}

#[test]
fn a_parked_key_that_is_gone_and_was_never_reported_is_parked_no_more_once_replayed() {
    let mut bench = restored();
    bench.step(Input::Replay { key: key("x"), uid: None });
    bench.read("x", gone());
    assert_eq!((bench.running(), bench.counts().parked_keys), (vec![], 0));
}

#[test]
fn what_is_discarded_is_reported_with_its_next_change_and_tried_once_more_when_it_is_listed() {
    let mut bench = restored();
    bench.step(Input::Discard { key: key("x") });
    assert_eq!((bench.running(), bench.reading(), bench.counts().parked_keys), (vec![], vec![], 0));
    bench.take(state("x", 5));
    assert_eq!(bench.running(), ["x@5"]);
    bench.end("x", reject(Reason::Refused));
    assert_eq!(bench.counts().parked_keys, 1);
}

#[test]
fn what_is_incomplete_of_a_parked_key_is_refetched() {
    let mut bench = Bench::new(small());
    bench.take(state("x", 4));
    bench.end("x", Outcome::Acked { refetch: Some(Refetch::Incomplete) });
    bench.take(state("x", 5));
    bench.end("x", reject(Reason::Refused));
    bench.pass(Duration::from_secs(60));
    bench.found("x", state("x", 5));
    assert_eq!((bench.running(), bench.starts[0].event.cause), (vec!["x@5".to_owned()], Cause::Refetch));
}

#[test]
fn restored_entries_keep_the_bound_and_what_is_given_up_is_counted() {
    let mut bench = Bench::new(Config { parked: 2, ..small() });
    for name in ["x", "y", "z", "x"] {
        bench.step(Input::Park { key: key(name), parked: parked("a", 5) });
    }
    let counts = bench.counts();
    assert_eq!((counts.parked, counts.parked_keys, counts.parked_dropped), (0, 2, 1));
}

#[test]
fn a_parked_key_whose_journal_is_restored_is_told_all_the_same() {
    let mut bench = restored();
    bench.restore("x", &[("a", 6, 1)], &[]);
    bench.take(state("x", 5));
    bench.found("x", state("x", 6));
    assert_eq!((bench.running(), bench.carried("x")), (vec!["x@6".to_owned()], vec!["end 1".to_owned()]));
}
