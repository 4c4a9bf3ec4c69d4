//! A Postgres that falls silent, as one whose host is gone or cut off: no connection ends, and nothing is answered any more.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pipeline_core::Shutdown;
use stages_platform_store::{Delivery, Limits, Outcome, Place, Sequence, StoreError};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::postgres::Server;
use crate::support::{KEEP_ALL, Opened, digest, open_within, report};

/// Within this time all is well again, on a machine however busy.
const PATIENCE: Duration = Duration::from_secs(120);
const LIMITS: Limits = Limits { statement: Duration::from_secs(1), answer: Duration::from_secs(3) };

/// When a connection falls silent by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// Before the server is told to commit,
    BeforeCommit,
    /// and when it has committed, before it says so.
    BeforeAnswer,
}

/// What comes and goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Line {
    /// A connection of an earlier age is silent for ever: neither end is told anything of the other, not even that it has gone.
    age: u64,
    /// New connections are forwarded.
    forwards: bool,
}

/// Stands between a store and Postgres.
struct Proxy {
    url: String,
    line: watch::Sender<Line>,
    cut: Arc<Mutex<Option<Cut>>>,
    _accepting: JoinSet<()>,
}

impl Proxy {
    async fn start(server: &Server) -> Self {
        let database = server.database().await;
        let name = database.rsplit('/').next().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("postgres://test@{}/{name}?sslmode=disable", listener.local_addr().unwrap());
        let (line, cut) = (watch::Sender::new(Line { age: 0, forwards: true }), Arc::default());
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, server.socket(), line.subscribe(), Arc::clone(&cut)));
        Self { url, line, cut, _accepting: accepting }
    }

    /// What is connected is silent from now on, and so is whoever connects until it forwards again.
    fn fall_silent(&self) {
        self.line.send_modify(|line| *line = Line { age: line.age + 1, forwards: false });
    }

    fn forward(&self) {
        self.line.send_modify(|line| line.forwards = true);
    }

    fn cut(&self, at: Cut) {
        *self.cut.lock().unwrap() = Some(at);
    }

    fn is_cut(&self) -> bool {
        self.cut.lock().unwrap().is_none()
    }
}

async fn accept(
    listener: TcpListener,
    socket: PathBuf,
    line: watch::Receiver<Line>,
    cut: Arc<Mutex<Option<Cut>>>,
) {
    let mut connections = JoinSet::new();
    loop {
        let (client, _) = listener.accept().await.unwrap();
        let (socket, mut line, cut) = (socket.clone(), line.clone(), Arc::clone(&cut));
        connections.spawn(async move {
            line.wait_for(|line| line.forwards).await.unwrap();
            let server = UnixStream::connect(socket).await.unwrap();
            forward(client, server, line, cut).await;
        });
    }
}

async fn forward(
    mut client: TcpStream,
    mut server: UnixStream,
    mut line: watch::Receiver<Line>,
    cut: Arc<Mutex<Option<Cut>>>,
) {
    let age = line.borrow().age;
    // Parts that the client sent since it named the statement: it is read first, and executed then.
    let (mut commits, mut is_answered) = (None, true);
    loop {
        tokio::select! {
            () = async { drop(line.wait_for(|line| line.age > age).await) } => break,
            said = part(&mut client) => {
                let Some(said) = said else { return };
                if said.windows(7).any(|part| part == b"COMMIT\0") {
                    commits = cut.lock().unwrap().take();
                    if commits == Some(Cut::BeforeCommit) {
                        break;
                    }
                } else if commits.is_some() {
                    is_answered = false;
                }
                let _ = server.write_all(&said).await;
            }
            said = part(&mut server) => {
                let Some(said) = said else { return };
                if !is_answered {
                    break;
                }
                let _ = client.write_all(&said).await;
            }
        }
    }
    // Both stay open.
    std::future::pending::<()>().await;
}

/// What came; `None`: that end is closed.
async fn part(from: &mut (impl AsyncRead + Unpin)) -> Option<Vec<u8>> {
    let mut part = vec![0; 64 * 1024];
    let length = from.read(&mut part).await.unwrap_or(0);
    part.truncate(length);
    (length > 0).then_some(part)
}

fn delivery(opened: &Opened, key: &str, version: i64) -> Delivery {
    let (key, report) = (digest(key), report("u", version, version));
    Delivery { runtime: opened.runtime.id, key, keyed: true, epoch: None, report }
}

/// Sends a report until it is acknowledged.
async fn until_kept(opened: &Opened, key: &str, version: i64) -> Outcome {
    let again = async {
        loop {
            match opened.store.keep(vec![delivery(opened, key, version)]).await {
                Ok(outcomes) => break outcomes[0],
                Err(error) => assert!(matches!(*error, StoreError::Away(_)), "{error:?}"),
            }
        }
    };
    tokio::time::timeout(PATIENCE, again).await.expect("it is kept when the server answers again")
}

async fn fails(asked: impl Future<Output = bool>, what: &str) {
    let failed = tokio::time::timeout(PATIENCE, asked).await;
    assert!(failed.expect(what), "{what}");
}

#[tokio::test]
async fn a_server_that_falls_silent_is_waited_for_so_long_and_used_again() {
    let server = Server::start().await;
    let proxy = Proxy::start(&server).await;
    let opened = open_within(&Place::Postgres(proxy.url.clone()), KEEP_ALL, LIMITS).await;
    let sequence = Sequence::new(opened.store.clone());
    let (stop, mut newest) = (Shutdown::new(), sequence.newest());
    let following = tokio::spawn({
        let stop = stop.clone();
        async move { sequence.follow(stop).await }
    });

    // The server has the transaction open, with the lock of all writers, and hears nothing more.
    proxy.cut(Cut::BeforeCommit);
    let kept = async { opened.store.keep(vec![delivery(&opened, "a", 1)]).await.is_err() };
    fails(kept, "what is not committed is not acknowledged").await;
    assert!(proxy.is_cut() && !opened.store.is_writable());
    assert_eq!(until_kept(&opened, "a", 1).await, Outcome::Kept);

    // All of it, whoever reads or follows what is new as well.
    let before = u64::try_from(opened.store.sequence().await.unwrap()).unwrap();
    drop(newest.wait_for(|newest| *newest == before).await.unwrap());
    proxy.fall_silent();
    let kept = async { opened.store.keep(vec![delivery(&opened, "b", 2)]).await.is_err() };
    fails(kept, "nobody acknowledges it").await;
    let read =
        async { opened.store.timeline(opened.runtime.id, ("argocd", "shop"), i64::MAX, 1).await.is_err() };
    fails(read, "nobody answers").await;
    proxy.forward();

    // The commit is done, and nobody is told.
    proxy.cut(Cut::BeforeAnswer);
    assert_eq!(until_kept(&opened, "b", 2).await, Outcome::Repeated, "it was kept once");
    assert!(proxy.is_cut());
    let more = tokio::time::timeout(PATIENCE, newest.wait_for(|newest| *newest > before)).await;
    more.expect("whoever follows goes on").unwrap();
    assert_eq!(opened.versions().await, (vec![1, 2], 2));
    stop.cancel();
    following.await.unwrap();
    opened.close().await;
}
