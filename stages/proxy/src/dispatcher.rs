//! Where every operation passes: who asks, whether they may, the act, and its record.
//!
//! An act goes on to its end and into the audit log in a task of its own, whether or not whoever asked still waits. One whose end
//! does not come before the process stops goes into the audit log as in doubt.

use std::sync::Arc;
use std::time::Duration;

use pipeline_core::{SecretString, Shutdown};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use crate::account::Account;
use crate::audit::{Audit, Record, RecordPermit};
use crate::error::ActError;
use crate::gate::{Denied, Gate, Granted, Subject};
use crate::operation::Operation;
use crate::refusal::Refusal;
use crate::refusal_log::RefusalLog;
use crate::series::ProxySeries;

/// Acts under way at a time.
const ACTS: usize = 64;

/// Whoever asks: the token that came with the request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Caller(pub(crate) Option<SecretString>);

/// What an operation is about, and what of it, for the audit log.
#[derive(Debug, Clone)]
pub(crate) struct About {
    pub(crate) operation: Operation,
    pub(crate) subject: Subject,
    /// Such as a resource of the application.
    pub(crate) detail: String,
}

/// Where every operation passes. Cloning shares.
#[derive(Debug, Clone)]
pub(crate) struct Dispatcher {
    gate: Arc<Gate>,
    audit: Audit,
    refusals: RefusalLog,
    acts: TaskTracker,
    /// No act is waited for any more, and none begins.
    over: Shutdown,
    places: Arc<Semaphore>,
    series: ProxySeries,
}

impl About {
    pub(crate) fn new(operation: Operation, subject: Subject) -> Self {
        Self { operation, subject, detail: String::new() }
    }

    pub(crate) fn of(self, detail: impl Into<String>) -> Self {
        Self { detail: detail.into(), ..self }
    }

    fn record(&self, who: &str, outcome: &str) -> Record {
        let place = format!("{} {}", self.subject.place(), self.detail);
        let place = place.trim();
        Record::new(who, self.operation.name, place, outcome)
    }
}

impl Dispatcher {
    pub(crate) fn new(gate: Gate, audit: Audit, series: ProxySeries) -> Self {
        let (gate, places) = (Arc::new(gate), Arc::new(Semaphore::new(ACTS)));
        let refusals = RefusalLog::new(audit.clone());
        Self { gate, audit, refusals, acts: TaskTracker::new(), over: Shutdown::new(), places, series }
    }

    /// What an operation gives, once that is counted.
    fn counted<T>(&self, operation: Operation, ended: Result<T, ActError>) -> Result<T, ActError> {
        self.series.ended(operation, &ended);
        ended
    }

    /// Reads something, for whoever may.
    pub(crate) async fn read<T>(
        &self,
        caller: &Caller,
        about: About,
        doing: impl Future<Output = Result<T, ActError>>,
    ) -> Result<T, ActError> {
        let read = match self.let_in(caller, &about).await {
            Ok(_) => doing.await,
            Err(error) => Err(error),
        };
        self.counted(about.operation, read)
    }

    /// As [`Self::read`], of what depends on who it is.
    pub(crate) async fn read_as<T>(
        &self,
        caller: &Caller,
        about: About,
        doing: impl AsyncFnOnce(Account) -> Result<T, ActError>,
    ) -> Result<T, ActError> {
        let read = match self.let_in(caller, &about).await {
            Ok(granted) => doing(granted.who).await,
            Err(error) => Err(error),
        };
        self.counted(about.operation, read)
    }

    /// Changes something, for whoever may, and records it.
    pub(crate) async fn act<T: Send + 'static>(
        &self,
        caller: &Caller,
        about: About,
        doing: impl Future<Output = Result<T, ActError>> + Send + 'static,
    ) -> Result<T, ActError> {
        // It waits while whoever asks is let in.
        let doing = Box::pin(doing);
        self.act_as(caller, about, |_| doing).await
    }

    /// As [`Self::act`], of what depends on who it is.
    pub(crate) async fn act_as<T: Send + 'static, Doing>(
        &self,
        caller: &Caller,
        about: About,
        doing: impl FnOnce(Account) -> Doing + Send + 'static,
    ) -> Result<T, ActError>
    where
        Doing: Future<Output = Result<T, ActError>> + Send + 'static,
    {
        let operation = about.operation;
        let (granted, one, permit) = match self.enter(caller, &about).await {
            Ok(entered) => entered,
            Err(error) => return self.counted(operation, Err(error)),
        };
        let dispatcher = self.clone();
        let done = self.acts.spawn(async move {
            let _one = one;
            if dispatcher.over.is_cancelled() {
                return dispatcher.counted(operation, Err(ActError::Stopping));
            }
            let done = tokio::select! {
                biased;
                done = doing(granted.who.clone()) => done,
                () = dispatcher.over.cancelled() => Err(ActError::InDoubt),
            };
            let outcome = match &done {
                Ok(_) => "done".to_owned(),
                Err(ActError::InDoubt) => {
                    "in doubt: the app proxy stopped before its end was known".to_owned()
                }
                Err(error) => format!("failed: {}", error.code()),
            };
            permit.send(about.record(&granted.who.name, &outcome));
            dispatcher.counted(operation, done)
        });
        done.await.unwrap_or(Err(ActError::Stopping))
    }

    /// Waits until an act may begin. Until then it is nobody's who has gone away: whatever waits here ends with its request, so that
    /// requests of nobody keep no act of somebody waiting.
    async fn enter(
        &self,
        caller: &Caller,
        about: &About,
    ) -> Result<(Granted, OwnedSemaphorePermit, RecordPermit), ActError> {
        let granted = self.let_in(caller, about).await?;
        let one = self.places.clone().acquire_owned().await.map_err(|_| ActError::Stopping)?;
        Ok((granted, one, self.audit.reserve()?))
    }

    /// Whether the platform knows whoever asks, whatever they may.
    pub(crate) async fn knows(&self, caller: &Caller) -> Result<(), ActError> {
        let Some(token) = caller.0.as_ref() else { return Err(self.without_credentials()) };
        match self.gate.check(token, Operation::VERSION_INFO, &Subject::default()).await {
            Ok(_) | Err(Denied { who: Some(_), .. }) => Ok(()),
            Err(Denied { who: None, refusal, error }) => {
                self.series.refused(refusal);
                Err(error)
            }
        }
    }

    /// Lets somebody in who begins what lasts, and records that they did.
    pub(crate) async fn begin(&self, caller: &Caller, about: &About) -> Result<Granted, ActError> {
        let begun = match self.let_in(caller, about).await {
            Ok(granted) => self.audit.reserve().map(|permit| {
                permit.send(about.record(&granted.who.name, "done"));
                granted
            }),
            Err(error) => Err(error),
        };
        self.counted(about.operation, begun)
    }

    /// Whether they still may.
    pub(crate) async fn still(&self, caller: &Caller, about: &About) -> Result<(), ActError> {
        self.let_in(caller, about).await.map(drop)
    }

    /// Who it is; one who is known and may not is recorded.
    async fn let_in(&self, caller: &Caller, about: &About) -> Result<Granted, ActError> {
        let Some(token) = caller.0.as_ref() else { return Err(self.without_credentials()) };
        about.subject.check(about.operation)?;
        let checked = Box::pin(self.gate.check(token, about.operation, &about.subject)).await;
        checked.map_err(|denied| {
            self.series.refused(denied.refusal);
            if let Some(who) = denied.who {
                self.refusals.record(about.record(&who, &format!("refused: {}", denied.error)));
            }
            denied.error
        })
    }

    /// What whoever does not say who they are is told.
    pub(crate) fn without_credentials(&self) -> ActError {
        self.series.refused(Refusal::NoCredentials);
        ActError::NoCredentials
    }

    /// When no act is under way any more: those that are have so long, and are left and recorded as in doubt then. None begins
    /// afterwards, since nobody would wait until it is recorded.
    pub(crate) async fn finished(&self, within: Duration) {
        self.acts.close();
        // Whether they have ended or not, what is left of them ends next.
        let _ = timeout(within, self.acts.wait()).await;
        self.over.cancel();
        self.acts.wait().await;
    }
}
