//! One name for several processes, as a Service of Kubernetes is.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// The ports behind one port. A connection goes to the first that takes it, beginning with another each time.
#[derive(Debug, Clone)]
pub(super) struct Backends {
    pub(super) port: u16,
    ports: Arc<Mutex<Vec<u16>>>,
    /// How often the network has forgotten its connections.
    silent: watch::Sender<u64>,
}

impl Backends {
    /// Listens; there is nobody behind it yet.
    pub(super) async fn listen() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("listen on loopback")?;
        let port = listener.local_addr().context("listen on loopback")?.port();
        let backends = Self { port, ports: Arc::default(), silent: watch::Sender::new(0) };
        tokio::spawn(backends.clone().serve(listener));
        Ok(backends)
    }

    /// New connections may go there.
    pub(super) fn add(&self, port: u16) {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner).push(port);
    }

    /// No new connection goes there.
    pub(super) fn remove(&self, port: u16) {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner).retain(|one| *one != port);
    }

    /// What is connected now carries nothing any more, and neither side is told so; what connects later is carried.
    pub(super) fn silence(&self) {
        self.silent.send_modify(|times| *times += 1);
    }

    async fn serve(self, listener: TcpListener) {
        let mut turn = 0_usize;
        while let Ok((mut near, _)) = listener.accept().await {
            turn = turn.wrapping_add(1);
            let mut ports = self.ports.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let first = turn.checked_rem(ports.len()).unwrap_or(0);
            ports.rotate_left(first);
            let mut silent = self.silent.subscribe();
            tokio::spawn(async move {
                for port in ports {
                    if let Ok(mut far) = TcpStream::connect(("127.0.0.1", port)).await {
                        tokio::select! {
                            // Either side may end it in the middle.
                            _ = copy_bidirectional(&mut near, &mut far) => return,
                            Ok(()) = silent.changed() => {}
                        }
                        // Both connections stay open, and nobody reads them.
                        return std::future::pending().await;
                    }
                }
            });
        }
    }
}
