//! Changes that a command asks an app proxy for: a dry run says what would be done, what destroys something is confirmed first, and
//! their effect is waited for where that is asked.

use std::io::{self, BufRead as _, Write as _};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::{Instant, timeout_at};

use crate::arguments::act::{ConfirmArgs, WaitArgs};
use crate::error::RemoteError;
use crate::proxy::Proxy;
use crate::show::Screen;

/// How long to wait between two looks at what is waited for.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How many looks in a row may fail before waiting is given up.
const MAX_FAILURES: u32 = 10;
/// How long beyond the timeout a look may take that began before it.
const GRACE: Duration = Duration::from_secs(10);

/// A mutation, and the words that it is announced and confirmed in.
pub(crate) struct Act<'a> {
    /// Completes "cannot ...".
    pub(crate) act: &'static str,
    /// Completes "would ...".
    pub(crate) does: String,
    /// A sentence that is said once it was asked for; empty: none is.
    pub(crate) done: String,
    /// Whether it takes something away that no other command brings back.
    pub(crate) destroys: bool,
    pub(crate) query: &'a str,
    pub(crate) variables: Value,
}

impl Act<'_> {
    /// Asks for it, and gives the data of the answer. A dry run says what would be done and gives `None`.
    pub(crate) async fn carry_out(
        &self,
        proxy: &Proxy,
        careful: &ConfirmArgs,
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

/// Asks on the terminal whether it is meant.
///
/// # Errors
/// If nobody is there to be asked, or whoever is does not say yes.
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

/// How far something is that is waited for.
pub(crate) enum Progress {
    /// It has taken effect, as this sentence says.
    Done(String),
    /// It will not take effect, for this reason.
    Failed(String),
    /// It has not taken effect yet; this says how far it is.
    Pending(String),
}

/// Looks again and again until something has taken effect, and says how far it is whenever that changes.
///
/// # Errors
/// If it fails, does not take effect within the timeout, or cannot be looked at [`MAX_FAILURES`] times in a row.
pub(crate) async fn wait(
    waiting: &WaitArgs,
    screen: &Screen,
    look: impl AsyncFn() -> Result<Progress, RemoteError>,
) -> Result<(), RemoteError> {
    let end = Instant::now() + waiting.timeout;
    let (mut said, mut failures) = (String::new(), 0);
    loop {
        let looked = timeout_at(end + GRACE, look()).await;
        let unanswered = || if said.is_empty() { "nobody answered".to_owned() } else { said.clone() };
        match looked.unwrap_or_else(|_| Ok(Progress::Pending(unanswered()))) {
            Ok(Progress::Done(text)) => return screen.tell(&text),
            Ok(Progress::Failed(text)) => return Err(RemoteError::NotMet(text)),
            Ok(Progress::Pending(now)) => {
                failures = 0;
                if now != said {
                    screen.note(&format!("waiting: {now}"));
                    said = now;
                }
            }
            // Whoever is asked may be restarted by what was done.
            Err(error) if failures < MAX_FAILURES => {
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
        tokio::time::sleep(POLL_INTERVAL.min(end.saturating_duration_since(Instant::now()))).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_never_answers_is_not_waited_for_beyond_the_end() {
        let screen = Screen { is_terminal: false, width: None, colour: false };
        let waiting = WaitArgs { wait: true, timeout: Duration::from_secs(5) };
        let (began, look) = (Instant::now(), async || std::future::pending().await);
        let ended = wait(&waiting, &screen, look).await;
        let text = "it has not taken effect within 5 s: nobody answered";
        assert!(matches!(ended, Err(RemoteError::NotMet(said)) if said == text));
        assert_eq!(began.elapsed(), Duration::from_secs(5) + GRACE);
    }
}
