//! People by who they are at a provider of OpenID Connect: each of these holds on both databases.

use serde_json::json;
use stages_platform_store::{
    Account, Action, Entity, Identified, Identity, PROVIDED_LASTS, Place, Provided, Role, Rule, Subject,
};

use crate::accounts::{MINUTE, NOW, ada, by, with_ada};
use crate::support::{Opened, digest, on};

/// Runs them on a place that is new each time it is asked for.
pub(crate) async fn hold(place: &mut impl AsyncFnMut() -> Place) {
    on(place, somebody_whom_a_provider_sends_is_known_by_who_they_are_there).await;
    on(place, whoever_gets_a_name_that_was_somebody_elses_is_another_account).await;
    on(place, who_is_an_admin_by_a_group_is_one_as_long_as_they_are_in_it).await;
    on(place, an_admin_by_a_group_is_none_that_others_could_be_left_to).await;
    on(place, where_groups_made_every_admin_all_but_one_may_be_kept_out).await;
    on(place, an_admin_by_a_group_is_kept_as_one_unless_the_role_has_lapsed).await;
    on(place, whose_identity_is_taken_away_has_no_session_and_no_team_of_it).await;
    on(place, teams_of_another_provider_or_of_no_group_any_more_are_left).await;
    on(place, what_a_provider_gave_counts_for_thirty_days_after_somebody_last_came_in_by_it).await;
    on(place, a_team_that_nobody_is_known_to_have_given_is_the_providers_where_it_alone_lets_somebody_in)
        .await;
}

/// Changes rows as no version of this program does any more.
async fn run(opened: &Opened, sql: &'static str) {
    match &opened.place {
        Place::Sqlite(path) => {
            let pool = sqlx::SqlitePool::connect(&format!("sqlite://{}", path.display())).await.unwrap();
            sqlx::raw_sql(sql).execute(&pool).await.unwrap();
            pool.close().await;
        }
        Place::PostgresFile(_) => unreachable!("no test of these has one"),
        Place::Postgres(url) => {
            let pool = sqlx::PgPool::connect(url).await.unwrap();
            sqlx::raw_sql(sql).execute(&pool).await.unwrap();
            pool.close().await;
        }
    }
}

fn identity(subject: &str) -> Identity {
    Identity { issuer: "https://id.example.com".to_owned(), subject: subject.to_owned() }
}

async fn somebody_whom_a_provider_sends_is_known_by_who_they_are_there(opened: Opened) {
    let opened = with_ada(opened).await;
    let (store, until) = (&opened.store, NOW + MINUTE);
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let said = |decided: &[&str], joined: &[&str]| Provided {
        decided: names(decided),
        joined: names(joined),
        admin: None,
    };
    let known = async |subject: &str| store.identified(&identity(subject)).await.unwrap();
    let mia = Account { name: "mia".to_owned(), password: String::new(), role: Role::Member };
    let nobody = said(&[], &[]);
    assert_eq!(known("m-1").await, None);
    assert!(!store.sign_in_identified(digest("x"), &identity("m-1"), &nobody, NOW, until).await.unwrap());

    // A name and an identity are somebody's once; nothing is added where either is taken.
    assert!(store.add_identified(&mia, &identity("m-1"), NOW).await.unwrap());
    assert!(!store.add_identified(&mia, &identity("m-2"), NOW).await.unwrap(), "the name is taken");
    let eve = Account { name: "eve".to_owned(), ..mia.clone() };
    assert!(!store.add_identified(&eve, &identity("m-1"), NOW).await.unwrap(), "the identity is taken");
    assert_eq!(store.account("eve").await.unwrap(), None);
    assert_eq!(known("m-1").await, Some(Identified { name: "mia".to_owned(), disabled: false }));
    let elsewhere = Identity { issuer: "https://other.example.com".to_owned(), ..identity("m-1") };
    assert_eq!(store.identified(&elsewhere).await.unwrap(), None, "another provider's m-1 is somebody else");

    // Teams that the provider decides about follow it; others stay, and nothing is said where nothing changes.
    assert!(store.set_teams(&by(), "mia", &names(&["guild", "ops"]), NOW).await.unwrap());
    let teams =
        async || store.people().await.unwrap().into_iter().find(|one| one.name == "mia").unwrap().teams;
    let decided = ["ops", "shop"];
    let sign_in = async |session, joined: &[&str]| {
        let said = said(&decided, joined);
        store.sign_in_identified(session, &identity("m-1"), &said, NOW, until).await.unwrap()
    };
    for (index, (joined, after)) in [
        (&["shop"][..], &["guild", "shop"][..]),
        (&["shop"], &["guild", "shop"]),
        (&["ops", "shop"], &["guild", "ops", "shop"]),
        (&[], &["guild"]),
    ]
    .into_iter()
    .enumerate()
    {
        let session = digest(&format!("m-{index}"));
        assert!(sign_in(session, joined).await);
        assert_eq!(teams().await, after);
        assert_eq!(store.session(session, NOW).await.unwrap().as_deref(), Some("mia"));
    }
    let acts: Vec<_> = store.audit(i64::MAX, 8).await.unwrap();
    let acts: Vec<_> =
        acts.iter().map(|one| format!("{} {} {} {}", one.who, one.how, one.act, one.subject)).collect();
    assert_eq!(
        acts[..7],
        [
            "mia oidc user.sign-in mia",
            "mia oidc user.teams mia: guild",
            "mia oidc user.sign-in mia",
            "mia oidc user.teams mia: guild, ops, shop",
            "mia oidc user.sign-in mia",
            "mia oidc user.sign-in mia",
            "mia oidc user.teams mia: guild, shop",
        ]
    );

    // Somebody who is here already gets an identity, one of each provider; taken away, it is good no more.
    assert!(!store.link_identity(&by(), "ada", &identity("m-1"), NOW).await.unwrap(), "it is somebody's");
    assert!(!store.link_identity(&by(), "nobody", &identity("a-1"), NOW).await.unwrap());
    assert!(store.link_identity(&by(), "ada", &identity("a-1"), NOW).await.unwrap());
    assert!(!store.link_identity(&by(), "ada", &identity("a-2"), NOW).await.unwrap(), "one of each provider");
    assert_eq!(store.subject_of("ada", &identity("").issuer).await.unwrap().as_deref(), Some("a-1"));
    assert!(store.unlink_identity(&by(), "ada", &identity("").issuer, digest("none"), NOW).await.unwrap());
    assert!(!store.unlink_identity(&by(), "ada", &identity("").issuer, digest("none"), NOW).await.unwrap());
    assert_eq!(
        (known("a-1").await, store.subject_of("ada", &identity("").issuer).await.unwrap()),
        (None, None)
    );

    // Whoever is disabled does not come in, in no teams either; who is removed is nobody's identity.
    assert!(store.set_disabled(&by(), "mia", true, NOW).await.unwrap());
    assert!(known("m-1").await.unwrap().disabled);
    assert!(!sign_in(digest("late"), &decided).await);
    assert_eq!(teams().await, ["guild"]);
    store.refuse_identified(&identity("m-1"), "disabled", NOW).await.unwrap();
    store.refuse_identified(&identity("m-9"), "no account", NOW).await.unwrap();
    let acts = store.audit(i64::MAX, 2).await.unwrap();
    let acts: Vec<_> = acts.iter().map(|one| format!("{} {} {}", one.who, one.act, one.subject)).collect();
    assert_eq!(
        acts,
        [
            "m-9 user.refuse m-9 of https://id.example.com: no account",
            "mia user.refuse m-1 of https://id.example.com: disabled",
        ]
    );
    assert!(store.remove_person(&by(), "mia", NOW).await.unwrap());
    assert_eq!(known("m-1").await, None);
    opened.close().await;
}

async fn who_is_an_admin_by_a_group_is_one_as_long_as_they_are_in_it(opened: Opened) {
    let opened = with_ada(opened).await;
    let (store, issuer) = (&opened.store, &*identity("").issuer);
    for name in ["mia", "lin"] {
        let account = Account { name: name.to_owned(), password: String::new(), role: Role::Member };
        assert!(store.add_identified(&account, &identity(name), NOW).await.unwrap());
    }
    let comes = async |name: &str, group: Option<&str>| {
        let said = Provided { admin: group.map(str::to_owned), ..Provided::default() };
        let session = digest(&fastrand::u128(..).to_string());
        assert!(store.sign_in_identified(session, &identity(name), &said, NOW, NOW + MINUTE).await.unwrap());
        store.account(name).await.unwrap().unwrap().role
    };
    let acts = async |count: u32| {
        let acts = store.audit(i64::MAX, count).await.unwrap();
        acts.into_iter()
            .map(|one| format!("{} {} {} {}", one.who, one.how, one.act, one.subject))
            .collect::<Vec<_>>()
    };
    assert_eq!(comes("mia", Some("admins")).await, Role::Admin);
    assert_eq!(comes("mia", Some("admins")).await, Role::Admin);
    assert_eq!(comes("lin", None).await, Role::Member);
    assert_eq!(comes("mia", None).await, Role::Member);
    assert_eq!(
        acts(7).await[..6],
        [
            "mia oidc user.sign-in mia",
            "mia oidc user.member mia: in no group of https://id.example.com that makes an admin",
            "lin oidc user.sign-in lin",
            "mia oidc user.sign-in mia",
            "mia oidc user.sign-in mia",
            "mia oidc user.admin mia: by the group admins of https://id.example.com",
        ]
    );
    // What a person gives is no group's, though the same is given: and what they take is taken until the next sign-in.
    assert_eq!(comes("mia", Some("admins")).await, Role::Admin);
    assert!(store.set_role(&by(), "mia", Role::Member, NOW).await.unwrap());
    assert!(store.set_role(&by(), "mia", Role::Admin, NOW).await.unwrap());
    assert_eq!(comes("mia", None).await, Role::Admin);
    let admin_by = async |name: &str| {
        store.people().await.unwrap().into_iter().find(|one| one.name == name).unwrap().admin_by
    };
    assert_eq!(comes("lin", Some("admins")).await, Role::Admin);
    assert_eq!((admin_by("mia").await, admin_by("lin").await), (String::new(), issuer.to_owned()));
    assert_eq!(comes("lin", None).await, Role::Member);
    assert_eq!(comes("lin", Some("admins")).await, Role::Admin);
    assert!(store.set_role(&by(), "lin", Role::Admin, NOW).await.unwrap());
    assert_eq!(admin_by("lin").await, "");
    assert_eq!(comes("lin", None).await, Role::Admin);
    assert!(store.set_role(&by(), "lin", Role::Member, NOW).await.unwrap());
    // Where the group or the provider is another, or there is none, nobody is an admin by the one before.
    assert_eq!(comes("lin", Some("admins")).await, Role::Admin);
    store.keep_admins_of(issuer, NOW).await.unwrap();
    assert_eq!(store.account("lin").await.unwrap().unwrap().role, Role::Admin);
    for other in ["https://other.example.com", ""] {
        assert_eq!(comes("lin", Some("admins")).await, Role::Admin);
        store.keep_admins_of(other, NOW).await.unwrap();
        for (name, role) in [("lin", Role::Member), ("mia", Role::Admin), ("ada", Role::Admin)] {
            assert_eq!(store.account(name).await.unwrap().unwrap().role, role, "{name}");
        }
        let said = "platform settings user.member lin: no group of https://id.example.com makes an admin";
        assert_eq!(acts(1).await, [said]);
    }
    // Whose identity is taken away is in no group any more.
    assert_eq!(comes("lin", Some("admins")).await, Role::Admin);
    assert!(store.unlink_identity(&by(), "lin", issuer, digest("none"), NOW).await.unwrap());
    assert_eq!(store.account("lin").await.unwrap().unwrap().role, Role::Member);
    assert!(store.unlink_identity(&by(), "mia", issuer, digest("none"), NOW).await.unwrap());
    assert_eq!(store.account("mia").await.unwrap().unwrap().role, Role::Admin);
    opened.close().await;
}

async fn an_admin_by_a_group_is_none_that_others_could_be_left_to(opened: Opened) {
    let opened = with_ada(opened).await;
    let store = &opened.store;
    let mia = Account { name: "mia".to_owned(), password: String::new(), role: Role::Member };
    assert!(store.add_identified(&mia, &identity("mia"), NOW).await.unwrap());
    let said = Provided { admin: Some("admins".to_owned()), ..Provided::default() };
    let until = NOW + MINUTE;
    assert!(store.sign_in_identified(digest("m"), &identity("mia"), &said, NOW, until).await.unwrap());
    assert_eq!(store.account("mia").await.unwrap().unwrap().role, Role::Admin);

    // The provider could take her role at any time, and nobody here could make an admin.
    assert!(!store.set_role(&by(), "ada", Role::Member, NOW).await.unwrap());
    assert!(!store.set_disabled(&by(), "ada", true, NOW).await.unwrap());
    assert!(!store.remove_person(&by(), "ada", NOW).await.unwrap());
    assert!(store.set_disabled(&by(), "mia", true, NOW).await.unwrap(), "she is not the last");
    assert!(store.set_disabled(&by(), "mia", false, NOW).await.unwrap());
    assert!(store.set_role(&by(), "mia", Role::Member, NOW).await.unwrap());
    // Once a person made her one she counts, whatever the provider says.
    assert!(store.set_role(&by(), "mia", Role::Admin, NOW).await.unwrap());
    assert!(store.set_disabled(&by(), "ada", true, NOW).await.unwrap());
    assert!(!store.remove_person(&by(), "mia", NOW).await.unwrap());
    assert!(store.remove_person(&by(), "ada", NOW).await.unwrap());
    opened.close().await;
}

async fn where_groups_made_every_admin_all_but_one_may_be_kept_out(opened: Opened) {
    let opened = with_ada(opened).await;
    let store = &opened.store;
    let mia = Account { name: "mia".to_owned(), password: String::new(), role: Role::Admin };
    assert!(store.add_person(&by(), &mia, NOW).await.unwrap());
    // So an earlier version could leave them.
    run(&opened, "UPDATE users SET admin_by = 'https://id.example.com'").await;
    assert!(store.set_disabled(&by(), "ada", true, NOW).await.unwrap());
    assert!(!store.set_disabled(&by(), "mia", true, NOW).await.unwrap());
    assert!(!store.remove_person(&by(), "mia", NOW).await.unwrap());
    assert!(!store.set_role(&by(), "mia", Role::Member, NOW).await.unwrap());
    assert!(store.remove_person(&by(), "ada", NOW).await.unwrap());
    // A person keeps the last one as an admin, whatever the provider says from then on.
    assert!(store.set_role(&by(), "mia", Role::Admin, NOW).await.unwrap());
    store.keep_admins_of("", NOW).await.unwrap();
    assert_eq!(store.account("mia").await.unwrap().unwrap().role, Role::Admin);
    opened.close().await;
}

async fn an_admin_by_a_group_is_kept_as_one_unless_the_role_has_lapsed(opened: Opened) {
    let opened = with_ada(opened).await;
    let (store, issuer) = (&opened.store, identity("").issuer);
    for name in ["mia", "lin"] {
        let account = Account { name: name.to_owned(), password: String::new(), role: Role::Member };
        assert!(store.add_identified(&account, &identity(name), NOW).await.unwrap());
    }
    let comes = async |name: &str, admin: bool, at| {
        let (decided, joined) = (vec!["ops".to_owned()], vec!["ops".to_owned()]);
        let said = Provided { decided, joined, admin: admin.then(|| "admins".to_owned()) };
        let session = digest(&format!("{name} {at}"));
        assert!(store.sign_in_identified(session, &identity(name), &said, at, at + MINUTE).await.unwrap());
    };
    let known = async |name: &str| {
        let one = store.people().await.unwrap().into_iter().find(|one| one.name == name).unwrap();
        (one.role, one.admin_by, one.lapses_at)
    };
    let over = NOW + PROVIDED_LASTS;
    comes("mia", true, NOW).await;
    comes("lin", false, NOW).await;
    assert_eq!(known("ada").await, (Role::Admin, String::new(), None));
    assert_eq!(known("lin").await, (Role::Member, String::new(), Some(over)));
    let acts = store.audit(i64::MAX, 100).await.unwrap().len();
    for (name, at) in [("mia", over), ("mia", over + MINUTE), ("ada", NOW), ("lin", NOW), ("nobody", NOW)] {
        assert!(!store.keep_admin(&by(), name, at).await.unwrap(), "{name}");
    }
    assert_eq!(known("mia").await, (Role::Admin, issuer, Some(over)));
    assert_eq!(store.audit(i64::MAX, 100).await.unwrap().len(), acts, "nothing was done");
    assert_eq!(store.access("mia", over).await.unwrap().unwrap().role, Role::Member);
    // It has not lapsed before that, and is hers for good once a person gave it; nothing of hers lapses then that she would miss.
    assert!(store.keep_admin(&by(), "mia", over - 1).await.unwrap());
    assert_eq!(known("mia").await, (Role::Admin, String::new(), None));
    assert_eq!(store.access("mia", over).await.unwrap().unwrap().role, Role::Admin);
    let last = store.audit(i64::MAX, 1).await.unwrap().remove(0);
    assert_eq!((&*last.who, &*last.act, &*last.subject), ("ada", "user.admin", "mia"));
    // The first of what a provider gave that lapses: a team that a person gave does not.
    assert!(store.set_teams(&by(), "lin", &["guild".to_owned(), "ops".to_owned()], NOW).await.unwrap());
    comes("lin", false, NOW + MINUTE).await;
    let lin = store.people().await.unwrap().into_iter().find(|one| one.name == "lin").unwrap();
    assert_eq!((lin.has_lapsed(over + MINUTE - 1), lin.has_lapsed(over + MINUTE)), (false, true));
    opened.close().await;
}

async fn whose_identity_is_taken_away_has_no_session_and_no_team_of_it(opened: Opened) {
    let opened = with_ada(opened).await;
    let (store, issuer) = (&opened.store, &*identity("").issuer);
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let mia = Account { name: "mia".to_owned(), password: String::new(), role: Role::Member };
    assert!(store.add_identified(&mia, &identity("mia"), NOW).await.unwrap());
    let teams =
        async || store.people().await.unwrap().into_iter().find(|one| one.name == "mia").unwrap().teams;
    let comes = async |session: &str, joined: &[&str]| {
        let said = Provided { decided: names(&["ops", "shop"]), joined: names(joined), admin: None };
        let until = NOW + MINUTE;
        assert!(
            store.sign_in_identified(digest(session), &identity("mia"), &said, NOW, until).await.unwrap()
        );
    };
    // What an admin gives beside it is not the provider's, and what the provider gave stays its own when they save both.
    comes("one", &["ops", "shop"]).await;
    assert!(store.set_teams(&by(), "mia", &names(&["guild", "ops"]), NOW).await.unwrap());
    comes("two", &["ops"]).await;
    store.keep_session(digest("own"), "mia", NOW, NOW + MINUTE).await.unwrap();
    store.keep_session(digest("ada"), "ada", NOW, NOW + MINUTE).await.unwrap();
    assert!(store.unlink_identity(&by(), "mia", issuer, digest("own"), NOW).await.unwrap());
    for session in ["one", "two"] {
        assert_eq!(store.session(digest(session), NOW).await.unwrap(), None, "{session}");
    }
    for (session, name) in [("own", "mia"), ("ada", "ada")] {
        assert_eq!(store.session(digest(session), NOW).await.unwrap().as_deref(), Some(name));
    }
    assert_eq!(teams().await, ["guild"]);
    let acts = store.audit(i64::MAX, 2).await.unwrap().into_iter();
    let acts: Vec<_> = acts.map(|one| format!("{} {} {}", one.who, one.act, one.subject)).collect();
    assert_eq!(acts, ["ada user.teams mia: guild", &*format!("ada user.unlink-identity mia: of {issuer}")]);
    opened.close().await;
}

async fn teams_of_another_provider_or_of_no_group_any_more_are_left(opened: Opened) {
    let opened = with_ada(opened).await;
    let (store, issuer) = (&opened.store, &*identity("").issuer);
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let mia = Account { name: "mia".to_owned(), password: String::new(), role: Role::Member };
    assert!(store.add_identified(&mia, &identity("mia"), NOW).await.unwrap());
    assert!(store.set_teams(&by(), "mia", &names(&["guild"]), NOW).await.unwrap());
    let teams =
        async || store.people().await.unwrap().into_iter().find(|one| one.name == "mia").unwrap().teams;
    for (index, (now_of, mapped, stays)) in [
        (issuer, &["ops", "shop"][..], &["guild", "ops", "shop"][..]),
        (issuer, &["shop"], &["guild", "shop"]),
        ("https://other.example.com", &["ops", "shop"], &["guild"]),
        ("", &[], &["guild"]),
    ]
    .into_iter()
    .enumerate()
    {
        let all = names(&["ops", "shop"]);
        let said = Provided { decided: all.clone(), joined: all, admin: None };
        let session = digest(&format!("m-{index}"));
        assert!(store.sign_in_identified(session, &identity("mia"), &said, NOW, NOW + MINUTE).await.unwrap());
        store.keep_teams_of(now_of, &names(mapped), NOW).await.unwrap();
        assert_eq!(teams().await, stays, "{now_of}");
    }
    let acts = store.audit(i64::MAX, 2).await.unwrap().into_iter();
    let acts: Vec<_> =
        acts.map(|one| format!("{} {} {} {}", one.who, one.how, one.act, one.subject)).collect();
    let said = |team| {
        format!(
            "platform settings user.teams mia: not in {team} any more, as no group of {issuer} leads there"
        )
    };
    assert_eq!(acts, [said("shop"), said("ops")]);
    opened.close().await;
}

async fn what_a_provider_gave_counts_for_thirty_days_after_somebody_last_came_in_by_it(opened: Opened) {
    let opened = with_ada(opened).await;
    let (store, issuer) = (&opened.store, identity("").issuer);
    for (team, runtime) in [("ops", "prod"), ("guild", "other")] {
        let rule = json!({"entityType": "gitopsApplications", "teams": [team], "actions": ["VIEW"],
            "attributes": [{"name": "RUNTIME", "value": runtime}]});
        let rule: Rule = serde_json::from_value(rule).unwrap();
        assert!(store.add_rule(&by(), &rule, NOW).await.unwrap());
    }
    let mia = Account { name: "mia".to_owned(), password: String::new(), role: Role::Member };
    assert!(store.add_identified(&mia, &identity("mia"), NOW).await.unwrap());
    assert!(store.link_identity(&by(), "ada", &identity("ada"), NOW).await.unwrap());
    let comes = async |name: &str, admin: Option<&str>, at| {
        let (decided, joined) = (vec!["ops".to_owned()], vec!["ops".to_owned()]);
        let said = Provided { decided, joined, admin: admin.map(str::to_owned) };
        let session = digest(&format!("{name} {at}"));
        assert!(store.sign_in_identified(session, &identity(name), &said, at, at + MINUTE).await.unwrap());
    };
    let may = async |name: &str, at| {
        let access = store.access(name, at).await.unwrap().unwrap();
        let sees = |runtime| {
            let subject = Subject { runtime, ..Subject::default() };
            access.may(Action::View, Entity::GitopsApplications, &subject)
        };
        ((access.role, sees("prod"), sees("other")), access.lapsed)
    };
    comes("mia", None, NOW).await;
    comes("ada", Some("admins"), NOW).await;
    assert!(store.set_teams(&by(), "mia", &["guild".to_owned(), "ops".to_owned()], NOW).await.unwrap());
    let (last, over) = (NOW + PROVIDED_LASTS - 1, NOW + PROVIDED_LASTS);
    assert_eq!(may("mia", last).await, ((Role::Member, true, true), None));
    assert_eq!(may("mia", over).await, ((Role::Member, false, true), Some(issuer.clone())));
    // Whom a person made an admin has everything of them, and nothing that the provider gave beside it is missed.
    assert_eq!(may("ada", over).await, ((Role::Admin, true, true), None));

    // Once they come in again it counts again, and so does what makes an admin.
    comes("mia", Some("admins"), over).await;
    assert_eq!(may("mia", over + PROVIDED_LASTS - 1).await, ((Role::Admin, true, true), None));
    let lapsed = ((Role::Member, false, true), Some(issuer.clone()));
    assert_eq!(may("mia", over + PROVIDED_LASTS).await, lapsed);
    // A version that keeps no sign-ins goes on beside this one: whom it adds came in when they were added.
    run(&opened, "UPDATE identities SET signed_in_at = 0").await;
    assert_eq!(may("mia", last).await, ((Role::Admin, true, true), None));
    assert_eq!(may("mia", over).await, lapsed);
    // What is taken away with the identity is missed no more.
    assert!(store.unlink_identity(&by(), "mia", &issuer, digest("none"), over).await.unwrap());
    assert_eq!(may("mia", over + PROVIDED_LASTS).await, ((Role::Member, false, true), None));
    opened.close().await;
}

async fn a_team_that_nobody_is_known_to_have_given_is_the_providers_where_it_alone_lets_somebody_in(
    opened: Opened,
) {
    let opened = with_ada(opened).await;
    let (store, issuer) = (&opened.store, &*identity("").issuer);
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let lin = Account { name: "lin".to_owned(), role: Role::Member, ..ada() };
    let mia = Account { name: "mia".to_owned(), password: String::new(), role: Role::Member };
    for (name, account) in [("lin", &lin), ("mia", &mia)] {
        assert!(store.add_identified(account, &identity(name), NOW).await.unwrap());
        let all = names(&["ops", "shop"]);
        let said = Provided { decided: all.clone(), joined: all, admin: None };
        assert!(
            store.sign_in_identified(digest(name), &identity(name), &said, NOW, NOW + MINUTE).await.unwrap()
        );
        assert!(store.set_teams(&by(), name, &names(&["guild", "ops", "shop"]), NOW).await.unwrap());
    }
    // So a version that did not keep who gave what left them.
    run(&opened, "UPDATE members SET given_by = ''").await;
    let acts = store.audit(i64::MAX, 100).await.unwrap().len();
    store.keep_teams_of(issuer, &names(&["ops"]), NOW).await.unwrap();
    assert_eq!(store.audit(i64::MAX, 100).await.unwrap().len(), acts, "nobody is in other teams than before");
    for name in ["lin", "mia"] {
        assert!(store.unlink_identity(&by(), name, issuer, digest("none"), NOW).await.unwrap());
    }
    let people = store.people().await.unwrap().into_iter();
    let teams: Vec<_> = people.map(|one| (one.name, one.teams)).filter(|(name, _)| name != "ada").collect();
    // A person may have put somebody there who has a password, and did put them where no group leads to.
    let expected = [("lin", &["guild", "ops", "shop"][..]), ("mia", &["guild", "shop"])];
    assert_eq!(teams, expected.map(|(name, teams)| (name.to_owned(), names(teams))));
    opened.close().await;
}

async fn whoever_gets_a_name_that_was_somebody_elses_is_another_account(opened: Opened) {
    let opened = with_ada(opened).await;
    let store = &opened.store;
    let lin = Account { name: "lin".to_owned(), role: Role::Member, ..ada() };
    let uid = async || store.access("lin", NOW).await.unwrap().unwrap().uid;
    let mut seen = vec![store.access("ada", NOW).await.unwrap().unwrap().uid];
    for way in ["added", "invited", "identified"] {
        let made = match way {
            "added" => store.add_person(&by(), &lin, NOW).await,
            "invited" => store.invite(&by(), &lin, &[], (digest("lin"), NOW + MINUTE), NOW).await,
            _ => store.add_identified(&lin, &identity("l-1"), NOW).await,
        };
        assert!(made.unwrap(), "{way}");
        let first = uid().await;
        assert!(!seen.contains(&first), "{way}");
        // It is the same account whatever becomes of it.
        assert!(store.set_role(&by(), "lin", Role::Admin, NOW).await.unwrap());
        assert!(store.set_password(&by(), "lin", "$argon2id$new", digest("none"), NOW).await.unwrap());
        assert_eq!(uid().await, first, "{way}");
        seen.push(first);
        assert!(store.remove_person(&by(), "lin", NOW).await.unwrap(), "{way}");
    }
    opened.close().await;
}
