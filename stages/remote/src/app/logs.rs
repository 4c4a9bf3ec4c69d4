//! `gitops-runtime app logs`: lines of the logs of an application's pods, as they come.

use serde_json::{Value, json};

use super::find::AppName;
use crate::arguments::app::Logs as Given;
use crate::error::RemoteError;
use crate::logs::Logs;
use crate::proxy::Proxy;
use crate::show::Screen;

pub(super) async fn run(
    proxy: &Proxy,
    name: &AppName,
    logs: &Given,
    screen: &Screen,
) -> Result<(), RemoteError> {
    let resource = match &logs.resource {
        // A pod is read by its name; of anything else all pods are.
        Some(text) if !is_pod(text) => proxy.resource(name, text).await?.variables(),
        _ => Value::Null,
    };
    let pod =
        logs.resource.as_deref().filter(|text| is_pod(text)).and_then(|text| text.split('/').next_back());
    let query = "subscription Logs($application: ApplicationId!, $podName: String, $container: String, $resource: ResourceId, $options: ApplicationLogsOptionsInput) { applicationLogs(application: $application, podName: $podName, container: $container, resource: $resource, options: $options) { data { content podName timestamp } error done } }";
    let variables = json!({
        "application": name.variables(),
        "podName": pod,
        "container": logs.container,
        "resource": resource,
        "options": {
            "follow": logs.lines.follow,
            "filter": logs.filter,
            "sinceSeconds": logs.lines.since.map(|since| since.as_secs()),
            "tailLines": logs.lines.tail,
        },
    });
    let of = name.to_string();
    let (timestamps, pods) = (logs.lines.timestamps, pod.is_none());
    Logs { query, field: "applicationLogs", variables, of: &of, timestamps, pods }.show(proxy, screen).await
}

fn is_pod(text: &str) -> bool {
    text.split('/').rev().nth(1).is_some_and(|kind| kind.eq_ignore_ascii_case("pod"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_is_told_from_what_has_pods() {
        assert_eq!(["Pod/web", "a/pod/web", "Deployment/web", "web"].map(is_pod), [true, true, false, false]);
    }
}
