//! Visitors who come at a steady rate.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use loadtest_sim::local_client;
use reqwest::{Client, RequestBuilder};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use super::world::{ANSWER, HOST, PATH};

/// One request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Visit {
    pub(super) begun: Instant,
    pub(super) took: Duration,
    /// It was answered, in time, with what the service says.
    pub(super) is_answered: bool,
}

/// Visitors under way.
pub(super) struct Visits {
    all: Arc<Mutex<Vec<Visit>>>,
    coming: JoinHandle<()>,
    stop: CancellationToken,
}

impl Visits {
    /// So many come a second, each by a connection of its own; one that takes longer than `longest` gives up.
    pub(super) fn begin(entrance: u16, rate: u32, longest: Duration) -> anyhow::Result<Self> {
        let request = request(&client()?, entrance);
        let (all, stop) = (Arc::default(), CancellationToken::new());
        let coming = tokio::spawn(come(request, rate, longest, Arc::clone(&all), stop.clone()));
        Ok(Self { all, coming, stop })
    }

    /// Lets nobody come any more, and waits for those who are there.
    pub(super) async fn end(self) -> Vec<Visit> {
        self.stop.cancel();
        // A visitor who panics has no visit: the count of requests is too low then.
        let _ = self.coming.await;
        std::mem::take(&mut *self.all.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Asks each time by a connection of its own.
pub(super) fn client() -> anyhow::Result<Client> {
    local_client().pool_max_idle_per_host(0).build().context("make a client")
}

/// What visitors ask.
pub(super) fn request(client: &Client, entrance: u16) -> RequestBuilder {
    client.get(format!("http://127.0.0.1:{entrance}{PATH}")).header("host", HOST)
}

/// Whether it is answered as the service answers.
pub(super) async fn is_answered(request: RequestBuilder) -> bool {
    match request.send().await {
        Ok(answer) => answer.status() == 200 && answer.text().await.is_ok_and(|text| text == ANSWER),
        Err(_) => false,
    }
}

async fn come(
    request: RequestBuilder,
    rate: u32,
    longest: Duration,
    all: Arc<Mutex<Vec<Visit>>>,
    stop: CancellationToken,
) {
    let mut ticks = interval(Duration::from_secs(1) / rate);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut running = JoinSet::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            _ = ticks.tick() => {}
        }
        // A GET without a body can always be made again.
        let Some(request) = request.try_clone() else { break };
        let all = Arc::clone(&all);
        running.spawn(async move {
            let begun = Instant::now();
            let is_answered = timeout(longest, is_answered(request)).await.unwrap_or(false);
            let visit = Visit { begun, took: begun.elapsed(), is_answered };
            all.lock().unwrap_or_else(PoisonError::into_inner).push(visit);
        });
        while running.try_join_next().is_some() {}
    }
    running.join_all().await;
}
