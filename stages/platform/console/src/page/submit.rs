//! What a WorkflowTemplate asks for, as the form of a dialog: how the workflow's name begins, and then each parameter, with what it is
//! unless somebody says otherwise. Read of the manifest that its reporter sent.

use maud::{Markup, html};
use serde_json::Value;

/// Parameters that are asked for.
const PARAMETERS: usize = 100;
/// Characters that a name may begin with, so that there is room for those that make it one of its own.
const LONGEST: usize = 58;

/// The form; `None`: the manifest cannot be read.
pub(super) fn form(manifest: &str, name: &str) -> Option<Markup> {
    let object: Value = serde_json::from_str(manifest).ok()?;
    let all = object.pointer("/spec/arguments/parameters").and_then(Value::as_array);
    // What the template takes from somewhere else is not asked for.
    let asked =
        |one: &&Value| one.get("valueFrom").is_none() && one.get("name").is_some_and(Value::is_string);
    let own = all.into_iter().flatten().filter(asked);
    let begins: String = name.chars().take(LONGEST - 1).chain(['-']).collect();
    Some(html! {
        label.field-of { "Its name begins with"
            input type="text" name="generateName" value=(begins) required maxlength=(LONGEST) autocomplete="off" spellcheck="false"; }
        @for one in own.take(PARAMETERS) { (field(one)) }
    })
}

/// The field of a parameter: what it may be, where that is told; where nothing says what it is, somebody has to.
fn field(one: &Value) -> Markup {
    let name = text(one, "name").unwrap_or_default();
    let given = text(one, "value").or_else(|| text(one, "default"));
    let choices = one.get("enum").and_then(Value::as_array);
    let choices: Vec<String> = choices.into_iter().flatten().filter_map(plain).collect();
    html! {
        label.field-of { (name)
            @if let Some(said) = text(one, "description") { small.mute { " " (said) } }
            @if choices.is_empty() {
                input type="text" name=(name) value=[given.as_ref()] required[given.is_none()] autocomplete="off" spellcheck="false";
            } @else {
                select name=(name) {
                    @for choice in &choices { option value=(choice) selected[Some(choice) == given.as_ref()] { (choice) } }
                }
            }
        }
    }
}

fn text(of: &Value, name: &str) -> Option<String> {
    of.get(name).and_then(plain)
}

/// Numbers and truths are as good as texts there.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parameters_are_asked_for_with_what_they_are_unless_somebody_says_otherwise() {
        let parameters = json!([
            {"name": "branch", "value": "main", "description": "What is built <b>"},
            {"name": "count", "default": 3},
            {"name": "empty", "value": ""},
            {"name": "who"},
            {"name": "size", "enum": ["s", "m", 7], "value": "m"},
            {"name": "secret", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}},
            7,
        ]);
        let manifest = json!({"spec": {"arguments": {"parameters": parameters}}}).to_string();
        let form = form(&manifest, "build").unwrap().0;
        for part in [
            "name=\"generateName\" value=\"build-\" required",
            "branch<small class=\"mute\"> What is built &lt;b&gt;</small>",
            "name=\"branch\" value=\"main\" autocomplete",
            "name=\"count\" value=\"3\" autocomplete",
            "name=\"empty\" value=\"\" autocomplete",
            "name=\"who\" required autocomplete",
            "<option value=\"s\">s</option><option value=\"m\" selected>m</option><option value=\"7\">7</option>",
        ] {
            assert!(form.contains(part), "{part}: {form}");
        }
        assert!(!form.contains("secret"), "{form}");
    }

    #[test]
    fn a_template_without_parameters_asks_for_a_name_alone_and_what_cannot_be_read_for_nothing() {
        let none = form("{}", &"x".repeat(80)).unwrap().0;
        assert_eq!(none.matches("<label").count(), 1, "{none}");
        assert!(none.contains(&format!("value=\"{}-\"", "x".repeat(57))), "{none}");
        assert!(form("kind: WorkflowTemplate\n", "build").is_none());
    }
}
