//! The terminal: taken over, drawn on each second and at each key, and given back however this ends.

use std::time::Duration;

use anyhow::Context as _;
use crossterm::event::{Event, EventStream};
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use pipeline_http::admin::wire::{Explained, Top};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval};

use super::super::client::{Reporter, whole_key};
use super::state::{KeyAction, State};
use super::view;

/// How often the reporter is asked.
const INTERVAL: Duration = Duration::from_secs(1);

/// An answer of the reporter.
enum ReporterAnswer {
    Top(anyhow::Result<Top>),
    Explained(String, anyhow::Result<Explained>),
}

/// The terminal, which is restored once this is dropped, or by [`ratatui::try_init`] if something panics.
struct Screen(ratatui::DefaultTerminal);

impl Screen {
    fn take() -> anyhow::Result<Self> {
        ratatui::try_init().map(Self).context("take over the terminal: give --once for plain text")
    }

    fn draw(&mut self, state: &State) -> anyhow::Result<()> {
        self.0.draw(|frame| view::draw(frame, state)).context("draw on the terminal").map(drop)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that is gone need not be restored.
        let _ = self.0.show_cursor();
        let _ = ratatui::try_restore();
    }
}

/// Shows `top` and the answers after it, until a key or a signal ends it.
pub(super) async fn run(reporter: &Reporter, limit: u32, top: Top, colours: bool) -> anyhow::Result<()> {
    let mut signals = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()]
        .map(signal)
        .into_iter()
        .collect::<Result<Vec<Signal>, _>>()
        .context("listen for signals")?;
    let mut state = State::new(top, colours);
    let mut screen = Screen::take()?;
    let mut events = EventStream::new();
    let mut asked: FuturesUnordered<BoxFuture<'_, ReporterAnswer>> = FuturesUnordered::new();
    let mut tick = interval(INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        screen.draw(&state)?;
        let act = tokio::select! {
            _ = any(&mut signals) => KeyAction::Quit,
            event = events.next() => match event {
                Some(Ok(Event::Key(key))) => state.key(key),
                // The screen is drawn again at its new size.
                Some(Ok(_)) => KeyAction::Nothing,
                Some(Err(error)) => return Err(error).context("read the terminal's keys"),
                None => KeyAction::Quit,
            },
            Some(answered) = asked.next() => {
                match answered {
                    ReporterAnswer::Top(answer) => state.answered(answer),
                    ReporterAnswer::Explained(app, answer) => state.told(&app, answer, reporter.route()),
                }
                KeyAction::Nothing
            }
            _ = tick.tick() => match state.paused {
                true => KeyAction::Nothing,
                // The reporter is not asked again before it has answered.
                false if asked.is_empty() => KeyAction::Ask,
                false => KeyAction::Nothing,
            },
        };
        match act {
            KeyAction::Nothing => {}
            KeyAction::Ask => {
                asked.push(look(reporter, limit).boxed());
                asked.extend(state.explained().map(|app| explain(reporter, app.to_owned()).boxed()));
            }
            KeyAction::Quit => return Ok(()),
        }
    }
}

async fn any(signals: &mut [Signal]) {
    let mut next: FuturesUnordered<_> = signals.iter_mut().map(Signal::recv).collect();
    next.next().await;
}

async fn look(reporter: &Reporter, limit: u32) -> ReporterAnswer {
    let answer = super::ask(reporter, limit).await;
    ReporterAnswer::Top(answer.and_then(|answer| answer.read()))
}

async fn explain(reporter: &Reporter, app: String) -> ReporterAnswer {
    let answer = async {
        let key = whole_key(&app)?;
        reporter.get_of("explain", &key).await?.read()
    };
    let answer = answer.await;
    ReporterAnswer::Explained(app, answer)
}
