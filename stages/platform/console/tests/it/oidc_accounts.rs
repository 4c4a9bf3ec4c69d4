//! Which account somebody has who comes in by a provider: whether one is made, whose it is, and whether it is an admin's.

use std::sync::atomic::{AtomicI64, Ordering};

use jiff::{SignedDuration, Timestamp};
use reqwest::StatusCode;
use serde_json::json;
use sha2::Digest as _;
use stages_platform_console::OidcSignIn;
use stages_platform_store::{Account, By, Role};
use url::Url;

use crate::oidc::{by, config, host, refused, served, still, told};
use crate::provider::{Person, Provider, client, to};
use crate::sample::Sample;
use crate::served::Served;

const NO_ADMIN_BY_A_GROUP: &str =
    "They are no admin by a group of the provider (any more), or have not come in by it for 30 days.";

#[tokio::test]
async fn people_of_the_group_are_admins_while_they_are_in_it_and_who_was_made_one_here_stays_one() {
    let (served, provider, ada) = served(Timestamp::now, |by| by).await;
    let role = async |name: &str| {
        let people = served.store.people().await.unwrap();
        people.into_iter().find(|one| one.name == name).unwrap().role
    };
    let by_group = format!("mia oidc user.admin: mia: by the group platform-admins of {}", provider.issuer);
    let by_none =
        format!("mia oidc user.member: mia: in no group of {} that makes an admin", provider.issuer);
    let signed_in = "mia oidc user.sign-in: mia";
    let comes = async |groups: &[&str]| {
        provider.person("mia", groups).await;
        let mut mia = Person::new();
        let back = mia.through(&served.start(), "mia").await;
        assert_eq!(mia.get(&back).await.status(), StatusCode::SEE_OTHER);
        let users = Url::parse(&format!("{}/settings/users", served.url)).unwrap();
        mia.get(&users).await.status()
    };
    assert_eq!(comes(&["platform-admins"]).await, StatusCode::OK);
    assert_eq!(served.last_acts(3).await, [signed_in, &*by_group, "mia oidc user.add: mia"]);
    assert_eq!(comes(&["platform-admins"]).await, StatusCode::OK);
    assert_eq!(served.last_acts(2).await, [signed_in, signed_in], "nothing is said where nothing changes");
    // A group that is called alike is another one.
    assert_eq!(comes(&["platform-admins-of-old", "PLATFORM-ADMINS"]).await, StatusCode::FORBIDDEN);
    assert_eq!(served.last_acts(2).await, [signed_in, &*by_none]);
    assert_eq!(comes(&[]).await, StatusCode::FORBIDDEN);

    // Whom a person made an admin no group unmakes; nor does it whoever was never sent.
    let admin = By { who: "ada".to_owned(), how: "session" };
    assert!(served.store.set_role(&admin, "mia", Role::Admin, 0).await.unwrap());
    for groups in [&["platform-admins"][..], &[]] {
        assert_eq!(comes(groups).await, StatusCode::OK);
    }
    assert!(served.store.set_role(&admin, "mia", Role::Member, 0).await.unwrap());
    assert_eq!(role("ada").await, Role::Admin);

    // Whom the group made one a person keeps as one, while they are one by it.
    let keep = async || {
        let asked = served.client.post(format!("{}/settings/users/act", served.url)).header("cookie", &ada);
        told(asked.body("name=mia&act=keep-admin").send().await.unwrap()).await
    };
    let none = (StatusCode::OK, NO_ADMIN_BY_A_GROUP.to_owned());
    let offered = async || served.page(&ada, "/settings/users?name=mia").await.contains("Keep as admin");
    assert_eq!((keep().await, offered().await), (none.clone(), false));
    assert_eq!(comes(&["platform-admins"]).await, StatusCode::OK);
    assert!(offered().await);
    assert_eq!(keep().await.0, StatusCode::SEE_OTHER);
    assert_eq!((keep().await, offered().await), (none, false));
    assert_eq!(comes(&[]).await, StatusCode::OK);
    assert!(served.store.set_role(&admin, "mia", Role::Member, 0).await.unwrap());

    // Whose identity is taken away is in no group of anybody.
    assert_eq!(comes(&["platform-admins"]).await, StatusCode::OK);
    let form = "name=mia&act=unlink-identity";
    let asked = served.client.post(format!("{}/settings/users/act", served.url)).header("cookie", &ada);
    assert_eq!(asked.body(form).send().await.unwrap().status(), StatusCode::SEE_OTHER);
    assert_eq!(role("mia").await, Role::Member);
    let unlinked = format!("ada session user.unlink-identity: mia: of {}", provider.issuer);
    assert_eq!(served.last_acts(2).await, ["ada session user.member: mia", &*unlinked]);
}

#[tokio::test]
async fn whoever_is_in_more_groups_than_the_provider_tells_is_not_taken_to_be_in_none() {
    let (with_groups, provider, _) = served(Timestamp::now, |by| by).await;
    provider.person("mia", &["platform-ops", "platform-admins"]).await;
    assert_eq!(with_groups.comes_back("mia").await.0, StatusCode::SEE_OTHER);
    let too_many = json!({
        "person": { "login": "mia", "claims": { "preferred_username": "mia" } },
        "twist": {
            "_claim_names": { "groups": "src1" },
            "_claim_sources": { "src1": { "endpoint": "https://graph.example.com/mia/getMemberObjects" } },
        },
    });
    provider.set(too_many.clone()).await;
    let why = format!(
        "{} does not tell which groups you are in, as they are too many: an admin there has it tell those alone that are assigned to \
         this platform.",
        host(&provider)
    );
    assert_eq!(with_groups.comes_back("mia").await, refused(StatusCode::FORBIDDEN, why));
    let people = with_groups.store.people().await.unwrap();
    let mia = people.into_iter().find(|one| one.name == "mia").unwrap();
    assert_eq!((mia.role, mia.teams), (Role::Admin, vec!["ops".to_owned()]));

    // Where no group means anything it does not matter.
    let (without, provider, _) =
        served(Timestamp::now, |by| OidcSignIn { teams: Vec::new(), admin_group: None, ..by }).await;
    provider.set(too_many).await;
    assert_eq!(without.comes_back("mia").await.0, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn whose_role_or_team_has_lapsed_is_marked_among_the_users_and_is_not_kept_as_an_admin() {
    static LATER: AtomicI64 = AtomicI64::new(0);
    fn later() -> Timestamp {
        still() + SignedDuration::from_secs(LATER.load(Ordering::SeqCst))
    }
    let (served, provider, _) = served(later, |by| by).await;
    served.store.keep_session(sha2::Sha256::digest("of-ada").into(), "ada", 0, i64::MAX).await.unwrap();
    provider.person("mia", &["platform-admins"]).await;
    assert_eq!(served.comes_back("mia").await.0, StatusCode::SEE_OTHER);
    provider.person("lin", &["platform-ops"]).await;
    assert_eq!(served.comes_back("lin").await.0, StatusCode::SEE_OTHER);
    let page =
        async |name: &str| served.page("session=of-ada", &format!("/settings/users?name={name}")).await;
    let tag = "<span class=\"tag\">lapsed</span>";
    for (days, lapsed) in [(29, 0), (30, 2)] {
        LATER.store(days * 86_400, Ordering::SeqCst);
        for (name, what) in [("mia", "the role admin"), ("lin", "a team")] {
            let page = page(name).await;
            let said = format!(
                "{name} last came in by the provider more than 30 days ago: {what} that a group of it gave does not count until they \
                 come in by it again."
            );
            assert_eq!((page.matches(tag).count(), page.contains(&said)), (lapsed, lapsed > 0), "{page}");
            assert_eq!(page.contains("Keep as admin"), name == "mia" && lapsed == 0, "{page}");
        }
    }
    let asked = served.client.post(format!("{}/settings/users/act", served.url));
    let asked = asked.header("cookie", "session=of-ada").body("name=mia&act=keep-admin");
    assert_eq!(told(asked.send().await.unwrap()).await, refused(StatusCode::OK, NO_ADMIN_BY_A_GROUP));
    // Once she comes in again it counts again, and may be kept.
    provider.person("mia", &["platform-admins"]).await;
    assert_eq!(served.comes_back("mia").await.0, StatusCode::SEE_OTHER);
    let page = page("mia").await;
    assert!(page.matches(tag).count() == 1 && page.contains("Keep as admin"), "{page}");
}

#[tokio::test]
async fn whoever_may_not_come_in_is_told_why_and_stands_in_the_audit_log_no_oftener_than_passwords_are_tried()
{
    let (served, provider, _) =
        served(still, |by| OidcSignIn { domains: vec!["example.com".to_owned()], ..by }).await;
    assert_eq!(served.comes_back("mia").await.0, StatusCode::SEE_OTHER);
    let admin = By { who: "ada".to_owned(), how: "session" };
    assert!(served.store.set_disabled(&admin, "mia", true, 0).await.unwrap());
    let disabled = "Your account here is disabled: ask an admin.";
    for _ in 0..3 {
        assert_eq!(served.comes_back("mia").await, refused(StatusCode::FORBIDDEN, disabled));
    }
    let row = format!("mia oidc user.refuse: mia of {}: {disabled}", provider.issuer);
    let acts = served.last_acts(4).await;
    assert_eq!(acts[..3], [&*row, &*row, &*row]);
    let waits = refused(StatusCode::TOO_MANY_REQUESTS, "You were refused too often. Try again in 1 s.");
    assert_eq!(served.comes_back("mia").await, waits);
    assert_eq!(served.last_acts(4).await, acts);

    // By the address, which must be one that the provider has verified.
    let why = format!("Only addresses at example.com that {} has verified come in here.", host(&provider));
    for (login, email, verified) in [
        ("eve", "eve@evil.example", true),
        ("eva", "eva@example.com", false),
        ("evi", "evi@example.com.evil.example", true),
    ] {
        let claims = json!({ "preferred_username": login, "email": email, "email_verified": verified });
        provider.set(json!({ "person": { "login": login, "claims": claims } })).await;
        assert_eq!(served.comes_back(login).await, refused(StatusCode::FORBIDDEN, &*why), "{email}");
        assert_eq!(
            served.last_acts(1).await,
            [format!("{login} oidc user.refuse: {login} of {}: {why}", provider.issuer)]
        );
    }
    assert_eq!(served.store.people().await.unwrap().len(), 2, "nobody of them was added");
}

#[tokio::test]
async fn an_address_is_verified_by_the_claim_of_the_standard_or_where_that_is_not_there_by_that_of_entra() {
    let (served, provider, _) =
        served(still, |by| OidcSignIn { domains: vec!["example.com".to_owned()], ..by }).await;
    let why = format!("Only addresses at example.com that {} has verified come in here.", host(&provider));
    // By turns, as whoever is refused too often waits.
    for (no, yes) in [
        (json!({}), json!({ "email_verified": true })),
        (json!({ "xms_edov": false }), json!({ "xms_edov": true })),
        (json!({ "xms_edov": "0" }), json!({ "xms_edov": "1" })),
        (json!({ "email_verified": false, "xms_edov": true }), json!({ "email_verified": "true" })),
        (json!({ "email_verified": null }), json!({ "email_verified": null, "xms_edov": 1 })),
    ] {
        for (mut twist, comes) in [(no, false), (yes, true)] {
            twist["email"] = json!("mia@example.com");
            provider.set(json!({ "twist": twist })).await;
            let told = served.comes_back("mia").await;
            match comes {
                true => assert_eq!(told.0, StatusCode::SEE_OTHER, "{twist}"),
                false => assert_eq!(told, refused(StatusCode::FORBIDDEN, &*why), "{twist}"),
            }
        }
    }
}

#[tokio::test]
async fn nobody_is_added_where_an_admin_adds_people_or_nobody_has_an_account_yet() {
    let mut provider = None;
    let served = Served::by(Sample::new(), Timestamp::now, async |url| {
        let started = Provider::start(url).await;
        let sign_in = OidcSignIn { creates_users: false, ..by(config(&started.issuer, url)) };
        provider = Some(started);
        Some(sign_in)
    })
    .await;
    let provider = provider.unwrap();
    provider.person("mia", &[]).await;
    let first = "The first account is made by the link that the platform prints, and not by a provider.";
    assert_eq!(served.comes_back("mia").await, refused(StatusCode::FORBIDDEN, first));
    let ada = served.signed_in().await;
    let why = "You have no account here: ask an admin for one, or to link you to yours.";
    assert_eq!(served.comes_back("mia").await, refused(StatusCode::FORBIDDEN, why));

    // An admin links her account to who she is there, and takes that away again.
    let lin = Account { name: "lin".to_owned(), password: "none".to_owned(), role: Role::Member };
    let admin = By { who: "ada".to_owned(), how: "session" };
    assert!(served.store.add_person(&admin, &lin, 0).await.unwrap());
    let act = async |form: &str| {
        let asked = served.client.post(format!("{}/settings/users/act", served.url)).header("cookie", &ada);
        told(asked.body(form.to_owned()).send().await.unwrap()).await
    };
    for (form, why) in [
        ("name=lin&act=link-identity&subject=+", "A subject has 1 to 255 characters."),
        (
            "name=nobody&act=link-identity&subject=x",
            "Somebody is linked to that subject, or they to another.",
        ),
        ("name=lin&act=unlink-identity", "They are not linked."),
    ] {
        assert_eq!(act(form).await, refused(StatusCode::OK, why));
    }
    assert_eq!(act("name=lin&act=link-identity&subject=mia").await.0, StatusCode::SEE_OTHER);
    assert!(
        served
            .page(&ada, "/settings/users?name=lin")
            .await
            .contains(&format!("At {}: <code>mia</code>", host(&provider)))
    );
    assert_eq!(served.comes_back("mia").await.0, StatusCode::SEE_OTHER);
    assert_eq!(served.last_acts(1).await, ["lin oidc user.sign-in: lin"]);
    assert_eq!(act("name=lin&act=unlink-identity").await.0, StatusCode::SEE_OTHER);
    assert_eq!(served.comes_back("mia").await, refused(StatusCode::FORBIDDEN, why));
}

#[tokio::test]
async fn an_account_is_linked_by_whoever_is_signed_in_to_it_and_by_no_name_or_address() {
    let (served, provider, ada) = served(Timestamp::now, |by| by).await;
    // Whoever may choose a name there is not the `ada` of here.
    let claims = json!({ "preferred_username": "ada", "email": "ada@example.com", "email_verified": true });
    provider.set(json!({ "person": { "login": "x-9", "claims": claims } })).await;
    assert_eq!(served.comes_back("x-9").await.0, StatusCode::SEE_OTHER);
    let people = served.store.people().await.unwrap();
    let names: Vec<_> = people.iter().map(|one| (&*one.name, one.role)).collect();
    assert!(
        matches!(names[..], [("ada", Role::Admin), (other, Role::Member)] if other.starts_with("ada-") && other.len() == 10),
        "{names:?}"
    );

    // `ada` links herself: from a page of the console, on by an answer, since no form may lead elsewhere.
    provider.person("a-1", &[]).await;
    let url = Url::parse(&format!("{}/settings/identity", served.url)).unwrap();
    let post = async |session: &str, act: &str| {
        let asked = served.client.post(url.clone()).header("cookie", session);
        asked.body(format!("act={act}")).send().await.unwrap()
    };
    assert_eq!(told(post(&ada, "unlink").await).await, refused(StatusCode::OK, "You are not linked."));
    assert_eq!(told(post(&ada, "other").await).await, refused(StatusCode::OK, "There is no such act."));
    // What a browser brings back from there, and with which cookie.
    let there_and_back = async || {
        let answer = post(&ada, "link").await;
        assert_eq!(answer.status(), StatusCode::OK);
        assert!(
            answer.headers()["content-security-policy"].to_str().unwrap().contains("form-action 'self';")
        );
        let refresh = answer.headers()["refresh"].to_str().unwrap();
        let there = Url::parse(refresh.strip_prefix("0; url=").unwrap()).unwrap();
        let attempt = answer.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
        let mut browser = Person::new();
        let form = to(&there, &browser.get(&there).await);
        browser.get(&form).await;
        let on = to(&form, &browser.post(&form, "login=a-1").await);
        (to(&on, &browser.get(&on).await), attempt)
    };
    let comes = async |back: Url, cookies: String| {
        let response = client().get(back).header("cookie", cookies).send().await.unwrap();
        let location = response.headers().get("location").map(|to| to.to_str().unwrap().to_owned());
        (location, told(response).await)
    };
    let (back, attempt) = there_and_back().await;
    let (_, told) = comes(back, attempt).await;
    let not_yours = "You are not signed in any more as whoever began this: sign in, and link it again.";
    assert_eq!(told, refused(StatusCode::FORBIDDEN, not_yours));
    assert_eq!(served.store.subject_of("ada", &provider.issuer).await.unwrap(), None);
    let (back, attempt) = there_and_back().await;
    let (location, _) = comes(back, format!("{attempt}; {ada}")).await;
    assert_eq!(location.as_deref(), Some("/settings"));
    assert_eq!(
        served.last_acts(1).await,
        [format!("ada session user.link-identity: ada: a-1 of {}", provider.issuer)]
    );
    assert!(served.page(&ada, "/settings").await.contains("You are known there as <code>a-1</code>."));
    let (back, attempt) = there_and_back().await;
    let (_, told) = comes(back, format!("{attempt}; {ada}")).await;
    let already = "That identity belongs to an account here already, or yours has another one: an admin can take it away.";
    assert_eq!(told, refused(StatusCode::CONFLICT, already));

    // From now on she comes in by it, until she takes it away; whoever has no other way keeps it.
    assert_eq!(served.comes_back("a-1").await.0, StatusCode::SEE_OTHER);
    assert_eq!(served.last_acts(1).await, ["ada oidc user.sign-in: ada"]);
    assert_eq!(post(&ada, "unlink").await.status(), StatusCode::SEE_OTHER);
    assert_eq!(served.store.subject_of("ada", &provider.issuer).await.unwrap(), None);
    let mut mia = Person::new();
    let back = mia.through(&served.start(), "mia").await;
    mia.get(&back).await;
    let only =
        "You have no password, and would not come in any more: ask an admin for a link to set one first.";
    let page = post(&mia.cookies(&url), "unlink").await.text().await.unwrap();
    assert!(page.contains(only), "{page}");
}
