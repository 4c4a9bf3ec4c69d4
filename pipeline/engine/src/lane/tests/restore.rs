//! What must outlive the process: what is journaled, and what comes of it after a restart.

use super::*;

/// A lane with one place, taken by `busy`, and room for nothing else.
fn crowded() -> Bench {
    let mut bench = Bench::new(Config { queue_events: 0, ..small() });
    bench.lane.config.queue_events = 1;
    bench.take(state("busy", 1));
    bench.lane.config.queue_events = 0;
    bench
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

#[test]
fn states_alone_need_no_journal() {
    let mut bench = Bench::new(small());
    assert_eq!(bench.pending("x"), None, "not busy");
    bench.take(state("x", 1));
    bench.take(state("x", 2));
    assert_eq!(bench.pending("x"), None);
    let mut bench = crowded();
    bench.take(state("x", 2));
    assert_eq!((bench.pending("x"), bench.counts().dirty), (None, 1));
}

#[test]
fn ends_and_deletions_of_what_runs_and_is_queued_are_journaled_in_order_and_once() {
    let mut bench = Bench::new(Config { concurrency: 1, ..Config::default() });
    for event in [
        ending(1, state("x", 1)),
        ending(1, state("x", 2)),
        Event { coalesced: vec![end(2), end(3)], ..ending(4, state("x", 3)) },
        ending(4, deleted("x", 4)),
        of("b", state("x", 5)),
        of("b", ending(5, state("x", 6))),
    ] {
        bench.take(event);
    }
    let ends = strings(&["a@2 end 1", "a@3 end 2", "a@3 end 3", "a@4 end 4", "b@6 end 5"]);
    assert_eq!(bench.pending("x"), Some((ends, strings(&["a@4"]))));
    for _ in 0..4 {
        bench.end("x", ACKED);
    }
    assert_eq!(bench.running(), ["x/b@5"]);
    assert_eq!(bench.pending("x"), Some((strings(&["b@6 end 5"]), vec![])), "what was told is forgotten");
    bench.end("x", ACKED);
    bench.end("x", retry(Blame::Sink));
    assert_eq!(bench.pending("x"), Some((strings(&["b@6 end 5"]), vec![])), "it waits to be tried again");
    bench.pass(Duration::from_secs(1));
    bench.end("x", ACKED);
    assert_eq!(bench.pending("x"), None);
}

#[test]
fn what_a_mark_holds_is_journaled_also_while_it_is_read() {
    let mut bench = crowded();
    for event in [ending(1, state("x", 4)), deleted("x", 5), of("b", ending(2, state("x", 6)))] {
        bench.take(event);
    }
    let marked = Some((strings(&["a@4 end 1", "b@6 end 2"]), strings(&["a@5"])));
    assert_eq!(bench.pending("x"), marked);
    bench.end("busy", ACKED);
    assert_eq!((bench.reading(), bench.pending("x")), (strings(&["x>=6"]), marked));
    bench.take(of("b", ending(3, state("x", 7))));
    bench.take(of("c", state("x", 9)));
    let ends = strings(&["a@4 end 1", "b@6 end 2", "b@7 end 3"]);
    assert_eq!(bench.pending("x"), Some((ends, strings(&["a@5", "b@7"]))), "b cannot be read any more");

    bench.found("x", of("c", ending(4, state("x", 10))));
    assert_eq!(bench.running(), ["-x@5"]);
    let ends = strings(&["a@5 end 1", "b@6 end 2", "b@6 end 3", "c@10 end 4"]);
    assert_eq!(bench.pending("x").unwrap().0, ends);
}

#[test]
fn a_life_followed_by_another_while_it_is_read_is_journaled_as_over() {
    let mut bench = crowded();
    bench.take(state("x", 4));
    bench.end("busy", ACKED);
    assert_eq!(bench.pending("x"), None);
    bench.take(of("b", state("x", 6)));
    assert_eq!(bench.pending("x"), Some((vec![], strings(&["a@4"]))));
}

#[test]
fn a_life_that_a_list_ends_once_more_is_journaled_as_it_ended_first() {
    let mut bench = Bench::new(small());
    bench.restore("x", &[("a", 5, 1)], &[("a", 6), ("b", 9)]);
    bench.take(Event { change: Change::Deleted { body: None }, ..state("x", 20) });
    assert_eq!(bench.pending("x"), Some((strings(&["a@5 end 1"]), strings(&["a@6", "b@9"]))));
}

#[test]
fn at_most_the_newest_64_facts_and_eight_lives_are_journaled() {
    let mut bench = Bench::new(Config { concurrency: 1, ..Config::default() });
    for number in 1..=70 {
        let uid = format!("life {number:02}");
        bench.take(of(&uid, ending(number, state("x", 2 * number))));
        bench.take(of(&uid, deleted("x", 2 * number + 1)));
    }
    let (ends, gone) = bench.pending("x").unwrap();
    assert_eq!(
        (ends.len(), ends[0].as_str(), ends[63].as_str()),
        (64, "life 07@14 end 7", "life 70@140 end 70")
    );
    assert_eq!((gone.len(), gone[0].as_str(), gone[7].as_str()), (8, "life 63@127", "life 70@141"));
}

#[test]
fn a_restored_key_is_read_as_it_is_now_and_told_with_its_ends() {
    let mut bench = Bench::new(small());
    bench.restore("x", &[("a", 5, 1), ("a", 6, 2)], &[]);
    let counts = bench.counts();
    assert_eq!((bench.reading(), counts.reading, counts.dirty), (strings(&["x>=0"]), 1, 1));
    assert_eq!((counts.summaries, counts.summary_bytes), (2, 2 * end(1).size() as u64));
    let journaled = Some((strings(&["a@5 end 1", "a@6 end 2"]), vec![]));
    assert_eq!(bench.pending("x"), journaled, "a second crash changes nothing");
    bench.found("x", state("x", 9));
    assert_eq!((bench.running(), bench.carried("x")), (strings(&["x@9"]), strings(&["end 1", "end 2"])));
    assert_eq!((bench.starts[0].event.cause, bench.counts().summaries), (Cause::Read, 0));
    bench.end("x", ACKED);
    assert_eq!(bench.pending("x"), None);
    bench.take(state("x", 9));
    assert!(bench.lane.keys.is_empty(), "what is listed was read already");
}

#[test]
fn an_end_that_the_object_still_shows_is_not_told_twice() {
    let mut bench = Bench::new(small());
    bench.restore("x", &[("a", 5, 1), ("a", 6, 2)], &[]);
    bench.found("x", ending(2, state("x", 6)));
    assert_eq!(bench.carried("x"), ["end 1"]);
}

#[test]
fn a_newer_operation_does_not_hide_what_ended_before() {
    let mut bench = Bench::new(small());
    bench.restore("x", &[("a", 5, 1)], &[]);
    bench.take(ending(7, state("x", 8)));
    bench.found("x", ending(7, state("x", 8)));
    assert_eq!((bench.running(), bench.carried("x")), (strings(&["x@8"]), strings(&["end 1"])));
    bench.end("x", ACKED);
    assert_eq!((bench.running(), bench.counts().dirty), (vec![], 0));
}

#[test]
fn lives_that_were_over_are_deleted_before_the_object_is_told() {
    let mut bench = Bench::new(small());
    bench.restore("x", &[("a", 4, 1), ("c", 9, 2)], &[("a", 5), ("b", 7)]);
    bench.found("x", of("c", state("x", 12)));
    for (expected, carried) in [("-x@5", &["end 1"] as &[_]), ("-x/b@7", &[]), ("x/c@12", &["end 2"] as &[_])]
    {
        assert_eq!((bench.running(), bench.carried("x")), (strings(&[expected]), strings(carried)));
        bench.end("x", ACKED);
    }
    assert_eq!(bench.counts().summaries_dropped, 0);
}

/// A restored key whose object has another life, shown by a list before or during the read, or by the read alone.
#[test]
fn a_restored_life_that_is_over_is_deleted_with_its_ends_before_the_new_one() {
    for listed in ["before", "during", "never"] {
        let mut bench = crowded();
        bench.restore("x", &[("a", 5, 1)], &[]);
        if listed == "before" {
            bench.take(of("b", ending(2, state("x", 9))));
        }
        bench.end("busy", ACKED);
        assert_eq!(bench.reading(), [if listed == "before" { "x>=9" } else { "x>=0" }]);
        if listed == "during" {
            bench.take(of("b", ending(2, state("x", 9))));
        }
        bench.found("x", of("b", state("x", 10)));
        assert_eq!(
            (bench.running(), bench.carried("x")),
            (strings(&["-x@5"]), strings(&["end 1"])),
            "{listed}"
        );
        bench.end("x", ACKED);
        let carried: &[&str] = if listed == "never" { &[] } else { &["end 2"] };
        assert_eq!(
            (bench.running(), bench.carried("x")),
            (strings(&["x/b@10"]), strings(carried)),
            "{listed}"
        );
        bench.end("x", ACKED);
        assert_eq!((bench.counts().dirty, bench.reading()), (0, vec![]), "{listed}");
    }
}

#[test]
fn a_restored_life_that_is_listed_goes_on() {
    for during in [false, true] {
        let mut bench = crowded();
        bench.restore("x", &[("a", 5, 1)], &[]);
        if during {
            bench.end("busy", ACKED);
        }
        bench.take(state("x", 9));
        if !during {
            bench.end("busy", ACKED);
        }
        bench.found("x", state("x", 9));
        assert_eq!(
            (bench.running(), bench.carried("x")),
            (strings(&["x@9"]), strings(&["end 1"])),
            "{during}"
        );
        bench.end("x", ACKED);
        assert_eq!((bench.counts().dirty, bench.counts().summaries), (0, 0), "{during}");
    }
}

#[test]
fn a_restored_life_that_vanished_is_deleted_once_with_its_ends() {
    let vanished = || Event { change: Change::Deleted { body: None }, ..state("x", 20) };
    for listed in ["before", "during", "after"] {
        let mut bench = crowded();
        bench.restore("x", &[("a", 5, 1)], &[]);
        if listed == "before" {
            bench.take(vanished());
        }
        bench.end("busy", ACKED);
        if listed == "during" {
            bench.take(vanished());
        }
        bench.read("x", gone());
        let at = if listed == "before" { "-x@20" } else { "-x@5" };
        assert_eq!((bench.running(), bench.carried("x")), (strings(&[at]), strings(&["end 1"])), "{listed}");
        bench.end("x", ACKED);
        if listed == "after" {
            bench.take(vanished());
        }
        assert_eq!((bench.counts().dirty, bench.running()), (0, vec![]), "{listed}");
        assert!(bench.lane.keys.is_empty(), "{listed}");
    }
}

#[test]
fn of_lives_that_were_over_the_ledgers_is_deleted_too_when_nothing_is_there() {
    let mut bench = Bench::new(small());
    bench.restore("x", &[("a", 4, 1)], &[("a", 5)]);
    bench.read("x", ReadResult::Gone { uid: Some("c".into()), observed: Timestamp::UNIX_EPOCH });
    assert_eq!((bench.running(), bench.carried("x")), (strings(&["-x@5"]), strings(&["end 1"])));
    bench.end("x", ACKED);
    assert_eq!(bench.running(), ["-x/c@5"], "a later life was acknowledged after the journal was written");
    bench.end("x", ACKED);

    bench.restore("x", &[], &[("a", 5)]);
    bench.read("x", ReadResult::Gone { uid: Some("a".into()), observed: Timestamp::UNIX_EPOCH });
    assert_eq!(bench.running(), ["-x@5"]);
    bench.end("x", ACKED);
    assert_eq!(bench.running(), [""; 0], "once");
}

#[test]
fn a_life_that_is_named_by_a_replay_ends_none_that_was_noted() {
    let mut bench = Bench::new(small());
    bench.restore("x", &[("b", 9, 1)], &[]);
    bench.step(Input::Replay { key: key("x"), uid: Some("a".into()) });
    bench.read("x", ReadResult::Failed { reason: Reason::Timeout, after: None });
    assert_eq!(bench.pending("x"), Some((strings(&["b@9 end 1"]), vec![])));
    bench.pass(Duration::from_secs(1));
    bench.read("x", ReadResult::Gone { uid: Some("a".into()), observed: Timestamp::UNIX_EPOCH });
    assert_eq!((bench.running(), bench.carried("x")), (strings(&["-x/b@9"]), strings(&["end 1"])));
    bench.end("x", ACKED);
    assert_eq!(bench.running(), ["-x@9"], "the ledger's life is over too");
}

#[test]
fn an_end_of_a_life_before_one_that_came_and_went_is_told_first() {
    let mut bench = Bench::new(small());
    bench.restore("x", &[("a", 4, 1)], &[("b", 8)]);
    bench.read("x", gone());
    assert_eq!((bench.running(), bench.carried("x")), (strings(&["-x@4"]), strings(&["end 1"])));
    bench.end("x", ACKED);
    assert_eq!(bench.running(), ["-x/b@8"]);
}

#[test]
fn versions_of_a_cluster_that_was_built_anew_are_lower_and_yet_newer() {
    let mut bench = crowded();
    bench.restore("x", &[("a", 500, 1)], &[]);
    bench.take(of("b", ending(2, state("x", 3))));
    bench.end("busy", ACKED);
    assert_eq!(bench.reading(), ["x>=3"], "it may never come to version 500");
    bench.found("x", of("b", state("x", 4)));
    assert_eq!((bench.running(), bench.carried("x")), (strings(&["-x@500"]), strings(&["end 1"])));
    bench.end("x", ACKED);
    assert_eq!((bench.running(), bench.carried("x")), (strings(&["x/b@4"]), strings(&["end 2"])));
}

#[test]
fn a_restored_version_is_not_asked_for_after_a_failed_read_either() {
    let mut bench = crowded();
    bench.take(state("x", 3));
    bench.end("busy", ACKED);
    bench.restore("x", &[("a", 500, 1)], &[]);
    bench.read("x", ReadResult::Failed { reason: Reason::Timeout, after: None });
    bench.pass(Duration::from_secs(1));
    assert_eq!(bench.reading(), ["x>=3"]);
    bench.found("x", state("x", 3));
    assert_eq!((bench.running(), bench.carried("x")), (strings(&["x@3"]), strings(&["end 1"])));
}

#[test]
fn what_is_restored_comes_before_what_was_already_noted_and_survives_a_failed_read() {
    let mut bench = crowded();
    bench.take(of("b", ending(2, state("x", 9))));
    bench.restore("x", &[("a", 5, 1)], &[]);
    assert_eq!(bench.counts().dirty, 1);
    bench.end("busy", ACKED);
    assert_eq!(bench.reading(), ["x>=9"]);
    bench.restore("x", &[("b", 6, 3)], &[]);
    bench.read("x", ReadResult::Failed { reason: Reason::Timeout, after: None });
    bench.pass(Duration::from_secs(1));
    assert_eq!(bench.reading(), ["x>=9"]);
    bench.found("x", of("b", state("x", 9)));
    assert_eq!((bench.running(), bench.carried("x")), (strings(&["-x@5"]), strings(&["end 1"])));
    bench.end("x", ACKED);
    assert_eq!((bench.running(), bench.carried("x")), (strings(&["x/b@9"]), strings(&["end 3", "end 2"])));
}

#[test]
fn restored_summaries_are_bounded_as_others_are() {
    let two = 2 * end(1).size() as u64;
    let mut bench = Bench::new(Config { summary_bytes: two, ..small() });
    bench.restore("x", &[("a", 4, 1), ("a", 5, 2), ("a", 6, 3)], &[]);
    let counts = bench.counts();
    assert_eq!((counts.summaries, counts.summary_bytes, counts.summaries_dropped), (2, two, 1));
    bench.found("x", state("x", 9));
    assert_eq!(bench.carried("x"), ["end 2", "end 3"], "the oldest give way");
}

#[test]
fn a_lane_that_is_paused_or_stopped_restores_and_waits() {
    let mut bench = Bench::new(small());
    bench.step(Input::Pause);
    bench.restore("x", &[("a", 4, 1)], &[]);
    assert_eq!((bench.reading(), bench.counts().ready), (vec![], 1));
    bench.step(Input::Resume);
    assert_eq!(bench.reading(), ["x>=0"]);
}

/// As a watch shows it that goes on where a former process ended.
fn again(event: Event) -> Event {
    Event { again: true, ..event }
}

const NOTHING: [String; 0] = [];

#[test]
fn what_was_journaled_is_told_in_order_with_what_the_watch_shows_again_until_the_newest_state() {
    let mut bench = Bench::new(Config::default());
    bench.restore_awaited("x", &[("a", 5, 1), ("a", 6, 2)]);
    for (number, version) in [(1, 5), (2, 6), (3, 8), (4, 9)] {
        bench.take(again(ending(number, state("x", version))));
    }
    assert_eq!((bench.reading(), bench.running()), (strings(&[]), strings(&[])), "more is to come");
    let kept = strings(&["a@5 end 1", "a@6 end 2", "a@8 end 3", "a@9 end 4"]);
    assert_eq!(bench.pending("x"), Some((kept, vec![])));
    bench.take(ending(5, state("x", 12)));
    assert_eq!(bench.reading(), NOTHING, "the watch has shown all of it");
    assert_eq!(
        (bench.running(), bench.carried("x")),
        (strings(&["x@12"]), strings(&["end 1", "end 2", "end 3", "end 4"]))
    );
    assert_eq!(bench.counts().balance(), 0);
}

#[test]
fn what_was_journaled_of_another_life_is_told_by_a_read_of_the_newest_state() {
    let mut bench = Bench::new(Config::default());
    bench.restore_awaited("x", &[("former", 5, 1)]);
    bench.take(ending(2, state("x", 12)));
    assert_eq!((bench.reading(), bench.running()), (strings(&["x>=12"]), strings(&[])));
}

#[test]
fn what_was_journaled_waits_no_longer_than_for_its_end_or_for_a_person_or_ten_minutes() {
    let mut bench = Bench::new(Config::default());
    for name in ["ends", "asked", "left"] {
        bench.restore_awaited(name, &[("a", 5, 1)]);
    }
    assert_eq!(bench.reading(), NOTHING);
    bench.take(again(deleted("ends", 7)));
    bench.step(Input::Replay { key: key("asked"), uid: None });
    assert_eq!(bench.reading(), ["ends>=7", "asked>=0"]);
    bench.pass(Duration::from_secs(599));
    assert_eq!(bench.reading().len(), 2);
    bench.pass(Duration::from_secs(1));
    assert_eq!(bench.reading(), ["ends>=7", "asked>=0", "left>=0"]);
    // An API server that was away shows what it kept once it is back.
    bench.read("left", ReadResult::Failed { reason: Reason::Unreachable, after: None });
    bench.pass(Duration::from_secs(599));
    assert_eq!(bench.reading().len(), 2);
    bench.pass(Duration::from_secs(1));
    assert_eq!(bench.reading(), ["ends>=7", "asked>=0", "left>=0"]);
}

#[test]
fn what_led_to_a_state_that_may_have_arrived_is_told_with_that_and_not_behind_it() {
    let mut bench = Bench::new(Config::default());
    for (number, version) in [(1, 5), (2, 8)] {
        bench.step(Input::InDoubt(Arc::new(again(ending(number, state("x", version))))));
    }
    assert_eq!((bench.reading(), bench.running()), (strings(&[]), strings(&[])), "the newest is to come");
    bench.take(again(ending(3, state("x", 12))));
    assert_eq!(bench.reading(), NOTHING, "the watch has shown it");
    assert_eq!((bench.running(), bench.carried("x")), (strings(&["x@12"]), strings(&["end 1", "end 2"])));
    // Its end says as well that all of it was shown.
    bench.step(Input::InDoubt(Arc::new(again(state("y", 6)))));
    bench.take(again(deleted("y", 7)));
    assert_eq!(bench.reading(), ["y>=7"]);
}

/// The doubt is that of a report of this process, which has not been answered yet.
#[test]
fn what_is_shown_again_of_an_object_that_is_being_reported_comes_in_its_turn() {
    let mut bench = Bench::new(Config::default());
    bench.take(again(state("x", 5)));
    bench.step(Input::InDoubt(Arc::new(again(state("x", 8)))));
    bench.end("x", ACKED);
    assert_eq!((bench.running(), bench.reading()), (strings(&["x@8"]), strings(&[])));
}

#[test]
fn what_is_passed_over_is_counted_and_changes_nothing_else() {
    let mut bench = Bench::new(Config::default());
    bench.step(Input::PassedOver(again(ending(1, state("x", 5))).into()));
    let counts = bench.counts();
    assert_eq!((counts.observed, counts.delivered, counts.filtered, counts.stale), (1, 1, 1, 1));
    assert_eq!((counts.balance(), counts.oldest_version, bench.pending("x")), (0, Version(0), None));
    assert_eq!((bench.reading(), bench.running()), (strings(&[]), strings(&[])));
}

#[test]
fn lives_that_the_watch_shows_again_while_what_was_journaled_is_read_are_told_in_their_order() {
    for shows in [false, true] {
        let mut bench = Bench::new(Config { concurrency: 9, ..Config::default() });
        bench.restore("x", &[("c", 57, 8), ("d", 78, 12)], &[("c", 64)]);
        assert_eq!(bench.reading(), ["x>=0"]);
        for (uid, version, number) in [("a", 13, 1), ("b", 38, 6), ("c", 60, 8), ("d", 71, 9)] {
            bench.take(again(Event { uid: uid.into(), ..ending(number, state("x", version)) }));
            if version < 60 {
                bench.take(again(Event { uid: uid.into(), ..deleted("x", version + 1) }));
            }
        }
        let told = [("-x@14", &["end 1"][..]), ("-x/b@39", &["end 6"]), ("-x/c@60", &["end 8"])];
        let last = match shows {
            true => {
                bench.found("x", Event { uid: "d".into(), ..state("x", 99) });
                ("x/d@99", &["end 9", "end 12"][..])
            }
            false => {
                bench.read("x", gone());
                ("-x/d@78", &["end 9", "end 12"][..])
            }
        };
        // Whatever is shown of them from now on comes too late.
        bench.take(again(Event { uid: "b".into(), ..ending(7, state("x", 39)) }));
        for (event, ends) in told.into_iter().chain([last]) {
            assert_eq!((bench.running(), bench.carried("x")), (strings(&[event]), strings(ends)));
            bench.end("x", Outcome::Acked { refetch: None });
        }
        bench.take(again(Event { uid: "c".into(), ..ending(8, state("x", 61)) }));
        assert_eq!((bench.running(), bench.reading()), (strings(&[]), strings(&[])));
    }
}

#[test]
fn a_life_that_a_list_ended_late_is_told_to_be_over_where_the_watch_shows_that_it_was() {
    let mut bench = Bench::new(Config { concurrency: 9, ..Config::default() });
    bench.restore("x", &[("d", 78, 12)], &[("b", 64)]);
    bench.take(again(Event { uid: "b".into(), ..deleted("x", 40) }));
    bench.take(again(Event { uid: "c".into(), ..deleted("x", 62) }));
    bench.found("x", Event { uid: "d".into(), ..state("x", 99) });
    for event in ["-x/b@40", "-x/c@62", "x/d@99"] {
        assert_eq!(bench.running(), [event]);
        bench.end("x", Outcome::Acked { refetch: None });
    }
}
