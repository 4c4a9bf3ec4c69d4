//! What goes on after an upgrade: bytes either way, until one side ends it, nothing moves, or the process stops.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use pipeline_core::Shutdown;
use tokio::io::copy_bidirectional;
use tokio_util::io::InspectReader;

use crate::exchange::Exchange;
use crate::streamed::Flow;

/// Passes bytes on between a client and a service that have both left HTTP.
pub(crate) async fn pass(client: OnUpgrade, service: OnUpgrade, mut exchange: Exchange, cut: Shutdown) {
    let flow = exchange.flow.clone();
    let passing = async {
        let (client, service) = tokio::try_join!(client, service).map_err(io::Error::other)?;
        let (client, service) = (TokioIo::new(client), TokioIo::new(service));
        let mut client = InspectReader::new(client, |read: &[u8]| count(&flow, &flow.received, read));
        let mut service = InspectReader::new(service, |read: &[u8]| count(&flow, &flow.sent, read));
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

/// Counts what was read of one side.
fn count(flow: &Flow, counter: &AtomicU64, read: &[u8]) {
    if !read.is_empty() {
        flow.moved.touch();
        counter.fetch_add(u64::try_from(read.len()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}
