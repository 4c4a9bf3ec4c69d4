//! Clients and servers that come and go as they should: no request fails.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use pipeline_core::{Service as _, ServiceContext, Shutdown};
use stages_tunnel::{Anybody, Board, BoardError, Posted, Watching};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::service::Service;
use crate::world::{BOUND, World, eventually, read_to, server_config};

/// Visits all the time until told to stop; gives how often, and what was answered but 200.
async fn visit_always(world: Arc<World>, stop: Arc<AtomicBool>, count: Arc<AtomicU64>) -> Vec<String> {
    let mut failed = Vec::new();
    while !stop.load(Ordering::SeqCst) {
        match world.visit("/always").send().await {
            Ok(answer) => {
                let status = answer.status();
                match answer.text().await {
                    Ok(_) if status == 200 => {
                        count.fetch_add(1, Ordering::SeqCst);
                    }
                    text => failed.push(format!("{status} {text:?}")),
                }
            }
            Err(error) => failed.push(error.to_string()),
        }
    }
    failed
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_client_takes_over_and_no_request_fails() {
    let (world, service) = (Arc::new(World::start().await), Service::default());
    let at = service.start().await;
    let mut client = world.client(at, |_| {});
    client.is_ready().await;
    let (stop, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let visiting: Vec<_> =
        (0..4).map(|_| tokio::spawn(visit_always(world.clone(), stop.clone(), count.clone()))).collect();
    for generation in 2..5 {
        // One that takes long is under way meanwhile, and ends after all.
        let mut slow = world.visit("/slow").send().await.unwrap();
        assert_eq!(slow.chunk().await.unwrap().unwrap(), "first ");
        let newer = world.client(at, |config| config.generation = generation);
        newer.is_ready().await;
        let before = count.load(Ordering::SeqCst);
        eventually("visits go on", async || count.load(Ordering::SeqCst) > before + 20).await;
        service.go.notify_one();
        assert_eq!(slow.chunk().await.unwrap().unwrap(), "second");
        let older = std::mem::replace(&mut client, newer);
        assert_eq!(older.error().await, "a newer client with the same id has taken this tunnel over");
    }
    stop.store(true, Ordering::SeqCst);
    for visitor in visiting {
        assert_eq!(visitor.await.unwrap(), Vec::<String>::new());
    }
    client.stopped().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_in_standby_waits_beside_the_newer_one() {
    let (world, service) = (World::start().await, Service::default());
    let at = service.start().await;
    let older = world.client(at, |config| config.standby = true);
    older.is_ready().await;
    let newer = world.client(at, |config| config.generation = 2);
    newer.is_ready().await;
    eventually("the older one is not ready", async || !older.ready.is_ready()).await;
    eventually("it stands by", async || older.ready.stands_by()).await;
    assert_eq!(world.answer("/").await.0, 200);
    assert!(!older.ended.is_finished());
    newer.stopped().await;
    older.is_ready().await;
    assert_eq!(world.answer("/").await.0, 200);
    older.stopped().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_whose_clock_is_behind_the_former_ones_stands_by_until_its_server_is_away() {
    let (world, service) = (World::start().await, Service::default());
    let at = service.start().await;
    let former = world.client(at, |config| config.generation = 2);
    former.is_ready().await;
    let next = world.client(at, |config| config.standby = true);
    eventually("it stands by", async || next.ready.stands_by()).await;
    assert!(!next.ready.is_ready());
    // What it was told so far says nothing of who has the tunnel then.
    world.stop();
    eventually("it stands by no more", async || !next.ready.stands_by()).await;
    assert!(!next.ready.is_ready());
    former.stopped().await;
    next.stopped().await;
}

/// Asks for the tunnel as an older life of a client, which waits as the header says, and gives the connection.
async fn asks_as_older(world: &World, header: &str) -> tokio::net::TcpStream {
    let headers = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nAuthorization: Bearer good-token\r\n\
        Tunnel-Name: account1-runtime1\r\nTunnel-Client: one\r\nTunnel-Generation: 1\r\n";
    world.raw(&format!("GET /~tunnel/1 HTTP/1.1\r\n{headers}{header}\r\n\r\n")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_beside_a_newer_client_is_served_once_that_is_gone_and_others_are_told_at_once() {
    const GONE: &str = "a newer client with the same id has taken this tunnel over\n";
    // Nobody waits longer than this.
    let world = World::with(|config| config.times.handshake = crate::world::BOUND).await;
    let service = Service::default();
    let newer = world.client(service.start().await, |config| config.generation = 2);
    newer.is_ready().await;
    let mut told = asks_as_older(&world, "Accept: */*").await;
    let answer = read_to(&mut told, GONE).await;
    assert!(answer.starts_with("HTTP/1.1 410 Gone\r\n") && answer.ends_with(GONE), "{answer}");
    assert_eq!(world.refused("superseded"), 1);
    // One whose time is up is told the same, which refuses it nothing that it did not know.
    let mut waited = asks_as_older(&world, "Tunnel-Wait: 20").await;
    let answer = read_to(&mut waited, GONE).await;
    assert!(answer.starts_with("HTTP/1.1 410 Gone\r\n") && answer.ends_with(GONE), "{answer}");
    assert_eq!(world.refused("superseded"), 1);
    let mut waits = asks_as_older(&world, "Tunnel-Wait: 120000").await;
    assert_eq!(world.answer("/").await.0, 200);
    newer.stopped().await;
    let answer = read_to(&mut waits, "\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_client_whose_service_is_away_takes_nothing_over() {
    let (world, _service, client) = World::served().await;
    // Bound, so that nobody else is given the port, and not listening.
    let taken = tokio::net::TcpSocket::new_v4().unwrap();
    taken.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let nowhere = taken.local_addr().unwrap();
    let newer = world.client(nowhere, |config| config.generation = 2);
    for _ in 0..20 {
        assert_eq!(world.answer("/").await.0, 200);
    }
    assert!(!newer.ready.is_ready());
    // When there is nobody else it is led through, and visitors are told what is away.
    client.stopped().await;
    eventually("the newer one is served", async || world.answer("/").await.0 == 502).await;
    assert_eq!(world.answer("/").await.1, "the service behind the tunnel did not answer\n");
    assert!(!newer.ready.is_ready(), "what visitors cannot reach is not ready");
    newer.stopped().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_told_to_stop_ends_when_what_is_under_way_has_ended() {
    let (world, service) = (
        World::with(|config| config.times.expected = std::time::Duration::from_millis(50)).await,
        Service::default(),
    );
    let client = world.client(service.start().await, |_| {});
    client.is_ready().await;
    let mut slow = world.visit("/slow").send().await.unwrap();
    assert_eq!(slow.chunk().await.unwrap().unwrap(), "first ");
    client.stop.cancel();
    eventually("nothing new is led through", async || world.visit("/").send().await.unwrap().status() == 503)
        .await;
    assert!(!client.ended.is_finished());
    service.go.notify_one();
    assert_eq!(slow.chunk().await.unwrap().unwrap(), "second");
    client.stopped().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_told_to_stop_lets_requests_finish_and_clients_find_the_next() {
    let (world, service, client) = World::served().await;
    let mut slow = world.visit("/slow").send().await.unwrap();
    assert_eq!(slow.chunk().await.unwrap().unwrap(), "first ");
    world.stop();
    eventually("no connection is taken", async || world.visit("/").send().await.is_err()).await;
    service.go.notify_one();
    assert_eq!(slow.chunk().await.unwrap().unwrap(), "second");
    assert!(slow.chunk().await.unwrap().is_none());
    let world = world.restarted().await;
    eventually("the next server leads through", async || world.answer("/").await.0 == 200).await;
    client.stopped().await;
}

/// A visitor who has left HTTP: what is written to it comes back.
pub(crate) async fn upgraded(world: &World) -> tokio::net::TcpStream {
    let mut raw = world.raw("GET /upgrade HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n").await;
    let head = read_to(&mut raw, "\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{head}");
    raw
}

#[tokio::test(flavor = "multi_thread")]
async fn a_visitor_who_has_left_http_goes_on_while_a_server_that_is_told_to_stop_has_grace() {
    let (world, _service, client) = World::served().await;
    let mut visitor = upgraded(&world).await;
    world.stop();
    eventually("no connection is taken", async || world.visit("/").send().await.is_err()).await;
    visitor.write_all(b"still there").await.unwrap();
    assert!(read_to(&mut visitor, "still there").await.ends_with("still there"));
    // It is waited for no longer than it is there.
    drop(visitor);
    world.stopped().await;
    client.stopped().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_visitor_who_has_left_http_is_cut_off_when_the_grace_of_a_server_is_over() {
    let world = World::with(|config| config.grace = std::time::Duration::from_millis(50)).await;
    let service = Service::default();
    let client = world.client(service.start().await, |_| {});
    client.is_ready().await;
    let mut visitor = upgraded(&world).await;
    world.stopped().await;
    read_to(&mut visitor, "").await;
    client.stopped().await;
}

/// A board that nobody else looks at, with what stands there.
#[derive(Debug, Default, Clone)]
struct Watched(Arc<Mutex<Vec<(String, serde_json::Value)>>>);

#[async_trait]
impl Board for Watched {
    async fn put(&self, key: &str, value: Bytes, _: Duration) -> Result<(), BoardError> {
        self.remove(key).await?;
        self.0.lock().unwrap().push((key.to_owned(), serde_json::from_slice(&value)?));
        Ok(())
    }

    async fn remove(&self, key: &str) -> Result<(), BoardError> {
        self.0.lock().unwrap().retain(|(kept, _)| kept != key);
        Ok(())
    }

    fn watch(&self) -> Box<dyn Watching> {
        Box::new(self.clone())
    }
}

#[async_trait]
impl Watching for Watched {
    async fn next(&mut self) -> Posted {
        std::future::pending().await
    }
}

#[tokio::test]
async fn other_servers_are_told_that_one_ends_while_it_still_takes_visitors() {
    let mut config = server_config("127.0.0.1:0".parse().unwrap());
    config.drain_delay = BOUND * 9;
    let (board, stop) = (Watched::default(), Shutdown::new());
    let server = config.build(Arc::new(Anybody), &prometheus::Registry::new()).await.unwrap();
    let at = server.address();
    let server = server.beside("127.0.0.1:0".parse().unwrap(), None, Arc::new(board.clone())).await.unwrap();
    let serving = tokio::spawn(Box::new(server).serve(ServiceContext::alone(stop.clone())));
    let says = |leaving: bool| {
        let board = board.0.lock().unwrap();
        board.iter().any(|(key, card)| key.starts_with("server.") && card["leaving"] == leaving)
    };
    eventually("it says that it is there", async || says(false)).await;
    stop.cancel();
    eventually("it says that it ends", async || says(true)).await;
    let mut visitor = TcpStream::connect(at).await.unwrap();
    visitor.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.unwrap();
    assert!(read_to(&mut visitor, "").await.starts_with("HTTP/1.1 404 Not Found\r\n"));
    serving.abort();
}
