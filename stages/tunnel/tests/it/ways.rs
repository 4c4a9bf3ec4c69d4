//! Ways in which a client or a server of the frp family is told to speak: without its multiplexer, with TLS inside of its
//! WebSocket, for several proxies, with proofs.

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::spoken::{
    Control, connected, heard, logged_in, login, offered, proxy, request, say, taken, with_tls,
};
use crate::world::{BOUND, DOMAIN, World, eventually, read_to};

const NAME: &str = "account1-runtime1";

/// Answers the visitor of a work connection with as many bytes.
async fn answers(io: &mut (impl tokio::io::AsyncWrite + Unpin), length: usize) {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
    io.write_all(head.as_bytes()).await.unwrap();
    io.write_all(&vec![b'x'; length]).await.unwrap();
    io.flush().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_without_a_multiplexer_has_a_connection_for_each_visitor() {
    let world = World::start().await;
    let (mut control, run_id) = logged_in(connected(&world).await, &login("", 1)).await;
    assert_eq!(control.heard().await.unwrap(), ('r', json!({})), "as many are wanted as it has a pool for");
    let mut first = offered(connected(&world).await, &run_id).await;
    let opened = control.asks_for(&proxy(NAME, NAME, "good-token")).await;
    assert_eq!(opened["error"], serde_json::Value::Null);
    let at = format!("{NAME}.{DOMAIN}:{}", world.address.port());
    assert_eq!(opened["remote_addr"], at);
    let visit = tokio::spawn(world.request(reqwest::Method::POST, "/one").body(vec![b'y'; 300_000]).send());
    let (kind, start) = heard(&mut first).await.unwrap();
    assert_eq!((kind, &start["proxy_name"], &start["src_addr"]), ('s', &json!(NAME), &json!("127.0.0.1")));
    assert!(request(&mut first).await.starts_with("POST /one HTTP/1.1\r\n"));
    first.read_exact(&mut vec![0; 300_000]).await.unwrap();
    answers(&mut first, 1 << 20).await;
    assert_eq!(visit.await.unwrap().unwrap().bytes().await.unwrap().len(), 1 << 20);
    // Another is wanted in its place.
    control.heard_of('r').await;
    // One whose other side has ended it is of no use.
    drop(offered(connected(&world).await, &run_id).await);
    drop(first);
    let visit = tokio::spawn(world.visit("/three").send());
    control.heard_of('r').await;
    let mut second = offered(connected(&world).await, &run_id).await;
    assert_eq!(heard(&mut second).await.unwrap().0, 's');
    assert!(request(&mut second).await.starts_with("GET /three HTTP/1.1\r\n"));
    answers(&mut second, 3).await;
    assert_eq!(visit.await.unwrap().unwrap().text().await.unwrap(), "xxx");
    // Once its control connection ends nothing is led through any more, and work connections are of nobody.
    drop(control);
    eventually("the tunnel is closed", async || {
        let text = prometheus::TextEncoder::new().encode_to_string(&world.metrics.gather()).unwrap();
        text.contains("gitops_runtime_tunnel_server_tunnels 0")
    })
    .await;
    let mut late = offered(connected(&world).await, &run_id).await;
    let (kind, start) = heard(&mut late).await.unwrap();
    assert_eq!((kind, &start["error"]), ('s', &json!("this work connection is of no client here")));
    assert_eq!(world.refused("protocol"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_logs_in_with_the_run_id_of_another_gets_none_of_its_work_connections() {
    let world = World::start().await;
    let (mut control, run_id) = logged_in(connected(&world).await, &login("", 0)).await;
    control.asks_for(&proxy(NAME, NAME, "good-token")).await;
    let (mut guess, same) = logged_in(connected(&world).await, &login(&run_id, 0)).await;
    assert_eq!(same, run_id, "a login alone gives nothing, and is not refused");
    let refused = guess.asks_for(&proxy(NAME, NAME, "other-token")).await;
    assert_eq!(refused["error"], format!("this token does not open {NAME}"));
    let mut work = offered(connected(&world).await, &run_id).await;
    let visit = tokio::spawn(world.visit("/mine").send());
    assert_eq!(heard(&mut work).await.unwrap().0, 's', "it is the first one's after all");
    assert!(request(&mut work).await.starts_with("GET /mine HTTP/1.1\r\n"));
    answers(&mut work, 1).await;
    assert_eq!(visit.await.unwrap().unwrap().status(), 200);
    // The client itself comes again, and has its work connections.
    let (mut again, _) = logged_in(connected(&world).await, &login(&run_id, 0)).await;
    again.asks_for(&proxy(NAME, NAME, "good-token")).await;
    // The one before is over.
    while control.heard().await.is_some() {}
    let mut work = offered(connected(&world).await, &run_id).await;
    let visit = tokio::spawn(world.visit("/again").send());
    assert_eq!(heard(&mut work).await.unwrap().0, 's');
    request(&mut work).await;
    answers(&mut work, 1).await;
    assert_eq!(visit.await.unwrap().unwrap().status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_inside_of_the_web_socket_is_taken_off_with_the_mark_of_the_family_or_without() {
    let world = World::start().await;
    let mut certificates = Vec::new();
    for is_marked in [true, false] {
        let (io, certificate) = with_tls(&world, is_marked).await;
        certificates.push(certificate);
        let (mut control, run_id) = logged_in(io, &login("", 0)).await;
        let opened = control.asks_for(&proxy(NAME, NAME, "good-token")).await;
        assert_eq!(opened["error"], serde_json::Value::Null);
        let visit = tokio::spawn(world.request(reqwest::Method::POST, "/").body(vec![b'y'; 99_999]).send());
        control.heard_of('r').await;
        let mut work = offered(with_tls(&world, is_marked).await.0, &run_id).await;
        assert_eq!(heard(&mut work).await.unwrap().0, 's');
        request(&mut work).await;
        work.read_exact(&mut vec![0; 99_999]).await.unwrap();
        answers(&mut work, 1 << 20).await;
        assert_eq!(visit.await.unwrap().unwrap().bytes().await.unwrap().len(), 1 << 20);
        control.say('c', &json!({"proxy_name": NAME})).await;
        eventually("the tunnel is free", async || {
            let text = prometheus::TextEncoder::new().encode_to_string(&world.metrics.gather()).unwrap();
            text.contains("gitops_runtime_tunnel_server_tunnels 0")
        })
        .await;
    }
    assert_eq!(certificates[0], certificates[1], "one is made for all");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_visitor_who_waits_for_a_work_connection_is_answered_once_the_client_is_gone() {
    // Nothing ends by its time.
    let world = World::with(|config| {
        config.times.handshake = BOUND * 9;
        config.times.expected = std::time::Duration::ZERO;
    });
    let world = world.await;
    let (mut control, _) = logged_in(connected(&world).await, &login("", 0)).await;
    let opened = control.asks_for(&proxy(NAME, NAME, "good-token")).await;
    assert_eq!(opened["error"], serde_json::Value::Null);
    let visit = tokio::spawn(world.visit("/").send());
    control.heard_of('r').await;
    drop(control);
    let answer = tokio::time::timeout(BOUND, visit).await.expect("it is answered").unwrap().unwrap();
    assert_eq!(answer.status(), 503);
    let said = "the tunnel of this host is not connected at the moment: try again\n";
    assert_eq!(answer.text().await.unwrap(), said);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_has_several_proxies_each_with_its_token_and_what_is_done_to_its_bytes() {
    let world = World::start().await;
    let tokens = std::fs::read_to_string(world.tokens()).unwrap();
    std::fs::write(world.tokens(), format!("{tokens}account3-runtime1 third-token\n")).unwrap();
    // What a client says of itself beside that changes nothing.
    let mut said = login("", 0);
    said["user"] = json!("ada");
    said["metas"] = json!({"Authorization": "of no proxy", "team": "one"});
    said["hostname"] = json!("host");
    let (mut control, run_id) = logged_in(connected(&world).await, &said).await;
    let mut second = proxy("ada.second", "account2-runtime1", "other-token");
    for (asked, why) in [
        (proxy("ada.web", NAME, "other-token"), format!("this token does not open {NAME}")),
        (proxy("ada.web", NAME, "good-token"), String::new()),
        (proxy("ada.web", NAME, "good-token"), "router config conflict".to_owned()),
        (proxy("ada.other", NAME, "good-token"), "router config conflict".to_owned()),
        (
            proxy("ada.web", "account2-runtime1", "other-token"),
            "proxy name [ada.web] is already in use".to_owned(),
        ),
        (second.clone(), String::new()),
    ] {
        let answer = control.asks_for(&asked).await;
        assert_eq!(answer["proxy_name"], asked["proxy_name"]);
        assert_eq!(answer.get("error").map_or("", |error| error.as_str().unwrap()), why);
    }
    for (host, called) in [(NAME, "ada.web"), ("account2-runtime1", "ada.second")] {
        let url = format!("http://{}/", world.address);
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let visit = tokio::spawn(client.get(url).header("host", format!("{host}.{DOMAIN}")).send());
        let mut work = offered(connected(&world).await, &run_id).await;
        assert_eq!(heard(&mut work).await.unwrap().1["proxy_name"], called);
        assert!(request(&mut work).await.contains(host));
        answers(&mut work, 2).await;
        assert_eq!(visit.await.unwrap().unwrap().text().await.unwrap(), "xx");
    }
    // What one client calls a proxy another may not, but for the one whose tunnel is called so.
    let (mut other, _) = logged_in(connected(&world).await, &login("", 0)).await;
    for (called, why) in [("ada.web", "proxy name [ada.web] is already in use"), ("account3-runtime1", "")] {
        let answer = other.asks_for(&proxy(called, "account3-runtime1", "third-token")).await;
        assert_eq!(answer.get("error").map_or("", |error| error.as_str().unwrap()), why);
    }
    // Each is closed by what the client calls it, and may be opened anew.
    control.say('c', &json!({"proxy_name": "ada.second"})).await;
    second["use_compression"] = json!(true);
    let again = control.asks_for(&second).await;
    assert_eq!(again.get("error"), None, "{again}");
    let url = format!("http://{}/packed", world.address);
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let visit = tokio::spawn(client.get(url).header("host", format!("account2-runtime1.{DOMAIN}")).send());
    let mut work = offered(connected(&world).await, &run_id).await;
    assert_eq!(heard(&mut work).await.unwrap().0, 's');
    let mut beginning = [0; 10];
    work.read_exact(&mut beginning).await.unwrap();
    assert_eq!(&beginning, b"\xff\x06\x00\x00sNaPpY", "this one is compressed");
    drop((work, visit));
}

#[tokio::test(flavor = "multi_thread")]
async fn pings_with_and_without_a_proof_are_answered_and_types_that_there_are_not_are_refused() {
    let world = World::start().await;
    let (mut control, _) = logged_in(connected(&world).await, &login("", 0)).await;
    for ping in
        [json!({}), json!({"privilege_key": "51571184e1a6a1fd304941e28480194d", "timestamp": 1_795_421_065})]
    {
        control.say('h', &ping).await;
        assert_eq!(control.heard().await.unwrap(), ('4', json!({})));
    }
    for (kind, why) in [
        ("tcp", "port not allowed"),
        ("https", "type [https] not support when vhost_https_port is not set"),
        ("ftp", "proxy [account1-runtime1] type [ftp] error"),
    ] {
        let mut asked = proxy(NAME, NAME, "good-token");
        asked["proxy_type"] = json!(kind);
        assert_eq!(control.asks_for(&asked).await["error"], why);
    }
    // The connection is as good as before.
    assert_eq!(control.asks_for(&proxy(NAME, NAME, "good-token")).await.get("error"), None);
}

/// Our client, which is to find out how a server speaks.
async fn client(listener: &tokio::net::TcpListener) -> crate::world::Running {
    let (world, service) = (World::start().await, crate::service::Service::default());
    let mut config = world.client_config(service.start().await);
    let url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    config.dial = stages_tunnel::Dial::new(&url, None, BOUND).unwrap();
    config.protocol = stages_tunnel::Protocol::Frp(stages_tunnel::Packing::default());
    config.grace = std::time::Duration::from_millis(100);
    crate::world::run(config.build(&prometheus::Registry::new()).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn our_client_finds_out_that_a_server_has_no_multiplexer_and_proves_what_it_is_asked_to() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = client(&listener).await;
    // A server without one ends what begins with no message.
    let mut first = taken(&listener).await;
    assert_eq!(first.read_u8().await.unwrap(), 0);
    drop(first);
    let mut io = taken(&listener).await;
    let (kind, said) = heard(&mut io).await.unwrap();
    assert_eq!((kind, &said["version"], said.get("run_id")), ('o', &json!("0.44.0"), None));
    say(&mut io, '1', &json!({"version": "0.44.0", "run_id": "abc"})).await;
    let mut control = Control::new(io);
    let asked = control.heard_of('p').await;
    assert_eq!((&asked["subdomain"], &asked["metas"]["Authorization"]), (&json!(NAME), &json!("good-token")));
    control.say('2', &json!({"proxy_name": NAME, "remote_addr": "somewhere"})).await;
    client.is_ready().await;
    control.say('r', &json!({})).await;
    let mut work = taken(&listener).await;
    assert_eq!(heard(&mut work).await.unwrap(), ('w', json!({"run_id": "abc"})));
    say(&mut work, 's', &json!({"error": "invalid NewWorkConn"})).await;
    drop(work);
    // Once it was refused it proves whose it is, and so does each after it.
    for visit in 0..2 {
        if visit > 0 {
            control.say('r', &json!({})).await;
        }
        let mut work = taken(&listener).await;
        let (kind, new) = heard(&mut work).await.unwrap();
        assert_eq!((kind, &new["run_id"]), ('w', &json!("abc")));
        assert_eq!(new["privilege_key"].as_str().unwrap().len(), 32);
        assert!(new["timestamp"].as_i64().unwrap() > 1_795_421_065);
        let start = json!({"proxy_name": NAME, "src_addr": "192.0.2.1", "src_port": 4711});
        say(&mut work, 's', &start).await;
        work.write_all(b"GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.unwrap();
        work.flush().await.unwrap();
        let mut answer = String::new();
        work.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("\r\n\r\nGET /hello 0"), "{answer}");
    }
    let ping = control.heard_of('h').await;
    assert_eq!(ping["privilege_key"].as_str().unwrap().len(), 32, "so does each ping");
    // A ping that is refused ends the connection, and the client comes again with the run id that it was given.
    control.say('4', &json!({"error": "invalid ping"})).await;
    let mut io = taken(&listener).await;
    assert_eq!(heard(&mut io).await.unwrap().1["run_id"], "abc");
    client.stop.cancel();
    drop((io, listener));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_visitor_who_is_led_on_to_a_newer_life_of_the_client_is_let_in_by_that_or_not_at_all() {
    let world = World::with(|config| config.times.handshake = std::time::Duration::from_secs(3)).await;
    let (mut control, run_id) = logged_in(connected(&world).await, &login("", 0)).await;
    control.asks_for(&proxy(NAME, NAME, "good-token")).await;
    let mut visitor = world.raw("GET /mine HTTP/1.1\r\nConnection: close\r\n\r\n").await;
    // It has let the visitor in, and offers no work connection.
    control.heard_of('r').await;
    let (mut newer, _) = logged_in(connected(&world).await, &login(&run_id, 0)).await;
    let mut narrower = proxy(NAME, NAME, "good-token");
    narrower["ips_allow_list"] = json!("203.0.113.9");
    assert_eq!(newer.asks_for(&narrower).await["error"], serde_json::Value::Null);
    let answer = read_to(&mut visitor, "").await;
    let refused = "this address may not visit this host\n";
    assert!(answer.starts_with("HTTP/1.1 403 ") && answer.ends_with(refused), "{answer}");
}
