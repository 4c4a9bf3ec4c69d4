//! What is told as it changes.

use std::time::Duration;

use async_graphql::{Context, Result, SimpleObject, Subscription};
use axum::http::HeaderMap;
use futures::{Stream, StreamExt as _};
use stages_client::OwnCookie;
use stages_platform_store::{ChangedApplications, Sequence, Store, View, Waited, Which};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::application::{Application, ApplicationsFilterArgs};
use super::{Clock, caller, now, store};
use crate::caller::{Caller, Refusal, unread};
use crate::shares::{NoPlace, SharedPlace, Shares};

/// So often it is seen whether whoever subscribed is still known, and how long a store that does not answer is left alone.
const LOOK: Duration = Duration::from_secs(5);

/// Subscriptions of one person, whatever they come in with, or of one runtime.
const OF_ONE: usize = 20;
/// Subscriptions of all: each asks the store anew whenever anything is kept.
const OF_ALL: usize = 500;

/// What is told as it changes.
pub(crate) struct Subscription;

/// Places for subscriptions.
pub(super) fn shares() -> Shares {
    Shares::new(OF_ONE, OF_ALL)
}

/// What whoever asks came in with: they are looked at again as long as they are told anything.
#[derive(Clone)]
pub(crate) struct Credentials {
    pub(crate) session: OwnCookie,
    pub(crate) headers: HeaderMap,
}

/// What changed of applications since what was told before.
#[derive(SimpleObject)]
struct ApplicationsChange {
    /// How far this goes: a subscription that is begun again from behind it misses nothing.
    sequence: i64,
    /// What changed is too much, or is not kept any more: read all anew. None stands below.
    resync: bool,
    /// Those that changed, as they are now: 200 at most.
    applications: Vec<Application>,
}

/// What changed of one application since what was told before.
#[derive(SimpleObject)]
struct ApplicationChange {
    /// How far this goes: a subscription that is begun again from behind it misses nothing.
    sequence: i64,
    /// What changed is too much, or is not kept any more: read it anew.
    resync: bool,
    /// As it is now; null: nothing changed yet, or it is to be read anew.
    application: Option<Application>,
}

/// Somebody who is told of some applications.
struct Subscriber {
    store: Store,
    clock: Clock,
    credentials: Credentials,
    /// What they saw when they began.
    view: View,
    which: Which,
    newest: watch::Receiver<u64>,
    /// How far they were told.
    after: i64,
    state: State,
    _place: SharedPlace,
}

/// How far a subscription is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// It is to be said from where on they are told.
    Begins,
    /// What they missed is to be looked for.
    Resumes,
    /// They wait for what changes.
    Waits,
    /// Why it ends was said.
    Ended,
}

type ChangesResult = std::result::Result<ChangedApplications, Refusal>;

impl Subscriber {
    /// From behind `after`, or from now on.
    async fn begin(context: &Context<'_>, which: Which, after: Option<i64>) -> Result<Self> {
        let (caller, store) = (caller(context)?, store(context)?.clone());
        let place = context.data::<Shares>()?.place(caller).map_err(|none| match none {
            NoPlace::OfOne(most) => Refusal::OwnSubscriptions(most),
            NoPlace::OfAll => Refusal::AllSubscriptions,
        })?;
        let newest = context.data::<Sequence>()?.newest();
        let after = match after {
            Some(after) => after,
            None => store.sequence().await.map_err(unread)?,
        };
        Ok(Self {
            store,
            clock: *context.data::<Clock>()?,
            credentials: context.data::<Credentials>()?.clone(),
            view: caller.view(),
            which,
            newest,
            after,
            state: State::Begins,
            _place: place,
        })
    }

    fn told(self) -> impl Stream<Item = ChangesResult> {
        futures::stream::unfold(self, |mut subscriber| async move {
            let told = subscriber.next().await?;
            Some((told, subscriber))
        })
    }

    async fn next(&mut self) -> Option<ChangesResult> {
        loop {
            match self.state {
                State::Begins => {
                    self.state = State::Resumes;
                    let nothing = ChangedApplications { upto: self.after, applications: Some(Vec::new()) };
                    return Some(Ok(nothing));
                }
                State::Resumes => self.state = State::Waits,
                State::Waits => {
                    let after = u64::try_from(self.after).unwrap_or_default();
                    if Waited::behind(&mut self.newest, after, Instant::now() + LOOK).await == Waited::Ended {
                        return None;
                    }
                }
                State::Ended => return None,
            }
            match self.changed().await {
                Ok(None) => {}
                Ok(Some(changed)) => return Some(Ok(changed)),
                Err(Refusal::Store) => sleep(LOOK).await,
                Err(refusal) => {
                    self.state = State::Ended;
                    return Some(Err(refusal));
                }
            }
        }
    }

    /// What changed, if anything did that they see. Whoever is not known any more, or sees something else by now, is told nothing:
    /// what they see now is no change of what they saw.
    async fn changed(&mut self) -> std::result::Result<Option<ChangedApplications>, Refusal> {
        let now = (self.clock.0)().as_millisecond();
        let Credentials { session, headers } = &self.credentials;
        let caller = Caller::of(&self.store, session, headers, now).await?;
        if caller.view() != self.view {
            return Err(Refusal::OtherView);
        }
        let found = self.store.visible_changed(&self.view, &self.which, self.after).await.map_err(unread)?;
        self.after = found.upto;
        Ok(Some(found).filter(|found| found.applications.as_ref().is_none_or(|all| !all.is_empty())))
    }
}

impl From<ChangedApplications> for ApplicationsChange {
    fn from(of: ChangedApplications) -> Self {
        let (sequence, resync) = (of.upto, of.applications.is_none());
        let applications = of.applications.unwrap_or_default().into_iter().map(Application::of).collect();
        Self { sequence, resync, applications }
    }
}

impl From<ChangedApplications> for ApplicationChange {
    fn from(of: ChangedApplications) -> Self {
        let (sequence, resync) = (of.upto, of.applications.is_none());
        let application = of.applications.unwrap_or_default().into_iter().next().map(Application::of);
        Self { sequence, resync, application }
    }
}

#[Subscription]
impl Subscription {
    /// Applications as they change, of one runtime or of all: those that whoever asks sees, over a POST that accepts
    /// `text/event-stream`. The first item says from where on, and has none. One that leaves the filters is not told of any more; one
    /// that is deleted is, unless they want others.
    #[graphql(complexity = "200 * child_complexity")]
    async fn applications_changed(
        &self,
        context: &Context<'_>,
        runtime: Option<String>,
        filters: Option<ApplicationsFilterArgs>,
        #[graphql(desc = "The `sequence` of the last item that came; null: from now on.")] after: Option<i64>,
    ) -> Result<impl Stream<Item = Result<ApplicationsChange>>> {
        let filters = filters.unwrap_or_default();
        // What was deployed an hour ago is no hour ago any more once it is told.
        if filters.query.as_deref().is_some_and(|query| !query.trim().is_empty()) {
            return Err(Refusal::Wrong(
                "a subscription takes no query: list by it, and subscribe by labels".to_owned(),
            )
            .into());
        }
        let (which, _) = filters.which(runtime, now(context)?)?;
        let subscriber = Subscriber::begin(context, which, after).await?;
        Ok(subscriber.told().map(|told| -> Result<ApplicationsChange> { Ok(told?.into()) }))
    }

    /// One application as it changes, if whoever asks sees it, also one that there is none of yet: over a POST that accepts
    /// `text/event-stream`. The first item says from where on, and has none.
    #[graphql(complexity = "child_complexity")]
    async fn application_changed(
        &self,
        context: &Context<'_>,
        runtime: String,
        namespace: String,
        name: String,
        #[graphql(desc = "The `sequence` of the last item that came; null: from now on.")] after: Option<i64>,
    ) -> Result<impl Stream<Item = Result<ApplicationChange>>> {
        let (namespace, name) = (Some(namespace), Some(name));
        let which = Which { runtime: Some(runtime), namespace, name, ..Which::default() };
        let subscriber = Subscriber::begin(context, which, after).await?;
        Ok(subscriber.told().map(|told| -> Result<ApplicationChange> { Ok(told?.into()) }))
    }
}
