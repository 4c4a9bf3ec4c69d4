//! What Git says of manifests: asked for where Argo CD, as upstream builds it, gives compiled ones alone.

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
    /// Says it of the compiled manifests. `None`: it cannot be had now, and is asked for again later. Ends in its own time.
    async fn describe(&self, of: &SourcesAt, compiled: &[String]) -> Option<Described>;
}

#[derive(Deserialize)]
struct Compiled<'a> {
    #[serde(borrow, default)]
    manifests: Vec<&'a RawValue>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Composed<'a> {
    manifests: Vec<Manifest<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    application_versions: Option<&'a Value>,
    /// Always there: it tells this answer from one of a fork.
    sources_unknown: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Manifest<'a> {
    compiled_manifest: &'a str,
    raw_manifest: &'a str,
    path: &'a str,
}

/// The manifests of an answer of Argo CD's; `None` when it says more of them already, as a fork does.
pub fn compiled(body: &[u8]) -> Option<Vec<String>> {
    // A list would pass for an object all of whose members are missing.
    let body = body.trim_ascii_start();
    let body: Compiled<'_> = serde_json::from_slice(body.starts_with(b"{").then_some(body)?).ok()?;
    body.manifests.into_iter().map(|manifest| serde_json::from_str(manifest.get()).ok()).collect()
}

/// The answer with what Git says of each manifest, in the shape of the fork that says so itself.
pub fn composed(compiled: &[String], described: Option<&Described>) -> Bytes {
    let none = SourceFile::default();
    let files = described.map(|described| described.files.as_slice()).unwrap_or_default();
    let manifests = compiled.iter().enumerate().map(|(at, compiled)| {
        let file = files.get(at).and_then(Option::as_ref).unwrap_or(&none);
        Manifest { compiled_manifest: compiled, raw_manifest: &file.text, path: &file.path }
    });
    let composed = Composed {
        manifests: manifests.collect(),
        application_versions: described.and_then(|described| described.versions.as_ref()),
        sources_unknown: described.is_none(),
    };
    // Texts and JSON are always JSON.
    serde_json::to_vec(&composed).map(Bytes::from).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Described, SourceFile, compiled, composed};
    use crate::responses::Manifests;

    #[test]
    fn an_answer_of_upstreams_becomes_one_of_the_forks() {
        let pod = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}"#;
        let body = json!({"manifests": [pod, "{}"], "revision": "abc"}).to_string();
        let compiled = compiled(body.as_bytes()).unwrap();
        let file = SourceFile { path: "a/p.yaml".to_owned(), text: "kind: Pod\n".into() };
        let versions = json!({"appVersion": "1"});
        let described = Described { files: vec![Some(file), None], versions: Some(versions.clone()) };
        let composed = composed(&compiled, Some(&described));
        assert_eq!(
            serde_json::from_slice::<Value>(&composed).unwrap(),
            json!({"applicationVersions": versions, "sourcesUnknown": false, "manifests": [
                {"compiledManifest": pod, "rawManifest": "kind: Pod\n", "path": "a/p.yaml"},
                {"compiledManifest": "{}", "rawManifest": "", "path": ""},
            ]})
        );
        assert!(!Manifests::read(&composed).unwrap().sources_unknown);
    }

    #[test]
    fn what_git_could_not_say_is_marked() {
        let composed = composed(&["{}".to_owned()], None);
        let read = Manifests::read(&composed).unwrap();
        assert!(read.sources_unknown && read.versions.is_none());
    }

    #[test]
    fn an_answer_that_says_more_than_compiled_manifests_is_left_alone() {
        for body in [json!({"manifests": [{"compiledManifest": "{}"}]}), json!([]), json!({"manifests": [1]})]
        {
            assert_eq!(compiled(body.to_string().as_bytes()), None, "{body}");
        }
        assert_eq!(compiled(b"{}"), Some(Vec::new()));
    }
}
