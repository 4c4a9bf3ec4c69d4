//! People come in by a real provider of OpenID Connect, or are told why they do not.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use reqwest::{Response, StatusCode};
use serde_json::json;
use sha2::Digest as _;
use stages_client::Token;
use stages_platform_console::OidcSignIn;
use stages_platform_oidc::{Issuer, OidcConfig};
use stages_platform_store::By;
use tracing::field::{Field, Visit};
use tracing::span;
use url::Url;

use crate::provider::{Person, Provider, SECRET, client, to};
use crate::sample::Sample;
use crate::served::Served;

/// Time stands still, so that however long a provider takes, nobody has waited.
pub(crate) fn still() -> Timestamp {
    Timestamp::from_second(1_900_000_000).unwrap()
}

pub(crate) fn config(issuer: &str, platform: &str) -> OidcConfig {
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

pub(crate) fn by(config: OidcConfig) -> OidcSignIn {
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
    pub(crate) async fn last_acts(&self, count: u32) -> Vec<String> {
        let acts = self.store.audit(i64::MAX, count).await.unwrap();
        acts.into_iter().map(|act| format!("{} {} {}: {}", act.who, act.how, act.act, act.subject)).collect()
    }

    pub(crate) fn start(&self) -> String {
        format!("{}/login/oidc", self.url)
    }

    /// What somebody is told who comes back from the provider.
    pub(crate) async fn comes_back(&self, login: &str) -> (StatusCode, String) {
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
pub(crate) async fn told(response: Response) -> (StatusCode, String) {
    let status = response.status();
    let page = response.text().await.unwrap();
    let alert = page.split("role=\"alert\">").nth(1).and_then(|rest| rest.split("</p>").next());
    (status, alert.unwrap_or_default().to_owned())
}

pub(crate) fn refused(status: StatusCode, why: impl Into<String>) -> (StatusCode, String) {
    (status, why.into())
}

pub(crate) fn host(provider: &Provider) -> String {
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
async fn whoever_comes_in_otherwise_is_told_that_what_the_provider_gave_them_does_not_count_any_more() {
    static LATER: AtomicI64 = AtomicI64::new(0);
    fn later() -> Timestamp {
        still() + SignedDuration::from_secs(LATER.load(Ordering::SeqCst))
    }
    let (served, provider, _) = served(later, |by| by).await;
    assert_eq!(served.comes_back("mia").await.0, StatusCode::SEE_OTHER);
    let digest = sha2::Sha256::digest("of-mia").into();
    served.store.keep_session(digest, "mia", 0, i64::MAX).await.unwrap();
    let said = format!(
        "You last came in by {} more than 30 days ago, and what its groups gave you does not count any more: \
         <a href=\"/sign-in\">sign in by it again</a>.",
        provider.issuer
    );
    for (days, is_said) in [(29, false), (30, true)] {
        LATER.store(days * 86_400, Ordering::SeqCst);
        // Also where a page says that there is nothing.
        for path in ["/", "/nothing", "/applications/prod/argocd/none"] {
            let asked = served.client.get(format!("{}{path}", served.url)).header("accept", "text/html");
            let page = asked.header("cookie", "session=of-mia").send().await.unwrap().text().await.unwrap();
            assert_eq!(page.contains(&said), is_said, "{days} {path}");
        }
    }
    assert_eq!(served.comes_back("mia").await.0, StatusCode::SEE_OTHER);
    assert!(!served.page("session=of-mia", "/").await.contains(&said));
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
        (
            json!({ "twist": { "aud": ["platform", "somebody else"], "azp": "somebody else" } }),
            "an ID token that is for another client",
        ),
        (
            json!({ "twist": { "aud": ["a project", "somebody else"], "azp": "platform" } }),
            "an ID token that is for another client",
        ),
        (json!({ "twist": { "iss": "https://evil.example" } }), "an ID token of another issuer"),
        (
            json!({ "twist": { "exp": 1_000_000_000 } }),
            "an ID token that has expired (are the clocks of both right?)",
        ),
        (json!({ "twist": { "exp": "soon" } }), "no ID token that can be read"),
        (json!({ "twist": null, "forge": true }), "an ID token that no key of it has signed"),
        (
            json!({ "forge": false, "alg": "HS256" }),
            "an ID token that is signed in a way that is not taken here, such as by the client's secret (an admin there sets a key to \
             sign by, as for RS256)",
        ),
    ] {
        provider.set(twist).await;
        let why = format!("{host} sent {what}: nobody is signed in by it.");
        assert_eq!(served.comes_back("mia").await, refused(StatusCode::BAD_GATEWAY, why));
    }
    assert_eq!(served.last_acts(1).await, before, "nobody was added, and nobody came in");
    // One that names all clients of a project is taken where it was issued to this one.
    let of_a_project = json!({ "aud": ["platform", "a project", "somebody else"], "azp": "platform" });
    for twist in [of_a_project, json!({ "aud": ["platform", "platform"] }), json!(null)] {
        provider.set(json!({ "twist": twist, "alg": null })).await;
        assert_eq!(served.comes_back("mia").await.0, StatusCode::SEE_OTHER, "{twist}");
    }
    // With other keys it is taken, without anybody doing anything.
    provider.set(json!({ "rotate": true })).await;
    assert_eq!(served.comes_back("mia").await.0, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn a_provider_that_does_not_say_who_somebody_is_is_told_from_one_that_sends_a_bad_id_token() {
    let (served, provider, _) = served(Timestamp::now, |by| by).await;
    let host = host(&provider);
    let again = "begin again in a moment, and if it comes back, ask whoever manages it";
    for (status, answer, why) in [
        (
            401,
            StatusCode::BAD_GATEWAY,
            format!(
                "{host} does not tell this platform who somebody is (401): an admin looks at platformServer.oidc.scopes, and at what the \
                 client may ask for there."
            ),
        ),
        (
            403,
            StatusCode::BAD_GATEWAY,
            format!(
                "{host} does not tell this platform who somebody is (403): an admin looks at platformServer.oidc.scopes, and at what the \
                 client may ask for there."
            ),
        ),
        (
            404,
            StatusCode::BAD_GATEWAY,
            format!("{host} failed to say who somebody is (it answered 404): {again}."),
        ),
        (
            500,
            StatusCode::SERVICE_UNAVAILABLE,
            format!(
                "Cannot ask who somebody is at {host}: it answered 500. Begin again in a moment, and if it comes back, ask whoever manages it."
            ),
        ),
        (
            200,
            StatusCode::BAD_GATEWAY,
            format!("{host} failed to say who somebody is (its answer cannot be used): {again}."),
        ),
    ] {
        provider.set(json!({ "userinfo": status })).await;
        assert_eq!(served.comes_back("mia").await, refused(answer, why));
    }
    provider.set(json!({ "userinfo": 0 })).await;
    assert_eq!(served.comes_back("mia").await.0, StatusCode::SEE_OTHER);
}

/// As AD FS does, which says more to whom it gave a token for that alone.
#[tokio::test]
async fn somebody_of_whom_the_id_token_says_enough_comes_in_where_the_provider_says_no_more() {
    let (served, provider, _) = served(Timestamp::now, |by| by).await;
    let claims = json!({ "upn": "Mia@corp.example.com", "groups": ["platform-ops"] });
    provider.set(json!({ "userinfo": 401, "twist": claims })).await;
    assert_eq!(served.comes_back("mia").await.0, StatusCode::SEE_OTHER);
    assert_eq!(served.teams("mia@corp.example.com").await, ["ops"]);
    // Of groups that are not told there nobody knows whether there are any.
    provider.set(json!({ "twist": { "upn": "Mia@corp.example.com" } })).await;
    assert_eq!(served.comes_back("mia").await.0, StatusCode::BAD_GATEWAY);
}

#[tokio::test]
async fn what_is_written_otherwise_than_the_standard_says_keeps_nobody_out_where_nobody_reads_it() {
    let (served, provider, _) = served(Timestamp::now, |by| by).await;
    for odd in [
        json!({ "twist": { "updated_at": "2025-12-23T10:59:07.841Z" } }),
        json!({ "twist": { "updated_at": "1700000000", "auth_time": "1700000000" } }),
        json!({ "twist": { "acr": 1, "amr": "pwd", "address": "a street", "phone_number_verified": 1 } }),
        json!({ "twist": { "name#de": ["Mia"], "preferred_username#de": "mia" } }),
        json!({ "twist": { "email": "mia@example.com", "email_verified": "true" } }),
        json!({ "twist": { "email": "mia@example.com", "email_verified": 1 } }),
        json!({ "twist": null, "answer": { "expires_in": "3599" } }),
        json!({ "answer": { "scope": ["openid", "profile"] } }),
        json!({ "answer": null, "signs": true }),
    ] {
        provider.set(odd.clone()).await;
        assert_eq!(served.comes_back("mia").await.0, StatusCode::SEE_OTHER, "{odd}");
    }
    provider.set(json!({ "signs": false })).await;
    for (claim, value) in
        [("email_verified", "true"), ("updated_at", "1700000000"), ("updated_at", "2025-12-23T10:59:07Z")]
    {
        let mut claims = json!({ "preferred_username": "mia", "email": "mia@example.com" });
        claims[claim] = json!(value);
        provider.set(json!({ "person": { "login": "mia", "claims": claims } })).await;
        assert_eq!(served.comes_back("mia").await.0, StatusCode::SEE_OTHER, "{claim}: {value}");
    }
}

#[tokio::test]
async fn what_is_wrong_with_the_settings_is_told_by_the_setting_to_look_at() {
    for (wrong, at_start, why) in [
        (
            "issuer",
            true,
            "calls itself ISSUER, and platformServer.oidc.issuer says otherwise: an admin looks at that setting.",
        ),
        (
            "secret",
            false,
            "does not know this platform: an admin looks at platformServer.oidc.clientId and the client's secret, and whether the client \
             may prove itself by client_secret_basic there.",
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
        let why = why.replace("ISSUER", &provider.issuer);
        assert_eq!(told, refused(StatusCode::BAD_GATEWAY, format!("{} {why}", host(&provider))));
    }
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
