//! One listening HTTP server, with or without TLS, that can go down and come up at the same address.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Poller, Poll};

use anyhow::Context as _;
use axum::Router;
use axum::serve::Listener;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Where and how a simulator listens.
#[derive(Debug, Clone)]
pub struct Listen {
    /// Address; port 0 takes a free one.
    pub address: SocketAddr,
    /// TLS, or plain HTTP.
    pub tls: Option<Arc<ServerConfig>>,
}

impl Default for Listen {
    fn default() -> Self {
        Self { address: SocketAddr::from(([127, 0, 0, 1], 0)), tls: None }
    }
}

impl Listen {
    /// Plain HTTP on this loopback port.
    #[must_use]
    pub fn port(port: u16) -> Self {
        Self { address: SocketAddr::from(([127, 0, 0, 1], port)), tls: None }
    }

    /// With TLS.
    #[must_use]
    pub fn with_tls(mut self, tls: Arc<ServerConfig>) -> Self {
        self.tls = Some(tls);
        self
    }
}

/// A server that runs until it is dropped or stopped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    /// Bound and not listening, so that nobody else is given the port while it is down.
    _held: TcpSocket,
    tls: Option<Arc<ServerConfig>>,
    router: Router,
    running: Mutex<Option<Running>>,
}

#[derive(Debug)]
struct Running {
    stop: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Server {
    /// Starts it.
    pub async fn start(router: Router, listen: Listen) -> anyhow::Result<Self> {
        let held = hold(listen.address).with_context(|| format!("listen on {}", listen.address))?;
        let address = held.local_addr().context("ask for the address")?;
        let running = run(bind(address).await?, address, listen.tls.clone(), router.clone());
        Ok(Self { address, _held: held, tls: listen.tls, router, running: Mutex::new(Some(running)) })
    }

    /// Its address, as `http://127.0.0.1:1234`.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Stops listening and breaks every connection.
    pub async fn down(&self) {
        let running = self.running.lock().await.take();
        if let Some(mut running) = running {
            running.stop.cancel();
            for task in running.tasks.drain(..) {
                // A task that was cancelled has nothing to tell.
                let _ = task.await;
            }
        }
    }

    /// Listens again at the same address.
    pub async fn up(&self) -> anyhow::Result<()> {
        self.down().await;
        let listener = bind(self.address).await?;
        let running = run(listener, self.address, self.tls.clone(), self.router.clone());
        *self.running.lock().await = Some(running);
        Ok(())
    }
}

/// Serves on a free port of loopback for as long as this program runs; gives the address, as `http://127.0.0.1:1234`.
pub async fn serve(router: Router) -> anyhow::Result<String> {
    let listener = bind(Listen::default().address).await?;
    let address = listener.local_addr().context("ask for the address")?;
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(format!("http://{address}"))
}

/// Takes a port beside which one may listen.
fn hold(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

async fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("listen on {address}"))
}

fn run(
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<Arc<ServerConfig>>,
    router: Router,
) -> Running {
    let stop = CancellationToken::new();
    let (ready, accepted) = mpsc::channel(64);
    let connections = Connections { accepted, address };
    let accepting = tokio::spawn(accept(listener, tls.map(TlsAcceptor::from), ready, stop.clone()));
    let signal = stop.clone().cancelled_owned();
    let serving = tokio::spawn(async move {
        // Serving ends with the signal alone; its result says nothing.
        let _ = axum::serve(connections, router).with_graceful_shutdown(signal).await;
    });
    Running { stop, tasks: vec![accepting, serving] }
}

async fn accept(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    ready: mpsc::Sender<Connection>,
    stop: CancellationToken,
) {
    loop {
        let stream = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(_) => {
                    tokio::task::yield_now().await;
                    continue;
                }
            },
        };
        // Small answers are not to wait for an acknowledgement.
        let _ = stream.set_nodelay(true);
        let (tls, ready, stop) = (tls.clone(), ready.clone(), stop.clone());
        tokio::spawn(async move {
            let io = match tls {
                None => Io::Plain(stream),
                Some(tls) => tokio::select! {
                    () = stop.cancelled() => return,
                    shaken = tls.accept(stream) => match shaken {
                        Ok(stream) => Io::Tls(Box::new(stream)),
                        Err(_) => return,
                    },
                },
            };
            let dead = Box::pin(stop.cancelled_owned());
            // Nobody takes connections any more when the server is going down.
            let _ = ready.send(Connection { io, dead }).await;
        });
    }
}

struct Connections {
    accepted: mpsc::Receiver<Connection>,
    address: SocketAddr,
}

impl Listener for Connections {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        match self.accepted.recv().await {
            Some(connection) => (connection, self.address),
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}

/// A connection that dies with its server.
struct Connection {
    io: Io,
    dead: Pin<Box<WaitForCancellationFutureOwned>>,
}

enum Io {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Connection {
    fn alive(&mut self, poller: &mut Poller<'_>) -> io::Result<()> {
        match self.dead.as_mut().poll(poller) {
            Poll::Ready(()) => Err(io::ErrorKind::ConnectionAborted.into()),
            Poll::Pending => Ok(()),
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        poller: &mut Poller<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.alive(poller)?;
        match &mut self.io {
            Io::Plain(stream) => Pin::new(stream).poll_read(poller, buffer),
            Io::Tls(stream) => Pin::new(stream).poll_read(poller, buffer),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        poller: &mut Poller<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.alive(poller)?;
        match &mut self.io {
            Io::Plain(stream) => Pin::new(stream).poll_write(poller, bytes),
            Io::Tls(stream) => Pin::new(stream).poll_write(poller, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        poller: &mut Poller<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.alive(poller)?;
        match &mut self.io {
            Io::Plain(stream) => Pin::new(stream).poll_write_vectored(poller, parts),
            Io::Tls(stream) => Pin::new(stream).poll_write_vectored(poller, parts),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.io {
            Io::Plain(stream) => stream.is_write_vectored(),
            Io::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<io::Result<()>> {
        match &mut self.io {
            Io::Plain(stream) => Pin::new(stream).poll_flush(poller),
            Io::Tls(stream) => Pin::new(stream).poll_flush(poller),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, poller: &mut Poller<'_>) -> Poll<io::Result<()>> {
        match &mut self.io {
            Io::Plain(stream) => Pin::new(stream).poll_shutdown(poller),
            Io::Tls(stream) => Pin::new(stream).poll_shutdown(poller),
        }
    }
}
