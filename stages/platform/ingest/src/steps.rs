//! How far an object has come that goes through phases and is reported as it is: what Argo CD would call its health, and its
//! step in words. So its way stands in the timeline of its application.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use stages_platform_store::Phased;

use crate::fields::Fields;

/// Where controllers of Deployments and of Rollouts say which revision a ReplicaSet is of.
const REVISIONS: [&str; 2] = ["deployment.kubernetes.io/revision", "rollout.argoproj.io/revision"];

/// Of a ReplicaSet, how many pods there are to be,
#[derive(Deserialize, Default)]
#[serde(default)]
struct Wanted {
    replicas: Option<u64>,
}

/// and how many there are that are ready.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Ready {
    ready_replicas: u64,
}

/// A Rollout's, an AnalysisRun's or a Workflow's status.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    phase: String,
    message: Option<String>,
    /// Of a Workflow, such as `1/2`: nodes that are done, and all.
    progress: String,
    current_step_index: Option<u64>,
    canary: Canary,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Canary {
    weights: Option<Weights>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Weights {
    canary: Weight,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Weight {
    weight: u64,
}

/// The steps of a Rollout.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Spec {
    strategy: Strategy,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Strategy {
    canary: Option<Steps>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Steps {
    steps: Option<Vec<IgnoredAny>>,
}

/// Health, and the step in words; `None` of what has no phase that is known here.
pub(crate) fn of(
    (api_version, kind): (&str, &str),
    annotations: Option<&RawValue>,
    spec: Option<&RawValue>,
    status: Option<&RawValue>,
) -> Option<(&'static str, String)> {
    if (api_version, kind) == ("apps/v1", "ReplicaSet") {
        return Some(pods(&Fields::of(annotations), spec?, status));
    }
    let phased = Phased::of(api_version, kind)?;
    let status: Status = serde_json::from_str(status?.get()).ok()?;
    let health = phased.health(&status.phase)?.word();
    let step = match phased {
        Phased::Rollout => step(&status, spec),
        Phased::Workflow if !status.progress.is_empty() => Some(format!("{} done", status.progress)),
        Phased::Workflow | Phased::AnalysisRun => None,
    };
    let said = status.message.filter(|message| !message.is_empty());
    let words = step.into_iter().chain(said).collect::<Vec<_>>().join(": ");
    Some((health, words))
}

/// Such as `4 of 6 pods are ready, revision 7`: the tree of an application reads it so.
fn pods(annotations: &Fields<'_>, spec: &RawValue, status: Option<&RawValue>) -> (&'static str, String) {
    let wanted = serde_json::from_str::<Wanted>(spec.get()).unwrap_or_default().replicas.unwrap_or(1);
    let ready: Ready = status.and_then(|status| serde_json::from_str(status.get()).ok()).unwrap_or_default();
    let ready = ready.ready_replicas;
    let revision =
        REVISIONS.into_iter().find_map(|name| annotations.text(name)).filter(|text| text.len() <= 20);
    let revision = revision.map(|revision| format!(", revision {revision}")).unwrap_or_default();
    let health = if ready < wanted { "Progressing" } else { "Healthy" };
    (health, format!("{ready} of {wanted} pods are ready{revision}"))
}

/// Such as `step 2 of 5, 25 % of the traffic`.
fn step(status: &Status, spec: Option<&RawValue>) -> Option<String> {
    let index = status.current_step_index?;
    let spec: Spec = serde_json::from_str(spec?.get()).ok()?;
    let all = spec.strategy.canary?.steps?.len();
    let weight = status.canary.weights.as_ref();
    let weight = weight.map_or(String::new(), |of| format!(", {} % of the traffic", of.canary.weight));
    Some(format!("step {index} of {all}{weight}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::to_raw_value;

    use super::of;

    #[test]
    fn a_phase_is_a_health_and_a_step_is_told_in_words() {
        let told = |api_version: &str, kind: &str, status: serde_json::Value| {
            let spec = json!({"strategy": {"canary": {"steps": [{"setWeight": 25}, {"pause": {}}]}}});
            let [spec, status] = [spec, status].map(|value| to_raw_value(&value).unwrap());
            of((api_version, kind), None, Some(&spec), Some(&status))
        };
        let argo = |kind: &str, status: serde_json::Value| told("argoproj.io/v1alpha1", kind, status);
        let weights = json!({"weights": {"canary": {"weight": 25}, "stable": {"weight": 75}}});
        for (kind, status, expected) in [
            ("Rollout", json!({"phase": "Healthy", "currentStepIndex": 2}), ("Healthy", "step 2 of 2")),
            (
                "Rollout",
                json!({"phase": "Paused", "currentStepIndex": 1, "canary": weights, "message": "CanaryPauseStep"}),
                ("Suspended", "step 1 of 2, 25 % of the traffic: CanaryPauseStep"),
            ),
            ("Rollout", json!({"phase": "Degraded", "message": "late", "canary": {}}), ("Degraded", "late")),
            ("AnalysisRun", json!({"phase": "Inconclusive"}), ("Unknown", "")),
            ("Workflow", json!({"phase": "Running", "progress": "1/2"}), ("Progressing", "1/2 done")),
            ("Workflow", json!({"phase": "Error", "message": null}), ("Degraded", "")),
        ] {
            assert_eq!(argo(kind, status), Some((expected.0, expected.1.to_owned())));
        }
        for status in [json!({}), json!({"phase": "Odd"}), json!({"phase": 7}), json!([])] {
            assert_eq!(argo("Rollout", status), None);
        }
        assert_eq!(told("example.org/v1", "Rollout", json!({"phase": "Healthy"})), None);
        assert_eq!(of(("argoproj.io/v1alpha1", "Workflow"), None, None, None), None);
    }

    #[test]
    fn a_replica_set_tells_its_pods_and_its_revision() {
        let told = |annotations: serde_json::Value, spec: serde_json::Value, status: serde_json::Value| {
            let [annotations, spec, status] =
                [annotations, spec, status].map(|value| to_raw_value(&value).unwrap());
            of(("apps/v1", "ReplicaSet"), Some(&annotations), Some(&spec), Some(&status)).unwrap()
        };
        let revision = json!({"deployment.kubernetes.io/revision": "7"});
        for (annotations, spec, status, expected) in [
            (
                &revision,
                json!({"replicas": 6}),
                json!({"readyReplicas": 4}),
                ("Progressing", "4 of 6 pods are ready, revision 7"),
            ),
            (
                &revision,
                json!({"replicas": 0}),
                json!({"replicas": 0}),
                ("Healthy", "0 of 0 pods are ready, revision 7"),
            ),
            (
                &json!({"rollout.argoproj.io/revision": "12"}),
                json!({}),
                json!({"readyReplicas": 1}),
                ("Healthy", "1 of 1 pods are ready, revision 12"),
            ),
            (&json!({}), json!({"replicas": "odd"}), json!([]), ("Progressing", "0 of 1 pods are ready")),
        ] {
            assert_eq!(told(annotations.clone(), spec, status), (expected.0, expected.1.to_owned()));
        }
        assert_eq!(of(("apps/v1", "ReplicaSet"), None, None, None), None);
    }
}
