//! The role `resource-reporter`: the live state of objects of other kinds, reported; how the watch of several kinds meets
//! what is known of them.

use std::sync::Arc;

use anyhow::Context as _;
use pipeline_core::{Event, Meter, ObjectIndex};
use pipeline_redact::Redactor;
use serde_json::Value;
use stages_kube::{Kind, Mapping, Right, Wanted, Watches};
use stages_resources::{KnownKind, ResourceEnrichment, known};

use super::build;
use super::reporter::Built;
use crate::config::Config;

/// The objects of one kind.
pub(crate) struct Objects {
    kind: Kind,
    named: &'static str,
    known: KnownKind,
    /// Takes what is secret out of the texts that are kept of a phase.
    redactor: Redactor,
}

impl Mapping for Objects {
    type Status = Value;

    fn kind(&self) -> Kind {
        self.kind
    }

    fn named(&self) -> &'static str {
        self.named
    }

    fn event(&self, event: Event, status: Option<&Value>) -> Event {
        let fact = status.and_then(|status| self.known.fact(status, &self.redactor));
        Event { fact, ..event }
    }

    fn may_drift(&self, _: Option<&Value>) -> bool {
        false
    }
}

/// The watch, without what it is of.
fn watch(config: &Config) -> stages_kube::Config {
    let namespaces = config.resources.namespaces.iter().map(|pattern| pattern.0.clone()).collect();
    stages_kube::Config { namespaces, ..build::watch(config) }
}

/// The kinds of the settings, and what keys call them. The version counts only where it is pinned.
fn kinds(config: &Config) -> impl Iterator<Item = (Kind, bool, KnownKind)> {
    config.resources.kinds.iter().map(|name| {
        let known = known(&name.resource());
        let version = name.version.as_deref();
        (
            Kind::interned(&name.group, version.unwrap_or("v1"), &name.plural, &known.name),
            version.is_some(),
            known,
        )
    })
}

/// What a watch of the kinds needs to be allowed.
pub(super) fn rights(config: &Config) -> Vec<Right> {
    let watch = watch(config);
    kinds(config).flat_map(|(kind, ..)| watch.rights(kind)).collect()
}

/// Source and enrichment.
pub(super) async fn build(
    config: &Config,
    redactor: Redactor,
    meter: Arc<dyn Meter>,
) -> anyhow::Result<Built> {
    let wanted = kinds(config).map(|(kind, pinned, known)| {
        let (named, redactor) = (kind.singular, redactor.clone());
        let mapping = move |kind| Objects { kind, named, known: known.clone(), redactor: redactor.clone() };
        Wanted { kind, pinned, named, mapping: Box::new(mapping) }
    });
    let deps = stages_kube::Deps { seen: ObjectIndex::default(), meter };
    let source: Watches<Objects> = watch(config)
        .build_kinds(wanted.collect(), *config.resources.discovery, deps)
        .await
        .context("watch the objects of the cluster (settings under `kubernetes` and `resources`)")?;
    let source = Arc::new(source);
    let enrich = ResourceEnrichment::new(kinds(config).map(|(.., known)| known), redactor);
    let keys = source.clone();
    Ok(Built { source, enrich: Arc::new(enrich), keys: Arc::new(move || keys.keys()), argocd: None })
}
