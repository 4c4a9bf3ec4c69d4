//! What the other chart brings along, as far as the runtime's own processes ask it.

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

/// Where others are that the other chart brings along, by its values: `None` where those are this chart's defaults, and "" where it is
/// off.
#[derive(Debug, Clone)]
pub(super) struct Beside {
    /// The server of Argo Workflows, which the router leads to.
    pub(super) workflows: Option<String>,
    /// The controller of sealed-secrets, which the app proxy asks for its certificate.
    pub(super) sealing: Option<String>,
}

impl Beside {
    /// Those of a file of values.
    pub(super) fn of(root: &Node) -> Self {
        let is_off = |part: &Node| part.get("enabled").and_then(truth) == Some(false);
        let name = |part: &Node| {
            let name = part.get("fullnameOverride").and_then(Node::text).filter(|name| !name.is_empty());
            name.map(ToOwned::to_owned)
        };
        let workflows = root.get("argo-workflows").and_then(|part| {
            let is_secure = part.at("server.secure").and_then(truth) == Some(true);
            match name(part) {
                _ if is_off(part) => Some(String::new()),
                None if !is_secure => None,
                name => {
                    let scheme = if is_secure { "https" } else { "http" };
                    Some(format!("{scheme}://{}-server:2746", name.as_deref().unwrap_or("argo")))
                }
            }
        });
        let sealing = root.get("sealed-secrets").and_then(|part| match name(part) {
            _ if is_off(part) => Some(String::new()),
            name => name.map(|name| format!("http://{name}:8080")),
        });
        let is_usual = |address: &String| {
            ["http://argo-server:2746", "http://sealed-secrets-controller:8080"].contains(&address.as_str())
        };
        Self { workflows: workflows.filter(|at| !is_usual(at)), sealing: sealing.filter(|at| !is_usual(at)) }
    }
}
