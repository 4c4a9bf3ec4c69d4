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

struct LiveStream {
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
    let stream = LiveStream {
        console,
        session,
        sequence,
        after: after.unwrap_or(now),
        greeted: false,
        resumes: after.is_some(),
        beat: Instant::now() + BEAT,
    };
    Sse::new(futures::stream::unfold(stream, |stream| async {
        let stop = stream.console.0.stop.clone();
        tokio::select! {
            () = stop.cancelled() => None,
            next = next(stream) => next,
        }
    }))
}

/// What time it is, in milliseconds, as a browser's clock may be wrong.
fn clock(stream: &LiveStream) -> String {
    stream.console.now().as_millisecond().to_string()
}

async fn next(mut stream: LiveStream) -> Option<(Result<Event, Infallible>, LiveStream)> {
    if !stream.greeted {
        stream.greeted = true;
        let event = Event::default().event("hello").id(stream.after.to_string()).data(clock(&stream));
        return Some((Ok(event), stream));
    }
    loop {
        if !std::mem::take(&mut stream.resumes) {
            match Waited::behind(&mut stream.sequence, stream.after, stream.beat).await {
                Waited::Ended => return None,
                Waited::More => {}
                Waited::Nothing => {
                    stream.beat = Instant::now() + BEAT;
                    // A session that has ended sees nothing more.
                    stream.session = stream.console.session(stream.session.digest).await.ok()??;
                    return Some((Ok(Event::default().event("beat").data(clock(&stream))), stream));
                }
            }
        }
        // Nor does one whose rules have changed see what they no longer grant.
        stream.session = stream.console.session(stream.session.digest).await.ok()??;
        match stream.session.fleet.changes(stream.after).await {
            Ok(Changes::Some(upto, keys)) => {
                stream.after = upto;
                if keys.is_empty() {
                    continue;
                }
                let data = serde_json::to_string(&keys).unwrap_or_default();
                return Some((Ok(Event::default().event("changed").id(upto.to_string()).data(data)), stream));
            }
            Ok(Changes::Resync(upto)) => {
                stream.after = upto;
                return Some((Ok(Event::default().event("resync").id(upto.to_string()).data("all")), stream));
            }
            // The browser sees no beat, and says that it is behind. What it knows is looked at again, as nothing new may come.
            Err(_) => {
                stream.resumes = true;
                sleep_until(Instant::now() + BEAT).await;
            }
        }
    }
}
