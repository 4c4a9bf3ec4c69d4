//! Routes of the resource reporter: what their sinks read must be in its pod, and whom they lead to.

use super::{Judged, Severity};
use crate::tree::{Node, Value};

/// Where routes stand.
const ROUTES: &str = "resourceReporter.config.resources.routes";

/// Directories that the chart itself mounts.
const OWN: &[&str] = &["/etc/gitops-runtime", "/var/lib/gitops-runtime", "/tmp"];

/// The sink of each route, and its path.
fn sinks(judged: &Judged) -> Vec<(String, Node)> {
    let Some(Value::List(routes)) = judged.at(ROUTES).map(|node| &node.value) else { return Vec::new() };
    let sink =
        |(at, route): (usize, &Node)| Some((format!("{ROUTES}[{at}].sink"), route.get("sink")?.clone()));
    routes.iter().enumerate().filter_map(sink).collect()
}

/// The addresses of servers of NATS that routes publish to, each with the path of the setting.
pub(super) fn nats(judged: &Judged) -> Vec<(String, String)> {
    let of = |(path, sink): (String, Node)| {
        let is_nats = sink.get("kind").and_then(Node::text) == Some("nats");
        let url = sink.get("url").and_then(Node::text).filter(|_| is_nats && is_on(judged))?;
        Some((format!("{path}.url"), url.to_owned()))
    };
    sinks(judged).into_iter().filter_map(of).collect()
}

fn is_on(judged: &Judged) -> bool {
    judged.truth("resourceReporter.enabled")
}

pub(super) fn check(judged: &mut Judged) {
    if !is_on(judged) {
        return;
    }
    let mounts: Vec<String> = match judged.at("resourceReporter.extraVolumeMounts").map(|node| &node.value) {
        Some(Value::List(mounts)) => mounts
            .iter()
            .filter_map(|mount| Some(mount.get("mountPath")?.text()?.trim_end_matches('/').to_owned()))
            .collect(),
        _ => Vec::new(),
    };
    let is_below = |file: &str, place: &str| {
        file.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    for (path, sink) in sinks(judged) {
        for (name, node) in sink.entries() {
            let Some(file) = node.text().filter(|text| name.ends_with("File") && !text.is_empty()) else {
                continue;
            };
            if OWN.iter().copied().chain(mounts.iter().map(String::as_str)).any(|place| is_below(file, place))
            {
                continue;
            }
            let wanted = "a file below a mountPath of resourceReporter.extraVolumeMounts";
            let todo = "mount the Secret by resourceReporter.extraVolumes and extraVolumeMounts";
            // Whoever gave a token instead of its file is not shown it.
            let found = match file.starts_with('/') {
                true => format!("\"{file}\""),
                false => "a text that is no absolute path".to_owned(),
            };
            let finding = judged.add(Severity::Error, "GR0078", &format!("{path}.{name}"), wanted, todo);
            (finding.file, finding.line, finding.found) = (node.file.clone(), node.line, found);
        }
    }
}
