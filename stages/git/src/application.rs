//! Which paths of which repository make an application.
//!
//! The annotation `argocd.argoproj.io/manifest-generate-paths` says so; without it the sources do: their directories, value
//! files, charts that are elsewhere in the repository, what a Kustomization is made of, libraries of Jsonnet and what it imports,
//! what stands behind links, and what other sources take by `$ref`. Of an application whose manifests Argo CD writes to a branch
//! first, they are what it writes there.
//!
//! Of one source at most 4,096 are kept. An annotation of more stands for the source's directory; of those that are found, the ones
//! below others go first, and the source's directory and files of values last. What is named beyond a bound is not looked at.

mod reading;

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::Value;
use stages_client::{SyncedSources, has_commits, synced_sources};

use self::reading::Reading;
use crate::address::Address;
use crate::build_environment::BuildEnvironment;
use crate::error::GitError;
use crate::made_from::HYDRATED_FROM;
use crate::paths::{MAX_PATHS, MAX_SOURCES, Paths};
use crate::snapshot::{Snapshot, join};
use crate::yaml;

const ANNOTATION: &str = "argocd.argoproj.io/manifest-generate-paths";
/// The names that a Kustomization may have.
pub const KUSTOMIZATIONS: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];
/// The files of a directory that Argo CD takes for manifests: it writes the first, and people the others at most.
const HYDRATED: [&str; 5] = ["manifest.yaml", "*.yaml", "*.yml", "*.json", "*.jsonnet"];
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
        let mut reading = Reading::new(self, files);
        // A source that others refer to has files of its own where it says where.
        if of.reference.is_none() || !of.path.is_empty() {
            reading.source(of)?;
        }
        if let Some(name) = &of.reference {
            for file in self.referred_files(name) {
                reading.add_own(&file)?;
            }
        }
        Ok(reading.paths())
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

#[cfg(test)]
mod tests;
