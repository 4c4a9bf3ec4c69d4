//! The store of the platform: what was reported, as it is and as it was.
//!
//! takes: deliveries - gives: an answer when the commit that holds them is durable; what is read of it
//! calls: SQLite or Postgres - fails: with [`StoreError`], and then nothing of a delivery is kept

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use pipeline_core::{SecretString, Shutdown};
use prometheus::Registry;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::act::Statement;
use crate::connection::Connection;
use crate::database::{Database, Place};
use crate::error::StoreError;
use crate::held::{self, HeldApplication};
use crate::metrics::StoreMetrics;
use crate::read::{self, Application, Deployment, Drift, Transition};
use crate::report::{Delivery, EntityName, Outcome};
use crate::retention::{Cut, Retention};
use crate::token::{self, Runtime};
use crate::writer::{self, Job};

/// Deliveries that wait for the writer; one more waits for a place.
const WAITING: usize = 1_024;
/// Between two steps of retention, so that reports come first.
const BREATH: Duration = Duration::from_millis(20);

/// How to open a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreConfig {
    /// Where it is.
    pub place: Place,
    /// How long what is kept.
    pub retention: Retention,
}

/// A store that is open; cloning shares.
#[derive(Debug, Clone)]
pub struct Store {
    database: Database,
    jobs: mpsc::Sender<Job>,
    metrics: StoreMetrics,
    retention: Retention,
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
        let database = Database::open(&self.place).await?;
        let metrics = StoreMetrics::new(registry)
            .map_err(|error| StoreError::Unreadable(std::io::Error::other(error)))?;
        let (jobs, queue) = mpsc::channel(WAITING);
        let writing = tokio::spawn(writer::run(database.clone(), queue, metrics.clone()));
        Ok((Store { database, jobs, metrics, retention: self.retention }, Writing(writing)))
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
/// [`StoreError`] when the name is none or the store cannot be written.
pub async fn create_token(place: &Place, runtime: &str) -> Result<SecretString, StoreError> {
    let database = Database::beside(place).await?;
    let made = async {
        let mut connection = database.to_write().await?;
        token::create(&mut connection, runtime, Timestamp::now().as_millisecond()).await
    };
    let made = made.await;
    database.close().await;
    made
}

impl Store {
    /// Keeps deliveries, all or none of them; the answer comes when the commit is durable.
    ///
    /// # Errors
    /// [`StoreError`] when nothing was kept.
    pub async fn keep(&self, deliveries: Vec<Delivery>) -> Result<Vec<Outcome>, Arc<StoreError>> {
        self.ask(|answer| Job::Keep { deliveries, answer }).await
    }

    /// Takes away what is older than it is to be kept, in small steps, until `stop`.
    pub async fn retain(&self, stop: Shutdown) {
        while !stop.is_cancelled() {
            let mut all = 0;
            loop {
                let cut = Cut::at(&self.retention, Timestamp::now().as_millisecond());
                match self.ask(|answer| Job::Retain { cut, answer }).await {
                    Ok(0) => break,
                    Ok(gone) => all += gone,
                    Err(error) => {
                        let error = &*error as &(dyn std::error::Error + 'static);
                        tracing::warn!(error, "what is too old cannot be taken away");
                        break;
                    }
                }
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(BREATH) => {}
                }
            }
            if all > 0 {
                tracing::info!(rows = all, "what was too old was taken away");
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(self.retention.interval) => {}
            }
        }
    }

    /// Whether the last commit succeeded.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.metrics.is_writable()
    }

    /// Whose token it is; `None`: nobody's.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn runtime(&self, token: &SecretString) -> Result<Option<Runtime>, StoreError> {
        token::runtime(&mut self.read().await?, token).await
    }

    /// Whether any token was ever made.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn has_tokens(&self) -> Result<bool, StoreError> {
        token::any(&mut self.read().await?).await
    }

    /// Applications of a runtime by namespace and name, from behind `after`.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn applications(
        &self,
        runtime: i64,
        after: (&str, &str),
        limit: u32,
    ) -> Result<Vec<Application>, StoreError> {
        read::applications(&mut self.read().await?, runtime, after, limit).await
    }

    /// What happened to an application and its resources, the newest first, from before the number `before`.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn timeline(
        &self,
        runtime: i64,
        application: (&str, &str),
        before: i64,
        limit: u32,
    ) -> Result<Vec<Transition>, StoreError> {
        read::timeline(&mut self.read().await?, runtime, application, before, limit).await
    }

    /// Every entity of a runtime, with the number of the transition that it is in.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn entities(&self, runtime: i64) -> Result<Vec<(EntityName, i64)>, StoreError> {
        read::entities(&mut self.read().await?, runtime).await
    }

    /// What was reported in a transition, as it stood under `data`.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn payload(&self, runtime: i64, transition: i64) -> Result<Option<Value>, StoreError> {
        read::payload(&mut self.read().await?, runtime, transition).await
    }

    /// The deployments of an application, the newest first.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn deployments(
        &self,
        runtime: i64,
        application: (&str, &str),
    ) -> Result<Vec<Deployment>, StoreError> {
        read::deployments(&mut self.read().await?, runtime, application).await
    }

    /// When an application was out of sync, the newest first.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn drifts(&self, runtime: i64, application: (&str, &str)) -> Result<Vec<Drift>, StoreError> {
        read::drifts(&mut self.read().await?, runtime, application).await
    }

    /// What is held of each application of a runtime, or of one.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn held(
        &self,
        runtime: i64,
        only: Option<(&str, &str)>,
    ) -> Result<HashMap<(String, String), HeldApplication>, StoreError> {
        held::held(&mut self.read().await?, runtime, only).await
    }

    /// Changes all of it or nothing.
    pub(crate) async fn change(&self, statements: Vec<Statement>) -> Result<(), Arc<StoreError>> {
        self.ask(|answer| Job::Change { statements, answer }).await
    }

    pub(crate) async fn read(&self) -> Result<Connection, StoreError> {
        self.database.to_read().await
    }

    async fn ask<T>(&self, job: impl FnOnce(writer::Answer<T>) -> Job) -> Result<T, Arc<StoreError>> {
        let (answer, answered) = oneshot::channel();
        let closed = || Arc::new(StoreError::Closed);
        self.jobs.send(job(answer)).await.map_err(|_| closed())?;
        answered.await.unwrap_or_else(|_| Err(closed()))
    }
}
