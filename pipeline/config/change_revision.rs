//! The settings of the role `change-revision`. What each means, and its default, stands in `config/default.yaml`, and there
//! alone.

use schemars::JsonSchema;
use serde::Deserialize;

use super::problem::Problems;
use super::repositories::Repositories;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct ChangeRevision {
    #[schemars(range(min = 1, max = 1_000))]
    pub(crate) commits: usize,
    pub(crate) annotations: bool,
    pub(crate) repositories: Repositories,
}

impl ChangeRevision {
    pub(super) fn check(&self, problems: &mut Problems) {
        self.repositories.check("changeRevision.repositories", problems);
    }
}

#[cfg(test)]
mod tests {
    use crate::config::tests::{host, resolve};

    #[test]
    fn clones_are_beside_the_ledger_unless_they_have_a_directory_of_their_own() {
        let of = |flags: &[(&str, &str)]| {
            let config = resolve(flags, &host()).unwrap();
            config.change_revision.repositories.checkouts("/state/repositories".into())
        };
        assert_eq!(of(&[]).directory.to_str(), Some("/state/repositories"));
        let own = [
            ("changeRevision.repositories.directory", "/cache"),
            ("changeRevision.repositories.size", "1Gi"),
        ];
        assert_eq!((of(&own).directory.to_str(), of(&own).bytes), (Some("/cache"), 1 << 30));
        assert!(!of(&[]).files);
    }
}
