//! What is read across the fleet: lists and who stands beside whom in them, moments, searches, what needs somebody.

use stages_platform_store::{
    Changed, ChangedNames, Commit, Condition, Field, GroupBy, Placement, Report, SeenApplication, Selection,
    SortBy, SourceChange, Text, View, Which,
};

use crate::support::{Opened, name, operation, report, resource};

const HOUR: i64 = 3_600_000;

/// An application of an environment, in a state.
pub(crate) fn application(name: &str, environment: &str, health: &str, sync: &str, at: i64) -> Report {
    let mut report = report(&format!("uid-{name}"), at, at);
    report.entity.app_name = name.to_owned();
    (report.health, report.sync) = (Some(health.to_owned()), Some(sync.to_owned()));
    report.revision = Some(format!("{at:x}abc"));
    report.commit = Commit {
        author: "Ada Byron <ada@example.com>".to_owned(),
        message: format!("change {name} = 100%"),
        date: String::new(),
    };
    report.images = r#"["registry.example.com:5000/shop/Web:1.2.3","envoy:1.31"]"#.to_owned();
    report.placement = Placement {
        project: "shop".to_owned(),
        namespace: "shop".to_owned(),
        labels: vec![("env".to_owned(), environment.to_owned()), ("team".to_owned(), "Web".to_owned())],
        ..Placement::default()
    };
    report
}

/// Names in the order of a selection.
async fn names(opened: &Opened, selection: &Selection) -> Vec<String> {
    let page = opened.store.list(&View::ALL, selection, 0, 100).await.unwrap();
    assert_eq!(page.matching, page.rows.len() as u64);
    page.rows.into_iter().map(|row| row.name.name).collect()
}

pub(crate) async fn a_list_is_grouped_and_ordered_and_its_neighbours_are_those_of_its_pages(opened: Opened) {
    let all = [
        ("b", "production", "Healthy", "Synced"),
        ("a", "production", "Healthy", "OutOfSync"),
        ("d", "staging", "Degraded", "Synced"),
        ("c", "staging", "Healthy", "Synced"),
        ("e", "testing", "", ""),
    ];
    for (at, (own, environment, health, sync)) in (1..).zip(all) {
        let mut report = application(own, environment, health, sync, at);
        report.operation = operation(at, Some(at * HOUR), "Succeeded");
        report.placement.product = if "db".contains(own) { "mail" } else { "" }.to_owned();
        opened.keep(report).await;
    }
    let mut gone = application("gone", "production", "Healthy", "Synced", 9);
    opened.keep(gone.clone()).await;
    gone.deleted = true;
    (gone.at, gone.version) = (10, Some(10));
    opened.keep(gone).await;

    let plain = Selection::default();
    assert_eq!(names(&opened, &plain).await, ["d", "c", "e", "a", "b"]);
    let page = opened.store.list(&View::ALL, &plain, 1, 3).await.unwrap();
    assert_eq!((page.matching, page.total, page.runtimes), (5, 5, 1));
    let groups = [("staging", 2), ("testing", 1), ("production", 2)];
    assert_eq!(page.groups, groups.map(|(name, count)| (name.to_owned(), count)));
    let shown = page.rows.iter().find(|row| row.name.name == "a").unwrap();
    assert_eq!((&*shown.version, shown.deployed_at, &*shown.project), ("1.2.3", Some(2 * HOUR), "shop"));
    assert_eq!((&*shown.health, &*shown.sync, &*shown.message), ("Healthy", "OutOfSync", "change a = 100%"));
    assert_eq!((&*page.rows[1].health, &*page.rows[1].sync), ("Unknown", "Unknown"));

    for (group_by, sort_by, expected) in [
        (GroupBy::Nothing, SortBy::Name, ["a", "b", "c", "d", "e"]),
        (GroupBy::Nothing, SortBy::Deployed, ["e", "c", "d", "a", "b"]),
        (GroupBy::Health, SortBy::Name, ["d", "e", "a", "b", "c"]),
        (GroupBy::Runtime, SortBy::Attention, ["d", "e", "a", "b", "c"]),
        (GroupBy::Product, SortBy::Attention, ["d", "b", "e", "a", "c"]),
        (GroupBy::Application, SortBy::Name, ["a", "b", "c", "d", "e"]),
        (GroupBy::Application, SortBy::Deployed, ["e", "c", "d", "a", "b"]),
        (GroupBy::Project, SortBy::Attention, ["d", "e", "a", "b", "c"]),
    ] {
        let selection = Selection { group_by, sort_by, ..Selection::default() };
        assert_eq!(names(&opened, &selection).await, expected, "{group_by:?} {sort_by:?}");
        // Whoever stands beside an application is who does so in the list.
        for (index, own) in expected.iter().enumerate() {
            let position = opened.store.position(&View::ALL, &selection, &name(own)).await.unwrap();
            let beside =
                |index: Option<usize>| index.and_then(|index| expected.get(index)).map(|own| name(own));
            assert_eq!(position.position, Some(index as u64 + 1));
            assert_eq!(
                (position.matching, position.previous, position.next),
                (5, beside(index.checked_sub(1)), beside(Some(index + 1)))
            );
        }
    }
    let outside = opened.store.position(&View::ALL, &plain, &name("gone")).await.unwrap();
    assert_eq!((outside.position, outside.matching, outside.previous), (None, 5, None));
    opened.close().await;
}

pub(crate) async fn a_filter_leaves_what_it_says_and_takes_nothing_typed_for_more(opened: Opened) {
    let mut web = application("web", "production", "Healthy", "Synced", 1);
    web.operation = operation(2, Some(6 * HOUR), "Failed");
    web.placement.cluster = "https://kubernetes.default.svc".to_owned();
    opened.keep(web).await;
    let mut other = application("api", "staging", "Degraded", "OutOfSync", 2);
    other.placement.labels[1].1 = "core".to_owned();
    other.images = r#"["worker:2"]"#.to_owned();
    other.placement.cluster = "east".to_owned();
    other.placement.product = "mail".to_owned();
    other.commit.author = "Lin".to_owned();
    other.operation = operation(2, Some(5 * HOUR), "Succeeded");
    opened.keep(other).await;
    for (own, name, deleted) in [("api", "cart_1", false), ("web", "cart-2", false), ("web", "cart_1", true)]
    {
        let mut one = resource(name, 3, 3);
        one.entity.app_name = own.to_owned();
        one.entity.resource.as_mut().unwrap().name = name.to_owned();
        one.deleted = deleted;
        opened.keep(one).await;
    }
    let has = |text: &str| Condition::Resource(text.to_owned());
    let text = |text: &str| Condition::Text(text.to_owned());
    let label = |key: &str, value: Option<&str>| Condition::Label(key.to_owned(), value.map(str::to_owned));
    let any = |field, value: &str| Condition::AnyOf(field, vec![value.to_owned()]);
    let image = |text: &str| Condition::Image(text.to_owned());
    let cases: Vec<(Condition, &[&str])> = vec![
        (text("WEB"), &["web"]),
        (text("100%"), &["api", "web"]),
        (text("0%0"), &[]),
        (text("a_i"), &[]),
        (text("!"), &[]),
        (text("' OR 1=1 --"), &[]),
        (text("pro"), &["api", "web"]),
        (text("staging"), &["api"]),
        (label("team", Some("Web")), &["web"]),
        (label("team", Some("We")), &[]),
        (label("team", None), &["api", "web"]),
        (label("change web ", None), &[]),
        (any(Field::Environment, "staging"), &["api"]),
        (any(Field::Runtime, "prod"), &["api", "web"]),
        (any(Field::Project, "shop"), &["api", "web"]),
        (any(Field::Health, "Degraded"), &["api"]),
        (any(Field::Sync, "Synced"), &["web"]),
        (any(Field::Cluster, "east"), &["api"]),
        (any(Field::Cluster, "eas"), &[]),
        // By its name or by its address.
        (any(Field::Cluster, "in-cluster"), &["web"]),
        (any(Field::Cluster, "https://kubernetes.default.svc"), &["web"]),
        (any(Field::Product, "mail"), &["api"]),
        (Condition::AnyOf(Field::Project, Vec::new()), &[]),
        (image("shop/web"), &["web"]),
        (image("worker:2"), &["api"]),
        (has("CART"), &["api", "web"]),
        (has("deployment/cart-"), &["web"]),
        // One that is gone is none of its application's any more.
        (has("cart_1"), &["api"]),
        (has("service/"), &[]),
        (Condition::Commit("1ab".to_owned()), &["web"]),
        (Condition::Commit("abc".to_owned()), &[]),
        (Condition::Author("ada".to_owned()), &["web"]),
        (Condition::DeployedSince(5 * HOUR), &["api", "web"]),
        // What failed was to be deployed, too.
        (Condition::DeployedSince(5 * HOUR + 1), &["web"]),
        (Condition::DeployedSince(6 * HOUR + 1), &[]),
    ];
    for (condition, expected) in cases {
        let selection = Selection {
            conditions: vec![condition.clone()],
            group_by: GroupBy::Nothing,
            sort_by: SortBy::Name,
        };
        assert_eq!(names(&opened, &selection).await, expected, "{condition:?}");
        // A list of another kind leaves the same.
        let which = Which { conditions: vec![condition.clone()], ..Which::default() };
        let visible = opened.store.visible(&View::ALL, &which, ("", "", ""), 10).await.unwrap();
        let visible: Vec<String> = visible.into_iter().map(|one| one.state.name).collect();
        assert_eq!(visible, expected, "{condition:?}");
    }
    let both = vec![text("100%"), any(Field::Health, "Healthy")];
    assert_eq!(names(&opened, &Selection { conditions: both, ..Selection::default() }).await, ["web"]);
    // What goes on is found however long ago it began.
    let mut hangs = application("hangs", "production", "Healthy", "Synced", 3);
    hangs.operation = operation(1, None, "Running");
    opened.keep(hangs).await;
    let since = vec![Condition::DeployedSince(9 * HOUR)];
    assert_eq!(names(&opened, &Selection { conditions: since, ..Selection::default() }).await, ["hangs"]);
    opened.close().await;
}

pub(crate) async fn a_moment_is_shown_as_it_was(opened: Opened) {
    let states = [(10, "Healthy", "Synced"), (20, "Degraded", "OutOfSync"), (30, "Healthy", "Synced")];
    for (at, health, sync) in states {
        let mut own = application("shop", "production", health, sync, at);
        own.object = Some(Text::new(format!(r#"{{"at":{at}}}"#)));
        own.operation = operation(at - 1, Some(at), if at == 20 { "Failed" } else { "Succeeded" });
        opened.keep(own).await;
        let mut web = resource("web", at, at);
        (web.health, web.sync) = (Some(health.to_owned()), Some(sync.to_owned()));
        web.actual = Some(Text::new(format!(r#"{{"live":{at}}}"#)));
        web.desired = Some(Text::new(r#"{"desired":1}"#.to_owned()));
        opened.keep(web).await;
    }
    // It came late, and stands where it belongs.
    let mut late = resource("web", 15, 15);
    late.actual = Some(Text::new(r#"{"live":15}"#.to_owned()));
    late.desired = Some(Text::new(r#"{"desired":1}"#.to_owned()));
    opened.keep(late).await;
    let mut pod = resource("old", 12, 12);
    pod.entity.resource.as_mut().unwrap().name = "old".to_owned();
    opened.keep(pod.clone()).await;
    pod.deleted = true;
    (pod.at, pod.version) = (25, Some(25));
    opened.keep(pod).await;

    let store = &opened.store;
    let known = store.known(&View::ALL, &name("shop")).await.unwrap().expect("it is known");
    assert!((known.health_since, known.reported_at, known.deleted) == (30, 30, false), "{known:?}");
    assert!(known.heard_at.is_some());
    assert_eq!(store.known(&View::ALL, &name("none")).await.unwrap(), None);

    let states = store.states(known.id, (15, 30)).await.unwrap();
    let states: Vec<_> = states.iter().map(|one| (one.at, one.health.as_deref().unwrap())).collect();
    assert_eq!(states, [(10, "Healthy"), (20, "Degraded"), (30, "Healthy")], "the one before, too");
    let deployed = store.deployments_between(known.id, (10, 30)).await.unwrap();
    let deployed: Vec<_> =
        deployed.iter().map(|one| (one.started_at, &*one.phase, one.images_before.is_some())).collect();
    assert_eq!(deployed, [(19, "Failed", true), (29, "Succeeded", true)]);
    let drifts = store.drifts_between(known.id, (0, 100)).await.unwrap();
    let drifts: Vec<_> = drifts.iter().map(|one| (one.resource.is_some(), one.onset, one.ended)).collect();
    assert_eq!(drifts, [(false, 20, Some(30)), (true, 20, Some(30))]);
    assert_eq!(store.drifts_between(known.id, (31, 100)).await.unwrap(), []);

    for (at, object, live, there) in [
        (Some(9), None, None, vec![]),
        (Some(14), Some(10), Some(10), vec!["old", "web"]),
        (Some(17), Some(10), Some(15), vec!["old", "web"]),
        (Some(24), Some(20), Some(20), vec!["old", "web"]),
        (None, Some(30), Some(30), vec!["web"]),
    ] {
        let found = store.object_at(known.id, at).await.unwrap();
        let health = found.as_ref().and_then(|object| object.health.clone());
        let was = object.map(|at| if at == 20 { "Degraded" } else { "Healthy" });
        assert_eq!(health.as_deref(), was, "{at:?}");
        let found = found.and_then(|object| object.object);
        assert_eq!(found, object.map(|at| format!(r#"{{"at":{at}}}"#)), "{at:?}");
        let web = ("apps", "Deployment", "shop", "web");
        let manifests =
            store.manifests_at(known.id, web, at.unwrap_or(i64::MAX)).await.unwrap().unwrap_or_default();
        assert_eq!(manifests.actual, live.map(|at| format!(r#"{{"live":{at}}}"#)), "{at:?}");
        assert_eq!(manifests.desired.is_some(), live.is_some());
        let resources = store.resources_at(known.id, at, Some(14)).await.unwrap();
        assert!(resources.is_sorted_by_key(|one| one.deleted), "what is there is never cut for what is gone");
        let shown: Vec<_> = resources.iter().filter(|one| !one.deleted).map(|one| &*one.name.name).collect();
        assert_eq!(shown, there, "{at:?}");
        let changed = resources.iter().find(|one| one.name.name == "web").is_some_and(|one| one.changed);
        assert_eq!(changed, at.is_none_or(|at| at > 14), "{at:?}");
    }
    // What Git alone has is reported as it should be, in its namespace.
    let mut missing = resource("", 40, 40);
    missing.object = Some(Text::new(r#"{"metadata":{"namespace":"shop"}}"#.to_owned() + "\n"));
    (missing.actual, missing.desired) = (None, Some(Text::new(r#"{"metadata":{}}"#.to_owned())));
    opened.keep(missing).await;
    let web = ("apps", "Deployment", "shop", "web");
    let manifests = store.manifests_at(known.id, web, 40).await.unwrap().unwrap();
    assert_eq!((manifests.actual, manifests.desired.as_deref()), (None, Some(r#"{"metadata":{}}"#)));
    // Whoever watches resources tells of the object alone: it stands beside what was to be, and is there.
    let live = r#"{"metadata":{"namespace":"shop","uid":"new"}}"#;
    let mut made = Report { has_source: false, from_reporter: false, ..resource("new", 50, 50) };
    made.object = Some(Text::new(live.to_owned()));
    (made.actual, made.desired, made.git, made.details) = (None, None, None, None);
    opened.keep(made).await;
    let manifests = store.manifests_at(known.id, web, 50).await.unwrap().unwrap();
    assert_eq!(manifests.actual.as_deref(), Some(live));
    assert_eq!(manifests.desired.as_deref(), Some(r#"{"metadata":{}}"#));
    let of_core = ("", "Deployment", "shop", "web");
    assert!(store.manifests_at(known.id, of_core, 100).await.unwrap().is_none(), "of another group");
    opened.close().await;
}

pub(crate) async fn resources_and_deployments_are_found_across_the_fleet(opened: Opened) {
    for (at, own) in [(1, "shop"), (2, "mail")] {
        let mut report = application(own, "production", "Healthy", "Synced", at);
        report.operation = operation(at, Some(at), "Succeeded");
        opened.keep(report).await;
    }
    opened.keep(resource("web", 3, 3)).await;
    let mut old = resource("old", 4, 4);
    old.entity.resource.as_mut().unwrap().name = "old-web_1".to_owned();
    old.deleted = true;
    opened.keep(old).await;
    let store = &opened.store;
    for (text, expected) in [
        ("web", vec![("web", false), ("old-web_1", true)]),
        ("WEB_", vec![("old-web_1", true)]),
        ("deployment", vec![("web", false), ("old-web_1", true)]),
        ("SHOP", vec![("web", false), ("old-web_1", true)]),
        ("Deployment/old-", vec![("old-web_1", true)]),
        ("service/web", vec![]),
        ("%", vec![]),
        ("", vec![("web", false), ("old-web_1", true)]),
    ] {
        let found = store.find_resources(&View::ALL, text, 10).await.unwrap();
        let found: Vec<_> = found.iter().map(|one| (&*one.name.name, one.gone)).collect();
        assert_eq!(found, expected, "{text}");
    }
    assert_eq!(store.find_resources(&View::ALL, "web", 1).await.unwrap().len(), 1);
    // One that changes is shown as it is, since when it is so; one that is there again is not gone.
    for (name, version, at, health) in [("web", 5, 5, "Degraded"), ("old-web_1", 6, 6, "Healthy")] {
        let mut report = resource(name, version, at);
        report.entity.resource.as_mut().unwrap().name = name.to_owned();
        report.health = Some(health.to_owned());
        opened.keep(report).await;
    }
    let found = store.find_resources(&View::ALL, "", 10).await.unwrap();
    let found: Vec<_> =
        found.iter().map(|one| (&*one.name.name, one.at, one.health.as_deref(), one.gone)).collect();
    let expected = [("old-web_1", 6, Some("Healthy"), false), ("web", 5, Some("Degraded"), false)];
    assert_eq!(found, expected);
    let all = store.deployments_of(&View::ALL, &Selection::default(), 0, 10).await.unwrap();
    assert_eq!(all.iter().map(|one| &*one.application.name).collect::<Vec<_>>(), ["mail", "shop"]);
    let behind = store.deployments_of(&View::ALL, &Selection::default(), 1, 10).await.unwrap();
    assert_eq!(behind, all[1..]);
    let conditions = vec![Condition::Text("shop".to_owned()), Condition::Commit("1".to_owned())];
    let some = store
        .deployments_of(&View::ALL, &Selection { conditions, ..Selection::default() }, 0, 10)
        .await
        .unwrap();
    assert_eq!(some.iter().map(|one| &*one.author).collect::<Vec<_>>(), ["Ada Byron <ada@example.com>"]);
    // What was deployed was, whatever becomes of its application: a day of the past keeps its number, and the list is of what is there.
    let mut gone = application("mail", "production", "Healthy", "Synced", 7);
    gone.deleted = true;
    opened.keep(gone).await;
    let listed = store.deployments_of(&View::ALL, &Selection::default(), 0, 10).await.unwrap();
    assert_eq!(listed.iter().map(|one| &*one.application.name).collect::<Vec<_>>(), ["shop"]);
    for view in [&View::ALL, &View::of_runtime("prod")] {
        let days = store.deployments_by_day(view, 0, 1).await.unwrap();
        assert_eq!((days[0].succeeded, days[0].failed), (2, 0));
    }
    opened.close().await;
}

pub(crate) async fn a_dry_run_changes_nothing_of_how_the_last_operation_stands(opened: Opened) {
    let told = async |own: &str, at: i64, phase: &str, is_dry_run: bool| {
        let mut report = application(own, "production", "Healthy", "Synced", at);
        report.operation = operation(at * HOUR, Some(at * HOUR), phase);
        report.operation.as_mut().unwrap().is_dry_run = is_dry_run;
        opened.keep(report).await;
    };
    told("failed", 1, "Failed", false).await;
    told("well", 2, "Succeeded", false).await;
    told("failed", 3, "Succeeded", true).await;
    told("well", 4, "Failed", true).await;
    let (needs, all) = opened.store.needs(&View::ALL, 9).await.unwrap();
    let needs: Vec<_> =
        needs.iter().map(|one| (&*one.application.name.name, &*one.phase, one.phase_at)).collect();
    assert_eq!((needs, all), (vec![("failed", "Failed", HOUR)], 1));
    told("failed", 5, "Succeeded", false).await;
    assert_eq!(opened.store.needs(&View::ALL, 9).await.unwrap().1, 0);
    opened.close().await;
}

pub(crate) async fn what_needs_somebody_is_told_with_its_reason_and_its_time(opened: Opened) {
    let states = [
        ("well", "Healthy", "Synced", "Succeeded"),
        ("out", "Healthy", "OutOfSync", "Succeeded"),
        ("failed", "Healthy", "Synced", "Failed"),
        ("broken", "Degraded", "Synced", "Succeeded"),
        ("not-compared", "Healthy", "Unknown", "Succeeded"),
    ];
    for (at, (own, health, sync, phase)) in (1..).zip(states) {
        let mut report = application(own, "production", health, sync, at);
        report.operation = operation(at * HOUR, Some(at * HOUR), phase);
        report.operation.as_mut().unwrap().message = "hook ended with 1".to_owned();
        opened.keep(report.clone()).await;
        // Said again: it is no less old.
        (report.at, report.version) = (at + 100, Some(at + 100));
        report.object = Some(Text::new(format!("{{\"again\":{at}}}")));
        opened.keep(report).await;
    }
    let (needs, all) = opened.store.needs(&View::ALL, 2).await.unwrap();
    let told: Vec<_> = needs.iter().map(|one| (&*one.application.name.name, one.health_since)).collect();
    assert_eq!((told, all), (vec![("broken", 4), ("failed", 3)], 4));
    // What is out of sync: how often it began to be, since when it was asked, and what of it is.
    let (every, _) = opened.store.needs(&View::ALL, 9).await.unwrap();
    let names: Vec<_> = every.iter().map(|one| &*one.application.name.name).collect();
    assert_eq!(names, ["broken", "failed", "out", "not-compared"]);
    let out = every.iter().find(|one| one.application.name.name == "out").unwrap().id;
    let drifting = async |of: &[i64], since| opened.store.drifting(of, since).await.unwrap();
    assert_eq!(drifting(&[], 0).await.len(), 0);
    let known = drifting(&[out, every[0].id], 0).await;
    assert_eq!((known.len(), known[&out].times, &known[&out].last), (1, 1, &None));
    let mut part = report("out/web", 7, 50);
    part.entity.app_name = "out".to_owned();
    part.entity.resource = resource("web", 7, 50).entity.resource;
    part.sync = Some("OutOfSync".to_owned());
    part.desired = Some(Text::new(r#"{"replicas":6}"#.to_owned()));
    let mut before = part.clone();
    before.entity.resource.as_mut().unwrap().name = "before".to_owned();
    (before.uid, before.at) = ("before".to_owned(), 40);
    opened.keep(before).await;
    opened.keep(part).await;
    let known = drifting(&[out], 3).await;
    let last = known[&out].last.clone().unwrap();
    assert_eq!((known[&out].times, &*last.kind, &*last.name, last.onset), (0, "Deployment", "web", 50));
    let (actual, desired) = opened.store.drift_manifests(&last.manifests).await.unwrap();
    assert_eq!(desired.as_deref(), Some(r#"{"replicas":6}"#));
    assert!(actual.is_some_and(|actual| actual.contains("out/web")));
    assert_eq!(
        (&*needs[1].phase, needs[1].phase_at, &*needs[1].phase_message),
        ("Failed", 3 * HOUR, "hook ended with 1")
    );
    let runtimes = opened.store.runtimes(&View::ALL).await.unwrap();
    assert_eq!((runtimes.len(), &*runtimes[0].name), (1, "prod"));
    assert_eq!((runtimes[0].applications, runtimes[0].healthy), (5, 4));
    assert!(runtimes[0].heard_at.is_some() && runtimes[0].lag.is_some());
    let days = opened.store.deployments_by_day(&View::ALL, 2 * HOUR - 24 * HOUR, 2).await.unwrap();
    let days: Vec<_> = days.iter().map(|day| (day.succeeded, day.failed)).collect();
    assert_eq!(days, [(1, 0), (3, 1)]);
    opened.close().await;
}

pub(crate) async fn what_changed_is_told_from_a_place_on_or_is_too_much(opened: Opened) {
    let store = &opened.store;
    assert_eq!(store.sequence().await.unwrap(), 0);
    opened.keep(application("shop", "production", "Healthy", "Synced", 1)).await;
    let first = store.sequence().await.unwrap();
    let these = |names: &[&str]| ChangedNames::These(names.iter().map(|own| name(own)).collect());
    assert_eq!(store.changed(&View::ALL, 0).await.unwrap(), Changed { upto: first, names: these(&["shop"]) });
    assert_eq!(store.changed(&View::ALL, first).await.unwrap(), Changed { upto: first, names: these(&[]) });
    // A place that there is not yet, as after a restored backup.
    assert_eq!(store.changed(&View::ALL, first + 1).await.unwrap().names, ChangedNames::TooMany);
    // The commits of a sync, which are told apart from it: at first, when more is known, and never of the same once more.
    let runtime = opened.runtime.id;
    let brought = async |application: &str, revision: &str| {
        let source = SourceChange { revision: revision.to_owned(), ..SourceChange::default() };
        store.keep_changes(runtime, ("argocd", application), 1_000, vec![source]).await.unwrap();
        store.sequence().await.unwrap()
    };
    let mut place = first;
    for revision in ["a", "b"] {
        let next = brought("shop", revision).await;
        assert!(next > place, "{next} is not behind {place}");
        let changed = Changed { upto: next, names: these(&["shop"]) };
        assert_eq!(store.changed(&View::ALL, place).await.unwrap(), changed);
        place = next;
    }
    assert_eq!(brought("shop", "b").await, place);
    let next = brought("nobody-has-told-of-it", "a").await;
    assert_eq!(store.changed(&View::ALL, place).await.unwrap(), Changed { upto: next, names: these(&[]) });
    opened.keep(resource("web", 2, 2)).await;
    opened.keep(resource("web", 3, 3)).await;
    assert!(store.sequence().await.unwrap() > next, "numbers are given once");
    assert_eq!(store.changed(&View::ALL, next).await.unwrap().names, these(&["shop"]));
    // The same with their states, of those alone that are asked for.
    let visible = async |which: &Which, after: i64| {
        let found = store.visible_changed(&View::ALL, which, after).await.unwrap();
        let of = |one: SeenApplication| (one.state.name, one.state.health.unwrap_or_default());
        (found.upto, found.applications.map(|all| all.into_iter().map(of).collect::<Vec<_>>()))
    };
    let last = store.sequence().await.unwrap();
    let shop = ("shop".to_owned(), "Healthy".to_owned());
    assert_eq!(visible(&Which::default(), 0).await, (last, Some(vec![shop.clone()])));
    assert_eq!(visible(&Which::default(), next).await, (last, Some(vec![shop])));
    assert_eq!(visible(&Which::default(), last).await, (last, Some(Vec::new())));
    assert_eq!(visible(&Which::default(), last + 1).await, (last, None));
    let other = Which { prefix: Some("sho!".to_owned()), ..Which::default() };
    assert_eq!(visible(&other, 0).await, (last, Some(Vec::new())));
    for number in 0..201 {
        opened.keep(application(&format!("many{number}"), "production", "Healthy", "Synced", 5)).await;
    }
    assert_eq!(store.changed(&View::ALL, first).await.unwrap().names, ChangedNames::TooMany);
    assert_eq!(visible(&Which::default(), first).await.1, None);
    let few = Which { prefix: Some("many20".to_owned()), ..Which::default() };
    assert_eq!(visible(&few, first).await.1.unwrap().len(), 2, "what is not asked for is not counted");
    opened.close().await;
}
