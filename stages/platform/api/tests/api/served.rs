//! An API that is served on a port of its own, with an admin, a member, a runtime and what each comes in with.

use std::sync::OnceLock;
use std::time::Duration;

use jiff::Timestamp;
use pipeline_core::{ExposeSecret as _, Shutdown};
use reqwest::{Client, RequestBuilder, Response};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use stages_client::OwnCookie;
use stages_platform_api::{Api, ForwardConfig};
use stages_platform_store::{
    Account, By, Commit, Delivery, EntityName, Place, Placement, Report, Retention, Role, Scope, Sequence,
    Store, StoreConfig, create_token,
};
use tempfile::TempDir;
use tokio::net::TcpListener;

/// What takes longer on any machine does not happen.
const GIVE_UP: Duration = Duration::from_secs(180);

/// A credential, as a header.
pub(crate) type Credential = (&'static str, String);

pub(crate) struct Served {
    pub(crate) url: String,
    pub(crate) client: Client,
    pub(crate) store: Store,
    pub(crate) admin: Credential,
    pub(crate) admin_reads: Credential,
    pub(crate) member: Credential,
    pub(crate) runtime: Credential,
    pub(crate) session: Credential,
    pub(crate) stop: Shutdown,
    _folder: TempDir,
}

pub(crate) fn by(who: &str) -> By {
    By { who: who.to_owned(), how: "session" }
}

/// What time the tests have: it stands still.
pub(crate) fn still() -> Timestamp {
    Timestamp::from_second(1_900_000_000).unwrap()
}

impl Served {
    pub(crate) async fn new() -> Self {
        Self::forwarding(|config| config).await
    }

    /// Asks runtimes as `change` says.
    pub(crate) async fn forwarding(change: impl FnOnce(ForwardConfig) -> ForwardConfig) -> Self {
        Self::behind("http://localhost", change).await
    }

    /// The same, which people reach at this address.
    pub(crate) async fn behind(external: &str, change: impl FnOnce(ForwardConfig) -> ForwardConfig) -> Self {
        static ONCE: OnceLock<()> = OnceLock::new();
        ONCE.get_or_init(|| drop(rustls::crypto::ring::default_provider().install_default()));
        let folder = TempDir::new().unwrap();
        let place = Place::Sqlite(folder.path().join("platform.db"));
        let runtime = create_token(&place, "prod").await.unwrap();
        let day = Duration::from_secs(86_400);
        let retention = Retention { history: 90 * day, keys: day, interval: day };
        let (store, _) = StoreConfig { place, retention }.build(&prometheus::Registry::new()).await.unwrap();
        let now = still().as_millisecond();
        let end = now + 1_000;
        store.keep_link([7; 32], end).await.unwrap();
        let ada = Account { name: "ada".to_owned(), password: "$made-up".to_owned(), role: Role::Admin };
        assert!(store.use_link([7; 32], now, &ada).await.unwrap());
        let lin = Account { name: "lin".to_owned(), role: Role::Member, ..ada };
        assert!(store.add_person(&by("ada"), &lin, now).await.unwrap());
        store.keep_session(Sha256::digest("of-ada").into(), "ada", now, end).await.unwrap();
        let key = async |who: &str, scope| {
            let key = store.add_key(&by(who), "test", scope, end, now).await.unwrap();
            ("authorization", key.expose_secret().to_owned())
        };
        let (admin, admin_reads, member) =
            (key("ada", Scope::Full).await, key("ada", Scope::Read).await, key("lin", Scope::Full).await);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let stop = Shutdown::new();
        let forward = change(ForwardConfig::new(stop.clone()));
        let sequence = Sequence::new(store.clone());
        let api = Api::new(store.clone(), sequence.clone(), still, forward, OwnCookie::session(external));
        let follows = stop.clone();
        tokio::spawn(async move { sequence.follow(follows).await });
        let served = axum::serve(listener, api.routes());
        tokio::spawn(async move { served.await.unwrap() });
        Self {
            url,
            client: Client::builder().tls_certs_only([]).no_proxy().build().unwrap(),
            store,
            admin,
            admin_reads,
            member,
            runtime: ("authorization", runtime.expose_secret().to_owned()),
            session: ("cookie", "theme=dark; session=of-ada".to_owned()),
            stop,
            _folder: folder,
        }
    }

    pub(crate) fn ask(&self, who: &Credential, query: &str, variables: &Value) -> RequestBuilder {
        let asked = self.client.post(format!("{}/2.0/api/graphql", self.url)).header(who.0, &who.1);
        asked.json(&json!({"query": query, "variables": variables}))
    }

    /// What an answer without errors holds.
    pub(crate) async fn data(&self, who: &Credential, query: &str, variables: Value) -> Value {
        let answer: Value = self.ask(who, query, &variables).send().await.unwrap().json().await.unwrap();
        assert_eq!(answer.get("errors"), None, "{query}");
        answer["data"].clone()
    }

    /// The messages of an answer with errors, joined as clients do.
    pub(crate) async fn refused(&self, who: &Credential, query: &str, variables: Value) -> String {
        let response = self.ask(who, query, &variables).send().await.unwrap();
        assert_eq!(response.status(), 200, "{query}");
        messages(query, &response.json().await.unwrap())
    }

    /// A stream of answers.
    pub(crate) async fn stream(&self, who: &Credential, query: &str, variables: Value) -> Answers {
        let asked = self.ask(who, query, &variables).header("accept", "text/event-stream");
        let response = asked.send().await.unwrap();
        assert_eq!(response.status(), 200, "{query}");
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["cache-control"], "no-store");
        Answers { response, held: String::new(), beats: 0 }
    }

    /// Keeps a report of an application, `namespace/name`, of a runtime that is made for it.
    pub(crate) async fn report(&self, runtime: &str, application: &str) {
        self.report_of(runtime, application, |_| {}).await;
    }

    /// The same, of which `change` says more.
    pub(crate) async fn report_of(&self, runtime: &str, application: &str, change: impl FnOnce(&mut Report)) {
        let id = match self.store.runtime_named(runtime).await.unwrap() {
            Some(id) => id,
            None => {
                self.store.register(&by("ada"), runtime, "{}", false, 0).await.unwrap().unwrap();
                self.store.runtime_named(runtime).await.unwrap().unwrap()
            }
        };
        let (namespace, name) = application.split_once('/').unwrap();
        let placement = Placement {
            project: "default".to_owned(),
            cluster: "in-cluster".to_owned(),
            namespace: "shop".to_owned(),
            repository: "https://git.example.com/shop".to_owned(),
            path: "deploy".to_owned(),
            labels: [("team", "shop"), ("tier", "web")]
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .to_vec(),
            ..Placement::default()
        };
        let labelled = application == "argocd/shop";
        let mut report = Report {
            entity: EntityName {
                app_namespace: namespace.to_owned(),
                app_name: name.to_owned(),
                resource: None,
            },
            uid: application.to_owned(),
            version: Some(1),
            at: 1_795_261_728_688,
            timed: true,
            sync: Some("OutOfSync".to_owned()),
            health: Some("Degraded".to_owned()),
            health_message: Some("it hurts".to_owned()),
            revision: Some("abc".to_owned()),
            placement: if labelled { placement } else { Placement::default() },
            commit: Commit {
                author: if labelled { "Grace Hopper".to_owned() } else { String::new() },
                ..Commit::default()
            },
            images: "[]".to_owned(),
            has_source: labelled,
            from_reporter: labelled,
            ..Report::default()
        };
        change(&mut report);
        let key = Sha256::digest(format!("{runtime}/{application}/{:?}", report.version)).into();
        let delivery = Delivery { runtime: id, key, keyed: true, epoch: None, era: 0, report };
        self.store.keep(vec![delivery]).await.unwrap();
    }
}

/// Answers as they come.
pub(crate) struct Answers {
    response: Response,
    held: String,
    /// Comments that came, by which the stream lives.
    pub(crate) beats: usize,
}

impl Answers {
    /// The next answer as it is; `None`: it said that there is no more.
    pub(crate) async fn answer(&mut self) -> Option<Value> {
        loop {
            while let Some((event, rest)) = self.held.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.held = rest;
                if event.starts_with(':') {
                    self.beats += 1;
                    continue;
                }
                if event == "event: complete" {
                    return None;
                }
                let data = event.strip_prefix("event: next\ndata: ").unwrap();
                return Some(serde_json::from_str(data).unwrap());
            }
            self.read().await;
        }
    }

    /// Reads until something came.
    pub(crate) async fn read(&mut self) {
        let chunk = tokio::time::timeout(GIVE_UP, self.response.chunk()).await.unwrap().unwrap();
        // A stream says that it ends.
        self.held.push_str(std::str::from_utf8(&chunk.unwrap()).unwrap());
    }

    /// What the next answer holds, which has no errors.
    pub(crate) async fn data(&mut self) -> Value {
        let answer = self.answer().await.unwrap();
        assert_eq!(answer.get("errors"), None, "{answer}");
        answer["data"].clone()
    }

    /// The messages of the answer that a stream ends with.
    pub(crate) async fn refused(&mut self, query: &str) -> String {
        let said = messages(query, &self.answer().await.unwrap());
        assert_eq!(self.answer().await, None, "{query}");
        said
    }
}

fn messages(query: &str, answer: &Value) -> String {
    assert!(answer["errors"].is_array(), "{query} is answered: {answer}");
    let errors = answer["errors"].as_array().unwrap();
    errors.iter().map(|error| error["message"].as_str().unwrap()).collect::<Vec<_>>().join("\n")
}

/// Status and text of an answer.
pub(crate) async fn told(response: Response) -> (u16, String) {
    (response.status().as_u16(), response.text().await.unwrap())
}
