//! `gitops-runtime app logs`: lines of the logs of an application's pods, as they come.

use serde_json::json;

use super::AppConnection;
use crate::arguments::app::Logs as Given;
use crate::error::RemoteError;
use crate::logs::Logs;
use crate::resource::Node;
use crate::show::Screen;

pub(super) async fn run(
    connection: &AppConnection,
    logs: &Given,
    screen: &Screen,
) -> Result<(), RemoteError> {
    let AppConnection { proxy, name, .. } = connection;
    let node = match &logs.resource {
        Some(text) => Some(proxy.resource(name, text).await?),
        None => None,
    };
    // Of anything but a pod all pods are read.
    let pod = node.as_ref().filter(|node| node.is_pod()).map(|node| &*node.name);
    let query = "subscription Logs($application: ApplicationId!, $podName: String, $container: String, $resource: ResourceId, $options: ApplicationLogsOptionsInput) { applicationLogs(application: $application, podName: $podName, container: $container, resource: $resource, options: $options) { data { content podName timestamp } error done } }";
    let variables = json!({
        "application": name.variables(),
        "podName": pod,
        "container": logs.container,
        "resource": node.as_ref().map(Node::variables),
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
