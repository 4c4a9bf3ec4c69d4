//! Files of a commit that may make something else of others than the manifests that these look like.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

use stages_git::{BesideParent, FileContent, FileId, GitError};

/// The names of a Kustomization.
const KUSTOMIZATIONS: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// Says of files of one commit whether another reads them; whatever is looked at for that is read once for all of them.
pub(super) struct Others<'b, 'r> {
    pub(super) beside: &'b BesideParent<'r>,
    /// What the files are called that are asked about.
    names: BTreeSet<&'b str>,
    /// Which of these each Kustomization may make Secrets of.
    named: HashMap<FileId, BTreeSet<&'b str>>,
}

fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

impl<'b, 'r> Others<'b, 'r> {
    /// Of these files, and no others.
    pub(super) fn new(beside: &'b BesideParent<'r>, paths: impl Iterator<Item = &'b str>) -> Self {
        Self { beside, names: paths.map(name_of).collect(), named: HashMap::new() }
    }

    /// Whether a file is perhaps no manifest though it looks like one, since another file reads it, and may make a Secret of it: one
    /// that a Kustomization above it names while it makes Secrets, or one of a chart that is neither of its values nor a template.
    /// Of a Kustomization of more than `limit` bytes that is taken to be so.
    ///
    /// # Errors
    /// A tree or a Kustomization cannot be read.
    pub(super) fn may_read(&mut self, path: &str, limit: usize) -> Result<bool, GitError> {
        let folders = path.match_indices('/').map(|(at, _)| path.split_at(at + 1));
        for (folder, below) in std::iter::once(("", path)).chain(folders) {
            for own in KUSTOMIZATIONS.into_iter().filter(|own| below != *own) {
                for file in self.beside.file(&format!("{folder}{own}"))?.into_iter().flatten() {
                    if self.named(file, limit)?.contains(name_of(path)) {
                        return Ok(true);
                    }
                }
            }
            let is_of_chart = ["templates/", "crds/", "charts/"].iter().any(|of| below.starts_with(of))
                || (!below.contains('/') && (below.starts_with("values") || below.starts_with("Chart.")));
            let chart = format!("{folder}Chart.yaml");
            if !is_of_chart && self.beside.file(&chart)?.iter().any(Option::is_some) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn named(&mut self, file: FileId, limit: usize) -> Result<&BTreeSet<&'b str>, GitError> {
        let (beside, names) = (self.beside, &self.names);
        match self.named.entry(file) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(place) => {
                let found = match beside.content(file, limit)? {
                    FileContent::Text(text) if text.contains("secretGenerator") => {
                        names.iter().copied().filter(|name| text.contains(name)).collect()
                    }
                    FileContent::Large => names.clone(),
                    _ => BTreeSet::new(),
                };
                Ok(place.insert(found))
            }
        }
    }
}
