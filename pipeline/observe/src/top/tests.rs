//! What is told of which minutes.

use pipeline_core::{Call, Filtered, Folded, Outcome, Sample};

use super::*;

const CALL: Call = Call::new(Peer::new("argocd"), "call");

fn key(name: &str) -> Key {
    Key::new("ns", name).unwrap()
}

fn at(second: u64) -> Timestamp {
    Timestamp::from_second(i64::try_from(second).unwrap()).unwrap()
}

fn told(name: &str, trace: u128, step: Step) -> Trace {
    Trace { key: key(name), version: Version(7), trace, step }
}

fn step(top: &mut Top, name: &str, second: u64, step: Step) {
    top.step(&told(name, u128::from(second), step), Duration::from_secs(second), at(second));
}

fn acked(ms: u64) -> Step {
    Step::Acked { after: Duration::from_millis(ms) }
}

fn names<D>(ranked: &[Ranked<D>]) -> Vec<(&str, u64)> {
    ranked.iter().map(|app| (app.key.name(), app.at_least)).collect()
}

#[test]
fn each_list_has_its_own_order() {
    let mut top = Top::default();
    for (name, events) in [("busy", 5), ("calm", 2), ("quiet", 1)] {
        (0..events).for_each(|_| step(&mut top, name, 1, Step::Observed));
    }
    step(&mut top, "busy", 2, Step::Coalesced(Folded::Dirty));
    step(&mut top, "busy", 2, Step::Filtered(Filtered::Stale));
    step(&mut top, "busy", 2, acked(30));
    step(&mut top, "quiet", 2, acked(9_000));
    step(&mut top, "quiet", 3, acked(1_000));
    let (reason, after) = (Reason::Timeout, Duration::ZERO);
    step(&mut top, "calm", 3, Step::Retried { reason, after });
    step(&mut top, "calm", 4, Step::Parked(Reason::Refused));
    let call = |ms, outcome| Sample { call: CALL, outcome, took: Duration::from_millis(ms) };
    for (name, calls) in [
        ("busy", vec![call(5, Outcome::Ok); 3]),
        ("calm", vec![call(900, Outcome::Failed(Reason::Timeout)), call(1, Outcome::Cached)]),
    ] {
        let mut tally = Tally::new(9);
        calls.iter().for_each(|call| tally.call(call));
        tally.report(Peer::new("nats"), Ok(()));
        tally.report(Peer::new("nats"), Err(Reason::Refused));
        tally.report(Peer::new("nats"), Err(Reason::Refused));
        top.attempt(&key(name), &tally, Duration::from_secs(5));
    }
    top.not_read(&key("quiet"), Reason::Forbidden, Duration::from_secs(6), at(6));

    let ranking = top.ranking(2, Duration::from_secs(10));
    assert_eq!(ranking.window, Duration::from_secs(10));
    assert_eq!(names(&ranking.hottest), [("busy", 5), ("calm", 2)]);
    assert_eq!(ranking.hottest[0].detail, EventCounts { reports: 1, coalesced: 1, filtered: 1 });
    assert_eq!(names(&ranking.most_calls), [("busy", 3), ("calm", 1)]);
    assert_eq!(names(&ranking.longest_fetch), [("calm", 900_000), ("busy", 15_000)]);
    assert_eq!(ranking.longest_fetch[0].detail, CallCounts { calls: 1, took: Duration::from_millis(900) });
    assert_eq!(names(&ranking.failing), [("calm", 2)]);
    let last = FailedTry { reason: Reason::Refused, version: Version(7), trace: 4, at: at(4) };
    assert_eq!(ranking.failing[0].detail, FailureCounts { parked: 1, last: Some(last) });
    let slow: Vec<_> = ranking
        .slowest
        .iter()
        .map(|slow| (slow.worst.key.name(), slow.worst.trace, slow.acked, slow.total.as_millis()))
        .collect();
    assert_eq!(slow, [("quiet", 2, 2, 10_000), ("busy", 2, 1, 30)]);
    let errors: Vec<_> = ranking
        .errors
        .iter()
        .map(|errors| (errors.peer, errors.reason, errors.count, errors.key.name(), errors.trace))
        .collect();
    let expected = [
        (Peer::new("argocd"), Reason::Timeout, 1, "calm", 9),
        (Peer::KUBERNETES, Reason::Forbidden, 1, "quiet", 0),
        (Peer::new("nats"), Reason::Refused, 4, "calm", 9),
    ];
    assert_eq!(errors, expected);
}

#[test]
fn each_bucket_has_its_last_events_as_examples() {
    let mut top = Top::default();
    for second in 0..10 {
        step(&mut top, "app", second, acked(25));
    }
    step(&mut top, "slow", 10, acked(400_000));
    let ranking = top.ranking(1, Duration::from_secs(10));
    let filled: Vec<_> = ranking
        .latency
        .iter()
        .filter(|bucket| bucket.count > 0)
        .map(|bucket| {
            let traces: Vec<u128> = bucket.examples.iter().map(|example| example.trace).collect();
            (bucket.up_to, bucket.count, traces)
        })
        .collect();
    assert_eq!(filled, [(Some(0.025), 10, vec![9, 8, 7, 6]), (None, 1, vec![10])]);
    assert_eq!(ranking.latency.len(), BUCKETS);
    assert!(
        ranking.latency[..BUCKETS - 1]
            .is_sorted_by_key(|bucket| bucket.up_to.map(|up_to| (up_to * 1e3) as u64))
    );
}

#[test]
fn what_is_older_than_two_spans_is_told_no_more() {
    let mut top = Top::default();
    step(&mut top, "old", 10, Step::Observed);
    step(&mut top, "old", 10, acked(10));
    step(&mut top, "both", 100, Step::Observed);
    top.not_read(&key("old"), Reason::Timeout, Duration::from_secs(100), at(100));
    step(&mut top, "both", 160, Step::Observed);
    top.not_read(&key("new"), Reason::Timeout, Duration::from_secs(160), at(160));
    let ranking = top.ranking(9, Duration::from_secs(299));
    assert_eq!(ranking.window, Duration::from_secs(299));
    assert_eq!(names(&ranking.hottest), [("both", 2), ("old", 1)]);
    assert_eq!((ranking.errors[0].count, ranking.errors[0].key.name()), (2, "new"));

    let ranking = top.ranking(9, Duration::from_secs(301));
    assert_eq!(ranking.window, Duration::from_secs(151));
    assert_eq!(names(&ranking.hottest), [("both", 1)]);
    assert_eq!((ranking.slowest.len(), ranking.errors[0].count), (0, 1));
    let count = |ranking: &Ranking| ranking.latency.iter().map(|bucket| bucket.count).sum::<u64>();
    let examples =
        |ranking: &Ranking| ranking.latency.iter().map(|bucket| bucket.examples.len()).sum::<usize>();
    assert_eq!((count(&ranking), examples(&ranking)), (0, 1), "examples stay");

    let ranking = top.ranking(9, Duration::from_secs(100_000));
    assert_eq!((ranking.hottest.len(), ranking.errors.len()), (0, 0));
}

#[test]
fn its_size_does_not_depend_on_the_number_of_applications() {
    let mut top = Top::default();
    let mut tally = Tally::new(1);
    let call = Sample { call: CALL, outcome: Outcome::Ok, took: SPAN };
    tally.call(&call);
    for number in 0..20_000_u64 {
        let name = format!("app-{number}");
        let second = number / 80;
        step(&mut top, &name, second, Step::Observed);
        step(&mut top, &name, second, acked(number));
        step(&mut top, &name, second, Step::Parked(Reason::Refused));
        top.attempt(&key(&name), &tally, Duration::from_secs(second));
    }
    let ranking = top.ranking(usize::MAX, Duration::from_secs(250));
    let lists = [
        ranking.hottest.len(),
        ranking.most_calls.len(),
        ranking.longest_fetch.len(),
        ranking.failing.len(),
        ranking.slowest.len(),
    ];
    assert_eq!(lists, [2 * PLACES; 5]);
    assert!(ranking.latency.iter().all(|bucket| bucket.examples.len() <= EXAMPLES));
}
