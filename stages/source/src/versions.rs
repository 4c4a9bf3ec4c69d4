//! Which version an application packages, and the files that say what it depends on.

mod node;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use stages_git::{GitError, Snapshot, join, shown, yaml};

use self::node::Node;
use crate::json_path::{JsonPath, NoJsonPath};

/// Bytes of the file that says the version, and of each that says what it depends on.
const MAX_FILE: usize = 1024 * 1024;

/// Where a version stands: in which file of the application, and where in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VersionSource {
    /// The file, as seen from the application's directory.
    pub file: String,
    /// The JSON path in it: `$.appVersion`, or `{.appVersion}`.
    pub json_path: String,
}

impl Default for VersionSource {
    fn default() -> Self {
        Self { file: "Chart.yaml".to_owned(), json_path: "$.appVersion".to_owned() }
    }
}

/// What an application packages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Versions {
    /// Empty where the file says none.
    pub app_version: String,
    /// The files that say what it depends on.
    pub dependencies: Dependencies,
}

/// The texts of the files that say what an application depends on; those that are there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Dependencies {
    /// `Chart.lock`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock: Option<String>,
    /// `Chart.yaml`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deps: Option<String>,
    /// `requirements.yaml`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requirements: Option<String>,
}

/// Why a version cannot be told.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VersionError {
    /// The file is in no format that is read.
    #[error("read the version in {path}: only .yaml, .yml and .json are read")]
    Format {
        /// The file.
        path: String,
    },
    /// The file is not there.
    #[error("read the version in {path}: there is no such file")]
    Missing {
        /// The file.
        path: String,
    },
    /// The file is not what its name says.
    #[error("read the version in {path}: {why}")]
    Invalid {
        /// The file.
        path: String,
        /// What about it.
        why: String,
    },
    /// The path is none.
    #[error("read the version in {path}: {source}")]
    JsonPath {
        /// The file.
        path: String,
        /// What about the path.
        source: NoJsonPath,
    },
    /// The file cannot be read.
    #[error("read the version in {path}")]
    Git {
        /// The file.
        path: String,
        /// Why not.
        source: GitError,
    },
}

/// The versions of the application in `directory`. `source` says where they stand; without one it is as everywhere, and an
/// application that has no such file packages nothing.
///
/// # Errors
/// The file is missing though somebody said that it is there, or cannot be read.
pub fn versions(
    files: &Snapshot<'_>,
    directory: &str,
    source: Option<&VersionSource>,
) -> Result<Option<Versions>, VersionError> {
    let default = VersionSource::default();
    let of = source.unwrap_or(&default);
    let is_default = of.file == default.file;
    let path = join(directory, of.file.trim_start_matches('/'));
    let path = path.ok_or_else(|| invalid(&of.file, "it leads out of the repository"))?;
    let value = match value(files, &path) {
        Err(VersionError::Missing { .. }) if is_default && source.is_none() => return Ok(None),
        value => value?,
    };
    let json_path = JsonPath::read(&of.json_path)
        .map_err(|source| VersionError::JsonPath { path: shown(&path), source })?;
    let text = |name: &str| {
        let path = join(directory, name)?;
        files.text(&path, MAX_FILE).ok().flatten()
    };
    Ok(Some(Versions {
        app_version: json_path.text(&value),
        dependencies: Dependencies {
            lock: text("Chart.lock"),
            deps: text("Chart.yaml"),
            requirements: text("requirements.yaml"),
        },
    }))
}

fn invalid(path: &str, why: &str) -> VersionError {
    VersionError::Invalid { path: shown(path), why: why.to_owned() }
}

fn value(files: &Snapshot<'_>, path: &str) -> Result<Value, VersionError> {
    let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
    if !matches!(extension, "yaml" | "yml" | "json") {
        return Err(VersionError::Format { path: shown(path) });
    }
    let failed = |source| VersionError::Git { path: shown(path), source };
    let text = files.text(path, MAX_FILE).map_err(failed)?;
    let text = text.ok_or_else(|| VersionError::Missing { path: shown(path) })?;
    if extension == "json" {
        let why = |error: serde_json::Error| invalid(path, &format!("no JSON at line {}", error.line()));
        return serde_json::from_str(&text).map_err(why);
    }
    let Some(text) = yaml::first_document(&text) else { return Ok(Value::Null) };
    let node: Node = yaml::parse(text).map_err(|why| invalid(path, &why))?;
    node.into_value().ok_or_else(|| invalid(path, "a key of it is no text"))
}

#[cfg(test)]
mod tests;
