//! What the router says of the way to it.

use futures::{SinkExt as _, StreamExt as _};
use http::Request;
use http_body_util::BodyExt as _;
use stages_router::RouterConfig;
use tokio_tungstenite::tungstenite::Message;

use crate::support::{Running, Upstream, config, empty, proxied, within};

#[tokio::test]
async fn a_hop_says_which_service_can_be_connected_to() {
    let proxy = Upstream::recording().await;
    // It is held, and nobody listens there.
    let gone = tokio::net::TcpSocket::new_v4().unwrap();
    gone.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}", gone.local_addr().unwrap());
    let settings =
        RouterConfig { app_proxy: Some(proxied(&proxy.url())), workflows: Some(proxied(&url)), ..config() };
    let running = Running::start(settings).await;
    let said = r#"{"router":"gitops-runtime","appProxy":"connects","workflows":"unreachable"}"#;
    assert_eq!(running.get("/webhooks/_access/hop").await, (200, format!("{said}\n")));
    assert!(proxy.lines().is_empty(), "a service is connected to and asked nothing");
    running.counts(r#"gitops_runtime_router_requests_total{route="webhooks",status="2xx"} 0"#).await;
    running.end().await;

    let running =
        Running::start(RouterConfig { app_proxy: Some(proxied("http://gone.example:1")), ..config() }).await;
    let said = r#"{"router":"gitops-runtime","appProxy":"unresolved","workflows":"not served"}"#;
    assert_eq!(running.get("/webhooks/_access/hop").await, (200, format!("{said}\n")));
    running.end().await;
}

#[tokio::test]
async fn the_first_event_comes_at_once_and_the_last_one_five_seconds_later() {
    let running = Running::start(config()).await;
    let asked = tokio::time::Instant::now();
    let request = Request::get("/webhooks/_access/events").header("host", "a").body(empty()).unwrap();
    let mut answer = running.send(request).await;
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    for event in ["data: first\n\n", "data: last\n\n"] {
        assert_eq!(within(answer.frame()).await.unwrap().unwrap().into_data().unwrap(), event.as_bytes());
    }
    assert!(within(answer.frame()).await.is_none());
    assert!(asked.elapsed() >= std::time::Duration::from_secs(5));
    running.end().await;
}

#[tokio::test]
async fn a_web_socket_says_back_what_it_is_told_and_takes_no_more() {
    let running = Running::start(config()).await;
    let connecting =
        tokio_tungstenite::client_async("ws://router/webhooks/_access/socket", running.connect().await);
    let (mut socket, _) = within(connecting).await.unwrap();
    socket.send(Message::text("hello")).await.unwrap();
    assert_eq!(within(socket.next()).await.unwrap().unwrap(), Message::text("hello"));
    assert!(within(socket.next()).await.unwrap().unwrap().is_close());

    let connecting =
        tokio_tungstenite::client_async("ws://router/webhooks/_access/socket", running.connect().await);
    let (mut socket, _) = within(connecting).await.unwrap();
    socket.send(Message::binary(vec![0; 2_000])).await.unwrap();
    assert!(within(socket.next()).await.is_none_or(|message| message.is_err()));

    let plain = running.get("/webhooks/_access/socket").await;
    assert_eq!(plain, (400, "an upgrade is to be a GET without a body\n".to_owned()));
    running.end().await;
}

#[tokio::test]
async fn sixteen_ask_at_a_time() {
    let running = Running::start(config()).await;
    let mut streams = Vec::new();
    for _ in 0..16 {
        let connecting =
            tokio_tungstenite::client_async("ws://router/webhooks/_access/socket", running.connect().await);
        streams.push(within(connecting).await.unwrap());
    }
    let more = running.get("/webhooks/_access/hop").await;
    assert_eq!(more, (503, "as many requests are under way as this route takes; try again\n".to_owned()));
    drop(streams);
    crate::support::eventually("a place", async || running.get("/webhooks/_access/hop").await.0 == 200).await;
    running.end().await;
}
