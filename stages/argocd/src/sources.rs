//! What Git says of manifests: asked for where Argo CD, as upstream builds it, gives compiled ones alone, or where Git is to be
//! asked whatever Argo CD says.

use std::sync::Arc;

use bytes::Bytes;
use pipeline_core::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// One source of an application, and what its revision was resolved to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SourceAt {
    /// As the application's `spec` says it; JSON.
    pub source: String,
    /// The commit.
    pub revision: String,
}

/// The sources that manifests were compiled of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SourcesAt {
    /// What the application is called: its `metadata`, but for what changes with every write; JSON.
    pub metadata: String,
    /// Its `spec.project`.
    pub project: String,
    /// The namespace that it deploys to.
    pub namespace: String,
    /// In the order of its `spec`.
    pub sources: Vec<SourceAt>,
}

/// A file that makes an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceFile {
    /// From the root of its repository.
    pub path: String,
    /// All that stands in it; empty where what makes the object is no text of its own.
    pub text: Arc<str>,
}

/// What Git says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Described {
    /// Of each compiled manifest, in their order; `None` where it is not known.
    pub files: Vec<Option<SourceFile>>,
    /// What the application packages, as reports carry it: `appVersion`, and `dependencies` with the texts of files.
    pub versions: Option<Value>,
}

/// Says what Git says.
#[async_trait]
pub trait Sources: std::fmt::Debug + Send + Sync {
    /// Whether Git is asked about the applications of a repository, given as an application names it.
    fn is_asked_of(&self, repo_url: &str) -> bool;

    /// Says it of the compiled manifests. `None`: it cannot be had now, and is asked for again later. Ends in its own time.
    async fn describe(&self, of: &SourcesAt, compiled: &[String]) -> Option<Described>;
}

/// About which applications Git is asked.
#[derive(Debug, Clone, Default)]
pub enum AsksGit {
    /// About none.
    #[default]
    Never,
    /// About all.
    Always,
    /// About those that have a source with commits in a repository that it is asked of.
    By(Arc<dyn Sources>),
}

impl AsksGit {
    /// Whether it is asked about an application whose sources with commits are in these repositories.
    pub(crate) fn of<'a>(&self, mut repositories: impl Iterator<Item = &'a str>) -> bool {
        match self {
            Self::Never => false,
            Self::Always => true,
            Self::By(sources) => repositories.any(|repo_url| sources.is_asked_of(repo_url)),
        }
    }
}

/// What Argo CD answers of manifests.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ManifestsResponse {
    compiled: Vec<String>,
    /// What a fork says of each beside that; of upstream's, nothing.
    own: Vec<SourceFile>,
    versions: Option<Value>,
    is_forks: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(borrow, default)]
    manifests: Vec<&'a RawValue>,
    #[serde(default)]
    application_versions: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ForkManifest {
    compiled_manifest: String,
    #[serde(default)]
    raw_manifest: String,
    #[serde(default)]
    path: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Composed<'a> {
    manifests: Vec<Manifest<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    application_versions: Option<&'a Value>,
    /// Always there: it tells this answer from one of Argo CD's.
    sources_unknown: bool,
    /// Argo CD says it too, as a fork.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_forks: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Manifest<'a> {
    compiled_manifest: &'a str,
    raw_manifest: &'a str,
    path: &'a str,
}

impl ManifestsResponse {
    /// Reads an answer of upstream's, or of a fork; `None` when it is neither.
    pub fn read(body: &[u8]) -> Option<Self> {
        // A list would pass for an object all of whose members are missing.
        let body = body.trim_ascii_start();
        let body: Body<'_> = serde_json::from_slice(body.starts_with(b"{").then_some(body)?).ok()?;
        let mut answer = Self { versions: body.application_versions, ..Self::default() };
        answer.is_forks = answer.versions.is_some();
        for manifest in body.manifests {
            if manifest.get().starts_with('"') {
                answer.compiled.push(serde_json::from_str(manifest.get()).ok()?);
                answer.own.push(SourceFile::default());
                continue;
            }
            let of: ForkManifest = serde_json::from_str(manifest.get()).ok()?;
            answer.is_forks = true;
            answer.compiled.push(of.compiled_manifest);
            answer.own.push(SourceFile { path: of.path, text: of.raw_manifest.into() });
        }
        Some(answer)
    }

    /// The manifests, as Argo CD compiled them.
    pub fn compiled(&self) -> &[String] {
        &self.compiled
    }

    /// The answer with what Git says of each manifest, in the shape of the fork that says so itself. What Git does not say
    /// stands as the fork says it.
    pub fn composed(&self, described: Option<&Described>) -> Bytes {
        let none = SourceFile::default();
        let files = described.map(|described| described.files.as_slice()).unwrap_or_default();
        let manifests = self.compiled.iter().enumerate().map(|(at, compiled)| {
            let file = files.get(at).and_then(Option::as_ref).or(self.own.get(at)).unwrap_or(&none);
            Manifest { compiled_manifest: compiled, raw_manifest: &file.text, path: &file.path }
        });
        let versions = described.and_then(|described| described.versions.as_ref());
        let composed = Composed {
            manifests: manifests.collect(),
            application_versions: versions.or(self.versions.as_ref()),
            sources_unknown: described.is_none(),
            is_forks: self.is_forks,
        };
        // Texts and JSON are always JSON.
        serde_json::to_vec(&composed).map(Bytes::from).unwrap_or_default()
    }
}

/// An answer of upstream's, which has these manifests, with what Git says of each.
pub fn composed(compiled: &[String], described: Option<&Described>) -> Bytes {
    ManifestsResponse { compiled: compiled.to_vec(), ..ManifestsResponse::default() }.composed(described)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Described, ManifestsResponse, SourceFile, composed};
    use crate::plan::RawManifests;
    use crate::responses::Manifests;

    #[test]
    fn an_answer_of_upstreams_becomes_one_of_the_forks() {
        let pod = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}"#;
        let body = json!({"manifests": [pod, "{}"], "revision": "abc"}).to_string();
        let answer = ManifestsResponse::read(body.as_bytes()).unwrap();
        assert_eq!(answer.compiled(), [pod, "{}"]);
        let file = SourceFile { path: "a/p.yaml".to_owned(), text: "kind: Pod\n".into() };
        let versions = json!({"appVersion": "1"});
        let described = Described { files: vec![Some(file), None], versions: Some(versions.clone()) };
        let composed = answer.composed(Some(&described));
        assert_eq!(
            serde_json::from_slice::<Value>(&composed).unwrap(),
            json!({"applicationVersions": versions, "sourcesUnknown": false, "manifests": [
                {"compiledManifest": pod, "rawManifest": "kind: Pod\n", "path": "a/p.yaml"},
                {"compiledManifest": "{}", "rawManifest": "", "path": ""},
            ]})
        );
        let read = Manifests::read(&composed).unwrap();
        assert!(!read.sources_unknown);
        assert_eq!(read.shape, Some(RawManifests::Absent), "what this Argo CD says is known all the same");
    }

    #[test]
    fn what_git_does_not_say_stands_as_a_fork_says_it() {
        let own = |compiled: &str, raw: &str, path: &str| json!({"compiledManifest": compiled, "rawManifest": raw, "path": path});
        let versions = json!({"appVersion": "1"});
        let body = json!({"manifests": [own("{}", "a", "a.yaml"), own("[]", "b", "b.yaml")], "applicationVersions": versions});
        let answer = ManifestsResponse::read(body.to_string().as_bytes()).unwrap();
        assert_eq!(answer.compiled(), ["{}", "[]"]);
        let file = SourceFile { path: "git.yaml".to_owned(), text: "git".into() };
        let described = Described { files: vec![Some(file), None], versions: None };
        let read = |composed: &[u8]| serde_json::from_slice::<Value>(composed).unwrap();
        let composed = answer.composed(Some(&described));
        assert_eq!(
            read(&composed),
            json!({"applicationVersions": versions, "sourcesUnknown": false, "isForks": true,
                "manifests": [own("{}", "git", "git.yaml"), own("[]", "b", "b.yaml")]})
        );
        assert_eq!(Manifests::read(&composed).unwrap().shape, Some(RawManifests::Served));
        let away = answer.composed(None);
        assert_eq!(read(&away)["manifests"], body["manifests"]);
        assert!(Manifests::read(&away).unwrap().sources_unknown, "it is asked for again");
    }

    #[test]
    fn what_git_could_not_say_is_marked() {
        let composed = composed(&["{}".to_owned()], None);
        let read = Manifests::read(&composed).unwrap();
        assert!(read.sources_unknown && read.versions.is_none());
    }

    #[test]
    fn an_answer_that_is_none_of_argo_cds_is_left_alone() {
        for body in [json!({"manifests": [{"path": "a"}]}), json!([]), json!({"manifests": [1]})] {
            assert_eq!(ManifestsResponse::read(body.to_string().as_bytes()), None, "{body}");
        }
        assert_eq!(ManifestsResponse::read(b"{}"), Some(ManifestsResponse::default()));
    }
}
