//! The permission to read a stream: the platform is asked again while the stream lasts.

use std::time::Duration;

use tokio::time::Instant;

use crate::dispatcher::{Caller, Dispatcher, Invocation};
use crate::error::ActError;
use crate::streams::StreamPlace;

/// How long a stream may last; it may be begun again.
const MAX_DURATION: Duration = Duration::from_secs(3 * 3_600);
/// How long a stream may last whose token cannot be checked again.
const MAX_UNCHECKED: Duration = Duration::from_secs(15 * 60);
/// How often the platform is asked whether the caller still may.
const CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// The permission of a caller to read a stream, and its place among all streams.
#[derive(Debug)]
pub(crate) struct StreamGrant {
    dispatcher: Dispatcher,
    caller: Caller,
    invocation: Invocation,
    /// Whether the token can be checked again later.
    lasts: bool,
    /// When the stream began.
    since: Instant,
    /// When the platform is to be asked again.
    look: Instant,
    /// Its place among all streams.
    _place: StreamPlace,
}

impl StreamGrant {
    /// Grants a stream to a caller who may read it, and records that.
    pub(crate) async fn begin(
        dispatcher: &Dispatcher,
        place: StreamPlace,
        caller: &Caller,
        invocation: Invocation,
    ) -> Result<Self, ActError> {
        let lasts = dispatcher.begin(caller, &invocation).await?.lasts;
        let since = Instant::now();
        let (dispatcher, caller) = (dispatcher.clone(), caller.clone());
        Ok(Self { dispatcher, caller, invocation, lasts, since, look: since + CHECK_INTERVAL, _place: place })
    }

    /// How long the stream may last.
    pub(crate) fn longest(&self) -> Duration {
        if self.lasts { MAX_DURATION } else { MAX_UNCHECKED }
    }

    /// When the stream ends at the latest.
    pub(crate) fn end(&self) -> Instant {
        self.since + self.longest()
    }

    /// When [`Self::look`] is to be called next.
    pub(crate) fn next_look(&self) -> Instant {
        self.look
    }

    /// Asks the platform again whether the caller still may, once it is time to.
    ///
    /// # Errors
    /// Why the caller may not any more.
    pub(crate) async fn look(&mut self) -> Result<(), ActError> {
        let now = Instant::now();
        if now < self.look {
            return Ok(());
        }
        self.look = now + CHECK_INTERVAL;
        if self.lasts { self.dispatcher.still(&self.caller, &self.invocation).await } else { Ok(()) }
    }
}
