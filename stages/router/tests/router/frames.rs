//! Heads of HTTP/2 that a service which speaks HTTP/1.1 would read in another way: each with the answer that it must get, and what
//! the service may see of it. They are written by hand: no library sends them.

use stages_router::RouterConfig;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::{Running, Upstream, config, proxied, within};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// What an attack comes to that is no request: its stream or its connection is reset.
const REFUSED: &str = "refused";

type Field = (&'static str, &'static str);

/// A head for the App Proxy.
const TO_PROXY: [Field; 4] =
    [(":method", "POST"), (":scheme", "http"), (":authority", "a"), (":path", "/app-proxy")];

/// One attack.
struct Attack {
    name: &'static str,
    head: Vec<Field>,
    body: &'static str,
    /// A status, or [`REFUSED`].
    answer: &'static str,
    /// Whether the service sees it; `None`: it may, as its body is what is wrong.
    is_seen: Option<bool>,
}

fn attack(name: &'static str, head: Vec<Field>, answer: &'static str) -> Attack {
    Attack { name, head, body: "", answer, is_seen: Some(answer == "200") }
}

/// One with these fields beside the head.
fn with(name: &'static str, fields: &[Field], answer: &'static str) -> Attack {
    attack(name, [&TO_PROXY[..], fields].concat(), answer)
}

/// One whose head has another value for a field.
fn instead(name: &'static str, field: &'static str, value: &'static str, answer: &'static str) -> Attack {
    let changed = |(own, before): &Field| (*own, if *own == field { value } else { *before });
    attack(name, TO_PROXY.iter().map(changed).collect(), answer)
}

/// One without a field.
fn without(name: &'static str, field: &str, answer: &'static str) -> Attack {
    attack(name, TO_PROXY.into_iter().filter(|(own, _)| *own != field).collect(), answer)
}

fn attacks() -> Vec<Attack> {
    let length =
        |name, fields: &[Field], body, is_seen| Attack { body, is_seen, ..with(name, fields, REFUSED) };
    vec![
        with("a head as it should be", &[], "200"),
        with("a wish for trailers", &[("te", "trailers")], "200"),
        with("a coding", &[("transfer-encoding", "chunked")], REFUSED),
        with(
            "a coding beside a length",
            &[("content-length", "0"), ("transfer-encoding", "chunked")],
            REFUSED,
        ),
        with("what a connection is to keep", &[("connection", "x-forwarded-for")], REFUSED),
        with("how long it is kept", &[("keep-alive", "timeout=5")], REFUSED),
        with("the same for proxies", &[("proxy-connection", "keep-alive")], REFUSED),
        with("an upgrade", &[("upgrade", "websocket")], REFUSED),
        with("a wish for a coding", &[("te", "gzip")], REFUSED),
        with("a name in upper case", &[("X-Upper", "1")], REFUSED),
        with("a name without a letter", &[("", "1")], REFUSED),
        with("a name that ends itself", &[("x: 1\r\ny", "1")], REFUSED),
        with("a value that begins another header", &[("x", "1\r\ntransfer-encoding: chunked")], REFUSED),
        with("a value that ends the head", &[("x", "1\r\n\r\nGET /app-proxy/smuggled HTTP/1.1")], REFUSED),
        with("a line end alone in a value", &[("x", "1\ny: 2")], REFUSED),
        with("a zero in a value", &[("x", "1\0")], REFUSED),
        with("a part of the head that nobody knows", &[(":evil", "1")], REFUSED),
        with("two paths", &[(":path", "/app-proxy/other")], REFUSED),
        with("another host beside the authority", &[("host", "b")], "400"),
        attack(
            "a part of the head behind a header",
            vec![
                (":method", "GET"),
                (":scheme", "http"),
                ("x", "1"),
                (":authority", "a"),
                (":path", "/app-proxy"),
            ],
            REFUSED,
        ),
        instead("a path that ends its line", ":path", "/app-proxy HTTP/1.1\r\nx: y", REFUSED),
        instead("a path that is none", ":path", "", REFUSED),
        instead("a way up", ":path", "/app-proxy/../healthz", "400"),
        instead("a way up that is encoded", ":path", "/app-proxy/%2e%2e/healthz", "400"),
        instead("another service", ":path", "//evil.example/app-proxy", "404"),
        instead(
            "a method that ends its line",
            ":method",
            "GET /app-proxy/smuggled HTTP/1.1\r\nx: y",
            REFUSED,
        ),
        instead("a request that is to come back", ":method", "TRACE", "405"),
        instead("an authority with a user", ":authority", "user@a", "400"),
        instead("an authority that ends its line", ":authority", "a\r\nx: y", REFUSED),
        without("no host", ":authority", "400"),
        without("no path", ":path", REFUSED),
        attack(
            "a tunnel to somebody else",
            vec![(":method", "CONNECT"), (":authority", "169.254.169.254:80")],
            "405",
        ),
        length("two lengths", &[("content-length", "3"), ("content-length", "4")], "abc", Some(false)),
        length("a length with a sign", &[("content-length", "+3")], "abc", Some(false)),
        length(
            "a length that no number holds",
            &[("content-length", "99999999999999999999")],
            "abc",
            Some(false),
        ),
        length("a length without a body", &[("content-length", "3")], "", Some(false)),
        length("a body that is longer than it says", &[("content-length", "1")], "abc", None),
        length("a body that is shorter than it says", &[("content-length", "9")], "abc", None),
    ]
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Each field as a literal that nobody is to remember.
fn block(fields: &[Field]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            // So long ones have their length in one byte.
            assert!(text.len() < 127);
            block.push(text.len() as u8);
            block.extend(text.as_bytes());
        }
    }
    block
}

/// The status that a head begins with: one of those with a number of their own, or three digits in the code of Huffman.
fn status(block: &[u8]) -> String {
    let known = ["200", "204", "206", "304", "400", "404", "500"];
    if let Some(status) = block[0].checked_sub(0x88).and_then(|at| known.get(usize::from(at))) {
        return (*status).to_owned();
    }
    assert_eq!((block[0] & 0x3f, block[1] & 0x80), (8, 0x80), "{block:x?}");
    let mut bits = block[2..].iter().flat_map(|byte| (0..8).rev().map(move |at| (byte >> at) & 1));
    let mut text = String::new();
    for _ in 0..3 {
        let mut read = |before: u8| (before << 1) | bits.next().unwrap();
        // 0, 1 and 2 are five bits long, the others six.
        let short = (0..5).fold(0, |before, _| read(before));
        let digit = if short <= 2 { short } else { read(short) - 0b01_1001 + 3 };
        text.push(char::from(b'0' + digit));
    }
    text
}

/// Writes an attack, and gives what becomes of it.
async fn answered(mut stream: TcpStream, attack: &Attack) -> String {
    let is_whole = attack.body.is_empty();
    let flags = END_HEADERS | if is_whole { END_STREAM } else { 0 };
    let mut bytes = PREFACE.to_vec();
    bytes.extend(frame(SETTINGS, 0, 0, b""));
    bytes.extend(frame(HEADERS, flags, 1, &block(&attack.head)));
    if !is_whole {
        bytes.extend(frame(DATA, END_STREAM, 1, attack.body.as_bytes()));
    }
    stream.write_all(&bytes).await.unwrap();
    loop {
        let mut head = [0; 9];
        if stream.read_exact(&mut head).await.is_err() {
            return REFUSED.to_owned();
        }
        let mut payload = vec![0; (usize::from(head[1]) << 8) | usize::from(head[2])];
        if stream.read_exact(&mut payload).await.is_err() {
            return REFUSED.to_owned();
        }
        match (head[3], u32::from_be_bytes(head[5..].try_into().unwrap())) {
            (HEADERS, 1) => return status(&payload),
            (RESET, 1) | (GOAWAY, _) => return REFUSED.to_owned(),
            _ => {}
        }
    }
}

#[tokio::test]
async fn each_head_of_http_2_that_http_1_reads_in_another_way_gets_its_answer_and_goes_no_further() {
    let service = Upstream::recording().await;
    let settings = RouterConfig { app_proxy: Some(proxied(&service.url())), ..config() };
    let running = Running::start(settings).await;
    let mut wrong = Vec::new();
    for attack in attacks() {
        service.seen.lock().unwrap().clear();
        let got = within(answered(running.connect().await, &attack)).await;
        // What an attack has left behind would be seen before this, or in its place.
        assert_eq!(running.get("/app-proxy/after").await, (200, "ok".to_owned()), "{}", attack.name);
        let mut lines = service.lines();
        assert_eq!(lines.pop().as_deref(), Some("GET /app-proxy/after"), "{}", attack.name);
        let is_seen = lines == ["POST /app-proxy"];
        let is_as_it_may = is_seen || lines.is_empty();
        if got != attack.answer || !is_as_it_may || attack.is_seen.is_some_and(|wanted| wanted != is_seen) {
            wrong.push(format!("{}: {got} and {lines:?}, not {}", attack.name, attack.answer));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    running.end().await;
}
