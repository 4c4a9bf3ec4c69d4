//! What is done rather than shown: said before where that is asked for, meant where it destroys something, and waited for.

use std::io::{self, BufRead as _, Write as _};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::{Instant, timeout_at};

use crate::arguments::act::{Careful, Waiting};
use crate::error::RemoteError;
use crate::proxy::Proxy;
use crate::show::Screen;

/// Between two looks at what is waited for.
const AGAIN: Duration = Duration::from_secs(1);
/// Looks in a row that may fail.
const FAILURES: u32 = 10;
/// A look that began before the end has so long beyond it to be answered.
const LAST: Duration = Duration::from_secs(10);

/// What is to be done.
pub(crate) struct Act<'a> {
    /// Completes "cannot ...".
    pub(crate) act: &'static str,
    /// Completes "would ...".
    pub(crate) does: String,
    /// What is so once it was asked for.
    pub(crate) done: String,
    /// Whether it takes something away that no other command brings back.
    pub(crate) destroys: bool,
    pub(crate) query: &'a str,
    pub(crate) variables: Value,
}

impl Act<'_> {
    /// Has it done; `None`: it was only to be said what would be.
    pub(crate) async fn carry_out(
        &self,
        proxy: &Proxy,
        careful: &Careful,
        screen: &Screen,
    ) -> Result<Option<Map<String, Value>>, RemoteError> {
        if careful.dry_run {
            screen.tell(&format!("would {}", self.does))?;
            return Ok(None);
        }
        if self.destroys && !careful.yes {
            confirm(&self.does)?;
        }
        let data = proxy.ask(self.act, self.query, self.variables.clone()).await?;
        if !self.done.is_empty() {
            screen.tell(&self.done)?;
        }
        Ok(Some(data))
    }
}

/// Asks whether it is meant, where there is somebody who can say so.
pub(crate) fn confirm(does: &str) -> Result<(), RemoteError> {
    if !Screen::can_ask() {
        return Err(RemoteError::Usage(format!("this would {does}: give --yes, since nobody can be asked")));
    }
    let failed = |error| RemoteError::Terminal("ask whether it is meant", error);
    let mut err = io::stderr().lock();
    write!(err, "This would {does}. Go on? [y/N] ").and_then(|()| err.flush()).map_err(failed)?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(failed)?;
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(RemoteError::Missing("nothing was done".to_owned())),
    }
}

/// What a look at something that is waited for found.
pub(crate) enum Look {
    /// It is so, which is said.
    Done(String),
    /// It will not become so.
    Failed(String),
    /// It is not so yet; how far it is.
    Not(String),
}

/// Waits until it is so, and says how far it is whenever that changes.
pub(crate) async fn wait(
    waiting: &Waiting,
    screen: &Screen,
    look: impl AsyncFn() -> Result<Look, RemoteError>,
) -> Result<(), RemoteError> {
    let end = Instant::now() + waiting.timeout;
    let (mut said, mut failures) = (String::new(), 0);
    loop {
        let looked = timeout_at(end + LAST, look()).await;
        let unanswered = || if said.is_empty() { "nobody answered".to_owned() } else { said.clone() };
        match looked.unwrap_or_else(|_| Ok(Look::Not(unanswered()))) {
            Ok(Look::Done(text)) => return screen.tell(&text),
            Ok(Look::Failed(text)) => return Err(RemoteError::NotMet(text)),
            Ok(Look::Not(now)) => {
                failures = 0;
                if now != said {
                    screen.note(&format!("waiting: {now}"));
                    said = now;
                }
            }
            // Whoever is asked may be restarted by what was done.
            Err(error) if failures < FAILURES => {
                failures += 1;
                let now = error.line();
                if now != said {
                    screen.note(&format!("waiting: {now}"));
                    said = now;
                }
            }
            Err(error) => return Err(error),
        }
        if Instant::now() >= end {
            let within = waiting.timeout.as_secs();
            return Err(RemoteError::NotMet(format!("it has not taken effect within {within} s: {said}")));
        }
        tokio::time::sleep(AGAIN.min(end.saturating_duration_since(Instant::now()))).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_never_answers_is_not_waited_for_beyond_the_end() {
        let screen = Screen { is_terminal: false, width: None, colour: false };
        let waiting = Waiting { wait: true, timeout: Duration::from_secs(5) };
        let (began, look) = (Instant::now(), async || std::future::pending().await);
        let ended = wait(&waiting, &screen, look).await;
        let text = "it has not taken effect within 5 s: nobody answered";
        assert!(matches!(ended, Err(RemoteError::NotMet(said)) if said == text));
        assert_eq!(began.elapsed(), Duration::from_secs(5) + LAST);
    }
}
