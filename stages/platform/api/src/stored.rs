//! Queries that the console asks of runtimes, kept here by their names: its pages send a name and values, and a session is good for
//! nothing else. What somebody's browser is talked into sending is one of these at most, as reviewed as any other code. A program
//! has an API key, which it was given for what it asks in texts of its own, and which no browser adds to a request by itself.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::caller::Refusal;

/// Each line is one query, but for those that say something of them.
const TEXTS: &str = include_str!("stored.graphql");

static STORED: LazyLock<BTreeMap<&str, &str>> = LazyLock::new(|| {
    let queries = TEXTS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    queries.filter_map(|text| Some((name(text)?, text))).collect()
});

/// What a page sends.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Asked {
    document_id: String,
    #[serde(default)]
    variables: Value,
}

/// The name of a query, which stands behind its kind.
fn name(text: &str) -> Option<&str> {
    text.split([' ', '(']).nth(1)
}

/// The request that a page means, with the text of the query in the place of its name.
pub(crate) fn request(body: &[u8]) -> Result<Vec<u8>, Refusal> {
    let Asked { document_id, variables } = serde_json::from_slice(body).map_err(|_| Refusal::Unstored)?;
    let text = STORED.get(&*document_id).ok_or_else(|| {
        let shown: String = document_id.chars().take(100).collect();
        Refusal::Wrong(format!("this version of the platform has no query '{shown}': load the page anew"))
    })?;
    serde_json::to_vec(&json!({"query": text, "variables": variables})).map_err(|_| Refusal::Unstored)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use async_graphql::parser::parse_query;
    use async_graphql::parser::types::DocumentOperations;

    use super::*;

    const SCHEMA: &str = include_str!("../../../proxy/schema.graphql");
    /// Scripts of the console, and its table of acts, which ask for all of them.
    const SCRIPTS: [&str; 5] = [
        include_str!("../../console/src/page/acts.rs"),
        include_str!("../../console/assets/acts.js"),
        include_str!("../../console/assets/events.js"),
        include_str!("../../console/assets/files.js"),
        include_str!("../../console/assets/git.js"),
    ];

    #[test]
    fn each_is_one_query_of_its_name_that_runtimes_answer() {
        assert_eq!(
            STORED.len(),
            TEXTS.matches("\nquery ").count()
                + TEXTS.matches("\nmutation ").count()
                + TEXTS.matches("\nsubscription ").count()
        );
        // Of the schema each field with the types of its arguments, written on one line.
        let schema = SCHEMA.replace(['\n', '\t'], " ");
        for (name, text) in &*STORED {
            let document = parse_query(text).unwrap();
            let DocumentOperations::Multiple(operations) = &document.operations else {
                panic!("{name} has no name")
            };
            assert_eq!(operations.keys().collect::<Vec<_>>(), [*name]);
            let (variables, selection) = text.split_once(" { ").unwrap();
            let types: BTreeMap<&str, &str> = variables
                .split_once('(')
                .map_or("", |(_, rest)| rest.trim_end_matches(')'))
                .split(", ")
                .filter_map(|one| one.trim_start_matches('$').split_once(": "))
                .collect();
            let field = selection.split(['(', ' ']).next().unwrap();
            let of_field = schema.split_once(&format!(" {field}(")).map(|(_, rest)| rest);
            let arguments = selection.split_once('(').map_or("", |(_, rest)| rest.split_once(')').unwrap().0);
            for argument in arguments.split(", ").filter(|argument| !argument.is_empty()) {
                let (argument, variable) = argument.split_once(": $").unwrap();
                let wanted = format!("{argument}: {}", types[variable]);
                let declared = of_field.unwrap().split("): ").next().unwrap();
                assert!(declared.contains(&wanted), "{name}: {wanted} is none of {declared}");
            }
            // What is selected, if anything is, is a field of something at least.
            let selected = selection.rsplit_once(')').map_or(selection, |(_, rest)| rest);
            for word in selected.split([' ', '{', '}']) {
                let is_known = word.is_empty()
                    || [":", "("].iter().any(|end| SCHEMA.contains(&format!("\t{word}{end}")));
                assert!(is_known, "{name}: nothing has a field {word}");
            }
        }
    }

    #[test]
    fn scripts_name_these_and_hold_no_text_of_a_query() {
        let all = SCRIPTS.concat();
        for kind in ["query(", "query {", "mutation(", "mutation {", "subscription("] {
            assert!(!all.contains(kind), "a script holds a query");
        }
        let named: BTreeSet<&str> = all.split('"').filter(|word| STORED.contains_key(word)).collect();
        assert_eq!(named, STORED.keys().copied().collect(), "each of them is asked for");
    }

    #[test]
    fn a_name_becomes_its_text_and_anything_else_is_refused() {
        let body = br#"{"documentId": "gitToken", "variables": {"name": "default"}}"#;
        let sent: Value = serde_json::from_slice(&request(body).unwrap()).unwrap();
        let text =
            "query gitToken($name: String) { gitToken(integrationName: $name) { username expiresAt } }";
        assert_eq!(sent, json!({"query": text, "variables": {"name": "default"}}));
        let refused = |body: &str| request(body.as_bytes()).unwrap_err().to_string();
        let unstored = "a session is good for the console's own queries, by their names: send an API key to ask in words of your own";
        for body in [
            "",
            "{}",
            r#"{"query": "{ me { name } }"}"#,
            r#"{"documentId": "gitToken", "query": "mutation { sealSecret }"}"#,
            r#"{"documentId": "gitToken", "operationName": "other"}"#,
        ] {
            assert_eq!(refused(body), unstored, "{body}");
        }
        let none = "this version of the platform has no query 'sealSecret': load the page anew";
        assert_eq!(refused(r#"{"documentId": "sealSecret"}"#), none);
    }
}
