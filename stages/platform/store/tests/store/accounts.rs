//! The contract of accounts: each of these holds on both databases.

use pipeline_core::{ExposeSecret as _, SecretString};
use serde_json::json;
use stages_platform_store::{
    Account, Action, By, Entity, KnownKey, Link, Place, Retention, RetentionDays, Role, Rule, Scope,
    SeenApplication, Store, Subject, View, Which, create_token,
};

use crate::identities;
use crate::keys;
use crate::runtimes;
use crate::saved_views;
use crate::support::{KEEP_ALL, Opened, digest, on, open, open_with, operation, report};

pub(crate) const NOW: i64 = 1_795_000_000_000;
pub(crate) const MINUTE: i64 = 60_000;

/// Runs the contract on a place that is new each time it is asked for.
pub(crate) async fn hold(place: &mut impl AsyncFnMut() -> Place) {
    on(place, the_first_account_is_made_by_a_link_once).await;
    on(place, whoever_is_invited_sets_a_password_once).await;
    Box::pin(a_session_is_somebodys_until_it_ends(&place().await)).await;
    Box::pin(sessions_that_have_ended_are_taken_away(&place().await)).await;
    on(place, people_have_roles_and_teams_and_the_last_admin_stays).await;
    on(place, a_password_that_changes_ends_the_other_sessions).await;
    on(place, a_pass_is_somebodys_on_one_runtime_for_a_minute).await;
    on(place, whoever_is_disabled_comes_in_by_nothing_and_the_last_admin_stays).await;
    Box::pin(keys::hold(place)).await;
    Box::pin(identities::hold(place)).await;
    Box::pin(how_long_what_is_kept_is_set_and_outlives_the_process(&place().await)).await;
    Box::pin(runtimes::hold(place)).await;
    Box::pin(saved_views::hold(place)).await;
    on(place, what_somebody_sees_in_a_list_is_what_they_may_see).await;
    on(place, every_act_is_in_the_audit_log).await;
    Box::pin(a_number_that_was_somebodys_never_comes_back(&place().await)).await;
}

pub(crate) fn ada() -> Account {
    Account { name: "ada".to_owned(), password: "$argon2id$made-up".to_owned(), role: Role::Admin }
}

/// A store with `ada` in it.
pub(crate) async fn with_ada(opened: Opened) -> Opened {
    opened.store.keep_link(digest("link"), NOW + MINUTE).await.unwrap();
    assert!(opened.store.use_link(digest("link"), NOW, &ada()).await.unwrap());
    opened
}

/// Each of two has an account that is told from any other.
pub(crate) async fn each_has_a_uid(store: &Store, names: [&str; 2]) {
    let [one, other] = names.map(async |name| store.access(name, NOW).await.unwrap().unwrap().uid);
    let (one, other) = (one.await, other.await);
    for uid in [&one, &other] {
        assert!(uid.len() == 32 && uid.bytes().all(|byte| byte.is_ascii_hexdigit()), "{uid}");
    }
    assert_ne!(one, other);
}

async fn the_first_account_is_made_by_a_link_once(opened: Opened) {
    let store = &opened.store;
    assert!(!store.has_accounts().await.unwrap());
    store.keep_link(digest("earlier"), NOW + MINUTE).await.unwrap();
    store.keep_link(digest("link"), NOW + MINUTE).await.unwrap();
    assert!(store.link(digest("earlier"), NOW).await.unwrap().is_none(), "a later link makes it useless");
    assert!(store.link(digest("link"), NOW + MINUTE - 1).await.unwrap().is_some());
    assert!(store.link(digest("link"), NOW + MINUTE).await.unwrap().is_none(), "it has ended");
    assert!(!store.use_link(digest("link"), NOW + MINUTE, &ada()).await.unwrap());
    assert!(!store.use_link(digest("earlier"), NOW, &ada()).await.unwrap());
    assert_eq!((store.has_accounts().await.unwrap(), store.account("ada").await.unwrap()), (false, None));

    let (ada, eve) = (ada(), Account { name: "eve".to_owned(), ..ada() });
    let (first, second) =
        tokio::join!(store.use_link(digest("link"), NOW, &ada), store.use_link(digest("link"), NOW, &eve));
    assert_ne!(first.unwrap(), second.unwrap(), "one of two that use a link at once");
    let found = (store.account("ada").await.unwrap(), store.account("eve").await.unwrap());
    assert!(matches!(found, (Some(_), None) | (None, Some(_))), "{found:?}");
    assert!(store.has_accounts().await.unwrap());
    assert!(store.link(digest("link"), NOW).await.unwrap().is_none());

    // A name that is somebody's: the link stays good for another.
    let taken = found.0.or(found.1).unwrap();
    assert_eq!((&*taken.password, taken.role), ("$argon2id$made-up", Role::Admin));
    store.keep_link(digest("again"), NOW + MINUTE).await.unwrap();
    assert!(!store.use_link(digest("again"), NOW, &taken).await.unwrap());
    assert!(store.link(digest("again"), NOW).await.unwrap().is_some());
    opened.close().await;
}

async fn whoever_is_invited_sets_a_password_once(opened: Opened) {
    let opened = with_ada(opened).await;
    let (store, until, teams) = (&opened.store, NOW + MINUTE, ["shop".to_owned()]);
    assert!(store.invite(&by(), &lin(), &teams, (digest("one"), until), NOW).await.unwrap());
    assert!(!store.invite(&by(), &lin(), &teams, (digest("two"), until), NOW).await.unwrap(), "a name once");
    let of = Some(Link::PasswordOf("lin".to_owned()));
    assert_eq!(store.link(digest("one"), NOW).await.unwrap(), of);
    // It makes no account, is good for nobody else, and not after its end; another makes it useless.
    assert!(!store.use_link(digest("one"), NOW, &Account { name: "eve".to_owned(), ..ada() }).await.unwrap());
    assert!(!store.use_link_for(digest("one"), NOW, "ada", "hash").await.unwrap());
    assert!(!store.use_link_for(digest("one"), until, "lin", "hash").await.unwrap());
    assert!(store.keep_link_for(&by(), "lin", (digest("three"), until), NOW).await.unwrap());
    assert_eq!(store.link(digest("one"), NOW).await.unwrap(), None);
    assert!(store.use_link_for(digest("three"), NOW, "lin", "hash").await.unwrap());
    assert!(!store.use_link_for(digest("three"), NOW, "lin", "hash").await.unwrap(), "once");
    assert_eq!(store.account("lin").await.unwrap().unwrap().password, "hash");
    assert_eq!(store.people().await.unwrap()[1].teams, teams);
    opened.close().await;
}

async fn a_session_is_somebodys_until_it_ends(place: &Place) {
    let opened = with_ada(open(place).await).await;
    let store = &opened.store;
    let refused = store.keep_session(digest("none"), "nobody", NOW, NOW + MINUTE).await.unwrap_err();
    assert_eq!(refused.to_string(), "what was to be changed is not there any more: nothing was changed");
    store.keep_session(digest("one"), "ada", NOW, NOW + MINUTE).await.unwrap();
    store.keep_session(digest("two"), "ada", NOW, NOW + 2 * MINUTE).await.unwrap();
    let whose = async |session, now| opened.store.session(digest(session), now).await.unwrap();
    assert_eq!(whose("none", NOW).await, None);
    assert_eq!(whose("one", NOW + MINUTE - 1).await.as_deref(), Some("ada"));
    assert_eq!(whose("one", NOW + MINUTE).await, None);
    assert_eq!(whose("two", NOW + MINUTE).await.as_deref(), Some("ada"));
    store.end_session(digest("two")).await.unwrap();
    store.end_session(digest("two")).await.unwrap();
    assert_eq!(whose("two", NOW).await, None);
    assert_eq!(whose("one", NOW).await.as_deref(), Some("ada"));
    // What is kept outlives the process.
    opened.close().await;
    let opened = open(place).await;
    assert_eq!(opened.store.session(digest("one"), NOW).await.unwrap().as_deref(), Some("ada"));
    opened.close().await;
}

async fn sessions_that_have_ended_are_taken_away(place: &Place) {
    let interval = std::time::Duration::from_millis(10);
    let opened = with_ada(open_with(place, Retention { interval, ..KEEP_ALL }).await).await;
    let store = &opened.store;
    let now = jiff::Timestamp::now().as_millisecond();
    store.keep_session(digest("over"), "ada", now - 2 * MINUTE, now - MINUTE).await.unwrap();
    store.keep_session(digest("on"), "ada", now, now + 600 * MINUTE).await.unwrap();
    store.keep_link(digest("over"), now - MINUTE).await.unwrap();
    let stop = pipeline_core::Shutdown::new();
    let gone = async {
        // Before their end by the clock that is asked with, they are seen for as long as they are kept.
        while opened.store.session(digest("over"), now - 2 * MINUTE).await.unwrap().is_some()
            || opened.store.link(digest("over"), now - 2 * MINUTE).await.unwrap().is_some()
        {
            tokio::time::sleep(interval).await;
        }
        stop.cancel();
    };
    let both = async { tokio::join!(store.retain(stop.clone()), gone) };
    tokio::time::timeout(std::time::Duration::from_secs(180), both).await.unwrap();
    assert_eq!(store.session(digest("on"), now).await.unwrap().as_deref(), Some("ada"));
    opened.close().await;
}

pub(crate) fn by() -> By {
    By { who: "ada".to_owned(), how: "session" }
}

pub(crate) fn known(id: i64, owner: &str, scope: Scope, until: i64) -> KnownKey {
    KnownKey { id, owner: owner.to_owned(), scope, until }
}

pub(crate) fn lin() -> Account {
    Account { name: "lin".to_owned(), password: "$argon2id$other".to_owned(), role: Role::Member }
}

async fn people_have_roles_and_teams_and_the_last_admin_stays(opened: Opened) {
    let opened = with_ada(opened).await;
    let store = &opened.store;
    assert!(store.add_person(&by(), &lin(), NOW).await.unwrap());
    assert!(!store.add_person(&by(), &lin(), NOW).await.unwrap(), "the name is somebody's");
    let teams = ["shop".to_owned(), "platform".to_owned()];
    assert!(store.set_teams(&by(), "lin", &teams, NOW).await.unwrap());
    assert!(!store.set_teams(&by(), "nobody", &teams, NOW).await.unwrap());
    let listed = async || {
        let people = store.people().await.unwrap();
        people.into_iter().map(|one| (one.name, one.role.name(), one.teams.join("+"))).collect::<Vec<_>>()
    };
    let row = |name: &str, role, teams: &str| (name.to_owned(), role, teams.to_owned());
    assert_eq!(listed().await, [row("ada", "admin", ""), row("lin", "member", "platform+shop")]);
    assert!(store.set_teams(&by(), "lin", &["shop".to_owned()], NOW).await.unwrap());
    assert!(!store.remove_person(&by(), "ada", NOW).await.unwrap(), "the last admin");
    assert!(!store.set_role(&by(), "ada", Role::Member, NOW).await.unwrap(), "the last admin");
    assert!(!store.set_role(&by(), "nobody", Role::Admin, NOW).await.unwrap());
    assert!(store.set_role(&by(), "lin", Role::Admin, NOW).await.unwrap());
    assert!(store.set_role(&by(), "ada", Role::Member, NOW).await.unwrap());
    assert_eq!(listed().await, [row("ada", "member", ""), row("lin", "admin", "shop")]);
    store.keep_session(digest("one"), "ada", NOW, NOW + MINUTE).await.unwrap();
    assert!(store.remove_person(&by(), "ada", NOW).await.unwrap());
    assert_eq!(store.session(digest("one"), NOW).await.unwrap(), None, "sessions go with whose they are");
    assert_eq!(listed().await, [row("lin", "admin", "shop")]);
    opened.close().await;
}

async fn a_password_that_changes_ends_the_other_sessions(opened: Opened) {
    let opened = with_ada(opened).await;
    let store = &opened.store;
    for session in ["one", "two", "three"] {
        store.keep_session(digest(session), "ada", NOW, NOW + MINUTE).await.unwrap();
    }
    assert_eq!(store.sessions("ada", NOW).await.unwrap().len(), 3);
    assert_eq!(store.sessions("ada", NOW + MINUTE).await.unwrap().len(), 0);
    assert!(store.set_password(&by(), "ada", "$argon2id$new", digest("two"), NOW).await.unwrap());
    assert!(!store.set_password(&by(), "nobody", "$argon2id$new", digest("two"), NOW).await.unwrap());
    assert_eq!(store.account("ada").await.unwrap().unwrap().password, "$argon2id$new");
    assert_eq!(store.session(digest("two"), NOW).await.unwrap().as_deref(), Some("ada"));
    assert_eq!(store.session(digest("one"), NOW).await.unwrap(), None);
    assert!(store.end_sessions(&by(), "ada", NOW).await.unwrap());
    assert!(!store.end_sessions(&by(), "ada", NOW).await.unwrap());
    assert_eq!(store.session(digest("two"), NOW).await.unwrap(), None);
    opened.close().await;
}

async fn a_pass_is_somebodys_on_one_runtime_for_a_minute(opened: Opened) {
    let opened = with_ada(opened).await;
    let store = &opened.store;
    assert!(store.add_person(&by(), &lin(), NOW).await.unwrap());
    let made = async |who: &str, runtime: &str, scope| {
        let by = By { who: who.to_owned(), how: "key" };
        store.add_pass(&by, scope, runtime, Some("sync"), NOW).await.unwrap()
    };
    assert!(made("lin", "none", Scope::Full).await.is_none(), "a runtime that is not there");
    assert!(made("nobody", "prod", Scope::Full).await.is_none());
    let (one, other) =
        (made("lin", "prod", Scope::Read).await.unwrap(), made("ada", "prod", Scope::Full).await.unwrap());
    let found = store.pass(&one, NOW + MINUTE - 1).await.unwrap().unwrap();
    assert_eq!(
        (&*found.access.who, &*found.how, found.scope, &*found.runtime),
        ("lin", "key", Scope::Read, "prod")
    );
    assert!(!found.is_admin());
    let acts = store.audit(i64::MAX, 2).await.unwrap().into_iter().map(|act| (act.who, act.act, act.subject));
    let act = |who: &str| (who.to_owned(), "runtime.act".to_owned(), "prod: sync".to_owned());
    assert_eq!(acts.collect::<Vec<_>>(), [act("ada"), act("lin")], "nothing of what came to nothing");
    assert!(store.pass(&other, NOW).await.unwrap().unwrap().is_admin());
    assert_eq!(store.pass(&one, NOW + MINUTE).await.unwrap(), None, "it has ended");
    let unknown = format!("gops_{}", "0".repeat(64));
    for wrong in
        ["", "gops_", &unknown, one.expose_secret().get(..68).unwrap(), &format!("{}0", one.expose_secret())]
    {
        assert_eq!(store.pass(&SecretString::from(wrong), NOW).await.unwrap(), None, "{wrong}");
    }
    // It is no key and no token of a runtime.
    assert_eq!(store.key(&one, NOW).await.unwrap(), None);
    assert_eq!(store.runtime(&one).await.unwrap(), None);
    // Whoever is taken away since is nobody.
    assert!(store.remove_person(&by(), "lin", NOW).await.unwrap());
    assert_eq!(store.pass(&one, NOW).await.unwrap(), None);
    opened.close().await;
}

async fn whoever_is_disabled_comes_in_by_nothing_and_the_last_admin_stays(opened: Opened) {
    let opened = with_ada(opened).await;
    let store = &opened.store;
    let end = NOW + MINUTE;
    assert!(store.invite(&by(), &lin(), &["shop".to_owned()], (digest("first"), end), NOW).await.unwrap());
    assert!(store.use_link_for(digest("first"), NOW, "lin", "hash").await.unwrap());
    store.keep_session(digest("lin"), "lin", NOW, end).await.unwrap();
    assert!(store.keep_link_for(&by(), "lin", (digest("link"), end), NOW).await.unwrap());
    let own = By { who: "lin".to_owned(), how: "session" };
    let key = store.add_key(&own, "ci", Scope::Full, end, NOW).await.unwrap();
    let pass = store.add_pass(&own, Scope::Full, "prod", None, NOW).await.unwrap().unwrap();
    assert!(store.set_disabled(&by(), "lin", true, NOW).await.unwrap());
    assert!(store.people().await.unwrap()[1].disabled);
    assert_eq!(store.session(digest("lin"), NOW).await.unwrap(), None);
    assert_eq!(store.link(digest("link"), NOW).await.unwrap(), None);
    assert_eq!((store.key(&key, NOW).await.unwrap(), store.pass(&pass, NOW).await.unwrap()), (None, None));
    assert_eq!((store.account("lin").await.unwrap(), store.access("lin", NOW).await.unwrap()), (None, None));
    assert!(store.keep_session(digest("again"), "lin", NOW, end).await.is_err());
    assert!(store.add_pass(&own, Scope::Full, "prod", None, NOW).await.unwrap().is_none());
    // Keys, teams and password are there when they are let in again; the sessions are not.
    assert!(store.set_disabled(&by(), "lin", false, NOW).await.unwrap());
    assert_eq!(store.key(&key, NOW).await.unwrap(), Some(known(1, "lin", Scope::Full, end)));
    assert_eq!(store.account("lin").await.unwrap().unwrap().password, "hash");
    assert_eq!(store.session(digest("lin"), NOW).await.unwrap(), None);
    // An admin who may not come in is none that others could be left to.
    assert!(!store.set_disabled(&by(), "nobody", true, NOW).await.unwrap());
    assert!(!store.set_disabled(&by(), "ada", true, NOW).await.unwrap(), "the last admin");
    assert!(store.set_role(&by(), "lin", Role::Admin, NOW).await.unwrap());
    assert!(store.set_disabled(&by(), "lin", true, NOW).await.unwrap());
    assert!(!store.remove_person(&by(), "ada", NOW).await.unwrap(), "the last admin who may come in");
    assert!(!store.set_role(&by(), "ada", Role::Member, NOW).await.unwrap());
    assert!(!store.set_disabled(&by(), "ada", true, NOW).await.unwrap());
    assert!(store.remove_person(&by(), "lin", NOW).await.unwrap());
    opened.close().await;
}

async fn how_long_what_is_kept_is_set_and_outlives_the_process(place: &Place) {
    let opened = with_ada(open(place).await).await;
    assert_eq!(opened.store.retention_days().await.unwrap(), None);
    let days = |history, keys| RetentionDays { history, keys };
    opened.store.keep_retention_days(&by(), Some(days(60, 7)), NOW).await.unwrap();
    opened.store.keep_retention_days(&by(), Some(days(30, 5)), NOW).await.unwrap();
    opened.close().await;
    let opened = open(place).await;
    let kept = opened.store.retention_days().await.unwrap().unwrap();
    assert_eq!(kept, days(30, 5));
    let over = kept.over(KEEP_ALL);
    let day = std::time::Duration::from_secs(86_400);
    assert_eq!((over.history, over.keys, over.interval), (30 * day, 5 * day, KEEP_ALL.interval));
    for (wrong, why) in [
        (days(0, 1), "what is kept is kept for 1 to 3650 days"),
        (days(30, 3_651), "what is kept is kept for 1 to 3650 days"),
        (days(5, 6), "keys of reports are kept for no longer than the history"),
    ] {
        assert_eq!(wrong.check(), Err(why));
    }
    assert_eq!(days(5, 5).check(), Ok(()));
    // What would go is counted before it does.
    let mut at = report("u", 1, NOW - 40 * 86_400_000);
    at.operation = operation(NOW - 40 * 86_400_000, Some(NOW - 40 * 86_400_000 + 5), "Failed");
    at.sync = Some("OutOfSync".to_owned());
    opened.keep(at).await;
    opened.keep(report("u", 2, NOW - 39 * 86_400_000)).await;
    let old = async |days| {
        let old = opened.store.older_than(days, NOW).await.unwrap();
        (old.deployments, old.drifts, old.acts)
    };
    assert_eq!((old(30).await, old(40).await), ((1, 1, 0), (0, 0, 0)));
    opened.store.keep_retention_days(&by(), None, NOW).await.unwrap();
    assert_eq!(opened.store.retention_days().await.unwrap(), None);
    let acts = opened
        .store
        .audit(i64::MAX, 3)
        .await
        .unwrap()
        .into_iter()
        .map(|act| format!("{} {}", act.act, act.subject));
    assert_eq!(
        acts.collect::<Vec<_>>(),
        [
            "retention.reset as the file says",
            "retention.set history 30 d, keys 5 d",
            "retention.set history 60 d, keys 7 d"
        ]
    );
    opened.close().await;
}

fn rule(teams: &[&str], actions: &[&str], attributes: impl Into<serde_json::Value>) -> Rule {
    let attributes = attributes.into();
    let rule = json!({
        "entityType": "gitopsApplications", "teams": teams, "actions": actions, "attributes": attributes,
    });
    serde_json::from_value(rule).unwrap()
}

async fn what_somebody_sees_in_a_list_is_what_they_may_see(opened: Opened) {
    let opened = with_ada(opened).await;
    let store = &opened.store;
    store.add_person(&by(), &lin(), NOW).await.unwrap();
    store.set_teams(&by(), "lin", &["shop".to_owned()], NOW).await.unwrap();
    for (runtime, namespace, name) in
        [("prod", "a", "one"), ("prod", "b", "two"), ("eu1", "a", "three"), ("eu1", "b", "four")]
    {
        let token = create_token(&opened.place, runtime).await.unwrap();
        let id = store.runtime(&token).await.unwrap().unwrap().id;
        let mut report = report(name, 1, 1);
        report.entity.app_namespace = namespace.to_owned();
        report.entity.app_name = name.to_owned();
        opened.deliver_of(id, report).await;
    }
    let everything = ["eu1/a/three", "eu1/b/four", "prod/a/one", "prod/b/two"];
    let list = async |view: &View| -> Vec<String> {
        let rows = store.visible(view, &Which::default(), ("", "", ""), 100).await.unwrap();
        let row =
            |one: &SeenApplication| format!("{}/{}/{}", one.runtime, one.state.namespace, one.state.name);
        rows.iter().map(row).collect()
    };
    assert_eq!(list(&store.access("ada", NOW).await.unwrap().unwrap().view()).await, everything);
    assert_eq!(store.access("nobody", NOW).await.unwrap(), None);

    let attribute = |name: &str, value: &str| json!({"name": name, "value": value});
    let cases = [
        (rule(&["other"], &["VIEW"], json!([])), &[][..]),
        (rule(&["shop"], &["SYNC"], json!([])), &[]),
        (rule(&["shop"], &["VIEW", "SYNC"], json!([])), &everything),
        (rule(&["shop"], &["VIEW"], json!([attribute("RUNTIME", "eu1")])), &["eu1/a/three", "eu1/b/four"]),
        (
            rule(&["shop"], &["VIEW"], json!([attribute("RUNTIME", "eu1"), attribute("RUNTIME", "prod")])),
            &everything,
        ),
        (
            rule(&["shop"], &["VIEW"], json!([attribute("RUNTIME", "eu1"), attribute("NAMESPACE", "b")])),
            &["eu1/b/four"],
        ),
        (rule(&["shop"], &["VIEW"], json!([attribute("RUNTIME", "x' OR 1 = 1 --")])), &[]),
        // What the store does not know of an application is no match.
        (rule(&["shop"], &["VIEW"], json!([{"name": "LABEL", "key": "team", "value": "shop"}])), &[]),
        (rule(&["shop"], &["VIEW"], json!([attribute("CLUSTER", "c"), attribute("RUNTIME", "eu1")])), &[]),
    ];
    for (rule, sees) in &cases {
        assert_eq!(rule.check(), Ok(()));
        assert!(store.add_rule(&by(), rule, NOW).await.unwrap());
        let access = store.access("lin", NOW).await.unwrap().unwrap();
        assert_eq!(list(&access.view()).await, *sees, "{rule:?}");
        for one in everything {
            let (runtime, rest) = one.split_once('/').unwrap();
            let (namespace, _) = rest.split_once('/').unwrap();
            let subject = Subject { runtime, namespace, ..Subject::default() };
            let may = access.may(Action::View, Entity::GitopsApplications, &subject);
            assert_eq!(may, sees.contains(&one), "{one} by {rule:?}");
            assert!(!access.may(Action::View, Entity::Clusters, &subject));
            assert!(!access.may(Action::ExecToPod, Entity::GitopsApplications, &subject));
        }
        let kept = store.rules().await.unwrap();
        assert_eq!(Rule { id: 0, ..kept[0].clone() }, *rule);
        assert!(store.remove_rule(&by(), kept[0].id, NOW).await.unwrap());
        assert!(!store.remove_rule(&by(), kept[0].id, NOW).await.unwrap());
    }
    // Two rules together are alternatives.
    for name in ["a", "b"] {
        let attributes = json!([attribute("NAMESPACE", name), attribute("RUNTIME", "eu1")]);
        store.add_rule(&by(), &rule(&["shop"], &["VIEW"], attributes), NOW).await.unwrap();
    }
    let view = store.access("lin", NOW).await.unwrap().unwrap().view();
    assert_eq!(list(&view).await, ["eu1/a/three", "eu1/b/four"]);
    let page = store.visible(&view, &Which::default(), ("eu1", "a", "three"), 1).await.unwrap();
    assert_eq!((page.len(), &*page[0].state.name), (1, "four"));
    let of_prod = Which { runtime: Some("prod".to_owned()), ..Which::default() };
    assert_eq!(store.visible(&view, &of_prod, ("", "", ""), 10).await.unwrap().len(), 0);
    assert_eq!(store.visible(&View::ALL, &of_prod, ("", "", ""), 10).await.unwrap().len(), 2);
    opened.close().await;
}

async fn every_act_is_in_the_audit_log(opened: Opened) {
    let opened = with_ada(opened).await;
    let store = &opened.store;
    store.keep_session(digest("one"), "ada", NOW + 1, NOW + MINUTE).await.unwrap();
    store.add_person(&by(), &lin(), NOW + 2).await.unwrap();
    store.add_person(&by(), &lin(), NOW + 3).await.unwrap();
    store.set_teams(&by(), "lin", &["shop".to_owned()], NOW + 4).await.unwrap();
    store.add_key(&by(), "ci", Scope::Read, NOW + MINUTE, NOW + 5).await.unwrap();
    store.register(&by(), "eu1", "{}", false, NOW + 6).await.unwrap();
    store.unregister(&by(), "eu1", NOW + 7).await.unwrap();
    store.remove_person(&by(), "lin", NOW + 8).await.unwrap();
    let all = store.audit(i64::MAX, 100).await.unwrap();
    let acts: Vec<_> =
        all.iter().rev().map(|one| (one.at - NOW, &*one.how, &*one.act, &*one.subject)).collect();
    assert_eq!(
        acts,
        [
            (0, "link", "user.add", "ada"),
            (1, "session", "user.sign-in", "ada"),
            // The one that found the name taken changed nothing, and is not there.
            (2, "session", "user.add", "lin"),
            (4, "session", "user.teams", "lin: shop"),
            (5, "session", "key.add", "ci"),
            (6, "session", "runtime.add", "eu1"),
            (7, "session", "runtime.remove", "eu1"),
            (8, "session", "user.remove", "lin"),
        ]
    );
    assert!(all.iter().all(|one| one.who == "ada"));
    let before = all[all.len() - 3].id;
    assert_eq!(store.audit(before, 1).await.unwrap()[0].act, "user.sign-in");
    // A text is looked for in all that stands there, and means itself.
    for (text, expected) in
        [("RUNTIME.", &[7, 6][..]), ("remove lin", &[8]), ("session user.sign", &[1]), ("%", &[])]
    {
        let found = store.audit_of(text, i64::MAX, 100).await.unwrap();
        assert_eq!(found.iter().map(|one| one.at - NOW).collect::<Vec<_>>(), expected, "{text}");
    }
    store.refuse_password("ada", NOW + 9).await.unwrap();
    let refused = store.audit(i64::MAX, 1).await.unwrap().remove(0);
    assert_eq!((&*refused.who, &*refused.how, &*refused.act), ("ada", "password", "user.refuse"));
    opened.close().await;
}

async fn a_number_that_was_somebodys_never_comes_back(place: &Place) {
    let interval = std::time::Duration::from_millis(10);
    let history = std::time::Duration::from_secs(86_400);
    let opened = with_ada(open_with(place, Retention { interval, history, ..KEEP_ALL }).await).await;
    let store = &opened.store;
    let now = jiff::Timestamp::now().as_millisecond();
    let long_ago = now - 30 * 24 * 60 * MINUTE;
    let (mut rules, mut keys, mut sessions) = (Vec::new(), Vec::new(), Vec::new());
    // Each is the newest, and the only one, when it goes.
    for turn in 0..3 {
        assert!(store.add_rule(&by(), &rule(&["shop"], &["VIEW"], json!([])), long_ago).await.unwrap());
        rules.push(store.rules().await.unwrap()[0].id);
        assert!(store.remove_rule(&by(), rules[turn], long_ago).await.unwrap());
        store.add_key(&by(), "ci", Scope::Read, long_ago + MINUTE, long_ago).await.unwrap();
        keys.push(store.keys(None).await.unwrap()[0].id);
        assert!(store.remove_key(&by(), keys[turn], false, long_ago).await.unwrap());
        store.keep_session(digest("one"), "ada", long_ago, long_ago + MINUTE).await.unwrap();
        sessions.push(store.sessions("ada", long_ago).await.unwrap()[0].id);
        store.end_session(digest("one")).await.unwrap();
    }
    for numbers in [&rules, &keys, &sessions] {
        assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
    }
    // A page of before changes nothing of another's.
    assert!(store.add_rule(&by(), &rule(&["shop"], &["VIEW"], json!([])), long_ago).await.unwrap());
    let late = Rule { id: rules[2], ..rule(&["other"], &["SYNC"], json!([])) };
    assert!(!store.change_rule(&by(), &late, long_ago).await.unwrap());
    assert!(!store.remove_rule(&by(), rules[2], long_ago).await.unwrap());
    assert_eq!(store.rules().await.unwrap()[0].teams, ["shop"]);
    // Nor does an act's number, where all of them became too old.
    let newest = store.audit(i64::MAX, 1).await.unwrap()[0].id;
    let stop = pipeline_core::Shutdown::new();
    let gone = async {
        while store.audit(newest + 1, 1).await.unwrap().first().is_some_and(|act| act.id == newest) {
            tokio::time::sleep(interval).await;
        }
        stop.cancel();
    };
    let both = async { tokio::join!(store.retain(stop.clone()), gone) };
    tokio::time::timeout(std::time::Duration::from_secs(180), both).await.unwrap();
    assert!(store.add_rule(&by(), &rule(&["shop"], &["VIEW"], json!([])), now).await.unwrap());
    let next = store.audit(i64::MAX, 1).await.unwrap()[0].id;
    assert!(next > newest, "{next} comes behind {newest}");
    opened.close().await;
}

#[test]
fn a_rule_that_can_never_hold_is_refused() {
    let well = || rule(&["shop"], &["VIEW"], json!([]));
    let attribute =
        |attribute| Rule { attributes: vec![serde_json::from_value(attribute).unwrap()], ..well() };
    let teams = "a rule names 1 to 50 teams, each by at most 100 characters";
    let team = "the name of a team has no comma, no control character and no white space around it";
    let key = "a LABEL has a key, and no other attribute has one";
    let value = "the value of an attribute has 1 to 253 characters";
    let cases = [
        (rule(&[], &["VIEW"], json!([])), teams),
        (rule(&[" "], &["VIEW"], json!([])), teams),
        (rule(&["web", "shop,ops"], &["VIEW"], json!([])), team),
        (rule(&["shop\u{7f}"], &["VIEW"], json!([])), team),
        (rule(&["shop "], &["VIEW"], json!([])), team),
        (rule(&["\u{a0}shop"], &["VIEW"], json!([])), team),
        (rule(&["shop"], &[], json!([])), "a rule grants at least one action"),
        (
            Rule { tags: vec![String::new()], ..well() },
            "a rule has at most 50 tags, each of at most 100 characters",
        ),
        (attribute(json!({"name": "LABEL", "value": "x"})), key),
        (attribute(json!({"name": "RUNTIME", "key": "k", "value": "x"})), key),
        (attribute(json!({"name": "RUNTIME", "value": ""})), value),
        (
            Rule {
                attributes: vec![
                    attribute(json!({"name": "RUNTIME", "value": "x"})).attributes[0].clone();
                    51
                ],
                ..well()
            },
            "a rule has at most 50 attributes",
        ),
    ];
    for (rule, said) in cases {
        assert_eq!(rule.check(), Err(said), "{rule:?}");
    }
}
