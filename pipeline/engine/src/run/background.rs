//! What goes on beside the shards: what changes by itself is told to metrics and health, and looked after.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pipeline_core::Shutdown;
use tokio::time::{Interval, MissedTickBehavior, interval, sleep};

use crate::shard::Shared;
use pipeline_bus::Bus;
use pipeline_observe::health::Link;

/// How often the ledger's figures are taken.
const FIGURES: Duration = Duration::from_secs(1);
/// How often it is looked whether the bus is there.
const LOOK: Duration = Duration::from_millis(500);
/// How often it is looked whether it is the bus that it was.
const LOOK_AT_BUS: Duration = Duration::from_secs(10);

/// Tells health how the bus is connected with.
pub(super) async fn link(bus: Arc<dyn Bus>, routes: Vec<Arc<Shared>>) {
    let mut look = every(LOOK);
    loop {
        look.tick().await;
        let link = if bus.is_connected() { Link::Whole } else { Link::Away };
        routes.iter().for_each(|shared| shared.health.bus(link, Instant::now()));
    }
}

/// Looks whether what stands on the bus was lost: whoever consumes it hears of that alone, and what nobody consumes nobody misses.
pub(super) async fn look(bus: Arc<dyn Bus>) {
    loop {
        sleep(LOOK_AT_BUS).await;
        if bus.is_connected() {
            bus.look().await;
        }
    }
}

/// Passes on what changes by itself: the ledger's figures and the circuit.
pub(super) async fn figures(shared: Arc<Shared>, stop: Shutdown) {
    let mut circuit = shared.breaker.watch();
    let mut tick = every(FIGURES);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = tick.tick() => {
                let status = shared.ledger.status();
                shared.metrics.ledger(&status);
                shared.health.ledger(&status);
            }
            Ok(()) = circuit.changed() => {
                let shown = *circuit.borrow_and_update();
                shared.metrics.circuit(shown);
                shared.health.circuit(shown, Instant::now());
            }
        }
    }
}

/// Tries an open circuit at once when the sink's token has changed.
pub(super) async fn credentials(shared: Arc<Shared>, stop: Shutdown) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = shared.sink.credentials_changed() => {
                tracing::info!(sink = shared.sink.name(), "the sink's credentials have changed");
                shared.breaker.hasten(shared.now());
            }
        }
    }
}

/// At once, and then so often; one that comes late puts the next ones off.
fn every(period: Duration) -> Interval {
    let mut interval = interval(period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}
