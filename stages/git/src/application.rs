//! Which paths of which repository make an application.
//!
//! The annotation `argocd.argoproj.io/manifest-generate-paths` says so; without it the sources do: their directories, value
//! files, charts that are elsewhere in the repository, what a Kustomization is made of, libraries of Jsonnet and what it imports,
//! what stands behind links, and what other sources take by `$ref`. Of an application whose manifests Argo CD writes to a branch
//! first, they are what it writes there.
//!
//! Of one source at most 4,096 are kept. An annotation of more stands for the source's directory; of those that are found, the ones
//! below others go first, and the source's directory and files of values last. What is named beyond a bound is not looked at.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::Value;
use stages_client::{SyncedSources, has_commits, synced_sources};

use crate::address::Address;
use crate::build_environment::BuildEnvironment;
use crate::error::GitError;
use crate::jsonnet;
use crate::made_from::HYDRATED_FROM;
use crate::manifest_files::ManifestFiles;
use crate::paths::{MAX_PATHS, MAX_SOURCES, Paths};
use crate::snapshot::{Snapshot, join};
use crate::yaml;

const ANNOTATION: &str = "argocd.argoproj.io/manifest-generate-paths";
/// The names that a Kustomization may have.
pub const KUSTOMIZATIONS: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];
/// The files of a directory that Argo CD takes for manifests: it writes the first, and people the others at most.
const HYDRATED: [&str; 5] = ["manifest.yaml", "*.yaml", "*.yml", "*.json", "*.jsonnet"];
/// Kustomizations and charts that are read of one source: a circle of them ends as well.
const MAX_READ: usize = 256;
/// Entries of directories among which links, or files of Jsonnet and what they import, are looked for.
const MAX_ENTRIES: usize = 10_000;
/// Bytes of the paths that are named in what is read of one source, each of their parts counted with [`EACH_PART`] more: what a
/// deep one costs is to be looked for.
const MAX_NAMED: usize = 8 * 1024 * 1024;
const EACH_PART: usize = 64;
/// Bytes of a Kustomization or chart.
const MAX_FILE: usize = 1024 * 1024;

/// An Argo CD Application, as far as its sources go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Application {
    /// `None` when the manifest names none.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// The project that it is of.
    pub(crate) project: String,
    /// The namespace that it is deployed to; empty when the manifest names none.
    pub(crate) destination: String,
    /// The first 64 that it is synced to, in the manifest's order: their places are their revisions'. One that cannot be read is empty.
    pub sources: Vec<Source>,
    /// Which paths, where it is annotated with some; `.` alone, the directory of each source, where these are too many.
    annotated: Vec<String>,
    /// What its manifests are made from, where Argo CD writes them to a branch.
    dry: Option<Source>,
}

/// One source of an application.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Source {
    /// Where its repository is.
    pub repo_url: String,
    /// A branch, a tag or a commit; empty is `HEAD`.
    pub target_revision: String,
    /// The directory; empty is the root, or nothing for a source that others refer to alone.
    pub path: String,
    /// The name of a chart of a Helm repository.
    pub chart: Option<String>,
    /// What others call its files by: `$name/values.yaml`.
    pub reference: Option<String>,
    settings: Value,
}

impl Source {
    /// Reads one source of an Application's `spec`; `None` when the value is no object.
    pub fn read(source: Value) -> Option<Self> {
        if !source.is_object() {
            return None;
        }
        let text = |name: &str| source[name].as_str().unwrap_or_default().to_owned();
        let filled = |name: &str| Some(text(name)).filter(|text| !text.is_empty());
        let [repo_url, target_revision, path] = ["repoURL", "targetRevision", "path"].map(text);
        let (chart, reference) = (filled("chart"), filled("ref"));
        Some(Self { repo_url, target_revision, path, chart, reference, settings: source })
    }

    /// Whether it comes from Git.
    pub fn has_commits(&self) -> bool {
        has_commits(&self.repo_url, self.chart.as_deref().unwrap_or_default())
    }

    /// All that the manifest says of it.
    pub fn settings(&self) -> &Value {
        &self.settings
    }
}

impl Application {
    /// Reads an Application; `None` when the object is none.
    pub fn read(object: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let group = object["apiVersion"].as_str()?.split('/').next()?;
        if object["kind"] != "Application" || group != "argoproj.io" {
            return None;
        }
        let spec = &object["spec"];
        let SyncedSources { all, is_hydrated, .. } = synced_sources(spec);
        let sources = all.into_iter().map(|source| Source::read(source.into_owned()).unwrap_or_default());
        let metadata = &object["metadata"];
        let annotated = metadata["annotations"][ANNOTATION].as_str().unwrap_or_default();
        let annotated = annotated.split(';').map(str::trim).filter(|path| !path.is_empty());
        let mut annotated: Vec<String> = annotated.take(MAX_PATHS + 1).map(str::to_owned).collect();
        if annotated.len() > MAX_PATHS {
            annotated = vec![".".to_owned()];
        }
        Some(Self {
            namespace: metadata["namespace"].as_str().map(str::to_owned),
            name: text(&metadata["name"]),
            project: filled(&spec["project"]).unwrap_or("default").to_owned(),
            destination: text(&spec["destination"]["namespace"]),
            sources: sources.take(MAX_SOURCES).collect(),
            annotated,
            dry: is_hydrated.then(|| Source::read(spec["sourceHydrator"]["drySource"].clone())).flatten(),
        })
    }

    /// `namespace/name`, or the name alone.
    pub fn id(&self) -> String {
        self.namespace
            .as_ref()
            .map_or_else(|| self.name.clone(), |namespace| format!("{namespace}/{}", self.name))
    }

    /// Whether Argo CD writes its manifests to a branch, which is what it is synced to.
    pub const fn is_hydrated(&self) -> bool {
        self.dry.is_some()
    }

    /// The sources that are of a repository.
    pub fn of<'a>(&'a self, repository: &'a Address) -> impl Iterator<Item = usize> + 'a {
        let is_of = |source: &Source| source.has_commits() && Address::read(&source.repo_url) == *repository;
        (0..self.sources.len()).filter(move |n| is_of(&self.sources[*n]))
    }

    /// The application as it stands in one of these, which are of one repository: where Argo CD writes its manifests to a branch, and
    /// none of these is of that, it is what they are made from.
    ///
    /// # Errors
    /// The repository cannot be read.
    pub fn standing_in(&self, any: &[&Snapshot<'_>]) -> Result<Cow<'_, Self>, GitError> {
        let Some(dry) = &self.dry else { return Ok(Cow::Borrowed(self)) };
        let synced = self.sources.first().map_or("", |synced| &synced.path);
        let mut is_there = false;
        for files in any.iter().map(|files| files.asked_anew()) {
            if is_hydrated(synced, &files)? {
                return Ok(Cow::Borrowed(self));
            }
            is_there |= had(files.is_directory(&dry.path))? == Some(true);
        }
        Ok(match is_there {
            true => Cow::Owned(Self { sources: vec![dry.clone()], dry: None, ..self.clone() }),
            false => Cow::Borrowed(self),
        })
    }

    /// The paths of the source of this place. `files` are of that repository at the
    /// revision that is asked about; what cannot be read there is passed over, and the source's directory stands all the same.
    ///
    /// # Errors
    /// The repository cannot be read, or links lead to more than is followed.
    pub fn paths(&self, source: usize, files: &Snapshot<'_>) -> Result<Paths, GitError> {
        let of = &self.sources[source];
        let mut found = BTreeSet::new();
        if !of.has_commits() {
            return Ok(Paths::default());
        }
        let files = &files.asked_anew();
        // What is annotated is of the branch that they are made from: Argo CD passes over it as well when it makes them.
        if self.dry.is_some() {
            if let Some(directory) = join("", &of.path)
                && is_hydrated(&directory, files)?
            {
                found.extend(HYDRATED.iter().filter_map(|name| join(&directory, name)));
                return Ok(Paths { all: found, ..Paths::default() });
            }
        } else if !self.annotated.is_empty() {
            for entry in &self.annotated {
                match (join(&of.path, entry), &of.reference) {
                    // `.` of a source that others refer to and that has no directory: the files that they take.
                    (Some(path), Some(name))
                        if path.is_empty() && of.path.is_empty() && !entry.starts_with('/') =>
                    {
                        found.extend(self.referred_files(name));
                    }
                    (path, _) => found.extend(path),
                }
            }
            return Ok(Paths { all: found, ..Paths::default() });
        }
        let mut reading = Reading {
            application: self,
            files,
            found,
            own: Vec::new(),
            some: Vec::new(),
            rest: Vec::new(),
            read: BTreeSet::new(),
            entries: MAX_ENTRIES,
            named: MAX_NAMED,
            libraries: Vec::new(),
        };
        // A source that others refer to has files of its own where it says where.
        if of.reference.is_none() || !of.path.is_empty() {
            reading.source(of)?;
        }
        if let Some(name) = &of.reference {
            for file in self.referred_files(name) {
                reading.add_own(&file)?;
            }
        }
        let Reading { found, own, some, .. } = reading;
        Ok(Paths { all: found, some }.cut(&own))
    }

    /// What Argo CD may call it: where it stands elsewhere than Argo CD, its name with that namespace before it. Where Argo CD stands
    /// is not known here.
    pub(crate) fn called(&self) -> impl Iterator<Item = String> {
        let elsewhere = self.namespace.as_ref().map(|namespace| format!("{namespace}_{}", self.name));
        std::iter::once(self.name.clone()).chain(elsewhere)
    }

    /// The files of values that settings of a source name of its own repository, as seen from its directory.
    fn own_value_files<'a>(
        &'a self,
        of: &'a Source,
        settings: &'a Value,
    ) -> impl Iterator<Item = String> + 'a {
        let is_of_another = move |file: &str| {
            let name = file.strip_prefix('$').and_then(|file| file.split('/').next());
            name.is_some_and(|name| self.sources.iter().any(|other| other.reference.as_deref() == Some(name)))
        };
        let files = value_files(settings).filter(move |file| !is_of_another(file));
        let replaced = files.flat_map(move |file| BuildEnvironment::new(self, of).replace(file));
        replaced.filter(|file| !file.contains("://")).map(above_any_directories)
    }

    /// The files that any source takes of the one that is referred to by this name, from the root of its repository.
    fn referred_files(&self, name: &str) -> BTreeSet<String> {
        let prefix = format!("${name}/");
        let mut found = BTreeSet::new();
        for other in &self.sources {
            for file in value_files(&other.settings).filter_map(|file| file.strip_prefix(&prefix)) {
                let replaced = BuildEnvironment::new(self, other).replace(file).into_iter();
                found.extend(replaced.filter_map(|file| join("", &above_any_directories(file))));
            }
        }
        found
    }
}

/// Argo CD takes `**` in the path of a file of values for any directories: everything counts that is in the one above.
fn above_any_directories(path: String) -> String {
    match path.split_once("**") {
        // With its slash: before the first of them stands the root.
        Some((before, _)) => {
            before.rsplit_once('/').map_or_else(String::new, |(above, _)| format!("{above}/"))
        }
        None => path,
    }
}

/// The files of values that settings of a source name, as they are written: a path, an address, or `$ref/path`.
fn value_files(settings: &Value) -> impl Iterator<Item = &str> {
    let helm = &settings["helm"];
    let parameters = list(&helm["fileParameters"]).map(|parameter| &parameter["path"]);
    list(&helm["valueFiles"]).chain(parameters).filter_map(Value::as_str)
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn filled(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}

/// The Applications of a text of one document or many; lists are looked into, and other kinds passed over.
///
/// # Errors
/// A document is no YAML.
pub fn applications(text: &str) -> Result<Vec<Application>, GitError> {
    let mut all = Vec::new();
    for document in yaml::documents(text) {
        let object = yaml::parse_large(document.text).map_err(|why| GitError::Invalid {
            path: format!("the document in lines {} to {}", document.lines.0, document.lines.1),
            why,
        })?;
        match object["items"].as_array() {
            Some(items) => all.extend(items.iter().filter_map(Application::read)),
            None => all.extend(Application::read(&object)),
        }
    }
    Ok(all)
}

/// Whether the source hydrator wrote what stands in this directory. Beside the manifests it notes there from which commit it made them,
/// so that each of its commits changes every directory, and most of them no manifest.
fn is_hydrated(directory: &str, files: &Snapshot<'_>) -> Result<bool, GitError> {
    let Some(path) = join(directory, HYDRATED_FROM) else { return Ok(false) };
    // What is too large or elsewhere Argo CD did not write.
    Ok(had(files.read(&path, MAX_FILE))?.flatten().is_some())
}

/// What is found at a path; `None` where nobody can have it: it is too large, or elsewhere.
fn had<T>(found: Result<T, GitError>) -> Result<Option<T>, GitError> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.ends_reading() => Err(error),
        Err(_) => Ok(None),
    }
}

/// What one source is made of, while it is found out.
struct Reading<'s, 'r> {
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

impl Reading<'_, '_> {
    fn source(&mut self, source: &Source) -> Result<(), GitError> {
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
    fn add_own(&mut self, path: &str) -> Result<(), GitError> {
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

#[cfg(test)]
mod tests;
