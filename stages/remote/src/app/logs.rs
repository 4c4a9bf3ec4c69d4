//! `gitops-runtime app logs`: lines of the logs of an application's pods, as they come.

use serde::Deserialize;
use serde_json::{Value, json};

use super::find::AppName;
use crate::arguments::app::Logs;
use crate::ask::read;
use crate::error::RemoteError;
use crate::proxy::Proxy;
use crate::show::{Screen, plain};

#[derive(Deserialize)]
struct Piece {
    data: Option<Entry>,
    error: Option<String>,
    done: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    content: String,
    pod_name: Option<String>,
    timestamp: Option<String>,
}

pub(super) async fn run(
    proxy: &Proxy,
    name: &AppName,
    logs: &Logs,
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
            "follow": logs.follow,
            "filter": logs.filter,
            "sinceSeconds": logs.since.map(|since| since.as_secs()),
            "tailLines": logs.tail,
        },
    });
    let reading = async {
        let mut items = proxy.items("read logs", query, variables).await?;
        while let Some(mut item) = items.next().await? {
            let piece: Piece = read(item.remove("applicationLogs").unwrap_or_default())?;
            if let Some(error) = piece.error.filter(|error| !error.is_empty()) {
                return Err(RemoteError::Missing(format!(
                    "the logs of {name} cannot be read: {}",
                    plain(&error)
                )));
            }
            if let Some(entry) = piece.data {
                screen.say(&line(&entry, logs, pod.is_none()))?;
            }
            if piece.done == Some(true) {
                return Ok(());
            }
        }
        Ok(())
    };
    tokio::select! {
        ended = reading => ended,
        _ = tokio::signal::ctrl_c() => Ok(()),
    }
}

fn is_pod(text: &str) -> bool {
    text.split('/').rev().nth(1).is_some_and(|kind| kind.eq_ignore_ascii_case("pod"))
}

fn line(entry: &Entry, logs: &Logs, of_several: bool) -> String {
    let pod = entry.pod_name.as_deref().filter(|_| of_several).map(|pod| format!("[{}] ", plain(pod)));
    let at = entry.timestamp.as_deref().filter(|_| logs.timestamps).map(|at| format!("{} ", plain(at)));
    // What a program wrote is for the terminal that it was meant for, if for any.
    let content = crate::show::lines(entry.content.trim_end_matches('\n'));
    format!("{}{}{content}\n", pod.unwrap_or_default(), at.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_is_told_from_what_has_pods() {
        assert_eq!(["Pod/web", "a/pod/web", "Deployment/web", "web"].map(is_pod), [true, true, false, false]);
    }
}
