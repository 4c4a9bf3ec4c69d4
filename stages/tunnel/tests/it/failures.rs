//! Connections that break, and networks that carry nothing any more without saying so.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use stages_tunnel::{CredentialsFile, Packing, Protocol};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::service::Service;
use crate::world::{World, eventually, read_to, run, server_config};

/// What a network between client and server does.
#[derive(Clone, Copy, Default)]
struct Network {
    /// It carries nothing, and does not say so.
    is_silent: bool,
    /// How often all connections were cut.
    cuts: u64,
}

/// A network between a client and `to`.
async fn network(to: SocketAddr) -> (SocketAddr, watch::Sender<Network>) {
    let tell = watch::Sender::new(Network::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let network = tell.clone();
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            tokio::spawn(carry(near, to, network.subscribe()));
        }
    });
    (address, tell)
}

async fn carry(mut near: TcpStream, to: SocketAddr, mut state: watch::Receiver<Network>) {
    let before = state.borrow().cuts;
    let Ok(mut far) = TcpStream::connect(to).await else { return };
    let mut other = state.clone();
    let silent = async { other.wait_for(|now| now.is_silent).await.map(drop) };
    tokio::select! {
        _ = tokio::io::copy_bidirectional(&mut near, &mut far) => return,
        cut = async { state.wait_for(|now| now.cuts > before).await.map(drop) } => return cut.unwrap(),
        silent = silent => silent.unwrap(),
    }
    // Both connections stay open, and nobody reads them.
    state.wait_for(|now| now.cuts > before).await.map(drop).unwrap();
}

fn cut(state: &watch::Sender<Network>) {
    state.send_modify(|now| *now = Network { is_silent: false, cuts: now.cuts + 1 });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_that_carries_nothing_is_noticed_by_both_sides() {
    is_noticed_by_both_sides(Protocol::Native, Duration::from_secs(3)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_that_carries_nothing_is_noticed_as_early_by_the_family() {
    // Its multiplexer pings ten seconds after the last answer. The family's own silence is ninety seconds.
    let silence = Duration::from_secs(14);
    is_noticed_by_both_sides(Protocol::Frp(Packing::default()), silence).await;
}

async fn is_noticed_by_both_sides(protocol: Protocol, silence: Duration) {
    let short = |times: &mut stages_tunnel::Times| {
        (times.ping, times.silence) = (Duration::from_millis(300), silence);
    };
    let (world, service) = (World::with(|config| short(&mut config.times)).await, Service::default());
    let (through, state) = network(world.address).await;
    let mut config = world.client_config(service.start().await);
    let url = format!("http://{through}").parse().unwrap();
    config.dial = stages_tunnel::Dial::new(&url, None, Duration::from_secs(30)).unwrap();
    config.protocol = protocol;
    short(&mut config.times);
    let client = run(config.build(&prometheus::Registry::new()).unwrap());
    client.is_ready().await;
    assert_eq!(world.answer("/").await.0, 200);
    state.send_modify(|now| now.is_silent = true);
    let silent = Instant::now();
    let tunnels = || {
        let text = prometheus::TextEncoder::new().encode_to_string(&world.metrics.gather()).unwrap();
        text.contains("tunnel_server_tunnels 1")
    };
    eventually("the server notices", async || !tunnels()).await;
    eventually("the client notices", async || !client.ready.is_ready()).await;
    assert!(silent.elapsed() < Duration::from_secs(80), "{:?}", silent.elapsed());
    cut(&state);
    client.is_ready().await;
    eventually("visitors are led through again", async || world.answer("/").await.0 == 200).await;
    client.stopped().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_visitor_who_comes_while_the_client_connects_again_is_answered() {
    let (world, service) = (World::start().await, Service::default());
    let (through, state) = network(world.address).await;
    let mut config = world.client_config(service.start().await);
    let url = format!("http://{through}").parse().unwrap();
    config.dial = stages_tunnel::Dial::new(&url, None, Duration::from_secs(30)).unwrap();
    let client = run(config.build(&prometheus::Registry::new()).unwrap());
    client.is_ready().await;
    for _ in 0..3 {
        cut(&state);
        assert_eq!(world.answer("/").await.0, 200);
    }
    client.stopped().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_visitor_who_comes_to_a_new_server_before_the_client_is_answered() {
    let service = Service::default();
    let world = World::with(|config| {
        config.times.young = Duration::from_secs(120);
        config.times.expected = Duration::from_secs(120);
    });
    let world = world.await;
    let mut visitor = world.raw("GET /early HTTP/1.1\r\nConnection: close\r\n\r\n").await;
    let client = world.client(service.start().await, |_| {});
    let answer = read_to(&mut visitor, "").await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("GET /early 0"), "{answer}");
    client.stopped().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_closes_its_connections_is_asked_over_another() {
    let (world, service, client) = World::served().await;
    service.closing.store(true, Ordering::SeqCst);
    for _ in 0..20 {
        assert_eq!(world.answer("/closing").await, (200, "closing".to_owned()));
        assert_eq!(world.answer("/").await.0, 200);
    }
    client.stopped().await;
}

#[tokio::test]
async fn a_server_whose_port_is_taken_says_what_to_do() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    std::fs::write(&tokens, "account1-runtime1 good-token\n").unwrap();
    let credentials = Arc::new(CredentialsFile::open(&tokens).await.unwrap());
    let refused = server_config(address).build(credentials, &prometheus::Registry::new()).await;
    let expected = format!(
        "cannot listen on {address}; stop the process that listens there, or change tunnelServer.listen (--listen)"
    );
    assert_eq!(refused.err().unwrap().to_string(), expected);
}
