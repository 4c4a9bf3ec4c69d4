//! Sessions of a real server of the frp 0.44 family, recorded byte by byte, once more: with this client.

use std::collections::HashMap;
use std::io::Read as _;
use std::sync::{Arc, Mutex};

use aes::Aes128;
use cfb_mode::BufDecryptor;
use cfb_mode::cipher::KeyIvInit as _;
use serde_json::{Value, json};
use stages_tunnel::Packing;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::recorded::{Frame, KEY, WINDOW, bytes_of, control, data, frame, messages, unframe, way};
use crate::world::{World, eventually, read_to};

/// Says to our client, frame by frame, what the real server said to the real one; gives what our client said.
async fn served(
    case: &str,
    connection: u64,
    packing: Packing,
) -> (crate::world::Running, Arc<Mutex<Vec<Frame>>>) {
    let way = way(case, connection, "server>client");
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let (world, service) = (World::start().await, crate::service::Service::default());
    let mut config = world.client_config(service.start().await);
    config.dial = stages_tunnel::Dial::new(&url, None, crate::world::BOUND).unwrap();
    config.protocol = stages_tunnel::Protocol::Frp(packing);
    // The recorded server keeps its work connection.
    config.grace = std::time::Duration::from_millis(100);
    let client = crate::world::run(config.build(&prometheus::Registry::new()).unwrap());
    let (mut stream, _) = listener.accept().await.unwrap();
    let head = read_to(&mut stream, "\r\n\r\n").await;
    assert!(head.starts_with("GET /~!frp HTTP/1.1\r\n"), "{head}");
    let said = |name: &str| {
        let mut headers = head.lines().filter_map(|line| line.split_once(": "));
        headers.find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
    };
    assert_eq!(said("origin").unwrap(), format!("http://{}", listener.local_addr().unwrap()));
    let accept = stages_tunnel::accept_of(&said("sec-websocket-key").unwrap());
    let answer = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
    );
    stream.write_all(answer.as_bytes()).await.unwrap();
    let (mut reading, mut writing) = stream.into_split();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hearing = heard.clone();
    tokio::spawn(async move {
        let (mut framed, mut bytes) = (Vec::new(), Vec::new());
        while reading.read_buf(&mut framed).await.is_ok_and(|read| read > 0) {
            while framed.first().is_some_and(|first| *first == 0x81)
                && let Some(payload) = unframe(&mut framed)
            {
                bytes.extend(payload);
            }
            while let Some(frame) = frame(&mut bytes) {
                hearing.lock().unwrap().push(frame);
            }
        }
    });
    let mut sent = HashMap::<u32, u64>::new();
    for frame in way.frames.iter().filter(|frame| frame.kind != 2) {
        // A stream is spoken of when the client has opened it.
        let is_open = || {
            heard.lock().unwrap().iter().any(|heard| heard.stream == frame.stream && !heard.data.is_empty())
        };
        eventually("the client opens the stream", async || is_open()).await;
        let sent = sent.entry(frame.stream).or_default();
        *sent += frame.data.len() as u64;
        let has_room = || {
            let heard = heard.lock().unwrap();
            let windows = heard.iter().filter(|heard| heard.stream == frame.stream && heard.kind == 1);
            *sent <= WINDOW + windows.map(|window| u64::from(window.length)).sum::<u64>()
        };
        eventually("the client has room", async || has_room()).await;
        let bytes = bytes_of(frame);
        let mut whole = vec![0x81, 126];
        whole.extend((bytes.len() as u16).to_be_bytes());
        whole.extend(bytes);
        writing.write_all(&whole).await.unwrap();
    }
    // The connection is kept for as long as the test wants it.
    tokio::spawn(async move {
        std::future::pending::<()>().await;
        drop(writing);
    });
    (client, heard)
}

/// What the recorded client said on the stream for control.
fn recorded_client(case: &str, connection: u64) -> Vec<(char, Value)> {
    control(&data(&way(case, connection, "client>server").frames, 1))
}

/// What our client said, as far as it has a meaning that is the same at any time.
fn said(messages: Vec<(char, Value)>) -> Vec<(char, Value)> {
    let without = |(kind, mut value): (char, Value)| {
        for name in ["timestamp", "privilege_key", "os", "arch"] {
            value.as_object_mut().unwrap().remove(name);
        }
        (kind, value)
    };
    messages.into_iter().filter(|(kind, _)| *kind != 'h').map(without).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn our_client_serves_the_visitor_of_a_recorded_server() {
    let (client, heard) = served("reconnect", 4, Packing::default()).await;
    let on = |stream| data(&heard.lock().unwrap(), stream);
    eventually("the visitor is answered", async || String::from_utf8_lossy(&on(3)).ends_with("GET /after 0"))
        .await;
    let mut recorded = said(recorded_client("reconnect", 4));
    // Our client has not been there before.
    recorded[0].1.as_object_mut().unwrap().remove("run_id");
    assert_eq!(said(control(&on(1))), recorded);
    let work = messages(&data(&way("reconnect", 4, "client>server").frames, 5));
    eventually("another work connection is there", async || !on(5).is_empty()).await;
    assert_eq!(messages(&on(5)), work);
    client.stop.cancel();
    eventually("the proxy is closed", async || control(&on(1)).iter().any(|(kind, _)| *kind == 'c')).await;
    client.stopped().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn our_client_serves_small_and_large_visits_of_a_recorded_server_one_after_another() {
    let (client, heard) = served("plain", 1, Packing::default()).await;
    let on = |stream| data(&heard.lock().unwrap(), stream);
    eventually("all visitors are answered", async || on(3).ends_with(b"\r\n\r\n300000")).await;
    let said = on(3);
    let text = String::from_utf8_lossy(&said);
    let answers: Vec<_> = text.match_indices("HTTP/1.1 200 OK\r\n").collect();
    assert_eq!(answers.len(), 3);
    assert!(text.contains("\r\n\r\nGET /hello 0") && text.contains(&"x".repeat(1 << 20)));
    assert_eq!(self::said(control(&on(1))), self::said(recorded_client("plain", 1)));
    client.stopped().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn our_client_serves_the_visitor_of_a_recorded_server_encrypted_and_compressed() {
    let (client, heard) = served("encrypted", 1, Packing { encryption: true, compression: true }).await;
    let on = |stream| data(&heard.lock().unwrap(), stream);
    let answer = || {
        // After the message that says whose work connection it is.
        let said = on(3).split_off(38);
        let mut all = Vec::new();
        if let Some((first, packed)) = said.split_at_checked(16) {
            let mut packed = packed.to_vec();
            BufDecryptor::<Aes128>::new(&KEY.into(), first.try_into().unwrap()).decrypt(&mut packed);
            // What comes later is missing, which is an error.
            drop(snap::read::FrameDecoder::new(&packed[..]).read_to_end(&mut all));
        }
        String::from_utf8(all).unwrap()
    };
    eventually("the visitor is answered", async || answer().ends_with("GET /hello 0")).await;
    assert!(answer().starts_with("HTTP/1.1 200 OK\r\n"));
    let mut recorded = said(recorded_client("encrypted", 1));
    // How many work connections wait is for each to choose.
    recorded[0].1["pool_count"] = json!(1);
    assert_eq!(said(control(&on(1))), recorded);
    client.stopped().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn our_client_has_no_tunnel_where_a_recorded_server_refused_one() {
    for (case, connection) in [("refused", 1), ("taken", 2)] {
        let (client, heard) = served(case, connection, Packing::default()).await;
        eventually("it asks for its proxy", async || control(&data(&heard.lock().unwrap(), 1)).len() >= 2)
            .await;
        assert!(!client.ready.is_ready(), "{case}");
        client.stopped().await;
    }
}
