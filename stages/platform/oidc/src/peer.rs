//! The provider as a peer: its endpoints stand where it says, which may be at more than one host.

use std::collections::HashMap;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::HeaderValue;
use http::header::CONTENT_TYPE;
use openidconnect::{AsyncHttpClient, HttpRequest, HttpResponse};
use serde_json::{Map, Value};
use stages_client::{BuildError, Client, Config, Fault, HttpError, Target, TargetError, Url};

use crate::told::answer_as_read;

/// The most that an answer may be long: keys and claims are in it.
const BODY: usize = 1 << 20;
/// Hosts that a provider may stand at.
const HOSTS: usize = 8;

/// What calls a provider.
#[derive(Debug)]
pub(crate) struct Peer {
    ca_file: Option<PathBuf>,
    timeout: Duration,
    /// Whether all of it must be encrypted.
    https: bool,
    clients: Mutex<HashMap<String, Client>>,
}

/// Calls a provider for one purpose, which completes "cannot ..." in errors.
pub(crate) struct Caller {
    pub(crate) peer: Arc<Peer>,
    pub(crate) act: &'static str,
}

impl<'c> AsyncHttpClient<'c> for Caller {
    type Error = CallError;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse, CallError>> + Send + 'c>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(self.peer.call(self.act, request))
    }
}

/// A call that was not answered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error("an endpoint cannot be called")]
    Endpoint(#[from] TargetError),
    #[error("an endpoint of an https provider is not https")]
    Plain,
    #[error("the provider has endpoints at more than {HOSTS} hosts")]
    Hosts,
}

impl Peer {
    pub(crate) fn new(ca_file: Option<PathBuf>, timeout: Duration, https: bool) -> Self {
        Self { ca_file, timeout, https, clients: Mutex::default() }
    }

    pub(crate) async fn call(
        &self,
        act: &'static str,
        request: HttpRequest,
    ) -> Result<HttpResponse, CallError> {
        let (head, body) = request.into_parts();
        let url = Url::parse(&head.uri.to_string()).map_err(|_| TargetError::NotAUrl)?;
        if self.https && url.scheme() != "https" {
            return Err(CallError::Plain);
        }
        let client = self.client(&url).await?;
        let request = client.request_at(act, head.method, &url)?.headers(head.headers).body(body);
        let reply = client.send(act, request).await?;
        if reply.status() >= 500 || reply.status() == 429 {
            let status = reply.status();
            return Err(reply.into_error(Fault::Status(status)).into());
        }
        let mut response = looked_at(reply.body());
        *response.status_mut() = http::StatusCode::from_u16(reply.status()).unwrap_or_default();
        Ok(response)
    }

    async fn client(&self, url: &Url) -> Result<Client, CallError> {
        let origin = url.origin().ascii_serialization();
        let known = || self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = known().get(&origin) {
            return Ok(client.clone());
        }
        let target = Target::new(&origin, "")?;
        let timeout = self.timeout;
        let config = Config {
            ca_file: self.ca_file.clone(),
            connect_timeout: timeout.min(Duration::from_secs(5)),
            max_idle: 4,
            ..Config::new(timeout, BODY)
        };
        let client = config.build(target).await?;
        let mut known = known();
        if known.len() >= HOSTS && !known.contains_key(&origin) {
            return Err(CallError::Hosts);
        }
        Ok(known.entry(origin).or_insert(client).clone())
    }
}

/// An answer without what nobody reads. Some say who somebody is by a token that they signed: which of the two it is stands in the
/// answer, whatever its head says.
fn looked_at(body: &[u8]) -> HttpResponse {
    if let Ok(told) = serde_json::from_slice::<Map<String, Value>>(body) {
        return HttpResponse::new(Value::Object(answer_as_read(told)).to_string().into_bytes());
    }
    let body = body.trim_ascii();
    let mut answer = HttpResponse::new(body.to_vec());
    if body.starts_with(b"eyJ") {
        answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/jwt"));
    }
    answer
}

impl CallError {
    /// What it says of the provider at `host`.
    pub(crate) fn told(self, host: &Arc<str>) -> crate::OidcError {
        let host = host.clone();
        match self {
            Self::Http(error) => crate::OidcError::Away(Arc::new(error)),
            Self::Build(error) => crate::OidcError::Authorities { host, source: Arc::new(error) },
            Self::Endpoint(_) | Self::Plain | Self::Hosts => crate::OidcError::NoProvider { host },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_reads_is_left_out_and_a_token_is_known_by_how_it_begins() {
        let read = |text: &str| {
            let answer = looked_at(text.as_bytes());
            let kind = answer.headers().get(CONTENT_TYPE).map(|kind| kind.to_str().unwrap().to_owned());
            (String::from_utf8(answer.into_body()).unwrap(), kind)
        };
        for (text, left) in [
            (
                r#"{"expires_in": "3599", "id_token": "a.b.c", "scope": ["openid"]}"#,
                r#"{"id_token":"a.b.c"}"#,
            ),
            (r#"{"address": "a street", "sub": "S-1", "updated_at": "1700000000"}"#, r#"{"sub":"S-1"}"#),
            (r#"{"keys":[{"name":"a"}]}"#, r#"{"keys":[{"name":"a"}]}"#),
            ("<html>down</html>", "<html>down</html>"),
            ("[]", "[]"),
            ("", ""),
        ] {
            assert_eq!(read(text), (left.to_owned(), None));
        }
        let signed = ("eyJhbGciOiJSUzI1NiJ9.e30.AA".to_owned(), Some("application/jwt".to_owned()));
        assert_eq!(read("eyJhbGciOiJSUzI1NiJ9.e30.AA\n"), signed);
    }
}
