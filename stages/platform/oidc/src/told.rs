//! What a provider tells, as it is read: without what nobody reads here. Written otherwise than the standard says, a claim would spoil all
//! that it stands among.
//!
//! takes: what came - gives: what is read of it, and beside an ID token the token as it came, for what was signed is verified

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use openidconnect::ExtraTokenFields;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::claims::is_yes;

/// What a provider says of somebody, of a token or of itself, and nobody reads.
const UNREAD: [&str; 43] = [
    "acr",
    "acr_values_supported",
    "address",
    "amr",
    "at_hash",
    "auth_time",
    "birthdate",
    "birthday",
    "c_hash",
    "claim_types_supported",
    "claims_locales_supported",
    "claims_parameter_supported",
    "claims_supported",
    "display_values_supported",
    "expires_in",
    "family_name",
    "gender",
    "given_name",
    "grant_types_supported",
    "locale",
    "middle_name",
    "name",
    "nickname",
    "op_policy_uri",
    "op_tos_uri",
    "phone_number",
    "phone_number_verified",
    "picture",
    "profile",
    "refresh_token",
    "registration_endpoint",
    "request_parameter_supported",
    "request_uri_parameter_supported",
    "require_request_uri_registration",
    "response_modes_supported",
    "scope",
    "scopes_supported",
    "service_documentation",
    "ui_locales_supported",
    "updated_at",
    "website",
    "zoneinfo",
    ORIGINAL,
];
/// What is read where it is a text, and is none otherwise.
const TEXTS: [&str; 2] = ["email", "preferred_username"];
const VERIFIED: &str = "email_verified";
const ID_TOKEN: &str = "id_token";
/// Beside an ID token stands under this name how it came.
const ORIGINAL: &str = "original_id_token";

/// An ID token as it came. `Debug` shows nothing of it.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct OriginalToken {
    original_id_token: Option<String>,
}

impl ExtraTokenFields for OriginalToken {}

impl std::fmt::Debug for OriginalToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OriginalToken(…)")
    }
}

impl OriginalToken {
    /// What was signed, and the signature; `None`: it is no token.
    pub(crate) fn signed(&self) -> Option<(&str, Vec<u8>)> {
        let (signed, signature) = self.original_id_token.as_deref()?.rsplit_once('.')?;
        Some((signed, URL_SAFE_NO_PAD.decode(signature).ok()?))
    }
}

/// An answer as it is read.
pub(crate) fn answer_as_read(answer: Map<String, Value>) -> Map<String, Value> {
    let mut answer = claims_as_read(answer);
    let original = answer.get(ID_TOKEN).and_then(Value::as_str).map(str::to_owned);
    if let Some(original) = original
        && let Some(token) = token_as_read(&original)
    {
        answer.insert(ID_TOKEN.to_owned(), token.into());
        answer.insert(ORIGINAL.to_owned(), original.into());
    }
    // Authentik says so that it has no key to sign by.
    if answer.is_empty() {
        answer.insert("keys".to_owned(), Value::Array(Vec::new()));
    }
    answer
}

/// An ID token with the claims that are read; `None`: it is none.
fn token_as_read(token: &str) -> Option<String> {
    let (head, rest) = token.split_once('.')?;
    let (claims, signature) = rest.split_once('.')?;
    let claims = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()?;
    let claims = Value::Object(claims_as_read(claims)).to_string();
    Some(format!("{head}.{}.{signature}", URL_SAFE_NO_PAD.encode(claims)))
}

fn claims_as_read(mut claims: Map<String, Value>) -> Map<String, Value> {
    claims.retain(|name, value| {
        // A language may stand behind a name.
        let (base, language) =
            name.split_once('#').map_or((&**name, None), |(base, rest)| (base, Some(rest)));
        let is_text = TEXTS.contains(&base);
        let is_odd = language.is_some() && (is_text || base == VERIFIED) || is_text && !value.is_string();
        !is_odd && !UNREAD.contains(&base)
    });
    if let Some(verified) = claims.get_mut(VERIFIED)
        && !verified.is_null()
    {
        *verified = Value::Bool(is_yes(verified));
    }
    claims
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(answer: Value) -> Value {
        let Value::Object(answer) = answer else { panic!("{answer} is no answer") };
        Value::Object(answer_as_read(answer))
    }

    #[test]
    fn what_nobody_reads_is_left_out_and_what_is_read_is_as_the_standard_has_it() {
        for (told, left) in [
            (
                json!({ "expires_in": "3599", "scope": ["openid"], "token_type": "x" }),
                json!({ "token_type": "x" }),
            ),
            (
                json!({ "address": "a street", "sub": "S-1", "updated_at": "1700000000" }),
                json!({ "sub": "S-1" }),
            ),
            (
                json!({ "name#de": "Mia", "email#de": "a@b", "https://c/#d": ["e"] }),
                json!({ "https://c/#d": ["e"] }),
            ),
            (json!({ "email": ["a@b"], "preferred_username": 7, "sub": "S-1" }), json!({ "sub": "S-1" })),
            (
                json!({ "email": "a@b", "email_verified": "1" }),
                json!({ "email": "a@b", "email_verified": true }),
            ),
            (json!({ "email_verified": "True?" }), json!({ "email_verified": false })),
            (json!({ "email_verified": null }), json!({ "email_verified": null })),
            (json!({ "op_tos_uri": "", "jwks_uri": "https://c" }), json!({ "jwks_uri": "https://c" })),
            (json!({ "keys": [{ "name": "a" }] }), json!({ "keys": [{ "name": "a" }] })),
            (json!({}), json!({ "keys": [] })),
            // What is none is left for whoever says so.
            (json!({ "id_token": "a.b.c" }), json!({ "id_token": "a.b.c" })),
            (json!({ "id_token": 7, "original_id_token": "a.b.c" }), json!({ "id_token": 7 })),
        ] {
            assert_eq!(read(told.clone()), left, "{told}");
        }
    }

    #[test]
    fn an_id_token_is_read_without_what_nobody_reads_and_stands_beside_as_it_came() {
        let claims = |claims: Value| URL_SAFE_NO_PAD.encode(claims.to_string());
        let came =
            format!("e30.{}.AQI", claims(json!({ "amr": "pwd", "auth_time": "1700000000", "sub": "S-1" })));
        let answer = read(json!({ "id_token": came }));
        assert_eq!(answer["id_token"], json!(format!("e30.{}.AQI", claims(json!({ "sub": "S-1" })))));
        let original: OriginalToken = serde_json::from_value(answer).unwrap();
        let signed = came.strip_suffix(".AQI").unwrap();
        assert_eq!(original.signed(), Some((signed, vec![1, 2])));
        assert_eq!(format!("{original:?}"), "OriginalToken(…)");
    }
}
