//! A whole platform, as the program puts it together: a real store, ingest, API and console on one port; with a runtime that
//! answers as an app proxy does.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jiff::Timestamp;
use loadtest_sim::local_client;
use pipeline_core::ExposeSecret as _;
use serde_json::{Value, json};
use sha2::Digest as _;
use stages_client::OwnCookie;
use stages_platform_api::{Api, ForwardConfig};
use stages_platform_console::{Console, Settings, StoredFleet};
use stages_platform_ingest::IngestConfig;
use stages_platform_store::{
    Account, Action, Attribute, By, Delivery, Entity, EntityName, Listing, Place, Report, ResourceName,
    Retention, Role, Rule, Sequence, Store, StoreConfig, Text,
};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::browser::Browser;
use crate::runtime::Runtime;

pub(crate) struct Platform {
    pub(crate) url: String,
    pub(crate) link: String,
    pub(crate) store: Store,
    pub(crate) runtime: Runtime,
    pub(crate) client: reqwest::Client,
    _folder: TempDir,
    _end: DropGuard,
}

pub(crate) fn by() -> By {
    By { who: "admin".to_owned(), how: "session" }
}

/// Of the application `shop`, or of a resource of its.
pub(crate) fn report(resource: Option<(&str, &str)>, at: i64) -> Report {
    let names = [("argoproj.io", "Rollout"), ("apps", "Deployment")];
    let listed = names.iter().map(|(group, kind)| Listing::new(group, kind, "shop", "web")).collect();
    let object = |kind: &str| Some(Text::new(format!(r#"{{"kind":"{kind}","metadata":{{"name":"web"}}}}"#)));
    Report {
        entity: EntityName {
            app_namespace: "argocd".to_owned(),
            app_name: "shop".to_owned(),
            resource: resource.map(|(api_version, kind)| ResourceName {
                api_version: api_version.to_owned(),
                kind: kind.to_owned(),
                namespace: "shop".to_owned(),
                name: "web".to_owned(),
            }),
        },
        uid: format!("uid-{}", resource.map_or("Application", |(_, kind)| kind)),
        version: Some(1),
        at,
        timed: true,
        listed: if resource.is_none() { listed } else { Vec::new() },
        sync: Some("OutOfSync".to_owned()),
        health: Some("Healthy".to_owned()),
        revision: Some("3f9c1e2aaa".to_owned()),
        images: "[]".to_owned(),
        has_source: true,
        from_reporter: true,
        object: object(resource.map_or("Application", |(_, kind)| kind)),
        object_is_json: true,
        actual: object(resource.map_or("Application", |(_, kind)| kind)),
        ..Report::default()
    }
}

impl Platform {
    pub(crate) async fn new() -> Self {
        static ONCE: OnceLock<()> = OnceLock::new();
        ONCE.get_or_init(|| drop(rustls::crypto::ring::default_provider().install_default()));
        let folder = tempfile::tempdir().unwrap();
        let forever = Duration::from_secs(365_000 * 86_400);
        let retention = Retention { history: forever, keys: forever, interval: forever };
        let opening = StoreConfig { place: Place::Sqlite(folder.path().join("platform.db")), retention };
        let (store, _) = opening.build(&prometheus::Registry::new()).await.unwrap();
        let runtime = Runtime::new(store.clone());
        let (listener, proxy) = (TcpListener::bind("127.0.0.1:0").await.unwrap(), runtime.router());
        let address = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, proxy).await.unwrap() });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let stop = CancellationToken::new();
        let settings = Settings {
            external: url.clone(),
            store: store.clone(),
            retention,
            clock: Timestamp::now,
            oidc: None,
        };
        let sequence = Sequence::new(store.clone());
        let fleet = Arc::new(StoredFleet::new(store.clone(), sequence.clone(), Timestamp::now));
        let following = (sequence.clone(), stop.clone());
        tokio::spawn(async move { following.0.follow(following.1).await });
        let console = Console::new(fleet, settings, stop.clone());
        let link = console.first_link().await.unwrap().unwrap().expose().to_owned();
        let ingest = IngestConfig {
            max_body: 1 << 20,
            max_unpacked: 1 << 22,
            body_timeout: Duration::from_secs(30),
            runtime_requests: 16,
            runtime_bytes: 1 << 24,
            all_bytes: 1 << 26,
        };
        let ingest = ingest.build(store.clone(), &prometheus::Registry::new());
        let forward = ForwardConfig::new(stop.clone());
        let api = Api::new(store.clone(), sequence, Timestamp::now, forward, OwnCookie::session(&url));
        let routes = ingest.routes().merge(api.routes()).merge(console.router());
        tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        let client = local_client().build().unwrap();
        let platform = Self { url, link, store, runtime, client, _folder: folder, _end: stop.drop_guard() };
        platform.at(&address).await;
        let id = platform.store.runtime_named("prod").await.unwrap().unwrap();
        let now = Timestamp::now().as_millisecond() - 60_000;
        for (index, of) in
            (0_u8..).zip([None, Some(("argoproj.io/v1alpha1", "Rollout")), Some(("apps/v1", "Deployment"))])
        {
            let delivery = Delivery {
                runtime: id,
                key: [index; 32],
                keyed: true,
                epoch: None,
                era: 0,
                report: report(of, now),
            };
            platform.store.keep(vec![delivery]).await.unwrap();
        }
        platform
    }

    /// The runtime is registered with this address.
    pub(crate) async fn at(&self, address: &str) {
        let body = json!({ "ingressHost": address }).to_string();
        self.store.register(&by(), "prod", &body, true, 1).await.unwrap().unwrap();
    }

    /// The first account, `admin`, by the link that was printed.
    pub(crate) async fn sign_in(&self, browser: &Browser) {
        crate::journey::sign_in(browser, &self.link).await;
    }

    /// A browser in which the first user is signed in.
    pub(crate) async fn browser(&self) -> Browser {
        let browser = Browser::open(1_440, 900).await;
        self.sign_in(&browser).await;
        browser
    }

    /// A session of somebody who is made for it.
    pub(crate) async fn session(&self, name: &str, role: Role) -> String {
        let now = Timestamp::now().as_millisecond();
        let account = Account { name: name.to_owned(), password: "none".to_owned(), role };
        assert!(self.store.add_person(&by(), &account, now).await.unwrap());
        let digest = sha2::Sha256::digest(name.as_bytes()).into();
        self.store.keep_session(digest, name, now, now + 86_400_000).await.unwrap();
        format!("session={name}")
    }

    /// A session of `lin`, who may what these rules say: actions on entities, where attributes hold.
    pub(crate) async fn lin(&self, rules: Vec<(Entity, Vec<Action>, Vec<Attribute>)>) -> String {
        let session = self.session("lin", Role::Member).await;
        let (now, teams) = (Timestamp::now().as_millisecond(), vec!["shop".to_owned()]);
        self.store.set_teams(&by(), "lin", &teams, now).await.unwrap();
        for (entity_type, actions, attributes) in rules {
            let rule =
                Rule { id: 0, entity_type, teams: teams.clone(), tags: Vec::new(), actions, attributes };
            self.store.add_rule(&by(), &rule, now).await.unwrap();
        }
        session
    }

    /// A page as somebody has it.
    pub(crate) async fn page(&self, session: &str, path: &str) -> String {
        let asked = self.client.get(format!("{}{path}", self.url)).header("cookie", session);
        let response = asked.send().await.unwrap();
        let (status, text) = (response.status(), response.text().await.unwrap());
        assert_eq!(status, reqwest::StatusCode::OK, "{path}: {text}");
        text
    }

    /// A token of the runtime's reporters.
    pub(crate) async fn token(&self) -> String {
        let made = self.store.add_token(&by(), "prod", Timestamp::now().as_millisecond()).await.unwrap();
        made.unwrap().expose_secret().to_owned()
    }

    /// Posts a report as reporters do.
    pub(crate) async fn post(&self, token: &str, report: &Value) {
        self.post_to("/2.0/api/events", token, report).await;
    }

    pub(crate) async fn post_to(&self, path: &str, token: &str, report: &Value) {
        let url = format!("{}{path}", self.url);
        let asked = self.client.post(url).header("authorization", token).body(report.to_string());
        let response = asked.send().await.unwrap();
        let (status, said) = (response.status(), response.text().await.unwrap());
        assert_eq!(status, reqwest::StatusCode::OK, "{said}");
    }

    /// Queries that came since the last time, with who sent them.
    pub(crate) fn came(&self) -> Vec<(String, Value)> {
        self.runtime.came()
    }
}
