//! Which paths of which repository make an application.
//!
//! The annotation `argocd.argoproj.io/manifest-generate-paths` says so; without it the sources do: their directories, value
//! files, charts that are elsewhere in the repository, what a Kustomization is made of, libraries of Jsonnet, and what other sources
//! take by `$ref`. Of an application whose manifests Argo CD writes to a branch first, they are what it writes there.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::Value;
use stages_client::{SyncedSources, has_commits, synced_sources};

use crate::address::Address;
use crate::build_environment::BuildEnvironment;
use crate::error::GitError;
use crate::made_from::HYDRATED_FROM;
use crate::snapshot::{Snapshot, join};
use crate::yaml;

const ANNOTATION: &str = "argocd.argoproj.io/manifest-generate-paths";
/// The names that a Kustomization may have.
pub const KUSTOMIZATIONS: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];
/// The files of a directory that Argo CD takes for manifests: it writes the first, and people the others at most.
const HYDRATED: [&str; 5] = ["manifest.yaml", "*.yaml", "*.yml", "*.json", "*.jsonnet"];
/// Kustomizations and charts that are read of one source: a circle of them ends as well.
const MAX_READ: usize = 256;
/// Bytes of a Kustomization or chart.
const MAX_FILE: usize = 1024 * 1024;
/// Paths of one application.
const MAX_PATHS: usize = 4_096;

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
    /// What it is synced to, in the order of the manifest: a source's place is its revision's. One that cannot be read is empty.
    pub sources: Vec<Source>,
    annotated: Option<String>,
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

    /// The files of values that it names, as it writes them: a path, an address, or `$ref/path`.
    pub fn value_files(&self) -> impl Iterator<Item = &str> {
        let helm = &self.settings["helm"];
        let files = helm["valueFiles"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let parameters = helm["fileParameters"].as_array().into_iter().flatten();
        files.chain(parameters.filter_map(|parameter| parameter["path"].as_str()))
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
        Some(Self {
            namespace: metadata["namespace"].as_str().map(str::to_owned),
            name: text(&metadata["name"]),
            project: filled(&spec["project"]).unwrap_or("default").to_owned(),
            destination: text(&spec["destination"]["namespace"]),
            sources: sources.collect(),
            annotated: filled(&metadata["annotations"][ANNOTATION]).map(str::to_owned),
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
        for files in any {
            if is_hydrated(synced, files)? {
                return Ok(Cow::Borrowed(self));
            }
            is_there |= had(files.is_directory(&dry.path))? == Some(true);
        }
        Ok(match is_there {
            true => Cow::Owned(Self { sources: vec![dry.clone()], dry: None, ..self.clone() }),
            false => Cow::Borrowed(self),
        })
    }

    /// The paths of the source of this place, from the root of its repository, sorted. `files` are of that repository at the
    /// revision that is asked about; what cannot be read there is passed over, and the source's directory stands all the same.
    ///
    /// # Errors
    /// The repository cannot be read.
    pub fn paths(&self, source: usize, files: &Snapshot<'_>) -> Result<Vec<String>, GitError> {
        let of = &self.sources[source];
        let mut found = BTreeSet::new();
        if !of.has_commits() {
            return Ok(Vec::new());
        }
        // What is annotated is of the branch that they are made from: Argo CD passes over it as well when it makes them.
        if self.dry.is_some() {
            if let Some(directory) = join("", &of.path)
                && is_hydrated(&directory, files)?
            {
                found.extend(HYDRATED.iter().filter_map(|name| join(&directory, name)));
                return Ok(found.into_iter().collect());
            }
        } else if let Some(annotated) = &self.annotated {
            let paths = annotated.split(';').map(str::trim).filter(|path| !path.is_empty());
            found.extend(paths.filter_map(|path| join(&of.path, path)));
            return Ok(found.into_iter().collect());
        }
        let mut reading = Reading { files, found: &mut found, read: BTreeSet::new() };
        // A source that others refer to has files of its own where it says where.
        if of.reference.is_none() || !of.path.is_empty() {
            reading.source(of, self.own_value_files(of))?;
        }
        if let Some(name) = &of.reference {
            found.extend(self.referred_files(name));
        }
        Ok(found.into_iter().take(MAX_PATHS).collect())
    }

    /// The files of values that a source names of its own repository, as seen from its directory.
    fn own_value_files<'a>(&'a self, of: &'a Source) -> impl Iterator<Item = String> + 'a {
        let is_of_another = |file: &str| {
            let name = file.strip_prefix('$').and_then(|file| file.split('/').next());
            name.is_some_and(|name| self.sources.iter().any(|other| other.reference.as_deref() == Some(name)))
        };
        let files = of.value_files().filter(move |file| !is_of_another(file));
        let replaced = files.flat_map(move |file| BuildEnvironment::new(self, of).replace(file));
        replaced.filter(|file| !file.contains("://")).map(above_any_directories)
    }

    /// The files that any source takes of the one that is referred to by this name, from the root of its repository.
    fn referred_files(&self, name: &str) -> BTreeSet<String> {
        let prefix = format!("${name}/");
        let mut found = BTreeSet::new();
        for other in &self.sources {
            for file in other.value_files().filter_map(|file| file.strip_prefix(&prefix)) {
                let replaced = BuildEnvironment::new(self, other).replace(file).into_iter();
                found.extend(replaced.filter_map(|file| join("", &above_any_directories(file))));
            }
        }
        found
    }
}

/// Argo CD takes `**` in the path of a file of values for any directories: everything counts that is in the one above.
fn above_any_directories(path: String) -> String {
    match path.find("**") {
        Some(at) => path[..path[..at].rfind('/').map_or(0, |slash| slash + 1)].to_owned(),
        None => path,
    }
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
        Err(GitError::Read { what, source }) => Err(GitError::Read { what, source }),
        Err(_) => Ok(None),
    }
}

struct Reading<'s, 'r> {
    files: &'s Snapshot<'r>,
    found: &'s mut BTreeSet<String>,
    read: BTreeSet<String>,
}

impl Reading<'_, '_> {
    fn source(&mut self, source: &Source, value_files: impl Iterator<Item = String>) -> Result<(), GitError> {
        let Some(directory) = join("", &source.path) else { return Ok(()) };
        self.found.insert(directory.clone());
        self.found.extend(value_files.filter_map(|file| join(&directory, &file)));
        let libraries = source.settings["directory"]["jsonnet"]["libs"].as_array().into_iter().flatten();
        // Argo CD looks for them from the root of the repository.
        self.found.extend(libraries.filter_map(Value::as_str).filter_map(|library| join("", library)));
        let components = source.settings["kustomize"]["components"].as_array().into_iter().flatten();
        for component in components.filter_map(Value::as_str) {
            self.linked(&directory, component)?;
        }
        self.directory(&directory)
    }

    /// What a directory is made of that is elsewhere in the repository.
    fn directory(&mut self, directory: &str) -> Result<(), GitError> {
        if self.read.len() >= MAX_READ || !self.read.insert(directory.to_owned()) {
            return Ok(());
        }
        for chart in ["Chart.yaml", "requirements.yaml"] {
            if let Some(chart) = self.yaml(directory, chart)? {
                for dependency in chart["dependencies"].as_array().into_iter().flatten() {
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

    fn kustomization(&mut self, directory: &str, of: &Value) -> Result<(), GitError> {
        let texts = |value: &Value| -> Vec<String> {
            value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let mut all: Vec<String> = Vec::new();
        for list in [
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
            all.extend(texts(&of[list]));
        }
        for (list, key) in [
            ("patches", "path"),
            ("patchesJson6902", "path"),
            ("replacements", "path"),
            ("helmCharts", "valuesFile"),
            ("helmChartInflationGenerator", "values"),
        ] {
            let each = of[list].as_array().into_iter().flatten();
            all.extend(each.filter_map(|one| one[key].as_str()).map(str::to_owned));
        }
        for list in ["configMapGenerator", "secretGenerator"] {
            for one in of[list].as_array().into_iter().flatten() {
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
        for chart in of["helmCharts"].as_array().into_iter().flatten() {
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
        let Some(path) = join(directory, path) else { return Ok(()) };
        self.found.insert(path.clone());
        match had(self.files.is_directory(&path))? {
            Some(true) => self.directory(&path),
            _ => Ok(()),
        }
    }

    fn yaml(&self, directory: &str, name: &str) -> Result<Option<Value>, GitError> {
        let Some(path) = join(directory, name) else { return Ok(None) };
        // What is too large, elsewhere, or no YAML says nothing of paths.
        Ok(had(self.files.text(&path, MAX_FILE))?.flatten().and_then(|text| yaml::first(&text).ok()))
    }
}

#[cfg(test)]
mod tests;
