//! The way of an act: from a person, through the platform, to a runtime that answers on a port of its own.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::{get, post};
use futures::{StreamExt as _, stream};
use reqwest::RequestBuilder;
use serde_json::{Value, json};
use stages_platform_store::Scope;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::Notify;

use crate::served::{Credential, Served, by, still, told};

/// What came to the app proxy: its `Authorization`, and the body.
type Came = Arc<Mutex<Vec<(String, Value)>>>;

/// An app proxy, and what else may stand at an address.
struct Runtime {
    url: String,
    came: Came,
    go_on: Arc<Notify>,
}

impl Runtime {
    async fn new() -> Self {
        let (came, go_on) = (Came::default(), Arc::new(Notify::new()));
        let took = async |State((came, go_on)): State<(Came, Arc<Notify>)>,
                          headers: HeaderMap,
                          body: Bytes|
               -> Response {
            let body: Value = serde_json::from_slice(&body).unwrap();
            let token = headers["authorization"].to_str().unwrap().to_owned();
            let is_stream = headers["accept"] == "text/event-stream";
            came.lock().unwrap().push((token, body));
            if !is_stream {
                return axum::Json(json!({"data": {"sync": {"name": "shop"}}})).into_response();
            }
            let lines = stream::unfold(0, move |n| {
                let go_on = go_on.clone();
                async move {
                    if n > 0 {
                        go_on.notified().await;
                    }
                    Some((Ok::<_, std::io::Error>(format!("data: {n}\n\n")), n + 1))
                }
            });
            ([("content-type", "text/event-stream")], Body::from_stream(lines)).into_response()
        };
        let page = async || ([("content-type", "text/html")], "<script>alert(1)</script>");
        let never = async || std::future::pending::<&str>().await;
        let untunneled =
            async || (StatusCode::NOT_FOUND, [("gitops-runtime-no-tunnel", "true")], "no tunnel\n");
        let at = |path: &str| format!("/{path}/app-proxy/api/graphql");
        let router = Router::new()
            .route("/app-proxy/api/graphql", post(took))
            .route(&at("moved"), post(async || Redirect::temporary("/app-proxy/api/graphql")))
            .route(&at("page"), post(page).get(page))
            .route(&at("refuses"), post(async || StatusCode::UNAUTHORIZED))
            .route(&at("ill"), post(async || StatusCode::BAD_GATEWAY))
            .route(&at("untunneled"), post(untunneled))
            .route(&at("never"), post(never))
            .route("/", get(page))
            .with_state((came.clone(), go_on.clone()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, came, go_on }
    }
}

impl Served {
    /// The runtime `prod` is registered with these addresses.
    async fn at(&self, said: Value) {
        let now = still().as_millisecond();
        self.store.register(&by("ada"), "prod", &said.to_string(), true, now).await.unwrap().unwrap();
    }

    fn act(&self, who: &Credential, query: &str) -> RequestBuilder {
        let url = format!("{}/2.0/api/runtimes/prod/app-proxy/graphql", self.url);
        self.client.post(url).header(who.0, &who.1).json(&json!({"query": query}))
    }

    async fn said(&self, who: &Credential, query: &str) -> (u16, String) {
        told(self.act(who, query).send().await.unwrap()).await
    }
}

const SYNC: &str = "mutation { sync(name: \"shop\") { name } }";

#[tokio::test]
async fn what_a_person_asks_of_a_runtime_comes_to_it_with_a_pass_of_theirs_and_its_answer_comes_back() {
    let (served, runtime) = (Served::new().await, Runtime::new().await);
    // The address within the cluster comes first, and one below a path is one.
    served.at(json!({"ingressHost": "http://127.0.0.1:1", "internalIngressHost": runtime.url})).await;
    let answer = served.act(&served.admin, SYNC).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["cache-control"], "no-store");
    assert_eq!(answer.headers()["x-accel-buffering"], "no");
    assert_eq!(answer.headers()["x-content-type-options"], "nosniff");
    assert_eq!(answer.json::<Value>().await.unwrap(), json!({"data": {"sync": {"name": "shop"}}}));
    let (token, body) = runtime.came.lock().unwrap().pop().unwrap();
    assert_eq!(body, json!({"query": SYNC}));
    assert_ne!(token, served.admin.1, "the key itself goes nowhere");
    let pass = served.store.pass(&token.clone().into(), still().as_millisecond()).await.unwrap().unwrap();
    assert_eq!(
        (&*pass.access.who, &*pass.how, pass.scope, &*pass.runtime),
        ("ada", "key", Scope::Full, "prod")
    );
    let acts = served.store.audit(i64::MAX, 1).await.unwrap();
    assert_eq!((&*acts[0].who, &*acts[0].act, &*acts[0].subject), ("ada", "runtime.act", "prod: sync"));
    // It opens nothing of the platform itself.
    let pass = ("authorization", token);
    let response = served.ask(&pass, "{ me { name } }", &json!({})).send().await.unwrap();
    assert_eq!(response.status(), 401);
    // Whoever only reads asks only; what is read stands in no log.
    let reads = (200, json!({"data": {"sync": {"name": "shop"}}}).to_string());
    assert_eq!(served.said(&served.admin_reads, "{ application { name } }").await, reads);
    assert_eq!(served.store.audit(i64::MAX, 1).await.unwrap()[0].subject, "prod: sync");
    let refused = (403, "this key may only read: make one of the scope 'full'\n".to_owned());
    assert_eq!(served.said(&served.admin_reads, SYNC).await, refused);
    assert_eq!(runtime.came.lock().unwrap().len(), 1, "what was refused came nowhere");
}

#[tokio::test]
async fn a_page_asks_a_stored_query_by_its_name_and_nothing_in_words_of_its_own() {
    let (served, runtime) = (Served::new().await, Runtime::new().await);
    served.at(json!({"ingressHost": runtime.url})).await;
    let page = async |body: &Value, site: &str| {
        let url = format!("{}/2.0/api/runtimes/prod/app-proxy/graphql", served.url);
        let (name, value) = &served.session;
        let asked = served.client.post(url).header(*name, value).header("sec-fetch-site", site).json(body);
        told(asked.send().await.unwrap()).await
    };
    let stored = json!({"documentId": "refreshApplication", "variables": {"application": {"name": "shop"}}});
    assert_eq!(page(&stored, "same-origin").await.0, 200);
    let (_, came) = runtime.came.lock().unwrap().pop().unwrap();
    let text = "mutation refreshApplication($application: ApplicationId!) { refreshApplication(application: $application) { metadata { name } } }";
    assert_eq!(came, json!({"query": text, "variables": {"application": {"name": "shop"}}}));
    let acts = served.store.audit(i64::MAX, 1).await.unwrap();
    assert_eq!((&*acts[0].how, &*acts[0].subject), ("session", "prod: refreshApplication"));
    let own = "a session is good for the console's own queries, by their names: send an API key to ask in words of your own\n";
    for body in [
        json!({"query": SYNC}),
        json!({"query": "{ application { name } }"}),
        json!({"documentId": "refreshApplication", "query": SYNC}),
        json!([stored]),
    ] {
        assert_eq!(page(&body, "same-origin").await, (403, own.to_owned()), "{body}");
    }
    let none = "this version of the platform has no query 'sealSecret': load the page anew\n";
    let unknown = page(&json!({"documentId": "sealSecret"}), "same-origin").await;
    assert_eq!(unknown, (400, none.to_owned()));
    let other = "this was sent from a page of another site; open the console itself, at the address of platformServer.externalUrl\n";
    assert_eq!(page(&stored, "cross-site").await, (403, other.to_owned()));
    assert_eq!(runtime.came.lock().unwrap().len(), 0, "what was refused came nowhere");
}

#[tokio::test]
async fn a_runtime_that_somebody_does_not_see_is_none_to_them() {
    let (served, runtime) = (Served::new().await, Runtime::new().await);
    served.at(json!({"ingressHost": runtime.url})).await;
    let none = (404, "there is no runtime 'prod'\n".to_owned());
    assert_eq!(served.said(&served.member, SYNC).await, none);
    let now = still().as_millisecond();
    served.store.set_teams(&by("ada"), "lin", &["shop".to_owned()], now).await.unwrap();
    let rule = |runtime: &str| {
        format!(
            r#"mutation {{ createAbacRule(rule: {{entityType: "gitopsApplications", teams: ["shop"], actions: ["VIEW"], attributes: [{{name: "RUNTIME", value: "{runtime}"}}]}}) }}"#
        )
    };
    served.data(&served.admin, &rule("eu1"), json!({})).await;
    assert_eq!(served.said(&served.member, SYNC).await, none);
    served.data(&served.admin, &rule("prod"), json!({})).await;
    assert_eq!(served.said(&served.member, SYNC).await.0, 200);
    let person = "only a person may do this: send an API key instead of the token of a runtime\n".to_owned();
    assert_eq!(served.said(&served.runtime, SYNC).await, (403, person));
    served.store.set_disabled(&by("ada"), "lin", true, now).await.unwrap();
    assert_eq!(served.said(&served.member, SYNC).await.0, 401);
    assert_eq!(runtime.came.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn what_the_platform_is_not_to_ask_is_not_asked_by_address_or_by_name() {
    let refused = |network: &str| network.parse().unwrap();
    let served = Served::forwarding(|config| stages_platform_api::ForwardConfig {
        refused: ["127.0.0.0/8", "::1/128", "169.254.0.0/16"].map(refused).to_vec(),
        ..config
    })
    .await;
    let runtime = Runtime::new().await;
    let port = runtime.url.rsplit_once(':').unwrap().1;
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "[::1]", "2130706433", "169.254.169.254"] {
        served.at(json!({"ingressHost": format!("http://{host}:{port}")})).await;
        let (status, said) = served.said(&served.admin, SYNC).await;
        let why = "where this platform asks nobody (platformServer.forward.refusedNetworks): register it anew with another address\n";
        assert!(status == 409 && said.starts_with("runtime 'prod' is registered at "), "{host}: {said}");
        assert!(said.ends_with(why), "{host}: {said}");
    }
    assert_eq!(runtime.came.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn a_runtime_that_does_not_answer_as_an_app_proxy_is_told_with_what_to_do() {
    let within = async |timeout: Duration| {
        Served::forwarding(|config| stages_platform_api::ForwardConfig { timeout, ..config }).await
    };
    let (served, impatient) =
        (within(Duration::from_secs(120)).await, within(Duration::from_millis(500)).await);
    let runtime = Runtime::new().await;
    let said = async |served: &Served, address: &str| {
        served.at(json!({"ingressHost": address})).await;
        served.said(&served.admin, "{ application { name } }").await
    };
    // Bound, so that nobody else is given the port, and not listening.
    let taken = TcpSocket::new_v4().unwrap();
    taken.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let nowhere = taken.local_addr().unwrap();
    let away = format!(
        "runtime 'prod' cannot be reached at {nowhere}: look whether its router and app proxy run, and whether this platform may connect there\n"
    );
    let not =
        |status: u16, why: &str| (502, format!("the address of runtime 'prod' answered {status}: {why}\n"));
    let none = "runtime 'prod' has no address, so nothing can be asked of it: an admin finds on the console's page /runtimes/add/prod what gives it one; a program registers it anew (createRuntime with recover: true) with ingressHost, or internalIngressHost\n";
    let bad = |why: &str| {
        (
            409,
            format!(
                "runtime 'prod' has an address that cannot be used: register it anew with another; {why}\n"
            ),
        )
    };
    let late = "runtime 'prod' did not answer within 0 s: what was asked may still be done; look before you ask again\n";
    let untunneled = format!(
        "runtime 'prod' has no tunnel connected at {}: look whether its tunnel client runs, and what its log says\n",
        runtime.url.trim_start_matches("http://")
    );
    let cases = [
        (String::new(), (409, none.to_owned())),
        ("prod.example".to_owned(), bad("the address is not a URL such as `https://argocd.example`")),
        ("file:///etc/passwd".to_owned(), bad("the address must begin with `http://` or `https://`")),
        (
            "http://user:secret@prod.example".to_owned(),
            bad("the address must not hold a user name or a password"),
        ),
        ("http://prod.example/?a=b".to_owned(), bad("the address must not hold a query or a fragment")),
        (format!("http://{nowhere}"), (502, away)),
        (
            format!("{}/moved", runtime.url),
            not(307, "a redirect is not followed; register the address that it leads to"),
        ),
        (
            format!("{}/page", runtime.url),
            not(200, "its content is no GraphQL; register the address of its app proxy"),
        ),
        (
            format!("{}/refuses", runtime.url),
            not(401, "it did not take the platform's word for who asks; its log says why"),
        ),
        (
            format!("{}/none", runtime.url),
            not(404, "no app proxy is served there; deploy it, or register the address that leads to it"),
        ),
        (
            format!("{}/ill", runtime.url),
            not(502, "what stands in front of its app proxy, or the app proxy itself, is not well"),
        ),
        (format!("{}/untunneled", runtime.url), (502, untunneled)),
    ];
    for (address, expected) in cases {
        assert_eq!(said(&served, &address).await, expected, "{address}");
    }
    assert_eq!(said(&impatient, &format!("{}/never", runtime.url)).await, (504, late.to_owned()));
    assert!(runtime.came.lock().unwrap().is_empty(), "no redirect was followed");
    let wrong = "the body is no GraphQL of the form {\"query\": \"…\", \"variables\": {}}: its query cannot be read\n";
    assert_eq!(served.said(&served.admin, "mutation {").await, (400, wrong.to_owned()));
    let long = format!("{{ a(b: \"{}\") }}", "x".repeat(4 * 1_024 * 1_024));
    assert_eq!(
        served.said(&served.admin, &long).await,
        (413, "the body is longer than 4194304 bytes\n".to_owned())
    );
}

#[tokio::test]
async fn an_answer_that_is_a_stream_comes_as_it_is_sent_holds_its_place_and_ends_with_the_process() {
    let served =
        Served::forwarding(|config| stages_platform_api::ForwardConfig { concurrency: 1, ..config }).await;
    let runtime = Runtime::new().await;
    served.at(json!({"ingressHost": runtime.url})).await;
    let logs = "subscription { logs }";
    let follow = served.act(&served.admin, logs).header("accept", "text/event-stream");
    let answer = follow.send().await.unwrap();
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let mut lines = answer.bytes_stream();
    for n in 0..3 {
        assert_eq!(lines.next().await.unwrap().unwrap(), format!("data: {n}\n\n"));
        runtime.go_on.notify_one();
    }
    let busy = served.act(&served.admin, logs).send().await.unwrap();
    assert_eq!(busy.headers()["retry-after"], "5");
    let said = "too many runtimes are being asked at once: try again\n".to_owned();
    assert_eq!(told(busy).await, (503, said));
    served.stop.cancel();
    let rest = async { while lines.next().await.is_some_and(|line| line.is_ok()) {} };
    tokio::time::timeout(Duration::from_secs(60), rest).await.unwrap();
}

#[tokio::test]
async fn nobody_takes_all_places_to_runtimes_and_what_comes_in_with_whichever_key_is_theirs() {
    let served =
        Served::forwarding(|config| stages_platform_api::ForwardConfig { concurrency: 2, ..config }).await;
    let runtime = Runtime::new().await;
    served.at(json!({"ingressHost": runtime.url})).await;
    let now = still().as_millisecond();
    served.store.set_teams(&by("ada"), "lin", &["shop".to_owned()], now).await.unwrap();
    let rule = r#"mutation { createAbacRule(rule: {entityType: "gitopsApplications", teams: ["shop"], actions: ["VIEW"], attributes: [{name: "RUNTIME", value: "prod"}]}) }"#;
    served.data(&served.admin, rule, json!({})).await;
    let follow = async |who: &Credential| {
        let asked = served.act(who, "subscription { logs }").header("accept", "text/event-stream");
        asked.send().await.unwrap()
    };
    let first = follow(&served.admin).await;
    assert_eq!(first.status(), 200);
    let refused = async |who: &Credential| {
        let answer = follow(who).await;
        assert_ne!(answer.status(), 200);
        told(answer).await
    };
    let own = "as many requests of yours to runtimes are under way as may be (1): wait for an answer, or end a stream\n";
    assert_eq!(refused(&served.admin).await, (429, own.to_owned()));
    assert_eq!(refused(&served.admin_reads).await, (429, own.to_owned()));
    let other = follow(&served.member).await;
    assert_eq!(other.status(), 200, "somebody else has a place");
    let all = "too many runtimes are being asked at once: try again\n".to_owned();
    assert_eq!(refused(&served.admin).await, (503, all));
    drop((first, other));
}
