//! Calls that hang: what they teach the limit, and what they leave for the others.

use super::*;
use crate::labels;

/// Calls that hang for 30 s, one after the other, beside one call of 20 ms at a time; for how long that one could not
/// be made, from when to when.
fn beside_hanging(limit: &mut Limit, hanging: usize, until: Duration) -> Vec<(Duration, Duration)> {
    let (mut hung, mut now) = (Vec::<Flight>::new(), Duration::ZERO);
    let (mut pauses, mut pause) = (Vec::new(), None);
    while now < until {
        if hung.first().is_some_and(|first| now >= first.begun + Duration::from_secs(30)) {
            for flight in hung.drain(..) {
                limit.end(&flight, End::TimedOut, now);
            }
        }
        while hung.len() < hanging && limit.in_flight() < limit.allowed(now) {
            hung.push(limit.begin(labels::MANIFESTS, now));
        }
        let moving =
            (limit.in_flight() < limit.allowed(now)).then(|| limit.begin(labels::RESOURCE_TREE, now));
        match (&moving, pause) {
            (None, None) => pause = Some(now),
            (Some(_), Some(since)) => {
                pauses.push((since, now));
                pause = None;
            }
            (None, Some(_)) | (Some(_), None) => {}
        }
        now += MS * 20;
        if let Some(moving) = moving {
            limit.end(&moving, End::Answered, now);
        }
    }
    pauses.extend(pause.map(|since| (since, now)));
    pauses
}

#[test]
fn calls_that_hang_hold_up_the_others_once_and_for_a_second() {
    let mut limit = Limit::new(bounds(4, 100));
    let pauses = beside_hanging(&mut limit, 4, Duration::from_secs(600));
    assert_eq!(pauses, [(Duration::ZERO, Duration::from_secs(1))]);
    assert_eq!((limit.limit(), limit.allowed(Duration::from_secs(600))), (8, 8));
}

#[test]
fn calls_that_are_stuck_make_room_up_to_the_upper_bound() {
    let mut limit = Limit::new(bounds(4, 10));
    let second = |n: u64| Duration::from_secs(n);
    let mut flights: Vec<Flight> = (0..4).map(|_| limit.begin(labels::MANIFESTS, MS * 5)).collect();
    assert_eq!((limit.allowed(MS * 1_004), limit.next_stuck()), (4, Some(MS * 1_005)));
    assert_eq!((limit.allowed(MS * 1_005), limit.next_stuck(), limit.in_flight()), (8, None, 4));
    flights.extend((0..4).map(|_| limit.begin(labels::MANIFESTS, second(2))));
    assert_eq!((limit.allowed(second(2)), limit.allowed(second(3)), limit.in_flight()), (8, 10, 8));
    for (flight, left) in flights.iter().zip((0..8).rev()) {
        limit.end(flight, End::Other, second(4));
        assert_eq!((limit.in_flight(), limit.allowed(second(4))), (left, (left + 4).min(10)));
    }
}

#[test]
fn a_call_is_stuck_after_ten_times_what_is_usual_of_its_kind() {
    let mut limit = Limit::new(bounds(4, 100));
    limit.usual = vec![(labels::RESOURCE_TREE, MS * 20), (labels::MANIFESTS, MS * 700)];
    for (call, patience) in [
        (labels::RESOURCE_TREE, MS * 1_000),
        (labels::MANIFESTS, MS * 7_000),
        // Not known: as the slowest that is.
        (labels::REVISION_METADATA, MS * 7_000),
    ] {
        let flight = limit.begin(call, MS * 100);
        assert_eq!(limit.next_stuck(), Some(MS * 100 + patience), "{call:?}");
        limit.end(&flight, End::Answered, MS * 100);
    }
}

#[test]
fn a_time_out_is_an_overload_only_where_others_are_slow_too() {
    let grown = || {
        let mut world = World::new(bounds(4, 64), 1_000, &TREE);
        world.run(5_000);
        assert_eq!(world.limit.limit(), 64);
        world
    };
    let late = |world: &mut World, flights: usize| {
        let begun = world.now;
        let flights: Vec<Flight> =
            (0..flights).map(|_| world.limit.begin(labels::MANIFESTS, begun)).collect();
        (flights, begun + Duration::from_secs(30))
    };
    // Of the last 64 ends a quarter is 16.
    let mut world = grown();
    let (flights, end) = late(&mut world, 16);
    for (n, flight) in (1..).zip(&flights) {
        world.limit.end(flight, End::TimedOut, end);
        assert_eq!(world.limit.limit(), if n < 16 { 64 } else { 32 }, "{n} of 64");
    }
    // One, in a window in which trees take twice as long as usual.
    for (took, limit) in [(MS * 20, 64), (MS * 40, 32)] {
        let mut world = grown();
        let (flights, end) = late(&mut world, 1);
        world.limit.open(end);
        world.limit.window.took = vec![(labels::RESOURCE_TREE, took); 10];
        world.limit.window.peak = 64;
        world.limit.end(&flights[0], End::TimedOut, end);
        assert_eq!(world.limit.limit(), limit, "{took:?}");
    }
}

#[test]
fn a_peer_that_answers_nothing_is_asked_less() {
    let mut world = World::new(bounds(4, 64), 1_000, &TREE);
    world.run(5_000);
    let begun = world.now;
    let flights: Vec<Flight> = std::mem::take(&mut world.under_way).into_values().collect();
    for flight in &flights {
        world.limit.end(flight, End::TimedOut, begun + Duration::from_secs(30));
    }
    assert_eq!(world.limit.limit(), 32);
}
