//! What the chart takes: its `values.yaml`, read with its comments. The schema and the table of documentation are made
//! of it, and unknown keys are told by it.

use std::fmt::Write as _;
use std::sync::OnceLock;

use serde_json::{Map, Value as Json, json};

use crate::tree::{File, Node, Value as Tree};

const VALUES: &str = include_str!("../../../helm/gitops-runtime/values.yaml");
/// Keys of the incumbent's chart that this one does not take: its templates say what to do about them.
pub(crate) const FOREIGN: &[&str] = &[
    "anchors",
    "app-proxy",
    "argo-events",
    "argo-gateway",
    "argo-rollouts",
    "argo-workflows",
    "cf-argocd-extras",
    "codefreshWorkflowLogStoreCM",
    "event-reporters",
    "garage-workflows-artifact-storage",
    "gitops-operator",
    "installer",
    "internal-router",
    "redis",
    "redis-ha",
    "redis-secret-init",
    "sealed-secrets",
    "tunnel-client",
];

/// Keys of the incumbent's chart below `global`, in one version or another of it, that this chart does not take.
pub(crate) const FOREIGN_BELOW: &[&str] = &[
    "global.codefresh.gitIntegration",
    "global.codefresh.iscRepo",
    "global.event-reporters",
    "global.external-argo-cd",
    "global.external-argo-rollouts",
    "global.runtime.argoCDApplication",
    "global.runtime.eventBus",
    "global.runtime.eventBusName",
    "global.runtime.repoCredentialsTemplate",
];

/// A value that the chart takes.
#[derive(Debug)]
pub struct Value {
    /// Its path, with dots.
    pub path: String,
    /// What it is for.
    pub text: String,
    /// Its JSON schema.
    pub schema: Json,
    /// Its default.
    pub default: Json,
}

/// All that the chart takes.
#[derive(Debug)]
pub struct Chart {
    /// The defaults, as a file of values.
    pub defaults: Node,
    /// Each value, in the order of the file.
    pub values: Vec<Value>,
    schema: Json,
}

impl Chart {
    /// The chart of this version.
    ///
    /// # Panics
    /// Never: a test reads the file that is built in.
    pub fn get() -> &'static Self {
        static CHART: OnceLock<Chart> = OnceLock::new();
        #[expect(clippy::expect_used, reason = "the file is built in, and a test reads it")]
        CHART.get_or_init(|| Self::read(VALUES).expect("values.yaml of the chart"))
    }

    fn read(text: &str) -> Result<Self, String> {
        let mut defaults = File::read("values.yaml", text).map_err(|error| error.why.to_owned())?.root;
        let lines: Vec<&str> = text.lines().collect();
        let mut values = Vec::new();
        let mut schema = group(&defaults, "", &lines, &mut values)?;
        if let Some(root) = schema.as_object_mut() {
            root.insert("$schema".into(), "http://json-schema.org/draft-07/schema#".into());
            root.insert("title".into(), "Values of the chart gitops-runtime".into());
        }
        if let Some(properties) = schema["properties"].as_object_mut() {
            // What charts above this one set.
            properties.insert("enabled".into(), json!({"type": "boolean"}));
            // The templates say what to do about them: a schema could only refuse them.
            properties.extend(FOREIGN.iter().map(|key| ((*key).to_owned(), Json::Bool(true))));
        }
        forget_file(&mut defaults);
        Ok(Self { defaults, values, schema })
    }

    /// The JSON schema of a file of values.
    #[must_use]
    pub fn schema(&self) -> &Json {
        &self.schema
    }

    /// The table of documentation, in Markdown.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = "| value | default | what |\n|---|---|---|\n".to_owned();
        for value in &self.values {
            // Writing to a text cannot fail.
            let _ = writeln!(
                text,
                "| `{}` | `{}` | {} |",
                value.path,
                value.default,
                value.text.replace('|', "\\|")
            );
        }
        text
    }
}

fn forget_file(node: &mut Node) {
    node.file = None;
    node.line = 0;
    match &mut node.value {
        Tree::Map(entries) => entries.iter_mut().for_each(|(_, node)| forget_file(node)),
        Tree::List(items) => items.iter_mut().for_each(forget_file),
        _ => {}
    }
}

/// The schema of a mapping whose keys are known.
fn group(node: &Node, path: &str, lines: &[&str], values: &mut Vec<Value>) -> Result<Json, String> {
    let mut properties = Map::new();
    for (key, node) in node.entries() {
        let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        let (text, hint) = comment(node.line, lines).map_err(|error| format!("{below}: {error}"))?;
        let schema = match text {
            None if !node.entries().is_empty() => group(node, &below, lines, values)?,
            None => return Err(format!("{below}: has no comment that begins with --")),
            Some(text) => {
                let mut schema = Map::from_iter([("description".to_owned(), Json::from(text.clone()))]);
                schema.insert("type".into(), kind(node).into());
                schema.extend(hint);
                let schema = Json::Object(schema);
                values.push(Value { path: below, text, schema: schema.clone(), default: node.json() });
                schema
            }
        };
        properties.insert(key.clone(), schema);
    }
    // Charts above this one share `global`.
    let open = path == "global";
    Ok(json!({"type": "object", "additionalProperties": open, "properties": properties}))
}

fn kind(node: &Node) -> &'static str {
    match &node.value {
        Tree::Null | Tree::Text(_) => "string",
        Tree::Bool(_) => "boolean",
        Tree::Number(number) if number.is_f64() => "number",
        Tree::Number(_) => "integer",
        Tree::List(_) => "array",
        Tree::Map(_) => "object",
    }
}

/// What the comment above a line says of the key there: its text, and its part of the schema.
fn comment(line: u64, lines: &[&str]) -> Result<(Option<String>, Map<String, Json>), String> {
    let (mut text, mut hint) = (None, Map::new());
    let above = usize::try_from(line).unwrap_or_default().saturating_sub(1);
    let comments =
        lines.iter().take(above).rev().map(|line| line.trim()).take_while(|line| line.starts_with('#'));
    for comment in comments {
        if let Some(said) = comment.strip_prefix("# -- ") {
            text = Some(said.to_owned());
        } else if let Some(said) = comment.strip_prefix("# @schema ") {
            hint = serde_json::from_str(said).map_err(|error| error.to_string())?;
        }
    }
    Ok((text, hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_of_the_chart_is_documented_and_has_a_type() {
        let chart = Chart::read(VALUES).unwrap();
        assert!(chart.values.len() > 100);
        for value in &chart.values {
            assert!(value.text.ends_with('.'), "{}: {}", value.path, value.text);
        }
    }

    #[test]
    fn the_schema_is_closed_where_a_typing_error_would_hide() {
        let schema = Chart::get().schema();
        let closed = |path: &str| schema.pointer(path).unwrap()["additionalProperties"] == json!(false);
        assert!(closed("") && closed("/properties/reporter"));
        assert!(!closed("/properties/global"));
        for below in ["codefresh", "runtime", "integrations"] {
            assert!(closed(&format!("/properties/global/properties/{below}")), "{below}");
        }
    }
}
