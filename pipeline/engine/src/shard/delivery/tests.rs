use std::sync::Arc;

use pipeline_core::{EntityId, Key, ReportKind, Version};

use super::*;

const OBJECT: ReportKind = ReportKind::of_object("object");

fn report(entity: EntityId, content: u64) -> Report {
    let key = Key::new("ns", "app").unwrap();
    Report::new(key, "uid".into(), Version(7), entity, OBJECT, Digest(content))
}

fn resource(number: u64) -> Report {
    report(EntityId(number), number)
}

fn enriched(reports: Vec<Report>) -> Enriched {
    let settle = Checkpoint::new("uid".into(), Version(7), "state".into());
    Enriched { reports, settle: Some(settle), filtered: None, refetch: None }
}

fn eleven() -> Enriched {
    let resources = (1..=10).map(resource);
    enriched([report(EntityId::OBJECT, 100)].into_iter().chain(resources).collect())
}

fn none() -> Refused {
    Arc::new([])
}

fn again(reason: Reason) -> Verdict {
    Verdict::Retry { reason, after: None }
}

/// Runs a delivery to its end; returns what was sent, in order.
fn run(mut delivery: Delivery, verdict: impl Fn(&Report) -> Verdict) -> (Vec<Report>, End) {
    let (mut sent, mut flying) = (Vec::new(), VecDeque::new());
    loop {
        while let Some((report, _)) = delivery.next() {
            sent.push(report.clone());
            flying.push_back(report);
        }
        let Some(report) = flying.pop_front() else { break };
        delivery.settled(&report, verdict(&report));
    }
    (sent, delivery.end())
}

#[test]
fn the_object_goes_alone_then_resources_up_to_the_limit() {
    let mut delivery = Delivery::new(eleven(), None, &none(), 4, Timestamp::UNIX_EPOCH);
    let (object, _) = delivery.next().unwrap();
    assert_eq!(object.entity, EntityId::OBJECT);
    assert_eq!(delivery.next(), None, "resources wait for the object's answer");
    delivery.settled(&object, Verdict::Acked);
    let flying: Vec<_> = std::iter::from_fn(|| delivery.next()).collect();
    assert_eq!(flying.len(), 4);
    delivery.settled(&flying[0].0, Verdict::Acked);
    assert!(delivery.next().is_some());
    assert_eq!(delivery.next(), None);
}

#[test]
fn several_reports_of_the_object_go_one_after_the_other_with_counters_that_rise() {
    let mut known = Record::new("uid".into());
    known.object_mut().counter = 5;
    let reports = vec![report(EntityId::OBJECT, 1), report(EntityId::OBJECT, 2), resource(3)];
    let mut delivery = Delivery::new(enriched(reports), Some(known), &none(), 4, Timestamp::UNIX_EPOCH);
    for counter in [5, 6] {
        let (report, at) = delivery.next().unwrap();
        assert_eq!((report.entity, at), (EntityId::OBJECT, counter));
        assert_eq!(delivery.next(), None);
        delivery.settled(&report, Verdict::Acked);
    }
    assert_eq!(delivery.next().unwrap().1, 0);
}

#[test]
fn another_lifes_counter_is_not_taken() {
    let mut known = Record::new("earlier".into());
    known.object_mut().counter = 5;
    let mut delivery = Delivery::new(eleven(), Some(known), &none(), 4, Timestamp::UNIX_EPOCH);
    assert_eq!(delivery.next().unwrap().1, 0);
}

#[test]
fn all_acknowledged_settles() {
    let enriched = Enriched { refetch: Some(pipeline_core::Refetch::Incomplete), ..eleven() };
    let (sent, end) =
        run(Delivery::new(enriched, None, &none(), 4, Timestamp::UNIX_EPOCH), |_| Verdict::Acked);
    assert_eq!(sent.len(), 11);
    assert!(end.settle.is_some());
    assert_eq!(end.outcome, Outcome::Acked { refetch: Some(pipeline_core::Refetch::Incomplete) });
}

#[test]
fn nothing_to_send_is_filtered_and_still_settles() {
    let same = Enriched { filtered: Some(Filtered::SameContent), ..enriched(Vec::new()) };
    let (_, end) = run(Delivery::new(same, None, &none(), 4, Timestamp::UNIX_EPOCH), |_| unreachable!());
    assert!(end.settle.is_some());
    assert_eq!(end.outcome, Outcome::Filtered { why: Filtered::SameContent, refetch: None, settled: true });
}

#[test]
fn what_is_told_at_a_glance_settles_nothing() {
    let glance = Enriched::filtered(Filtered::Of("paced"));
    let (_, end) = run(Delivery::new(glance, None, &none(), 4, Timestamp::UNIX_EPOCH), |_| unreachable!());
    assert!(end.settle.is_none());
    let filtered = Outcome::Filtered { why: Filtered::Of("paced"), refetch: None, settled: false };
    assert_eq!(end.outcome, filtered);
}

#[test]
fn failed_resources_do_not_hold_the_others_up_and_nothing_settles() {
    let fails = |report: &Report| match report.entity {
        EntityId(1 | 4 | 9) => again(Reason::ServerError),
        _ => Verdict::Acked,
    };
    let (sent, end) = run(Delivery::new(eleven(), None, &none(), 2, Timestamp::UNIX_EPOCH), fails);
    assert_eq!(sent.len(), 11);
    assert!(end.settle.is_none());
    let retry = Outcome::Retry {
        reason: Reason::ServerError,
        after: None,
        blame: Blame::Sink,
        refused: none(),
        told: Vec::new(),
    };
    assert_eq!(end.outcome, retry);
}

#[test]
fn ends_that_were_told_before_a_delivery_broke_off_are_told_no_more() {
    let end = |number| Report { fact: Some(Digest(number)), ..report(EntityId::OBJECT, number) };
    let reports = vec![end(1), end(2), end(3), report(EntityId::OBJECT, 100)];
    let fails = |report: &Report| match report.content {
        Digest(3) => again(Reason::Unreachable),
        _ => Verdict::Acked,
    };
    let (_, end) = run(Delivery::new(enriched(reports), None, &none(), 4, Timestamp::UNIX_EPOCH), fails);
    let Outcome::Retry { told, .. } = end.outcome else { panic!("not a retry") };
    assert_eq!(told, [Digest(1), Digest(2)]);
}

#[test]
fn an_object_that_failed_holds_its_resources_up() {
    let (sent, end) =
        run(Delivery::new(eleven(), None, &none(), 4, Timestamp::UNIX_EPOCH), |_| again(Reason::Unreachable));
    assert_eq!(sent.len(), 1);
    assert!(matches!(end.outcome, Outcome::Retry { reason: Reason::Unreachable, .. }));
}

#[test]
fn the_longest_retry_after_counts() {
    let mut delivery =
        Delivery::new(enriched((1..=3).map(resource).collect()), None, &none(), 4, Timestamp::UNIX_EPOCH);
    let flying: Vec<_> = std::iter::from_fn(|| delivery.next()).collect();
    for ((report, _), after) in flying.iter().zip([Some(5), Some(9), None]) {
        let after = after.map(Duration::from_secs);
        delivery.settled(report, Verdict::Retry { reason: Reason::RateLimited, after });
    }
    let Outcome::Retry { after, .. } = delivery.end().outcome else { panic!("not a retry") };
    assert_eq!(after, Some(Duration::from_secs(9)));
}

#[test]
fn a_refused_resource_parks_and_the_others_go_on() {
    let refuses = |report: &Report| match report.entity {
        EntityId(1) => Verdict::Reject { reason: Reason::TooLarge },
        _ => Verdict::Acked,
    };
    let (sent, end) = run(Delivery::new(eleven(), None, &none(), 1, Timestamp::UNIX_EPOCH), refuses);
    assert_eq!(sent.len(), 11);
    assert!(end.settle.is_none(), "the object's decision does not move");
    assert!(
        matches!(end.outcome, Outcome::Reject { reason: Reason::TooLarge, ref refused, .. } if refused.len() == 1)
    );
}

#[test]
fn a_refused_report_is_not_sent_again_when_another_must_be_retried() {
    let verdicts = |report: &Report| match report.entity {
        EntityId(1) => Verdict::Reject { reason: Reason::TooLarge },
        EntityId(2) => again(Reason::Timeout),
        _ => Verdict::Acked,
    };
    let two = || enriched(vec![resource(1), resource(2)]);
    let (_, end) = run(Delivery::new(two(), None, &none(), 4, Timestamp::UNIX_EPOCH), verdicts);
    let Outcome::Retry { refused, .. } = end.outcome else { panic!("not a retry") };
    assert_eq!(*refused, [(EntityId(1), Digest(1), Reason::TooLarge)]);

    let (sent, end) = run(Delivery::new(two(), None, &refused, 4, Timestamp::UNIX_EPOCH), verdicts);
    assert_eq!(sent, [resource(2)]);
    let Outcome::Retry { refused, .. } = end.outcome else { panic!("not a retry") };
    assert_eq!(refused.len(), 1, "the refusal is remembered from try to try");

    let (sent, end) = run(Delivery::new(two(), None, &refused, 4, Timestamp::UNIX_EPOCH), |_| Verdict::Acked);
    assert_eq!(sent, [resource(2)]);
    assert!(
        matches!(end.outcome, Outcome::Reject { reason: Reason::TooLarge, ref refused, .. } if refused.len() == 1)
    );

    let changed = enriched(vec![report(EntityId(1), 99)]);
    let (sent, end) =
        run(Delivery::new(changed, None, &refused, 4, Timestamp::UNIX_EPOCH), |_| Verdict::Acked);
    assert_eq!(sent.len(), 1, "another content is another report");
    assert_eq!(end.outcome, Outcome::Acked { refetch: None });
}

#[test]
fn an_open_circuit_halts_the_delivery() {
    let mut delivery = Delivery::new(eleven(), None, &none(), 4, Timestamp::UNIX_EPOCH);
    let (object, _) = delivery.next().unwrap();
    delivery.settled(&object, Verdict::Acked);
    delivery.next().unwrap();
    delivery.halt(Reason::Unauthorized);
    assert_eq!(delivery.next(), None);
    assert!(matches!(delivery.end().outcome, Outcome::Retry { reason: Reason::Unauthorized, .. }));
}
