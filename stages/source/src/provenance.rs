//! Which file makes a compiled object.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde::Serialize;
use stages_git::application::Source;
use stages_git::{GitError, Snapshot, join, shown};

use crate::compiled::Compiled;
use crate::helm::{self, Values};
use crate::made::{Made, Object, Origin};
use crate::object_name::ObjectName;
use crate::tool::Tool;
use crate::{directory, kustomize};

/// The most bytes of the texts of one answer, where a text counts for each object that has it.
const MAX_TEXTS: usize = 64 * 1024 * 1024;

/// A source, and the files of its commit; no files for a source that has no commits, or that another server answers for.
pub struct SourceFiles<'s, 'r> {
    /// The source, as the Application has it.
    pub source: &'s Source,
    /// The files at its revision.
    pub files: Option<&'s Snapshot<'r>>,
}

/// Which file made an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", untagged)]
pub enum Provenance {
    /// This file made it.
    Made {
        /// The position of the source in the application.
        source: usize,
        /// The tool that made it of the files.
        tool: Tool,
        /// The file.
        #[serde(flatten)]
        origin: Origin,
        /// The files of values that went into it, the strongest last; of charts alone.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        values: Vec<Values>,
    },
    /// It is not known.
    Unknown {
        /// Why not.
        unknown: String,
    },
}

/// What the sources of an application make.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Provenances {
    /// One for each compiled object, in their order.
    pub objects: Vec<Provenance>,
    /// Why the files may make more objects than are known.
    pub gaps: Vec<String>,
}

/// An object that the files of a source make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedObject {
    /// The API's group; empty is the core's.
    pub group: String,
    /// Its kind.
    pub kind: String,
    /// Empty when it is that of the application, or the object is one of the whole cluster.
    pub namespace: String,
    /// Its name; without the hash that Kustomize ends that of a generated object with.
    pub name: String,
    /// The position of the source in the application.
    pub source: usize,
    /// The tool that makes it of the files.
    pub tool: Tool,
    /// The file.
    #[serde(flatten)]
    pub origin: Origin,
}

/// A source, and the objects that its files make.
struct AnalysedSource<'s, 'r> {
    at: &'s SourceFiles<'s, 'r>,
    tool: Tool,
    directory: String,
    made: Made,
    values: Vec<Values>,
}

/// Says of each compiled object which file of the sources makes it. `namespace` is the one that the application deploys to,
/// which is that of objects whose manifest names none.
///
/// # Errors
/// A repository cannot be read.
pub fn provenances(
    sources: &[SourceFiles<'_, '_>],
    namespace: &str,
    compiled: &[Compiled],
) -> Result<Provenances, GitError> {
    let mut known = Vec::with_capacity(sources.len());
    for at in sources {
        known.push(AnalysedSource::of(at)?);
    }
    let index = Index::of(&known);
    let mut templates = Templates::new();
    let mut objects = Vec::with_capacity(compiled.len());
    let mut texts: usize = 0;
    for compiled in compiled {
        let mut found = provenance(&known, &index, &mut templates, namespace, compiled)?;
        if let Provenance::Made { origin, .. } = &mut found {
            texts = texts.saturating_add(origin.manifest.len());
            if texts > MAX_TEXTS {
                origin.manifest = "".into();
            }
        }
        objects.push(found);
    }
    let mut gaps: Vec<String> = known.into_iter().flat_map(|known| known.made.gaps).collect();
    if texts > MAX_TEXTS {
        gaps.push(format!(
            "the texts of some objects are left out, of which there are more than {} MiB: take them from the files, by their lines, or \
             ask about fewer objects at once",
            MAX_TEXTS / (1024 * 1024)
        ));
    }
    Ok(Provenances { objects, gaps })
}

/// All that the files of the sources make, and why there may be more.
///
/// # Errors
/// A repository cannot be read.
pub fn listed(sources: &[SourceFiles<'_, '_>]) -> Result<(Vec<ListedObject>, Vec<String>), GitError> {
    let (mut all, mut gaps) = (Vec::new(), Vec::new());
    for (source, at) in sources.iter().enumerate() {
        let AnalysedSource { tool, directory, made, .. } = AnalysedSource::of(at)?;
        gaps.extend(made.gaps);
        if tool == Tool::Helm && at.files.is_some() {
            gaps.push(format!("what the chart {} makes is known once it is rendered", shown(&directory)));
        }
        all.extend(made.objects.into_iter().map(|object| ListedObject {
            group: object.group,
            kind: object.kind,
            namespace: object.namespace.unwrap_or_default(),
            name: object.name.text().to_owned(),
            source,
            tool,
            origin: object.origin,
        }));
    }
    Ok((all, gaps))
}

impl<'s, 'r> AnalysedSource<'s, 'r> {
    fn of(at: &'s SourceFiles<'s, 'r>) -> Result<Self, GitError> {
        let source = at.source;
        let mut known = Self {
            at,
            tool: Tool::Helm,
            directory: String::new(),
            made: Made::default(),
            values: Vec::new(),
        };
        let Some(files) = at.files.filter(|_| source.has_commits()) else {
            if source.chart.is_some() {
                known.made.gap("the chart is one of a Helm repository".to_owned());
            } else if !source.has_commits() {
                known.made.gap("the source is an artifact of an OCI registry".to_owned());
            } else {
                known.tool = Tool::Reference;
                // What others only take files of makes nothing.
                if source.reference.is_none() || !source.path.is_empty() {
                    known.made.gap("another source of the application is told of elsewhere".to_owned());
                }
            }
            return Ok(known);
        };
        let Some(directory) = join("", source.path.trim_start_matches('/')) else {
            known.tool = Tool::Directory;
            known.made.gap(format!("{} leads out of the repository", shown(&source.path)));
            return Ok(known);
        };
        known.directory = directory;
        let settings = source.settings();
        let read = || -> Result<_, GitError> {
            let tool = Tool::of(source, &known.directory, files)?;
            let mut made = match tool {
                Tool::Directory => directory::made(files, &known.directory, &settings["directory"])?,
                Tool::Kustomize => kustomize::made(files, &known.directory, &settings["kustomize"])?,
                Tool::Helm | Tool::Plugin | Tool::Reference => Made::default(),
            };
            let values =
                if tool == Tool::Helm { helm::values(files, source, &known.directory)? } else { Vec::new() };
            if tool == Tool::Plugin {
                made.gap("what a plugin makes is not known".to_owned());
            }
            if tool == Tool::Helm && !files.is_directory(&known.directory)? {
                made.gap(format!("the directory {} is not there", shown(&known.directory)));
            }
            Ok((tool, made, values))
        };
        match read() {
            Ok((tool, made, values)) => Ok(Self { tool, made, values, ..known }),
            Err(error @ GitError::Read { .. }) => Err(error),
            // A source in a submodule, or behind a link that leads out: an answer, and no failure.
            Err(refused) => {
                known.tool = Tool::Directory;
                known.made.gap(refused.to_string());
                Ok(known)
            }
        }
    }

    fn provenance(&self, source: usize, origin: Origin) -> Provenance {
        Provenance::Made { source, tool: self.tool, origin, values: self.values.clone() }
    }
}

/// The templates that were found, by the position of their source and the name that Helm gives them: many objects name the same.
type Templates<'c> = HashMap<(usize, &'c str), Option<Origin>>;

/// An object that files make, and the position of its source.
type IndexedObject<'k> = (usize, &'k Object);

/// Objects by group, kind and name, so that many can be looked up among many.
struct Index<'k> {
    exact: HashMap<(&'k str, &'k str, &'k str), Vec<IndexedObject<'k>>>,
    other: HashMap<(&'k str, &'k str), Vec<IndexedObject<'k>>>,
}

impl<'k> Index<'k> {
    fn of(known: &'k [AnalysedSource<'_, '_>]) -> Self {
        let mut index = Self { exact: HashMap::new(), other: HashMap::new() };
        for (source, known) in known.iter().enumerate() {
            for object in &known.made.objects {
                let (group, kind) = (object.group.as_str(), object.kind.as_str());
                match &object.name {
                    ObjectName::Exact(name) => {
                        index.exact.entry((group, kind, name)).or_default().push((source, object));
                    }
                    _ => index.other.entry((group, kind)).or_default().push((source, object)),
                }
            }
        }
        index
    }

    /// The objects that may be the compiled one, in the order of sources and files.
    fn find(&self, compiled: &Compiled, namespace: &str) -> Vec<IndexedObject<'k>> {
        let (group, kind) = (compiled.group.as_str(), compiled.kind.as_str());
        let exact = self.exact.get(&(group, kind, compiled.name.as_str()));
        let all = exact.into_iter().chain(self.other.get(&(group, kind))).flatten();
        all.filter(|(_, object)| object.is(compiled, namespace)).copied().collect()
    }
}

fn provenance<'c>(
    known: &[AnalysedSource<'_, '_>],
    index: &Index<'_>,
    read: &mut Templates<'c>,
    namespace: &str,
    compiled: &'c Compiled,
) -> Result<Provenance, GitError> {
    let found = index.find(compiled, namespace);
    // Of several that are called the same Argo CD takes the last, unless the content tells.
    let says_it = |(_, object): &&(usize, &Object)| {
        object.plain.as_deref().is_some_and(|plain| compiled.says_all_of(plain))
    };
    let in_its_namespace = |(_, object): &&(usize, &Object)| {
        object.namespace.as_deref().unwrap_or_default() == compiled.namespace
    };
    let chosen = found.iter().rev().find(says_it);
    let chosen = chosen.or_else(|| found.iter().rev().find(in_its_namespace)).or(found.last());
    if let Some((source, object)) = chosen {
        return Ok(known[*source].provenance(*source, object.origin.clone()));
    }
    let charts: Vec<_> = known.iter().enumerate().filter(|(_, known)| known.tool == Tool::Helm).collect();
    if let Some(named) = &compiled.template {
        let mut templates = Vec::new();
        for (source, chart) in &charts {
            let Some(files) = chart.at.files else { continue };
            let found = match read.entry((*source, named)) {
                Entry::Occupied(found) => found.into_mut(),
                Entry::Vacant(place) => place.insert(helm::template(files, &chart.directory, compiled)?),
            };
            if let Some(origin) = found {
                templates.push(chart.provenance(*source, origin.clone()));
            }
        }
        if templates.len() == 1 {
            return Ok(templates.remove(0));
        }
    }
    let gaps: Vec<&str> = known.iter().flat_map(|known| &known.made.gaps).map(String::as_str).collect();
    // What no other source makes is made by the chart, if there is but one, and nothing is unknown of the others.
    if let ([(source, chart)], []) = (&charts[..], &gaps[..])
        && let Some(origin) = helm::chart(&chart.directory)
    {
        return Ok(chart.provenance(*source, origin));
    }
    let unknown = match (&charts[..], &gaps[..]) {
        ([_, _, ..], []) => "more than one chart may make it".to_owned(),
        (_, []) => "no file of its sources makes it".to_owned(),
        (_, gaps) => gaps.join("; "),
    };
    Ok(Provenance::Unknown { unknown })
}

impl Provenance {
    /// The position of the source that makes it, where that is known.
    pub fn source(&self) -> Option<usize> {
        match self {
            Self::Made { source, .. } => Some(*source),
            Self::Unknown { .. } => None,
        }
    }

    /// The file and its text, where they are known.
    pub fn origin(&self) -> Option<&Origin> {
        match self {
            Self::Made { origin, .. } => Some(origin),
            Self::Unknown { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests;
