//! How far an object has come that goes through phases and is reported as it is: what Argo CD would call its health, and its
//! step in words. So its way stands in the timeline of its application.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use stages_platform_store::{Phased, Pods};

use crate::fields::Fields;

/// Where controllers of Deployments and of Rollouts say which revision a ReplicaSet is of.
const REVISIONS: [&str; 2] = ["deployment.kubernetes.io/revision", "rollout.argoproj.io/revision"];

/// How many pods a ReplicaSet is to have.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Wanted {
    replicas: Option<u32>,
}

/// How many pods of a ReplicaSet are ready.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Ready {
    ready_replicas: u32,
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
    spec: Option<&RawValue>,
    status: Option<&RawValue>,
    pods: Option<Pods>,
) -> Option<(&'static str, String)> {
    if let Some(pods) = pods {
        let health = if pods.ready < pods.wanted { "Progressing" } else { "Healthy" };
        return Some((health, pods.to_string()));
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

/// The pods of a ReplicaSet; `None` of any other object.
pub(crate) fn pods(
    name: (&str, &str),
    annotations: Option<&RawValue>,
    spec: Option<&RawValue>,
    status: Option<&RawValue>,
) -> Option<Pods> {
    if name != ("apps/v1", "ReplicaSet") {
        return None;
    }
    let annotations = Fields::of(annotations);
    let wanted = serde_json::from_str::<Wanted>(spec?.get()).unwrap_or_default().replicas.unwrap_or(1);
    let ready: Ready = status.and_then(|status| serde_json::from_str(status.get()).ok()).unwrap_or_default();
    let revision = REVISIONS.into_iter().find_map(|name| annotations.text(name)?.parse::<u32>().ok());
    Some(Pods {
        ready: ready.ready_replicas.into(),
        wanted: wanted.into(),
        revision: revision.map(i64::from),
    })
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

    use stages_platform_store::Pods;

    use super::{of, pods};

    #[test]
    fn a_phase_is_a_health_and_a_step_is_told_in_words() {
        let told = |api_version: &str, kind: &str, status: serde_json::Value| {
            let spec = json!({"strategy": {"canary": {"steps": [{"setWeight": 25}, {"pause": {}}]}}});
            let [spec, status] = [spec, status].map(|value| to_raw_value(&value).unwrap());
            of((api_version, kind), Some(&spec), Some(&status), None)
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
        let set = ("apps/v1", "ReplicaSet");
        let told = |annotations: &serde_json::Value, spec: serde_json::Value, status: serde_json::Value| {
            let [annotations, spec, status] =
                [annotations.clone(), spec, status].map(|value| to_raw_value(&value).unwrap());
            let pods = pods(set, Some(&annotations), Some(&spec), Some(&status)).unwrap();
            let (health, words) = of(set, Some(&spec), Some(&status), Some(pods)).unwrap();
            (pods, health, words)
        };
        let revision = json!({"deployment.kubernetes.io/revision": "7"});
        let of_rollout = json!({"rollout.argoproj.io/revision": "12"});
        let odd = json!({"deployment.kubernetes.io/revision": "odd"});
        for (annotations, spec, status, (ready, wanted, revision), health, words) in [
            (
                &revision,
                json!({"replicas": 6}),
                json!({"readyReplicas": 4}),
                (4, 6, Some(7)),
                "Progressing",
                "4 of 6 pods are ready, revision 7",
            ),
            (
                &revision,
                json!({"replicas": 0}),
                json!({"replicas": 0}),
                (0, 0, Some(7)),
                "Healthy",
                "0 of 0 pods are ready, revision 7",
            ),
            (
                &of_rollout,
                json!({}),
                json!({"readyReplicas": 1}),
                (1, 1, Some(12)),
                "Healthy",
                "1 of 1 pods are ready, revision 12",
            ),
            (
                &odd,
                json!({"replicas": "odd"}),
                json!([]),
                (0, 1, None),
                "Progressing",
                "0 of 1 pods are ready",
            ),
        ] {
            let expected = (Pods { ready, wanted, revision }, health, words.to_owned());
            assert_eq!(told(annotations, spec, status), expected);
        }
        assert_eq!(pods(set, None, None, None), None);
        assert_eq!(
            pods(("apps/v1", "Deployment"), None, Some(&to_raw_value(&json!({})).unwrap()), None),
            None
        );
    }
}
