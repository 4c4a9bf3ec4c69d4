//! The circuit of a sink: when the sink as a whole is down, one probe is sent instead of a storm.
//!
//! Pure: it is told what happened and when. It opens after several applications failed in a row with no
//! answer between, or at once when the sink refuses the runtime itself: 401 and 403 at any time; 404, 405, a
//! redirect or a certificate that does not verify before the first success, since the address is then more
//! likely wrong than the report. While it is open nothing is parked and nothing is sent but the probe.

use std::collections::BTreeSet;
use std::time::Duration;

use pipeline_core::{Key, Reason};

use crate::lane::Backoff;

/// When a circuit opens, and how long it stays open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Opens when this many different applications failed in a row.
    pub failures: usize,
    /// Between probes.
    pub backoff: Backoff,
}

impl Default for Config {
    fn default() -> Self {
        Self { failures: 5, backoff: Backoff { min: Duration::from_secs(1), max: Duration::from_secs(30) } }
    }
}

/// How the sink answered one report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
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
    Retry,
    /// It is never sent again as it is.
    Reject,
}

/// Whether reports may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// They may.
    Closed,
    /// They may not; from `until` on one may try.
    Open {
        /// Time since the engine started.
        until: Duration,
        /// Why it opened.
        reason: Reason,
    },
    /// One is trying.
    Probing {
        /// Which try it is.
        probe: u64,
        /// Why it had opened.
        reason: Reason,
    },
}

/// The circuit of one sink, shared by all shards.
#[derive(Debug)]
pub struct Circuit {
    config: Config,
    state: State,
    /// Applications that failed since the last answer; at most `config.failures`.
    failing: BTreeSet<Key>,
    /// Times it opened in a row without closing.
    opened: u32,
    probes: u64,
    succeeded: bool,
}

impl Circuit {
    /// A closed circuit.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            state: State::Closed,
            failing: BTreeSet::new(),
            opened: 0,
            probes: 0,
            succeeded: false,
        }
    }

    /// Where it stands.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// Takes one answer; `probe` is the right under which the report was sent, if it was a probe. `seed`
    /// chooses the jitter.
    pub fn answer(
        &mut self,
        key: &Key,
        answer: Answer,
        probe: Option<u64>,
        now: Duration,
        seed: u64,
    ) -> Verdict {
        match answer {
            Answer::Accepted => {
                self.succeeded = true;
                self.close();
                Verdict::Acked
            }
            Answer::Refused { reason } if !self.refuses_all(reason) => {
                self.close();
                Verdict::Reject
            }
            Answer::Refused { reason } => {
                self.fail(key, reason, None, probe, now, seed);
                Verdict::Retry
            }
            Answer::Failed { reason, after } => {
                self.fail(key, reason, after, probe, now, seed);
                Verdict::Retry
            }
        }
    }

    /// Whether a report may be sent, under the right to probe or without one; else why not.
    ///
    /// # Errors
    /// The reason why the circuit opened.
    pub fn may_send(&self, probe: Option<u64>) -> Result<(), Reason> {
        match self.state {
            State::Closed => Ok(()),
            State::Probing { probe: right, .. } if probe == Some(right) => Ok(()),
            State::Probing { reason, .. } | State::Open { reason, .. } => Err(reason),
        }
    }

    /// Takes the right to probe, if it is time and nobody has it.
    pub fn try_probe(&mut self, now: Duration) -> Option<u64> {
        match self.state {
            State::Open { until, reason } if until <= now => {
                self.probes += 1;
                self.state = State::Probing { probe: self.probes, reason };
                Some(self.probes)
            }
            _ => None,
        }
    }

    /// Gives the right back: the probe ended without an answer of the sink. One that is spent changes
    /// nothing.
    pub fn probe_over(&mut self, probe: u64, now: Duration) {
        if let State::Probing { probe: right, reason } = self.state
            && right == probe
        {
            self.state = State::Open { until: now, reason };
        }
    }

    fn close(&mut self) {
        self.failing.clear();
        self.opened = 0;
        self.state = State::Closed;
    }

    /// Whether `reason` says that the sink would refuse anything we send.
    fn refuses_all(&self, reason: Reason) -> bool {
        match reason {
            Reason::Unauthorized | Reason::Forbidden => true,
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
        let opens = match self.state {
            State::Closed => {
                self.failing.insert(key.clone());
                self.failing.len() >= self.config.failures || self.refuses_all(reason)
            }
            State::Probing { probe: right, .. } => probe == Some(right),
            // What was on its way when it opened changes nothing.
            State::Open { .. } => false,
        };
        if opens {
            self.opened = self.opened.saturating_add(1);
            self.failing.clear();
            self.state =
                State::Open { until: now + self.config.backoff.wait(self.opened, after, seed), reason };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(100);
    const DOWN: Answer = Answer::Failed { reason: Reason::Unreachable, after: None };

    fn key(number: u32) -> Key {
        Key::new("ns", &format!("app-{number}")).unwrap()
    }

    fn fail(circuit: &mut Circuit, applications: std::ops::Range<u32>) {
        for number in applications {
            assert_eq!(circuit.answer(&key(number), DOWN, None, NOW, 0), Verdict::Retry);
        }
    }

    fn open(after: u64, reason: Reason) -> State {
        State::Open { until: NOW + Duration::from_millis(after), reason }
    }

    #[test]
    fn opens_after_enough_applications_in_a_row() {
        let mut circuit = Circuit::new(Config::default());
        for number in 0..4 {
            assert_eq!(circuit.answer(&key(number), DOWN, None, NOW, 0), Verdict::Retry);
            assert_eq!(circuit.state(), State::Closed);
        }
        circuit.answer(&key(4), DOWN, None, NOW, 0);
        assert_eq!(circuit.state(), open(500, Reason::Unreachable));
    }

    #[test]
    fn one_failing_application_never_opens_it() {
        let mut circuit = Circuit::new(Config::default());
        for _ in 0..100 {
            circuit.answer(&key(1), DOWN, None, NOW, 0);
        }
        assert_eq!(circuit.state(), State::Closed);
    }

    #[test]
    fn an_answer_between_starts_the_count_anew() {
        let mut circuit = Circuit::new(Config::default());
        for between in [Answer::Accepted, Answer::Refused { reason: Reason::Refused }] {
            fail(&mut circuit, 0..4);
            circuit.answer(&key(9), between, None, NOW, 0);
            assert_eq!(circuit.state(), State::Closed);
        }
    }

    #[test]
    fn being_refused_as_a_whole_opens_it_at_once_and_parks_nothing() {
        for (reason, later) in [
            (Reason::Unauthorized, Verdict::Retry),
            (Reason::Forbidden, Verdict::Retry),
            (Reason::NotFound, Verdict::Reject),
            (Reason::Redirect, Verdict::Reject),
            (Reason::Tls, Verdict::Reject),
        ] {
            let mut circuit = Circuit::new(Config::default());
            let refused = Answer::Refused { reason };
            assert_eq!(circuit.answer(&key(1), refused, None, NOW, 0), Verdict::Retry, "{reason:?}");
            assert_eq!(circuit.state(), open(500, reason));
            circuit.answer(&key(1), Answer::Accepted, None, NOW, 0);
            assert_eq!(circuit.answer(&key(1), refused, None, NOW, 0), later, "{reason:?} after a success");
        }
        let mut circuit = Circuit::new(Config::default());
        let refused = Answer::Refused { reason: Reason::TooLarge };
        assert_eq!(circuit.answer(&key(1), refused, None, NOW, 0), Verdict::Reject);
        assert_eq!(circuit.state(), State::Closed);
    }

    #[test]
    fn one_probe_at_a_time_and_longer_waits_between() {
        let mut circuit = Circuit::new(Config::default());
        fail(&mut circuit, 0..5);
        let mut now = NOW;
        for half in [500, 1000, 2000, 4000, 8000, 15_000, 15_000] {
            let wait = Duration::from_millis(half);
            assert_eq!(circuit.try_probe(now + wait - Duration::from_millis(1)), None);
            now += wait;
            let probe = circuit.try_probe(now);
            assert!(probe.is_some());
            assert_eq!(circuit.try_probe(now), None, "only one");
            assert_eq!(circuit.may_send(probe), Ok(()));
            assert_eq!(circuit.may_send(None), Err(Reason::Unreachable));
            circuit.answer(&key(7), DOWN, None, now, 0);
            assert!(matches!(circuit.state(), State::Probing { .. }), "an old failure is not the probe's");
            circuit.answer(&key(1), DOWN, probe, now, 0);
        }
        now += Duration::from_secs(15);
        let probe = circuit.try_probe(now);
        circuit.answer(&key(1), Answer::Accepted, probe, now, 0);
        assert_eq!(circuit.state(), State::Closed);
        fail(&mut circuit, 0..5);
        assert_eq!(circuit.state(), open(500, Reason::Unreachable), "the wait starts anew");
    }

    #[test]
    fn a_probe_without_an_answer_is_given_back() {
        let mut circuit = Circuit::new(Config::default());
        circuit.answer(&key(1), Answer::Refused { reason: Reason::Unauthorized }, None, NOW, 0);
        let later = NOW + Duration::from_secs(1);
        let first = circuit.try_probe(later).unwrap();
        circuit.probe_over(first, later);
        let second = circuit.try_probe(later).unwrap();
        circuit.probe_over(first, later);
        assert_eq!(circuit.may_send(Some(second)), Ok(()), "an old right gives no other's back");
        circuit.answer(&key(1), Answer::Accepted, Some(second), later, 0);
        circuit.probe_over(second, later);
        assert_eq!(circuit.state(), State::Closed);
    }

    #[test]
    fn what_was_on_its_way_closes_it_but_does_not_prolong_it() {
        let mut circuit = Circuit::new(Config::default());
        fail(&mut circuit, 0..5);
        circuit.answer(&key(9), DOWN, None, NOW + Duration::from_secs(1), 0);
        assert_eq!(circuit.state(), open(500, Reason::Unreachable));
        circuit.answer(&key(9), Answer::Accepted, None, NOW, 0);
        assert_eq!(circuit.state(), State::Closed);
    }

    #[test]
    fn the_sinks_retry_after_is_honoured() {
        let mut circuit = Circuit::new(Config { failures: 1, ..Config::default() });
        let busy = Answer::Failed { reason: Reason::RateLimited, after: Some(Duration::from_secs(20)) };
        circuit.answer(&key(1), busy, None, NOW, 0);
        assert_eq!(circuit.state(), open(20_000, Reason::RateLimited));
    }
}
