//! What happened last to each object, for whoever asks why.
//!
//! takes: every step, those of an attempt when it ends - gives: the last ones of a key, oldest first
//! calls: nothing; it belongs to its shard's task - fails: never; what has no room is forgotten

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use pipeline_core::{Key, Step};

use super::Moment;

/// Steps kept of each object.
const KEPT: usize = 24;
/// Of these, calls that succeeded and resources that were reported: of one large delivery they would take the place of
/// all other steps.
const DETAILS: usize = 5;
/// Room is made for so many steps at a time: most objects take few.
const GROWTH: usize = 4;

/// The last steps of one object, oldest first, each with its time since the engine started: that never goes back.
#[derive(Debug, Default)]
pub(super) struct Moments {
    steps: Vec<(Duration, Moment)>,
}

impl Moments {
    /// Adds a step where its time puts it: what an attempt did comes with its end, after what the lane did meanwhile.
    pub(super) fn push(&mut self, now: Duration, moment: Moment) {
        if self.steps.len() >= KEPT || (is_detail(moment.step) && self.details() >= DETAILS) {
            let detail = self.steps.iter().position(|(_, known)| is_detail(known.step));
            let first = detail.filter(|_| self.details() >= DETAILS).unwrap_or_default();
            self.steps.remove(first);
        }
        if self.steps.len() == self.steps.capacity() {
            self.steps.reserve_exact(GROWTH);
        }
        let later = self.steps.iter().rev().take_while(|(known, _)| *known > now).count();
        self.steps.insert(self.steps.len() - later, (now, moment));
    }

    fn details(&self) -> usize {
        self.steps.iter().filter(|(_, moment)| is_detail(moment.step)).count()
    }
}

fn is_detail(step: Step) -> bool {
    match step {
        Step::Fetched { failed, .. } => failed.is_none(),
        Step::Reported { kind, .. } => kind.is_of_listed(),
        _ => false,
    }
}

/// The last steps of the objects that something happened to last.
#[derive(Debug)]
pub(super) struct History {
    /// Objects remembered.
    keys: usize,
    moments: HashMap<Key, (u64, Moments)>,
    /// By when something happened last, which the number counts.
    order: BTreeMap<u64, Key>,
    steps: u64,
}

impl History {
    /// Remembers at most `keys` objects.
    pub(super) fn new(keys: usize) -> Self {
        Self { keys: keys.max(1), moments: HashMap::new(), order: BTreeMap::new(), steps: 0 }
    }

    /// Remembers one step.
    pub(super) fn push(&mut self, key: &Key, now: Duration, moment: Moment) {
        self.moments_of(key).push(now, moment);
    }

    /// Remembers what an attempt did.
    pub(super) fn append(&mut self, key: &Key, attempt: Moments) {
        if attempt.steps.is_empty() {
            return;
        }
        let moments = self.moments_of(key);
        attempt.steps.into_iter().for_each(|(now, moment)| moments.push(now, moment));
    }

    /// What happened last to `key`, oldest first.
    pub(super) fn of(&self, key: &Key) -> Vec<Moment> {
        let steps = self.moments.get(key).map_or(&[][..], |(_, moments)| &moments.steps);
        steps.iter().map(|(_, moment)| *moment).collect()
    }

    fn moments_of(&mut self, key: &Key) -> &mut Moments {
        let last = self.steps;
        if self.moments.get(key).is_none_or(|(at, _)| *at != last) {
            self.steps += 1;
            self.touch(key);
        }
        &mut self.moments.entry(key.clone()).or_default().1
    }

    /// Makes `key` the one that something happened to last.
    fn touch(&mut self, key: &Key) {
        let now = self.steps;
        let entry = self.moments.entry(key.clone()).or_default();
        let before = std::mem::replace(&mut entry.0, now);
        self.order.remove(&before);
        self.order.insert(now, key.clone());
        if self.order.len() > self.keys
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.moments.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use pipeline_core::{Call, Reason, Timestamp, Version};

    use super::*;

    const CALL: Call = Call::new(pipeline_core::Peer::new("peer"), "call");
    const OBJECT: pipeline_core::ReportKind = pipeline_core::ReportKind::of_object("object");
    const LISTED: pipeline_core::ReportKind = pipeline_core::ReportKind::of_listed("listed");

    fn key(number: usize) -> Key {
        Key::new("ns", &format!("app-{number}")).unwrap()
    }

    fn at(second: u64) -> Duration {
        Duration::from_secs(second)
    }

    fn moment(second: u64, step: Step) -> Moment {
        Moment {
            // A clock that goes back.
            at: Timestamp::from_second(1000 - i64::try_from(second).unwrap()).unwrap(),
            version: Version(second),
            trace: 1,
            step,
        }
    }

    fn versions(history: &History, number: usize) -> Vec<u64> {
        history.of(&key(number)).iter().map(|moment| moment.version.0).collect()
    }

    #[test]
    fn keeps_the_last_steps_of_each_object() {
        let mut history = History::new(10);
        for second in 0..100 {
            history.push(&key(0), at(second), moment(second, Step::Observed));
        }
        history.push(&key(1), at(7), moment(7, Step::Reading));
        assert_eq!(versions(&history, 0), (76..100).collect::<Vec<_>>());
        assert_eq!(history.of(&key(1)), [moment(7, Step::Reading)]);
        assert_eq!(history.of(&key(2)), []);
    }

    #[test]
    fn forgets_the_object_to_which_nothing_happened_longest() {
        let mut history = History::new(3);
        for number in [0, 1, 2, 0, 0, 3, 4] {
            history.push(&key(number), at(1), moment(1, Step::Observed));
        }
        let known: Vec<_> = (0..5).map(|number| history.of(&key(number)).len()).collect();
        assert_eq!(known, [3, 0, 0, 1, 1]);
        assert_eq!((history.moments.len(), history.order.len()), (3, 3));
    }

    #[test]
    fn what_an_attempt_did_stands_where_it_happened() {
        let mut history = History::new(3);
        let mut attempt = Moments::default();
        for second in [2, 4] {
            attempt.push(at(second), moment(second, Step::Enriched { reports: 1, took: Duration::ZERO }));
        }
        for second in [1, 3, 5] {
            history.push(&key(0), at(second), moment(second, Step::Observed));
        }
        history.append(&key(0), attempt);
        history.push(&key(0), at(5), moment(5, Step::Reading));
        assert_eq!(versions(&history, 0), [1, 2, 3, 4, 5, 5]);
        assert_eq!(history.of(&key(0))[5].step, Step::Reading, "of the same moment, in the order told");
        history.append(&key(1), Moments::default());
        assert_eq!(history.moments.len(), 1, "an attempt that did nothing is nothing to remember");
    }

    #[test]
    fn a_delivery_of_many_resources_does_not_hide_how_it_began_or_what_failed() {
        let mut history = History::new(3);
        let took = Duration::from_millis(5);
        let failed = Step::NotTaken { kind: LISTED, reason: Reason::Timeout, took: Duration::ZERO };
        let mut attempt = Moments::default();
        history.push(&key(0), at(1), moment(1, Step::Started { attempt: 0 }));
        for second in 2..5 {
            attempt.push(at(second), moment(second, Step::Fetched { call: CALL, took, failed: None }));
        }
        attempt.push(at(5), moment(5, Step::Reported { kind: OBJECT, took }));
        for second in 6..500 {
            let taken = Step::Reported { kind: LISTED, took };
            attempt.push(at(second), moment(second, if second == 50 { failed } else { taken }));
        }
        history.append(&key(0), attempt);
        history.push(&key(0), at(501), moment(501, Step::Acked { after: took }));
        let known = versions(&history, 0);
        assert_eq!(known[..3], [1, 5, 50]);
        assert_eq!(known[3..], (495..500).chain([501]).collect::<Vec<_>>());
    }
}
