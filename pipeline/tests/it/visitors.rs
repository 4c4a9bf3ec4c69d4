//! Visitors who ask all the time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use reqwest::{Client, RequestBuilder};
use tokio::task::JoinHandle;

use crate::runtime::{eventually, http_client};

/// Visitors who ask, each again once it was answered, until they are stopped.
pub(crate) struct Visitors {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
    tasks: Vec<JoinHandle<Vec<String>>>,
}

impl Visitors {
    /// So many, each with connections of its own, ask for this; they are to be answered `ok`.
    pub(crate) fn start(number: usize, request: impl Fn(&Client) -> RequestBuilder) -> Self {
        let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let visitor = |_| tokio::spawn(visit(request(&http_client()), stop.clone(), answered.clone()));
        let tasks = (0..number).map(visitor).collect();
        Self { stop, answered, tasks }
    }

    /// Waits until some more were answered.
    pub(crate) async fn go_on(&self) {
        let before = self.answered.load(Ordering::SeqCst);
        eventually("visitors are answered", || self.answered.load(Ordering::SeqCst) >= before + 40).await;
    }

    /// Stops them; gives what they were told instead of an answer.
    pub(crate) async fn failed(self) -> Vec<String> {
        self.stop.store(true, Ordering::SeqCst);
        let mut failed = Vec::new();
        for task in self.tasks {
            failed.extend(task.await.unwrap());
        }
        failed
    }
}

async fn visit(request: RequestBuilder, stop: Arc<AtomicBool>, answered: Arc<AtomicU64>) -> Vec<String> {
    let mut failed = Vec::new();
    while !stop.load(Ordering::SeqCst) {
        match request.try_clone().unwrap().send().await {
            Ok(answer) if answer.status() == 200 => {
                assert_eq!(answer.text().await.unwrap(), "ok", "what is answered is the whole of it");
                answered.fetch_add(1, Ordering::SeqCst);
                continue;
            }
            Ok(answer) => {
                failed.push(format!("{} {}", answer.status(), answer.text().await.unwrap_or_default()));
            }
            Err(error) => failed.push(error.to_string()),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    failed
}
