//! Somebody whom something is told as it comes: they are looked at again while it lasts.

use std::time::Duration;

use tokio::time::Instant;

use crate::dispatcher::{About, Caller, Dispatcher};
use crate::error::ActError;
use crate::streams::StreamPlace;

/// A stream ends after so long, and may be begun again.
const LONGEST: Duration = Duration::from_secs(3 * 3_600);
/// The same where nobody can be asked again whether they still may.
const OF_A_PASS: Duration = Duration::from_secs(15 * 60);
/// How often it is seen whether they still may.
const LOOK: Duration = Duration::from_secs(60);

/// Whoever asks for a stream, who may have it for now.
#[derive(Debug)]
pub(crate) struct Watched {
    dispatcher: Dispatcher,
    caller: Caller,
    about: About,
    /// Whether the token may be asked about again.
    lasts: bool,
    /// When it was seen that they may.
    since: Instant,
    /// When it is to be seen again.
    look: Instant,
    /// Its place among all streams.
    _place: StreamPlace,
}

impl Watched {
    /// Lets somebody in who may.
    pub(crate) async fn begin(
        dispatcher: &Dispatcher,
        place: StreamPlace,
        caller: &Caller,
        about: About,
    ) -> Result<Self, ActError> {
        let lasts = dispatcher.begin(caller, &about).await?.lasts;
        let since = Instant::now();
        let (dispatcher, caller) = (dispatcher.clone(), caller.clone());
        Ok(Self { dispatcher, caller, about, lasts, since, look: since + LOOK, _place: place })
    }

    /// How long the stream may be.
    pub(crate) fn longest(&self) -> Duration {
        if self.lasts { LONGEST } else { OF_A_PASS }
    }

    /// When it ends.
    pub(crate) fn end(&self) -> Instant {
        self.since + self.longest()
    }

    /// When they are to be looked at next.
    pub(crate) fn next_look(&self) -> Instant {
        self.look
    }

    /// Sees whether they still may, once it is time to.
    ///
    /// # Errors
    /// Why they may not any more.
    pub(crate) async fn look(&mut self) -> Result<(), ActError> {
        let now = Instant::now();
        if now < self.look {
            return Ok(());
        }
        self.look = now + LOOK;
        if self.lasts { self.dispatcher.still(&self.caller, &self.about).await } else { Ok(()) }
    }
}
