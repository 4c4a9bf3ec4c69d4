//! What ends although somebody does not: visitors and services that have left HTTP.

use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::drains::upgraded;
use crate::world::{SOON, World, read_to};

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
    let short = Duration::from_secs(2);
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
