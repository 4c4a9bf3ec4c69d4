//! What existing servers of the bus say to whoever connects: their version, and whether they keep streams.

use serde_json::Value as Json;

use super::Asking;
use crate::rules::{Judged, Severity};

/// The first version with a time to live for each key.
const OLDEST: (u32, u32) = (2, 11);

pub(super) fn check(judged: &mut Judged, asking: &mut Asking<'_>) {
    let path = "nats.url";
    if asking.skips(judged, "GR0206") || judged.text("nats.mode") != "existing" {
        return;
    }
    let addresses = judged.text(path).to_owned();
    for address in addresses.split(',').map(str::trim).filter(|address| !address.is_empty()) {
        let origin = super::origin(address);
        let authority = origin.split("://").last().unwrap_or_default();
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().unwrap_or(4222)),
            _ => (authority, 4222),
        };
        match asking.network.greeting(host.trim_matches(['[', ']']), port) {
            Ok(line) => {
                asking.is_online = true;
                greeted(judged, path, &origin, &line);
            }
            Err(why) => asking.lost("GR0206", path, origin, why),
        }
    }
}

fn greeted(judged: &mut Judged, path: &str, origin: &str, line: &str) {
    let info = line.strip_prefix("INFO ").and_then(|info| serde_json::from_str::<Json>(info).ok());
    let version = info.as_ref().and_then(|info| {
        let mut parts = info["version"].as_str()?.split('.');
        Some((parts.next()?.parse::<u32>().ok()?, parts.next()?.parse::<u32>().ok()?))
    });
    let (found, todo) = match (info, version) {
        (Some(info), Some(version)) => {
            if version < OLDEST {
                (
                    format!("{origin} is NATS {}.{}", version.0, version.1),
                    "upgrade it, or set nats.mode to embedded",
                )
            } else if info["jetstream"] != true {
                (
                    format!("{origin} has no JetStream"),
                    "start it with JetStream, or set nats.mode to embedded",
                )
            } else {
                return;
            }
        }
        _ => (format!("{origin} is no NATS server"), "correct the address"),
    };
    judged.told(Severity::Error, "GR0206", path, found, "NATS 2.11 or newer, with JetStream", todo);
}
