//! The objects of a Kustomization, each with the file that makes it, under the name that it has in the end.
//!
//! What is followed: resources, bases, components, generated ConfigMaps and Secrets, namespaces, prefixes, suffixes and
//! hashes, and what an application sets of them. Patches change objects and make none. What is not followed (other
//! repositories, charts, plugins) is a gap; where a name may become another in a way that is not followed, nothing is
//! found by it.

use serde_json::Value;
use stages_git::application::KUSTOMIZATIONS;
use stages_git::{GitError, Snapshot, join, shown, yaml};

use crate::made::{Made, Object, Origin};
use crate::object_name::ObjectName;
use crate::remote::is_remote;

/// The most Kustomizations that are read of one source; one that is used twice counts twice.
const MAX_READ: usize = 256;
/// The most Kustomizations below one another.
const MAX_DEPTH: usize = 32;
/// The most bytes of a name or namespace that a Kustomization gives; a cluster takes names of at most 253 for nearly everything.
const MAX_NAME: usize = 1_024;

/// The objects of the Kustomization in `directory`; `settings` are those of the source (`spec.source.kustomize`).
///
/// # Errors
/// The repository cannot be read.
pub(crate) fn made(files: &Snapshot<'_>, directory: &str, settings: &Value) -> Result<Made, GitError> {
    let mut reading = KustomizationReader { files, made: Made::default(), read: 0, above: Vec::new() };
    let objects = reading.kustomization(directory, Some(settings), Vec::new())?;
    reading.made.objects = objects;
    Ok(reading.made)
}

/// Reads the Kustomizations of one source.
struct KustomizationReader<'s, 'r> {
    files: &'s Snapshot<'r>,
    /// The gaps; its objects are handed on to those who include them.
    made: Made,
    /// How many Kustomizations were read.
    read: usize,
    /// The directories that are being read, the outermost first.
    above: Vec<String>,
}

impl KustomizationReader<'_, '_> {
    /// The objects of a Kustomization. A component changes `before`, the objects that its includer has so far; else that is empty.
    fn kustomization(
        &mut self,
        directory: &str,
        settings: Option<&Value>,
        before: Vec<Object>,
    ) -> Result<Vec<Object>, GitError> {
        self.read += 1;
        if self.read > MAX_READ || self.above.len() >= MAX_DEPTH {
            self.made.gap(format!(
                "it is made of more than {MAX_READ} Kustomizations, or more than {MAX_DEPTH} deep"
            ));
            return Ok(before);
        }
        if self.above.iter().any(|above| above == directory) {
            self.made.gap(format!("the Kustomization in {} is made of itself", shown(directory)));
            return Ok(before);
        }
        let Some((path, text, read)) = self.file(directory)? else {
            self.made.gap(format!("there is no Kustomization in {}", shown(directory)));
            return Ok(before);
        };
        self.above.push(directory.to_owned());
        let origin = Origin::whole_file(path, text.into());
        let objects = self.objects(directory, &origin, &with(read, settings), before);
        self.above.pop();
        objects
    }

    /// The path, the text and the content of the Kustomization in a directory; `None` where there is none, or it cannot be read.
    fn file(&mut self, directory: &str) -> Result<Option<(String, String, Value)>, GitError> {
        if !self.files.is_directory(directory)? {
            return Ok(None);
        }
        for name in KUSTOMIZATIONS {
            let Some(path) = join(directory, name) else { continue };
            if !self.files.list(directory)?.iter().any(|listed| listed.path == path && !listed.is_directory) {
                continue;
            }
            let Some(text) = self.made.text(self.files, &path)? else { return Ok(None) };
            return match yaml::first(&text) {
                Ok(read) => Ok(Some((path, text, read))),
                Err(why) => {
                    self.made.gap(format!("{}: {why}", shown(&path)));
                    Ok(None)
                }
            };
        }
        Ok(None)
    }

    /// The objects of a Kustomization whose content is `of`.
    fn objects(
        &mut self,
        directory: &str,
        origin: &Origin,
        of: &Value,
        mut objects: Vec<Object>,
    ) -> Result<Vec<Object>, GitError> {
        for resource in texts(&of["resources"]).chain(texts(&of["bases"])) {
            let Some(place) = self.place(directory, resource) else { continue };
            if self.files.is_directory(&place)? {
                objects.extend(self.kustomization(&place, None, Vec::new())?);
            } else {
                self.made.file(self.files, &place)?;
                objects.append(&mut self.made.objects);
            }
        }
        for component in texts(&of["components"]) {
            if let Some(place) = self.place(directory, component) {
                objects = self.kustomization(&place, None, objects)?;
            }
        }
        for (list, kind) in [("configMapGenerator", "ConfigMap"), ("secretGenerator", "Secret")] {
            for generator in of[list].as_array().into_iter().flatten() {
                let Some(object) = generated(generator, kind, of, origin) else { continue };
                let namespace = object.namespace.as_ref().map_or(0, String::len);
                let names = origin.path.len() + kind.len() + namespace + object.name.text().len();
                if !self.made.has_room_for_object(names + origin.manifest.len()) {
                    break;
                }
                objects.push(object);
            }
        }
        for list in ["helmCharts", "helmChartInflationGenerator", "generators"] {
            if of[list].as_array().is_some_and(|list| !list.is_empty()) {
                self.made.gap(format!("what {list} of {} makes is not known", shown(&origin.path)));
            }
        }
        if rename_all(&mut objects, of) {
            self.made.gap(format!(
                "{} gives names of more than {MAX_NAME} bytes: shorten its prefix, suffix or namespace",
                shown(&origin.path)
            ));
        }
        Ok(objects)
    }

    /// A path that a Kustomization in `directory` names; none when it is elsewhere, which is a gap.
    fn place(&mut self, directory: &str, named: &str) -> Option<String> {
        if is_remote(named) {
            self.made.gap(format!("{} is made of another repository", shown(directory)));
            return None;
        }
        let place = join(directory, named);
        if place.is_none() {
            self.made.gap(format!("{} of {} leads out of the repository", shown(named), shown(directory)));
        }
        place
    }
}

/// Gives objects the namespace, prefix and suffix of a Kustomization, and gives whether one of these makes a name longer than
/// [`MAX_NAME`]: the names of such objects are not known then.
fn rename_all(objects: &mut [Object], of: &Value) -> bool {
    let renames = renames(of);
    let text_of = |name: &str| of[name].as_str().unwrap_or_default();
    let (namespace, prefix, suffix) = (text_of("namespace"), text_of("namePrefix"), text_of("nameSuffix"));
    let mut is_too_long = namespace.len() > MAX_NAME;
    for object in objects {
        object.renamed |= renames || namespace.len() > MAX_NAME;
        // What is changed on the way does not stand in the file.
        object.plain = None;
        if !namespace.is_empty() && namespace.len() <= MAX_NAME {
            if object.group.is_empty() && object.kind == "Namespace" {
                object.name = ObjectName::Exact(namespace.to_owned());
            } else {
                object.namespace = Some(namespace.to_owned());
            }
        }
        let keeps_its_name = matches!(
            (object.group.as_str(), object.kind.as_str()),
            ("", "Namespace")
                | ("apiextensions.k8s.io", "CustomResourceDefinition")
                | ("apiregistration.k8s.io", "APIService")
        );
        if keeps_its_name {
            continue;
        }
        if prefix.len() + object.name.text().len() + suffix.len() > MAX_NAME {
            is_too_long = true;
            object.renamed = true;
        } else {
            object.name.wrap(prefix, suffix);
        }
    }
    is_too_long
}

/// A Kustomization with what an application sets of it: a name replaces its own, a component is one more.
fn with(mut read: Value, settings: Option<&Value>) -> Value {
    let Some(settings) = settings else { return read };
    let Some(all) = read.as_object_mut() else { return read };
    for name in ["namePrefix", "nameSuffix", "namespace"] {
        if settings[name].as_str().is_some_and(|text| !text.is_empty()) {
            all.insert(name.to_owned(), settings[name].clone());
        }
    }
    for list in ["components", "patches"] {
        if let Some(more) = settings[list].as_array() {
            let mut both = all.get(list).and_then(Value::as_array).cloned().unwrap_or_default();
            both.extend(more.iter().cloned());
            all.insert(list.to_owned(), Value::Array(both));
        }
    }
    read
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// The object of one generator; none where it adds to one that a base generates.
fn generated(generator: &Value, kind: &str, of: &Value, origin: &Origin) -> Option<Object> {
    if matches!(generator["behavior"].as_str(), Some("merge" | "replace")) {
        return None;
    }
    let name = generator["name"].as_str()?.to_owned();
    let is_plain = [&generator["options"], &of["generatorOptions"]]
        .into_iter()
        .any(|options| options["disableNameSuffixHash"] == Value::Bool(true));
    Some(Object {
        group: String::new(),
        kind: kind.to_owned(),
        namespace: generator["namespace"].as_str().map(str::to_owned),
        name: if is_plain { ObjectName::Exact(name) } else { ObjectName::Hashed(name) },
        renamed: false,
        plain: None,
        origin: origin.clone(),
    })
}

/// Whether names may become others in a way that is not followed.
fn renames(of: &Value) -> bool {
    let filled = |name: &str| of[name].as_array().is_some_and(|list| !list.is_empty());
    let each = |name: &str| of[name].as_array().into_iter().flatten();
    let allows = |patch: &Value| {
        ["allowNameChange", "allowKindChange"].iter().any(|name| patch["options"][*name] == Value::Bool(true))
    };
    let sets_a_name = |replacement: &Value| {
        let targets = replacement["targets"].as_array().into_iter().flatten();
        // What a replacement does stands elsewhere where it names a file.
        replacement["path"].is_string()
            || targets
                .flat_map(|target| texts(&target["fieldPaths"]))
                .any(|path| matches!(path, "metadata.name" | "metadata.namespace" | "kind" | "apiVersion"))
    };
    filled("transformers") || each("patches").any(allows) || each("replacements").any(sets_a_name)
}

#[cfg(test)]
mod tests;
