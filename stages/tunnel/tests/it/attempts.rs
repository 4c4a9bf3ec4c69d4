//! Attempts on a host name: each is refused, counted, and told why.

use stages_client::Token;
use stages_tunnel::Name;

use crate::drains::upgraded;
use crate::service::Service;
use crate::world::{SOON, World, eventually, read_to};

#[tokio::test(flavor = "multi_thread")]
async fn a_token_opens_no_tunnel_but_its_own() {
    let (world, service) = (World::start().await, Service::default());
    let at = service.start().await;
    for token in ["other-token", "wrong"] {
        let client = world.client(at, |config| config.token = Token::literal(token));
        let error = client.error().await;
        let refused = format!(
            "{} refused the tunnel with 401 Unauthorized: this token does not open account1-runtime1",
            world.address
        );
        assert_eq!(error, refused);
    }
    // Each of the two connections is refused, or was not tried any more.
    assert!((2..=4).contains(&world.refused("credential")));
    assert_eq!(world.answer("/").await.0, 404);
    let client = world.client(at, |config| config.name = Name::read("account2-runtime1").unwrap());
    assert!(client.error().await.ends_with("this token does not open account2-runtime1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_client_is_refused_and_the_first_goes_on() {
    let (world, service) = (World::start().await, Service::default());
    let at = service.start().await;
    let first = world.client(at, |_| {});
    first.is_ready().await;
    let second = world.client(at, |config| {
        config.id = "two".to_owned();
        config.generation = 99;
    });
    eventually("the second is refused", async || world.refused("taken") > 0).await;
    assert!(!second.ready.is_ready());
    assert_eq!(world.answer("/").await.0, 200);
    // Once the first has gone the second, which goes on trying, has the tunnel.
    first.stopped().await;
    second.is_ready().await;
    second.stopped().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_token_closes_the_tunnel_that_it_opened() {
    let (world, _service, client) = World::served().await;
    std::fs::write(world.tokens(), "account2-runtime1 other-token\n").unwrap();
    eventually("the tunnel is closed", async || world.refused("revoked") > 0 && !client.ready.is_ready())
        .await;
    eventually("visitors find no tunnel", async || world.answer("/").await.0 != 200).await;
    // It is given another token, and served again.
    std::fs::write(world.tokens(), "account1-runtime1 good-token\n").unwrap();
    client.is_ready().await;
    client.stopped().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_was_led_through_a_tunnel_is_told_when_the_server_closes_it() {
    let (world, _service, client) = World::served().await;
    let mut slow = world.visit("/slow").send().await.unwrap();
    assert_eq!(slow.chunk().await.unwrap().unwrap(), "first ");
    let mut upgraded = upgraded(&world).await;
    std::fs::write(world.tokens(), "account2-runtime1 other-token\n").unwrap();
    let cut = tokio::time::timeout(SOON, slow.chunk()).await.expect("the visitor is told");
    assert!(cut.is_err(), "an answer that was cut is not taken for a whole one: {cut:?}");
    tokio::time::timeout(SOON, read_to(&mut upgraded, "")).await.expect("the connection ends");
    client.stop.cancel();
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_that_nobody_can_check_open_nothing_and_keep_nothing_open_for_long() {
    let seconds = std::time::Duration::from_secs;
    let world =
        World::with(|config| (config.times.unchecked, config.times.check) = (seconds(1), seconds(3_600)));
    let world = world.await;
    let service = Service::default();
    let client = world.client(service.start().await, |_| {});
    client.is_ready().await;
    let kept = std::fs::read(world.tokens()).unwrap();
    std::fs::remove_file(world.tokens()).unwrap();
    eventually("the tunnel is closed", async || world.refused("revoked") > 0 && !client.ready.is_ready())
        .await;
    eventually("nothing is opened", async || world.refused("credential") > 0).await;
    std::fs::write(world.tokens(), kept).unwrap();
    client.is_ready().await;
    client.stopped().await;
}

/// What an upgrade by hand is answered.
async fn upgrade(world: &World, headers: &[(&str, &str)]) -> (u16, String) {
    let mut request = crate::world::client().get(format!("http://{}/~tunnel/1", world.address));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_that_says_too_little_or_wrong_is_told_what() {
    let world = World::start().await;
    let all = [
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("authorization", "Bearer good-token"),
        ("tunnel-name", "account1-runtime1"),
        ("tunnel-client", "one"),
        ("tunnel-generation", "1"),
    ];
    let dash = "the name of a tunnel is <account>-<runtime> with one dash in it; a runtime with a dash in its name is reached by its id\n";
    for (changed, value, status, said) in [
        ("upgrade", "h2c", 400, "a client of a tunnel upgrades to a WebSocket here\n"),
        ("sec-websocket-version", "8", 400, "a client of a tunnel upgrades to a WebSocket here\n"),
        ("sec-websocket-key", "", 400, "the header sec-websocket-key is missing\n"),
        ("authorization", "", 401, "this token does not open account1-runtime1\n"),
        ("authorization", "good-token", 401, "this token does not open account1-runtime1\n"),
        ("tunnel-name", "", 400, "the header tunnel-name is missing\n"),
        ("tunnel-name", "account1-my-runtime", 400, dash),
        ("tunnel-client", "", 400, "the header tunnel-client is missing\n"),
        ("tunnel-generation", "x", 400, "the header tunnel-generation is no number\n"),
        ("tunnel-wait", "soon", 400, "the header tunnel-wait is no number\n"),
        (
            "tunnel-allow",
            "here",
            400,
            "tunnel-allow: 'here' is neither an address nor a network such as 10.0.0.0/8\n",
        ),
    ] {
        let mut headers: Vec<_> = all.iter().copied().filter(|(name, _)| *name != changed).collect();
        if !value.is_empty() {
            headers.push((changed, value));
        }
        assert_eq!(upgrade(&world, &headers).await, (status, said.to_owned()), "{changed}: {value}");
    }
}
