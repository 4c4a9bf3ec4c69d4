//! Recorded calls as answers: what the product asks is looked up in what was asked then.

use std::collections::HashMap;

use bytes::Bytes;
use pipeline_core::Reason;
use serde_json::Value;
use serde_json::value::RawValue;
use stages_argocd::plan::{Fetch, Purpose, Response};

use super::git::Git;
use loadtest_sim::recordings::{CallLine, Case};

/// A path and its query, both decoded: how calls are matched whatever their escapes and order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Target {
    path: Vec<String>,
    query: Vec<(String, String)>,
}

impl Target {
    pub(super) fn of(path: &str) -> Self {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let mut query: Vec<_> = query
            .split('&')
            .filter(|pair| !pair.is_empty())
            .map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                (decode(name), decode(value))
            })
            .collect();
        query.sort();
        Self { path: path.split('/').filter(|part| !part.is_empty()).map(decode).collect(), query }
    }

    /// The last part of the path, e.g. `resource`.
    pub(super) fn call(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }

    /// The application that the call is about.
    pub(super) fn app(&self) -> &str {
        self.path.get(3).map_or("", String::as_str)
    }

    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(at, _)| at == name).map(|(_, value)| value.as_str())
    }

    /// Whether it reads an application itself, which is only done of a parent.
    pub(super) fn is_application(&self) -> bool {
        self.path.len() == 4
    }

    /// Whether both name the same thing, whatever else they say of it.
    fn is_about_the_same(&self, other: &Self) -> bool {
        const NAMING: [&str; 6] = ["namespace", "resourceName", "version", "group", "kind", "sourceIndex"];
        self.path == other.path && NAMING.iter().all(|name| self.value(name) == other.value(name))
    }

    pub(super) fn without(mut self, name: &str) -> Self {
        self.query.retain(|(at, _)| at != name);
        self
    }
}

fn decode(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'+' => out.push(b' '),
            b'%' => {
                let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
                match (digit(bytes.next()), digit(bytes.next())) {
                    (Some(high), Some(low)) => out.push(u8::try_from(high * 16 + low).unwrap_or(b'?')),
                    _ => out.push(b'%'),
                }
            }
            other => out.push(other),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The answers of one round, taken in the order in which they were given.
#[derive(Debug)]
pub(super) struct Answers<'a> {
    case: &'a Case,
    calls: Vec<(Target, &'a CallLine)>,
    used: HashMap<Target, usize>,
    /// Bodies that stand in for `managed-resources`; empty: it lists nothing.
    managed: Option<Bytes>,
    /// Says what upstream's Argo CD would not have said.
    git: Option<&'a Git>,
}

impl<'a> Answers<'a> {
    pub(super) fn new(case: &'a Case, calls: &[u64], managed: Option<Bytes>, git: Option<&'a Git>) -> Self {
        let find = |n: &u64| {
            let at = case.calls.binary_search_by_key(n, |call| call.n).ok();
            at.and_then(|at| case.calls.get(at)).or_else(|| case.calls.iter().find(|call| call.n == *n))
        };
        let calls = calls.iter().filter_map(find).map(|call| (Target::of(&call.path), call)).collect();
        Self { case, calls, used: HashMap::new(), managed, git }
    }

    /// The calls of the round.
    pub(super) fn calls(&self) -> &[(Target, &'a CallLine)] {
        &self.calls
    }

    /// What was answered then, and what Git says.
    pub(super) fn answer(&mut self, fetch: &Fetch) -> Response {
        let response = self.recorded(fetch);
        match self.git {
            Some(git) => git.answer(fetch, response),
            None => response,
        }
    }

    /// What was answered then; a call that was not made then is answered with "not found".
    fn recorded(&mut self, fetch: &Fetch) -> Response {
        if let Fetch::ManagedResources { .. } = fetch {
            let body = self.managed.clone().unwrap_or_else(|| Bytes::from_static(b"{\"items\":[]}"));
            return Response::Body(body);
        }
        // Then, the desired state was asked for without a revision, and versions always with one.
        let target = Target::of(&fetch.path(""));
        let (target, versions) = match fetch {
            Fetch::Manifests { purpose: Purpose::Desired, .. } => (target.without("revision"), Some(false)),
            Fetch::Manifests { purpose: Purpose::Versions, .. } => (target.without("revision"), Some(true)),
            _ => (target, None),
        };
        let exact = |call: &Target| match versions {
            None => *call == target,
            Some(_) => call.clone().without("revision") == target,
        };
        let matching = |matches: &dyn Fn(&Target) -> bool| -> Vec<_> {
            let wanted = |call: &Target| {
                versions.is_none_or(|versions| call.value("revision").is_some() == versions) && matches(call)
            };
            let found = self.calls.iter().filter(|(call, _)| wanted(call));
            found.map(|(call, line)| (call.clone(), *line)).collect()
        };
        let mut found = matching(&exact);
        if found.is_empty() {
            found = matching(&|call| call.is_about_the_same(&target));
        }
        let Some((first, _)) = found.first() else { return Response::NotFound };
        let turn = self.used.entry(first.clone()).or_default();
        let (_, line) = found.get(*turn).or(found.last()).cloned().unwrap_or_else(|| found[0].clone());
        *turn += 1;
        match self.case.answer(line) {
            Some(body) => classify(fetch, line.status, body),
            None => Response::Failed(Reason::CutShort),
        }
    }
}

/// What an answer means, by its status and text. What was no JSON was recorded as a JSON text.
pub(super) fn classify(fetch: &Fetch, status: u16, body: &RawValue) -> Response {
    let text = serde_json::from_str::<String>(body.get()).ok();
    let body = text.as_deref().unwrap_or(body.get());
    if (200..300).contains(&status) {
        return Response::Body(Bytes::copy_from_slice(body.as_bytes()));
    }
    let refusal = serde_json::from_str::<Value>(body).ok();
    let says = |text: &str| match &refusal {
        Some(Value::Object(refusal)) => {
            let field = |name: &str| refusal.get(name).and_then(Value::as_str).unwrap_or("");
            field("message").contains(text) || field("error").contains(text)
        }
        _ => body.contains(text),
    };
    let is_gone = status == 403 && matches!(fetch, Fetch::Parent { .. });
    if status == 404 || says("not found") || is_gone {
        return Response::NotFound;
    }
    if status == 500 && matches!(fetch, Fetch::Manifests { .. }) {
        return Response::GenerationError;
    }
    Response::Failed(match status {
        0 => Reason::Unreachable,
        401 => Reason::Unauthorized,
        403 => Reason::Forbidden,
        408 => Reason::Timeout,
        429 => Reason::RateLimited,
        500.. => Reason::ServerError,
        _ => Reason::Refused,
    })
}
