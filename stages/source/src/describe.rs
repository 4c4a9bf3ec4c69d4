//! The file of each object of an application, and its versions, at once.

use stages_git::application::Source;
use stages_git::{GitError, GitRepository, Oid, Snapshot, join};

use crate::compiled::Compiled;
use crate::provenance::{Provenances, SourceFiles, provenances};
use crate::tool::Tool;
use crate::versions::{VersionError, VersionSource, Versions, versions};

/// A source at the commit that its revision was resolved to.
pub struct Checkout {
    /// The source, as the Application has it.
    pub source: Source,
    /// Its repository and its commit; none for a source that has no commits.
    pub at: Option<(GitRepository, Oid)>,
}

/// The files of an application's objects, and its versions.
#[derive(Debug, Default)]
pub struct Described {
    /// Which file makes each object.
    pub provenances: Provenances,
    /// The versions of the first source that has any.
    pub versions: Option<Versions>,
    /// Why its versions are not known.
    pub version_error: Option<VersionError>,
}

/// Describes the compiled objects. `namespace` is the one that the application deploys to; `version_source` is the place of its version,
/// where one is configured.
///
/// # Errors
/// A repository cannot be read.
pub fn describe(
    checkouts: &[Checkout],
    namespace: &str,
    compiled: &[Compiled],
    version_source: Option<&VersionSource>,
) -> Result<Described, GitError> {
    let snapshots = snapshots(checkouts)?;
    let sources = source_files(checkouts, &snapshots);
    let provenances = provenances(&sources, namespace, compiled)?;
    let (versions, version_error) = match versions_of(&sources, version_source) {
        Ok(versions) => (versions, None),
        Err(VersionError::Git { source: error @ GitError::Read { .. }, .. }) => return Err(error),
        Err(error) => (None, Some(error)),
    };
    Ok(Described { provenances, versions, version_error })
}

/// The files of each checkout at its commit; `None` for a source that has no commits.
///
/// # Errors
/// A repository cannot be read.
pub(crate) fn snapshots(checkouts: &[Checkout]) -> Result<Vec<Option<Snapshot<'_>>>, GitError> {
    let mut all = Vec::with_capacity(checkouts.len());
    for checkout in checkouts {
        let files = checkout.at.as_ref().map(|(repository, commit)| repository.snapshot(*commit));
        all.push(files.transpose()?);
    }
    Ok(all)
}

/// The source of each checkout, with its snapshot.
pub(crate) fn source_files<'s, 'r>(
    checkouts: &'s [Checkout],
    snapshots: &'s [Option<Snapshot<'r>>],
) -> Vec<SourceFiles<'s, 'r>> {
    checkouts
        .iter()
        .zip(snapshots)
        .map(|(checkout, files)| SourceFiles { source: &checkout.source, files: files.as_ref() })
        .collect()
}

/// The versions of the first source that has any.
///
/// # Errors
/// No source has any, and one that should says why not.
pub(crate) fn versions_of(
    sources: &[SourceFiles<'_, '_>],
    version_source: Option<&VersionSource>,
) -> Result<Option<Versions>, VersionError> {
    let mut failed = None;
    for SourceFiles { source, files } in sources {
        let Some((directory, files)) = directory(source, *files) else { continue };
        match versions(files, &directory, version_source) {
            Ok(Some(found)) => return Ok(Some(found)),
            Ok(None) => {}
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    failed.map_or(Ok(None), Err)
}

/// The directory of a source, and its files; `None` for a source without files of its own.
fn directory<'s, 'r>(source: &Source, files: Option<&'s Snapshot<'r>>) -> Option<(String, &'s Snapshot<'r>)> {
    let files = files?;
    let directory = join("", source.path.trim_start_matches('/'))?;
    let tool = Tool::of(source, &directory, files);
    let has_files = source.has_commits() && !matches!(tool, Ok(Tool::Reference));
    has_files.then_some((directory, files))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use stages_git::GitRepository;
    use stages_git::application::Source;

    use super::{Checkout, describe};
    use crate::compiled::Compiled;
    use crate::testing::repository;
    use crate::versions::VersionSource;

    fn versions(
        sources: &[Value],
        version_source: Option<&VersionSource>,
    ) -> (Option<String>, Option<String>) {
        let files = [
            ("chart/Chart.yaml", "appVersion: \"2\"\n"),
            ("other/Chart.yaml", "appVersion: \"3\"\n"),
            ("plain/version.json", "{\"tag\": \"v9\"}"),
        ];
        let (directory, _repository, commit) = repository(&files);
        let checkouts: Vec<Checkout> = sources
            .iter()
            .map(|source| {
                let source = Source::read(source.clone()).unwrap();
                let at =
                    source.has_commits().then(|| (GitRepository::open(directory.path()).unwrap(), commit));
                Checkout { source, at }
            })
            .collect();
        let described = describe(&checkouts, "shop", &[], version_source).unwrap();
        let error = described.version_error.map(|error| error.to_string());
        (described.versions.map(|versions| versions.app_version), error)
    }

    #[test]
    fn of_several_sources_the_first_that_packages_anything_tells_the_version() {
        let [reference, plain] = [json!({"ref": "vals"}), json!({"path": "plain"})];
        let [chart, other] = [json!({"path": "chart"}), json!({"path": "other"})];
        let remote = json!({"chart": "redis"});
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(
            versions(&[reference.clone(), remote.clone(), plain.clone(), chart, other], None),
            (text("2"), None)
        );
        assert_eq!(versions(&[reference, plain.clone()], None), (None, None));
        assert_eq!(versions(&[remote], None), (None, None));
        let own = VersionSource { file: "version.json".to_owned(), json_path: "$.tag".to_owned() };
        assert_eq!(versions(&[json!({"path": "chart"}), plain], Some(&own)), (text("v9"), None));
        let why = "read the version in chart/version.json: there is no such file";
        assert_eq!(versions(&[json!({"path": "chart"})], Some(&own)), (None, text(why)));
    }

    #[test]
    fn objects_and_versions_are_told_together() {
        let files = [("a/Chart.yaml", "appVersion: \"1\"\n"), ("a/templates/x.yaml", "")];
        let (directory, _repository, commit) = repository(&files);
        let source = Source::read(json!({"path": "a"})).unwrap();
        let at = Some((GitRepository::open(directory.path()).unwrap(), commit));
        let pod = Compiled::read("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n").unwrap();
        let described = describe(&[Checkout { source, at }], "shop", &[pod], None).unwrap();
        let path = described.provenances.objects[0].origin().map(|origin| origin.path.as_str());
        assert_eq!((path, described.versions.unwrap().app_version.as_str()), (Some("a/Chart.yaml"), "1"));
    }
}
