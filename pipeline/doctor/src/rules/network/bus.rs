//! What existing servers of NATS say to whoever connects, those of the bus and those that routes publish to: their version, and
//! whether they keep streams.

use serde_json::Value as Json;

use super::Asking;
use crate::rules::{Judged, Severity, routes};

pub(super) fn check(judged: &mut Judged, asking: &mut Asking<'_>) {
    if !judged.is_skipped(OF_BUS.code) && judged.text("nats.mode") == "existing" {
        let addresses = judged.text("nats.url").to_owned();
        each(judged, asking, "nats.url", &addresses, &OF_BUS);
    }
    if !judged.is_skipped(OF_ROUTE.code) {
        for (path, addresses) in routes::nats(judged) {
            each(judged, asking, &path, &addresses, &OF_ROUTE);
        }
    }
}

/// What is asked of a server.
struct Wanted {
    code: &'static str,
    oldest: (u32, u32),
    wanted: &'static str,
    upgrade: &'static str,
    keep: &'static str,
}

/// The first version with a time to live for each key.
const OF_BUS: Wanted = Wanted {
    code: "GR0206",
    oldest: (2, 11),
    wanted: "NATS 2.11 or newer, with JetStream",
    upgrade: "upgrade it, or set nats.mode to embedded",
    keep: "start it with JetStream, or set nats.mode to embedded",
};

/// The first version with headers, by which a stream knows a repetition.
const OF_ROUTE: Wanted = Wanted {
    code: "GR0209",
    oldest: (2, 2),
    wanted: "NATS 2.2 or newer, with JetStream",
    upgrade: "upgrade it",
    keep: "start it with JetStream: what plain NATS is given nobody acknowledges",
};

fn each(judged: &mut Judged, asking: &mut Asking<'_>, path: &str, addresses: &str, wanted: &Wanted) {
    for address in addresses.split(',').map(str::trim).filter(|address| !address.is_empty()) {
        let origin = super::origin(address);
        let authority = origin.split("://").last().unwrap_or_default();
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().unwrap_or(4222)),
            _ => (authority, 4222),
        };
        match asking.network.greeting(host.trim_matches(['[', ']']), port) {
            // It may be one that says its first word in TLS (`handshake_first`).
            Ok(line) if line.is_empty() && origin.starts_with("tls://") => {
                asking.is_online = true;
                asking.unmeasured(wanted.code, format!("{origin} says nothing before TLS"));
            }
            Ok(line) => {
                asking.is_online = true;
                greeted(judged, path, &origin, &line, wanted);
            }
            Err(why) => asking.lost(wanted.code, path, origin, why),
        }
    }
}

fn greeted(judged: &mut Judged, path: &str, origin: &str, line: &str, wanted: &Wanted) {
    let info = line.strip_prefix("INFO ").and_then(|info| serde_json::from_str::<Json>(info).ok());
    let version = info.as_ref().and_then(|info| {
        let mut parts = info["version"].as_str()?.split('.');
        Some((parts.next()?.parse::<u32>().ok()?, parts.next()?.parse::<u32>().ok()?))
    });
    let (found, todo) = match (info, version) {
        (Some(info), Some(version)) => {
            if version < wanted.oldest {
                (format!("{origin} is NATS {}.{}", version.0, version.1), wanted.upgrade)
            } else if info["jetstream"] != true {
                (format!("{origin} has no JetStream"), wanted.keep)
            } else {
                return;
            }
        }
        _ => (format!("{origin} is no NATS server"), "correct the address"),
    };
    judged.told(Severity::Error, wanted.code, path, found, wanted.wanted, todo);
}
