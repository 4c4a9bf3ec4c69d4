//! Every operation passes here: the caller is authorized, the act is done, counted, and recorded in the audit log.
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

/// The most acts that are under way at a time.
const MAX_ACTS: usize = 64;

/// Whoever asks, by the token that came with the request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Caller(pub(crate) Option<SecretString>);

/// An operation that is asked for, and what it is about.
#[derive(Debug, Clone)]
pub(crate) struct Invocation {
    pub(crate) operation: Operation,
    pub(crate) subject: Subject,
    /// Such as a resource of the application, for the audit log.
    pub(crate) detail: String,
}

/// Authorizes, runs, counts and records operations. Cloning shares.
#[derive(Debug, Clone)]
pub(crate) struct Dispatcher {
    gate: Arc<Gate>,
    audit: Audit,
    refusals: RefusalLog,
    acts: TaskTracker,
    /// Cancelled once no act may begin, and none is waited for any more.
    over: Shutdown,
    /// Places for acts that are under way.
    places: Arc<Semaphore>,
    series: ProxySeries,
}

impl Invocation {
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
        let (gate, places) = (Arc::new(gate), Arc::new(Semaphore::new(MAX_ACTS)));
        let refusals = RefusalLog::new(audit.clone());
        Self { gate, audit, refusals, acts: TaskTracker::new(), over: Shutdown::new(), places, series }
    }

    /// Counts how an operation ended, and gives that back.
    fn counted<T>(&self, operation: Operation, ended: Result<T, ActError>) -> Result<T, ActError> {
        self.series.ended(operation, &ended);
        ended
    }

    /// Reads something, for a caller who may.
    pub(crate) async fn read<T>(
        &self,
        caller: &Caller,
        invocation: Invocation,
        doing: impl Future<Output = Result<T, ActError>>,
    ) -> Result<T, ActError> {
        let read = match self.authorize(caller, &invocation).await {
            Ok(_) => doing.await,
            Err(error) => Err(error),
        };
        self.counted(invocation.operation, read)
    }

    /// As [`Self::read`], of what depends on the account.
    pub(crate) async fn read_as<T>(
        &self,
        caller: &Caller,
        invocation: Invocation,
        doing: impl AsyncFnOnce(Account) -> Result<T, ActError>,
    ) -> Result<T, ActError> {
        let read = match self.authorize(caller, &invocation).await {
            Ok(granted) => doing(granted.who).await,
            Err(error) => Err(error),
        };
        self.counted(invocation.operation, read)
    }

    /// Changes something, for a caller who may, and records it.
    pub(crate) async fn act<T: Send + 'static, Doing>(
        &self,
        caller: &Caller,
        invocation: Invocation,
        doing: impl FnOnce(Account) -> Doing + Send + 'static,
    ) -> Result<T, ActError>
    where
        Doing: Future<Output = Result<T, ActError>> + Send + 'static,
    {
        let operation = invocation.operation;
        let (granted, one, permit) = match self.enter(caller, &invocation).await {
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
            permit.send(invocation.record(&granted.who.name, &outcome));
            dispatcher.counted(operation, done)
        });
        done.await.unwrap_or(Err(ActError::Stopping))
    }

    /// Authorizes the caller, and waits until an act may begin. This ends with the request, so that callers who have gone away take no
    /// place of those who wait.
    async fn enter(
        &self,
        caller: &Caller,
        invocation: &Invocation,
    ) -> Result<(Granted, OwnedSemaphorePermit, RecordPermit), ActError> {
        let granted = self.authorize(caller, invocation).await?;
        let one = self.places.clone().acquire_owned().await.map_err(|_| ActError::Stopping)?;
        Ok((granted, one, self.audit.reserve()?))
    }

    /// Whether the platform knows the caller, whatever they may.
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

    /// Authorizes a caller who begins something that lasts, such as a stream, and records that.
    pub(crate) async fn begin(&self, caller: &Caller, invocation: &Invocation) -> Result<Granted, ActError> {
        let begun = match self.authorize(caller, invocation).await {
            Ok(granted) => self.audit.reserve().map(|permit| {
                permit.send(invocation.record(&granted.who.name, "done"));
                granted
            }),
            Err(error) => Err(error),
        };
        self.counted(invocation.operation, begun)
    }

    /// Authorizes a caller again.
    pub(crate) async fn still(&self, caller: &Caller, invocation: &Invocation) -> Result<(), ActError> {
        self.authorize(caller, invocation).await.map(drop)
    }

    /// Authorizes a caller. A refusal is counted, and recorded where the platform knows the caller.
    async fn authorize(&self, caller: &Caller, invocation: &Invocation) -> Result<Granted, ActError> {
        let Some(token) = caller.0.as_ref() else { return Err(self.without_credentials()) };
        invocation.subject.check(invocation.operation)?;
        let checked = Box::pin(self.gate.check(token, invocation.operation, &invocation.subject)).await;
        checked.map_err(|denied| {
            self.series.refused(denied.refusal);
            if let Some(who) = denied.who {
                self.refusals.record(invocation.record(&who, &format!("refused: {}", denied.error)));
            }
            denied.error
        })
    }

    /// Counts a request without credentials, and gives its error.
    pub(crate) fn without_credentials(&self) -> ActError {
        self.series.refused(Refusal::NoCredentials);
        ActError::NoCredentials
    }

    /// Waits until no act is under way: for `within`, after which those that are left are recorded as in doubt. No act begins
    /// afterwards, since nothing would wait until it is recorded.
    pub(crate) async fn finished(&self, within: Duration) {
        self.acts.close();
        // Acts that have not ended by now end as in doubt.
        let _ = timeout(within, self.acts.wait()).await;
        self.over.cancel();
        self.acts.wait().await;
    }
}
