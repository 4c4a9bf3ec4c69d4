//! What a user sees whom rules narrow: every list, search, page, stream and count.

use serde_json::json;
use stages_platform_store::{
    Account, ApplicationName, By, ChangedNames, GroupBy, Report, Role, Rule, SeenApplication, Selection,
    SortBy, View, Which, create_token,
};

use crate::fleet::application;
use crate::support::{Opened, operation, resource};

const HOUR: i64 = 3_600_000;

/// What somebody in the team `shop` sees, by a rule of these attributes.
async fn view(opened: &Opened, attributes: serde_json::Value) -> View {
    let by = By { who: "ada".to_owned(), how: "session" };
    let store = &opened.store;
    for rule in store.rules().await.unwrap() {
        assert!(store.remove_rule(&by, rule.id, 1).await.unwrap());
    }
    let rule = json!({"entityType": "gitopsApplications", "teams": ["shop"], "actions": ["VIEW"],
        "attributes": attributes});
    let rule: Rule = serde_json::from_value(rule).unwrap();
    assert!(store.add_rule(&by, &rule, 1).await.unwrap());
    store.access("lin", 1).await.unwrap().expect("lin is there").view()
}

pub(crate) async fn a_narrow_user_sees_exactly_theirs_everywhere(opened: Opened) {
    let token = create_token(&opened.place, "other").await.unwrap();
    let other = opened.store.runtime(&token).await.unwrap().unwrap().id;
    let by = By { who: "ada".to_owned(), how: "session" };
    let lin = Account { name: "lin".to_owned(), password: "x".to_owned(), role: Role::Member };
    assert!(opened.store.add_person(&by, &lin, 1).await.unwrap());
    assert!(opened.store.set_teams(&by, "lin", &["shop".to_owned()], 1).await.unwrap());
    // `web` of prod, its likes in other namespaces, clusters, teams and products, and one of another runtime.
    let mut all = Vec::new();
    for (at, own) in (1..).zip(["web", "spaced", "clustered", "labelled", "product", "elsewhere"]) {
        let mut report = application(own, "production", "Degraded", "OutOfSync", at);
        report.operation = operation(at, Some(at), "Failed");
        report.placement.cluster = "east".to_owned();
        report.placement.product = "shop".to_owned();
        all.push(report);
    }
    all[1].entity.app_namespace = "spaced".to_owned();
    all[2].placement.cluster = "in-cluster".to_owned();
    all[3].placement.labels =
        vec![("team".to_owned(), "web".to_owned()), ("env".to_owned(), "Web".to_owned())];
    all[4].placement.product = "mail".to_owned();
    let last = all.pop().unwrap();
    let part = |of: &Report, at| {
        let mut part = resource(&format!("uid-of-{}", of.entity.app_name), at, at);
        part.entity.app_name.clone_from(&of.entity.app_name);
        part.entity.app_namespace.clone_from(&of.entity.app_namespace);
        part
    };
    for (at, report) in (10..).zip(&all) {
        opened.keep(report.clone()).await;
        opened.keep(part(report, at)).await;
    }
    opened.deliver_of(other, last.clone()).await;
    opened.deliver_of(other, part(&last, 20)).await;

    let cases = [
        (json!([{"name": "RUNTIME", "value": "other"}]), vec!["elsewhere"], vec!["other"]),
        (json!([{"name": "NAMESPACE", "value": "spaced"}]), vec!["spaced"], vec!["prod"]),
        (json!([{"name": "CLUSTER", "value": "in-cluster"}]), vec!["clustered"], vec!["prod"]),
        // Argo CD's own has a name and an address.
        (
            json!([{"name": "CLUSTER", "value": "https://kubernetes.default.svc"}]),
            vec!["clustered"],
            vec!["prod"],
        ),
        (json!([{"name": "PRODUCT_NAME", "value": "mail"}]), vec!["product"], vec!["prod"]),
        (json!([{"name": "ENVIRONMENT_NAME", "value": "Web"}]), vec!["labelled"], vec!["prod"]),
        // Letter by letter, key and value together, and nothing that only begins so.
        (json!([{"name": "LABEL", "key": "team", "value": "web"}]), vec!["labelled"], vec!["prod"]),
        (json!([{"name": "LABEL", "key": "team", "value": "we"}]), vec![], vec![]),
        (json!([{"name": "LABEL", "key": "tea_", "value": "web"}]), vec![], vec![]),
        (json!([{"name": "LABEL", "key": "eam", "value": "web"}]), vec![], vec![]),
        (
            json!([{"name": "CLUSTER", "value": "west"}, {"name": "CLUSTER", "value": "east"},
                {"name": "NAMESPACE", "value": "spaced"}]),
            vec!["spaced"],
            vec!["prod"],
        ),
        (
            json!([{"name": "CLUSTER", "value": "west"}, {"name": "NAMESPACE", "value": "spaced"}]),
            vec![],
            vec![],
        ),
        (json!([{"name": "GIT_SOURCE", "value": "shop"}]), vec![], vec![]),
        (json!([{"name": "NAMESPACE", "value": "' OR 1=1 --"}]), vec![], vec![]),
        (
            json!([]),
            vec!["clustered", "elsewhere", "labelled", "product", "spaced", "web"],
            vec!["other", "prod"],
        ),
    ];
    for (attributes, expected, runtimes) in cases {
        let view = view(&opened, attributes.clone()).await;
        sees(&opened, &view, &expected, &runtimes, &attributes.to_string()).await;
        let lin = opened.store.access("lin", 1).await.unwrap().unwrap();
        let registered = opened.store.seen_registrations(&lin).await.unwrap();
        assert!(registered.iter().map(|one| &*one.name).eq(runtimes.iter().copied()), "{attributes}");
        for name in ["other", "prod"] {
            let called = opened.store.seen_runtime(&lin, name).await.unwrap();
            assert_eq!(called.is_some(), runtimes.contains(&name), "{name} by {attributes}");
        }
    }
    sees(&opened, &View::NOTHING, &[], &[], "whoever is in no team").await;
    // A runtime that a rule names is seen before it has any application, and none beside it.
    let quiet = opened.store.register(&by, "quiet", "{}", false, 1).await.unwrap();
    assert!(quiet.is_some());
    let view = view(&opened, json!([{"name": "RUNTIME", "value": "quiet"}])).await;
    sees(&opened, &view, &[], &["quiet"], "a runtime without applications").await;
    opened.close().await;
}

fn own_name(one: SeenApplication) -> ApplicationName {
    ApplicationName { runtime: one.runtime, namespace: one.state.namespace, name: one.state.name }
}

/// Every list, search, page, stream and count holds these applications alone.
async fn sees(opened: &Opened, view: &View, expected: &[&str], runtimes: &[&str], what: &str) {
    let store = &opened.store;
    let by_name = Selection { group_by: GroupBy::Nothing, sort_by: SortBy::Name, ..Selection::default() };
    let page = store.list(view, &by_name, 0, 100).await.unwrap();
    let listed: Vec<_> = page.rows.iter().map(|row| row.name.clone()).collect();
    assert_eq!(listed.iter().map(|own| &*own.name).collect::<Vec<_>>(), expected, "{what}");
    let many = expected.len() as u64;
    assert_eq!((page.matching, page.total, page.runtimes), (many, many, runtimes.len() as u64), "{what}");
    assert_eq!(page.groups.iter().map(|(_, count)| count).sum::<u64>(), many, "{what}");

    let names = |found: Vec<ApplicationName>| {
        let mut found: Vec<String> = found.into_iter().map(|own| own.name).collect();
        found.sort();
        assert_eq!(found, expected, "{what}");
    };
    let (needs, count) = store.needs(view, 100).await.unwrap();
    names(needs.into_iter().map(|one| one.application.name).collect());
    assert_eq!(count, many, "{what}");
    let deployments = store.deployments_of(view, &Selection::default(), 0, 100).await.unwrap();
    names(deployments.into_iter().map(|one| one.application).collect());
    let found = store.find_resources(view, "web", 100).await.unwrap();
    names(found.into_iter().map(|one| one.application).collect());
    let changed = match store.changed(view, 0).await.unwrap().names {
        ChangedNames::These(changed) => changed,
        ChangedNames::TooMany => Vec::new(),
    };
    names(changed);
    let changed = store.visible_changed(view, &Which::default(), 0).await.unwrap();
    names(changed.applications.unwrap().into_iter().map(own_name).collect());
    names(store.movers(view, (0, HOUR), 100).await.unwrap().into_iter().map(|one| one.application).collect());
    let matrix = store.matrix(view, &Selection::default(), 0, 100).await.unwrap();
    assert_eq!((matrix.matching, matrix.total), (many, many), "{what}");
    names(matrix.rows.into_iter().map(|row| row.name).collect());
    let (clusters, _) = store.clusters(view, 100).await.unwrap();
    assert_eq!(clusters.iter().map(|one| one.applications).sum::<u64>(), many, "{what}");
    let days = store.deployments_by_day(view, 0, 1).await.unwrap();
    assert_eq!((days[0].succeeded, days[0].failed), (0, many), "{what}");
    let told = store.runtimes(view).await.unwrap();
    assert_eq!(told.iter().map(|one| &*one.name).collect::<Vec<_>>(), runtimes, "{what}");
    assert_eq!(told.iter().map(|one| one.applications).sum::<u64>(), many, "{what}");
    let visible = store.visible(view, &Which::default(), ("", "", ""), 100).await.unwrap();
    assert_eq!(visible.len(), expected.len(), "{what}");
    for rows in 1..4 {
        let ends = store.ends(view, &Which::default(), ("", "", ""), (rows, 2)).await.unwrap();
        let full = visible.chunks_exact(rows as usize).take(2).filter_map(|page| page.last());
        let names = full.map(|one| (&one.runtime, &one.state.namespace, &one.state.name));
        assert!(
            names.eq(ends.iter().map(|one| (&one.runtime, &one.namespace, &one.name))),
            "{what}: {ends:?}"
        );
    }

    // Each by its own page, and between its neighbours; what is not theirs is as if it were not there.
    let all = store.list(&View::ALL, &by_name, 0, 100).await.unwrap();
    for row in &all.rows {
        let place = listed.iter().position(|own| *own == row.name);
        assert_eq!(store.known(view, &row.name).await.unwrap().is_some(), place.is_some(), "{what}");
        let beside = store.position(view, &by_name, &row.name).await.unwrap();
        let at = |index: Option<usize>| index.and_then(|index| listed.get(index)).cloned();
        assert_eq!((beside.position, beside.matching), (place.map(|place| place as u64 + 1), many), "{what}");
        assert_eq!(beside.next, at(place.map(|place| place + 1)), "{what}");
        assert_eq!(beside.previous, at(place.and_then(|place| place.checked_sub(1))), "{what}");
    }
}
