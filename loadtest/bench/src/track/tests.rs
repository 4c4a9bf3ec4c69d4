use std::time::Duration;

use super::*;
use loadtest_sim::platform::{EntityName, ResourceKey};

fn arrive(tracker: &mut Tracker, report: &Parsed, now: Instant) -> usize {
    tracker.arrived(report, Digest(7), now)
}

fn states(changes: [u32; 2]) -> [ResourceState; 2] {
    changes.map(|changes| ResourceState { changes, degraded: false })
}

fn tracker() -> Tracker {
    let mut tracker = Tracker::new().unwrap();
    for version in [10, 11] {
        tracker.add(version, &states([0, 0]));
    }
    for (app, version) in [(0, 10), (1, 11)] {
        assert_eq!(tracker.counts.whole, u64::from(app));
        arrive(&mut tracker, &report(app, None, version), Instant::now());
        for part in [0, 1] {
            arrive(&mut tracker, &report(app, Some(part), 1_000), Instant::now());
        }
    }
    assert_eq!((tracker.wrong(), tracker.counts), (0, Counts { whole: 2, ..Counts::default() }));
    tracker
}

fn report(app: u32, resource: Option<u32>, version: u64) -> Parsed {
    let name = format!("app-{app:05}");
    let resource = resource.map(|part| ResourceKey {
        api_version: "v1".into(),
        kind: "Service".into(),
        namespace: name.clone(),
        name: format!("{name}-r{part}"),
    });
    let entity = EntityName { app_namespace: "argocd".into(), app_name: name.clone(), resource };
    Parsed { entity, parent: name, uid: "u".into(), version: Some(version), ends: false, listed: Vec::new() }
}

fn emit(tracker: &mut Tracker, index: usize, version: u64, resources: [ResourceState; 2], reports: u32) {
    emit_at(tracker, index, version, resources, reports, Instant::now());
}

fn emit_at(
    tracker: &mut Tracker,
    index: usize,
    version: u64,
    resources: [ResourceState; 2],
    reports: u32,
    due: Instant,
) {
    tracker.emitted(&Emitted { index, version, resources: &resources, reports, due, timed: true });
}

#[test]
fn a_change_is_done_with_its_last_report_and_timed_from_when_it_was_due() {
    let (mut tracker, due) = (tracker(), Instant::now());
    emit_at(&mut tracker, 1, 20, states([0, 1]), 2, due);
    assert!(tracker.is_busy(1) && !tracker.is_busy(0));
    assert_eq!(arrive(&mut tracker, &report(1, None, 20), due + Duration::from_millis(30)), 0);
    // Another resource, another application, an older state: not what is waited for.
    for other in [report(1, Some(0), 1_001), report(0, Some(1), 1_001), report(1, Some(1), 999)] {
        assert_eq!(arrive(&mut tracker, &other, due), 0, "{other:?}");
    }
    assert_eq!(arrive(&mut tracker, &report(1, Some(1), 1_001), due + Duration::from_millis(50)), 1);
    assert!(!tracker.is_busy(1));
    assert_eq!((tracker.counts.done, tracker.pending()), (1, 0));
    let latencies = tracker.take_latencies().unwrap();
    assert_eq!(latencies.count(), 1);
    assert!((latencies.quantile(0.99).as_secs_f64() * 1e3 - 50.0).abs() < 0.1, "{latencies:?}");
    assert!(tracker.take_latencies().unwrap().count() == 0);
}

#[test]
fn a_state_that_was_skipped_is_coalesced_and_not_done() {
    let (mut tracker, now) = (tracker(), Instant::now());
    emit(&mut tracker, 0, 20, states([1, 0]), 2);
    emit(&mut tracker, 0, 21, states([1, 1]), 2);
    assert_eq!(arrive(&mut tracker, &report(0, None, 21), now), 1);
    assert_eq!(arrive(&mut tracker, &report(0, Some(1), 1_001), now), 1);
    assert_eq!(tracker.counts, Counts { emitted: 2, done: 1, coalesced: 1, whole: 2, ..Counts::default() });
    assert_eq!(tracker.take_latencies().unwrap().count(), 2);
    // The first resource's change was never told.
    assert_eq!(tracker.wrong(), 1);
}

#[test]
fn a_coalesced_change_took_until_the_report_that_made_it_known() {
    let (mut tracker, due) = (tracker(), Instant::now());
    let after = |milliseconds| due + Duration::from_millis(milliseconds);
    emit_at(&mut tracker, 0, 20, states([0, 0]), 1, due);
    let untimed = states([0, 0]);
    let untimed = Emitted { index: 0, version: 21, resources: &untimed, reports: 1, due, timed: false };
    tracker.emitted(&untimed);
    emit_at(&mut tracker, 0, 22, states([0, 1]), 2, after(100));
    assert_eq!(arrive(&mut tracker, &report(0, None, 22), after(400)), 2);
    assert_eq!((tracker.counts.coalesced, tracker.counts.done), (2, 0));
    let coalesced = tracker.take_latencies().unwrap();
    assert_eq!(coalesced.count(), 1, "of the two, the one that is timed");
    assert!((coalesced.quantile(1.0).as_secs_f64() * 1e3 - 400.0).abs() < 1.0, "{coalesced:?}");
    assert_eq!(arrive(&mut tracker, &report(0, Some(1), 1_001), after(600)), 1);
    let done = tracker.take_latencies().unwrap();
    assert_eq!(done.count(), 1);
    assert!((done.quantile(1.0).as_secs_f64() * 1e3 - 500.0).abs() < 1.0, "{done:?}");
}

#[test]
fn a_refresh_is_no_change_and_a_report_at_its_version_is_that_of_the_change_before() {
    let (mut tracker, now) = (tracker(), Instant::now());
    emit(&mut tracker, 0, 20, states([1, 0]), 2);
    emit(&mut tracker, 0, 21, states([1, 0]), 0);
    assert_eq!((tracker.counts.emitted, tracker.counts.empty, tracker.pending()), (1, 1, 1));
    arrive(&mut tracker, &report(0, Some(0), 1_001), now);
    assert_eq!(arrive(&mut tracker, &report(0, None, 21), now), 1);
    assert_eq!((tracker.counts.done, tracker.counts.coalesced, tracker.wrong()), (1, 0, 0));
    // A state that never was is wrong.
    arrive(&mut tracker, &report(0, None, 22), now);
    assert_eq!(tracker.wrong(), 1);
}

#[test]
fn where_everything_is_worth_a_report_each_resource_may_be_told_once_more() {
    let (mut tracker, now) = (tracker(), Instant::now());
    emit(&mut tracker, 0, 20, states([0, 1]), 3);
    arrive(&mut tracker, &report(0, None, 20), now);
    assert_eq!(tracker.pending(), 1, "the resource that changed is waited for");
    assert_eq!(arrive(&mut tracker, &report(0, Some(1), 1_001), now), 1);
    arrive(&mut tracker, &report(0, Some(0), 1_000), now);
    assert_eq!((tracker.counts.repeated, tracker.wrong()), (0, 0));
    arrive(&mut tracker, &report(0, Some(0), 1_000), now);
    assert_eq!((tracker.counts.repeated, tracker.counts.whole), (1, 2));
}

#[test]
fn repetitions_and_losses_are_counted() {
    let (mut tracker, now) = (tracker(), Instant::now());
    arrive(&mut tracker, &report(0, None, 10), now);
    arrive(&mut tracker, &report(0, Some(0), 1_000), now);
    assert_eq!(tracker.counts.repeated, 2);
    emit(&mut tracker, 0, 30, states([1, 0]), 2);
    arrive(&mut tracker, &report(0, None, 30), now);
    assert_eq!((tracker.pending(), tracker.wrong()), (1, 1));
    assert_eq!((tracker.give_up(), tracker.pending()), (1, 0));
    assert!(!tracker.is_busy(0));
}

#[test]
fn an_application_without_one_of_its_reports_is_not_whole() {
    let mut tracker = Tracker::new().unwrap();
    tracker.add(10, &states([0, 0]));
    arrive(&mut tracker, &report(0, None, 10), Instant::now());
    arrive(&mut tracker, &report(0, Some(1), 1_000), Instant::now());
    assert_eq!((tracker.counts.whole, tracker.wrong()), (0, 0), "what was never told is lost, not wrong");
    arrive(&mut tracker, &report(0, Some(0), 1_000), Instant::now());
    assert_eq!(tracker.counts.whole, 1);
}

#[test]
fn a_resource_that_is_told_differently_at_the_same_version_is_no_repetition() {
    let (mut tracker, now) = (tracker(), Instant::now());
    let told = |content: &str| super::content(content);
    let (drifted, synced) =
        ("{\"a\":1,\"timestamp\":\"t1\",\"b\":2}", "{\"a\":2,\"timestamp\":\"t1\",\"b\":2}");
    tracker.arrived(&report(0, Some(0), 1_000), told(drifted), now);
    tracker.arrived(&report(0, Some(0), 1_000), told(synced), now);
    assert_eq!(tracker.counts.repeated, 0);
    tracker.arrived(&report(0, Some(0), 1_000), told(&synced.replace("t1", "t2")), now);
    assert_eq!(tracker.counts.repeated, 1, "nothing but the timestamp differs");
    // What is told of an application is its state at that version.
    tracker.arrived(&report(0, None, 10), told("another"), now);
    assert_eq!(tracker.counts.repeated, 2);
}
