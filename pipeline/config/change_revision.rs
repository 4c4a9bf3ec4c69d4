//! The settings of the role `change-revision`. What each means, and its default, stands in `config/default.yaml`, and there
//! alone.

use schemars::JsonSchema;
use serde::Deserialize;

use super::problem::Problems;
use super::repositories::Repositories;
use super::units::{As, Size};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct ChangeRevision {
    #[schemars(range(min = 1, max = 1_000))]
    pub(crate) commits: usize,
    pub(crate) diffs: As<Size>,
    pub(crate) follow_reporter: bool,
    pub(crate) annotations: bool,
    pub(crate) repositories: Repositories,
}

impl ChangeRevision {
    pub(super) fn check(&self, problems: &mut Problems) {
        // What a platform keeps of one sync, and no line more.
        problems.at_most("changeRevision.diffs", &self.diffs, "256Ki");
        self.repositories.check("changeRevision.repositories", problems);
    }
}

#[cfg(test)]
mod tests {
    use crate::config::tests::{host, resolve};

    #[test]
    fn beside_the_reporter_it_has_a_ledger_and_shards_of_its_own() {
        let of = |flags: &[(&str, &str)]| {
            let mut config = resolve(flags, &host()).unwrap();
            config.of_changes();
            (config.state.ledger_name.clone(), config.bus.map(|bus| bus.prefix.0.clone()))
        };
        assert_eq!(of(&[]), ("changes-reporter-ledger.redb".to_owned(), None));
        let written = ("changeRevision.annotations", "true");
        assert_eq!(of(&[written]).0, "annotations-reporter-ledger.redb");
        let bus = ("bus.url", "nats://nats:4222");
        assert_eq!(of(&[bus]).1.as_deref(), Some("gitops-runtime.changes"));
        assert_eq!(of(&[bus, written]).1.as_deref(), Some("gitops-runtime.annotations"));
    }

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
