//! The runtime's name, and how the platform reaches it: tunnel, Ingress, HTTPRoute, or an address of one's own.

use super::{Judged, Value};

const RUNTIME: &str = "global.runtime";
/// Where the tunnels of the public platform are.
const PLATFORM: &str = "https://g.codefresh.io";

pub(super) fn check(judged: &mut Judged) {
    name(judged);
    let ingress = judged.truth("global.runtime.ingress.enabled");
    let route = judged.truth("global.runtime.httpRoute.enabled");
    let tunnel = judged.truth("tunnel-client.enabled") && !ingress;
    let address = !judged.is_empty("global.runtime.ingressUrl");
    if ingress {
        hosts(judged, "global.runtime.ingress.hosts", "GR0020");
        if judged.is_empty("global.runtime.ingress.className") {
            judged.error(
                "GR0022",
                "global.runtime.ingress.className",
                "the name of an IngressClass",
                "name one",
            );
        }
    }
    if route {
        hosts(judged, "global.runtime.httpRoute.hostnames", "GR0026");
        if judged.is_empty("global.runtime.httpRoute.parentRefs") {
            let wanted = "a list of Gateways, as [{name, namespace}]";
            judged.error("GR0025", "global.runtime.httpRoute.parentRefs", wanted, "name the Gateway");
        }
    }
    if tunnel {
        if judged.is_empty("global.codefresh.accountId") {
            let todo = "give it: a tunnel is named after it";
            judged.error("GR0023", "global.codefresh.accountId", "the id of the account", todo);
        }
        if judged.text("global.codefresh.url").trim_end_matches('/') != PLATFORM {
            let todo = "use an Ingress, an HTTPRoute or ingressUrl";
            judged.warning("GR0028", "tunnel-client.enabled", "false with a platform of one's own", todo);
        }
    }
    let ways = [ingress, route, tunnel, address].into_iter().filter(|way| *way).count();
    if ways == 0 {
        let wanted = "one of ingress.enabled, httpRoute.enabled, ingressUrl";
        let todo = "choose one when the platform is to reach into the runtime; reports go out without it";
        judged.warning("GR0024", RUNTIME, wanted, todo);
    }
    if ways > 1 {
        let wanted = "one of ingress.enabled, httpRoute.enabled, ingressUrl and a tunnel";
        judged.warning("GR0027", RUNTIME, wanted, "the first of them is what the platform is told: keep one");
    }
}

fn name(judged: &mut Judged) {
    let path = "global.runtime.name";
    let name = judged.text(path).to_owned();
    if name.is_empty() {
        return judged.error("GR0010", path, "the runtime's name, unique in its account", "give it");
    }
    let is_plain = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    if !is_plain || !name.starts_with(|c: char| c.is_ascii_lowercase()) || name.len() > 38 {
        let wanted = "a lower-case letter, then lower-case letters and digits, 38 at most";
        if judged.truth("platform.enabled") {
            return judged.error("GR0011", path, wanted, "choose such a name: the platform takes no other");
        }
        judged.warning("GR0011", path, wanted, "choose such a name for a new runtime");
    }
}

/// Checks a list of host names, which may not be empty.
fn hosts(judged: &mut Judged, path: &str, missing: &'static str) {
    let Some(Value::List(items)) = judged.at(path).map(|node| node.value.clone()) else {
        return judged.error(
            missing,
            path,
            "a list of host names",
            "give the host; the platform takes the first",
        );
    };
    if items.is_empty() {
        return judged.error(
            missing,
            path,
            "a list of host names",
            "give the host; the platform takes the first",
        );
    }
    for item in &items {
        let Some(host) = item.text() else { continue };
        let label = |label: &str| {
            !label.is_empty()
                && label.len() <= 63
                && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        if host.len() > 253 || !host.strip_prefix("*.").unwrap_or(host).split('.').all(label) {
            judged.error(
                "GR0021",
                path,
                "host names, without protocol, port and path",
                "write the host name alone",
            );
            if let Some(finding) = judged.findings.last_mut() {
                finding.line = item.line;
                finding.file.clone_from(&item.file);
                finding.found = super::shown(path, Some(item));
            }
        }
    }
}
