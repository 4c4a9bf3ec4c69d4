//! Live states from `managed-resources` instead of from `resource`, where both saw the same resourceVersion.

use std::collections::HashMap;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::recorded::Target;
use loadtest_sim::recordings::{CallLine, Case, RoundLine};

/// Application, group, kind, namespace and name, and the resourceVersion.
type ObjectIndex = (String, [String; 4], String);

/// Group, kind, namespace and name of a live state, its resourceVersion, and itself.
type Live = ([String; 4], String, String);

/// What an observer saw in `managed-resources`: every live state, and when.
#[derive(Debug, Default)]
pub(super) struct States {
    seen: HashMap<ObjectIndex, Vec<(f64, String)>>,
}

impl States {
    pub(super) fn of(case: &Case) -> Self {
        let mut states = Self::default();
        let mut read: HashMap<&str, Vec<Live>> = HashMap::new();
        for call in case.calls.iter().filter(|call| call.by == "observer" && call.status == 200) {
            let target = Target::of(&call.path);
            if target.call() != "managed-resources" {
                continue;
            }
            for (place, version, live) in read.entry(&call.body).or_insert_with(|| live_states(case, call)) {
                let seen = (target.app().to_owned(), place.clone(), version.clone());
                states.seen.entry(seen).or_default().push((call.t, live.clone()));
            }
        }
        states
    }

    /// A `managed-resources` answer that lists the live states that an observer saw at the resourceVersions
    /// which the round's `resource` answers have; counts how many it lists, and how many such answers there
    /// are. Nothing but the live state is taken from it.
    pub(super) fn answer(&self, case: &Case, round: &RoundLine, pairs: &mut (usize, usize)) -> Option<Bytes> {
        let calls = case.calls.iter().filter(|call| round.calls.contains(&call.n) && call.status == 200);
        let mut items = Vec::new();
        for call in calls {
            let target = Target::of(&call.path);
            let version = || version_of(body(case, call)?.get("manifest")?.as_str()?);
            let Some(version) = (target.call() == "resource").then(version).flatten() else { continue };
            pairs.1 += 1;
            let place = ["group", "kind", "namespace", "resourceName"]
                .map(|name| target.value(name).unwrap_or("").to_owned());
            let seen = (target.app().to_owned(), place, version);
            let nearest = self.seen.get(&seen).and_then(|states| {
                states.iter().min_by(|(a, _), (b, _)| (a - round.t).abs().total_cmp(&(b - round.t).abs()))
            });
            if let Some((_, live)) = nearest {
                pairs.0 += 1;
                let (_, [group, kind, namespace, name], _) = seen;
                items.push(json!({
                    "group": group, "kind": kind, "namespace": namespace, "name": name, "liveState": live,
                }));
            }
        }
        (!items.is_empty()).then(|| Bytes::from(json!({"items": items}).to_string()))
    }
}

fn live_states(case: &Case, call: &CallLine) -> Vec<Live> {
    let items = body(case, call).and_then(|mut body| body.get_mut("items").map(Value::take));
    let items = items.as_ref().and_then(Value::as_array);
    let state = |item: &Value| {
        let live = item.get("liveState")?.as_str()?;
        let place = ["group", "kind", "namespace", "name"]
            .map(|name| item.get(name).and_then(Value::as_str).unwrap_or("").to_owned());
        Some((place, version_of(live)?, live.to_owned()))
    };
    items.into_iter().flatten().filter_map(state).collect()
}

fn body(case: &Case, call: &CallLine) -> Option<Value> {
    serde_json::from_str(case.answer(call)?.get()).ok()
}

/// `metadata.resourceVersion` of a manifest.
fn version_of(manifest: &str) -> Option<String> {
    let manifest: Map<String, Value> = serde_json::from_str(manifest).ok()?;
    Some(manifest.get("metadata")?.get("resourceVersion")?.as_str()?.to_owned())
}
