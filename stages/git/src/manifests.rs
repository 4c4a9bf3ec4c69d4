//! The Kubernetes objects of a directory, each with the file and the lines that make it.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::error::GitError;
use crate::snapshot::{Snapshot, join, shown};
use crate::yaml;

/// Bytes of one file of manifests; Argo CD takes 10 MiB of all.
pub const MAX_FILE: usize = 10 * 1024 * 1024;
/// Files that are read of one directory.
const MAX_FILES: usize = 5_000;
/// Objects of one directory.
const MAX_OBJECTS: usize = 20_000;
/// Directories below one another.
const MAX_DEPTH: usize = 32;

/// One Kubernetes object of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// The API's group; empty is the core's.
    pub group: String,
    /// Its kind.
    pub kind: String,
    /// Empty when the manifest names none.
    pub namespace: String,
    /// Its name, or what its name is generated from.
    pub name: String,
    /// The file, from the root of the repository.
    pub path: String,
    /// The first line in the file, counted from one.
    pub first_line: usize,
    /// The last line.
    pub last_line: usize,
    /// The text of those lines, which the items of a list share.
    pub manifest: Arc<str>,
}

/// What a directory holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifests {
    /// In the order of files and lines.
    pub manifests: Vec<Manifest>,
    /// Files that could not be read, and why.
    pub unread: Vec<Unread>,
}

/// A file that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unread {
    /// The file.
    pub path: String,
    /// Why not.
    pub why: String,
}

/// The objects of a file, or of the files of a directory and, where asked for, of those below it.
///
/// A file that cannot be read is told beside them: what Helm makes of a template is nothing that can be known without it.
///
/// # Errors
/// The repository cannot be read.
pub fn manifests(files: &Snapshot<'_>, path: &str, recurse: bool) -> Result<Manifests, GitError> {
    let outside = || GitError::Outside { path: shown(path) };
    let path = join("", path).ok_or_else(outside)?;
    let mut found = Manifests::default();
    let mut names = Vec::new();
    if files.is_directory(&path)? {
        collect(files, &path, recurse, 0, &mut names)?;
    } else {
        names.push(path);
    }
    for name in names {
        match files.text(&name, MAX_FILE) {
            Ok(Some(text)) => read(&name, &text, &mut found),
            Ok(None) => {}
            Err(error @ GitError::Read { .. }) => return Err(error),
            Err(refused) => found.unread.push(Unread { path: shown(&name), why: refused.to_string() }),
        }
    }
    Ok(found)
}

/// The objects of one text, which is the content of the file `path`; what is no YAML is told beside them.
pub fn in_text(path: &str, text: &str) -> Manifests {
    let mut found = Manifests::default();
    read(path, text, &mut found);
    found
}

fn collect(
    files: &Snapshot<'_>,
    directory: &str,
    recurse: bool,
    depth: usize,
    names: &mut Vec<String>,
) -> Result<(), GitError> {
    for listed in files.list(directory)? {
        let is_manifest = [".yaml", ".yml", ".json"].iter().any(|end| listed.path.ends_with(end));
        if names.len() >= MAX_FILES {
            return Ok(());
        }
        if listed.is_directory && recurse && depth < MAX_DEPTH {
            collect(files, &listed.path, recurse, depth + 1, names)?;
        } else if !listed.is_directory && is_manifest {
            names.push(listed.path);
        }
    }
    Ok(())
}

fn read(path: &str, text: &str, found: &mut Manifests) {
    for document in yaml::documents(text) {
        match yaml::parse(document.text) {
            Ok(object) => objects(path, document.lines, &document.text.into(), &object, found),
            Err(why) => {
                let (first, last) = document.lines;
                let why = format!("{why} of the document in lines {first} to {last}");
                found.unread.push(Unread { path: shown(path), why });
            }
        }
    }
}

fn objects(path: &str, lines: (usize, usize), text: &Arc<str>, object: &Value, found: &mut Manifests) {
    let (Some(version), Some(kind)) = (object["apiVersion"].as_str(), object["kind"].as_str()) else {
        return;
    };
    if let (true, Some(items)) = (kind.ends_with("List"), object["items"].as_array()) {
        for item in items.iter().filter(|item| !item["items"].is_array()) {
            objects(path, lines, text, item, found);
        }
        return;
    }
    if found.manifests.len() >= MAX_OBJECTS {
        return;
    }
    let metadata = &object["metadata"];
    let named = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    found.manifests.push(Manifest {
        group: version.split_once('/').map_or("", |(group, _)| group).to_owned(),
        kind: kind.to_owned(),
        namespace: named(&metadata["namespace"]),
        name: named(if metadata["name"].is_string() { &metadata["name"] } else { &metadata["generateName"] }),
        path: path.to_owned(),
        first_line: lines.0,
        last_line: lines.1,
        manifest: text.clone(),
    });
}

#[cfg(test)]
mod tests;
