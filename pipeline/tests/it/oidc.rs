//! The role `platform` as a process, into which people come by a real provider of OpenID Connect behind TLS: npm's
//! `oidc-provider`, whose certificate an authority of this test has signed.

use std::collections::BTreeMap;
use std::path::PathBuf;

use loadtest::process::Start;
use loadtest::sim::certificate::Authority;
use loadtest::sim::oidc_provider::OidcProvider;
use loadtest::sim::port;
use reqwest::{Client, Response, StatusCode, redirect};
use serde_json::{Value, json};
use tempfile::TempDir;
use url::Url;

use crate::platform::first_link;
use crate::runtime::{PROGRAM, Runtime, SOON};

struct World {
    folder: TempDir,
    port: u16,
    issuer: String,
    /// Trusts the authority.
    client: Client,
    _provider: OidcProvider,
}

impl World {
    async fn new() -> Self {
        // Another test of this binary may have been first.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (folder, port) = (TempDir::new().unwrap(), port::free().unwrap());
        let write = |name: &str, text: &str| {
            let file = folder.path().join(name);
            std::fs::write(&file, text).unwrap();
            file
        };
        let (authority, another) = (Authority::new().unwrap(), Authority::new().unwrap());
        let (certificate, key) = authority.signed(vec!["localhost".to_owned()]).unwrap();
        write("ca.pem", &authority.pem());
        write("another-ca.pem", &another.pem());
        write("secret", "a secret of the platform\n");
        let [certificate, key] = [write("certificate.pem", &certificate), write("key.pem", &key)];
        let callback = format!("http://127.0.0.1:{port}/login/oidc/callback");
        let provider = OidcProvider::start(&callback, Some((&certificate, &key))).await.unwrap();
        let issuer = provider.issuer().to_owned();
        let trusted = reqwest::Certificate::from_pem(authority.pem().as_bytes()).unwrap();
        let client = Client::builder().no_proxy().timeout(SOON).redirect(redirect::Policy::none());
        let client = client.tls_certs_only([trusted]).build().unwrap();
        Self { folder, port, issuer, client, _provider: provider }
    }

    fn url(&self, path: &str) -> Url {
        Url::parse(&format!("http://127.0.0.1:{}{path}", self.port)).unwrap()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The platform, at the address that it had, with these settings of its provider over those that all have.
    async fn up(&self, oidc: &Value) -> Runtime {
        let mut settings = json!({
            "issuer": self.issuer, "clientId": "platform", "clientSecretFile": self.file("secret"),
            "scopes": ["profile", "email", "groups"], "teams": ["shop-owners=shop"],
        });
        crate::runtime::merge(&mut settings, oidc);
        let settings = json!({
            "serve": {"address": format!("127.0.0.1:{}", self.port), "metricsAddress": ""},
            "state": {"directory": self.file("state")},
            "platformServer": {"externalUrl": self.url(""), "oidc": settings},
        });
        std::fs::write(self.file("config.yaml"), settings.to_string()).unwrap();
        let args = ["platform".into(), "--config".into(), self.file("config.yaml").into()];
        let start = Start {
            program: PROGRAM.into(),
            args: args.to_vec(),
            env: Vec::new(),
            directory: self.folder.path().to_path_buf(),
        };
        let runtime = Runtime::serving(start).await;
        runtime.says("receiving reports").await;
        runtime
    }

    async fn person(&self, login: &str, groups: &[&str]) {
        let claims = json!({"preferred_username": login, "groups": groups});
        let body = json!({"person": {"login": login, "claims": claims}}).to_string();
        let asked = self.client.post(format!("{}/test", self.issuer)).body(body);
        assert_eq!(asked.send().await.unwrap().status(), StatusCode::OK);
    }
}

/// Somebody with cookies, by host, port and name, who goes where they are sent.
struct Person<'a> {
    world: &'a World,
    cookies: BTreeMap<(String, String), String>,
}

impl Person<'_> {
    async fn ask(&mut self, url: &Url, form: Option<String>) -> Response {
        let place = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap());
        let own = self.cookies.iter().filter(|((at, _), _)| *at == place);
        let cookies = own.map(|((_, name), value)| format!("{name}={value}")).collect::<Vec<_>>().join("; ");
        let client = &self.world.client;
        let asked = match form {
            Some(form) => client
                .post(url.clone())
                .header("content-type", "application/x-www-form-urlencoded")
                .body(form),
            None => client.get(url.clone()).header("accept", "text/html"),
        };
        let response = asked.header("cookie", cookies).send().await.unwrap();
        for line in response.headers().get_all("set-cookie") {
            let (name, value) = line.to_str().unwrap().split(';').next().unwrap().split_once('=').unwrap();
            self.cookies.insert((place.clone(), name.to_owned()), value.to_owned());
        }
        response
    }

    /// Through the provider, and back to a page of the platform, whose status it gives.
    async fn signs_in(&mut self, login: &str) -> StatusCode {
        let mut url = self.world.url("/login/oidc?next=%2Fsettings");
        for _ in 0..20 {
            let is_there = url.scheme() == "https";
            let mut response = self.ask(&url, None).await;
            if response.status() == StatusCode::OK && is_there {
                response = self.ask(&url, Some(format!("login={login}"))).await;
            }
            if !response.status().is_redirection() {
                assert!(!is_there, "the provider leads back: {url}");
                return response.status();
            }
            url = url.join(response.headers()["location"].to_str().unwrap()).unwrap();
        }
        panic!("{url} leads nowhere")
    }

    async fn page(&mut self, path: &str) -> (StatusCode, String) {
        let url = self.world.url(path);
        let response = self.ask(&url, None).await;
        (response.status(), response.text().await.unwrap())
    }
}

#[tokio::test]
async fn people_come_in_by_a_provider_behind_tls_and_are_admins_while_they_are_in_the_group() {
    let world = World::new().await;
    let person = || Person { world: &world, cookies: BTreeMap::new() };
    assert!(world.issuer.starts_with("https://localhost:"), "{}", world.issuer);
    world.person("mia", &["platform-admins", "shop-owners"]).await;

    // By the authorities of the system alone, and by another, it is nobody that is known.
    let mut ada = person();
    for (authority, is_first) in [("", true), ("another-ca.pem", false)] {
        let file = if authority.is_empty() { json!("") } else { json!(world.file(authority)) };
        let runtime = world.up(&json!({ "caFile": file })).await;
        if is_first {
            let link = first_link(&runtime).expect("nobody has an account yet");
            let token = link.split_once("/welcome?token=").unwrap().1;
            let form = format!("token={token}&name=ada&password=correct+horse+battery");
            assert_eq!(ada.ask(&world.url("/welcome"), Some(form)).await.status(), StatusCode::SEE_OTHER);
            // The command finds another store where it is not told of this one.
            let same = "given the same --state, --config and variables as this process";
            runtime.logs("how a token is made", |line| line.message.contains(same)).await;
        }
        let (status, page) = person().page("/login/oidc").await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        let host = world.issuer.strip_prefix("https://").unwrap();
        let why = format!("Cannot ask for what a provider says of itself at {host}: ");
        assert!(page.contains(&why), "{page}");
        runtime.stop().await;
    }

    let admins = json!({"caFile": world.file("ca.pem"), "adminGroup": "platform-admins"});
    let runtime = world.up(&admins).await;
    let mut mia = person();
    assert_eq!(mia.signs_in("mia").await, StatusCode::OK);
    assert_eq!(mia.page("/settings/users").await.0, StatusCode::OK);
    world.person("mia", &["shop-owners"]).await;
    let mut later = person();
    assert_eq!(later.signs_in("mia").await, StatusCode::OK);
    assert_eq!(later.page("/settings/users").await.0, StatusCode::FORBIDDEN);
    assert_eq!(
        mia.page("/settings/users").await.0,
        StatusCode::FORBIDDEN,
        "the session before is hers as well"
    );
    world.person("mia", &["platform-admins"]).await;
    assert_eq!(person().signs_in("mia").await, StatusCode::OK);
    assert_eq!(mia.page("/settings/users").await.0, StatusCode::OK);
    let audit = ada.page("/audit").await.1;
    for said in ["by the group platform-admins of https://localhost:", "that makes an admin", "mia: shop"] {
        assert!(audit.contains(said), "{said} is not in {audit}");
    }
    runtime.stop().await;

    // Where no group makes an admin any more nobody is one by it; who was made one here is.
    let runtime = world.up(&json!({"caFile": world.file("ca.pem")})).await;
    assert_eq!(mia.page("/settings/users").await.0, StatusCode::FORBIDDEN);
    assert_eq!(ada.page("/settings/users").await.0, StatusCode::OK);
    runtime.stop().await;
}
