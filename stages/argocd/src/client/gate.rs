//! Who may call Argo CD now: as many at once as the limit says, and in any second as many as the rate allows; the
//! others wait, in the order in which they came. A call that is stuck gives up its slot before it ends.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pipeline_core::{Call, Meter, Pressure, Wait};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until};

use super::limit::{End, Flight, Limit, STUCK_AFTER};
use super::rate::CallRate;
use crate::labels;

/// The gate, and what the limit learnt.
pub(super) struct Gate {
    slots: Semaphore,
    state: Mutex<State>,
    rate: Option<CallRate>,
    meter: Arc<dyn Meter>,
    built: Instant,
}

struct State {
    limit: Limit,
    /// Slots that there should be.
    slots: usize,
    /// Slots that are taken away as they are given back: the limit fell while they were in use.
    surplus: usize,
    waiting: usize,
}

/// One call may be made. It counts as under way until this is dropped.
pub(super) struct Pass<'a> {
    slot: SlotGuard<'a>,
    flight: Option<Flight>,
    /// How long the call had to wait for this.
    pub(super) waited: Duration,
}

struct SlotGuard<'a> {
    gate: &'a Gate,
}

/// A call that waits; it leaves the queue when this is dropped.
struct Waiting<'a> {
    gate: &'a Gate,
    since: Instant,
}

impl Gate {
    pub(super) fn new(mut limit: Limit, rate: Option<CallRate>, meter: Arc<dyn Meter>) -> Self {
        let slots = limit.allowed(Duration::ZERO);
        let gate = Self {
            slots: Semaphore::new(slots),
            state: Mutex::new(State { limit, slots, surplus: 0, waiting: 0 }),
            rate,
            meter,
            built: Instant::now(),
        };
        gate.with(|_| ());
        gate
    }

    /// Waits until a call may be made. Whoever drops this leaves the queue.
    pub(super) async fn enter(&self, call: Call) -> Pass<'_> {
        let begun = Instant::now();
        // The slot first: what waits for the rate with one in its hand leaves at most as many calls to begin at
        // once as the rate allows.
        let slot = self.slot().await;
        if let Some(rate) = &self.rate
            && let Some(took) = rate.take().await
        {
            self.meter.waited(labels::ARGOCD, Wait::Budget, took);
        }
        let now = self.built.elapsed();
        let flight = self.with(|state| state.limit.begin(call, now));
        Pass { slot, flight: Some(flight), waited: begun.elapsed() }
    }

    async fn slot(&self) -> SlotGuard<'_> {
        // The semaphore is never closed; if it were, the calls would only be unlimited.
        let permit = match self.slots.try_acquire() {
            Ok(permit) => Some(permit),
            Err(_) => {
                let waiting = Waiting::begin(self);
                let permit = tokio::select! {
                    permit = self.slots.acquire() => permit.ok(),
                    never = self.make_room() => match never {},
                };
                self.meter.waited(labels::ARGOCD, Wait::Slot, waiting.since.elapsed());
                permit
            }
        };
        if let Some(permit) = permit {
            permit.forget();
        }
        SlotGuard { gate: self }
    }

    /// Takes the slots of calls that are stuck from them, as soon as they are. Whoever waits does this, for nothing
    /// else happens then.
    async fn make_room(&self) -> Infallible {
        loop {
            let now = self.built.elapsed();
            let next = self.with(|state| {
                self.adjust(state, now);
                state.limit.next_stuck()
            });
            // What begins after this is not stuck before that.
            let next = next.map_or(now + STUCK_AFTER, |next| next.min(now + STUCK_AFTER));
            sleep_until(self.built + next).await;
        }
    }

    /// Does something to the state, and tells how it stands then; in one go, so that what is told last is so.
    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let result = act(&mut state);
        self.meter.pressure(Pressure {
            peer: labels::ARGOCD,
            limit: state.slots,
            in_flight: state.limit.in_flight(),
            waiting: state.waiting,
        });
        result
    }

    /// Makes as many slots as the limit allows.
    fn adjust(&self, state: &mut State, now: Duration) {
        let wanted = state.limit.allowed(now);
        if wanted > state.slots {
            let more = wanted - state.slots;
            let kept = more.min(state.surplus);
            state.surplus -= kept;
            self.slots.add_permits(more - kept);
        } else if wanted < state.slots {
            let fewer = state.slots - wanted;
            state.surplus += fewer - self.slots.forget_permits(fewer);
        }
        state.slots = wanted;
    }
}

impl Pass<'_> {
    /// The call has ended.
    pub(super) fn end(mut self, end: End) {
        self.told(end);
    }

    fn told(&mut self, end: End) {
        let Some(flight) = self.flight.take() else { return };
        let gate = self.slot.gate;
        let now = gate.built.elapsed();
        gate.with(|state| {
            state.limit.end(&flight, end, now);
            gate.adjust(state, now);
        });
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.told(End::Other);
    }
}

impl Drop for SlotGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.gate.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.surplus > 0 {
            state.surplus -= 1;
        } else {
            self.gate.slots.add_permits(1);
        }
    }
}

impl<'a> Waiting<'a> {
    fn begin(gate: &'a Gate) -> Self {
        gate.with(|state| state.waiting += 1);
        Self { gate, since: Instant::now() }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.gate.with(|state| state.waiting -= 1);
    }
}

#[cfg(test)]
mod tests;
