//! A real provider of OpenID Connect, and a browser's way through it without a browser.

use std::collections::BTreeMap;

use loadtest_sim::local_client;
use loadtest_sim::oidc_provider::OidcProvider;
use reqwest::{Client, Response, StatusCode, redirect};
use serde_json::{Value, json};
use url::Url;

pub(crate) const SECRET: &str = "a secret of the platform";

pub(crate) struct Provider {
    pub(crate) issuer: String,
    client: Client,
    process: OidcProvider,
}

/// Somebody with cookies, who goes where they are sent.
pub(crate) struct Person {
    client: Client,
    /// By host and port, path and name.
    cookies: BTreeMap<(String, String, String), String>,
}

pub(crate) fn client() -> Client {
    local_client().redirect(redirect::Policy::none()).build().unwrap()
}

impl Provider {
    /// For a platform at this address.
    pub(crate) async fn start(platform: &str) -> Self {
        let process = OidcProvider::start(&format!("{platform}/login/oidc/callback"), None).await.unwrap();
        Self { issuer: process.issuer().to_owned(), client: client(), process }
    }

    /// Sets what a test wants of it.
    pub(crate) async fn set(&self, what: Value) {
        let asked = self.client.post(format!("{}/test", self.issuer)).body(what.to_string());
        assert_eq!(asked.send().await.unwrap().status(), StatusCode::OK);
    }

    /// Somebody who may sign in there.
    pub(crate) async fn person(&self, login: &str, groups: &[&str]) {
        let email = format!("{login}@example.com");
        let claims = json!({
            "preferred_username": login, "email": email, "email_verified": true, "groups": groups,
        });
        self.set(json!({ "person": { "login": login, "claims": claims } })).await;
    }

    pub(crate) async fn end(self) {
        self.process.end().await.unwrap();
    }
}

fn place(url: &Url) -> String {
    format!("{}:{}", url.host_str().unwrap(), url.port().unwrap())
}

impl Person {
    pub(crate) fn new() -> Self {
        Self { client: client(), cookies: BTreeMap::new() }
    }

    /// The cookies that go to an address.
    pub(crate) fn cookies(&self, url: &Url) -> String {
        let goes =
            |(at, path, _): &&(String, String, String)| *at == place(url) && url.path().starts_with(&**path);
        let all = self.cookies.iter().filter(|(key, _)| goes(key));
        all.map(|((.., name), value)| format!("{name}={value}")).collect::<Vec<_>>().join("; ")
    }

    fn keep(&mut self, url: &Url, response: &Response) {
        for line in response.headers().get_all("set-cookie") {
            let line = line.to_str().unwrap();
            let (pair, rest) = line.split_once(';').unwrap_or((line, ""));
            let (name, value) = pair.split_once('=').unwrap();
            let path = rest
                .split(';')
                .find_map(|one| one.trim().strip_prefix("path=").or(one.trim().strip_prefix("Path=")));
            let key = (place(url), path.unwrap_or("/").to_owned(), name.to_owned());
            let is_over = value.is_empty() || rest.contains("Max-Age=0") || rest.contains("01 Jan 1970");
            if is_over {
                self.cookies.remove(&key);
            } else {
                self.cookies.insert(key, value.to_owned());
            }
        }
    }

    /// One answer, of which cookies are kept.
    pub(crate) async fn get(&mut self, url: &Url) -> Response {
        let asked =
            self.client.get(url.clone()).header("cookie", self.cookies(url)).header("accept", "text/html");
        let response = asked.send().await.unwrap();
        self.keep(url, &response);
        response
    }

    pub(crate) async fn post(&mut self, url: &Url, body: &str) -> Response {
        let asked = self.client.post(url.clone()).header("cookie", self.cookies(url));
        let asked = asked.header("content-type", "application/x-www-form-urlencoded").body(body.to_owned());
        let response = asked.send().await.unwrap();
        self.keep(url, &response);
        response
    }

    /// From an address of the platform through the provider, where somebody says who they are, to the address that comes back to the
    /// platform; that is not gone to.
    pub(crate) async fn through(&mut self, start: &str, login: &str) -> Url {
        let begun = Url::parse(start).unwrap();
        let response = self.get(&begun).await;
        self.on(begun, response, login).await
    }

    /// As [`Self::through`], from an answer of the platform.
    pub(crate) async fn on(&mut self, begun: Url, response: Response, login: &str) -> Url {
        let platform = place(&begun);
        let mut url = to(&begun, &response);
        loop {
            if place(&url) == platform {
                return url;
            }
            let response = self.get(&url).await;
            let response = match response.status() {
                StatusCode::OK => self.post(&url, &format!("login={login}")).await,
                _ => response,
            };
            url = to(&url, &response);
        }
    }
}

/// Where an answer leads.
pub(crate) fn to(from: &Url, response: &Response) -> Url {
    assert!(response.status().is_redirection(), "{} leads nowhere: {from}", response.status());
    from.join(response.headers()["location"].to_str().unwrap()).unwrap()
}
