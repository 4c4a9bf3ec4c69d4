//! `/status`: the engine at one moment, as JSON.
//!
//! ```json
//! {"ready": true, "health": "ok", "ledger": {...}, "uptime_seconds": 12.5, "circuit": {"state": "open", "reason":
//!  "timeout"}, "total": {...}, "shards": [{"shard": 0, "observed": 7, ..., "oldest_unreported_seconds": 0.5}]}
//! ```
//! Of several routes these are the first one's figures, and `routes` has those of each that comes further: `[{"route": "audit",
//! "ledger": {...}, "circuit": {...}, "total": {...}, "shards": [...]}]`.
//!
//! Before the process works there is no ledger (`null`) and no shard. The names of a shard's figures are those of [`LaneCounts`]; `balance` is 0 at any moment.

use std::time::Duration;

use serde_json::{Value, json};

use pipeline_core::{CircuitState, LaneCounts};
use pipeline_engine::run::Status;
use pipeline_ledger::LedgerStatus;
use pipeline_observe::health::HealthReport;

/// The status of the process; `works` is `None` before it works.
pub(crate) fn status(works: Option<&(Status, LedgerStatus)>, health: &HealthReport) -> Value {
    let uptime = works.map_or(Duration::ZERO, |(engine, _)| engine.uptime);
    let mut status = route(works);
    status["ready"] = json!(health.ready);
    status["health"] = json!(health.line());
    status["uptime_seconds"] = json!(uptime.as_secs_f64());
    status
}

/// Adds the status of the routes beside the first, if there are any.
pub(crate) fn with_routes<'a>(
    status: &mut Value,
    further: impl IntoIterator<Item = (&'a str, Option<(Status, LedgerStatus)>)>,
) {
    let further = further.into_iter().map(|(name, works)| {
        let mut told = route(works.as_ref());
        told["route"] = json!(name);
        told
    });
    let further: Vec<Value> = further.collect();
    if !further.is_empty() {
        status["routes"] = Value::Array(further);
    }
}

/// The part of the status that is one route's.
fn route(works: Option<&(Status, LedgerStatus)>) -> Value {
    let nothing = Status { uptime: Duration::ZERO, shards: Vec::new(), circuit: CircuitState::Closed };
    let engine = works.map_or(&nothing, |(engine, _)| engine);
    let ledger = works.map(|(_, ledger)| ledger);
    let shards: Vec<Value> = engine
        .shards
        .iter()
        .map(|(shard, counts)| {
            let mut figures = figures(counts);
            figures["shard"] = json!(shard);
            figures
        })
        .collect();
    json!({
        "ledger": ledger,
        "circuit": circuit(engine.circuit),
        "total": figures(&engine.total()),
        "shards": shards,
    })
}

fn circuit(state: CircuitState) -> Value {
    match state.reason() {
        None => json!({ "state": state.as_str() }),
        Some(reason) => json!({ "state": state.as_str(), "reason": reason.as_str() }),
    }
}

fn figures(counts: &LaneCounts) -> Value {
    let mut figures = json!(counts);
    figures["balance"] = json!(counts.balance());
    figures["oldest_unreported_seconds"] = json!(counts.oldest.as_secs_f64());
    figures
}
