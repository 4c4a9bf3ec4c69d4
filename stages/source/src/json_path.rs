//! The one value that a JSON path finds, for a version.

use jsonpath_rust::parser::model::{JpQuery, Segment, Selector};
use jsonpath_rust::parser::parse_json_path;
use jsonpath_rust::query::js_path_process;
use serde_json::Value;

/// A JSON path, in either of the two forms that are in use: `$.appVersion` or `{.appVersion}`.
#[derive(Debug, Clone)]
pub(crate) struct JsonPath(JpQuery);

impl JsonPath {
    /// Reads one.
    ///
    /// # Errors
    /// It is none; without what stands in it, which somebody else wrote.
    pub(crate) fn read(text: &str) -> Result<Self, NoJsonPath> {
        let text = text.trim();
        let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).map(str::trim);
        let path = match inner {
            Some("") => return Err(NoJsonPath),
            Some(inner) if inner.starts_with('$') => inner.to_owned(),
            Some(inner) => format!("${inner}"),
            None => text.to_owned(),
        };
        parse_json_path(&path).map(Self).map_err(|_| NoJsonPath)
    }

    /// The text that it finds: a string, or the first of an array if that is one; all else, and nothing, is empty.
    pub(crate) fn text(&self, value: &Value) -> String {
        let found = js_path_process(&self.0, value).unwrap_or_default();
        let found: Vec<&Value> = found.into_iter().map(|found| found.val()).collect();
        let first = match (found.first(), self.is_of_one()) {
            (Some(Value::Array(all)), true) => all.first(),
            (first, _) => first.copied(),
        };
        first.and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    /// Whether it names one value; else what it finds is an array.
    fn is_of_one(&self) -> bool {
        self.0.segments.iter().all(|segment| match segment {
            Segment::Selector(selector) => matches!(selector, Selector::Name(_) | Selector::Index(_)),
            Segment::Selectors(_) | Segment::Descendant(_) => false,
        })
    }
}

/// It is no JSON path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is no JSON path: write it like $.appVersion")]
pub struct NoJsonPath;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{JsonPath, NoJsonPath};

    #[test]
    fn both_forms_find_the_same() {
        let value = json!({
            "appVersion": "1.2.0", "images": [{"tag": "v1"}, {"tag": "v2"}], "tags": ["first", "second"], "count": [1, "x"],
            "a-b": "dash", "number": 3, "none": null, "object": {"appVersion": "inner"}, "nested": [["deep"]],
        });
        for (path, found) in [
            ("$.appVersion", "1.2.0"),
            ("{.appVersion}", "1.2.0"),
            ("{ $.appVersion }", "1.2.0"),
            ("$['appVersion']", "1.2.0"),
            ("{['appVersion']}", "1.2.0"),
            ("$.object.appVersion", "inner"),
            ("$.images[1].tag", "v2"),
            ("{.images[*].tag}", "v1"),
            ("$.images[?(@.tag == 'v2')].tag", "v2"),
            ("$..tag", "v1"),
            ("$.tags", "first"),
            ("$.tags[1]", "second"),
            ("$['a-b']", "dash"),
            ("$.count", ""),
            ("$.number", ""),
            ("$.none", ""),
            ("$.object", ""),
            ("$.nested[*]", ""),
            ("$.missing.deeper", ""),
        ] {
            assert_eq!(JsonPath::read(path).unwrap().text(&value), found, "{path}");
        }
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for text in ["", "appVersion", "$.", "{.a", "{}", "$["] {
            assert_eq!(JsonPath::read(text).map(|_| ()), Err(NoJsonPath), "{text}");
        }
        assert_eq!(NoJsonPath.to_string(), "it is no JSON path: write it like $.appVersion");
    }
}
