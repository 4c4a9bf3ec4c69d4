//! The circuit of a sink: when the sink as a whole is down, one probe is sent instead of a storm.
//!
//! Pure: it is told what happened and when. It opens after several objects failed in a row with no
//! answer between, or at once when the sink refuses the runtime itself: 401 and 403 at any time; 404, 405, a
//! redirect or a certificate that does not verify before the first success, since the address is then more
//! likely wrong than the report. While it is open nothing is parked and nothing is sent but the probe.
//!
//! A sink that refuses our token (401) or our rights (403) is not asked again every few seconds: only someone who
//! changes the one or the other can help. It is probed every few minutes, and at once when the token changes. But as
//! long as it refused reports of one object alone, it may well take those of others: then it is probed as soon as
//! after any other failure.

use std::collections::BTreeSet;
use std::time::Duration;

use pipeline_core::{Backoff, CircuitState, Key, Reason};

/// When a circuit opens, and how long it stays open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Opens when this many different objects failed in a row.
    pub failures: usize,
    /// Between probes.
    pub backoff: Backoff,
    /// Between probes of a sink that answered 401 or 403 to reports of different objects.
    pub refused: Backoff,
}

/// What was on its way when the token changed carries the old one: for so long after a change a 401 or 403 is followed
/// by a probe as soon as after any other failure.
const CHANGING: Duration = Duration::from_secs(60);
/// Refused reports of so many objects are not due to the object.
const SEVERAL: usize = 2;

#[cfg(test)]
impl Default for Config {
    fn default() -> Self {
        let minutes = Duration::from_secs(300);
        Self {
            failures: 5,
            backoff: Backoff { min: Duration::from_secs(1), max: Duration::from_secs(30) },
            refused: Backoff { min: minutes, max: minutes },
        }
    }
}

/// How the sink answered one report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SinkResponse {
    /// It took it.
    Accepted,
    /// It could not take it now.
    Failed {
        /// Why.
        reason: Reason,
        /// Its `Retry-After`.
        after: Option<Duration>,
    },
    /// It refused it for good.
    Refused {
        /// Why.
        reason: Reason,
    },
}

/// What an answer means for the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It has arrived.
    Acked,
    /// It is sent again.
    Retry {
        /// Why it was not taken.
        reason: Reason,
        /// The sink's `Retry-After`.
        after: Option<Duration>,
    },
    /// It is never sent again as it is.
    Reject {
        /// Why it was not taken.
        reason: Reason,
    },
}

impl Verdict {
    /// Why the report was not taken, if it was not.
    #[must_use]
    pub fn reason(self) -> Option<Reason> {
        match self {
            Self::Acked => None,
            Self::Retry { reason, .. } | Self::Reject { reason } => Some(reason),
        }
    }
}

/// The circuit of one sink, shared by all shards.
#[derive(Debug)]
pub struct Circuit {
    config: Config,
    state: CircuitState,
    /// Objects that failed since the last answer; at most `config.failures`.
    failing: BTreeSet<Key>,
    /// Times it opened in a row without closing.
    opened: u32,
    probes: u64,
    succeeded: bool,
    /// Objects whose reports were answered with 401 or 403 since the last answer; two at most.
    denied: BTreeSet<Key>,
    /// When the token changed last.
    changed: Option<Duration>,
}

impl Circuit {
    /// A closed circuit.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            state: CircuitState::Closed,
            failing: BTreeSet::new(),
            opened: 0,
            probes: 0,
            succeeded: false,
            denied: BTreeSet::new(),
            changed: None,
        }
    }

    /// Where it stands.
    #[must_use]
    pub fn state(&self) -> CircuitState {
        self.state
    }

    /// Takes one answer; `probe` is the right under which the report was sent, if it was a probe. `seed`
    /// chooses the jitter.
    pub fn answer(
        &mut self,
        key: &Key,
        answer: SinkResponse,
        probe: Option<u64>,
        now: Duration,
        seed: u64,
    ) -> Verdict {
        match answer {
            SinkResponse::Accepted => {
                self.succeeded = true;
                self.close();
                Verdict::Acked
            }
            SinkResponse::Refused { reason } if !self.refuses_all(reason) => {
                self.close();
                Verdict::Reject { reason }
            }
            SinkResponse::Refused { reason } => {
                self.fail(key, reason, None, probe, now, seed);
                Verdict::Retry { reason, after: None }
            }
            // It refuses the sender, which another has followed as the object's owner, and takes what others send.
            SinkResponse::Failed { reason: reason @ Reason::Refused, after } => {
                self.close();
                Verdict::Retry { reason, after }
            }
            SinkResponse::Failed { reason, after } => {
                self.fail(key, reason, after, probe, now, seed);
                Verdict::Retry { reason, after }
            }
        }
    }

    /// Whether a report may be sent, under the right to probe or without one; else why not.
    ///
    /// # Errors
    /// The reason why the circuit opened.
    pub fn may_send(&self, probe: Option<u64>) -> Result<(), Reason> {
        match self.state {
            CircuitState::Closed => Ok(()),
            CircuitState::Probing { probe: right, .. } if probe == Some(right) => Ok(()),
            CircuitState::Probing { reason, .. } | CircuitState::Open { reason, .. } => Err(reason),
        }
    }

    /// Takes the right to probe, if it is time and nobody has it.
    pub fn try_probe(&mut self, now: Duration) -> Option<u64> {
        match self.state {
            CircuitState::Open { until, reason } if until <= now => {
                self.probes += 1;
                self.state = CircuitState::Probing { probe: self.probes, reason };
                Some(self.probes)
            }
            _ => None,
        }
    }

    /// Gives the right back: the probe ended without an answer of the sink. One that is spent changes
    /// nothing.
    pub fn probe_over(&mut self, probe: u64, now: Duration) {
        if let CircuitState::Probing { probe: right, reason } = self.state
            && right == probe
        {
            self.state = CircuitState::Open { until: now, reason };
        }
    }

    /// What the sink is sent with has changed: an open circuit may be probed at once, whatever it waits for.
    pub fn hasten(&mut self, now: Duration) {
        self.changed = Some(now);
        self.denied.clear();
        self.opened = 0;
        if let CircuitState::Open { until, .. } = &mut self.state {
            *until = now.min(*until);
        }
    }

    fn close(&mut self) {
        self.failing.clear();
        self.denied.clear();
        self.opened = 0;
        self.state = CircuitState::Closed;
    }

    /// Whether `reason` says that the sink would refuse anything we send.
    fn refuses_all(&self, reason: Reason) -> bool {
        match reason {
            reason if is_denial(reason) => true,
            Reason::NotFound | Reason::Redirect | Reason::Tls => !self.succeeded,
            _ => false,
        }
    }

    fn fail(
        &mut self,
        key: &Key,
        reason: Reason,
        after: Option<Duration>,
        probe: Option<u64>,
        now: Duration,
        seed: u64,
    ) {
        if is_denial(reason) && self.denied.len() < SEVERAL {
            self.denied.insert(key.clone());
        }
        let opens = match self.state {
            CircuitState::Closed => {
                self.failing.insert(key.clone());
                self.failing.len() >= self.config.failures || self.refuses_all(reason)
            }
            CircuitState::Probing { probe: right, .. } => probe == Some(right),
            // What was on its way when it opened changes nothing.
            CircuitState::Open { .. } => false,
        };
        if opens {
            self.opened = self.opened.saturating_add(1);
            self.failing.clear();
            let wait = self.backoff(reason, now).wait(self.opened, after, seed);
            self.state = CircuitState::Open { until: now + wait, reason };
        }
    }

    fn backoff(&self, reason: Reason, now: Duration) -> Backoff {
        let changing = self.changed.is_some_and(|at| now.saturating_sub(at) < CHANGING);
        let for_minutes = is_denial(reason) && self.denied.len() >= SEVERAL && !changing;
        if for_minutes { self.config.refused } else { self.config.backoff }
    }
}

/// The sink refuses our token or our rights, not the report.
fn is_denial(reason: Reason) -> bool {
    matches!(reason, Reason::Unauthorized | Reason::Forbidden)
}

#[cfg(test)]
mod tests;
