//! What the other chart brings along, as far as the runtime's own processes ask it.

use super::truth;
use crate::tree::Node;

/// What the other chart calls its Argo CD.
const NAME: &str = "argo-cd";

/// How the Argo CD of the other chart is reached, by the values of it.
#[derive(Debug, Clone)]
pub(super) struct Bundled {
    /// Whether the other chart makes none, and asks one that is there.
    pub(super) is_off: bool,
    /// The Service of its API server; `None` where it is called after the release.
    pub(super) service: Option<String>,
    /// The path that it is served under, where that is another than /.
    pub(super) rootpath: Option<String>,
    /// Whether it speaks TLS, which the other chart switches off where nothing is said.
    pub(super) speaks_tls: bool,
    /// Whether it takes Applications of the namespaces that the other chart has it take them of where nothing is said.
    pub(super) has_usual_namespaces: bool,
}

/// Those namespaces.
pub(super) const USUAL_NAMESPACES: &str = "cf-*";

impl Bundled {
    /// That of a file of values.
    pub(super) fn of(root: &Node) -> Self {
        let argocd = root.get("argo-cd");
        // What is off has no name and no settings; the other chart asks the one that it names itself.
        let is_off = argocd.and_then(|argocd| argocd.get("enabled")).and_then(truth) == Some(false);
        let Some(argocd) = argocd.filter(|_| !is_off) else {
            let service = Some(format!("{NAME}-server"));
            return Self {
                is_off,
                service,
                rootpath: None,
                speaks_tls: false,
                has_usual_namespaces: !is_off,
            };
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
            is_off,
            service,
            rootpath: rootpath.map(ToOwned::to_owned),
            speaks_tls: setting("server.insecure").and_then(truth) == Some(false),
            has_usual_namespaces: setting("application.namespaces").is_none(),
        }
    }
}

/// Where others are that the other chart asks or brings along, by its values: `None` where those are this chart's defaults, and "" where
/// it is off.
#[derive(Debug, Clone)]
pub(super) struct Beside {
    /// The server of Argo Workflows, which the router leads to.
    pub(super) workflows: Option<String>,
    /// The controller of sealed-secrets, which the app proxy asks for its certificate.
    pub(super) sealing: Option<String>,
    /// The server of tunnels, where it is reached otherwise than by TLS at its usual port.
    pub(super) tunnels: Option<String>,
    /// What visitors are led to, where that is not the router.
    pub(super) forward: Option<String>,
}

/// The server of tunnels that the other chart takes where nothing is said.
pub(super) const TUNNELS: &str = "register-tunnels.cf-cd.com";

/// A text or a whole number under a key, where it is not empty.
fn word(node: &Node, key: &str) -> Option<String> {
    let node = node.get(key)?;
    let text = node.text().map(ToOwned::to_owned).or_else(|| node.whole().map(|number| number.to_string()));
    text.filter(|text| !text.is_empty())
}

/// The address of a server of tunnels, where its host alone does not say it.
fn tunnels(server: &Node) -> Option<String> {
    let host = word(server, "host").unwrap_or_else(|| TUNNELS.to_owned());
    let is_secure = word(server, "protocol").is_none_or(|protocol| protocol == "wss");
    let (scheme, usual) = if is_secure { ("https", "443") } else { ("http", "80") };
    let port = word(server, "port").unwrap_or_else(|| "443".to_owned());
    let port = if port == usual { String::new() } else { format!(":{port}") };
    let is_said = host.contains("://") || (is_secure && port.is_empty());
    (!is_said).then(|| format!("{scheme}://{host}{port}"))
}

/// The address that visitors are led to, where that is not the router's.
fn forward(to: &Node) -> Option<String> {
    let host = word(to, "host").filter(|host| host != "internal-router");
    let port = word(to, "port").filter(|port| port != "80");
    (host.is_some() || port.is_some()).then(|| {
        let port = port.map(|port| format!(":{port}")).unwrap_or_default();
        format!("http://{}{port}", host.as_deref().unwrap_or("internal-router"))
    })
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
        Self {
            workflows: workflows.filter(|at| !is_usual(at)),
            sealing: sealing.filter(|at| !is_usual(at)),
            tunnels: root.at("tunnel-client.tunnelServer").and_then(tunnels),
            forward: root.at("tunnel-client.tunnel.forwardTo").and_then(forward),
        }
    }
}
