//! GraphQL over WebSockets: what is answered, whom, and how much of it at a time.

use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::{FutureExt as _, SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::closed::kept_waiting;
use crate::operations::asked;
use crate::support::{Running, SOON};

const TRANSPORT: &str = "graphql-transport-ws";
const FORMER: &str = "graphql-ws";
const LOOK: Duration = Duration::from_millis(20);

/// Somebody at a socket.
struct Client(WebSocketStream<TcpStream>);

impl Client {
    /// Opens one; the status of whoever is refused.
    async fn open(running: &Running, protocol: &str, key: Option<&str>) -> Result<Self, u16> {
        let address = running.url.trim_start_matches("http://");
        let mut request = format!("ws://{address}/app-proxy/api/graphql").into_client_request().unwrap();
        let headers = request.headers_mut();
        headers.insert("sec-websocket-protocol", protocol.parse().unwrap());
        if let Some(key) = key {
            headers.insert("authorization", key.parse().unwrap());
        }
        let stream = TcpStream::connect(address).await.unwrap();
        match tokio_tungstenite::client_async(request, stream).await {
            Ok((socket, response)) => {
                assert_eq!(response.headers()["sec-websocket-protocol"], protocol);
                Ok(Self(socket))
            }
            Err(Error::Http(response)) => Err(response.status().as_u16()),
            Err(error) => panic!("{error}"),
        }
    }

    /// Opens one, once there is a place: that of one that has ended is free in a moment.
    async fn opened(running: &Running, protocol: &str, key: Option<&str>) -> Self {
        let opening = async {
            loop {
                match Self::open(running, protocol, key).await {
                    Ok(client) => break client,
                    Err(status) => assert_eq!(status, 503),
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        timeout(SOON, opening).await.unwrap()
    }

    /// One that is known by its key.
    async fn known(running: &Running, key: &str) -> Self {
        let mut client = Self::opened(running, TRANSPORT, None).await;
        client.say(&json!({"type": "connection_init", "payload": {"authorization": key}})).await;
        assert_eq!(client.hear().await, json!({"type": "connection_ack"}));
        client
    }

    async fn say(&mut self, message: &Value) {
        self.0.send(Message::text(message.to_string())).await.unwrap();
    }

    async fn ask(&mut self, id: &str, query: &str) {
        self.say(&json!({"id": id, "type": "subscribe", "payload": {"query": query}})).await;
    }

    async fn next(&mut self) -> Message {
        loop {
            match timeout(SOON, self.0.next()).await.unwrap().unwrap().unwrap() {
                Message::Ping(_) | Message::Pong(_) => {}
                message => return message,
            }
        }
    }

    async fn hear(&mut self) -> Value {
        match self.next().await {
            Message::Text(text) => serde_json::from_str(&text).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    /// The code and the reason that it is ended with.
    async fn ended(&mut self) -> (u16, String) {
        match self.next().await {
            Message::Close(Some(frame)) => {
                // What says goodbye as well.
                let _ = timeout(SOON, self.0.next()).await;
                (frame.code.into(), frame.reason.to_string())
            }
            other => panic!("{other:?}"),
        }
    }
}

const VERSION: &str = "{ versionInfo { version } }";

fn version() -> Value {
    json!({"data": {"versionInfo": {"version": env!("CARGO_PKG_VERSION")}}})
}

/// A log that is followed.
fn follows() -> String {
    asked(
        r#"subscription { applicationLogs(application: APP, podName: "web-1", container: "web",
            resource: {kind: "Pod", namespace: "default", name: "web-1"}, options: {follow: true}) { data { content } error done } }"#,
    )
}

#[tokio::test]
async fn both_protocols_are_answered_in_their_own_words() {
    let running = Running::start().await;
    for (protocol, begin, next) in [(TRANSPORT, "subscribe", "next"), (FORMER, "start", "data")] {
        let mut client = Client::opened(&running, protocol, Some(&running.admin)).await;
        client.say(&json!({"type": "connection_init"})).await;
        assert_eq!(client.hear().await, json!({"type": "connection_ack"}));
        client.say(&json!({"id": "a", "type": begin, "payload": {"query": VERSION}})).await;
        assert_eq!(client.hear().await, json!({"id": "a", "type": next, "payload": version()}));
        assert_eq!(client.hear().await, json!({"id": "a", "type": "complete"}));
        client.say(&json!({"id": "b", "type": begin, "payload": {"query": follows()}})).await;
        let mut lines = Vec::new();
        loop {
            let told = client.hear().await;
            if told["type"] == "complete" {
                break;
            }
            assert_eq!((&told["id"], &told["type"]), (&json!("b"), &json!(next)));
            lines.push(told["payload"]["data"]["applicationLogs"]["data"]["content"].clone());
        }
        assert_eq!(lines, [json!("first"), json!("second"), Value::Null]);
    }
    let mut client = Client::known(&running, &running.admin).await;
    client.say(&json!({"type": "ping", "payload": {"a": 1}})).await;
    assert_eq!(client.hear().await, json!({"type": "pong"}));
    client.say(&json!({"type": "connection_terminate"})).await;
    assert_eq!(client.ended().await, (1000, String::new()));
}

#[tokio::test]
async fn whoever_is_nobody_is_told_so_and_gets_nothing() {
    let running = Running::start().await;
    let mut client = Client::opened(&running, TRANSPORT, Some(&running.admin)).await;
    client.ask("a", VERSION).await;
    assert_eq!(client.ended().await, (4401, "say who you are first, in connection_init".to_owned()));

    let mut client = Client::opened(&running, TRANSPORT, None).await;
    client.say(&json!({"type": "connection_init", "payload": {}})).await;
    let said = "send an API key of the platform in the header Authorization";
    assert_eq!(client.ended().await, (4403, said.to_owned()));

    let mut client = Client::opened(&running, TRANSPORT, None).await;
    client.say(&json!({"type": "connection_init", "payload": {"authorization": "goak_none"}})).await;
    let (code, said) = client.ended().await;
    assert!(code == 4403 && !said.contains("goak"), "{code} {said}");

    // A key that only reads, and a member whom no rule lets: as over a POST, with the same words, and in the audit log.
    let sync = asked("mutation { syncApplication(application: APP) { metadata { name } } }");
    for (key, who, rows) in [(&running.reads, "ada", 2), (&running.member, "lin", 4)] {
        let over_post = running.refused(key, &sync).await;
        let mut client = Client::known(&running, key).await;
        client.ask("a", &sync).await;
        let told = client.hear().await;
        let error = &told["payload"]["errors"][0];
        assert_eq!(
            (&error["message"], &error["extensions"]["code"]),
            (&json!(over_post.0), &json!(over_post.1))
        );
        assert_eq!(client.hear().await, json!({"id": "a", "type": "complete"}));
        let recorded = running.audit(rows).await;
        let refused = |(own, act, subject): &&(String, String, String)| {
            own == who && act == "syncApplication" && subject.contains("refused")
        };
        assert_eq!(recorded.iter().filter(refused).count(), 2, "{recorded:?}");
    }
    assert!(running.argocd.take().iter().all(|(method, ..)| method != "POST"));
}

#[tokio::test]
async fn what_is_no_message_no_socket_or_too_much_is_refused() {
    let running = Running::start().await;
    let url = format!("{}/app-proxy/api/graphql", running.url);
    let plain = running.client.get(&url).header("authorization", &running.admin).send().await.unwrap();
    assert_eq!((plain.status().as_u16(), plain.headers()["allow"].to_str().unwrap()), (405, "POST"));
    let spoken = [
        ("13", "mqtt", "the protocols here are graphql-transport-ws and graphql-ws\n"),
        ("8", TRANSPORT, "this is no WebSocket of version 13\n"),
    ];
    for (version, protocol, said) in spoken {
        let asked = running.client.get(&url).header("connection", "upgrade").header("upgrade", "websocket");
        let asked = asked.header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
        let asked = asked.header("sec-websocket-version", version).header("sec-websocket-protocol", protocol);
        let answer = asked.send().await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.text().await.unwrap().as_str()), (400, said));
    }

    let mut client = Client::known(&running, &running.admin).await;
    client.say(&json!({"id": "a", "type": "subscribe", "payload": {"query": "{ secret-ghp_1"}})).await;
    let told = client.hear().await;
    assert_eq!(
        (&told["type"], &told["payload"][0]["extensions"]["code"]),
        (&json!("error"), &json!("BAD_REQUEST"))
    );
    assert!(!told.to_string().contains("ghp_"), "{told}");
    let too_deep = "the query has more than 64 brackets open at once: ask for less at a time, and put deep values into its variables";
    client.ask("a", &format!("{{ a(b: {}{}) }}", "[".repeat(1_000), "]".repeat(1_000))).await;
    let told = client.hear().await;
    assert_eq!(told["payload"], json!([{"message": too_deep, "extensions": {"code": "BAD_REQUEST"}}]));
    client.say(&json!({"type": "something", "payload": "ghp_1"})).await;
    assert_eq!(client.ended().await, (4400, "this is no message of the protocol".to_owned()));

    let mut client = Client::known(&running, &running.admin).await;
    client.say(&json!({"type": "connection_init", "payload": {"authorization": running.admin}})).await;
    assert_eq!(client.ended().await, (4429, "whoever asks said so before".to_owned()));

    // Longer than a body may be.
    let mut client = Client::known(&running, &running.admin).await;
    let sent = client.0.send(Message::text("x".repeat(70_000))).await;
    let ended = timeout(SOON, client.0.next()).await.unwrap();
    assert!(sent.is_err() || !matches!(ended, Some(Ok(Message::Text(_)))), "{ended:?}");

    // So many sockets of those who are known as streams: here two.
    let mut silent = Client::opened(&running, TRANSPORT, Some(&running.admin)).await;
    let clients =
        (Client::known(&running, &running.admin).await, Client::known(&running, &running.admin).await);
    assert_eq!(Client::open(&running, TRANSPORT, Some(&running.admin)).await.err(), Some(503));
    silent.say(&json!({"type": "connection_init"})).await;
    let full = "too many sockets are open: close one, or try again later";
    assert_eq!(silent.ended().await, (1013, full.to_owned()));
    drop(clients);
    drop(Client::known(&running, &running.admin).await);
}

#[tokio::test]
async fn those_who_do_not_say_who_they_are_keep_nobody_out_who_does() {
    let running = Running::start().await;
    let mut silent = Vec::new();
    // More than there are places, of those who are known and of those who are not yet.
    for _ in 0..64 {
        silent.push(Client::open(&running, TRANSPORT, None).await.unwrap());
    }
    let mut client = Client::open(&running, TRANSPORT, None).await.unwrap();
    client.say(&json!({"type": "connection_init", "payload": {"authorization": running.admin}})).await;
    assert_eq!(client.hear().await, json!({"type": "connection_ack"}));
    let said = "too many wait here who do not say who they are: open another one, and say it at once";
    assert_eq!(silent.remove(0).ended().await, (1013, said.to_owned()));
    // Whoever is known is not displaced by any number of those who are not.
    for _ in 0..64 {
        silent.push(Client::open(&running, TRANSPORT, None).await.unwrap());
    }
    client.ask("a", VERSION).await;
    assert_eq!(client.hear().await, json!({"id": "a", "type": "next", "payload": version()}));
}

#[tokio::test]
async fn whoever_has_said_who_they_are_is_not_displaced_while_the_platform_is_asked() {
    let (running, kept) = kept_waiting().await;
    let mut client = Client::open(&running, TRANSPORT, None).await.unwrap();
    client.say(&json!({"type": "connection_init", "payload": {"authorization": "nobody-1"}})).await;
    let asked = async {
        while kept.load(Ordering::Relaxed) == 0 {
            tokio::time::sleep(LOOK).await;
        }
    };
    timeout(SOON, asked).await.unwrap();
    let mut silent = Vec::new();
    for _ in 0..64 {
        silent.push(Client::open(&running, TRANSPORT, None).await.unwrap());
    }
    assert_eq!(silent.remove(0).ended().await.0, 1013);
    assert!(client.0.next().now_or_never().is_none(), "whoever came first has said who they are");
}

#[tokio::test]
async fn a_log_that_is_given_up_gives_its_place_to_another() {
    let running = Running::start().await;
    running.argocd.holds();
    let mut client = Client::known(&running, &running.admin).await;
    // As many as there are places.
    for id in ["a", "b"] {
        client.ask(id, &follows()).await;
        assert_eq!(client.hear().await["id"], id);
    }
    client.ask("c", &follows()).await;
    let told = client.hear().await;
    assert_eq!(told["payload"]["errors"][0]["extensions"]["code"], "BUSY", "{told}");
    assert_eq!(client.hear().await, json!({"id": "c", "type": "complete"}));
    client.ask("a", VERSION).await;
    assert_eq!(client.ended().await.0, 4409, "an id is that of one operation");

    let mut client = Client::known(&running, &running.admin).await;
    let followed = async {
        loop {
            client.ask("a", &follows()).await;
            let told = client.hear().await;
            if told["payload"]["errors"].is_null() {
                break;
            }
            // The places of a socket that has ended are free in a moment.
            assert_eq!(client.hear().await["type"], "complete");
        }
        client.say(&json!({"id": "a", "type": "complete"})).await;
        client.ask("b", &follows()).await;
        assert_eq!(client.hear().await["id"], "b");
        client.ask("c", &follows()).await;
        client.hear().await
    };
    let third = timeout(SOON, followed).await.unwrap();
    assert_eq!((&third["id"], &third["payload"]["errors"]), (&json!("c"), &Value::Null), "{third}");
    running.stop.cancel();
    let told = async { while !matches!(client.next().await, Message::Close(_)) {} };
    timeout(SOON, told).await.unwrap();
}
