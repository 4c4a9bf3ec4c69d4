//! The limit against a model of a peer: so many workers, a time for each kind of call, and a queue for the rest.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use proptest::prelude::*;

use super::*;
use crate::labels;

mod stuck;

const MS: Duration = Duration::from_millis(1);

/// A peer that works on `workers` calls at a time, in the order in which they come.
struct Peer {
    free: BinaryHeap<Reverse<Duration>>,
}

impl Peer {
    fn new(workers: usize) -> Self {
        Self { free: (0..workers).map(|_| Reverse(Duration::ZERO)).collect() }
    }

    /// When a call that comes now is answered.
    fn take(&mut self, now: Duration, service: Duration) -> Duration {
        let Reverse(free) = self.free.pop().unwrap();
        let done = free.max(now) + service;
        self.free.push(Reverse(done));
        done
    }
}

/// A peer, what is asked of it, and a limit between the two. Always the same for the same seed.
struct World {
    limit: Limit,
    peer: Peer,
    now: Duration,
    /// Kinds of calls and how long each takes, one after the other.
    kinds: Vec<(Call, Duration)>,
    /// Service times vary by this part of themselves, up and down.
    jitter: f64,
    chance: fastrand::Rng,
    /// Calls that want to be made at any moment.
    demand: usize,
    under_way: BTreeMap<(Duration, u64), Flight>,
    made: u64,
    latencies: Vec<Duration>,
}

impl World {
    fn new(bounds: Bounds, workers: usize, kinds: &[(Call, Duration)]) -> Self {
        Self {
            limit: Limit::new(bounds),
            peer: Peer::new(workers),
            now: Duration::ZERO,
            kinds: kinds.to_vec(),
            jitter: 0.0,
            chance: fastrand::Rng::with_seed(7),
            demand: usize::MAX,
            under_way: BTreeMap::new(),
            made: 0,
            latencies: Vec::new(),
        }
    }

    /// Makes calls until so many have been answered; answers a second, meanwhile.
    fn run(&mut self, answers: usize) -> f64 {
        let begun = self.now;
        self.latencies.clear();
        for _ in 0..answers {
            while self.limit.in_flight() < self.limit.allowed(self.now).min(self.demand) {
                let (call, service) = self.kinds[self.made as usize % self.kinds.len()];
                let service = service.mul_f64(1.0 + self.jitter * (2.0 * self.chance.f64() - 1.0));
                let done = self.peer.take(self.now, service);
                let flight = self.limit.begin(call, self.now);
                self.under_way.insert((done, self.made), flight);
                self.made += 1;
            }
            let ((done, _), flight) = self.under_way.pop_first().unwrap();
            self.now = done;
            self.latencies.push(done - flight.begun);
            self.limit.end(&flight, End::Answered, done);
        }
        answers as f64 / (self.now - begun).as_secs_f64()
    }

    fn p99(&mut self) -> Duration {
        self.latencies.sort_unstable();
        self.latencies[self.latencies.len() * 99 / 100]
    }

    fn with_workers(&mut self, workers: usize) {
        let now = self.now;
        self.peer.free = (0..workers).map(|_| Reverse(now)).collect();
    }
}

const TREE: [(Call, Duration); 1] = [(labels::RESOURCE_TREE, Duration::from_millis(20))];

fn bounds(min: usize, max: usize) -> Bounds {
    Bounds { min, max }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn at_a_knee_it_gives_what_the_peer_can_and_a_short_queue(
        workers in 4usize..128, small in 5u64..100, large in 1.0f64..5.0, jitter in 0.0f64..0.4, seed: u64,
    ) {
        let small = Duration::from_millis(small);
        let kinds = [(labels::RESOURCE_TREE, small), (labels::MANAGED_RESOURCES, small.mul_f64(large))];
        let mut world = World::new(bounds(4, 1_000), workers, &kinds);
        world.jitter = jitter;
        world.chance.seed(seed);
        world.run(15_000);
        let reached = world.run(15_000);
        let mean = (kinds[0].1 + kinds[1].1).as_secs_f64() / 2.0;
        let knee = workers as f64 / mean;
        prop_assert!(reached >= 0.9 * knee, "{reached} of {knee} a second, limit {}", world.limit.limit());
        let (p99, alone) = (world.p99(), kinds[1].1.mul_f64(1.0 + jitter));
        prop_assert!(p99 <= alone * 3, "{p99:?} instead of {alone:?}, limit {}", world.limit.limit());
    }

    #[test]
    fn it_stays_between_its_bounds_and_counts_what_is_under_way(
        min in 0usize..20, max in 0usize..200,
        steps in prop::collection::vec((0u64..40, prop::bool::ANY, 0usize..64, 0u8..4), 1..600),
    ) {
        let mut limit = Limit::new(bounds(min, max));
        let (mut now, mut flights) = (Duration::ZERO, Vec::new());
        for (later, begin, which, end) in steps {
            now += MS * later as u32;
            if begin || flights.is_empty() {
                flights.push(limit.begin(labels::MANIFESTS, now));
            } else {
                let flight = flights.swap_remove(which % flights.len());
                let end = [End::Answered, End::Overloaded, End::TimedOut, End::Other][usize::from(end)];
                limit.end(&flight, end, now);
            }
            prop_assert_eq!(limit.in_flight(), flights.len());
            let (least, most) = (min.max(1), max.max(min).max(1));
            prop_assert!((least..=most).contains(&limit.limit()));
            let allowed = limit.allowed(now);
            prop_assert!((limit.limit()..=most).contains(&allowed));
            prop_assert!(allowed == most || allowed >= least + limit.flights.stuck());
            prop_assert!(limit.window.took.len() <= MOST_ANSWERS);
        }
    }
}

/// The figures of one knee, of limits that do not move and of one that does.
#[test]
fn a_limit_that_learns_beside_limits_that_do_not() {
    println!("workers 16, 20 ms each | limit | answers a second |  p99 ms | longest queue");
    let run = |name: &str, of: Bounds| {
        let mut world = World::new(of, 16, &TREE);
        world.run(20_000);
        let (reached, p99) = (world.run(20_000), world.p99());
        let limit = world.limit.limit();
        let queue = limit.saturating_sub(16);
        println!("{name:22} | {limit:5} | {reached:16.0} | {:7.0} | {queue:5}", p99.as_secs_f64() * 1e3);
        (reached, p99)
    };
    let knee = 16.0 / 0.020;
    let (few, _) = run("fixed, too low", bounds(8, 8));
    let (many, late) = run("fixed, too high", bounds(100, 100));
    let (learnt, soon) = run("learnt", bounds(4, 100));
    assert!(few < 0.6 * knee && many > 0.99 * knee && learnt > 0.99 * knee, "{few} {many} {learnt}");
    assert!(late > MS * 120 && soon <= MS * 40, "{late:?} {soon:?}");
}

#[test]
fn it_follows_a_peer_that_gets_more_or_fewer_workers() {
    let mut world = World::new(bounds(4, 100), 10, &TREE);
    world.jitter = 0.1;
    for (workers, most) in [(10, 18), (60, 95), (8, 15), (80, 100)] {
        world.with_workers(workers);
        world.run(40_000);
        let limit = world.limit.limit();
        assert!((workers..=most).contains(&limit), "{workers} workers, limit {limit}");
    }
}

#[test]
fn a_peer_that_is_slower_for_reasons_of_its_own_is_soon_used_as_before() {
    let mut world = World::new(bounds(4, 64), 1_000, &TREE);
    world.run(5_000);
    assert_eq!(world.limit.limit(), 64, "nothing waits");
    world.kinds[0].1 = MS * 200;
    world.run(20_000);
    assert_eq!(world.limit.limit(), 64, "nothing waits, each call just takes longer");
    world.kinds[0].1 = MS * 5;
    world.run(20_000);
    assert_eq!(world.limit.limit(), 64);
}

#[test]
fn a_small_part_of_huge_applications_does_not_count_as_a_queue() {
    let mut kinds = vec![(labels::MANAGED_RESOURCES, MS * 20); 19];
    kinds.push((labels::MANAGED_RESOURCES, MS * 2_000));
    let mut world = World::new(bounds(4, 100), 10_000, &kinds);
    world.run(10_000);
    assert_eq!(world.limit.limit(), 100);
}

#[test]
fn one_worker_gets_no_more_than_a_few() {
    let mut world = World::new(bounds(4, 100), 1, &TREE);
    world.run(5_000);
    assert!(world.run(2_000) > 49.0);
    assert!(world.limit.limit() <= 10, "limit {}", world.limit.limit());
}

#[test]
fn a_limit_that_is_not_in_use_does_not_grow() {
    let mut world = World::new(bounds(4, 100), 1_000, &TREE);
    world.demand = 6;
    world.run(5_000);
    assert_eq!(world.limit.limit(), 8);
    world.demand = 20;
    world.run(5_000);
    assert!((20..=32).contains(&world.limit.limit()), "limit {}", world.limit.limit());
}

#[test]
fn equal_bounds_are_a_limit_that_does_not_move() {
    let mut world = World::new(bounds(20, 20), 5, &TREE);
    world.run(5_000);
    let flight = world.limit.begin(labels::SETTINGS, world.now);
    world.limit.end(&flight, End::Overloaded, world.now);
    assert_eq!(world.limit.limit(), 20);
}

#[test]
fn an_overload_halves_what_was_under_way_at_once_and_only_once() {
    let mut world = World::new(bounds(4, 64), 1_000, &TREE);
    world.run(5_000);
    let flights: Vec<Flight> = world.under_way.into_values().collect();
    let (limit, under_way) = (&mut world.limit, flights.len());
    let at = |ms: u32| world.now + MS * ms;
    assert!(under_way > 60);
    for (flight, ms) in flights.iter().zip(1..) {
        limit.end(flight, End::Overloaded, at(ms));
        assert_eq!(limit.limit(), 32, "the first one halves it, and the others belong to the same overload");
    }
    for ms in 100..120 {
        let flight = limit.begin(labels::MANIFESTS, at(ms));
        limit.end(&flight, End::Overloaded, at(ms));
    }
    assert_eq!(limit.limit(), 4, "one after the other counts each time");
}

#[test]
fn calls_that_end_otherwise_teach_nothing() {
    let mut limit = Limit::new(bounds(2, 64));
    for ms in 0..500 {
        let flight = limit.begin(labels::RESOURCE, MS * ms);
        limit.end(&flight, End::Other, MS * (ms + 30_000));
    }
    assert_eq!((limit.limit(), limit.in_flight(), limit.usual.len()), (2, 0, 0));
}

#[test]
fn what_is_usual_is_found_out_anew_by_halving_for_a_moment() {
    // As if it had been learnt in a moment in which calls took far less than they do.
    let mut world = World::new(bounds(4, 100), 40, &TREE);
    world.jitter = 0.1;
    world.run(20_000);
    world.limit.usual[0].1 = MS * 15;
    world.run(10_000);
    assert!(world.limit.limit() < 45, "limit {}", world.limit.limit());
    let (mut probed, doubt) = (false, world.limit.doubt);
    while world.now < doubt + Duration::from_secs(2) {
        world.run(100);
        probed |= world.limit.probing.is_some();
    }
    world.run(5_000);
    assert!(probed);
    let (usual, limit) = (world.limit.usual[0].1, world.limit.limit());
    assert!((MS * 18..MS * 22).contains(&usual) && world.limit.probing.is_none(), "{usual:?}");
    assert!(limit > 45, "limit {limit}");
}

#[test]
fn a_kind_that_is_first_seen_in_a_queue_is_not_taken_to_be_that_slow() {
    let mut world = World::new(bounds(4, 100), 16, &TREE);
    world.jitter = 0.1;
    world.run(10_000);
    let before = world.limit.limit();
    world.kinds.push((labels::MANIFESTS, MS * 20));
    for _ in 0..20 {
        world.run(200);
        let limit = world.limit.limit();
        assert!(limit <= before.max(24) + 4, "limit {limit}, and {before} before");
    }
}
