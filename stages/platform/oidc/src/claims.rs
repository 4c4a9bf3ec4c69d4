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
    /// Whether they are in more groups than the provider tells: which, is not known then.
    pub groups_elsewhere: bool,
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
    /// The groups of a claim, which may stand within another: a list, or one alone, or as Zitadel has its roles, each with where
    /// somebody has it. `None`: it is not there.
    pub(crate) fn groups(&self, claim: &str) -> Option<Vec<String>> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Some(match found(&self.all, claim)? {
            Value::Array(all) => all.iter().filter_map(text).collect(),
            Value::Object(all) => {
                all.iter().filter(|(_, place)| place.is_object()).map(|(name, _)| name.clone()).collect()
            }
            one => text(one).into_iter().collect(),
        })
    }

    /// A claim that is a text.
    pub(crate) fn text(&self, claim: &str) -> Option<&str> {
        self.all.get(claim)?.as_str()
    }

    /// Whether a claim says yes, in whichever way that is written.
    pub(crate) fn is_yes(&self, claim: &str) -> bool {
        self.all.get(claim).is_some_and(is_yes)
    }

    /// Whether a claim stands elsewhere (OpenID Connect Core, 5.6.2): Entra ID leaves out the groups of whoever is in more than 200.
    pub(crate) fn is_elsewhere(&self, claim: &str) -> bool {
        self.all.get("_claim_names").is_some_and(|names| names.get(claim).is_some())
    }
}

/// Whether that says yes, in whichever way it is written.
pub(crate) fn is_yes(value: &Value) -> bool {
    match value {
        Value::Bool(is) => *is,
        Value::Number(number) => number.as_u64() == Some(1),
        Value::String(text) => text.eq_ignore_ascii_case("true") || text == "1",
        _ => false,
    }
}

/// What stands at a path, such as `realm_access.roles`; a name on the way may hold dots itself.
fn found<'a>(all: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    let within = |(at, _): (usize, &str)| {
        let (name, rest) = path.split_at(at);
        found(all.get(name)?.as_object()?, rest.strip_prefix('.')?)
    };
    all.get(path).or_else(|| path.match_indices('.').find_map(within))
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
        let roles = r#"{"urn:zitadel:iam:org:project:roles": {"admin": {"1": "a.example.com"}, "ops": {"1": "a.example.com"}}}"#;
        let claims: OtherClaims = serde_json::from_str(roles).unwrap();
        assert_eq!(claims.groups("urn:zitadel:iam:org:project:roles"), is(&["admin", "ops"]));
    }

    #[test]
    fn groups_may_stand_within_another_claim() {
        let claims = r#"{
            "realm_access": {"roles": ["a"], "none": {}}, "resource_access": {"https://id.example.com": {"roles": ["b"]}},
            "x.y": ["c"], "x": {"y": ["d"], "z": "e"}
        }"#;
        let claims: OtherClaims = serde_json::from_str(claims).unwrap();
        for (path, group) in [
            ("realm_access.roles", Some("a")),
            ("resource_access.https://id.example.com.roles", Some("b")),
            ("x.y", Some("c")),
            ("x.z", Some("e")),
            ("realm_access.role", None),
            ("realm_access.roles.a", None),
            ("realm_access.", None),
            (".roles", None),
            ("x.z.e", None),
            ("", None),
        ] {
            assert_eq!(claims.groups(path), group.map(|group| vec![group.to_owned()]), "{path}");
        }
    }

    #[test]
    fn yes_is_written_in_more_than_one_way() {
        for (value, is) in [
            ("true", true),
            ("1", true),
            (r#""true""#, true),
            (r#""True""#, true),
            (r#""1""#, true),
            ("false", false),
            ("0", false),
            ("2", false),
            (r#""false""#, false),
            (r#""0""#, false),
            ("null", false),
            ("[true]", false),
        ] {
            let claims: OtherClaims = serde_json::from_str(&format!(r#"{{"claim": {value}}}"#)).unwrap();
            assert_eq!(claims.is_yes("claim"), is, "{value}");
            assert!(!claims.is_yes("another"));
        }
    }

    #[test]
    fn a_claim_may_stand_elsewhere() {
        let claims = r#"{"_claim_names": {"groups": "src1"}, "_claim_sources": {"src1": {}}}"#;
        let claims: OtherClaims = serde_json::from_str(claims).unwrap();
        assert_eq!((claims.groups("groups"), claims.is_elsewhere("groups")), (None, true));
        assert!(!claims.is_elsewhere("roles"));
        for none in ["{}", r#"{"_claim_names": "groups"}"#] {
            let claims: OtherClaims = serde_json::from_str(none).unwrap();
            assert!(!claims.is_elsewhere("groups"), "{none}");
        }
    }
}
