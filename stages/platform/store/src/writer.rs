//! The one that writes: takes what is to be kept from a channel and commits it in groups.
//!
//! takes: deliveries, each with whoever waits for it - gives: an answer once the commit is durable
//! calls: the database, over one connection - fails: every delivery of a group that cannot be committed is answered so, and
//! nothing of it is kept; where one report alone may be at fault, each is tried apart

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use pipeline_core::Reason;
use tokio::sync::{mpsc, oneshot};

use crate::connection::Connection;
use crate::database::Database;
use crate::error::StoreError;
use crate::group;
use crate::heard;
use crate::metrics::StoreMetrics;
use crate::migrations::NEWEST;
use crate::report::{Delivery, Millis, Outcome};
use crate::retention::{self, Cut, Looked, Retention, Step};
use crate::settings;
use crate::statement::{self, Statement};
use crate::waiting::Waiting;

/// Reports in one commit.
const GROUP: usize = 256;
/// Between tries to reach the database again.
const PAUSE: Duration = Duration::from_millis(200);

/// What is to be written.
pub(crate) enum Job {
    Keep(Keeping),
    /// Takes away what is too old by now, one small step from behind what was looked at.
    Retain {
        /// How long what is kept, unless that is set in the store itself.
        default: Retention,
        now: Millis,
        after: Looked,
        answer: ReplySender<Step>,
    },
    /// Changes something else, all of it or nothing.
    Change {
        statements: Vec<Statement>,
        answer: ReplySender<()>,
    },
}

/// Answers whoever waits for a job. A failure of a group is that of each who waits.
pub(crate) type ReplySender<T> = oneshot::Sender<Result<T, Arc<StoreError>>>;

/// Deliveries that are kept together.
pub(crate) struct Keeping {
    pub(crate) deliveries: Vec<Delivery>,
    /// What accounts for their memory: it goes when they do.
    pub(crate) held: Box<dyn Send + Sync>,
    pub(crate) answer: ReplySender<Vec<Outcome>>,
}

impl Keeping {
    /// Whoever has the answer may send more at once: what was held is given back before.
    fn answered(self, kept: KeepResult) {
        drop((self.deliveries, self.held));
        // Whoever asked may have gone.
        let _ = self.answer.send(kept);
    }
}

/// Runs until nobody can ask any more.
pub(crate) async fn run(database: Database, mut jobs: mpsc::Receiver<Job>, metrics: StoreMetrics) {
    let mut connection = None;
    let mut waiting = Waiting::default();
    loop {
        // While anything waits, what came meanwhile is looked at and nothing else waited for.
        let mut next = if waiting.is_empty() { jobs.recv().await } else { jobs.try_recv().ok() };
        if next.is_none() && waiting.is_empty() {
            break;
        }
        let (mut steps, mut changes) = (Vec::new(), Vec::new());
        while let Some(job) = next.take() {
            match job {
                Job::Keep(keeping) => waiting.push(keeping),
                Job::Retain { default, now, after, answer } => steps.push((default, now, after, answer)),
                Job::Change { statements, answer } => changes.push((statements, answer)),
            }
            next = jobs.try_recv().ok();
        }
        let group = waiting.group(GROUP);
        if !group.is_empty() {
            keep(&database, &mut connection, group, &metrics).await;
        }
        for (statements, answer) in changes {
            let done = within(&database, &mut connection, async |connection| {
                statement::run(connection, &statements).await
            });
            let _ = answer.send(done.await.map_err(Arc::new));
        }
        for (default, now, after, answer) in steps {
            let done = within(&database, &mut connection, async |connection| {
                // Only by a clock that is believed is anything taken away.
                let believed = settings::set_setting(settings::BELIEVED_CLOCK, &now.to_string());
                let doubted = settings::drop_setting(settings::DOUBTED_CLOCK);
                statement::run(connection, &[believed, doubted]).await?;
                let retention = settings::retention(connection, default).await?;
                retention::step(connection, Cut::at(&retention, now), after).await
            });
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
    let statements = |connection: &Option<Connection>| connection.as_ref().map_or(0, Connection::statements);
    let before = statements(connection);
    let mut kept = within(database, connection, async |connection| each(connection, &group).await).await;
    if kept.as_ref().is_err_and(StoreError::may_be_of_one_report) {
        kept = within(database, connection, async |connection| apart(connection, &group).await).await;
    }
    metrics.committed(&kept, statements(connection).saturating_sub(before));
    match kept {
        Ok(outcomes) => {
            for (keeping, kept) in group.into_iter().zip(outcomes) {
                keeping.answered(kept);
            }
        }
        Err(error) => {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "reports cannot be kept: none is acknowledged"
            );
            let again = matches!(error.reason(), Reason::Unreachable);
            let error = Arc::new(error);
            group.into_iter().for_each(|keeping| keeping.answered(Err(error.clone())));
            if again {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// What became of deliveries that were kept together, or why none was.
pub(crate) type KeepResult = Result<Vec<Outcome>, Arc<StoreError>>;

async fn each(connection: &mut Connection, group: &[Keeping]) -> Result<Vec<KeepResult>, StoreError> {
    let now = Timestamp::now().as_millisecond();
    let all: Vec<&Delivery> = group.iter().flat_map(|keeping| &keeping.deliveries).collect();
    let mut outcomes = group::keep(connection, &all, now).await?.into_iter();
    let kept = group.iter().map(|keeping| Ok(outcomes.by_ref().take(keeping.deliveries.len()).collect()));
    let kept = kept.collect();
    note_reports(connection, group, now).await?;
    Ok(kept)
}

async fn note_reports(connection: &mut Connection, group: &[Keeping], now: Millis) -> Result<(), StoreError> {
    let all: Vec<&[Delivery]> = group.iter().map(|keeping| keeping.deliveries.as_slice()).collect();
    heard::note_reports(connection, &all, now).await
}

/// The same where one report may be at fault: what the database refuses of it is undone, and spoils no other.
async fn apart(connection: &mut Connection, group: &[Keeping]) -> Result<Vec<KeepResult>, StoreError> {
    let now = Timestamp::now().as_millisecond();
    let mut outcomes = Vec::with_capacity(group.len());
    for keeping in group {
        connection.execute("SAVEPOINT all_of_it", &[]).await?;
        let mut own = Ok(Vec::with_capacity(keeping.deliveries.len()));
        for delivery in &keeping.deliveries {
            let Ok(known) = &mut own else { break };
            connection.execute("SAVEPOINT one_of_it", &[]).await?;
            match group::keep(connection, &[delivery], now).await {
                Ok(outcomes) => known.extend(outcomes),
                Err(error @ StoreError::Unfit(_)) => {
                    connection.execute("ROLLBACK TO SAVEPOINT one_of_it", &[]).await?;
                    tracing::warn!(error = &error as &dyn std::error::Error, "a report is not kept");
                    known.push(Outcome::Unfit);
                }
                Err(error) if error.may_be_of_one_report() => own = Err(error),
                Err(error) => return Err(error),
            }
            if own.is_ok() {
                connection.execute("RELEASE SAVEPOINT one_of_it", &[]).await?;
            }
        }
        if let Err(error) = &own {
            connection.execute("ROLLBACK TO SAVEPOINT all_of_it", &[]).await?;
            tracing::warn!(error = error as &dyn std::error::Error, "reports cannot be kept");
        }
        connection.execute("RELEASE SAVEPOINT all_of_it", &[]).await?;
        outcomes.push(own.map_err(Arc::new));
    }
    note_reports(connection, group, now).await?;
    Ok(outcomes)
}

/// A connection that has begun to write. Where the one that was kept has ended meanwhile, or its user has been replaced, another one takes
/// its place: nothing was said over it.
async fn begin(database: &Database, kept: Option<Connection>) -> Result<Connection, StoreError> {
    if let Some(mut kept) = kept {
        if kept.lives().await {
            match begin_over(database, kept).await {
                Err(error) if has_ended(&error) || matches!(error, StoreError::NoRight(_)) => {}
                begun => return begun,
            }
        } else {
            kept.discard().await;
        }
    }
    begin_over(database, database.to_write().await?).await
}

/// Whether a connection has ended, as Postgres ends it, or whoever stands between, when it was idle.
fn has_ended(error: &StoreError) -> bool {
    match error {
        StoreError::Away(sqlx::Error::Io(why)) => why.kind() != ErrorKind::TimedOut,
        StoreError::Away(sqlx::Error::Database(said)) => {
            said.code().is_some_and(|code| code.starts_with("57P") || code.starts_with("08"))
        }
        _ => false,
    }
}

async fn begin_over(database: &Database, mut connection: Connection) -> Result<Connection, StoreError> {
    let begun = connection.begin(NEWEST).await;
    database.begun(&begun);
    match begun {
        Ok(()) => Ok(connection),
        Err(error) => {
            // It may be within a transaction that failed.
            connection.discard().await;
            Err(error)
        }
    }
}

/// Does all or nothing of it. A connection that failed is not used again, and neither is one whose server does nothing, which may be
/// no longer the one that takes what is written, or gone. A commit that was not answered may have been done: see [`crate::Limits`].
pub(crate) async fn within<T>(
    database: &Database,
    kept: &mut Option<Connection>,
    act: impl AsyncFnOnce(&mut Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let mut connection = begin(database, kept.take()).await?;
    let done = match act(&mut connection).await {
        Ok(done) => connection.execute("COMMIT", &[]).await.map(|_| done),
        Err(error) => Err(error),
    };
    if let Err(error) = &done {
        // The end of a connection is that of its transaction.
        if error.may_be_of_the_connection() || connection.execute("ROLLBACK", &[]).await.is_err() {
            connection.discard().await;
            return done;
        }
    }
    *kept = Some(connection);
    done
}
