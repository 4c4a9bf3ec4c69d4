//! A Postgres that falls silent, as one whose host is gone or cut off: no connection ends, and nothing is answered any more.

use std::time::Duration;

use pipeline_core::Shutdown;
use stages_platform_store::{Delivery, Limits, Outcome, Place, Sequence, StoreError};

use crate::postgres::Server;
use crate::proxy::{Cut, Proxy};
use crate::servers::run;
use crate::support::{KEEP_ALL, Opened, digest, open, open_within, report};

/// Within this time all is well again, on a machine however busy.
const PATIENCE: Duration = Duration::from_secs(120);
/// On a machine that is busy enough they end what the server does answer as well, so each step waits for its own end.
const LIMITS: Limits = Limits {
    statement: Duration::from_secs(3),
    answer: Duration::from_secs(6),
    lock: Duration::from_secs(10),
    idle: Duration::from_secs(30),
};

fn delivery(opened: &Opened, key: &str, version: i64) -> Delivery {
    let (key, report) = (digest(key), report("u", version, version));
    Delivery { runtime: opened.runtime.id, key, keyed: true, epoch: None, era: 0, report }
}

/// Sends a report until it is acknowledged.
async fn until_kept(opened: &Opened, key: &str, version: i64) -> Outcome {
    let again = async {
        loop {
            match opened.store.keep(vec![delivery(opened, key, version)]).await {
                Ok(outcomes) => break outcomes[0],
                Err(error) => assert!(matches!(*error, StoreError::Away(_)), "{error:?}"),
            }
        }
    };
    tokio::time::timeout(PATIENCE, again).await.expect("it is kept when the server answers again")
}

async fn fails(asked: impl Future<Output = bool>, what: &str) {
    let failed = tokio::time::timeout(PATIENCE, asked).await;
    assert!(failed.expect(what), "{what}");
}

#[tokio::test]
async fn a_server_that_falls_silent_is_waited_for_so_long_and_used_again() {
    let server = Server::start().await;
    let proxy = Proxy::start(&server).await;
    let opened = open_within(&Place::Postgres(proxy.url.clone()), KEEP_ALL, LIMITS).await;
    let sequence = Sequence::new(opened.store.clone());
    let (stop, mut newest) = (Shutdown::new(), sequence.newest());
    let following = tokio::spawn({
        let stop = stop.clone();
        async move { sequence.follow(stop).await }
    });

    // The server has the transaction open, with the lock of all writers, and hears nothing more.
    proxy.cut(Cut::BeforeCommit);
    let cut = async {
        while !proxy.is_cut() {
            assert!(
                opened.store.keep(vec![delivery(&opened, "a", 1)]).await.is_err(),
                "nothing is committed"
            );
        }
        true
    };
    fails(cut, "what is not committed is not acknowledged").await;
    assert!(!opened.store.is_writable());
    assert_eq!(until_kept(&opened, "a", 1).await, Outcome::Kept);

    // All of it, whoever reads or follows what is new as well.
    let before = async {
        loop {
            if let Ok(sequence) = opened.store.sequence().await {
                break u64::try_from(sequence).unwrap();
            }
        }
    };
    let before = tokio::time::timeout(PATIENCE, before).await.expect("it is read when the server answers");
    drop(newest.wait_for(|newest| *newest == before).await.unwrap());
    proxy.fall_silent();
    let kept = async { opened.store.keep(vec![delivery(&opened, "b", 2)]).await.is_err() };
    fails(kept, "nobody acknowledges it").await;
    let read =
        async { opened.store.timeline(opened.runtime.id, ("argocd", "shop"), i64::MAX, 1).await.is_err() };
    fails(read, "nobody answers").await;
    proxy.forward();

    // The commit is done, and nobody is told.
    proxy.cut(Cut::BeforeAnswer);
    assert_eq!(until_kept(&opened, "b", 2).await, Outcome::Repeated, "it was kept once");
    assert!(proxy.is_cut());
    let more = tokio::time::timeout(PATIENCE, newest.wait_for(|newest| *newest > before)).await;
    more.expect("whoever follows goes on").unwrap();
    assert_eq!(opened.versions().await, (vec![1, 2], 2));
    stop.cancel();
    following.await.unwrap();
    opened.close().await;
}

#[tokio::test]
async fn a_connection_that_was_cut_off_or_ended_while_it_was_idle_costs_no_report() {
    let server = Server::start().await;
    let proxy = Proxy::start(&server).await;
    // Nothing is idle for less.
    let limits = Limits { idle: Duration::ZERO, ..LIMITS };
    let opened = open_within(&Place::Postgres(proxy.url.clone()), KEEP_ALL, limits).await;
    assert_eq!(opened.keep(report("u", 1, 1)).await, Outcome::Kept);
    // Nobody is told that it has gone, and whoever connects anew is served.
    proxy.fall_silent();
    proxy.forward();
    assert_eq!(opened.store.keep(vec![delivery(&opened, "b", 2)]).await.unwrap(), [Outcome::Kept]);
    opened.close().await;

    // One that the server ends is told so.
    let url = server.database().await;
    let opened = open(&Place::Postgres(url.clone())).await;
    assert_eq!(opened.keep(report("u", 1, 1)).await, Outcome::Kept);
    let end = "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity \
               WHERE datname = current_database() AND pid <> pg_backend_pid()";
    run(&url, end).await;
    assert_eq!(opened.store.keep(vec![delivery(&opened, "b", 2)]).await.unwrap(), [Outcome::Kept]);
    assert_eq!(opened.versions().await, (vec![1, 2], 2));
    opened.close().await;
}
