//! The store of the platform: what was reported, as it is and as it was.
//!
//! takes: deliveries - gives: an answer when the commit that holds them is durable; what is read of it
//! calls: SQLite or Postgres - fails: with [`StoreError`], and then nothing of a delivery is kept

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use pipeline_core::{SecretString, Shutdown};
use prometheus::Registry;
use tokio::sync::{Notify, Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::believed_clock::{BelievedClock, DoubtedMoment, Look};
use crate::connection::Connection;
use crate::database::{Database, Place};
use crate::error::StoreError;
use crate::limits::Limits;
use crate::metrics::StoreMetrics;
use crate::report::{Delivery, Millis, Outcome};
use crate::retention::{Looked, Retention};
use crate::runtime_name;
use crate::settings;
use crate::statement::Statement;
use crate::token::{self, Token};
use crate::writer::{self, Job, Keeping};

/// Deliveries that wait for the writer; one more waits for a place.
const WAITING: usize = 1_024;
/// Between two steps of retention, so that reports come first.
const BREATH: Duration = Duration::from_millis(20);

/// A look through all that is too old, beside the looks at what has become so.
const ALL_AGAIN: Duration = Duration::from_secs(86_400);
/// A clock that is in doubt is looked at no less often: as much of its steadiness is lost with a process that is killed.
const DOUBTFUL: Duration = Duration::from_secs(60);
/// What one request reads at a time: fewer than there are connections that read.
const READS_OF_ONE: usize = 2;
/// When anything was kept last, for a store in which no clock was believed yet.
const NEWEST_KEPT: &str = "SELECT max(at) FROM (SELECT max(seen_at) AS at FROM runtimes \
    UNION ALL SELECT (SELECT received_at FROM transitions ORDER BY id DESC LIMIT 1)) AS kept";

/// How to open a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreConfig {
    /// Where it is.
    pub place: Place,
    /// How long what is kept, unless that is set in the store itself.
    pub retention: Retention,
}

/// A store that is open; cloning shares.
#[derive(Debug, Clone)]
pub struct Store {
    database: Database,
    jobs: mpsc::Sender<Job>,
    metrics: StoreMetrics,
    /// How long what is kept where nothing is set in the store itself.
    pub(crate) default_retention: Retention,
    /// Told when that is set there.
    pub(crate) retention_set: Arc<Notify>,
    /// A moment that was over before this store was opened; `None`: none is known.
    over: Option<Millis>,
    /// A later one of which that was in doubt then.
    doubted: Option<DoubtedMoment>,
    /// Of one request that reads: see [`Self::of_one_request`].
    turns: Option<Arc<Semaphore>>,
}

/// What ends when every [`Store`] is dropped: everything was written.
#[derive(Debug)]
pub struct Writing(JoinHandle<()>);

impl StoreConfig {
    /// Opens the store, and makes it where there is none.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be opened, is in use, or is of a newer version.
    pub async fn build(self, registry: &Registry) -> Result<(Store, Writing), StoreError> {
        self.build_within(registry, Limits::default()).await
    }

    /// The same, where Postgres is waited for so long.
    ///
    /// # Errors
    /// As of [`Self::build`].
    pub async fn build_within(
        self,
        registry: &Registry,
        limits: Limits,
    ) -> Result<(Store, Writing), StoreError> {
        let database = Database::open(&self.place, limits).await?;
        let metrics = StoreMetrics::new(registry);
        // Where that cannot be read, as in a store that is damaged, no clock is believed at once.
        let (over, doubted) = clocks(&database).await.unwrap_or((Some(Millis::MIN), None));
        let (jobs, queue) = mpsc::channel(WAITING);
        let writing = tokio::spawn(writer::run(database.clone(), queue, metrics.clone()));
        let (default_retention, retention_set) = (self.retention, Arc::default());
        let store =
            Store { database, jobs, metrics, default_retention, retention_set, over, doubted, turns: None };
        Ok((store, Writing(writing)))
    }
}

impl Writing {
    /// Waits until everything is written and the store is closed.
    pub async fn finished(self) {
        // It does not panic; if it did, the panic was told.
        let _ = self.0.await;
    }
}

/// Makes a token for the runtime of that name, and the runtime where there is none; beside a platform that runs, too.
///
/// # Errors
/// [`StoreError`] when the name is none of a new runtime, or the store cannot be written.
pub async fn create_token(place: &Place, runtime: &str) -> Result<SecretString, StoreError> {
    runtime_name::check(runtime)?;
    token_of(place, runtime).await
}

/// The same for a runtime that is there already, under a name that a new one would not be given: see [`crate::runtime_id`].
///
/// # Errors
/// [`StoreError`] when no adopter has such a name, or the store cannot be written.
pub async fn adopt(place: &Place, runtime: &str) -> Result<SecretString, StoreError> {
    runtime_name::check_adopted(runtime)?;
    token_of(place, runtime).await
}

/// The last moment at which the clock was believed: what is kept while it is in doubt says nothing of the time. In a store of a version
/// that did not keep that, the moment of what was kept last. `None`: nothing was yet. And what has been in doubt since then.
async fn clocks(database: &Database) -> Result<(Option<Millis>, Option<DoubtedMoment>), StoreError> {
    let mut connection = database.to_read().await?;
    let doubted = settings::setting(&mut connection, settings::DOUBTED_CLOCK).await?;
    if let Some(believed) = settings::setting(&mut connection, settings::BELIEVED_CLOCK).await? {
        return Ok((Some(believed), doubted));
    }
    let row = connection.row(NEWEST_KEPT, &[]).await?;
    Ok((row.map_or(Ok(None), |row| row.int_or_null(0))?, doubted))
}

async fn token_of(place: &Place, runtime: &str) -> Result<SecretString, StoreError> {
    let now = Timestamp::now().as_millisecond();
    beside(place, true, async |connection| token::create(connection, runtime, now).await).await
}

/// The tokens that there are, by runtime; beside a platform that runs, too.
///
/// # Errors
/// [`StoreError`] when the store cannot be read.
pub async fn tokens(place: &Place) -> Result<Vec<Token>, StoreError> {
    beside(place, false, async |connection| token::all(connection).await).await
}

/// Takes a token away, by what it begins with; beside a platform that runs, too.
///
/// # Errors
/// [`StoreError`] when there is none or the store cannot be written.
pub async fn revoke_token(place: &Place, name: &str) -> Result<(), StoreError> {
    beside(place, false, async |connection| token::revoke(connection, name).await).await
}

/// Does all or nothing of something in a store that another process may have open.
async fn beside<T>(
    place: &Place,
    make: bool,
    act: impl AsyncFnOnce(&mut Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let database = Database::beside(place, make).await?;
    let done = writer::within(&database, &mut None, act).await;
    database.close().await;
    done
}

impl Store {
    /// Keeps deliveries, all or none of them but those that are outdated or unfit; the answer comes when the commit is
    /// durable.
    ///
    /// # Errors
    /// [`StoreError`] when nothing was kept.
    pub async fn keep(&self, deliveries: Vec<Delivery>) -> Result<Vec<Outcome>, Arc<StoreError>> {
        self.keep_holding(deliveries, ()).await
    }

    /// The same, with something that goes when the deliveries do, also where nobody waits for the answer any more.
    ///
    /// # Errors
    /// [`StoreError`] when nothing was kept.
    pub async fn keep_holding(
        &self,
        mut deliveries: Vec<Delivery>,
        held: impl Send + Sync + 'static,
    ) -> Result<Vec<Outcome>, Arc<StoreError>> {
        deliveries.iter_mut().for_each(|delivery| delivery.report.replace_zero_bytes());
        self.ask(|answer| Job::Keep(Keeping { deliveries, held: Box::new(held), answer })).await
    }

    /// Takes away what is older than it is to be kept, in small steps, until `stop`.
    pub async fn retain(&self, stop: Shutdown) {
        self.retain_by(|| (Timestamp::now(), Instant::now()), stop).await;
    }

    /// The same by a clock that says what time it is, and when that is among moments that it does not set.
    pub async fn retain_by(&self, clock: impl Fn() -> (Timestamp, Instant) + Send + Sync, stop: Shutdown) {
        let (mut after, mut begun) = (Looked::default(), clock().1);
        let mut believed = self.over.map(|over| BelievedClock::new(over, begun, self.doubted));
        while !stop.is_cancelled() {
            let (wall, at) = clock();
            let wall = wall.as_millisecond();
            // What ended without a new state is found by a look through all.
            if at.saturating_duration_since(begun) > ALL_AGAIN {
                (after, begun) = (Looked::default(), at);
            }
            let believed = believed.get_or_insert_with(|| BelievedClock::new(wall, at, None));
            match believed.look(wall, at) {
                Look::Believed(now) => {
                    if self.take_away(now, &mut after, &stop).await.is_break() {
                        return;
                    }
                }
                Look::Jumped(ahead) => tracing::warn!(
                    hours = ahead.as_secs() / 3_600,
                    "the clock is ahead of what was kept last: nothing is taken away before it has gone on so for an hour in all"
                ),
                Look::Doubted => {}
            }
            let mut pause = self.default_retention.interval;
            if let Some(doubted) = believed.doubted() {
                pause = pause.min(DOUBTFUL);
                self.keep_doubt(doubted).await;
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.retention_set.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Leaves to the next process what is in doubt: where each ends soon, none would come to believe its clock alone.
    async fn keep_doubt(&self, doubted: DoubtedMoment) {
        let kept = match serde_json::to_string(&doubted) {
            Ok(body) => self.change(vec![settings::set_setting(settings::DOUBTED_CLOCK, &body)]).await,
            Err(error) => Err(Arc::new(error.into())),
        };
        if let Err(error) = kept {
            let error = &*error as &(dyn std::error::Error + 'static);
            tracing::warn!(error, "for how long a clock has been in doubt cannot be kept");
        }
    }

    /// Takes away all that is too old by now, and breaks off when it is to stop.
    async fn take_away(&self, now: Millis, after: &mut Looked, stop: &Shutdown) -> ControlFlow<()> {
        let mut all = 0;
        loop {
            let from = *after;
            let default = self.default_retention;
            match self.ask(|answer| Job::Retain { default, now, after: from, answer }).await {
                Ok(step) => {
                    (*after, all) = (step.after, all + step.gone);
                    if step.is_done {
                        break;
                    }
                }
                Err(error) => {
                    let error = &*error as &(dyn std::error::Error + 'static);
                    tracing::warn!(error, "what is too old cannot be taken away");
                    break;
                }
            }
            tokio::select! {
                () = stop.cancelled() => return ControlFlow::Break(()),
                () = tokio::time::sleep(BREATH) => {}
            }
        }
        if all > 0 {
            tracing::info!(rows = all, "what was too old was taken away");
        }
        ControlFlow::Continue(())
    }

    /// Whether the last commit succeeded.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.metrics.is_writable()
    }

    /// Whether a newer version has changed its tables, so that this one writes nothing any more, as of what was to be written last.
    #[must_use]
    pub fn is_newer(&self) -> bool {
        self.database.is_newer()
    }

    /// The same for one request, which reads a few things at a time: the others wait, and leave readers to whoever else asks.
    #[must_use]
    pub fn of_one_request(&self) -> Self {
        Self { turns: Some(Arc::new(Semaphore::new(READS_OF_ONE))), ..self.clone() }
    }

    /// Changes all of it or nothing.
    pub(crate) async fn change(&self, statements: Vec<Statement>) -> Result<(), Arc<StoreError>> {
        self.ask(|answer| Job::Change { statements, answer }).await
    }

    pub(crate) async fn read(&self) -> Result<Connection, StoreError> {
        let turn = match &self.turns {
            Some(turns) => Some(Arc::clone(turns).acquire_owned().await.map_err(|_| StoreError::Closed)?),
            None => None,
        };
        Ok(self.database.to_read().await?.with_turn(turn))
    }

    /// For what tells who asks: it waits for nothing else that is read.
    pub(crate) async fn look_up(&self) -> Result<Connection, StoreError> {
        self.database.to_look_up().await
    }

    async fn ask<T>(&self, job: impl FnOnce(writer::ReplySender<T>) -> Job) -> Result<T, Arc<StoreError>> {
        let (answer, answered) = oneshot::channel();
        let closed = || Arc::new(StoreError::Closed);
        self.jobs.send(job(answer)).await.map_err(|_| closed())?;
        answered.await.unwrap_or_else(|_| Err(closed()))
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::Poll;

    use super::*;

    #[tokio::test]
    async fn one_request_leaves_readers_to_others_however_much_it_asks_for() {
        let folder = tempfile::TempDir::new().unwrap();
        let ages = Duration::from_secs(86_400);
        let retention = Retention { history: ages, keys: ages, interval: ages };
        let config = StoreConfig { place: Place::Sqlite(folder.path().join("platform.db")), retention };
        let (store, writing) = config.build(&Registry::new()).await.unwrap();
        let own = store.of_one_request();
        let held = [own.read().await.unwrap(), own.read().await.unwrap()];
        {
            let mut third = pin!(own.read());
            let is_ready = poll_fn(|context| Poll::Ready(third.as_mut().poll(context).is_ready())).await;
            assert!(!is_ready, "two are read over at a time");
            store.of_one_request().read().await.unwrap();
            drop(held);
            third.await.unwrap();
        }
        drop((own, store));
        writing.finished().await;
    }
}
