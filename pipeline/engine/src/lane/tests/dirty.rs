//! Overflow: what is folded into a dirty entry, and what reading it again brings.

use super::*;

/// A lane with one place, taken by `busy`, whose queue is full of `full@2` and `full@3`.
fn overflowing() -> Bench {
    let mut bench = Bench::new(small());
    for event in [state("busy", 1), state("full", 2), state("full", 3)] {
        bench.take(event);
    }
    bench
}

/// Ends what began first, again and again, until it is so.
fn end_until(bench: &mut Bench, is_so: impl Fn(&Bench) -> bool) {
    while !is_so(bench) {
        let running = bench.starts[0].event.key.name().to_owned();
        bench.end(&running, ACKED);
    }
}

fn until_read(bench: &mut Bench, name: &str) {
    end_until(bench, |bench| bench.reads.iter().any(|(key, _)| key.name() == name));
}

fn until_running(bench: &mut Bench, name: &str) {
    end_until(bench, |bench| bench.starts.iter().any(|start| start.event.key.name() == name));
}

fn until_idle_or_read(bench: &mut Bench) {
    end_until(bench, |bench| bench.starts.is_empty());
}

#[test]
fn a_full_queue_marks_the_key_dirty_and_it_is_read_on_its_turn() {
    let mut bench = overflowing();
    bench.take(state("x", 4));
    bench.take(state("x", 5));
    let counts = bench.counts();
    assert_eq!((counts.coalesced, counts.dirty, counts.overflowed, counts.queued), (2, 1, 1, 2));
    bench.end("busy", ACKED);
    bench.end("full", ACKED);
    assert_eq!(bench.reading(), ["x>=5"], "in line since before the second event of `full`");
    assert_eq!(bench.counts().reading, 1);
    bench.found("x", state("x", 6));
    assert_eq!((bench.running(), bench.starts[0].event.cause), (vec!["x@6".to_owned()], Cause::Read));
    bench.end("x", ACKED);
    let counts = bench.counts();
    assert_eq!((counts.dirty, counts.reading, counts.observed), (0, 0, 6), "the read counts as observed");
}

#[test]
fn queued_events_of_a_dirty_key_go_first_and_later_ones_fold() {
    let mut bench = overflowing();
    bench.take(state("full", 4));
    bench.end("busy", ACKED);
    bench.take(state("full", 5));
    assert_eq!(bench.counts().coalesced, 2, "there is room again, but order comes first");
    for expected in ["full@2", "full@3"] {
        assert_eq!(bench.running(), [expected]);
        bench.end("full", ACKED);
    }
    assert_eq!(bench.reading(), ["full>=5"]);
    bench.found("full", state("full", 5));
    bench.take(state("full", 6));
    assert_eq!(bench.counts().queued, 1, "read: transitions are kept again");
}

#[test]
fn what_comes_during_a_read_is_read_again_unless_the_read_shows_it() {
    for (found, again) in [(7, false), (6, true)] {
        let mut bench = overflowing();
        bench.take(state("x", 6));
        until_read(&mut bench, "x");
        bench.take(state("x", 7));
        bench.found("x", state("x", found));
        until_idle_or_read(&mut bench);
        assert_eq!(bench.reading().contains(&"x>=7".to_owned()), again, "found {found}");
    }
}

#[test]
fn an_object_that_is_gone_is_reported_as_deleted_with_its_remembered_life() {
    let mut bench = overflowing();
    bench.take(state("x", 4));
    until_read(&mut bench, "x");
    bench.read("x", gone());
    let event = &bench.starts[0].event;
    assert_eq!((show(event).as_str(), event.body(), event.cause), ("-x@4", None, Cause::Read));
}

#[test]
fn a_replayed_key_that_is_gone_is_deleted_with_the_life_that_the_ledger_knows() {
    let mut bench = Bench::new(small());
    bench.step(Input::Replay { key: key("x"), uid: None });
    bench.read("x", ReadResult::Gone { uid: Some("ledger".into()), observed: Timestamp::UNIX_EPOCH });
    assert_eq!(bench.running(), ["-x/ledger@0"]);
    bench.end("x", ACKED);
    bench.step(Input::Replay { key: key("y"), uid: None });
    bench.read("y", gone());
    assert_eq!((bench.running(), bench.counts().dirty), (vec![], 0), "nobody ever knew it");
    bench.pass(WATCH_LAG);
    assert!(bench.lane.keys.is_empty());
}

#[test]
fn what_the_watch_still_shows_of_a_life_that_a_read_showed_to_be_over_does_not_follow_its_end() {
    let mut bench = overflowing();
    bench.take(state("x", 4));
    until_read(&mut bench, "x");
    bench.read("x", gone());
    bench.take(state("x", 5));
    assert_eq!(bench.running(), ["-x@4"]);
    bench.end("x", ACKED);
    until_idle_or_read(&mut bench);
    let coalesced = bench.counts().coalesced;
    bench.pass(WATCH_LAG - Duration::from_millis(1));
    bench.take(ending(1, state("x", 6)));
    bench.take(deleted("x", 7));
    assert_eq!((bench.counts().coalesced, bench.counts().dirty), (coalesced + 2, 0));
    assert!(bench.lane.keys.is_empty(), "the watch has caught up");
    bench.take(of("b", state("x", 9)));
    assert_eq!(bench.running(), ["x/b@9"]);
}

#[test]
fn a_list_that_misses_a_former_life_misses_the_one_that_was_read_since_too() {
    let mut bench = Bench::new(small());
    bench.step(Input::Replay { key: key("x"), uid: Some("a".into()) });
    bench.read("x", gone());
    bench.end("x", ACKED);
    bench.step(Input::Replay { key: key("x"), uid: None });
    bench.found("x", of("b", state("x", 9)));
    bench.end("x", ACKED);
    bench.take(state("x", 5));
    assert_eq!(bench.running(), [""; 0], "that life is over");
    bench.take(Event { change: Change::Deleted { body: None }, ..state("x", 20) });
    assert_eq!(bench.running(), ["-x/b@20"]);
}

#[test]
fn an_end_that_a_read_showed_is_told_once_also_when_the_key_is_replayed() {
    let mut bench = Bench::new(small());
    bench.step(Input::Replay { key: key("x"), uid: Some("a".into()) });
    bench.take(state("x", 4));
    bench.read("x", gone());
    assert_eq!(bench.running(), ["-x@0"]);
    bench.end("x", ACKED);
    assert_eq!(bench.reading(), [""; 0], "whatever was shown of it during the read, it is over");
    bench.step(Input::Replay { key: key("x"), uid: None });
    bench.read("x", gone());
    assert_eq!((bench.running(), bench.counts().dirty), (vec![], 0));
    bench.take(state("x", 5));
    assert_eq!(bench.running(), [""; 0], "that it is over is still known");
}

#[test]
fn a_new_life_may_follow_the_end_that_a_read_showed() {
    let mut bench = overflowing();
    bench.take(state("x", 4));
    until_read(&mut bench, "x");
    bench.read("x", gone());
    bench.end("x", ACKED);
    until_idle_or_read(&mut bench);
    bench.take(of("b", state("x", 9)));
    assert_eq!(bench.running(), ["x/b@9"]);
    bench.end("x", ACKED);
    bench.pass(WATCH_LAG);
    assert!(bench.lane.keys.is_empty(), "not for ever");
}

#[test]
fn a_deletion_in_an_overflow_survives_a_recreation() {
    let mut bench = overflowing();
    for event in [state("x", 4), deleted("x", 5), of("b", state("x", 6))] {
        bench.take(event);
    }
    until_read(&mut bench, "x");
    bench.found("x", of("b", state("x", 7)));
    assert_eq!(bench.running(), ["-x@5"]);
    bench.end("x", ACKED);
    until_running(&mut bench, "x");
    assert_eq!(bench.running(), ["x/b@7"]);
}

#[test]
fn a_life_that_nobody_saw_end_is_deleted_before_the_new_one() {
    let mut bench = overflowing();
    bench.take(state("x", 4));
    until_read(&mut bench, "x");
    bench.found("x", of("b", state("x", 9)));
    assert_eq!(bench.running(), ["-x@4"]);
    bench.end("x", ACKED);
    until_running(&mut bench, "x");
    assert_eq!(bench.running(), ["x/b@9"]);
    bench.take(state("x", 5));
    bench.take(deleted("x", 6));
    bench.end("x", ACKED);
    assert_eq!(bench.running(), [""; 0], "what the watch still tells of the former life is of no use");
}

#[test]
fn a_deletion_seen_while_its_object_was_being_read_still_comes() {
    let mut bench = overflowing();
    bench.take(state("x", 4));
    until_read(&mut bench, "x");
    bench.take(deleted("x", 6));
    bench.found("x", state("x", 5));
    until_read(&mut bench, "x");
    bench.read("x", gone());
    assert_eq!(bench.running(), ["-x@6"]);
    bench.end("x", ACKED);
    until_idle_or_read(&mut bench);
    assert_eq!((bench.counts().dirty, bench.reads.len()), (0, 0));
}

#[test]
fn a_deletion_seen_while_a_read_found_nothing_is_told_once() {
    let mut bench = overflowing();
    bench.take(state("x", 4));
    until_read(&mut bench, "x");
    bench.take(deleted("x", 6));
    bench.read("x", gone());
    assert_eq!(bench.running(), ["-x@4"]);
    bench.end("x", ACKED);
    until_idle_or_read(&mut bench);
    assert_eq!((bench.counts().dirty, bench.reads.len()), (0, 0));
}

#[test]
fn ends_of_operations_survive_and_the_one_that_is_shown_is_not_told_twice() {
    let mut bench = overflowing();
    for event in [
        ending(1, state("x", 4)),
        ending(1, state("x", 5)),
        ending(2, state("x", 6)),
        state("x", 7),
        ending(3, state("x", 8)),
    ] {
        bench.take(event);
    }
    assert_eq!(bench.counts().summaries, 3);
    until_read(&mut bench, "x");
    bench.found("x", ending(3, state("x", 9)));
    assert_eq!(bench.carried("x"), ["end 1", "end 2"]);
    assert_eq!((bench.counts().summaries, bench.counts().summary_bytes), (0, 0));
}

#[test]
fn an_end_that_a_queued_event_shows_needs_no_summary() {
    let mut bench = Bench::new(Config { queue_events: 1, ..small() });
    bench.take(state("busy", 1));
    bench.take(ending(1, state("x", 2)));
    bench.take(ending(1, state("x", 3)));
    assert_eq!((bench.counts().dirty, bench.counts().summaries), (1, 0));
}

#[test]
fn summaries_are_bounded_per_key_and_in_all_and_what_is_given_up_is_counted() {
    let mut bench = overflowing();
    for number in 1..=66 {
        bench.take(ending(number, state("x", 10 + number)));
    }
    let counts = bench.counts();
    assert_eq!((counts.summaries, counts.summaries_dropped), (64, 2));
    let given_up: Vec<_> =
        bench.traces.iter().filter(|trace| matches!(trace.step, Step::GaveUp(_))).collect();
    assert_eq!(given_up.len(), 2);
    assert!(
        given_up.iter().all(|trace| trace.key == key("x") && trace.step == Step::GaveUp(1)),
        "{given_up:?}"
    );
    until_read(&mut bench, "x");
    bench.found("x", state("x", 90));
    let expected: Vec<_> = (3..=66).map(|number| format!("end {number}")).collect();
    assert_eq!(bench.carried("x"), expected, "the oldest give way");

    let two = 2 * end(1).size() as u64;
    let mut bench = Bench::new(Config { queue_events: 0, summary_bytes: two, ..small() });
    bench.take(state("busy", 1));
    for (number, name) in [(1, "x"), (2, "x"), (3, "x"), (4, "y")] {
        bench.take(ending(number, state(name, 10 + number)));
    }
    let counts = bench.counts();
    assert_eq!((counts.summaries, counts.summary_bytes, counts.summaries_dropped), (2, two, 2));
}

#[test]
fn a_failed_read_is_tried_again_and_keeps_everything() {
    let mut bench = overflowing();
    bench.take(ending(1, state("x", 4)));
    until_read(&mut bench, "x");
    bench.take(ending(2, state("x", 5)));
    bench.read("x", ReadResult::Failed { reason: Reason::Timeout, after: None });
    assert_eq!((bench.counts().dirty, bench.counts().retried, bench.counts().summaries), (1, 1, 2));
    bench.take(state("x", 6));
    bench.pass(Duration::from_secs(1));
    until_read(&mut bench, "x");
    assert_eq!(bench.reading(), ["x>=6"]);
    bench.found("x", state("x", 6));
    assert_eq!(bench.carried("x"), ["end 1", "end 2"]);
    assert_eq!(bench.starts[0].attempt, 1);
}

#[test]
fn an_object_that_cannot_be_read_at_all_is_parked() {
    let mut bench = overflowing();
    bench.take(ending(1, state("x", 4)));
    until_read(&mut bench, "x");
    bench.read("x", ReadResult::Refused { reason: Reason::Malformed, at: Timestamp::UNIX_EPOCH });
    let counts = bench.counts();
    assert_eq!((counts.parked, counts.parked_keys, counts.dirty), (1, 1, 0));
    assert_eq!((counts.summaries, counts.summaries_dropped), (0, 1));
}

#[test]
fn a_read_that_is_ahead_of_the_watch_makes_no_redelivery_of_what_it_skipped() {
    let mut bench = overflowing();
    bench.take(state("x", 4));
    until_read(&mut bench, "x");
    bench.found("x", state("x", 9));
    bench.end("x", ACKED);
    until_idle_or_read(&mut bench);
    bench.take(state("x", 5));
    let counts = bench.counts();
    assert_eq!((counts.coalesced, counts.stale), (2, 0), "folded into what was read, not redelivered");
    bench.take(ending(1, state("x", 6)));
    assert_eq!(bench.reading(), ["x>=9"], "an end that the read did not show");
    bench.found("x", state("x", 9));
    assert_eq!(bench.carried("x"), ["end 1"]);
    bench.end("x", ACKED);
    bench.take(state("x", 9));
    assert!(bench.lane.keys.is_empty(), "the watch has caught up");
}

#[test]
fn what_two_reads_told_is_not_told_again_when_the_watch_comes_to_it() {
    let mut bench = Bench::new(small());
    bench.restore("x", &[("a", 4, 1)], &[]);
    bench.found("x", ending(3, state("x", 9)));
    assert_eq!(bench.carried("x"), ["end 1"]);
    bench.end("x", ACKED);
    bench.step(Input::Replay { key: key("x"), uid: None });
    bench.found("x", ending(4, state("x", 12)));
    bench.end("x", ACKED);
    for (version, number) in [(5, 1), (9, 3)] {
        bench.take(ending(number, state("x", version)));
        assert_eq!(bench.reading(), [""; 0], "end {number}");
    }
    bench.take(ending(2, state("x", 10)));
    bench.found("x", ending(4, state("x", 12)));
    assert_eq!(bench.carried("x"), ["end 2"], "nobody was told of this one");
}

#[test]
fn reads_have_a_bound_of_their_own() {
    let mut bench = Bench::new(Config { queue_events: 0, concurrency: 8, reads: 2, ..Config::default() });
    for name in ["v", "w", "x", "y", "z"] {
        bench.take(state(name, 1));
    }
    assert_eq!(bench.reading(), ["v>=1", "w>=1"]);
    bench.found("v", state("v", 1));
    assert_eq!(bench.reading(), ["w>=1", "x>=1"]);
}

#[test]
fn bytes_bound_the_queue_and_reads_wait_for_them() {
    let size = state("x", 1).size() as u64;
    let mut bench = Bench::new(Config { queue_bytes: 2 * size, concurrency: 1, ..Config::default() });
    for (name, version) in [("x", 1), ("y", 2), ("z", 3)] {
        bench.take(state(name, version));
    }
    let counts = bench.counts();
    assert_eq!((counts.bytes, counts.queued, counts.dirty), (2 * size, 1, 1));
}

#[test]
fn one_busy_key_cannot_take_the_queue() {
    let config = Config { queue_events: 10, queue_events_per_key: 3, concurrency: 1, ..Config::default() };
    let mut bench = Bench::new(config);
    for version in 1..=20 {
        bench.take(state("busy", version));
    }
    assert_eq!((bench.counts().queued, bench.counts().dirty), (3, 1));
    bench.take(state("other", 30));
    assert_eq!(bench.counts().queued, 4);
}

#[test]
fn a_restored_store_is_believed_whatever_was_acknowledged_or_over_before() {
    let mut bench = Bench::new(small());
    let restored = |version: u64| Event { version: Version(version).in_era(1), ..state("x", 0) };
    bench.take(state("x", 50));
    bench.end("x", ACKED);
    // Older by its number alone; then as any other of its era.
    bench.take(restored(20));
    assert_eq!(bench.starts.len(), 1);
    bench.take(restored(20));
    bench.take(state("x", 60));
    assert_eq!((bench.starts.len(), bench.counts().stale), (1, 2));
    bench.end("x", ACKED);

    // A read shows that it is over; the snapshot shows it once more, and what happens to it afterwards.
    bench.step(Input::Replay { key: key("x"), uid: Some("a".into()) });
    bench.read("x", gone());
    bench.end("x", ACKED);
    let again = |version: u64| Event { version: Version(version).in_era(2), ..state("x", 0) };
    for version in [10, 11] {
        bench.take(again(version));
        assert_eq!(bench.starts.len(), 1, "{version}");
        bench.end("x", ACKED);
    }
}
