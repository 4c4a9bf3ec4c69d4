//! A token that nobody types: begun, consented to in a browser, and registered with the line that the browser shows.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::redirect::Policy;
use serde_json::{Value, json};
use stages_client::Url;
use stages_proxy::{OAuthConfig, ProxyConfig};

use crate::cluster::GIT;
use crate::git::{admin, key_of};
use crate::provider::oauth::{ID, SECRET};
use crate::support::{Running, by, now};

const PUBLIC: &str = "https://runtime.example.com";
const APPLICATION: &str = "/api/v1/namespaces/argocd/secrets/github-oauth2";
const UNKNOWN: &str = "this was not begun here, or more than 10 minutes ago: begin again";
const BEGIN: &str = r#"mutation { beginGitAuth(name: "own") { url } }"#;

/// A runtime with an OAuth application at the GitHub of its integration `own`; a browser, which follows nothing by itself.
struct World {
    running: Running,
    browser: reqwest::Client,
}

fn finish(line: &str) -> String {
    format!(
        r#"mutation {{ finishGitAuth(args: {{name: "own", line: "{line}"}}) {{ users {{ userId isValid }} }} }}"#
    )
}

fn add(name: &str, provider: &str, url: &str) -> String {
    format!(
        r#"mutation {{ addGitIntegration(args: {{name: "{name}", provider: {provider}, apiUrl: "{url}", sharingPolicy: ALL_USERS_IN_ACCOUNT}}) {{ name }} }}"#
    )
}

impl World {
    async fn start() -> Self {
        let oauth =
            Some(OAuthConfig { secret: "github-oauth2".to_owned(), external_url: PUBLIC.parse().unwrap() });
        let running = Running::made(Duration::ZERO, |config| ProxyConfig { oauth, ..config }).await;
        running.register().await;
        running.cluster.remove(GIT);
        let url = running.provider.url.clone();
        running.data(&running.admin, &add("own", "GITHUB", &url)).await;
        running.provider.oauth.lock().unwrap().callback =
            format!("{PUBLIC}/app-proxy/api/git-auth/github/callback");
        let browser = reqwest::Client::builder().redirect(Policy::none()).no_proxy().build().unwrap();
        let world = Self { running, browser };
        world.application(&[("clientId", ID), ("clientSecret", SECRET), ("url", &url)]);
        world
    }

    /// The Secret of the application holds this.
    fn application(&self, data: &[(&str, &str)]) {
        let data: serde_json::Map<String, Value> =
            data.iter().map(|(key, value)| ((*key).to_owned(), STANDARD.encode(value).into())).collect();
        self.running.cluster.objects.lock().unwrap().insert(APPLICATION.to_owned(), json!({"data": data}));
    }

    async fn wrong(&self, query: &str, message: &str) {
        self.running.wrong(query, message).await;
    }

    /// Begins; gives the address that the browser is to open.
    async fn begin(&self) -> String {
        let begun = self.running.data(&self.running.admin, BEGIN).await;
        begun["beginGitAuth"]["url"].as_str().unwrap().to_owned()
    }

    /// Where a page leads on to, or what it says. The runtime is not where the world knows it.
    async fn open(&self, url: &str) -> Result<String, (u16, String)> {
        let url = url.replacen(PUBLIC, &self.running.url, 1);
        let answer = self.browser.get(url).send().await.unwrap();
        match answer.headers().get("location") {
            Some(to) => Ok(to.to_str().unwrap().to_owned()),
            None => {
                let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
                if headers.contains_key("referrer-policy") {
                    assert_eq!(headers["content-type"], "text/plain; charset=utf-8");
                    assert_eq!(
                        (&headers["cache-control"], &headers["referrer-policy"]),
                        (&"no-store".parse().unwrap(), &"no-referrer".parse().unwrap())
                    );
                }
                Err((status, answer.text().await.unwrap()))
            }
        }
    }

    /// The page that the browser is at when it has come back.
    async fn consent(&self, begun: &str) -> (String, (u16, String)) {
        let asks = self.open(begun).await.unwrap();
        let back = self.open(&asks).await.unwrap();
        let said = self.open(&back).await.unwrap_err();
        (back, said)
    }

    /// Begins and consents; gives the line.
    async fn line(&self) -> String {
        let begun = self.begin().await;
        let (_, (status, said)) = self.consent(&begun).await;
        assert_eq!(status, 200, "{said}");
        shown(&said)
    }
}

/// The line of a page.
fn shown(page: &str) -> String {
    page.lines().nth(2).unwrap().to_owned()
}

#[tokio::test]
async fn a_token_is_registered_with_the_line_that_the_browser_of_whoever_began_shows() {
    let world = World::start().await;
    let begun = world.begin().await;
    let public = format!("{PUBLIC}/app-proxy/api/git-auth/github?userId=ada&accountId=default&state=");
    assert!(begun.starts_with(&public), "{begun}");
    let asks = Url::parse(&world.open(&begun).await.unwrap()).unwrap();
    let of = |name: &str| asks.query_pairs().find(|(of, _)| of == name).unwrap().1.into_owned();
    assert!(asks.as_str().starts_with(&format!("{}/login/oauth/authorize?", world.running.provider.url)));
    assert_eq!((&*of("client_id"), &*of("scope"), &*of("code_challenge_method")), (ID, "repo", "S256"));
    assert_eq!(of("redirect_uri"), format!("{PUBLIC}/app-proxy/api/git-auth/github/callback"));
    let (_, (status, page)) = world.consent(&begun).await;
    let line = shown(&page);
    let said = format!(
        "Copy this line to where you began, within 10 minutes:\n\n{line}\n\nWhoever began works with your account of GitHub in this runtime \
         then: give it to nobody else.\n"
    );
    assert_eq!((status, page), (200, said));
    // It is nobody else's, whoever has the line; nor is what has not come back one.
    world.running.allow("CREATE", "gitContexts", "").await;
    world.running.refuses(&world.running.member, &finish(&line), UNKNOWN, "BAD_REQUEST").await;
    for other in ["", "BCDF-GHJK", &of("state"), &line.to_lowercase()] {
        world.wrong(&finish(other), UNKNOWN).await;
    }
    world.running.data(&world.running.admin, &add("other", "GITHUB", &world.running.provider.url)).await;
    world.wrong(&finish(&line).replace("own", "other"), UNKNOWN).await;
    let done = world.running.data(&world.running.admin, &finish(&line)).await;
    assert_eq!(done["finishGitAuth"]["users"], json!([{"userId": "ada", "isValid": true}]));
    let checked = r#"{ gitToken(integrationName: "own") { userId username expiresAt } }"#;
    let checked = world.running.data(&world.running.admin, checked).await;
    let token = json!({"userId": "ada", "username": "ada-lovelace", "expiresAt": null});
    assert_eq!(checked["gitToken"], token);
    // GitHub takes a code once.
    let again = world.running.refused(&world.running.admin, &finish(&line)).await;
    assert_eq!(again.1, "PEER_REFUSED", "{again:?}");
    let kept = world.running.cluster.object(GIT).to_string();
    assert!(!kept.contains("canary"), "it is sealed: {kept}");
    let rows = world.running.audit(11).await;
    let acts: Vec<_> = rows.into_iter().map(|(who, act, what)| format!("{who} {act} {what}")).collect();
    assert!(acts.contains(&"ada beginGitAuth prod/Git integration own: done".to_owned()), "{acts:#?}");
    assert!(acts.contains(&"ada finishGitAuth prod/Git integration own: done".to_owned()), "{acts:#?}");
}

#[tokio::test]
async fn an_address_is_good_for_whom_it_was_made_and_for_what() {
    let world = World::start().await;
    let begun = world.begin().await;
    let other = begun.replace("userId=ada", "userId=lin");
    assert_eq!(world.open(&other).await, Err((400, format!("{UNKNOWN}\n"))));
    // Nor is a line an address: what came back does not go again.
    let line = world.line().await;
    let mut again = Url::parse(&begun).unwrap();
    again.query_pairs_mut().clear().extend_pairs([("userId", "ada"), ("state", &*line)]);
    assert_eq!(world.open(again.as_str()).await, Err((400, format!("{UNKNOWN}\n"))));
    for (path, status, said) in [
        ("github", 400, UNKNOWN),
        ("github/callback", 400, UNKNOWN),
        ("github/callback?state=x&code=y", 400, UNKNOWN),
        ("github/callback?state=x&error=access_denied", 400, UNKNOWN),
        ("gitlab", 404, "a browser gives a token of github alone"),
        ("gitlab/callback?state=x&code=y", 404, "a browser gives a token of github alone"),
    ] {
        let page = world.open(&format!("{PUBLIC}/api/git-auth/{path}")).await;
        assert_eq!(page, Err((status, format!("{said}\n"))), "{path}");
    }
}

#[tokio::test]
async fn whoever_does_not_consent_registers_nothing() {
    let world = World::start().await;
    world.running.provider.oauth.lock().unwrap().consents = false;
    let begun = world.begin().await;
    let (back, said) = world.consent(&begun).await;
    assert_eq!(said, (403, "GitHub says that there is no consent: nothing was registered.\n".to_owned()));
    assert!(back.contains("error=access_denied"), "{back}");
    // No code of GitHub.
    world.running.provider.oauth.lock().unwrap().consents = true;
    let asks = world.open(&world.begin().await).await.unwrap();
    let asks = Url::parse(&asks).unwrap();
    let state = asks.query_pairs().find(|(of, _)| of == "state").unwrap().1.into_owned();
    let mut back = Url::parse(&format!("{PUBLIC}/api/git-auth/github/callback")).unwrap();
    back.query_pairs_mut().extend_pairs([("state", &*state), ("code", "a b")]);
    let no_code = "that is no code of GitHub: begin again\n".to_owned();
    assert_eq!(world.open(back.as_str()).await, Err((400, no_code)));
}

#[tokio::test]
async fn what_is_wrong_with_the_application_is_said_with_what_mends_it() {
    let world = World::start().await;
    let url = world.running.provider.url.clone();
    let good = [("clientId", ID), ("clientSecret", SECRET), ("url", &*url)];
    let mend = "write clientId, clientSecret and url of the application there";
    let lacks = format!("the Secret github-oauth2 lacks something, or it cannot be read: {mend}");
    for without in 0..3 {
        let less: Vec<_> =
            good.iter().enumerate().filter(|(at, _)| *at != without).map(|(_, one)| *one).collect();
        world.application(&less);
        world.wrong(BEGIN, &lacks).await;
    }
    world.application(&[good[0], good[1], ("url", "http://git.example")]);
    let sent = "the url of the Secret github-oauth2: apiUrl must begin with https://: tokens are sent there";
    world.wrong(BEGIN, sent).await;
    world.application(&[good[0], good[1], ("url", "https://github.com")]);
    let other = format!(
        "the OAuth application is of https://github.com/, and this Git integration is at {url}/api/v3: register a token"
    );
    world.wrong(BEGIN, &other).await;
    world.running.cluster.remove(APPLICATION);
    world.wrong(BEGIN, &format!("there is no Secret github-oauth2: {mend}")).await;
    world.application(&good);
    world.running.data(&world.running.admin, &add("lab", "GITLAB", &url)).await;
    let lab =
        "a browser gives a token of GITHUB alone, and this Git integration is of GITLAB: register a token";
    world.wrong(&BEGIN.replace("own", "lab"), lab).await;
    let (running, gone) = (&world.running, "there is no Git integration none");
    running.refuses(&running.admin, &BEGIN.replace("own", "none"), gone, "NOT_FOUND").await;

    // What GitHub refuses is told in its own words.
    let said = |text: &str| {
        let said = format!("the Git provider refused to give a token for the code (200): {text}");
        (said, "PEER_REFUSED".to_owned())
    };
    let line = world.line().await;
    world.application(&[good[0], ("clientSecret", "another"), good[2]]);
    let refused = world.running.refused(&world.running.admin, &finish(&line)).await;
    assert_eq!(refused, said("The client_id and/or client_secret passed are incorrect."));
    world.application(&good);
    let begun = world.begin().await;
    let asks = world.open(&begun).await.unwrap();
    let back = world.open(&asks).await.unwrap();
    let (head, _) = back.split_once("code=").unwrap();
    let (_, tail) = back.split_once('&').unwrap();
    let line = shown(&world.open(&format!("{head}code=stolen&{tail}")).await.unwrap_err().1);
    let refused = world.running.refused(&world.running.admin, &finish(&line)).await;
    assert_eq!(refused, said("The code passed is incorrect or expired."));

    // Tokens that are not taken, as none that somebody types is.
    let line = world.line().await;
    world.running.provider.oauth.lock().unwrap().ends = true;
    let ends = "the application of the Secret github-oauth2 gives tokens that end within hours: let its tokens not expire, or make an \
                OAuth application, which is none of a GitHub App";
    world.wrong(&finish(&line), ends).await;
    {
        let mut application = world.running.provider.oauth.lock().unwrap();
        (application.ends, application.token) = (false, "reads");
    }
    let line = world.line().await;
    let refused = world.running.refused(&world.running.admin, &finish(&line)).await;
    assert_eq!(refused.1, "BAD_REQUEST", "{refused:?}");
    assert!(refused.0.contains("repo"), "{refused:?}");
    let none = r#"{ gitIntegration(name: "own") { registeredUsers } }"#;
    let none = world.running.data(&world.running.admin, none).await;
    assert_eq!(none, json!({"gitIntegration": {"registeredUsers": 0}}));
}

#[tokio::test]
async fn what_somebody_has_begun_is_not_ended_by_whoever_has_their_name_next() {
    let world = World::start().await;
    let (line, store) = (world.line().await, &world.running.store);
    assert!(store.add_person(&by("ada"), &admin("eve"), now()).await.unwrap());
    assert!(store.remove_person(&by("eve"), "ada", now()).await.unwrap());
    assert!(store.add_person(&by("eve"), &admin("ada"), now()).await.unwrap());
    let next = key_of(&world.running, "ada").await;
    world.running.refuses(&next, &finish(&line), UNKNOWN, "BAD_REQUEST").await;
}
