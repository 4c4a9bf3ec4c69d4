//! Sessions of a real client of the frp 0.44 family, recorded byte by byte, once more: with this server.
//!
//! A file holds a chunk a line, in base64. What the client said is said again, but for the run id, which each server gives
//! anew, and never more than the server has room for; what this server says is held against what the real one said.

use std::collections::HashMap;
use std::io::Read as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

use aes::Aes128;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cfb_mode::BufDecryptor;
use cfb_mode::cipher::KeyIvInit as _;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;

use crate::world::{DOMAIN, World, eventually, read_to};

pub(crate) const KEY: [u8; 16] =
    [0xcd, 0xc9, 0xdc, 0x4c, 0x47, 0x2c, 0x37, 0x33, 0x12, 0x81, 0xdf, 0x4c, 0x23, 0x2a, 0x84, 0x07];
/// What a stream may carry before its receiver says more.
pub(crate) const WINDOW: u64 = 256 << 10;

/// One frame of yamux.
#[derive(Clone)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u16,
    pub(crate) stream: u32,
    pub(crate) length: u32,
    pub(crate) data: Vec<u8>,
}

/// What went one way.
pub(crate) struct Way {
    head: String,
    pub(crate) frames: Vec<Frame>,
}

/// Takes the payload of the first frame of a WebSocket off `bytes`, if it is whole.
pub(crate) fn unframe(bytes: &mut Vec<u8>) -> Option<Vec<u8>> {
    let (&first, &second) = (bytes.first()?, bytes.get(1)?);
    assert_eq!(first, 0x81, "a text frame, as all of the family");
    let (length, mut at) = match second & 0x7f {
        126 => (usize::from(u16::from_be_bytes(bytes.get(2..4)?.try_into().unwrap())), 4),
        127 => (u64::from_be_bytes(bytes.get(2..10)?.try_into().unwrap()) as usize, 10),
        short => (usize::from(short), 2),
    };
    let mut mask = [0; 4];
    if second & 0x80 != 0 {
        mask.copy_from_slice(bytes.get(at..at + 4)?);
        at += 4;
    }
    let mut payload = bytes.get(at..at + length)?.to_vec();
    payload.iter_mut().enumerate().for_each(|(index, byte)| *byte ^= mask[index % 4]);
    bytes.drain(..at + length);
    Some(payload)
}

/// Takes the first frame of yamux off `bytes`, if it is whole.
pub(crate) fn frame(bytes: &mut Vec<u8>) -> Option<Frame> {
    let head: [u8; 12] = bytes.get(..12)?.try_into().unwrap();
    let four = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().unwrap());
    let (kind, length) = (head[1], four(8));
    let end = 12 + if kind == 0 { length as usize } else { 0 };
    let data = bytes.get(12..end)?.to_vec();
    bytes.drain(..end);
    Some(Frame { kind, flags: u16::from_be_bytes([head[2], head[3]]), stream: four(4), length, data })
}

/// The chunks that went one way, as they arrived.
pub(crate) fn chunks(case: &str, connection: u64, direction: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/frp").join(case);
    let mut text = String::new();
    match std::fs::File::open(folder.join("client.jsonl")) {
        Ok(mut file) => file.read_to_string(&mut text).unwrap(),
        Err(_) => {
            let file = std::fs::File::open(folder.join("client.jsonl.gz")).unwrap();
            flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap()
        }
    };
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let own = lines.filter(|line| line["conn"] == connection && line["dir"] == direction);
    own.map(|line| STANDARD.decode(line["base64"].as_str().unwrap()).unwrap()).collect()
}

pub(crate) fn way(case: &str, connection: u64, direction: &str) -> Way {
    let mut bytes = chunks(case, connection, direction).concat();
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("an upgrade") + 4;
    let mut rest = bytes.split_off(end);
    let mut stream = Vec::new();
    while let Some(payload) = unframe(&mut rest) {
        stream.extend(payload);
    }
    let frames: Vec<Frame> = std::iter::from_fn(|| frame(&mut stream)).collect();
    assert!(!frames.is_empty(), "{case} holds no frames");
    Way { head: String::from_utf8(bytes).unwrap(), frames }
}

/// All data of one stream.
pub(crate) fn data(frames: &[Frame], stream: u32) -> Vec<u8> {
    frames.iter().filter(|frame| frame.stream == stream).flat_map(|frame| frame.data.clone()).collect()
}

pub(crate) fn messages(bytes: &[u8]) -> Vec<(char, Value)> {
    let (mut all, mut rest) = (Vec::new(), bytes);
    while let Some(length) = rest.get(1..9) {
        let end = 9 + u64::from_be_bytes(length.try_into().unwrap()) as usize;
        let Some(json) = rest.get(9..end) else { break };
        all.push((char::from(rest[0]), serde_json::from_slice(json).unwrap()));
        rest = &rest[end..];
    }
    all
}

/// What stands on the stream for control: the login or its answer, and what was said after that.
pub(crate) fn control(bytes: &[u8]) -> Vec<(char, Value)> {
    let Some(length) = bytes.get(1..9) else { return Vec::new() };
    let (login, rest) = bytes.split_at(9 + u64::from_be_bytes(length.try_into().unwrap()) as usize);
    let mut all = messages(login);
    if let Some((first, rest)) = rest.split_at_checked(16) {
        let mut rest = rest.to_vec();
        BufDecryptor::<Aes128>::new(&KEY.into(), first.try_into().unwrap()).decrypt(&mut rest);
        all.extend(messages(&rest));
    }
    all
}

/// What the answers mean, whichever server gave them: what differs by nature is made the same.
fn meaning(messages: &[(char, Value)]) -> Vec<String> {
    let of = |(kind, value): &(char, Value)| {
        let mut value = value.clone();
        if value["run_id"].is_string() {
            value["run_id"] = json!("some");
        }
        if let Some(at) = value["remote_addr"].as_str() {
            value["remote_addr"] = json!(at.split(':').next());
        }
        if value["error"] != "router config conflict" && value["error"].is_string() {
            value["error"] = json!("refused");
        }
        format!("{kind} {value}")
    };
    let mut all: Vec<String> = messages.iter().map(of).collect();
    // When a work connection is asked for says nothing but how many there are.
    all.sort();
    all
}

/// What the server said.
#[derive(Default)]
pub(crate) struct Said {
    pub(crate) frames: Vec<Frame>,
    windows: HashMap<u32, u64>,
    is_over: bool,
}

/// The recorded client, once more.
pub(crate) struct Again {
    pub(crate) said: Arc<Mutex<Said>>,
    pub(crate) writing: Arc<tokio::sync::Mutex<OwnedWriteHalf>>,
    way: Way,
    pub(crate) run_id: (String, String),
    sent: HashMap<u32, u64>,
    next: usize,
    /// Where what was said on the first work connection is said.
    answers: u32,
}

/// A frame of yamux as it is sent.
pub(crate) fn bytes_of(frame: &Frame) -> Vec<u8> {
    let mut bytes = vec![0, frame.kind];
    bytes.extend(frame.flags.to_be_bytes());
    bytes.extend(frame.stream.to_be_bytes());
    bytes.extend(frame.length.to_be_bytes());
    bytes.extend(&frame.data);
    bytes
}

/// A message as it is sent.
pub(crate) fn message(kind: char, content: &Value) -> Vec<u8> {
    let content = content.to_string();
    let mut bytes = vec![kind as u8];
    bytes.extend((content.len() as u64).to_be_bytes());
    bytes.extend(content.as_bytes());
    bytes
}

pub(crate) async fn write(to: &tokio::sync::Mutex<OwnedWriteHalf>, frame: &Frame) {
    let bytes = bytes_of(frame);
    let mut whole = vec![0x81];
    match bytes.len() {
        short @ ..=125 => whole.push(0x80 | short as u8),
        long => {
            whole.push(0xff);
            whole.extend((long as u64).to_be_bytes());
        }
    }
    // A mask that changes nothing.
    whole.extend([0; 4]);
    whole.extend(bytes);
    to.lock().await.write_all(&whole).await.unwrap();
}

impl Again {
    /// Connects as the recorded client did, and logs in.
    pub(crate) async fn begin(world: &World, case: &str, connection: u64) -> Self {
        Self::begin_as(world, case, connection, Default::default()).await
    }

    /// The same, with another run id than was recorded.
    async fn begin_as(world: &World, case: &str, connection: u64, run_id: (String, String)) -> Self {
        Self::begin_by(world, case, connection, run_id, way(case, connection, "client>server")).await
    }

    /// The same, and says what is given.
    pub(crate) async fn begin_by(
        world: &World,
        case: &str,
        connection: u64,
        run_id: (String, String),
        way: Way,
    ) -> Self {
        let recorded = control(&data(&self::way(case, connection, "server>client").frames, 1));
        let mut stream = TcpStream::connect(world.address).await.unwrap();
        stream.write_all(way.head.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap();
        let key = way.head.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).unwrap();
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        assert!(head.contains(&stages_tunnel::accept_of(key)), "{head}");
        let (mut reading, writing) = stream.into_split();
        let (said, writing) =
            (Arc::new(Mutex::new(Said::default())), Arc::new(tokio::sync::Mutex::new(writing)));
        let (telling, answering) = (said.clone(), writing.clone());
        tokio::spawn(async move {
            let (mut framed, mut bytes) = (Vec::new(), Vec::new());
            while reading.read_buf(&mut framed).await.is_ok_and(|read| read > 0) {
                while framed.first().is_some_and(|first| *first == 0x81)
                    && let Some(payload) = unframe(&mut framed)
                {
                    bytes.extend(payload);
                }
                while let Some(frame) = frame(&mut bytes) {
                    if frame.kind == 2 && frame.flags == 1 {
                        write(&answering, &Frame { flags: 2, ..frame.clone() }).await;
                    }
                    let mut said = telling.lock().unwrap();
                    if frame.kind == 1 {
                        *said.windows.entry(frame.stream).or_insert(WINDOW) += u64::from(frame.length);
                    }
                    said.frames.push(frame);
                }
            }
            telling.lock().unwrap().is_over = true;
        });
        let mut again = Self { said, writing, way, run_id, sent: HashMap::new(), next: 0, answers: 3 };
        again.send(|frame| frame.stream == 1, 2).await;
        eventually("it is logged in", async || !again.control().is_empty()).await;
        let run_id =
            |messages: &[(char, Value)]| messages[0].1["run_id"].as_str().unwrap_or_default().to_owned();
        again.run_id = (run_id(&recorded), run_id(&again.control()));
        again
    }

    /// Says the next of what was recorded: as many frames as `most`, and while `is_wanted`.
    pub(crate) async fn send(&mut self, is_wanted: impl Fn(&Frame) -> bool, most: usize) {
        for _ in 0..most {
            let Some(mut frame) = self.way.frames.get(self.next).filter(|frame| is_wanted(frame)).cloned()
            else {
                return;
            };
            self.next += 1;
            if frame.stream == 3 {
                frame.stream = self.answers;
            }
            // What the recorded server asked is not what this one asks.
            if frame.kind == 2 && frame.flags == 2 {
                continue;
            }
            let (from, to) = (self.run_id.0.as_bytes(), self.run_id.1.as_bytes());
            let at = frame.data.windows(from.len().max(1)).position(|part| part == from);
            if let Some(at) = at.filter(|_| matches!(frame.data[0], b'o' | b'w')) {
                frame.data[at..at + from.len()].copy_from_slice(to);
            }
            let sent = self.sent.entry(frame.stream).or_default();
            *sent += frame.data.len() as u64;
            let (sent, stream) = (*sent, frame.stream);
            let has_room = || sent <= *self.said.lock().unwrap().windows.get(&stream).unwrap_or(&WINDOW);
            eventually("there is room", async || has_room()).await;
            write(&self.writing, &frame).await;
        }
    }

    /// Says all that was recorded up to the first answer of the service on `stream`.
    async fn send_until(&mut self, stream: u32) {
        let answers = self.way.frames.iter().enumerate();
        let mut answers = answers.filter(|(_, frame)| frame.stream == stream && frame.kind == 0);
        // The first says whose work connection it is.
        let most = answers.nth(1).map_or(self.way.frames.len(), |(at, _)| at) - self.next;
        self.send(|_| true, most).await;
    }

    /// What was said on the stream for control.
    pub(crate) fn control(&self) -> Vec<(char, Value)> {
        control(&data(&self.said.lock().unwrap().frames, 1))
    }

    /// Waits for a visitor's request, and answers it on the stream that it came on.
    pub(crate) async fn is_asked(&mut self, line: &str) {
        let holds = |frame: &Frame| frame.data.windows(line.len()).any(|part| part == line.as_bytes());
        self.is_answered_on(holds).await;
    }

    async fn is_answered_on(&mut self, is_asked: impl Fn(&Frame) -> bool) {
        let asked = || {
            let said = self.said.lock().unwrap();
            said.frames.iter().find(|frame| is_asked(frame)).map(|frame| frame.stream)
        };
        eventually("a visitor's request comes through", async || asked().is_some()).await;
        self.answers = asked().unwrap();
    }
}

fn recorded(case: &str, connection: u64) -> Vec<(char, Value)> {
    control(&data(&way(case, connection, "server>client").frames, 1))
}

/// Waits until as much was said as by the real server, and holds both against each other.
async fn means_the_same(again: &Again, case: &str, connection: u64) {
    let expected = recorded(case, connection);
    eventually("as much is said", async || again.control().len() >= expected.len()).await;
    assert_eq!(meaning(&again.control()), meaning(&expected));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recorded_client_serves_small_and_large_answers_and_pings() {
    let world = World::start().await;
    let mut again = Again::begin(&world, "plain", 1).await;
    again.send_until(3).await;
    eventually("it is served", async || again.control().iter().any(|(kind, _)| *kind == '2')).await;
    let body = vec![0; 300_000];
    for (visit, line, length) in [
        (world.visit("/hello"), "GET /hello HTTP/1.1", 79),
        (world.visit("/big"), "GET /big HTTP/1.1", 1 << 20),
        (world.request(reqwest::Method::POST, "/post").body(body), "POST /post HTTP/1.1", 10),
    ] {
        let visit = tokio::spawn(visit.send());
        again.is_asked(line).await;
        again.send(|_| true, 1).await;
        again.send(|frame| !frame.data.starts_with(b"HTTP/1.1 "), usize::MAX).await;
        let answer = visit.await.unwrap().unwrap();
        assert_eq!(answer.status(), 200, "{line}");
        assert_eq!(answer.bytes().await.unwrap().len(), length, "{line}");
    }
    eventually("its ping is answered", async || again.control().iter().any(|(kind, _)| *kind == '4')).await;
    let served = |messages: &[(char, Value)]| {
        meaning(messages).into_iter().filter(|text| !text.starts_with('r')).collect::<Vec<_>>()
    };
    assert_eq!(served(&again.control()), served(&recorded("plain", 1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recorded_client_that_encrypts_and_compresses_is_understood() {
    let world = World::start().await;
    let mut again = Again::begin(&world, "encrypted", 1).await;
    again.send_until(3).await;
    eventually("it is served", async || again.control().iter().any(|(kind, _)| *kind == '2')).await;
    let visit = tokio::spawn(world.visit("/hello").send());
    // Nothing of the request can be read: its first bytes come after those that say who visits.
    again
        .is_answered_on(|frame| {
            frame.stream > 1 && !frame.data.is_empty() && !frame.data.starts_with(b"s\0\0\0\0")
        })
        .await;
    again.send(|_| true, usize::MAX).await;
    let answer = visit.await.unwrap().unwrap();
    assert_eq!(answer.status(), 200);
    let text = answer.text().await.unwrap();
    assert!(text.starts_with("hello /hello host=account1-runtime1.tunnels.example.com"), "{text}");
    means_the_same(&again, "encrypted", 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recorded_client_with_a_wrong_token_is_refused_and_another_ones_tunnel_is_kept() {
    let world = World::start().await;
    let mut wrong = Again::begin(&world, "refused", 1).await;
    wrong.send(|_| true, usize::MAX).await;
    means_the_same(&wrong, "refused", 1).await;
    let said = wrong.control();
    let refusal = said.iter().find(|(kind, _)| *kind == '2').unwrap();
    assert_eq!(refusal.1["error"], "this token does not open account1-runtime1");
    assert_eq!(world.refused("credential"), 1);
    let mut first = Again::begin(&world, "taken", 1).await;
    first.send(|_| true, usize::MAX).await;
    means_the_same(&first, "taken", 1).await;
    let mut second = Again::begin(&world, "taken", 2).await;
    second.send(|_| true, usize::MAX).await;
    means_the_same(&second, "taken", 2).await;
    assert_eq!(world.refused("taken"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recorded_client_that_comes_again_with_its_run_id_is_served_again() {
    let world = World::start().await;
    let mut first = Again::begin(&world, "reconnect", 1).await;
    first.send(|_| true, usize::MAX).await;
    eventually("it is served", async || first.control().iter().any(|(kind, _)| *kind == '2')).await;
    // With the same run id it takes the place of the first, which was not heard to end.
    let mut second = Again::begin_as(&world, "reconnect", 4, first.run_id.clone()).await;
    assert_eq!(second.run_id, first.run_id, "it keeps what it says of itself");
    second.send_until(3).await;
    eventually("it is served", async || second.control().iter().any(|(kind, _)| *kind == '2')).await;
    let mut visitor = world.raw("GET /after HTTP/1.1\r\nConnection: close\r\n\r\n").await;
    second.is_asked("GET /after HTTP/1.1").await;
    second.send(|_| true, usize::MAX).await;
    let answer = read_to(&mut visitor, "").await;
    assert!(answer.contains(&format!("hello /after host=account1-runtime1.{DOMAIN}")), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_with_another_key_is_refused_in_the_words_of_the_family() {
    let world = World::start().await;
    let way = way("plain", 1, "client>server");
    let mut frames = way.frames[..2].to_vec();
    let key = frames[1].data.windows(8).position(|part| part == b"cf53f5e5").unwrap();
    frames[1].data[key..key + 8].copy_from_slice(b"00000000");
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    stream.write_all(way.head.as_bytes()).await.unwrap();
    read_to(&mut stream, "\r\n\r\n").await;
    let (mut reading, writing) = stream.into_split();
    let writing = tokio::sync::Mutex::new(writing);
    for frame in &frames {
        write(&writing, frame).await;
    }
    let mut said = Vec::new();
    let why = "token in login doesn't match token from configuration";
    while !String::from_utf8_lossy(&said).contains(why) {
        assert!(reading.read_buf(&mut said).await.unwrap() > 0, "{}", String::from_utf8_lossy(&said));
    }
    assert_eq!(world.refused("protocol"), 1);
}
