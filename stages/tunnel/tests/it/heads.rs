//! Heads of requests: how long they may be, and how long they may take.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::drains::upgraded;
use crate::service::Service;
use crate::world::{SOON, World, read_to};

/// Waits until the server ends a connection, and says a little every now and then.
async fn is_ended(stream: &mut TcpStream, says: bool) {
    let ending = async {
        let mut byte = [0];
        loop {
            tokio::select! {
                read = stream.read(&mut byte) => break assert!(read.is_err() || read.unwrap() == 0),
                () = tokio::time::sleep(Duration::from_millis(100)), if says => {}
            }
            if stream.write_all(b"x").await.is_err() {
                break;
            }
        }
    };
    timeout(SOON, ending).await.expect("it is cut off");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_does_not_end_is_cut_off_and_whoever_is_idle_or_has_asked_goes_on() {
    let short = Duration::from_secs(5);
    let (world, service) = (World::with(|config| config.times.handshake = short).await, Service::default());
    let client = world.client(service.start().await, |_| {});
    client.is_ready().await;
    let mut idle = world.raw("GET /one HTTP/1.1\r\n\r\n").await;
    read_to(&mut idle, "GET /one 0").await;
    let mut away = upgraded(&world).await;
    away.write_all(b"one").await.unwrap();
    read_to(&mut away, "one").await;
    let mut asking = world.raw("POST /length HTTP/1.1\r\nContent-Length: 4\r\n\r\n").await;
    asking.write_all(b"ab").await.unwrap();
    let mut asked = world.raw("GET /slow HTTP/1.1\r\n\r\n").await;
    read_to(&mut asked, "first ").await;
    for says in [false, true] {
        let mut half = TcpStream::connect(world.address).await.unwrap();
        half.write_all(b"GET / HTTP/1.1\r\nHost: a").await.unwrap();
        is_ended(&mut half, says).await;
    }
    // The next request of a connection that was idle is under the same limit.
    let mut second = world.raw("GET /one HTTP/1.1\r\n\r\n").await;
    read_to(&mut second, "GET /one 0").await;
    second.write_all(b"GET /two HT").await.unwrap();
    is_ended(&mut second, false).await;
    // All of these began before.
    asking.write_all(b"cd").await.unwrap();
    assert!(read_to(&mut asking, "\r\n\r\n4").await.starts_with("HTTP/1.1 200 "));
    service.go.notify_one();
    assert!(read_to(&mut asked, "second").await.contains("second"));
    away.write_all(b"two").await.unwrap();
    assert_eq!(read_to(&mut away, "two").await, "two");
    let again = format!("GET /two HTTP/1.1\r\nHost: account1-runtime1.{}\r\n\r\n", crate::world::DOMAIN);
    idle.write_all(again.as_bytes()).await.unwrap();
    assert!(read_to(&mut idle, "GET /two 0").await.starts_with("HTTP/1.1 200 "));
    client.stop.cancel();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_is_too_long_is_refused() {
    let world = World::start().await;
    for (length, status) in [(15 << 10, "404"), (40 << 10, "431")] {
        let mut raw = world.raw(&format!("GET / HTTP/1.1\r\nX-Long: {}\r\n\r\n", "x".repeat(length))).await;
        let mut answer = vec![0; 12];
        timeout(SOON, raw.read_exact(&mut answer)).await.unwrap().unwrap();
        assert_eq!(String::from_utf8(answer).unwrap(), format!("HTTP/1.1 {status}"));
    }
}
