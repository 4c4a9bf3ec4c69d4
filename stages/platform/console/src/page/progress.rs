//! How far an object has come that goes through steps: a Rollout's step, weight and analysis, an AnalysisRun's metrics, a
//! Workflow's nodes. Read of the manifest that its reporter sent; an object of another kind has no such thing.

use jiff::Timestamp;
use maud::{Markup, html};
use serde_json::Value;
use stages_platform_store::Phased;

use super::pieces::health;
use crate::time::{absolute, lasting};
use crate::view::state::Health;

/// Nodes of a Workflow that are shown; of more it is said how many there are.
const NODES: usize = 200;

/// The panel of an object, where its kind has steps.
pub(crate) fn panel(manifest: &str, now: Timestamp) -> Option<Markup> {
    let object: Value = serde_json::from_str(manifest).ok()?;
    let phased = Phased::of(text(&object, "/apiVersion"), text(&object, "/kind"))?;
    let body = match phased {
        Phased::Rollout => rollout(&object),
        Phased::AnalysisRun => analysis(&object),
        Phased::Workflow => workflow(&object, now),
    };
    let phase = text(&object, "/status/phase");
    Some(html! {
        section.progress aria-label="Progress" {
            p { (health(state(phased, phase))) " " b { (if phase.is_empty() { "No phase yet" } else { phase }) }
                @let message = text(&object, "/status/message");
                @if !message.is_empty() { " " span.mute { (message) } } }
            (body)
        }
    })
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn number(value: &Value, pointer: &str) -> Option<u64> {
    value.pointer(pointer).and_then(Value::as_u64)
}

fn list<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// What a phase means.
fn state(of: Phased, phase: &str) -> Health {
    of.health(phase).map_or(Health::Unknown, Health::from)
}

fn rollout(object: &Value) -> Markup {
    let steps = list(object, "/spec/strategy/canary/steps");
    let at = number(object, "/status/currentStepIndex").and_then(|at| usize::try_from(at).ok());
    let is_full = text(object, "/status/currentPodHash") == text(object, "/status/stableRS");
    // Where no traffic is routed by weight, it is what the steps so far asked for.
    let asked = steps.iter().take(at.unwrap_or_default()).rev().find_map(|step| number(step, "/setWeight"));
    let weight = number(object, "/status/canary/weights/canary/weight");
    let weight = weight.or_else(|| if is_full { Some(100) } else { Some(asked.unwrap_or_default()) });
    let runs = [
        ("/status/canary/currentStepAnalysisRunStatus", "analysis of this step"),
        ("/status/canary/currentBackgroundAnalysisRunStatus", "analysis beside it"),
        ("/status/blueGreen/prePromotionAnalysisRunStatus", "analysis before the promotion"),
        ("/status/blueGreen/postPromotionAnalysisRunStatus", "analysis after the promotion"),
    ];
    html! {
        @if object.pointer("/status/abort").is_some_and(|abort| *abort == true) { p.bad { "It was aborted." } }
        @if !steps.is_empty() {
            p { "step " b { (at.unwrap_or_default().min(steps.len())) } " of " (steps.len())
                @if let Some(weight) = weight { " · " b { (weight) " %" } " of the traffic on "
                    code { (text(object, "/status/currentPodHash")) } } }
            ol.steps {
                @for (index, step) in steps.iter().enumerate() {
                    @let now = at.unwrap_or_default();
                    li aria-current=[(index == now).then_some("step")] class=(if index < now { "done" } else if index == now { "now" } else { "next" }) {
                        (described(step))
                    }
                }
            }
        }
        @for (pointer, what) in runs {
            @if let Some(run) = object.pointer(pointer) {
                p { (health(state(Phased::AnalysisRun, text(run, "/status")))) " " (what) ": " code { (text(run, "/name")) } " " (text(run, "/status"))
                    @let message = text(run, "/message");
                    @if !message.is_empty() { " " span.mute { (message) } } }
            }
        }
    }
}

/// A step in a few words.
fn described(step: &Value) -> String {
    if let Some(weight) = number(step, "/setWeight") {
        return format!("set the weight to {weight} %");
    }
    if let Some(pause) = step.get("pause") {
        return match pause.get("duration") {
            Some(Value::String(duration)) => format!("wait for {duration}"),
            Some(Value::Number(seconds)) => format!("wait for {seconds}s"),
            _ => "wait until somebody promotes it".to_owned(),
        };
    }
    let known = step.as_object().and_then(|step| step.keys().next());
    known.map_or_else(|| "a step".to_owned(), Clone::clone)
}

fn analysis(object: &Value) -> Markup {
    html! {
        table.metrics {
            thead { tr { th scope="col" { span.hidden { "state" } } th scope="col" { "metric" } th scope="col" { "last value" }
                th.number scope="col" { "successful" } th.number scope="col" { "failed" } th.number scope="col" { "errors" } } }
            tbody {
                @for metric in list(object, "/status/metricResults") {
                    tr {
                        td { (health(state(Phased::AnalysisRun, text(metric, "/phase")))) }
                        td { (text(metric, "/name")) @let message = text(metric, "/message");
                            @if !message.is_empty() { small.mute { " " (message) } } }
                        td { code { (list(metric, "/measurements").last().map_or("", |last| text(last, "/value"))) } }
                        @for count in ["/successful", "/failed", "/error"] { td.number { (number(metric, count).unwrap_or_default()) } }
                    }
                }
            }
        }
    }
}

fn workflow(object: &Value, now: Timestamp) -> Markup {
    let time = |node: &Value, pointer: &str| text(node, pointer).parse::<Timestamp>().ok();
    let nodes = object.pointer("/status/nodes").and_then(Value::as_object);
    let mut nodes: Vec<&Value> = nodes.map(|nodes| nodes.values().collect()).unwrap_or_default();
    nodes.sort_by_key(|node| (time(node, "/startedAt"), text(node, "/displayName").to_owned()));
    let took = |node: &Value| {
        let began = time(node, "/startedAt")?;
        Some(lasting(began, time(node, "/finishedAt").unwrap_or(now)))
    };
    html! {
        @let progress = text(object, "/status/progress");
        @if !progress.is_empty() { p { (progress) " done" @if let Some(took) = took(&object["status"]) { " in " (took) } } }
        @if nodes.is_empty() && !text(object, "/status/offloadNodeStatusVersion").is_empty() {
            p.mute { "Its nodes are kept in the database of Argo Workflows, and were not reported." }
        } @else {
            table.nodes {
                thead { tr { th scope="col" { span.hidden { "state" } } th scope="col" { "node" } th scope="col" { "type" }
                    th scope="col" { "began" } th.number scope="col" { "took" } } }
                tbody {
                    @for node in nodes.iter().take(NODES) {
                        tr {
                            td { (health(state(Phased::Workflow, text(node, "/phase")))) }
                            td { (text(node, "/displayName")) @let message = text(node, "/message");
                                @if !message.is_empty() { small.mute { " " (message) } } }
                            td.mute { (text(node, "/type")) }
                            td.mute { @if let Some(began) = time(node, "/startedAt") { (absolute(began)) } }
                            td.number.mute { @if let Some(took) = took(node) { (took) } }
                        }
                    }
                }
            }
            @if nodes.len() > NODES { p.mute { "and " (nodes.len() - NODES) " more nodes" } }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The words of a panel, without its marks.
    fn words(object: &Value) -> String {
        let now = "2026-01-01T01:00:00Z".parse().unwrap();
        let markup = panel(&object.to_string(), now).unwrap().0;
        let mut words = String::new();
        let mut within = false;
        for c in markup.chars() {
            match c {
                '<' => within = true,
                '>' => {
                    within = false;
                    words.push(' ');
                }
                c if !within => words.push(c),
                _ => {}
            }
        }
        words.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_rollout_shows_its_step_its_weight_and_its_analysis() {
        let object = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout",
            "spec": {"strategy": {"canary": {"steps": [
                {"setWeight": 20}, {"pause": {}}, {"setWeight": 60}, {"pause": {"duration": "10m"}}, {"analysis": {}},
            ]}}},
            "status": {
                "phase": "Paused", "message": "CanaryPauseStep", "currentStepIndex": 1, "currentPodHash": "b", "stableRS": "a",
                "canary": {"currentStepAnalysisRunStatus": {"name": "web-1", "status": "Failed", "message": "5 > 1 <b>"}},
            },
        });
        let words = words(&object);
        for part in [
            "Paused CanaryPauseStep",
            "step 1 of 5 · 20 % of the traffic on b",
            "set the weight to 20 % wait until somebody promotes it set the weight to 60 % wait for 10m analysis",
            "analysis of this step: web-1 Failed 5 &gt; 1 &lt;b&gt;",
        ] {
            assert!(words.contains(part), "{part}: {words}");
        }
    }

    #[test]
    fn an_analysis_run_shows_its_metrics_and_a_workflow_its_nodes_in_order() {
        let run = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisRun",
            "status": {"phase": "Failed", "metricResults": [{
                "name": "errors", "phase": "Failed", "failed": 2, "successful": 1,
                "measurements": [{"value": "1"}, {"value": "9"}],
            }]},
        });
        assert!(words(&run).contains("errors 9 1 2 0"), "{}", words(&run));
        let node = |name: &str, began: &str| json!({"displayName": name, "type": "Pod", "phase": "Succeeded", "startedAt": began, "finishedAt": "2026-01-01T00:10:00Z"});
        let workflow = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
            "status": {"phase": "Running", "progress": "1/2", "nodes": {
                "1": node("second", "2026-01-01T00:05:00Z"), "2": node("first", "2026-01-01T00:00:00Z"),
            }},
        });
        let words_of = words(&workflow);
        let (first, second) = (words_of.find("first").unwrap(), words_of.find("second").unwrap());
        assert!(first < second && words_of.contains("1/2 done"), "{words_of}");
        let offloaded = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "status": {"offloadNodeStatusVersion": "fnv:1"},
        });
        assert!(words(&offloaded).contains("kept in the database of Argo Workflows"));
    }

    #[test]
    fn what_has_no_steps_has_no_panel() {
        for object in [
            json!({"apiVersion": "apps/v1", "kind": "Deployment"}),
            json!({"apiVersion": "example.org/v1", "kind": "Rollout"}),
            json!([]),
        ] {
            assert!(panel(&object.to_string(), Timestamp::UNIX_EPOCH).is_none(), "{object}");
        }
        assert!(panel("no json", Timestamp::UNIX_EPOCH).is_none());
    }
}
