//! The sketch against exact sums.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

impl Detail for u64 {
    fn add(&mut self, earlier: &Self) {
        *self += earlier;
    }
}

fn key(number: usize) -> Key {
    Key::new("ns", &format!("app-{number}")).unwrap()
}

/// Many weights of few applications, and few of many.
fn stream() -> impl Strategy<Value = Vec<(usize, u64)>> {
    vec((prop_oneof![3 => 0..4_usize, 1 => 0..200_usize], 0..50_u64), 0..400)
}

fn fill(sketch: &mut Sketch<u64>, exact: &mut BTreeMap<Key, u64>, stream: &[(usize, u64)]) {
    for (number, weight) in stream {
        *sketch.add(&key(*number), *weight) += weight;
        *exact.entry(key(*number)).or_default() += weight;
    }
}

proptest! {
    #[test]
    fn no_sum_is_told_wrongly_and_no_large_one_is_missed(
        places in 1..40_usize,
        first in stream(),
        second in stream(),
    ) {
        let (mut before, mut now) = (Sketch::new(places), Sketch::new(places));
        let mut exact = BTreeMap::new();
        fill(&mut before, &mut exact, &first);
        fill(&mut now, &mut exact, &second);
        let total = |stream: &[(usize, u64)]| stream.iter().map(|(_, weight)| weight).sum::<u64>();
        let slack = total(&first) / places as u64 + total(&second) / places as u64;
        for sketch in [&before, &now] {
            prop_assert!(sketch.entries.len() <= places);
            prop_assert_eq!((sketch.sums.len(), sketch.index.len()), (sketch.entries.len(), sketch.entries.len()));
            prop_assert!(sketch.entries.iter().enumerate().all(|(at, entry)| sketch.index[&entry.key] == at));
        }
        let ranked = largest(&now, &before, usize::MAX);
        for app in &ranked {
            let truth = exact[&app.key];
            prop_assert!(app.at_least <= truth && truth <= app.at_most, "{app:?}, and it is {truth}");
            prop_assert!(app.at_most - app.at_least <= slack, "{app:?}, and {slack} is too much");
            prop_assert_eq!(app.detail, app.at_least, "what stands beside it was counted in the same time");
        }
        prop_assert!(ranked.is_sorted_by(|left, right| left.at_least >= right.at_least));
        for (app, truth) in exact {
            let found = ranked.iter().any(|ranked| ranked.key == app);
            prop_assert!(found || truth <= slack, "{app} has {truth}, and is missing");
        }
    }

    #[test]
    fn whoever_stands_out_is_first(
        places in 4..40_usize,
        mut stream in vec(0..200_usize, 0..400),
        hot in 0..200_usize,
        seed: u64,
    ) {
        let alike = |number: usize| stream.iter().filter(|other| **other == number).count();
        let most = (0..200).map(alike).max().unwrap_or_default();
        // More than whoever is next, and what the sketch may not know of it.
        let times = 2 * (most + stream.len() / places + 1);
        stream.extend(vec![hot; times]);
        fastrand::Rng::with_seed(seed).shuffle(&mut stream);
        let mut sketch: Sketch<u64> = Sketch::new(places);
        for number in stream {
            sketch.add(&key(number), 1);
        }
        let ranked = largest(&sketch, &Sketch::new(places), 1);
        prop_assert_eq!(&ranked[0].key, &key(hot));
    }
}

#[test]
fn while_there_is_room_every_sum_is_exact() {
    let mut sketch = Sketch::new(3);
    for (number, weight) in [(0, 5), (1, 7), (0, 5), (2, 1)] {
        *sketch.add(&key(number), weight) += 1_u64;
    }
    let ranked = largest(&sketch, &Sketch::new(3), 2);
    let told: Vec<_> = ranked.iter().map(|app| (app.key.name(), app.at_least, app.at_most)).collect();
    assert_eq!(told, [("app-0", 10, 10), ("app-1", 7, 7)]);
    assert_eq!(ranked[0].detail, 2);

    // The smallest gives way, and what it had may be of the one that comes.
    *sketch.add(&key(3), 4) += 1;
    assert_eq!(sketch.detail(&key(2)), None);
    let ranked = largest(&sketch, &Sketch::new(3), 9);
    let last = ranked.last().unwrap();
    assert_eq!((last.key.name(), last.at_least, last.at_most, last.detail), ("app-3", 4, 5, 1));
    sketch.clear();
    assert_eq!((largest(&sketch, &Sketch::new(3), 9), sketch.floor()), (Vec::new(), 0));
}

#[test]
fn of_many_that_are_alike_none_looks_large() {
    let mut sketch: Sketch<u64> = Sketch::new(10);
    for number in 0..1_000 {
        sketch.add(&key(number), 1);
    }
    let ranked = largest(&sketch, &Sketch::new(10), 10);
    assert!(ranked.iter().all(|app| app.at_least == 1 && app.at_most == 100), "{ranked:?}");
}
