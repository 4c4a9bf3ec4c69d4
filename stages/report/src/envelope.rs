//! What stands around a payload: the platform's body, a line, a trace header; and digests. A payload is copied
//! as it is and never parsed: nothing changes a report on its way out.

use bytes::Bytes;
use pipeline_core::{Key, ObjectDigest, OthersQuestion, ShardDigest, Shipment};
use serde_json::{Value, json};

const OPEN: &[u8] = b"{\"data\":";
const CLOSE: &[u8] = b"}";

/// `{"data": <payload>}`, in parts.
pub(crate) fn single(payload: &Bytes) -> Vec<Bytes> {
    vec![Bytes::from_static(OPEN), payload.clone(), Bytes::from_static(CLOSE)]
}

/// `{"reports": [{"idempotencyKey": "...", "traceparent": "...", "fencingEpoch": 7, "clusterEra": 1, "data": <payload>},
/// ...]}`, in parts; `traceparent` is absent without a trace, `fencingEpoch` where shards do not change hands, and `clusterEra` in the
/// first era.
pub(crate) fn batch<'a>(shipments: impl Iterator<Item = &'a Shipment>) -> Vec<Bytes> {
    let mut parts = Vec::new();
    for shipment in shipments {
        let mut head = String::from(if parts.is_empty() { "{\"reports\":[" } else { "}," });
        head.push_str("{\"idempotencyKey\":");
        head.push_str(&Value::from(&*shipment.idempotency_key).to_string());
        if let Some(trace) = traceparent(shipment) {
            head.push_str(&format!(",\"traceparent\":\"{trace}\""));
        }
        if let Some(epoch) = shipment.epoch {
            head.push_str(&format!(",\"fencingEpoch\":{epoch}"));
        }
        if let Some(era) = era(shipment) {
            head.push_str(&format!(",\"clusterEra\":{era}"));
        }
        head.push_str(",\"data\":");
        parts.push(Bytes::from(head));
        parts.push(shipment.report.body.clone());
    }
    parts.push(Bytes::from_static(if parts.is_empty() { b"{\"reports\":[]}" } else { b"}]}" }));
    parts
}

/// The era of the object's cluster; `None` in the first.
pub(crate) fn era(shipment: &Shipment) -> Option<u8> {
    Some(shipment.report.version.era()).filter(|era| *era > 0)
}

/// W3C `traceparent` of a shipment: its event's trace, and a span that is the same for a retry of the same
/// content. `None` without a trace, for which the format has no form.
#[must_use]
pub fn traceparent(shipment: &Shipment) -> Option<String> {
    let trace = shipment.report.trace;
    (trace != 0).then(|| format!("00-{trace:032x}-{:016x}-01", shipment.span()))
}

/// One line: `{"idempotencyKey":"...","traceparent":"...","application":"namespace/name","kind":"app",
/// "data":<payload>}` and a newline. `data` is what stands under `data` in the platform's body;
/// `traceparent` is absent without a trace.
pub(crate) fn line(out: &mut Vec<u8>, shipment: &Shipment) {
    let text = |text: &str| serde_json::Value::from(text).to_string();
    let report = &shipment.report;
    out.extend_from_slice(b"{\"idempotencyKey\":");
    out.extend_from_slice(text(&shipment.idempotency_key).as_bytes());
    if let Some(trace) = traceparent(shipment) {
        out.extend_from_slice(format!(",\"traceparent\":\"{trace}\"").as_bytes());
    }
    let application = text(report.key.as_str());
    out.extend_from_slice(
        format!(",\"application\":{application},\"kind\":\"{}\",", report.kind.as_str()).as_bytes(),
    );
    out.extend_from_slice(b"\"data\":");
    // In JSON a line break can only stand between tokens, where a space means the same.
    out.extend(report.body.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }));
    out.extend_from_slice(b"}\n");
}

/// A shard's digest: `{"ledger", "shard", "shards", "applications", "entities", "digest", "at"}`, `digest` as 32
/// hexadecimal digits.
pub(crate) fn shard(digest: &ShardDigest) -> Vec<u8> {
    shard_value(digest).to_string().into_bytes()
}

/// The same as one line, which is told from a report by its one member: `{"digest": {...}}` and a newline.
pub(crate) fn digest_line(digest: &ShardDigest) -> Vec<u8> {
    format!("{}\n", json!({"digest": shard_value(digest)})).into_bytes()
}

/// Digests of applications: `{"applications": [{"key", "uid", "entities", "digest"}]}`.
pub(crate) fn applications(digests: &[&ObjectDigest]) -> Vec<u8> {
    let one = |digest: &&ObjectDigest| {
        json!({
            "key": digest.key.as_str(),
            "uid": &*digest.uid,
            "entities": digest.entities,
            "digest": hexadecimal(digest.digest),
        })
    };
    let all: Vec<Value> = digests.iter().map(one).collect();
    json!({"applications": all}).to_string().into_bytes()
}

/// Objects of other kinds, as they were acknowledged: `{"objects": [{"key", "namespace", "name", "uid", "resourceVersion"}]}`.
pub(crate) fn objects(digests: &[&ObjectDigest]) -> Vec<u8> {
    let one = |digest: &&ObjectDigest| {
        json!({
            "key": digest.key.as_str(),
            "namespace": digest.key.namespace(),
            "name": digest.key.name(),
            "uid": &*digest.uid,
            "resourceVersion": digest.version.number().to_string(),
        })
    };
    let all: Vec<Value> = digests.iter().map(one).collect();
    json!({"objects": all}).to_string().into_bytes()
}

/// What is known of a range: `{"shards", "own", "after", "upto", "known"}`.
pub(crate) fn others(question: &OthersQuestion) -> Vec<u8> {
    let known: Vec<&str> = question.known.iter().map(Key::as_str).collect();
    json!({
        "shards": question.shards,
        "own": question.own,
        "after": question.after.as_ref().map_or("", Key::as_str),
        "upto": question.upto.as_ref().map(Key::as_str),
        "known": known,
    })
    .to_string()
    .into_bytes()
}

fn shard_value(digest: &ShardDigest) -> Value {
    json!({
        "ledger": digest.ledger,
        "shard": digest.shard,
        "shards": digest.shards,
        "applications": digest.objects,
        "entities": digest.entities,
        "digest": hexadecimal(digest.digest),
        "at": digest.at.to_string(),
    })
}

fn hexadecimal(digest: u128) -> String {
    format!("{digest:032x}")
}
