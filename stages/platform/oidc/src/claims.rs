//! What a provider says of somebody.

use openidconnect::AdditionalClaims;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a provider says of somebody, by a token that was verified.
#[derive(Clone, PartialEq, Eq)]
pub struct Claims {
    /// Who they are there, for good.
    pub subject: String,
    /// What they are called there; they may be able to choose it.
    pub name: Option<String>,
    /// Their address, which the provider has verified.
    pub email: Option<String>,
    /// The groups that they are in; none where none are told.
    pub groups: Vec<String>,
}

/// Without what is said of somebody.
impl std::fmt::Debug for Claims {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Claims(…)")
    }
}

/// The claims that are none of the standard.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct OtherClaims {
    #[serde(flatten)]
    all: Map<String, Value>,
}

impl AdditionalClaims for OtherClaims {}

impl std::fmt::Debug for OtherClaims {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OtherClaims(…)")
    }
}

impl OtherClaims {
    /// The groups of a claim: a list, or one alone. `None`: it is not there.
    pub(crate) fn groups(&self, claim: &str) -> Option<Vec<String>> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Some(match self.all.get(claim)? {
            Value::Array(all) => all.iter().filter_map(text).collect(),
            one => text(one).into_iter().collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_a_list_or_one_alone() {
        let claims =
            r#"{"groups": ["a", 7, "b"], "one": "c", "https://id.example.com/groups": [], "odd": {"d": 1}}"#;
        let claims: OtherClaims = serde_json::from_str(claims).unwrap();
        let groups = |claim| claims.groups(claim);
        let is = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(groups("groups"), is(&["a", "b"]));
        assert_eq!(groups("one"), is(&["c"]));
        assert_eq!(groups("https://id.example.com/groups"), is(&[]));
        assert_eq!(groups("odd"), is(&[]));
        assert_eq!(groups("none"), None);
        assert_eq!(format!("{claims:?}"), "OtherClaims(…)");
    }
}
