//! Reports the clusters of Argo CD to the platform.
//!
//! takes: the name of the runtime - gives: nothing - calls: Argo CD, which lists those that our account may `get`, and none where it
//! may get none; the platform (`updateRuntimeClusters`), a part of the list at a time - fails: where either does not answer; the
//! platform keeps what it was told before

use std::collections::HashSet;

use pipeline_redact::Redactor;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::argocd::ArgoCd;
use crate::error::ActError;
use crate::platform::Platform;

/// Clusters of one call, as many as the incumbent's app proxy reports.
const CHUNK: usize = 50;
/// The most bytes of a cluster's API versions.
const MAX_API_VERSIONS: usize = 8 * 1_024;
/// The most bytes of a name and of an address that the platform takes.
const MAX_NAME: usize = 500;
/// The most characters of the message of a connection's state.
const MAX_MESSAGE: usize = 1_024;

/// A cluster, as Argo CD lists it: without its credentials.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct ListedCluster {
    name: Option<String>,
    server: Option<String>,
    info: Value,
}

/// Reports all clusters.
pub(crate) async fn report(argocd: &ArgoCd, platform: &Platform, runtime: &str) -> Result<(), ActError> {
    let mut named = HashSet::new();
    let all = argocd.clusters().await?;
    let clusters = all.iter().filter_map(|one| upsert_args(one, runtime, argocd.redactor()));
    let clusters: Vec<Value> = clusters.filter(|one| named.insert(one["name"].to_string())).collect();
    let act = "take what clusters there are";
    for part in clusters.chunks(CHUNK) {
        let query =
            "mutation($clusters: [ClusterUpsertArgs!]!) { updateRuntimeClusters(clusters: $clusters) }";
        let query = json!({"query": query, "variables": {"clusters": part}});
        let away = |source| ActError::Away { peer: "the platform", act, source };
        platform.graphql(act, &query).await.map_err(away)?;
    }
    Ok(())
}

/// A cluster, as the platform takes it; `None`: it has no address, or a name or address that the platform does not take.
fn upsert_args(one: &ListedCluster, runtime: &str, redactor: &Redactor) -> Option<Value> {
    let server = one.server.as_deref().filter(|server| !server.is_empty())?;
    let name = one.name.as_deref().filter(|name| !name.is_empty()).unwrap_or(server);
    // The platform would refuse the whole call.
    let is_well = |text: &str| text.len() <= MAX_NAME && !text.chars().any(char::is_control);
    if !is_well(name) || !is_well(server) {
        return None;
    }
    let (info, state) = (&one.info, &one.info["connectionState"]);
    // Redacted before it is cut: a part of a secret would not be recognised.
    let message = state["message"]
        .as_str()
        .map(|text| redactor.text(text).chars().take(MAX_MESSAGE).collect::<String>());
    let status = ["Successful", "Failed"].into_iter().find(|status| state["status"] == *status);
    let mut room = MAX_API_VERSIONS;
    let fits = |version: &&Value| {
        room = room.saturating_sub(version.as_str().map_or(0, |text| text.len() + 1));
        room > 0
    };
    let versions: Vec<&Value> =
        info["apiVersions"].as_array().into_iter().flatten().take_while(fits).collect();
    Some(json!({
        "name": name, "runtime": runtime, "server": server,
        "info": {
            "connectionState": {
                "status": status.unwrap_or("Unknown"), "message": message, "attemptedAt": state["attemptedAt"],
            },
            "serverVersion": info["serverVersion"],
            "cacheInfo": {
                "resourcesCount": info["cacheInfo"]["resourcesCount"], "apisCount": info["cacheInfo"]["apisCount"],
                "lastCacheSyncTime": info["cacheInfo"]["lastCacheSyncTime"],
            },
            "applicationsCount": info["applicationsCount"].as_i64().unwrap_or_default(),
            "apiVersions": versions,
        },
    }))
}
