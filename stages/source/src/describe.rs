//! All that Git says of an application at once: the file of each object, and its versions.

use stages_git::application::Source;
use stages_git::{GitError, GitRepository, Oid, Snapshot, join};

use crate::compiled::Compiled;
use crate::provenance::{At, Provenances, provenances};
use crate::tool::Tool;
use crate::versions::{VersionError, VersionSource, Versions, versions};

/// A source at the commit that its revision was resolved to.
pub struct Checkout {
    /// What Argo CD is told of it.
    pub source: Source,
    /// Its repository and its commit; none for a source that has no commits.
    pub at: Option<(GitRepository, Oid)>,
}

/// What Git says of an application.
#[derive(Debug, Default)]
pub struct Described {
    /// Which file makes each object.
    pub provenances: Provenances,
    /// What it packages: of the first source that packages anything.
    pub versions: Option<Versions>,
    /// Why its versions are not known.
    pub version_error: Option<VersionError>,
}

/// Says it of the compiled objects. `namespace` is the one that the application deploys to; `version_source` is where
/// somebody said that its version stands.
///
/// # Errors
/// A repository cannot be read.
pub fn describe(
    checkouts: &[Checkout],
    namespace: &str,
    compiled: &[Compiled],
    version_source: Option<&VersionSource>,
) -> Result<Described, GitError> {
    let mut snapshots = Vec::with_capacity(checkouts.len());
    for checkout in checkouts {
        let files = checkout.at.as_ref().map(|(repository, commit)| repository.snapshot(*commit));
        snapshots.push(files.transpose()?);
    }
    let at: Vec<At<'_, '_>> = checkouts
        .iter()
        .zip(&snapshots)
        .map(|(checkout, files)| At { source: &checkout.source, files: files.as_ref() })
        .collect();
    let provenances = provenances(&at, namespace, compiled)?;
    let (versions, version_error) = match versions_of(&at, version_source) {
        Ok(versions) => (versions, None),
        Err(VersionError::Git { source: error @ GitError::Read { .. }, .. }) => return Err(error),
        Err(error) => (None, Some(error)),
    };
    Ok(Described { provenances, versions, version_error })
}

/// The versions of the first source that has any.
///
/// # Errors
/// No source has any, and one that should says why not.
pub fn versions_of(
    sources: &[At<'_, '_>],
    version_source: Option<&VersionSource>,
) -> Result<Option<Versions>, VersionError> {
    let mut failed = None;
    for At { source, files } in sources {
        let Some((directory, files)) = directory(source, *files) else { continue };
        match versions(files, &directory, version_source) {
            Ok(Some(found)) => return Ok(Some(found)),
            Ok(None) => {}
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    failed.map_or(Ok(None), Err)
}

/// Where a source's own files are; none of a source that has no such.
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
