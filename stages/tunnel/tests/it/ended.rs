//! What ends although somebody does not: visitors and services that have left HTTP, and a server that is told to stop.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use pipeline_core::{Service as _, ServiceContext, Shutdown};
use stages_tunnel::{Anybody, Board, BoardError, Posted, Watching};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::drains::upgraded;
use crate::spoken::connected;
use crate::world::{BOUND, SOON, World, read_to, server_config};

#[tokio::test(flavor = "multi_thread")]
async fn a_visitor_who_has_left_http_and_ended_is_not_kept_by_a_service_that_does_not_end() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut kept = Vec::new();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let answer = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n";
            if read_to(&mut stream, "\r\n\r\n").await.contains("/upgrade") {
                stream.write_all(answer.as_bytes()).await.unwrap();
                kept.push(stream);
            }
        }
    });
    let short = Duration::from_secs(5);
    for is_server in [true, false] {
        let world = World::with(|config| {
            if is_server {
                config.times.answer = short;
            }
        })
        .await;
        let client = world.client(at, |config| {
            if !is_server {
                config.times.answer = short;
            }
        });
        client.is_ready().await;
        let mut visitor = upgraded(&world).await;
        visitor.shutdown().await.unwrap();
        timeout(SOON, read_to(&mut visitor, "")).await.expect("one side keeps it no longer than it may");
        client.stopped().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_told_to_stop_waits_for_no_client_that_has_said_nothing() {
    let world = World::start().await;
    let _family = connected(&world).await;
    world.stopped().await;

    let world = World::start().await;
    let head = "GET /~tunnel/1 HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nAuthorization: Bearer good-token\r\n\
                Tunnel-Name: account1-runtime1\r\nTunnel-Client: one\r\nTunnel-Generation: 1\r\n\r\n";
    let mut native = world.raw(head).await;
    let answer = read_to(&mut native, "\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
    world.stopped().await;
}

/// A board that takes nothing, and says when it was asked to.
#[derive(Debug, Default, Clone)]
struct Stuck(Arc<Notify>);

#[async_trait]
impl Board for Stuck {
    async fn put(&self, _: &str, _: Bytes, _: Duration) -> Result<(), BoardError> {
        self.0.notify_one();
        std::future::pending().await
    }

    async fn remove(&self, _: &str) -> Result<(), BoardError> {
        std::future::pending().await
    }

    fn watch(&self) -> Box<dyn Watching> {
        Box::new(self.clone())
    }
}

#[async_trait]
impl Watching for Stuck {
    async fn next(&mut self) -> Posted {
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_server_that_is_told_to_stop_waits_for_no_board_that_takes_nothing() {
    let mut config = server_config("127.0.0.1:0".parse().unwrap());
    config.grace = Duration::from_millis(100);
    let (board, stop) = (Stuck::default(), Shutdown::new());
    let server = config.build(Arc::new(Anybody), &prometheus::Registry::new()).await.unwrap();
    let server = server.beside("127.0.0.1:0".parse().unwrap(), None, Arc::new(board.clone())).await.unwrap();
    let serving = tokio::spawn(Box::new(server).serve(ServiceContext::alone(stop.clone())));
    timeout(BOUND, board.0.notified()).await.unwrap();
    stop.cancel();
    timeout(BOUND, serving).await.unwrap().unwrap().unwrap();
}
