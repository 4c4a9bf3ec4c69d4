//! What the API server or a kubelet would refuse of values that the chart passes on as they are given: peers and ports of policies,
//! times, images, hosts that are addresses, and a name that two Services have.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::kubernetes::{CURE, SUBDOMAIN, matches};
use super::{Chart, Judged, Node, Severity, Value};

/// A number, a list of them, a range or a step, with the least and the most of each of the five fields of a schedule.
const FIELDS: [(u32, u32, &[&str]); 5] = [
    (0, 59, &[]),
    (0, 23, &[]),
    (1, 31, &[]),
    (1, 12, &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]),
    (0, 6, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"]),
];
const ONCE_A: [&str; 7] = ["yearly", "annually", "monthly", "weekly", "daily", "midnight", "hourly"];
/// As the Prometheus operator takes it.
const TIME: &str = "0|([0-9]+y)?([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?";
const HOST: &str = "[a-zA-Z0-9]([-a-zA-Z0-9.]*[a-zA-Z0-9])?(:[0-9]+)?(/[-a-z0-9._/]+)?";
const REPOSITORY: &str = "[a-z0-9]+((\\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\\.|_|__|-+)[a-z0-9]+)*)*";
const TAG: &str = "[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}";
const DIGEST: &str = "(@sha256:[0-9a-f]{64})?";
/// Services whose names are given, and the switches of what has them.
const SERVICES: [(&str, &str); 2] =
    [("router.service.name", "router.enabled"), ("appProxy.service.name", "appProxy.enabled")];
/// Lists of hosts that an Ingress or a route has, and the switches of these.
const HOSTS: [(&str, &str); 2] = [
    ("global.runtime.ingress.hosts", "global.runtime.ingress.enabled"),
    ("global.runtime.httpRoute.hostnames", "global.runtime.httpRoute.enabled"),
];

pub(super) fn check(judged: &mut Judged) {
    for value in &Chart::get().values {
        match value.path.strip_prefix("networkPolicy.") {
            Some("extraEgress") => list(judged, &value.path, egress),
            Some(key) if key.ends_with("From") || key.ends_with("To") => list(judged, &value.path, block),
            _ => {}
        }
        if value.path.contains("image") {
            of_image(judged, &value.path);
        }
    }
    text(
        judged,
        "tunnelClient.domain",
        |text| matches(&format!("{SUBDOMAIN}(:[0-9]{{1,5}})?"), text),
        "a domain in lower case, without https://",
    );
    text(judged, "platform.backup.schedule", is_schedule, "five fields, as in 17 3 * * *, or @daily");
    for path in ["metrics.serviceMonitor.interval", "metrics.serviceMonitor.scrapeTimeout"] {
        text(judged, path, |text| matches(TIME, text), "a time such as 30s");
    }
    let [interval, within] = ["interval", "scrapeTimeout"].map(|key| format!("metrics.serviceMonitor.{key}"));
    let times = seconds(judged.text(&interval)).zip(seconds(judged.text(&within)));
    if judged.truth("metrics.serviceMonitor.enabled") && times.is_some_and(|(all, part)| part > all) {
        let wanted = format!("no more than {interval}: the Prometheus operator takes no such ServiceMonitor");
        judged.error("GR0007", &within, &wanted, "shorten it, or read metrics less often");
    }
    for (path, switch) in HOSTS {
        if judged.truth(switch) {
            list(judged, path, |host| {
                let host = host.text()?;
                let is_address = host.parse::<Ipv4Addr>().is_ok() || host.parse::<Ipv6Addr>().is_ok();
                is_address.then(|| format!("the address {host}"))
            });
        }
    }
    let [(first, of_first), (second, of_second)] = SERVICES;
    let both = judged.truth(of_first) && judged.truth(of_second);
    if both && judged.text(first) == judged.text(second) {
        let wanted = format!("a name that {first} does not have");
        judged.error("GR0007", second, &wanted, "give one of the two another name");
    }
}

/// Tells of the first item of a list that something is wrong with.
fn list(judged: &mut Judged, path: &str, wrong: fn(&Node) -> Option<String>) {
    let items = judged.at(path).map(Node::items).unwrap_or_default();
    let found = items.iter().enumerate().find_map(|(at, item)| Some((at, wrong(item)?)));
    if let Some((at, found)) = found {
        let wanted = "what Kubernetes takes there";
        judged.told(Severity::Error, "GR0007", path, format!("item {at} with {found}"), wanted, CURE);
    }
}

/// Tells of a text that is none of those that are taken.
fn text(judged: &mut Judged, path: &str, is_right: fn(&str) -> bool, wanted: &str) {
    if judged.at(path).and_then(Node::text).is_some_and(|text| !text.is_empty() && !is_right(text)) {
        judged.error("GR0007", path, wanted, CURE);
    }
}

/// How long a time is that the operator takes; `None` for what is none.
fn seconds(text: &str) -> Option<f64> {
    const UNITS: [(&str, f64); 7] = [
        ("ms", 0.001),
        ("y", 31_536_000.0),
        ("w", 604_800.0),
        ("d", 86_400.0),
        ("h", 3_600.0),
        ("m", 60.0),
        ("s", 1.0),
    ];
    let (mut rest, mut all) = (text, 0.0);
    while !rest.is_empty() {
        let (number, unit) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
        let (name, size) = UNITS.into_iter().find(|(name, _)| unit.starts_with(name))?;
        all += number.parse::<f64>().ok()? * size;
        rest = unit.get(name.len()..)?;
    }
    Some(all)
}

fn of_image(judged: &mut Judged, path: &str) {
    match path.rsplit('.').next() {
        Some("registry" | "imageRegistry") => {
            text(judged, path, |text| matches(HOST, text), "a host, without https://");
        }
        Some("repository") => {
            text(judged, path, |text| matches(REPOSITORY, text), "lower-case letters, digits, -, _, . and /");
        }
        Some("tag") => {
            let digest = format!("{}.digest", path.trim_end_matches(".tag"));
            // The chart writes the one behind the other.
            if judged.is_empty(&digest) {
                let is_tag = |text: &str| matches(&format!("{TAG}{DIGEST}"), text);
                let wanted =
                    "letters, digits, -, _ and .; a digest goes behind it as @sha256:..., or under digest";
                text(judged, path, is_tag, wanted);
            } else {
                let wanted = format!("letters, digits, -, _ and ., as {digest} is given");
                text(judged, path, |text| matches(TAG, text), &wanted);
            }
        }
        _ => {}
    }
}

/// What is wrong with a rule of what may be reached.
fn egress(rule: &Node) -> Option<String> {
    let items = |key: &str| rule.get(key).map(Node::items).unwrap_or_default();
    items("to").iter().find_map(peer).or_else(|| items("ports").iter().find_map(port))
}

/// What is wrong with a peer of a policy.
fn peer(peer: &Node) -> Option<String> {
    let known = ["ipBlock", "namespaceSelector", "podSelector"];
    let is_known = peer.entries().iter().all(|(key, _)| known.contains(&key.as_str()));
    if peer.entries().is_empty() || !is_known {
        return Some("a peer that is none of ipBlock, namespaceSelector and podSelector".to_owned());
    }
    block(peer)
}

/// What is wrong with the network of a peer.
fn block(peer: &Node) -> Option<String> {
    let block = peer.get("ipBlock")?;
    if peer.entries().len() > 1 {
        return Some("an ipBlock beside a selector".to_owned());
    }
    let except = block.get("except").map(Node::items).unwrap_or_default();
    let of_block = block.get("cidr").into_iter().chain(except);
    let is_network = |node: &Node| node.text().is_some_and(is_network);
    (block.get("cidr").is_none() || !of_block.into_iter().all(is_network))
        .then(|| "an ipBlock that is no network such as 10.0.0.0/8".to_owned())
}

fn port(port: &Node) -> Option<String> {
    let number = |key: &str| match port.get(key).map(|node| &node.value) {
        Some(Value::Number(number)) => Some(number.as_i64().unwrap_or(-1)),
        _ => None,
    };
    let is_port = |number: i64| (1..=65_535).contains(&number);
    let protocol = port.get("protocol").and_then(Node::text).unwrap_or("TCP");
    let ends =
        number("endPort").is_none_or(|end| is_port(end) && number("port").is_some_and(|port| port <= end));
    let is_right = number("port").is_none_or(is_port) && ends && ["TCP", "UDP", "SCTP"].contains(&protocol);
    (!is_right).then(|| "a port that is none".to_owned())
}

/// Whether a text is an address and how much of it counts.
fn is_network(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let Ok(bits) = bits.parse::<u8>() else { return false };
    address.parse::<Ipv4Addr>().is_ok() && bits <= 32 || address.parse::<Ipv6Addr>().is_ok() && bits <= 128
}

/// Whether a CronJob takes a schedule.
fn is_schedule(text: &str) -> bool {
    if let Some(word) = text.strip_prefix('@') {
        return ONCE_A.contains(&word) || word.strip_prefix("every ").is_some_and(|time| matches(TIME, time));
    }
    let fields: Vec<&str> = text.split_whitespace().collect();
    fields.len() == FIELDS.len() && fields.iter().zip(FIELDS).all(|(field, of)| is_field(field, of))
}

fn is_field(field: &str, (least, most, words): (u32, u32, &[&str])) -> bool {
    let number = |text: &str| match words.iter().position(|word| text.eq_ignore_ascii_case(word)) {
        Some(at) => u32::try_from(at).ok().map(|at| at + least),
        None => text.parse::<u32>().ok().filter(|number| (least..=most).contains(number)),
    };
    field.split(',').all(|part| {
        let (range, step) = part.split_once('/').map_or((part, None), |(range, step)| (range, Some(step)));
        let is_step = step.is_none_or(|step| step.parse::<u32>().is_ok_and(|step| step > 0));
        let is_range = match range.split_once('-') {
            Some((from, to)) => number(from).zip(number(to)).is_some_and(|(from, to)| from <= to),
            None => matches!(range, "*" | "?") || number(range).is_some(),
        };
        is_step && is_range
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_what_a_cron_job_takes() {
        for text in [
            "17 3 * * *",
            "*/5 0-6,12 ? jan-MAR sun",
            "@daily",
            "@every 90m",
            "0 0 1 1 6",
            "0 3/2 * * MON-FRI",
        ] {
            assert!(is_schedule(text), "{text}");
        }
        for text in [
            "every day",
            "60 * * * *",
            "* * * *",
            "* * * * * *",
            "@never",
            "5-1 * * * *",
            "0 0 * * 7",
            "*/0 * * * *",
            "1,,2 * * * *",
        ] {
            assert!(!is_schedule(text), "{text}");
        }
    }
}
