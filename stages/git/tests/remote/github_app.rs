//! Over HTTP and HTTPS, as an app of a server that speaks what GitHub does.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use serde_json::{Value, json};
use stages_git::FetchError;
use stages_git::remote::{Access, Credential, Credentials, FetchFailure};

use crate::support::{Authority, Cache, Forge, Serving, backend, commit, serve, status};

const KEY: &str = include_str!("keys/github_app");
const PKCS8: &str = include_str!("keys/github_app_pkcs8");
const PUBLIC: &str = include_str!("keys/github_app.pub");

/// The app, and its installation.
const APP: (&str, u64) = ("7", 9);

/// A server of repositories that takes tokens alone, and gives them to the app.
#[derive(Clone)]
struct GitHub {
    serving: Serving,
    state: Arc<Mutex<Tokens>>,
}

struct Tokens {
    given: usize,
    looked_up: Vec<String>,
    /// The one that is taken.
    taken: Option<String>,
    lasts: SignedDuration,
    /// What is answered in the place of a token.
    instead: Option<(StatusCode, HeaderMap, String)>,
}

impl GitHub {
    fn new(forge: &Forge) -> Self {
        let lasts = SignedDuration::from_hours(1);
        let state = Tokens { given: 0, looked_up: Vec::new(), taken: None, lasts, instead: None };
        Self { serving: Serving::new(forge), state: Arc::new(Mutex::new(state)) }
    }

    fn router(&self) -> Router {
        Router::new()
            .route("/api/v3/app/installations/{id}/access_tokens", post(give))
            .route("/api/v3/repos/{owner}/{name}/installation", get(look_up))
            .fallback(fetch)
            .with_state(self.clone())
    }

    async fn http(&self) -> String {
        serve(self.router()).await
    }

    fn change(&self, change: impl FnOnce(&mut Tokens)) {
        change(&mut self.state.lock().unwrap());
    }

    fn given(&self) -> usize {
        self.state.lock().unwrap().given
    }

    fn looked_up(&self) -> Vec<String> {
        self.state.lock().unwrap().looked_up.clone()
    }
}

/// Whether a request is one of the app; `None`: it shows no proof.
fn is_of_app(headers: &HeaderMap) -> Option<bool> {
    let token = headers.get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")?;
    let (signed, signature) = token.rsplit_once('.')?;
    let (head, claims) = signed.split_once('.')?;
    let decoded = |part: &str| URL_SAFE_NO_PAD.decode(part).unwrap();
    let read = |part: &str| serde_json::from_slice::<Value>(&decoded(part)).unwrap();
    let public: String = PUBLIC.lines().filter(|line| !line.starts_with('-')).collect();
    let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, STANDARD.decode(public).unwrap());
    let is_signed = public.verify(signed.as_bytes(), &decoded(signature)).is_ok();
    let (head, claims, now) = (read(head), read(claims), Timestamp::now().as_second());
    let (issued, ends) = (claims["iat"].as_i64()?, claims["exp"].as_i64()?);
    let is_timely = issued <= now - 60 && ends > now && ends - issued <= 600;
    let is_asked = headers.contains_key(header::USER_AGENT)
        && headers.get(header::ACCEPT).is_some_and(|kind| kind == "application/vnd.github+json");
    let is_named = head == json!({"alg": "RS256", "typ": "JWT"}) && claims["iss"] == APP.0;
    Some(is_signed && is_timely && is_asked && is_named)
}

async fn give(State(github): State<GitHub>, Path(id): Path<u64>, headers: HeaderMap) -> Response {
    assert_eq!(is_of_app(&headers), Some(true));
    let mut state = github.state.lock().unwrap();
    state.given += 1;
    if let Some(instead) = &state.instead {
        return instead.clone().into_response();
    }
    if id != APP.1 {
        return status(StatusCode::NOT_FOUND);
    }
    let token = format!("ghs_{}", state.given);
    state.taken = Some(token.clone());
    let ends = Timestamp::now() + state.lasts;
    let permissions = json!({"contents": "read", "metadata": "read"});
    let given = json!({"token": token, "expires_at": ends, "permissions": permissions, "repository_selection": "all"});
    (StatusCode::CREATED, given.to_string()).into_response()
}

async fn look_up(
    State(github): State<GitHub>,
    Path((owner, name)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    assert_eq!(is_of_app(&headers), Some(true));
    github.change(|state| state.looked_up.push(format!("{owner}/{name}")));
    match &*owner {
        "acme" => json!({"id": APP.1, "account": {"login": "Acme"}}).to_string().into_response(),
        "moved" => (StatusCode::MOVED_PERMANENTLY, [(header::LOCATION, "/elsewhere")]).into_response(),
        _ => status(StatusCode::NOT_FOUND),
    }
}

async fn fetch(State(github): State<GitHub>, request: Request) -> Response {
    let taken = github.state.lock().unwrap().taken.clone();
    let wanted = taken.map(|token| format!("Basic {}", STANDARD.encode(format!("x-access-token:{token}"))));
    let given = request.headers().get(header::AUTHORIZATION).and_then(|given| given.to_str().ok());
    if wanted.is_none() || wanted.as_deref() != given {
        return status(StatusCode::UNAUTHORIZED);
    }
    backend(State(github.serving), request).await
}

/// What a Secret of Argo CD holds for all repositories of a server.
fn of_secret(server: &str, more: &[(&str, &str)]) -> Credential {
    let api = format!("{server}/api/v3");
    let mut data = BTreeMap::from([
        ("url", server),
        ("githubAppID", APP.0),
        ("githubAppInstallationID", "9"),
        ("githubAppPrivateKey", KEY),
        ("githubAppEnterpriseBaseUrl", &api),
    ]);
    data.extend(more.iter().copied());
    let data = data.iter().map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec())).collect();
    Credential::of_argo_cd("argocd/app", "repo-creds", &data).unwrap()
}

fn no_token(server: &str, why: &str) -> String {
    let (_, host) = server.split_once("://").unwrap();
    format!("{host} gives no token for the GitHub App of the Secret argocd/app: {why}")
}

#[tokio::test(flavor = "multi_thread")]
async fn many_repositories_are_fetched_at_once_with_one_token() {
    for key in [KEY, PKCS8] {
        let forge = Forge::new();
        let names: Vec<_> = (0..6).map(|number| format!("acme/web-{number}")).collect();
        for name in &names {
            forge.repository(name);
        }
        let github = GitHub::new(&forge);
        let server = github.http().await;
        let cache = Cache::new(|_| {}).await;
        cache.give(of_secret(&server, &[("githubAppPrivateKey", key)]));
        let urls: Vec<_> = names.iter().map(|name| format!("{server}/{name}.git")).collect();
        for fetched in join_all(urls.iter().map(|url| cache.checkout(url, "main"))).await {
            fetched.unwrap();
        }
        // It is kept, also if the credentials are read anew.
        cache.give(of_secret(&server, &[("githubAppPrivateKey", key)]));
        cache.checkout(&urls[0], "HEAD").await.unwrap();
        assert_eq!((github.given(), github.looked_up()), (1, Vec::new()));
        let found = std::process::Command::new("grep")
            .args(["-rE", "ghs_|x-access-token"])
            .arg(cache.folder.path())
            .output();
        assert_eq!(String::from_utf8(found.unwrap().stdout).unwrap(), "", "nothing of it is kept on disk");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_expires_soon_is_not_kept() {
    let forge = Forge::new();
    forge.repository("acme/web");
    let github = GitHub::new(&forge);
    github.change(|state| state.lasts = SignedDuration::from_mins(4));
    let server = github.http().await;
    let cache = Cache::new(|_| {}).await;
    cache.give(of_secret(&server, &[]));
    for given in 1..=2 {
        cache.checkout(&format!("{server}/acme/web"), "main").await.unwrap();
        assert_eq!(github.given(), given);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_installation_that_the_secret_does_not_name_is_looked_up_once_for_each_owner() {
    let forge = Forge::new();
    forge.repository("acme/web");
    forge.repository("acme/shop");
    let github = GitHub::new(&forge);
    let server = github.http().await;
    let cache = Cache::new(|_| {}).await;
    cache.give(of_secret(&server, &[("githubAppInstallationID", "")]));
    for name in ["acme/web.git", "acme/shop", "Acme/web"] {
        let _ = cache.checkout(&format!("{server}/{name}"), "main").await;
    }
    assert_eq!((github.given(), github.looked_up()), (1, vec!["acme/web".to_owned()]));
    for (name, why) in [
        (
            "other/web.git",
            "the app is not installed for other/web (404): install it there; where GitHub is a server of your own, githubAppEnterpriseBaseUrl ends in /api/v3",
        ),
        (
            "moved/web",
            "it answers with a redirect (301), which is not followed: give the new address of a repository that was moved, and as githubAppEnterpriseBaseUrl that of the API itself",
        ),
    ] {
        assert_eq!(cache.refusal(&format!("{server}/{name}"), "main").await, no_token(&server, why));
    }
    assert_eq!(
        cache.refusal(&format!("{server}/web"), "main").await,
        "the credentials of the Secret argocd/app cannot be used: the address of the repository names no owner to look its installation up by: give githubAppInstallationID"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_was_taken_and_is_refused_is_replaced_once() {
    let forge = Forge::new();
    let path = forge.repository("acme/web");
    let github = GitHub::new(&forge);
    let server = github.http().await;
    let url = format!("{server}/acme/web");
    let cache = Cache::new(|_| {}).await;
    cache.give(of_secret(&server, &[]));
    cache.checkout(&url, "main").await.unwrap();
    github.change(|state| state.taken = None);
    let new = commit(&path, "main", "a.yaml", "a: 2\n");
    assert_eq!(cache.checkout(&url, "main").await.unwrap().commit.to_string(), new);
    assert_eq!(github.given(), 2);
    // What another server gives is of no use here, however often it gives another.
    let other = GitHub::new(&forge);
    let strange = format!("{}/api/v3", other.http().await);
    cache.give(of_secret(&server, &[("githubAppEnterpriseBaseUrl", &strange)]));
    let refused = format!(
        "{url} refused the credentials of the Secret argocd/app: they are wrong, expired, or may not read it"
    );
    for _ in 0..2 {
        assert_eq!(cache.refusal(&url, "main").await, refused);
    }
    assert_eq!((github.given(), other.given()), (2, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn why_github_gives_no_token_is_said_with_what_to_do() {
    let forge = Forge::new();
    forge.repository("acme/web");
    let elsewhere = Serving::new(&forge);
    let other = elsewhere.http().await;
    let github = GitHub::new(&forge);
    let server = github.http().await;
    let url = format!("{server}/acme/web");
    let cache = Cache::new(|_| {}).await;
    cache.give(of_secret(&server, &[]));
    let no_api = "it does not answer as the API of GitHub does: give the address of that as githubAppEnterpriseBaseUrl, such as https://github.example.com/api/v3";
    let large = format!("{{\"token\": \"{}\"}}", "a".repeat(2 << 20));
    for (code, body, failure, why) in [
        (
            401,
            r#"{"message":"Bad credentials"}"#,
            FetchFailure::Credentials,
            "it refuses the app (401): githubAppPrivateKey must be a key of the app githubAppID that was not deleted since, and the clock of this machine right",
        ),
        (
            404,
            "",
            FetchFailure::Credentials,
            "the app has no such installation (404): compare githubAppInstallationID with the address of the installation's page, or leave it out; where GitHub is a server of your own, githubAppEnterpriseBaseUrl ends in /api/v3",
        ),
        (
            403,
            r#"{"message":"This installation has been suspended"}"#,
            FetchFailure::Credentials,
            "the installation may have none (403): it is suspended, or its owner's list of allowed addresses lacks this network's",
        ),
        (
            302,
            "",
            FetchFailure::Redirected,
            "it answers with a redirect (302), which is not followed: give the new address of a repository that was moved, and as githubAppEnterpriseBaseUrl that of the API itself",
        ),
        (503, "hidden", FetchFailure::Server, "it answered with 503: try again later, or ask its operator"),
        (200, "a page", FetchFailure::Protocol, no_api),
        (201, r#"{"token":"hidden"}"#, FetchFailure::Protocol, no_api),
        (201, &large, FetchFailure::Protocol, no_api),
    ] {
        let headers = HeaderMap::from_iter([(header::LOCATION, other.parse().unwrap())]);
        let instead = (StatusCode::from_u16(code).unwrap(), headers, body.to_owned());
        github.change(|state| state.instead = Some(instead));
        let error = cache.checkout(&url, "main").await.map(|found| found.commit).unwrap_err();
        assert_eq!(error.to_string(), no_token(&server, why));
        assert!(!format!("{error:?}").contains("hidden"), "{error:?}");
        assert_eq!((error.failure(), error.is_transient()), (failure, code == 503), "{code}");
    }
    assert_eq!(elsewhere.requests(), 0, "a redirect was followed");
    github.change(|state| state.instead = None);
    cache.checkout(&url, "main").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn github_is_asked_through_the_proxy_of_the_secret() {
    let forge = Forge::new();
    forge.repository("acme/web");
    let github = GitHub::new(&forge);
    let server = github.http().await;
    let url = format!("{server}/acme/web");
    let cache = Cache::new(|_| {}).await;
    let nowhere = ("proxy", "http://127.0.0.1:1");
    cache.give(of_secret(&server, &[nowhere]));
    let refusal = cache.refusal(&url, "main").await;
    let begins = no_token(&server, "it cannot be reached (");
    let ends = "): let this process out to it, or give the Secret the proxy that leads there";
    assert!(refusal.starts_with(&begins) && refusal.ends_with(ends), "{refusal}");
    cache.give(of_secret(&server, &[nowhere, ("noProxy", "127.0.0.1")]));
    cache.checkout(&url, "main").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_certificate_of_github_must_be_trusted() {
    let forge = Forge::new();
    forge.repository("acme/web");
    let github = GitHub::new(&forge);
    let authority = Authority::new();
    let server = authority.serve(github.router()).await;
    let url = format!("{server}/acme/web");
    let cache = Cache::new(|_| {}).await;
    let trust = |pem: &str| Access {
        credentials: Credentials::new(vec![of_secret(&server, &[])]),
        authorities: BTreeMap::from([("localhost".to_owned(), pem.to_owned())]),
        ..Access::default()
    };
    cache.checkouts.set_access(trust(&Authority::new().pem));
    let error = cache.checkout(&url, "main").await.map(|found| found.commit).unwrap_err();
    assert!(matches!(*error, FetchError::Certificate { .. }), "{error}");
    assert_eq!(github.given(), 0);
    cache.checkouts.set_access(trust(&authority.pem));
    cache.checkout(&url, "main").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_cannot_be_used_is_named() {
    let forge = Forge::new();
    forge.repository("acme/web");
    let github = GitHub::new(&forge);
    let server = github.http().await;
    let url = format!("{server}/acme/web");
    let cache = Cache::new(|_| {}).await;
    let unusable = |why: &str| format!("the credentials of the Secret argocd/app cannot be used: {why}");
    cache.give(of_secret(&server, &[("githubAppPrivateKey", "key")]));
    assert_eq!(
        cache.refusal(&url, "main").await,
        unusable(
            "its githubAppPrivateKey is no key in PEM: give the whole file that GitHub gave, with its line breaks"
        )
    );
    assert_eq!(github.given(), 0);
    // Of an SSH address an app is of no use.
    let ssh = url.replace("http://", "ssh://git@");
    let (_, host) = server.split_once("://").unwrap();
    cache.give(Credential { url: format!("ssh://git@{host}"), ..of_secret(&server, &[]) });
    assert_eq!(
        cache.refusal(&ssh, "main").await,
        unusable("they are of HTTP, and the address is one of SSH: give an SSH key, or the address of HTTP")
    );
}
