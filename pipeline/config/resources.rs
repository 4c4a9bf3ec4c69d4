//! The settings of the role `resource-reporter`. What each means, and its default, stands in `config/default.yaml`, and there
//! alone.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) use self::kind_rules::KindRules;
pub(crate) use self::routes::{Matching, RouteRules};
use super::Platform;
use super::listed::Listed;
use super::problem::Problems;
use super::reporter::Sink;
use super::units::{As, Pattern, Size, Unit};

mod kind_rules;
mod nats_sink;
mod routes;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Resources {
    pub(crate) namespaces: Vec<As<Pattern>>,
    kinds: Listed<KindRules>,
    preset: Preset,
    pub(crate) discovery: As<Duration>,
    pub(crate) managed_fields: bool,
    pub(crate) largest: As<Size>,
    pub(crate) applications: bool,
    #[serde(rename = "match")]
    pub(crate) matching: Matching,
    routes: Listed<RouteRules>,
}

/// Kinds that go by one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Preset {
    None,
    Incumbent,
}

impl Preset {
    /// The kinds of the incumbent's allow-list, as settings.
    const INCUMBENT: &str = include_str!("resources/incumbent.yaml");

    fn kinds(self) -> Vec<KindRules> {
        match self {
            Self::None => Vec::new(),
            #[expect(clippy::expect_used, reason = "the list is compiled in, and a test reads it")]
            Self::Incumbent => serde_saphyr::from_str(Self::INCUMBENT).expect("a list of kinds"),
        }
    }
}

impl Resources {
    /// The kinds that are reported: those that are listed, and those of the preset that are not.
    pub(crate) fn kinds(&self) -> Vec<KindRules> {
        let listed =
            |kind: &KindRules| self.kinds.0.iter().any(|one| one.kind.resource() == kind.kind.resource());
        let preset = self.preset.kinds().into_iter().filter(|kind| !listed(kind));
        self.kinds.0.iter().cloned().chain(preset).collect()
    }

    /// The routes beside that of `reporter`.
    pub(crate) fn routes(&self) -> &[RouteRules] {
        &self.routes.0
    }

    pub(super) fn check(&self, sinks: (&Platform, &Sink), problems: &mut Problems) {
        routes::check(self, sinks, problems);
        problems.positive("resources.discovery", *self.discovery);
        problems.at_least("resources.largest", &self.largest, "64Ki");
        let mut named = std::collections::BTreeSet::new();
        for (at, kind) in self.kinds.0.iter().enumerate() {
            let name = stages_resources::known(&kind.kind.resource()).name;
            if !named.insert(name.clone()) {
                problems.add(
                    "resources.kinds",
                    format!("{name} stands there twice: one version of a kind is reported"),
                );
            }
            kind.check(&format!("resources.kinds[{at}]"), problems);
        }
    }
}

/// A kind: `plural.group`, of the core group its plural alone, and `@version` where that is pinned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KindName {
    pub(crate) plural: String,
    pub(crate) group: String,
    pub(crate) version: Option<String>,
}

impl KindName {
    /// `plural.group`.
    pub(crate) fn resource(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }
}

impl Unit for KindName {
    const FORMAT: &'static str = "kind-name";

    fn read(text: &str) -> Result<Self, String> {
        let (resource, version) = match text.split_once('@') {
            Some((resource, version)) => (resource, Some(version)),
            None => (text, None),
        };
        let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
        let fits = |text: &str| {
            text.split('.').all(|part| {
                !part.is_empty()
                    && part.len() < 64
                    && part
                        .bytes()
                        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
            })
        };
        let is_kind = fits(plural) && (group.is_empty() || fits(group)) && !resource.ends_with('.');
        if !is_kind || !version.is_none_or(stages_kube::is_version) {
            return Err(format!(
                "'{text}' is not a kind such as rollouts.argoproj.io or replicasets.apps@v1"
            ));
        }
        Ok(Self { plural: plural.to_owned(), group: group.to_owned(), version: version.map(str::to_owned) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preset_holds_the_incumbents_kinds_each_once_and_its_rule_of_config_maps() {
        let kinds = Preset::Incumbent.kinds();
        let names: std::collections::BTreeSet<_> = kinds.iter().map(|kind| kind.kind.resource()).collect();
        assert_eq!((kinds.len(), names.len()), (20, 20));
        let mut problems = Problems::default();
        kinds.iter().for_each(|kind| kind.check("preset", &mut problems));
        assert!(problems.is_empty(), "{problems}");
        let maps = kinds.iter().find(|kind| kind.kind.resource() == "configmaps").unwrap();
        let filter = maps.filter().unwrap();
        for (metadata, taken) in [
            (serde_json::json!({"name": "codefresh-cm"}), true),
            (serde_json::json!({"name": "a", "labels": {"codefresh_io_entity": "x"}}), true),
            (serde_json::json!({"name": "a", "labels": {"other": "x"}}), false),
            (serde_json::json!({"name": "a"}), false),
        ] {
            assert_eq!(filter.takes(&serde_json::json!({"metadata": metadata})), Ok(taken), "{metadata}");
        }
        assert!(kinds.iter().filter(|kind| kind.filter().is_some()).count() == 1);
    }

    #[test]
    fn a_kind_is_its_plural_its_group_and_perhaps_a_version() {
        let read = |text| KindName::read(text).map(|kind| (kind.resource(), kind.version));
        assert_eq!(read("pods"), Ok(("pods".to_owned(), None)));
        assert_eq!(read("replicasets.apps@v1"), Ok(("replicasets.apps".to_owned(), Some("v1".to_owned()))));
        assert_eq!(read("rollouts.argoproj.io"), Ok(("rollouts.argoproj.io".to_owned(), None)));
        for text in ["", "Rollout", "rollouts.", ".apps", "a/b", "replicasets.apps@1", "replicasets.apps@"] {
            assert_eq!(
                read(text),
                Err(format!("'{text}' is not a kind such as rollouts.argoproj.io or replicasets.apps@v1"))
            );
        }
    }
}
