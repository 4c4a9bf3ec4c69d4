use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use jiff::Timestamp;
use tokio::net::TcpListener;

use super::{AppCall, GitHubApp, GitHubApps, MOST, Token};
use crate::RepositoryUrl;
use crate::remote::{Access, Credential, FetchError};

const KEY: &str = include_str!("../../../tests/remote/keys/github_app");

fn at(time: &str) -> Timestamp {
    format!("2026-01-01T{time}Z").parse().unwrap()
}

/// What GitHub answers each time, and how often it was asked.
#[derive(Clone)]
struct GitHub {
    status: StatusCode,
    headers: HeaderMap,
    body: &'static str,
    requests: Arc<AtomicUsize>,
}

impl GitHub {
    fn new(status: u16, headers: &[(&'static str, &str)], body: &'static str) -> Self {
        let header = |(name, value): &(&'static str, &str)| {
            (axum::http::HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        let headers = headers.iter().map(header).collect();
        Self { status: StatusCode::from_u16(status).unwrap(), headers, body, requests: Arc::default() }
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

async fn answer(State(of): State<GitHub>) -> (StatusCode, HeaderMap, &'static str) {
    of.requests.fetch_add(1, Ordering::SeqCst);
    (of.status, of.headers, of.body)
}

/// A repository of an app that asks a server for tokens.
struct Scene {
    host: String,
    apps: GitHubApps,
    credential: Credential,
    url: RepositoryUrl,
    access: Access,
}

impl Scene {
    async fn new(github: &GitHub, pause: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let router = Router::new().fallback(answer).with_state(github.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let api = format!("http://{host}/api/v3");
        let data = [
            ("githubAppID", "7"),
            ("githubAppInstallationID", "9"),
            ("githubAppPrivateKey", KEY),
            ("githubAppEnterpriseBaseUrl", &api),
        ];
        let from = "the Secret argocd/repo".to_owned();
        let value = |name: &str| data.iter().find(|(key, _)| *key == name).map(|(_, of)| (*of).to_owned());
        let github_app = GitHubApp::read(value).unwrap();
        let credential = Credential { from, github_app, ..Credential::default() };
        let url = RepositoryUrl::read("https://github.example.com/acme/web").unwrap();
        Self { host, apps: GitHubApps::new(pause), credential, url, access: Access::default() }
    }

    async fn token(&self, now: Timestamp) -> Result<Arc<Token>, FetchError> {
        let Self { apps, credential, url, access, .. } = self;
        let app = credential.github_app.as_ref().unwrap();
        let connect_timeout = Duration::from_secs(120);
        AppCall { apps, app, credential, url, access, connect_timeout }.token(None, now).await
    }

    async fn refusal(&self, now: Timestamp) -> String {
        self.token(now).await.map(|_| "a token").unwrap_err().to_string()
    }
}

#[tokio::test]
async fn a_token_is_kept_until_five_minutes_before_it_expires() {
    let github = GitHub::new(201, &[], r#"{"token":"ghs_1","expires_at":"2026-01-01T01:00:00Z","extra":1}"#);
    let scene = Scene::new(&github, Duration::ZERO).await;
    let first = scene.token(at("00:00:00")).await.unwrap();
    assert_eq!(first.secret(), "ghs_1");
    assert!(Arc::ptr_eq(&first, &scene.token(at("00:54:59")).await.unwrap()));
    assert_eq!(github.requests(), 1);
    assert!(!Arc::ptr_eq(&first, &scene.token(at("00:55:00")).await.unwrap()));
    assert_eq!(github.requests(), 2);
}

#[tokio::test]
async fn github_is_left_alone_for_as_long_as_it_says() {
    let now = at("00:00:00");
    let reset = (now.as_second() + 600).to_string();
    for (status, headers, until) in [
        (429, &[("retry-after", "120")][..], "00:02:00"),
        (403, &[("retry-after", "30")], "00:00:30"),
        (403, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", &reset)], "00:10:00"),
        (429, &[], "00:01:00"),
        (429, &[("retry-after", "86400")], "01:00:00"),
    ] {
        let github = GitHub::new(status, headers, "");
        let scene = Scene::new(&github, Duration::ZERO).await;
        let wanted = format!(
            "{} gives no token for the GitHub App of the Secret argocd/repo: it was asked too often ({status}), and is left alone until 2026-01-01T{until}Z",
            scene.host
        );
        assert_eq!(scene.refusal(now).await, wanted);
        scene.apps.forget_failures();
        let before = at(until).checked_sub(Duration::from_secs(1)).unwrap();
        assert_eq!(scene.refusal(before).await, wanted);
        assert_eq!(github.requests(), 1);
        scene.refusal(at(until)).await;
        assert_eq!(github.requests(), 2);
    }
}

#[tokio::test]
async fn a_clock_that_is_set_back_leaves_github_alone_no_longer() {
    for (status, pause) in [(429, Duration::ZERO), (500, Duration::from_secs(10))] {
        let github = GitHub::new(status, &[], "");
        let scene = Scene::new(&github, pause).await;
        for (time, requests) in [("12:00:00", 1), ("12:00:01", 1), ("00:00:00", 2), ("00:00:01", 2)] {
            scene.refusal(at(time)).await;
            assert_eq!(github.requests(), requests, "{status} at {time}");
        }
    }
}

#[tokio::test]
async fn whoever_asks_within_the_pause_is_told_the_same_failure() {
    let github = GitHub::new(500, &[], "");
    let scene = Scene::new(&github, Duration::from_secs(10)).await;
    let wanted = format!(
        "{} gives no token for the GitHub App of the Secret argocd/repo: it answered with 500: try again later, or ask its operator",
        scene.host
    );
    for (time, requests) in [("00:00:00", 1), ("00:00:09", 1), ("00:00:10", 2)] {
        assert_eq!(scene.refusal(at(time)).await, wanted);
        assert_eq!(github.requests(), requests, "{time}");
    }
    scene.apps.forget_failures();
    scene.refusal(at("00:00:11")).await;
    assert_eq!(github.requests(), 3);
}

#[test]
fn installations_that_nobody_waits_for_are_forgotten() {
    let apps = GitHubApps::new(Duration::ZERO);
    for number in 0..MOST * 2 {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&number.to_le_bytes());
        apps.installation(key);
    }
    assert_eq!(apps.all.lock().unwrap().len(), MOST);
}
