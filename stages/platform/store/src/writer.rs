//! The one that writes: takes what is to be kept from a channel and commits it in groups.
//!
//! takes: deliveries, each with whoever waits for it - gives: an answer once the commit is durable
//! calls: the database, over one connection - fails: every delivery of a group that cannot be committed is answered so, and
//! nothing of it is kept; where one delivery alone may be at fault, each is tried by itself

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};

use crate::act::{self, Statement};
use crate::apply::apply;
use crate::connection::Connection;
use crate::database::Database;
use crate::error::StoreError;
use crate::fleet;
use crate::metrics::StoreMetrics;
use crate::report::{Delivery, Outcome};
use crate::retention::{self, Cut};

/// Reports in one commit.
const GROUP: usize = 256;
/// Between tries to reach the database again.
const PAUSE: Duration = Duration::from_millis(200);

/// What is to be written.
pub(crate) enum Job {
    Keep {
        deliveries: Vec<Delivery>,
        answer: Answer<Vec<Outcome>>,
    },
    /// Takes away what is older, one small step; how many rows went.
    Retain {
        cut: Cut,
        answer: Answer<u64>,
    },
    /// Changes something else, all of it or nothing.
    Change {
        statements: Vec<Statement>,
        answer: Answer<()>,
    },
}

/// A failure of a group is that of each who waits.
pub(crate) type Answer<T> = oneshot::Sender<Result<T, Arc<StoreError>>>;
type Keeping = (Vec<Delivery>, Answer<Vec<Outcome>>);

/// Runs until nobody can ask any more.
pub(crate) async fn run(database: Database, mut jobs: mpsc::Receiver<Job>, metrics: StoreMetrics) {
    let mut connection = None;
    while let Some(job) = jobs.recv().await {
        let mut group: Vec<Keeping> = Vec::new();
        let (mut next, mut reports) = (Some(job), 0);
        let (mut cuts, mut changes) = (Vec::new(), Vec::new());
        while let Some(job) = next.take() {
            match job {
                Job::Keep { deliveries, answer } => {
                    reports += deliveries.len();
                    group.push((deliveries, answer));
                }
                Job::Retain { cut, answer } => cuts.push((cut, answer)),
                Job::Change { statements, answer } => changes.push((statements, answer)),
            }
            if reports < GROUP {
                next = jobs.try_recv().ok();
            }
        }
        if !group.is_empty() {
            keep(&database, &mut connection, group, &metrics).await;
        }
        for (statements, answer) in changes {
            let done = within(&database, &mut connection, async |connection| {
                act::run(connection, &statements).await
            });
            let _ = answer.send(done.await.map_err(Arc::new));
        }
        for (cut, answer) in cuts {
            let done =
                within(&database, &mut connection, async |connection| retention::step(connection, cut).await);
            // Whoever asked may have gone.
            let _ = answer.send(done.await.map_err(Arc::new));
        }
    }
    drop(connection);
    database.close().await;
}

async fn keep(
    database: &Database,
    connection: &mut Option<Connection>,
    group: Vec<Keeping>,
    metrics: &StoreMetrics,
) {
    let all: Vec<&[Delivery]> = group.iter().map(|(deliveries, _)| deliveries.as_slice()).collect();
    let kept = within(database, connection, async |connection| each(connection, &all).await).await;
    metrics.committed(&kept);
    match kept {
        Ok(outcomes) => {
            for ((_, answer), outcomes) in group.into_iter().zip(outcomes) {
                let _ = answer.send(Ok(outcomes));
            }
        }
        Err(error) if error.may_be_of_one_report() && group.len() > 1 => {
            for (deliveries, answer) in group {
                let one = [deliveries.as_slice()];
                let kept =
                    within(database, connection, async |connection| each(connection, &one).await).await;
                metrics.committed(&kept);
                let kept = kept.map(|mut outcomes| outcomes.pop().unwrap_or_default());
                let _ = answer.send(kept.map_err(Arc::new));
            }
        }
        Err(error) => {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "reports cannot be kept: none is acknowledged"
            );
            let again = matches!(error, StoreError::Away(_));
            let error = Arc::new(error);
            group.into_iter().for_each(|(_, answer)| drop(answer.send(Err(error.clone()))));
            if again {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn each(connection: &mut Connection, all: &[&[Delivery]]) -> Result<Vec<Vec<Outcome>>, StoreError> {
    let now = Timestamp::now().as_millisecond();
    let mut outcomes = Vec::with_capacity(all.len());
    for deliveries in all {
        let mut own = Vec::with_capacity(deliveries.len());
        for delivery in *deliveries {
            own.push(apply(connection, delivery, now).await?);
        }
        outcomes.push(own);
    }
    fleet::seen(connection, all, now).await?;
    Ok(outcomes)
}

/// Does all or nothing of it. A connection that failed is not used again.
async fn within<T>(
    database: &Database,
    kept: &mut Option<Connection>,
    act: impl AsyncFnOnce(&mut Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let mut connection = match kept.take() {
        Some(connection) => connection,
        None => database.to_write().await?,
    };
    if let Err(error) = connection.begin().await {
        // It may be within a transaction that failed.
        connection.discard().await;
        return Err(error);
    }
    let done = match act(&mut connection).await {
        Ok(done) => connection.execute("COMMIT", &[]).await.map(|_| done),
        Err(error) => Err(error),
    };
    if done.is_err() && connection.execute("ROLLBACK", &[]).await.is_err() {
        connection.discard().await;
        return done;
    }
    *kept = Some(connection);
    done
}
