//! What visitors get through a tunnel.

use std::sync::atomic::Ordering;

use reqwest::Method;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::service::Service;
use crate::world::{DOMAIN, World, eventually, read_to};

#[tokio::test(flavor = "multi_thread")]
async fn requests_and_answers_pass_whole_and_as_they_come() {
    let (world, service, client) = World::served().await;
    assert_eq!(world.answer("/some?q=1").await, (200, "GET /some 0".to_owned()));
    let body: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    let answer = world.request(Method::POST, "/echo").body(body.clone()).send().await.unwrap();
    assert!(answer.bytes().await.unwrap() == body, "three megabytes there and back");
    let answer = world.request(Method::POST, "/length").body(body).send().await.unwrap();
    assert_eq!(answer.text().await.unwrap(), "3000000");
    // The first piece is there while the second is not yet said.
    let mut answer = world.visit("/slow").send().await.unwrap();
    assert_eq!(answer.chunk().await.unwrap().unwrap(), "first ");
    service.go.notify_one();
    assert_eq!(answer.chunk().await.unwrap().unwrap(), "second");
    let mut raw = world.raw("GET /trailers HTTP/1.1\r\nTE: trailers\r\nConnection: TE, close\r\n\r\n").await;
    let text = read_to(&mut raw, "").await;
    assert!(text.contains("x-sum: 42") || text.contains("X-Sum: 42"), "{text}");
    client.stopped().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgraded_connection_carries_both_directions_until_each_has_ended() {
    let (world, _service, _client) = World::served().await;
    let mut raw = world.raw("GET /upgrade HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n").await;
    let head = read_to(&mut raw, "\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    raw.write_all(b"hello").await.unwrap();
    assert_eq!(read_to(&mut raw, "hello").await, "hello");
    // Nothing more is said, and the last word of the other side still comes.
    raw.shutdown().await.unwrap();
    assert_eq!(read_to(&mut raw, "").await, "end");
    // A visitor who has said all they have to say before the answer gets it.
    let mut raw = world.raw("GET /last HTTP/1.1\r\nConnection: close\r\n\r\n").await;
    raw.shutdown().await.unwrap();
    assert!(read_to(&mut raw, "").await.ends_with("GET /last 0"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_hears_who_visits_and_nothing_of_one_connection_alone() {
    let (world, _service, client) = World::served().await;
    let request = world.visit("/headers").header("x-forwarded-for", "203.0.113.9").header("x-own", "1");
    let request = request.header("connection", "x-own").header("proxy-authorization", "canary");
    let text = request.send().await.unwrap().text().await.unwrap();
    assert!(text.contains("x-forwarded-for: 203.0.113.9, 127.0.0.1\n"), "{text}");
    assert!(text.contains(&format!("host: account1-runtime1.{DOMAIN}\n")), "{text}");
    assert!(text.contains("x-forwarded-proto: http\n"), "{text}");
    // Nobody takes away what the proxy before this server has said of them.
    let request = world.visit("/headers").header("x-forwarded-for", "203.0.113.9");
    let hidden = request.header("connection", "x-forwarded-for").send().await.unwrap().text().await.unwrap();
    assert!(hidden.contains("x-forwarded-for: 203.0.113.9, 127.0.0.1\n"), "{hidden}");
    assert!(!text.contains("x-own") && !text.contains("canary"), "{text}");
    client.stopped().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_without_a_tunnel_are_answered_that_there_is_none() {
    let (world, _service, _client) = World::served().await;
    for host in
        ["nobody.tunnels.example.com", "account2-runtime1.tunnels.example.com", "example.com", "127.0.0.1"]
    {
        let answer = crate::world::client().get(format!("http://{}/", world.address)).header("host", host);
        let answer = answer.send().await.unwrap();
        assert_eq!(answer.status(), 404, "{host}");
        assert_eq!(answer.headers()["gitops-runtime-no-tunnel"], "true", "{host}");
        assert_eq!(answer.text().await.unwrap(), "no tunnel is open for this host\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_names_two_hosts_is_refused() {
    let (world, _service, client) = World::served().await;
    // The tunnel's own host stands beside it.
    let mut raw =
        world.raw("GET /headers HTTP/1.1\r\nHost: other.example.com\r\nConnection: close\r\n\r\n").await;
    let answer = read_to(&mut raw, "").await;
    assert!(
        answer.starts_with("HTTP/1.1 400 ") && answer.ends_with("a request names one host\n"),
        "{answer}"
    );
    client.stopped().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_for_proxies_alone_and_codings_that_nobody_would_be_told_of_go_no_further() {
    let (world, _service, client) = World::served().await;
    let (method, coding) = ("this method is not taken\n", "the transfer coding `chunked` alone is taken\n");
    for (request, status, text) in [
        (format!("CONNECT account1-runtime1.{DOMAIN}:443 HTTP/1.1"), 405, method),
        ("TRACE / HTTP/1.1".to_owned(), 405, method),
        ("POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked".to_owned(), 501, coding),
        ("POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked".to_owned(), 501, coding),
        (
            "POST /length HTTP/1.1\r\nContent-Length: 7\r\nTransfer-Encoding: chunked".to_owned(),
            200,
            "\r\n\r\n2",
        ),
    ] {
        let mut raw = world.raw(&format!("{request}\r\nConnection: close\r\n\r\n")).await;
        raw.write_all(b"2\r\nab\r\n0\r\n\r\n").await.unwrap();
        let answer = read_to(&mut raw, text).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")) && answer.contains(text), "{answer}");
    }
    client.stopped().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_takes_longer_than_an_answer_may_is_waited_for_while_it_moves() {
    // A machine that is busy may stand still for nine seconds between two bytes.
    let limit = std::time::Duration::from_secs(10);
    let world = World::with(|config| config.times.answer = limit).await;
    let client = world.client(Service::default().start().await, |_| {});
    client.is_ready().await;
    let mut raw = world.raw("POST /length HTTP/1.1\r\nConnection: close\r\nContent-Length: 20\r\n\r\n").await;
    let began = std::time::Instant::now();
    for _ in 0..20 {
        tokio::time::sleep(std::time::Duration::from_millis(600)).await;
        raw.write_all(b"x").await.unwrap();
    }
    assert!(began.elapsed() > limit);
    let answer = read_to(&mut raw, "").await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\n20"), "{answer}");
    client.stopped().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn visitors_from_elsewhere_are_refused_by_their_real_address() {
    let (world, service) = (World::start().await, Service::default());
    let client = world.client(service.start().await, |config| config.allowed = "203.0.113.0/24".to_owned());
    client.is_ready().await;
    for (seen, status) in [
        ("203.0.113.9", 200),
        ("198.51.100.1", 403),
        ("203.0.113.9, 198.51.100.1", 403),
        ("198.51.100.1, 203.0.113.9", 200),
    ] {
        let answer = world.visit("/").header("x-forwarded-for", seen).send().await.unwrap();
        assert_eq!(answer.status(), status, "{seen}");
        if status == 403 {
            assert_eq!(answer.text().await.unwrap(), "this address may not visit this host\n");
        }
    }
    assert_eq!(world.refused("address"), 2);
    client.stopped().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_who_does_not_read_stops_their_own_stream_alone() {
    let (world, service) = (World::start().await, Service::default());
    let client = world.client(service.start().await, |config| config.connections = 1);
    client.is_ready().await;
    // The head is read and nothing after it.
    let mut slow = world.raw("GET /endless HTTP/1.1\r\n\r\n").await;
    read_to(&mut slow, "\r\n\r\n").await;
    let mut before = 0;
    eventually("the service stops writing", async || {
        let now = service.taken.load(Ordering::SeqCst);
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        std::mem::replace(&mut before, now) == now && now > 0
    })
    .await;
    for _ in 0..50 {
        assert_eq!(world.answer("/quick").await.0, 200, "others are answered over the same connection");
    }
    let taken = service.taken.load(Ordering::SeqCst);
    // A window of 256 KiB, and what the system keeps for four connections on the way.
    assert!(taken < 32 << 20, "{taken} bytes were taken from the service for nobody");
    drop(slow);
    client.stopped().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_takes_nothing_of_what_is_sent_to_them_is_cut_off_and_keeps_no_place() {
    let bound = crate::world::BOUND;
    let world = World::with(|config| config.times.write = std::time::Duration::from_secs(2)).await;
    let client = world.client(Service::default().start().await, |config| config.grace = bound * 9);
    client.is_ready().await;
    let mut slow = world.raw("GET /endless HTTP/1.1\r\n\r\n").await;
    read_to(&mut slow, "\r\n\r\n").await;
    let mut upgraded =
        world.raw("GET /upgrade HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n").await;
    read_to(&mut upgraded, "\r\n\r\n").await;
    let talking = async { while upgraded.write_all(&[0; 64 << 10]).await.is_ok() {} };
    tokio::time::timeout(bound, talking).await.expect("it is told that nobody listens any more");
    // A client that is told to stop waits for what is under way.
    client.stopped().await;
    drop(slow);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_visitor_goes_on_in_another_version_of_http_of_which_nothing_would_be_looked_at() {
    let (world, _service, client) = World::served().await;
    let head =
        "GET /headers HTTP/1.1\r\nConnection: close, Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk\r\n";
    for (upgrade, is_passed) in [("h2c", false), ("websocket, h2c", false), ("echo", true)] {
        let mut raw = world.raw(&format!("{head}Upgrade: {upgrade}\r\n\r\n")).await;
        let text = read_to(&mut raw, "").await.to_ascii_lowercase();
        assert!(text.starts_with("http/1.1 200 "), "{text}");
        assert_eq!(text.contains(&format!("upgrade: {upgrade}\n")), is_passed, "{text}");
        assert!(!text.contains("http2-settings"), "{text}");
    }
    client.stopped().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_visitor_says_of_who_asks_is_not_passed_on() {
    let world = World::with(|config| config.trusted = stages_tunnel::Networks::default()).await;
    let client = world.client(Service::default().start().await, |_| {});
    client.is_ready().await;
    let mut request = world.visit("/headers");
    for name in [
        "forwarded",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-proto",
        "x-forwarded-prefix",
        "x-real-ip",
        "true-client-ip",
        "x_forwarded_for",
    ] {
        request = request.header(name, "canary");
    }
    let text = request.send().await.unwrap().text().await.unwrap();
    assert!(!text.contains("canary") && text.contains("x-forwarded-for: 127.0.0.1\n"), "{text}");
    client.stopped().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_asks_nothing_keeps_nobody_out() {
    let bound = crate::world::BOUND;
    // Who says nothing may do so for longer than anybody waits here.
    let world = World::with(|config| (config.connections, config.times.handshake) = (4, bound * 9)).await;
    let client = world.client(Service::default().start().await, |config| config.connections = 1);
    client.is_ready().await;
    // Some say nothing, some do not end what they say, and one waits for the rest of an answer.
    let mut service = world.raw("GET /endless HTTP/1.1\r\n\r\n").await;
    let head = read_to(&mut service, "\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    let mut idle = Vec::new();
    for number in 0..20 {
        let mut stream = tokio::net::TcpStream::connect(world.address).await.unwrap();
        if number % 2 > 0 {
            stream.write_all(b"GET / HTTP/1.1\r\nHost: ").await.unwrap();
        }
        idle.push(stream);
    }
    let answer = tokio::time::timeout(bound, world.answer("/")).await;
    assert_eq!(answer.expect("somebody makes room").0, 200);
    // More than may be on its way already.
    let (mut left, mut bytes) = (32 << 20, vec![0; 64 << 10]);
    while left > 0 {
        let read = tokio::time::timeout(bound, service.read(&mut bytes)).await.unwrap().unwrap();
        assert!(read > 0, "who is answered stays");
        left -= read.min(left);
    }
    drop((service, idle));
    client.stopped().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn so_many_requests_as_nobody_answers_keep_nobody_else_out_while_more_are_allowed() {
    // More than the multiplexer opens before any of them is acknowledged.
    const HELD: u64 = 270;
    let (world, service) = (World::with(|config| config.streams = 300).await, Service::default());
    let client = world.client(service.start().await, |config| config.connections = 1);
    client.is_ready().await;
    let mut held = Vec::new();
    for _ in 0..HELD {
        held.push(world.raw("GET /held HTTP/1.1\r\nConnection: close\r\n\r\n").await);
    }
    let all = async || service.begun.load(Ordering::SeqCst) >= HELD;
    eventually("all of them reach the service", all).await;
    assert_eq!(world.answer("/").await.0, 200);
    service.go.notify_waiters();
    for mut visitor in held {
        let answer = read_to(&mut visitor, "").await;
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("held"), "{answer}");
    }
    client.stopped().await;
}
