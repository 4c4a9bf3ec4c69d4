//! What a report says, apart from its hour and from secrets.

use loadtest_judge::view::View;
use pipeline_redact::Redactor;
use serde_json::Value;

use super::predicates::is_now;

/// The same with every secret replaced, as the product replaces them.
pub(super) fn redacted(view: &View, redactor: &Redactor) -> View {
    let mut data = view.data().clone();
    let of_source = |name: &str| format!("/source/{name}");
    for place in ["/object".to_owned(), of_source("actualManifest"), of_source("desiredManifest")] {
        if let Some(manifest) = data.pointer_mut(&place) {
            redactor.value(manifest);
        }
    }
    if let Some(Value::String(git)) = data.pointer_mut(&of_source("gitManifest")) {
        *git = redactor.raw(git).into_owned();
    }
    let text = |place: &mut Value| {
        if let Value::String(text) = place {
            *text = redactor.text(text).into_owned();
        }
    };
    for name in ["repoURL", "commitMessage", "commitAuthor", "healthMessage"] {
        data.pointer_mut(&of_source(name)).into_iter().for_each(text);
    }
    let errors = data.get_mut("errors").and_then(Value::as_array_mut);
    errors.into_iter().flatten().filter_map(|error| error.get_mut("message")).for_each(text);
    View::opened(data)
}

/// The same without `timestamp`, and with every "now" replaced.
pub(super) fn timeless(view: &View, now: (&str, &str)) -> Value {
    let mut data = view.data().clone();
    if let Some(data) = data.as_object_mut() {
        data.remove("timestamp");
    }
    let hide = |value: Option<&mut Value>| {
        if let Some(value) = value.filter(|value| value.as_str().is_some_and(|text| is_now(text, now))) {
            *value = "now".into();
        }
    };
    for name in ["syncStartedAt", "syncFinishedAt"] {
        hide(data.pointer_mut(&format!("/source/{name}")));
    }
    for error in data.get_mut("errors").and_then(Value::as_array_mut).into_iter().flatten() {
        hide(error.get_mut("lastSeen"));
    }
    data
}
