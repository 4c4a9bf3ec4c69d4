//! The clusters of Argo CD, told to the platform.
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

/// So many are told of at a time, as the incumbent's app proxy does.
const CHUNK: usize = 50;
/// Bytes of the versions of kinds that are told of one.
const VERSIONS: usize = 8 * 1_024;
/// Bytes of a name and of an address, as the platform takes them.
const NAME: usize = 500;
/// The longest text that is told of one.
const MESSAGE: usize = 1_024;

/// One of them, as Argo CD lists it; what it is called with Argo CD does not say.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct ListedCluster {
    name: Option<String>,
    server: Option<String>,
    info: Value,
}

/// Tells the platform of all of them.
pub(crate) async fn tell(argocd: &ArgoCd, platform: &Platform, runtime: &str) -> Result<(), ActError> {
    let mut named = HashSet::new();
    let all = argocd.clusters().await?;
    let told = all.iter().filter_map(|one| told(one, runtime, argocd.redactor()));
    let told: Vec<Value> = told.filter(|one| named.insert(one["name"].to_string())).collect();
    let act = "take what clusters there are";
    for part in told.chunks(CHUNK) {
        let query =
            "mutation($clusters: [ClusterUpsertArgs!]!) { updateRuntimeClusters(clusters: $clusters) }";
        let query = json!({"query": query, "variables": {"clusters": part}});
        let away = |source| ActError::Away { peer: "the platform", act, source };
        platform.graphql(act, &query).await.map_err(away)?;
    }
    Ok(())
}

/// One, as the platform takes it; `None`: it has no address.
fn told(one: &ListedCluster, runtime: &str, redactor: &Redactor) -> Option<Value> {
    let server = one.server.as_deref().filter(|server| !server.is_empty())?;
    let name = one.name.as_deref().filter(|name| !name.is_empty()).unwrap_or(server);
    // The platform would take none of those beside it.
    let is_well = |text: &str| text.len() <= NAME && !text.chars().any(char::is_control);
    if !is_well(name) || !is_well(server) {
        return None;
    }
    let (info, state) = (&one.info, &one.info["connectionState"]);
    // Whole: half of a secret is not known for one.
    let message =
        state["message"].as_str().map(|text| redactor.text(text).chars().take(MESSAGE).collect::<String>());
    let status = ["Successful", "Failed"].into_iter().find(|status| state["status"] == *status);
    let mut room = VERSIONS;
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
