//! What goes on after an upgrade: bytes either way, until one side ends it, nothing moves, or the process stops.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use pipeline_core::Shutdown;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, copy_bidirectional};

use crate::exchange::Exchange;
use crate::streamed::Flow;

/// Passes bytes on between a client and a service that have both left HTTP.
pub(crate) async fn pass(client: OnUpgrade, service: OnUpgrade, mut exchange: Exchange, cut: Shutdown) {
    let flow = exchange.flow.clone();
    let passing = async {
        let (client, service) = tokio::try_join!(client, service).map_err(io::Error::other)?;
        let mut client = CountedSide { io: TokioIo::new(client), flow: flow.clone(), from_client: true };
        let mut service = CountedSide { io: TokioIo::new(service), flow: flow.clone(), from_client: false };
        copy_bidirectional(&mut client, &mut service).await
    };
    tokio::select! {
        ended = passing => match ended {
            Ok(_) => exchange.complete(),
            Err(error) => tracing::debug!(%error, "an upgraded connection broke off"),
        },
        () = flow.moved.stale(flow.idle) => {}
        () = cut.cancelled() => {}
    }
}

/// One side of an upgraded connection; what is read from it is counted.
struct CountedSide {
    io: TokioIo<Upgraded>,
    flow: Arc<Flow>,
    from_client: bool,
}

impl AsyncRead for CountedSide {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let poll = Pin::new(&mut self.io).poll_read(context, buffer);
        let read = u64::try_from(buffer.filled().len() - before).unwrap_or(u64::MAX);
        if read > 0 {
            self.flow.moved.touch();
            let counter = if self.from_client { &self.flow.received } else { &self.flow.sent };
            counter.fetch_add(read, Ordering::Relaxed);
        }
        poll
    }
}

impl AsyncWrite for CountedSide {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}
