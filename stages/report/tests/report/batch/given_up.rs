//! Of a report that nobody waits for any more nothing is under way, whoever sends it: its shard may have another owner by then.

use std::sync::Arc;

use pipeline_core::{Shipment, Sink as _};
use stages_report::platform::Batch;
use tokio::sync::Notify;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::timeout;

use super::receiver::{Receiver, list, ok};
use super::{NEVER, PATH, SOON, key, said};
use crate::support::{TellsEnd, batch, platform, shipment};

/// The first report is sent alone, and not answered for now; the second waits, and the third, which fills a batch by its
/// reports or by its bytes, sends the second: with itself, or before. That request hangs, and whoever waits for the second
/// gives up. Gives what becomes of the third, and the keys of each request.
async fn sent_for_another(bytes: usize) -> (Vec<String>, Vec<Vec<usize>>) {
    let shipments = [shipment("1", 1), shipment("2", 2), shipment(&"3".repeat(100), 3)];
    let second = key(&shipments[1]);
    let (come, ended) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (coming, ending) = (come.clone(), ended.clone());
    let receiver = Receiver::new(move |n, batch, keys| {
        let (coming, ending) = (coming.clone(), ending.clone());
        let is_second = keys.contains(&second);
        Box::pin(async move {
            if n == 0 || is_second {
                let _ended = is_second.then(|| TellsEnd(ending));
                coming.notify_one();
                std::future::pending::<()>().await;
            }
            if batch { list(&vec![200; keys.len()]) } else { ok() }
        })
    })
    .await;
    let sink = platform(&receiver.address, |config| {
        config.http.timeout = NEVER;
        config.batch = Some(Batch { linger: NEVER, reports: 2, bytes, ..batch(PATH) });
    })
    .await;
    let sink = Arc::new(sink);
    let ship = |shipment: &Shipment| -> JoinHandle<_> {
        let (sink, shipment) = (sink.clone(), shipment.clone());
        tokio::spawn(async move { sink.ship(&[shipment]).await })
    };
    let _first = ship(&shipments[0]);
    assert!(timeout(SOON, come.notified()).await.is_ok(), "the first is not sent");
    let waiting = ship(&shipments[1]);
    // In this runtime's one thread it goes as far as it can.
    yield_now().await;
    let sending = ship(&shipments[2]);
    assert!(timeout(SOON, come.notified()).await.is_ok(), "the third does not send the second");
    waiting.abort();
    assert!(timeout(SOON, ended.notified()).await.is_ok(), "the second is still under way");
    let answers = timeout(SOON, sending).await.unwrap().unwrap();
    let number = |of: &String| 1 + shipments.iter().position(|shipment| key(shipment) == *of).unwrap();
    let sent = receiver.keys().iter().map(|(_, keys)| keys.iter().map(number).collect()).collect();
    (said(&answers), sent)
}

#[tokio::test]
async fn a_batch_ends_when_who_waits_for_one_of_its_reports_gives_up_and_the_others_are_retried() {
    let (third, sent) = sent_for_another(1 << 20).await;
    assert_eq!((third, sent), (vec!["retry timeout None".to_owned()], vec![vec![1], vec![2, 3]]));
}

#[tokio::test]
async fn a_report_that_another_sends_alone_ends_when_who_waits_for_it_gives_up() {
    let (third, sent) = sent_for_another(50).await;
    assert_eq!((third, sent), (vec!["ok".to_owned()], vec![vec![1], vec![2], vec![3]]));
}
