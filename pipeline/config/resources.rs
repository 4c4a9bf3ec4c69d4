//! The settings of the role `resource-reporter`. What each means, and its default, stands in `config/default.yaml`, and there
//! alone.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::problem::Problems;
use super::units::{As, Pattern, Unit};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Resources {
    pub(crate) namespaces: Vec<As<Pattern>>,
    pub(crate) kinds: Vec<As<KindName>>,
    pub(crate) discovery: As<Duration>,
}

impl Resources {
    pub(super) fn check(&self, problems: &mut Problems) {
        problems.positive("resources.discovery", *self.discovery);
        let mut named = std::collections::BTreeSet::new();
        for kind in &self.kinds {
            let name = stages_resources::known(&kind.resource()).name;
            if !named.insert(name.clone()) {
                problems.add(
                    "resources.kinds",
                    format!("{name} stands there twice: one version of a kind is reported"),
                );
            }
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
