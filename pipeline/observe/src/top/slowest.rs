//! The applications whose slowest event took longest: exact, however many there are.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::time::Duration;

use pipeline_core::{Key, Timestamp, Version};
use seahash::SeaHasher;

/// One event of which every report was acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AckedEvent {
    /// The application that the event is of.
    pub key: Key,
    /// The version of the application that it tells of.
    pub version: Version,
    /// The W3C trace id of the event's life.
    pub trace: u128,
    /// When its last report was acknowledged.
    pub at: Timestamp,
    /// How long after the watch saw it that was.
    pub took: Duration,
}

/// One application, and how long its events took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlowApplication {
    /// Its slowest event.
    pub worst: AckedEvent,
    /// Its events since it is in the list.
    pub acked: u64,
    /// How long they took together.
    pub total: Duration,
}

/// Applications by their slowest event. Whoever has no place takes that of the least slow one, if it is slower: a
/// larger time can only come later, so that nobody is missed whose time is among the largest.
#[derive(Debug)]
pub(super) struct Slowest {
    places: usize,
    apps: HashMap<Key, SlowApplication, BuildHasherDefault<SeaHasher>>,
    /// Nobody in a full list is less slow.
    floor: Duration,
}

impl Slowest {
    pub(super) fn new(places: usize) -> Self {
        Self { places: places.max(1), apps: HashMap::default(), floor: Duration::ZERO }
    }

    pub(super) fn add(&mut self, acknowledged: &AckedEvent) {
        let AckedEvent { key, took, .. } = acknowledged;
        if let Some(slow) = self.apps.get_mut(key) {
            slow.acked += 1;
            slow.total = slow.total.saturating_add(*took);
            if *took >= slow.worst.took {
                slow.worst = acknowledged.clone();
            }
            return;
        }
        if self.apps.len() == self.places && !self.make_room(*took) {
            return;
        }
        self.apps
            .insert(key.clone(), SlowApplication { worst: acknowledged.clone(), acked: 1, total: *took });
    }

    pub(super) fn clear(&mut self) {
        self.apps.clear();
        self.floor = Duration::ZERO;
    }

    /// Takes the place of the least slow one, if that is faster than `took`.
    fn make_room(&mut self, took: Duration) -> bool {
        if took <= self.floor {
            return false;
        }
        let least = self.apps.values().min_by_key(|slow| slow.worst.took);
        let Some((key, floor)) = least.map(|slow| (slow.worst.key.clone(), slow.worst.took)) else {
            return true;
        };
        self.floor = floor;
        took > floor && self.apps.remove(&key).is_some()
    }
}

/// The `limit` slowest applications of two lists together, the slowest first.
pub(super) fn slowest(now: &Slowest, before: &Slowest, limit: usize) -> Vec<SlowApplication> {
    let mut both: Vec<SlowApplication> = now
        .apps
        .iter()
        .map(|(key, slow)| {
            let mut slow = slow.clone();
            if let Some(earlier) = before.apps.get(key) {
                slow.acked += earlier.acked;
                slow.total = slow.total.saturating_add(earlier.total);
                if earlier.worst.took > slow.worst.took {
                    slow.worst = earlier.worst.clone();
                }
            }
            slow
        })
        .collect();
    both.extend(
        before.apps.iter().filter(|(key, _)| !now.apps.contains_key(key)).map(|(_, slow)| slow.clone()),
    );
    both.sort_unstable_by(|left, right| {
        let order = right.worst.took.cmp(&left.worst.took);
        order.then_with(|| left.worst.key.cmp(&right.worst.key))
    });
    both.truncate(limit);
    both
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn event(number: usize, ms: u64, trace: usize) -> AckedEvent {
        AckedEvent {
            key: Key::new("ns", &format!("app-{number:03}")).unwrap(),
            version: Version(trace as u64),
            trace: trace as u128,
            at: Timestamp::UNIX_EPOCH,
            took: Duration::from_millis(ms),
        }
    }

    proptest! {
        #[test]
        fn the_slowest_are_exactly_those(
            places in 1..20_usize,
            halves in [vec((0..60_usize, 0..10_000_u64), 0..200), vec((0..60_usize, 0..10_000_u64), 0..200)],
        ) {
            let mut lists = [Slowest::new(places), Slowest::new(places)];
            let mut exact: BTreeMap<Key, Duration> = BTreeMap::new();
            for (list, half) in lists.iter_mut().zip(&halves) {
                for (trace, (number, ms)) in half.iter().enumerate() {
                    let event = event(*number, *ms, trace);
                    let worst = exact.entry(event.key.clone()).or_default();
                    *worst = event.took.max(*worst);
                    list.add(&event);
                    prop_assert!(list.apps.len() <= places);
                }
            }
            let mut times: Vec<Duration> = exact.values().copied().collect();
            times.sort_unstable_by(|left, right| right.cmp(left));
            times.truncate(places);
            let [before, now] = &lists;
            let told = slowest(now, before, places);
            prop_assert_eq!(told.iter().map(|slow| slow.worst.took).collect::<Vec<_>>(), times);
            for slow in told {
                prop_assert_eq!(slow.worst.took, exact[&slow.worst.key]);
                prop_assert!(slow.worst.took <= slow.total && slow.total <= slow.worst.took * u32::try_from(slow.acked).unwrap());
            }
        }
    }

    #[test]
    fn an_application_is_told_with_its_slowest_event_and_all_of_them_together() {
        let mut list = Slowest::new(2);
        for (trace, (number, ms)) in
            [(0, 10), (1, 50), (0, 30), (0, 20), (2, 5), (3, 40)].into_iter().enumerate()
        {
            list.add(&event(number, ms, trace));
        }
        let told = slowest(&list, &Slowest::new(2), 9);
        let told: Vec<_> = told
            .iter()
            .map(|slow| (slow.worst.key.name(), slow.worst.trace, slow.acked, slow.total.as_millis()))
            .collect();
        assert_eq!(told, [("app-001", 1, 1, 50), ("app-003", 5, 1, 40)]);
    }
}
