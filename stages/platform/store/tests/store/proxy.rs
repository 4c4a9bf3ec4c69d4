//! Stands between a store and Postgres, and forwards what it is to.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::postgres::Server;

/// When a connection falls silent by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
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
    /// The server says that it is of this version.
    version: Option<[u8; 2]>,
    /// How often what was prepared over every connection was forgotten.
    forgotten: u64,
}

/// Stands between a store and Postgres.
pub(crate) struct Proxy {
    pub(crate) url: String,
    line: watch::Sender<Line>,
    cut: Arc<Mutex<Option<Cut>>>,
    _accepting: JoinSet<()>,
}

impl Proxy {
    pub(crate) async fn start(server: &Server) -> Self {
        let database = server.database().await;
        let name = database.rsplit('/').next().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("postgres://test@{}/{name}?sslmode=disable", listener.local_addr().unwrap());
        let line = Line { age: 0, forwards: true, version: None, forgotten: 0 };
        let (line, cut) = (watch::Sender::new(line), Arc::default());
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, server.socket(), line.subscribe(), Arc::clone(&cut)));
        Self { url, line, cut, _accepting: accepting }
    }

    /// What is connected is silent from now on, and so is whoever connects until it forwards again.
    pub(crate) fn fall_silent(&self) {
        self.line.send_modify(|line| (line.age, line.forwards) = (line.age + 1, false));
    }

    pub(crate) fn forward(&self) {
        self.line.send_modify(|line| line.forwards = true);
    }

    /// Whoever connects from now on is told that the server is of this version.
    pub(crate) fn tell_version(&self, version: [u8; 2]) {
        self.line.send_modify(|line| line.version = Some(version));
    }

    /// What was prepared over a connection is not there when it is used next, as if another one had its place.
    pub(crate) fn forget(&self) {
        self.line.send_modify(|line| line.forgotten += 1);
    }

    pub(crate) fn cut(&self, at: Cut) {
        *self.cut.lock().unwrap() = Some(at);
    }

    pub(crate) fn is_cut(&self) -> bool {
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
    let Line { age, version, mut forgotten, .. } = *line.borrow();
    // Parts that the client sent since it named the statement: it is read first, and executed then.
    let (mut commits, mut is_answered) = (None, true);
    loop {
        tokio::select! {
            () = async { drop(line.wait_for(|line| line.age > age).await) } => break,
            said = part(&mut client) => {
                let Some(said) = said else { return };
                let now = line.borrow().forgotten;
                if now > forgotten {
                    forget(&mut server).await;
                    forgotten = now;
                }
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
                let Some(mut said) = said else { return };
                let name = b"server_version\0";
                let place = said.windows(name.len()).position(|part| part == name);
                if let (Some(place), Some(version)) = (place, version) {
                    said[place + name.len()..][..2].copy_from_slice(&version);
                }
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

/// Has the server forget what was prepared, before it is told more: it is at work at nothing then.
async fn forget(server: &mut UnixStream) {
    let sql = b"DEALLOCATE ALL\0";
    let length = u32::try_from(4 + sql.len()).unwrap().to_be_bytes();
    server.write_all(&[&b"Q"[..], &length[..], &sql[..]].concat()).await.unwrap();
    // Until it waits for more.
    loop {
        let kind = server.read_u8().await.unwrap();
        let length = server.read_u32().await.unwrap();
        server.read_exact(&mut vec![0; usize::try_from(length).unwrap() - 4]).await.unwrap();
        if kind == b'Z' {
            break;
        }
    }
}

/// What came; `None`: that end is closed.
async fn part(from: &mut (impl AsyncRead + Unpin)) -> Option<Vec<u8>> {
    let mut part = vec![0; 64 * 1024];
    let length = from.read(&mut part).await.unwrap_or(0);
    part.truncate(length);
    (length > 0).then_some(part)
}
