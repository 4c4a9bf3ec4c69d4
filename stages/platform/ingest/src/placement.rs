//! Reads where an application comes from and where it goes.

use std::mem;

use serde::Deserialize;
use serde_json::value::RawValue;
use stages_client::{has_commits, manifest_sources};
use stages_platform_store::Placement;

use crate::fields::{Entries, Fields, lenient};
use crate::wire::short;

/// Labels of one application that are kept.
const LABELS: usize = 100;
/// Bytes of a label's key or value.
const LABEL: usize = 512;

/// The annotation that says to which product an application belongs.
const PRODUCT: &str = "codefresh.io/product";

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Spec<'a> {
    #[serde(deserialize_with = "lenient")]
    project: String,
    #[serde(deserialize_with = "lenient")]
    destination: Destination,
    #[serde(deserialize_with = "lenient")]
    source: Option<Source>,
    #[serde(borrow)]
    sources: Option<&'a RawValue>,
    #[serde(deserialize_with = "lenient")]
    source_hydrator: Hydrator,
}

/// What another branch is made from: what is written to that comes from there.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Hydrator {
    #[serde(deserialize_with = "lenient")]
    dry_source: Option<Source>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Destination {
    #[serde(deserialize_with = "lenient")]
    name: String,
    #[serde(deserialize_with = "lenient")]
    server: String,
    #[serde(deserialize_with = "lenient")]
    namespace: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct Source {
    #[serde(rename = "repoURL", deserialize_with = "lenient")]
    pub(crate) repository: String,
    #[serde(deserialize_with = "lenient")]
    path: String,
    #[serde(deserialize_with = "lenient")]
    chart: String,
    #[serde(rename = "ref", deserialize_with = "lenient")]
    reference: String,
}

impl Source {
    /// Whether its revisions are commits.
    pub(crate) fn has_commits(&self) -> bool {
        has_commits(&self.repository, &self.chart)
    }

    /// Whether others take files of it, and it has no manifests of its own.
    pub(crate) fn is_reference(&self) -> bool {
        !self.reference.is_empty()
    }
}

impl Spec<'_> {
    /// Its sources, in their order.
    fn all(self) -> Vec<Source> {
        let read = |source: &RawValue| serde_json::from_str(source.get()).unwrap_or_default();
        let several = Entries::of(self.sources).all.into_iter().map(read);
        manifest_sources(several.collect(), self.source_hydrator.dry_source, self.source)
    }
}

/// Its sources, in their order.
pub(crate) fn sources(spec: &RawValue) -> Vec<Source> {
    let spec: Spec<'_> = serde_json::from_str(spec.get()).unwrap_or_default();
    spec.all()
}

/// Of an application's `spec`, labels and annotations; of an odd one nothing is known, which is no reason to refuse its report.
pub(crate) fn of(spec: &RawValue, labels: &Fields<'_>, annotations: &Fields<'_>) -> Placement {
    let mut spec: Spec<'_> = serde_json::from_str(spec.get()).unwrap_or_default();
    let (project, destination) = (mem::take(&mut spec.project), mem::take(&mut spec.destination));
    let source = spec.all().into_iter().next().unwrap_or_default();
    // What the reporter writes there of the commit is kept in places of its own.
    let own = labels.texts().filter(|(key, _)| !key.starts_with("app.meta."));
    Placement {
        project,
        cluster: if destination.name.is_empty() { destination.server } else { destination.name },
        namespace: destination.namespace,
        repository: source.repository,
        path: if source.path.is_empty() { source.chart } else { source.path },
        product: short(annotations.text_or_empty(PRODUCT), LABEL),
        labels: own.take(LABELS).map(|(key, value)| (short(key, LABEL), short(value, LABEL))).collect(),
    }
}
