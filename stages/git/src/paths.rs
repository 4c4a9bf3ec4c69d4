//! What of a repository is an application's.

use std::collections::BTreeSet;

use crate::manifest_files::ManifestFiles;

/// Paths of an application, from the root of the repository.
#[derive(Debug, Clone, Default)]
pub struct Paths {
    /// Files, directories with everything in them, and patterns of files.
    pub all: BTreeSet<String>,
    /// Directories of which some files alone are the application's.
    pub some: Vec<ManifestFiles>,
}

impl Paths {
    /// Whether nothing of the repository is.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty() && self.some.is_empty()
    }

    /// With those of another source.
    pub fn extend(&mut self, other: Self) {
        self.all.extend(other.all);
        self.some.extend(other.some);
    }
}

impl From<Vec<String>> for Paths {
    fn from(all: Vec<String>) -> Self {
        Self { all: all.into_iter().collect(), some: Vec::new() }
    }
}
