//! What the platform was told of the applications that are judged.

use std::collections::BTreeSet;

use serde_json::Value;

use loadtest_judge::report::{Report, text};
use loadtest_sim::platform::{EntityName, KeptReport, Last, PlatformSim, ResourceKey};

/// Reports of some applications, or of one.
#[derive(Debug, Clone, Default)]
pub(super) struct Told {
    /// The last report of each entity.
    pub(super) last: Vec<(EntityName, Last)>,
    /// All of them, oldest first.
    pub(super) kept: Vec<KeptReport>,
}

impl Told {
    pub(super) fn of(platform: &PlatformSim, applications: &[String]) -> Self {
        let names: BTreeSet<&str> = applications.iter().map(String::as_str).collect();
        let is_one = |entity: &EntityName| names.contains(entity.app_name.as_str());
        // What comes between the two is in the second alone: the reports below are no fewer than the last ones.
        let mut last = platform.last();
        last.retain(|(entity, _)| is_one(entity));
        let mut kept = platform.kept();
        kept.retain(|kept| is_one(&kept.entity));
        Self { last, kept }
    }

    pub(super) fn of_application(&self, namespace: &str, name: &str) -> Self {
        let is_it = |entity: &EntityName| entity.app_namespace == namespace && entity.app_name == name;
        Self {
            last: self.last.iter().filter(|(entity, _)| is_it(entity)).cloned().collect(),
            kept: self.kept.iter().filter(|kept| is_it(&kept.entity)).cloned().collect(),
        }
    }

    /// The last report of the application itself.
    pub(super) fn of_itself(&self) -> Option<Report> {
        opened(self.last.iter().find(|(entity, _)| entity.resource.is_none())?)
    }

    /// The last report of the resource that an entry names, and that is `live` in the cluster if it is there.
    pub(super) fn of_resource(&self, listed: &ResourceKey, live: Option<&Value>) -> Option<Report> {
        opened(self.entity_of(listed, live)?)
    }

    /// That resource itself, and what was told of it last.
    pub(super) fn entity_of(
        &self,
        listed: &ResourceKey,
        live: Option<&Value>,
    ) -> Option<&(EntityName, Last)> {
        let namespace = live.map(|live| text(live.pointer("/metadata/namespace")));
        self.last.iter().find(|(entity, _)| {
            entity.resource.as_ref().is_some_and(|resource| {
                is_one(resource, listed)
                    && namespace.as_ref().is_none_or(|namespace| resource.namespace == *namespace)
            })
        })
    }

    /// The last report of a resource by the name that it was reported under.
    pub(super) fn report_of(&self, resource: &ResourceKey) -> Option<Report> {
        opened(self.last.iter().find(|(entity, _)| entity.resource.as_ref() == Some(resource))?)
    }

    /// How many there were.
    pub(super) fn reports(&self) -> u64 {
        self.last.iter().map(|(_, last)| last.reports).sum()
    }
}

fn opened((_, last): &(EntityName, Last)) -> Option<Report> {
    Report::open(last.payload.as_ref()?)
}

/// Whether a report is about what an entry names. The entry of a resource without a namespace may name that of the
/// application's destination.
pub(super) fn is_one(reported: &ResourceKey, listed: &ResourceKey) -> bool {
    (&reported.api_version, &reported.kind, &reported.name)
        == (&listed.api_version, &listed.kind, &listed.name)
        && (reported.namespace == listed.namespace || reported.namespace.is_empty())
}
