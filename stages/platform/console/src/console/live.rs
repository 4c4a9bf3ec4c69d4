//! One stream of events per browser: what changed, by name; the page asks for what it shows of that.

use std::convert::Infallible;
use std::time::Duration;

use axum::response::sse::{Event, Sse};
use futures::Stream;
use stages_platform_store::Waited;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::{Console, Session};
use crate::fleet::Changes;

/// So often it is said that the stream lives; a browser that hears nothing for longer is behind.
const BEAT: Duration = Duration::from_secs(5);

struct Place {
    console: Console,
    session: Session,
    sequence: watch::Receiver<u64>,
    after: u64,
    greeted: bool,
    /// The browser was away: what it missed is looked for at once.
    resumes: bool,
    beat: Instant,
}

/// From behind `after`, the last event that the browser has, or from now.
pub(super) fn stream(
    console: Console,
    session: Session,
    after: Option<u64>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let mut sequence = console.0.fleets.sequence();
    let now = *sequence.borrow_and_update();
    let place = Place {
        console,
        session,
        sequence,
        after: after.unwrap_or(now),
        greeted: false,
        resumes: after.is_some(),
        beat: Instant::now() + BEAT,
    };
    Sse::new(futures::stream::unfold(place, |place| async {
        let stop = place.console.0.stop.clone();
        tokio::select! {
            () = stop.cancelled() => None,
            next = next(place) => next,
        }
    }))
}

async fn next(mut place: Place) -> Option<(Result<Event, Infallible>, Place)> {
    if !place.greeted {
        place.greeted = true;
        let event = Event::default().event("hello").id(place.after.to_string()).data("live");
        return Some((Ok(event), place));
    }
    loop {
        if !std::mem::take(&mut place.resumes) {
            match Waited::behind(&mut place.sequence, place.after, place.beat).await {
                Waited::Ended => return None,
                Waited::More => {}
                Waited::Nothing => {
                    place.beat = Instant::now() + BEAT;
                    // A session that has ended sees nothing more.
                    place.session = place.console.session(place.session.digest).await.ok()??;
                    // A browser passes no event on that has no data.
                    return Some((Ok(Event::default().event("beat").data("live")), place));
                }
            }
        }
        // Nor does one whose rules have changed see what they no longer grant.
        place.session = place.console.session(place.session.digest).await.ok()??;
        match place.session.fleet.changes(place.after).await {
            Ok(Changes::Some(upto, keys)) => {
                place.after = upto;
                if keys.is_empty() {
                    continue;
                }
                let data = serde_json::to_string(&keys).unwrap_or_default();
                return Some((Ok(Event::default().event("changed").id(upto.to_string()).data(data)), place));
            }
            Ok(Changes::Resync(upto)) => {
                place.after = upto;
                return Some((Ok(Event::default().event("resync").id(upto.to_string()).data("all")), place));
            }
            // The browser sees no beat, and says that it is behind. What it knows is looked at again, as nothing new may come.
            Err(_) => {
                place.resumes = true;
                sleep_until(Instant::now() + BEAT).await;
            }
        }
    }
}
