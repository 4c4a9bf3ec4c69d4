//! What GitHub answers of an OAuth application, as "Authorizing OAuth apps" and "Troubleshooting OAuth app access token request errors"
//! of its documentation have it: a page that asks for consent, and the token that a code is changed into.

use std::collections::HashMap;

use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{Provider, TOKEN};

pub(crate) const ID: &str = "Iv1.shop";
pub(crate) const SECRET: &str = "canary-of-application";

/// An OAuth application.
pub(crate) struct Application {
    /// Where browsers are sent back to.
    pub(crate) callback: String,
    /// Whoever is asked consents.
    pub(crate) consents: bool,
    /// The token that is given.
    pub(crate) token: &'static str,
    /// Its tokens end within hours.
    pub(crate) ends: bool,
    /// What codes were given for: the challenge.
    codes: HashMap<String, String>,
}

impl Default for Application {
    fn default() -> Self {
        Self { callback: String::new(), consents: true, token: TOKEN, ends: false, codes: HashMap::new() }
    }
}

fn pairs(text: &str) -> HashMap<String, String> {
    let url = stages_client::Url::parse(&format!("http://provider/?{text}")).unwrap();
    url.query_pairs().into_owned().collect()
}

pub(super) fn answer(
    provider: &Provider,
    asked: (&str, &str),
    (uri, headers): (&Uri, &HeaderMap),
    body: &[u8],
) -> Response {
    match asked {
        ("GET", "authorize") => authorize(provider, &pairs(uri.query().unwrap_or_default())),
        ("POST", "access_token") => {
            assert_eq!(headers["accept"], "application/json", "else it answers a form");
            assert_eq!(headers["content-type"], "application/x-www-form-urlencoded");
            assert!(uri.query().is_none(), "a secret stands in no address");
            let said = access_token(provider, &pairs(std::str::from_utf8(body).unwrap()));
            (StatusCode::OK, said.to_string()).into_response()
        }
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

fn authorize(provider: &Provider, asked: &HashMap<String, String>) -> Response {
    let mut application = provider.oauth.lock().unwrap();
    let of = |name: &str| asked.get(name).map(String::as_str).unwrap_or_default();
    if of("client_id") != ID {
        return StatusCode::NOT_FOUND.into_response();
    }
    let mut to = stages_client::Url::parse(&application.callback).unwrap();
    let mut say = |pairs: &[(&str, &str)]| {
        to.query_pairs_mut().extend_pairs(pairs);
        (StatusCode::FOUND, [("location", to.to_string())]).into_response()
    };
    if of("redirect_uri") != application.callback {
        return say(&[("error", "redirect_uri_mismatch"), ("state", of("state"))]);
    }
    if !application.consents {
        let why = ("error_description", "The user has denied your application access.");
        return say(&[("error", "access_denied"), why, ("state", of("state"))]);
    }
    assert_eq!((of("scope"), of("code_challenge_method")), ("repo", "S256"));
    let code = format!("code-{}", application.codes.len());
    application.codes.insert(code.clone(), of("code_challenge").to_owned());
    say(&[("code", &code), ("state", of("state"))])
}

fn access_token(provider: &Provider, asked: &HashMap<String, String>) -> Value {
    let mut application = provider.oauth.lock().unwrap();
    let of = |name: &str| asked.get(name).map(String::as_str).unwrap_or_default();
    let refused = |error: &str, said: &str| json!({"error": error, "error_description": said, "error_uri": "https://docs.github.com"});
    if (of("client_id"), of("client_secret")) != (ID, SECRET) {
        let said = "The client_id and/or client_secret passed are incorrect.";
        return refused("incorrect_client_credentials", said);
    }
    if of("redirect_uri") != application.callback {
        let said = "The redirect_uri MUST match the registered callback URL for this application.";
        return refused("redirect_uri_mismatch", said);
    }
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(of("code_verifier")));
    // Each code once.
    if application.codes.remove(of("code")) != Some(challenge) {
        return refused("bad_verification_code", "The code passed is incorrect or expired.");
    }
    match application.ends {
        true => json!({
            "access_token": application.token, "scope": "", "token_type": "bearer", "expires_in": 28_800,
            "refresh_token": "ghr_canary", "refresh_token_expires_in": 15_897_600,
        }),
        false => json!({"access_token": application.token, "scope": "repo", "token_type": "bearer"}),
    }
}
