//! What a Rollout stands at, as its last report said: some acts make no sense there, and say so before they are asked for. The
//! runtime says the same of what it finds when it is asked.

use serde_json::Value;
use stages_platform_store::Action;

/// What a Rollout stands at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Somebody holds it, or it waits at a step.
    is_paused: bool,
    is_aborted: bool,
    /// What is there is stable.
    is_stable: bool,
    has_steps_left: bool,
}

impl Standing {
    /// Of its live manifest; `None`: it cannot be read, and nothing speaks against an act.
    pub(crate) fn read(manifest: &str) -> Option<Self> {
        let object: Value = serde_json::from_str(manifest).ok()?;
        // Who has no status yet was not looked at by its controller: it may be anything by now.
        object.get("status")?;
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let list = |pointer| object.pointer(pointer).and_then(Value::as_array).map_or(0, Vec::len);
        let is = |pointer| object.pointer(pointer) == Some(&Value::Bool(true));
        let at = object.pointer("/status/currentStepIndex").and_then(Value::as_u64).unwrap_or_default();
        Some(Self {
            is_paused: is("/spec/paused") || list("/status/pauseConditions") > 0,
            is_aborted: is("/status/abort"),
            is_stable: text("/status/currentPodHash") == text("/status/stableRS"),
            has_steps_left: usize::try_from(at).is_ok_and(|at| at < list("/spec/strategy/canary/steps")),
        })
    }

    /// Why an act makes no sense.
    pub(crate) fn why_not(self, action: Action) -> Option<&'static str> {
        match action {
            Action::RolloutResume if !self.is_paused => {
                Some("It is not paused: skip its step, or promote it fully.")
            }
            Action::RolloutPromoteFull if self.is_stable => {
                Some("There is nothing to promote: what is there is stable.")
            }
            Action::RolloutRetry if !self.is_aborted => {
                Some("It was not aborted: there is nothing to retry.")
            }
            Action::RolloutSkipCurrentStep if !self.has_steps_left => Some("It has no step left to skip."),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Of all acts, those that make no sense.
    fn senseless(object: &Value) -> Vec<Action> {
        let standing = Standing::read(&object.to_string()).unwrap();
        let all = [
            Action::RolloutResume,
            Action::RolloutPromoteFull,
            Action::RolloutPause,
            Action::RolloutAbort,
            Action::RolloutRetry,
            Action::RolloutRestart,
            Action::RolloutSkipCurrentStep,
        ];
        all.into_iter().filter(|action| standing.why_not(*action).is_some()).collect()
    }

    #[test]
    fn what_makes_no_sense_follows_from_what_it_stands_at() {
        use Action::{RolloutPromoteFull, RolloutResume, RolloutRetry, RolloutSkipCurrentStep};
        let steps = json!({"strategy": {"canary": {"steps": [{"setWeight": 20}, {"pause": {}}]}}});
        let held = json!({"paused": true, "strategy": steps["strategy"]});
        let waits = json!([{"reason": "CanaryPauseStep"}]);
        for (spec, status, expected) in [
            (
                &steps,
                json!({"currentPodHash": "b", "stableRS": "a", "currentStepIndex": 1, "pauseConditions": waits}),
                vec![RolloutRetry],
            ),
            (
                &steps,
                json!({"currentPodHash": "b", "stableRS": "a", "currentStepIndex": 1}),
                vec![RolloutResume, RolloutRetry],
            ),
            (
                &held,
                json!({"currentPodHash": "b", "stableRS": "a", "currentStepIndex": 0}),
                vec![RolloutRetry],
            ),
            (
                &steps,
                json!({"currentPodHash": "b", "stableRS": "a", "currentStepIndex": 0, "abort": true}),
                vec![RolloutResume],
            ),
            (
                &steps,
                json!({"currentPodHash": "a", "stableRS": "a", "currentStepIndex": 2}),
                vec![RolloutResume, RolloutPromoteFull, RolloutRetry, RolloutSkipCurrentStep],
            ),
            // Blue and green have no steps.
            (
                &json!({"strategy": {"blueGreen": {}}}),
                json!({"currentPodHash": "b", "stableRS": "a"}),
                vec![RolloutResume, RolloutRetry, RolloutSkipCurrentStep],
            ),
        ] {
            assert_eq!(senseless(&json!({"spec": spec, "status": status})), expected, "{spec} {status}");
        }
    }

    #[test]
    fn of_what_cannot_be_read_nothing_is_said() {
        for manifest in ["", "kind: Rollout\n", "[]", "{\"kind\":\"Rollout\"}"] {
            assert_eq!(Standing::read(manifest), None, "{manifest}");
        }
    }
}
