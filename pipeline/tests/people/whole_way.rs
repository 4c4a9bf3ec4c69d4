//! One act the whole way: command line, platform, tunnel, router, app proxy and Argo CD, each but the last a process of its own.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{HOST, TRANSFER_ENCODING};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures::{SinkExt as _, StreamExt as _};
use loadtest::port;
use loadtest::process::{Process, Start};
use loadtest::sim::server::serve;
use loadtest::sim::{local_client, wait_for};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use crate::desk::Desk;
use crate::platform::{PROGRAM, SOON};

/// The tunnel of the runtime prod, of the account that a platform of one's own has.
const HOST_OF_PROD: &str = "default-prod.tunnels.example.com";

type Socket = WebSocketStream<TcpStream>;

/// What Argo CD was asked to change: method and path, and the body.
type Asked = Arc<Mutex<Vec<(String, Value)>>>;

/// Argo CD, and an API server that knows nothing: both are asked at one address.
async fn argocd(State(asked): State<Asked>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let path = head.uri.path().to_owned();
    if head.method != axum::http::Method::GET {
        let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
        let body = serde_json::from_slice(&body).unwrap_or_default();
        asked.lock().unwrap().push((format!("{} {path}", head.method), body));
    }
    let query = head.uri.query().unwrap_or_default();
    match &*path {
        "/api/v1/session/userinfo" => json!({"loggedIn": true}).to_string().into_response(),
        "/api/v1/applications/store/resource-tree" => {
            let node = |group: &str, kind: &str, name: &str| json!({"group": group, "version": "v1", "kind": kind, "namespace": "shop", "name": name, "uid": kind});
            let nodes = [
                node("", "Pod", "web-1"),
                node("apps", "Deployment", "web"),
                node("argoproj.io", "Rollout", "api"),
            ];
            json!({"nodes": nodes}).to_string().into_response()
        }
        "/api/v1/applications/store/managed-resources" => {
            let deployment =
                json!({"group": "apps", "kind": "Deployment", "namespace": "shop", "name": "web"});
            json!({"items": [deployment]}).to_string().into_response()
        }
        "/api/v1/applications/store/logs" if query.contains("&namespace=shop&podName=web-1&") => {
            let line = json!({"result": {"content": "one", "podName": "web-1"}});
            format!("{line}\n{}\n", json!({"result": {"last": true}})).into_response()
        }
        path if path.starts_with("/api/v1/applications") => json!({
            "metadata": {"name": "store", "namespace": "argocd"},
            "spec": {"project": "default"},
            "status": {"history": [{"id": 1, "revision": "v1"}, {"id": 2, "revision": "v2"}]},
        })
        .to_string()
        .into_response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

/// What stands before the tunnel server: a name that resolves, and the host that visitors ask for.
async fn ingress(State((server, client)): State<(String, reqwest::Client)>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let mut asked = client.request(head.method, format!("{server}{}", head.uri));
    for (name, value) in head.headers.iter().filter(|(name, _)| **name != HOST) {
        asked = asked.header(name, value);
    }
    let asked = asked.header(HOST, HeaderValue::from_static(HOST_OF_PROD)).body(body);
    match asked.send().await {
        Ok(answer) => {
            let (status, mut headers) = (answer.status(), answer.headers().clone());
            // It comes as a whole from here.
            headers.remove(TRANSFER_ENCODING);
            (status, headers, answer.bytes().await.unwrap()).into_response()
        }
        Err(_) => StatusCode::BAD_GATEWAY.into_response(),
    }
}

/// The processes of a runtime, and what its Argo CD was asked.
struct Way {
    desk: Desk,
    folder: TempDir,
    asked: Asked,
    roles: Vec<Process>,
    client: Option<Process>,
    /// Where the tunnel server, the router and the app proxy listen.
    ports: [u16; 3],
    ingress: String,
}

impl Way {
    async fn start() -> Self {
        let desk = Desk::signed_in().await;
        let (folder, asked) = (TempDir::new().unwrap(), Asked::default());
        std::fs::write(folder.path().join("argocd-token"), "any").unwrap();
        let argocd = serve(Router::new().fallback(argocd).with_state(asked.clone())).await.unwrap();
        let ports = [(); 3].map(|()| port::free().unwrap());
        let [server, router, proxy] = ports;
        let client = local_client().timeout(SOON).build().unwrap();
        let way = (format!("http://127.0.0.1:{server}"), client);
        let ingress = serve(Router::new().fallback(ingress).with_state(way)).await.unwrap();
        let mut way = Self { desk, folder, asked, roles: Vec::new(), client: None, ports, ingress };
        way.role(
            "app-proxy",
            &[
                format!("appProxy.listen=127.0.0.1:{proxy}"),
                "appProxy.repositories.directory=clones".to_owned(),
                format!("argocd.url={argocd}"),
                "argocd.tokenFile=argocd-token".to_owned(),
                format!("kubernetes.server={argocd}"),
                "kubernetes.tokenFile=argocd-token".to_owned(),
                "kubernetes.namespace=argocd".to_owned(),
            ],
        );
        way.role(
            "router",
            &[
                format!("router.listen=127.0.0.1:{router}"),
                format!("router.appProxy.url=http://127.0.0.1:{proxy}"),
                "router.workflows.url=".to_owned(),
                "router.drainDelay=100ms".to_owned(),
                "router.dns.servers=127.0.0.1:9".to_owned(),
            ],
        );
        way.role(
            "tunnel-server",
            &[
                format!("tunnelServer.listen=127.0.0.1:{server}"),
                "tunnelServer.domain=tunnels.example.com".to_owned(),
                "tunnelServer.askPlatform=true".to_owned(),
                "tunnelServer.drainDelay=100ms".to_owned(),
            ],
        );
        way.connect();
        way.desk.platform.register(&way.ingress).await;
        way
    }

    fn process(&self, role: &str, sets: &[String]) -> Process {
        let common = [
            "log.format=json".to_owned(),
            "serve.address=127.0.0.1:0".to_owned(),
            format!("platform.url={}", self.desk.platform.url()),
            format!("platform.tokenFile={}", self.desk.platform.token_file().display()),
        ];
        let start =
            Start::with_settings(PROGRAM, [role], common.iter().chain(sets).cloned(), self.folder.path());
        let env = vec![("GITOPS_RUNTIME_CONTEXT".to_owned(), "none".to_owned())];
        Process::start(&Start { env, ..start }).unwrap()
    }

    fn role(&mut self, role: &str, sets: &[String]) {
        let process = self.process(role, sets);
        self.roles.push(process);
    }

    /// Starts the tunnel's client.
    fn connect(&mut self) {
        let [server, router, _] = self.ports;
        let token = self.desk.platform.token_file();
        let sets = [
            format!("tunnelClient.to=http://127.0.0.1:{server}"),
            "tunnelClient.name=default-prod".to_owned(),
            format!("tunnelClient.tokenFile={}", token.display()),
            format!("tunnelClient.forward=http://127.0.0.1:{router}"),
        ];
        self.client = Some(self.process("tunnel-client", &sets));
    }

    /// Waits until the app proxy is reached through all of it.
    async fn leads(&self) {
        let client = local_client().timeout(SOON).build().unwrap();
        let look = async || {
            let asked = client.get(format!("{}/app-proxy/api/readyz", self.ingress)).send().await.unwrap();
            let logs: Vec<_> = self.roles.iter().map(|role| role.lines().end()).collect();
            (asked.status().as_u16(), asked.text().await.unwrap(), logs)
        };
        wait_for("the app proxy to be reached", look, |(status, ..)| *status == 200).await;
    }

    /// A WebSocket to the app proxy, through tunnel and router.
    async fn socket(&self) -> Socket {
        let mut request = format!("ws://{HOST_OF_PROD}/app-proxy/api/graphql").into_client_request().unwrap();
        let protocol = HeaderValue::from_static("graphql-transport-ws");
        request.headers_mut().insert("sec-websocket-protocol", protocol);
        let stream = TcpStream::connect(("127.0.0.1", self.ports[0])).await.unwrap();
        let (socket, _) = tokio_tungstenite::client_async(request, stream).await.unwrap();
        socket
    }

    /// What Argo CD was asked to change since this was asked last.
    fn changed(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }

    async fn stop(self) {
        for role in self.roles.into_iter().chain(self.client) {
            let lines = role.lines().clone();
            assert!(role.stop(SOON).await.unwrap().success());
            for line in lines.all() {
                assert!(
                    !line.contains("goak_") && !line.contains("gort_"),
                    "a secret stands in the log: {line}"
                );
            }
        }
        self.desk.stop().await;
    }
}

/// What is answered to a message.
async fn told(socket: &mut Socket, message: Value) -> Value {
    socket.send(Message::text(message.to_string())).await.unwrap();
    loop {
        let answer = tokio::time::timeout(SOON, socket.next()).await.unwrap().unwrap().unwrap();
        if let Message::Text(text) = answer {
            return serde_json::from_str(&text).unwrap();
        }
    }
}

/// Has all asked for that commands ask an app proxy for: it is done, or refused for what there is not, and never misunderstood.
async fn asked_for_everything(way: &Way) {
    let elsewhere = "is not in the cluster of this runtime";
    let (none, no_git) = ("there is no workflow ci/build", "there is no Git integration default");
    let all = [
        ("app tree store --live", 0, "└─ Rollout/api"),
        ("app diff store --live", 0, "nothing of prod/argocd/store differs"),
        (
            "app diff store --live --revision v1 --resource Deployment/web",
            0,
            "nothing of prod/argocd/store differs",
        ),
        ("app history store --live", 0, "v2"),
        ("app events store --live --resource Pod/web-1", 0, "the cluster remembers no event"),
        ("app action store Deployment/web", 0, "nothing can be done to Deployment/web"),
        ("app refresh store --hard", 0, "was compared with Git anew"),
        (
            "app sync store --prune --force --apply-only --sync-option CreateNamespace=true --retry 2 --resource Deployment/web --yes",
            0,
            "is being synced",
        ),
        ("app rollback store --prune --yes", 0, "is being rolled back to deployment 1, of v1"),
        ("app terminate store", 0, "is being ended"),
        ("app restart store Deployment/web", 0, "is being restarted"),
        ("app delete-resource store Pod/web-1 --force --yes", 0, "is being deleted"),
        ("rollout get store", 1, elsewhere),
        ("rollout promote store --full", 1, elsewhere),
        ("rollout pause store", 1, elsewhere),
        ("rollout resume store", 1, elsewhere),
        ("rollout abort store --yes", 1, elsewhere),
        ("rollout retry store", 1, elsewhere),
        ("rollout restart store", 1, elsewhere),
        ("rollout skip store", 1, elsewhere),
        ("rollout rollback store --yes", 1, elsewhere),
        ("workflow list --runtime prod -n ci -l team=shop", 0, "there is no such workflow in ci of prod"),
        ("workflow get build --runtime prod -n ci", 1, none),
        ("workflow logs build --runtime prod -n ci", 1, "this takes the server of Argo Workflows"),
        ("workflow submit build --runtime prod -n ci -p a=b", 1, "the API server did not make the workflow"),
        ("workflow retry build --runtime prod -n ci", 1, none),
        ("workflow resubmit build --runtime prod -n ci", 1, none),
        ("workflow terminate build --runtime prod -n ci --yes", 1, none),
        ("workflow stop build --runtime prod -n ci --yes", 1, none),
        ("workflow suspend build --runtime prod -n ci", 1, none),
        ("workflow resume build --runtime prod -n ci", 1, none),
        ("git integration list --runtime prod", 0, "there is no Git integration in prod"),
        ("git integration add github --runtime prod", 1, "the API server did not"),
        ("git integration edit --sharing admins --runtime prod --dry-run", 1, no_git),
        ("git integration remove --runtime prod --yes", 1, no_git),
        ("git integration deregister --runtime prod --yes", 1, "'ada' has no token registered"),
        ("git token check --runtime prod", 1, no_git),
    ];
    // Some at a time: what one does changes nothing of what another is told.
    let asked = futures::stream::iter(all).map(|(line, code, said)| async move {
        let told = way.desk.run(&line.split(' ').collect::<Vec<_>>()).await;
        let is_so = told.code == code && format!("{}{}", told.out, told.err).contains(said);
        (!is_so).then_some((line, told))
    });
    let others: Vec<_> = asked.buffered(4).filter_map(std::future::ready).collect().await;
    assert!(others.is_empty(), "{others:#?}");
    let changed: Vec<String> = way.changed().into_iter().map(|(act, _)| act).collect();
    let expected =
        ["POST sync", "POST rollback", "DELETE operation", "POST resource/actions", "DELETE resource"];
    let expected = expected.map(|act| act.replacen(' ', " /api/v1/applications/store/", 1));
    assert!(expected.iter().all(|act| changed.contains(act)), "{changed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_goes_from_the_command_line_through_platform_tunnel_and_router_to_argo_cd() {
    let mut way = Way::start().await;
    way.leads().await;
    let sync = ["app", "sync", "store", "--revision", "v2"];
    assert_eq!(way.desk.run(&sync).await.done(), "prod/argocd/store is being synced to v2\n");
    let changed = way.changed();
    assert_eq!(changed.len(), 1, "{changed:?}");
    assert_eq!(changed[0].0, "POST /api/v1/applications/store/sync");
    assert_eq!((&changed[0].1["revision"], &changed[0].1["appNamespace"]), (&json!("v2"), &json!("argocd")));

    // So do lines of a log, of a pod that is found by its name.
    assert_eq!(way.desk.run(&["app", "logs", "store", "Pod/web-1"]).await.done(), "one\n");

    asked_for_everything(&way).await;

    // A socket goes the same way.
    let mut socket = way.socket().await;
    let introduced = json!({"type": "connection_init", "payload": {"Authorization": way.desk.key}});
    assert_eq!(told(&mut socket, introduced).await, json!({"type": "connection_ack"}));
    let asked = json!({"id": "1", "type": "subscribe", "payload": {"query": "{ versionInfo { version } }"}});
    let version = json!({"data": {"versionInfo": {"version": env!("CARGO_PKG_VERSION")}}});
    assert_eq!(told(&mut socket, asked).await, json!({"id": "1", "type": "next", "payload": version}));
    socket.close(None).await.unwrap();

    // A key that only reads changes nothing, and what was done is in the audit log.
    let platform = &way.desk.platform;
    let create = json!({"query": r#"mutation { createApiKey(name: "reads", scope: "read") { key } }"#});
    let made = platform.ask(platform.key(), &create).await;
    let reads = made["data"]["createApiKey"]["key"].as_str().unwrap();
    way.desk.typed(&["login", &platform.url(), "--name", "reader"], reads).await.done();
    let refused = way.desk.run(&[&sync[..], &["--context", "reader"]].concat()).await.refused();
    assert_eq!(refused.0, 1);
    assert!(refused.1.ends_with(": this key may only read: make one of the scope 'full'\n"), "{}", refused.1);
    assert_eq!(way.changed(), []);
    let log = json!({"query": "{ auditLog(first: 50) { who act subject } }"});
    let log = platform.ask(platform.key(), &log).await["data"]["auditLog"].to_string();
    assert!(log.contains("syncApplication"), "{log}");

    // Without the tunnel whoever asks is told so, and nothing is done.
    way.client.take().unwrap().stop(SOON).await.unwrap();
    let away = way.desk.run(&[&sync[..], &["--context", "prod"]].concat()).await.refused();
    let ingress = way.ingress.trim_start_matches("http://");
    let why = format!(
        "runtime 'prod' has no tunnel connected at {ingress}: look whether its tunnel client runs, and what its log says\n"
    );
    assert!(away.0 == 1 && away.1.ends_with(&why), "{}", away.1);
    assert_eq!(way.changed(), []);
    way.connect();
    way.leads().await;
    assert_eq!(way.desk.run(&[&sync[..], &["--context", "prod"]].concat()).await.code, 0);
    assert_eq!(way.changed().len(), 1);
    way.stop().await;
}
