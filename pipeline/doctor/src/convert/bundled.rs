//! The Argo CD that the other chart brings along, as far as the reporter sees it.

use super::truth;
use crate::tree::Node;

/// What the other chart calls its Argo CD.
const NAME: &str = "argo-cd";

/// How the Argo CD of the other chart is reached, by the values of it.
#[derive(Debug, Clone)]
pub(super) struct Bundled {
    /// The Service of its API server; `None` where it is called after the release.
    pub(super) service: Option<String>,
    /// The path that it is served under, where that is another than /.
    pub(super) rootpath: Option<String>,
    /// Whether it speaks TLS, which the other chart switches off where nothing is said.
    pub(super) speaks_tls: bool,
}

impl Bundled {
    /// That of a file of values.
    pub(super) fn of(root: &Node) -> Self {
        let argocd = root.get("argo-cd");
        let usual = Self { service: Some(format!("{NAME}-server")), rootpath: None, speaks_tls: false };
        // What is off has no name and no settings; the other chart asks the one that it names itself.
        let Some(argocd) = argocd.filter(|argocd| argocd.get("enabled").and_then(truth) != Some(false))
        else {
            return usual;
        };
        let text = |path: &str| argocd.at(path).and_then(Node::text);
        let server = text("server.name").filter(|name| !name.is_empty()).unwrap_or("server");
        let service = match text("fullnameOverride").unwrap_or(NAME) {
            "" => None,
            name => Some(format!("{name}-{server}")),
        };
        // Their names have dots.
        let setting = |key: &str| argocd.at("configs.params").and_then(|params| params.get(key));
        let rootpath =
            setting("server.rootpath").and_then(Node::text).filter(|path| !path.trim_matches('/').is_empty());
        Self {
            service,
            rootpath: rootpath.map(ToOwned::to_owned),
            speaks_tls: setting("server.insecure").and_then(truth) == Some(false),
        }
    }
}
