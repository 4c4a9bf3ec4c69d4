//! Calls of a provider's API: with somebody's token, bounded, and with what it says of a refusal.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pipeline_core::{ExposeSecret as _, SecretString};
use serde::de::DeserializeOwned;
use serde_json::Value;
use stages_client::{Client, Fault, HttpError, Method, Opened, Reply, Target, Token};

use crate::error::ActError;
use crate::git::Calls;
use crate::shown::shown;

/// How long a call may take.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The most bytes of an answer; a hundred repositories are the longest one.
const MAX_ANSWER: usize = 4 << 20;
/// The most characters of a provider's error message that are told.
const MAX_MESSAGE: usize = 300;
pub(in crate::git) const PEER: &str = "the Git provider";

/// A provider's API, and whoever asks it.
pub(super) struct Api {
    client: Client,
    token: SecretString,
    header: Token,
    /// Stands before the token in the header.
    scheme: &'static str,
    /// The provider's name in the schema.
    word: &'static str,
}

/// The form of the header `Authorization`.
pub(super) enum Scheme {
    /// This word, and the token.
    Word(&'static str),
    /// Basic authentication, with this name and the token as password.
    Basic(String),
}

/// A request to a provider's API.
pub(super) struct ForgeRequest<'a> {
    /// Completes "the Git provider did not ...".
    act: &'static str,
    method: Method,
    path: &'a [&'a str],
    query: Vec<(&'static str, String)>,
    body: Option<Value>,
}

/// A successful answer of a provider's API.
pub(super) struct ForgeResponse {
    opened: Opened,
    body: Vec<u8>,
}

impl<'a> ForgeRequest<'a> {
    pub(super) fn get(act: &'static str, path: &'a [&'a str]) -> Self {
        Self { act, method: Method::GET, path, query: Vec::new(), body: None }
    }

    /// A request for the headers of the answer alone.
    pub(super) fn head(act: &'static str, path: &'a [&'a str]) -> Self {
        Self { method: Method::HEAD, ..Self::get(act, path) }
    }

    pub(super) fn post(act: &'static str, path: &'a [&'a str], body: Value) -> Self {
        Self { act, method: Method::POST, path, query: Vec::new(), body: Some(body) }
    }

    #[expect(clippy::needless_pass_by_value, reason = "numbers and texts are given alike")]
    pub(super) fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        self.query.push((name, value.to_string()));
        self
    }
}

impl ForgeResponse {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.opened.header(name)
    }

    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T, ActError> {
        serde_json::from_slice(&self.body).map_err(|_| ActError::Unreadable(PEER))
    }

    /// Whether the header `Link` names a next page.
    pub(super) fn links_on(&self) -> bool {
        self.header("link").is_some_and(|links| links.contains("rel=\"next\""))
    }
}

impl Api {
    pub(super) async fn new(
        (word, scheme): (&'static str, Scheme),
        url: &str,
        token: &SecretString,
        calls: &Calls,
    ) -> Result<Self, ActError> {
        let target = Target::new(url, "").map_err(|error| ActError::Wrong(format!("apiUrl: {error}")))?;
        let config = stages_client::Config { max_idle: 1, ..stages_client::Config::new(TIMEOUT, MAX_ANSWER) };
        let client = calls.client(target, config).await;
        let client = client.map_err(|error| ActError::Wrong(format!("{PEER}: {error}")))?;
        let token = token.clone();
        let (header, scheme) = match scheme {
            Scheme::Word(word) => (token.expose_secret().to_owned(), word),
            Scheme::Basic(name) => (STANDARD.encode(format!("{name}:{}", token.expose_secret())), "Basic "),
        };
        Ok(Self { client, token, header: Token::literal(header), scheme, word })
    }

    /// The name of the API's host, without a port.
    pub(super) fn host(&self) -> &str {
        self.client.host().split(':').next().unwrap_or_default()
    }

    pub(super) async fn get<T: DeserializeOwned>(
        &self,
        act: &'static str,
        path: &[&str],
    ) -> Result<T, ActError> {
        self.ask(ForgeRequest::get(act, path)).await?.read()
    }

    pub(super) async fn ask(&self, asked: ForgeRequest<'_>) -> Result<ForgeResponse, ActError> {
        let act = asked.act;
        self.try_ask(&asked).await?.map_err(|reply| self.refused(act, reply))
    }

    /// As [`Self::ask`], for callers that read a refusal: it is the inner error.
    pub(super) async fn try_ask(
        &self,
        asked: &ForgeRequest<'_>,
    ) -> Result<Result<ForgeResponse, Reply>, ActError> {
        let act = asked.act;
        let away = |source: HttpError| ActError::Away { peer: PEER, act, source };
        let request = self.client.request(act, asked.method.clone(), asked.path).map_err(away)?;
        let request = request.query(&asked.query);
        let request = match &asked.body {
            Some(body) => request.json(body),
            None => request,
        };
        let request = self.client.authorize(act, request, &self.header, self.scheme).await.map_err(away)?;
        let mut opened = match self.client.open(act, request).await.map_err(away)? {
            Ok(opened) => opened,
            Err(reply) => return Ok(Err(reply)),
        };
        let mut body = Vec::new();
        while let Some(chunk) = opened.chunk().await.map_err(away)? {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_ANSWER {
                return Err(ActError::Unreadable(PEER));
            }
        }
        Ok(Ok(ForgeResponse { opened, body }))
    }

    /// The error of a token that the provider does not take.
    pub(super) fn unknown(&self) -> ActError {
        ActError::Wrong(format!(
            "{} does not take this token: it has ended, or is that of another server, or may too little",
            self.word
        ))
    }

    pub(super) fn refused(&self, act: &'static str, reply: Reply) -> ActError {
        match reply.status() {
            401 => self.unknown(),
            403 if reply.after().is_none() && !is_of_more_than_the_token(reply.body()) => self.unknown(),
            status @ (400 | 403 | 409 | 422 | 429) => {
                let body: Value = serde_json::from_slice(reply.body()).unwrap_or_default();
                let said = shown(said(&body).unwrap_or("it does not say why"), MAX_MESSAGE);
                // Nobody is told a token, not even by whom it was sent to.
                let said = said.replace(self.token.expose_secret(), "…");
                ActError::Peer { peer: PEER, act, status, said }
            }
            status => ActError::Away { peer: PEER, act, source: reply.into_error(Fault::Status(status)) },
        }
    }
}

/// Whether a refusal is for a rate limit or a rule of the organization, which another token would meet as well.
fn is_of_more_than_the_token(body: &[u8]) -> bool {
    let text = String::from_utf8_lossy(body).to_lowercase();
    ["rate limit", "saml", "ip allow list", "abuse"].iter().any(|told| text.contains(told))
}

/// The message of a refusal, in the forms that providers have: the first of several errors, a message, or texts by field.
fn said(body: &Value) -> Option<&str> {
    let forms = ["/errors/0/message", "/error/message", "/message", "/error_description", "/error"];
    forms.iter().filter_map(|form| body.pointer(form)).find_map(text)
}

/// The first text of a text, a list, or an object of them.
fn text(of: &Value) -> Option<&str> {
    match of {
        Value::String(text) => Some(text),
        Value::Array(all) => all.first().and_then(text),
        Value::Object(all) => all.values().next().and_then(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{is_of_more_than_the_token, said};

    #[test]
    fn a_limit_and_a_rule_of_an_organization_are_no_fault_of_a_token() {
        for text in [
            "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.",
            "Resource protected by organization SAML enforcement. You must grant your token access to this organization.",
        ] {
            assert!(is_of_more_than_the_token(json!({"message": text}).to_string().as_bytes()), "{text}");
        }
        assert!(!is_of_more_than_the_token(br#"{"error": "insufficient_scope"}"#));
    }

    #[test]
    fn what_a_refusal_says_is_found_in_the_forms_that_providers_have() {
        for (body, text) in [
            (
                json!({"message": "Validation Failed", "errors": [{"message": "No commits"}]}),
                Some("No commits"),
            ),
            (
                json!({"message": "Validation Failed", "errors": [{"code": "invalid"}]}),
                Some("Validation Failed"),
            ),
            (json!({"message": ["Another open merge request"]}), Some("Another open merge request")),
            (json!({"message": {"base": ["is wrong"]}}), Some("is wrong")),
            (json!({"type": "error", "error": {"message": "no changes"}}), Some("no changes")),
            (
                json!({"error": "insufficient_scope", "error_description": "more is needed"}),
                Some("more is needed"),
            ),
            (json!([1]), None),
        ] {
            assert_eq!(said(&body), text, "{body}");
        }
    }
}
