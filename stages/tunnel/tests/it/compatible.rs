//! The client that speaks the protocol of the frp family, with this server, which understands recorded ones.

use stages_tunnel::{Packing, Protocol};
use tokio::io::AsyncWriteExt as _;

use crate::service::Service;
use crate::world::{World, eventually, read_to};

const FRP: Protocol = Protocol::Frp(Packing { encryption: false, compression: false });

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_the_family_leads_visitors_and_ends_what_is_under_way() {
    leads_visitors_and_ends_what_is_under_way(FRP).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn so_does_one_that_encrypts_and_compresses_what_visitors_say() {
    for (encryption, compression) in [(true, false), (false, true), (true, true)] {
        leads_visitors_and_ends_what_is_under_way(Protocol::Frp(Packing { encryption, compression })).await;
    }
}

async fn leads_visitors_and_ends_what_is_under_way(frp: Protocol) {
    let (world, service) = (World::start().await, Service::default());
    let client = world.client(service.start().await, |config| config.protocol = frp);
    client.is_ready().await;
    assert_eq!(world.answer("/hello").await, (200, "GET /hello 0".to_owned()));
    let body = vec![b'x'; 5 << 20];
    let echo = world.request(reqwest::Method::POST, "/echo").body(body.clone()).send().await.unwrap();
    assert_eq!(echo.bytes().await.unwrap(), body);
    // More at a time than work connections wait.
    let visits: Vec<_> = (0..20).map(|_| tokio::spawn(world.visit("/many").send())).collect();
    for visit in visits {
        assert_eq!(visit.await.unwrap().unwrap().status(), 200);
    }
    let mut raw = world.raw("GET /upgrade HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n").await;
    assert!(read_to(&mut raw, "\r\n\r\n").await.starts_with("HTTP/1.1 101 "));
    raw.write_all(b"hello").await.unwrap();
    assert_eq!(read_to(&mut raw, "hello").await, "hello");
    raw.shutdown().await.unwrap();
    assert_eq!(read_to(&mut raw, "").await, "end", "the other side's last word still comes");
    let mut slow = world.visit("/slow").send().await.unwrap();
    assert_eq!(slow.chunk().await.unwrap().unwrap(), "first ");
    client.stop.cancel();
    eventually("nothing new is led through", async || {
        world.visit("/").timeout(std::time::Duration::from_millis(200)).send().await.is_err()
    })
    .await;
    assert!(!client.ended.is_finished());
    service.go.notify_one();
    assert_eq!(slow.chunk().await.unwrap().unwrap(), "second");
    drop(slow);
    client.stopped().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_the_family_that_is_refused_has_no_tunnel_and_takes_none() {
    let (world, service) = (World::start().await, Service::default());
    let at = service.start().await;
    let first = world.client(at, |_| {});
    first.is_ready().await;
    let second = world.client(at, |config| config.protocol = FRP);
    eventually("the tunnel is taken", async || world.refused("taken") > 0).await;
    let wrong = world.client(at, |config| {
        config.protocol = FRP;
        config.token = stages_client::Token::literal("other-token");
    });
    eventually("the token is refused", async || world.refused("credential") > 0).await;
    assert!(!second.ready.is_ready() && !wrong.ready.is_ready() && first.ready.is_ready());
    assert_eq!(world.answer("/").await.0, 200);
    wrong.stopped().await;
    // Whoever waits has it when it is free.
    first.stopped().await;
    second.is_ready().await;
    assert_eq!(world.answer("/").await.0, 200);
    second.stopped().await;
}
