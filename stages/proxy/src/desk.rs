//! Where every operation passes: who asks, whether they may, the act, and its record.
//!
//! An act goes on to its end and into the audit log in a task of its own, whether or not whoever asked still waits.

use std::sync::Arc;

use pipeline_core::SecretString;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use crate::audit::{Audit, Place, Record};
use crate::error::ActError;
use crate::gate::{Denied, Gate, Granted, Subject};
use crate::operation::Operation;
use crate::refusal::Refusal;
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
pub(crate) struct Desk {
    gate: Arc<Gate>,
    audit: Audit,
    acts: TaskTracker,
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

impl Desk {
    pub(crate) fn new(gate: Gate, audit: Audit, series: ProxySeries) -> Self {
        let (gate, places) = (Arc::new(gate), Arc::new(Semaphore::new(ACTS)));
        Self { gate, audit, acts: TaskTracker::new(), places, series }
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
        let read = match self.let_in(caller, &about, self.audit.place().ok()).await {
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
        doing: impl AsyncFnOnce(String) -> Result<T, ActError>,
    ) -> Result<T, ActError> {
        let read = match self.let_in(caller, &about, self.audit.place().ok()).await {
            Ok((granted, _)) => doing(granted.who).await,
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
        self.act_as(caller, about, |_| doing).await
    }

    /// As [`Self::act`], of what depends on who it is.
    pub(crate) async fn act_as<T: Send + 'static, Doing>(
        &self,
        caller: &Caller,
        about: About,
        doing: impl FnOnce(String) -> Doing + Send + 'static,
    ) -> Result<T, ActError>
    where
        Doing: Future<Output = Result<T, ActError>> + Send + 'static,
    {
        let (desk, caller) = (self.clone(), caller.clone());
        let done = self.acts.spawn(async move {
            let operation = about.operation;
            let done = Box::pin(desk.do_as(&caller, about, doing)).await;
            desk.counted(operation, done)
        });
        done.await.unwrap_or(Err(ActError::Stopping))
    }

    async fn do_as<T, Doing>(
        &self,
        caller: &Caller,
        about: About,
        doing: impl FnOnce(String) -> Doing,
    ) -> Result<T, ActError>
    where
        Doing: Future<Output = Result<T, ActError>>,
    {
        let _one = self.places.acquire().await.map_err(|_| ActError::Stopping)?;
        let place = self.audit.place()?;
        let (granted, place) = self.let_in(caller, &about, Some(place)).await?;
        let done = doing(granted.who.clone()).await;
        let outcome = match &done {
            Ok(_) => "done".to_owned(),
            Err(error) => format!("failed: {}", error.code()),
        };
        if let Some(place) = place {
            place.take(about.record(&granted.who, &outcome));
        }
        done
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
        let begun = match self.audit.place() {
            Ok(place) => self.let_in(caller, about, Some(place)).await,
            Err(error) => Err(error),
        };
        let begun = begun.map(|(granted, place)| {
            if let Some(place) = place {
                place.take(about.record(&granted.who, "done"));
            }
            granted
        });
        self.counted(about.operation, begun)
    }

    /// Whether they still may.
    pub(crate) async fn still(&self, caller: &Caller, about: &About) -> Result<(), ActError> {
        self.let_in(caller, about, self.audit.place().ok()).await.map(drop)
    }

    /// Who it is; one who is known and may not is recorded.
    async fn let_in(
        &self,
        caller: &Caller,
        about: &About,
        place: Option<Place>,
    ) -> Result<(Granted, Option<Place>), ActError> {
        let Some(token) = caller.0.as_ref() else { return Err(self.without_credentials()) };
        about.subject.check(about.operation)?;
        match self.gate.check(token, about.operation, &about.subject).await {
            Ok(granted) => Ok((granted, place)),
            Err(Denied { who, refusal, error }) => {
                self.series.refused(refusal);
                if let (Some(place), Some(who)) = (place, who) {
                    place.take(about.record(&who, &format!("refused: {error}")));
                }
                Err(error)
            }
        }
    }

    /// What whoever does not say who they are is told.
    pub(crate) fn without_credentials(&self) -> ActError {
        self.series.refused(Refusal::NoCredentials);
        ActError::NoCredentials
    }

    /// When the acts under way are done.
    pub(crate) async fn finished(&self) {
        self.acts.close();
        self.acts.wait().await;
    }
}
