//! The runtime's own pods, and which logs they have.
//!
//! takes: nothing - gives: logs by pod and container, and of which component each is - calls: the API server, for pods of one
//! namespace that a selector chooses - fails: where pods cannot be listed

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::Value;
use stages_kube::Reader;

use crate::error::ActError;

/// The most pods that are listed.
const MAX_PODS: usize = 200;
/// The most logs of all pods.
const MAX_LOGS: usize = 1_000;

/// The pods of the runtime. Cloning shares.
#[derive(Clone)]
pub(crate) struct OwnPods {
    pub(crate) cluster: Arc<Reader>,
    pub(crate) namespace: String,
    pub(crate) selector: String,
}

/// The log of a container of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnLog {
    pub(crate) pod: String,
    pub(crate) container: String,
    /// The pod's label `app.kubernetes.io/component`; empty: it has none.
    pub(crate) component: String,
    /// Whether it is the log of the container's run before its last restart.
    pub(crate) previous: bool,
}

/// The logs of the pods.
pub(crate) struct OwnLogs {
    pub(crate) logs: VecDeque<OwnLog>,
    /// What is left out, a line each.
    pub(crate) missing: String,
}

impl OwnLog {
    /// Its path in an archive.
    pub(crate) fn path(&self) -> String {
        let previous = if self.previous { ".previous" } else { "" };
        format!("{}/{}{previous}.log", self.pod, self.container)
    }
}

impl OwnPods {
    /// Lists the logs of all pods, at most [`MAX_LOGS`] of [`MAX_PODS`] pods.
    pub(crate) async fn logs(&self) -> Result<OwnLogs, ActError> {
        let path = format!(
            "/api/v1/namespaces/{}/pods?labelSelector={}&limit={MAX_PODS}",
            self.namespace, self.selector
        );
        let list = self.cluster.get(&path).await;
        let list = list.map_err(|source| ActError::Cluster { act: "list the runtime's pods", source })?;
        let list = list.unwrap_or_default();
        let mut missing = String::new();
        if list.pointer("/metadata/continue").and_then(Value::as_str).is_some_and(|more| !more.is_empty()) {
            missing += "pods after the first 200\n";
        }
        let pods = list.get("items").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let mut logs: VecDeque<OwnLog> = pods.iter().flat_map(logs_of).collect();
        if logs.len() > MAX_LOGS {
            logs.truncate(MAX_LOGS);
            missing += "logs after the first 1000\n";
        }
        Ok(OwnLogs { logs, missing })
    }

    /// The path of a log at the API server; `more` are further parameters.
    pub(crate) fn path(&self, log: &OwnLog, more: &str) -> String {
        format!(
            "/api/v1/namespaces/{}/pods/{}/log?container={}&previous={}&{more}",
            self.namespace, log.pod, log.container, log.previous
        )
    }
}

fn text<'a>(object: &'a Value, pointer: &str) -> Option<&'a str> {
    object.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// The logs of a pod.
fn logs_of(pod: &Value) -> Vec<OwnLog> {
    let Some(name) = text(pod, "/metadata/name") else { return Vec::new() };
    let component = text(pod, "/metadata/labels/app.kubernetes.io~1component").unwrap_or_default();
    let list =
        |pointer| pod.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut all = Vec::new();
    for (containers, statuses) in [
        ("/spec/initContainers", "/status/initContainerStatuses"),
        ("/spec/containers", "/status/containerStatuses"),
    ] {
        for container in list(containers).iter().filter_map(|container| text(container, "/name")) {
            let log = |previous| OwnLog {
                pod: name.to_owned(),
                container: container.to_owned(),
                component: component.to_owned(),
                previous,
            };
            let mut status = list(statuses).iter().filter(|status| text(status, "/name") == Some(container));
            let restarts = status.next().and_then(|status| status.get("restartCount")?.as_i64());
            all.push(log(false));
            all.extend((restarts > Some(0)).then(|| log(true)));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_container_that_was_restarted_has_the_log_of_its_run_before() {
        let pod = json!({
            "metadata": {"name": "web-1"},
            "spec": {"initContainers": [{"name": "init"}], "containers": [{"name": "web"}, {"name": "side"}]},
            "status": {"containerStatuses": [{"name": "side", "restartCount": 0}, {"name": "web", "restartCount": 2}]},
        });
        let paths: Vec<String> = logs_of(&pod).iter().map(OwnLog::path).collect();
        assert_eq!(paths, ["web-1/init.log", "web-1/web.log", "web-1/web.previous.log", "web-1/side.log"]);
        assert_eq!(logs_of(&json!({})), []);
    }
}
