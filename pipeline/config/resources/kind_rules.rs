//! One kind that is reported, and which of its objects: as text its name, as a mapping all that may be said of it.

use std::borrow::Cow;
use std::num::NonZeroU32;
use std::time::Duration;

use pipeline_engine::limit::RateLimit;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use stages_kube::{Selector, SelectorError};
use stages_resources::Filter;

use super::KindName;
use crate::config::problem::Problems;
use crate::config::units::{As, Pattern};

/// One kind, and which of its objects.
#[derive(Debug, Clone)]
pub(crate) struct KindRules {
    pub(crate) kind: KindName,
    pub(crate) namespaces: Vec<String>,
    pub(crate) excluded_namespaces: Vec<String>,
    label_selector: String,
    field_selector: String,
    filter: String,
    rate_limit: Option<RateLimit>,
}

/// As it stands in a file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Mapping {
    /// The kind, as plural.group, with @version to pin one.
    kind: As<KindName>,
    /// Patterns of the only namespaces, of those of `resources.namespaces`; none for all of them.
    #[serde(default)]
    namespaces: Vec<As<Pattern>>,
    /// Patterns of namespaces that are left out.
    #[serde(default)]
    excluded_namespaces: Vec<As<Pattern>>,
    /// A label selector, which the API server judges, such as team=a or tier notin (test).
    #[serde(default)]
    label_selector: String,
    /// A field selector, which the API server judges, such as status.phase!=Succeeded; a kind has few such fields.
    #[serde(default)]
    field_selector: String,
    /// A CEL expression over `object`, such as object.status.phase == 'Failed'; what it does not take is not reported, but for
    /// what was reported before, once.
    #[serde(default)]
    filter: String,
    /// How often one object of the kind is reported, in place of `reporter.rateLimit`.
    #[serde(default)]
    rate_limit: Option<KindRate>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct KindRate {
    /// Reports in a burst, and in each window.
    #[schemars(range(min = 1))]
    bucket: NonZeroU32,
    /// In this time an empty bucket fills.
    window: As<Duration>,
}

impl<'de> Deserialize<'de> for KindRules {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mapping = match Value::deserialize(deserializer)? {
            text @ Value::String(_) => serde_json::json!({"kind": text}),
            mapping @ Value::Object(_) => mapping,
            other => {
                return As::<KindName>::deserialize(other)
                    .map(|kind| Self::of(&kind))
                    .map_err(serde::de::Error::custom);
            }
        };
        let Mapping {
            kind,
            namespaces,
            excluded_namespaces,
            label_selector,
            field_selector,
            filter,
            rate_limit,
        } = serde_json::from_value(mapping).map_err(serde::de::Error::custom)?;
        let patterns = |all: Vec<As<Pattern>>| all.into_iter().map(|pattern| pattern.0.clone()).collect();
        Ok(Self {
            namespaces: patterns(namespaces),
            excluded_namespaces: patterns(excluded_namespaces),
            label_selector,
            field_selector,
            filter,
            rate_limit: rate_limit.map(|KindRate { bucket, window }| RateLimit {
                events: bucket,
                window: *window,
                learning: false,
            }),
            ..Self::of(&kind)
        })
    }
}

impl JsonSchema for KindRules {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "kind".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (name, mapping) = (As::<KindName>::json_schema(generator), Mapping::json_schema(generator));
        schemars::json_schema!({ "anyOf": [name, mapping] })
    }
}

impl KindRules {
    /// All objects of a kind.
    fn of(kind: &As<KindName>) -> Self {
        Self {
            kind: KindName::clone(kind),
            namespaces: Vec::new(),
            excluded_namespaces: Vec::new(),
            label_selector: String::new(),
            field_selector: String::new(),
            filter: String::new(),
            rate_limit: None,
        }
    }

    pub(super) fn check(&self, at: &str, problems: &mut Problems) {
        match Selector::new(&self.label_selector, &self.field_selector) {
            Err(error @ SelectorError::Labels(_)) => {
                problems.add(format!("{at}.labelSelector"), error.to_string());
            }
            Err(error @ SelectorError::Fields(_)) => {
                problems.add(format!("{at}.fieldSelector"), error.to_string());
            }
            Ok(_) => {}
        }
        if !self.filter.is_empty()
            && let Err(error) = Filter::compile(&self.filter)
        {
            problems.add(format!("{at}.filter"), error.to_string());
        }
        if let Some(limit) = &self.rate_limit {
            problems.positive(&format!("{at}.rateLimit.window"), limit.window);
        }
    }

    /// What the API server is asked for; all where that was refused.
    pub(crate) fn selector(&self) -> Selector {
        Selector::new(&self.label_selector, &self.field_selector).unwrap_or_default()
    }

    /// What is taken of it.
    pub(crate) fn filter(&self) -> Option<Filter> {
        Filter::compile(&self.filter).ok()
    }

    /// How often each of its objects is reported, where that is said.
    pub(crate) fn rate_limit(&self) -> Option<RateLimit> {
        self.rate_limit
    }
}
