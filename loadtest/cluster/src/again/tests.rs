use serde_json::json;

use super::*;
use loadtest_sim::platform::{EntityName, ResourceKey};

fn difference(name: &str) -> Difference {
    let resource = ResourceKey {
        api_version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        namespace: "shop".to_owned(),
        name: name.to_owned(),
    };
    let name =
        EntityName { app_namespace: "argocd".to_owned(), app_name: "a".to_owned(), resource: Some(resource) };
    Difference {
        entity: Entity { name, uid: "u".to_owned() },
        path: "source.healthStatus".to_owned(),
        recorded: Some(json!("Healthy")),
        replayed: Some(json!("Degraded")),
    }
}

fn outcome(case: &str, entities: usize, different: usize) -> Outcome {
    let differences = (0..different).map(|n| difference(&n.to_string())).collect();
    let compared = Compared { entities, different, differences };
    Outcome { case: case.to_owned(), events: 3, folded: 1, reports: 9, compared, ..Outcome::default() }
}

#[test]
fn a_row_and_the_last_line_tell_what_was_compared() {
    let outcomes = [outcome("one", 4, 0), outcome("other", 5, 2)];
    assert_eq!(
        outcomes[0].row(5),
        "one       3 events    1 folded     9 reports     4 entities    0.0 s  equal"
    );
    assert_eq!(summary(&outcomes), "replayed: 2 cases, 9 entities, 7 equal, 2 different");
    assert_eq!(
        outcomes[1].details(),
        [
            r#"  other: argocd/a ConfigMap shop/0: source.healthStatus: recorded "Healthy", replayed "Degraded""#,
            r#"  other: argocd/a ConfigMap shop/1: source.healthStatus: recorded "Healthy", replayed "Degraded""#,
        ]
    );
    assert!(!is_good(&outcomes));
    assert!(is_good(&outcomes[..1]));
}

#[test]
fn nothing_compared_is_not_good() {
    assert!(!is_good(&[]));
    assert!(!is_good(&[outcome("empty", 0, 0)]));
    assert_eq!(summary(&[]), "replayed: 0 cases, 0 entities, 0 equal, 0 different");
}

#[test]
fn a_problem_beside_the_reports_counts_as_a_difference() {
    let mut found = outcome("one", 4, 0);
    found.problems.push("not in order: ...".to_owned());
    assert!(!found.is_good());
    assert_eq!(found.details(), ["  one: not in order: ..."]);
    assert_eq!(summary(&[found]), "replayed: 1 cases, 4 entities, 4 equal, 1 different");
}

#[test]
fn of_many_differences_the_first_are_listed() {
    let lines = outcome("one", 99, 50).details();
    assert_eq!((lines.len(), lines.last().map(String::as_str)), (41, Some("  one: 10 more")));
}
