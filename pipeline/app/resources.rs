//! The role `resource-reporter`: the live state of objects of other kinds, reported; how the watch of several kinds meets
//! what is known of them.

use std::sync::Arc;

use anyhow::Context as _;
use pipeline_core::{Event, Meter, ObjectIndex, StageError, async_trait};
use pipeline_engine::limit::KindLimits;
use pipeline_redact::Redactor;
use serde_json::Value;
use stages_kube::{Kind, Mapping, Reader, Right, Unwatched, Watches};
use stages_resources::{
    Applications, KnownKind, LookupError, ObjectPart, ObjectReader, Phases, ReportOptions, ReportedKind,
    ResourceEnrichment, Tracking, WarningLimit, known,
};

use super::dry_run::DryRun;
use super::reporter::Built;
use super::{build, nothing_to_follow, routes};
use crate::config::{Config, KindRules, TrackingMethod};

/// The label that names an application, where no setting says another.
const INSTANCE: &str = "app.kubernetes.io/instance";

/// The objects of one kind.
pub(crate) struct OfKind {
    kind: Kind,
    known: KnownKind,
    /// Takes what is secret out of the texts that are kept of a phase.
    redactor: Redactor,
}

impl Mapping for OfKind {
    type Status = Phases;

    fn kind(&self) -> Kind {
        self.kind
    }

    fn named(&self) -> &'static str {
        self.kind.singular
    }

    fn event(&self, event: Event, status: Option<&Phases>) -> Event {
        let fact = status.and_then(|phases| self.known.fact(phases, &self.redactor));
        Event { fact, ..event }
    }

    fn may_drift(&self, _: Option<&Phases>) -> bool {
        false
    }
}

/// The watch, without what it is of.
fn watch(config: &Config) -> stages_kube::Config {
    let namespaces = config.resources.namespaces.iter().map(|pattern| pattern.0.clone()).collect();
    stages_kube::Config { namespaces, ..build::watch(config) }
}

/// A kind of the settings, and what is known of it. The version counts only where it is pinned.
fn kinds(config: &Config) -> Vec<(Kind, KindRules, KnownKind)> {
    let of = |rules: KindRules| {
        let known = known(&rules.kind.resource());
        let version = rules.kind.version.as_deref().unwrap_or("v1");
        (Kind::interned(&rules.kind.group, version, &rules.kind.plural, &known.name), rules, known)
    };
    config.resources.kinds().into_iter().map(of).collect()
}

/// What a watch of the kinds needs to be allowed, and what finds the applications of their objects.
pub(super) fn rights(config: &Config) -> Vec<Right> {
    let (watch, kinds) = (watch(config), kinds(config));
    let mut rights: Vec<Right> =
        kinds.iter().map(|(kind, rules, _)| watch.selected_right(*kind, &rules.selector())).collect();
    if config.resources.applications {
        let owners = kinds.iter().flat_map(|(.., known)| all_owners(known));
        for resource in owners.chain(["applications.argoproj.io".to_owned()]) {
            let (plural, group) = resource.split_once('.').unwrap_or((&resource, ""));
            let right = watch.read_right(Kind::interned(group, "v1", plural, plural));
            if !rights.iter().any(|known| known.covers(&right)) {
                rights.push(right);
            }
        }
    }
    rights
}

/// The kinds above one, as far as owners are asked for, as plural.group.
fn all_owners(known: &KnownKind) -> Vec<String> {
    let mut above: Vec<String> = Vec::new();
    let mut next: Vec<String> = known.owners().iter().map(|owner| owner.resource.clone()).collect();
    while let Some(resource) = next.pop() {
        if !above.contains(&resource) {
            next.extend(self::known(&resource).owners().iter().map(|owner| owner.resource.clone()));
            above.push(resource);
        }
    }
    above
}

/// How often objects of some kinds are reported.
pub(super) fn limits(config: &Config) -> KindLimits {
    let kinds = kinds(config).into_iter();
    let limits: Vec<_> =
        kinds.filter_map(|(kind, rules, _)| Some((kind.singular, rules.rate_limit()?))).collect();
    // Once in the life of the process.
    Vec::leak(limits)
}

/// Reads owners and applications.
struct Cluster {
    reader: Reader,
    failing: WarningLimit,
}

#[async_trait]
impl ObjectReader for Cluster {
    async fn read(&self, path: &str, wanted: ObjectPart) -> Result<Option<Value>, LookupError> {
        let read = match wanted {
            ObjectPart::Metadata => self.reader.metadata_of(path).await,
            ObjectPart::Whole => self.reader.get(path).await,
        };
        match read {
            Ok(found) => Ok(found),
            Err(error) => {
                let error = StageError::from(error);
                let reason = error.reason();
                if self.failing.due() {
                    let error: &dyn std::error::Error = &error;
                    tracing::warn!(error, "the application of an object cannot be found out");
                }
                Err(LookupError(reason))
            }
        }
    }
}

/// Finds the applications of objects.
async fn applications(config: &Config) -> anyhow::Result<Applications> {
    let reader =
        watch(config).cluster.reader().await.context("find the cluster (settings under `kubernetes`)")?;
    // Where it is known that Argo CD goes by annotations, a label says nothing.
    let by_label = matches!(config.argocd.tracking_method, TrackingMethod::Auto | TrackingMethod::Label);
    let label = config.argocd.instance_label_key.clone().unwrap_or_else(|| INSTANCE.to_owned());
    let tracking =
        Tracking { label: by_label.then_some(label), namespace: config.kubernetes.namespace.to_string() };
    Ok(Applications::new(Arc::new(Cluster { reader, failing: WarningLimit::default() }), tracking))
}

/// Routes, all in all.
pub(super) fn routes(config: &Config) -> u32 {
    u32::try_from(config.resources.routes().len()).unwrap_or(u32::MAX).saturating_add(1)
}

/// Source and enrichment.
pub(super) async fn build(
    config: &Config,
    redactor: Redactor,
    meter: Arc<dyn Meter>,
    dry: Option<DryRun>,
) -> anyhow::Result<Built> {
    let wanted = kinds(config).into_iter().map(|(kind, rules, known)| {
        let (redactor, selector) = (redactor.clone(), rules.selector());
        let mapping = move |kind| OfKind { kind, known: known.clone(), redactor: redactor.clone() };
        stages_kube::Wanted {
            kind,
            pinned: rules.kind.version.is_some(),
            only: rules.namespaces,
            except: rules.excluded_namespaces,
            selector,
            mapping: Box::new(mapping),
        }
    });
    let unwatched = dry.map(|dry| -> Unwatched { Arc::new(move |key| dry.unwatched(key)) });
    let deps = stages_kube::Deps { seen: ObjectIndex::default(), meter, unwatched };
    let source: Watches<OfKind> = watch(config)
        .build_kinds(wanted.collect(), *config.resources.discovery, deps)
        .await
        .context("watch the objects of the cluster (settings under `kubernetes` and `resources`)")?;
    let source = Arc::new(source);
    let settings = &config.resources;
    let shown = ReportOptions { managed_fields: settings.managed_fields, largest: settings.largest.len() };
    let reported =
        kinds(config).into_iter().map(|(_, rules, known)| ReportedKind { known, filter: rules.filter() });
    let mut all = ResourceEnrichment::new(reported, shown, redactor);
    if settings.applications {
        all = all.linked(applications(config).await?);
    }
    let keys = source.clone();
    Ok(Built {
        source,
        enrich: Arc::new(all.for_route(routes(config), routes::takes_application(&settings.matching)?)),
        sink: None,
        resources: Some(all),
        keys: Arc::new(move || keys.keys()),
        argocd: None,
        answers: None,
        following: nothing_to_follow(),
    })
}
