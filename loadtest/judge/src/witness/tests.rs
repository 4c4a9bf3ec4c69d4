use axum::http::HeaderMap;

use super::*;
use loadtest_sim::platform::{Parsed, ResourceKey};

struct Door {
    seen: ObjectIndex,
    began: Instant,
    taken: HashSet<String>,
}

impl Door {
    fn new() -> Self {
        Self { seen: ObjectIndex::default(), began: Instant::now(), taken: HashSet::new() }
    }

    fn at(&self, ms: u64) -> Instant {
        self.began + Duration::from_millis(ms)
    }

    /// A report of app-00001 comes at `ms`.
    fn comes(&mut self, ms: u64, key: &str, version: u64, payload: &str) {
        self.passes(ms, key, version, payload, None);
    }

    /// A report of a resource of it, always of the same version.
    fn resource(&mut self, ms: u64, key: &str, payload: &str) {
        let resource = ResourceKey {
            api_version: "v1".into(),
            kind: "Service".into(),
            namespace: "app-00001".into(),
            name: "app-00001-r0".into(),
        };
        self.passes(ms, key, 1_000, payload, Some(resource));
    }

    fn passes(&mut self, ms: u64, key: &str, version: u64, payload: &str, resource: Option<ResourceKey>) {
        let name = "app-00001".to_owned();
        let entity = EntityName { app_namespace: "argocd".into(), app_name: name, resource };
        let report = Parsed {
            entity,
            parent: String::new(),
            uid: "u".into(),
            version: Some(version),
            ends: false,
            listed: Vec::new(),
        };
        let headers = HeaderMap::new();
        let duplicate = !self.taken.insert(key.to_owned());
        let size = payload.len();
        let arrived =
            Arrived { report: &report, key: Some(key), headers: &headers, duplicate, size, payload };
        self.seen.passed(Moment::Received, Some(key), self.at(ms));
        self.seen.took(&arrived, print(payload), self.at(ms));
    }

    fn answered(&mut self, ms: u64, key: &str) {
        self.seen.passed(Moment::Answered(200), Some(key), self.at(ms));
    }

    fn killed(&mut self, ms: u64) {
        self.seen.killed(self.at(ms));
    }

    /// The resource is changed.
    fn touched(&mut self, ms: u64) {
        let names = ("app-00001".to_owned(), "app-00001-r0".to_owned());
        self.seen.touched.insert(names, self.at(ms));
    }

    fn counts(&self) -> (u64, u64, u64) {
        (self.seen.duplicates, self.seen.beyond, self.seen.out_of_order)
    }
}

#[test]
fn a_repetition_after_a_kill_that_followed_the_answer_at_once_was_in_flight() {
    let mut door = Door::new();
    door.comes(0, "k1", 1, "a");
    door.answered(5, "k1");
    door.killed(30);
    door.comes(900, "k1", 1, "a");
    assert_eq!(door.counts(), (1, 0, 0));
    let kill = door.seen.kills[0];
    assert!(kill.met_reports());
    assert_eq!((kill.open, kill.recent, kill.again), (0, 1, 1));
}

#[test]
fn a_repetition_without_a_kill_or_long_before_one_is_beyond() {
    let mut door = Door::new();
    door.comes(0, "k1", 1, "a");
    door.answered(5, "k1");
    door.comes(100, "k1", 1, "a");
    assert_eq!(door.counts(), (1, 1, 0));
    assert_eq!(door.seen.told, ["app-00001: repeated 95 ms after its answer"]);
    door.answered(105, "k1");
    door.killed(105 + 501);
    assert!(!door.seen.kills[0].met_reports());
    door.comes(1_900, "k1", 1, "a");
    assert_eq!((door.counts(), door.seen.same_key), ((2, 2, 0), 2));
}

#[test]
fn a_report_that_was_not_answered_is_in_flight_and_a_kill_sees_it() {
    let mut door = Door::new();
    door.comes(0, "k1", 1, "a");
    door.killed(400);
    assert_eq!((door.seen.kills[0].open, door.seen.kills[0].recent), (1, 0));
    door.seen.passed(Moment::Unanswered, Some("k1"), door.at(401));
    assert_eq!(door.seen.open, 0);
    door.comes(5_000, "k1", 1, "a");
    assert_eq!(door.counts(), (1, 0, 0));
}

#[test]
fn of_two_kills_close_together_the_later_one_meets_what_was_answered_in_between() {
    let mut door = Door::new();
    door.killed(1_000);
    door.comes(1_200, "k1", 1, "a");
    door.answered(1_205, "k1");
    door.killed(1_230);
    door.comes(1_400, "k1", 1, "a");
    let again: Vec<u64> = door.seen.kills.iter().map(|kill| kill.again).collect();
    assert_eq!((door.counts(), again), ((1, 0, 0), vec![0, 1]));
}

#[test]
fn the_same_content_under_two_keys_is_beyond_also_after_a_kill() {
    let payload = |at: &str| format!("{{\"object\":\"x\",\"timestamp\":\"{at}\",\"source\":{{}}}}");
    let mut door = Door::new();
    door.comes(0, "k1", 1, &payload("1"));
    door.answered(5, "k1");
    door.comes(50, "k2", 1, &payload("2"));
    assert_eq!(door.counts(), (1, 1, 0));
    door.answered(55, "k2");
    door.killed(60);
    door.comes(900, "k3", 1, &payload("3"));
    assert_eq!(door.counts(), (2, 2, 0), "a ledger that is lost gives new keys");
    door.answered(905, "k3");
    door.comes(950, "k4", 2, "another");
    assert_eq!(door.counts(), (2, 2, 0));
}

#[test]
fn a_resource_that_returned_while_another_state_of_it_was_on_its_way_may_come_again() {
    let mut door = Door::new();
    door.resource(0, "r1", "a");
    door.answered(5, "r1");
    door.touched(10);
    door.resource(20, "r2", "a");
    assert_eq!(door.counts(), (1, 1, 0), "nothing was broken");
    door.answered(25, "r2");
    door.killed(30);
    door.resource(1_200, "r3", "a");
    assert_eq!((door.counts(), door.seen.returns), ((1, 1, 0), 1));
    door.answered(1_205, "r3");
    door.killed(5_000);
    door.resource(5_900, "r4", "a");
    assert_eq!((door.counts(), door.seen.returns), ((2, 2, 0), 1), "it was not changed since");
}

#[test]
fn older_states_after_newer_ones_are_out_of_order_as_repetitions_too() {
    let mut door = Door::new();
    door.comes(0, "k1", 5, "a");
    door.comes(10, "k2", 6, "b");
    assert_eq!(door.counts(), (0, 0, 0));
    door.comes(20, "k1", 5, "a");
    assert_eq!(door.counts(), (1, 0, 1));
    door.comes(30, "k3", 4, "c");
    assert_eq!(door.counts(), (1, 0, 2));
}

/// What is known of an application that is gone may have no version to compare with.
#[test]
fn a_state_of_a_life_that_was_told_to_be_over_is_out_of_order() {
    let mut door = Door::new();
    door.comes(0, "k1", 5, "a");
    door.seen.last.values_mut().for_each(|last| last.version = None);
    door.seen.deleted.insert(("app-00001".to_owned(), "u".to_owned()));
    door.resource(5, "r1", "a");
    door.comes(10, "k2", 6, "b");
    assert_eq!(door.counts(), (0, 0, 1));
    assert_eq!(door.seen.told, ["app-00001: a state came after the end of that life"]);
}

#[test]
fn what_an_earlier_ledger_knew_may_come_again() {
    let mut door = Door::new();
    door.comes(0, "k1", 1, "a");
    door.answered(5, "k1");
    door.seen.era += 1;
    door.comes(5_000, "k1", 1, "a");
    door.comes(5_010, "k2", 1, "a");
    assert_eq!(door.counts(), (2, 0, 0));
    door.answered(5_020, "k2");
    door.comes(5_030, "k2", 1, "a");
    assert_eq!(door.counts(), (3, 1, 0));
}

#[test]
fn an_application_that_is_there_and_did_not_come_again_is_told() {
    for (over, again, expected) in [(false, false, 1), (true, false, 0), (false, true, 0)] {
        let mut door = Door::new();
        door.comes(0, "k1", 1, "a");
        door.resource(0, "k2", "a");
        door.seen.era += 1;
        if over {
            door.seen.deleted.insert(("app-00001".to_owned(), "u".to_owned()));
        }
        if again {
            door.comes(5_000, "k3", 1, "a");
        }
        let told = Witness { seen: Arc::new(Mutex::new(door.seen)) }.not_again(0);
        assert_eq!(told, (expected, (expected > 0).then(|| "app-00001".to_owned())));
    }
}

#[test]
fn latencies_end_with_the_report_of_that_state_or_a_newer_one() {
    let mut door = Door::new();
    let began = door.began;
    door.seen.timed.insert("app-00001".to_owned(), vec![(3, began), (5, began)]);
    door.comes(20, "k1", 2, "a");
    assert!(door.seen.latencies.is_none());
    door.comes(40, "k2", 4, "b");
    let latencies = door.seen.latencies.take().unwrap();
    assert_eq!(latencies.len(), 1);
    assert!((39_000..41_000).contains(&latencies.max()), "{}", latencies.max());
}

#[test]
fn what_is_answered_while_the_ledger_cannot_be_reached_was_in_flight_and_nothing_after_it() {
    let mut door = Door::new();
    for (number, ms) in [(1, 0), (2, 600), (3, 3_000), (4, 9_000)] {
        let key = format!("k{number}");
        door.comes(ms, &key, number, &key);
        door.answered(ms + 5, &key);
    }
    door.seen.killed_until(door.at(1_000), None);
    door.comes(3_500, "k2", 4, "k2");
    door.comes(3_600, "k3", 4, "k3");
    assert_eq!(door.counts(), (2, 0, 0));
    let ends = [door.at(5_000), door.at(20_000)];
    ends.into_iter().for_each(|end| door.seen.kills[0].end(end));
    door.comes(9_900, "k1", 4, "k1");
    assert_eq!(door.counts(), (3, 1, 0), "it had been written down before");
    door.comes(9_950, "k4", 4, "k4");
    assert_eq!(door.counts(), (4, 2, 0), "it was answered after");
}
