//! The sink's circuit, shared by all shards: each is told when it opens and closes.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pipeline_core::{CircuitState, Key, Reason};
use tokio::sync::watch;

use crate::circuit::{Circuit, Config, SinkResponse, Verdict};

/// A circuit behind a lock that is held for one answer at a time.
#[derive(Debug)]
pub(crate) struct Breaker {
    guarded: Mutex<Guarded>,
    state: watch::Sender<CircuitState>,
    sink: &'static str,
}

#[derive(Debug)]
struct Guarded {
    circuit: Circuit,
    /// That the sink refuses everything was said since the circuit was last closed.
    said: bool,
}

impl Breaker {
    pub(crate) fn new(config: Config, sink: &'static str) -> Self {
        let guarded = Mutex::new(Guarded { circuit: Circuit::new(config), said: false });
        Self { guarded, state: watch::Sender::new(CircuitState::Closed), sink }
    }

    /// Where it stands, and every change of that.
    pub(crate) fn watch(&self) -> watch::Receiver<CircuitState> {
        self.state.subscribe()
    }

    /// As [`Circuit::may_send`].
    pub(crate) fn may_send(&self, probe: Option<u64>) -> Result<(), Reason> {
        self.guarded().circuit.may_send(probe)
    }

    /// As [`Circuit::answer`].
    pub(crate) fn answer(
        &self,
        key: &Key,
        answer: SinkResponse,
        probe: Option<u64>,
        now: Duration,
    ) -> Verdict {
        self.change(now, |circuit| circuit.answer(key, answer, probe, now, fastrand::u64(..)))
    }

    /// As [`Circuit::try_probe`].
    pub(crate) fn try_probe(&self, now: Duration) -> Option<u64> {
        self.change(now, |circuit| circuit.try_probe(now))
    }

    /// As [`Circuit::probe_over`].
    pub(crate) fn probe_over(&self, probe: u64, now: Duration) {
        self.change(now, |circuit| circuit.probe_over(probe, now));
    }

    /// As [`Circuit::hasten`].
    pub(crate) fn hasten(&self, now: Duration) {
        self.change(now, |circuit| circuit.hasten(now));
    }

    fn guarded(&self) -> MutexGuard<'_, Guarded> {
        self.guarded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the circuit, and tells the shards under its lock, so that they see changes in their order.
    fn change<T>(&self, now: Duration, change: impl FnOnce(&mut Circuit) -> T) -> T {
        let mut guarded = self.guarded();
        let result = change(&mut guarded.circuit);
        let state = guarded.circuit.state();
        if *self.state.borrow() != state {
            let before = self.state.send_replace(state);
            self.say(before, state, &mut guarded.said, now);
        }
        result
    }

    fn say(&self, before: CircuitState, state: CircuitState, said: &mut bool, now: Duration) {
        let sink = self.sink;
        match state {
            CircuitState::Open { reason, .. } if refuses_all(reason) && !*said => {
                *said = true;
                let reason = reason.as_str();
                tracing::error!(sink, reason, "the sink refuses everything: check its address and token");
            }
            CircuitState::Open { reason, .. } if before == CircuitState::Closed => {
                tracing::warn!(sink, reason = reason.as_str(), "the sink is down, reports wait");
            }
            CircuitState::Open { until, reason } => {
                let wait_ms = u64::try_from(until.saturating_sub(now).as_millis()).unwrap_or(u64::MAX);
                tracing::debug!(sink, wait_ms, reason = reason.as_str(), "the sink is still down");
            }
            CircuitState::Closed => {
                *said = false;
                tracing::info!(sink, "the sink takes reports again");
            }
            CircuitState::Probing { .. } => {}
        }
    }
}

/// Whether a sink that is open for this reason will not take anything until someone acts.
fn refuses_all(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::Unauthorized | Reason::Forbidden | Reason::NotFound | Reason::Redirect | Reason::Tls
    )
}
