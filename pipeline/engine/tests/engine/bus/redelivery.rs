//! What is not acknowledged comes again.

use std::collections::BTreeSet;
use std::time::Duration;

use pipeline_bus::jetstream::Config;
use pipeline_core::Shutdown;

use crate::bus::world::{
    SOURCE, config, connected, delivered, durable, published, ready, soon, state, taken,
};
use crate::server::Server;

#[tokio::test]
async fn what_a_consumer_held_when_it_was_killed_comes_to_the_next_one() {
    let server = Server::start();
    let short = Config { ack_wait: Duration::from_secs(15), ..config(&server) };
    let (bus, mut killed) = ready(short.clone()).await;
    for uid in ["a", "b", "c"] {
        published(&bus, &state(uid, 1, 10)).await;
    }
    assert_eq!(taken(&mut killed).await.uid.as_ref(), "a");
    // Both came: what the server has not sent yet would come for the first time to the next one.
    let held = [delivered(&mut killed).await, delivered(&mut killed).await];
    for (held, uid) in held.iter().zip(["b", "c"]) {
        assert_eq!((held.message.as_ref().unwrap().uid.as_ref(), held.redelivered), (uid, false));
    }
    bus.flush(Duration::from_secs(30)).await.unwrap();
    drop((bus, killed, held));

    let next = connected(short).await;
    let mut deliveries = next.consume(&durable(0), Shutdown::new()).unwrap();
    let mut again = BTreeSet::new();
    while again.len() < 2 {
        let delivery = delivered(&mut deliveries).await;
        assert!(delivery.redelivered, "both were on their way to the one that was killed");
        delivery.acker.ack().await.unwrap();
        again.insert(delivery.message.unwrap().uid.to_string());
    }
    assert_eq!(again, ["b", "c"].map(str::to_owned).into());
}

#[tokio::test]
async fn what_is_in_progress_does_not_come_again_before_what_is_not() {
    let server = Server::start();
    let (bus, mut deliveries) = ready(Config { ack_wait: Duration::from_secs(15), ..config(&server) }).await;
    published(&bus, &state("worked-on", 1, 10)).await;
    published(&bus, &state("forgotten", 1, 10)).await;
    let worked_on = delivered(&mut deliveries).await;
    let _forgotten = delivered(&mut deliveries).await;
    // Without progress the older one would be the first to come again.
    let again = soon("a redelivery", async {
        loop {
            worked_on.acker.progress().await.unwrap();
            tokio::select! {
                again = deliveries.next() => return again.unwrap().unwrap(),
                () = tokio::time::sleep(Duration::from_millis(100)) => {}
            }
        }
    })
    .await;
    assert_eq!((again.message.unwrap().uid.as_ref(), again.redelivered), ("forgotten", true));
}

#[tokio::test]
async fn no_more_than_max_ack_pending_is_given_at_a_time() {
    let server = Server::start();
    let (bus, mut deliveries) = ready(Config { max_ack_pending: 2, ..config(&server) }).await;
    for uid in ["a", "b", "c"] {
        published(&bus, &state(uid, 1, 10)).await;
    }
    let first = delivered(&mut deliveries).await;
    let _second = delivered(&mut deliveries).await;
    let show = bus.show(SOURCE).await.unwrap();
    assert_eq!((show.durables[0].in_flight, show.durables[0].pending), (2, 1));
    first.acker.ack().await.unwrap();
    assert_eq!(delivered(&mut deliveries).await.message.unwrap().uid.as_ref(), "c");
}

#[tokio::test]
async fn consuming_ends_when_the_runtime_stops() {
    let server = Server::start();
    let (bus, _) = ready(config(&server)).await;
    let stop = Shutdown::new();
    let mut deliveries = bus.consume(&durable(0), stop.clone()).unwrap();
    published(&bus, &state("u", 1, 10)).await;
    delivered(&mut deliveries).await;
    let waiting = async { tokio::join!(deliveries.next(), async { stop.cancel() }).0 };
    assert!(soon("the end", waiting).await.is_none());
    assert!(soon("the end", deliveries.next()).await.is_none());
}
