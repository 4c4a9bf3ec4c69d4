//! What NetworkPolicies allow, as a network that enforces them would judge: nothing else does here.
//!
//! takes: policies as the chart renders them, connections, and who has which address - gives: connections that no policy
//! allows, and rules that no connection used
//! calls: nothing - fails: at a part of a policy that is not understood

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

use crate::connections::Connection;

type Labels = BTreeMap<String, String>;

/// Who has an address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pod {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) labels: Labels,
}

/// A way that a policy speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Ingress,
    Egress,
}

/// Who may be at the other end.
#[derive(Debug)]
struct Peer {
    namespace: Option<Labels>,
    pods: Option<Labels>,
}

#[derive(Debug)]
struct Rule {
    /// Everybody where there are none.
    peers: Vec<Peer>,
    /// All where there are none: protocol and number.
    ports: Vec<(String, u16)>,
    text: String,
}

#[derive(Debug)]
struct Policy {
    name: String,
    namespace: String,
    selected: Labels,
    ways: BTreeMap<Way, Vec<Rule>>,
}

/// All policies of one or more renderings.
#[derive(Debug, Default)]
pub(crate) struct Policies {
    all: Vec<Policy>,
    /// Those that are known, by what they say.
    known: BTreeSet<String>,
}

/// What is judged.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Connections that no policy allows, a line each.
    pub(crate) refused: BTreeSet<String>,
    /// Rules that no connection used: policy, way and rule.
    pub(crate) unused: BTreeSet<String>,
    /// Rules that one used.
    pub(crate) used: usize,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ingress => "ingress",
            Self::Egress => "egress",
        })
    }
}

impl Policies {
    /// Takes in those of a manifest that it does not know yet.
    pub(crate) fn learn(&mut self, manifest: &str) -> anyhow::Result<()> {
        let objects: Vec<Value> = serde_saphyr::from_multiple(manifest).context("read a manifest")?;
        for object in objects.iter().filter(|object| object["kind"] == "NetworkPolicy") {
            let said = format!("{} {}", object["metadata"]["name"], object["spec"]);
            if !self.known.contains(&said) {
                self.all.push(Policy::of(object).with_context(|| format!("understand {said}"))?);
                self.known.insert(said);
            }
        }
        Ok(())
    }

    /// Judges connections; `pods` says who has which address, and `always` is who may connect to every pod: the node.
    pub(crate) fn judge(
        &self,
        connections: &BTreeSet<Connection>,
        who: &dyn Fn(IpAddr, u16) -> Option<Pod>,
        always: &[IpAddr],
    ) -> Verdict {
        let mut used: BTreeSet<(&str, Way, &str)> = BTreeSet::new();
        let mut verdict = Verdict::default();
        for connection in connections {
            // The port of whoever connects says nothing.
            let (from, to) = (who(connection.from, 0), who(connection.to, connection.port));
            let ends = [(Way::Egress, &from, &to), (Way::Ingress, &to, &from)];
            for (way, own, other) in ends {
                let Some(own) = own else { continue };
                if way == Way::Ingress && always.contains(&connection.from) {
                    continue;
                }
                let policies =
                    self.all.iter().filter(|policy| policy.selects(own) && policy.ways.contains_key(&way));
                let (mut is_judged, mut is_allowed) = (false, false);
                for policy in policies {
                    is_judged = true;
                    for rule in policy.ways.get(&way).into_iter().flatten() {
                        if rule.allows(connection, other.as_ref(), &policy.namespace) {
                            is_allowed = true;
                            used.insert((&policy.name, way, &rule.text));
                        }
                    }
                }
                if is_judged && !is_allowed {
                    let named = |pod: &Option<Pod>, address: IpAddr| match pod {
                        Some(pod) => format!("{}/{}", pod.namespace, pod.name),
                        None => address.to_string(),
                    };
                    verdict.refused.insert(format!(
                        "{way} of no policy: {} to {} at {} {}",
                        named(&from, connection.from),
                        named(&to, connection.to),
                        connection.protocol,
                        connection.port
                    ));
                }
            }
        }
        for policy in &self.all {
            for (way, rule) in
                policy.ways.iter().flat_map(|(way, rules)| rules.iter().map(move |one| (*way, one)))
            {
                if !used.contains(&(policy.name.as_str(), way, rule.text.as_str())) {
                    verdict.unused.insert(format!("{}: {way} {}", policy.name, rule.text));
                }
            }
        }
        verdict.used = used.len();
        verdict
    }
}

impl Policy {
    fn of(object: &Value) -> anyhow::Result<Self> {
        let (metadata, spec) = (&object["metadata"], &object["spec"]);
        let text = |value: &Value| value.as_str().map(str::to_owned).context("find a name");
        let mut ways = BTreeMap::new();
        for way in [Way::Ingress, Way::Egress] {
            let name = way.to_string();
            let kinds = spec["policyTypes"].as_array().context("find the kinds")?;
            if kinds.iter().any(|kind| kind.as_str().is_some_and(|kind| kind.eq_ignore_ascii_case(&name))) {
                let rules = spec[&name].as_array().map(Vec::as_slice).unwrap_or_default();
                let other = if way == Way::Ingress { "from" } else { "to" };
                ways.insert(way, rules.iter().map(|rule| Rule::of(rule, other)).collect::<Result<_, _>>()?);
            }
        }
        Ok(Self {
            name: text(&metadata["name"])?,
            namespace: text(&metadata["namespace"])?,
            selected: labels(&spec["podSelector"])?,
            ways,
        })
    }

    fn selects(&self, pod: &Pod) -> bool {
        pod.namespace == self.namespace && has(&pod.labels, &self.selected)
    }
}

impl Rule {
    fn of(rule: &Value, other: &str) -> anyhow::Result<Self> {
        let known = |key: &String| key == "ports" || key == other;
        ensure!(rule.as_object().context("read a rule")?.keys().all(known), "a rule has other keys");
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let port = |port: &Value| {
            let number = port["port"].as_u64().and_then(|number| u16::try_from(number).ok());
            let protocol = port["protocol"].as_str().context("find the protocol")?.to_owned();
            anyhow::Ok((protocol, number.context("read a port that is no number")?))
        };
        let peer = |peer: &Value| {
            let keys = peer.as_object().context("read a peer")?.keys();
            for key in keys {
                ensure!(["namespaceSelector", "podSelector"].contains(&key.as_str()), "a peer has {key}");
            }
            let given = |key: &str| peer.get(key).map(labels).transpose();
            anyhow::Ok(Peer { namespace: given("namespaceSelector")?, pods: given("podSelector")? })
        };
        Ok(Self {
            peers: list(&rule[other]).iter().map(peer).collect::<Result<_, _>>()?,
            ports: list(&rule["ports"]).iter().map(port).collect::<Result<_, _>>()?,
            text: rule.to_string(),
        })
    }

    fn allows(&self, connection: &Connection, other: Option<&Pod>, namespace: &str) -> bool {
        let port = (connection.protocol.clone(), connection.port);
        let is_peer = |peer: &Peer| {
            other.is_some_and(|pod| {
                let place = match &peer.namespace {
                    None => pod.namespace == namespace,
                    Some(wanted) => has(&of_namespace(&pod.namespace), wanted),
                };
                place && peer.pods.as_ref().is_none_or(|wanted| has(&pod.labels, wanted))
            })
        };
        (self.ports.is_empty() || self.ports.contains(&port))
            && (self.peers.is_empty() || self.peers.iter().any(is_peer))
    }
}

/// The one label that each namespace has.
fn of_namespace(name: &str) -> Labels {
    Labels::from([("kubernetes.io/metadata.name".to_owned(), name.to_owned())])
}

fn has(labels: &Labels, wanted: &Labels) -> bool {
    wanted.iter().all(|(name, value)| labels.get(name) == Some(value))
}

/// Those that a selector names; one of other kinds is not understood.
fn labels(selector: &Value) -> anyhow::Result<Labels> {
    let selector = selector.as_object().context("read a selector")?;
    match (selector.len(), selector.get("matchLabels").and_then(Value::as_object)) {
        (0, _) => Ok(Labels::new()),
        (1, Some(wanted)) => wanted
            .iter()
            .map(|(name, value)| {
                let value = value.as_str().context("read the value of a label")?;
                Ok((name.clone(), value.to_owned()))
            })
            .collect(),
        _ => bail!("a selector is by other than labels"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICIES: &str = r"
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: front, namespace: shop}
spec:
  podSelector: {matchLabels: {app: front}}
  policyTypes: [Ingress, Egress]
  ingress:
    - ports: [{protocol: TCP, port: 80}]
    - ports: [{protocol: TCP, port: 90}]
      from: [{podSelector: {matchLabels: {app: back}}}]
  egress:
    - ports: [{protocol: UDP, port: 53}]
    - to: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: argocd}}, podSelector: {matchLabels: {app: server}}}]
---
apiVersion: v1
kind: Service
metadata: {name: front, namespace: shop}
";

    fn policies() -> Policies {
        let mut policies = Policies::default();
        policies.learn(POLICIES).unwrap();
        policies
    }

    /// Pods by the last part of their address.
    fn who(address: IpAddr, _: u16) -> Option<Pod> {
        let IpAddr::V4(address) = address else { return None };
        let (namespace, app) = match address.octets()[3] {
            1 => ("shop", "front"),
            2 => ("shop", "back"),
            3 => ("argocd", "server"),
            4 => ("other", "back"),
            _ => return None,
        };
        let labels = Labels::from([("app".to_owned(), app.to_owned())]);
        Some(Pod { namespace: namespace.to_owned(), name: app.to_owned(), labels })
    }

    fn judged(connections: &[(u8, u8, &str, u16)]) -> Verdict {
        let address = |last: u8| IpAddr::from([10, 0, 0, last]);
        let connection = |(from, to, protocol, port): &(u8, u8, &str, u16)| Connection {
            protocol: (*protocol).to_owned(),
            from: address(*from),
            to: address(*to),
            port: *port,
        };
        policies().judge(&connections.iter().map(connection).collect(), &who, &[address(100)])
    }

    #[test]
    fn what_each_rule_allows_is_allowed_and_the_rule_is_used() {
        let verdict = judged(&[
            (9, 1, "TCP", 80),
            (2, 1, "TCP", 90),
            (1, 9, "UDP", 53),
            (1, 3, "TCP", 8080),
            (2, 4, "TCP", 1),
        ]);
        assert_eq!(verdict, Verdict { used: 4, ..Verdict::default() });
    }

    #[test]
    fn what_no_rule_allows_is_refused_at_the_end_that_refuses_it() {
        let verdict = judged(&[
            (4, 1, "TCP", 90),
            (9, 1, "TCP", 81),
            (1, 2, "TCP", 8080),
            (1, 9, "TCP", 53),
            (100, 1, "TCP", 8088),
        ]);
        let expected = [
            "egress of no policy: shop/front to 10.0.0.9 at TCP 53",
            "egress of no policy: shop/front to shop/back at TCP 8080",
            "ingress of no policy: 10.0.0.9 to shop/front at TCP 81",
            "ingress of no policy: other/back to shop/front at TCP 90",
        ];
        assert_eq!(verdict.refused.iter().map(String::as_str).collect::<Vec<_>>(), expected);
        assert_eq!((verdict.used, verdict.unused.len()), (0, 4), "{:?}", verdict.unused);
        assert!(verdict.unused.contains(r#"front: egress {"ports":[{"port":53,"protocol":"UDP"}]}"#));
    }

    #[test]
    fn a_rendering_that_says_the_same_adds_nothing_and_what_is_not_understood_is_an_error() {
        let mut policies = policies();
        policies.learn(POLICIES).unwrap();
        assert_eq!(policies.all.len(), 1);
        for (from, to, why) in [
            ("port: 80", "port: http", "read a port that is no number"),
            (
                "{podSelector: {matchLabels: {app: back}}}",
                "{ipBlock: {cidr: 10.0.0.0/8}}",
                "a peer has ipBlock",
            ),
            ("{matchLabels: {app: front}}", "{matchExpressions: []}", "a selector is by other than labels"),
        ] {
            let error = Policies::default().learn(&POLICIES.replacen(from, to, 1)).unwrap_err();
            assert_eq!(error.root_cause().to_string(), why);
        }
    }
}
