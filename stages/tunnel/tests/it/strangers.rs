//! Clients of the frp family that have no right to a tunnel, or come by a way that this server does not have.

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::ears::Warnings;
use crate::recorded::{Again, Frame, bytes_of, chunks, frame, message, messages, way, write};
use crate::spoken::connected;
use crate::world::{BOUND, World, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn whoever_guessed_a_run_id_and_has_no_token_for_its_tunnel_is_refused_and_gets_no_visitor() {
    let world = World::start().await;
    let mut first = Again::begin(&world, "reconnect", 1).await;
    first.send(|_| true, usize::MAX).await;
    eventually("it is served", async || first.control().iter().any(|(kind, _)| *kind == '2')).await;
    let run_id = first.run_id.1.clone();
    // A client with a wrong token that logs in with the run id which the other one was given.
    let mut said = way("refused", 1, "client>server");
    let login = &mut said.frames[1];
    let (_, mut named) = messages(&login.data).remove(0);
    named["run_id"] = json!(run_id);
    login.data = message('o', &named);
    login.length = login.data.len() as u32;
    let mut guess = Again::begin_by(&world, "refused", 1, Default::default(), said).await;
    assert_eq!(guess.run_id.1, run_id, "a login alone gives nothing, and is not refused");
    guess.send(|_| true, usize::MAX).await;
    eventually("it is refused", async || guess.control().iter().any(|(kind, _)| *kind == '2')).await;
    let answers = guess.control();
    let refusal = answers.iter().find(|(kind, _)| *kind == '2').unwrap();
    assert_eq!(refusal.1["error"], "this token does not open account1-runtime1");
    assert_eq!(world.refused("credential"), 1);
    // Work connections that it offers by that run id are not those of the other one.
    for stream in [101, 103, 105] {
        let data = message('w', &json!({"run_id": run_id}));
        let length = data.len() as u32;
        write(&guess.writing, &Frame { kind: 0, flags: 1, stream, length, data }).await;
    }
    let _visitor = world.raw("GET /mine HTTP/1.1\r\nConnection: close\r\n\r\n").await;
    first.is_asked("GET /mine HTTP/1.1").await;
    let heard = guess.said.lock().unwrap();
    assert!(!heard.frames.iter().any(|frame| frame.data.windows(5).any(|part| part == b"/mine")));
    assert_eq!(world.refused("taken"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_has_not_logged_in_has_no_more_streams_kept_than_a_client_needs_by_then() {
    const STREAMS: u32 = 60;
    // Nobody is told to log in meanwhile.
    let world = World::with(|config| config.times.handshake = BOUND * 9).await;
    let mut io = connected(&world).await;
    for number in 0..STREAMS {
        let (flags, stream, data) = (1, 2 * number + 1, vec![b'o']);
        io.write_all(&bytes_of(&Frame { kind: 0, flags, stream, length: 1, data })).await.unwrap();
    }
    io.flush().await.unwrap();
    let (mut bytes, mut reset) = (Vec::new(), std::collections::HashSet::new());
    // The control stream, and as many work connections as wait for visitors.
    while reset.len() < STREAMS as usize - 6 - 1 {
        let read = tokio::time::timeout(BOUND, io.read_buf(&mut bytes)).await;
        assert!(read.expect("streams are refused").unwrap() > 0);
        let frames = std::iter::from_fn(|| frame(&mut bytes));
        reset.extend(frames.filter(|frame| frame.flags & 8 > 0).map(|frame| frame.stream));
    }
    assert!(!reset.contains(&1), "the control stream stays");
}

#[tokio::test]
async fn a_recorded_client_over_tcp_is_told_apart_and_closed_without_a_word() {
    let warnings = Warnings::default();
    let _listening = warnings.listen();
    let world = World::start().await;
    let with_tls = chunks("tcp-tls", 1, "client>server");
    assert_eq!(with_tls[0], [0x17], "the mark of the family before TLS");
    let without: Vec<_> = way("plain", 1, "client>server").frames.iter().take(2).map(bytes_of).collect();
    for (number, chunks) in [with_tls, without].iter().enumerate() {
        let mut stream = TcpStream::connect(world.address).await.unwrap();
        for chunk in chunks {
            // It may be closed before all is said.
            if stream.write_all(chunk).await.is_err() {
                break;
            }
        }
        let mut heard = Vec::new();
        let read = tokio::time::timeout(BOUND, stream.read_to_end(&mut heard)).await.unwrap();
        // What nobody read makes of the end a reset.
        let is_reset = |error: &std::io::Error| error.kind() == std::io::ErrorKind::ConnectionReset;
        assert!(read.as_ref().err().is_none_or(is_reset), "{read:?}");
        assert_eq!(heard, b"", "nothing is said to it");
        assert_eq!(world.refused("protocol"), number as u64 + 1);
        let said = "a client of the frp family came over TCP: let it use its protocol websocket, or wss peer=127.0.0.1";
        assert_eq!(warnings.said(), vec![said; number + 1]);
    }
    assert_eq!(world.answer("/").await, (404, "no tunnel is open for this host\n".to_owned()));
}

#[tokio::test]
async fn a_login_that_is_replayed_opens_nothing_takes_nothing_and_is_logged() {
    let warnings = Warnings::default();
    let _listening = warnings.listen();
    let world = World::start().await;
    let mut first = Again::begin(&world, "reconnect", 4).await;
    first.send(|_| true, 4).await;
    eventually("it is served", async || first.control().iter().any(|(kind, _)| *kind == '2')).await;
    // The login of the first one, byte by byte, by somebody who has no token.
    let mut said = way("refused", 1, "client>server");
    said.frames[1] = way("reconnect", 4, "client>server").frames[1].clone();
    let mut replayed = Again::begin_by(&world, "refused", 1, Default::default(), said).await;
    assert_eq!(replayed.run_id.1, first.run_id.1);
    replayed.send(|_| true, usize::MAX).await;
    eventually("it is refused", async || replayed.control().iter().any(|(kind, _)| *kind == '2')).await;
    let answers = replayed.control();
    let refusal = answers.iter().find(|(kind, _)| *kind == '2').unwrap();
    assert_eq!(refusal.1["error"], "this token does not open account1-runtime1");
    assert_eq!(world.refused("credential"), 1);
    let line =
        "a client of a tunnel was refused tunnel=account1-runtime1 peer=127.0.0.1 reason=\"credential\"";
    assert!(warnings.said().contains(&line.to_owned()), "{:?}", warnings.said());
    let _visitor = world.raw("GET /mine HTTP/1.1\r\nConnection: close\r\n\r\n").await;
    first.is_asked("GET /mine HTTP/1.1").await;
}
