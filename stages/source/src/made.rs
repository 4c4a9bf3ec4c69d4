//! The objects that the files of a source make, before they are compared with those that Argo CD compiled.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use stages_git::GitError;
use stages_git::Snapshot;
use stages_git::manifests::{MAX_FILE, Manifest, in_text};
use stages_git::shown;

use crate::compiled::Compiled;
use crate::object_name::ObjectName;

/// The most objects of one source.
const MAX_OBJECTS: usize = 20_000;
/// The most bytes of one source: of the files that are read, and of each object with the text that it stands in. An answer repeats that text
/// for each of them. Argo CD takes 10 MiB of manifests.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// The most gaps that are reported of one source.
const MAX_GAPS: usize = 20;

/// Where an object comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    /// The file that makes it, from the root of the repository.
    pub path: String,
    /// The first line of it in the file, counted from one; zero where the lines are not known.
    pub first_line: usize,
    /// The last line.
    pub last_line: usize,
    /// The text of those lines, which objects of the same lines share; empty where they are not known.
    pub manifest: Arc<str>,
    /// The whole file, which may make other objects as well; empty where what makes the object is no text of its own, as
    /// with a chart.
    #[serde(skip)]
    pub file: Arc<str>,
}

impl Origin {
    /// All of a file.
    pub(crate) fn whole_file(path: String, text: Arc<str>) -> Self {
        let last_line = text.lines().count().max(1);
        Self { path, first_line: 1, last_line, manifest: text.clone(), file: text }
    }
}

/// One object that the files of a source make.
#[derive(Debug, Clone)]
pub(crate) struct Object {
    pub(crate) group: String,
    pub(crate) kind: String,
    /// `None` when it is that of the application.
    pub(crate) namespace: Option<String>,
    pub(crate) name: ObjectName,
    /// Whether it may have another name in the end, which is not known.
    pub(crate) renamed: bool,
    /// The object as the file has it, if nothing changes it on the way.
    pub(crate) plain: Option<Arc<Value>>,
    pub(crate) origin: Origin,
}

impl Object {
    pub(crate) fn of(manifest: Manifest, file: &Arc<str>) -> Self {
        let Manifest { group, kind, namespace, name, path, first_line, last_line, manifest } = manifest;
        let plain =
            stages_git::yaml::parse::<Value>(&manifest).ok().filter(|object| object["items"].is_null());
        let generated = plain.as_ref().is_some_and(|object| {
            object["metadata"]["name"].is_null() && object["metadata"]["generateName"].is_string()
        });
        Self {
            group,
            kind,
            namespace: Some(namespace).filter(|namespace| !namespace.is_empty()),
            name: if generated { ObjectName::Generated(name) } else { ObjectName::Exact(name) },
            renamed: false,
            plain: plain.map(Arc::new),
            origin: Origin { path, first_line, last_line, manifest, file: file.clone() },
        }
    }

    /// Whether it is this compiled object. `namespace` is the application's own.
    pub(crate) fn is(&self, compiled: &Compiled, namespace: &str) -> bool {
        let there = compiled.namespace.as_str();
        let is_there = match &self.namespace {
            // Objects of the whole cluster lose a namespace that stands in their manifest.
            Some(own) => there.is_empty() || own == there,
            None => there.is_empty() || namespace.is_empty() || there == namespace,
        };
        !self.renamed
            && self.group == compiled.group
            && self.kind == compiled.kind
            && is_there
            && self.name.is(&compiled.name, &compiled.generate_name)
    }
}

/// The objects that the files of a source make, and what of them is not known.
#[derive(Debug, Default)]
pub(crate) struct Made {
    pub(crate) objects: Vec<Object>,
    /// Why there may be objects that are not among them.
    pub(crate) gaps: Vec<String>,
    /// How many objects were made, wherever they were handed on to.
    count: usize,
    /// Bytes that count towards [`MAX_BYTES`].
    bytes: usize,
}

impl Made {
    pub(crate) fn gap(&mut self, why: String) {
        if self.gaps.len() < MAX_GAPS && !self.gaps.contains(&why) {
            self.gaps.push(why);
        }
    }

    /// Adds the objects of a file; what cannot be read is a gap.
    ///
    /// # Errors
    /// The repository cannot be read.
    pub(crate) fn file(&mut self, files: &Snapshot<'_>, path: &str) -> Result<(), GitError> {
        let Some(text) = self.text(files, path)? else { return Ok(()) };
        // What Argo CD is told to leave alone.
        if text.contains("+argocd:skip-file-rendering") {
            return Ok(());
        }
        self.objects_of(path, text);
        Ok(())
    }

    pub(crate) fn objects_of(&mut self, path: &str, text: String) {
        let found = in_text(path, &text);
        let file: Arc<str> = text.into();
        for unread in found.unread {
            self.gap(format!("{}: {}", unread.path, unread.why));
        }
        for manifest in found.manifests {
            let names =
                [&manifest.group, &manifest.kind, &manifest.namespace, &manifest.name, &manifest.path];
            let bytes = names.iter().map(|name| name.len()).sum::<usize>() + manifest.manifest.len();
            if !self.has_room_for_object(bytes) {
                return;
            }
            self.objects.push(Object::of(manifest, &file));
        }
    }

    /// Counts an object of so many bytes; whether there is room for it. That there is none is a gap.
    pub(crate) fn has_room_for_object(&mut self, bytes: usize) -> bool {
        if self.count >= MAX_OBJECTS {
            self.gap(format!("it has more than {MAX_OBJECTS} objects: make several applications of it"));
            return false;
        }
        self.count += 1;
        self.has_room_for(bytes)
    }

    /// Counts so many bytes more; whether there is room for them. That there is none is a gap, and then there is none for anything.
    pub(crate) fn has_room_for(&mut self, bytes: usize) -> bool {
        self.bytes = self.bytes.saturating_add(bytes);
        let has_room = self.bytes <= MAX_BYTES;
        if !has_room {
            self.gap(format!(
                "its files have more than {} MiB, each object counted with the text that it stands in: make several applications \
                 of it, or take out of its files what makes no object",
                MAX_BYTES / (1024 * 1024)
            ));
        }
        has_room
    }

    /// The text of a file; what cannot be read is a gap.
    ///
    /// # Errors
    /// The repository cannot be read.
    pub(crate) fn text(&mut self, files: &Snapshot<'_>, path: &str) -> Result<Option<String>, GitError> {
        if !self.has_room_for(0) {
            return Ok(None);
        }
        match files.text(path, MAX_FILE) {
            Ok(Some(text)) => Ok(self.has_room_for(text.len()).then_some(text)),
            Ok(None) => {
                self.gap(format!("{} is not there", shown(path)));
                Ok(None)
            }
            Err(error @ GitError::Read { .. }) => Err(error),
            Err(refused) => {
                self.gap(refused.to_string());
                Ok(None)
            }
        }
    }
}
