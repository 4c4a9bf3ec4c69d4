//! What of a repository makes one source, as it stands there: its directory and files of values, charts and Kustomizations that these
//! name, what Jsonnet imports, and what stands behind links.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Application, KUSTOMIZATIONS, MAX_FILE, Source, had, list};
use crate::error::GitError;
use crate::jsonnet;
use crate::manifest_files::ManifestFiles;
use crate::paths::Paths;
use crate::snapshot::{Snapshot, join};
use crate::yaml;

/// Kustomizations and charts that are read of one source: a circle of them ends as well.
const MAX_READ: usize = 256;
/// Entries of directories among which links, or files of Jsonnet and what they import, are looked for.
const MAX_ENTRIES: usize = 10_000;
/// Bytes of the paths that are named in what is read of one source, each of their parts counted with [`EACH_PART`] more: what a
/// deep one costs is to be looked for.
const MAX_NAMED: usize = 8 * 1024 * 1024;
const EACH_PART: usize = 64;

/// What one source is made of, while it is found out.
pub(super) struct Reading<'s, 'r> {
    application: &'s Application,
    files: &'s Snapshot<'r>,
    found: BTreeSet<String>,
    /// Of what was found the source's directory and files of values, in this order.
    own: Vec<String>,
    some: Vec<ManifestFiles>,
    /// Directories that are to be read.
    rest: Vec<String>,
    read: BTreeSet<String>,
    /// How many more of their entries are looked at for links.
    entries: usize,
    /// What is left of [`MAX_NAMED`].
    named: usize,
    /// Directories of Jsonnet that others are imported from.
    libraries: Vec<String>,
}

impl<'s, 'r> Reading<'s, 'r> {
    pub(super) fn new(application: &'s Application, files: &'s Snapshot<'r>) -> Self {
        Self {
            application,
            files,
            found: BTreeSet::new(),
            own: Vec::new(),
            some: Vec::new(),
            rest: Vec::new(),
            read: BTreeSet::new(),
            entries: MAX_ENTRIES,
            named: MAX_NAMED,
            libraries: Vec::new(),
        }
    }

    /// All that was found.
    pub(super) fn paths(self) -> Paths {
        Paths { all: self.found, some: self.some }.cut(&self.own)
    }

    /// Finds out what a source is made of.
    pub(super) fn source(&mut self, source: &Source) -> Result<(), GitError> {
        let Some(directory) = join("", &source.path) else { return Ok(()) };
        let behind = self.files.behind_links(&directory)?;
        let here: Vec<String> = std::iter::once(directory.clone()).chain(behind).collect();
        self.own.extend(here.iter().cloned());
        self.settings(source, &directory, &source.settings)?;
        let mut some = ManifestFiles::read(&directory, &source.settings);
        // What stands beside the manifests takes the place of what the application says.
        for called in [".argocd-source.yaml".to_owned()]
            .into_iter()
            .chain(self.application.called().map(|name| format!(".argocd-source-{name}.yaml")))
        {
            if let Some(settings) = self.yaml(&directory, &called)? {
                self.settings(source, &directory, &settings)?;
                some = None;
            }
        }
        match some {
            None => {
                self.found.extend(here.iter().cloned());
                self.rest.extend(here);
            }
            Some(some) => {
                self.some.extend(here.into_iter().rev().map(|directory| some.behind(directory)));
                self.linked_in(&directory)?;
            }
        }
        while let Some(directory) = self.rest.pop() {
            self.directory(&directory)?;
        }
        self.jsonnet(source, &directory)
    }

    /// What settings of a source name.
    fn settings(&mut self, source: &Source, directory: &str, settings: &Value) -> Result<(), GitError> {
        for file in self.application.own_value_files(source, settings) {
            if let Some(file) = join(directory, &file) {
                self.add_own(&file)?;
            }
        }
        for library in list(&settings["directory"]["jsonnet"]["libs"]) {
            // Argo CD looks for them from the root of the repository.
            if let Some(library) = library.as_str().and_then(|library| join("", library)) {
                self.add(&library)?;
                self.libraries.push(library);
            }
        }
        let kustomize = &settings["kustomize"];
        let patches = list(&kustomize["patches"]).map(|patch| &patch["path"]);
        let mut parts = list(&kustomize["components"]).chain(patches).filter_map(Value::as_str);
        parts.try_for_each(|part| self.linked(directory, part))
    }

    /// What is imported by Jsonnet in a directory that neither Helm nor Kustomize makes the manifests of.
    fn jsonnet(&mut self, source: &Source, directory: &str) -> Result<(), GitError> {
        let is_set = |tool: &str| !source.settings[tool].is_null();
        // Whatever it imports from is in the root.
        if directory.is_empty() || is_set("helm") || is_set("kustomize") {
            return Ok(());
        }
        for name in KUSTOMIZATIONS.into_iter().chain(["Chart.yaml"]) {
            if self.is_file(directory, name)? {
                return Ok(());
            }
        }
        let mut entries = MAX_ENTRIES;
        let mut rest = had(self.files.files(directory, ".jsonnet", &mut entries))?.unwrap_or_default();
        let (mut read, mut known) = (BTreeSet::new(), BTreeSet::new());
        while let Some(file) = rest.pop() {
            if read.len() >= MAX_READ || !read.insert(file.clone()) {
                continue;
            }
            let text = had(self.files.text(&file, MAX_FILE))?.flatten().unwrap_or_default();
            let beside = file.rsplit_once('/').map_or("", |(above, _)| above);
            for path in jsonnet::imports(&text) {
                // Each is looked for in every library.
                let Some(left) = entries.checked_sub(1 + self.libraries.len()) else { return Ok(()) };
                entries = left;
                let found = self.imported(&path, beside, directory)?;
                if let Some(found) = found.filter(|found| known.insert(found.clone())) {
                    self.add(&found)?;
                    let is_jsonnet = [".jsonnet", ".libsonnet"].iter().any(|end| found.ends_with(end));
                    rest.extend(is_jsonnet.then_some(found));
                }
            }
        }
        Ok(())
    }

    /// The file that Jsonnet imports by a path: one beside the file that does, or one of a library, the last of which goes first.
    fn imported(&self, path: &str, beside: &str, directory: &str) -> Result<Option<String>, GitError> {
        let libraries = self.libraries.iter().rev().map(String::as_str);
        // What is not of the repository is nobody's to change.
        let from =
            std::iter::once(beside).chain(libraries).chain([directory]).filter(|_| !path.starts_with('/'));
        for above in from {
            if self.is_file(above, path)? {
                return Ok(join(above, path));
            }
        }
        Ok(None)
    }

    fn is_file(&self, directory: &str, name: &str) -> Result<bool, GitError> {
        let Some(path) = join(directory, name) else { return Ok(false) };
        Ok(match self.files.read(&path, 0) {
            Ok(found) => found.is_some(),
            Err(error) if error.ends_reading() => return Err(error),
            Err(why) => matches!(why, GitError::TooLarge { .. }),
        })
    }

    /// A path, with what it stands for behind links: all of these, or none once too much was named.
    fn add(&mut self, path: &str) -> Result<Vec<String>, GitError> {
        let left = self.named.checked_sub(path.len() + EACH_PART * path.split('/').count());
        self.named = left.unwrap_or_default();
        if left.is_none() {
            return Ok(Vec::new());
        }
        let behind = self.files.behind_links(path)?;
        let all: Vec<String> = std::iter::once(path.to_owned()).chain(behind).collect();
        self.found.extend(all.iter().cloned());
        Ok(all)
    }

    /// A file of values, with what it stands for behind links.
    pub(super) fn add_own(&mut self, path: &str) -> Result<(), GitError> {
        let all = self.add(path)?;
        self.own.extend(all);
        Ok(())
    }

    /// A path that may be a directory with more elsewhere: what is written in it is seen from where it stands behind links as well.
    fn part(&mut self, path: &str) -> Result<(), GitError> {
        let all = self.add(path)?;
        if !all.is_empty() && had(self.files.is_directory(path))? == Some(true) {
            self.rest.extend(all);
        }
        Ok(())
    }

    /// What a directory is made of that is elsewhere in the repository.
    fn directory(&mut self, directory: &str) -> Result<(), GitError> {
        if self.named == 0 || self.read.len() >= MAX_READ || !self.read.insert(directory.to_owned()) {
            return Ok(());
        }
        self.linked_in(directory)?;
        for chart in ["Chart.yaml", "requirements.yaml"] {
            if let Some(chart) = self.yaml(directory, chart)? {
                for dependency in list(&chart["dependencies"]) {
                    let place =
                        dependency["repository"].as_str().and_then(|place| place.strip_prefix("file://"));
                    if let Some(place) = place {
                        self.linked(directory, place)?;
                    }
                }
            }
        }
        for name in KUSTOMIZATIONS {
            if let Some(kustomization) = self.yaml(directory, name)? {
                self.kustomization(directory, &kustomization)?;
            }
        }
        Ok(())
    }

    /// What links in a directory stand for. Behind those of the root there is nothing that is not in the root.
    fn linked_in(&mut self, directory: &str) -> Result<(), GitError> {
        if directory.is_empty() {
            return Ok(());
        }
        for link in had(self.files.links(directory, &mut self.entries))?.unwrap_or_default() {
            let behind = self.files.behind_links(&link)?;
            self.found.extend(behind.iter().cloned());
            if let Some(last) = behind.last()
                && had(self.files.is_directory(last))? == Some(true)
            {
                self.rest.push(last.clone());
            }
        }
        Ok(())
    }

    fn kustomization(&mut self, directory: &str, of: &Value) -> Result<(), GitError> {
        let texts = |value: &Value| -> Vec<String> {
            list(value).filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let mut all: Vec<String> = Vec::new();
        for name in [
            "resources",
            "bases",
            "components",
            "crds",
            "configurations",
            "generators",
            "transformers",
            "validators",
            "patchesStrategicMerge",
        ] {
            all.extend(texts(&of[name]));
        }
        for (name, key) in [
            ("patches", "path"),
            ("patchesJson6902", "path"),
            ("replacements", "path"),
            ("helmCharts", "valuesFile"),
            ("helmChartInflationGenerator", "values"),
        ] {
            all.extend(list(&of[name]).filter_map(|one| one[key].as_str()).map(str::to_owned));
        }
        for name in ["configMapGenerator", "secretGenerator"] {
            for one in list(&of[name]) {
                for key in ["files", "envs"] {
                    // A file may be given another name: `name=path`.
                    let named = texts(&one[key]).into_iter();
                    all.extend(
                        named.map(|text| {
                            text.split_once('=').map_or(text.clone(), |(_, path)| path.to_owned())
                        }),
                    );
                }
                all.extend(one["env"].as_str().map(str::to_owned));
            }
        }
        for chart in list(&of["helmCharts"]) {
            all.extend(texts(&chart["additionalValuesFiles"]));
        }
        all.extend(of["openapi"]["path"].as_str().map(str::to_owned));
        all.extend(of["helmGlobals"]["chartHome"].as_str().map(str::to_owned));
        for path in all {
            self.linked(directory, &path)?;
        }
        Ok(())
    }

    /// A path that something in `directory` names.
    fn linked(&mut self, directory: &str, path: &str) -> Result<(), GitError> {
        // A patch may stand in the text itself, and a base may be in another repository.
        if path.contains('\n') || path.contains("://") {
            return Ok(());
        }
        join(directory, path).map_or(Ok(()), |path| self.part(&path))
    }

    fn yaml(&self, directory: &str, name: &str) -> Result<Option<Value>, GitError> {
        let Some(path) = join(directory, name) else { return Ok(None) };
        // What is too large, elsewhere, or no YAML says nothing of paths.
        Ok(had(self.files.text(&path, MAX_FILE))?.flatten().and_then(|text| yaml::first(&text).ok()))
    }
}
