//! Values of the incumbent's chart, as values of this one. Every key either has a place here, or is named with why it
//! has none.

mod above;
mod bundled;
mod components;
mod older;
mod paths;
mod settle;

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use self::bundled::{Beside, Bundled};
use self::components::{app_proxy, reporter, router, sources, tunnel};
use self::paths::{at, set};
use crate::chart::{Chart, FOREIGN};
use crate::finding::nearest;
use crate::tree::{File, Node, Value};

/// What becomes of a key and all below it.
enum Fate {
    /// It is called so here.
    To(String),
    /// It has no meaning here: why.
    None(&'static str),
    /// What stands below it is looked at.
    Below,
}

/// A key without a place here, or one whose meaning needs a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Its path in the file.
    pub path: String,
    /// Its file, where it stands in one.
    pub file: Option<Arc<str>>,
    /// Its line; 0 where it stands in none.
    pub line: u64,
    /// Why it has none, and what to do.
    pub why: String,
}

/// What came of a file.
#[derive(Debug)]
pub struct Converted {
    /// The values here.
    pub values: Json,
    /// What was taken over: its path there and here.
    pub kept: Vec<(String, String)>,
    /// What was not, in the order of the file.
    pub notes: Vec<Note>,
    /// What stands before each path in the file: the key of a chart above, which has this one's values below it.
    under: String,
    /// Whether the file is one for the other chart, and none that was converted already.
    is_foreign: bool,
    /// Whether it was several files, so that a line alone says not where something stands.
    is_several: bool,
    /// The other chart's Argo CD.
    argocd: Bundled,
    /// What else the other chart brings along, as far as others ask it.
    beside: Beside,
}

const NO_SUCH_VALUE: &str = "this component has no such value here";
const IMAGE: &str = "the image is this runtime's: `image`";
const NAMES: &str = "names are made of the release's, no account is needed, and every pod is restricted";
const ARGOCD: &str = "Argo CD is no part of this chart: install its own chart beside it, with these values";
const REDIS: &str = "nothing here needs a Redis";
const OTHER: &str = "is no key that is known of the other chart";
const PART: &str = "is no part of this chart: install its own chart beside it, with these values";
const ONE_MONITOR: &str = "metrics.serviceMonitor serves every component here, and another one's was given as well: the later of the two is taken";
const DOTTED: &str = "is one key for Helm, dots and all: write its parts below each other";
const TEMPLATE: &str = "holds a template, and is a plain text here: write what it stands for";
const MANY_DIGITS: &str = "YAML takes it for a number and loses digits of it: write it in quotes";
const CONSTRAINT: &str =
    "a constraint's labelSelector named the other chart's labels; the pods' own are taken";

/// A key that has a place here.
struct Leaf<'a> {
    /// What stands before its path in the file.
    under: String,
    path: Vec<&'a str>,
    node: &'a Node,
    to: String,
}

/// Converts a file.
#[must_use]
pub fn convert(file: &File) -> Converted {
    let below = file.dependencies();
    match below.as_slice() {
        [] => {
            let mut converted = Converted::of(&file.root);
            let mut leaves = Vec::new();
            walk(&mut converted, &[], &file.root, &mut leaves);
            take(&mut converted, leaves);
            settle::settle(&mut converted);
            converted
        }
        below => above::convert(&file.root, below),
    }
}

/// Converts files that Helm is given together, later ones over earlier ones: what one leaves unsaid another may say, and only what none
/// of them says is as the other chart has it.
#[must_use]
pub fn convert_all(mut first: File, later: &[File]) -> Converted {
    for file in later {
        first.root.join(&file.root);
    }
    Converted { is_several: !later.is_empty(), ..convert(&first) }
}

impl Converted {
    /// Nothing yet, of these values.
    fn of(root: &Node) -> Self {
        Self {
            values: Json::Object(Map::new()),
            kept: Vec::new(),
            notes: Vec::new(),
            under: String::new(),
            is_foreign: root.entries().iter().all(|(key, _)| !is_own(key))
                || FOREIGN.iter().any(|key| root.get(key).is_some()),
            is_several: false,
            argocd: Bundled::of(root),
            beside: Beside::of(root),
        }
    }

    /// The values as YAML, with what has no place here in comments above them.
    ///
    /// # Errors
    /// When the values cannot be written.
    pub fn yaml(&self) -> Result<String, serde_saphyr::ser::Error> {
        let mut text = match self.kept.len() {
            1 => "# 1 key was taken over".to_owned(),
            many => format!("# {many} keys were taken over"),
        };
        // Writing to a text cannot fail.
        let _ = match self.notes.len() {
            0 => writeln!(text, "."),
            1 => writeln!(text, "; this one has no place here, or needs a word:"),
            many => writeln!(text, "; these {many} have no place here, or need a word:"),
        };
        for note in &self.notes {
            let path: String = note.path.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            // What the other chart has where nothing is said stands in no line.
            let line = match &note.file {
                Some(file) if self.is_several => format!(" ({file}, line {})", note.line),
                _ if note.line > 0 => format!(" (line {})", note.line),
                _ => String::new(),
            };
            let _ = writeln!(text, "#   {path}{line}: {}", note.why);
        }
        text.push_str(&serde_saphyr::to_string(&self.values)?);
        Ok(text)
    }

    fn note(&mut self, path: &[&str], node: &Node, why: impl Into<String>) {
        let path = format!("{}{}", self.under, path.join("."));
        self.notes.push(Note { path, file: node.file.clone(), line: node.line, why: why.into() });
    }

    fn put(&mut self, from: &[&str], to: &str, value: Json) {
        set(&mut self.values, to, value);
        self.kept.push((format!("{}{}", self.under, from.join(".")), to.to_owned()));
    }
}

/// Names what has no place here, and finds what has one.
fn walk<'a>(converted: &mut Converted, path: &[&'a str], node: &'a Node, leaves: &mut Vec<Leaf<'a>>) {
    match fate(path, node) {
        Fate::None(OTHER) => {
            let meant = meant(path).map(|meant| format!(": did you mean '{meant}'?"));
            converted.note(path, node, format!("{OTHER}{}", meant.unwrap_or_default()));
        }
        Fate::None(why) => converted.note(path, node, why),
        Fate::Below if !node.entries().is_empty() => {
            for (key, node) in node.entries() {
                walk(converted, &[path, &[key.as_str()]].concat(), node, leaves);
            }
        }
        // An empty file, or a group that nothing stands in.
        Fate::Below if path.is_empty() => {}
        Fate::Below if matches!(node.value, Value::Map(_) | Value::Null) => {
            converted.note(path, node, "holds nothing");
        }
        Fate::Below => converted.note(path, node, "is not the mapping that stands there"),
        Fate::To(_) if node.value == Value::Null => converted.note(path, node, "holds nothing"),
        Fate::To(to) => leaves.push(Leaf { under: converted.under.clone(), path: path.to_vec(), node, to }),
    }
}

/// Takes over what has a place here: what is said of all reporters below what is said of one, wherever either stands.
fn take(converted: &mut Converted, mut leaves: Vec<Leaf<'_>>) {
    older::leave_out(converted, &mut leaves);
    leaves.sort_by_key(|leaf| !is_of_all(&leaf.path));
    let under = std::mem::take(&mut converted.under);
    for Leaf { under, path, node, to } in leaves {
        converted.under = under;
        keep(converted, &path, &to, node);
    }
    converted.under = under;
    converted.notes.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
}

/// Whether something is said of all reporters.
fn is_of_all(path: &[&str]) -> bool {
    matches!(path, ["global", "event-reporters", ..])
}

/// The key of the other chart that one which it does not have is nearest to.
fn meant(path: &[&str]) -> Option<String> {
    let (last, group) = path.split_last()?;
    if group.is_empty() {
        let global = format!("global.{last}");
        return match has(&global) {
            true => Some(global),
            false => nearest(last, FOREIGN.iter().copied().chain(["argo-cd", "global"])),
        };
    }
    // What stands below `global` is called alike in both.
    let group = format!("{}.", group.join("."));
    let below = Chart::get().values.iter().filter_map(|value| value.path.strip_prefix(&group));
    nearest(last, below.filter_map(|rest| rest.split('.').next()))
}

fn keep(converted: &mut Converted, path: &[&str], to: &str, node: &Node) {
    let mut value = node.json();
    match to {
        // Many programs take a host and a port as well.
        "global.httpProxy" | "global.httpsProxy" => {
            let text = node.text().unwrap_or_default();
            if !text.is_empty() && !text.contains("://") {
                converted.note(path, node, "is an address here: http:// was set before it");
                value = format!("http://{text}").into();
            }
        }
        // It means the same in both charts, or is this one's.
        _ if path.join(".") == to && to != "global.imagePullSecrets" && as_wanted(to, &value).is_none() => {}
        "global.imagePullSecrets" => {
            value = pull_secrets(at(&converted.values, to), &value);
        }
        "reporter.applicationNamespaces" | "tunnelClient.allow" => {
            let text = node.text().unwrap_or_default();
            value = text.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        }
        // The incumbent's is a host alone, and its servers speak frp.
        "tunnelClient.to" => {
            let host = node.text().unwrap_or_default();
            value = if host.contains("://") { host.into() } else { format!("https://{host}").into() };
        }
        // There it is said that the hook does not run.
        "validation.enabled" => value = (!is_true(node)).into(),
        "appProxy.config.appProxy.skipGitPermissionValidation" => value = is_true(node).into(),
        // It is there where one component asks for it.
        "metrics.serviceMonitor.enabled" => {
            value = (is_true(node) || at(&converted.values, to) == Some(&Json::Bool(true))).into();
        }
        _ if to.starts_with("metrics.serviceMonitor.") => {
            if at(&converted.values, to).is_some_and(|before| *before != value) {
                converted.note(path, node, ONE_MONITOR);
            }
        }
        _ if to.ends_with(".log.level") && node.text().is_some() => {
            match level(node.text().unwrap_or_default()) {
                Some(level) => value = level.into(),
                None => {
                    return converted.note(path, node, "is no level here: error, warn, info, debug or trace");
                }
            }
        }
        _ if to.contains(".extraEnv.") && node.text().is_some_and(|text| text.contains("{{")) => {
            converted.note(path, node, TEMPLATE);
        }
        _ if to.ends_with("topologySpreadConstraints") => {
            let mut cut = false;
            for constraint in value.as_array_mut().into_iter().flatten() {
                cut |= constraint.as_object_mut().is_some_and(|c| c.remove("labelSelector").is_some());
            }
            if cut {
                converted.note(path, node, CONSTRAINT);
            }
        }
        _ if to.ends_with(".affinity") && !node.entries().is_empty() => {
            converted.note(
                path,
                node,
                "was taken over as it is: selectors in it may name the other chart's labels",
            );
        }
        _ => match as_wanted(to, &value) {
            Some(Json::Null) => return converted.note(path, node, MANY_DIGITS),
            Some(other) => {
                if other.is_boolean() && value != "" {
                    let why = format!(
                        "stood in quotes there, where Helm takes any text for true: here it is {other}"
                    );
                    converted.note(path, node, why);
                }
                value = other;
            }
            None => {}
        },
    }
    if let ["global", "event-reporters", rest @ ..] = path
        && let Fate::To(other) = reporter("resourceReporter", rest)
        && other != to
    {
        let before = at(&converted.values, &other).cloned().unwrap_or_default();
        set(&mut converted.values, &other, laid(before, Some(value.clone())));
    }
    let before = at(&converted.values, to).filter(|_| to != "global.imagePullSecrets").cloned();
    let value = match before {
        Some(before) => laid(before, Some(value)),
        None => value,
    };
    converted.put(path, to, value);
}

/// The Secrets that images are pulled with, and more of them, each once.
fn pull_secrets(known: Option<&Json>, more: &Json) -> Json {
    let mut all: Vec<Json> = known.and_then(Json::as_array).cloned().unwrap_or_default();
    for one in more.as_array().into_iter().flatten() {
        // Some charts take their names alone.
        let one = match one {
            Json::String(name) => serde_json::json!({ "name": name }),
            one => one.clone(),
        };
        if !all.contains(&one) {
            all.push(one);
        }
    }
    all.into()
}

/// A level of logs by this program's name for it; those of others are written in either case, and some have more of them.
fn level(text: &str) -> Option<&'static str> {
    Some(match text.to_ascii_lowercase().as_str() {
        "error" | "fatal" | "critical" => "error",
        "warn" | "warning" => "warn",
        "info" => "info",
        "debug" | "http" | "verbose" => "debug",
        "trace" | "silly" => "trace",
        _ => return None,
    })
}

/// One value over another, as Helm lays them.
fn laid(under: Json, over: Option<Json>) -> Json {
    match (under, over) {
        (under, None) => under,
        (Json::Object(mut under), Some(Json::Object(over))) => {
            for (key, value) in over {
                let below = under.remove(&key).unwrap_or_default();
                under.insert(key, laid(below, Some(value)));
            }
            under.into()
        }
        (_, Some(over)) => over,
    }
}

/// A value as the type that stands at a path here, where it has another: templates without a schema take a number in quotes, or a
/// name of digits without them. Null where digits are lost.
fn as_wanted(to: &str, value: &Json) -> Option<Json> {
    let here = Chart::get().values.iter().find(|value| value.path == to)?;
    let takes = |name: &str| match &here.schema["type"] {
        Json::String(only) => only == name,
        Json::Array(names) => names.iter().any(|one| one == name),
        _ => true,
    };
    match value {
        // As older versions have it: `tls: {}`.
        Json::Object(none) if none.is_empty() && takes("array") && !takes("object") => {
            Some(Json::Array(Vec::new()))
        }
        // One where a list is wanted: `hosts: runtime.example.com`.
        Json::String(_) | Json::Object(_) if takes("array") && !takes("string") && !takes("object") => {
            Some(Json::Array(vec![value.clone()]))
        }
        Json::String(text) if !takes("string") => match text.trim() {
            text if takes("boolean") => switch(text).map(Json::from),
            text if takes("integer") => text.parse::<i64>().ok().map(Json::from),
            _ => None,
        },
        Json::Number(number) if takes("string") && !takes("integer") => {
            let is_cut = number.is_f64() && number.as_f64().is_some_and(|number| number.abs() >= 1e15);
            Some(if is_cut { Json::Null } else { number.to_string().into() })
        }
        Json::Bool(truth) if takes("string") => Some(truth.to_string().into()),
        _ => None,
    }
}

/// What a path of the incumbent's means here.
fn fate(path: &[&str], node: &Node) -> Fate {
    let to = |to: String| Fate::To(to);
    match path {
        [] | ["global" | "event-reporters" | "cf-argocd-extras" | "internal-router"] => Fate::Below,
        ["global", "codefresh" | "runtime" | "integrations", ..] => shared(path),
        ["global", "external-argo-cd", rest @ ..] => {
            let head = ["global", "integrations", "argo-cd"];
            match rest {
                [] => Fate::Below,
                ["redis", ..] => Fate::None(REDIS),
                ["auth", rest @ ..] | rest @ ["username" | "password" | "passwordSecretKeyRef", ..] => {
                    shared(&[&head[..], &["server", "auth"], rest].concat())
                }
                rest => shared(&[&head[..], rest].concat()),
            }
        }
        ["internal-router" | "app-proxy" | "argo-gateway" | "tunnel-client", "imagePullSecrets"]
        | ["global", "event-reporters", "imagePullSecrets"]
        | ["event-reporters", "runtime-event-reporter" | "cluster-event-reporter", "imagePullSecrets"] => {
            match node.items() {
                [] => Fate::None("global.imagePullSecrets serves all pods"),
                _ => to("global.imagePullSecrets".to_owned()),
            }
        }
        ["global", "event-reporters", rest @ ..]
        | ["event-reporters", "runtime-event-reporter", rest @ ..]
        | ["cf-argocd-extras", "eventReporter", rest @ ..] => reporter("reporter", rest),
        ["global", "external-argo-rollouts"] => {
            Fate::None("resourceReporter reports Rollouts, whoever installed what works on them")
        }
        // Charts above this one share the rest of `global`.
        ["global", key] if !key.contains('.') => to(format!("global.{key}")),
        ["global", _] => Fate::None(DOTTED),
        ["event-reporters", "cluster-event-reporter", rest @ ..] => reporter("resourceReporter", rest),
        ["event-reporters", "events"] => {
            Fate::None("this reporter left the other chart; `reporter` reports Applications here")
        }
        ["event-reporters", "rollout" | "rollout-reporter" | "workflow" | "workflow-reporter"] => Fate::None(
            "this reporter left the other chart; resourceReporter reports Rollouts and Workflows here",
        ),
        ["event-reporters", ..] => Fate::None(OTHER),
        ["cf-argocd-extras", "sourcesServer", rest @ ..] | ["argo-gateway", rest @ ..] => sources(rest),
        ["cf-argocd-extras", "libraryMode"] => Fate::None("this chart renders these itself"),
        ["cf-argocd-extras", _] => Fate::None(OTHER),
        ["internal-router", "ipv6"] => Fate::Below,
        ["internal-router", "ipv6", "enabled"] => to("ipv6.enabled".to_owned()),
        ["internal-router", "clusterDomain"] => to("router.config.router.dns.clusterDomain".to_owned()),
        ["internal-router", rest @ ..] => router(rest, node),
        ["tunnel-client", rest @ ..] => tunnel(rest),
        ["argo-cd"] => Fate::Below,
        ["argo-cd", "enabled"] => Fate::None(
            "the Argo CD that is there stays: it is not taken over, and argo-cd.enabled of this chart makes a new one",
        ),
        ["argo-cd", "configs" | "openshift"] | ["argo-cd", "configs", "params"] => Fate::Below,
        ["argo-cd", "configs", "params", "application.namespaces"] if node.text().is_some() => {
            to("reporter.applicationNamespaces".to_owned())
        }
        // As the first versions have it, whose Argo CD brought the reporter along.
        ["argo-cd", "eventReporter", rest @ ..] => reporter("reporter", rest),
        ["argo-cd", "acrController"] if has("changeRevision") => Fate::Below,
        ["argo-cd", "acrController", "enabled"] => to("changeRevision.enabled".to_owned()),
        ["argo-cd", "openshift", "enabled"] => to("openshift.enabled".to_owned()),
        ["argo-cd", "configs", "tls"] => Fate::None(
            "are certificates of Git servers: give them to Argo CD, and a Secret with them as appProxy.git.caSecretKeyRef",
        ),
        ["argo-cd", ..] => Fate::None(ARGOCD),
        ["redis" | "redis-ha" | "redis-secret-init"] => Fate::None(REDIS),
        ["installer"] => Fate::Below,
        ["installer", "skipValidation"] if matches!(node.value, Value::Bool(_) | Value::Text(_)) => {
            to("validation.enabled".to_owned())
        }
        ["installer", "image"] => Fate::None(IMAGE),
        ["installer", "argoCdVersionCheck"] => Fate::None(
            "nothing is found by labels: where Argo CD's pods carry others than its own, give networkPolicy.extraEgress",
        ),
        ["installer", ..] => Fate::None("the hook of `validation` has no such value"),
        [key] if *key == "anchors" || key.starts_with("x-") || key.starts_with('.') => {
            Fate::None("anchors were expanded where they are used")
        }
        [
            "sealed-secrets"
            | "argo-workflows"
            | "argo-events"
            | "argo-rollouts"
            | "garage-workflows-artifact-storage",
        ] => Fate::None(PART),
        ["app-proxy", rest @ ..] => app_proxy(rest, node),
        ["gitops-operator"] => Fate::None("no promotions and no restricted Git sources are made here"),
        ["codefreshWorkflowLogStoreCM"] => Fate::None(
            "no ConfigMap of a store of logs is made: give Argo Workflows a repository of artifacts",
        ),
        [key] if key.contains('.') => Fate::None(DOTTED),
        ["enabled"] => to("enabled".to_owned()),
        // What was converted already, or written for this chart.
        [key, ..] if is_own(key) => shared(path),
        _ => Fate::None(OTHER),
    }
}

/// How a switch stands; templates without a schema take it in quotes as well.
fn truth(node: &Node) -> Option<bool> {
    match &node.value {
        Value::Bool(truth) => Some(*truth),
        Value::Text(text) => switch(text),
        _ => None,
    }
}

/// How a switch stands that was written as a text.
fn switch(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "y" => Some(true),
        "false" | "no" | "off" | "n" | "" => Some(false),
        _ => None,
    }
}

/// Whether a switch is on.
fn is_true(node: &Node) -> bool {
    truth(node) == Some(true)
}

/// Whether this chart has a component of a name, which the other has not.
fn is_own(key: &str) -> bool {
    has(key) && !key.contains('.') && !["global", "argo-cd"].contains(&key)
}

/// Whether the chart has a group of values, or a value.
fn has(path: &str) -> bool {
    let within = |a: &str, b: &str| a == b || a.strip_prefix(b).is_some_and(|rest| rest.starts_with('.'));
    // Keys of what is a mapping as a whole are no values of their own.
    Chart::get()
        .values
        .iter()
        .any(|value| within(&value.path, path) || (value.default.is_object() && within(path, &value.path)))
}

/// A value of a component, where it has such a one.
fn of(component: &str, key: &str) -> Fate {
    let path = format!("{component}.{key}");
    if has(&path) { Fate::To(path) } else { Fate::None(NO_SUCH_VALUE) }
}

/// What stands under the same path here, where it does.
fn shared(path: &[&str]) -> Fate {
    let here = path.join(".");
    let gone = match path {
        path if path.iter().any(|key| key.contains('.')) => Some(DOTTED),
        ["global", "runtime", "repoCredentialsTemplate", ..] => {
            Some("nothing here asks Git for repositories; give this to Argo CD")
        }
        ["global", "runtime", "eventBus" | "eventBusName", ..] => {
            Some("no Argo Events, and no bus of theirs: `nats` is the bus of this chart's own components")
        }
        ["global", "runtime", "argoCDApplication", ..] => {
            Some("no Application of the runtime is made: Argo CD takes this chart as any other")
        }
        ["global", "codefresh", "gitIntegration" | "iscRepo", ..] => {
            Some("is a setting of the account: the platform holds it")
        }
        ["global", "integrations", "argo-cd", "redis", ..] => Some(REDIS),
        _ => None,
    };
    if let Some(gone) = gone {
        return Fate::None(gone);
    }
    let values = &Chart::get().values;
    let below = format!("{here}.");
    if values.iter().any(|value| value.path == here) {
        Fate::To(here)
    } else if values.iter().any(|value| value.path.starts_with(&below)) {
        Fate::Below
    } else {
        Fate::None(OTHER)
    }
}
