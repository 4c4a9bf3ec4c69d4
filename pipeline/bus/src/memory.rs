//! A bus in the memory of one process: what is published is handed over as it is, without being written or read.
//!
//! takes: messages - gives: the same to each group that subscribed - calls: nothing - fails: when nobody subscribed, or
//! those who did are gone

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use pipeline_core::{Question, Questions, RequestError, Requests, Shutdown, bounded};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, timeout_at};

use crate::bus::{Bus, Delivered, Publishing};
use crate::{BusError, Durable, Keep, Message, Published};

/// Questions that wait for whoever serves a subject.
const QUESTIONS: usize = 64;

/// A bus in memory; cloning shares.
#[derive(Clone)]
pub struct Memory {
    inner: Arc<Inner>,
}

struct Inner {
    /// By source.
    consumers: Mutex<HashMap<String, Vec<Consumer>>>,
    served: Mutex<HashMap<String, Vec<mpsc::Sender<Question>>>>,
    /// It is never lost.
    made: watch::Sender<u64>,
}

struct Consumer {
    group: String,
    shard: Option<u32>,
    out: mpsc::Sender<Delivered>,
}

impl Default for Memory {
    fn default() -> Self {
        let (consumers, served) = (Mutex::default(), Mutex::default());
        Self { inner: Arc::new(Inner { consumers, served, made: watch::Sender::new(0) }) }
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Memory")
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl Bus for Memory {
    fn is_lossless(&self) -> bool {
        true
    }

    async fn ready(&self, _durables: Vec<Durable>) {}

    fn made(&self) -> watch::Receiver<u64> {
        self.inner.made.subscribe()
    }

    async fn publish(
        &self,
        source: &str,
        shard: u32,
        message: Message,
        _keep: Keep,
    ) -> Result<Publishing, BusError> {
        let outs: Vec<_> = {
            let consumers = locked(&self.inner.consumers);
            let of = consumers.get(source).into_iter().flatten();
            of.filter(|consumer| consumer.shard.is_none_or(|own| own == shard))
                .map(|consumer| consumer.out.clone())
                .collect()
        };
        let mut taken = false;
        let mut message = Some(Box::new(message));
        for (at, out) in outs.iter().enumerate() {
            // The last one gets it as it is.
            let message = if at + 1 == outs.len() { message.take() } else { message.clone() };
            let Some(message) = message else { break };
            taken |= out.send(Delivered::Message { message, again: false, acker: None }).await.is_ok();
        }
        if taken {
            Ok(std::future::ready(Ok(Published::Stored { sequence: 0, whole: true })).boxed())
        } else {
            Err(BusError::Gone { what: format!("consumer of {source}") })
        }
    }

    fn subscribe(&self, of: Durable, out: mpsc::Sender<Delivered>, stop: Shutdown) -> BoxFuture<'static, ()> {
        let Durable { group, source, shard } = of;
        let mut consumers = locked(&self.inner.consumers);
        let all = consumers.entry(source.clone()).or_default();
        // Whoever came before in this place is gone, or about to go.
        all.retain(|consumer| consumer.group != group || consumer.shard != shard);
        all.push(Consumer { group, shard, out: out.clone() });
        let leaving = Leaving { inner: self.inner.clone(), source, out };
        Box::pin(async move {
            stop.cancelled().await;
            drop(leaving);
        })
    }
}

/// Takes a consumer away, once nobody awaits it any more.
struct Leaving {
    inner: Arc<Inner>,
    source: String,
    out: mpsc::Sender<Delivered>,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        if let Some(all) = locked(&self.inner.consumers).get_mut(&self.source) {
            all.retain(|consumer| !consumer.out.same_channel(&self.out));
        }
    }
}

#[async_trait]
impl Requests for Memory {
    async fn request(&self, subject: &str, payload: Bytes, within: Duration) -> Result<Bytes, RequestError> {
        bounded(&payload)?;
        let until = Instant::now() + within;
        let no_answer = || RequestError::NoAnswer(subject.to_owned());
        loop {
            let served = {
                let mut served = locked(&self.inner.served);
                let all = served.get_mut(subject).into_iter().flatten();
                let open: Vec<_> = all.filter(|one| !one.is_closed()).map(|one| one.clone()).collect();
                open.get(fastrand::usize(..open.len().max(1))).cloned()
            };
            let served = served.ok_or_else(|| RequestError::NobodyServes(subject.to_owned()))?;
            let (reply, replied) = oneshot::channel();
            let question = Question::new(payload.clone(), move |answer| {
                // Whoever asked may be gone.
                let _ = reply.send(answer);
                std::future::ready(Ok(())).boxed()
            });
            match timeout_at(until, served.send(question)).await {
                Ok(Ok(())) => {}
                // It went away just now, before it was asked.
                Ok(Err(_)) => continue,
                Err(_) => return Err(no_answer()),
            }
            return timeout_at(until, replied).await.ok().and_then(Result::ok).ok_or_else(no_answer);
        }
    }

    async fn serve(&self, subject: &str) -> Result<Box<dyn Questions>, RequestError> {
        let (ask, asked) = mpsc::channel(QUESTIONS);
        let mut served = locked(&self.inner.served);
        let all = served.entry(subject.to_owned()).or_default();
        all.retain(|other| !other.is_closed());
        all.push(ask);
        Ok(Box::new(SubjectQuestions(asked)))
    }
}

struct SubjectQuestions(mpsc::Receiver<Question>);

#[async_trait]
impl Questions for SubjectQuestions {
    async fn next(&mut self) -> Option<Question> {
        self.0.recv().await
    }
}
