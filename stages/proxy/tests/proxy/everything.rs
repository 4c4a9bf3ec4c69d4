//! Every operation with every input, in one document.

use serde_json::{Value, json};

use crate::cluster::GIT;
use crate::provider::git;
use crate::support::{Running, events};

const DOCUMENT: &str = include_str!("everything.graphql");
const SCHEMA: &str = include_str!("../../schema.graphql");
/// What takes an OAuth application at a provider, and the input of it: that is done in the tests of those.
const BY_BROWSER: [&str; 3] = ["beginGitAuth", "finishGitAuth", "line"];

/// Whether a name stands in the document with one of these behind it.
fn stands(name: &str, behind: &[char]) -> bool {
    DOCUMENT.match_indices(name).any(|(at, _)| {
        let (begin, rest) = DOCUMENT.split_at(at);
        let is_begun = begin.chars().next_back().is_none_or(|c| !c.is_ascii_alphanumeric());
        is_begun && rest.strip_prefix(name).is_some_and(|rest| rest.starts_with(behind))
    })
}

/// Names of what a type of the schema holds, of those types that are meant.
fn fields(is_meant: impl Fn(&str) -> bool) -> Vec<&'static str> {
    let (mut found, mut within, mut described) = (Vec::new(), false, false);
    for line in SCHEMA.lines() {
        if line.trim() == "\"\"\"" {
            described = !described;
        }
        if described {
            continue;
        }
        match line.strip_prefix('\t') {
            None => within = is_meant(line),
            Some(field) if within => {
                let name = field.split(['(', ':']).next().unwrap_or_default();
                let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric());
                found.extend((is_name && name != field).then_some(name));
            }
            Some(_) => {}
        }
    }
    found
}

#[test]
fn the_document_holds_every_operation_and_every_input_of_the_schema() {
    let operations =
        fields(|line| matches!(line, "type Query {" | "type Mutation {" | "type Subscription {"));
    let inputs = fields(|line| line.starts_with("input "));
    assert!(operations.len() > 50 && inputs.len() > 80, "{} and {}", operations.len(), inputs.len());
    for name in operations.into_iter().filter(|name| !BY_BROWSER.contains(name)) {
        assert!(stands(name, &['(', ' ']), "{name} is not asked for");
    }
    for name in inputs.into_iter().filter(|name| !BY_BROWSER.contains(name)) {
        assert!(stands(name, &[':']), "the input {name} is not given");
    }
}

/// How an operation of the document begins: its kind and its name.
fn begin(line: &str) -> Option<(&str, &str)> {
    let (kind, rest) = line.split_once(' ')?;
    let is_one = matches!(kind, "query" | "mutation" | "subscription");
    is_one.then(|| (kind, rest.split(['(', ' ']).next().unwrap()))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_of_the_document_is_done() {
    let (mut running, _server) = crate::workflows::running().await;
    running.register().await;
    let bare = running.provider.with_repository("a.yaml", "a: 1\n");
    let variables = json!({"url": running.provider.url, "revision": git(&bare, &["rev-parse", "main"])});
    for (kind, name) in DOCUMENT.lines().filter_map(begin) {
        // Each act on a Rollout begins where it waits; Git integrations begin with none, and stay.
        if !name.starts_with("Git") {
            running.cluster.fill();
            running.cluster.remove(GIT);
        }
        let answer = asked(&running, kind, name, &variables).await;
        assert_eq!(answer.get("errors"), None, "{name}: {answer}");
        let data = answer["data"].as_object().unwrap();
        // Of what is removed nothing is told.
        let is_told = name == "GitRemove" || data.values().all(|value| !value.is_null());
        assert!(data.len() == 1 && is_told, "{name}: {answer}");
    }
}

/// What is answered to one of the document's operations; of a log its first item.
async fn asked(running: &Running, kind: &str, name: &str, variables: &Value) -> Value {
    let body = json!({"query": DOCUMENT, "operationName": name, "variables": variables});
    let asked = running.client.post(format!("{}/app-proxy/api/graphql", running.url));
    let asked = asked.header("authorization", &running.admin).json(&body);
    let is_log = kind == "subscription";
    let asked = if is_log { asked.header("accept", "text/event-stream") } else { asked };
    let text = asked.send().await.unwrap().text().await.unwrap();
    let item = if is_log { events(&text).first().unwrap().clone() } else { text };
    serde_json::from_str(&item).unwrap()
}
