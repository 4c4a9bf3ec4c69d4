//! An app proxy that runs, with all that it asks.

use std::sync::OnceLock;
use std::time::Duration;

use jiff::Timestamp;
use pipeline_core::{ExposeSecret as _, Shutdown};
use reqwest::Client;
use serde_json::{Value, json};
use stages_client::{OwnCookie, Token};
use stages_git::Checkouts;
use stages_platform_api::{Api, ForwardConfig};
use stages_platform_store::{
    Account, Action, Attribute, AttributeName, By, Entity, Place, Retention, Role, Rule, Scope, Sequence,
    Store, StoreConfig, create_token,
};
use stages_proxy::{Access, Limits, ProxyConfig, ProxySeries, RuntimeToken, Stopping};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::argocd::{self, ArgoCd};
use crate::cluster::{self, Cluster};
use crate::provider::Provider;
use crate::sealing;

/// Waited for what is to happen, on a machine however busy.
pub(crate) const SOON: Duration = Duration::from_secs(120);

/// What is looked at, once it is as it is to be.
pub(crate) async fn soon<T: std::fmt::Debug>(look: impl AsyncFn() -> T, is_well: impl Fn(&T) -> bool) -> T {
    let until = tokio::time::Instant::now() + SOON;
    loop {
        let found = look().await;
        if is_well(&found) {
            return found;
        }
        assert!(tokio::time::Instant::now() < until, "{found:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub(crate) struct Running {
    pub(crate) url: String,
    pub(crate) client: Client,
    pub(crate) store: Store,
    pub(crate) argocd: ArgoCd,
    pub(crate) cluster: Cluster,
    pub(crate) provider: Provider,
    /// An admin's key, one of theirs that reads, a member's, and the runtime's own token.
    pub(crate) admin: String,
    pub(crate) reads: String,
    pub(crate) member: String,
    pub(crate) runtime: String,
    pub(crate) stop: Shutdown,
    /// The app proxy's own end, once it was told to stop.
    pub(crate) ended: Option<JoinHandle<()>>,
    pub(crate) platform: JoinHandle<()>,
    pub(crate) folder: TempDir,
    /// What the app proxy counts.
    pub(crate) registry: prometheus::Registry,
}

pub(crate) fn by(who: &str) -> By {
    By { who: who.to_owned(), how: "session" }
}

pub(crate) fn now() -> i64 {
    Timestamp::now().as_millisecond()
}

async fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    (listener, url)
}

impl Running {
    pub(crate) async fn start() -> Self {
        Self::remembering(Duration::ZERO).await
    }

    /// With answers of the platform remembered for so long.
    pub(crate) async fn remembering(remembered: Duration) -> Self {
        Self::made(remembered, |config| config).await
    }

    /// The same, with whatever else `change` gives it.
    pub(crate) async fn made(remembered: Duration, change: impl FnOnce(ProxyConfig) -> ProxyConfig) -> Self {
        Box::pin(Self::built(remembered, change, Stopping::default())).await
    }

    /// One that waits so long for what is under way when it is told to stop.
    pub(crate) async fn ending(stopping: Stopping) -> Self {
        Self::built(Duration::ZERO, |config| config, stopping).await
    }

    async fn built(
        remembered: Duration,
        change: impl FnOnce(ProxyConfig) -> ProxyConfig,
        stopping: Stopping,
    ) -> Self {
        crate::canaries::logged();
        static ONCE: OnceLock<()> = OnceLock::new();
        ONCE.get_or_init(|| drop(rustls::crypto::ring::default_provider().install_default()));
        let folder = TempDir::new().unwrap();
        let place = Place::Sqlite(folder.path().join("platform.db"));
        let runtime = create_token(&place, "prod").await.unwrap().expose_secret().to_owned();
        let day = Duration::from_secs(86_400);
        let retention = Retention { history: 90 * day, keys: day, interval: day };
        let (store, _) = StoreConfig { place, retention }.build(&prometheus::Registry::new()).await.unwrap();
        let end = now() + 3_600_000;
        store.keep_link([7; 32], end).await.unwrap();
        let ada = Account { name: "ada".to_owned(), password: "$made-up".to_owned(), role: Role::Admin };
        assert!(store.use_link([7; 32], now(), &ada).await.unwrap());
        let lin = Account { name: "lin".to_owned(), role: Role::Member, ..ada };
        assert!(store.add_person(&by("ada"), &lin, now()).await.unwrap());
        store.set_teams(&by("ada"), "lin", &["shop".to_owned()], now()).await.unwrap();
        let key = async |who: &str, scope| {
            store.add_key(&by(who), "test", scope, end, now()).await.unwrap().expose_secret().to_owned()
        };
        let (admin, reads, member) =
            (key("ada", Scope::Full).await, key("ada", Scope::Read).await, key("lin", Scope::Full).await);
        let stop = Shutdown::new();
        let (listener, platform_url) = listen().await;
        let (sequence, forward) = (Sequence::new(store.clone()), ForwardConfig::new(stop.clone()));
        let session = OwnCookie::session(&platform_url);
        let api = Api::new(store.clone(), sequence, Timestamp::now, forward, session);
        let served = axum::serve(listener, api.routes());
        let platform = tokio::spawn(async move { served.await.unwrap() });
        let provider = Provider::start().await;
        let (argocd, argocd_url) = ArgoCd::start().await;
        let mut registered = Vec::new();
        for name in ["ada", "lin"] {
            registered.push((name.to_owned(), store.access(name, now()).await.unwrap().unwrap().uid));
        }
        let (cluster, cluster_url) = Cluster::start(&provider.url, registered).await;
        let controller_url = sealing::start().await;
        let registry = prometheus::Registry::new();
        let series = ProxySeries::new(&registry);
        let http = || stages_client::Config::new(SOON, 1 << 20);
        let clones = stages_git::remote::Config {
            connect_timeout: SOON,
            idle: SOON,
            ..stages_git::remote::Config::new(folder.path().join("clones"))
        };
        let config = ProxyConfig {
            platform: platform_url,
            platform_token: RuntimeToken::Given(Token::literal(runtime.clone())),
            platform_http: http(),
            argocd: (argocd_url, String::new()),
            access: Access::Token(Token::literal(argocd::TOKEN)),
            argocd_http: http(),
            workflows: None,
            sealed_secrets: Some((controller_url, http())),
            cluster: stages_kube::Cluster::Server {
                url: cluster_url,
                token: Some(cluster::TOKEN.to_owned().into()),
                token_file: None,
                ca_file: None,
            },
            namespace: "argocd".to_owned(),
            argocd_namespace: "argocd".to_owned(),
            own_pods: "app.kubernetes.io/instance=runtime".to_owned(),
            git_ca_file: None,
            takes_any_git_token: false,
            oauth: None,
            checkouts: Checkouts::new(clones).await.unwrap(),
            cors_origin: "https://platform.example".to_owned(),
            limits: Limits { body: 64 << 10, streams: 2, remembered, heartbeat: Duration::from_millis(50) },
            series,
        };
        let proxy = change(config).build(stop.clone()).await.unwrap().stopping(stopping);
        let (listener, url) = listen().await;
        let routes = proxy.routes();
        tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        let ended = Some(tokio::spawn(proxy.run()));
        let client = Client::builder().tls_certs_only([]).no_proxy().build().unwrap();
        Self {
            url,
            client,
            store,
            argocd,
            cluster,
            provider,
            admin,
            reads,
            member,
            runtime,
            stop,
            ended,
            platform,
            folder,
            registry,
        }
    }

    /// Registers the runtime, so that it has a store key.
    pub(crate) async fn register(&self) {
        assert!(self.store.register(&by("ada"), "prod", "{}", true, now()).await.unwrap().is_some());
    }

    /// Lets the member's team do this, where the Application, or the workflow, is in this namespace (empty: wherever it is); gives
    /// the rule's number.
    pub(crate) async fn allow(&self, action: &str, entity: &str, namespace: &str) -> i64 {
        let action: Action = serde_json::from_value(action.into()).unwrap();
        let entity: Entity = serde_json::from_value(entity.into()).unwrap();
        let attribute = Attribute { name: AttributeName::Namespace, key: None, value: namespace.to_owned() };
        let rule = Rule {
            id: 0,
            entity_type: entity,
            teams: vec!["shop".to_owned()],
            tags: Vec::new(),
            actions: vec![action],
            attributes: if namespace.is_empty() { Vec::new() } else { vec![attribute] },
        };
        assert!(self.store.add_rule(&by("ada"), &rule, now()).await.unwrap());
        self.store.rules().await.unwrap().last().unwrap().id
    }

    pub(crate) async fn take_away(&self, rule: i64) {
        assert!(self.store.remove_rule(&by("ada"), rule, now()).await.unwrap());
    }

    /// The whole answer.
    pub(crate) async fn ask(&self, token: &str, query: &str) -> Value {
        let asked =
            self.client.post(format!("{}/app-proxy/api/graphql", self.url)).header("authorization", token);
        let asked = match query.starts_with("subscription") {
            true => asked.header("accept", "text/event-stream"),
            false => asked,
        };
        let text = asked.json(&json!({"query": query})).send().await.unwrap().text().await.unwrap();
        match query.starts_with("subscription") {
            // Of a stream the first item tells whether it was begun.
            true => serde_json::from_str(events(&text).first().unwrap()).unwrap(),
            false => serde_json::from_str(&text).unwrap(),
        }
    }

    /// What an answer without errors holds.
    pub(crate) async fn data(&self, token: &str, query: &str) -> Value {
        let answer = self.ask(token, query).await;
        assert_eq!(answer.get("errors"), None, "{query}: {answer}");
        answer["data"].clone()
    }

    /// Message and code of the only error.
    pub(crate) async fn refused(&self, token: &str, query: &str) -> (String, String) {
        let answer = self.ask(token, query).await;
        let error = &answer["errors"][0];
        let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{query}: {answer}")).to_owned();
        (text(&error["message"]), text(&error["extensions"]["code"]))
    }

    /// What is asked is refused with this alone.
    pub(crate) async fn refuses(&self, token: &str, query: &str, said: &str, code: &str) {
        assert_eq!(self.refused(token, query).await, (said.to_owned(), code.to_owned()), "{query}");
    }

    /// An admin is told that what they ask is wrong.
    pub(crate) async fn wrong(&self, query: &str, said: &str) {
        self.refuses(&self.admin, query, said, "BAD_REQUEST").await;
    }

    /// Lines of the audit log that the app proxy wrote, the newest first, once there are so many: who, act, and what of it.
    pub(crate) async fn audit(&self, rows: usize) -> Vec<(String, String, String)> {
        let written = async || {
            let all = self.store.audit(i64::MAX, 1_000).await.unwrap();
            let of = all.into_iter().filter(|act| act.how == "app-proxy");
            of.map(|act| (act.who, act.act, act.subject)).collect::<Vec<_>>()
        };
        soon(written, |found| found.len() >= rows).await
    }
}

/// The data of the events `next` of a stream.
pub(crate) fn events(text: &str) -> Vec<String> {
    let event = |block: &str| {
        let is_next = block.lines().any(|line| line == "event: next");
        let data = block.lines().find_map(|line| line.strip_prefix("data: "));
        data.filter(|_| is_next).map(str::to_owned)
    };
    text.split("\n\n").filter_map(event).collect()
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
