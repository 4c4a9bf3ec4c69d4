//! Who gets through, in which order, and what is told of it.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::time::{sleep, timeout};

use super::super::limit::Bounds;
use super::*;
use crate::labels;

#[derive(Default)]
struct RecordingMeter {
    pressures: Mutex<Vec<(usize, usize, usize)>>,
    waited: Mutex<Vec<(Wait, Duration)>>,
}

impl RecordingMeter {
    /// Limit, under way, waiting.
    fn last(&self) -> (usize, usize, usize) {
        *self.pressures.lock().unwrap().last().unwrap()
    }
}

impl Meter for RecordingMeter {
    fn record(&self, _: pipeline_core::Sample) {}

    fn pressure(&self, told: Pressure) {
        assert_eq!(told.peer, labels::ARGOCD);
        self.pressures.lock().unwrap().push((told.limit, told.in_flight, told.waiting));
    }

    fn waited(&self, peer: pipeline_core::Peer, wait: Wait, took: Duration) {
        assert_eq!(peer, labels::ARGOCD);
        self.waited.lock().unwrap().push((wait, took));
    }
}

fn gate(min: usize, max: usize, per_second: u32) -> (Arc<Gate>, Arc<RecordingMeter>) {
    let told = Arc::new(RecordingMeter::default());
    let rate = NonZeroU32::new(per_second).map(CallRate::new);
    (Arc::new(Gate::new(Limit::new(Bounds { min, max }), rate, told.clone())), told)
}

/// Calls under way, one after the other as fast as they may be, until so many may be at once.
async fn grown(gate: &Gate, limit: usize) {
    for _ in 0..1_000 {
        let now = gate.with(|state| state.limit.limit());
        if now >= limit {
            return;
        }
        let mut passes = Vec::new();
        for _ in 0..now {
            passes.push(gate.enter(labels::MANIFESTS).await);
        }
        sleep(SECOND / 10).await;
        passes.into_iter().for_each(|pass| pass.end(End::Answered));
    }
    panic!("it never grows to {limit}");
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn calls_pass_in_the_order_in_which_they_came_and_are_told_of() {
    let (gate, told) = gate(2, 2, 0);
    assert_eq!(told.last(), (2, 0, 0));
    let order = Arc::new(Mutex::new(Vec::new()));
    let tasks: Vec<_> = (0..7)
        .map(|n| {
            let (gate, order) = (gate.clone(), order.clone());
            tokio::spawn(async move {
                sleep(Duration::from_millis(n)).await;
                // One gives up, another is given up while it is under way.
                let patience = if n == 3 { SECOND / 2 } else { SECOND * 60 };
                let Ok(pass) = timeout(patience, gate.enter(labels::MANIFESTS)).await else { return };
                order.lock().unwrap().push(n);
                sleep(SECOND).await;
                if n != 4 {
                    pass.end(End::Answered);
                }
            })
        })
        .collect();
    sleep(SECOND / 10).await;
    assert_eq!(told.last(), (2, 2, 5));
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(*order.lock().unwrap(), [0, 1, 2, 4, 5, 6]);
    assert_eq!(told.last(), (2, 0, 0));
    assert!(told.pressures.lock().unwrap().iter().all(|(_, under_way, _)| *under_way <= 2));
    let waited = told.waited.lock().unwrap();
    let seconds: Vec<f64> = waited.iter().map(|(_, took)| took.as_secs_f64().round()).collect();
    assert_eq!(seconds, [1.0, 1.0, 2.0, 2.0]);
    assert!(waited.iter().all(|(wait, _)| *wait == Wait::Slot));
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_falls_keeps_calls_out_until_fewer_are_under_way() {
    let (gate, told) = gate(2, 8, 0);
    grown(&gate, 8).await;
    let mut passes = Vec::new();
    for _ in 0..8 {
        passes.push(gate.enter(labels::MANIFESTS).await);
    }
    passes.remove(0).end(End::Overloaded);
    assert_eq!(told.last(), (4, 7, 0));
    for under_way in [6, 5, 4] {
        assert!(timeout(SECOND / 10, gate.enter(labels::MANIFESTS)).await.is_err());
        passes.remove(0).end(End::Other);
        assert_eq!(told.last(), (4, under_way, 0));
    }
    assert!(timeout(SECOND / 10, gate.enter(labels::MANIFESTS)).await.is_err());
    drop(passes.remove(0));
    let pass = timeout(SECOND, gate.enter(labels::MANIFESTS)).await.expect("a slot is free");
    assert!(timeout(SECOND / 10, gate.enter(labels::MANIFESTS)).await.is_err());
    drop((pass, passes));
    assert_eq!((told.last(), gate.slots.available_permits()), ((4, 0, 0), 4));
}

#[tokio::test(start_paused = true)]
async fn whatever_happens_as_many_slots_are_left_as_the_limit_says() {
    let (gate, _) = gate(4, 64, 0);
    let most = Arc::new(AtomicUsize::new(0));
    let mut chance = fastrand::Rng::with_seed(3);
    let tasks: Vec<_> = (0..3_000)
        .map(|_| {
            let (gate, most) = (gate.clone(), most.clone());
            let (start, takes) = (chance.u64(0..3_000), chance.u64(1..60));
            let (patience, end) = (chance.u64(1..400), chance.u16(0..400));
            tokio::spawn(async move {
                sleep(Duration::from_millis(start)).await;
                let patience = Duration::from_millis(patience);
                let Ok(pass) = timeout(patience, gate.enter(labels::MANIFESTS)).await else { return };
                most.fetch_max(gate.with(|state| state.limit.in_flight()), Ordering::Relaxed);
                sleep(Duration::from_millis(takes)).await;
                match end {
                    0 => pass.end(End::Overloaded),
                    1 => drop(pass),
                    _ => pass.end(End::Answered),
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let state = gate.state.lock().unwrap();
    assert_eq!((state.surplus, state.waiting, state.limit.in_flight()), (0, 0, 0));
    assert_eq!(gate.slots.available_permits(), state.limit.limit());
    assert!((5..=64).contains(&most.load(Ordering::Relaxed)), "it never grew, or too far: {most:?}");
}

#[tokio::test(start_paused = true)]
async fn the_rate_holds_for_all_and_its_wait_is_told_apart() {
    let (gate, told) = gate(50, 50, 10);
    let begun = Instant::now();
    let tasks: Vec<_> = (0..31)
        .map(|_| {
            let gate = gate.clone();
            tokio::spawn(async move {
                let pass = gate.enter(labels::SETTINGS).await;
                pass.end(End::Answered);
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let took = begun.elapsed();
    assert!((SECOND * 3..SECOND * 4).contains(&took), "{took:?}");
    let waited = told.waited.lock().unwrap();
    assert_eq!(waited.len(), 30);
    assert!(waited.iter().all(|(wait, _)| *wait == Wait::Budget));
    assert!(told.pressures.lock().unwrap().iter().all(|(_, under_way, _)| *under_way <= 1));
}

#[tokio::test(start_paused = true)]
async fn calls_that_are_stuck_give_up_their_slots_but_not_the_upper_bound() {
    let (gate, told) = gate(4, 6, 0);
    let begun = Instant::now();
    let mut stuck = Vec::new();
    for _ in 0..4 {
        stuck.push(gate.enter(labels::MANIFESTS).await);
    }
    assert!(timeout(SECOND * 9 / 10, gate.enter(labels::MANIFESTS)).await.is_err());
    let (one, other) = tokio::join!(gate.enter(labels::RESOURCE_TREE), gate.enter(labels::RESOURCE_TREE));
    let took = begun.elapsed();
    assert!((SECOND..SECOND * 11 / 10).contains(&took), "{took:?}");
    assert_eq!(told.last(), (6, 6, 0));
    assert!(timeout(SECOND * 60, gate.enter(labels::MANIFESTS)).await.is_err(), "six are under way");
    one.end(End::Answered);
    let third = timeout(SECOND / 10, gate.enter(labels::MANIFESTS)).await.expect("five are under way");
    drop((stuck, other, third));
    assert_eq!((told.last(), gate.slots.available_permits()), ((4, 0, 0), 4));
}

#[tokio::test(start_paused = true)]
async fn whoever_comes_when_calls_are_stuck_already_need_not_wait() {
    let (gate, _) = gate(4, 100, 0);
    let mut stuck = Vec::new();
    for _ in 0..4 {
        stuck.push(gate.enter(labels::MANIFESTS).await);
    }
    sleep(SECOND * 2).await;
    for _ in 0..500 {
        let pass = gate.enter(labels::RESOURCE_TREE).await;
        assert_eq!(pass.waited, Duration::ZERO);
        sleep(Duration::from_millis(20)).await;
        pass.end(End::Answered);
    }
}
