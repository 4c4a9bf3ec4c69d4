//! The bus that [`JetStream`] is: messages become bytes, what is lost is made anew, and what cannot be read is kept aside.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use pipeline_core::{Hasher, Shutdown, Timestamp};
use tokio::sync::{mpsc, watch};

use super::{
    BusError, Deliveries, Delivery, Difference, Durable, JetStream, Lives, Making, Standing, StreamPosition,
    Unread,
};
use crate::bus::{Acker, Bus, Delivered, Publishing};
use crate::{DecodeError, Keep, Message, Payload, Subject};

/// Between tries to make what is not there.
const AGAIN: Duration = Duration::from_secs(1);

#[async_trait]
impl Bus for JetStream {
    fn is_lossless(&self) -> bool {
        false
    }

    async fn ready(&self, durables: Vec<Durable>) {
        let mut making = self.inner.making.lock().await;
        making.durables = durables;
        let standing = self.ensured(&making.durables).await;
        self.inner.reached.heed(&standing.reached, None);
        self.lives(&mut making, standing.lives);
    }

    fn made(&self) -> watch::Receiver<u64> {
        self.inner.made.subscribe()
    }

    async fn make_anew(&self, seen: u64) {
        let mut making = self.inner.making.lock().await;
        if *self.inner.made.borrow() != seen {
            return;
        }
        let standing = self.ensured(&making.durables).await;
        self.heed(&mut making, standing);
    }

    async fn look(&self) {
        let mut making = self.inner.making.lock().await;
        match self.walk(&making.durables, true).await {
            // It is waited for by whoever consumes.
            Ok((ensured, _)) if ensured.differences.iter().any(Difference::is_lack_of_durable) => {}
            Ok((_, standing)) => self.heed(&mut making, standing),
            Err(error) => {
                tracing::debug!(error = &error as &dyn std::error::Error, "cannot look at the bus now");
            }
        }
    }

    fn is_connected(&self) -> bool {
        Self::is_connected(self)
    }

    async fn publish(
        &self,
        source: &str,
        shard: u32,
        message: Message,
        keep: Keep,
    ) -> Result<Publishing, BusError> {
        let subject = Subject::of(source, shard, &message, keep);
        let sent = self.send(&subject, &message).await?;
        Ok(Box::pin(sent.answer()))
    }

    async fn discard_reports(&self) -> Result<Option<u64>, BusError> {
        Self::discard_reports(self).await
    }

    fn subscribe(&self, of: Durable, out: mpsc::Sender<Delivered>, stop: Shutdown) -> BoxFuture<'static, ()> {
        Box::pin(feed(self.clone(), of, out, stop))
    }

    fn publishes_in(&self, epoch: u64) {
        self.inner.reached.publishes_in(epoch);
        self.inner.epoch.store(epoch, Ordering::Relaxed);
    }

    fn knows_epoch(&self, epoch: u64) {
        self.newest(epoch);
    }

    fn ack_wait(&self) -> Option<Duration> {
        Some(self.inner.config.ack_wait)
    }

    async fn flush(&self, patience: Duration) -> Result<(), BusError> {
        Self::flush(self, patience).await
    }
}

impl JetStream {
    /// Makes what is absent, trying until the server answers and all of it is there, and says what differs. Where a stream
    /// of somebody else holds the subjects nothing could be consumed: it waits until a person has made room. What the server refuses
    /// is said once, until it refuses something else: it may do so for ever.
    async fn ensured(&self, durables: &[Durable]) -> Standing {
        let (mut said, mut refused) = (Vec::new(), String::new());
        loop {
            match self.walk(durables, true).await {
                Ok((ensured, standing)) => {
                    let differences = ensured.differences;
                    for difference in differences.iter().filter(|difference| !said.contains(*difference)) {
                        tracing::warn!(%difference, "the bus is not as the settings say; nobody changes it but you");
                    }
                    if !differences.iter().any(Difference::is_lack_of_durable) {
                        return standing;
                    }
                    said = differences;
                    tokio::time::sleep(AGAIN).await;
                }
                Err(error) => {
                    // With what is behind it, which its own text leaves out.
                    let why = format!("{error:?}");
                    let is_news = !matches!(error, BusError::Away | BusError::NoAnswer) && why != refused;
                    if is_news {
                        tracing::warn!(
                            error = &error as &dyn std::error::Error,
                            "the streams of the bus cannot be made as the settings say; trying on"
                        );
                        refused = why;
                    } else {
                        tracing::debug!(
                            error = &error as &dyn std::error::Error,
                            "cannot look at the bus yet"
                        );
                    }
                    tokio::time::sleep(AGAIN).await;
                }
            }
        }
    }

    /// Compares what stands there with what did: where something was lost, whether it was made anew, by whomever, or a stream has not
    /// its end any more, all in this process hear it, once.
    fn heed(&self, making: &mut Making, Standing { lives, reached }: Standing) {
        let made_anew = making.lives != lives;
        let same = |stream: &str| {
            let what = format!("stream {stream}");
            making.lives.get(&what).is_some_and(|made| lives.get(&what) == Some(made))
        };
        let back = self.inner.reached.heed(&reached, made_anew.then_some(&same as &dyn Fn(&str) -> bool));
        if made_anew {
            self.lives(making, lives);
            tracing::warn!(
                "the bus lost its stream or a durable, which was made anew: whoever watches lists and publishes everything \
                 again, and whoever has shards compares them with the cluster"
            );
        }
        for stream in &back {
            tracing::warn!(
                stream,
                "the bus lost the end of its stream, which it had acknowledged: whoever watches lists and publishes everything \
                 again, and whoever has shards compares them with the cluster"
            );
        }
        if made_anew || !back.is_empty() {
            self.inner.made.send_modify(|made| *made += 1);
        }
    }

    /// A publish found a stream. Where that went back it is looked whether it was made anew, or anything else was: that is one loss.
    pub(super) fn found(&self, found: StreamPosition) {
        if self.inner.reached.went_back(&found) {
            let bus = self.clone();
            // Whoever awaits the answer may itself hold up what is made anew.
            tokio::spawn(async move { bus.look_since(found).await });
        }
    }

    async fn look_since(&self, found: StreamPosition) {
        let mut making = self.inner.making.lock().await;
        // Many answers say the same.
        if !self.inner.reached.went_back(&found) {
            return;
        }
        let mut standing = match self.walk(&making.durables, true).await {
            Ok((ensured, standing)) if !ensured.differences.iter().any(Difference::is_lack_of_durable) => {
                standing
            }
            // It is heard all the same, and what else was lost when it can be looked at.
            _ => Standing { lives: making.lives.clone(), reached: Vec::new() },
        };
        standing.reached.push(found);
        self.heed(&mut making, standing);
    }

    /// A message says how many ends its publisher found lost. Gives whether that is news, which all in this process hear; where
    /// one of these was found here as well they hear of it twice, and compare once more.
    pub(super) fn hear(&self, stream: &str, delivery: &Delivery) -> bool {
        let of = (delivery.epoch, delivery.lost_ends);
        let is_news = self.inner.reached.hear(stream, delivery.sequence, of);
        if is_news {
            tracing::info!(
                stream,
                "whoever publishes found that the bus lost the end of its stream: whoever has shards compares them with the cluster"
            );
            self.inner.made.send_modify(|made| *made += 1);
        }
        is_news
    }

    fn lives(&self, making: &mut Making, lives: Lives) {
        let mut life = Hasher::default();
        for (name, made) in &lives {
            life.write(name.as_bytes());
            life.write(&made.to_be_bytes());
        }
        self.inner.life.store(life.finish().0, Ordering::Relaxed);
        making.lives = lives;
    }

    /// The highest epoch of a publisher that is known of, with this one.
    fn newest(&self, epoch: u64) -> u64 {
        self.inner.newest.fetch_max(epoch, Ordering::Relaxed).max(epoch)
    }
}

/// Delivers until `stop`, whatever is lost meanwhile.
async fn feed(bus: JetStream, of: Durable, out: mpsc::Sender<Delivered>, stop: Shutdown) {
    while !stop.is_cancelled() {
        let seen = *bus.inner.made.borrow();
        let end = match bus.consume(&of, stop.clone()) {
            Ok(mut deliveries) => pass_on(&bus, &mut deliveries, &out).await,
            Err(error) => Some(error),
        };
        let Some(error) = end else { return };
        let work = async {
            if matches!(error, BusError::Gone { .. }) {
                bus.make_anew(seen).await;
            } else {
                tracing::warn!(
                    shard = of.shard,
                    error = &error as &dyn std::error::Error,
                    "cannot consume from the bus"
                );
                tokio::time::sleep(AGAIN).await;
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = work => {}
        }
    }
}

/// Passes on until whoever takes it or the deliveries end; gives why, if that was not asked for.
async fn pass_on(
    bus: &JetStream,
    deliveries: &mut Deliveries,
    out: &mpsc::Sender<Delivered>,
) -> Option<BusError> {
    while let Some(next) = deliveries.next().await {
        let delivery = match next {
            Ok(delivery) => delivery,
            Err(error) => return Some(error),
        };
        bus.hear(&deliveries.stream, &delivery);
        for delivered in read(bus, delivery).await {
            out.send(delivered).await.ok()?;
        }
    }
    None
}

/// What a delivery says.
pub(super) async fn read(bus: &JetStream, delivery: Delivery) -> Vec<Delivered> {
    let Delivery { message, sequence, epoch, redelivered, unread, acker, .. } = delivery;
    match (message, unread) {
        (Ok(message), _) => {
            let whole = !matches!(message.payload, Payload::Overlarge { .. });
            // One that was delivered before, to this process or the shard's former owner, or that a former publisher sent
            // late, may be of a life that is over and forgotten: the cluster knows.
            let again = !whole || redelivered || epoch < bus.newest(epoch);
            vec![Delivered::Message { message: Box::new(message), again, acker: Some(acker) }]
        }
        (Err(why), Some(unread)) => set_aside(bus, sequence, (unread, why), acker).await,
        (Err(_), None) => Vec::new(),
    }
}

/// Keeps a message aside. Where its headers name an object that is read again: whatever it said, the cluster says it too.
async fn set_aside(
    bus: &JetStream,
    sequence: u64,
    (unread, why): (Unread, DecodeError),
    acker: Arc<dyn Acker>,
) -> Vec<Delivered> {
    if let Err(error) = bus.set_aside(sequence, unread.bytes).await {
        let error: &dyn std::error::Error = &error;
        tracing::debug!(sequence, error, "cannot keep a message aside: it comes again");
        return Vec::new();
    }
    let mut all = vec![Delivered::Unreadable { sequence, why }];
    match unread.of {
        Some((key, uid, version)) => {
            let (observed, payload) = (Timestamp::now(), Payload::Overlarge { about: None });
            let (fact, coalesced, again) = (None, Vec::new(), false);
            let labels = pipeline_core::ObjectLabels::default();
            let message =
                Message { key, uid, version, observed, trace: 0, fact, coalesced, labels, again, payload };
            all.push(Delivered::Message { message: Box::new(message), again: true, acker: Some(acker) });
        }
        None => {
            // A lost acknowledgement brings it again, and it is kept aside once.
            let _ = acker.ack().await;
        }
    }
    all
}
