//! Least privilege, judged by the API server's own audit log.
//!
//! takes: the audit log, and the manifest that `gitops-runtime rbac print` printed - gives: requests that were
//! refused, rights that were granted and never used, requests that were allowed without a right that was granted,
//! and (not a failure) what everybody may ask for: discovery, `/version`
//! calls: nothing - fails: when a line of the log is no audit event, or the manifest grants by wildcard
//!
//! A right counts as used when a request with it was answered with 2xx. A watch is answered when it begins: one
//! that still runs, or was cut off by the end of the API server, has no other line. A request's stages count once.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use anyhow::{Context as _, bail, ensure};
use jiff::Timestamp;
use serde::Deserialize;

/// How a failure begins that tells of a right which was never used with success.
pub const UNUSED: &str = "granted and never used: ";

/// One granted right: one verb on one resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    /// The API group; empty for the core group.
    pub group: String,
    /// The resource, in the plural; with `/` and the subresource, if it is about one.
    pub resource: String,
    /// What may be done with it.
    pub verb: String,
    /// The only object it holds for; `None` for all.
    pub name: Option<String>,
    /// The only namespace it holds in; `None` for all.
    pub namespace: Option<String>,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, resource, verb, name, namespace } = self;
        write!(f, "{verb} {resource}")?;
        if !group.is_empty() {
            write!(f, ".{group}")?;
        }
        if let Some(name) = name {
            write!(f, " called {name}")?;
        }
        if let Some(namespace) = namespace {
            write!(f, " in {namespace}")?;
        }
        Ok(())
    }
}

impl Rule {
    fn allows(&self, asked: &Self) -> bool {
        (&self.group, &self.resource, &self.verb) == (&asked.group, &asked.resource, &asked.verb)
            && (self.name.is_none() || self.name == asked.name)
            && (self.namespace.is_none() || self.namespace == asked.namespace)
    }
}

/// What an audit log says of one user.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// What is wrong: one line each; empty when the rights are exactly those that were needed.
    pub failures: Vec<String>,
    /// What was asked for, and is allowed to everybody: one line each.
    pub beside: Vec<String>,
    /// How often each right was used with success.
    pub used: BTreeMap<Rule, usize>,
    /// Requests of the user that were answered.
    pub requests: usize,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} requests", self.requests)?;
        for (rule, times) in &self.used {
            write!(f, ", {times} x {rule}")?;
        }
        for beside in &self.beside {
            write!(f, ", beside the rights: {beside}")?;
        }
        for failure in &self.failures {
            write!(f, "\n  {failure}")?;
        }
        Ok(())
    }
}

impl Verdict {
    /// How often each right was used, and what was asked for beside the rights.
    #[must_use]
    pub fn summary(&self) -> String {
        Self { failures: Vec::new(), ..self.clone() }.to_string()
    }

    /// What is wrong but for failures that `is_argued`; that the log holds no request at all is wrong too.
    pub fn wrong(&self, is_argued: impl Fn(&str) -> bool) -> Vec<String> {
        let none = (self.requests == 0).then(|| "the audit log holds no request of it".to_owned());
        self.failures.iter().filter(|what| !is_argued(what)).cloned().chain(none).collect()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    kind: String,
    metadata: Metadata,
    #[serde(default)]
    rules: Vec<Rules>,
    role_ref: Option<RoleRef>,
    #[serde(default)]
    subjects: Vec<Subject>,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    namespace: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Rules {
    api_groups: Vec<String>,
    resources: Vec<String>,
    verbs: Vec<String>,
    #[serde(default)]
    resource_names: Vec<String>,
}

#[derive(Deserialize)]
struct RoleRef {
    kind: String,
    name: String,
}

#[derive(Deserialize)]
struct Subject {
    kind: String,
    name: String,
    #[serde(default)]
    namespace: String,
}

fn documents(manifest: &str) -> anyhow::Result<Vec<Document>> {
    serde_saphyr::from_multiple(manifest).context("read the manifest of rights")
}

/// The user that a manifest of `gitops-runtime rbac print` is about, as the API server calls it.
pub fn user(manifest: &str) -> anyhow::Result<String> {
    let documents = documents(manifest)?;
    let mut accounts = documents.iter().filter(|document| document.kind == "ServiceAccount");
    let (Some(account), None) = (accounts.next(), accounts.next()) else {
        bail!("the manifest of rights does not hold exactly one ServiceAccount");
    };
    let namespace = account.metadata.namespace.as_deref().context("the ServiceAccount has no namespace")?;
    Ok(format!("system:serviceaccount:{namespace}:{}", account.metadata.name))
}

/// Reads the rights that a manifest of `gitops-runtime rbac print` grants to its ServiceAccount: those of roles that
/// are bound to it, where they are bound.
pub fn granted(manifest: &str) -> anyhow::Result<Vec<Rule>> {
    let user = user(manifest)?;
    let documents = documents(manifest)?;
    let mut rules = BTreeSet::new();
    for binding in &documents {
        let Some(role_ref) = &binding.role_ref else { continue };
        let is_user = |subject: &Subject| {
            subject.kind == "ServiceAccount"
                && format!("system:serviceaccount:{}:{}", subject.namespace, subject.name) == user
        };
        if !binding.subjects.iter().any(is_user) {
            continue;
        }
        // A ClusterRole has no namespace, whatever binds it.
        let place = binding.metadata.namespace.as_ref().filter(|_| role_ref.kind == "Role");
        let role = documents.iter().find(|role| {
            role.kind == role_ref.kind
                && role.metadata.name == role_ref.name
                && role.metadata.namespace.as_ref() == place
        });
        let role = role.with_context(|| {
            format!("the {} {} that is bound does not exist", role_ref.kind, role_ref.name)
        })?;
        for rule in &role.rules {
            rules.extend(flat(rule, binding.metadata.namespace.as_deref())?);
        }
    }
    ensure!(!rules.is_empty(), "the manifest grants nothing");
    Ok(rules.into_iter().collect())
}

/// A rule for each verb, resource and name.
fn flat(rule: &Rules, namespace: Option<&str>) -> anyhow::Result<Vec<Rule>> {
    let everything = [&rule.api_groups, &rule.resources, &rule.verbs, &rule.resource_names];
    ensure!(
        !everything.into_iter().flatten().any(|text| text.contains('*')),
        "the manifest grants by wildcard"
    );
    let names = match rule.resource_names.as_slice() {
        [] => vec![None],
        names => names.iter().cloned().map(Some).collect(),
    };
    let mut flat = Vec::new();
    for group in &rule.api_groups {
        for resource in &rule.resources {
            for verb in &rule.verbs {
                flat.extend(names.iter().map(|name| Rule {
                    group: group.clone(),
                    resource: resource.clone(),
                    verb: verb.clone(),
                    name: name.clone(),
                    namespace: namespace.map(str::to_owned),
                }));
            }
        }
    }
    Ok(flat)
}

/// A line of an audit log, as far as it is read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    #[serde(rename = "auditID")]
    id: String,
    stage: String,
    #[serde(rename = "requestURI")]
    uri: String,
    verb: String,
    user: User,
    object_ref: Option<ObjectRef>,
    response_status: Option<Status>,
    request_received_timestamp: Timestamp,
}

#[derive(Deserialize)]
struct User {
    #[serde(default)]
    username: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ObjectRef {
    resource: String,
    namespace: Option<String>,
    name: Option<String>,
    api_group: String,
    subresource: Option<String>,
}

#[derive(Deserialize)]
struct Status {
    #[serde(default)]
    code: u16,
}

/// One request and its answer.
struct Request {
    /// What was asked for; `None` when it is no resource.
    asked: Option<Rule>,
    verb: String,
    path: String,
    code: u16,
    at: Timestamp,
}

/// The user's requests that were answered, each once.
fn requests(log: &str, user: &str) -> anyhow::Result<Vec<Request>> {
    let mut found: HashMap<String, Request> = HashMap::new();
    let mut order = Vec::new();
    for (number, line) in log.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let line: Line = serde_json::from_str(line)
            .with_context(|| format!("read line {} of the audit log", number + 1))?;
        let answered = matches!(line.stage.as_str(), "ResponseStarted" | "ResponseComplete" | "Panic");
        let Some(code) = line.response_status.map(|status| status.code).filter(|_| answered) else {
            continue;
        };
        if line.user.username != user {
            continue;
        }
        let asked = line.object_ref.filter(|object| !object.resource.is_empty()).map(|object| Rule {
            group: object.api_group,
            resource: match object.subresource {
                Some(subresource) => format!("{}/{subresource}", object.resource),
                None => object.resource,
            },
            verb: line.verb.clone(),
            name: object.name,
            namespace: object.namespace,
        });
        let path = line.uri.split('?').next().unwrap_or_default().to_owned();
        let at = line.request_received_timestamp;
        let request = Request { asked, verb: line.verb, path, code, at };
        // The later stage knows better: a watch that began well may have ended with a panic.
        if found.insert(line.id.clone(), request).is_none() {
            order.push(line.id);
        }
    }
    Ok(order.iter().filter_map(|id| found.remove(id)).collect())
}

/// Everybody whom the log has a request of, by the names that the API server calls them.
pub fn users(log: &str) -> anyhow::Result<BTreeSet<String>> {
    let mut users = BTreeSet::new();
    for (number, line) in log.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let line: Line = serde_json::from_str(line)
            .with_context(|| format!("read line {} of the audit log", number + 1))?;
        users.insert(line.user.username);
    }
    Ok(users)
}

/// Whether everybody who has a name may ask for it: the built-in role `system:basic-user`.
fn is_everybodys(asked: &Rule) -> bool {
    asked.verb == "create"
        && matches!(
            (asked.group.as_str(), asked.resource.as_str()),
            ("authorization.k8s.io", "selfsubjectaccessreviews" | "selfsubjectrulesreviews")
                | ("authentication.k8s.io", "selfsubjectreviews")
        )
}

/// Judges what `user` (as [`user`] gives it) did, by the lines of an audit log.
pub fn verdict(log: &str, user: &str, granted: &[Rule]) -> anyhow::Result<Verdict> {
    verdict_over_starts(log, user, granted, &[])
}

/// The same where the API server was started at these moments. One that has just begun to serve has yet to read who may do what:
/// what it refuses of what is granted is no failure where it had not allowed the same since its start, and allows it later.
pub fn verdict_over_starts(
    log: &str,
    user: &str,
    granted: &[Rule],
    starts: &[Timestamp],
) -> anyhow::Result<Verdict> {
    let mut allowed: BTreeMap<&Rule, Timestamp> = BTreeMap::new();
    let requests = requests(log, user)?;
    let mut verdict = Verdict { requests: requests.len(), ..Verdict::default() };
    let mut refused: BTreeMap<String, usize> = BTreeMap::new();
    let mut early = Vec::new();
    let mut stray = BTreeSet::new();
    let mut beside = BTreeSet::new();
    for Request { asked, verb, path, code, at } in &requests {
        let right = asked.as_ref().and_then(|asked| granted.iter().find(|rule| rule.allows(asked)));
        if let Some(right) = right.filter(|_| (200..300).contains(code)) {
            allowed.entry(right).and_modify(|last| *last = (*last).max(*at)).or_insert(*at);
        }
        let started = starts.iter().filter(|start| *start <= at).max();
        let is_early =
            |(right, started): (&Rule, &Timestamp)| allowed.get(right).is_none_or(|last| last < started);
        let what = asked.as_ref().map_or_else(|| format!("{verb} {path}"), Rule::to_string);
        if let Some((right, _)) = right.zip(started).filter(|both| *code == 403 && is_early(*both)) {
            early.push((right, at, what));
            continue;
        }
        if matches!(code, 401 | 403) {
            *refused.entry(format!("answered {code}: {what}")).or_default() += 1;
            continue;
        }
        let Some(asked) = asked else {
            beside.insert(what);
            continue;
        };
        // What another right is a part of is used too: the rights are to be the least.
        let mut covered = false;
        for rule in granted.iter().filter(|rule| rule.allows(asked)) {
            covered = true;
            if (200..300).contains(code) {
                *verdict.used.entry(rule.clone()).or_default() += 1;
            }
        }
        if !covered && is_everybodys(asked) {
            beside.insert(what);
        } else if !covered {
            stray.insert(format!("answered {code} without a right that was granted: {what}"));
        }
    }
    // Its excuse ends with the log.
    for (right, at, what) in early {
        if allowed.get(right).is_none_or(|last| last <= at) {
            *refused.entry(format!("answered 403: {what}")).or_default() += 1;
        }
    }
    verdict.failures.extend(refused.iter().map(|(what, times)| match times {
        1 => what.clone(),
        times => format!("{what} ({times} times)"),
    }));
    verdict.failures.extend(stray);
    for rule in granted.iter().filter(|rule| !verdict.used.contains_key(rule)) {
        verdict.failures.push(format!("{UNUSED}{rule}"));
    }
    verdict.beside = beside.into_iter().collect();
    Ok(verdict)
}
