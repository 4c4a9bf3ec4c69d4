//! The values of a release, as Helm keeps them: gzipped JSON in Secrets, one for each version.
//!
//! takes: a release's name - gives: the values that its users gave, and none of the chart's
//! calls: the API server, for Secrets of that name alone - fails: when there is no such release, or it cannot be read

use std::io::Read as _;

use anyhow::{Context as _, anyhow, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use pipeline_doctor::{Cluster as _, File};
use serde_json::Value;

use super::KubeconfigCluster;

/// Bytes of the largest release that is unpacked.
const LARGEST: u64 = 32 << 20;
const CHART: &str = "gitops-runtime";

/// Reads the values of the version that is deployed, or else of the newest.
pub(super) fn read(cluster: &KubeconfigCluster, namespace: &str, name: &str) -> anyhow::Result<File> {
    let act = || format!("read the release {name} in namespace {namespace}");
    // A label's value; whatever else is given names no release.
    if !name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) {
        bail!("{name:?} is no name of a release");
    }
    let list = format!("/api/v1/namespaces/{namespace}/secrets?labelSelector=owner%3Dhelm,name%3D{name}");
    let list = cluster.metadata(&list).map_err(|why| anyhow!(why)).with_context(act)?.unwrap_or_default();
    let version = |secret: &Value| {
        let labels = &secret["metadata"]["labels"];
        let number = labels["version"].as_str().and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        (labels["status"] == "deployed", number)
    };
    let secrets = list["items"].as_array().into_iter().flatten();
    let newest = secrets.max_by_key(|secret| version(secret));
    let secret = newest
        .and_then(|secret| secret["metadata"]["name"].as_str())
        .with_context(|| format!("there is no release {name} in namespace {namespace}: see helm list"))?;
    let path = format!("/api/v1/namespaces/{namespace}/secrets/{secret}");
    let secret = cluster.get(&path).map_err(|why| anyhow!(why)).with_context(act)?.unwrap_or_default();
    let release = secret["data"]["release"].as_str().and_then(unpacked).with_context(act)?;
    let chart = release["chart"]["metadata"]["name"].as_str().unwrap_or("unknown");
    if chart != CHART {
        bail!("the release {name} is of the chart {chart}, and not of {CHART}");
    }
    let values = match &release["config"] {
        Value::Null => "{}".to_owned(),
        values => values.to_string(),
    };
    let file = File::read(&format!("release {name}"), &values);
    let File { name, root } = file.map_err(|error| anyhow!(error.why)).with_context(act)?;
    Ok(File { name, root: root.without_lines() })
}

/// What Helm packed; `None` where it is something else.
fn unpacked(data: &str) -> Option<Value> {
    let helm = STANDARD.decode(data).ok()?;
    let packed = STANDARD.decode(helm).ok()?;
    let mut text = String::new();
    GzDecoder::new(packed.as_slice()).take(LARGEST).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}
