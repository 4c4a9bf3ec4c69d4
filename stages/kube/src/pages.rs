//! Reads a list page by page. What is done with its objects is the business of whoever asked for it.

use std::borrow::Cow;

use bytes::Bytes;
use pipeline_core::Version;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::api::Api;
use crate::failure::Failure;
use crate::kind::Kind;
use crate::object;

/// One page, read as leniently as possible: its objects are the text that the API server sent.
#[derive(Deserialize)]
pub(crate) struct Page<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
    /// May be null, which is how an empty list is written in some places; what has none is not a list.
    #[serde(borrow, deserialize_with = "Option::deserialize")]
    items: Option<Vec<&'a RawValue>>,
    /// The kind of the list: that of its objects, and `List`.
    #[serde(borrow, default)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "apiVersion")]
    api_version: Option<Cow<'a, str>>,
    /// How its objects begin where they leave out their kind, as those do that the API server itself defines.
    #[serde(skip)]
    beginning: Option<String>,
}

/// What an object says of its kind.
#[derive(Deserialize)]
struct Kinded {
    #[serde(default)]
    kind: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Metadata<'a> {
    #[serde(borrow, rename = "resourceVersion")]
    resource_version: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "continue")]
    token: Option<Cow<'a, str>>,
}

impl<'a> Page<'a> {
    /// Reads the text of a page.
    pub(crate) fn read(kind: Kind, text: &'a str) -> Result<Self, Failure> {
        let page: Self =
            serde_json::from_str(text).map_err(|_| malformed(kind, "the answer is not a list in json"))?;
        let first = page.items().first().map(|item| serde_json::from_str::<Kinded>(item.get()));
        let kindless = matches!(first, Some(Ok(Kinded { kind: None })));
        let beginning = page.beginning().filter(|_| kindless);
        Ok(Self { beginning, ..page })
    }

    /// How an object of it begins that says its kind.
    fn beginning(&self) -> Option<String> {
        let (kind, version) = (self.kind.as_deref()?.strip_suffix("List")?, self.api_version.as_deref()?);
        let [kind, version] = [kind, version].map(serde_json::Value::from);
        Some(format!("{{\"kind\":{kind},\"apiVersion\":{version}"))
    }

    /// The version of the whole list, if it says it.
    pub(crate) fn version(&self) -> Option<Version> {
        self.metadata.resource_version.as_deref().map(object::version)
    }

    /// An object of a list that leaves out their kinds, with its kind, as a watch shows it.
    pub(crate) fn whole<'i>(&self, item: &'i str) -> Cow<'i, str> {
        match (self.beginning.as_deref(), item.strip_prefix('{')) {
            (Some(beginning), Some(rest)) => {
                let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
                Cow::Owned([beginning, comma, rest].concat())
            }
            _ => Cow::Borrowed(item),
        }
    }

    /// The objects in it.
    pub(crate) fn items(&self) -> &[&'a RawValue] {
        self.items.as_deref().unwrap_or_default()
    }
}

/// Where a list stands.
#[derive(Debug)]
pub(crate) struct Pages {
    kind: Kind,
    limit: u32,
    token: Option<String>,
}

impl Pages {
    /// From the first page on, of at most `limit` objects each.
    pub(crate) fn new(kind: Kind, limit: u32) -> Self {
        Self { kind, limit, token: None }
    }

    /// The next page's text. One that is larger than its bound is asked for again with half as many objects.
    pub(crate) async fn next(&mut self, api: &Api) -> Result<Bytes, Failure> {
        loop {
            match api.page(self.limit, self.token.as_deref()).await {
                Err(Failure::TooLarge { .. }) if self.limit > 1 => self.limit /= 2,
                answer => return answer,
            }
        }
    }

    /// Turns the page: the version of the whole list after its last page, `None` when there are more. Only a list
    /// that has come to its version is complete; all that it lacks before then may be on a later page.
    pub(crate) fn turn(&mut self, page: Page<'_>) -> Result<Option<String>, Failure> {
        match page.metadata.token.filter(|next| !next.is_empty()) {
            Some(next) if self.token.as_deref() == Some(&*next) => {
                Err(malformed(self.kind, "the continue token came back"))
            }
            Some(next) => {
                self.token = Some(next.into_owned());
                Ok(None)
            }
            None => match page.metadata.resource_version.filter(|version| !version.is_empty()) {
                Some(version) => Ok(Some(version.into_owned())),
                None => Err(malformed(self.kind, "the list has no version")),
            },
        }
    }
}

/// A list that cannot be one.
pub(crate) fn malformed(kind: Kind, what: &'static str) -> Failure {
    Failure::Malformed { act: kind.list(), what }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PODS: Kind = Kind { group: "", version: "v1", plural: "pods", singular: "pod" };

    #[test]
    fn objects_of_a_list_have_their_kind_as_those_of_a_watch_have() {
        let text =
            r#"{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"a"}},{}]}"#;
        let page = Page::read(PODS, text).unwrap();
        let whole: Vec<_> = page.items().iter().map(|item| page.whole(item.get()).into_owned()).collect();
        let expected = [
            r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}"#,
            r#"{"kind":"Pod","apiVersion":"v1"}"#,
        ];
        assert_eq!(whole, expected);
        let kinded = r#"{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[{"kind":"Pod","a":1}]}"#;
        let page = Page::read(PODS, kinded).unwrap();
        assert_eq!(page.whole(page.items()[0].get()), r#"{"kind":"Pod","a":1}"#);
        let nameless = r#"{"metadata":{},"items":[{"a":1}]}"#;
        let page = Page::read(PODS, nameless).unwrap();
        assert_eq!(page.whole(page.items()[0].get()), r#"{"a":1}"#);
    }
}
