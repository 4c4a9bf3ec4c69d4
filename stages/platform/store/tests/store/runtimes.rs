//! Runtimes as people and their programs know them: each of these holds on both databases.

use std::time::Duration;

use pipeline_core::ExposeSecret as _;
use stages_platform_store::{
    FleetRuntime, HeardRole, Place, RefusedReports, Report, Retention, Runtime, SEALING_KEYS, SealingKey,
    SharedConfiguration, TOLD_CLUSTERS, ToldCluster, VersionSource, View, Which, adopt, create_token,
};

use crate::accounts::{NOW, by};
use crate::contract::retained;
use crate::support::{KEEP_ALL, Opened, on, report, resource};

/// Runs them on a place that is new each time it is asked for.
pub(crate) async fn hold(place: &mut impl AsyncFnMut() -> Place) {
    on(place, a_runtime_is_registered_once_and_taken_away).await;
    on(place, what_is_heard_of_a_runtime_and_refused_of_it_is_told_beside_its_reports).await;
    on(place, an_adopter_keeps_its_name_and_has_an_id_beside_that_no_other_has).await;
    on(place, what_a_runtime_told_of_a_cluster_last_is_kept_and_of_the_newest_thousand).await;
    on(place, a_cluster_that_two_whole_lists_of_its_runtime_do_not_name_is_gone).await;
    on(place, sealing_keys_are_kept_once_each_and_so_many).await;
    on(place, the_shared_repository_is_suggested_once_and_set_at_any_time).await;
    on(place, where_versions_stand_goes_with_the_runtime_and_not_with_one_that_is_called_alike).await;
    on(place, a_runtime_whose_token_was_taken_away_goes_with_all_that_is_said_of_it).await;
}

async fn where_versions_stand_goes_with_the_runtime_and_not_with_one_that_is_called_alike(opened: Opened) {
    let store = &opened.store;
    let source = VersionSource { file: "Chart.yaml".to_owned(), json_path: "$.version".to_owned() };
    let (own, alike) = ("prod_eu", ["prod_eu2", "prod.eu", "PROD_EU"]);
    for name in [own].into_iter().chain(alike) {
        store.register(&by(), name, "{}", false, NOW).await.unwrap().expect("is new");
        for application in [None, Some(("argocd", "shop"))] {
            store.set_version_source(&by(), (name, application), Some(&source), NOW).await.unwrap();
        }
        // The one of the runtime is found by any other application.
        assert!(store.version_source(name, ("argocd", "cart")).await.unwrap().is_some());
    }
    assert!(store.unregister(&by(), own, NOW).await.unwrap());
    store.register(&by(), own, "{}", false, NOW).await.unwrap().expect("is new");
    for application in [("argocd", "shop"), ("argocd", "cart")] {
        assert_eq!(store.version_source(own, application).await.unwrap(), None);
        for name in alike {
            assert!(store.version_source(name, application).await.unwrap().is_some(), "{name}");
        }
    }
    opened.close().await;
}

async fn an_adopter_keeps_its_name_and_has_an_id_beside_that_no_other_has(opened: Opened) {
    let store = &opened.store;
    let register = async |name: &str| store.register(&by(), name, "{}", false, NOW).await;
    let token = register("prod-eu").await.unwrap().expect("is new");
    assert_eq!(store.runtime(&token).await.unwrap().unwrap().name, "prod-eu");
    assert!(register("prod-eu").await.unwrap().is_none(), "the name is taken");
    let called = async |text: &str| store.runtime_called(text).await.unwrap();
    for text in ["prod-eu", "prodeu3312b6955a"] {
        assert_eq!(called(text).await.as_deref(), Some("prod-eu"), "{text}");
    }
    // One with a name of the form is told by it, and one that is told by nothing is not there.
    assert_eq!(called("prod").await.as_deref(), Some("prod"));
    assert_eq!((called("").await, called("prodeu").await), (None, None));
    // Whoever would be told by the id of another is refused, whichever was there first.
    let taken = register("prodeu3312b6955a").await.unwrap_err().to_string();
    let said = |name: &str, of: &str| {
        format!("'{name}' would have the id 'prodeu3312b6955a', which '{of}' has: choose another name")
    };
    assert_eq!(taken, said("prodeu3312b6955a", "prod-eu"));
    let taken = create_token(&opened.place, "prodeu3312b6955a").await.unwrap_err().to_string();
    assert_eq!(taken, said("prodeu3312b6955a", "prod-eu"));
    register("prodeu2740657d7b").await.unwrap().expect("is new");
    let taken = register("prod.eu").await.unwrap_err().to_string();
    assert_eq!(
        taken,
        "'prod.eu' would have the id 'prodeu2740657d7b', which 'prodeu2740657d7b' has: choose another name"
    );
    // A token by hand is of a new runtime, unless it is said that it is there already.
    let text = "'Prod_EU' is no name of a runtime: lower-case letters and digits, a letter first, at most 38";
    assert_eq!(create_token(&opened.place, "Prod_EU").await.unwrap_err().to_string(), text);
    let token = adopt(&opened.place, "Prod_EU").await.unwrap();
    assert_eq!(store.runtime(&token).await.unwrap().unwrap().name, "Prod_EU");
    let text = "'a/b' is no name of a runtime: an adopter's has letters, digits, '-', '_' and '.', begins and ends with one of the \
                first two, and has at most 63";
    assert_eq!(adopt(&opened.place, "a/b").await.unwrap_err().to_string(), text);
    opened.close().await;
}

async fn what_is_heard_of_a_runtime_and_refused_of_it_is_told_beside_its_reports(opened: Opened) {
    let (store, id) = (&opened.store, opened.runtime.id);
    let told = async || store.runtimes(&View::ALL).await.unwrap().remove(0);
    opened.keep(report("u", 1, 77)).await;
    let reported = told().await.heard_at.unwrap();
    store.keep_heard(id, ("reporter", "1.2.3"), reported + 5_000).await.unwrap();
    opened.keep(Report { has_source: false, from_reporter: false, ..resource("r", 1, 76) }).await;
    let heard_at = told().await.heard_at;
    assert_eq!(heard_at, Some(reported + 5_000), "whoever watches resources says nothing of the reporter");
    store.keep_heard(id, ("", ""), reported + 4_000).await.unwrap();
    store.keep_heard(id, ("change-revision", ""), reported + 8_000).await.unwrap();
    store.keep_heard(id, ("reporter", "1.2.4"), reported + 7_000).await.unwrap();
    let now = told().await;
    assert_eq!(
        (now.heard_at, now.reported_at),
        (Some(reported + 7_000), Some(77)),
        "another role says nothing of the reporter"
    );
    let role = |role: &str, version: &str, after: i64| HeardRole {
        role: role.to_owned(),
        version: version.to_owned(),
        at: reported + after,
    };
    assert_eq!(now.roles, [role("change-revision", "", 8_000), role("reporter", "1.2.4", 7_000)]);
    assert_eq!(store.roles("prod").await.unwrap(), now.roles);
    assert_eq!(store.roles("none").await.unwrap(), []);
    assert_eq!(now.refused, []);

    store.count_refused(Some(id), &[("malformed", 2), ("quota", 5)], NOW).await.unwrap();
    store.count_refused(Some(id), &[("malformed", 4)], NOW + 1).await.unwrap();
    store.count_refused(None, &[("unauthorized", 3)], NOW).await.unwrap();
    let refused =
        |reason: &str, number: u64, at: i64| RefusedReports { reason: reason.to_owned(), number, at };
    assert_eq!(told().await.refused, [refused("malformed", 6, NOW + 1), refused("quota", 5, NOW)]);
    assert_eq!(store.refused_of_nobody().await.unwrap(), [refused("unauthorized", 3, NOW)]);
    // Whoever is no runtime any more has no roles; of when it was heard of last stays with what it reported.
    assert!(store.unregister(&by(), "prod", NOW).await.unwrap());
    let left = told().await;
    assert_eq!((left.roles, left.heard_at), (Vec::new(), Some(reported + 8_000)));
    opened.close().await;
}

async fn a_runtime_is_registered_once_and_taken_away(opened: Opened) {
    let store = &opened.store;
    let text = "'EU/1' is no name of a runtime: an adopter's has letters, digits, '-', '_' and '.', begins and ends with one of the \
                first two, and has at most 63";
    assert_eq!(store.register(&by(), "EU/1", "{}", false, NOW).await.unwrap_err().to_string(), text);
    let token =
        store.register(&by(), "eu1", r#"{"cluster":"c"}"#, false, NOW).await.unwrap().expect("is new");
    assert_eq!(store.runtime(&token).await.unwrap().unwrap().name, "eu1");
    assert!(store.register(&by(), "eu1", "{}", false, NOW).await.unwrap().is_none(), "the name is taken");
    assert!(
        store.register(&by(), "prod", "{}", false, NOW).await.unwrap().is_none(),
        "so is one with a token"
    );
    // Whoever lost the answer is given the same token; another installation, and one whose token was taken back, none.
    let by_installation = async |name: &str, digit: &str| {
        let secret = digit.repeat(64).into();
        store.register_installation(&by(), (name, "{}"), &secret, NOW).await.unwrap()
    };
    let lost = by_installation("eu2", "a").await.expect("is new");
    let found = by_installation("eu2", "a").await.expect("is the same installation");
    assert_eq!(lost.expose_secret(), found.expose_secret());
    assert_eq!(store.runtime(&found).await.unwrap().unwrap().name, "eu2");
    assert!(by_installation("eu2", "b").await.is_none() && by_installation("eu1", "a").await.is_none());
    let tokens = store.tokens().await.unwrap();
    let of_eu2: Vec<_> = tokens.iter().filter(|token| token.runtime == "eu2").collect();
    assert_eq!(of_eu2.len(), 1);
    assert!(store.remove_token(&by(), &of_eu2[0].name, NOW).await.unwrap());
    assert!(by_installation("eu2", "a").await.is_none());
    assert_eq!(store.runtime(&found).await.unwrap(), None);
    assert!(store.unregister(&by(), "eu2", NOW).await.unwrap());
    let key = store.store_key("eu1").await.unwrap().unwrap();
    let again = store.register(&by(), "eu1", r#"{"cluster":"d"}"#, true, NOW).await.unwrap().unwrap();
    assert_eq!(store.runtime(&again).await.unwrap().unwrap().name, "eu1");
    assert_eq!(store.store_key("eu1").await.unwrap().unwrap().expose_secret(), key.expose_secret());
    assert!(store.store_key("prod").await.unwrap().is_none());
    let further = store.add_token(&by(), "eu1", NOW).await.unwrap().unwrap();
    assert_eq!(store.runtime(&further).await.unwrap().unwrap().name, "eu1");
    assert!(store.add_token(&by(), "none", NOW).await.unwrap().is_none());
    // Its version is that which it said last: when it was registered, or since.
    let version = async || store.registrations(Some("eu1")).await.unwrap().remove(0).version;
    assert_eq!(version().await, "");
    assert!(store.keep_version("eu1", "1.2.4").await.unwrap());
    assert!(!store.keep_version("none", "1.2.4").await.unwrap());
    assert_eq!(version().await, "1.2.4");
    let said = r#"{"cluster":"d","runtimeVersion":"1.2.5"}"#;
    assert!(store.register(&by(), "eu1", said, true, NOW).await.unwrap().is_some());
    assert_eq!(version().await, "1.2.5");
    let seen = store.runtimes(&View::ALL).await.unwrap();
    let seen: Vec<_> = seen.iter().map(|one| (&*one.name, &*one.version)).collect();
    assert_eq!(seen, [("eu1", "1.2.5"), ("eu2", ""), ("prod", "")]);
    assert!(store.register(&by(), "eu1", r#"{"cluster":"d"}"#, true, NOW).await.unwrap().is_some());
    assert!(store.keep_problems("eu1", r#"["it hurts"]"#, NOW).await.unwrap());
    assert!(!store.keep_problems("none", "[]", NOW).await.unwrap());
    let told = store.runtimes(&View::ALL).await.unwrap();
    let told: Vec<_> = told.iter().map(|one| (&*one.name, &*one.problems)).collect();
    assert_eq!(told, [("eu1", r#"["it hurts"]"#), ("eu2", "[]"), ("prod", "[]")]);
    // Whoever says so lives.
    let heard = store.registrations(Some("eu1")).await.unwrap().remove(0).heard_at;
    assert_eq!(heard, Some(NOW));
    opened.keep(report("u", 1, 77)).await;
    let listed = store.registrations(None).await.unwrap();
    let listed: Vec<_> =
        listed.iter().map(|one| (&*one.name, &*one.body, &*one.problems, one.last_report)).collect();
    assert_eq!(
        listed,
        [("eu1", r#"{"cluster":"d"}"#, r#"["it hurts"]"#, None), ("prod", "{}", "[]", Some(77)),]
    );
    assert!(store.unregister(&by(), "eu1", NOW).await.unwrap());
    assert!(!store.unregister(&by(), "eu1", NOW).await.unwrap());
    for token in [&token, &again, &further] {
        assert_eq!(store.runtime(token).await.unwrap(), None);
    }
    assert_eq!(store.registrations(Some("eu1")).await.unwrap(), []);
    // Nobody speaks for it any more.
    assert!(!store.keep_problems("eu1", r#"["it hurts"]"#, NOW + 1).await.unwrap());
    assert!(!store.keep_version("eu1", "1.2.6").await.unwrap());
    let gone = store.runtimes(&View::ALL).await.unwrap().remove(0);
    assert_eq!((&*gone.name, &*gone.problems, &*gone.version, gone.roles), ("eu1", "[]", "", Vec::new()));
    assert!(
        store.register(&by(), "eu1", "{}", false, NOW).await.unwrap().is_some(),
        "its name is free again"
    );
    opened.close().await;
}

async fn what_a_runtime_told_of_a_cluster_last_is_kept_and_of_the_newest_thousand(opened: Opened) {
    let (store, id) = (&opened.store, opened.runtime.id);
    let cluster = |name: &str, status: &str| ToldCluster {
        runtime: "prod".to_owned(),
        name: name.to_owned(),
        server: format!("https://{name}"),
        status: status.to_owned(),
        message: Some("it is".to_owned()),
        resources: Some(7),
        api_versions: vec!["v1".to_owned(), "apps/v1".to_owned()],
        ..ToldCluster::default()
    };
    let listed = |one: ToldCluster| ToldCluster { api_versions: Vec::new(), ..one };
    store.keep_clusters(id, vec![cluster("east", "Failed"), cluster("west", "Failed")], NOW).await.unwrap();
    store.keep_clusters(id, vec![cluster("east", "Successful")], NOW + 1).await.unwrap();
    let told = store.told_clusters(Some("prod"), 10).await.unwrap();
    assert_eq!(told, [listed(cluster("east", "Successful")), listed(cluster("west", "Failed"))]);
    assert_eq!(store.told_clusters(None, 1).await.unwrap().len(), 1);
    assert_eq!(store.told_clusters(Some("none"), 10).await.unwrap(), []);
    assert_eq!(store.api_versions("prod", "east").await.unwrap(), ["v1", "apps/v1"]);
    assert_eq!(store.api_versions("prod", "none").await.unwrap(), [""; 0]);
    // Those that were told of longest ago go.
    let many = (0..TOLD_CLUSTERS - 1).map(|n| cluster(&format!("c{n:04}"), "Unknown")).collect();
    store.keep_clusters(id, many, NOW + 2).await.unwrap();
    let told = store.told_clusters(None, 2_000).await.unwrap();
    assert_eq!(told.len(), TOLD_CLUSTERS);
    assert!(told.iter().any(|one| one.name == "east") && told.iter().all(|one| one.name != "west"));
    assert!(store.unregister(&by(), "prod", NOW).await.unwrap());
    assert_eq!(store.told_clusters(None, 10).await.unwrap(), []);
    opened.close().await;
}

async fn a_cluster_that_two_whole_lists_of_its_runtime_do_not_name_is_gone(opened: Opened) {
    let (store, id) = (&opened.store, opened.runtime.id);
    let tell = async |names: &[&str]| {
        let cluster = |name: &&str| ToldCluster { name: (*name).to_owned(), ..ToldCluster::default() };
        store.keep_clusters(id, names.iter().map(cluster).collect(), NOW).await.unwrap();
        let told = store.told_clusters(None, 10).await.unwrap();
        told.into_iter().map(|one| one.name).collect::<Vec<_>>().concat()
    };
    // Each list is told in parts, and in another order than the one before.
    assert_eq!((tell(&["a", "b"]).await, tell(&["c", "d"]).await), ("ab".to_owned(), "abcd".to_owned()));
    assert_eq!((tell(&["d", "b"]).await, tell(&["c", "a"]).await), ("abcd".to_owned(), "abcd".to_owned()));
    // It is named no more.
    assert_eq!((tell(&["a"]).await, tell(&["c", "b"]).await), ("abcd".to_owned(), "abcd".to_owned()));
    assert_eq!((tell(&["c", "b"]).await, tell(&["a"]).await), ("abcd".to_owned(), "abcd".to_owned()));
    assert_eq!(tell(&["a"]).await, "abc", "a third list begins without it");
    // A list that breaks off, and one that begins twice, take nothing away that the next names.
    assert_eq!(tell(&["b", "c"]).await, "abc");
    assert_eq!((tell(&["a"]).await, tell(&["a"]).await), ("abc".to_owned(), "abc".to_owned()));
    assert_eq!(tell(&["b", "c"]).await, "abc");
    // To say nothing is no list.
    for _ in 0..5 {
        assert_eq!(tell(&[]).await, "abc");
    }
    // Whatever comes back is told again.
    assert_eq!(tell(&["d"]).await, "abcd");
    opened.close().await;
}

async fn sealing_keys_are_kept_once_each_and_so_many(opened: Opened) {
    let (store, own) = (&opened.store, &opened.runtime);
    let key = |n: usize| {
        let pem = format!("-----BEGIN PRIVATE KEY-----\na2V5{n}\n-----END PRIVATE KEY-----\n");
        SealingKey::read(&pem.into()).unwrap()
    };
    let keep = async |n: usize| store.keep_sealing_key(own, &key(n), NOW).await.unwrap();
    let first = keep(0).await.expect("is kept");
    assert_eq!(keep(0).await.as_ref(), Some(&first));
    for n in 1..SEALING_KEYS {
        assert!(keep(n).await.is_some());
    }
    assert_eq!(keep(SEALING_KEYS).await, None);
    let found = store.sealing_key(own, &first).await.unwrap().unwrap();
    assert_eq!(found.expose(), key(0).expose());
    store.register(&by(), "eu1", "{}", false, NOW).await.unwrap().unwrap();
    let id = store.runtime_named("eu1").await.unwrap().unwrap();
    let other = Runtime { id, name: "eu1".to_owned() };
    assert!(store.sealing_key(&other, &first).await.unwrap().is_none());
    assert!(
        store.keep_sealing_key(&other, &key(0), NOW).await.unwrap().is_some(),
        "another may have the same"
    );
    assert!(store.unregister(&by(), "prod", NOW).await.unwrap());
    assert!(store.sealing_key(own, &first).await.unwrap().is_none());
    opened.close().await;
}

async fn the_shared_repository_is_suggested_once_and_set_at_any_time(opened: Opened) {
    let store = &opened.store;
    let shared = |repository: &str, provider: Option<&str>| SharedConfiguration {
        git_provider: provider.map(str::to_owned),
        git_api_url: None,
        repository: repository.to_owned(),
    };
    let (one, two) = (shared("https://a.b/c/d.git", None), shared("https://a.b/c/e.git", Some("GITHUB")));
    assert_eq!(store.shared_configuration().await.unwrap(), None);
    let suggest = async |of: &SharedConfiguration| {
        store.suggest_shared_configuration(&by(), of.clone(), NOW).await.unwrap()
    };
    assert_eq!((suggest(&one).await, suggest(&two).await), (one.clone(), one.clone()));
    store.set_shared_configuration(&by(), &two, NOW).await.unwrap();
    assert_eq!(suggest(&one).await, two);
    assert_eq!(store.shared_configuration().await.unwrap(), Some(two));
    // The runtime that was added first of those that there are.
    store.register(&by(), "eu1", "{}", false, NOW - 1).await.unwrap().unwrap();
    assert_eq!(store.first_runtime().await.unwrap().as_deref(), Some("prod"));
    assert!(store.unregister(&by(), "prod", NOW).await.unwrap());
    assert_eq!(store.first_runtime().await.unwrap().as_deref(), Some("eu1"));
    opened.close().await;
}

/// Whoever reads a list in pages compares places by their bytes, or has the database compare them in its own order.
pub(crate) async fn lists_leave_nothing_out_whichever_language_the_database_has(opened: Opened) {
    let store = &opened.store;
    for name in ["c", "B", "a"] {
        store.register(&by(), name, "{}", false, NOW).await.unwrap().expect("is new");
        let mut of = report("u", 1, 1);
        name.clone_into(&mut of.entity.app_name);
        opened.keep(of).await;
    }
    let names = |all: Vec<FleetRuntime>| all.into_iter().map(|one| one.name).collect::<Vec<_>>();
    assert_eq!(
        names(store.runtimes(&View::ALL).await.unwrap()),
        ["a", "B", "c", "prod"],
        "it has a language"
    );
    let all = store.registrations(None).await.unwrap();
    let names: Vec<_> = all.iter().map(|one| &*one.name).collect();
    assert_eq!(names, ["B", "a", "c", "prod"], "by their bytes");
    let mut after = (String::new(), String::new(), String::new());
    let mut seen = Vec::new();
    let which = Which::default();
    loop {
        let place = (&*after.0, &*after.1, &*after.2);
        let page = store.visible(&View::ALL, &which, place, 1).await.unwrap();
        let ends = store.ends(&View::ALL, &which, place, (1, 1)).await.unwrap();
        assert_eq!(ends.len(), page.len());
        let Some((one, end)) = page.into_iter().zip(ends).next() else { break };
        assert_eq!((&one.runtime, &one.state.name), (&end.runtime, &end.name));
        seen.push(one.state.name);
        after = (end.runtime, end.namespace, end.name);
    }
    seen.sort();
    assert_eq!(seen, ["B", "a", "c"]);
    opened.close().await;
}

/// It was never registered, and yet said what is wrong with it, and what a sync that begins at the end of time brings.
async fn a_runtime_whose_token_was_taken_away_goes_with_all_that_is_said_of_it(opened: Opened) {
    let store = &opened.store;
    let token = create_token(&opened.place, "other").await.unwrap();
    let other = store.runtime(&token).await.unwrap().unwrap().id;
    assert!(store.keep_problems("other", r#"[{"level":"error"}]"#, 1).await.unwrap());
    store.keep_changes(other, ("argocd", "shop"), i64::MAX / 2, Vec::new()).await.unwrap();
    let all = store.tokens().await.unwrap();
    let token = all.iter().find(|token| token.runtime == "other").unwrap();
    assert!(store.remove_token(&by(), &token.name, NOW).await.unwrap());
    let retention = Retention { history: Duration::ZERO, keys: Duration::ZERO, ..KEEP_ALL };
    let names = async || store.runtimes(&View::ALL).await.unwrap().len();
    assert_eq!(names().await, 2);
    retained(&opened, retention, async || names().await == 1).await;
    opened.close().await;
}
