//! The files of a directory that Argo CD takes for manifests, where an application says which.

use globset::{GlobBuilder, GlobMatcher};
use serde_json::Value;

/// What Argo CD takes for manifests.
const MANIFESTS: [&str; 4] = ["yaml", "yml", "json", "jsonnet"];
/// What one of Jsonnet may be made of, wherever it is.
const JSONNET: [&str; 2] = ["jsonnet", "libsonnet"];

/// Files of a directory and of those below it, by `spec.source.directory.include` and `exclude`.
#[derive(Debug, Clone)]
pub struct ManifestFiles {
    /// The directory, from the root of the repository.
    pub(crate) directory: String,
    include: Option<GlobMatcher>,
    exclude: Option<GlobMatcher>,
}

impl ManifestFiles {
    /// Those of `directory` by the settings of its source; `None` where these do not say so for sure, and all of it counts: where it is not
    /// looked into below, Argo CD may pass over them; and Jsonnet with settings of its own is made of any files.
    pub(crate) fn read(directory: &str, settings: &Value) -> Option<Self> {
        let of = &settings["directory"];
        let is_another = |tool: &&str| !settings[*tool].is_null();
        if of["recurse"] != true
            || of["jsonnet"].as_object().is_some_and(|jsonnet| !jsonnet.is_empty())
            || ["helm", "kustomize", "plugin"].iter().any(is_another)
        {
            return None;
        }
        let pattern = |name: &str| of[name].as_str().filter(|text| !text.is_empty()).map(file_pattern);
        let (include, exclude) = (pattern("include"), pattern("exclude"));
        if include.is_none() && exclude.is_none() {
            return None;
        }
        // What is no pattern takes nothing to Argo CD: here nothing is left out by it.
        let (include, exclude) = (include.flatten(), exclude.flatten());
        Some(Self { directory: directory.to_owned(), include, exclude })
    }

    /// The same of another directory, which stands behind a link in its place.
    pub(crate) fn behind(&self, directory: String) -> Self {
        Self { directory, ..self.clone() }
    }

    /// Whether a file is one of them, by its path from the directory.
    pub(crate) fn has(&self, path: &str) -> bool {
        let is_any = |of: &[&str]| path.rsplit_once('.').is_some_and(|(_, own)| of.contains(&own));
        let is_included = self.include.as_ref().is_none_or(|include| include.is_match(path));
        let is_excluded = self.exclude.as_ref().is_some_and(|exclude| exclude.is_match(path));
        is_any(&JSONNET) || (is_any(&MANIFESTS) && is_included && !is_excluded)
    }
}

/// Reads a pattern of files of a directory as Argo CD does, to which `/` is a character like any other; `None` for what is none.
pub fn file_pattern(text: &str) -> Option<GlobMatcher> {
    let mut text = text.to_owned();
    while text.contains("**") {
        text = text.replace("**", "*");
    }
    let built = GlobBuilder::new(&text)
        .literal_separator(false)
        .backslash_escape(true)
        .empty_alternates(true)
        .build();
    built.ok().map(|glob| glob.compile_matcher())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::ManifestFiles;

    fn files(settings: &Value) -> Option<ManifestFiles> {
        ManifestFiles::read("apps", settings)
    }

    #[test]
    fn what_is_included_and_not_excluded_is_taken_as_argo_cd_takes_it() {
        let has = |include: &str, exclude: &str, path: &str| {
            let directory = json!({"recurse": true, "include": include, "exclude": exclude});
            files(&json!({ "directory": directory })).unwrap().has(path)
        };
        for (include, exclude, path, expected) in [
            ("*.yaml", "", "a.yaml", true),
            ("*.yaml", "", "a/b/c.yaml", true),
            ("*.yaml", "", "a.json", false),
            ("*/application.yaml", "", "a/b/application.yaml", true),
            ("*/application.yaml", "", "application.yaml", false),
            ("**/application.yaml", "", "application.yaml", false),
            ("{a.yaml,b/*}", "", "b/c/d.yml", true),
            ("{a.yaml,b/*}", "", "c.yaml", false),
            ("[!a]?.yaml", "", "bc.yaml", true),
            ("*", "", "README.md", false),
            ("", "*.md", "README.md", false),
            ("", "{tests/*,*/tests/*}", "a/tests/b.yaml", false),
            ("", "tests/*", "a/b.yaml", true),
            ("*.yaml", "secret.yaml", "secret.yaml", false),
            ("a.jsonnet", "", "lib/b.libsonnet", true),
            ("[", "", "a.yaml", true),
            ("", "[", "a.yaml", true),
        ] {
            assert_eq!(has(include, exclude, path), expected, "{include:?} without {exclude:?}: {path}");
        }
    }

    #[test]
    fn all_of_a_directory_counts_where_it_is_not_sure_that_argo_cd_takes_some_files_alone() {
        let some = json!({"recurse": true, "include": "*.yaml"});
        for settings in [
            json!({}),
            json!({"directory": {"recurse": true}}),
            json!({"directory": {"recurse": true, "include": "", "exclude": ""}}),
            json!({"directory": {"include": "*.yaml"}}),
            json!({"directory": {"recurse": true, "include": "*.yaml", "jsonnet": {"libs": ["lib"]}}}),
            json!({"directory": some, "plugin": {}}),
            json!({"directory": some, "helm": {"valueFiles": []}}),
        ] {
            assert!(files(&settings).is_none(), "{settings}");
        }
        assert!(
            files(&json!({"directory": {"recurse": true, "include": "*.yaml", "jsonnet": {}}})).is_some()
        );
    }
}
