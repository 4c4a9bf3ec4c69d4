//! Connections that are busy, idle, old or silent, and who has their places.

use axum::body::{Body, Bytes};
use axum::routing::get;
use futures::{FutureExt as _, stream};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;

use super::*;

const DAY: Duration = Duration::from_secs(24 * 3600);
/// Time ends nothing.
const BOUNDS: Bounds =
    Bounds { head_timeout: DAY, connection_age: DAY, answer_age: DAY, grace: DAY, connections: 1 };
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";

/// Connections that a test hands over.
struct Handed(Mutex<mpsc::Receiver<DuplexStream>>);

impl Listen for Handed {
    type Stream = DuplexStream;

    async fn next(&self) -> io::Result<DuplexStream> {
        Ok(self.0.lock().await.recv().await.expect("the test holds the other end"))
    }
}

/// A server of one page.
struct Serving {
    hand: mpsc::Sender<DuplexStream>,
    stop: Shutdown,
    task: JoinHandle<()>,
}

impl Serving {
    fn new(page: axum::routing::MethodRouter, bounds: Bounds) -> Self {
        let (hand, handed) = mpsc::channel(1);
        let stop = Shutdown::new();
        let pages = Router::new().route("/", page);
        let task = tokio::spawn(serve(Handed(Mutex::new(handed)), pages, bounds, stop.clone()));
        Self { hand, stop, task }
    }

    /// A connection that holds so many bytes, on which something was said.
    async fn connected(&self, room: usize, said: &[u8]) -> DuplexStream {
        let (mut mine, theirs) = duplex(room);
        self.hand.send(theirs).await.unwrap();
        mine.write_all(said).await.unwrap();
        mine
    }

    async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

/// The beginning of an answer has come, however long it takes by the clock of the test.
async fn is_answered(stream: &mut DuplexStream) -> bool {
    let mut first = [0; 8];
    let answered = tokio::time::timeout(Duration::from_secs(3600), stream.read_exact(&mut first)).await;
    answered.is_ok_and(|read| read.is_ok())
}

/// Lines without an end, one a second.
fn lines() -> Body {
    Body::from_stream(stream::unfold((), async |()| {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Some((Ok::<_, io::Error>(Bytes::from_static(b"line\n")), ()))
    }))
}

/// After how many seconds what is followed breaks off, if it does in two hours.
async fn broke_off(stream: &mut DuplexStream) -> Option<u64> {
    let began = Instant::now();
    let mut some = [0; 256];
    while began.elapsed() < Duration::from_secs(7200) {
        if stream.read(&mut some).await.unwrap() == 0 {
            return Some(began.elapsed().as_secs());
        }
    }
    None
}

/// An answer that is on its way is no idle connection, however many want its place.
#[tokio::test]
async fn who_is_being_answered_keeps_its_place() {
    let released = Shutdown::new();
    let page = {
        let released = released.clone();
        get(async move || {
            released.cancelled().await;
            "done"
        })
    };
    let serving = Serving::new(page, Bounds { connections: 2, ..BOUNDS });
    let asked =
        async || serving.connected(1024, b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await;
    let (mut one, mut other, mut third) = (asked().await, asked().await, asked().await);
    released.cancel();
    for stream in [&mut one, &mut other, &mut third] {
        let mut answer = String::new();
        let read = tokio::time::timeout(Duration::from_secs(30), stream.read_to_string(&mut answer)).await;
        assert!(read.is_ok_and(|read| read.is_ok()) && answer.ends_with("done"), "{answer}");
    }
    serving.stop().await;
}

#[tokio::test]
async fn an_idle_connection_is_gone_before_another_one_has_its_place() {
    let serving = Serving::new(get(async || "done"), BOUNDS);
    // More than there is room for: the server has read of it. The rest of the head never comes.
    let mut idle = serving.connected(4, b"GET / HT").await;
    let mut next = serving.connected(1024, REQUEST).await;
    assert!(is_answered(&mut next).await, "the next one is not answered");
    assert!(matches!(idle.read(&mut [0]).now_or_never(), Some(Ok(0))), "both are there");
    drop(next);
    serving.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_nothing_of_its_answer_keeps_nobody_out() {
    let piece = || Ok::<_, io::Error>(Bytes::from_static(&[b'a'; 1 << 16]));
    let endless = move || Body::from_stream(stream::repeat_with(piece));
    let serving = Serving::new(get(async move || endless()), BOUNDS);
    let mut silent = serving.connected(16, REQUEST).await;
    assert!(is_answered(&mut silent).await);
    let mut next = serving.connected(1024, REQUEST).await;
    assert!(is_answered(&mut next).await, "the next one is not answered");
    drop((silent, next));
    serving.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_followed_goes_on_beyond_the_age_of_its_connection_and_ends_with_its_own() {
    for (answer_age, ended) in [(DAY, None), (Duration::from_secs(3600), Some(300 + 3600))] {
        let bounds = Bounds { connection_age: Duration::from_secs(300), answer_age, ..BOUNDS };
        let serving = Serving::new(get(async || lines()), bounds);
        let mut following = serving.connected(1024, REQUEST).await;
        assert_eq!(broke_off(&mut following).await, ended);
        drop(following);
        serving.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_followed_on_an_old_connection_ends_within_the_grace_of_a_stop() {
    let bounds = Bounds { connection_age: Duration::from_secs(300), grace: Duration::from_secs(5), ..BOUNDS };
    let serving = Serving::new(get(async || lines()), bounds);
    let mut following = serving.connected(1024, REQUEST).await;
    let stopped = async {
        tokio::time::sleep(Duration::from_secs(1000)).await;
        serving.stop.cancel();
    };
    let (ended, ()) = tokio::join!(broke_off(&mut following), stopped);
    assert_eq!(ended, Some(1005));
    serving.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_old_connection_is_closed_with_its_next_answer_and_not_while_it_may_be_asked() {
    let bounds = Bounds {
        head_timeout: crate::serve::ServeConfig::new("", "").head_timeout,
        connection_age: Duration::from_secs(300),
        answer_age: Duration::from_secs(300),
        ..BOUNDS
    };
    let serving = Serving::new(get(async || "done"), bounds);
    let mut kept = serving.connected(1024, REQUEST).await;
    assert!(is_answered(&mut kept).await);
    // As long as Envoy keeps it.
    tokio::time::sleep(Duration::from_secs(3600)).await;
    kept.write_all(REQUEST).await.unwrap();
    let mut both = String::new();
    kept.read_to_string(&mut both).await.unwrap();
    assert!(both.contains("connection: close") && both.ends_with("done"), "{both}");
    serving.stop().await;
}

/// As on the admin server: whoever asks each second is not cut off within an answer.
#[tokio::test(start_paused = true)]
async fn an_old_connection_whose_answers_have_no_time_left_ends_at_its_age_also_while_it_is_idle() {
    for page in [get(async || "done"), get(async || lines())] {
        let bounds =
            Bounds { connection_age: Duration::from_secs(300), answer_age: Duration::ZERO, ..BOUNDS };
        let serving = Serving::new(page, bounds);
        let mut kept = serving.connected(1024, REQUEST).await;
        assert_eq!(broke_off(&mut kept).await, Some(300));
        drop(kept);
        serving.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_answered_on_an_old_connection_has_its_time_however_long_the_answer_before_took() {
    // Each answer begins at once, and ends after 400 seconds.
    let slow = || {
        Body::from_stream(stream::once(async {
            tokio::time::sleep(Duration::from_secs(400)).await;
            Ok::<_, io::Error>(Bytes::from_static(b"done"))
        }))
    };
    let age = Duration::from_secs(300);
    let bounds = Bounds { connection_age: age, answer_age: age, ..BOUNDS };
    let serving = Serving::new(get(async move || slow()), bounds);
    // Both are asked at once, and answered one after the other: until 400 and 800 seconds.
    let mut asking = serving.connected(1024, &[REQUEST, REQUEST].concat()).await;
    let mut both = String::new();
    asking.read_to_string(&mut both).await.unwrap();
    assert_eq!(both.matches("done").count(), 2, "{both}");
    serving.stop().await;
}
