//! Reads where an application comes from and where it goes.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use stages_platform_store::Placement;

/// Labels of one application that are kept.
const LABELS: usize = 100;

#[derive(Deserialize, Default)]
#[serde(default)]
struct Spec {
    project: String,
    destination: Destination,
    source: Option<Source>,
    sources: Vec<Source>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Destination {
    name: String,
    server: String,
    namespace: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Source {
    #[serde(rename = "repoURL")]
    repository: String,
    path: String,
    chart: String,
}

/// Of an application's `spec` and labels; of an odd one nothing is known, which is no reason to refuse its report.
pub(crate) fn of(spec: &RawValue, labels: &Value) -> Placement {
    let Spec { project, destination, source, sources } = serde_json::from_str(spec.get()).unwrap_or_default();
    let source = source.or_else(|| sources.into_iter().next()).unwrap_or_default();
    let labels = labels.as_object().into_iter().flatten();
    // What the reporter writes there of the commit is kept in places of its own.
    let own = labels.filter(|(key, _)| !key.starts_with("app.meta."));
    let label = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
    Placement {
        project,
        cluster: if destination.name.is_empty() { destination.server } else { destination.name },
        namespace: destination.namespace,
        repository: source.repository,
        path: if source.path.is_empty() { source.chart } else { source.path },
        labels: own.filter_map(label).take(LABELS).collect(),
    }
}
