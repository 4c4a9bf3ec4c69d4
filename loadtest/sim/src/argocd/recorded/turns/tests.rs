use serde_json::{Value, json};

use super::*;
use crate::recordings::{CaseMeta, ReportLine, WatchLine};

/// A case of the application `a`, told line by line.
struct Told(Case);

impl Told {
    fn new() -> Self {
        let meta: CaseMeta = serde_json::from_value(json!({"applications": ["a"]})).unwrap();
        Self(Case {
            name: "told".to_owned(),
            meta,
            watch: Vec::new(),
            calls: Vec::new(),
            bodies: HashMap::new(),
            reports: Vec::new(),
            rounds: Vec::new(),
        })
    }

    fn saw(mut self, t: f64, kind: &str, name: &str, version: u64) -> Self {
        let object = json!({"metadata": {"name": name, "resourceVersion": version.to_string()}});
        let object = serde_json::value::to_raw_value(&object).unwrap();
        self.0.watch.push(WatchLine { t, kind: kind.to_owned(), object });
        self
    }

    fn asked(mut self, t: f64, path: &str, status: u16, answer: &str) -> Self {
        let call = json!({
            "n": self.0.calls.len(), "t": t, "ms": 10, "by": "reporter",
            "path": format!("/api/v1/applications/{path}"), "status": status, "body": answer,
        });
        self.0.calls.push(serde_json::from_value(call).unwrap());
        let body = serde_json::value::to_raw_value(answer).unwrap();
        self.0.bodies.insert(answer.to_owned(), body);
        self
    }

    fn reported(self, t: f64, name: &str, version: u64) -> Self {
        let object = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": name, "namespace": "argocd", "uid": "u", "resourceVersion": version.to_string()}});
        self.report(t, "", &object)
    }

    fn reported_resource(self, t: f64, name: &str) -> Self {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}});
        self.report(t, name, &object)
    }

    fn report(mut self, t: f64, application: &str, object: &Value) -> Self {
        use base64::Engine as _;
        let object = base64::engine::general_purpose::STANDARD.encode(object.to_string());
        let data = json!({"object": object, "source": {"appName": application, "appNamespace": "argocd"}});
        let n = self.0.reports.len() as u64;
        self.0.reports.push(ReportLine { n, t, data });
        self
    }

    fn turns(self) -> Turns {
        Turns::of(&[self.0])
    }
}

/// What `application` is answered next when so many of its events were replayed, and `whose` was the last.
fn answer(turns: &Turns, ask: &Ask, (application, position): (&str, usize)) -> Option<String> {
    let reply = turns.answer(application, ask, |_| position)?;
    Some(serde_json::from_slice(&reply.body).unwrap())
}

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

/// An observer that is slow saw the second event after the reporter had asked for it.
#[test]
fn a_call_belongs_to_the_turn_whose_report_follows_it() {
    let turns = Told::new()
        .saw(10.0, "ADDED", "a", 1)
        .saw(11.5, "MODIFIED", "a", 2)
        .saw(11.6, "MODIFIED", "a", 3)
        .asked(10.1, "a/resource-tree", 200, "one")
        .asked(10.9, "a/resource-tree", 200, "two")
        .asked(12.0, "a/resource-tree", 200, "three")
        .reported(10.2, "a", 1)
        .reported_resource(10.3, "a")
        .reported(11.0, "a", 2)
        .reported_resource(11.8, "a")
        .reported(12.1, "a", 3)
        .turns();
    for (position, told) in [(1, "one"), (2, "two"), (3, "three")] {
        turns.advance("a");
        assert!(turns.lacks_tree("a", position));
        assert_eq!(answer(&turns, &Ask::ResourceTree, ("a", position)), text(told));
        assert!(!turns.lacks_tree("a", position));
    }
}

#[test]
fn of_several_tries_the_last_was_used_and_a_second_look_is_answered_to_a_second_look() {
    let turns = Told::new()
        .saw(10.0, "ADDED", "a", 1)
        .saw(40.0, "MODIFIED", "a", 2)
        .asked(10.1, "a/managed-resources", 502, "broken")
        .asked(10.3, "a/managed-resources", 200, "first")
        .reported(10.4, "a", 1)
        .asked(20.5, "a/managed-resources", 200, "second")
        .asked(40.1, "a/managed-resources", 200, "later")
        .reported(40.2, "a", 2)
        .turns();
    turns.advance("a");
    for told in ["first", "second", "second"] {
        assert_eq!(answer(&turns, &Ask::ManagedResources, ("a", 1)), text(told));
    }
}

#[test]
fn what_was_not_asked_in_a_turn_is_what_was_known_before() {
    let turns = Told::new()
        .saw(10.0, "ADDED", "a", 1)
        .saw(20.0, "MODIFIED", "a", 2)
        .saw(30.0, "MODIFIED", "a", 3)
        .asked(10.1, "a/resource-tree", 200, "old")
        .reported(10.2, "a", 1)
        .asked(30.1, "a/resource-tree", 200, "new")
        .reported(30.2, "a", 3)
        .turns();
    turns.advance("a");
    assert_eq!(answer(&turns, &Ask::ResourceTree, ("a", 1)), text("old"));
    turns.advance("a");
    assert!(!turns.lacks_tree("a", 2));
    assert_eq!(answer(&turns, &Ask::ResourceTree, ("a", 2)), text("old"));
    assert_eq!(answer(&turns, &Ask::ManagedResources, ("a", 2)), None);
}

#[test]
fn a_deleted_application_knows_nothing_of_before_and_neither_does_the_next_of_its_name() {
    let turns = Told::new()
        .saw(10.0, "ADDED", "a", 1)
        .saw(20.0, "DELETED", "a", 2)
        .saw(30.0, "ADDED", "a", 3)
        .asked(10.1, "a/resource-tree", 200, "old")
        .reported(10.2, "a", 1)
        .reported(20.2, "a", 2)
        .reported(30.2, "a", 3)
        .turns();
    for position in [2, 3] {
        turns.advance("a");
        assert_eq!(answer(&turns, &Ask::ResourceTree, ("a", position)), None, "{position}");
    }
}

#[test]
fn a_parent_is_answered_as_the_turn_of_its_child_knew_it() {
    let told = Told::new()
        .saw(10.0, "ADDED", "parent", 1)
        .saw(11.0, "ADDED", "a", 2)
        .saw(12.0, "MODIFIED", "parent", 3)
        .saw(13.0, "MODIFIED", "a", 4)
        .asked(11.1, "parent?appNamespace=", 200, "parent at first")
        .reported(11.2, "a", 2)
        .asked(12.9, "parent?appNamespace=", 403, "parent gone")
        .reported(13.2, "a", 4);
    let turns = told.turns();
    turns.advance("a");
    assert_eq!(answer(&turns, &Ask::Application, ("parent", 1)), text("parent at first"));
    turns.advance("a");
    assert_eq!(answer(&turns, &Ask::Application, ("parent", 2)), text("parent gone"));
}

#[test]
fn an_event_that_was_not_reported_begins_when_it_was_seen_but_not_before_the_report_of_the_one_before() {
    let seen =
        [(10.0, 1), (10.5, 2), (20.0, 3)].map(|(t, version)| ObjectIndex { t, version, deleted: false });
    let mut posts = Posts { all: vec![11.0, 11.2], ..Posts::default() };
    posts.first.insert(1, 11.0);
    let begin: Vec<f64> = turns(&seen, &[(10.1, 10.2)], &posts).iter().map(|turn| turn.begin).collect();
    assert_eq!(begin, [f64::NEG_INFINITY, 11.0, 19.75]);
}

/// The parent went while its child's end waited for its turn.
#[test]
fn a_child_is_taken_up_in_its_turn_and_a_parent_when_it_came() {
    let told = |asked: &str| {
        Told::new()
            .saw(10.0, "ADDED", "a", 1)
            .saw(11.0, "MODIFIED", "a", 2)
            .saw(11.1, "DELETED", "parent", 3)
            .saw(11.2, "MODIFIED", "a", 4)
            .asked(10.1, "a/resource-tree", 200, "one")
            .reported(10.2, "a", 1)
            .asked(11.5, asked, 403, "gone")
            .reported(11.6, "parent", 3)
            .asked(11.7, "a/resource-tree", 200, "two")
            .reported(11.8, "a", 2)
            .turns()
    };
    let turns = told("parent?appNamespace=");
    let taken_up: Vec<_> = (0..4).map(|event| turns.taken_up("a", event)).collect();
    assert_eq!(taken_up, [Some(10.1), Some(11.7), Some(11.7), None]);
    assert_eq!(turns.taken_up("parent", 0), Some(11.1));
    // Without parents all are taken as they came.
    assert_eq!(told("a/managed-resources").taken_up("a", 0), None);
}
