//! From steps to spans: what is told, when, and how it hangs together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use pipeline_core::{Change, Event, Filtered, Folded, Outcome, Peer, Sample, Step, Trace};

use super::*;

const CALL: Call = Call::new(Peer::new("peer"), "call");
const OBJECT: ReportKind = ReportKind::of_object("object");
const LISTED: ReportKind = ReportKind::of_listed("listed");

const TRACE: u128 = 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736;

/// A shard's recorder, what it told, and how many spans were lost.
struct World {
    recorder: Recorder,
    taps: Taps,
    lost: Arc<AtomicUsize>,
    started: Instant,
}

impl World {
    fn new() -> Self {
        Self::with(1000, 1.0)
    }

    fn with(most: usize, ratio: f64) -> Self {
        let lost = Arc::new(AtomicUsize::new(0));
        let count = lost.clone();
        let (tap, taps) = taps(most, ratio, move |spans| {
            count.fetch_add(spans, Ordering::Relaxed);
        });
        let started = Instant::now();
        Self { recorder: Recorder::new(tap, 3, started), taps, lost, started }
    }

    fn step(&mut self, second: u64, step: Step) {
        self.step_of(TRACE, 7, second, step);
    }

    fn step_of(&mut self, trace: u128, version: u64, second: u64, step: Step) {
        let trace = Trace { key: key(), version: Version(version), trace, step };
        self.recorder.told(&trace, now(second));
    }

    fn all(&mut self) -> Vec<SpanBatch> {
        std::iter::from_fn(|| self.taps.try_next()).collect()
    }

    fn one(&mut self) -> SpanBatch {
        let mut all = self.all();
        assert_eq!(all.len(), 1, "{all:#?}");
        all.remove(0)
    }

    fn lost(&self) -> usize {
        self.lost.load(Ordering::Relaxed)
    }
}

fn key() -> Key {
    Key::new("argocd", "shop").unwrap()
}

fn at(second: u64) -> Duration {
    Duration::from_secs(second)
}

/// So many seconds after the start, and the wall clock with them.
fn now(second: u64) -> (Duration, Timestamp) {
    (at(second), Timestamp::UNIX_EPOCH + at(1_000_000 + second))
}

fn event(trace: u128, version: u64) -> Event {
    let change = Change::Deleted { body: None };
    Event { trace, ..Event::watched(key(), "a".into(), Version(version), change, Timestamp::now()) }
}

fn call(outcome: Outcome, milliseconds: u64) -> Sample {
    let took = Duration::from_millis(milliseconds);
    Sample { call: CALL, outcome, took }
}

/// What each span was, with the seconds from and to.
fn shown(told: &SpanBatch) -> Vec<(Activity, u64, u64)> {
    told.spans.iter().map(|span| (span.activity, span.from.as_secs(), span.to.as_secs())).collect()
}

#[test]
fn an_event_is_told_when_it_ends_with_all_that_took_time() {
    let mut world = World::new();
    world.step(10, Step::Observed);
    world.step(12, Step::Started { attempt: 0 });
    let mut attempt = world.recorder.starts(&event(TRACE, 7), 0);
    let second = |second| world.started + at(second);
    let calls = [(second(13), call(Outcome::Ok, 500)), (second(13), call(Outcome::Cached, 0))];
    // Enrichment ends now, which the test cannot move: it begins, and its calls lie, before that.
    let began = Instant::now();
    attempt.enriched(began, &calls, 2, None);
    attempt.reported((second(14), at(1)), OBJECT, 0xabc, None);
    attempt.reported((second(15), at(2)), LISTED, 0xdef, Some(Reason::Timeout));
    assert!(world.all().is_empty(), "nothing is told before the end");
    world.recorder.attempted(attempt);
    world.step(18, Step::Acked { after: at(8) });
    let told = world.one();
    let root = told.event.clone().unwrap();
    assert_eq!((told.trace, root.id, root.parent, root.follows), (TRACE, 0xa3ce_929d_0e0e_4736, None, None));
    assert_eq!((root.from, root.to, root.end, root.reason), (at(10), at(18), EventEnd::Acked, None));
    assert_eq!((root.key, root.uid.as_deref(), root.version, root.shard), (key(), Some("a"), Version(7), 3));
    assert_eq!((told.len(), root.left_out), (7, 0));
    let [queue, enrich, managed, cached, app, resource] = &told.spans[..] else { panic!("{told:#?}") };
    assert_eq!((queue.activity, queue.from, queue.to), (Activity::Queue, at(10), at(12)));
    assert_eq!(enrich.activity, Activity::Enrich { attempt: 0, reports: 2, failed: None });
    let of_call = |cached| Activity::Call { call: CALL, cached, failed: None };
    assert_eq!((managed.activity, cached.activity), (of_call(false), of_call(true)));
    let failed = Some(Reason::Timeout);
    assert_eq!(
        (app.activity, app.from, app.to),
        (Activity::Report { kind: OBJECT, failed: None }, at(14), at(15))
    );
    assert_eq!(resource.activity, Activity::Report { kind: LISTED, failed });
    for span in [queue, enrich, app, resource] {
        assert_eq!(span.parent, root.id, "{span:?}");
    }
    for span in [managed, cached] {
        assert_eq!(span.parent, enrich.id, "{span:?}");
        assert!(enrich.from <= span.from && span.from <= span.to && span.to <= enrich.to, "{span:?}");
    }
    assert_eq!(app.id, 0xabc, "what was taken is the span that its receiver was told");
    assert_ne!(resource.id, 0xdef, "a try that failed is not: the next try has that id");
    let mut ids: Vec<u64> = told.spans.iter().map(|span| span.id).chain([root.id]).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 7);
    assert_eq!(told.time(at(18)).duration_since(told.time(at(10))).as_secs(), 8);
    world.step(19, Step::Acked { after: at(9) });
    assert!(world.all().is_empty(), "once");
}

#[test]
fn the_life_of_an_event_begins_where_the_watch_saw_it() {
    let mut world = World::new();
    let seen = Timestamp::now() - Duration::from_secs(4);
    world.recorder.arrives(&Event { observed: seen, ..event(TRACE, 7) });
    world.step(10, Step::Observed);
    world.step(10, Step::Filtered(Filtered::Stale));
    let told = world.one();
    let root = told.event.unwrap();
    assert!((5..=6).contains(&root.from.as_secs()), "{root:?}");
    assert_eq!((root.uid.as_deref(), root.end, root.reason), (Some("a"), EventEnd::Filtered, Some("stale")));
    // A clock that was set back meanwhile.
    world
        .recorder
        .arrives(&Event { observed: Timestamp::now() + Duration::from_secs(60), ..event(TRACE, 8) });
    world.step_of(TRACE, 8, 11, Step::Observed);
    world.step_of(TRACE, 8, 11, Step::Coalesced(Folded::Full));
    let root = world.one().event.unwrap();
    assert_eq!((root.from, root.end, root.reason), (at(11), EventEnd::Coalesced, Some("full")));
}

#[test]
fn a_try_that_failed_is_told_at_once_and_the_wait_after_it_later() {
    let mut world = World::new();
    world.step(1, Step::Observed);
    world.step(2, Step::Limited(at(2)));
    world.step(4, Step::Started { attempt: 0 });
    let mut attempt = world.recorder.starts(&event(TRACE, 7), 0);
    attempt.reported((world.started + at(4), at(1)), OBJECT, 9, Some(Reason::ServerError));
    world.recorder.attempted(attempt);
    world.step(5, Step::Retried { reason: Reason::ServerError, after: at(60) });
    let first = world.one();
    assert_eq!(first.event, None);
    let report = |failed| Activity::Report { kind: OBJECT, failed };
    assert_eq!(
        shown(&first),
        [(Activity::Queue, 1, 2), (Activity::RateLimit, 2, 4), (report(Some(Reason::ServerError)), 4, 5)]
    );
    world.step(65, Step::Started { attempt: 1 });
    let mut attempt = world.recorder.starts(&event(TRACE, 7), 1);
    attempt.reported((world.started + at(65), at(1)), OBJECT, 9, None);
    world.recorder.attempted(attempt);
    world.step(66, Step::Acked { after: at(65) });
    let last = world.one();
    assert_eq!(
        shown(&last),
        [(Activity::RetryWait { reason: Reason::ServerError }, 5, 65), (report(None), 65, 66)]
    );
    let root = last.event.clone().unwrap();
    assert_eq!((root.from, root.to), (at(1), at(66)));
    assert!(first.spans.iter().chain(&last.spans).all(|span| span.parent == root.id));
    assert_eq!(first.time(at(5)), now(5).1);
    assert_eq!(last.time(at(5)), first.time(at(5)), "however much later it is told");
    assert_eq!(last.spans[1].id, 9);
}

#[test]
fn what_was_read_again_shows_its_read_and_the_event_it_stands_for() {
    let mut world = World::new();
    let (folded, fresh) = (TRACE, 0xbeef);
    world.step(1, Step::Observed);
    world.step(1, Step::Coalesced(Folded::Full));
    let root = world.one().event.unwrap();
    world.step(3, Step::Reading);
    world.recorder.read(&key(), None, now(5));
    // A former life ended: its end has no trace of its own.
    world.step_of(folded, 6, 5, Step::Observed);
    world.step_of(fresh, 8, 5, Step::Observed);
    world.recorder.read_told();
    world.step_of(fresh, 9, 5, Step::Observed);
    world.recorder.stop(now(9));
    let mut told = world.all();
    told.sort_by_key(|told| told.event.as_ref().map(|event| event.version));
    let [gone, found, other] = &told[..] else { panic!("{told:#?}") };
    let read = (Activity::Read { failed: None }, 3, 5);
    assert_eq!(shown(gone), [read, (Activity::Queue, 5, 9)]);
    let event = gone.event.as_ref().unwrap();
    assert_eq!((gone.trace, event.parent, event.follows), (folded, Some(root.id), None));
    assert_ne!(event.id, root.id);
    assert!(gone.spans.iter().all(|span| span.parent == event.id));
    assert_eq!(shown(found), [read, (Activity::Queue, 5, 9)]);
    let event = found.event.as_ref().unwrap();
    assert_eq!((found.trace, event.parent, event.follows), (fresh, None, Some((folded, root.id))));
    assert_eq!((event.from, event.to, event.end), (at(3), at(9), EventEnd::Stopped));
    assert_eq!(shown(other), [(Activity::Queue, 5, 9)], "of another event of the key");
}

#[test]
fn a_read_that_failed_is_part_of_the_event_that_asked_for_it() {
    let mut world = World::new();
    let failed = Some(Reason::Timeout);
    world.step(3, Step::Reading);
    world.recorder.read(&key(), failed, now(5));
    world.step(5, Step::Retried { reason: Reason::Timeout, after: at(1) });
    let told = world.one();
    assert_eq!((told.trace, &told.event), (TRACE, &None));
    assert_eq!(shown(&told), [(Activity::Read { failed }, 3, 5)]);
    assert_eq!(told.spans[0].parent, root(TRACE));
    // What a person asked for has no event.
    world.step_of(0, 0, 3, Step::Reading);
    world.recorder.read(&key(), failed, now(5));
    world.step_of(0, 0, 5, Step::Parked(Reason::Timeout));
    assert!(world.all().is_empty());
}

#[test]
fn an_event_that_is_not_sampled_is_not_followed_and_its_peers_are_told_so() {
    let mut world = World::with(1000, 0.0);
    world.recorder.arrives(&event(TRACE, 7));
    world.step(1, Step::Observed);
    let mut attempt = world.recorder.starts(&event(TRACE, 7), 0);
    let header = attempt.traceparent().unwrap();
    assert!(header.starts_with(&format!("00-{TRACE:032x}-")) && header.ends_with("-00"), "{header}");
    attempt.enriched(Instant::now(), &[], 1, None);
    attempt.reported((world.started, at(1)), OBJECT, 1, None);
    assert_eq!(attempt.spans, []);
    world.recorder.attempted(attempt);
    world.step(2, Step::Parked(Reason::Refused));
    assert!(world.all().is_empty());
    assert_eq!(world.lost(), 0);

    let mut world = World::new();
    world.step(1, Step::Observed);
    let header = world.recorder.starts(&event(TRACE, 7), 0).traceparent().unwrap();
    assert!(header.ends_with("-01") && header.len() == 55, "{header}");
}

#[test]
fn an_attempt_of_thousands_of_resources_tells_the_first_and_how_many_more() {
    let mut world = World::new();
    world.step(1, Step::Observed);
    world.step(1, Step::Started { attempt: 0 });
    let mut attempt = world.recorder.starts(&event(TRACE, 7), 0);
    for id in 1..=2000 {
        attempt.reported((world.started, at(1)), LISTED, id, None);
    }
    world.recorder.attempted(attempt);
    world.step(2, Step::Acked { after: at(1) });
    let told = world.one();
    assert_eq!((told.spans.len(), told.event.unwrap().left_out), (1 + 512, 2000 - 512));
}

#[test]
fn more_than_there_is_room_for_is_dropped_and_counted() {
    let mut world = World::with(10, 1.0);
    let event = |world: &mut World, version| {
        world.step_of(TRACE, version, 1, Step::Observed);
        world.step_of(TRACE, version, 2, Step::Coalesced(Folded::Dirty));
    };
    for version in 0..1000 {
        event(&mut world, version);
        assert!(world.taps.held() <= 10, "{}", world.taps.held());
    }
    // Two spans each: the wait and the event.
    assert_eq!((world.taps.held(), world.lost()), (10, 2 * 995));
    assert_eq!(world.all().len(), 5);
    assert_eq!(world.taps.held(), 0);
    event(&mut world, 0);
    assert_eq!((world.all().len(), world.lost()), (1, 2 * 995), "there is room again");
    // Nobody takes anything any more.
    world.taps = taps(1, 1.0, |_| {}).1;
    event(&mut world, 0);
    assert_eq!(world.lost(), 2 * 996);
}

#[test]
fn events_that_never_end_are_bounded() {
    let mut world = World::with(100_000, 1.0);
    for version in 0..10_000 {
        world.step_of(TRACE, version, 1, Step::Observed);
    }
    assert_eq!(world.lost(), 10_000 - 4096);
    world.recorder.stop(now(2));
    assert_eq!(world.all().len(), 4096);
}

#[test]
fn a_share_of_all_events_is_traced_the_same_everywhere() {
    let of = |ratio| taps(1, ratio, |_| {}).0;
    let mut chance = fastrand::Rng::with_seed(1);
    let traces: Vec<u128> = (0..10_000).map(|_| chance.u128(1..)).collect();
    let sampled = |ratio| traces.iter().filter(|trace| of(ratio).samples(**trace)).count();
    assert_eq!((sampled(1.0), sampled(0.0)), (10_000, 0));
    assert!((2_300..2_700).contains(&sampled(0.25)), "{}", sampled(0.25));
    assert!(traces.iter().all(|trace| !of(0.25).samples(*trace) || of(0.5).samples(*trace)));
    assert!(!of(1.0).samples(0), "what has no trace has no name in a backend");
}
