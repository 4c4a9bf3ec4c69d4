//! The same application in each of its environments.

use stages_platform_store::{Condition, Field, FleetMatrix, Report, Selection, SortBy, View, create_token};

use crate::support::{Opened, operation, report};

fn application(name: &str, environment: &str, health: &str, at: i64) -> Report {
    let mut report = report(&format!("uid-{name}"), at, at);
    report.entity.app_name = name.to_owned();
    report.health = Some(health.to_owned());
    report.images = format!("[\"web:1.{at}\"]");
    report.operation = operation(at, Some(at), "Succeeded");
    report.placement.labels = vec![("env".to_owned(), environment.to_owned())];
    report
}

/// Each as its name without the environment, its own name, its runtime and its version.
fn told(matrix: &FleetMatrix) -> Vec<(&str, &str, &str, &str)> {
    matrix.rows.iter().map(|row| (&*row.group, &*row.name.name, &*row.name.runtime, &*row.version)).collect()
}

pub(crate) async fn an_application_is_one_name_in_each_of_its_environments(opened: Opened) {
    let token = create_token(&opened.place, "other").await.unwrap();
    let other = opened.store.runtime(&token).await.unwrap().unwrap().id;
    for (at, (name, environment, health)) in (1..).zip([
        ("pay-staging", "Staging", "Healthy"),
        ("prod-pay", "prod", "Healthy"),
        ("pay", "test", "Degraded"),
        // What only looks like an environment, or is all of the name, stays.
        ("mail-prod", "staging", "Healthy"),
        ("prod", "prod", "Healthy"),
        ("-prod", "prod", "Healthy"),
        ("a%-prod", "prod", "Healthy"),
    ]) {
        opened.keep(application(name, environment, health, at)).await;
    }
    opened.deliver_of(other, application("pay", "", "Healthy", 8)).await;
    let matrix = async |selection: &Selection, skip, limit| {
        opened.store.matrix(&View::ALL, selection, skip, limit).await.unwrap()
    };
    let by_name = Selection { sort_by: SortBy::Name, ..Selection::default() };
    let all = matrix(&by_name, 0, 10).await;
    let pay = [
        ("pay", "pay-staging", "prod", "1.1"),
        ("pay", "pay", "other", "1.8"),
        ("pay", "prod-pay", "prod", "1.2"),
        ("pay", "pay", "prod", "1.3"),
    ];
    let names = |matrix: &FleetMatrix| {
        let mut names: Vec<String> = matrix.rows.iter().map(|row| row.group.clone()).collect();
        names.dedup();
        names
    };
    let mut found: Vec<_> = told(&all).into_iter().filter(|one| one.0 == "pay").collect();
    let mut expected = pay.to_vec();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
    let mut each = names(&all);
    each.sort_unstable();
    assert_eq!(each, ["-prod", "a%", "mail-prod", "pay", "prod"], "each stands together");
    assert_eq!((all.names, all.matching, all.total, all.runtimes), (5, 8, 8, 2));

    // What needs attention comes first, or what was deployed last; a page is of names, with all that each has.
    assert_eq!(names(&matrix(&Selection::default(), 0, 10).await)[0], "pay");
    let deployed = Selection { sort_by: SortBy::Deployed, ..Selection::default() };
    assert_eq!(names(&matrix(&deployed, 0, 10).await)[..2], ["pay", "a%"]);
    let first = matrix(&deployed, 0, 1).await;
    assert_eq!((first.rows.len(), first.names, first.matching), (4, 5, 8));
    assert_eq!(names(&matrix(&deployed, 1, 1).await), ["a%"]);
    let behind = matrix(&deployed, 5, 1).await;
    assert_eq!((behind.rows.len(), behind.names, behind.total), (0, 0, 8));
    let conditions = vec![Condition::AnyOf(Field::Runtime, vec!["other".to_owned()])];
    let some = matrix(&Selection { conditions, ..Selection::default() }, 0, 10).await;
    assert_eq!((told(&some), some.matching, some.total), (vec![pay[1]], 1, 8));
    opened.close().await;
}
