//! The sink's circuit, shared by all shards: each is told when it opens and closes.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pipeline_core::{Key, Reason};
use tokio::sync::watch;

use crate::circuit::{Answer, Circuit, Config, State, Verdict};

/// A circuit behind a lock that is held for one answer at a time.
#[derive(Debug)]
pub(crate) struct Breaker {
    circuit: Mutex<Circuit>,
    state: watch::Sender<State>,
    sink: &'static str,
}

impl Breaker {
    pub(crate) fn new(config: Config, sink: &'static str) -> Self {
        Self { circuit: Mutex::new(Circuit::new(config)), state: watch::Sender::new(State::Closed), sink }
    }

    /// Where it stands, and every change of that.
    pub(crate) fn watch(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }

    /// As [`Circuit::may_send`].
    pub(crate) fn may_send(&self, probe: Option<u64>) -> Result<(), Reason> {
        self.circuit().may_send(probe)
    }

    /// As [`Circuit::answer`].
    pub(crate) fn answer(&self, key: &Key, answer: Answer, probe: Option<u64>, now: Duration) -> Verdict {
        let mut circuit = self.circuit();
        let verdict = circuit.answer(key, answer, probe, now, fastrand::u64(..));
        self.publish(&circuit, now);
        verdict
    }

    /// As [`Circuit::try_probe`].
    pub(crate) fn try_probe(&self, now: Duration) -> Option<u64> {
        let mut circuit = self.circuit();
        let probe = circuit.try_probe(now);
        self.publish(&circuit, now);
        probe
    }

    /// As [`Circuit::probe_over`].
    pub(crate) fn probe_over(&self, probe: u64, now: Duration) {
        let mut circuit = self.circuit();
        circuit.probe_over(probe, now);
        self.publish(&circuit, now);
    }

    fn circuit(&self) -> MutexGuard<'_, Circuit> {
        self.circuit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the shards under the circuit's lock, so that they see changes in their order.
    fn publish(&self, circuit: &Circuit, now: Duration) {
        let state = circuit.state();
        if *self.state.borrow() == state {
            return;
        }
        let before = self.state.send_replace(state);
        let sink = self.sink;
        match (before, state) {
            (State::Closed, State::Open { reason, .. }) => match reason {
                Reason::Unauthorized
                | Reason::Forbidden
                | Reason::NotFound
                | Reason::Redirect
                | Reason::Tls => {
                    let reason = reason.as_str();
                    tracing::error!(sink, reason, "the sink refuses everything: check its address and token");
                }
                _ => tracing::warn!(sink, reason = reason.as_str(), "the sink is down, reports wait"),
            },
            (_, State::Open { until, reason }) => {
                let wait_ms = u64::try_from(until.saturating_sub(now).as_millis()).unwrap_or(u64::MAX);
                tracing::debug!(sink, wait_ms, reason = reason.as_str(), "the sink is still down");
            }
            (_, State::Closed) => tracing::info!(sink, "the sink takes reports again"),
            (_, State::Probing { .. }) => {}
        }
    }
}
