//! What of a repository is an application's.

use std::collections::BTreeSet;

use crate::manifest_files::ManifestFiles;
use crate::pattern::is_pattern;

/// Sources of one application: of more the first are looked at.
pub const MAX_SOURCES: usize = 64;
/// Paths of one source.
pub(crate) const MAX_PATHS: usize = 4_096;

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

    /// Where there are more than 4,096, those alone that stand below no other, and so many of them: `first` before all others.
    pub(crate) fn cut(self, first: &[String]) -> Self {
        if self.all.len() <= MAX_PATHS {
            return self;
        }
        // A pattern is one of files: what is below a directory whose name it is need not be below a path of this text.
        let holds = |above: &str| !is_pattern(above.as_bytes()) && self.all.contains(above);
        let mut rest = self.all.clone();
        rest.retain(|path| !above(path).any(holds));
        let mut kept = BTreeSet::new();
        for path in first.iter().filter(|path| rest.contains(*path)).chain(&rest) {
            if kept.len() >= MAX_PATHS {
                break;
            }
            kept.insert(path.clone());
        }
        Self { all: kept, some: self.some }
    }

    /// With those of another source.
    pub fn extend(&mut self, other: Self) {
        self.all.extend(other.all);
        self.some.extend(other.some);
    }
}

/// The directories that a path is in, down from the root.
fn above(path: &str) -> impl Iterator<Item = &str> {
    let root = (!path.is_empty()).then_some("");
    root.into_iter().chain(path.match_indices('/').filter_map(|(end, _)| path.get(..end)))
}

impl From<Vec<String>> for Paths {
    fn from(all: Vec<String>) -> Self {
        Self { all: all.into_iter().collect(), some: Vec::new() }
    }
}
