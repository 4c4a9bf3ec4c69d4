//! A client that reaches its server by way of a proxy alone.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use stages_tunnel::Dial;
use tokio::io::{AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use crate::ears::Warnings;
use crate::service::Service;
use crate::world::{BOUND, World, eventually, read_to, run};

/// What a proxy was asked.
type Heads = Arc<Mutex<Vec<String>>>;

/// A proxy that answers so; where that is 200 it leads to `server`, whoever was asked for.
async fn proxy(server: SocketAddr, answer: &'static str) -> (SocketAddr, Heads) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, heads) = (listener.local_addr().unwrap(), Heads::default());
    let asked = heads.clone();
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let asked = asked.clone();
            tokio::spawn(async move {
                let head = read_to(&mut near, "\r\n\r\n").await;
                asked.lock().unwrap().push(head);
                near.write_all(format!("HTTP/1.1 {answer}\r\n\r\n").as_bytes()).await.unwrap();
                if answer.starts_with("200") {
                    let mut far = TcpStream::connect(server).await.unwrap();
                    // Either side may end it.
                    let _ = copy_bidirectional(&mut near, &mut far).await;
                }
            });
        }
    });
    (address, heads)
}

/// To a server that no name leads to, by this proxy.
fn through(proxy: SocketAddr) -> Dial {
    let url = "http://tunnels.invalid:8080".parse().unwrap();
    let variable = |name: &str| (name == "HTTP_PROXY").then(|| format!("http://user:canary@{proxy}"));
    Dial::new(&url, None, BOUND).unwrap().through(variable).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_comes_through_the_proxy_that_its_environment_names() {
    let (world, service) = (World::start().await, Service::default());
    let (proxy, heads) = proxy(world.address, "200 Connection established").await;
    let mut config = world.client_config(service.start().await);
    config.dial = through(proxy);
    let client = run(config.build(&prometheus::Registry::new()).unwrap());
    client.is_ready().await;
    assert_eq!(world.answer("/").await.0, 200);
    let head = heads.lock().unwrap()[0].clone();
    assert!(head.starts_with("CONNECT tunnels.invalid:8080 HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("\r\nProxy-Authorization: Basic dXNlcjpjYW5hcnk=\r\n"), "{head}");
    client.stopped().await;
}

#[tokio::test]
async fn a_proxy_that_refuses_is_named_without_its_password() {
    let warnings = Warnings::default();
    let _listening = warnings.listen();
    let (world, service) = (World::start().await, Service::default());
    let (proxy, _) = proxy(world.address, "407 Proxy Authentication Required").await;
    let mut config = world.client_config(service.start().await);
    config.dial = through(proxy);
    let client = run(config.build(&prometheus::Registry::new()).unwrap());
    let refused = format!("connect to tunnels.invalid:8080 through the proxy {proxy}");
    let said = || warnings.said().into_iter().find(|line| line.contains(&refused));
    eventually("it is said", async || said().is_some()).await;
    assert!(said().unwrap().contains("ask the proxy: tunnel error: proxy authorization required"));
    assert!(warnings.said().iter().all(|line| !line.contains("canary")));
    client.stopped().await;
}
