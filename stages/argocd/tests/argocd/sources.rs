//! Git is asked for what upstream's Argo CD does not say, once for all who want it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pipeline_core::async_trait;
use serde_json::{Value, json};
use stages_argocd::plan::{Fetch, Response};
use stages_argocd::sources::{Described, SourceAt, SourceFile, Sources, SourcesAt};

use crate::support::{Rig, Server, manifests};

/// Knows one file, from its second answer on.
#[derive(Debug, Default)]
struct Git {
    asked: AtomicUsize,
}

#[async_trait]
impl Sources for Git {
    fn is_asked_of(&self, _: &str) -> bool {
        true
    }

    async fn describe(&self, of: &SourcesAt, compiled: &[String]) -> Option<Described> {
        let file = SourceFile { path: format!("{}.yaml", of.sources[0].revision), text: "raw".into() };
        let known = Described { files: vec![Some(file); compiled.len()], versions: None };
        (self.asked.fetch_add(1, Ordering::SeqCst) > 0).then_some(known)
    }
}

fn with_sources(mut fetch: Fetch) -> Fetch {
    if let Fetch::Manifests { sources, .. } = &mut fetch {
        let at = SourceAt { source: "{}".to_owned(), revision: "v1".to_owned() };
        let of = SourcesAt {
            metadata: "{}".to_owned(),
            project: String::new(),
            namespace: "shop".to_owned(),
            sources: vec![at],
        };
        *sources = Some(Arc::new(of));
    }
    fetch
}

fn read(response: Response) -> Value {
    match response {
        Response::Body(body) => serde_json::from_slice(&body).unwrap(),
        _ => Value::Null,
    }
}

#[tokio::test]
async fn what_git_says_is_kept_and_what_it_could_not_say_is_asked_again() {
    let server = Server::new(|_, _| json!({"manifests": ["{}"]}).to_string()).await;
    let git = Arc::new(Git::default());
    let rig = Rig::with_sources(&server, git.clone()).await;
    let fetch = with_sources(manifests("uid", "v1"));
    let unknown = json!({"sourcesUnknown": true, "manifests": [{"compiledManifest": "{}", "rawManifest": "", "path": ""}]});
    assert_eq!(read(rig.fetch(&fetch).await), unknown);
    let known = json!({"sourcesUnknown": false, "manifests": [{"compiledManifest": "{}", "rawManifest": "raw", "path": "v1.yaml"}]});
    for _ in 0..3 {
        assert_eq!(read(rig.fetch(&fetch).await), known);
    }
    assert_eq!((server.asked().len(), git.asked.load(Ordering::SeqCst)), (2, 2));
}

#[tokio::test]
async fn git_is_asked_though_a_fork_says_it_itself_and_the_fork_is_believed_meanwhile() {
    let answer = json!({"manifests": [{"compiledManifest": "{}", "rawManifest": "own", "path": "own.yaml"}]});
    let text = answer.to_string();
    let server = Server::new(move |_, _| text.clone()).await;
    let git = Arc::new(Git::default());
    let rig = Rig::with_sources(&server, git.clone()).await;
    let fetch = with_sources(manifests("uid", "v1"));
    let meanwhile = json!({"sourcesUnknown": true, "isForks": true, "manifests": answer["manifests"]});
    assert_eq!(read(rig.fetch(&fetch).await), meanwhile);
    let known = json!({"compiledManifest": "{}", "rawManifest": "raw", "path": "v1.yaml"});
    let known = json!({"sourcesUnknown": false, "isForks": true, "manifests": [known]});
    assert_eq!(read(rig.fetch(&fetch).await), known);
    // Where Git is not asked the answer stands as it came.
    assert_eq!(read(rig.fetch(&manifests("other", "v1")).await), answer);
    assert_eq!(git.asked.load(Ordering::SeqCst), 2);
}
