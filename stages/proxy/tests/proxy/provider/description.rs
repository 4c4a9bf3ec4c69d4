//! What GitHub's own description of its API says of the operations that are used: what it refuses is refused.

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value};

/// An extract of the description; its source and version stand in it.
static DESCRIPTION: LazyLock<Description> =
    LazyLock::new(|| serde_json::from_str(include_str!("github.json")).unwrap());

#[derive(Deserialize)]
struct Description {
    operations: Vec<Operation>,
}

/// An operation of the API.
#[derive(Deserialize)]
pub(super) struct Operation {
    method: String,
    /// With names of its parts in braces.
    path: String,
    query: Map<String, Value>,
    body: Option<Body>,
    /// The status of an answer without an error.
    pub(super) success: u16,
    /// What the objects of such an answer may hold.
    answer: Vec<String>,
}

#[derive(Deserialize)]
struct Body {
    required: Vec<String>,
    properties: Map<String, Value>,
}

/// The operation that a request asks for; else what it is refused with.
pub(super) fn operation(
    (method, path): (&str, &str),
    query: &[(String, String)],
    body: &[u8],
) -> Result<&'static Operation, (u16, String)> {
    let operation = DESCRIPTION.operations.iter().find(|of| of.method == method && of.is_at(path));
    let Some(operation) = operation else { return Err((404, "Not Found".to_owned())) };
    for (name, value) in query {
        let schema = operation.query.get(name).ok_or((422, format!("{name} is no parameter")))?;
        let value = match schema["type"].as_str() {
            Some("integer") => value.parse::<i64>().map_or(Value::Null, Value::from),
            _ => Value::from(value.as_str()),
        };
        conforms(name, &value, schema)?;
    }
    let Some(wanted) = &operation.body else {
        return if body.is_empty() { Ok(operation) } else { Err((400, "no body is wanted".to_owned())) };
    };
    let given: Map<String, Value> =
        serde_json::from_slice(body).map_err(|_| (400, "Problems parsing JSON".to_owned()))?;
    if let Some(missing) = wanted.required.iter().find(|name| !given.contains_key(*name)) {
        return Err((422, format!("{missing} is required")));
    }
    for (name, value) in &given {
        let schema = wanted.properties.get(name).ok_or((422, format!("{name} is no property")))?;
        conforms(name, value, schema)?;
    }
    Ok(operation)
}

fn conforms(name: &str, value: &Value, schema: &Value) -> Result<(), (u16, String)> {
    let is_typed = match schema["type"].as_str() {
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64(),
        Some("boolean") => value.is_boolean(),
        other => panic!("the extract has a type that is not compared: {other:?}"),
    };
    let is_one = schema["enum"].as_array().is_none_or(|all| all.contains(value));
    match is_typed && is_one {
        true => Ok(()),
        false => Err((422, format!("{name} is not as it should be"))),
    }
}

impl Operation {
    fn is_at(&self, path: &str) -> bool {
        let (wanted, given): (Vec<_>, Vec<_>) = (self.path.split('/').collect(), path.split('/').collect());
        let same = |(wanted, given): (&&str, &&str)| wanted.starts_with('{') || wanted == given;
        wanted.len() == given.len() && wanted.iter().zip(&given).all(same)
    }

    /// Panics where the answer holds what GitHub does not say.
    pub(super) fn answers(&self, body: &Value) {
        let objects = body.as_array().map_or(std::slice::from_ref(body), Vec::as_slice);
        for name in objects.iter().flat_map(|object| object.as_object().unwrap().keys()) {
            assert!(self.answer.contains(name), "{} {} answers no {name}", self.method, self.path);
        }
    }
}

#[test]
fn what_the_description_does_not_allow_is_refused() {
    let pulls = ("POST", "/repos/team/mono/pulls");
    let refused = |at, query: &[(&str, &str)], body: &str| {
        let query: Vec<_> =
            query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        operation(at, &query, body.as_bytes()).map(|of| of.success)
    };
    let said = |status, text: &str| Err((status, text.to_owned()));
    assert_eq!(refused(pulls, &[], r#"{"head": "a", "base": "b", "title": "c"}"#), Ok(201));
    assert_eq!(refused(pulls, &[], r#"{"head": "a"}"#), said(422, "base is required"));
    assert_eq!(refused(pulls, &[], r#"{"head": "a", "base": 1}"#), said(422, "base is not as it should be"));
    assert_eq!(
        refused(pulls, &[], r#"{"head": "a", "base": "b", "into": "c"}"#),
        said(422, "into is no property")
    );
    assert_eq!(refused(pulls, &[], ""), said(400, "Problems parsing JSON"));
    let list = ("GET", "/repos/team/mono/pulls");
    assert_eq!(refused(list, &[("state", "open"), ("per_page", "1")], ""), Ok(200));
    assert_eq!(refused(list, &[("state", "opened")], ""), said(422, "state is not as it should be"));
    assert_eq!(refused(list, &[("per_page", "all")], ""), said(422, "per_page is not as it should be"));
    assert_eq!(refused(list, &[("source", "a")], ""), said(422, "source is no parameter"));
    assert_eq!(refused(list, &[], "{}"), said(400, "no body is wanted"));
    assert_eq!(refused(("PUT", "/repos/team/mono/pulls"), &[], ""), said(404, "Not Found"));
}
