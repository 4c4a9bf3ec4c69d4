//! Values by their paths with dots.

use serde_json::{Map, Value as Json};

/// What stands at a path with dots.
pub(super) fn at<'a>(values: &'a Json, path: &str) -> Option<&'a Json> {
    parts(path).into_iter().try_fold(values, |at, part| at.get(part)).filter(|value| !value.is_null())
}

/// The parts of a path with dots; the name of a variable may hold some.
fn parts(path: &str) -> Vec<&str> {
    match path.split_once(".extraEnv.") {
        Some((component, name)) => vec![component, "extraEnv", name],
        None => path.split('.').collect(),
    }
}

/// Sets what stands at a path with dots.
pub(super) fn set(values: &mut Json, path: &str, value: Json) {
    let mut at = values;
    let parts = parts(path);
    let Some((last, groups)) = parts.split_last() else { return };
    for group in groups {
        if !at.is_object() {
            *at = Json::Object(Map::new());
        }
        at = &mut at[*group];
    }
    if !at.is_object() {
        *at = Json::Object(Map::new());
    }
    at[*last] = value;
}
