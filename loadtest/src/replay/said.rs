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

/// The first and the last second that "now" may be in a report.
pub(super) type Span<'a> = (&'a str, &'a str);

/// Two reports without their `timestamp`s. What is "now" in both, in the hour of each, is the same there; all else stands: also
/// a moment that only happens to be within the second of one of them.
pub(super) fn timeless(one: (&View, Span<'_>), other: (&View, Span<'_>)) -> (Value, Value) {
    let (mut first, mut second) = (one.0.data().clone(), other.0.data().clone());
    for data in [&mut first, &mut second] {
        data.as_object_mut().map(|data| data.remove("timestamp"));
    }
    let errors = first.get("errors").and_then(Value::as_array).map_or(0, Vec::len);
    let seen = (0..errors).map(|at| format!("/errors/{at}/lastSeen"));
    let times = ["syncStartedAt", "syncFinishedAt"].map(|name| format!("/source/{name}"));
    for place in times.into_iter().chain(seen) {
        let (first, second) = (first.pointer_mut(&place), second.pointer_mut(&place));
        let now = |value: &Value, span| value.as_str().is_some_and(|text| is_now(text, span));
        if let (Some(first), Some(second)) = (first, second)
            && now(first, one.1)
            && now(second, other.1)
        {
            second.clone_from(first);
        }
    }
    (first, second)
}
