//! People come in by a real provider of OpenID Connect, or are told why they do not.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use reqwest::{Response, StatusCode};
use serde_json::json;
use stages_client::Token;
use stages_platform_console::OidcSignIn;
use stages_platform_oidc::{Issuer, OidcConfig};
use stages_platform_store::{Account, By, Role};
use tracing::field::{Field, Visit};
use tracing::span;
use url::Url;

use crate::provider::{Person, Provider, SECRET, client, to};
use crate::sample::Sample;
use crate::served::Served;

/// Time stands still, so that however long a provider takes, nobody has waited.
fn still() -> Timestamp {
    Timestamp::from_second(1_900_000_000).unwrap()
}

fn config(issuer: &str, platform: &str) -> OidcConfig {
    let redirect = Url::parse(&format!("{platform}/login/oidc/callback")).unwrap();
    let config = OidcConfig::new(
        Issuer::parse(issuer).unwrap(),
        "platform".to_owned(),
        Token::literal(SECRET),
        redirect,
    );
    OidcConfig {
        scopes: ["profile", "email", "groups"].map(str::to_owned).into(),
        groups_claim: Some("groups".to_owned()),
        // What is known of it holds for the whole test, and it is asked again at once where it was away.
        fresh: Duration::from_secs(3_600),
        rest: Duration::ZERO,
        ..config
    }
}

fn by(config: OidcConfig) -> OidcSignIn {
    OidcSignIn {
        provider: config.build(),
        button: "Sign in with Example".to_owned(),
        teams: [("platform-ops", "ops"), ("shop-owners", "shop")]
            .map(|(group, team)| (group.to_owned(), team.to_owned()))
            .into(),
        admin_group: Some("platform-admins".to_owned()),
        domains: Vec::new(),
        creates_users: true,
    }
}

/// A console with its provider, at which `mia` is; `ada` is the first user here.
pub(crate) async fn served(
    clock: fn() -> Timestamp,
    change: impl FnOnce(OidcSignIn) -> OidcSignIn,
) -> (Served, Provider, String) {
    let mut provider = None;
    let served = Served::by(Sample::new(), clock, async |url| {
        let started = Provider::start(url).await;
        let sign_in = by(config(&started.issuer, url));
        provider = Some(started);
        Some(change(sign_in))
    })
    .await;
    let provider = provider.unwrap();
    provider.person("mia", &["platform-ops"]).await;
    let ada = served.signed_in().await;
    (served, provider, ada)
}

impl Served {
    async fn last_acts(&self, count: u32) -> Vec<String> {
        let acts = self.store.audit(i64::MAX, count).await.unwrap();
        acts.into_iter().map(|act| format!("{} {} {}: {}", act.who, act.how, act.act, act.subject)).collect()
    }

    fn start(&self) -> String {
        format!("{}/login/oidc", self.url)
    }

    /// What somebody is told who comes back from the provider.
    async fn comes_back(&self, login: &str) -> (StatusCode, String) {
        let mut person = Person::new();
        let back = person.through(&self.start(), login).await;
        told(person.get(&back).await).await
    }

    async fn teams(&self, name: &str) -> Vec<String> {
        let people = self.store.people().await.unwrap();
        people.into_iter().find(|one| one.name == name).unwrap().teams
    }
}

/// The status and the alert of a page.
async fn told(response: Response) -> (StatusCode, String) {
    let status = response.status();
    let page = response.text().await.unwrap();
    let alert = page.split("role=\"alert\">").nth(1).and_then(|rest| rest.split("</p>").next());
    (status, alert.unwrap_or_default().to_owned())
}

fn refused(status: StatusCode, why: impl Into<String>) -> (StatusCode, String) {
    (status, why.into())
}

fn host(provider: &Provider) -> String {
    provider.issuer.strip_prefix("http://").unwrap().to_owned()
}

#[tokio::test]
async fn somebody_comes_in_by_the_provider_to_where_they_wanted_with_teams_that_follow_their_groups() {
    let (served, provider, ada) = served(Timestamp::now, |by| by).await;
    let mut mia = Person::new();
    // From a link that somebody shared, by the page to sign in.
    let wanted = Url::parse(&format!("{}/applications?q=health:degraded", served.url)).unwrap();
    let sign_in = to(&wanted, &mia.get(&wanted).await);
    let page = mia.get(&sign_in).await.text().await.unwrap();
    let button = r#"<a class="button provider" href="/login/oidc?next=%2Fapplications%3Fq%3Dhealth%3Adegraded">Sign in with Example</a>"#;
    assert!(page.contains(button), "{page}");
    let start = format!("{}/login/oidc?next=%2Fapplications%3Fq%3Dhealth%3Adegraded", served.url);
    let begun = Url::parse(&start).unwrap();
    let response = mia.get(&begun).await;
    let cookie = response.headers()["set-cookie"].to_str().unwrap().to_owned();
    assert!(
        cookie.starts_with("attempt=")
            && cookie.ends_with("; Path=/login/oidc; HttpOnly; SameSite=Lax; Max-Age=600")
    );
    let there = to(&begun, &response);
    let asked: std::collections::HashMap<_, _> = there.query_pairs().into_owned().collect();
    let of = |name: &str| &*asked[name];
    assert_eq!((of("response_type"), of("code_challenge_method")), ("code", "S256"));
    assert_eq!((of("scope"), of("client_id")), ("openid profile email groups", "platform"));
    assert_eq!(of("redirect_uri"), format!("{}/login/oidc/callback", served.url));
    assert!(["state", "nonce", "code_challenge"].iter().all(|name| of(name).len() >= 22));

    let back = mia.on(begun, response, "mia").await;
    let response = mia.get(&back).await;
    assert_eq!(response.status(), StatusCode::SEE_OTHER);
    let at = to(&back, &response);
    assert_eq!(at, wanted);
    assert_eq!(mia.get(&at).await.status(), StatusCode::OK);
    assert!(mia.cookies(&back).starts_with("session="), "the attempt is over: {}", mia.cookies(&back));
    let acts = ["mia oidc user.sign-in: mia", "mia oidc user.teams: mia: ops", "mia oidc user.add: mia"];
    assert_eq!(served.last_acts(3).await, acts);

    // She is in another group the next time, and in one that an admin put her into.
    let teams = ["guild", "ops"].map(str::to_owned);
    let admin = By { who: "ada".to_owned(), how: "session" };
    assert!(served.store.set_teams(&admin, "mia", &teams, 0).await.unwrap());
    provider.person("mia", &["shop-owners", "staff"]).await;
    assert_eq!(served.comes_back("mia").await.0, StatusCode::SEE_OTHER);
    assert_eq!(served.teams("mia").await, ["guild", "shop"]);
    provider.person("mia", &[]).await;
    assert_eq!(served.comes_back("mia").await.0, StatusCode::SEE_OTHER);
    assert_eq!(served.teams("mia").await, ["guild"]);

    // Passwords go on, and she has none.
    let wrong = served.post("/sign-in", &[("name", "mia"), ("password", "anything")]).await;
    assert_eq!(wrong.status(), StatusCode::UNAUTHORIZED);
    assert!(served.page(&ada, "/").await.contains("What needs you now"));
}

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
async fn whoever_comes_back_of_no_attempt_or_of_another_is_told_to_begin_again() {
    static LATER: AtomicI64 = AtomicI64::new(0);
    fn later() -> Timestamp {
        still() + SignedDuration::from_secs(LATER.load(Ordering::SeqCst))
    }
    let (served, provider, _) = served(later, |by| by).await;
    let stale = "This attempt began in another browser, or more than 10 minutes ago: begin again.";
    let stale = refused(StatusCode::BAD_REQUEST, stale);
    let mut mia = Person::new();
    let back = mia.through(&served.start(), "mia").await;

    // In another browser, with another state, with a cookie that somebody made up.
    assert_eq!(told(Person::new().get(&back).await).await, stale);
    let mut other = back.clone();
    let pairs: Vec<_> = back.query_pairs().into_owned().filter(|(name, _)| name != "state").collect();
    other.query_pairs_mut().clear().extend_pairs(&pairs).append_pair("state", "another");
    let cookie = mia.cookies(&back);
    let with = async |url: &Url, cookie: &str| {
        told(client().get(url.clone()).header("cookie", cookie).send().await.unwrap()).await
    };
    assert_eq!(with(&other, &cookie).await, stale);
    assert_eq!(with(&back, "attempt=made-up").await, stale);
    let nothing = Url::parse(&format!("{}/callback", served.start())).unwrap();
    assert_eq!(with(&nothing, &cookie).await, stale);

    // Of another provider, and too late.
    let mut foreign = back.clone();
    let pairs: Vec<_> = back.query_pairs().into_owned().filter(|(name, _)| name != "iss").collect();
    foreign.query_pairs_mut().clear().extend_pairs(&pairs).append_pair("iss", "https://evil.example");
    let why = format!("This answer is of another provider than {}: begin again.", host(&provider));
    assert_eq!(with(&foreign, &cookie).await, refused(StatusCode::BAD_REQUEST, why));
    LATER.store(600, Ordering::SeqCst);
    assert_eq!(with(&back, &cookie).await, stale);
    LATER.store(599, Ordering::SeqCst);
    assert_eq!(with(&back, &cookie).await.0, StatusCode::SEE_OTHER, "nothing of all that has used the code");

    // What was used is of no use to whoever has all of it, cookie and code; after three tries they wait.
    let used =
        refused(StatusCode::BAD_REQUEST, "This attempt was used already, or took too long: begin again.");
    for _ in 0..3 {
        assert_eq!(with(&back, &cookie).await, used);
    }
    let waits = refused(StatusCode::TOO_MANY_REQUESTS, "Too many codes for this attempt. Try again in 1 s.");
    assert_eq!(with(&back, &cookie).await, waits);
}

#[tokio::test]
async fn a_code_that_is_too_old_is_refused_and_so_is_whoever_the_provider_does_not_know() {
    let (served, provider, _) = served(Timestamp::now, |by| by).await;
    provider.set(json!({ "code": 1 })).await;
    let mut mia = Person::new();
    let back = mia.through(&served.start(), "mia").await;
    // It is good for a second; a machine that is busy lets it grow older still.
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    let used =
        refused(StatusCode::BAD_REQUEST, "This attempt was used already, or took too long: begin again.");
    assert_eq!(told(mia.get(&back).await).await, used);
    let why = format!("{} did not let you in: try again there, or ask whoever manages it.", host(&provider));
    assert_eq!(served.comes_back("nobody").await, refused(StatusCode::FORBIDDEN, why));
}

#[tokio::test]
async fn an_id_token_that_is_not_for_this_attempt_signs_nobody_in() {
    let (served, provider, _) = served(Timestamp::now, |by| by).await;
    let before = served.last_acts(1).await;
    let host = host(&provider);
    for (twist, what) in [
        (json!({ "twist": { "nonce": "another" } }), "an ID token that answers another attempt"),
        (json!({ "twist": { "nonce": null } }), "an ID token that answers another attempt"),
        (json!({ "twist": { "aud": "somebody else" } }), "an ID token that is for another client"),
        (
            json!({ "twist": { "aud": ["platform", "somebody else"] } }),
            "an ID token that is for another client",
        ),
        (json!({ "twist": { "iss": "https://evil.example" } }), "an ID token of another issuer"),
        (
            json!({ "twist": { "exp": 1_000_000_000 } }),
            "an ID token that has expired (are the clocks of both right?)",
        ),
        (json!({ "twist": null, "forge": true }), "an ID token that no key of it has signed"),
    ] {
        provider.set(twist).await;
        let why = format!("{host} sent {what}: nobody is signed in by it.");
        assert_eq!(served.comes_back("mia").await, refused(StatusCode::BAD_GATEWAY, why));
    }
    assert_eq!(served.last_acts(1).await, before, "nobody was added, and nobody came in");
    // With other keys it is taken, without anybody doing anything.
    provider.set(json!({ "forge": false })).await;
    assert_eq!(served.comes_back("mia").await.0, StatusCode::SEE_OTHER);
    provider.set(json!({ "rotate": true })).await;
    assert_eq!(served.comes_back("mia").await.0, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn while_the_provider_is_away_the_page_says_so_and_passwords_go_on() {
    let (served, provider, _) = served(Timestamp::now, |by| by).await;
    provider.set(json!({ "away": true })).await;
    let host = host(&provider);
    let why = format!("Cannot ask for what a provider says of itself at {host}: it answered 503.");
    let page = async || {
        served.client.get(format!("{}/sign-in", served.url)).send().await.unwrap().text().await.unwrap()
    };
    let said = format!("Sign in with Example is not possible now. {why} Passwords go on.");
    let shown = page().await;
    assert!(shown.contains(&said) && shown.contains("name=\"password\""), "{shown}");
    let start = Url::parse(&served.start()).unwrap();
    assert_eq!(told(Person::new().get(&start).await).await, refused(StatusCode::SERVICE_UNAVAILABLE, &*why));
    let form = [("name", "ada"), ("password", "correct horse battery")];
    assert_eq!(served.post("/sign-in", &form).await.status(), StatusCode::SEE_OTHER);

    // It is back, and goes for good while somebody is there.
    provider.set(json!({ "away": false })).await;
    assert!(!page().await.contains("is not possible now"));
    let mut mia = Person::new();
    let back = mia.through(&served.start(), "mia").await;
    provider.end().await;
    let why = format!("Cannot exchange a code at {host}: the connection failed.");
    assert_eq!(told(mia.get(&back).await).await, refused(StatusCode::SERVICE_UNAVAILABLE, why));
    assert_eq!(served.post("/sign-in", &form).await.status(), StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn what_is_wrong_with_the_settings_is_told_by_the_setting_to_look_at() {
    for (wrong, at_start, why) in [
        (
            "issuer",
            true,
            "answers, but not as the provider that platformServer.oidc.issuer names: an admin looks at that setting.",
        ),
        (
            "secret",
            false,
            "does not know this platform: an admin looks at platformServer.oidc.clientId and the client's secret.",
        ),
    ] {
        let mut provider = None;
        let served = Served::by(Sample::new(), Timestamp::now, async |url| {
            let started = Provider::start(url).await;
            let mut config = config(&started.issuer, url);
            if wrong == "issuer" {
                config.issuer = Issuer::parse(&format!("{}/", started.issuer)).unwrap();
            } else {
                config.client_secret = Token::literal("another secret");
            }
            provider = Some(started);
            Some(by(config))
        })
        .await;
        let provider = provider.unwrap();
        provider.person("mia", &[]).await;
        served.signed_in().await;
        let told = match at_start {
            true => told(Person::new().get(&Url::parse(&served.start()).unwrap()).await).await,
            false => served.comes_back("mia").await,
        };
        assert_eq!(told, refused(StatusCode::BAD_GATEWAY, format!("{} {why}", host(&provider))));
    }
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

#[tokio::test]
async fn a_path_of_the_console_alone_is_come_back_to() {
    let (served, _provider, _) = served(Timestamp::now, |by| by).await;
    for next in [
        "https%3A%2F%2Fevil.example",
        "%2F%2Fevil.example",
        "%2F%5Cevil.example",
        "javascript%3Aalert(1)",
        "%2Fa%0D%0Ab",
    ] {
        let mut mia = Person::new();
        let back = mia.through(&format!("{}?next={next}", served.start()), "mia").await;
        let response = mia.get(&back).await;
        assert_eq!(
            (response.status(), &response.headers()["location"]),
            (StatusCode::SEE_OTHER, &"/".parse().unwrap()),
            "{next}"
        );
    }
    let long = format!("{}?next=%2F{}", served.start(), "a".repeat(1_000));
    let mut mia = Person::new();
    let back = mia.through(&long, "mia").await;
    assert_eq!(mia.get(&back).await.headers()["location"], "/");
    // Without a provider there is nothing to begin.
    let bare = Served::new().await;
    for path in ["/login/oidc", "/login/oidc/callback?code=a&state=b"] {
        let response = bare.client.get(format!("{}{path}", bare.url)).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::NOT_FOUND);
        assert_eq!(response.text().await.unwrap(), "this platform has no provider to sign in by\n");
    }
}

/// What this program logs at any level, and others that are in it at the levels that it shows.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl tracing::Subscriber for Log {
    fn enabled(&self, of: &tracing::Metadata<'_>) -> bool {
        *of.level() <= tracing::Level::INFO
            || of.target().starts_with("stages_")
            || of.target().starts_with("pipeline_")
    }

    fn new_span(&self, attributes: &span::Attributes<'_>) -> span::Id {
        attributes.record(&mut self.clone());
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, values: &span::Record<'_>) {
        values.record(&mut self.clone());
    }

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut self.clone());
    }

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

impl Visit for Log {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.lock().unwrap().push_str(&format!("{}={value:?}\n", field.name()));
    }
}

#[tokio::test]
async fn no_code_secret_or_token_is_logged_or_shown() {
    let log = Log::default();
    // Of all threads: what other tests log beside it holds nothing that is looked for.
    tracing::subscriber::set_global_default(log.clone()).unwrap();
    let (served, provider, _) = served(Timestamp::now, |by| by).await;
    let mut secret = vec![SECRET.to_owned()];
    let mut shown = String::new();
    for twist in [json!(null), json!({ "nonce": "another" })] {
        provider.set(json!({ "twist": twist })).await;
        let mut mia = Person::new();
        let back = mia.through(&served.start(), "mia").await;
        secret.extend(mia.cookies(&back).split('=').nth(1).map(str::to_owned));
        secret.extend(
            back.query_pairs()
                .filter(|(name, _)| name == "code" || name == "state")
                .map(|(_, value)| value.into_owned()),
        );
        for _ in 0..2 {
            shown.push_str(&mia.get(&back).await.text().await.unwrap());
        }
    }
    let logged = log.0.lock().unwrap().clone();
    assert!(logged.contains("nobody was signed in by the provider"), "what is logged is seen here");
    assert_eq!(secret.len(), 7);
    for secret in secret {
        assert!(!shown.contains(&secret), "{shown}");
        let ours: Vec<_> = logged.lines().filter(|line| line.contains(&secret)).collect();
        assert!(ours.is_empty(), "{ours:?}");
    }
}
