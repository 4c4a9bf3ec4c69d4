//! Which tool Argo CD makes a source's manifests with.

use serde::Serialize;
use serde_json::Value;
use stages_git::application::{KUSTOMIZATIONS, Source};
use stages_git::{GitError, Snapshot, join};

/// What makes manifests of a source's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Tool {
    /// Files as they are.
    Directory,
    /// A chart.
    Helm,
    /// A Kustomization.
    Kustomize,
    /// A plugin of Argo CD's: only it knows.
    Plugin,
    /// Nothing: other sources take files of it.
    Reference,
}

impl Tool {
    /// What Argo CD takes for a source: what the source says, else what its directory holds. One that holds both a chart and
    /// a Kustomization is a Kustomization.
    ///
    /// # Errors
    /// The repository cannot be read.
    pub(crate) fn of(source: &Source, directory: &str, files: &Snapshot<'_>) -> Result<Self, GitError> {
        let settings = source.settings();
        if source.reference.is_some() && source.path.is_empty() && source.chart.is_none() {
            return Ok(Self::Reference);
        }
        if !settings["plugin"].is_null() {
            return Ok(Self::Plugin);
        }
        let says = |name: &str| !is_zero(&settings[name]);
        if says("kustomize") {
            return Ok(Self::Kustomize);
        }
        if says("helm") || source.chart.is_some() {
            return Ok(Self::Helm);
        }
        if says("directory") {
            return Ok(Self::Directory);
        }
        let listed = files.list(directory)?;
        let has = |name: &str| {
            let path = join(directory, name);
            listed.iter().any(|listed| !listed.is_directory && Some(&listed.path) == path.as_ref())
        };
        if KUSTOMIZATIONS.into_iter().any(has) {
            return Ok(Self::Kustomize);
        }
        Ok(if has("Chart.yaml") { Self::Helm } else { Self::Directory })
    }
}

/// Whether settings of a tool say nothing, so that they do not choose it.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Object(all) => all.values().all(is_zero),
        Value::Array(all) => all.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use stages_git::application::Source;

    use super::Tool;
    use crate::testing::repository;

    fn tool(settings: Value) -> Tool {
        let files = [
            ("both/Chart.yaml", "name: a"),
            ("both/kustomization.yml", "resources: []"),
            ("chart/Chart.yaml", "name: a"),
            ("chart/below/x.yaml", ""),
            ("kustom/Kustomization", ""),
            ("plain/below/Chart.yaml", ""),
        ];
        let (_directory, repository, commit) = repository(&files);
        let source = Source::read(settings).unwrap();
        Tool::of(&source, &source.path, &repository.snapshot(commit).unwrap()).unwrap()
    }

    #[test]
    fn what_a_source_says_goes_before_what_its_directory_holds() {
        for (settings, expected) in [
            (json!({"path": "chart"}), Tool::Helm),
            (json!({"path": "both"}), Tool::Kustomize),
            (json!({"path": "kustom"}), Tool::Kustomize),
            (json!({"path": "plain"}), Tool::Directory),
            (json!({"path": "none"}), Tool::Directory),
            (json!({"path": "chart", "directory": {"recurse": true}}), Tool::Directory),
            (json!({"path": "chart", "directory": {"recurse": false, "jsonnet": {}}}), Tool::Helm),
            (json!({"path": "plain", "helm": {"releaseName": "a"}}), Tool::Helm),
            (json!({"path": "chart", "kustomize": {"namePrefix": "a-"}}), Tool::Kustomize),
            (json!({"path": "chart", "plugin": {}}), Tool::Plugin),
            (json!({"ref": "values"}), Tool::Reference),
            (json!({"chart": "redis"}), Tool::Helm),
        ] {
            assert_eq!(tool(settings.clone()), expected, "{settings}");
        }
    }
}
