//! The runtime's name, and how the platform reaches it: Ingress, HTTPRoute, tunnel, VirtualService, or an address of one's
//! own; and the server of tunnels.

use super::{Judged, Node, Severity, Value};

const RUNTIME: &str = "global.runtime";
/// Where the tunnels of the public platform are.
const PLATFORM: &str = "https://g.codefresh.io";

pub(super) fn check(judged: &mut Judged) {
    name(judged);
    let Ways { ingress, route, tunnel: own, mesh, address } = Ways::given(judged);
    // The other chart opens a tunnel where nothing else is said.
    let is_usual = judged.is_incumbent()
        && judged.at("tunnel-client.enabled").is_none()
        && !(route || mesh || own || address);
    let incumbent = (judged.truth("tunnel-client.enabled") || is_usual) && !ingress;
    let has_domain = !judged.is_empty("tunnelClient.domain");
    if ingress {
        check_ingress(judged);
    }
    if route {
        check_route(judged);
    }
    if mesh {
        check_mesh(judged);
    }
    if own && !ingress && !route {
        tunnel(judged);
    } else if incumbent {
        account(judged);
        if judged.text("global.codefresh.url").trim_end_matches('/') != PLATFORM {
            let todo = "use an Ingress, an HTTPRoute or ingressUrl";
            judged.warning("GR0028", "tunnel-client.enabled", "false with a platform of one's own", todo);
        }
    }
    // Without a domain the address of a tunnel is said by ingressUrl.
    let address = address && (!own || has_domain);
    let ways = [ingress, route, own || incumbent, mesh, address].into_iter().filter(|way| *way).count();
    if ways == 0 {
        no_way(judged);
    }
    if ways > 1 {
        let wanted =
            "one of ingress.enabled, httpRoute.enabled, a tunnel, virtualService.enabled and ingressUrl";
        judged.warning("GR0027", RUNTIME, wanted, "the first of them is what the platform is told: keep one");
    }
    server(judged);
}

fn check_ingress(judged: &mut Judged) {
    hosts(judged, "global.runtime.ingress.hosts", "GR0020");
    if judged.is_empty("global.runtime.ingress.className") {
        judged.error("GR0022", "global.runtime.ingress.className", "the name of an IngressClass", "name one");
    }
    if judged.text("global.runtime.ingress.className") == "istio" {
        let todo =
            "set global.runtime.virtualService with the host and its gateway, and ingress.enabled to false";
        let wanted = "a VirtualService for Istio, whose Ingresses know no WebSockets";
        judged.warning("GR0022", "global.runtime.ingress.className", wanted, todo);
    }
}

fn check_route(judged: &mut Judged) {
    hosts(judged, "global.runtime.httpRoute.hostnames", "GR0026");
    if judged.is_empty("global.runtime.httpRoute.parentRefs") {
        let wanted = "a list of Gateways, as [{name, namespace}]";
        judged.error("GR0025", "global.runtime.httpRoute.parentRefs", wanted, "name the Gateway");
    }
}

fn check_mesh(judged: &mut Judged) {
    hosts(judged, "global.runtime.virtualService.hosts", "GR0029");
    if judged.is_empty("global.runtime.virtualService.gateways") {
        let path = "global.runtime.virtualService.gateways";
        judged.error("GR0029", path, "a list of Gateways of Istio, as namespace/name", "name the Gateway");
    }
}

/// The platform cannot reach the runtime.
fn no_way(judged: &mut Judged) {
    let wanted =
        "one of ingress.enabled, httpRoute.enabled, virtualService.enabled, ingressUrl, tunnelClient.to";
    // The other chart opens a tunnel where nothing else is said.
    let is_public = judged.text("global.codefresh.url").trim_end_matches('/') == PLATFORM;
    let is_switched = judged.given.at("tunnelClient.enabled").is_some();
    let todo = match !judged.is_empty("global.codefresh.accountId") && is_public && !is_switched {
        true => {
            "choose one, or run gitops-runtime values convert FILE on values of the incumbent's chart, which has a tunnel where \
             nothing is said; reports go out without any"
        }
        false => "choose one when the platform is to reach into the runtime; reports go out without it",
    };
    judged.told(Severity::Warning, "GR0024", RUNTIME, "none of them".to_owned(), wanted, todo);
}

/// Which ways are given.
struct Ways {
    ingress: bool,
    route: bool,
    tunnel: bool,
    mesh: bool,
    address: bool,
}

impl Ways {
    fn given(judged: &Judged) -> Self {
        Self {
            ingress: judged.is_on("global.runtime.ingress"),
            route: judged.is_on("global.runtime.httpRoute"),
            tunnel: judged.is_on("tunnelClient") && !judged.is_empty("tunnelClient.to"),
            mesh: judged.is_on("global.runtime.virtualService"),
            address: !judged.is_empty("global.runtime.ingressUrl"),
        }
    }
}

/// The way that the chart renders: the first that is given.
pub(super) fn way(judged: &Judged) -> Option<&'static str> {
    let Ways { ingress, route, tunnel, mesh, address } = Ways::given(judged);
    let ways = [
        ("ingress", ingress),
        ("httpRoute", route),
        ("tunnel", tunnel),
        ("virtualService", mesh),
        ("url", address),
    ];
    ways.into_iter().find_map(|(way, given)| given.then_some(way))
}

fn account(judged: &mut Judged) {
    if judged.is_empty("global.codefresh.accountId") {
        let todo = "give it: a tunnel is named after it";
        judged.error("GR0023", "global.codefresh.accountId", "the id of the account", todo);
    }
}

/// The client of a tunnel: its name, what it leads to, and where it is visited.
fn tunnel(judged: &mut Judged) {
    let given = judged.text("tunnelClient.name").to_owned();
    if given.is_empty() {
        account(judged);
    }
    let (account, runtime) =
        (judged.text("global.codefresh.accountId").to_owned(), judged.text("global.runtime.name").to_owned());
    let is_adopted = judged.text("tunnelClient.protocol") == "frp";
    // For a name that no tunnel has the chart takes the runtime's id, which is of letters and digits.
    let is_named = runtime.is_empty() || is_part(&runtime, 38, is_adopted);
    let runtime = if is_named { runtime } else { "id".to_owned() };
    let name = if given.is_empty() { format!("{account}-{runtime}") } else { given.clone() };
    let is_known = !given.is_empty() || !(account.is_empty() || runtime.is_empty());
    if is_known && !is_tunnel(&name, is_adopted) {
        let (path, wanted, todo) = if given.is_empty() {
            (
                "global.codefresh.accountId",
                "lower-case letters and digits, at most 24, for the tunnel",
                "give the account's id as the platform has it, or tunnelClient.name",
            )
        } else {
            (
                "tunnelClient.name",
                "ACCOUNT-RUNTIME of lower-case letters and digits, at most 24 and 38, for the tunnel",
                "leave tunnelClient.name out: the chart makes ACCOUNT-ID for a runtime with a dash in its name, which is reached by its id, as { me { id } } says it",
            )
        };
        judged.error("GR0070", path, wanted, todo);
    }
    if judged.is_empty("tunnelClient.forward") && !judged.truth("router.enabled") {
        let todo = "give it, or set router.enabled";
        judged.error("GR0071", "tunnelClient.forward", "an address to lead visitors to", todo);
    }
    if judged.is_empty("tunnelClient.domain") && judged.is_empty("global.runtime.ingressUrl") {
        let todo = "give it, so that the platform is told the runtime's address";
        judged.warning("GR0024", "tunnelClient.domain", "the domain that tunnels are visited at", todo);
    }
}

/// Whether a text names a tunnel; a server of the frp family takes a runtime with dashes.
fn is_tunnel(name: &str, is_adopted: bool) -> bool {
    let Some((account, runtime)) = name.split_once('-') else { return false };
    is_part(account, 24, false) && is_part(runtime, 38, is_adopted)
}

fn is_part(text: &str, most: usize, dash: bool) -> bool {
    (1..=most).contains(&text.len())
        && text.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || (dash && c == b'-'))
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// The server of tunnels.
fn server(judged: &mut Judged) {
    if !judged.truth("tunnelServer.enabled") {
        return;
    }
    let todo = "give it: tunnels are visited at ACCOUNT-RUNTIME.DOMAIN";
    for (path, wanted, needed) in [
        ("tunnelServer.domain", "a domain such as tunnels.example.com", true),
        (
            "tunnelServer.ingress.host",
            "the host that clients connect to",
            judged.truth("tunnelServer.ingress.enabled"),
        ),
    ] {
        if needed && judged.is_empty(path) {
            judged.error("GR0072", path, wanted, todo);
        }
    }
    super::chart::route(judged, "tunnelServer.httpRoute");
    let own = "tunnelServer.tls.secretName";
    if judged.truth("tunnelServer.httpRoute.enabled") && !judged.is_empty(own) {
        judged.error("GR0072", own, "none, where an HTTPRoute leads to it", "leave TLS to the Gateway");
    }
    let asks = judged.truth("platform.enabled") || judged.text("global.codefresh.url") != PLATFORM;
    if judged.is_empty("tunnelServer.tokensSecretKeyRef") && !asks {
        let todo = "give it, or the address of a platform of your own, which knows whose token it is";
        judged.error("GR0073", "tunnelServer.tokensSecretKeyRef", "a Secret with the file of tokens", todo);
    }
    let replicas = "tunnelServer.replicaCount";
    if judged.number(replicas).is_some_and(|count| count > 1.0) {
        super::chart::needs_bus(judged, replicas, "1");
    }
}

fn name(judged: &mut Judged) {
    let path = "global.runtime.name";
    let name = judged.text(path).to_owned();
    // One of digits is there, and its type is told of.
    if judged.at(path).is_some_and(|node| matches!(node.value, Value::Number(_) | Value::Bool(_))) {
        return;
    }
    if name.is_empty() {
        return judged.error("GR0010", path, "the runtime's name, unique in its account", "give it");
    }
    let is_plain = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    if !is_plain || !name.starts_with(|c: char| c.is_ascii_lowercase()) || name.len() > 38 {
        // One that is called otherwise already keeps its name: the platform takes it, and gives it an id beside.
        let wanted = "a lower-case letter, then lower-case letters and digits, 38 at most";
        judged.warning("GR0011", path, wanted, "choose such a name for a new runtime");
    }
}

/// Checks a list of host names, which may not be empty.
fn hosts(judged: &mut Judged, path: &str, missing: &'static str) {
    let items = judged.at(path).map(Node::items).unwrap_or_default().to_vec();
    let Some(first) = items.first() else {
        let todo = "give the host; the platform takes the first";
        return judged.error(missing, path, "a list of host names", todo);
    };
    if first.text().is_some_and(|host| host.starts_with("*.")) {
        let todo = "put the host first that the platform is to reach the runtime by";
        judged.error("GR0021", path, "a host without * as the first", todo);
    }
    for item in &items {
        let Some(host) = item.text() else { continue };
        let label = |label: &str| {
            !label.is_empty()
                && label.len() <= 63
                && label.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        if host.len() > 253 || !host.strip_prefix("*.").unwrap_or(host).split('.').all(label) {
            let wanted = "host names in lower case, without protocol, port and path";
            let finding = judged.add(Severity::Error, "GR0021", path, wanted, "write the host name alone");
            (finding.file, finding.line) = (item.file.clone(), item.line);
            finding.found = super::shown(path, Some(item));
        }
    }
}
