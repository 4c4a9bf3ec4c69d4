//! The repository that recorded applications were deployed from: what Argo CD's fork said of files is said from Git.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use bytes::Bytes;
use serde_json::{Value, json};
use stages_argocd::plan::{Fetch, Response};
use stages_argocd::sources::{Described, SourceFile, SourcesAt, composed};
use stages_source::{Checkout, Compiled, describe};
use tempfile::TempDir;

use stages_git::GitRepository;
use stages_git::application::Source;

/// What a bundle of Git's begins with.
const BUNDLE: &[u8] = b"# v2 git bundle\n";

/// A repository.
#[derive(Debug)]
pub struct Git {
    directory: PathBuf,
    /// Where a bundle was unpacked.
    _unpacked: Option<TempDir>,
}

impl Git {
    /// Opens a repository, or the bundle of one.
    pub fn open(place: &Path) -> anyhow::Result<Self> {
        if place.is_dir() {
            return Ok(Self { directory: place.to_owned(), _unpacked: None });
        }
        Self::of_bundle(&fs::read(place).with_context(|| format!("read {}", place.display()))?)
            .with_context(|| format!("unpack {}", place.display()))
    }

    /// Unpacks a bundle that stands on nothing but itself.
    pub fn of_bundle(bundle: &[u8]) -> anyhow::Result<Self> {
        let Some(mut rest) = bundle.strip_prefix(BUNDLE) else {
            bail!("it is no bundle of Git's, version 2")
        };
        let directory = TempDir::new().context("make a directory")?;
        let repository = git2::Repository::init_bare(directory.path()).context("make a repository")?;
        let mut names = Vec::new();
        loop {
            let end = rest.iter().position(|byte| *byte == b'\n').context("it ends in its head")?;
            let (line, after) = rest.split_at(end);
            rest = &after[1..];
            if line.is_empty() {
                break;
            }
            let line = std::str::from_utf8(line).context("its head is no text")?;
            let (id, name) = line.split_once(' ').context("it stands on commits that it does not hold")?;
            names.push((git2::Oid::from_str(id).context("read its head")?, name.to_owned()));
        }
        let odb = repository.odb().context("open the repository")?;
        let mut writer = odb.packwriter().context("write its objects")?;
        writer.write_all(rest).context("write its objects")?;
        writer.commit().context("write its objects")?;
        drop(writer);
        let newest = names.iter().find(|(_, name)| name == "HEAD").map(|(id, _)| *id);
        for (id, name) in names.iter().filter(|(_, name)| name.starts_with("refs/")) {
            repository.reference(name, *id, true, "unpacked").context("write its names")?;
            if Some(*id) == newest && name.starts_with("refs/heads/") {
                repository.set_head(name).context("write its names")?;
            }
        }
        Ok(Self { directory: directory.path().to_owned(), _unpacked: Some(directory) })
    }

    /// What upstream's Argo CD would have answered, with what Git says of it; every other answer as it is.
    pub(super) fn answer(&self, fetch: &Fetch, response: Response) -> Response {
        let (Fetch::Manifests { sources, .. }, Response::Body(body)) = (fetch, &response) else {
            return response;
        };
        let compiled = compiled(body);
        match sources {
            None => Response::Body(Bytes::from(json!({"manifests": compiled}).to_string())),
            Some(of) => Response::Body(composed(&compiled, self.describe(of, &compiled).as_ref())),
        }
    }

    /// The same of applications whose commits the repository does not hold: it is taken as it is now.
    pub(super) fn answer_now(&self, fetch: &Fetch, response: Response) -> Response {
        let Fetch::Manifests { sources: Some(of), .. } = fetch else { return self.answer(fetch, response) };
        let mut now = SourcesAt::clone(of);
        for at in &mut now.sources {
            let is_held = GitRepository::open(&self.directory)
                .and_then(|repository| repository.resolve(&at.revision))
                .is_ok();
            if !is_held {
                "HEAD".clone_into(&mut at.revision);
            }
        }
        let mut fetch = fetch.clone();
        if let Fetch::Manifests { sources, .. } = &mut fetch {
            *sources = Some(std::sync::Arc::new(now));
        }
        self.answer(&fetch, response)
    }

    fn describe(&self, of: &SourcesAt, compiled: &[String]) -> Option<Described> {
        let checkout = |at: &stages_argocd::sources::SourceAt| {
            let source = Source::read(serde_json::from_str(&at.source).ok()?)?;
            let repository = GitRepository::open(&self.directory).ok()?;
            let commit = repository.resolve(&at.revision).ok()?;
            let at = source.has_commits().then_some((repository, commit));
            Some(Checkout { source, at })
        };
        let checkouts = of.sources.iter().map(checkout).collect::<Option<Vec<_>>>()?;
        let objects: Vec<Compiled> =
            compiled.iter().map(|text| Compiled::read(text).unwrap_or_default()).collect();
        let described = describe(&checkouts, &of.namespace, &objects, None).ok()?;
        let file = |answer: stages_source::Provenance| {
            answer.origin().map(|origin| SourceFile { path: origin.path.clone(), text: origin.file.clone() })
        };
        Some(Described {
            files: described.provenances.objects.into_iter().map(file).collect(),
            versions: described.versions.and_then(|versions| serde_json::to_value(versions).ok()),
        })
    }
}

/// The compiled manifests of an answer in either shape, each once: the fork gives some many times.
fn compiled(body: &[u8]) -> Vec<String> {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let mut all: Vec<String> = Vec::new();
    for manifest in body["manifests"].as_array().into_iter().flatten() {
        let text = manifest.as_str().or_else(|| manifest["compiledManifest"].as_str()).unwrap_or_default();
        if !all.iter().any(|other| other == text) {
            all.push(text.to_owned());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use loadtest_sim::recordings::repository;

    use super::Git;

    #[test]
    fn what_is_no_bundle_is_refused() {
        let why = |bytes: &[u8]| format!("{:#}", Git::of_bundle(bytes).unwrap_err());
        assert_eq!(why(b"PACK"), "it is no bundle of Git's, version 2");
        assert_eq!(why(b"# v2 git bundle\nabc"), "it ends in its head");
        assert_eq!(why(b"# v2 git bundle\n-abc\n"), "it stands on commits that it does not hold");
        let none = tempfile::tempdir().unwrap().path().join("none");
        assert_eq!(
            format!("{:#}", Git::open(&none).unwrap_err()),
            format!("read {}: No such file or directory (os error 2)", none.display())
        );
    }

    #[test]
    fn the_recorded_repository_is_unpacked_with_its_branches() {
        let git = Git::of_bundle(repository()).unwrap();
        let repository = stages_git::GitRepository::open(&git.directory).unwrap();
        let main = repository.resolve("refs/heads/main").unwrap();
        assert_eq!(main.to_string(), "1bd71b2d9bc4cd17de13455535c99bab1e1c9f59");
        assert!(repository.commit(main).unwrap().author.starts_with("Linus T"));
    }
}
