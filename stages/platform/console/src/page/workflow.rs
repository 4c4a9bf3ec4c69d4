//! How far the run of a Workflow is, as its last report said: some acts make no sense there, and say so before they are asked
//! for. The runtime says the same of what it finds when it is asked.

use serde_json::Value;
use stages_platform_store::{PhaseHealth, Phased};

/// The run of a Workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    is_over: bool,
    has_failed: bool,
    /// It was told to stop or to terminate.
    is_ending: bool,
    /// Somebody holds all of it.
    is_held: bool,
    /// A step waits for somebody; `None`: its nodes are not told.
    has_waiting_step: Option<bool>,
}

impl Run {
    /// Of its live manifest; `None`: it cannot be read, and nothing speaks against an act.
    pub(crate) fn read(manifest: &str) -> Option<Self> {
        let object: Value = serde_json::from_str(manifest).ok()?;
        // Who has no status yet was not looked at by its controller: it may be anything by now.
        let status = object.get("status")?;
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let stands = Phased::Workflow.health(text("/status/phase"));
        let waits = |node: &Value| {
            let is = |field: &str, word: &str| node.get(field).and_then(Value::as_str) == Some(word);
            is("type", "Suspend") && is("phase", "Running")
        };
        let nodes = status.get("nodes").and_then(Value::as_object);
        Some(Self {
            is_over: matches!(stands, Some(PhaseHealth::Healthy | PhaseHealth::Degraded)),
            has_failed: stands == Some(PhaseHealth::Degraded),
            is_ending: !text("/spec/shutdown").is_empty(),
            is_held: object.pointer("/spec/suspend") == Some(&Value::Bool(true)),
            has_waiting_step: nodes.map(|nodes| nodes.values().any(waits)),
        })
    }

    /// Why an act, by the word of its button, makes no sense.
    pub(crate) fn why_not(self, act: &str) -> Option<&'static str> {
        match act {
            "retry-workflow" if !self.has_failed => Some("It did not fail: there is nothing to retry."),
            "suspend-workflow" | "resume-workflow" | "stop-workflow" | "terminate-workflow"
                if self.is_over =>
            {
                Some("It is over.")
            }
            "suspend-workflow" if self.is_held => Some("It is suspended already."),
            "resume-workflow" if !self.is_held && self.has_waiting_step == Some(false) => {
                Some("It is not suspended.")
            }
            "stop-workflow" if self.is_ending => Some("It is being ended already."),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Of all acts, those that make no sense.
    fn senseless(spec: &Value, status: &Value) -> Vec<&'static str> {
        let run = Run::read(&json!({"spec": spec, "status": status}).to_string()).unwrap();
        let all = ["resubmit", "retry", "suspend", "resume", "stop", "terminate"];
        all.into_iter().filter(|act| run.why_not(&format!("{act}-workflow")).is_some()).collect()
    }

    #[test]
    fn what_makes_no_sense_follows_from_how_far_it_is() {
        let node =
            |of: &str, phase: &str| json!({"phase": "Running", "nodes": {"a": {"type": of, "phase": phase}}});
        for (spec, status, expected) in [
            (json!({}), node("Pod", "Running"), vec!["retry", "resume"]),
            (json!({}), node("Suspend", "Running"), vec!["retry"]),
            (json!({}), node("Suspend", "Succeeded"), vec!["retry", "resume"]),
            (json!({"suspend": true}), node("Pod", "Running"), vec!["retry", "suspend"]),
            (json!({"shutdown": "Stop"}), node("Pod", "Running"), vec!["retry", "resume", "stop"]),
            // What its controller has put away is not told: a step may wait there.
            (json!({}), json!({"phase": "Running", "offloadNodeStatusVersion": "v1"}), vec!["retry"]),
            (json!({}), json!({}), vec!["retry"]),
            (
                json!({}),
                json!({"phase": "Succeeded"}),
                vec!["retry", "suspend", "resume", "stop", "terminate"],
            ),
            (json!({}), json!({"phase": "Failed"}), vec!["suspend", "resume", "stop", "terminate"]),
            (
                json!({"suspend": true}),
                json!({"phase": "Error"}),
                vec!["suspend", "resume", "stop", "terminate"],
            ),
        ] {
            assert_eq!(senseless(&spec, &status), expected, "{spec} {status}");
        }
    }

    #[test]
    fn of_what_cannot_be_read_nothing_is_said() {
        for manifest in ["", "kind: Workflow\n", "[]", "{\"kind\":\"Workflow\"}"] {
            assert_eq!(Run::read(manifest), None, "{manifest}");
        }
    }
}
